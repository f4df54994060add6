//! Guards: what a task holds while it reads or writes an object, and how it acquires them.

use super::acquire::ObjectRank;
use super::memory::ObjectMemory;
use super::message::ObjectId;
use super::table::{Line, Precedence};
use super::value::SharedValue;
use super::{Controller, MemoryKind, Object, Shared};
use crate::shared::table::ObjectTable;
use crate::table::service::Service;
use isles_protocol::shared::GuardMode;
use isles_runtime::service::FOREIGN;
use isles_runtime::service::coop::{CALL, must_yield, spend_budget_of};
use isles_runtime::{Error, ErrorKind, Local, Result};
use std::cell::{Ref, RefMut};
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

impl<T: SharedValue> Shared<T> {
    /// Waits for a guard to read, which other readers may hold at the same time.
    ///
    /// # Errors
    /// - [`Poisoned`](ErrorKind::Poisoned): a writer died or panicked, or left a value that its home cannot read; see
    ///   [`Shared::repair`].
    /// - [`Undecodable`](ErrorKind::Undecodable), or [`Panicked`](ErrorKind::Panicked) by its `Deserialize`: this place
    ///   cannot read the value that another one wrote.
    /// - [`DeadPlace`](ErrorKind::DeadPlace): the home, which decides, is dead.
    /// - [`Misused`](ErrorKind::Misused): the task could wait for itself, or in a circle, because of a guard that it
    ///   holds; or the handle is of another run.
    #[track_caller]
    #[inline]
    pub fn read(&self) -> ReadFuture<'_, T> {
        ReadFuture(Acquire::new(self.object(), GuardMode::Read, Location::caller(), false))
    }

    /// Waits for a guard to read and write, which excludes all others.
    ///
    /// # Errors
    /// As [`Shared::read`].
    #[track_caller]
    #[inline]
    pub fn write(&self) -> WriteFuture<'_, T> {
        WriteFuture(Acquire::new(self.object(), GuardMode::Write, Location::caller(), false))
    }

    /// As [`Shared::write`], even if the object is poisoned: its value is then the last that the home has, and the
    /// object is sound from now on. If this place could not read the value, it is the last that this place could read.
    ///
    /// # Errors
    /// As [`Shared::read`], except for `Poisoned`, and for a value that cannot be read.
    #[track_caller]
    pub fn repair(&self) -> WriteFuture<'_, T> {
        WriteFuture(Acquire::new(self.object(), GuardMode::Write, Location::caller(), true))
    }
}

/// The wait for a guard.
struct Acquire<'a, T: SharedValue> {
    object: &'a Object<T>,
    mode: GuardMode,
    line: Line,
    /// True if a poisoned object is acquired as well.
    repairs: bool,
    /// Number of this wait in the queue of the place.
    ticket: Option<u64>,
    is_polled: bool,
}

/// The wait of [`Shared::read`].
#[must_use = "a guard is asked for when this is awaited"]
pub struct ReadFuture<'a, T: SharedValue>(Acquire<'a, T>);

/// The wait of [`Shared::write`].
#[must_use = "a guard is asked for when this is awaited"]
pub struct WriteFuture<'a, T: SharedValue>(Acquire<'a, T>);

/// A guard that reads.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct ReadGuard<'a, T: SharedValue> {
    value: Option<Ref<'a, T>>,
    hold: HeldGuard<'a, T>,
}

/// A guard that reads and writes.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct WriteGuard<'a, T: SharedValue> {
    value: Option<RefMut<'a, T>>,
    has_changed: bool,
    /// Id of the invalidation flags sent to others when the guard began.
    invalidation: Option<u32>,
    hold: HeldGuard<'a, T>,
}

/// A guard, as the place records it.
struct HeldGuard<'a, T: SharedValue> {
    object: &'a Object<T>,
    number: u64,
}

impl<'a, T: SharedValue> Acquire<'a, T> {
    #[inline]
    fn new(object: &'a Object<T>, mode: GuardMode, line: Line, repairs: bool) -> Acquire<'a, T> {
        Acquire { object, mode, line, repairs, ticket: None, is_polled: false }
    }

    /// Polls for the guard, and records it.
    #[inline]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<HeldGuard<'a, T>>> {
        // In one visit to the place: a guard that need not wait takes some 30 ns.
        let polled = Local::with(|local| {
            let is_first = !self.is_polled;
            if is_first && must_yield(local) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.is_polled = true;
            let polled = self.poll_at(local, context);
            if is_first && polled.is_ready() {
                spend_budget_of(local, CALL);
            }
            polled
        });
        polled.map_err(|error| error.called_at(Local::with(Local::here), self.line))
    }

