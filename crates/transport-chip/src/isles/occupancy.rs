//! One ring: from one place to another, in one class.

use super::layout::SLOTS_MAX;

/// What entries occupy until they are credited.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Occupancy {
    /// Lines of the ring.
    pub(super) lines: u8,
    /// Slots of the sender's buffer: in the low half how many are this lane's own, in the high half as bits those from
    /// which other lanes fetch, too; between them [`CELL`]. No lane has one of these twice, so shares are added as they
    /// stand.
    pub(super) slots: u8,
}

/// The bit of the cell of the pair of places.
const CELL: u8 = 8;

impl Occupancy {
    /// Of a message of so many lines, with its header.
    #[inline]
    pub(super) fn of_lines(lines: u32) -> Occupancy {
        Occupancy { lines: lines as u8, slots: 0 }
    }

    /// Of one whose header is in the cell.
    #[inline]
    pub(super) fn beside_cell(lines: u32) -> Occupancy {
        Occupancy { lines: lines as u8, slots: CELL }
    }

    /// Of the line of the ring that tells of a slot of its own.
    pub(super) const OWN_SLOT: Occupancy = Occupancy { lines: 1, slots: 1 };

    /// The same of a slot of that number, from which others fetch, too.
    pub(super) fn of_shared(slot: u8) -> Occupancy {
        Occupancy { lines: 1, slots: 0x10 << slot }
    }

    /// How many slots are this lane's own.
    #[inline]
    pub(super) fn own_slots(self) -> u32 {
        u32::from(self.slots & (CELL - 1))
    }

    /// Whether there are slots, its own or shared ones.
    #[inline]
    pub(super) fn has_slots(self) -> bool {
        self.slots & !CELL != 0
    }

    #[inline]
    pub(super) fn has_cell(self) -> bool {
        self.slots & CELL != 0
    }

    /// The numbers of the others.
    #[inline]
    pub(super) fn shared_slots(self) -> impl Iterator<Item = usize> {
        let bits = self.slots >> 4;
        (0..SLOTS_MAX).take_while(move |slot| bits >> slot != 0).filter(move |slot| bits >> slot & 1 != 0)
    }
}

const _: () = assert!(SLOTS_MAX <= 4, "a half of a byte has so many bits, and three bits count so many");

/// Short, because there are very many and each message needs one or two of them.
#[derive(Default)]
pub(super) struct Lane {
    /// What is written and not credited yet, as the sender knows it.
    pub(super) taken: Occupancy,
    /// What the receiver has taken and not credited.
    pub(super) owed: Occupancy,
    /// Whether a block is under way here.
    pub(super) streams: bool,
}

impl std::ops::AddAssign for Occupancy {
    fn add_assign(&mut self, other: Occupancy) {
        self.lines += other.lines;
        self.slots += other.slots;
    }
}

impl std::ops::SubAssign for Occupancy {
    fn sub_assign(&mut self, other: Occupancy) {
        self.lines -= other.lines;
        self.slots -= other.slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_keeps_which_slots_are_fetched_by_others_too_and_how_many_are_its_own() {
        let mut share = Occupancy::default();
        for more in
            [Occupancy::of_shared(3), Occupancy::OWN_SLOT, Occupancy::of_shared(0), Occupancy::OWN_SLOT]
        {
            share += more;
        }
        assert_eq!((share.lines, share.own_slots()), (4, 2));
        assert_eq!(share.shared_slots().collect::<Vec<_>>(), [0, 3]);
        share -= Occupancy::of_shared(0);
        assert_eq!((share.lines, share.own_slots()), (3, 2));
        assert_eq!(share.shared_slots().collect::<Vec<_>>(), [3]);
    }
}
