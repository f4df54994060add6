//! Recording of a run: the traffic between places, and the activity of each core over time.
//!
//! The world reports when a core spends time, and when sends and receives start and end; places report their spans. The
//! model must not wait for its own trace, so entries are compact, in words of 64 bits: an interval takes one word,
//! because it starts at the end of its core's last one, and so does the end of a span; a message and the start of a
//! span take two. The thread of `writer` makes the `trace` from these entries, and passes its bytes in portions to a
//! [`TraceSink`], so that memory does not grow with the run. Nothing here knows a protocol.
//!
//! Invariants: the model reads nothing from here, so recording does not change a run; entries are read as they were
//! written, in order, and none is split between chunks; after its first error the sink gets nothing more, and the run
//! continues.

#[cfg(test)]
mod tests;
mod trace;
mod writer;

pub(crate) use trace::Trace;
pub(crate) use writer::TraceWriter;

use crate::report::{TIME_CATEGORIES, TimeCategory, Traffic};
use isles_chip::gear::{GearId, VoltageStepId};
use isles_chip::quantity::Picoseconds;
use isles_chip::supply::SupplyResponse;
use isles_chip::topology::CoreId;
use isles_trace::perfetto::Encoder;
use isles_transport::{Class, PlaceId, Span, SpanId};
use std::io;
use std::io::Write;

/// Recorder of a run: trace, energy profile, or both.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) traffic: Option<Traffic>,
    pub(crate) trace_writer: Option<TraceWriter>,
}

/// A message between two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) source: PlaceId,
    pub(crate) target: PlaceId,
    pub(crate) class: Class,
    pub(crate) bytes: u64,
}

/// The core of a place at the start of a trace: its number, clock, domains and settings.
pub(crate) struct InitialState {
    pub(crate) core: CoreId,
    pub(crate) now: Picoseconds,
    pub(crate) clock: u32,
    pub(crate) supply: u32,
    pub(crate) gear: GearId,
    pub(crate) step: VoltageStepId,
}

impl Recorder {
    /// Records that `place` spends the time from `start`, the end of its last interval, to `end`.
    #[inline(never)] // Where it is called, cores of runs without a recorder would be in its way.
    pub(crate) fn spend(
        &mut self,
        place: PlaceId,
        start: Picoseconds,
        end: Picoseconds,
        category: TimeCategory,
    ) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.spend(place, end - start, category);
        }
    }

    /// Starts a named action of `place`, to which its time from now on belongs.
    #[inline]
    pub(crate) fn begin(&mut self, place: PlaceId) {
        self.note(TraceEvent::Begun(place));
    }

    /// Records that the source of `transfer` has sent it.
    #[inline]
    pub(crate) fn sent(&mut self, transfer: Transfer, is_block: bool) {
        self.note(if is_block { TraceEvent::SentBlock(transfer) } else { TraceEvent::Sent(transfer) });
    }

    /// Records that the target of `transfer` has received it.
    pub(crate) fn received(&mut self, transfer: Transfer) {
        if let Some(traffic) = &mut self.traffic {
            traffic.count(transfer.source, transfer.target, transfer.bytes);
        }
        self.note(TraceEvent::Received(transfer));
    }

    /// Records that `place` has received a piece of a block.
    pub(crate) fn received_piece(&mut self, place: PlaceId) {
        self.note(TraceEvent::ReceivedPiece(place));
    }

    /// Discards the started action of `place`.
    #[inline]
    pub(crate) fn abandon(&mut self, place: PlaceId) {
        self.note(TraceEvent::Abandoned(place));
    }

    /// Records the start of a span of `place`.
    pub(crate) fn begin_span(&mut self, place: PlaceId, span: &Span) -> SpanId {
        self.trace_writer.as_mut().map_or(SpanId(0), |trace_writer| trace_writer.begin_span(place, span))
    }

    /// Records the end of a span of `place`.
    pub(crate) fn end_span(&mut self, place: PlaceId, span: SpanId) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.end_span(place, span);
        }
    }

    /// Records changes of rates and voltages.
    pub(crate) fn shifted(&mut self, answer: &SupplyResponse) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.shifted(answer);
        }
    }

    #[inline(always)]
    fn note(&mut self, entry: TraceEvent) {
        if let Some(trace_writer) = &mut self.trace_writer {
            trace_writer.note(entry);
        }
    }
}

