//! Spans in a trace: assigns open spans of a place to tracks and writes them.
//!
//! Tasks of a place take turns, so its spans overlap as they like, and on one track they would not nest. So each open
//! span has a *lane* of its place, the lowest that is free, and each lane is a track; all tracks of a place have its
//! name, so that Perfetto shows them as one, in rows. Invariants: no two open spans of a place have one lane; a track
//! is described before its first span; a span on a track has ended before the next one begins there.

use crate::perfetto::{EncodedTime, Encoder, EventPrefix, Name, Track};
use isles_transport::{PlaceId, Source};
use std::collections::{BTreeMap, BTreeSet};

/// The tracks of spans are numbered from here on, above all others: by place, then by lane.
const FIRST: u64 = 1 << 52;
const LANE_BITS: u32 = 32;

/// One track of a place.
struct SpanTrack {
    stamp: EventPrefix,
    is_open: bool,
}

/// A topic; the file has its source location under its number.
struct Topic {
    name: String,
    has_source: bool,
}

/// The spans of a trace.
pub struct Spans {
    /// The process of each place: on a chip, its tile.
    tiles: Vec<Track>,
    /// Tracks of each place.
    lanes: Vec<Vec<SpanTrack>>,
    topics: Vec<Topic>,
    /// Names of spans in the file, by topic and other place; a name shared by two topics occurs twice.
    names: BTreeMap<(u32, Option<PlaceId>), Name>,
    /// The first unused name.
    free: Name,
    /// Ending of the names of tracks.
    ending: &'static str,
}

impl Spans {
    /// No spans yet, for places on the processes `tiles`. `free` is the first unused name of the file, and names of
    /// tracks end with `ending`.
    #[must_use]
    pub fn new(tiles: Vec<Track>, free: Name, ending: &'static str) -> Spans {
        let lanes = tiles.iter().map(|_| Vec::new()).collect();
        Spans { tiles, lanes, topics: Vec::new(), names: BTreeMap::new(), free, ending }
    }

    /// The next topic: its name, and the file and line that it comes from.
    pub fn add(&mut self, encoder: &mut Encoder, name: &str, source: Option<(&str, u32)>) {
        if let Some((file, line)) = source {
            encoder.intern_source(self.topics.len(), file, line);
        }
        self.topics.push(Topic { name: name.to_owned(), has_source: source.is_some() });
    }

    /// The number of the next topic.
    #[must_use]
    pub fn topics(&self) -> u32 {
        self.topics.len() as u32
    }

    /// Begins a span of topic number `topic`, which was added, on a lane of `place`; `other` is the other place in
    /// its name.
    pub fn begin(
        &mut self,
        encoder: &mut Encoder,
        place: PlaceId,
        lane: u32,
        now: u64,
        topic: u32,
        other: Option<PlaceId>,
    ) {
        let Some(Topic { name: words, has_source }) = self.topics.get(topic as usize) else { return };
        let name = *self.names.entry((topic, other)).or_insert_with(|| {
            let name = self.free;
            self.free = Name(name.0 + 1);
            encoder.intern(name, &other.map_or(words.clone(), |other| format!("{words} {other}")));
            name
        });
        let (tile, lanes) = (self.tiles[place.index()], &mut self.lanes[place.index()]);
        while lanes.len() <= lane as usize {
            let track = Track(FIRST | u64::from(place.0) << LANE_BITS | lanes.len() as u64);
            encoder.describe_part(track, tile, &format!("calls of {place}{}", self.ending));
            lanes.push(SpanTrack { stamp: EventPrefix::new(track), is_open: false });
        }
        let lane = &mut lanes[lane as usize];
        lane.is_open = true;
        let source = has_source.then_some(topic as usize);
        encoder.begin_from(&lane.stamp, EncodedTime::new(now), name, source);
    }

    /// Ends the span on a lane of `place`.
    pub fn end(&mut self, encoder: &mut Encoder, place: PlaceId, lane: u32, now: u64) {
        let lane = self.lanes[place.index()].get_mut(lane as usize).filter(|lane| lane.is_open);
        if let Some(lane) = lane {
            lane.is_open = false;
            encoder.end(&lane.stamp, EncodedTime::new(now));
        }
    }

    /// Ends what is open at `place`.
    pub fn end_all(&mut self, encoder: &mut Encoder, place: PlaceId, now: u64) {
        for lane in 0..self.lanes[place.index()].len() as u32 {
            self.end(encoder, place, lane, now);
        }
    }
}

/// Name and source of spans, without the other place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanName {
    /// Name of the span.
    pub name: &'static str,
    /// The line that it comes from.
    pub source: Option<Source>,
}

/// Addresses of the texts of a topic, and the line: topics of one text at two addresses are two, which harms nothing.
type Address = (usize, usize, u32);

/// The lanes of one place.
#[derive(Default)]
struct TrackPool {
    /// Number of lanes ever taken.
    all: u32,
    free: BTreeSet<u32>,
}

/// The open spans of a run.
#[derive(Default)]
pub struct OpenSpans {
    /// Tracks by place, as far as it has had spans.
    lanes: Vec<TrackPool>,
    topics: BTreeMap<Address, u32>,
}

impl OpenSpans {
    /// The number of a topic, from 0 in the order of first use; and whether this is its first use.
    pub fn number(&mut self, topic: SpanName) -> (u32, bool) {
        let place_of = |text: &'static str| text.as_ptr() as usize;
        let (file, line) = topic.source.map_or((0, 0), |source| (place_of(source.file), source.line));
        let next = self.topics.len() as u32;
        let number = *self.topics.entry((place_of(topic.name), file, line)).or_insert(next);
        (number, number == next)
    }

    /// Takes a lane of `place`.
    pub fn take(&mut self, place: PlaceId) -> u32 {
        if self.lanes.len() <= place.index() {
            self.lanes.resize_with(place.index() + 1, TrackPool::default);
        }
        let lanes = &mut self.lanes[place.index()];
        lanes.free.pop_first().unwrap_or_else(|| {
            lanes.all += 1;
            lanes.all - 1
        })
    }

    /// Releases a lane of `place`; `false` if it is not taken.
    pub fn release(&mut self, place: PlaceId, lane: u32) -> bool {
        self.lanes.get_mut(place.index()).is_some_and(|lanes| lane < lanes.all && lanes.free.insert(lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_the_lowest_lane_that_is_free() {
        let (mut open, [here, there]) = (OpenSpans::default(), [1, 3].map(PlaceId));
        let taken: Vec<u32> = (0..3).map(|_| open.take(here)).collect();
        assert_eq!((taken, open.take(there)), (vec![0, 1, 2], 0));
        assert!(open.release(here, 1) && open.release(here, 0));
        assert!(!open.release(here, 0) && !open.release(here, 3) && !open.release(PlaceId(9), 0));
        assert_eq!([0, 1, 3], [(); 3].map(|()| open.take(here)));
    }

    #[test]
    fn topics_are_told_apart_by_name_and_line() {
        let source = |line| Some(Source { file: "a.rs", line });
        let mut open = OpenSpans::default();
        let topics =
            [("at", source(1)), ("at", source(2)), ("finish", source(1)), ("at", source(1)), ("at", None)];
        let numbers = topics.map(|(name, source)| open.number(SpanName { name, source }));
        assert_eq!(numbers, [(0, true), (1, true), (2, true), (0, false), (3, true)]);
    }
}
