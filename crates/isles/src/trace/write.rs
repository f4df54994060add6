//! Writes the file of a trace from the records of the places.
//!
//! Each place is a process with one thread, on which its activities nest, and with tracks for its calls, as in a trace
//! of a modelled chip. Messages of a pair of places and a class arrive in order, so both ends number them alike and can
//! derive the same flow id.
//!
//! Invariants: time 0 is the start of the first place that records; spans of a track nest.

use super::record::{Part, RecordKind, TracedEvent};
use isles_trace::names;
use isles_trace::perfetto::{Details, EncodedTime, Encoder, EventPrefix, Name, Track};
use isles_trace::spans::Spans;
use isles_transport::PlaceId;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io;
use std::io::Write;

/// Names of events; a record's name is at the number of its kind.
const EVENTS: [&str; 8] = [
    names::WAITING,
    names::SEND,
    names::SEND_BLOCK,
    names::RECEIVE,
    names::WORKING,
    names::HOST_RUN,
    names::DROPPED,
    names::MISSING,
];
const WORKING: Name = Name(4);
const HOST_RUN: Name = Name(5);
const DROPPED: Name = Name(6);
const MISSING: Name = Name(7);

/// Names of notes.
const NOTES: [&str; 6] = [names::SOURCE, names::TARGET, names::BYTES, names::RUN, names::PLACE, names::COUNT];
const SOURCE: Name = Name(0);
const TARGET: Name = Name(1);
const BYTES: Name = Name(2);
const RUN: Name = Name(3);
const PLACE: Name = Name(4);
const COUNT: Name = Name(5);

/// The track of the whole run. Processes and threads of places follow.
const WHOLE_RUN: Track = Track(1);

/// First number of the tracks of counters, by place and then by topic; below the tracks of spans.
const COUNTERS: u64 = 1 << 51;

/// Number of encoded bytes that triggers a write.
const PORTION_BYTES: usize = 1 << 18;

/// Bits of a flow id for the number of a message, and for a place.
const NUMBER_BITS: u32 = 38;
const PLACE_BITS: u32 = 12;

/// Writes the trace of `run` to `out`. `parts` has one entry for each place; `None` if its records are missing.
///
/// # Errors
/// The first error of `out`.
pub(super) fn write(out: &mut dyn Write, run: &str, parts: &[Option<Part>]) -> io::Result<()> {
    let mut encoder = Encoder::new(&EVENTS, &NOTES);
    encoder.describe(WHOLE_RUN, run);
    encoder.instant(WHOLE_RUN, 0, HOST_RUN, &[(RUN, run)]);
    let places = parts.len() as u32;
    let origin = parts.iter().flatten().map(|part| part.begin).min().unwrap_or_default();
    for (place, part) in (0..).map(PlaceId).zip(parts) {
        let (pid, tid) = (place.0 + 1, places + place.0 + 1);
        encoder.describe_process(process(place), pid, &names::of_activities(place));
        encoder.describe_thread(thread(place, places), pid, tid, &names::of_activities(place));
        let number = place.0.to_string();
        match part {
            None => encoder.instant(WHOLE_RUN, 0, MISSING, &[(PLACE, &number)]),
            Some(part) if part.dropped > 0 => {
                let (time, count) = (part.end - origin, part.dropped.to_string());
                encoder.instant(WHOLE_RUN, time, DROPPED, &[(PLACE, &number), (COUNT, &count)]);
            }
            Some(_) => {}
        }
    }
    let processes = (0..places).map(|place| process(PlaceId(place))).collect();
    let mut spans = Spans::new(processes, Name(EVENTS.len()), "");
    let mut writer = Writer { out, encoder, origin };
    for part in parts.iter().flatten() {
        let (mut calls, mut counts, mut activities) = (Vec::new(), Vec::new(), Vec::new());
        for record in &part.records {
            match record.kind {
                RecordKind::Span => calls.push(*record),
                RecordKind::Counter => counts.push(*record),
                _ => activities.push(*record),
            }
        }
        activities.sort_by_key(|record| (record.start, Reverse(record.end)));
        calls.sort_by_key(|record| (record.amount, record.start));
        writer.activities(part, thread(part.place, places), &activities)?;
        writer.calls(part, &mut spans, &calls)?;
        writer.counters(part, &counts)?;
    }
    writer.out.write_all(writer.encoder.bytes())
}

