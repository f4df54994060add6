//! Arrays that places share page by page, by page faults; the feature `svm`.
//!
//! An [`SvmArray`] is one array for all members of a team. A member reads and writes any element by guards, without
//! saying where it lies: a page that it does not have comes by a page fault. What it sees of the stores of others is
//! said by the [`Consistency`] of the array. The places are processes of one host, threads of one, or ranks of MPI,
//! also of several hosts: then the pages themselves travel, over sockets of the array's own.
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
use crate::{Error, ErrorKind, Machine, Result, Team};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_protocol::PlaceId;
use isles_runtime::Local;
use isles_runtime::service::span::{self, OpenSpan};
use isles_svm::{PageRegion, PlaceAddress, RegionError, RegionLock, RegionSeed};
use isles_telemetry::CounterId;
use std::cell::Cell;
use std::ops::Range;

/// Returns `true` if places of this machine can share arrays page by page.
pub fn runs_on(machine: Machine) -> bool {
    matches!(machine, Machine::Processes | Machine::Threads | Machine::Mpi)
}

/// An array that the members of a team share page by page. Its elements are zeros at first.
///
/// A value is the part of one member, and the methods that wait for others are called by each. Guards exclude each
/// other: of the models exclusive and strong, a page that a guard holds waits until the guard is dropped. While a
/// member waits for a page, its other tasks wait too, but its pages are served all the same. Guards of one array are
/// taken in ascending order of pages, and those of several arrays in the same order at each member: otherwise two
/// members can wait for each other without end, and nothing detects it.
///
/// # Errors
/// Every operation ends with [`DeadPlace`](ErrorKind::DeadPlace) once a member has died: the array is lost. Other
/// refusals are [`Misused`](ErrorKind::Misused) with a text that says what is allowed.
pub struct SvmArray<T> {
    region: PageRegion<T>,
    team: Team,
    tally: Tally,
}

/// The counts of an array that are in the counters of its place already.
#[derive(Default)]
struct Tally(Cell<RegionCounts>);

impl Tally {
    /// Adds what was counted since the last call to the counters of the place. The service thread counts as well, and
    /// the counters are the worker's.
    fn add(&self, now: RegionCounts) {
        let before = self.0.replace(now);
        let counters = [
            (CounterId::PageFaults, now.faults - before.faults),
            (CounterId::PagesFetched, now.pages - before.pages),
            (CounterId::PagesRevoked, now.revoked - before.revoked),
            (CounterId::PageMessages, now.messages - before.messages),
            (CounterId::PageBytes, now.bytes - before.bytes),
            (CounterId::RegionLocks, now.locks - before.locks),
        ];
        // Without a place, as at the end of its thread, nobody counts.
        Local::try_with(|local| {
            counters.into_iter().for_each(|(counter, by)| local.add_drawn_count(counter, by))
        });
    }
}

/// Begins a span of the trace.
fn open_span(name: &'static str) -> Option<OpenSpan> {
    Local::try_with(|local| local.span(name, None, || None))
}

impl<T: AnyBitPattern + NoUninit> SvmArray<T> {
    /// An array of `len` zeros; called by each member with the same arguments.
    ///
    /// # Errors
    /// As [`SvmArray`] says: the array is larger than memory; members of several hosts cannot connect to each other;
    /// the system does not allow userfaultfd. If one member cannot have its part, none has.
    pub async fn new(team: &Team, len: usize, model: Consistency) -> Result<SvmArray<T>> {
        check_memory::<T>(&[len]).map_err(|error| Error::new(ErrorKind::Misused, error.to_string()))?;
        let here = PlaceId(team.rank() as u32);
        let seed = PageRegion::<T>::prepare(len, here.0 == 0).map_err(|error| error.to_string());
        let joined = match gather_addresses(team, seed).await? {
            Ok((seed, addresses)) => {
                PageRegion::join(seed, here, &addresses, len, model).map_err(|error| error.to_string())
            }
            Err(text) => Err(text),
        };
        // Also the point at which all have joined.
        let faults = team.all_gather(joined.as_ref().err().cloned()).await?;
        match (joined, faults.into_iter().flatten().next()) {
            (Ok(region), None) => Ok(SvmArray { region, team: team.clone(), tally: Tally::default() }),
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
        let _span = open_span(span::PAGES);
        let guard = self.region.read(range);
        self.tally.add(self.region.counts());
        guard.map_err(|error| array_error(&self.team, &error))
    }

    /// Returns a guard to read and write a range of elements; waits until it can.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    ///
    /// # Panics
    /// If a guard of this member has one of the elements.
    pub fn write(&self, range: Range<usize>) -> Result<PageWriteGuard<'_, T>> {
        let _span = open_span(span::PAGES);
        let guard = self.region.write(range);
        self.tally.add(self.region.counts());
        guard.map_err(|error| array_error(&self.team, &error))
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

    /// Makes what this member has written visible to a member that calls [`SvmArray::acquire`] afterwards. Needed by
    /// the model release only; [`SvmArray::barrier`] and the locks of the array do it themselves. Together they make a
    /// lock of anything that excludes, such as a guard of [`Shared`](crate::Shared).
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn release(&mut self) -> Result<()> {
        let released = self.region.release();
        self.tally.add(self.region.counts());
        released.map_err(|error| array_error(&self.team, &error))
    }

    /// Sees what others have released.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn acquire(&mut self) -> Result<()> {
        let acquired = self.region.acquire();
        self.tally.add(self.region.counts());
        acquired.map_err(|error| array_error(&self.team, &error))
    }

