//! State of one object at one place: its token, the waiting tasks, and on modelled chips when its caches are stale.
//!
//! Invariant: nothing of it is borrowed while a task is woken or a message is sent.

use super::SharedOptions;
use super::memory::{MemoryRange, ObjectMemory};
use super::message::{ObjectId, ObjectMessage, ReturnedToken};
use super::table::{AnyObject, ApplyFault};
use crate::shared::message::OBJECT;
use isles_protocol::PlaceId;
use isles_protocol::shared::{
    Admission, AwaitedAnswer, Flags, GiveBack, Granted, GuardMode, Holder, Home, HomeStep, InvalidationFault,
    InvalidationRange, Invalidations, Known, ObjectRequest, Staleness, Token,
};
use isles_runtime::limits::ERROR_BYTES_MAX;
use isles_runtime::service::coop::spin_until;
use isles_runtime::service::{Attachment, Members, Refused};
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_telemetry::CounterId;
use isles_transport::Class;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// A task that waits for a guard.
struct Wait {
    number: u64,
    mode: GuardMode,
    waker: Waker,
}

/// State of one object at one place: its token, the waiting tasks, and on modelled chips when its caches are stale.
pub(crate) struct ObjectState {
    pub(super) id: ObjectId,
    pub(super) attachment: Attachment,
    pub(super) members: Members,
    pub(super) options: SharedOptions,
    pub(super) holder: RefCell<Holder>,
    /// The home's side, if this is the home.
    home: Option<RefCell<Home>>,
    /// Steps that the home has decided and not yet taken, and whether it is taking them.
    steps: RefCell<VecDeque<HomeStep>>,
    is_executing: Cell<bool>,
    /// The error because of which the copy here is not the value, if any.
    unreadable: RefCell<Option<Error>>,
    /// True once the last handle is gone, so that no token comes any more. A task that grows a mapping needs no handle.
    is_abandoned: Cell<bool>,
    waits: RefCell<VecDeque<Wait>>,
    next_wait: Cell<u64>,
    /// The machine's memory, where it is modelled.
    pub(super) memory: Option<ObjectMemory>,
    /// The counter of generations in that memory.
    pub(super) counter: Option<MemoryRange>,
    /// Staleness of cached copies, and the generation that the home has.
    pub(super) staleness: RefCell<Staleness>,
    /// True if something was stored that has not been written back.
    pub(super) is_unwritten: Cell<bool>,
    invalidations: RefCell<Invalidations>,
    /// Tasks that wait until all places know of an invalidation by this one.
    flag_waits: RefCell<Vec<(u32, Waker)>>,
}

impl ObjectState {
    pub(super) fn new(
        local: &Local,
        id: ObjectId,
        members: Members,
        options: SharedOptions,
        memory: Option<ObjectMemory>,
        counter: Option<MemoryRange>,
    ) -> ObjectState {
        let is_home = id.home == local.here();
        ObjectState {
            id,
            attachment: local.attachment(),
            members,
            options,
            holder: RefCell::new(Holder::new(if is_home { Token::Write } else { Token::None })),
            home: is_home.then(|| RefCell::new(Home::new(options.controller, id.home))),
            steps: RefCell::default(),
            is_executing: Cell::new(false),
            unreadable: RefCell::default(),
            is_abandoned: Cell::new(false),
            waits: RefCell::default(),
            next_wait: Cell::new(0),
            memory,
            counter,
            staleness: RefCell::new(Staleness::new(is_home)),
            is_unwritten: Cell::new(false),
            invalidations: RefCell::default(),
            flag_waits: RefCell::default(),
        }
    }

    /// Sends a message about this object.
    ///
    /// # Errors
    /// The place is dead, or the message cannot be encoded; nothing was sent.
    fn send(&self, local: &Local, to: PlaceId, message: ObjectMessage, changes: &[u8]) -> Result<()> {
        let guess = changes.len() + 40;
        local.send_with_size_hint(to, Class::Control, OBJECT, guess, |writer| {
            writer.put_serde(&(self.id, message))?;
            writer.put_bytes(changes);
            Ok(())
        })?;
        Ok(())
    }