fn process(place: PlaceId) -> Track {
    Track(WHOLE_RUN.0 + 1 + u64::from(place.0))
}

fn thread(place: PlaceId, places: u32) -> Track {
    Track(process(place).0 + u64::from(places))
}

/// Returns the track of a counter of a place.
fn counter(place: PlaceId, topic: u64) -> Track {
    Track(COUNTERS | u64::from(place.0) << 32 | topic)
}

/// Returns the flow id of a message.
fn flow(source: PlaceId, target: PlaceId, record: &TracedEvent) -> u64 {
    let pair = u64::from(source.0) << PLACE_BITS | u64::from(target.0);
    (pair << 1 | record.class as u64) << NUMBER_BITS | (record.number + 1)
}

/// A file being written.
struct Writer<'a> {
    out: &'a mut dyn Write,
    encoder: Encoder,
    origin: u64,
}

impl Writer<'_> {
    fn time(&self, time: u64) -> EncodedTime {
        EncodedTime::new(time.saturating_sub(self.origin))
    }

    fn flush_portion(&mut self) -> io::Result<()> {
        if self.encoder.bytes().len() >= PORTION_BYTES {
            self.out.write_all(self.encoder.bytes())?;
            self.encoder.clear();
        }
        Ok(())
    }

    /// Writes the activities of a place in the order of their starts, clipped to its recorded time.
    fn activities(&mut self, part: &Part, track: Track, records: &[TracedEvent]) -> io::Result<()> {
        let prefix = EventPrefix::new(track);
        self.encoder.begin(&prefix, self.time(part.begin), WORKING, Details::default());
        let mut open = vec![part.end];
        for record in records {
            while let Some(end) = open.pop_if(|end| *end <= record.start) {
                self.encoder.end(&prefix, self.time(end));
            }
            let Some(outer) = open.last() else { break };
            open.push(record.end.min(*outer));
            self.begin(&prefix, part.place, record);
            self.flush_portion()?;
        }
        while let Some(end) = open.pop() {
            self.encoder.end(&prefix, self.time(end));
        }
        Ok(())
    }

    fn begin(&mut self, prefix: &EventPrefix, here: PlaceId, record: &TracedEvent) {
        let (time, name, other) = (self.time(record.start), Name(record.kind as usize), record.other);
        let number = other.map_or(0, |other| u64::from(other.0));
        let notes = |other| [(other, number), (BYTES, record.amount)];
        match (record.kind, other) {
            (RecordKind::Send | RecordKind::SendBlock, Some(target)) => {
                let (flow, notes) = (Some(flow(here, target, record)), notes(TARGET));
                self.encoder.begin(prefix, time, name, Details { flow, last_flow: None, notes: &notes });
            }
            (RecordKind::Receive, Some(source)) => {
                let (last_flow, notes) = (Some(flow(source, here, record)), notes(SOURCE));
                self.encoder.begin(prefix, time, name, Details { flow: None, last_flow, notes: &notes });
            }
            _ => self.encoder.begin(prefix, time, name, Details::default()),
        }
    }

    /// Writes the spans of a place, in the order of their lanes.
    fn calls(&mut self, part: &Part, spans: &mut Spans, records: &[TracedEvent]) -> io::Result<()> {
        let first = spans.topics();
        for topic in &part.topics {
            let source = topic.source.as_ref().map(|(file, line)| (file.as_str(), *line));
            spans.add(&mut self.encoder, &topic.name, source);
        }
        for record in records {
            let (place, lane) = (part.place, record.amount as u32);
            let [start, end] = [record.start, record.end].map(|time| time.saturating_sub(self.origin));
            spans.begin(&mut self.encoder, place, lane, start, first + record.number as u32, record.other);
            spans.end(&mut self.encoder, place, lane, end);
            self.flush_portion()?;
        }
        Ok(())
    }

    /// Writes the counters of a place, in the order of their changes.
    fn counters(&mut self, part: &Part, records: &[TracedEvent]) -> io::Result<()> {
        let topics: BTreeSet<u64> = records.iter().map(|record| record.number).collect();
        for topic in topics {
            let name = part.topics.get(topic as usize).map_or("", |topic| topic.name.as_str());
            self.encoder.describe_counter_of(process(part.place), counter(part.place, topic), name);
        }
        for record in records {
            let time = record.start.saturating_sub(self.origin);
            self.encoder.count(counter(part.place, record.number), time, record.amount as f64);
            self.flush_portion()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Recorder, Topic};
    use super::*;
    use isles_trace::reader::{EventKind, PacketReader, TracePacket};
    use isles_trace::stats::{PairTraffic, Sum, read};
    use isles_transport::Class;

    fn record(kind: RecordKind, [start, end]: [u64; 2], other: Option<u32>, amount: u64) -> TracedEvent {
        TracedEvent { kind, class: Class::Data, start, end, other: other.map(PlaceId), number: 0, amount }
    }

    /// Place 0 sends 24 bytes while it handles a message, place 1 takes them in; place 2 is missing.
    fn file() -> Vec<u8> {
        let of = |place, dropped, records| Part {
            place: PlaceId(place),
            begin: 1_000,
            end: 2_000,
            dropped,
            topics: vec![Topic { name: "finish".into(), source: Some(("a.rs".into(), 5)) }],
            records,
        };
        let first = vec![
            record(RecordKind::Send, [1_200, 1_250], Some(1), 24),
            record(RecordKind::Receive, [1_100, 1_300], Some(1), 8),
            record(RecordKind::Span, [1_000, 1_400], None, 0),
        ];
        let second = vec![
            record(RecordKind::Waiting, [1_000, 1_500], None, 0),
            record(RecordKind::Receive, [1_500, 1_600], Some(0), 24),
        ];
        let mut bytes = Vec::new();
        write(&mut bytes, "threads, 3 places", &[Some(of(0, 0, first)), Some(of(1, 7, second)), None])
            .unwrap();
        bytes
    }

    #[test]
    fn activities_nest_and_their_times_add_up() {
        let stats = read(&file(), 3).unwrap();
        let times = |place| {
            stats.places[&place].iter().map(|(name, time)| (name.as_str(), *time)).collect::<Vec<_>>()
        };
        assert_eq!(times(0), [("receive", 150), ("send", 50), ("working", 800)]);
        assert_eq!(times(1), [("receive", 100), ("waiting", 500), ("working", 400)]);
        let sent = PairTraffic { messages: 1, bytes: 24, matched: 1, time: 300, shortest: 300 };
        assert_eq!(stats.pairs[&(0, 1)], sent);
        assert_eq!(stats.calls["finish"], Sum { count: 1, time: 400, longest: 400 });
        assert_eq!(stats.finishes[0].source, Some(("a.rs".into(), 5)));
        assert_eq!((stats.missing, stats.dropped.into_iter().collect()), (vec![2], vec![(1, 7)]));
    }

    #[test]
    fn a_counter_has_a_track_of_its_place_with_each_value() {
        let mut recorder = Recorder::new(PlaceId(0), 1, 10);
        for by in [2, 5] {
            recorder.add_count("page_faults", by);
        }
        let mut file = Vec::new();
        write(&mut file, "threads, 1 place", &[Some(recorder.finish())]).unwrap();
        let (mut reader, mut tracks, mut values) = (PacketReader::new(&file), Vec::new(), Vec::new());
        while let Some(packet) = reader.packet().unwrap() {
            match packet {
                TracePacket::Track(track, info) if info.name == "page_faults" => tracks.push(track),
                TracePacket::Event(event) if event.kind == EventKind::Counter => {
                    values.push((event.track, event.value));
                }
                _ => {}
            }
        }
        assert_eq!(tracks.len(), 1);
        assert_eq!(values, [(tracks[0], Some(2.0)), (tracks[0], Some(7.0))]);
    }

    #[test]
    fn a_flow_goes_from_where_a_message_is_sent_to_where_it_arrives() {
        let file = file();
        let mut reader = PacketReader::new(&file);
        let (mut out, mut back) = (Vec::new(), Vec::new());
        while let Some(packet) = reader.packet().unwrap() {
            if let TracePacket::Event(event) = packet
                && event.kind == EventKind::Begin
            {
                out.extend(event.flows.iter().map(|flow| (*flow, event.number(names::BYTES))));
                back.extend(event.last_flows.iter().map(|flow| (*flow, event.number(names::BYTES))));
            }
        }
        // No place has recorded sending the message of 8 bytes.
        back.retain(|(_, bytes)| *bytes == Some(24));
        assert_eq!((out.len(), &out), (1, &back));
    }
}
