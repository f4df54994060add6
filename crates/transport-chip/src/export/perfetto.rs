//! The trace format of Perfetto, written by hand: events in, bytes out.
//!
//! A file is a sequence of packets of Protocol Buffers, which can be cut after each, so a trace can be written while
//! the run goes on. Only what the model needs is here: tracks of processes, threads and counters, spans, flows. Its
//! clock counts nanoseconds and no less, so one picosecond of the chip is written as one nanosecond; names of tracks
//! say so.
//! Field numbers are those of `perfetto/protos/perfetto/trace`. It knows no chip and no place.
//!
//! Invariants: a track is described before it is used; names are interned in the first packet.

use isles_chip::quantity::Picoseconds;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// Fields of `TrackDescriptor`, and of its descriptors of processes, threads (which begin with the number of the
/// process) and counters.
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const THREAD: u32 = 4;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const UNIT_NAME: u32 = 6;
    pub(super) const PID: u32 = 1;
    pub(super) const TID: u32 = 2;
    pub(super) const THREAD_NAME: u32 = 5;
    pub(super) const PROCESS_NAME: u32 = 6;
}

/// Fields of `TrackEvent`.
mod event {
    pub(super) const NOTE: u32 = 4;
    pub(super) const KIND: u32 = 9;
    pub(super) const NAME_ID: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const VALUE: u32 = 44;
    pub(super) const FLOW: u32 = 47;
    pub(super) const LAST_FLOW: u32 = 48;
}

/// Kinds of `TrackEvent`.
const BEGIN: u8 = 1;
const END: u8 = 2;
const INSTANT: u8 = 3;
const COUNTER: u8 = 4;

/// Fields of `InternedData`, of what it holds, and of a note (`DebugAnnotation`).
const EVENT_NAMES: u32 = 2;
const NOTE_NAMES: u32 = 3;
const INTERNED_ID: u32 = 1;
const INTERNED_NAME: u32 = 2;
const NOTE_NAME_ID: u32 = 1;
const NOTE_NUMBER: u32 = 3;
const NOTE_TEXT: u32 = 6;

/// The field of a trace that holds a packet.
const PACKET: u32 = 1;

/// All packets are of one sequence, which begins with what the others refer to.
const SEQUENCE: u8 = 1;
const BEGINS_SEQUENCE: u64 = 1;
const REFERS_TO_SEQUENCE: u8 = 2;

/// A track; unique in its file, and not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Track(pub(crate) u64);

/// A name of those that the file was begun with: its place in their list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) usize);

/// What a span begins with, besides its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Details<'a> {
    /// The flow that goes out from here.
    pub(crate) flow: Option<u64>,
    /// The flow that ends here.
    pub(crate) last_flow: Option<u64>,
    /// Numbers with names.
    pub(crate) notes: &'a [(Name, u64)],
}

/// What all events of one track begin with: all of their packet but the time and what is said of a beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    bytes: [u8; STAMP_BYTES],
    len: usize,
}

/// Longer than its ten bytes, and a number.
const STAMP_BYTES: usize = 24;

/// Where in a stamp the length of the event and its kind are to be written.
const EVENT_LEN: usize = 7;
const EVENT_KIND: usize = 9;

impl Stamp {
    pub(crate) fn new(track: Track) -> Stamp {
        let mut bytes = vec![tag_byte(PACKET, LENGTH_DELIMITED), 0];
        bytes.extend([tag_byte(packet::SEQUENCE_ID, VARINT), SEQUENCE]);
        bytes.extend([tag_byte(packet::SEQUENCE_FLAGS, VARINT), REFERS_TO_SEQUENCE]);
        bytes.extend([tag_byte(packet::TRACK_EVENT, LENGTH_DELIMITED), 0]);
        bytes.extend([tag_byte(event::KIND, VARINT), 0, tag_byte(event::TRACK, VARINT)]);
        varint(&mut bytes, track.0);
        let mut stamp = Stamp { bytes: [0; STAMP_BYTES], len: bytes.len() };
        stamp.bytes[..bytes.len()].copy_from_slice(&bytes);
        stamp
    }
}

/// What has been encoded and not been taken.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Longer than what is used of it: an event is laid out where it will stay.
    bytes: Vec<u8>,
    used: usize,
}

impl Encoder {
    /// Begins a file: the names of its events, and those of their notes.
    pub(crate) fn new(events: &[&str], notes: &[&str]) -> Encoder {
        let mut encoder = Encoder::default();
        encoder.packet(|out| {
            number(out, packet::SEQUENCE_ID, u64::from(SEQUENCE));
            number(out, packet::SEQUENCE_FLAGS, BEGINS_SEQUENCE);
            nested(out, packet::INTERNED, |out| {
                for (field, names) in [(EVENT_NAMES, events), (NOTE_NAMES, notes)] {
                    for (id, name) in (0..).map(Name).zip(names) {
                        nested(out, field, |out| {
                            number(out, INTERNED_ID, id.interned());
                            text(out, INTERNED_NAME, name);
                        });
                    }
                }
            });
        });
        encoder
    }

