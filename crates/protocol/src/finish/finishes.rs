//! All finishes at one place: the interface of the runtime to the protocol.
//!
//! Each place has one object, so a local key is an index and a message takes one lookup. It never iterates over hashed
//! tables and keeps no time: the same calls give the same outputs. Invariant: every slot that is not free is a finish
//! opened here, or is found in `proxies`, or is an orphan with live tasks.

use super::control::{Control, Output, TaskRefusal, Violation};
use super::fault::{Fault, Reason};
use super::id::{FinishId, FinishKind, Key};
use super::ledger::{Ledger, LedgerPool};
use super::limits::PROMPT_QUESTIONS;
use super::slot::{Role, Slot};
use crate::PlaceId;
use crate::ordered::{OrderedMap, OrderedSet};
use crate::place::{Hint, MembershipView};

/// The finishes of one place, opened here or elsewhere.
///
/// Calls marked *hot* cost a few nanoseconds when the finish and the peer are the ones used last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finishes {
    pub(super) membership: MembershipView,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u32>,
    /// The slot of the finish of another home that was used last.
    pub(super) recent: Hint,
    /// Finishes of other homes by home and serial, except orphans.
    pub(super) proxies: OrderedMap<(PlaceId, u64), u32>,
    /// The serial of the next finish opened here.
    serial: u64,
    /// Released finishes that each place has not yet been told to forget.
    pub(super) forgets: OrderedMap<PlaceId, Vec<u64>>,
    /// Slots of the finishes opened here whose next questions wait for [`Finishes::ask_deferred`].
    pub(super) held_back: OrderedSet<usize>,
    /// Number of questions of a finish that do not wait for the next rest.
    pub(super) prompt_questions: u32,
    /// Empty ledgers for the next finishes that leave this place.
    pub(super) spare: LedgerPool,
}

impl Finishes {
    /// Makes the finishes of place `here` in a run of `places` places; none at first.
    ///
    /// # Panics
    /// If `here` is not below `places`.
    pub fn new(here: PlaceId, places: u32) -> Finishes {
        Finishes {
            membership: MembershipView::new(here, places),
            slots: Vec::new(),
            free: Vec::new(),
            recent: Hint::default(),
            proxies: OrderedMap::new(),
            serial: 0,
            forgets: OrderedMap::new(),
            held_back: OrderedSet::new(),
            prompt_questions: PROMPT_QUESTIONS,
            spare: LedgerPool::default(),
        }
    }

    /// Opens a finish here. Its body counts as one live task: call [`Finishes::end`] when the body has ended.
    ///
    /// The key is valid until [`Output::Released`] names it.
    pub fn open(&mut self) -> Key {
        let serial = self.serial;
        self.serial += 1;
        let index = self.occupy(Role::Home(None));
        let slot = &mut self.slots[index];
        slot.id = FinishId { home: self.membership.here, serial, slot: index as u32 };
        slot.live = 1;
        slot.key(index)
    }

    /// Counts a task started here by a live task of the finish. *Hot.*
    #[inline]
    pub fn begin(&mut self, key: Key) {
        self.slot(key).live += 1;
    }

    /// Counts the end of a task here, however it ended. *Hot*, unless it was the last one.
    #[inline]
    pub fn end(&mut self, key: Key, fault: Option<Fault>, out: &mut Vec<Output>) {
        let slot = self.slot(key);
        assert!(slot.live > 0, "more tasks ended than began");
        if let Some(fault) = fault {
            slot.faults.push(fault);
        }
        slot.live -= 1;
        if slot.live == 0 {
            self.quiesce(key.slot(), out);
        }
    }

    /// Counts the end of a task here if it is not the last one; otherwise does nothing and returns `false`. *Hot.*
    ///
    /// The same as [`Finishes::end`] without a fault, if there is nothing to do but count.
    #[inline]
    pub fn end_unless_last(&mut self, key: Key) -> bool {
        let slot = self.slot(key);
        let many = slot.live > 1;
        slot.live -= u64::from(many);
        many
    }

