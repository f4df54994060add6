//! A server shared by jobs of many owners: a memory controller used by places.
//!
//! A job has a duration without contention, and occupies the server evenly for a part of it. While the active jobs
//! together demand more than the whole server, each gets its demand up to a common level (max-min fairness), and slows
//! down in proportion. Each start or end of a job changes the level, so three jobs that demand a third each do not
//! affect each other, and twelve take four times as long.
//!
//! An owner needs the end of its job at once, although others may still come. So the first answer is the end if no
//! other job comes, and [`MaxMinServer::end_of`] answers again later; the answer is final once the present has reached
//! it. With many jobs, an answer considers only a few starts and ends of others, and may be earlier. An owner has one
//! job: further requests before its end extend it.
//!
//! Invariants: the past never changes; no answer is later than the actual end; no job is faster than without
//! contention; shares never exceed the whole.

use crate::quantity::Picoseconds;

/// Fraction bits of a share, and of a picosecond of a job's own time.
const FRACTION_BITS: u32 = 32;

/// The share of the whole server.
const WHOLE: u64 = 1 << FRACTION_BITS;

/// Maximum numbers of starts and ends of jobs that an answer considers, and of jobs in total at them.
const MOMENTS_MAX: usize = 32;
const LOOKS_MAX: usize = 1_024;

/// Message when a clock overflows.
const TOO_LATE: &str = "a core's clock is past 213 days";

/// Request of an owner.
#[derive(Clone, Copy, Debug)]
struct Job {
    owner: u32,
    /// Start of the job.
    from: u64,
    /// Remaining own time, in 2^-32 ps.
    left: u128,
    /// The share that it demands.
    wanted: u64,
    /// End of the job, once it is over.
    end: Option<u64>,
}

impl Job {
    fn is_active(&self, now: u64) -> bool {
        self.end.is_none() && self.from <= now
    }

    /// Returns the own time per picosecond, if no job gets more than `level`.
    fn speed(&self, level: u64) -> u64 {
        if self.wanted <= level {
            return WHOLE;
        }
        ((u128::from(level) << FRACTION_BITS) / u128::from(self.wanted)) as u64
    }

    /// Returns the end of the job at this speed.
    fn end_at(&self, now: u64, speed: u64) -> u64 {
        let end = u128::from(now.max(self.from)) + self.left.div_ceil(u128::from(speed.max(1)));
        u64::try_from(end).expect(TOO_LATE)
    }
}

/// The jobs of a server at one time.
#[derive(Clone, Debug, Default)]
struct Jobs {
    now: u64,
    /// Active jobs, future jobs, and finished jobs whose end has not been queried.
    all: Vec<Job>,
}

impl Jobs {
    /// Returns the level up to which each active job gets its demand.
    fn level(&self) -> u64 {
        let wants = || self.all.iter().filter(|job| job.is_active(self.now)).map(|job| job.wanted);
        if wants().sum::<u64>() <= WHOLE {
            return WHOLE;
        }
        let mut level = 0;
        loop {
            let (small, large) = wants().fold((0, 0), |(small, large), wanted| {
                if wanted <= level { (small + wanted, large) } else { (small, large + 1) }
            });
            let next = (WHOLE - small).checked_div(large).unwrap_or(WHOLE);
            if next <= level {
                return level;
            }
            level = next;
        }
    }

    /// Advances to the next start or end of a job, or to `until` if that is sooner.
    fn advance(&mut self, until: u64) {
        let (now, level) = (self.now, self.level());
        let moment = |job: &Job| match job.end {
            Some(_) => u64::MAX,
            None if job.from > now => job.from,
            None => job.end_at(now, job.speed(level)),
        };
        let next = self.all.iter().map(moment).fold(until, u64::min);
        for job in self.all.iter_mut().filter(|job| job.is_active(now)) {
            let passed = u128::from(next - now) * u128::from(job.speed(level));
            job.left = job.left.saturating_sub(passed);
            job.end = (job.left == 0).then_some(next);
        }
        self.now = next;
    }

    /// Returns a time before which the first job, which is not over, does not end, whatever jobs start or end.
    ///
    /// While it is served, each other active job gets the same share, or its smaller demand. So until its end, each of
    /// them has had that share or has finished, and the server has spent the time for it.
    fn bound(&self) -> u64 {
        let own = &self.all[0];
        let half = FRACTION_BITS / 2;
        let served = |job: &Job| ((job.left >> half) * u128::from(job.wanted)) >> half;
        let (rest, wanted) = (served(own), u128::from(own.wanted.max(1)));
        let beside = |job: &Job| {
            let proportional =
                if job.wanted >= own.wanted { rest } else { rest / wanted * u128::from(job.wanted) };
            proportional.min(served(job))
        };
        let now = self.now.max(own.from);
        let busy: u128 = self.all.iter().filter(|job| job.is_active(self.now)).map(beside).sum();
        let shared = u64::try_from(u128::from(now) + (busy >> FRACTION_BITS)).expect(TOO_LATE);
        own.end_at(self.now, WHOLE).max(if own.is_active(self.now) { shared } else { 0 })
    }

