//! A server that is given away ahead of time, a share of it at a time: a memory controller among places.
//!
//! A place says at once what a long step takes of its controller, and must hear at once when the step ends. So the
//! server cannot wait for who else comes, as [`FairShareServer`](super::Sharing) does: whoever asks gets the share that
//! it can use of what is left from its beginning on, and is done when that comes to its job. A job that uses a third of
//! the server does not notice two others like it; with twelve of them under way, a third at a time, the last ends when
//! the server has done all twelve, as with equal shares, and the first ends sooner.
//!
//! What is given away is kept as steps, until they are past; no more than [`STEPS_MAX`], however many ask. Of more, two
//! neighbours become one with the share that both had together.
//! Invariant: no share is above the whole, the last step is free, and nothing that was promised changes.

use crate::quantity::Picoseconds;

/// Most steps that are kept.
const STEPS_MAX: usize = 64;

/// Bits of a share after the point.
const FRACTION_BITS: u32 = 32;

/// What happens at the end of all time.
const TOO_LATE: &str = "a core's clock is past 213 days";

/// All of the server.
const WHOLE: u64 = 1 << FRACTION_BITS;

/// From a time on, until the next step, so much of the server is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    from: u64,
    taken: u64,
}

/// What is given away of one server.
#[derive(Clone, Debug, Default)]
pub struct FractionalReservations {
    /// In the order of time; the first may have begun before the present.
    steps: Vec<Step>,
}

impl FractionalReservations {
    /// Takes a job that begins at `from`, lasts `alone` if nobody is in its way, and keeps the server busy for `served`
    /// of that, evenly. Returns when it ends.
    ///
    /// `present` is a time before which nobody will ask any more; it is not after `from`.
    pub fn take(
        &mut self,
        present: Picoseconds,
        from: Picoseconds,
        alone: Picoseconds,
        served: Picoseconds,
    ) -> Picoseconds {
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        let alone = alone.max(served);
        if served == Picoseconds::ZERO {
            return Picoseconds(from.0.checked_add(alone.0).expect(TOO_LATE));
        }
        self.forget(present.0);
        let wanted = ((u128::from(served.0) << FRACTION_BITS) / u128::from(alone.0)) as u64;
        let first = self.split(from.0);
        let end = self.give(first, u128::from(alone.0) << FRACTION_BITS, wanted);
        self.steps.dedup_by_key(|step| step.taken);
        while self.steps.len() > STEPS_MAX {
            self.join();
        }
        Picoseconds(end)
    }

    /// Forgets what is past.
    fn forget(&mut self, present: u64) {
        let past = self.steps.iter().skip(1).take_while(|step| step.from <= present).count();
        self.steps.drain(..past);
    }

    /// Gives from the step `index` on up to `wanted`, until `left` is done: a job's own time, in 2^-32 ps. Returns when
    /// that is.
    fn give(&mut self, mut index: usize, mut left: u128, wanted: u64) -> u64 {
        loop {
            let Step { from, taken } = self.steps[index];
            let share = wanted.min(WHOLE - taken);
            // What passes of the job's own time in each picosecond.
            let speed = if share == wanted {
                u128::from(WHOLE)
            } else {
                (u128::from(share) << FRACTION_BITS) / u128::from(wanted)
            };
            let next = self.steps.get(index + 1).map(|next| next.from);
            let passes = next.map(|next| u128::from(next - from) * speed).filter(|passes| *passes < left);
            if let Some(passes) = passes {
                self.steps[index].taken += share;
                (left, index) = (left - passes, index + 1);
                continue;
            }
            let rest = left.div_ceil(speed);
            let end = u128::from(from) + rest;
            let end = u64::try_from(end).expect(TOO_LATE);
            self.split(end);
            self.steps[index].taken += share;
            return end;
        }
    }

    /// Makes a step begin at `time`, which is not before the first if there is one; which it is.
    fn split(&mut self, time: u64) -> usize {
        let index = self.steps.partition_point(|step| step.from < time);
        if self.steps.get(index).is_none_or(|step| step.from > time) {
            let taken = if index > 0 { self.steps[index - 1].taken } else { 0 };
            self.steps.insert(index, Step { from: time, taken });
        }
        index
    }

    /// Joins the two neighbouring steps that are shortest together.
    fn join(&mut self) {
        let length = |index: usize| self.steps[index + 2].from - self.steps[index].from;
        let index = (0..self.steps.len() - 2).min_by_key(|index| length(*index)).unwrap_or(0);
        let [first, second, third] = [0, 1, 2].map(|offset| self.steps[index + offset]);
        let taken = |step: Step, end: Step| u128::from(step.taken) * u128::from(end.from - step.from);
        let sum = taken(first, second) + taken(second, third);
        self.steps[index].taken = sum.div_ceil(u128::from(third.from - first.from)) as u64;
        self.steps.remove(index + 1);
    }
}

#[cfg(test)]
mod tests;
