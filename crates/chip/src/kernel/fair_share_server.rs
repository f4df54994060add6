//! A server shared equally by its clients: a memory controller under load.
//!
//! Each client has a job of some units, with the time of a unit without contention, and the time for which a unit
//! occupies the server. With `n` clients, a unit of each takes the longer of its own time and `n` times its time at the
//! server, so that a client is never faster than alone and the server never exceeds its capacity. Capacity that one
//! client cannot use is not given to others: the rule is `min(c, C/n)`, which does not slow down a few slow readers,
//! and many in proportion to their number.
//!
//! Invariant: calls are in the order of time; the rest of a job is kept in units of 2^-32, so a change of `n` loses
//! less than a picosecond.

use crate::quantity::Picoseconds;

/// Fraction bits of a unit.
const FRACTION_BITS: u32 = 32;

/// A job at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u64);

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of units.
    pub units: u32,
    /// Time of one unit without contention.
    pub alone: Picoseconds,
    /// Time for which one unit occupies the server.
    pub served: Picoseconds,
}

#[derive(Clone, Debug)]
struct Client {
    id: JobId,
    left: u128,
    job: Job,
}

impl Client {
    /// Returns the picoseconds of a unit with `clients` clients.
    fn pace(&self, clients: u64) -> u128 {
        u128::from(self.job.alone.0.max(self.job.served.0 * clients).max(1))
    }
}

/// One server and its clients.
#[derive(Clone, Debug, Default)]
pub struct FairShareServer {
    now: Picoseconds,
    clients: Vec<Client>,
    jobs: u64,
}

impl FairShareServer {
    /// Adds a job at `at`, which is not before the time of any earlier call.
    pub fn join(&mut self, at: Picoseconds, job: Job) -> JobId {
        self.advance(at);
        let id = JobId(self.jobs);
        self.jobs += 1;
        self.clients.push(Client { id, left: u128::from(job.units) << FRACTION_BITS, job });
        id
    }

    /// Returns the end of the next job, if no further client comes before; of jobs with the same end, the first to
    /// join.
    pub(crate) fn next_end(&self) -> Option<(Picoseconds, JobId)> {
        let clients = self.clients.len() as u64;
        let end = |client: &Client| {
            let rest = (client.left * client.pace(clients)).div_ceil(1 << FRACTION_BITS);
            (self.now + Picoseconds(rest as u64), client.id)
        };
        self.clients.iter().map(end).min()
    }

    /// Ends the next job; returns its end and id.
    pub(crate) fn end_next(&mut self) -> Option<(Picoseconds, JobId)> {
        let (at, id) = self.next_end()?;
        self.advance(at);
        self.clients.retain(|client| client.id != id);
        Some((at, id))
    }

    /// Serves all clients until `at`.
    fn advance(&mut self, at: Picoseconds) {
        let passed = u128::from((at - self.now).0) << FRACTION_BITS;
        let clients = self.clients.len() as u64;
        for client in &mut self.clients {
            client.left = client.left.saturating_sub(passed / client.pace(clients));
        }
        self.now = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tolerance for rounding in picoseconds: one for each of up to twelve changes.
    const SLACK: u64 = 12;

    /// A job and its start.
    type Coming = (u64, Job);

    fn job(units: u32, alone: u64, served: u64) -> Job {
        Job { units, alone: Picoseconds(alone), served: Picoseconds(served) }
    }

    /// Returns the end of each job.
    fn ends(jobs: &[Coming]) -> Vec<u64> {
        let (mut server, mut ends) = (FairShareServer::default(), vec![0; jobs.len()]);
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&number| jobs[number].0);
        let mut ids = Vec::new();
        let mut finish = |server: &mut FairShareServer, ids: &[(JobId, usize)], until: u64| {
            while server.next_end().is_some_and(|(at, _)| at.0 <= until) {
                let (at, id) = server.end_next().unwrap();
                let number = ids.iter().find(|(other, _)| *other == id).unwrap().1;
                ends[number] = at.0;
            }
        };
        for number in order {
            let (at, job) = jobs[number];
            finish(&mut server, &ids, at);
            ids.push((server.join(Picoseconds(at), job), number));
        }
        finish(&mut server, &ids, u64::MAX);
        ends
    }

