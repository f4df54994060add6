//! Groups of places that an instance can be made for.

use crate::error::Result;
pub use isles_protocol::team::Members;

/// A group of places that an instance can be made for, as a team is.
pub trait PlaceGroup {
    /// Returns its places, in the order of their ranks.
    ///
    /// # Errors
    /// [`Misused`](crate::ErrorKind::Misused): the group is one of another run.
    fn members(&self) -> Result<Members>;
}
