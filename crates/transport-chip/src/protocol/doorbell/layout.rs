//! The layout of a core's message buffer.
//!
//! ```text
//! flags       what each other place writes, read at every poll
//!   narrow      one byte for each other place and class: the low half counts the entries that it has written, the
//!               high half those that it has taken
//!   wide        equal parts of one line, of 8 bytes at least:
//!     0..2        how many entries it has written into the rings, by class
//!     2..4        how many entries it has taken, by class
//!     4..8        its cell: the header of one entry (a bit that turns, class, 14 bits of length, handler)
//!     8..         content of that entry, if it fits there
//! rings       u lines of control for each other place; of data 2 u, or its part of a quarter of the lines
//! slots       2 for control and 4 for data, in what is left: 1 part and 2 parts, or what control may have at most
//! ```
//!
//! `u` is a fifth of each other place's part of the lines behind the flags, from 1 to [`RING_UNIT_MAX`]. Flags are wide
//! if they fit into one line: with up to 5 places and lines of 32 bytes.

use crate::protocol::MESSAGE_BYTES_MIN;
use isles_transport::Class;
use std::ops::Range;

/// Bytes of an entry besides the message: length, handler, kind, and the slot of a long message.
const HEADER_BYTES: usize = 8;

/// Bytes of a wide flag without content: the counts, and the header in the cell.
const WIDE_BYTES: u32 = 8;

/// Maximum lines of a control ring; more would not help, because the first are taken long before. Ring lines are
/// counted in bytes.
const RING_UNIT_MAX: u32 = 5;

/// Maximum lines of a ring, with narrow and wide flags: each entry except the one in the cell has at least a line, and
/// a flag counts new entries in half a byte or a byte.
const RING_LINES_MAX: [u32; 2] = [15, 240];
const _: () = assert!(2 * RING_UNIT_MAX <= RING_LINES_MAX[0]);

/// Parts of the lines: data rings may take a quarter, the slots of control a sixth. A data message in the ring needs no
/// line for its location, and few control messages are long enough for a slot.
const DATA_RINGS_PART: u32 = 4;
const CONTROL_SLOTS_PART: u32 = 6;

/// Minimum length, in lines, of a message sent in halves: the receiver takes one half while the other is written.
/// Halves cost one more entry, which does not pay for shorter messages.
const HALVED_LINES_MIN: u32 = 32;

/// Minimum lines of a slot for which the last two pieces of a block are made equal; in smaller slots each piece costs
/// little more than its instructions.
const HALVED_SLOT_MIN: u32 = 24;

/// Slots by class: with two, one piece is in flight while the next is written; data has more, for other receivers.
const SLOTS: [u32; 2] = [2, 4];

/// Maximum number of slots of a class.
pub(super) const SLOTS_MAX: usize = 4;
const _: () = assert!(SLOTS[0] as usize <= SLOTS_MAX && SLOTS[1] as usize <= SLOTS_MAX);

/// The layout of one buffer; entries of arrays are by class, control first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoorbellLayout {
    line_bytes: usize,
    /// Lines of flags: doorbells and credits.
    pub(crate) flag_lines: u32,
    /// Lines of one ring.
    pub(crate) ring_lines: [u32; 2],
    pub(crate) slots: [u32; 2],
    /// Lines of one slot.
    pub(crate) slot_lines: [u32; 2],
    /// Size in bytes of the longest message other than a block.
    pub(crate) message_bytes_max: [usize; 2],
    /// Bytes of content in a cell; `None` if there are no cells.
    cell_bytes: Option<u32>,
}

