//! Tables of a trace: time by place and activity, messages by pair of places, calls, the longest finishes.
//!
//! The time of an activity excludes nested activities, so that the times of a place add up. It reads traces of the host
//! and of modelled chips alike. Invariant: a table is a function of the file.

use crate::names;
use crate::reader::{EventKind, PacketReader, ReadError, TracePacket, TrackEvent, TrackInfo};
use std::collections::{BTreeMap, HashMap};

/// Unit of time in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// A nanosecond.
    Nanosecond,
    /// A picosecond.
    Picosecond,
}

impl TimeUnit {
    /// A time in seconds.
    #[must_use]
    pub fn seconds(self, time: u64) -> f64 {
        match self {
            TimeUnit::Nanosecond => time as f64 / 1e9,
            TimeUnit::Picosecond => time as f64 / 1e12,
        }
    }
}

/// Number of events and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of events.
    pub count: u64,
    /// Total time of all of them, in units of the file.
    pub time: u64,
    /// Time of the longest, in units of the file.
    pub longest: u64,
}

impl Sum {
    fn add(&mut self, time: u64) {
        self.count += 1;
        self.time += time;
        self.longest = self.longest.max(time);
    }
}

/// Messages from a place to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairTraffic {
    /// Number of messages sent.
    pub messages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Number of messages with both ends in the file.
    pub matched: u64,
    /// Total time in flight of these, from the start of sending to the start of handling, in units of the file;
    /// negative if clocks differ.
    pub time: i64,
    /// The shortest of these times.
    pub shortest: i64,
}

impl PairTraffic {
    fn add_transit(&mut self, time: i64) {
        self.shortest = if self.matched == 0 { time } else { self.shortest.min(time) };
        self.matched += 1;
        self.time = self.time.saturating_add(time);
    }
}

/// One span of a finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishSpan {
    /// Length of the span, in units of the file.
    pub time: u64,
    /// Time at which it began, in units of the file.
    pub start: u64,
    /// The place that waited for it.
    pub place: u32,
    /// The line of the program, if it is known.
    pub source: Option<(String, u64)>,
}

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Name of the run of the trace.
    pub run: String,
    /// The unit of all times.
    pub unit: TimeUnit,
    /// Time of each place by activity.
    pub places: BTreeMap<u32, BTreeMap<String, u64>>,
    /// Messages by source and target.
    pub pairs: BTreeMap<(u32, u32), PairTraffic>,
    /// Spans of calls of all places, by name.
    pub calls: BTreeMap<String, Sum>,
    /// The longest finishes, the longest first.
    pub finishes: Vec<FinishSpan>,
    /// Places whose parts are not in the file.
    pub missing: Vec<u32>,
    /// Events that did not fit, by place.
    pub dropped: BTreeMap<u32, u64>,
}

/// Ends of messages whose other end has not been read yet, by flow.
#[derive(Default)]
struct UnpairedFlows {
    /// Sender, receiver and time of each message sent.
    sent: HashMap<u64, (u32, u32, u64)>,
    /// Time of each message received.
    received: HashMap<u64, u64>,
}

/// Open spans of a track, and its time.
#[derive(Default)]
struct TrackState {
    open: Vec<TrackEvent>,
    now: u64,
}

/// Reads a whole trace; of finishes, the `finishes_max` longest are kept.
///
/// # Errors
/// The file is no trace of a run of Isles, or it is cut off.
pub fn read(file: &[u8], finishes_max: usize) -> Result<Stats, ReadError> {
    let mut reader = PacketReader::new(file);
    let (mut tracks, mut states) = (BTreeMap::new(), BTreeMap::new());
    let mut stats = Stats {
        run: String::new(),
        unit: TimeUnit::Nanosecond,
        places: BTreeMap::new(),
        pairs: BTreeMap::new(),
        calls: BTreeMap::new(),
        finishes: Vec::new(),
        missing: Vec::new(),
        dropped: BTreeMap::new(),
    };
    let (mut is_ours, mut unpaired) = (false, UnpairedFlows::default());
    while let Some(packet) = reader.packet()? {
        match packet {
            TracePacket::Track(track, info) => {
                if let Some(place) = names::place_of_thread(&info.name).filter(|_| info.is_thread) {
                    stats.places.entry(place).or_default();
                }
                tracks.insert(track, info);
            }
            TracePacket::Event(event) if event.kind == EventKind::Instant => is_ours |= stats.note(&event),
            TracePacket::Event(event) => {
                let state: &mut TrackState = states.entry(event.track).or_default();
                let track = tracks.get(&event.track);
                stats.join(&event, track, &mut unpaired);
                stats.take(event, track, state, finishes_max)?;
            }
            TracePacket::Other => {}
        }
    }
    if !is_ours {
        return Err(ReadError::Foreign("it does not name its run of Isles"));
    }
    if states.values().any(|state| !state.open.is_empty()) {
        return Err(ReadError::CutOff(file.len()));
    }
    stats.shorten(finishes_max);
    Ok(stats)
}

