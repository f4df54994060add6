//! A server that is given away ahead of time, a share of it at a time: a memory controller among places.
//!
//! A place says at once what a long step takes of its controller, and must hear at once when the step ends. So the
//! server cannot wait for who else comes, as [`Sharing`](super::Sharing) does: whoever asks gets the share that it can
//! use of what is left from its beginning on, and is done when that comes to its job. A job that uses a third of the
//! server does not notice two others like it; with twelve of them under way, a third at a time, the last ends when the
//! server has done all twelve, as with equal shares, and the first ends sooner.
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
pub struct Allotment {
    /// In the order of time; the first may have begun before the present.
    steps: Vec<Step>,
}

impl Allotment {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A job: when it begins, how long it takes alone, and how long of that the server is busy with it.
    type Asked = (u64, u64, u64);

    fn take(server: &mut Allotment, present: u64, (from, alone, served): Asked) -> u64 {
        server.take(Picoseconds(present), Picoseconds(from), Picoseconds(alone), Picoseconds(served)).0
    }

    /// When jobs end that ask in this order, at one moment before all of them.
    fn ends(jobs: &[Asked]) -> Vec<u64> {
        let mut server = Allotment::default();
        jobs.iter().map(|job| take(&mut server, 0, *job)).collect()
    }

    /// The same picosecond by picosecond: between which times each job ends if it is up to so many picoseconds shorter
    /// or longer than it is. A server that is full for long makes much of a little that is left.
    fn stepwise(jobs: &[Asked], slack: f64) -> Vec<(u64, u64)> {
        let mut free: Vec<f64> = Vec::new();
        let mut ends = Vec::new();
        for job in jobs {
            let [sooner, later] = [-slack, slack].map(|more| serve(&mut free.clone(), job, more));
            serve(&mut free, job, 0.0);
            ends.push((sooner, later));
        }
        ends
    }

    /// Takes one job, made longer by `more`, of what is free in each picosecond; returns when it ends.
    fn serve(free: &mut Vec<f64>, &(from, alone, served): &Asked, more: f64) -> u64 {
        let (mut left, wanted) = (alone as f64 + more, served as f64 / alone as f64);
        let mut time = from as usize;
        while left > 1e-9 {
            free.resize(free.len().max(time + 1), 1.0);
            let speed = if served == 0 { 1.0 } else { (free[time] / wanted).min(1.0) };
            let part = speed.min(left);
            free[time] -= wanted * part;
            left -= part;
            time += 1;
        }
        time as u64
    }

    fn traffic(jobs: usize) -> impl Strategy<Value = Vec<Asked>> {
        let asked = (0..400_u64, 1..300_u64, 0..200_u64);
        let asked = asked.prop_map(|(from, alone, served)| (from, alone, served.min(alone)));
        prop::collection::vec(asked, 1..jobs)
    }

    #[test]
    fn three_readers_of_a_third_each_do_not_notice_each_other_and_of_twelve_the_last_takes_four_times_as_long()
     {
        assert_eq!(ends(&[(0, 3_000, 1_000); 3]), [3_000; 3]);
        let twelve = ends(&[(0, 3_000, 1_000); 12]);
        assert_eq!((twelve[0], twelve[3], twelve[11]), (3_000, 6_000, 12_000));
    }

    #[test]
    fn rounds_of_steps_take_what_equal_shares_would_but_for_the_first() {
        // Twelve places whose steps need a third of the server; each begins its next step when it is through.
        let (mut server, mut clocks) = (Allotment::default(), [0; 12]);
        for _ in 0..12 * 50 {
            let present = *clocks.iter().min().unwrap();
            let place = clocks.iter().position(|clock| *clock == present).unwrap();
            clocks[place] = take(&mut server, present, (present, 3_000, 1_000));
        }
        let last = *clocks.iter().max().unwrap();
        assert_eq!(last, 50 * 12_000, "the server never rests");
        assert!(clocks.iter().all(|clock| *clock >= 49 * 12_000), "{clocks:?}");
    }

    #[test]
    fn a_job_that_needs_no_server_takes_its_time_and_nothing_of_it() {
        assert_eq!(ends(&[(5, 100, 100), (5, 100, 0), (5, 0, 0), (5, 10, 5)]), [105, 105, 5, 115]);
    }

    #[test]
    fn what_is_past_is_forgotten_and_the_rest_stays() {
        let mut server = Allotment::default();
        (0..1_000).for_each(|job| _ = take(&mut server, 100 * job, (100 * job, 50, 25)));
        assert!(server.steps.len() <= 4, "{server:?}");
        assert_eq!(take(&mut server, 99_900, (99_900, 50, 50)), 99_975);
    }

    proptest! {
        #[test]
        fn jobs_end_as_in_a_server_that_is_given_away_picosecond_by_picosecond(jobs in traffic(12)) {
            // Each end is rounded up, and the rest of its picosecond counts as taken.
            let slack = jobs.len() as f64;
            for ((ours, theirs), (from, alone, _)) in ends(&jobs).into_iter().zip(stepwise(&jobs, slack)).zip(&jobs) {
                prop_assert!(ours >= from + alone);
                let (sooner, later) = theirs;
                prop_assert!((sooner..=later).contains(&ours), "{ours}, not from {sooner} to {later}");
            }
        }

        #[test]
        fn the_server_gives_no_more_than_it_has_and_no_less(jobs in traffic(40)) {
            let mut server = Allotment::default();
            let ends: Vec<u64> = jobs.iter().map(|job| take(&mut server, 0, *job)).collect();
            let given: u128 = server
                .steps
                .windows(2)
                .map(|pair| u128::from(pair[0].taken) * u128::from(pair[1].from - pair[0].from))
                .sum();
            let asked: u64 = jobs.iter().map(|job| job.2).sum();
            let given = (given >> FRACTION_BITS) as u64;
            prop_assert!(given.abs_diff(asked) <= 1 + jobs.len() as u64, "{given} of {asked}");
            prop_assert!(server.steps.iter().all(|step| step.taken <= WHOLE));
            prop_assert_eq!(server.steps.last().unwrap_or(&Step::default()).taken, 0);
            // What lies within any two moments fits.
            let last = ends.iter().max().copied().unwrap_or(0);
            prop_assert!(asked <= last + jobs.len() as u64);
        }

        #[test]
        fn however_many_ask_few_steps_are_kept_and_nothing_is_lost(
            jobs in prop::collection::vec((0..100_000_u64, 1..300_u64, 1..300_u64), 200..400),
        ) {
            let mut server = Allotment::default();
            for (from, alone, served) in &jobs {
                let end = take(&mut server, 0, (*from, *alone, *served.min(alone)));
                prop_assert!(end >= from + alone);
                prop_assert!(server.steps.len() <= STEPS_MAX);
            }
            let length = |pair: &[Step]| u128::from(pair[1].from - pair[0].from);
            let given: u128 = server.steps.windows(2).map(|pair| u128::from(pair[0].taken) * length(pair)).sum();
            let asked: u64 = jobs.iter().map(|(_, alone, served)| served.min(alone)).sum();
            let given = (given >> FRACTION_BITS) as u64;
            prop_assert!(given + 2 >= asked && given <= asked + jobs.len() as u64, "{given} of {asked}");
        }
    }
}