    /// Polls for a guard; `ticket` is the number of the wait.
    ///
    /// # Errors
    /// The home is dead.
    pub(super) fn poll_acquire(
        &self,
        local: &Local,
        object: &dyn AnyObject,
        mode: GuardMode,
        ticket: &mut Option<u64>,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if self.is_abandoned.get() {
            return Poll::Ready(Err(self.abandoned(ticket)));
        }
        let is_first = match (*ticket, self.waits.borrow().front()) {
            (_, None) => true,
            (Some(number), Some(front)) => front.number == number,
            (None, Some(_)) => false,
        };
        if !is_first {
            self.wait(mode, ticket, context);
            return Poll::Pending;
        }
        let mut admission = self.holder.borrow_mut().acquire(mode);
        loop {
            match admission {
                Admission::Now => {
                    self.leave_queue(ticket);
                    return Poll::Ready(Ok(()));
                }
                Admission::Wait => {
                    self.wait(mode, ticket, context);
                    // An answer that comes soon is found sooner this way than through the place's queue.
                    let mut condition = || {
                        let admission = self.holder.borrow_mut().acquire(mode);
                        (admission != Admission::Wait).then_some(admission)
                    };
                    match spin_until(&mut condition) {
                        Some(heard) => admission = heard,
                        None => return Poll::Pending,
                    }
                }
                Admission::Ask => {
                    self.wait(mode, ticket, context);
                    if let Err(error) = self.ask(local, object, mode) {
                        self.holder.borrow_mut().home_died();
                        self.leave_queue(ticket);
                        return Poll::Ready(Err(error));
                    }
                    admission = self.holder.borrow_mut().acquire(mode);
                }
            }
        }
    }

    /// Asks the home for a token.
    fn ask(&self, local: &Local, object: &dyn AnyObject, mode: GuardMode) -> Result<()> {
        let since = self.holder.borrow().copy_generation();
        if let Some(home) = &self.home {
            let steps = home.borrow_mut().request(ObjectRequest { place: local.here(), mode, since });
            self.execute_steps(local, object, steps.expect("a place asks for what it has not, once"));
            return Ok(());
        }
        self.send(local, self.id.home, ObjectMessage::Request(mode, since), &[])
    }

    fn wait(&self, mode: GuardMode, ticket: &mut Option<u64>, context: &mut Context<'_>) {
        let mut waits = self.waits.borrow_mut();
        if let Some(wait) = waits.iter_mut().find(|wait| Some(wait.number) == *ticket) {
            wait.waker.clone_from(context.waker());
            return;
        }
        let number = self.next_wait.replace(self.next_wait.get() + 1);
        waits.push_back(Wait { number, mode, waker: context.waker().clone() });
        *ticket = Some(number);
    }

    /// Leaves the queue after a wait, and wakes the next task.
    #[inline]
    fn leave_queue(&self, ticket: &mut Option<u64>) {
        let Some(number) = ticket.take() else { return };
        let mut waits = self.waits.borrow_mut();
        if let Some(index) = waits.iter().position(|wait| wait.number == number) {
            let over = waits.remove(index);
            drop(waits);
            drop(over);
        }
        self.wake_first();
    }

    /// Gives up the wait.
    pub(super) fn give_up(&self, local: &Local, object: &dyn AnyObject, ticket: &mut Option<u64>) {
        self.leave_queue(ticket);
        let back = self.holder.borrow_mut().give_up(self.next_wanted());
        self.send_back(local, object, back);
    }

    /// Returns `true` if this place could not read the value, so that a guard which repairs makes the local copy the
    /// value.
    pub(super) fn is_unread(&self) -> bool {
        !self.holder.borrow().is_current() || self.memory.is_some() && self.staleness.borrow().is_stale()
    }

    /// Returns the guard that the first waiting task wants.
    fn next_wanted(&self) -> Option<GuardMode> {
        self.waits.borrow().front().map(|wait| wait.mode)
    }

    /// Returns why the copy here is not the value, if it is not.
    pub(super) fn unreadable(&self) -> Option<Error> {
        if self.holder.borrow().is_current() { None } else { self.unreadable.borrow().clone() }
    }

    /// Ends a wait for a guard that nothing will grant; returns the error.
    #[cold]
    fn abandoned(&self, ticket: &mut Option<u64>) -> Error {
        self.leave_queue(ticket);
        Error::new(ErrorKind::Closed, "no handle of the shared object is left")
    }

