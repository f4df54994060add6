//! The state of a run at one place: its bag, its balancer and its counts.
//!
//! Joins the pure balancer and the program's bag. Invariant: a bag with tasks has a worker, or the method that added
//! them has returned that one must be started.

use super::Bag;
use super::recovery::PlaceBackups;
use super::report::PlaceBalance;
use crate::{Error, ErrorKind, Random, Result};
use isles_protocol::balance::backup::{EncodedBag, StartedSave};
use isles_protocol::balance::{Balancer, Batch, Parameters, StealKind};
use isles_runtime::wire::to_bytes;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::time::Duration;

/// Time between two saves of a busy place.
const SAVES_APART: Duration = Duration::from_millis(100);

/// A part of a bag in transit.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Part<B> {
    bag: B,
    /// Sequence number between its giver and its thief; 0 unless the run is resilient.
    number: u64,
}

/// One place of a run.
pub(super) struct PlaceBag<B> {
    own: usize,
    parameters: Parameters,
    /// The tasks and the results; `None` until the first tasks arrive.
    pub(super) bag: Option<B>,
    /// `true` if the last batch left no task and none has arrived since.
    is_empty: bool,
    balancer: Balancer,
    random: Random,
    pub(super) batch: Batch,
    pub(super) counts: PlaceBalance,
    /// Start of the worker's current busy period; `None` while it has no tasks.
    busy_since: Option<Duration>,
    /// Time at which the worker last asked for tasks.
    asked_at: Duration,
    /// The place that gave the tasks to an empty bag, until one of them has run or a part was given on.
    unproven: Option<usize>,
    /// State of the backups, if the run is resilient.
    backups: Option<PlaceBackups>,
    saved_at: Duration,
}

impl<B: Bag> PlaceBag<B> {
    /// Makes the idle bag of the place `own`, one of `members`, which are in order.
    pub(super) fn new(
        own: usize,
        members: &[usize],
        parameters: &Parameters,
        backups: Option<PlaceBackups>,
    ) -> PlaceBag<B> {
        let mut random = Random::stream(parameters.seed, own as u64);
        PlaceBag {
            own,
            parameters: parameters.clone(),
            bag: None,
            is_empty: false,
            balancer: Balancer::new(own, members, parameters, |below| random.index(below)),
            random,
            batch: Batch::new(parameters.batch, members.len() == 1),
            counts: PlaceBalance::default(),
            busy_since: None,
            asked_at: Duration::ZERO,
            unproven: None,
            backups,
            saved_at: Duration::ZERO,
        }
    }

    fn merge(&mut self, bag: B, now: Duration) {
        self.is_empty = false;
        match &mut self.bag {
            Some(own) => own.merge(bag),
            own => *own = Some(bag),
        }
        self.busy_since.get_or_insert(now);
    }

    fn merge_part(&mut self, giver: usize, part: Part<B>, now: Duration) {
        if self.busy_since.is_none() {
            self.unproven = Some(giver);
        }
        self.merge(part.bag, now);
        if let Some(backups) = &self.backups {
            backups.lock().receive(giver, part.number);
        }
    }

    /// Adds tasks that a lifeline gives. Returns `true` if a worker must be started.
    #[must_use = "tasks without a worker stay for ever"]
    pub(super) fn accept(&mut self, giver: usize, part: Part<B>, now: Duration) -> bool {
        self.counts.gifts += 1;
        self.merge_part(giver, part, now);
        self.balancer.accept(giver)
    }

    /// Splits off a part of the bag for `thief`, if there are enough tasks.
    ///
    /// # Errors
    /// The run is resilient, and the part cannot be written.
    fn split(&mut self, thief: usize) -> Result<Option<Part<B>>> {
        let Some(bag) = self.bag.as_mut().and_then(Bag::split) else { return Ok(None) };
        self.unproven = None;
        self.counts.given += 1;
        let number = match &self.backups {
            Some(backups) => backups.lock().give(thief, to_bytes(&bag)?),
            None => 0,
        };
        Ok(Some(Part { bag, number }))
    }

    /// Processes one batch and returns its number of tasks; 0 if the bag is empty.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the bag violates its contract, so that the run would not end.
    pub(super) fn process(&mut self) -> Result<usize> {
        let Some(bag) = self.bag.as_mut().filter(|_| !self.is_empty) else { return Ok(0) };
        let size = self.batch.size();
        let tasks = bag.process(size);
        let giver = self.unproven.take().filter(|_| tasks == 0);
        if giver.is_some() || tasks > size {
            return Err(Error::new(ErrorKind::Misused, broken_promise::<B>(giver, tasks, size)));
        }
        self.is_empty = tasks < size;
        self.counts.batches += u64::from(tasks > 0);
        self.counts.tasks += tasks as u64;
        Ok(tasks)
    }