    #[inline]
    fn poll_at(&mut self, local: &Local, context: &mut Context<'_>) -> Poll<Result<HeldGuard<'a, T>>> {
        let object = self.object;
        let state = &object.state;
        if state.attachment != local.attachment() {
            return Poll::Ready(Err(Error::new(ErrorKind::Misused, FOREIGN)));
        }
        let (task, objects) = (context.waker().data() as usize, &ObjectTable::of(local));
        if !state.is_free() {
            let order = if self.ticket.is_none() {
                objects.check_order(task, state.id, self.mode)?
            } else {
                Precedence::InTurn
            };
            match order {
                Precedence::AtOnce => state.holder.borrow_mut().join_reader(),
                Precedence::InTurn => {
                    ready!(state.poll_acquire(local, object, self.mode, &mut self.ticket, context))?
                }
            }
        }
        let number = objects.add_guard(local, task, state.id, self.mode, self.line);
        let hold = HeldGuard { object, number };
        let is_sound = state.memory.is_none() && state.holder.borrow().is_valid();
        Poll::Ready(if is_sound { Ok(hold) } else { self.examine(hold) })
    }

    /// Refreshes the value where memory is modelled; refuses the guard if the object is poisoned or its value
    /// unreadable.
    #[cold]
    #[inline(never)]
    fn examine(&self, hold: HeldGuard<'a, T>) -> Result<HeldGuard<'a, T>> {
        let (object, state) = (self.object, &self.object.state);
        let unreadable = match state.memory {
            Some(_) => object.begin(self.mode).inspect_err(|_| hold.end(self.mode, false))?,
            None => state.unreadable(),
        };
        let is_poisoned = state.holder.borrow().is_poisoned();
        if is_poisoned || unreadable.is_some() {
            if !self.repairs {
                hold.end(self.mode, false);
                return Err(unreadable.filter(|_| !is_poisoned).unwrap_or_else(poisoned));
            }
            state.holder.borrow_mut().set_poisoned(false);
        }
        Ok(hold)
    }
}

#[cold]
fn poisoned() -> Error {
    let text = "a writer of the shared object died or panicked, or left a value that its home cannot \
         hold; `repair` accepts the remaining value";
    Error::new(ErrorKind::Poisoned, text)
}

impl<T: SharedValue> Drop for Acquire<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.ticket.is_some() {
            let object = self.object;
            let attachment = object.state.attachment;
            attachment.try_with(|local| object.state.give_up(local, object, &mut self.ticket));
        }
    }
}

impl<T: SharedValue> ReadFuture<'_, T> {
    pub(super) fn rank(&self) -> ObjectRank {
        self.0.object.rank()
    }
}

impl<T: SharedValue> WriteFuture<'_, T> {
    pub(super) fn rank(&self) -> ObjectRank {
        self.0.object.rank()
    }
}

impl<'a, T: SharedValue> Future for ReadFuture<'a, T> {
    type Output = Result<ReadGuard<'a, T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let hold = ready!(self.0.poll(context))?;
        match hold.object.value.try_borrow() {
            Ok(value) => Poll::Ready(Ok(ReadGuard { value: Some(value), hold })),
            Err(_) => Poll::Ready(Err(hold.overlap(GuardMode::Read))),
        }
    }
}

impl<'a, T: SharedValue> Future for WriteFuture<'a, T> {
    type Output = Result<WriteGuard<'a, T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let hold = ready!(self.0.poll(context))?;
        match hold.object.value.try_borrow_mut() {
            Ok(value) => {
                let invalidation = hold.object.invalidate_at_begin(&value);
                let has_changed = self.0.repairs && hold.object.state.is_unread();
                Poll::Ready(Ok(WriteGuard { value: Some(value), has_changed, invalidation, hold }))
            }
            Err(_) => Poll::Ready(Err(hold.overlap(GuardMode::Write))),
        }
    }
}

impl<T: SharedValue> HeldGuard<'_, T> {
    /// Ends the guard.
    #[inline]
    fn end(&self, mode: GuardMode, has_changed: bool) {
        let state = &self.object.state;
        state.attachment.try_with(|local| {
            ObjectTable::of(local).remove_guard(self.number);
            if !state.is_free() {
                state.release(local, self.object, mode, has_changed);
            }
        });
    }

    #[cold]
    fn overlap(&self, mode: GuardMode) -> Error {
        self.end(mode, false);
        super::ObjectState::overlap()
    }
}

impl<T: SharedValue> Object<T> {
    fn rank(&self) -> ObjectRank {
        let ObjectId { home, serial } = self.state.id;
        (home.0, serial)
    }

