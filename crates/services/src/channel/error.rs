//! Errors of sends and receives.
//!
//! Both errors convert with `?` into [`Error`] and into boxed errors, as [`Error`] itself does, and keep the kind that
//! a program can act on. Invariant: a failed send returns its value.

use isles_protocol::PlaceId;
use isles_runtime::service::FOREIGN;
use isles_runtime::{Error, ErrorKind};
use std::error::Error as Std;
use std::fmt;

/// A value that was not sent, and the reason.
pub struct SendError<T> {
    /// The value.
    pub value: T,
    /// Reason why the value was not sent.
    pub kind: SendErrorKind,
}

/// Reason why a value was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The channel is closed, or there are no receivers any more.
    Closed,
    /// There is no room, and the send does not wait.
    Full,
    /// There was no room before the deadline.
    DeadlinePassed,
    /// The place of the buffer is dead.
    DeadPlace(PlaceId),
    /// The value could not be encoded, or not be decoded at the place of the buffer; the text is the reason.
    Faulty(String),
    /// The handle belongs to a run that has ended, or to another place.
    Foreign,
}

impl fmt::Display for SendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendErrorKind::Closed => f.write_str("the channel is closed"),
            SendErrorKind::Full => f.write_str("the channel is full"),
            SendErrorKind::DeadlinePassed => {
                f.write_str("there was no room in the channel before the deadline")
            }
            SendErrorKind::DeadPlace(place) => write!(f, "{place}, where the channel is, is dead"),
            SendErrorKind::Faulty(text) => write!(f, "the value cannot be sent: {text}"),
            SendErrorKind::Foreign => f.write_str(FOREIGN),
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<T> From<SendError<T>> for Error {
    fn from(error: SendError<T>) -> Self {
        match error.kind {
            SendErrorKind::DeadPlace(place) => Error::dead(place),
            SendErrorKind::DeadlinePassed => Error::new(ErrorKind::DeadlinePassed, error.kind.to_string()),
            SendErrorKind::Faulty(_) => Error::new(ErrorKind::Undecodable, error.kind.to_string()),
            SendErrorKind::Foreign => Error::new(ErrorKind::Misused, FOREIGN),
            SendErrorKind::Closed => Error::new(ErrorKind::Closed, error.kind.to_string()),
            SendErrorKind::Full => Error::new(ErrorKind::Failed, error.kind.to_string()),
        }
    }
}

impl<T> From<SendError<T>> for Box<dyn Std> {
    fn from(error: SendError<T>) -> Self {
        Error::from(error).into()
    }
}

impl<T> From<SendError<T>> for Box<dyn Std + Send + Sync> {
    fn from(error: SendError<T>) -> Self {
        Error::from(error).into()
    }
}

/// Reason why nothing was received.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvError {
    /// The channel is closed, or there are no senders any more, and all sent values have been received.
    Closed,
    /// There is no value, and the receive does not wait.
    Empty,
    /// No value arrived before the deadline.
    DeadlinePassed,
    /// The place of the buffer is dead.
    DeadPlace(PlaceId),
    /// The value could not be encoded, or not be decoded here; the text is the reason.
    Faulty(String),
    /// The handle belongs to a run that has ended, or to another place.
    Foreign,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Closed => {
                f.write_str("the channel is closed, and all that was sent has been received")
            }
            RecvError::Empty => f.write_str("the channel is empty"),
            RecvError::DeadlinePassed => f.write_str("nothing arrived before the deadline"),
            RecvError::DeadPlace(place) => write!(f, "{place}, where the channel is, is dead"),
            RecvError::Faulty(text) => write!(f, "a value cannot be received: {text}"),
            RecvError::Foreign => f.write_str(FOREIGN),
        }
    }
}

impl From<RecvError> for Error {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::DeadPlace(place) => Error::dead(place),
            RecvError::DeadlinePassed => Error::new(ErrorKind::DeadlinePassed, error.to_string()),
            RecvError::Faulty(_) => Error::new(ErrorKind::Undecodable, error.to_string()),
            RecvError::Foreign => Error::new(ErrorKind::Misused, FOREIGN),
            RecvError::Closed => Error::new(ErrorKind::Closed, error.to_string()),
            RecvError::Empty => Error::new(ErrorKind::Failed, error.to_string()),
        }
    }
}

impl From<RecvError> for Box<dyn Std> {
    fn from(error: RecvError) -> Self {
        Error::from(error).into()
    }
}

impl From<RecvError> for Box<dyn Std + Send + Sync> {
    fn from(error: RecvError) -> Self {
        Error::from(error).into()
    }
}
