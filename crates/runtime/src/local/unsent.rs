//! Reasons why a message was not sent.

use crate::error::{Error, ErrorKind};
use crate::wire::EncodeError;
use isles_protocol::PlaceId;
use isles_transport::SendError;

/// Reason why nothing was sent.
#[derive(Debug)]
pub enum Unsent {
    /// There is no room now; [`Local::send`](super::Local::send) never returns this.
    Full,
    /// The receiver is dead.
    DeadPlace(PlaceId),
    /// The message is longer than the transport carries.
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// Largest length in bytes.
        max: usize,
    },
    /// A value could not be encoded.
    Unencodable(EncodeError),
}

impl From<SendError> for Unsent {
    fn from(error: SendError) -> Self {
        match error {
            SendError::DeadPlace(place) => Unsent::DeadPlace(place),
            SendError::TooLong { len, max } => Unsent::TooLong { len, max },
            // The caller handles an abandoned message, which it wrote itself.
            SendError::Full | SendError::Abandoned => Unsent::Full,
        }
    }
}

impl From<Unsent> for Error {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::DeadPlace(place) => Error::dead(place),
            Unsent::TooLong { len, max } => Error::new(ErrorKind::TooLong { len, max }, ""),
            Unsent::Unencodable(fault) => Error::unencodable(fault),
            Unsent::Full => Error::new(ErrorKind::Misused, "the queue to the place is full"),
        }
    }
}
