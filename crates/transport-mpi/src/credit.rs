//! The credit of one place towards another: how much it may have under way, and what it owes back.
//!
//! An MPI library takes in whatever is sent and keeps it in memory until somebody asks. So each pair of places has a
//! window of bytes for each class, and one of blocks; the receiver returns what it has handed on. It differs from
//! `isles_protocol::credit`, which counts units, because records are as long as they are. A pure machine.
//! Invariant: what is under way of records is at most the window; of blocks at most [`BLOCKS_MAX`] and
//! [`BLOCK_BYTES_MAX`], or one alone.

use crate::frame::ReturnedCredit;
use isles_transport::Class;

/// Most bytes that all peers together may have under way to one place in a class, where each has its least window.
const WINDOWS_BYTES: u64 = 16 << 20;

/// The bounds of a window in bytes: of a run of few places, and of one of very many.
const WINDOW_MAX: u32 = 64 << 10;
const WINDOW_MIN: u32 = 4 << 10;

/// Most blocks under way or kept by the receiver, of a pair of places.
pub const BLOCKS_MAX: u32 = 256;

/// Most bytes of these, if there is more than one.
pub const BLOCK_BYTES_MAX: u64 = 64 << 20;

/// The part of these that is given back at once.
const BLOCK_PART: u32 = 8;

/// Number of looks, of a place that always has other things to do, for which owed blocks wait for the next frame: their
/// sender may wait for any of them.
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
    /// Bytes of records that were sent and are not given back, by class.
    sent: [u32; 2],
    blocks_sent: u32,
    block_bytes_sent: u64,
    /// Credit to return to the other place with the next frame.
    owed: ReturnedCredit,
    /// Number of times it was not worth a frame of its own, although blocks are owed.
    deferrals: u32,
}

/// More was given back than had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditOverflow;

impl PairCredit {
    /// Returns the credit of a pair with nothing under way.
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

    /// Notes that a record of the other place has been handed on.
    pub fn note_delivered(&mut self, class: Class, bytes: usize) {
        self.owed.records[index(class)] += bytes as u32;
    }

    /// Notes that a block of the other place has been dropped.
    pub fn dropped(&mut self, bytes: u64) {
        self.owed.blocks += 1;
        self.owed.block_bytes += bytes;
    }

    /// Returns `true` if the credit owed is worth a frame of its own, although the place has other things to do.
    pub fn is_return_due(&self) -> bool {
        self.owed.records.iter().any(|bytes| *bytes >= self.window / 2)
            || self.owed.blocks >= BLOCKS_MAX / BLOCK_PART
            || self.owed.block_bytes >= BLOCK_BYTES_MAX / u64::from(BLOCK_PART)
    }

    /// Returns `true` if blocks are owed: a place that has nothing else to do gives them back in a frame of their own.
    pub fn owes_blocks(&self) -> bool {
        self.owed.blocks > 0
    }

    /// Lets what is owed wait for the next frame; whether it has waited for as long as it may, if it is blocks.
    pub fn defer_return(&mut self) -> bool {
        self.deferrals += u32::from(self.owes_blocks());
        self.deferrals >= DEFERRALS_MAX
    }

    /// Returns the credit that the next frame gives back; it is owed no longer.
    pub fn take_owed(&mut self) -> ReturnedCredit {
        self.deferrals = 0;
        std::mem::take(&mut self.owed)
    }

    /// Takes back credit that the other place returns; returns whether it was anything.
    ///
    /// # Errors
    /// It gives back what it never got; nothing is changed.
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
        /// Two places send each other as the credit allows, hand on in any order, and give back with each frame.
        #[test]
        fn nothing_is_lost_of_a_window(steps in proptest::collection::vec((0..5_u8, 0..2_u8, 1..5_000_usize), 0..200)) {
            let mut ends = [PairCredit::new(window(4_096)), PairCredit::new(window(4_096))];
            // Messages that each end has to hand on: records by class, and blocks.
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
