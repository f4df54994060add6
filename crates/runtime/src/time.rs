//! Time as a program sees it: the cost of its steps where time is modelled, and timers.
//!
//! Deadlines of finishes and sleeping tasks are in one table, ordered by time. An idle place waits until the first is
//! due; a busy one looks at its clock now and then, which costs it next to nothing. Invariant: a timer is in the table
//! until it is due or given up, and fires at most once.

use crate::attachment::Attachment;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{CLOCK_LOOKS_APART, CLOCK_STEPS_MAX};
use crate::local::Local;
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_protocol::ordered::OrderedMap;
use isles_transport::{FileAccess, Work};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::marker::PhantomData;
use std::mem;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A number of cycles of the core that a place runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cycles(pub u64);

impl From<Cycles> for Work {
    fn from(cycles: Cycles) -> Work {
        Work::new().cycles(cycles.0)
    }
}

/// Charges the cost of the step that the calling task has just done, or does next: [`Cycles`], or a [`Work`] with
/// operations by class and the memory that they touch.
///
/// On a modelled chip this advances the clock of the place; on a real machine the step takes the time it takes, and the
/// call is free. Call it once for much work rather than often for little. Outside of a place it does nothing.
#[inline]
#[track_caller]
pub fn work(cost: impl Into<Work>) {
    let (cost, line) = (cost.into(), Location::caller());
    Local::try_with(|local| local.endpoint().work_model().map(|model| model.work(&cost, line)));
}

/// Charges a file access of the calling task, which on a modelled chip goes to a server that all places share. Outside
/// of a place it does nothing.
pub fn access_file(access: &FileAccess) {
    Local::try_with(|local| local.endpoint().work_model().map(|model| model.access_file(access)));
}

/// Returns the time since the start of the run at the calling place: the host's, or on a modelled chip the chip's.
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn now() -> Duration {
    Local::with(|local| local.clock().now())
}

/// Returns the earlier of two times; `None` is later than any time.
#[inline]
pub fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The id of a timer: its time in nanoseconds, at most 584 years, and its number.
pub(crate) type TimerId = (u64, u64);

/// Action when a timer is due.
pub(crate) enum Due {
    /// Cancels the finish.
    Deadline(Key),
    /// Wakes the task.
    Wake(Waker),
}

/// The timers of a place.
#[derive(Default)]
pub(crate) struct Timers {
    entries: RefCell<OrderedMap<TimerId, Due>>,
    /// Number of timers made so far.
    serial: Cell<u64>,
    /// True if there are any timers; looked at in every step.
    any: Cell<bool>,
    /// Number of busy steps until the next look at the clock, and the present number between two looks.
    steps_left: Cell<u32>,
    steps_apart: Cell<u32>,
    /// The clock at the last look.
    last_look: Cell<Duration>,
}

impl Timers {
    /// Adds a timer that is due at `time`.
    pub(crate) fn set(&self, time: Duration, due: Due) -> TimerId {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let id = (nanoseconds, self.serial.replace(self.serial.get() + 1));
        self.entries.borrow_mut().insert(id, due);
        self.any.set(true);
        id
    }

    /// Removes a timer, unless it was due.
    pub(crate) fn give_up(&self, id: TimerId) {
        let mut entries = self.entries.borrow_mut();
        let given_up = entries.remove(id);
        self.any.set(!entries.is_empty());
        drop(entries);
        drop(given_up);
    }

    /// Returns `true` if a timer has fired; otherwise it wakes `waker` when it does.
    fn poll(&self, id: TimerId, waker: &Waker) -> bool {
        match self.entries.borrow().get(id) {
            None => return true,
            Some(Due::Wake(known)) if known.will_wake(waker) => return false,
            Some(_) => {}
        }
        // Cloning or dropping a waker may run code of the program, which may come back here.
        let mut due = Due::Wake(waker.clone());
        let is_set = match self.entries.borrow_mut().get_mut(id) {
            None => false,
            Some(before) => {
                mem::swap(before, &mut due);
                true
            }
        };
        drop(due);
        !is_set
    }

