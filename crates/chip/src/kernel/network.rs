//! Links between routers, reserved along a whole path when a packet enters.
//!
//! The header takes one hop time from link to link, the body follows without a store in between, and each link is
//! taken for as long as the body passes and for what its router needs before the next packet. One call replaces an
//! event for each hop. What that costs in exactness, the property tests measure against [`exact`](super::exact): a
//! packet that enters earlier holds its links against one that would in truth come first.

use super::Timeline;
use crate::quantity::Picoseconds;

/// Speed of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// A header from one router to the next, link included.
    pub hop: Picoseconds,
    /// One flit over one link.
    pub flit: Picoseconds,
    /// Time that a link needs after each packet before it takes the next one.
    pub recovery: Picoseconds,
}

impl LinkTiming {
    /// Returns the time of a packet over `hops` links without contention.
    pub fn alone(self, hops: usize, flits: u64) -> Picoseconds {
        Picoseconds(self.hop.0 * hops as u64 + self.flit.0 * flits)
    }
}

/// Packets of one length, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Number of packets.
    pub packets: u64,
    /// Flits of each.
    pub flits: u64,
}

impl Train {
    /// Returns the time that they hold a link, the recovery after the last one included.
    fn hold(self, pace: LinkTiming) -> Picoseconds {
        Picoseconds((pace.flit.0 * self.flits + pace.recovery.0) * self.packets)
    }
}

/// All links of one network, and how much has passed each.
#[derive(Clone, Debug)]
pub struct Network {
    pace: LinkTiming,
    links: Vec<Link>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// Times at which it is taken.
    timeline: Timeline,
    /// Number of flits that have passed it.
    flits: u64,
}

impl Network {
    /// A network of `links` links, all free.
    pub fn new(links: usize, pace: LinkTiming) -> Network {
        Network { pace, links: vec![Link::default(); links] }
    }

    /// Sends `train` over `path` at `from`; returns how much later than alone its last flit arrives.
    ///
    /// `present` is as for [`Timeline::reserve`].
    #[inline]
    pub fn send(
        &mut self,
        present: Picoseconds,
        from: Picoseconds,
        path: impl IntoIterator<Item = usize>,
        train: Train,
    ) -> Picoseconds {
        let (hold, flits) = (train.hold(self.pace), train.flits * train.packets);
        // Where the header is and would be alone: to add up what it waits at each link takes the host longer.
        let (mut header, mut alone) = (from, from);
        for link in path {
            let link = &mut self.links[link];
            link.flits += flits;
            header = link.timeline.reserve(present, header, hold) + self.pace.hop;
            alone += self.pace.hop;
        }
        header - alone
    }

    /// Returns the speed of packets.
    pub fn pace(&self) -> LinkTiming {
        self.pace
    }

    /// Returns the number of flits that have passed each link, in the order of their numbers.
    pub fn flits(&self) -> impl Iterator<Item = u64> + '_ {
        self.links.iter().map(|link| link.flits)
    }

    /// Returns the number of flits that have passed `link`.
    pub fn flits_of(&self, link: usize) -> u64 {
        self.links[link].flits
    }
}
