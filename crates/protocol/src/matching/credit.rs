//! How many messages may lie at a place that nobody has received: credit for each pair of places.
//!
//! Its own file because it knows nothing of envelopes. Invariant: a sender has at most [`UNACKNOWLEDGED_MAX`] messages
//! under way or lying that were not acknowledged, whatever it is told.

/// Most messages of one place to another that are not acknowledged.
pub const UNACKNOWLEDGED_MAX: u32 = 256;

/// So many are acknowledged together: a place can send as many that nobody receives yet without having to wait.
const TOGETHER: u32 = UNACKNOWLEDGED_MAX / 2;

/// The sender's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCredit {
    unacknowledged: u32,
}

impl MessageCredit {
    /// Takes the right to send one message; whether there was one.
    pub fn take(&mut self) -> bool {
        let has_room = self.unacknowledged < UNACKNOWLEDGED_MAX;
        self.unacknowledged += u32::from(has_room);
        has_room
    }

    /// Gives a right back that was not used.
    pub fn give_back(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    /// So many messages are acknowledged.
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

/// The receiver's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    unacknowledged: u32,
    received: u32,
}

impl Acknowledgement {
    /// A message has come.
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

    /// A message that has come was received; how many are to be acknowledged now, if any.
    pub fn received(&mut self) -> Option<u32> {
        self.received += 1;
        if self.received < TOGETHER {
            return None;
        }
        self.unacknowledged = self.unacknowledged.saturating_sub(self.received);
        Some(std::mem::take(&mut self.received))
    }
}