    /// Returns the time at which the first timer is due.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.entries.borrow().first().map(|((time, _), _)| Duration::from_nanos(time))
    }

    /// Returns the number of timers.
    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Removes all timers, at the end of the place.
    pub(crate) fn clear(&self) {
        self.any.set(false);
        let entries = self.entries.take();
        drop(entries);
    }

    /// Fires the timers that are due; returns their number.
    pub(crate) fn expire(&self, local: &Local) -> usize {
        if !self.any.get() {
            return 0;
        }
        self.expire_until(local, local.clock().now())
    }

    /// As [`Timers::expire`], in a step in which something happened: looks at the clock only in one of several steps,
    /// so that looks are about [`CLOCK_LOOKS_APART`] apart.
    #[inline]
    pub(crate) fn expire_busy(&self, local: &Local) {
        if self.any.get() {
            let left = self.steps_left.get();
            if left > 0 { self.steps_left.set(left - 1) } else { self.check_clock(local) }
        }
    }

    #[cold]
    fn check_clock(&self, local: &Local) {
        let now = local.clock().now();
        let apart = self.steps_apart.get();
        let apart = match now.saturating_sub(self.last_look.replace(now)) {
            passed if passed > CLOCK_LOOKS_APART => 0,
            passed if passed < CLOCK_LOOKS_APART / 2 => (2 * apart + 1).min(CLOCK_STEPS_MAX),
            _ => apart,
        };
        self.steps_apart.set(apart);
        self.steps_left.set(apart);
        self.expire_until(local, now);
    }

    fn expire_until(&self, local: &Local, now: Duration) -> usize {
        let mut count = 0;
        while let Some(due) = self.take_first(now) {
            count += 1;
            match due {
                Due::Deadline(key) => local.finishes.expire(local, key),
                Due::Wake(waker) => waker.wake(),
            }
        }
        count
    }

    fn take_first(&self, now: Duration) -> Option<Due> {
        let mut entries = self.entries.borrow_mut();
        let (id, _) = entries.first().filter(|((time, _), _)| Duration::from_nanos(*time) <= now)?;
        let due = entries.remove(id)?;
        self.any.set(!entries.is_empty());
        Some(due)
    }
}

/// The wait of [`sleep`]. Dropping it early leaves nothing behind.
#[must_use = "a sleep waits only where it is awaited"]
pub struct Sleep {
    time: Duration,
    timer: Option<TimerId>,
    /// The place and the run that it was made in.
    place: PlaceId,
    attachment: Attachment,
    /// Not `Send`: a clock belongs to a place.
    unsent: PhantomData<Rc<()>>,
}

/// Waits until `limit` has passed since the call, by the clock of the place: the host's, or on a modelled chip the
/// chip's. Others run meanwhile, and a place where all tasks sleep waits without computing.
///
/// It never ends early. A place runs one task at a time, so it may end late.
///
/// # Panics
/// Outside of a place; and when polled at another place, which has another clock.
#[track_caller]
pub fn sleep(limit: Duration) -> Sleep {
    Local::with(|local| Sleep {
        time: local.clock().now().saturating_add(limit),
        timer: None,
        place: local.here(),
        attachment: local.attachment(),
        unsent: PhantomData,
    })
}

impl Sleep {
    /// Returns `true` if it was made at this place in this run.
    fn is_of(&self, local: &Local) -> bool {
        self.attachment == local.attachment()
    }

    #[cold]
    fn refuse(&self, here: PlaceId) -> ! {
        if here == self.place {
            panic!("a `Sleep` that was made in another run was polled at {here}; await it in its own run");
        }
        let place = self.place;
        panic!("a `Sleep` that was made at {place} was polled at {here}; await it at its own place");
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Local::with(|local| match self.timer {
            _ if !self.is_of(local) => self.refuse(local.here()),
            None => {
                // Also if the time has passed: the other tasks have a turn first.
                let due = Due::Wake(context.waker().clone());
                self.timer = Some(local.timers.set(self.time, due));
                Poll::Pending
            }
            Some(timer) if local.timers.poll(timer, context.waker()) => Poll::Ready(()),
            Some(_) => Poll::Pending,
        })
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // At another place it cannot be removed: it fires there and wakes a task that no longer waits.
            Local::try_with(|local| self.is_of(local).then(|| local.timers.give_up(timer)));
        }
    }
}

/// Waits for `future`, for at most `limit` from the call on; then drops it.
///
/// Tasks that it has started elsewhere go on, except for calls, whose bodies are dropped too. To end tasks at all
/// places, give a [`finish`](crate::finish) a deadline.
///
/// # Errors
/// [`DeadlinePassed`](ErrorKind::DeadlinePassed).
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn timeout<F: Future>(limit: Duration, future: F) -> impl Future<Output = Result<F::Output>> {
    let sleep = sleep(limit);
    async move {
        let (mut future, mut sleep) = (pin!(future), pin!(sleep));
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            let late = || Error::new(ErrorKind::DeadlinePassed, format!("it did not end within {limit:?}"));
            sleep.as_mut().poll(context).map(|()| Err(late()))
        })
        .await
    }
}