    /// Counts a task that a live task here sends to `to`; the returned id goes with it. *Hot.*
    ///
    /// # Errors
    /// [`TaskRefusal::Cancelled`], [`TaskRefusal::DeadPlace`], [`TaskRefusal::UnknownPlace`]: nothing was counted, do
    /// not send.
    ///
    /// # Panics
    /// If `to` is this place: use [`Finishes::begin`] for that.
    #[inline]
    pub fn depart(&mut self, key: Key, to: PlaceId) -> Result<FinishId, TaskRefusal> {
        assert!(to != self.membership.here, "a task departs to another place");
        self.membership.admit(to)?;
        let slot = self.slot(key);
        if slot.cancelled.is_some() {
            return Err(TaskRefusal::Cancelled);
        }
        slot.tally.send(to);
        slot.has_sent_tasks = true;
        Ok(slot.id)
    }

    /// Undoes a [`Finishes::depart`] whose task was not sent.
    ///
    /// The task that called `depart` must have been live ever since.
    pub fn undo_depart(&mut self, key: Key, to: PlaceId) {
        self.slot(key).tally.undo_send(to);
    }

    /// Counts a task that arrived here. *Hot.*
    ///
    /// # Errors
    /// A [`TaskRefusal`] other than `Cancelled`: nothing was counted, drop the task. (A task of a cancelled finish is
    /// counted; check [`Finishes::is_cancelled`], drop it and call [`Finishes::end`].)
    #[inline]
    pub fn arrive(&mut self, id: FinishId, from: PlaceId) -> Result<Key, TaskRefusal> {
        let index = self.slot_for_arrival(id, from)?;
        let slot = &mut self.slots[index];
        slot.tally.receive(from);
        slot.live += 1;
        Ok(slot.key(index))
    }

    /// Begins a request (an `at`) from a live task here to `to`; the returned id goes with it. *Hot.*
    ///
    /// It holds the finish open until [`Finishes::settle`], even if the waiting task is dropped. The request costs no
    /// control message unless its body starts tasks under the finish.
    ///
    /// # Errors
    /// As [`Finishes::depart`].
    #[inline]
    pub fn request(&mut self, key: Key, to: PlaceId) -> Result<FinishId, TaskRefusal> {
        assert!(to != self.membership.here, "a request goes to another place");
        self.membership.admit(to)?;
        let slot = self.slot(key);
        if slot.cancelled.is_some() {
            return Err(TaskRefusal::Cancelled);
        }
        slot.live += 1;
        slot.has_sent_tasks = true;
        Ok(slot.id)
    }

    /// Ends a request: its reply came, and says whether the visit was counted; or no reply will come.
    ///
    /// If the target died before it replied, `counted` is true, because no place can know. If the request was never
    /// sent, it is false.
    pub fn settle(&mut self, key: Key, to: PlaceId, counted: bool, out: &mut Vec<Output>) {
        if counted {
            self.slot(key).tally.send(to);
        }
        self.end(key, None, out);
    }

    /// Lets the body of a request from `from` use the finish: call it before the body first starts a task or makes a
    /// request under the finish; then call [`Finishes::end`] when the body has ended. *Hot.*
    ///
    /// # Errors
    /// As [`Finishes::arrive`].
    #[inline]
    pub fn visit(&mut self, id: FinishId, from: PlaceId) -> Result<Key, TaskRefusal> {
        let index = self.slot_for_arrival(id, from)?;
        let slot = &mut self.slots[index];
        slot.live += 1;
        Ok(slot.key(index))
    }

    /// Makes a visit counted, once; the reply must then say `counted`. *Hot.*
    ///
    /// Call it before the body first starts a task, here or elsewhere; before it settles a request that was counted;
    /// before it cancels the finish; and when a request of the body is abandoned: the body ends, is dropped, or goes on
    /// without waiting for the reply.
    /// dropped, or goes on, without waiting for the reply.
    #[inline]
    pub fn count_visit(&mut self, key: Key, from: PlaceId) {
        self.slot(key).tally.receive(from);
    }

