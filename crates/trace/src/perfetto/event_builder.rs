//! Encodes events in place; general Protocol Buffers encoding for rarer packets.
//!
//! A trace consists nearly only of events, so they are built from words: the common prefix of a track is copied at
//! once, a number is stored as eight bytes of which only some count, and the next field overwrites the rest. Offsets
//! within an event are `u8`, so none is out of bounds and none is checked. It knows no field by name.
//!
//! Invariants: an event is shorter than 128 bytes, so that each length in it takes one; a length precedes its content.

use super::{
    BEGIN, END, NOTE_NAME_ID, NOTE_NUMBER, Name, PACKET, REFERS_TO_SEQUENCE, SEQUENCE, Track, event, packet,
};

/// Beginning of the events of one track, up to the time itself: of a beginning with nothing but a name, and of an end.
#[derive(Clone, Copy, Debug)]
pub struct EventPrefix {
    begin: [u8; STAMP_BYTES],
    end: [u8; STAMP_BYTES],
    /// Bytes of any event up to its track.
    len: u8,
}

/// Eleven bytes, a number, a name, and the tag of the time.
const STAMP_BYTES: usize = 24;

/// Offsets in a packet at which its length, the length of the event, and the kind of the event are written.
const PACKET_LEN: usize = 1;
const EVENT_LEN: usize = 7;
const EVENT_KIND: usize = 9;

/// After the prefix, a plain beginning has its name (two bytes) and the tag of the time; an end has only the tag.
const NAME: u8 = 1;
const BEGIN_TIME: u8 = 3;
const END_TIME: u8 = 1;

impl EventPrefix {
    /// Returns the beginning of the events of `track`.
    #[must_use]
    pub fn new(track: Track) -> EventPrefix {
        let mut bytes = vec![tag_byte(PACKET, LENGTH_DELIMITED), 0];
        bytes.extend([tag_byte(packet::SEQUENCE_ID, VARINT), SEQUENCE]);
        bytes.extend([tag_byte(packet::SEQUENCE_FLAGS, VARINT), REFERS_TO_SEQUENCE]);
        bytes.extend([tag_byte(packet::TRACK_EVENT, LENGTH_DELIMITED), 0]);
        bytes.extend([tag_byte(event::KIND, VARINT), 0, tag_byte(event::TRACK, VARINT)]);
        varint(&mut bytes, track.0);
        let len = bytes.len() as u8;
        let plain = |kind, name: &[u8]| {
            let mut stamp = [0; STAMP_BYTES];
            let time = [tag_byte(packet::TIMESTAMP, VARINT)];
            let parts = bytes.iter().chain(name).chain(&time);
            stamp.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
            stamp[EVENT_KIND] = kind;
            stamp[EVENT_LEN] = len + name.len() as u8 - EVENT_LEN as u8 - 1;
            stamp
        };
        EventPrefix { begin: plain(BEGIN, &[tag_byte(event::NAME_ID, VARINT), 0]), end: plain(END, &[]), len }
    }
}

/// An encoded time. The end of one span is often the beginning of the next, so it is kept.
#[derive(Clone, Copy, Debug)]
pub struct EncodedTime(EncodedNumber);

impl EncodedTime {
    /// The scale: a picosecond is written where a nanosecond is read.
    #[inline]
    pub fn new(time: u64) -> EncodedTime {
        EncodedTime(EncodedNumber::new(time))
    }

    /// Returns `true` if it takes more than eight bytes.
    #[inline]
    pub(super) fn is_long(self) -> bool {
        self.0.is_long()
    }
}

/// A number of variable length.
#[derive(Clone, Copy, Debug)]
struct EncodedNumber {
    /// Its bytes; the number itself if these are too many.
    word: u64,
    len: u8,
}

/// Most bytes of a short number.
const SHORT: u8 = 8;

/// Continuation marks of a number, by its bytes less one: on all bytes but the last.
const MARKS: [u64; SHORT as usize] = {
    let (mut marks, mut bytes) = ([0; SHORT as usize], 1);
    while bytes < marks.len() {
        marks[bytes] = marks[bytes - 1] << 8 | 0x80;
        bytes += 1;
    }
    marks
};

impl EncodedNumber {
    /// Seven bits to each byte, and a mark on all but the last.
    #[inline]
    fn new(value: u64) -> EncodedNumber {
        if value < 0x80 {
            return EncodedNumber { word: value, len: 1 };
        }
        if value >> (7 * SHORT) > 0 {
            return EncodedNumber { word: value, len: SHORT + 1 + (value >> 63) as u8 };
        }
        let value = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
        let value = value & 0x3fff_0000_3fff | (value & 0x0fff_c000_0fff_c000) << 2;
        let value = value & 0x007f_007f_007f_007f | (value & 0x3f80_3f80_3f80_3f80) << 1;
        let last = (value | 1).ilog2() / 8;
        EncodedNumber { word: value | MARKS[last as usize % MARKS.len()], len: last as u8 + 1 }
    }

    #[inline]
    fn is_long(self) -> bool {
        self.len > SHORT
    }
}

/// An event being encoded.
pub(super) struct EventBuilder<'a> {
    bytes: &'a mut [u8; ROOM],
    len: u8,
}

/// Memory for one or two events: any two offsets within drafts, plus the longest single write.
pub(super) const ROOM: usize = 2 * (u8::MAX as usize + 1) + STAMP_BYTES;

