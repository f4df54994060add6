//! The finishes of one place: the protocol's machine, and the tasks that wait.

use super::error_of;
use crate::error::Error;
use crate::finish::output_queue::OutputQueue;
use crate::finish::{Scope, ScopeKind};
use crate::limits::{BUSY_STEPS_MAX, REST};
use crate::local::Local;
use crate::message::Handler;
use crate::time::{Due, TimerId};
use crate::{finish, part};
use isles_protocol::PlaceId;
use isles_protocol::finish::{
    Control, Explanation, Fault, FinishId, FinishKind, Finishes, Key, Outcome, Output, Reason, TaskRefusal,
    Violation,
};
use isles_protocol::ordered::OrderedMap;
use isles_transport::Class;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::task::Waker;
use std::time::Duration;

/// The finishes of a place, and the tasks that wait for them.
pub(crate) struct FinishTable {
    machine: RefCell<Finishes>,
    outputs: OutputQueue<Output>,
    /// The finishes opened here and not released, with their waiting tasks.
    open: RefCell<OrderedMap<Key, Open>>,
    /// True once any finish was cancelled here; until then the worker need not check.
    any_cancelled: Cell<bool>,
    /// Number of finishes of each kind that were released here.
    kinds: [Cell<u64>; FinishKind::ALL.len()],
    /// Control messages sent from here.
    controls_sent: Cell<u64>,
    /// True while the machine holds questions back until the place rests.
    holds_back: Cell<bool>,
    /// Time since which nothing happens here, if questions are held back.
    idle_since: Cell<Option<Duration>>,
    /// Number of busy steps since questions are held back.
    busy_steps: Cell<u32>,
}

struct Open {
    /// Location of `finish` in the program; `None` for the whole run.
    site: Option<&'static Location<'static>>,
    /// The enclosing finish, if the run is observed and there is one.
    parent: Option<FinishId>,
    waker: Option<Waker>,
    outcome: Option<Outcome>,
    deadline: Option<TimerId>,
    deadline_passed: bool,
    /// Scope of the task that held its place, if nothing waits any more: on its release the finish is removed and that
    /// task ended.
    held: Option<Scope>,
}

impl FinishTable {
    pub(crate) fn new(here: PlaceId, places: u32) -> Self {
        FinishTable {
            machine: RefCell::new(Finishes::new(here, places)),
            outputs: OutputQueue::default(),
            open: RefCell::default(),
            any_cancelled: Cell::new(false),
            kinds: Default::default(),
            controls_sent: Cell::new(0),
            holds_back: Cell::new(false),
            idle_since: Cell::new(None),
            busy_steps: Cell::new(0),
        }
    }

    /// Opens a finish here, which the program called at `site`, inside `parent` if that is known; its body counts as
    /// one live task.
    pub(super) fn open(&self, site: Option<&'static Location<'static>>, parent: Option<FinishId>) -> Key {
        let key = self.machine.borrow_mut().open();
        let (waker, outcome, deadline, held) = (None, None, None, None);
        let open = Open { site, parent, waker, outcome, deadline, deadline_passed: false, held };
        self.open.borrow_mut().insert(key, open);
        key
    }

    /// Counts one more task here.
    #[inline]
    pub(crate) fn begin(&self, key: Key) {
        self.machine.borrow_mut().begin(key);
    }

    /// Counts the end of one task here.
    #[inline(always)]
    pub(crate) fn end(&self, local: &Local, key: Key, fault: Option<Fault>) {
        if fault.is_none() && self.machine.borrow_mut().end_unless_last(key) {
            return;
        }
        self.end_slow(local, key, fault);
    }

    /// Counts the end of the last task here, or of one with a fault.
    fn end_slow(&self, local: &Local, key: Key, fault: Option<Fault>) {
        self.drive(local, |machine, outputs| machine.end(key, fault, outputs));
    }

    /// Counts one task that is about to leave for `to`; if it cannot be sent, call [`FinishTable::undo_depart`].
    #[inline]
    pub(crate) fn depart(&self, key: Key, to: PlaceId) -> Result<FinishId, TaskRefusal> {
        self.machine.borrow_mut().depart(key, to)
    }

    /// Undoes [`FinishTable::depart`] for a task that could not be sent.
    pub(crate) fn undo_depart(&self, key: Key, to: PlaceId) {
        self.machine.borrow_mut().undo_depart(key, to);
    }

    /// Counts a call of a task of the finish that is about to be sent to `to`: one more live task here until it is
    /// settled.
    pub(crate) fn request(&self, key: Key, to: PlaceId) -> Result<FinishId, TaskRefusal> {
        self.machine.borrow_mut().request(key, to)
    }

    /// Settles a call that has ended; `counted` says whether its body was counted at `to`.
    #[inline]
    pub(crate) fn settle(&self, local: &Local, key: Key, to: PlaceId, counted: bool) {
        // The caller that waits is itself a live task, so most calls end here.
        if !counted && self.machine.borrow_mut().end_unless_last(key) {
            return;
        }
        self.settle_slow(local, key, to, counted);
    }