    /// Wakes all tasks that wait for a guard, because the last handle is gone and no token comes any more.
    pub(super) fn abandon(&self) {
        self.is_abandoned.set(true);
        self.wake_all();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.get()
    }

    fn wake_all(&self) {
        let all: Vec<Waker> = self.waits.borrow().iter().map(|wait| wait.waker.clone()).collect();
        all.into_iter().for_each(Waker::wake);
    }

    /// Wakes the first waiting task, which then looks by itself.
    #[inline]
    pub(super) fn wake_first(&self) {
        let waker = self.waits.borrow().front().map(|wait| wait.waker.clone());
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends a guard.
    #[inline]
    pub(super) fn release(&self, local: &Local, object: &dyn AnyObject, mode: GuardMode, has_changed: bool) {
        let back = self.holder.borrow_mut().release(mode, has_changed);
        if back.is_some() {
            self.send_back(local, object, back);
        }
        self.wake_first();
    }

    /// Returns a token to the home.
    fn send_back(&self, local: &Local, object: &dyn AnyObject, back: Option<GiveBack>) {
        let Some(mut back) = back else { return };
        if back.had_written {
            object.write_back();
        }
        if let Some(home) = &self.home {
            let steps = home.borrow_mut().given_back(local.here(), back);
            self.execute_steps(local, object, steps.expect("a place gives back what is recalled"));
            return self.wake_first();
        }
        let mut changes = Vec::new();
        let base = self.staleness.borrow().generation();
        if back.had_written && back.generation > base {
            match object.changes(base) {
                Ok(encoded) => changes = encoded,
                Err(_) => back = self.without_value(back),
            }
        }
        let message = |back| ObjectMessage::GiveBack(ReturnedToken::of(back));
        if self.send(local, self.id.home, message(back), &changes).is_err() {
            back = self.without_value(back);
            // Shorter, in case the value was too long to send; if the home is dead, nothing receives it.
            let _ = self.send(local, self.id.home, message(back), &[]);
        }
        self.staleness.borrow_mut().gave_back(back.generation);
        self.wake_first();
    }

    /// Returns the token without the value of this place, which no other place can have: the object is poisoned, and
    /// its value is the last that the home has, in a generation of which no place has a copy.
    fn without_value(&self, back: GiveBack) -> GiveBack {
        self.holder.borrow_mut().set_poisoned(true);
        GiveBack { generation: back.generation + 1, is_poisoned: true, ..back }
    }

    /// Takes the steps that the home has decided, in order. Sending may deliver messages, on which the home decides
    /// more.
    fn execute_steps(&self, local: &Local, object: &dyn AnyObject, steps: Vec<HomeStep>) {
        self.steps.borrow_mut().extend(steps);
        if self.is_executing.replace(true) {
            return;
        }
        loop {
            let step = self.steps.borrow_mut().pop_front();
            match step {
                None => break,
                Some(HomeStep::Grant { request, generation, flushes, is_poisoned }) => {
                    let granted = Granted { mode: request.mode, generation, is_poisoned, is_applied: true };
                    self.grant(local, object, request, granted, flushes);
                }
                Some(HomeStep::Recall { place, keeps }) if place == local.here() => {
                    let back = self.holder.borrow_mut().recall(keeps);
                    self.send_back(local, object, back.expect("the home recalls what it has granted"));
                }
                Some(HomeStep::Recall { place, keeps }) => {
                    // If the place has died, `place_died` handles it.
                    let _ = self.send(local, place, ObjectMessage::Recall(keeps), &[]);
                }
            }
        }
        self.is_executing.set(false);
    }

    fn grant(
        &self,
        local: &Local,
        object: &dyn AnyObject,
        request: ObjectRequest,
        granted: Granted,
        flushes: bool,
    ) {
        let ObjectRequest { place, mode, since } = request;
        if place == local.here() {
            let granted = self.granted(granted, flushes);
            return granted.expect("the home grants what it asked for");
        }
        local.add_count(CounterId::ObjectHandOvers, 1);
        let Granted { generation, is_poisoned, .. } = granted;
        let message =
            |has_changes| ObjectMessage::Grant { mode, generation, flushes, is_poisoned, has_changes };
        let changes = if since < generation { object.changes(since) } else { Ok(Vec::new()) };
        let sent = changes.and_then(|changes| self.send(local, place, message(true), &changes));
        if let Err(error) = sent {
            // The value cannot be encoded, or is too long; or the place has died, which `place_died` handles.
            let _ = self.send(local, place, message(false), &error.to_wire(ERROR_BYTES_MAX));
        }
    }

    fn granted(&self, granted: Granted, flushes: bool) -> Result<(), Refused> {
        let taken = self.holder.borrow_mut().granted(granted, self.next_wanted());
        taken.map_err(|_| Refused::of_service("it grants a guard that was not asked for"))?;
        self.staleness.borrow_mut().granted(granted.generation, flushes);
        self.wake_first();
        Ok(())
    }

    /// Applies changes to the copy here; returns whether the program could read them. If it could not, guards here fail
    /// with that error until other changes arrive.
    ///
    /// # Errors
    /// No valid place sends such changes.
    fn apply(&self, object: &dyn AnyObject, changes: &[u8]) -> Result<bool, Refused> {
        match object.apply(changes) {
            Ok(()) => Ok(true),
            Err(ApplyFault::Unreadable(fault)) => {
                self.unreadable.replace(Some(Error::undecodable("the value of a shared object", fault)));
                Ok(false)
            }
            Err(ApplyFault::Malformed(fault)) => Err(fault.into()),
        }
    }

    /// Receives a message of `source`, with the changes that follow it.
    ///
    /// # Errors
    /// No valid place sends such a message.
    pub(super) fn receive(
        &self,
        local: &Local,
        object: &dyn AnyObject,
        source: PlaceId,
        message: ObjectMessage,
        changes: &[u8],
    ) -> Result<(), Refused> {
        let not_home = || Refused::of_service("it asks a place that is not the home of the object");
        match message {
            ObjectMessage::Request(mode, since) => {
                let request = ObjectRequest { place: source, mode, since };
                let steps = self.home.as_ref().ok_or_else(not_home)?.borrow_mut().request(request);
                let steps = steps.map_err(|_| Refused::of_service("it asks for a guard twice"))?;
                self.execute_steps(local, object, steps);
            }
            ObjectMessage::GiveBack(back) => {
                let (home, mut back) = (self.home.as_ref().ok_or_else(not_home)?, back.back());
                let not_held = || Refused::of_service("it gives back a guard that it does not hold");
                if back.had_written {
                    if !home.borrow().may_write(source) {
                        return Err(not_held());
                    }
                    if !self.apply(object, changes)? {
                        back = self.without_value(back);
                    }
                    self.holder.borrow_mut().copied(back.generation, back.is_poisoned);
                    self.staleness.borrow_mut().received(back.generation);
                }
                let steps = home.borrow_mut().given_back(source, back).map_err(|_| not_held())?;
                self.execute_steps(local, object, steps);
            }
            ObjectMessage::Grant { mode, generation, flushes, is_poisoned, has_changes }
                if source == self.id.home =>
            {
                let is_applied = has_changes && self.apply(object, changes)?;
                if !has_changes {
                    self.unreadable.replace(Some(Error::from_wire(changes)));
                }
                self.granted(Granted { mode, generation, is_poisoned, is_applied }, flushes)?;
            }
            ObjectMessage::Recall(keeps) if source == self.id.home => {
                let back = self.holder.borrow_mut().recall(keeps);
                let back =
                    back.map_err(|_| Refused::of_service("it recalls a guard that it did not grant"))?;
                self.send_back(local, object, back);
            }
            ObjectMessage::Grant { .. } | ObjectMessage::Recall(_) => return Err(Refused::NotItsHome),
            ObjectMessage::Invalidate(range) => self.receive_invalidation(local, source, range)?,
            ObjectMessage::Invalidated(token) => self.receive_invalidated(local, source, token)?,
        }
        Ok(())
    }

    /// Handles the death of a place: its tokens become free, and its answers will not come.
    pub(super) fn place_died(&self, local: &Local, object: &dyn AnyObject, place: PlaceId) {
        if let Some(home) = &self.home {
            let steps = home.borrow_mut().place_died(place);
            self.execute_steps(local, object, steps);
        } else if place == self.id.home {
            self.holder.borrow_mut().home_died();
            self.wake_all();
        }
        // Guards that did not wait for the place are not affected.
        let owed = self.invalidations.borrow_mut().place_died(&self.members, place);
        for (flags, known) in owed {
            self.send_flags(local, flags);
            known.into_iter().for_each(|known| self.flag_known(local, known));
        }
    }

    /// Describes the waits here in a line.
    pub(super) fn explain(&self) -> Option<String> {
        let waits = self.waits.borrow();
        let waiting = waits.len();
        (waiting > 0).then(|| format!("{waiting} guards of an object of {}, in turn", self.id.home))
    }
}

/// Invalidation flags, where the program itself keeps guards apart.
impl ObjectState {
    /// Tells all other places that their caches are stale; returns the token of the invalidation.
    pub(super) fn invalidate_others(&self, local: &Local) -> u32 {
        let root = self.members.rank_of(local.here()).unwrap_or_default();
        let flags = self.invalidations.borrow_mut().begin(&self.members, root);
        let token = flags.token;
        self.send_flags(local, flags);
        token
    }

