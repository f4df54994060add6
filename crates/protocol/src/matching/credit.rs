//! Credit for each pair of places, which bounds the unexpected messages at the receiver.
//!
//! Its own file because it knows nothing of envelopes. Invariant: a sender has at most [`UNACKNOWLEDGED_MAX`] messages
//! that are not acknowledged, whatever it is told.

/// The largest number of messages from one place to another that are not acknowledged.
pub const UNACKNOWLEDGED_MAX: u32 = 256;

/// The number of messages that are acknowledged together; as many can be sent unreceived before a send waits.
const ACKNOWLEDGEMENT_BATCH: u32 = UNACKNOWLEDGED_MAX / 2;

/// The credit of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCredit {
    unacknowledged: u32,
}

impl MessageCredit {
    /// Takes the credit for one message; returns whether there was any.
    pub fn take(&mut self) -> bool {
        let has_room = self.unacknowledged < UNACKNOWLEDGED_MAX;
        self.unacknowledged += u32::from(has_room);
        has_room
    }

    /// Gives the credit for one message back, which was not sent.
    pub fn give_back(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    /// Takes in the acknowledgement of `count` messages.
    ///
    /// # Errors
    /// More than were sent: the receiver breaks the protocol. Nothing is changed.
    pub fn acknowledge(&mut self, count: u32) -> Result<(), TooMany> {
        self.unacknowledged = self.unacknowledged.checked_sub(count).ok_or(TooMany)?;
        Ok(())
    }
}

/// More messages than were sent are acknowledged, or more have come than may lie here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

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
