//! Encoder of Perfetto's trace format, without a generated codec.
//!
//! A file is a sequence of packets of Protocol Buffers, which can be cut after each, so a trace can be written while
//! the run goes on. It covers tracks of processes, threads and counters, spans, and flows. The format's clock counts
//! whole nanoseconds, so one picosecond of the chip is written as one nanosecond; names of tracks say so. Field numbers
//! are those of `perfetto/protos/perfetto/trace`. It knows no chip and no place.
//!
//! Invariants: tracks are described and names interned before their use, nearly all names in the first packet.

mod event_builder;

pub use event_builder::{EncodedTime, EventPrefix};

use event_builder::{EventBuilder, ROOM, nested, number, span, text};

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
    pub(super) const SOURCE_ID: u32 = 34;
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
const SOURCES: u32 = 4;
const INTERNED_ID: u32 = 1;
const INTERNED_NAME: u32 = 2;
const SOURCE_FILE: u32 = 2;
const SOURCE_LINE: u32 = 4;
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
pub struct Track(pub u64);

/// An interned name: an index into the list that the file began with, or one added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub usize);

/// Details at the beginning of a span, besides its name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Details<'a> {
    /// The flow that begins here.
    pub flow: Option<u64>,
    /// The flow that ends here.
    pub last_flow: Option<u64>,
    /// Numbers with names.
    pub notes: &'a [(Name, u64)],
}

/// Encoder of a trace, with its pending bytes.
#[derive(Default)]
pub struct Encoder {
    /// Longer than its used part, because an event is encoded in place.
    bytes: Vec<u8>,
    used: usize,
}

