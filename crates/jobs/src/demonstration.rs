//! Demonstration jobs that start and end automatically, determined by a seed.
//!
//! Invariant: it controls only its own jobs.

use crate::request::{JobOrder, JobReply, JobRequest};
use crate::runner::Runnable;
use crate::store::JobSpec;
use crate::table::ManagedJob;
use isles::Random;
use isles_protocol::job::JobState;
use std::collections::BTreeSet;
use std::time::Duration;

/// Number of jobs of a demonstration.
const JOBS: usize = 16;

/// Interval between two requests.
const EVERY: Duration = Duration::from_millis(700);

/// Generator of the demonstration's requests.
pub(crate) struct Demonstration {
    random: Random,
    due: Duration,
    /// The jobs that it has created.
    own: BTreeSet<u64>,
    /// Number of jobs created so far.
    made: usize,
}

impl Demonstration {
    pub(crate) fn new(seed: u64) -> Demonstration {
        Demonstration { random: Random::new(seed), due: Duration::ZERO, own: BTreeSet::new(), made: 0 }
    }

    /// Returns the request to make at `time`, if any.
    pub(crate) fn next<'a>(
        &mut self,
        time: Duration,
        jobs: impl Iterator<Item = (u64, &'a ManagedJob)>,
    ) -> Option<JobRequest> {
        let jobs: Vec<_> =
            jobs.filter(|(id, _)| self.own.contains(id)).map(|(id, job)| (id, job.state)).collect();
        if jobs.len() < JOBS {
            self.made += 1;
            return Some(JobRequest::Begin { spec: self.spec(self.made), at: None });
        }
        if time < self.due {
            return None;
        }
        self.due = time + EVERY;
        let (job, state) = jobs[self.random.index(jobs.len())];
        let order = match state {
            JobState::Running => match self.random.below(10) {
                0..4 => JobOrder::Move { to: None },
                4..7 => JobOrder::Pause,
                7..9 => JobOrder::Checkpoint,
                _ => JobOrder::Kill,
            },
            JobState::Paused => JobOrder::Resume,
            JobState::Checkpointed | JobState::Stopped => JobOrder::Start { at: None },
            JobState::Finished | JobState::Failed => JobOrder::Remove,
            _ => return None,
        };
        Some(JobRequest::Order { job, order })
    }

    /// Records the reply to the last request.
    pub(crate) fn record_reply(&mut self, reply: &JobReply) {
        if let JobReply::Job { job, .. } = reply {
            self.own.insert(job.id);
        }
    }

    /// Returns the jobs that it has created, some of which may have been removed.
    pub(crate) fn own(&self) -> impl Iterator<Item = u64> {
        self.own.iter().copied()
    }

    fn spec(&mut self, number: usize) -> JobSpec {
        let (kind, size) = match self.random.below(4) {
            0 => ("pi", 1_u64 << self.random.within(&(24..=30))),
            1 => ("sum", 1 << self.random.within(&(24..=28))),
            2 => ("memory", self.random.within(&(1..=64))),
            _ => ("count", self.random.within(&(1_000..=100_000))),
        };
        let runnable = Runnable::Task(kind.to_owned(), vec![size.to_string()]);
        JobSpec::new(format!("{kind} {number}"), runnable)
    }
}
