//! The worker of a place: handles messages, runs ready tasks, and waits when there is nothing to do.

use super::{Clock, FlagGuard, Local};
use crate::call::span::TASK;
use crate::error::ErrorKind;
use crate::finish::{Scope, ScopeKind, fault_of};
use crate::limits::{READY_BATCH, ROOM_WAIT, SPIN_POLLS, WAIT_MAX};
use crate::message;
use crate::part;
use crate::run::process;
use crate::task::{PollOutcome, TaskRef};
use isles_protocol::PlaceId;
use isles_telemetry::CounterId;
use isles_transport::{Class, HandlerId, Inbound, Next, Source, notice};
use std::time::Duration;

/// Outcome of one step of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done: step again.
    Busy,
    /// Nothing to do until a message arrives, a task is woken, or the place's next timer is due.
    Idle,
}

impl Local {
    /// Handles messages that have arrived and runs a batch of ready tasks; never blocks.
    pub fn step(&self) -> Step {
        let begun = self.step_begin();
        let arrived = self.poll_with_spin(if self.is_full() { Inbound::Control } else { Inbound::All });
        let woken = self.take_woken();
        self.begin_turn(arrived);
        if self.tasks_wait_for_sends() && self.flush_outbox() == 0 && self.tasks_wait_for_sends() {
            return if arrived + woken + self.timers.expire(self) > 0 { Step::Busy } else { Step::Idle };
        }
        let ran = self.run_ready();
        let flushed = self.flush_outbox() + self.wake_if_sent();
        if arrived + woken + ran + flushed == 0 {
            self.note_idle_step();
            return self.idle_step();
        }
        self.note_busy_step(begun);
        self.finishes.note_progress(self);
        self.timers.expire_busy(self);
        self.run_due();
        Step::Busy
    }

    /// Handles messages that have arrived and sends what waits, but runs no task; for the time when the program is
    /// over.
    pub fn progress_messages(&self) -> Step {
        // Data, too, whatever is queued already: its senders may wait for room, and end only once they have it.
        match self.poll_messages(Inbound::All) + self.flush_outbox() {
            0 => Step::Idle,
            _ => Step::Busy,
        }
    }

    /// Does the work that is left for idle times.
    fn idle_step(&self) -> Step {
        let was_busy = self.services().run_idle(self)
            || self.timers.expire(self) > 0
            || self.finishes.idle(self)
            || self.run_due();
        if was_busy { Step::Busy } else { Step::Idle }
    }

    /// Does the due work of services and parts; returns whether there was any.
    #[inline]
    fn run_due(&self) -> bool {
        let were_services_due = self.services().run_due(self);
        part::run_due(self) || were_services_due
    }

    /// Waits until there may be something to do, for at most `limit`.
    pub fn wait(&self, limit: Option<Duration>) {
        let due = self.next_due().map(|due| due.saturating_sub(self.clock.now()));
        let shortest = [limit, due].into_iter().flatten().fold(WAIT_MAX, Duration::min);
        self.note_rest();
        let limit = if self.outbox_len.get() == 0 { shortest } else { ROOM_WAIT };
        self.endpoint.wait_with(Some(limit), &|| self.is_watching.get() && self.services().has_arrivals());
        self.note_wake();
    }

    /// Returns `true` if the backlog is at its bound, so that data stays in its queues until tasks have begun.
    pub(crate) fn is_full(&self) -> bool {
        let (queued, begun) = self.ready.borrow().progress();
        self.backlog.is_full(queued, begun)
    }

    /// Delivers a batch of arrivals; returns their number.
    pub fn poll_messages(&self, inbound: Inbound) -> usize {
        let _delivering = FlagGuard::new(&self.delivering);
        self.endpoint.progress(inbound, &mut |arrival| message::deliver(self, arrival))
            + if self.is_watching.get() { self.services().poll_values(self) } else { 0 }
    }

