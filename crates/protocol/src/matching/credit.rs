//! The acknowledgements of a receiver, and the bound on unexpected messages between each pair of places.
//!
//! It knows nothing of envelopes. The sender's side is [`SendCredit`](crate::credit::SendCredit). Invariant: a receiver
//! accepts at most [`UNACKNOWLEDGED_MAX`] messages that it has not acknowledged.

use crate::credit::TooMany;

/// Largest number of unacknowledged messages from one place to another.
pub const UNACKNOWLEDGED_MAX: u32 = 256;

/// Number of messages that are acknowledged together; this many can always be sent before a send waits.
const ACKNOWLEDGEMENT_BATCH: u32 = UNACKNOWLEDGED_MAX / 2;

/// The acknowledgements that a receiver owes a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    unacknowledged: u32,
    received: u32,
}

impl Acknowledgement {
    /// Counts an arriving message.
    ///
    /// # Errors
    /// More messages than the credit allows: the sender breaks the protocol. The message does not count.
    pub fn arrived(&mut self) -> Result<(), TooMany> {
        if self.unacknowledged == UNACKNOWLEDGED_MAX {
            return Err(TooMany);
        }
        self.unacknowledged += 1;
        Ok(())
    }

    /// Counts a received message; returns the number to acknowledge now, if any.
    pub fn received(&mut self) -> Option<u32> {
        self.received += 1;
        if self.received < ACKNOWLEDGEMENT_BATCH {
            return None;
        }
        self.unacknowledged = self.unacknowledged.saturating_sub(self.received);
        Some(std::mem::take(&mut self.received))
    }
}
