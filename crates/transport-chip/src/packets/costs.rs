//! What packets cost and carry, by the file of the chip.
//!
//! Worked out once; it does not know who sends what. Invariant: a message is a packet at least, with its header.

use isles_chip::cost::HopCost;
use isles_chip::quantity::Picoseconds;
use isles_chip::{Chip, LinkTraits};

/// Bytes of a message that are not its content: length, handler, kind.
pub(super) const HEADER_BYTES: usize = 8;

/// What a packet costs, and what it carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketCosts {
    pub(super) send: Picoseconds,
    pub(super) receive: Picoseconds,
    pub(super) transit: HopCost,
    pub(super) payload: usize,
    pub(super) links: LinkTraits,
}

impl PacketCosts {
    /// Those of `chip` at its default setting; none if its hardware carries no packets.
    pub(crate) fn of(chip: &Chip) -> Option<PacketCosts> {
        let (times, links) = (chip.default_preset().times(), chip.links());
        Some(PacketCosts {
            send: times.send?.over(0),
            receive: times.receive?.over(0),
            transit: times.transit?,
            payload: links.payload_max.0 as usize,
            links: *links,
        })
    }

    /// Bytes that so many packets carry at most.
    pub(super) fn carried(&self, packets: u32) -> usize {
        packets as usize * self.payload
    }

    /// Flits of a packet that carries `len` bytes.
    pub(super) fn flits(&self, len: usize) -> u64 {
        self.links.flits(len as u64)
    }
}