    /// Returns the next thief that waits and its part; `None` if none waits or there are too few tasks. Dead thieves
    /// are dropped.
    ///
    /// # Errors
    /// The run is resilient, and the part cannot be written.
    pub(super) fn next_gift(&mut self, is_dead: impl Fn(usize) -> bool) -> Result<Option<(usize, Part<B>)>> {
        while let Some(thief) = self.balancer.next_thief() {
            if is_dead(thief) {
                self.balancer.remove_thief();
                continue;
            }
            let Some(part) = self.split(thief)? else { break };
            self.balancer.remove_thief();
            return Ok(Some((thief, part)));
        }
        Ok(None)
    }

    /// Returns the place that the worker of an empty bag asks for tasks next; `None` ends the worker.
    pub(super) fn ask(
        &mut self,
        now: Duration,
        is_dead: impl Fn(usize) -> bool,
    ) -> Option<(usize, StealKind)> {
        if let Some(since) = self.busy_since.take() {
            self.counts.busy += now.saturating_sub(since);
        }
        let next = self.balancer.ask(|below| self.random.index(below), is_dead);
        self.asked_at = now;
        match next {
            Some((_, StealKind::Random)) => self.counts.asked += 1,
            Some((_, StealKind::Lifeline)) => self.counts.lifelines_asked += 1,
            None => {}
        }
        next
    }

    /// Answers the request of `thief` with a part of the bag, if there are enough tasks. Otherwise a lifeline request
    /// is remembered.
    ///
    /// # Errors
    /// The run is resilient, and the part cannot be written.
    pub(super) fn asked(&mut self, thief: usize, kind: StealKind) -> Result<Option<Part<B>>> {
        self.batch.asked();
        let part = self.split(thief)?;
        if part.is_none() {
            self.balancer.refused(thief, kind);
        }
        Ok(part)
    }

    /// Handles the answer of `victim` to a request of the worker, which is still running.
    pub(super) fn answered(&mut self, victim: usize, kind: StealKind, part: Option<Part<B>>, now: Duration) {
        let Some(part) = part else { return };
        match kind {
            StealKind::Random => {
                self.counts.stolen += 1;
                self.counts.stealing += now.saturating_sub(self.asked_at);
            }
            StealKind::Lifeline => self.counts.gifts += 1,
        }
        self.balancer.answered(victim, kind);
        self.merge_part(victim, part, now);
    }

    /// Returns `true` if the run is resilient.
    pub(super) fn is_resilient(&self) -> bool {
        self.backups.is_some()
    }

    /// Returns `true` if many parts have arrived since the last save.
    pub(super) fn has_many_unsaved(&self) -> bool {
        self.backups.as_ref().is_some_and(|backups| backups.lock().is_due())
    }

    /// Returns `true` if the time for the next save has come.
    pub(super) fn is_save_due(&self, now: Duration) -> bool {
        self.is_resilient() && now.saturating_sub(self.saved_at) >= SAVES_APART
    }

    /// Starts a save; `None` unless the run is resilient.
    ///
    /// # Errors
    /// The bag cannot be written.
    pub(super) fn begin_save(&mut self, now: Duration) -> Result<Option<(PlaceBackups, StartedSave)>> {
        let Some(backups) = &self.backups else { return Ok(None) };
        let bag: Option<EncodedBag> = self.bag.as_ref().map(to_bytes).transpose()?;
        let begun = backups.lock().begin_save(bag);
        self.saved_at = now;
        self.counts.saves += u64::from(begun.outgoing.is_some());
        Ok(Some((backups.clone(), begun)))
    }

    /// Adds the restored bags of dead places and restarts, idle, among `members`.
    pub(super) fn restore(&mut self, restored: Vec<B>, members: &[usize]) {
        for bag in restored {
            match &mut self.bag {
                Some(own) => own.merge(bag),
                own => *own = Some(bag),
            }
        }
        (self.is_empty, self.unproven) = (false, None);
        let random = &mut self.random;
        self.balancer = Balancer::new(self.own, members, &self.parameters, |below| random.index(below));
    }

    /// Resumes work with the tasks of the bag. Returns `true` if a worker must be started.
    #[must_use = "tasks without a worker stay for ever"]
    pub(super) fn resume(&mut self, now: Duration) -> bool {
        if self.bag.is_none() {
            return false;
        }
        self.busy_since.get_or_insert(now);
        self.balancer.put()
    }
}

/// Returns the error text for a bag whose part from `giver` had no tasks, or that returned `tasks` of a batch of
/// `size`.
fn broken_promise<B>(giver: Option<usize>, tasks: usize, size: usize) -> String {
    let bag = type_name::<B>();
    match giver {
        Some(giver) => format!(
            "`split` of `{bag}` returned a part without tasks, at place {giver}; allowed: `None` if \
             there are too few tasks to split"
        ),
        None => {
            format!("`process` of `{bag}` returned {tasks}; allowed: 0 to {size}, the number requested")
        }
    }
}