    /// What is encoded so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Forgets what is encoded so far.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// A track of no process.
    pub(crate) fn describe(&mut self, track: Track, name: &str) {
        self.descriptor(track, |out| text(out, track::NAME, name));
    }

    /// A process; `pid` is not 0.
    pub(crate) fn describe_process(&mut self, track: Track, pid: u32, name: &str) {
        self.descriptor(track, |out| {
            nested(out, track::PROCESS, |out| {
                number(out, track::PID, u64::from(pid));
                text(out, track::PROCESS_NAME, name);
            });
        });
    }

    /// A thread of a process that was described; `tid` is unique in the file, and not 0.
    pub(crate) fn describe_thread(
        &mut self,
        track: Track,
        parent: Track,
        (pid, tid): (u32, u32),
        name: &str,
    ) {
        self.descriptor(track, |out| {
            number(out, track::PARENT, parent.0);
            nested(out, track::THREAD, |out| {
                number(out, track::PID, u64::from(pid));
                number(out, track::TID, u64::from(tid));
                text(out, track::THREAD_NAME, name);
            });
        });
    }

    /// A counter of no process; `unit` is what its numbers count.
    pub(crate) fn describe_counter(&mut self, track: Track, name: &str, unit: &str) {
        self.descriptor(track, |out| {
            text(out, track::NAME, name);
            nested(out, track::COUNTER, |out| text(out, track::UNIT_NAME, unit));
        });
    }

    fn descriptor(&mut self, track: Track, more: impl FnOnce(&mut Vec<u8>)) {
        self.packet(|out| {
            number(out, packet::SEQUENCE_ID, u64::from(SEQUENCE));
            nested(out, packet::TRACK_DESCRIPTOR, |out| {
                number(out, track::UUID, track.0);
                more(out);
            });
        });
    }

    /// A packet of any length.
    fn packet(&mut self, content: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.truncate(self.used);
        nested(&mut self.bytes, PACKET, content);
        self.used = self.bytes.len();
    }

    /// A counter has this value from now on.
    pub(crate) fn count(&mut self, track: Track, time: Picoseconds, value: f64) {
        self.event(&Stamp::new(track), time, COUNTER, |draft| draft.fixed(event::VALUE, value.to_bits()));
    }

    /// A span begins.
    pub(crate) fn begin(&mut self, stamp: &Stamp, time: Picoseconds, name: Name, details: Details<'_>) {
        self.event(stamp, time, BEGIN, |draft| {
            draft.put([tag_byte(event::NAME_ID, VARINT), name.interned() as u8]);
            for (field, flow) in [(event::FLOW, details.flow), (event::LAST_FLOW, details.last_flow)] {
                if let Some(flow) = flow {
                    draft.fixed(field, flow);
                }
            }
            for (name, value) in details.notes {
                draft.note(*name, *value);
            }
        });
    }

    /// A span without details: it begins, and it ends.
    pub(crate) fn span(&mut self, stamp: &Stamp, (start, end): (Picoseconds, Picoseconds), name: Name) {
        self.event(stamp, start, BEGIN, |draft| {
            draft.put([tag_byte(event::NAME_ID, VARINT), name.interned() as u8]);
        });
        self.end(stamp, end);
    }

    /// The span that began last on this track ends.
    pub(crate) fn end(&mut self, stamp: &Stamp, time: Picoseconds) {
        self.event(stamp, time, END, |_| ());
    }

    /// The packet of an event without texts.
    #[inline]
    fn event(&mut self, stamp: &Stamp, time: Picoseconds, kind: u8, more: impl FnOnce(&mut Draft<'_>)) {
        let room = match self.bytes[self.used..].first_chunk_mut() {
            Some(room) => room,
            None => grow(&mut self.bytes, self.used),
        };
        let mut draft = Draft { bytes: room, len: 0 };
        draft.put(stamp.bytes);
        draft.len = stamp.len;
        draft.bytes[EVENT_KIND] = kind;
        more(&mut draft);
        draft.bytes[EVENT_LEN] = (draft.len - EVENT_LEN - 1) as u8;
        draft.put([tag_byte(packet::TIMESTAMP, VARINT)]);
        // The scale: a picosecond is written where a nanosecond is read.
        draft.number(time.0);
        draft.bytes[1] = (draft.len - 2) as u8;
        self.used += draft.len;
    }

    /// Something without length, with texts that have names.
    pub(crate) fn instant(&mut self, track: Track, time: Picoseconds, name: Name, notes: &[(Name, &str)]) {
        self.packet(|out| {
            number(out, packet::TIMESTAMP, time.0);
            number(out, packet::SEQUENCE_ID, u64::from(SEQUENCE));
            number(out, packet::SEQUENCE_FLAGS, u64::from(REFERS_TO_SEQUENCE));
            nested(out, packet::TRACK_EVENT, |out| {
                number(out, event::KIND, u64::from(INSTANT));
                number(out, event::TRACK, track.0);
                number(out, event::NAME_ID, name.interned());
                for (name, value) in notes {
                    nested(out, event::NOTE, |out| {
                        number(out, NOTE_NAME_ID, name.interned());
                        text(out, NOTE_TEXT, value);
                    });
                }
            });
        });
    }
}

impl Name {
    /// Its number in the file, which must not be 0.
    fn interned(self) -> u64 {
        self.0 as u64 + 1
    }
}

/// Makes the memory longer, by so much that this is rare; gives what begins at `used`.
#[cold]
fn grow(bytes: &mut Vec<u8>, used: usize) -> &mut [u8; LONG] {
    bytes.resize(2 * bytes.len() + LONG, 0);
    bytes[used..].first_chunk_mut().expect("it is longer by so much at least")
}

/// The packet of an event under way, in memory that is longer than any.
struct Draft<'a> {
    bytes: &'a mut [u8; LONG],
    len: usize,
}

