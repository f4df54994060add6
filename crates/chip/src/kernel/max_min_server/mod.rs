//! A server that shares itself among the jobs of many owners: a memory controller among places.
//!
//! A job lasts for a time if nobody is in its way, and keeps the server busy for a part of that, evenly. While all jobs
//! under way together want more than the whole server, each gets what it wants up to one level that is the same for
//! all (max-min fairness), and is slower by as much as it gets less. Each job that begins or ends changes the level for
//! those under way, so three that want a third each do not notice each other, and twelve take four times as long.
//!
//! An owner must hear at once when its job ends, while others will still come. So an answer is when the job ends if
//! nobody else comes, and [`MaxMinServer::end_of`] answers again later, for good once the present is there. Among
//! many, an answer looks over few beginnings and ends of others, and may be sooner than that. An owner has one job:
//! what it asks for before that is over makes the job longer.
//!
//! Invariants: what has passed by the present never changes; no answer is later than the end; no job is faster than
//! alone; shares are never more than the whole.

use crate::quantity::Picoseconds;

/// Bits of a share, and of a picosecond of a job's own time, after the point.
const FRACTION_BITS: u32 = 32;

/// All of the server.
const WHOLE: u64 = 1 << FRACTION_BITS;

/// Most moments at which a job begins or ends that an answer looks over, and most jobs in all of them.
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
    /// The share that it can use.
    wanted: u64,
    /// End of the job, once it is over.
    end: Option<u64>,
}

impl Job {
    fn is_active(&self, now: u64) -> bool {
        self.end.is_none() && self.from <= now
    }

    /// Returns the own time that passes in each picosecond, if nobody gets more than `level`.
    fn speed(&self, level: u64) -> u64 {
        if self.wanted <= level {
            return WHOLE;
        }
        ((u128::from(level) << FRACTION_BITS) / u128::from(self.wanted)) as u64
    }

    /// Returns the end of the job if it goes on at this speed.
    fn end_at(&self, now: u64, speed: u64) -> u64 {
        let end = u128::from(now.max(self.from)) + self.left.div_ceil(u128::from(speed.max(1)));
        u64::try_from(end).expect(TOO_LATE)
    }
}

/// The jobs of a server at one moment.
#[derive(Clone, Debug, Default)]
struct Jobs {
    now: u64,
    /// Those under way, those to come, and those over whose owners have not heard of it.
    all: Vec<Job>,
}

impl Jobs {
    /// The share up to which each active job gets what it wants.
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

    /// Goes on to the next moment at which a job begins or ends, or to `until` if that is sooner.
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

    /// A time before which the first job, which is not over, does not end, whoever comes or goes.
    ///
    /// While it gets some, each other that is under way gets as much, or what it can use: so until it ends, all of them
    /// have had their part of that, or are through, and the server has had the time for it.
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

/// Time that a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTime {
    /// The whole of it, if nobody is in its way.
    pub alone: Picoseconds,
    /// The part of it for which it keeps the server busy.
    pub served: Picoseconds,
}

/// Server that shares itself among the jobs of many owners.
#[derive(Clone, Debug, Default)]
pub struct MaxMinServer {
    /// As of the present.
    jobs: Jobs,
    /// The same to come, while a question is answered; kept for its memory.
    ahead: Jobs,
    has_saturated: bool,
    /// Total time that jobs have kept the server busy, or will.
    served: u64,
}

impl MaxMinServer {
    /// Begins a job of `owner` at `from`; returns when it ends if nobody else comes.
    ///
    /// `present` is a time before which nobody will ask any more; it is not after `from`.
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
        // Until the earlier job ends nobody but others are in the way; what lies between is a pause of this owner.
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

    /// Returns the end of the job of `owner`, past or, if nobody else comes, future. `None` if it has no job, or has
    /// been told of its end before.
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

    /// Returns the time that all requests so far keep the server busy.
    pub fn served(&self) -> Picoseconds {
        Picoseconds(self.served)
    }

    /// Returns `true` if owners have ever wanted more together than there is.
    pub fn has_saturated(&self) -> bool {
        self.has_saturated
    }

    /// Returns the end of the job of `owner`, which is not over, if nobody else comes.
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

/// Returns the share of the server that a job can use which keeps it `busy` for so long of its own time `alone`.
fn share(busy: u128, alone: u128) -> u64 {
    // Both are times in 2^-32 ps; half of these bits are enough for a share, and the product fits.
    let (busy, alone) = (busy >> (FRACTION_BITS / 2), (alone >> (FRACTION_BITS / 2)).max(1));
    (((busy << FRACTION_BITS) / alone) as u64).min(WHOLE)
}

#[cfg(test)]
mod tests;
