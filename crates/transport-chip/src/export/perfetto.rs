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
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

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
const SEQUENCE: u64 = 1;
const BEGINS_SEQUENCE: u64 = 1;
const REFERS_TO_SEQUENCE: u64 = 2;

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

/// What has been encoded and not been taken.
#[derive(Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Begins a file: the names of its events, and those of their notes.
    pub(crate) fn new(events: &[&str], notes: &[&str]) -> Encoder {
        let mut bytes = Vec::new();
        nested(&mut bytes, PACKET, |out| {
            number(out, packet::SEQUENCE_ID, SEQUENCE);
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
        Encoder { bytes }
    }

    /// What is encoded so far; it is not given again.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
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

    /// A counter has this value from now on.
    pub(crate) fn count(&mut self, track: Track, time: Picoseconds, value: f64) {
        self.event(track, time, COUNTER, |out| fixed(out, event::VALUE, value.to_bits()));
    }

    /// A span begins.
    pub(crate) fn begin(&mut self, track: Track, time: Picoseconds, name: Name, details: Details<'_>) {
        self.event(track, time, BEGIN, |out| {
            number(out, event::NAME_ID, name.interned());
            for (field, flow) in [(event::FLOW, details.flow), (event::LAST_FLOW, details.last_flow)] {
                if let Some(flow) = flow {
                    fixed(out, field, flow);
                }
            }
            for (name, value) in details.notes {
                nested(out, event::NOTE, |out| {
                    number(out, NOTE_NAME_ID, name.interned());
                    number(out, NOTE_NUMBER, *value);
                });
            }
        });
    }

    /// The span that began last on this track ends.
    pub(crate) fn end(&mut self, track: Track, time: Picoseconds) {
        self.event(track, time, END, |_| ());
    }

    /// Something without length, with texts that have names.
    pub(crate) fn instant(&mut self, track: Track, time: Picoseconds, name: Name, notes: &[(Name, &str)]) {
        self.event(track, time, INSTANT, |out| {
            number(out, event::NAME_ID, name.interned());
            for (name, value) in notes {
                nested(out, event::NOTE, |out| {
                    number(out, NOTE_NAME_ID, name.interned());
                    text(out, NOTE_TEXT, value);
                });
            }
        });
    }

    fn event(&mut self, track: Track, time: Picoseconds, kind: u64, more: impl FnOnce(&mut Vec<u8>)) {
        nested(&mut self.bytes, PACKET, |out| {
            // The scale: a picosecond is written where a nanosecond is read.
            number(out, packet::TIMESTAMP, time.0);
            number(out, packet::SEQUENCE_ID, SEQUENCE);
            number(out, packet::SEQUENCE_FLAGS, REFERS_TO_SEQUENCE);
            nested(out, packet::TRACK_EVENT, |out| {
                number(out, event::KIND, kind);
                number(out, event::TRACK, track.0);
                more(out);
            });
        });
    }

    fn descriptor(&mut self, track: Track, more: impl FnOnce(&mut Vec<u8>)) {
        nested(&mut self.bytes, PACKET, |out| {
            number(out, packet::SEQUENCE_ID, SEQUENCE);
            nested(out, packet::TRACK_DESCRIPTOR, |out| {
                number(out, track::UUID, track.0);
                more(out);
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

fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, FIXED_64);
    out.extend_from_slice(&value.to_le_bytes());
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
