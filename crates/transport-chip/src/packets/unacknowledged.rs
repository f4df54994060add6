//! Packets of one sender and class for which no receipt is asked, by receiver.
//!
//! Receivers so many apart share an entry, so this takes the same memory however many there are. It does not know how
//! many packets are free. Invariant: an entry is of one receiver as long as any packet is noted in it.

use super::{RESERVE, WINDOW};
use isles_transport::PlaceId;

/// Entries; nothing before the first packet.
#[derive(Default)]
pub(super) struct Unacknowledged(Vec<PeerCount>);

/// How many entries there are.
const ENTRIES: usize = 64;

/// A receiver, and in the low bits how many packets. Short, because a host's first cache has little room for what every
/// message looks up.
#[derive(Clone, Copy, Default)]
struct PeerCount(u32);

/// Bits of a number of packets. What is left holds every place that the key of an event may be of.
const PACKETS_BITS: u32 = 8;

const _: () = assert!(WINDOW - RESERVE < 1 << PACKETS_BITS, "more may be noted than an entry holds");

impl PeerCount {
    fn new(target: PlaceId, packets: u32) -> PeerCount {
        PeerCount(target.0 << PACKETS_BITS | packets)
    }

    fn target(self) -> PlaceId {
        PlaceId(self.0 >> PACKETS_BITS)
    }

    fn packets(self) -> u32 {
        self.0 & ((1 << PACKETS_BITS) - 1)
    }
}

impl Unacknowledged {
    /// Notes packets to a place, unless `asks`; gives for how many a receipt is asked then, those before them counted.
    /// Who finds another receiver in its entry asks anyhow, for these only.
    #[inline]
    pub(super) fn note(&mut self, target: PlaceId, packets: u32, asks: bool) -> u32 {
        if self.0.is_empty() {
            self.0.resize(ENTRIES, PeerCount::default());
        }
        let entry = &mut self.0[target.index() % ENTRIES];
        let before = entry.packets();
        if before > 0 && entry.target() != target {
            return packets;
        }
        let (noted, asked) = if asks { (0, before + packets) } else { (before + packets, 0) };
        *entry = PeerCount::new(target, noted);
        asked
    }

    /// How many are noted of a place; none from then on.
    pub(super) fn take(&mut self, target: PlaceId) -> u32 {
        let entry = self.0.get_mut(target.index() % ENTRIES).filter(|entry| entry.target() == target);
        entry.map_or(0, |entry| std::mem::take(entry).packets())
    }

    /// How many are noted.
    #[cfg(test)]
    pub(super) fn sum(&self) -> u32 {
        self.0.iter().map(|entry| entry.packets()).sum()
    }
}