impl Stats {
    /// Takes an event without length; returns whether it names the run of the trace.
    fn note(&mut self, event: &TrackEvent) -> bool {
        let number = |note| event.text(note)?.parse::<u64>().ok();
        let place = number(names::PLACE).and_then(|place| u32::try_from(place).ok());
        match (event.name.as_str(), place) {
            (names::PICOSECONDS | names::HOST_RUN, _) => {
                if event.name == names::PICOSECONDS {
                    self.unit = TimeUnit::Picosecond;
                }
                event.text(names::RUN).unwrap_or_default().clone_into(&mut self.run);
                return true;
            }
            (names::MISSING, Some(place)) => self.missing.push(place),
            (names::DROPPED, Some(place)) => {
                self.dropped.insert(place, number(names::COUNT).unwrap_or_default());
            }
            _ => {}
        }
        false
    }

    fn take(
        &mut self,
        event: TrackEvent,
        track: Option<&TrackInfo>,
        state: &mut TrackState,
        finishes_max: usize,
    ) -> Result<(), ReadError> {
        let Some(track) = track else { return Err(ReadError::Foreign("a track is not described")) };
        if event.kind == EventKind::Counter {
            return Ok(());
        }
        let passed = event.time.checked_sub(state.now).filter(|_| !state.open.is_empty());
        let passed = if state.open.is_empty() { Some(0) } else { passed };
        let passed = passed.ok_or(ReadError::Foreign("time goes back on a track"))?;
        let place = names::place_of_thread(&track.name).filter(|_| track.is_thread);
        if let Some((place, open)) = place.zip(state.open.last()) {
            let times = self.places.entry(place).or_default();
            match times.get_mut(&open.name) {
                Some(time) => *time += passed,
                None => _ = times.insert(open.name.clone(), passed),
            }
        }
        state.now = event.time;
        if event.kind == EventKind::Begin {
            if let Some(source) =
                place.filter(|_| matches!(event.name.as_str(), names::SEND | names::SEND_BLOCK))
            {
                self.sent(source, &event);
            }
            state.open.push(event);
            return Ok(());
        }
        let begun = state.open.pop().ok_or(ReadError::Foreign("a span ends before it begins"))?;
        if let Some(place) = names::place_of_calls(&track.name) {
            self.call(begun, event.time, place, finishes_max);
        }
        Ok(())
    }

    /// Joins the ends of messages whose other end has been read.
    fn join(&mut self, event: &TrackEvent, track: Option<&TrackInfo>, unpaired: &mut UnpairedFlows) {
        let place = track.and_then(|track| names::place_of_thread(&track.name).filter(|_| track.is_thread));
        if let Some((flow, source)) = event.flows.first().zip(place) {
            let target = event.number(names::TARGET).unwrap_or_default() as u32;
            match unpaired.received.remove(flow) {
                Some(received) => self.add_transit(source, target, event.time, received),
                None => _ = unpaired.sent.insert(*flow, (source, target, event.time)),
            }
        }
        if let Some(flow) = event.last_flows.first() {
            match unpaired.sent.remove(flow) {
                Some((source, target, sent)) => self.add_transit(source, target, sent, event.time),
                None => _ = unpaired.received.insert(*flow, event.time),
            }
        }
    }

    fn add_transit(&mut self, source: u32, target: u32, sent: u64, received: u64) {
        let time = i64::try_from(i128::from(received) - i128::from(sent)).unwrap_or(i64::MAX);
        self.pairs.entry((source, target)).or_default().add_transit(time);
    }

    fn sent(&mut self, source: u32, event: &TrackEvent) {
        let target = event.number(names::TARGET).unwrap_or_default() as u32;
        let traffic = self.pairs.entry((source, target)).or_default();
        traffic.messages += 1;
        traffic.bytes += event.number(names::BYTES).unwrap_or_default();
    }