    /// As [`Local::poll_messages`]; if nothing has arrived and no task is ready, polls for a while.
    #[inline]
    fn poll_with_spin(&self, inbound: Inbound) -> usize {
        let arrived = self.poll_messages(inbound);
        if arrived > 0 || self.has_ready() || !self.may_spin() {
            return arrived;
        }
        (1..SPIN_POLLS).map(|_| self.poll_messages(inbound)).find(|arrived| *arrived > 0).unwrap_or(0)
    }

    /// Returns `true` if an idle place may keep its processor to poll for messages.
    #[inline]
    pub fn may_spin(&self) -> bool {
        !self.shares_processors && !self.has_remote_hosts && matches!(self.clock, Clock::Host(_))
    }

    /// Shows the oldest message from `source`, if it is a small one for `handler`, to `read`, and takes it if that
    /// returns a value; see [`isles_transport::Endpoint::take_next`].
    #[inline]
    pub fn take_next(
        &self,
        source: PlaceId,
        class: Class,
        handler: HandlerId,
        mut read: impl FnMut(&[u8]) -> Option<()>,
    ) -> Next {
        // Values that `read` decodes may send.
        let _delivering = FlagGuard::new(&self.delivering);
        let mut len = 0;
        let mut wants = |to, bytes: &[u8]| {
            len = bytes.len();
            to == handler && read(bytes).is_some()
        };
        let next = self.endpoint.take_next(source, class, &mut wants);
        if next == Next::Taken {
            self.tally.received(len);
        }
        if self.has_remote_hosts {
            self.note_look(source, next);
        }
        next
    }

    /// Moves tasks that other threads have woken into the ready queue; returns their number.
    fn take_woken(&self) -> usize {
        // NEED: other threads leave memory for the pool.
        // SOUND: injector and pool are this place's, and so is the thread.
        let woken = unsafe { self.injector().take(self.pool()) };
        for task in &woken {
            self.ready(*task, task.header().priority());
        }
        woken.len()
    }

    /// Runs a batch of ready tasks, up to one that yields; returns their number.
    fn run_ready(&self) -> usize {
        for ran in 0..READY_BATCH {
            if self.tasks_wait_for_sends() {
                return ran;
            }
            let Some(task) = self.ready.borrow_mut().pop() else {
                return ran;
            };
            // Messages of earlier tasks do not wait for this one, which may compute for long.
            if self.has_remote_hosts {
                self.endpoint.other_hosts().inspect(|hosts| hosts.flush_coalesced());
            }
            self.run(task);
            if self.has_yielded.take() {
                return ran + 1;
            }
        }
        READY_BATCH
    }

    fn run(&self, task: TaskRef) {
        // Read before the poll: a task that ends frees its own memory.
        let (scope, site, listed) = (task.header().scope, task.header().site, task.listed());
        if self.is_cancelled(scope) && !task.is_over() {
            self.cancel_task(task, scope);
            // It was in the queue, which releases it by this poll.
            let _ = self.poll(task);
            return;
        }
        let before = self.set_scope(scope);
        let span = self.span(TASK, None, || Some(Source::of_text(site.location())));
        let ended = self.poll(task);
        drop(span);
        process::check_forked(self.here);
        self.set_scope(before);
        match ended {
            None => {}
            Some(PollOutcome::Again) => {
                self.suspended.borrow_mut().insert(task);
                self.requeue(task);
            }
            Some(PollOutcome::Suspended) => {
                self.suspended.borrow_mut().insert(task);
                // The cancellation may have arrived while it ran.
                if self.is_cancelled(scope) {
                    task.wake();
                }
            }
            Some(PollOutcome::Over(result)) => {
                if let Some(listed) = listed {
                    self.suspended.borrow_mut().remove(listed);
                }
                self.tally.add(CounterId::Tasks, 1);
                self.finish_task(scope, result.map_err(|error| error.at(self.here, Some(site.location()))));
            }
        }
    }

    /// Polls a task of this place.
    #[inline]
    fn poll(&self, task: TaskRef) -> Option<PollOutcome> {
        // NEED: a task gives its memory back to the pool of its place.
        // SOUND: the tasks in the queues of a place are its own, and so is the thread.
        unsafe { task.run(self.pool()) }
    }