/// Encodes a span with only a name and short times. Returns the length of its two events in bytes.
#[inline]
pub(super) fn span(
    bytes: &mut [u8; ROOM],
    stamp: &EventPrefix,
    start: EncodedTime,
    end: EncodedTime,
    name: Name,
) -> usize {
    bytes[..STAMP_BYTES].copy_from_slice(&stamp.begin);
    bytes[usize::from(stamp.len + NAME)] = name.interned() as u8;
    put(bytes, usize::from(stamp.len + BEGIN_TIME), start.0.word);
    let first = stamp.len + BEGIN_TIME + start.0.len;
    bytes[PACKET_LEN] = first - PACKET_LEN as u8 - 1;
    let at = usize::from(first);
    bytes[at..at + STAMP_BYTES].copy_from_slice(&stamp.end);
    put(bytes, at + usize::from(stamp.len + END_TIME), end.0.word);
    let second = stamp.len + END_TIME + end.0.len;
    bytes[at + PACKET_LEN] = second - PACKET_LEN as u8 - 1;
    at + usize::from(second)
}

#[inline]
fn put(bytes: &mut [u8; ROOM], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

impl<'a> EventBuilder<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a mut [u8; ROOM], stamp: &EventPrefix, kind: u8) -> EventBuilder<'a> {
        bytes[..STAMP_BYTES].copy_from_slice(&stamp.end);
        bytes[EVENT_KIND] = kind;
        EventBuilder { bytes, len: stamp.len }
    }

    /// Writes eight bytes, of which `len` count.
    #[inline]
    fn put(&mut self, word: u64, len: u8) {
        put(self.bytes, usize::from(self.len), word);
        self.len += len;
    }

    #[inline]
    fn number(&mut self, number: EncodedNumber) {
        if number.is_long() {
            return self.long_number(number.word);
        }
        self.put(number.word, number.len);
    }

    #[cold]
    #[inline(never)]
    fn long_number(&mut self, value: u64) {
        let mut bytes = Vec::new();
        varint(&mut bytes, value);
        bytes.into_iter().for_each(|byte| self.put(u64::from(byte), 1));
    }

    /// Writes the name of a beginning.
    #[inline]
    pub(super) fn name(&mut self, name: Name) {
        let bytes = [tag_byte(event::NAME_ID, VARINT), name.interned() as u8];
        self.put(u64::from(u16::from_le_bytes(bytes)), 2);
    }

    /// A field with a number.
    #[inline]
    pub(super) fn field(&mut self, field: u32, value: u64) {
        self.number(EncodedNumber::new(u64::from(field << 3 | VARINT)));
        self.number(EncodedNumber::new(value));
    }

    /// A field with eight bytes, whose number is from 16 on, so that its tag takes two.
    #[inline]
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        let tag = field << 3 | FIXED_64;
        self.put(u64::from(tag & 0x7f | 0x80 | (tag >> 7) << 8), 2);
        self.put(value, 8);
    }

    /// A number with a name.
    #[inline]
    pub(super) fn note(&mut self, name: Name, value: u64) {
        let number = EncodedNumber::new(value);
        let head = [
            tag_byte(event::NOTE, LENGTH_DELIMITED),
            3 + number.len,
            tag_byte(NOTE_NAME_ID, VARINT),
            name.interned() as u8,
            tag_byte(NOTE_NUMBER, VARINT),
            0,
            0,
            0,
        ];
        self.put(u64::from_le_bytes(head), 5);
        self.number(number);
    }

    /// Ends the event, which happens at `moment`; returns its length in bytes.
    #[inline]
    pub(super) fn end(mut self, moment: EncodedTime) -> usize {
        self.bytes[EVENT_LEN] = self.len - EVENT_LEN as u8 - 1;
        self.put(u64::from(tag_byte(packet::TIMESTAMP, VARINT)), 1);
        self.number(moment.0);
        self.bytes[PACKET_LEN] = self.len - PACKET_LEN as u8 - 1;
        usize::from(self.len)
    }
}

/// The tag of a field with a number below 16.
pub(super) const fn tag_byte(field: u32, kind: u32) -> u8 {
    (field << 3 | kind) as u8
}

/// Kinds of fields on the wire.
pub(super) const VARINT: u32 = 0;
pub(super) const FIXED_64: u32 = 1;
pub(super) const LENGTH_DELIMITED: u32 = 2;

pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(out: &mut Vec<u8>, field: u32, kind: u32) {
    varint(out, u64::from(field << 3 | kind));
}

pub(super) fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

pub(super) fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    tag(out, field, LENGTH_DELIMITED);
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// A message within a message.
pub(super) fn nested(out: &mut Vec<u8>, field: u32, content: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, LENGTH_DELIMITED);
    let start = out.len();
    out.push(0);
    content(out);
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
        return;
    }
    // The length needs more than one byte, which is rare: the content moves.
    let mut bytes = Vec::with_capacity(10);
    varint(&mut bytes, len as u64);
    out.splice(start..=start, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all lengths: the first and the last of each, and between.
    fn numbers() -> impl Iterator<Item = u64> {
        let around =
            |bits: u32| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1, 0x5a5a_5a5a_5a5a_5a5a >> (63 - bits)];
        (0..64).flat_map(around).chain([0, u64::MAX])
    }

    #[test]
    fn numbers_of_all_lengths_are_written_as_varints() {
        for value in numbers() {
            let mut draft = EventBuilder { bytes: &mut [0; ROOM], len: 1 };
            draft.number(EncodedNumber::new(value));
            let mut expected = vec![0];
            varint(&mut expected, value);
            assert_eq!(draft.bytes[..usize::from(draft.len)], expected, "{value:#x}");
        }
    }

    #[test]
    fn a_note_says_how_long_it_is() {
        for value in numbers() {
            let mut draft = EventBuilder { bytes: &mut [0; ROOM], len: 0 };
            draft.note(Name(1), value);
            assert_eq!(draft.bytes[1], draft.len - 2, "{value:#x}");
        }
    }
}
