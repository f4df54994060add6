//! Detects steps that may walk through an undeclared region.
//!
//! A step that streams less than a cache holds, without a declared region, is assumed to walk through the same memory
//! as the last step like it, so that everything hits the cache. If it is a piece of a longer walk, nothing does. A
//! program with consecutive steps of this kind gets a warning. Invariant: the detector does not change the run.

use super::WorkCosts;
use isles_transport::{PlaceId, Work};
use std::panic::Location;

/// A line of a program that declares steps which may be pieces of one long walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndeclaredRegion {
    /// Location of the calls in the program.
    pub line: &'static Location<'static>,
    /// Bytes streamed by one step.
    pub bytes: u64,
}

/// The last kind of step of a place, and its bytes in consecutive steps.
#[derive(Clone, Copy, Debug)]
struct StepRun {
    step: UndeclaredRegion,
    bytes: u64,
}

/// Detector of steps declared without a region.
#[derive(Debug)]
pub(crate) struct UndeclaredRegionDetector {
    /// Size of the largest cache in bytes; 0 if there is none.
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

    /// Records a step of the program at `place`.
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

    /// Returns the first line whose consecutive steps exceed the cache.
    pub(crate) fn first(&self) -> Option<UndeclaredRegion> {
        self.first
    }
}
