//! State of one place that tasks change, and wait for.

use crate::task::coop::{OPERATION, cooperate};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A value of one place with X10's `atomic` and `when`: a change wakes the tasks that wait for a condition on it.
///
/// A place runs one task at a time, so a change is atomic anyway; a monitor adds the waiting. X10 has one monitor for a
/// whole place; here each value has its own, so unrelated waits do not wake each other.
pub struct Monitor<T> {
    state: RefCell<T>,
    waiting: RefCell<Vec<(u64, Waker)>>,
    serial: Cell<u64>,
}

impl<T> Monitor<T> {
    /// Makes a monitor of `state`.
    pub fn new(state: T) -> Self {
        Monitor { state: RefCell::new(state), waiting: RefCell::default(), serial: Cell::new(0) }
    }

    /// Applies `change` to the state, and wakes all waiting tasks to check their conditions.
    ///
    /// # Panics
    /// If called from within another use of the same monitor.
    #[track_caller]
    pub fn atomic<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.state.borrow_mut());
        for (_, waker) in self.waiting.take() {
            waker.wake();
        }
        result
    }

    /// Waits until `condition` holds, then applies `change` to the state, with nothing in between.
    ///
    /// # Panics
    /// As [`Monitor::atomic`].
    pub async fn when<R>(
        &self,
        mut condition: impl FnMut(&T) -> bool,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        let serial = self.serial.replace(self.serial.get() + 1);
        let _leave = WaiterGuard { monitor: self, serial };
        let holds = poll_fn(|context| {
            if condition(&self.state.borrow()) {
                return Poll::Ready(());
            }
            self.wait(serial, context.waker());
            Poll::Pending
        });
        cooperate(OPERATION, holds).await;
        self.atomic(change)
    }

    fn wait(&self, serial: u64, waker: &Waker) {
        let mut waiting = self.waiting.borrow_mut();
        match waiting.iter_mut().find(|(number, _)| *number == serial) {
            Some((_, known)) => known.clone_from(waker),
            None => waiting.push((serial, waker.clone())),
        }
    }
}

impl<T: Default> Default for Monitor<T> {
    fn default() -> Self {
        Monitor::new(T::default())
    }
}

/// Removes a waiter that is dropped.
struct WaiterGuard<'a, T> {
    monitor: &'a Monitor<T>,
    serial: u64,
}

impl<T> Drop for WaiterGuard<'_, T> {
    fn drop(&mut self) {
        self.monitor.waiting.borrow_mut().retain(|(serial, _)| *serial != self.serial);
    }
}

impl<T: fmt::Debug> fmt::Debug for Monitor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("state", &self.state).finish_non_exhaustive()
    }
}
