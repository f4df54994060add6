//! Steps of which nobody knows through what they walk.
//!
//! A step that streams less than a cache holds, and says no region, is taken to walk through the same memory as the
//! last one like it, so all is found in the cache. If it was a piece of something longer, nothing is. Who says neither,
//! in one step after another, is told of it. Invariant: this changes nothing of the run.

use super::WorkCosts;
use isles_transport::{PlaceId, Work};
use std::panic::Location;

/// A line of a program that says steps which could be pieces of one long walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndeclaredRegion {
    /// Location of the calls in the program.
    pub line: &'static Location<'static>,
    /// Bytes that one streams.
    pub bytes: u64,
}

/// Last kind of step of a place, and the bytes it covered in succession.
#[derive(Clone, Copy, Debug)]
struct StepRun {
    step: UndeclaredRegion,
    bytes: u64,
}

/// Detector of steps declared without a region.
#[derive(Debug)]
pub(crate) struct UndeclaredRegionDetector {
    /// Bytes of the largest cache; 0 if nothing is found in any.
    cache: u64,
    last: Vec<Option<StepRun>>,
    first: Option<UndeclaredRegion>,
}

impl UndeclaredRegionDetector {
    pub(crate) fn new(costs: &WorkCosts, places: u32) -> UndeclaredRegionDetector {
        let cache = costs.first.bytes.max(costs.second.bytes);
        let cache = if costs.lines.is_empty() { 0 } else { cache };
        UndeclaredRegionDetector { cache, last: vec![None; places as usize], first: None }
    }

    /// `place` does a step of its program.
    #[inline]
    pub(crate) fn note(&mut self, place: PlaceId, work: &Work, line: &'static Location<'static>) {
        if work.streamed_bytes > 0 && self.first.is_none() {
            self.compare(place, work, line);
        }
    }

    fn compare(&mut self, place: PlaceId, work: &Work, line: &'static Location<'static>) {
        let (step, last) =
            (UndeclaredRegion { line, bytes: work.streamed_bytes }, &mut self.last[place.index()]);
        if work.streamed_region > 0 || step.bytes > self.cache {
            *last = None;
            return;
        }
        let before = last.filter(|last| last.step == step).map_or(0, |last| last.bytes);
        let bytes = before + step.bytes;
        *last = Some(StepRun { step, bytes });
        if bytes > self.cache {
            self.first = Some(step);
        }
    }

    /// The first line that has said more in succession than a cache holds.
    pub(crate) fn first(&self) -> Option<UndeclaredRegion> {
        self.first
    }
}
