//! The acknowledgements of a receiver, and the bound of the unexpected messages of each pair of places.
//!
//! Its own file because it knows nothing of envelopes. The sender's side is [`SendCredit`](crate::credit::SendCredit).
//! Invariant: a receiver takes at most [`UNACKNOWLEDGED_MAX`] messages that it has not acknowledged.

use crate::credit::TooMany;

/// The largest number of messages from one place to another that are not acknowledged.
pub const UNACKNOWLEDGED_MAX: u32 = 256;

/// The number of messages that are acknowledged together; as many can be sent unreceived before a send waits.
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
    /// It is one more than the credit allows: the sender breaks the protocol. It does not count.
    pub fn arrived(&mut self) -> Result<(), TooMany> {
        if self.unacknowledged == UNACKNOWLEDGED_MAX {
            return Err(TooMany);
        }
        self.unacknowledged += 1;
        Ok(())
    }

    /// Counts a received message; returns the number to acknowledge now, if it is time.
    pub fn received(&mut self) -> Option<u32> {
        self.received += 1;
        if self.received < ACKNOWLEDGEMENT_BATCH {
            return None;
        }
        self.unacknowledged = self.unacknowledged.saturating_sub(self.received);
        Some(std::mem::take(&mut self.received))
    }
}
