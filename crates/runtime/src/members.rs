//! Groups of places that can have instances of a value.

use crate::error::Result;
pub use isles_protocol::team::Members;

/// A group of places that can have instances of a value, such as a team.
pub trait PlaceGroup {
    /// Returns its places, in the order of their ranks.
    ///
    /// # Errors
    /// [`Misused`](crate::ErrorKind::Misused): the group belongs to another run.
    fn members(&self) -> Result<Members>;
}