impl Encoder {
    /// Begins a file with the names of its events and of their notes.
    pub fn new(events: &[&str], notes: &[&str]) -> Encoder {
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

    /// One more name of events.
    pub fn intern(&mut self, name: Name, text: &str) {
        self.interned(EVENT_NAMES, name, |out| event_builder::text(out, INTERNED_NAME, text));
    }

    /// A line of a program; `id` is the number of such lines before it.
    pub(crate) fn intern_source(&mut self, id: usize, file: &str, line: u32) {
        self.interned(SOURCES, Name(id), |out| {
            text(out, SOURCE_FILE, file);
            number(out, SOURCE_LINE, u64::from(line));
        });
    }

    fn interned(&mut self, field: u32, id: Name, content: impl FnOnce(&mut Vec<u8>)) {
        self.packet(|out| {
            number(out, packet::SEQUENCE_ID, u64::from(SEQUENCE));
            number(out, packet::SEQUENCE_FLAGS, u64::from(REFERS_TO_SEQUENCE));
            nested(out, packet::INTERNED, |out| {
                nested(out, field, |out| {
                    number(out, INTERNED_ID, id.interned());
                    content(out);
                });
            });
        });
    }

    /// Returns the pending bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Clears the pending bytes.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// A track of no process.
    pub fn describe(&mut self, track: Track, name: &str) {
        self.descriptor(track, |out| text(out, track::NAME, name));
    }

    /// A track that belongs to a process.
    pub(crate) fn describe_part(&mut self, track: Track, process: Track, name: &str) {
        self.descriptor(track, |out| {
            text(out, track::NAME, name);
            number(out, track::PARENT, process.0);
        });
    }

    /// A process; `pid` is not 0.
    pub fn describe_process(&mut self, track: Track, pid: u32, name: &str) {
        self.descriptor(track, |out| {
            nested(out, track::PROCESS, |out| {
                number(out, track::PID, u64::from(pid));
                text(out, track::PROCESS_NAME, name);
            });
        });
    }

    /// A thread of a process that was described; `tid` is unique in the file, and not 0.
    ///
    /// It is a root track, as the format asks of tracks of threads: `pid` says which process it belongs to.
    pub fn describe_thread(&mut self, track: Track, pid: u32, tid: u32, name: &str) {
        self.descriptor(track, |out| {
            nested(out, track::THREAD, |out| {
                number(out, track::PID, u64::from(pid));
                number(out, track::TID, u64::from(tid));
                text(out, track::THREAD_NAME, name);
            });
        });
    }

    /// A counter of no process; `unit` is what its numbers count.
    pub fn describe_counter(&mut self, track: Track, name: &str, unit: &str) {
        self.descriptor(track, |out| {
            text(out, track::NAME, name);
            nested(out, track::COUNTER, |out| text(out, track::UNIT_NAME, unit));
        });
    }

    /// A counter that belongs to a process.
    pub fn describe_counter_of(&mut self, process: Track, track: Track, name: &str) {
        self.descriptor(track, |out| {
            text(out, track::NAME, name);
            number(out, track::PARENT, process.0);
            nested(out, track::COUNTER, |_| {});
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

    /// Sets a counter to `value` from `time` on.
    pub fn count(&mut self, track: Track, time: u64, value: f64) {
        let (stamp, moment) = (EventPrefix::new(track), EncodedTime::new(time));
        self.event(&stamp, moment, COUNTER, |draft| draft.fixed(event::VALUE, value.to_bits()));
    }

    /// Begins a span.
    #[inline]
    pub fn begin(&mut self, stamp: &EventPrefix, moment: EncodedTime, name: Name, details: Details<'_>) {
        self.event(stamp, moment, BEGIN, |draft| {
            draft.name(name);
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

    /// Begins a span with any name, which comes from a line of a program.
    pub(crate) fn begin_from(
        &mut self,
        stamp: &EventPrefix,
        moment: EncodedTime,
        name: Name,
        source: Option<usize>,
    ) {
        self.event(stamp, moment, BEGIN, |draft| {
            draft.field(event::NAME_ID, name.interned());
            if let Some(source) = source {
                draft.field(event::SOURCE_ID, Name(source).interned());
            }
        });
    }

    /// Writes a whole span without details.
    #[inline]
    pub fn span(&mut self, stamp: &EventPrefix, start: EncodedTime, end: EncodedTime, name: Name) {
        if start.is_long() || end.is_long() {
            self.begin(stamp, start, name, Details::default());
            return self.end(stamp, end);
        }
        self.used += span(self.room(), stamp, start, end, name);
    }

    /// The span that began last on this track ends.
    #[inline]
    pub fn end(&mut self, stamp: &EventPrefix, moment: EncodedTime) {
        self.event(stamp, moment, END, |_| ());
    }

    /// An event without texts.
    #[inline]
    fn event(
        &mut self,
        stamp: &EventPrefix,
        moment: EncodedTime,
        kind: u8,
        more: impl FnOnce(&mut EventBuilder<'_>),
    ) {
        let mut draft = EventBuilder::new(self.room(), stamp, kind);
        more(&mut draft);
        self.used += draft.end(moment);
    }

    #[inline]
    fn room(&mut self) -> &mut [u8; ROOM] {
        if self.bytes.len() - self.used < ROOM {
            self.grow();
        }
        self.bytes[self.used..].first_chunk_mut().expect("it was made longer")
    }

    /// Grows the memory, by enough to make it rare.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.bytes.resize(2 * self.bytes.len() + ROOM, 0);
    }

    /// Writes an instant event with named texts.
    pub fn instant(&mut self, track: Track, time: u64, name: Name, notes: &[(Name, &str)]) {
        self.packet(|out| {
            number(out, packet::TIMESTAMP, time);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_span_is_a_beginning_and_an_end() {
        let times = (0..64).map(|bits| EncodedTime::new(u64::MAX >> bits));
        let times: Vec<EncodedTime> = times.chain([EncodedTime::new(0)]).collect();
        let (mut ours, mut theirs) = (Encoder::default(), Encoder::default());
        for stamp in [1, 0x7f, 0x80, u64::MAX].map(|track| EventPrefix::new(Track(track))) {
            for (start, end) in
                times.iter().rev().flat_map(|start| times.iter().map(move |end| (*start, *end)))
            {
                ours.span(&stamp, start, end, Name(7));
                theirs.begin(&stamp, start, Name(7), Details::default());
                theirs.end(&stamp, end);
                assert_eq!(ours.bytes(), theirs.bytes(), "{stamp:?}, {start:?}, {end:?}");
                ours.clear();
                theirs.clear();
            }
        }
    }

    #[test]
    fn the_longest_event_fits_its_draft() {
        let (flow, name) = (Some(u64::MAX), Name(100));
        let notes = [(name, u64::MAX); 3];
        let mut encoder = Encoder::default();
        let most = Details { flow, last_flow: flow, notes: &notes };
        encoder.begin(&EventPrefix::new(Track(u64::MAX)), EncodedTime::new(u64::MAX), name, most);
        let [_, len, ..] = *encoder.bytes() else { panic!("an event is longer than this") };
        assert_eq!(encoder.bytes().len(), 2 + usize::from(len));
    }
}