    /// Sends flags; those for a dead place go to the places that it would have told.
    fn send_flags(&self, local: &Local, Flags { token, to }: Flags) {
        let mut to = VecDeque::from(to);
        while let Some((place, range)) = to.pop_front() {
            if self.send(local, place, ObjectMessage::Invalidate(range), &[]).is_ok() {
                continue;
            }
            // The death of the place may have been handled meanwhile.
            let owed = self.invalidations.borrow_mut().undelivered(&self.members, place, token);
            if let Ok((more, known)) = owed {
                to.extend(more.to);
                known.into_iter().for_each(|known| self.flag_known(local, known));
            }
        }
    }

    /// Handles that all places which were sent a flag have answered: notifies the task or the place that waits for
    /// that.
    fn flag_known(&self, local: &Local, Known { token, answer }: Known) {
        if let Some(AwaitedAnswer { place, token }) = answer {
            let _ = self.send(local, place, ObjectMessage::Invalidated(token), &[]);
        }
        let mut waits = self.flag_waits.borrow_mut();
        let over: Vec<Waker> =
            waits.extract_if(.., |(flag, _)| *flag == token).map(|(_, waker)| waker).collect();
        drop(waits);
        over.into_iter().for_each(Waker::wake);
    }

    fn receive_invalidation(
        &self,
        local: &Local,
        source: PlaceId,
        range: InvalidationRange,
    ) -> Result<(), Refused> {
        let received = self.invalidations.borrow_mut().receive(&self.members, source, range);
        let (flags, known) = received.map_err(refused)?;
        self.staleness.borrow_mut().flagged();
        self.send_flags(local, flags);
        known.into_iter().for_each(|known| self.flag_known(local, known));
        Ok(())
    }

