//! What the model keeps of open spans: which tracks of a place are free, and the numbers of what spans are called.
//!
//! Tasks of a place take turns, so its spans overlap as they like, and on one track they would not nest. So each open
//! span has a *lane* of its place, the lowest that is free. Invariant: no two open spans of a place have one lane.

use isles_transport::{PlaceId, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What spans are called and where they come from, without the other place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanName {
    pub(super) name: &'static str,
    pub(super) source: Option<Source>,
}

/// Where the texts of a topic lie, and the line: topics of one text at two addresses are two, which harms nothing.
type Address = (usize, usize, u32);

/// The lanes of one place.
#[derive(Default)]
struct TrackPool {
    /// Those that were ever taken are below.
    all: u32,
    free: BTreeSet<u32>,
}

/// The open spans of a run.
#[derive(Default)]
pub(super) struct OpenSpans {
    /// By place, as far as it has had spans.
    lanes: Vec<TrackPool>,
    topics: BTreeMap<Address, u32>,
}

impl OpenSpans {
    /// The number of a topic, from 0 in the order of first use; and whether this is its first use.
    pub(super) fn number(&mut self, topic: SpanName) -> (u32, bool) {
        let place_of = |text: &'static str| text.as_ptr() as usize;
        let (file, line) = topic.source.map_or((0, 0), |source| (place_of(source.file), source.line));
        let next = self.topics.len() as u32;
        let number = *self.topics.entry((place_of(topic.name), file, line)).or_insert(next);
        (number, number == next)
    }

    /// Takes a lane of `place`.
    pub(super) fn take(&mut self, place: PlaceId) -> u32 {
        if self.lanes.len() <= place.index() {
            self.lanes.resize_with(place.index() + 1, TrackPool::default);
        }
        let lanes = &mut self.lanes[place.index()];
        lanes.free.pop_first().unwrap_or_else(|| {
            lanes.all += 1;
            lanes.all - 1
        })
    }

    /// Gives a lane of `place` back; false if nobody has it.
    pub(super) fn give_back(&mut self, place: PlaceId, lane: u32) -> bool {
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
        assert!(open.give_back(here, 1) && open.give_back(here, 0));
        assert!(!open.give_back(here, 0) && !open.give_back(here, 3) && !open.give_back(PlaceId(9), 0));
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