    /// Handles a control message.
    ///
    /// # Errors
    /// A [`Violation`]: the message was ignored; log it with the peer.
    pub fn receive(
        &mut self,
        from: PlaceId,
        control: Control,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        self.membership.admit_peer(from)?;
        if !self.membership.is_alive(from) {
            return Ok(());
        }
        match control {
            Control::Report(report) => self.receive_report(from, report, out),
            Control::Ask { finish, missing, dead } => self.answer(from, finish, missing, dead, out),
            Control::Cancel { finish, reason } => self.receive_cancel(from, finish, reason, out),
            Control::Forget { serials } => self.forget(from, &serials),
        }
    }

    /// Handles the death of `place`; harmless if known already.
    ///
    /// Finishes that it opened are cancelled here; finishes opened here that had reached it end with
    /// [`Fault::DeadPlace`], after all tasks at live places have ended.
    pub fn place_died(&mut self, place: PlaceId, out: &mut Vec<Output>) {
        if !self.membership.mark_dead(place) {
            return;
        }
        self.forgets.remove(place);
        self.orphan(place, out);
        for index in 0..self.slots.len() {
            self.mark_dead_at_home(index, place, out);
        }
    }

    /// Cancels the finish everywhere; it ends when all its tasks have been dropped. May be called at any place.
    pub fn cancel(&mut self, key: Key, reason: Reason, out: &mut Vec<Output>) {
        let slot = self.slot(key);
        if slot.cancelled.is_some() {
            return;
        }
        match &mut slot.role {
            Role::Home(_) => self.cancel_at_home(key.slot(), reason, out),
            Role::Proxy(proxy) => {
                proxy.known = true;
                let (to, finish) = (slot.id.home, slot.id);
                slot.cancel(key.slot(), reason.clone(), out);
                out.push(Output::Send { to, control: Control::Cancel { finish, reason } });
            }
            Role::Free | Role::Orphan => {}
        }
    }

    /// Returns `true` if the finish is known here to be cancelled: its tasks must be dropped. *Hot.*
    #[inline]
    pub fn is_cancelled(&self, key: Key) -> bool {
        self.peek(key).cancelled.is_some()
    }

    /// Returns the number of tasks of the finish here, and of requests in progress.
    pub fn live(&self, key: Key) -> u64 {
        self.peek(key).live
    }

    /// Returns the id of the finish, which travels.
    pub fn id(&self, key: Key) -> FinishId {
        self.peek(key).id
    }

    /// Returns the kind that the finish has needed so far, as far as this place knows.
    pub fn kind(&self, key: Key) -> FinishKind {
        let slot = self.peek(key);
        if let Role::Home(_) = slot.role { self.view(slot).kind() } else { FinishKind::General }
    }

    /// Returns the ledger as it would be if the finish were quiet here.
    fn view(&self, slot: &Slot) -> Ledger {
        let Role::Home(ledger) = &slot.role else { return Ledger::default() };
        let mut view = ledger.as_deref().cloned().unwrap_or_default();
        let alive = slot.tally.entries().filter(|entry| self.membership.is_alive(entry.place));
        alive.for_each(|entry| view.enter_home(entry));
        view
    }

    /// Returns the places for which the finish waits, as far as this place knows.
    pub fn waiting_for(&self, key: Key) -> Explanation {
        let slot = self.peek(key);
        let view = self.view(slot);
        let waiting = view.reached().iter().map(|reach| Waiting {
            place: reach.place,
            tasks: view.missing(reach),
            reports: reach.reports,
            asked: reach.is_awaited(),
        });
        Explanation {
            finish: slot.id,
            here: self.membership.here,
            live: slot.live,
            cancelled: slot.cancelled.is_some(),
            waiting: waiting.filter(|waiting| waiting.tasks > 0 || waiting.asked).collect(),
        }
    }

