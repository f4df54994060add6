//! Channels: values sent from tasks to tasks through a buffer at one place.
//!
//! `docs/design/channels.md` describes the protocol and explains why no value is lost or duplicated. [`ChannelHome`] is
//! the channel with all waiting operations, [with a buffer](Buffered) or [without](Rendezvous); [`SlotPool`] has the
//! slots with which another place may send without asking; [`Arrivals`] assigns the arrived values to the receives of a
//! place. Invariant: these types only return actions; a value is in one of them, or in their results.

mod arrivals;
mod buffered;
mod credits;
mod home;
mod queue;
mod rendezvous;
mod step;
#[cfg(test)]
mod tests;

pub use arrivals::{ArrivalStep, Arrivals};
pub use buffered::Buffered;
pub use home::ChannelHome;
pub use rendezvous::Rendezvous;
pub use step::{Cancelled, ChannelStep, Choice, HeldResource, OfferOutcome, OperationId};
pub use step::{PutBackViolation, SlotViolation, WantOutcome};

/// Maximum capacity of a channel, in values.
pub const CAPACITY_MAX: u32 = 1 << 20;

/// The unused slots of one channel at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotPool {
    unused: u32,
    is_closed: bool,
}

impl SlotPool {
    /// Takes a slot for a value, if there is one and the channel is open.
    pub fn take(&mut self) -> bool {
        let is_there = self.unused > 0 && !self.is_closed;
        self.unused -= u32::from(is_there);
        is_there
    }

    /// Accepts `slots` slots from the home. Returns the number of slots to return because the channel was closed
    /// meanwhile.
    #[must_use = "slots that go back must be returned"]
    pub fn grant(&mut self, slots: u32) -> u32 {
        let (kept, back) = if self.is_closed { (0, slots) } else { (slots, 0) };
        self.unused = self.unused.saturating_add(kept);
        back
    }

    /// Removes all slots, which the home wants back. Returns their number.
    pub fn recall(&mut self) -> u32 {
        std::mem::take(&mut self.unused)
    }

    /// Closes the channel on behalf of the home. Returns the number of slots to return.
    pub fn close(&mut self) -> u32 {
        self.is_closed = true;
        self.recall()
    }

    /// Returns `true` if the home has closed the channel.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}