    fn settle_slow(&self, local: &Local, key: Key, to: PlaceId, counted: bool) {
        self.drive(local, |machine, outputs| machine.settle(key, to, counted, outputs));
    }

    /// Begins to act under the finish for the body of a call from `source`; ends like a task.
    pub(crate) fn visit(&self, finish: FinishId, source: PlaceId) -> Result<Key, TaskRefusal> {
        self.machine.borrow_mut().visit(finish, source)
    }

    /// Counts the body of a call from `source` that starts something under the finish for the first time.
    pub(crate) fn count_visit(&self, key: Key, source: PlaceId) {
        self.machine.borrow_mut().count_visit(key, source);
    }

    /// Counts a task that has arrived.
    #[inline]
    pub(crate) fn arrive(&self, finish: FinishId, source: PlaceId) -> Result<Key, TaskRefusal> {
        self.machine.borrow_mut().arrive(finish, source)
    }

    /// Handles a control message.
    pub(super) fn receive(&self, local: &Local, source: PlaceId, control: Control) -> Result<(), Violation> {
        let mut result = Ok(());
        self.drive(local, |machine, outputs| result = machine.receive(source, control, outputs));
        result
    }

    /// Handles the death of a place.
    pub(super) fn place_died(&self, local: &Local, place: PlaceId) {
        self.drive(local, |machine, outputs| machine.place_died(place, outputs));
    }

    /// Cancels a finish that has a live task here.
    pub(super) fn cancel(&self, local: &Local, key: Key, reason: Reason) {
        self.drive(local, |machine, outputs| machine.cancel(key, reason, outputs));
    }

    /// Gives the machine an input and carries out its outputs.
    #[inline]
    fn drive(&self, local: &Local, input: impl FnOnce(&mut Finishes, &mut Vec<Output>)) {
        let mut outputs = Vec::new();
        {
            let mut machine = self.machine.borrow_mut();
            input(&mut machine, &mut outputs);
            self.holds_back.set(machine.holds_back());
        }
        self.outputs.process(&mut outputs, |output| self.execute_output(local, output));
    }

    fn execute_output(&self, local: &Local, output: Output) {
        match output {
            Output::Send { to, control } => {
                self.controls_sent.set(self.controls_sent.get() + 1);
                // Before other places learn that tasks have ended, the return of their handles is settled.
                part::settle(local);
                // If the place died meanwhile, `place_died` tells the machine.
                let _ =
                    local.send(to, Class::Control, Handler::Finish.id(), |writer| writer.put_serde(&control));
            }
            Output::Released { key, outcome } => self.released(local, key, outcome),
            Output::Cancelled { .. } => {
                self.any_cancelled.set(true);
                local.wake_suspended(|_| true);
            }
        }
    }