    /// Returns the same ends, simulated picosecond by picosecond.
    fn stepwise(jobs: &[Coming]) -> Vec<u64> {
        let mut left: Vec<f64> = jobs.iter().map(|(_, job)| f64::from(job.units)).collect();
        let mut ends = vec![0; jobs.len()];
        for now in 0.. {
            let there = |number: &usize| jobs[*number].0 <= now && left[*number] > 1e-9;
            let present: Vec<usize> = (0..jobs.len()).filter(there).collect();
            if present.is_empty() && jobs.iter().all(|(at, _)| *at <= now) {
                break;
            }
            for &number in &present {
                let job = jobs[number].1;
                let pace = job.alone.0.max(job.served.0 * present.len() as u64);
                left[number] -= 1.0 / pace as f64;
                if left[number] <= 1e-9 {
                    ends[number] = now + 1;
                }
            }
        }
        ends
    }

    fn traffic() -> impl Strategy<Value = Vec<Coming>> {
        let coming = (0..400_u64, 1..6_u32, 1..60_u64, 1..40_u64)
            .prop_map(|(at, units, alone, served)| (at, job(units, alone, served.min(alone))));
        prop::collection::vec(coming, 1..12)
    }

    #[test]
    fn three_readers_of_a_third_each_do_not_notice_each_other_and_six_take_twice_as_long() {
        let readers = |count: usize| ends(&vec![(0, job(10, 300, 100)); count])[count - 1];
        assert_eq!([1, 2, 3].map(readers), [3_000; 3]);
        assert_eq!([4, 6, 12].map(readers), [4_000, 6_000, 12_000]);
    }

    #[test]
    fn who_comes_later_slows_the_rest_of_a_job_and_who_goes_frees_it() {
        // Two units of 100 each: alone until 100, then a unit of each takes 200, and the first job ends at 300.
        assert_eq!(ends(&[(0, job(2, 100, 100)), (100, job(2, 100, 100))]), [300, 400]);
    }

    #[test]
    fn a_unit_that_takes_no_time_takes_a_picosecond() {
        assert_eq!(ends(&[(5, job(3, 0, 0))]), [8]);
    }

    proptest! {
        #[test]
        fn jobs_end_as_in_a_server_that_is_watched_at_each_picosecond(jobs in traffic()) {
            for (ours, theirs) in ends(&jobs).into_iter().zip(stepwise(&jobs)) {
                prop_assert!(ours.abs_diff(theirs) <= SLACK, "{ours} and {theirs}");
            }
        }

        #[test]
        fn nobody_is_faster_than_alone_and_the_server_gives_no_more_than_it_has(jobs in traffic()) {
            let ends = ends(&jobs);
            for ((at, job), end) in jobs.iter().zip(&ends) {
                prop_assert!(*end >= at + job.alone.0 * u64::from(job.units));
            }
            // Between any arrival and any end, the jobs in between fit.
            for (from, until) in jobs.iter().flat_map(|(at, _)| ends.iter().map(move |end| (*at, *end))) {
                let within = |((at, _), end): &(&Coming, &u64)| *at >= from && **end <= until;
                let inside = jobs.iter().zip(&ends).filter(within);
                let busy: u64 = inside.map(|((_, job), _)| job.served.0 * u64::from(job.units)).sum();
                prop_assert!(busy == 0 || busy <= until - from + jobs.len() as u64, "{busy} from {from} to {until}");
            }
        }

        #[test]
        fn a_further_client_or_a_longer_job_lets_nobody_end_sooner(
            jobs in traffic(), further in traffic(), more in 1..4_u32
        ) {
            let before = ends(&jobs);
            let mut crowd = jobs.clone();
            crowd.push(further[0]);
            let mut longer = jobs.clone();
            longer[0].1.units += more;
            for after in [ends(&crowd), ends(&longer)] {
                for (before, after) in before.iter().zip(after) {
                    prop_assert!(after + SLACK >= *before, "{after} and {before}");
                }
            }
        }
    }
}
