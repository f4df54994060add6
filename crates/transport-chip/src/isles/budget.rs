//! How the message buffer of a core is divided.
//!
//! ```text
//! flags       one byte for each place and class        written by that place, read at every poll: the low half counts
//!                                                      entries that it has written, the high half those it has taken
//! rings       u lines of control and 2 u lines of data for each other place
//! slots       2 for control and 4 for data, in what is left: 1 part and 2 parts
//!
//! `u` is what three fifths of the lines behind the flags allow, from 1 to [`RING_UNIT_MAX`].

use crate::wire::MESSAGE_BYTES_MIN;
use isles_transport::Class;

/// Bytes of an entry that are not the message: length, handler, kind, and the slot of what lies elsewhere.
const HEADER_BYTES: usize = 8;

/// More lines of a control ring do not pay: what they hold has long been taken. Lines of rings are counted in bytes.
const RING_UNIT_MAX: u32 = 5;
const _: () = assert!(2 * RING_UNIT_MAX < 1 << 4, "half a byte tells how many entries are new");

/// Slots by class: two keep one piece under way while the next is written; data has other receivers beside.
const SLOTS: [u32; 2] = [2, 4];

/// Slots of the class that has most.
pub(super) const SLOTS_MAX: usize = 4;
const _: () = assert!(SLOTS[0] as usize <= SLOTS_MAX && SLOTS[1] as usize <= SLOTS_MAX);

/// The division of one buffer; entries of arrays are by class, control first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    line_bytes: usize,
    /// Lines with flags: doorbells and credits.
    pub(crate) flag_lines: u32,
    /// Lines of one ring.
    pub(crate) ring_lines: [u32; 2],
    pub(crate) slots: [u32; 2],
    /// Lines of one slot.
    pub(crate) slot_lines: [u32; 2],
}

impl Budget {
    /// The division of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, line_bytes: u32) -> Result<Budget, u32> {
        let flag_lines = (2 * places).div_ceil(line_bytes);
        let peers = places.saturating_sub(1).max(1);
        let least = least_lines(peers, flag_lines, line_bytes);
        if lines < least {
            return Err(least);
        }
        let behind_flags = lines - flag_lines;
        let unit = (behind_flags * 3 / 5 / (3 * peers)).clamp(1, RING_UNIT_MAX);
        let left = behind_flags - 3 * unit * peers;
        let slot_lines = [left / 3 / SLOTS[0], left * 2 / 3 / SLOTS[1]];
        Ok(Budget {
            line_bytes: line_bytes as usize,
            flag_lines,
            ring_lines: [unit, 2 * unit],
            slots: SLOTS,
            slot_lines,
        })
    }

    /// Lines that `len` bytes take.
    pub(crate) fn lines(&self, len: usize) -> u32 {
        len.div_ceil(self.line_bytes) as u32
    }

    /// Lines of a ring that a message of `len` bytes takes, if it goes there itself.
    #[inline]
    pub(crate) fn ring_lines_of(&self, class: Class, len: usize) -> Option<u32> {
        let bytes = HEADER_BYTES + len;
        // That most take one line spares a division.
        let lines = if bytes <= self.line_bytes { 1 } else { self.lines(bytes) };
        (lines <= self.ring_lines[class as usize]).then_some(lines)
    }

    /// Bytes of the longest message of `class` that goes into a ring itself.
    pub(crate) fn ring_bytes_max(&self, class: Class) -> usize {
        self.ring_lines[class as usize] as usize * self.line_bytes - HEADER_BYTES
    }

    /// Bytes of the longest message of `class` that is no block.
    pub(crate) fn message_bytes_max(&self, class: Class) -> usize {
        self.slot_lines[class as usize] as usize * self.line_bytes
    }
}

/// Rings of the least unit, and slots that hold what every transport must carry.
fn least_lines(peers: u32, flag_lines: u32, line_bytes: u32) -> u32 {
    let slot = MESSAGE_BYTES_MIN.div_ceil(line_bytes);
    // A third of what is left goes to the two slots of control, and the rest to the four of data.
    flag_lines + 3 * peers + 3 * SLOTS[0] * slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_of_an_scc_core_is_divided_among_48_places_as_documented() {
        let budget = Budget::new(48, 256, 32).unwrap();
        assert_eq!((budget.flag_lines, budget.ring_lines), (3, [1, 2]));
        assert_eq!((budget.slots, budget.slot_lines), ([2, 4], [18, 18]));
        assert_eq!(
            (budget.ring_lines_of(Class::Control, 24), budget.ring_lines_of(Class::Control, 25)),
            (Some(1), None)
        );
        assert_eq!(
            (budget.ring_lines_of(Class::Data, 56), budget.ring_lines_of(Class::Data, 57)),
            (Some(2), None)
        );
        assert_eq!(budget.message_bytes_max(Class::Control), 576);
    }

    #[test]
    fn no_division_is_larger_than_the_buffer_and_the_least_one_carries_64_bytes() {
        for (places, lines) in
            (1..=256).flat_map(|places| [64, 128, 256, 1_000, 10_000].map(|lines| (places, lines)))
        {
            let budget = match Budget::new(places, lines, 32) {
                Ok(budget) => budget,
                Err(least) => {
                    assert!(least > lines);
                    Budget::new(places, least, 32).unwrap()
                }
            };
            let lines = if Budget::new(places, lines, 32).is_ok() {
                lines
            } else {
                Budget::new(places, lines, 32).unwrap_err()
            };
            let rings = (places - 1) * (budget.ring_lines[0] + budget.ring_lines[1]);
            let slots: u32 = (0..2).map(|class| budget.slots[class] * budget.slot_lines[class]).sum();
            assert!(budget.flag_lines + rings + slots <= lines, "{places} places, {lines} lines: {budget:?}");
            assert!(
                budget.message_bytes_max(Class::Control) >= 64 && budget.message_bytes_max(Class::Data) >= 64
            );
            assert!(budget.flag_lines * 32 >= 2 * places);
        }
    }
}