    /// Waits until no other member holds the lock `number`, and takes it. The holder sees all that earlier holders have
    /// stored, in each model. Any number is a lock of the array; members get it in the order in which they ask. A
    /// member holds one lock of an array at a time. Meanwhile its other tasks run.
    ///
    /// If the future is dropped, the wait is given up.
    ///
    /// # Errors
    /// As [`SvmArray`] says; a member has died, also if it held the lock.
    pub async fn lock(&mut self, number: u32) -> Result<SvmLock<'_, T>> {
        let SvmArray { region, team, tally } = self;
        let span = open_span(span::LOCK);
        let lock = region.lock(number).await.map_err(|error| array_error(team, &error))?;
        drop(span);
        tally.add(lock.counts());
        Ok(SvmLock { lock, team, tally })
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
}

impl<T> Drop for SvmArray<T> {
    fn drop(&mut self) {
        self.tally.add(self.region.counts());
    }
}

/// A lock of an [`SvmArray`] that this member holds. Dropping it makes what was stored visible to the next holder, and
/// gives the lock back.
pub struct SvmLock<'a, T> {
    lock: RegionLock<'a, T>,
    team: &'a Team,
    tally: &'a Tally,
}

impl<T: AnyBitPattern + NoUninit> SvmLock<'_, T> {
    /// Returns a guard to read a range of elements; as [`SvmArray::read`].
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn read(&self, range: Range<usize>) -> Result<PageReadGuard<'_, T>> {
        let _span = open_span(span::PAGES);
        let guard = self.lock.read(range);
        self.tally.add(self.lock.counts());
        guard.map_err(|error| array_error(self.team, &error))
    }

    /// Returns a guard to read and write a range of elements; as [`SvmArray::write`].
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn write(&self, range: Range<usize>) -> Result<PageWriteGuard<'_, T>> {
        let _span = open_span(span::PAGES);
        let guard = self.lock.write(range);
        self.tally.add(self.lock.counts());
        guard.map_err(|error| array_error(self.team, &error))
    }
}

impl<T> SvmLock<'_, T> {
    /// Gives the lock back, as dropping it does, and reports whether that was possible.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn unlock(self) -> Result<()> {
        let SvmLock { lock, team, tally } = self;
        tally.add(lock.counts());
        lock.unlock().map_err(|error| array_error(team, &error))
    }
}

/// Tells the addresses of all members to each; members of several hosts open sockets first. The inner error is the
/// first of a member.
async fn gather_addresses(
    team: &Team,
    seed: std::result::Result<RegionSeed, String>,
) -> Result<std::result::Result<(RegionSeed, Vec<PlaceAddress>), String>> {
    let gather =
        async |address: std::result::Result<PlaceAddress, String>| -> Result<std::result::Result<Vec<_>, _>> {
            Ok(team.all_gather(address).await?.into_iter().collect())
        };
    let addresses = gather(seed.as_ref().map(RegionSeed::address).map_err(String::clone)).await?;
    let (mut seed, addresses) = match (seed, addresses) {
        (Ok(seed), Ok(addresses)) => (seed, addresses),
        (_, Err(text)) | (Err(text), _) => return Ok(Err(text)),
    };
    if !PlaceAddress::span_hosts(&addresses) {
        return Ok(Ok((seed, addresses)));
    }
    let listens = seed.listen().map_err(|error| error.to_string());
    Ok(gather(listens.map(|()| seed.address())).await?.map(|addresses| (seed, addresses)))
}

fn array_error(team: &Team, error: &RegionError) -> Error {
    let kind = match error {
        RegionError::DeadPlace(rank) => ErrorKind::DeadPlace(team.place_of(rank.index()).id()),
        _ => ErrorKind::Misused,
    };
    Error::new(kind, error.to_string())
}
