//! What a place has of a run, and what it decides: a pure state machine.
//!
//! It is told what happens at the place (a batch is due, a request or tasks have come, the worker has run out) and says
//! what is to be done; `protocol` does it. It reads no clock and sends nothing. Invariant: a bag with tasks has a
//! worker, or the method that put them there has returned that one is to be started.

use super::Bag;
use super::asking::{Asking, StealKind, thieves_of};
use super::batch::Batch;
use super::parameters::Parameters;
use super::report::PlaceBalance;
use std::collections::VecDeque;
use std::time::Duration;

/// One place of a run.
pub(super) struct Balancer<B> {
    /// What is known to be left of the bag, with its results; `None` until the first tasks come.
    pub(super) bag: Option<B>,
    /// Whether a task of the finish processes the bag, or asks for tasks.
    has_worker: bool,
    asking: Asking,
    /// Who has asked this place as a lifeline and has got nothing yet, the first one first.
    thieves: VecDeque<usize>,
    pub(super) batch: Batch,
    pub(super) counts: PlaceBalance,
    /// When the worker last got tasks; `None` while it has none.
    busy_since: Option<Duration>,
}

impl<B: Bag> Balancer<B> {
    /// That of the place `own`, at rest, of `members`, which are in order and have it.
    pub(super) fn new(own: usize, members: &[usize], parameters: &Parameters) -> Balancer<B> {
        Balancer {
            bag: None,
            has_worker: false,
            asking: Asking::new(own, members, parameters),
            thieves: thieves_of(own, members, parameters).into(),
            batch: Batch::new(parameters.batch, members.len() == 1),
            counts: PlaceBalance::default(),
            busy_since: None,
        }
    }

    /// Puts tasks into the bag. Returns whether a worker is to be started.
    #[must_use = "tasks without a worker stay for ever"]
    pub(super) fn put(&mut self, bag: B, now: Duration) -> bool {
        match &mut self.bag {
            Some(own) => own.merge(bag),
            own => *own = Some(bag),
        }
        self.busy_since.get_or_insert(now);
        !std::mem::replace(&mut self.has_worker, true)
    }

    /// Takes tasks in that a lifeline gives. Returns whether a worker is to be started.
    #[must_use = "tasks without a worker stay for ever"]
    pub(super) fn accept(&mut self, giver: usize, bag: B, now: Duration) -> bool {
        self.counts.gifts += 1;
        self.asking.found(giver, StealKind::Lifeline);
        self.put(bag, now)
    }

    /// Processes one batch; returns how many tasks it had. None means that the bag is empty.
    pub(super) fn process(&mut self) -> usize {
        let Some(bag) = &mut self.bag else { return 0 };
        let tasks = bag.process(self.batch.size());
        self.counts.batches += u64::from(tasks > 0);
        self.counts.tasks += tasks as u64;
        tasks
    }

    /// The next gift: to whom, and what; `None` if nobody waits, or there is too little to give.
    pub(super) fn next_gift(&mut self) -> Option<(usize, B)> {
        let thief = *self.thieves.front()?;
        let part = self.bag.as_mut()?.split()?;
        self.thieves.pop_front();
        self.counts.given += 1;
        Some((thief, part))
    }

    /// The bag is empty: whom to ask for tasks now. `None` if there are tasks again, or nobody is left to ask; the
    /// second is the end of the worker.
    pub(super) fn ask(
        &mut self,
        now: Duration,
        is_dead: impl Fn(usize) -> bool,
    ) -> Option<(usize, StealKind)> {
        if let Some(since) = self.busy_since.take() {
            self.counts.busy += now.saturating_sub(since);
        }
        let next = self.asking.next(is_dead);
        match next {
            Some((_, StealKind::Random)) => self.counts.asked += 1,
            Some((_, StealKind::Lifeline)) => self.counts.lifelines_asked += 1,
            None => self.has_worker = false,
        }
        next
    }

    /// Answers the request of `thief`: with a part of the bag, if there is enough; a lifeline remembers who has got
    /// nothing.
    pub(super) fn asked(&mut self, thief: usize, kind: StealKind) -> Option<B> {
        let part = self.bag.as_mut().and_then(B::split);
        match (&part, kind) {
            (Some(_), _) => self.counts.given += 1,
            (None, StealKind::Lifeline) if !self.thieves.contains(&thief) => self.thieves.push_back(thief),
            (None, _) => {}
        }
        part
    }

    /// What `victim` has answered to a request of the worker, which is there.
    pub(super) fn answered(&mut self, victim: usize, kind: StealKind, part: Option<B>, now: Duration) {
        let Some(part) = part else { return };
        match kind {
            StealKind::Random => self.counts.stolen += 1,
            StealKind::Lifeline => self.counts.gifts += 1,
        }
        self.asking.found(victim, kind);
        let starts = self.put(part, now);
        debug_assert!(!starts, "the worker that has asked is there");
    }
}
