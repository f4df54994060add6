//! Arrays that places of one host share page by page, by page faults; the feature `svm`.
//!
//! An [`SvmArray`] is one array for all members of a team. A member reads and writes any element by guards, without
//! saying where it lies: a page that it does not have comes by a page fault. What it sees of the stores of others is
//! said by the [`Consistency`] of the array. The places must be processes of one host, or threads of one.
//!
//! ```no_run
//! use isles::prelude::*;
//! use isles::svm::{Consistency, SvmArray};
//!
//! /// Called by each member of the team.
//! async fn count(team: &Team) -> isles::Result<u64> {
//!     let mut counts = SvmArray::<u64>::new(team, 1_000, Consistency::Release).await?;
//!     counts.write(team.rank()..team.rank() + 1)?[0] = 1;
//!     counts.barrier().await?;
//!     let sum = counts.read(0..1_000)?.iter().sum();
//!     counts.close().await?;
//!     Ok(sum)
//! }
//! ```

pub use isles_protocol::svm::Consistency;
pub use isles_svm::{PageReadGuard, PageWriteGuard, RegionCounts};

use crate::array::check_memory;
use crate::{Error, ErrorKind, Result, Team};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_protocol::PlaceId;
use isles_svm::{PageRegion, RegionError};
use std::ops::Range;

/// An array that the members of a team share page by page. Its elements are zeros at first.
///
/// A value is the part of one member, and the methods that wait for others are called by each. Guards exclude each
/// other: of the models exclusive and strong, a page that a guard holds waits until the guard is dropped. While a
/// member waits for a page, its other tasks wait too, but its pages are served all the same. Guards of one array are
/// taken in ascending order of pages, and those of several arrays in the same order at each member.
///
/// # Errors
/// Every operation ends with [`DeadPlace`](ErrorKind::DeadPlace) once a member has died: the array is lost. Other
/// refusals are [`Misused`](ErrorKind::Misused) with a text that says what is allowed.
pub struct SvmArray<T> {
    region: PageRegion<T>,
    team: Team,
}

impl<T: AnyBitPattern + NoUninit> SvmArray<T> {
    /// An array of `len` zeros; called by each member with the same arguments.
    ///
    /// # Errors
    /// As [`SvmArray`] says: the array is larger than memory; a member is on another host; the system does not allow
    /// userfaultfd. If one member cannot have its part, none has.
    pub async fn new(team: &Team, len: usize, model: Consistency) -> Result<SvmArray<T>> {
        check_memory::<T>(&[len]).map_err(|error| Error::new(ErrorKind::Misused, error.to_string()))?;
        let here = PlaceId(team.rank() as u32);
        let prepared = PageRegion::<T>::prepare(len, here.0 == 0);
        let address = prepared.as_ref().map(|seed| seed.address()).map_err(RegionError::to_string);
        let addresses: std::result::Result<Vec<_>, String> =
            team.all_gather(address).await?.into_iter().collect();
        let joined = match (prepared, addresses) {
            (Ok(seed), Ok(addresses)) => {
                PageRegion::join(seed, here, &addresses, len, model).map_err(|error| error.to_string())
            }
            (_, Err(text)) => Err(text),
            (Err(error), _) => Err(error.to_string()),
        };
        // Also the point at which all have joined.
        let faults = team.all_gather(joined.as_ref().err().cloned()).await?;
        match (joined, faults.into_iter().flatten().next()) {
            (Ok(region), None) => Ok(SvmArray { region, team: team.clone() }),
            (Err(text), _) | (_, Some(text)) => Err(Error::new(ErrorKind::Misused, text)),
        }
    }

    /// Returns a guard to read a range of elements; waits until it can.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    ///
    /// # Panics
    /// If a guard of this member writes one of the elements.
    pub fn read(&self, range: Range<usize>) -> Result<PageReadGuard<'_, T>> {
        self.region.read(range).map_err(|error| self.error(error))
    }

    /// Returns a guard to read and write a range of elements; waits until it can.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    ///
    /// # Panics
    /// If a guard of this member has one of the elements.
    pub fn write(&self, range: Range<usize>) -> Result<PageWriteGuard<'_, T>> {
        self.region.write(range).map_err(|error| self.error(error))
    }
}

impl<T> SvmArray<T> {
    /// Waits until every member has called it; from then on each sees what all have written before.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub async fn barrier(&mut self) -> Result<()> {
        self.release()?;
        self.team.barrier().await?;
        self.acquire()
    }

    /// Makes what this member has written visible to a member that calls [`SvmArray::acquire`] afterwards. Together
    /// they make a lock of anything that excludes, such as a guard of [`Shared`](crate::Shared): acquire when it is
    /// taken, release before it is given back.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn release(&mut self) -> Result<()> {
        self.region.release().map_err(|error| self.error(error))
    }

    /// Sees what others have released.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn acquire(&mut self) -> Result<()> {
        self.region.acquire().map_err(|error| self.error(error))
    }

    /// Gives the array back, when every member has called it. A member that drops its part without this loses the
    /// array for the others.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub async fn close(self) -> Result<()> {
        self.team.barrier().await
    }

    /// Returns the number of elements.
    #[expect(clippy::len_without_is_empty, reason = "an array has at least one element")]
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Returns what this member has counted: faults, pages, messages, bytes.
    pub fn counts(&self) -> RegionCounts {
        self.region.counts()
    }

    /// Returns `true` if the process may handle faults of the program only: then a system call that touches a page
    /// which this member does not have fails with `EFAULT`. Slices of guards are always there.
    pub fn is_user_mode_only(&self) -> bool {
        self.region.is_user_mode_only()
    }

    fn error(&self, error: RegionError) -> Error {
        let kind = match error {
            RegionError::DeadPlace(rank) => ErrorKind::DeadPlace(self.team.place_of(rank.index()).id()),
            _ => ErrorKind::Misused,
        };
        Error::new(kind, error.to_string())
    }
}
