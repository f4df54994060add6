//! Tracks places that have not answered, and jobs that wait for them.
//!
//! Pure: the job server passes the time and sends the requests. Invariant: a job in transition for longer than
//! [`UNRESPONSIVE_AFTER`] has a text with the reason.

use isles_protocol::job::JobState;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time without an answer after which a place is silent: less than the five seconds within which it must be reported,
/// and more than the scheduling delays of a busy host.
pub(crate) const UNRESPONSIVE_AFTER: Duration = Duration::from_secs(3);

/// Times since which each place owes an answer, and each job is in transition.
#[derive(Debug, Default)]
pub(crate) struct ResponseTracker {
    pending: BTreeMap<usize, Instant>,
    processes: BTreeMap<usize, u32>,
    transitions: BTreeMap<u64, (JobState, Instant)>,
}

impl ResponseTracker {
    /// Records a request to a place; returns `true` if it owes no answer yet, so that the request must be sent.
    pub(crate) fn ask(&mut self, place: usize, now: Instant) -> bool {
        let is_free = !self.pending.contains_key(&place);
        self.pending.entry(place).or_insert(now);
        is_free
    }

    /// Records the answer of a place, and its process.
    pub(crate) fn answered(&mut self, place: usize, process: u32) {
        self.pending.remove(&place);
        self.processes.insert(place, process);
    }

    /// Records the death of a place, which owes no answer.
    pub(crate) fn died(&mut self, place: usize) {
        self.pending.remove(&place);
        self.processes.remove(&place);
    }

    /// Returns the process of a place, if it has ever answered.
    pub(crate) fn process(&self, place: usize) -> Option<u32> {
        self.processes.get(&place).copied()
    }

    /// Records the states of all jobs.
    pub(crate) fn record_states(&mut self, jobs: impl Iterator<Item = (u64, JobState)>, now: Instant) {
        let before = std::mem::take(&mut self.transitions);
        for (id, state) in jobs.filter(|(_, state)| is_transitional(*state)) {
            let since = before.get(&id).filter(|(earlier, _)| *earlier == state);
            self.transitions.insert(id, (state, since.map_or(now, |(_, since)| *since)));
        }
    }

    /// Returns the number of places that owe an answer.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns the places that are silent.
    pub(crate) fn unresponsive(&self, now: Instant) -> Vec<usize> {
        let is_silent = |(_, asked): &(&usize, &Instant)| now.duration_since(**asked) >= UNRESPONSIVE_AFTER;
        self.pending.iter().filter(is_silent).map(|(place, _)| *place).collect()
    }

    /// Returns a description of a silent place, or `None` if the place is not silent.
    pub(crate) fn unresponsive_text(&self, place: usize, now: Instant) -> Option<String> {
        let silence = now.duration_since(*self.pending.get(&place)?);
        let is_stopped = self.process(place).filter(|process| is_stopped(*process));
        let why = match is_stopped {
            Some(process) => format!("its process {process} is stopped"),
            None => "it is stopped, or a step of a job there does not return".to_owned(),
        };
        let text = || format!("place {place} has not answered for {} s: {why}", silence.as_secs());
        (silence >= UNRESPONSIVE_AFTER).then(text)
    }

    /// Returns the reason for which a job waits, if it waits unusually long.
    pub(crate) fn wait_text(&self, id: u64, place: usize, now: Instant) -> Option<String> {
        let of_place = self.unresponsive_text(place, now);
        of_place.or_else(|| {
            let (state, since) = self.transitions.get(&id)?;
            let time = now.duration_since(*since);
            (time >= UNRESPONSIVE_AFTER)
                .then(|| format!("it is {state} at place {place} for {} s", time.as_secs()))
        })
    }
}

fn is_transitional(state: JobState) -> bool {
    use JobState::{Checkpointing, Creating, Moving, Stopping};
    matches!(state, Creating | Checkpointing | Moving | Stopping)
}

/// Returns `true` if the system reports a process of this host as stopped.
fn is_stopped(process: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_some_and(|(_, after)| after.trim_start().starts_with('T'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_owes_an_answer_is_named_in_time_and_one_that_answers_or_is_dead_is_not() {
        let (mut responses, begin) = (ResponseTracker::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert!(responses.ask(1, at(0)) && responses.ask(2, at(0)) && responses.ask(3, at(0)));
        responses.answered(2, u32::MAX);
        responses.died(3);
        // A place gets one request, however often it is checked.
        assert!(!responses.ask(1, at(1)) && responses.ask(2, at(2)));
        assert!(responses.unresponsive(at(2)).is_empty());
        assert_eq!(responses.unresponsive(at(4)), [1]);
        let text = responses.wait_text(7, 1, at(4)).unwrap();
        assert!(text.starts_with("place 1 has not answered for 4 s: it is stopped, or "), "{text}");
        assert_eq!(responses.wait_text(7, 3, at(4)), None);
        responses.answered(1, u32::MAX);
        assert_eq!(responses.unresponsive(at(9)), [2]);
    }

    #[test]
    fn each_job_that_stays_on_its_way_says_so_also_if_its_place_answers() {
        let (mut responses, begin) = (ResponseTracker::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for state in JobState::ALL {
            responses.record_states([(1, state)].into_iter(), at(0));
            responses.record_states([(1, state)].into_iter(), at(4));
            let stays = !state.is_active() || matches!(state, JobState::Running | JobState::Paused);
            assert_eq!(responses.wait_text(1, 0, at(4)).is_none(), stays, "{state}");
            // A job that has just changed its state does not wait unusually long.
            responses.record_states([(1, JobState::Running)].into_iter(), at(4));
            assert_eq!(responses.wait_text(1, 0, at(4)), None);
        }
    }
}
