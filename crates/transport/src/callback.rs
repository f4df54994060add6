//! Which calls of an endpoint are allowed from within its own callbacks.
//!
//! The rules are those of [`Endpoint`](crate::Endpoint): `deliver` and `wants` may send, `fill` may call nothing,
//! because the memory that it writes is lent to it alone. Every transport asserts them by one [`Reentry`] each. It
//! knows nothing of messages. Invariant: a guard restores what was before, also while it unwinds.

use std::cell::Cell;

/// What the owner of an endpoint is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callback {
    None,
    Deliver,
    Fill,
}

/// Which callback of an endpoint is running.
#[derive(Debug)]
pub struct Reentry(Cell<Callback>);

/// A callback that is running, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Running<'a> {
    current: &'a Cell<Callback>,
    before: Callback,
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.current.set(self.before);
    }
}

impl Default for Reentry {
    fn default() -> Self {
        Reentry(Cell::new(Callback::None))
    }
}

impl Reentry {
    /// Begins a call that runs `fill`.
    ///
    /// # Panics
    /// From within `fill`.
    #[inline]
    pub fn fill(&self) -> Running<'_> {
        self.check_send();
        self.enter(Callback::Fill)
    }

    /// Begins a call that runs `deliver` or `wants`.
    ///
    /// # Panics
    /// From within any callback.
    #[inline]
    pub fn deliver(&self) -> Running<'_> {
        self.check_wait();
        self.enter(Callback::Deliver)
    }

    /// Checks a call that sends.
    ///
    /// # Panics
    /// From within `fill`.
    #[inline]
    pub fn check_send(&self) {
        assert!(self.0.get() != Callback::Fill, "`fill` must not call the endpoint");
    }

    /// Checks a call that waits or takes messages.
    ///
    /// # Panics
    /// From within any callback.
    #[inline]
    pub fn check_wait(&self) {
        let current = self.0.get();
        assert!(
            current == Callback::None,
            "a callback of the endpoint may send at most: it is in {current:?}"
        );
    }

    #[inline]
    fn enter(&self, callback: Callback) -> Running<'_> {
        Running { current: &self.0, before: self.0.replace(callback) }
    }
}
