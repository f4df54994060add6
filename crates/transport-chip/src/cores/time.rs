//! The time of a core: what moves its clock, and what it is booked as.
//!
//! It does not know what a place computes or waits for. Changes of rates lie in `gear_change`, which is asked whenever
//! one may come before the end. Invariant: a clock moves only forward, and all that it moves is in the ledger.

use super::{Cores, PlacedCore};
use crate::energy::meter::NEVER;
use crate::idle_policy::IdlePolicy;
use crate::record::Recorder;
use crate::report::TimeCategory;
use isles_chip::quantity::{Cycles, Picoseconds};
use isles_transport::PlaceId;

impl PlacedCore {
    /// Spends `time`, unless a change lies before its end: then it gives that end.
    #[inline(always)]
    pub(super) fn spend(
        &mut self,
        place: PlaceId,
        time: Picoseconds,
        category: TimeCategory,
        recorder: &mut Option<Box<Recorder>>,
    ) -> Option<Picoseconds> {
        let start = self.now;
        let end = end(place, start, time);
        if end >= self.next_shift {
            return Some(end);
        }
        self.now = end;
        self.ledger.add(category, time);
        if let Some(recorder) = recorder {
            recorder.spend(place, start, end, category);
        }
        None
    }
}

/// When `place` has spent so long from `start` on.
#[inline(always)]
pub(super) fn end(place: PlaceId, start: Picoseconds, time: Picoseconds) -> Picoseconds {
    start.0.checked_add(time.0).map_or_else(|| beyond(place, time), Picoseconds)
}

/// No clock goes further than 64 bits of picoseconds: a program that asks for more is told where.
#[cold]
fn beyond(place: PlaceId, time: Picoseconds) -> ! {
    panic!("the core of {place} cannot work or wait for {time} more: a modelled run ends before 213 days")
}

impl Cores {
    /// The time at the core of `place`.
    #[inline]
    pub(crate) fn now(&self, place: PlaceId) -> Picoseconds {
        self.cores[place.index()].now
    }

    /// Lets `place` compute.
    #[inline]
    pub(crate) fn compute(&mut self, place: PlaceId, cycles: u64, category: TimeCategory) {
        let core = &mut self.cores[place.index()];
        if core.next_shift != NEVER {
            return self.compute_across(place, Cycles(cycles), category);
        }
        let time = core.clock.advance(Cycles(cycles));
        core.spend(place, time, category, &mut self.recorder);
    }

    /// What `cycles` cycles of its core take `place`, to the picosecond below.
    pub(crate) fn cycles(&self, place: PlaceId, cycles: u64) -> Picoseconds {
        self.cores[place.index()].clock.length(Cycles(cycles))
    }

    /// Lets `place` wait until `time`, if that is to come.
    #[inline]
    pub(crate) fn wait_until(&mut self, place: PlaceId, time: Picoseconds) {
        let now = self.now(place);
        if time > now {
            let category =
                if self.is_interrupt_driven { TimeCategory::Sleeping } else { TimeCategory::Waiting };
            self.spend(place, time - now, category);
        }
    }

    /// Books what a waiting `place` is halted of the time until `time`, if a look takes it `look`. All naps are booked
    /// before all looks.
    pub(crate) fn halt(&mut self, place: PlaceId, time: Picoseconds, look: Picoseconds) {
        let wait = Picoseconds(time.0.saturating_sub(self.now(place).0));
        self.look = look;
        let halted = self.rest.halted(wait, look);
        self.spend(place, halted, TimeCategory::Sleeping);
    }

    /// What a place does for the most part while it waits.
    pub(crate) fn idle(&self) -> TimeCategory {
        if self.rest == IdlePolicy::Poll && !self.is_interrupt_driven {
            TimeCategory::Waiting
        } else {
            TimeCategory::Sleeping
        }
    }

    /// Lets `place` spend `time`.
    #[inline]
    pub(crate) fn spend(&mut self, place: PlaceId, time: Picoseconds, category: TimeCategory) {
        let core = &mut self.cores[place.index()];
        if let Some(end) = core.spend(place, time, category, &mut self.recorder) {
            self.spend_across(place, end, category);
        }
    }
}
