//! Calls of an endpoint that are allowed from within the closures that it calls.
//!
//! The rules are those of [`Endpoint`](crate::Endpoint): `deliver` and `wants` may send, `fill` may call nothing,
//! because the memory that it writes is lent to it alone. Every transport asserts them by one [`ReentryGuard`] each. It
//! knows nothing of messages. Invariant: a guard restores what was before, also while it unwinds.

use std::cell::Cell;

/// Call in which the owner of an endpoint is.
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
    /// From within `fill`.
    #[inline]
    pub fn fill(&self) -> Running<'_> {
        self.check_send();
        self.enter(ActiveClosure::Fill)
    }

    /// Begins a call that runs `deliver` or `wants`.
    ///
    /// # Panics
    /// From within any of them.
    #[inline]
    pub fn deliver(&self) -> Running<'_> {
        self.check_wait();
        self.enter(ActiveClosure::Deliver)
    }

    /// Checks a call that sends.
    ///
    /// # Panics
    /// From within `fill`.
    #[inline]
    pub fn check_send(&self) {
        assert!(self.0.get() != ActiveClosure::Fill, "`fill` must not call the endpoint");
    }

    /// Checks a call that waits or takes messages.
    ///
    /// # Panics
    /// From within any of them.
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