    /// Waits for a guard to write, of an object without a handle at hand.
    pub(super) fn write(&self, line: Line) -> WriteFuture<'_, T> {
        WriteFuture(Acquire::new(self, GuardMode::Write, line, false))
    }

    /// Begins a guard where memory is modelled: what may be stale is dropped from caches and read again. Returns why
    /// the value cannot be read, if so.
    ///
    /// # Errors
    /// Another guard of this place excludes it.
    fn begin(&self, mode: GuardMode) -> Result<Option<Error>> {
        let (state, mut lines) = (&self.state, self.lines.borrow_mut());
        let (Some(memory), Some(lines)) = (&state.memory, &mut *lines) else { return Ok(None) };
        if state.is_free() && state.options.controller == Controller::Timestamp {
            let mut count = [0; 8];
            state.counter.iter().for_each(|counter| memory.memory.read(counter, 0, &mut count));
            let count = u64::from_le_bytes(count);
            state.staleness.borrow_mut().saw_count(count);
        }
        let is_old = state.staleness.borrow().is_stale();
        match self.value.try_borrow_mut() {
            Ok(mut value) => {
                let refreshed = value.refresh(memory, lines, is_old);
                state.staleness.borrow_mut().refreshed(refreshed.is_ok());
                Ok(refreshed.err().map(|fault| Error::undecodable("the value of a shared object", fault)))
            }
            // Another task here reads, so nothing that it sees is stale, unless the program lets guards overlap.
            Err(_) if mode == GuardMode::Read && !is_old => Ok(None),
            Err(_) => Err(super::ObjectState::overlap()),
        }
    }

    /// Invalidates the caches of other places when a guard begins, if the controller does that; returns the id.
    #[inline]
    fn invalidate_at_begin(&self, value: &T) -> Option<u32> {
        let (state, memory) = (&self.state, self.state.memory.as_ref()?);
        let is_overlapped = state.is_free() && state.options.controller == Controller::Overlapped;
        let must_invalidate = is_overlapped && value.is_cached(memory);
        must_invalidate.then(|| Local::with(|local| state.invalidate_others(local)))
    }

    /// Ends a write. Returns whether remote copies are now stale, and the id of the invalidation sent.
    fn end_write(
        &self,
        mut value: RefMut<'_, T>,
        has_changed: bool,
        has_invalidated: bool,
    ) -> (bool, Option<u32>) {
        let state = &self.state;
        if !has_changed {
            return (false, None);
        }
        match &state.memory {
            None => (value.stamp(state.holder.borrow().generation() + 1), None),
            Some(memory) => self.store(memory, value, has_invalidated),
        }
    }

    /// Does [`Object::end_write`] where memory is modelled.
    #[cold]
    fn store(
        &self,
        memory: &ObjectMemory,
        mut value: RefMut<'_, T>,
        has_invalidated: bool,
    ) -> (bool, Option<u32>) {
        let state = &self.state;
        let mut lines = self.lines.borrow_mut();
        let Some(lines) = &mut *lines else { return (false, None) };
        state.is_unwritten.set(true);
        let Ok(is_old_elsewhere) = value.store(memory, lines) else {
            state.holder.borrow_mut().set_poisoned(true);
            return (true, None);
        };
        if !state.is_free() {
            // The write buffer must be drained for the next guard of this core as well.
            if memory.kind == MemoryKind::Through {
                state.is_unwritten.set(false);
                value.write_back(memory, lines);
            }
            return (is_old_elsewhere, None);
        }
        let must_invalidate =
            is_old_elsewhere && !has_invalidated && state.options.controller != Controller::Timestamp;
        // Lines are written back while the invalidations are in transit.
        let invalidation = must_invalidate.then(|| Local::with(|local| state.invalidate_others(local)));
        state.is_unwritten.set(false);
        value.write_back(memory, lines);
        if is_old_elsewhere && state.options.controller == Controller::Timestamp {
            let count = state.staleness.borrow_mut().count_write();
            state.counter.iter().for_each(|counter| memory.memory.write(counter, 0, &count.to_le_bytes()));
        }
        (is_old_elsewhere, invalidation)
    }
}

impl<T: SharedValue> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value.as_ref().expect("a guard has its value until it is dropped")
    }
}

impl<T: SharedValue> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.value = None;
        self.hold.end(GuardMode::Read, false);
    }
}

impl<T: SharedValue> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value.as_ref().expect("a guard has its value until it is dropped")
    }
}

impl<T: SharedValue> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.has_changed = true;
        self.value.as_mut().expect("a guard has its value until it is dropped")
    }
}

impl<T: SharedValue> WriteGuard<'_, T> {
    /// Ends the guard; returns once all places know that their copies are stale.
    ///
    /// If guards wait for each other, that is at once. For objects of
    /// [`Exclusion::Program`](crate::Exclusion::Program), dropping the guard starts the same, but the program cannot
    /// know when it is over.
    pub async fn release(mut self) {
        let at_begin = self.invalidation;
        let at_end = self.end();
        let object = self.hold.object;
        drop(self);
        for invalidation in [at_begin, at_end].into_iter().flatten() {
            poll_fn(|context| object.state.poll_invalidated(invalidation, context)).await;
        }
    }

    /// Ends the guard once; returns the id of the invalidation sent.
    #[inline]
    fn end(&mut self) -> Option<u32> {
        let value = self.value.take()?;
        // A half-written value must not be read.
        if self.has_changed && std::thread::panicking() {
            self.hold.object.state.holder.borrow_mut().set_poisoned(true);
        }
        let (has_changed, invalidation) =
            self.hold.object.end_write(value, self.has_changed, self.invalidation.is_some());
        self.hold.end(GuardMode::Write, has_changed);
        invalidation
    }
}

impl<T: SharedValue> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}