    fn call(&mut self, begun: TrackEvent, end: u64, place: u32, finishes_max: usize) {
        let time = end.saturating_sub(begun.time);
        self.calls.entry(begun.name.clone()).or_default().add(time);
        if begun.name == names::FINISH {
            self.finishes.push(FinishSpan { time, start: begun.time, place, source: begun.source });
            // Done rarely, and bounds memory independent of the run.
            if self.finishes.len() >= 1_024 + 2 * finishes_max {
                self.shorten(finishes_max);
            }
        }
    }

    /// Keeps the longest finishes only.
    fn shorten(&mut self, finishes_max: usize) {
        let order = |finish: &FinishSpan| (u64::MAX - finish.time, finish.place, finish.start);
        self.finishes.sort_by_key(order);
        self.finishes.truncate(finishes_max);
    }

    /// The activities of all places, sorted by name.
    #[must_use]
    pub fn activities(&self) -> Vec<&str> {
        let all = self.places.values().flat_map(BTreeMap::keys).map(String::as_str);
        let mut all: Vec<&str> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::{Details, EncodedTime, Encoder, EventPrefix, Name, Track};

    /// A place that works from 10 to 100, and from 30 to 50 sends 8 bytes to place 1; its call lasts from 20 to 90.
    fn file() -> Encoder {
        let events = [names::HOST_RUN, "working", names::SEND, names::FINISH];
        let mut encoder = Encoder::new(&events, &[names::RUN, names::TARGET, names::BYTES]);
        encoder.describe_process(Track(1), 1, "places");
        encoder.describe_thread(Track(2), 1, 2, "place 0");
        encoder.describe_part(Track(3), Track(1), "calls of place 0");
        encoder.instant(Track(1), 0, Name(0), &[(Name(0), "threads")]);
        let (own, calls) = (EventPrefix::new(Track(2)), EventPrefix::new(Track(3)));
        let begin = |encoder: &mut Encoder, track: &EventPrefix, time, name, notes: &[(Name, u64)]| {
            let details = Details { flow: None, last_flow: None, notes };
            encoder.begin(track, EncodedTime::new(time), Name(name), details);
        };
        begin(&mut encoder, &own, 10, 1, &[]);
        begin(&mut encoder, &calls, 20, 3, &[]);
        begin(&mut encoder, &own, 30, 2, &[(Name(1), 1), (Name(2), 8)]);
        encoder.end(&own, EncodedTime::new(50));
        encoder.end(&calls, EncodedTime::new(90));
        encoder.end(&own, EncodedTime::new(100));
        encoder
    }

    #[test]
    fn times_messages_and_finishes_are_those_of_the_file() {
        let stats = read(file().bytes(), 5).unwrap();
        assert_eq!((stats.run.as_str(), stats.unit), ("threads", TimeUnit::Nanosecond));
        let times: Vec<(&str, u64)> =
            stats.places[&0].iter().map(|(name, time)| (name.as_str(), *time)).collect();
        assert_eq!(times, [("send", 20), ("working", 70)]);
        let sent = PairTraffic { messages: 1, bytes: 8, ..PairTraffic::default() };
        assert_eq!(stats.pairs, BTreeMap::from([((0, 1), sent)]));
        assert_eq!(stats.calls["finish"], Sum { count: 1, time: 70, longest: 70 });
        assert_eq!(stats.finishes, [FinishSpan { time: 70, start: 20, place: 0, source: None }]);
        assert_eq!(read(file().bytes(), 0).unwrap().finishes, []);
    }

    #[test]
    fn an_open_span_means_that_the_file_is_cut_off() {
        let mut encoder = file();
        let track = EventPrefix::new(Track(2));
        encoder.begin(&track, EncodedTime::new(200), Name(1), Details::default());
        let len = encoder.bytes().len();
        assert_eq!(read(encoder.bytes(), 5), Err(ReadError::CutOff(len)));
    }

    #[test]
    fn a_trace_of_no_run_of_ours_is_refused() {
        let theirs = Encoder::new(&["send"], &[]);
        assert!(matches!(read(theirs.bytes(), 5), Err(ReadError::Foreign(_))));
        assert!(matches!(read(&[], 5), Err(ReadError::Foreign(_))));
    }
}
