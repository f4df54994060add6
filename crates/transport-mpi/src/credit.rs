//! The credit of one place towards another: how much it may have in flight, and what it must return.
//!
//! An MPI library accepts everything that is sent and buffers it until it is received. So each pair of places has a
//! window of bytes for each class, and one of blocks; the receiver returns credit for what it has handed on. It differs
//! from `isles_protocol::credit`, which counts units, because records differ in length. A pure machine. Invariant:
//! records in flight take at most the window, and blocks at most [`BLOCKS_MAX`] and [`BLOCK_BYTES_MAX`], unless there
//! is only one.

use crate::frame::ReturnedCredit;
use isles_transport::Class;

/// Largest number of bytes that all peers together may have in flight to one place in a class, if each has its least
/// window.
const WINDOWS_BYTES: u64 = 16 << 20;

/// The bounds of a window in bytes: in a run of few places, and in one of very many.
const WINDOW_MAX: u32 = 64 << 10;
const WINDOW_MIN: u32 = 4 << 10;

/// Largest number of blocks in flight or kept by the receiver, for a pair of places.
pub const BLOCKS_MAX: u32 = 256;

/// Largest total length of these blocks in bytes, if there is more than one.
pub const BLOCK_BYTES_MAX: u64 = 64 << 20;

/// Divisor of these bounds: the share that is returned at once.
const BLOCK_PART: u32 = 8;

/// Number of looks of a busy place for which owed blocks wait for the next frame; their sender may be waiting for any
/// of them.
const DEFERRALS_MAX: u32 = 8;

/// Returns the window of each pair and class in a run of `places` places, in bytes: a multiple of 8.
pub fn window(places: u32) -> u32 {
    let share = WINDOWS_BYTES / u64::from(places.max(1));
    (share.clamp(u64::from(WINDOW_MIN), u64::from(WINDOW_MAX)) as u32) & !7
}

fn index(class: Class) -> usize {
    match class {
        Class::Control => 0,
        Class::Data => 1,
    }
}

/// The credit of a pair of places, as one of them keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairCredit {
    window: u32,
    /// Bytes of records sent and not returned, by class.
    sent: [u32; 2],
    blocks_sent: u32,
    block_bytes_sent: u64,
    /// Credit to return to the other place with the next frame.
    owed: ReturnedCredit,
    /// Number of times that owed blocks were not worth a frame of their own.
    deferrals: u32,
}

/// More was returned than had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditOverflow;

impl PairCredit {
    /// Returns the credit of a pair with nothing in flight.
    pub fn new(window: u32) -> PairCredit {
        PairCredit {
            window,
            sent: [0; 2],
            blocks_sent: 0,
            block_bytes_sent: 0,
            owed: ReturnedCredit::default(),
            deferrals: 0,
        }
    }

    /// Returns `true` if a record of `bytes` bytes may be sent in `class`.
    pub fn has_room(&self, class: Class, bytes: usize) -> bool {
        bytes <= (self.window - self.sent[index(class)]) as usize
    }

    /// Uses credit for a record, for which there was room.
    pub fn send(&mut self, class: Class, bytes: usize) {
        debug_assert!(self.has_room(class, bytes), "{bytes} bytes beyond the window");
        self.sent[index(class)] += bytes as u32;
    }

    /// Returns `true` if a block of `bytes` bytes may be sent.
    pub fn has_block_room(&self, bytes: u64) -> bool {
        self.blocks_sent == 0
            || self.blocks_sent < BLOCKS_MAX && self.block_bytes_sent.saturating_add(bytes) <= BLOCK_BYTES_MAX
    }

    /// Uses credit for a block, for which there was room.
    pub fn send_block(&mut self, bytes: u64) {
        self.blocks_sent += 1;
        self.block_bytes_sent += bytes;
    }

    /// Records that a record of the other place has been handed on.
    pub fn note_delivered(&mut self, class: Class, bytes: usize) {
        self.owed.records[index(class)] += bytes as u32;
    }

    /// Records that a block of the other place has been dropped.
    pub fn dropped(&mut self, bytes: u64) {
        self.owed.blocks += 1;
        self.owed.block_bytes += bytes;
    }

    /// Returns `true` if the owed credit is worth a frame of its own even for a busy place.
    pub fn is_return_due(&self) -> bool {
        self.owed.records.iter().any(|bytes| *bytes >= self.window / 2)
            || self.owed.blocks >= BLOCKS_MAX / BLOCK_PART
            || self.owed.block_bytes >= BLOCK_BYTES_MAX / u64::from(BLOCK_PART)
    }

    /// Returns `true` if blocks are owed; an idle place returns them in a frame of their own.
    pub fn owes_blocks(&self) -> bool {
        self.owed.blocks > 0
    }

    /// Leaves the owed credit to the next frame; returns `true` if owed blocks have waited for as long as they may.
    pub fn defer_return(&mut self) -> bool {
        self.deferrals += u32::from(self.owes_blocks());
        self.deferrals >= DEFERRALS_MAX
    }