    fn receive_invalidated(&self, local: &Local, source: PlaceId, token: u32) -> Result<(), Refused> {
        let known = self.invalidations.borrow_mut().answered(source, token).map_err(refused)?;
        known.into_iter().for_each(|known| self.flag_known(local, known));
        Ok(())
    }

    /// Waits until all places know of an invalidation.
    pub(super) fn poll_invalidated(&self, token: u32, context: &mut Context<'_>) -> Poll<()> {
        if self.invalidations.borrow().is_known(token) {
            return Poll::Ready(());
        }
        let mut waits = self.flag_waits.borrow_mut();
        match waits.iter_mut().find(|(flag, _)| *flag == token) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => waits.push((token, context.waker().clone())),
        }
        Poll::Pending
    }

    /// Returns `true` if only the program keeps guards apart.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.options.exclusion == super::Exclusion::Program && self.memory.is_some()
    }

    /// Returns the error of a guard that another one excludes, where the program keeps them apart.
    pub(super) fn overlap() -> Error {
        let text = "a guard of a shared object conflicts with another one of this place; the object was \
             made with `Exclusion::Program`, so the program must keep them apart";
        Error::new(ErrorKind::Misused, text)
    }
}

fn refused(fault: InvalidationFault) -> Refused {
    Refused::of_service(match fault {
        InvalidationFault::NoSuchMembers => "it flags places that do not exist",
        InvalidationFault::NotFlagged => "it answers a flag that it did not get",
    })
}
