//! The trace records of one place, in bounded memory: activities, messages and spans.
//!
//! A place must not wait for its own trace, so it only appends to a list of its own. Records beyond the bound are
//! counted and dropped; dropped messages are still numbered, so that the two ends of the kept ones match. Nothing here
//! sends anything or opens a file.
//!
//! Invariants: a record has both its start and its end; a place has at most [`RECORDS_MAX`].

use isles_trace::spans::{OpenSpans, SpanName};
use isles_transport::{Class, PlaceId, Span, SpanId};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;

/// Maximum number of records of a place: 20 MiB.
pub(crate) const RECORDS_MAX: usize = 1 << 19;

/// Shortest wait that is recorded, in nanoseconds.
const WAIT_MIN: u64 = 1_000;

/// Returns the time in nanoseconds of the clock that all processes of a host share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordKind {
    /// The place was idle.
    Waiting,
    /// The place sent a small message.
    Send,
    /// The place sent a large message.
    SendBlock,
    /// The place handled a message.
    Receive,
    /// A span of the program.
    Span,
    /// A counter changed its value.
    Counter,
}

pub(crate) const KINDS: [RecordKind; 6] = [
    RecordKind::Waiting,
    RecordKind::Send,
    RecordKind::SendBlock,
    RecordKind::Receive,
    RecordKind::Span,
    RecordKind::Counter,
];

/// One record of a place's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TracedEvent {
    pub(crate) kind: RecordKind,
    /// The class of a message.
    pub(crate) class: Class,
    /// Start and end, by [`now`].
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The other place, if there is one.
    pub(crate) other: Option<PlaceId>,
    /// The sequence number of a message from its source to its target in its class, or the topic of a span or counter.
    pub(crate) number: u64,
    /// The length of a message in bytes, the lane of a span, or the value of a counter.
    pub(crate) amount: u64,
}

/// The name of a span or counter, with the file and line of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) source: Option<(String, u32)>,
}

/// All records of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) place: PlaceId,
    /// Start and end of the recording, by [`now`].
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Number of dropped records.
    pub(crate) dropped: u64,
    pub(crate) topics: Vec<Topic>,
    pub(crate) records: Vec<TracedEvent>,
}

#[cfg(feature = "mpi")]
impl Part {
    /// Converts all times with `of` to another clock.
    pub(crate) fn on_clock(mut self, of: impl Fn(u64) -> u64) -> Part {
        (self.begin, self.end) = (of(self.begin), of(self.end));
        for record in &mut self.records {
            (record.start, record.end) = (of(record.start), of(record.end));
        }
        self
    }
}

/// An open span.
#[derive(Clone, Copy)]
struct StartedSpan {
    start: u64,
    topic: u32,
    other: Option<PlaceId>,
}

/// Number of messages that a place exchanged with one other place, by class.
#[derive(Clone, Copy, Default)]
struct PeerTraffic {
    sent: [u64; 2],
    received: [u64; 2],
}

/// Collects the records of a place.
pub(crate) struct Recorder {
    part: Part,
    records_max: usize,
    traffic: Vec<PeerTraffic>,
    /// By lane.
    started_spans: Vec<Option<StartedSpan>>,
    spans: OpenSpans,
    /// Values of counters, by topic.
    counters: BTreeMap<u32, u64>,
}

/// The owner of all lanes, which belong to one place.
const OWN: PlaceId = PlaceId(0);

impl Recorder {
    /// Makes a recorder of `place`, one of `places`, which keeps at most `records_max` records.
    pub(crate) fn new(place: PlaceId, places: u32, records_max: usize) -> Recorder {
        let begin = now();
        Recorder {
            part: Part { place, begin, end: begin, dropped: 0, topics: Vec::new(), records: Vec::new() },
            records_max,
            traffic: vec![PeerTraffic::default(); places as usize],
            started_spans: Vec::new(),
            spans: OpenSpans::default(),
            counters: BTreeMap::new(),
        }
    }

    fn push(&mut self, record: TracedEvent) {
        if self.part.records.len() < self.records_max {
            self.part.records.push(record);
        } else {
            self.part.dropped += 1;
        }
    }

    /// Records that the place has waited since `start`.
    pub(crate) fn waited(&mut self, start: u64) {
        let end = now();
        if end.saturating_sub(start) >= WAIT_MIN {
            let (kind, class) = (RecordKind::Waiting, Class::Control);
            self.push(TracedEvent { kind, class, start, end, other: None, number: 0, amount: 0 });
        }
    }

