//! Calls of an endpoint that are allowed from within the closures that it calls.
//!
//! The rules are those of [`Endpoint`](crate::Endpoint): `deliver` and `wants` may send; `fill` must not call the
//! endpoint, because the memory that it writes is lent to it alone. Every transport asserts them by one
//! [`ReentryGuard`]. It does not know messages. Invariant: a guard restores the previous state, also while it unwinds.

use std::cell::Cell;

/// The closure that an endpoint is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActiveClosure {
    Nothing,
    Deliver,
    Fill,
}

/// Guard that knows which closure of its caller an endpoint is running.
#[derive(Debug)]
pub struct ReentryGuard(Cell<ActiveClosure>);

/// A closure that is running, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Running<'a> {
    current: &'a Cell<ActiveClosure>,
    before: ActiveClosure,
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.current.set(self.before);
    }
}

impl Default for ReentryGuard {
    fn default() -> Self {
        ReentryGuard(Cell::new(ActiveClosure::Nothing))
    }
}

impl ReentryGuard {
    /// Begins a call that runs `fill`.
    ///
    /// # Panics
    /// It is called from within `fill`.
    #[inline]
    pub fn fill(&self) -> Running<'_> {
        self.check_send();
        self.enter(ActiveClosure::Fill)
    }

    /// Begins a call that runs `deliver` or `wants`.
    ///
    /// # Panics
    /// It is called from within any of the closures.
    #[inline]
    pub fn deliver(&self) -> Running<'_> {
        self.check_wait();
        self.enter(ActiveClosure::Deliver)
    }

    /// Checks a call that sends.
    ///
    /// # Panics
    /// It is called from within `fill`.
    #[inline]
    pub fn check_send(&self) {
        assert!(self.0.get() != ActiveClosure::Fill, "`fill` must not call the endpoint");
    }

    /// Checks a call that waits or takes messages.
    ///
    /// # Panics
    /// It is called from within any of the closures.
    #[inline]
    pub fn check_wait(&self) {
        let current = self.0.get();
        assert!(
            current == ActiveClosure::Nothing,
            "called from within `{current:?}` of the endpoint, which may send at most"
        );
    }

    #[inline]
    fn enter(&self, within: ActiveClosure) -> Running<'_> {
        Running { current: &self.0, before: self.0.replace(within) }
    }
}