/// Event of a place's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceEvent {
    /// The place has spent `time`, at most [`TIME_MAX`], since the end of its last interval.
    Spent { place: PlaceId, category: TimeCategory, time: Picoseconds },
    /// The time from now on belongs to a named action.
    Begun(PlaceId),
    /// The started action is discarded.
    Abandoned(PlaceId),
    /// The place has received a piece of a block.
    ReceivedPiece(PlaceId),
    /// The source has sent a message.
    Sent(Transfer),
    /// The source has sent a block.
    SentBlock(Transfer),
    /// The target has received the message.
    Received(Transfer),
    /// A span starts on a lane of its place, with its topic and the other place.
    SpanBegun { place: PlaceId, lane: u32, topic: u32, other: Option<PlaceId> },
    /// The span on a lane ends.
    SpanEnded { place: PlaceId, lane: u32 },
}

/// Kinds of entries besides the categories of time. The first word of an entry has, from the lowest bit on, its kind,
/// the place, and the time. For a message, the other place and the class replace the time, and the second word is its
/// size. For a span, the lane replaces the time, and the second word has the topic and, above it, the other place plus
/// one, or 0.
const BEGUN: u64 = 8;
const ABANDONED: u64 = 9;
const RECEIVED_PIECE: u64 = 10;
const SENT: u64 = 11;
const SENT_BLOCK: u64 = 12;
const RECEIVED: u64 = 13;
const SPAN_BEGUN: u64 = 14;
const SPAN_ENDED: u64 = 15;
const KIND_BITS: u32 = 4;
const PLACE_BITS: u32 = 16;
const TOPIC_BITS: u32 = 32;

const _: () = assert!(TIME_CATEGORIES.len() as u64 <= BEGUN && SPAN_ENDED < 1 << KIND_BITS);

/// Maximum number of places of a record.
const PLACES_MAX: u32 = 1 << PLACE_BITS;

/// Longest time of one entry: 17 seconds.
const TIME_MAX: Picoseconds = Picoseconds(u64::MAX >> (KIND_BITS + PLACE_BITS));

impl TraceEvent {
    /// Encodes the event as one or two words.
    #[inline(always)] // What an entry is, is known where it is made.
    fn words(self) -> (u64, Option<u64>) {
        let word = |kind, place: PlaceId, rest| {
            kind | u64::from(place.0) << KIND_BITS | rest << (KIND_BITS + PLACE_BITS)
        };
        let message = |kind, place: PlaceId, other: PlaceId, transfer: Transfer| {
            let rest = u64::from(other.0) | (transfer.class as u64) << PLACE_BITS;
            (word(kind, place, rest), Some(transfer.bytes))
        };
        match self {
            TraceEvent::Spent { place, category, time } => (word(category as u64, place, time.0), None),
            TraceEvent::Begun(place) => (word(BEGUN, place, 0), None),
            TraceEvent::Abandoned(place) => (word(ABANDONED, place, 0), None),
            TraceEvent::ReceivedPiece(place) => (word(RECEIVED_PIECE, place, 0), None),
            TraceEvent::Sent(transfer) => message(SENT, transfer.source, transfer.target, transfer),
            TraceEvent::SentBlock(transfer) => {
                message(SENT_BLOCK, transfer.source, transfer.target, transfer)
            }
            TraceEvent::Received(transfer) => message(RECEIVED, transfer.target, transfer.source, transfer),
            TraceEvent::SpanBegun { place, lane, topic, other } => {
                let other = other.map_or(0, |other| u64::from(other.0) + 1);
                (word(SPAN_BEGUN, place, u64::from(lane)), Some(u64::from(topic) | other << TOPIC_BITS))
            }
            TraceEvent::SpanEnded { place, lane } => (word(SPAN_ENDED, place, u64::from(lane)), None),
        }
    }