    /// Records a send of `bytes` bytes to another place, from `start` until now.
    pub(crate) fn sent(&mut self, kind: RecordKind, start: u64, to: PlaceId, class: Class, bytes: usize) {
        let number = next(&mut self.traffic[to.index()].sent[class as usize]);
        let (end, other, amount) = (now(), Some(to), bytes as u64);
        self.push(TracedEvent { kind, class, start, end, other, number, amount });
    }

    /// Returns the number of a message that arrives now.
    pub(crate) fn arrived(&mut self, from: PlaceId, class: Class) -> u64 {
        next(&mut self.traffic[from.index()].received[class as usize])
    }

    /// Records the handling of an arrived message, from `start` until now.
    pub(crate) fn received(&mut self, start: u64, from: PlaceId, class: Class, number: u64, bytes: usize) {
        let (kind, end, other, amount) = (RecordKind::Receive, now(), Some(from), bytes as u64);
        self.push(TracedEvent { kind, class, start, end, other, number, amount });
    }

    /// Returns the number of a topic, which is added if it is new.
    fn topic(&mut self, name: SpanName) -> u32 {
        let (topic, is_new) = self.spans.number(name);
        if is_new {
            let source = name.source.map(|source| (source.file.to_owned(), source.line));
            self.part.topics.push(Topic { name: name.name.to_owned(), source });
        }
        topic
    }

    /// Adds `by` to a counter and records its value.
    pub(crate) fn add_count(&mut self, name: &'static str, by: u64) {
        let topic = self.topic(SpanName { name, source: None });
        let value = self.counters.entry(topic).or_default();
        *value += by;
        let (kind, class, at) = (RecordKind::Counter, Class::Control, now());
        let (number, amount) = (u64::from(topic), *value);
        self.push(TracedEvent { kind, class, start: at, end: at, other: None, number, amount });
    }

    /// Opens a span.
    pub(crate) fn begin_span(&mut self, span: &Span) -> SpanId {
        let topic = self.topic(SpanName { name: span.name, source: span.source });
        let lane = self.spans.take(OWN);
        if self.started_spans.len() <= lane as usize {
            self.started_spans.resize(lane as usize + 1, None);
        }
        self.started_spans[lane as usize] = Some(StartedSpan { start: now(), topic, other: span.other });
        SpanId(lane)
    }

    /// Closes a span and records it.
    pub(crate) fn end_span(&mut self, span: SpanId) {
        let begun = self.started_spans.get_mut(span.0 as usize).and_then(Option::take);
        let Some(StartedSpan { start, topic, other }) = begun else { return };
        self.spans.release(OWN, span.0);
        let (kind, class, end) = (RecordKind::Span, Class::Control, now());
        let (number, amount) = (u64::from(topic), u64::from(span.0));
        self.push(TracedEvent { kind, class, start, end, other, number, amount });
    }

    /// Closes all open spans and returns the records.
    pub(crate) fn finish(mut self) -> Part {
        for lane in 0..self.started_spans.len() as u32 {
            self.end_span(SpanId(lane));
        }
        self.part.end = now();
        self.part
    }
}

/// Returns the count and increments it.
fn next(count: &mut u64) -> u64 {
    let number = *count;
    *count += 1;
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_transport::Source;

    const PEER: PlaceId = PlaceId(1);

    #[test]
    fn what_does_not_fit_is_counted_and_messages_keep_their_numbers() {
        let mut recorder = Recorder::new(PlaceId(0), 2, 3);
        (0..5).for_each(|_| recorder.sent(RecordKind::Send, now(), PEER, Class::Data, 8));
        let numbers: Vec<u64> = recorder.part.records.iter().map(|record| record.number).collect();
        assert_eq!((numbers, recorder.part.dropped), (vec![0, 1, 2], 2));
        let arrivals = [0, 1].map(|_| recorder.arrived(PEER, Class::Data));
        assert_eq!(arrivals, [0, 1]);
        assert_eq!(recorder.traffic[1].sent, [0, 5]);
    }

    #[test]
    fn a_span_that_is_open_at_the_end_ends_there() {
        let mut recorder = Recorder::new(PlaceId(0), 2, 10);
        let source = Some(Source { file: "a.rs", line: 3 });
        let [outer, inner] =
            ["finish", "at →"].map(|name| recorder.begin_span(&Span { name, other: None, source }));
        recorder.end_span(inner);
        recorder.end_span(inner);
        assert_ne!(outer, inner);
        let part = recorder.finish();
        let spans: Vec<(u64, u64)> =
            part.records.iter().map(|record| (record.number, record.amount)).collect();
        assert_eq!(spans, [(1, 1), (0, 0)]);
        assert!(part.records.iter().all(|record| part.begin <= record.start && record.end <= part.end));
        assert_eq!(part.topics[0], Topic { name: "finish".into(), source: Some(("a.rs".into(), 3)) });
    }
}