    fn of(&self, owner: u32) -> Option<usize> {
        self.all.iter().position(|job| job.owner == owner)
    }
}

/// Duration of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTime {
    /// Duration without contention.
    pub alone: Picoseconds,
    /// Part of it that occupies the server.
    pub served: Picoseconds,
}

/// A server shared by jobs of many owners.
#[derive(Clone, Debug, Default)]
pub struct MaxMinServer {
    /// The jobs at the present.
    jobs: Jobs,
    /// The simulated future while a query is answered; kept to reuse its memory.
    ahead: Jobs,
    has_saturated: bool,
    /// Total time for which all jobs occupy the server.
    served: u64,
}

impl MaxMinServer {
    /// Starts a job of `owner` at `from`. Returns its end if no other job comes.
    ///
    /// `present` is a time before which there will be no more requests; it is not after `from`.
    pub fn take(
        &mut self,
        present: Picoseconds,
        owner: u32,
        from: Picoseconds,
        length: JobTime,
    ) -> Picoseconds {
        let JobTime { alone, served } = length;
        debug_assert!(present <= from, "a request from the past: {present} and {from}");
        self.served += served.0;
        let before = self.end_of(present, owner).filter(|end| *end > present);
        // The time between the end of the earlier job and this one is a pause of the owner.
        let pause = before.map_or(0, |end| from.0.saturating_sub(end.0));
        let end = from.0.checked_add(alone.max(served).0).expect(TOO_LATE);
        if served == Picoseconds::ZERO && before.is_none() {
            return Picoseconds(end);
        }
        let alone = u128::from(end - from.0 + pause) << FRACTION_BITS;
        let busy = u128::from(served.0) << FRACTION_BITS;
        match self.jobs.of(owner) {
            Some(index) => {
                let job = &mut self.jobs.all[index];
                let half = FRACTION_BITS / 2;
                let busy = busy + (((job.left >> half) * u128::from(job.wanted)) >> half);
                job.left += alone;
                job.wanted = share(busy, job.left);
            }
            None => {
                let wanted = share(busy, alone);
                self.jobs.all.push(Job { owner, from: from.0, left: alone, wanted, end: None });
            }
        }
        self.look_ahead(owner)
    }

    /// Returns the past end of the job of `owner`, or the future end if no other job comes. `None` if it has no job, or
    /// its past end was returned before.
    pub fn end_of(&mut self, present: Picoseconds, owner: u32) -> Option<Picoseconds> {
        while self.jobs.now < present.0 {
            self.jobs.advance(present.0);
        }
        let index = self.jobs.of(owner)?;
        if let Some(end) = self.jobs.all[index].end {
            self.jobs.all.swap_remove(index);
            return Some(Picoseconds(end));
        }
        Some(self.look_ahead(owner))
    }

    /// Returns the time for which all requests so far occupy the server.
    pub fn served(&self) -> Picoseconds {
        Picoseconds(self.served)
    }

    /// Returns `true` if the total demand has ever exceeded the server.
    pub fn has_saturated(&self) -> bool {
        self.has_saturated
    }

    /// Returns the end of the unfinished job of `owner`, if no other job comes.
    fn look_ahead(&mut self, owner: u32) -> Picoseconds {
        let live = || self.jobs.all.iter().filter(|job| job.end.is_none());
        let own = *live().find(|job| job.owner == owner).expect("the owner has a job");
        if live().map(|job| job.wanted).sum::<u64>() <= WHOLE {
            return Picoseconds(own.end_at(self.jobs.now, WHOLE));
        }
        self.has_saturated = true;
        let ahead = &mut self.ahead;
        ahead.now = self.jobs.now;
        ahead.all.clear();
        ahead.all.push(own);
        ahead.all.extend(live().filter(|job| job.owner != owner));
        for _ in 0..MOMENTS_MAX.min(LOOKS_MAX / ahead.all.len()) {
            ahead.advance(u64::MAX);
            if let Some(end) = ahead.all[0].end {
                return Picoseconds(end);
            }
            ahead.all.retain(|job| job.end.is_none());
        }
        Picoseconds(ahead.bound())
    }
}

/// Returns the share demanded by a job that occupies the server for `busy` of its own time `alone`.
fn share(busy: u128, alone: u128) -> u64 {
    // Both are times in units of 2^-32 ps; half of these bits suffice for a share, and the product fits.
    let (busy, alone) = (busy >> (FRACTION_BITS / 2), (alone >> (FRACTION_BITS / 2)).max(1));
    (((busy << FRACTION_BITS) / alone) as u64).min(WHOLE)
}

#[cfg(test)]
mod tests;