    /// Decodes the event that starts with `word`; `second` returns its second word, if it has one.
    #[inline]
    fn read(word: u64, second: impl FnOnce() -> u64) -> TraceEvent {
        let place = PlaceId((word >> KIND_BITS) as u32 % PLACES_MAX);
        let rest = word >> (KIND_BITS + PLACE_BITS);
        let transfer = |is_source: bool, bytes: u64| {
            let other = PlaceId(rest as u32 % PLACES_MAX);
            let (source, target) = if is_source { (place, other) } else { (other, place) };
            let class =
                if rest >> PLACE_BITS == Class::Control as u64 { Class::Control } else { Class::Data };
            Transfer { source, target, class, bytes }
        };
        match word % (1 << KIND_BITS) {
            BEGUN => TraceEvent::Begun(place),
            ABANDONED => TraceEvent::Abandoned(place),
            RECEIVED_PIECE => TraceEvent::ReceivedPiece(place),
            SENT => TraceEvent::Sent(transfer(true, second())),
            SENT_BLOCK => TraceEvent::SentBlock(transfer(true, second())),
            RECEIVED => TraceEvent::Received(transfer(false, second())),
            SPAN_BEGUN => {
                let second = second();
                let other = (second >> TOPIC_BITS).checked_sub(1).map(|other| PlaceId(other as u32));
                TraceEvent::SpanBegun { place, lane: rest as u32, topic: second as u32, other }
            }
            SPAN_ENDED => TraceEvent::SpanEnded { place, lane: rest as u32 },
            kind => TraceEvent::Spent {
                place,
                category: TIME_CATEGORIES[kind as usize].0,
                time: Picoseconds(rest),
            },
        }
    }
}

/// Words of a chunk: it holds some hundreds of messages, and all chunks together are small compared to the caches of a
/// processor.
const CHUNK_WORDS: usize = 1 << 13;

/// A buffer of entries.
struct EventChunk {
    words: Box<[u64; CHUNK_WORDS]>,
    len: usize,
}

impl EventChunk {
    fn new() -> EventChunk {
        EventChunk { words: Box::new([0; CHUNK_WORDS]), len: 0 }
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends the words of an entry; returns `false` if the chunk is full.
    #[inline(always)]
    fn push(&mut self, first: u64, second: Option<u64>) -> bool {
        let at = self.len;
        if at > CHUNK_WORDS - 2 {
            return false;
        }
        self.words[at] = first;
        self.len = at + 1;
        if let Some(second) = second {
            self.words[at + 1] = second;
            self.len = at + 2;
        }
        true
    }

    /// Returns the entries of the chunk.
    fn entries(&self) -> impl Iterator<Item = TraceEvent> + '_ {
        let mut words = self.words[..self.len].iter().copied();
        std::iter::from_fn(move || {
            words.next().map(|word| TraceEvent::read(word, || words.next().unwrap_or(0)))
        })
    }
}

/// Number of encoded bytes that are passed to the sink at once.
const PORTION_BYTES: usize = 1 << 18;

/// An encoder with the sink of its bytes.
struct TraceSink {
    encoder: Encoder,
    sink: Box<dyn Write + Send>,
    failure: Option<io::Error>,
}

impl TraceSink {
    fn new(encoder: Encoder, sink: Box<dyn Write + Send>) -> TraceSink {
        TraceSink { encoder, sink, failure: None }
    }

    /// Passes the encoded bytes to the sink if there are enough.
    #[inline]
    fn flush_if_full(&mut self) {
        if self.encoder.bytes().len() >= PORTION_BYTES {
            self.flush_chunk();
        }
    }

    fn flush_chunk(&mut self) {
        if self.failure.is_none() {
            self.failure = self.sink.write_all(self.encoder.bytes()).err();
        }
        self.encoder.clear();
    }

    /// Passes all remaining bytes to the sink.
    ///
    /// # Errors
    /// The first error of the sink, at any time.
    fn finish(mut self) -> io::Result<()> {
        self.flush_chunk();
        match self.failure {
            Some(failure) => Err(failure),
            None => self.sink.flush(),
        }
    }
}