    /// Returns the faults under finishes that this place holds and has not passed on.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.slots.iter().flat_map(|slot| &slot.faults.kept)
    }

    /// Returns the number of finishes that this place holds, opened here or elsewhere, including idle proxies.
    pub fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the keys of the finishes opened here that have not ended.
    pub fn opened(&self) -> impl Iterator<Item = Key> {
        let homes = self.slots.iter().enumerate().filter(|(_, slot)| matches!(slot.role, Role::Home(_)));
        homes.map(|(index, slot)| slot.key(index))
    }

    #[inline]
    fn slot(&mut self, key: Key) -> &mut Slot {
        let slot = &mut self.slots[key.slot()];
        assert!(slot.generation == key.generation(), "the key of a finish is stale");
        slot
    }

    #[inline]
    fn peek(&self, key: Key) -> &Slot {
        let slot = &self.slots[key.slot()];
        assert!(slot.generation == key.generation(), "the key of a finish is stale");
        slot
    }

    /// Takes a free slot, or makes one.
    pub(super) fn occupy(&mut self, role: Role) -> usize {
        let index = self.free.pop().map_or(self.slots.len(), |index| index as usize);
        if index == self.slots.len() {
            assert!(index < u32::MAX as usize, "too many finishes");
            self.slots.push(Slot::free());
        }
        self.slots[index].role = role;
        index
    }

    pub(super) fn vacate(&mut self, index: usize) {
        self.slots[index].vacate();
        self.free.push(index as u32);
    }

    /// Returns the slot for a task or visit from `from`.
    #[inline]
    fn slot_for_arrival(&mut self, id: FinishId, from: PlaceId) -> Result<usize, TaskRefusal> {
        self.membership.admit(from)?;
        let near = if id.home == self.membership.here { id.slot as usize } else { self.recent.0 };
        let known = self.slots.get(near).is_some_and(|slot| slot.id == id);
        if known && id.serial != FinishId::NONE.serial && from != self.membership.here {
            return Ok(near);
        }
        self.find_or_add_slot(id, from)
    }

    #[inline(never)]
    fn find_or_add_slot(&mut self, id: FinishId, from: PlaceId) -> Result<usize, TaskRefusal> {
        if from == self.membership.here {
            return Err(TaskRefusal::UnknownPlace(from));
        }
        if id.home == self.membership.here {
            return Err(TaskRefusal::UnknownFinish);
        }
        self.membership.admit(id.home)?;
        Ok(self.proxy(id))
    }

    /// Does what is due once no task of the finish is live here.
    #[inline(never)]
    fn quiesce(&mut self, index: usize, out: &mut Vec<Output>) {
        match self.slots[index].role {
            Role::Home(_) => self.conclude(index, out),
            Role::Proxy(_) => self.report_if_due(index, out),
            Role::Orphan => self.vacate(index),
            Role::Free => {}
        }
    }
}

/// Knowledge of a place about the places that still have tasks of a finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The finish.
    pub finish: FinishId,
    /// The place that explains; only the home of the finish knows of other places.
    pub here: PlaceId,
    /// Number of tasks of the finish here, and of requests in progress.
    pub live: u64,
    /// True if the finish is cancelled, as far as this place knows.
    pub cancelled: bool,
    /// Other places that are waited for, ascending.
    pub waiting: Vec<Waiting>,
}

/// Knowledge about one place that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The place.
    pub place: PlaceId,
    /// Number of tasks known to be sent there, and not known to have ended.
    pub tasks: u64,
    /// Number of reports received from there; the knowledge is as old as the last of them.
    pub reports: u32,
    /// True if a question to it is unanswered: it is busy, far, or dead.
    pub asked: bool,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}: ", self.finish, if self.cancelled { " (cancelled)" } else { "" })?;
        write!(f, "{} live at {}", self.live, self.here)?;
        for waiting in &self.waiting {
            write!(f, ", {} at {}", waiting.tasks, waiting.place)?;
            write!(f, " ({} reports heard{})", waiting.reports, if waiting.asked { ", asked" } else { "" })?;
        }
        Ok(())
    }
}
