//! Links between routers, reserved along a whole path when a packet enters.
//!
//! The header takes one hop time from link to link, the body follows without intermediate storage (wormhole routing),
//! and each link is occupied while the body passes and its router recovers. One call replaces an event for each hop.
//! The property tests measure the loss of accuracy against [`exact`](super::exact): a packet that enters earlier keeps
//! its reserved links even from one that would really arrive first.

use super::Timeline;
use crate::quantity::Picoseconds;

/// Timing of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// Time of a header from one router to the next, including the link.
    pub hop: Picoseconds,
    /// Time of one flit on one link.
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

/// Packets of equal length, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Number of packets.
    pub packets: u64,
    /// Flits of each.
    pub flits: u64,
}

impl Train {
    /// Returns the time for which they occupy a link, including the last recovery.
    fn hold(self, pace: LinkTiming) -> Picoseconds {
        Picoseconds((pace.flit.0 * self.flits + pace.recovery.0) * self.packets)
    }
}

/// All links of a network, with their traffic.
#[derive(Clone, Debug)]
pub struct Network {
    pace: LinkTiming,
    links: Vec<Link>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// Busy times of the link.
    timeline: Timeline,
    /// Number of flits that have crossed it.
    flits: u64,
}

impl Network {
    /// Makes a network of `links` free links.
    pub fn new(links: usize, pace: LinkTiming) -> Network {
        Network { pace, links: vec![Link::default(); links] }
    }

    /// Sends `train` over `path` at `from`; returns the delay of its last flit by contention.
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
        // Arrival of the header with and without contention; summing up the delays at each link would be slower.
        let (mut header, mut alone) = (from, from);
        for link in path {
            let link = &mut self.links[link];
            link.flits += flits;
            header = link.timeline.reserve(present, header, hold) + self.pace.hop;
            alone += self.pace.hop;
        }
        header - alone
    }

    /// Returns the timing of packets.
    pub fn pace(&self) -> LinkTiming {
        self.pace
    }

    /// Returns the number of flits that have crossed each link, in the order of the links' numbers.
    pub fn flits(&self) -> impl Iterator<Item = u64> + '_ {
        self.links.iter().map(|link| link.flits)
    }

    /// Returns the number of flits that have crossed `link`.
    pub fn flits_of(&self, link: usize) -> u64 {
        self.links[link].flits
    }
}