impl DoorbellLayout {
    /// The layout of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, line_bytes: u32) -> Result<DoorbellLayout, u32> {
        let peers = places.saturating_sub(1).max(1);
        let flag_lines = (2 * peers).div_ceil(line_bytes);
        let least = least_lines(peers, flag_lines, line_bytes);
        if lines < least {
            return Err(least);
        }
        let cell_bytes = (line_bytes / peers).checked_sub(WIDE_BYTES);
        let behind_flags = lines - flag_lines;
        let least = slots_least(line_bytes);
        // Lines that slots of the minimum length leave to each pair of places.
        let room = (behind_flags - least) / peers;
        let most = RING_LINES_MAX[usize::from(cell_bytes.is_some())];
        let ring_lines = ring_lines(behind_flags / peers, room, most);
        let left = behind_flags - (ring_lines[0] + ring_lines[1]) * peers;
        let slot_lines = slot_lines(left, (behind_flags / CONTROL_SLOTS_PART).max(least / 3));
        let line_bytes = line_bytes as usize;
        let message_bytes_max = longest(ring_lines, slot_lines, line_bytes);
        Ok(DoorbellLayout {
            line_bytes,
            flag_lines,
            ring_lines,
            slots: SLOTS,
            slot_lines,
            message_bytes_max,
            cell_bytes,
        })
    }

    /// Returns the number of lines of `len` bytes.
    pub(crate) fn lines(&self, len: usize) -> u32 {
        len.div_ceil(self.line_bytes) as u32
    }

    /// Returns the lines of a ring for a message of `len` bytes, if it fits into the ring.
    #[inline]
    pub(crate) fn ring_lines_of(&self, class: Class, len: usize) -> Option<u32> {
        let bytes = HEADER_BYTES + len;
        // Most messages take one line, which avoids a division.
        let lines = if bytes <= self.line_bytes { 1 } else { self.lines(bytes) };
        (lines <= self.ring_lines[class as usize]).then_some(lines)
    }

    /// Returns `true` if flags have cells.
    #[inline]
    pub(crate) fn has_cells(&self) -> bool {
        self.cell_bytes.is_some()
    }

    /// Returns the lines of a ring for a message of `len` bytes with its header in a cell, if it fits; 0 if the cell
    /// holds its content as well.
    pub(crate) fn lines_beside_cell(&self, class: Class, len: usize) -> Option<u32> {
        let room = self.cell_bytes? as usize;
        let lines = if len <= room { 0 } else { self.lines(len) };
        (lines <= self.ring_lines[class as usize]).then_some(lines)
    }

    /// Returns the lengths of messages of `class` for which several receivers should fetch from one slot.
    pub(crate) fn shared_bytes(&self, class: Class) -> Range<usize> {
        // A ring may hold long messages, but writing one into several rings costs more than letting the receivers fetch
        // it.
        let lines = self.ring_lines[class as usize].min([1, 2][class as usize] * RING_UNIT_MAX);
        ring_bytes(lines, self.line_bytes) + 1..self.slot_lines[class as usize] as usize * self.line_bytes + 1
    }

    /// Returns the lines of the first part of a message of `lines` lines, if it is sent in two parts.
    #[inline]
    pub(crate) fn first_half(lines: u32) -> Option<u32> {
        (lines >= HALVED_LINES_MIN).then(|| lines.div_ceil(2))
    }

    /// Returns the lines of the next piece of a block of `class` with `left` lines left.
    pub(crate) fn piece_lines(&self, class: usize, left: u32) -> u32 {
        let most = self.slot_lines[class];
        let is_halved = most >= HALVED_SLOT_MIN && left > most && left < 2 * most;
        if is_halved { left.div_ceil(2) } else { left.min(most) }
    }
}

/// Returns the size in bytes of the longest message in `lines` lines of a ring, without its header.
fn ring_bytes(lines: u32, line_bytes: usize) -> usize {
    lines as usize * line_bytes - HEADER_BYTES
}

/// Returns the size in bytes of the longest message of each class that fits into a ring or a slot of these lines.
fn longest(ring_lines: [u32; 2], slot_lines: [u32; 2], line_bytes: usize) -> [usize; 2] {
    [0, 1].map(|class| ring_bytes(ring_lines[class], line_bytes).max(slot_lines[class] as usize * line_bytes))
}

/// Returns the lines of the two rings of a pair of places with a part of `part` lines: at most `room` for both, and at
/// most `most` for one.
fn ring_lines(part: u32, room: u32, most: u32) -> [u32; 2] {
    let unit = (part / 5).min(room / 3).clamp(1, RING_UNIT_MAX);
    [unit, (part / DATA_RINGS_PART).clamp(2 * unit, most.min(room - unit))]
}

/// Returns the lines of one slot of each class, with `left` lines for all slots, and at most `control_max` for those of
/// control.
fn slot_lines(left: u32, control_max: u32) -> [u32; 2] {
    if left / 3 <= control_max {
        return [left / 3 / SLOTS[0], left * 2 / 3 / SLOTS[1]];
    }
    [control_max / SLOTS[0], (left - control_max) / SLOTS[1]]
}