    /// Returns the credit for the next frame to return, which is then owed no longer.
    pub fn take_owed(&mut self) -> ReturnedCredit {
        self.deferrals = 0;
        std::mem::take(&mut self.owed)
    }

    /// Takes back credit that the other place returns; returns whether there was any.
    ///
    /// # Errors
    /// It returns more than it got; nothing changes.
    pub fn give_back(&mut self, returned: ReturnedCredit) -> Result<bool, CreditOverflow> {
        let is_too_much = returned.records.iter().zip(self.sent).any(|(back, sent)| *back > sent)
            || returned.blocks > self.blocks_sent
            || returned.block_bytes > self.block_bytes_sent;
        if is_too_much {
            return Err(CreditOverflow);
        }
        for (sent, back) in self.sent.iter_mut().zip(returned.records) {
            *sent -= back;
        }
        self.blocks_sent -= returned.blocks;
        self.block_bytes_sent -= returned.block_bytes;
        Ok(!returned.is_nothing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_windows_of_all_peers_fit_the_memory_that_is_stated() {
        for places in [2, 64, 256, 1_000, 4_096] {
            assert!(u64::from(window(places)) * u64::from(places) <= WINDOWS_BYTES, "{places}");
        }
        assert_eq!((window(2), window(1_000), window(10_000)), (64 << 10, 16_776, 4 << 10));
    }

    proptest! {
        /// Two places send each other what the credit allows, hand on in any order, and return credit with each frame.
        #[test]
        fn nothing_is_lost_of_a_window(steps in proptest::collection::vec((0..5_u8, 0..2_u8, 1..5_000_usize), 0..200)) {
            let mut ends = [PairCredit::new(window(4_096)), PairCredit::new(window(4_096))];
            // Messages that each end must hand on: records by class, and blocks.
            let mut records: [[Vec<usize>; 2]; 2] = Default::default();
            let mut blocks: [Vec<u64>; 2] = Default::default();
            for (step, end, size) in steps {
                let (end, size) = (usize::from(end), size & !7);
                let class = if size % 16 == 0 { Class::Control } else { Class::Data };
                match step {
                    0 if ends[end].has_room(class, size) => {
                        ends[end].send(class, size);
                        records[1 - end][index(class)].push(size);
                    }
                    1 if ends[end].has_block_room(size as u64) => {
                        ends[end].send_block(size as u64);
                        blocks[1 - end].push(size as u64);
                    }
                    2 => if let Some(size) = records[end][index(class)].pop() {
                        ends[end].note_delivered(class, size);
                    }
                    3 => if let Some(size) = blocks[end].pop() {
                        ends[end].dropped(size);
                    }
                    _ => {
                        let owed = ends[end].take_owed();
                        prop_assert_eq!(ends[1 - end].give_back(owed), Ok(!owed.is_nothing()));
                    }
                }
                let window = window(4_096);
                prop_assert!(ends.iter().all(|end| end.sent.iter().all(|sent| *sent <= window)));
            }
            for end in [0, 1] {
                for class in [Class::Control, Class::Data] {
                    records[end][index(class)].drain(..).for_each(|size| ends[end].note_delivered(class, size));
                }
                blocks[end].drain(..).for_each(|size| ends[end].dropped(size));
                let owed = ends[end].take_owed();
                ends[1 - end].give_back(owed).unwrap();
            }
            let unused = PairCredit::new(window(4_096));
            prop_assert_eq!(ends, [unused.clone(), unused]);
        }
    }

    #[test]
    fn a_block_goes_back_with_the_next_frame_and_many_or_long_ones_at_once() {
        let owing = |blocks: u32, bytes| {
            let mut credit = PairCredit::new(4_096);
            (0..blocks).for_each(|_| credit.dropped(bytes));
            (credit.is_return_due(), credit.owes_blocks())
        };
        assert_eq!((owing(0, 0), owing(1, 1 << 20)), ((false, false), (false, true)));
        assert_eq!(
            (owing(31, 1), owing(32, 1), owing(1, 8 << 20)),
            ((false, true), (true, true), (true, true))
        );
    }

    #[test]
    fn a_block_waits_for_a_frame_for_a_few_looks_only_and_records_for_as_many_as_they_like() {
        let mut credit = PairCredit::new(4_096);
        credit.note_delivered(Class::Data, 8);
        assert!((0..100).all(|_| !credit.defer_return()));
        for _ in 0..3 {
            credit.dropped(8);
            assert_eq!(
                (0..8).map(|_| credit.defer_return()).filter(|is_over| *is_over).count(),
                1,
                "at the last look"
            );
            credit.take_owed();
        }
    }

    #[test]
    fn more_than_was_sent_is_refused_and_changes_nothing() {
        let mut credit = PairCredit::new(4_096);
        credit.send(Class::Data, 16);
        let before = credit.clone();
        let returned = ReturnedCredit { records: [0, 24], ..ReturnedCredit::default() };
        assert_eq!((credit.give_back(returned), credit == before), (Err(CreditOverflow), true));
    }
}
