//! Program of one place that tests a promise, step by step.
//!
//! Most promises are an [`exchange::Exchange`] of some traffic; the others have a script of their own here. Invariant:
//! a script depends only on its endpoint and what it has received there.

pub(super) mod back_pressure;
pub(super) mod calls;
pub(super) mod death;
pub(super) mod exchange;
pub(super) mod held_blocks;
pub(super) mod multicast;
pub(super) mod refused_sends;
pub(super) mod shared;
pub(super) mod traffic;

use crate::{Endpoint, EndpointExt};

/// Request of a script after one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another step soon, because this one made progress.
    Busy,
    /// Nothing arrived and nothing could be sent: a wait without a timeout must end when that changes.
    Idle,
    /// Everything was sent and received; a further message is an error.
    Done,
    /// This place dies now.
    Die,
    /// This place ends in good order now, before the others.
    Leave,
}

/// Program of one place; it panics if a promise is broken.
pub trait Script {
    /// Does a bounded piece of work with the endpoint of its place.
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step;

    /// Waits after an idle step, where the place has a thread of its own.
    fn wait(&self, endpoint: &dyn Endpoint) {
        endpoint.wait(None);
    }
}