/// Returns the minimum number of lines: rings of the smallest unit, and slots for the messages that every transport
/// must carry.
fn least_lines(peers: u32, flag_lines: u32, line_bytes: u32) -> u32 {
    flag_lines + 3 * peers + slots_least(line_bytes)
}

/// Returns the minimum lines of all slots; the two of control get a third, the four of data the rest.
fn slots_least(line_bytes: u32) -> u32 {
    3 * SLOTS[0] * MESSAGE_BYTES_MIN.div_ceil(line_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_of_an_scc_core_is_divided_among_48_places_as_documented() {
        let layout = DoorbellLayout::new(48, 256, 32).unwrap();
        assert_eq!((layout.flag_lines, layout.ring_lines), (3, [1, 2]));
        assert_eq!((layout.slots, layout.slot_lines), ([2, 4], [18, 18]));
        assert_eq!(
            (layout.ring_lines_of(Class::Control, 24), layout.ring_lines_of(Class::Control, 25)),
            (Some(1), None)
        );
        assert_eq!(
            (layout.ring_lines_of(Class::Data, 56), layout.ring_lines_of(Class::Data, 57)),
            (Some(2), None)
        );
        assert_eq!([Class::Control, Class::Data].map(|class| layout.shared_bytes(class).start), [25, 57]);
        assert_eq!(layout.message_bytes_max[0], 576);
    }

    #[test]
    fn few_places_have_cells_and_longer_rings() {
        let among = |places| {
            let layout = DoorbellLayout::new(places, 256, 32).unwrap();
            (layout.flag_lines, layout.cell_bytes, layout.ring_lines, layout.slot_lines)
        };
        assert_eq!(among(2), (1, Some(24), [5, 63], [21, 36]));
        assert_eq!(among(3), (1, Some(8), [5, 31], [21, 35]));
        assert_eq!(among(5), (1, Some(0), [5, 15], [21, 33]));
        assert_eq!(among(6), (1, None, [5, 12], [21, 32]));
        assert_eq!(among(10), (1, None, [5, 10], [20, 20]));
        assert_eq!((among(17).0, among(18).0), (1, 2), "a place has no flag at home");
    }

    #[test]
    fn what_a_cell_holds_needs_no_line_and_its_header_none_of_the_ring() {
        let layout = DoorbellLayout::new(2, 256, 32).unwrap();
        let beside = |len| layout.lines_beside_cell(Class::Data, len);
        assert_eq!([24, 25, 32, 33].map(beside), [Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!([63 * 32, 63 * 32 + 1].map(beside), [Some(63), None]);
        assert_eq!(DoorbellLayout::new(6, 256, 32).unwrap().lines_beside_cell(Class::Data, 0), None);
    }

    #[test]
    fn the_last_two_pieces_of_a_block_are_equal_where_slots_are_long() {
        let [few, many] = [2, 48].map(|places| DoorbellLayout::new(places, 256, 32).unwrap());
        assert_eq!([30, 36, 37, 71, 72].map(|left| few.piece_lines(1, left)), [30, 36, 19, 36, 36]);
        assert_eq!([18, 19, 35, 36].map(|left| many.piece_lines(1, left)), [18; 4]);
    }

    #[test]
    fn no_division_is_larger_than_the_buffer_and_the_least_one_carries_64_bytes() {
        let sizes = (1..100).chain([128, 256, 1_000, 10_000]);
        for (places, lines) in sizes.flat_map(|lines| (1..=256).map(move |places| (places, lines))) {
            let (lines, layout) = match DoorbellLayout::new(places, lines, 32) {
                Ok(layout) => (lines, layout),
                Err(least) => {
                    assert!(least > lines);
                    (least, DoorbellLayout::new(places, least, 32).unwrap())
                }
            };
            let rings = (places - 1) * (layout.ring_lines[0] + layout.ring_lines[1]);
            let slots: u32 = (0..2).map(|class| layout.slots[class] * layout.slot_lines[class]).sum();
            assert!(layout.flag_lines + rings + slots <= lines, "{places} places, {lines} lines: {layout:?}");
            assert!(layout.slot_lines.into_iter().all(|lines| lines >= 2), "64 bytes: {layout:?}");
            assert!(layout.flag_lines * 32 >= 2 * (places - 1));
            let entries_max = if layout.has_cells() { 240 } else { 15 };
            assert!(layout.ring_lines.into_iter().all(|lines| lines <= entries_max), "{layout:?}");
        }
    }
}
