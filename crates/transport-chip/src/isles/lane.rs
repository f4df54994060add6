//! One ring: from one place to another, in one class.

use crate::parcel::Load;
use isles_transport::HandlerId;

/// What entries occupy until they are credited.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Lines of the ring.
    pub(super) lines: u8,
    /// Slots of the sender's buffer, this lane's own.
    pub(super) slots: u8,
    /// Slots of it, as bits, that other lanes share.
    pub(super) shared: u8,
}

impl Share {
    /// Of so many lines, and nothing else.
    pub(super) fn of_lines(lines: u32) -> Share {
        Share { lines: lines as u8, ..Share::default() }
    }

    /// Of the line of the ring that tells of a slot of its own.
    pub(super) const SLOT: Share = Share { lines: 1, slots: 1, shared: 0 };

    /// The slots that it shares.
    pub(super) fn shared_slots(self) -> impl Iterator<Item = usize> {
        (0..u8::BITS as usize).filter(move |slot| self.shared >> slot & 1 != 0)
    }
}

/// A block under way.
pub(super) struct Stream {
    pub(super) lane: usize,
    pub(super) handler: HandlerId,
    pub(super) load: Load,
    /// Lines still to be written.
    pub(super) left: u32,
}

/// Short, because there are very many and each message needs one or two of them.
#[derive(Default)]
pub(super) struct Lane {
    /// What is written and not credited yet, as the sender knows it.
    pub(super) taken: Share,
    /// What the receiver has taken and not credited.
    pub(super) owed: Share,
    /// Entries that the receiver has not taken.
    pub(super) waiting: u8,
    /// Whether a block is under way here.
    pub(super) streams: bool,
}

impl std::ops::AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        self.lines += other.lines;
        self.slots += other.slots;
        self.shared |= other.shared;
    }
}

impl std::ops::SubAssign for Share {
    fn sub_assign(&mut self, other: Share) {
        self.lines -= other.lines;
        self.slots -= other.slots;
        self.shared &= !other.shared;
    }
}