    /// Reports the end of a task to the finish of `scope`.
    #[inline]
    pub fn finish_task(&self, scope: Scope, result: crate::Result<()>) {
        match (scope.kind(), result) {
            (ScopeKind::Counted(key), Ok(())) => self.finishes.end(self, key, None),
            (_, Ok(())) => {}
            (_, Err(error)) => self.fail_task(scope, &error),
        }
    }

    #[cold]
    fn fail_task(&self, scope: Scope, error: &crate::Error) {
        match scope.kind() {
            // The finish itself reports that it was cancelled; in a long list that is cut, other errors matter more.
            ScopeKind::Counted(key) if error.is_cancellation() && self.finishes.is_cancelled(scope) => {
                self.finishes.end(self, key, None);
            }
            ScopeKind::Counted(key) => self.finishes.end(self, key, Some(fault_of(self, error))),
            // Output that nobody reads is no fault.
            ScopeKind::Remote(_) | ScopeKind::Detached if *error.kind() == ErrorKind::OutputClosed => {}
            ScopeKind::Remote(_) | ScopeKind::Detached => {
                notice(format_args!("isles: a detached task failed {error}"));
            }
        }
    }

    /// Ends a queued task without running it further.
    fn cancel_task(&self, task: TaskRef, scope: Scope) {
        if let Some(listed) = task.listed() {
            self.suspended.borrow_mut().remove(listed);
        }
        let before = self.set_scope(scope);
        task.conclude();
        self.set_scope(before);
        self.finish_task(scope, Ok(()));
    }

    /// Returns `true` if the tasks of `scope` must be dropped.
    #[inline]
    fn is_cancelled(&self, scope: Scope) -> bool {
        self.finishes.is_cancelled(scope) || (self.calls.any_abandoned.get() && self.is_abandoned(scope))
    }

    #[cold]
    fn is_abandoned(&self, scope: Scope) -> bool {
        let ScopeKind::Remote(index) = scope.kind() else { return false };
        self.calls.borrowed.borrow().get(index as usize).is_some_and(|entry| entry.abandoned)
    }

    /// Queues the suspended tasks of the `wanted` scopes, so that those to be dropped end.
    pub(crate) fn wake_suspended(&self, wanted: impl Fn(Scope) -> bool) {
        let tasks = self.suspended.borrow().list();
        tasks.into_iter().filter(|task| wanted(task.header().scope)).for_each(TaskRef::wake);
    }

    /// Drops every task of the place, including those that destructors start meanwhile; at its end.
    pub(crate) fn drop_tasks(&self) {
        self.timers.clear();
        loop {
            let suspended = self.suspended.take().list();
            self.take_woken();
            self.release_held();
            let queued = std::iter::from_fn(|| self.ready.borrow_mut().pop()).collect::<Vec<_>>();
            if suspended.is_empty() && queued.is_empty() {
                return;
            }
            suspended.into_iter().for_each(TaskRef::conclude);
            for task in queued {
                if !task.is_over() {
                    task.conclude();
                }
                // A task that had ended is released by its queue.
                let _ = self.poll(task);
            }
        }
    }

    /// Accepts no more tasks from other threads; the place has none left.
    pub(crate) fn close_injector(&self) {
        debug_assert!(!self.has_ready() && self.suspended.borrow().list().is_empty());
        // NEED: other threads leave memory for the pool.
        // SOUND: injector and pool are this place's, and so is the thread; `drop_tasks` has left no task.
        unsafe { self.injector().close(self.pool()) };
    }

    /// Returns the waiting tasks of this place by site, with the number of each; for reports.
    pub(crate) fn waiting_sites(&self, wanted: impl Fn(Scope) -> bool) -> Vec<(&'static str, u64)> {
        let mut sites = std::collections::BTreeMap::new();
        for task in self.suspended.borrow().list() {
            if wanted(task.header().scope) {
                *sites.entry(task.header().site.location()).or_insert(0) += 1;
            }
        }
        sites.into_iter().collect()
    }
}
