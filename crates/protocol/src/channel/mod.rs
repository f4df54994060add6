//! Channels: values that go from tasks to tasks through a buffer at one place.
//!
//! `docs/design/channels.md` has the protocol and says why nothing is lost or doubled. [`ChannelHome`] is the channel
//! with all that wait for it, [with a buffer](Buffered) or [without](Rendezvous), [`SlotPool`] what another place may
//! send without asking, [`Arrivals`] who of a place takes which of the values that have come there. Invariant: all only
//! say what is to be done; a value is in one of them, or in what they return.

mod arrivals;
mod buffered;
mod credits;
mod home;
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

/// Most values that a channel can hold.
pub const CAPACITY_MAX: u32 = 1 << 20;

/// The slots of one channel that a place has and has not used.
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

    /// Accepts `slots` slots from the home; returns how many go back because the channel was closed meanwhile.
    #[must_use = "slots that go back must be returned"]
    pub fn grant(&mut self, slots: u32) -> u32 {
        let (kept, back) = if self.is_closed { (0, slots) } else { (slots, 0) };
        self.unused = self.unused.saturating_add(kept);
        back
    }

    /// Returns the slots to the home, which wants them back: their number.
    pub fn recall(&mut self) -> u32 {
        std::mem::take(&mut self.unused)
    }

    /// Closes the channel, as the home says; returns the number of slots that go back.
    pub fn close(&mut self) -> u32 {
        self.is_closed = true;
        self.recall()
    }

    /// Returns `true` if the home has said that the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}
