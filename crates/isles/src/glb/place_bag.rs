//! What a place has of a run: its bag, the balancer that decides, and the counts.
//!
//! Puts the pure balancer and the program's bag together. Invariant: a bag with tasks has a worker, or the method that
//! put them there has returned that one is to be started.

use super::Bag;
use super::report::PlaceBalance;
use crate::Random;
use isles_protocol::balance::{Balancer, Batch, Parameters, StealKind};
use std::time::Duration;

/// One place of a run.
pub(super) struct PlaceBag<B> {
    /// The tasks and the results; `None` until the first ones come.
    pub(super) bag: Option<B>,
    balancer: Balancer,
    random: Random,
    pub(super) batch: Batch,
    pub(super) counts: PlaceBalance,
    /// When the worker last got tasks; `None` while it has none.
    busy_since: Option<Duration>,
    /// When the worker last asked for tasks.
    asked_at: Duration,
}

impl<B: Bag> PlaceBag<B> {
    /// That of the place `own`, at rest, of `members`, which are in order and have it.
    pub(super) fn new(own: usize, members: &[usize], parameters: &Parameters) -> PlaceBag<B> {
        let mut random = Random::stream(parameters.seed, own as u64);
        PlaceBag {
            bag: None,
            balancer: Balancer::new(own, members, parameters, |below| random.index(below)),
            random,
            batch: Batch::new(parameters.batch, members.len() == 1),
            counts: PlaceBalance::default(),
            busy_since: None,
            asked_at: Duration::ZERO,
        }
    }

    fn merge(&mut self, bag: B, now: Duration) {
        match &mut self.bag {
            Some(own) => own.merge(bag),
            own => *own = Some(bag),
        }
        self.busy_since.get_or_insert(now);
    }

    /// Puts tasks into the bag. Returns whether a worker is to be started.
    #[must_use = "tasks without a worker stay for ever"]
    pub(super) fn put(&mut self, bag: B, now: Duration) -> bool {
        self.merge(bag, now);
        self.balancer.put()
    }

    /// Takes tasks in that a lifeline gives. Returns whether a worker is to be started.
    #[must_use = "tasks without a worker stay for ever"]
    pub(super) fn accept(&mut self, giver: usize, bag: B, now: Duration) -> bool {
        self.counts.gifts += 1;
        self.merge(bag, now);
        self.balancer.accept(giver)
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
        let thief = self.balancer.next_thief()?;
        let part = self.bag.as_mut()?.split()?;
        self.balancer.given();
        self.counts.given += 1;
        Some((thief, part))
    }

    /// The bag is empty: whom to ask for tasks now. `None` is the end of the worker.
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

    /// Answers the request of `thief`: with a part of the bag, if there is enough; a lifeline remembers who has got
    /// nothing.
    pub(super) fn asked(&mut self, thief: usize, kind: StealKind) -> Option<B> {
        let part = self.bag.as_mut().and_then(B::split);
        match part {
            Some(_) => self.counts.given += 1,
            None => self.balancer.refused(thief, kind),
        }
        part
    }

    /// Takes in what `victim` has answered to a request of the worker, which is there.
    pub(super) fn answered(&mut self, victim: usize, kind: StealKind, part: Option<B>, now: Duration) {
        let Some(part) = part else { return };
        match kind {
            StealKind::Random => {
                self.counts.stolen += 1;
                self.counts.stealing += now.saturating_sub(self.asked_at);
            }
            StealKind::Lifeline => self.counts.gifts += 1,
        }
        self.balancer.answered(victim, kind);
        self.merge(part, now);
    }
}
