//! The tracks of a trace that show spans: which there are, and what is open on them.
//!
//! Their own file because spans have nothing to do with what cores spend but the clock. A place has as many tracks as
//! it has spans at a time; all have its name, so that Perfetto shows them as one, in rows. Invariants: a track is
//! described before its first span; a span on a track has ended before the next one begins there.

use super::track_pool::SpanName;
use crate::export::perfetto::{EncodedTime, Encoder, EventPrefix, Name, Track};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;
use std::collections::BTreeMap;

/// The tracks of spans are numbered from here on, above all others: by place, then by lane.
const FIRST: u64 = 1 << 52;
const LANE_BITS: u32 = 32;

/// One track of a place.
struct SpanTrack {
    stamp: EventPrefix,
    is_open: bool,
}

/// The spans of a trace.
pub(super) struct Spans {
    /// The track of the tile of each place.
    tiles: Vec<Track>,
    /// By place.
    lanes: Vec<Vec<SpanTrack>>,
    topics: Vec<SpanName>,
    /// Names of spans that are in the file, by topic and other place. A name that two topics have is there twice.
    names: BTreeMap<(u32, Option<PlaceId>), Name>,
    /// The first name that nothing has.
    free: Name,
}

impl Spans {
    /// No spans yet, of places on `tiles`; `free` is the first name that nothing in the file has.
    pub(super) fn new(tiles: Vec<Track>, free: Name) -> Spans {
        let lanes = tiles.iter().map(|_| Vec::new()).collect();
        Spans { tiles, lanes, topics: Vec::new(), names: BTreeMap::new(), free }
    }

    /// The next topic.
    pub(super) fn add(&mut self, encoder: &mut Encoder, topic: SpanName) {
        if let Some(source) = topic.source {
            encoder.intern_source(self.topics.len(), source.file, source.line);
        }
        self.topics.push(topic);
    }

    /// A span of a topic that was added begins on a lane of `place`.
    pub(super) fn begin(
        &mut self,
        encoder: &mut Encoder,
        (place, lane): (PlaceId, u32),
        now: Picoseconds,
        (number, other): (u32, Option<PlaceId>),
    ) {
        let Some(topic) = self.topics.get(number as usize) else { return };
        let name = *self.names.entry((number, other)).or_insert_with(|| {
            let name = self.free;
            self.free = Name(name.0 + 1);
            let words = topic.name;
            encoder.intern(name, &other.map_or(words.to_owned(), |other| format!("{words} {other}")));
            name
        });
        let (tile, lanes) = (self.tiles[place.index()], &mut self.lanes[place.index()]);
        while lanes.len() <= lane as usize {
            let track = Track(FIRST | u64::from(place.0) << LANE_BITS | lanes.len() as u64);
            encoder.describe_part(track, tile, &format!("calls of {place}, 1 ns is 1 ps"));
            lanes.push(SpanTrack { stamp: EventPrefix::new(track), is_open: false });
        }
        let lane = &mut lanes[lane as usize];
        lane.is_open = true;
        encoder.begin_from(&lane.stamp, EncodedTime::new(now), name, topic.source.map(|_| number as usize));
    }

    /// The span on a lane of `place` ends.
    pub(super) fn end(&mut self, encoder: &mut Encoder, (place, lane): (PlaceId, u32), now: Picoseconds) {
        let lane = self.lanes[place.index()].get_mut(lane as usize).filter(|lane| lane.is_open);
        if let Some(lane) = lane {
            lane.is_open = false;
            encoder.end(&lane.stamp, EncodedTime::new(now));
        }
    }

    /// Ends what is open at `place`.
    pub(super) fn end_all(&mut self, encoder: &mut Encoder, place: PlaceId, now: Picoseconds) {
        for lane in 0..self.lanes[place.index()].len() as u32 {
            self.end(encoder, (place, lane), now);
        }
    }
}