/// Longer than any event: five numbers of its own, a name, two flows, three notes. Below 128, so that each length
/// within takes one byte.
const LONG: usize = 120;

impl Draft<'_> {
    #[inline]
    fn put<const LEN: usize>(&mut self, bytes: [u8; LEN]) {
        self.bytes[self.len..self.len + LEN].copy_from_slice(&bytes);
        self.len += LEN;
    }

    #[inline]
    fn number(&mut self, value: u64) {
        match value {
            0..0x80 => self.put([value as u8]),
            0x80..FIFTY_SIX_BITS => self.long_number(value),
            _ => self.longest_number(value),
        }
    }

    /// A number of 8 to 56 bits: seven bits to each byte, and a mark on all but the last.
    #[inline]
    fn long_number(&mut self, value: u64) {
        let value = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
        let value = value & 0x3fff_0000_3fff | (value & 0x0fff_c000_0fff_c000) << 2;
        let value = value & 0x007f_007f_007f_007f | (value & 0x3f80_3f80_3f80_3f80) << 1;
        let last = (63 - value.leading_zeros()) / 8;
        let marks = 0x8080_8080_8080_8080 & ((1 << (8 * last)) - 1);
        let len = self.len;
        self.put((value | marks).to_le_bytes());
        self.len = len + last as usize + 1;
    }

    #[cold]
    fn longest_number(&mut self, value: u64) {
        let mut bytes = Vec::new();
        varint(&mut bytes, value);
        bytes.into_iter().for_each(|byte| self.put([byte]));
    }

    /// A field with eight bytes, whose number is from 16 on, so that its tag takes two.
    #[inline]
    fn fixed(&mut self, field: u32, value: u64) {
        let tag = field << 3 | FIXED_64;
        self.put([tag as u8 | 0x80, (tag >> 7) as u8]);
        self.put(value.to_le_bytes());
    }

    #[inline]
    fn note(&mut self, name: Name, value: u64) {
        self.put([tag_byte(event::NOTE, LENGTH_DELIMITED), 0]);
        let start = self.len;
        self.put([tag_byte(NOTE_NAME_ID, VARINT), name.interned() as u8, tag_byte(NOTE_NUMBER, VARINT)]);
        self.number(value);
        self.bytes[start - 1] = (self.len - start) as u8;
    }
}

/// The first number that takes more than eight bytes.
const FIFTY_SIX_BITS: u64 = 1 << 56;

/// The tag of a field with a number below 16.
const fn tag_byte(field: u32, kind: u32) -> u8 {
    (field << 3 | kind) as u8
}

/// Kinds of fields on the wire.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(out: &mut Vec<u8>, field: u32, kind: u32) {
    varint(out, u64::from(field << 3 | kind));
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, VARINT);
    varint(out, value);
}

fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    tag(out, field, LENGTH_DELIMITED);
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// A message within a message.
fn nested(out: &mut Vec<u8>, field: u32, content: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, LENGTH_DELIMITED);
    let start = out.len();
    out.push(0);
    content(out);
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
        return;
    }
    // Longer than one byte of length can say: rare, so what was written moves.
    let mut bytes = Vec::with_capacity(10);
    varint(&mut bytes, len as u64);
    out.splice(start..=start, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_are_written_as_varints() {
        let around =
            |bits: u32| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1, 0x5a5a_5a5a_5a5a_5a5a >> (63 - bits)];
        for value in (0..64).flat_map(around).chain([0, u64::MAX]) {
            let mut draft = Draft { bytes: &mut [0; LONG], len: 1 };
            draft.number(value);
            let mut expected = vec![0];
            varint(&mut expected, value);
            assert_eq!(draft.bytes[..draft.len], expected, "{value:#x}");
        }
    }

    #[test]
    fn the_longest_event_fits_its_draft() {
        let (flow, name) = (Some(u64::MAX), Name(100));
        let notes = [(name, u64::MAX); 3];
        let mut encoder = Encoder::default();
        let most = Details { flow, last_flow: flow, notes: &notes };
        encoder.begin(&Stamp::new(Track(u64::MAX)), Picoseconds(u64::MAX), name, most);
        let [_, len, ..] = *encoder.bytes() else { panic!("an event is longer than this") };
        assert_eq!(encoder.bytes().len(), 2 + usize::from(len));
    }
}
