//! A small message library for the ranks of a program, over the rings in the message buffers: send, receive, barrier.
//!
//! Each message is one entry of `bare_mpb`, so several channels can share a buffer. A receiving core takes the oldest
//! entry of its own ring; entries for other channels wait in preallocated memory of this core ([`WAITING_MAX`] of
//! them).

use crate::{bell, chip, interrupt, program, timer};
use bare_map as map;
pub use bare_mpb::Channels;
use bare_mpb::{Header, NotReceived, NotSent, Ring};
use core::fmt;

/// The longest message in bytes: a quarter of a message buffer, so that four cores can send at once.
pub const LONGEST: usize = map::BUFFER_BYTES / 4;
/// Maximum number of entries waiting for their channel.
pub const WAITING_MAX: usize = 16;

/// Reason why a message was not sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The message is longer than [`LONGEST`], or than the receiver's memory.
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Allowed bytes.
        allowed: usize,
    },
    /// [`WAITING_MAX`] entries wait for channels without a receiver.
    TooManyWait,
    /// A core of the program has stopped.
    Stopped(chip::StoppedCore),
}

impl fmt::Display for MessageError {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::TooLong { bytes, allowed } => {
                write!(text, "a message of {bytes} bytes; allowed: {allowed}")
            }
            MessageError::TooManyWait => write!(text, "{WAITING_MAX} messages wait for other channels"),
            MessageError::Stopped(stopped) => stopped.fmt(text),
        }
    }
}

/// Receives messages for any number of channels of this core.
#[derive(Debug)]
pub struct Receiver {
    waiting: [Waiting; WAITING_MAX],
    last: u64,
}

/// An entry that has not been requested yet; `order` is 0 if there is none.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    order: u64,
    header: Header,
    payload: [u8; LONGEST],
}

/// The header that stands for no message.
pub(crate) const NOTHING: Header = Header { source_core: 0, source_channel: 0, target_channel: 0, length: 0 };

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver::new()
    }
}

impl Receiver {
    /// Creates a receiver without waiting entries. A core has one at a time.
    pub const fn new() -> Receiver {
        let waiting = Waiting { order: 0, header: NOTHING, payload: [0; LONGEST] };
        Receiver { waiting: [waiting; WAITING_MAX], last: 0 }
    }

    /// Waits for the oldest message for `channel`, and returns its header.
    ///
    /// # Errors
    /// The message is longer than `into`, too many messages wait for other channels, or a core has stopped.
    pub fn receive(&mut self, channel: u16, into: &mut [u8]) -> Result<Header, MessageError> {
        let answer = timer::wait_for(chip::Needed::Any, || self.try_receive(channel, into));
        answer.map_err(MessageError::Stopped)?
    }

    /// Takes the oldest message for `channel`, if there is one.
    ///
    /// # Errors
    /// As [`Receiver::receive`].
    pub fn try_receive(&mut self, channel: u16, into: &mut [u8]) -> Option<Result<Header, MessageError>> {
        if let Some(message) = self.take_waiting(channel, into) {
            return Some(message);
        }
        let ring = ring(chip::core());
        let header = ring.peek()?;
        if header.target_channel == channel {
            return Some(ring.receive(into).map_err(|refused| too_long(refused, into.len())));
        }
        let Some(slot) = self.waiting.iter_mut().find(|entry| entry.order == 0) else {
            return Some(Err(MessageError::TooManyWait));
        };
        match ring.receive(&mut slot.payload) {
            Ok(header) => {
                self.last += 1;
                (slot.header, slot.order) = (header, self.last);
                None
            }
            Err(refused) => Some(Err(too_long(refused, LONGEST))),
        }
    }

    fn take_waiting(&mut self, channel: u16, into: &mut [u8]) -> Option<Result<Header, MessageError>> {
        let mine = |entry: &&mut Waiting| entry.order != 0 && entry.header.target_channel == channel;
        let oldest = self.waiting.iter_mut().filter(mine).min_by_key(|entry| entry.order)?;
        let bytes = oldest.header.length as usize;
        let Some(target) = into.get_mut(..bytes) else {
            return Some(Err(MessageError::TooLong { bytes, allowed: into.len() }));
        };
        target.copy_from_slice(&oldest.payload[..bytes]);
        oldest.order = 0;
        Some(Ok(oldest.header))
    }
}

/// Returns the error for an entry that does not fit into `allowed` bytes.
pub(crate) fn too_long(refused: NotReceived, allowed: usize) -> MessageError {
    let bytes = match refused {
        NotReceived::NoRoom(header) => header.length as usize,
        NotReceived::Empty => 0,
    };
    MessageError::TooLong { bytes, allowed }
}

/// Returns the ring in the message buffer of `core`.
pub(crate) fn ring(core: usize) -> Ring<'static> {
    Ring::new(chip::lock(core), chip::buffer(core))
}

/// Sends a message to a channel of `rank`, and waits while its buffer is full.
///
/// # Errors
/// The message is too long, or a core has stopped.
pub fn send(rank: usize, channels: Channels, payload: &[u8]) -> Result<(), MessageError> {
    let allowed = LONGEST;
    if payload.len() > allowed {
        return Err(MessageError::TooLong { bytes: payload.len(), allowed });
    }
    let core = program::core_of(rank);
    let ring = ring(core);
    // Interrupts are disabled between lock and release, so no thread of this core finds the lock held by another one.
    let send = || interrupt::without(|| ring.send(chip::core() as u16, channels, payload));
    let sent = timer::wait_for(chip::Needed::Any, || match send() {
        Ok(()) => {
            bell::ring_for_message(core);
            Some(Ok(()))
        }
        Err(NotSent::TooLong(allowed)) => Some(Err(MessageError::TooLong { bytes: payload.len(), allowed })),
        Err(NotSent::Full | NotSent::Locked(_)) => None,
    });
    sent.map_err(MessageError::Stopped)?
}