    fn released(&self, local: &Local, key: Key, outcome: Outcome) {
        let kind = &self.kinds[outcome.kind as usize];
        kind.set(kind.get() + 1);
        let waker = {
            let mut open = self.open.borrow_mut();
            let Some(entry) = open.get_mut(key) else { return };
            match entry.held.take() {
                Some(held) => {
                    open.remove(key);
                    drop(open);
                    return local.finish_task(held, Ok(()));
                }
                None => entry.outcome = Some(outcome),
            }
            entry.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the result of a released finish; otherwise stores the waker.
    pub(super) fn poll(&self, local: &Local, key: Key, waker: &Waker) -> Option<Result<(), Error>> {
        let mut open = self.open.borrow_mut();
        let entry = open.get_mut(key)?;
        let Some(outcome) = entry.outcome.take() else {
            entry.waker = Some(waker.clone());
            return None;
        };
        let (site, deadline, deadline_passed) = (entry.site, entry.deadline, entry.deadline_passed);
        open.remove(key);
        if let Some(deadline) = deadline {
            local.timers.give_up(deadline);
        }
        // Sorted by place, then in order of arrival from there, so that each run reports them alike.
        let mut faults = outcome.faults;
        faults.sort_by_key(Fault::place);
        let mut errors: Vec<Error> = faults.into_iter().map(|fault| error_of(fault, site)).collect();
        if let Some(reason) = &outcome.cancelled {
            // Tasks that pass the cancellation on as their error add nothing to it.
            errors.retain(|error| !error.is_cancellation());
            errors.insert(0, finish::cancelled(reason, deadline_passed));
        }
        Some(Error::collect(errors, outcome.faults_lost).map_or(Ok(()), Err))
    }

    /// Detaches a finish that nothing waits for any more; `held` is the scope of a task that ends when it is released.
    pub(super) fn detach(&self, local: &Local, key: Key, held: Scope) {
        if let Some(entry) = self.open.borrow_mut().get_mut(key) {
            entry.held = Some(held);
            if let Some(deadline) = entry.deadline.take() {
                local.timers.give_up(deadline);
            }
        }
    }

    /// Removes a released finish whose result nothing takes.
    pub(super) fn forget(&self, local: &Local, key: Key) -> bool {
        let mut open = self.open.borrow_mut();
        let released = open.get(key).is_some_and(|entry| entry.outcome.is_some());
        if released && let Some(deadline) = open.remove(key).and_then(|entry| entry.deadline) {
            local.timers.give_up(deadline);
        }
        released
    }

    /// Returns `true` if the tasks of `scope` must be dropped.
    #[inline]
    pub(crate) fn is_cancelled(&self, scope: Scope) -> bool {
        self.any_cancelled.get()
            && matches!(scope.kind(), ScopeKind::Counted(key) if self.machine.borrow().is_cancelled(key))
    }

    /// Cancels `key` when the place's clock reaches `due`.
    pub(super) fn set_deadline(&self, local: &Local, key: Key, due: Duration) {
        if let Some(entry) = self.open.borrow_mut().get_mut(key) {
            entry.deadline = Some(local.timers.set(due, Due::Deadline(key)));
        }
    }

    /// Returns the time at which the place will have rested, if nothing happens, and may ask the questions held back.
    pub(crate) fn next_deferred_ask(&self) -> Option<Duration> {
        self.idle_since.get().map(|since| since + REST)
    }

    /// Records that something has happened here.
    #[inline]
    pub(crate) fn note_progress(&self, local: &Local) {
        if self.holds_back.get() {
            self.idle_since.set(None);
            self.busy_steps.set(self.busy_steps.get() + 1);
            if self.busy_steps.get() > BUSY_STEPS_MAX {
                self.ask_deferred(local);
            }
        }
    }

    /// Records that nothing has happened here; if that lasts, asks the questions held back. Returns whether it did.
    pub(crate) fn idle(&self, local: &Local) -> bool {
        if !self.holds_back.get() {
            return false;
        }
        let now = local.clock().now();
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        let is_resting = now.saturating_sub(since) >= REST;
        if is_resting {
            self.ask_deferred(local);
        }
        is_resting
    }

    fn ask_deferred(&self, local: &Local) {
        self.idle_since.set(None);
        self.busy_steps.set(0);
        self.drive(local, Finishes::ask_deferred);
    }

    /// Cancels a finish whose deadline has passed.
    pub(crate) fn expire(&self, local: &Local, key: Key) {
        if let Some(entry) = self.open.borrow_mut().get_mut(key) {
            entry.deadline = None;
            entry.deadline_passed = true;
        }
        self.cancel(local, key, Reason::Requested("its tasks did not end in time".into()));
    }

    /// Returns, for each open finish here, the location at which the program called it and what it waits for.
    pub(crate) fn explain(&self) -> Vec<(Option<&'static Location<'static>>, Explanation)> {
        let machine = self.machine.borrow();
        let open = self.open.borrow();
        open.iter()
            .filter(|(_, entry)| entry.outcome.is_none())
            .map(|(key, entry)| (entry.site, machine.waiting_for(key)))
            .collect()
    }

    /// Returns, for the first few open finishes here, what each waits for, where the program called it, and which
    /// finish encloses it.
    pub(crate) fn explain_first(
        &self,
        count: usize,
    ) -> Vec<(Option<&'static Location<'static>>, Option<FinishId>, Explanation)> {
        let machine = self.machine.borrow();
        let open = self.open.borrow();
        open.iter()
            .filter(|(_, entry)| entry.outcome.is_none())
            .take(count)
            .map(|(key, entry)| (entry.site, entry.parent, machine.waiting_for(key)))
            .collect()
    }

    /// Returns the number of finishes open here, and the number released.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.open.borrow().len() as u64, self.kinds.iter().map(Cell::get).sum())
    }

    /// Returns the id of the finish of a task that runs here.
    pub(crate) fn id(&self, key: Key) -> FinishId {
        self.machine.borrow().id(key)
    }

    /// Returns the number of live tasks of the finish here, and of calls in progress.
    pub(crate) fn live(&self, key: Key) -> u64 {
        self.machine.borrow().live(key)
    }

    /// Returns the errors that the finishes here hold and have not reported yet.
    pub(crate) fn failures(&self) -> Vec<Error> {
        self.machine.borrow().faults().map(|fault| error_of(fault.clone(), None)).collect()
    }

    /// Returns the number of finishes of each kind that were released here, and of control messages sent from here.
    pub(crate) fn totals(&self) -> (Vec<(FinishKind, u64)>, u64) {
        let kinds = FinishKind::ALL.into_iter().map(|kind| (kind, self.kinds[kind as usize].get()));
        (kinds.filter(|(_, count)| *count > 0).collect(), self.controls_sent.get())
    }
}
