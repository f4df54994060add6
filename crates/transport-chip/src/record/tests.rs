//! The output of the trace thread, compared with a trace of the same events made directly; and its end.
//!
//! The events are arbitrary, in orders that no model would produce. `tests/record.rs` reads back traces of runs.

use super::{CHUNK_WORDS, TIME_MAX, *};
use crate::Costs;
use crate::cores::Cores;
use crate::placement::Placement;
use crate::report::TIME_CATEGORIES;
use isles_chip::supply::{SupplyChange, Transition};
use isles_chip::{Chip, FrequencyDomainId, VoltageDomainId};
use isles_trace::spans::{OpenSpans, SpanName};
use isles_transport::Source;
use isles_transport::random::Random;
use std::io;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

const PLACES: u32 = 5;

/// A writer that accepts `most` bytes, then fails or panics.
#[derive(Clone)]
struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    most: usize,
    panics: bool,
}

impl Sink {
    fn new() -> Sink {
        Sink { bytes: Arc::default(), most: usize::MAX, panics: false }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap();
        if all.len() + bytes.len() > self.most {
            drop(all);
            assert!(!self.panics, "the sink is told to");
            return Err(io::ErrorKind::StorageFull.into());
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn trace(sink: &Sink) -> Trace {
    let chip = Chip::find("scc").unwrap();
    let core_map = Placement::Linear.core_map(chip.topology(), PLACES).unwrap();
    let cores = Cores::new(Costs::of(&chip).unwrap(), core_map);
    let (mut initial_state, gears) = cores.initial_state();
    initial_state[1].now = Picoseconds(7);
    Trace::new(cores.topology(), &initial_state, gears, "a run", Box::new(sink.clone()))
}

fn recorder(sink: &Sink) -> Recorder {
    Recorder { trace_writer: Some(TraceWriter::new(trace(sink)).unwrap()), ..Recorder::default() }
}

/// An event that a model may report.
#[derive(Clone)]
enum Said {
    TraceEvent(TraceEvent),
    Shift(SupplyResponse),
    Begin(PlaceId, Span),
    End(PlaceId, SpanId),
}

/// Source files of a program.
const FILES: [&str; 3] = ["a.rs", "b.rs", "c.rs"];

/// Returns arbitrary events in any order. A few times are too long for one entry.
fn anything(random: &mut Random) -> Said {
    let place = |random: &mut Random| PlaceId(random.below(u64::from(PLACES)) as u32);
    let transfer = |random: &mut Random| Transfer {
        source: place(random),
        target: place(random),
        class: if random.below(2) == 0 { Class::Control } else { Class::Data },
        bytes: random.below(u64::MAX) >> random.below(64),
    };
    // Rare, because each ends a chunk.
    if random.below(5_000) == 0 {
        return Said::Shift(shift(random));
    }
    let kind = random.below(110);
    if kind >= 105 {
        return Said::End(place(random), SpanId(random.below(4) as u32));
    }
    if kind >= 100 {
        let source = Source { file: FILES[random.index(3)], line: random.below(3) as u32 };
        let (other, source) = (place(random), Some(source).filter(|source| source.line > 0));
        return Said::Begin(place(random), Span { name: "span", other: Some(other), source });
    }
    Said::TraceEvent(match kind {
        0..10 => TraceEvent::Begun(place(random)),
        10..14 => TraceEvent::Abandoned(place(random)),
        14..16 => TraceEvent::ReceivedPiece(place(random)),
        16..24 => TraceEvent::Sent(transfer(random)),
        24..26 => TraceEvent::SentBlock(transfer(random)),
        26..34 => TraceEvent::Received(transfer(random)),
        kind => {
            let bits = if kind == 34 { random.below(7) + 40 } else { random.below(30) };
            let time = Picoseconds(random.below(1 << bits));
            TraceEvent::Spent { place: place(random), category: TIME_CATEGORIES[random.index(8)].0, time }
        }
    })
}

fn shift(random: &mut Random) -> SupplyResponse {
    let (time, gear, step) = (Picoseconds(random.below(1 << 40)), GearId(1), VoltageStepId(1));
    let (clock, supply) = (FrequencyDomainId(random.below(3) as u32), VoltageDomainId(0));
    let transition = Transition { supply, start: time, end: time, from: VoltageStepId(0), to: step };
    SupplyResponse {
        changes: vec![SupplyChange::Rate { time, clock, gear }, SupplyChange::Voltage { time, supply, step }],
        transition: Some(transition).filter(|_| random.below(2) == 0),
    }
}

/// Reports the event to a recorder, as the model does.
fn record(recorder: &mut Recorder, nows: &mut [Picoseconds], said: &Said) {
    match said {
        Said::Begin(place, span) => _ = recorder.begin_span(*place, span),
        Said::End(place, span) => recorder.end_span(*place, *span),
        Said::Shift(answer) => recorder.shifted(answer),
        Said::TraceEvent(TraceEvent::Spent { place, category, time }) => {
            let start = nows[place.index()];
            nows[place.index()] = start + *time;
            recorder.spend(*place, start, start + *time, *category);
        }
        Said::TraceEvent(TraceEvent::Begun(place)) => recorder.begin(*place),
        Said::TraceEvent(TraceEvent::Abandoned(place)) => recorder.abandon(*place),
        Said::TraceEvent(TraceEvent::ReceivedPiece(place)) => recorder.received_piece(*place),
        Said::TraceEvent(TraceEvent::Sent(transfer)) => recorder.sent(*transfer, false),
        Said::TraceEvent(TraceEvent::SentBlock(transfer)) => recorder.sent(*transfer, true),
        Said::TraceEvent(TraceEvent::Received(transfer)) => recorder.received(*transfer),
        Said::TraceEvent(TraceEvent::SpanBegun { .. } | TraceEvent::SpanEnded { .. }) => {
            unreachable!("said otherwise")
        }
    }
}

/// Returns a recorder and a trace of the same events, and the number of times too long for one entry.
fn record_both(seed: u64, number: usize, [recorded, traced]: [&Sink; 2]) -> (Recorder, Trace, usize) {
    let (mut recorder, mut trace, mut random) = (recorder(recorded), trace(traced), Random::new(seed));
    let (mut nows, mut long, mut spans) = ([0, 7, 0, 0, 0].map(Picoseconds), 0, OpenSpans::default());
    for _ in 0..number {
        let said = anything(&mut random);
        record(&mut recorder, &mut nows, &said);
        match said {
            Said::Shift(answer) => trace.shift(&answer),
            Said::Begin(place, Span { name, other, source }) => {
                let (topic, is_new) = spans.number(SpanName { name, source });
                if is_new {
                    trace.add(SpanName { name, source });
                }
                trace.take(TraceEvent::SpanBegun { place, lane: spans.take(place), topic, other });
            }
            Said::End(place, SpanId(lane)) => {
                if spans.release(place, lane) {
                    trace.take(TraceEvent::SpanEnded { place, lane });
                }
            }
            Said::TraceEvent(entry) => {
                long += usize::from(matches!(entry, TraceEvent::Spent { time, .. } if time > TIME_MAX));
                trace.take(entry);
            }
        }
    }
    (recorder, trace, long)
}

#[test]
fn the_thread_writes_what_the_model_would_write() {
    for seed in 0..4 {
        let sinks = [Sink::new(), Sink::new()];
        let (recorder, trace, long) = record_both(seed, 8 * CHUNK_WORDS, [&sinks[0], &sinks[1]]);
        assert!(long > 10, "{long}");
        recorder.trace_writer.unwrap().finish(None).unwrap();
        trace.finish(None).unwrap();
        let [ours, theirs] = sinks.map(|sink| sink.bytes());
        assert!(ours.len() > 1 << 20, "{} bytes are few", ours.len());
        assert!(ours == theirs, "seed {seed}: {} bytes and {}", ours.len(), theirs.len());
    }
}

#[test]
fn a_recorder_that_is_dropped_has_handed_over_what_the_model_would_have() {
    // Some of these end just after a portion has become full.
    for number in [0, 1_000].into_iter().chain((40_000..60_000).step_by(1_999)) {
        let sinks = [Sink::new(), Sink::new()];
        let (recorder, trace, _) = record_both(9, number, [&sinks[0], &sinks[1]]);
        drop((recorder, trace));
        assert_eq!(Arc::strong_count(&sinks[0].bytes), 1, "the thread has ended");
        let [ours, theirs] = sinks.map(|sink| sink.bytes());
        assert!(ours == theirs, "{number}: {} bytes and {}", ours.len(), theirs.len());
        assert_eq!(ours.is_empty(), number <= 1_000, "a portion is handed over when it is full");
    }
}

/// Records many more events than all chunks hold.
fn talk(recorder: &mut Recorder) {
    let (mut nows, mut random) = ([Picoseconds::ZERO; PLACES as usize], Random::new(1));
    for _ in 0..30 * CHUNK_WORDS {
        record(recorder, &mut nows, &anything(&mut random));
    }
}

#[test]
fn a_sink_that_is_full_holds_nobody_up_and_is_told_at_the_end() {
    let full = Sink { most: 1 << 20, ..Sink::new() };
    let mut recorder = recorder(&full);
    talk(&mut recorder);
    let end = recorder.trace_writer.take().unwrap().finish(None);
    assert_eq!(end.map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull));
    let whole = Sink::new();
    let mut recorder = self::recorder(&whole);
    talk(&mut recorder);
    recorder.trace_writer.take().unwrap().finish(None).unwrap();
    assert!(full.bytes().len() > 1 << 19 && whole.bytes().starts_with(&full.bytes()));
}

/// Returns the message of a sink's panic.
fn panic_of(what: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(what)).expect_err("the sink is told to panic");
    panic.downcast_ref::<&str>().expect("the sink says a text").to_string()
}

#[test]
fn a_panic_of_the_sink_is_raised_in_the_run_once() {
    let mut recorder = recorder(&Sink { most: 0, panics: true, ..Sink::new() });
    assert_eq!(panic_of(|| talk(&mut recorder)), "the sink is told to");
    talk(&mut recorder);
    let end = recorder.trace_writer.take().unwrap().finish(None);
    assert!(end.is_err(), "what it was to write is lost");
}

#[test]
fn a_panic_of_the_sink_at_the_end_is_raised_there() {
    let recorder = recorder(&Sink { most: 0, panics: true, ..Sink::new() });
    assert_eq!(panic_of(|| recorder.trace_writer.unwrap().finish(None).unwrap()), "the sink is told to");
}

#[test]
fn a_panic_of_the_sink_is_raised_when_its_recorder_is_dropped() {
    let sink = Sink { most: 0, panics: true, ..Sink::new() };
    let mut recorder = recorder(&sink);
    // More than a portion, but less than the model would wait for.
    for time in 0..CHUNK_WORDS as u64 {
        let (start, category) = (Picoseconds(2 * time), TIME_CATEGORIES[time as usize % 8].0);
        recorder.spend(PlaceId(0), start, start + Picoseconds(2), category);
    }
    assert_eq!(panic_of(|| drop(recorder)), "the sink is told to");
    assert_eq!(Arc::strong_count(&sink.bytes), 1, "the thread has ended");
}
