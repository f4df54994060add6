//! Shared virtual memory: arrays that places share page by page (feature `svm`).
//!
//! An [`SvmArray`] is one array for all members of a team. A member reads and writes any element through guards,
//! wherever it lies: a missing page is fetched on a page fault. The [`Consistency`] of the array says when a member
//! sees stores of others. The places are processes or threads of one host, or ranks of MPI on one host or several;
//! between hosts, pages travel over sockets of the array's own.
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

/// Returns `true` if [`SvmArray`] is available on `machine`.
pub fn runs_on(machine: Machine) -> bool {
    matches!(machine, Machine::Processes | Machine::Threads | Machine::Mpi)
}

/// An array that the members of a team share page by page, initially zero.
///
/// Each member holds its own `SvmArray`; collective methods must be called by all members. Under the exclusive and
/// strong models, a page held by a guard is not handed on until the guard is dropped. While a member waits for a page,
/// its other tasks wait too, but its pages are still served to others. Take guards of one array in ascending order of
/// pages, and guards of several arrays in the same order at each member: otherwise members can deadlock, which nothing
/// detects.
///
/// # Errors
/// Every operation ends with [`DeadPlace`](ErrorKind::DeadPlace) once a member has died: the array is lost. Other
/// errors are [`Misused`](ErrorKind::Misused), with a text that says what is allowed.
pub struct SvmArray<T> {
    region: PageRegion<T>,
    team: Team,
    tally: Tally,
}

/// The counts of an array that were already added to the counters of its place.
#[derive(Default)]
struct Tally(Cell<RegionCounts>);

impl Tally {
    /// Adds the counts since the last call to the counters of the place, which only the worker writes; the service
    /// thread counts in the array.
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
        // At the end of its thread there is no place any more, and nothing to count for.
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
    /// Makes an array of `len` zeros; collective, with the same arguments at each member.
    ///
    /// # Errors
    /// As [`SvmArray`] says; also if the array is larger than memory, if members of several hosts cannot connect to
    /// each other, or if the system does not allow userfaultfd. If it fails at one member, it fails at all.
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
        // This is also the barrier after which all have joined.
        let faults = team.all_gather(joined.as_ref().err().cloned()).await?;
        match (joined, faults.into_iter().flatten().next()) {
            (Ok(region), None) => Ok(SvmArray { region, team: team.clone(), tally: Tally::default() }),
            (Err(text), _) | (_, Some(text)) => Err(Error::new(ErrorKind::Misused, text)),
        }
    }

    /// Returns a guard to read a range of elements, after fetching missing pages.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    ///
    /// # Panics
    /// If a write guard of this member covers one of the elements.
    pub fn read(&self, range: Range<usize>) -> Result<PageReadGuard<'_, T>> {
        let _span = open_span(span::PAGES);
        let guard = self.region.read(range);
        self.tally.add(self.region.counts());
        guard.map_err(|error| array_error(&self.team, &error))
    }

    /// Returns a guard to read and write a range of elements, after fetching missing pages.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    ///
    /// # Panics
    /// If another guard of this member covers one of the elements.
    pub fn write(&self, range: Range<usize>) -> Result<PageWriteGuard<'_, T>> {
        let _span = open_span(span::PAGES);
        let guard = self.region.write(range);
        self.tally.add(self.region.counts());
        guard.map_err(|error| array_error(&self.team, &error))
    }
}

impl<T> SvmArray<T> {
    /// Waits until every member has called it; after that each member sees all earlier stores.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub async fn barrier(&mut self) -> Result<()> {
        self.release()?;
        self.team.barrier().await?;
        self.acquire()
    }

    /// Makes this member's stores visible to members that call [`SvmArray::acquire`] afterwards. Needed only under the
    /// release model; [`SvmArray::barrier`] and the locks of the array include it. Use the pair to synchronize by other
    /// means of mutual exclusion, such as a guard of [`Shared`](crate::Shared).
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn release(&mut self) -> Result<()> {
        let released = self.region.release();
        self.tally.add(self.region.counts());
        released.map_err(|error| array_error(&self.team, &error))
    }

    /// Makes stores that others have released visible to this member.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn acquire(&mut self) -> Result<()> {
        let acquired = self.region.acquire();
        self.tally.add(self.region.counts());
        acquired.map_err(|error| array_error(&self.team, &error))
    }

    /// Waits for the lock `number` and takes it. The holder sees all stores of earlier holders, under each model. Every
    /// number names a lock of the array; members get it in the order of their requests. A member holds at most one lock
    /// of an array at a time. Other tasks of the member run during the wait.
    ///
    /// Dropping the future cancels the wait.
    ///
    /// # Errors
    /// As [`SvmArray`] says, also if the holder of the lock has died.
    pub async fn lock(&mut self, number: u32) -> Result<SvmLock<'_, T>> {
        let SvmArray { region, team, tally } = self;
        let span = open_span(span::LOCK);
        let lock = region.lock(number).await.map_err(|error| array_error(team, &error))?;
        drop(span);
        tally.add(lock.counts());
        Ok(SvmLock { lock, team, tally })
    }

    /// Frees the array once every member has called it. If a member drops its `SvmArray` without `close`, the array is
    /// lost for the others.
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

    /// Returns this member's counts of faults, pages, messages and bytes.
    pub fn counts(&self) -> RegionCounts {
        self.region.counts()
    }

    /// Returns `true` if the process may handle faults from user mode only: a system call that touches a missing page
    /// then fails with `EFAULT`. Pages of a guard's slice are always present.
    pub fn is_user_mode_only(&self) -> bool {
        self.region.is_user_mode_only()
    }
}

impl<T> Drop for SvmArray<T> {
    fn drop(&mut self) {
        self.tally.add(self.region.counts());
    }
}

/// A lock of an [`SvmArray`] that this member holds. Dropping it makes the stores visible to the next holder and
/// releases the lock.
pub struct SvmLock<'a, T> {
    lock: RegionLock<'a, T>,
    team: &'a Team,
    tally: &'a Tally,
}

impl<T: AnyBitPattern + NoUninit> SvmLock<'_, T> {
    /// As [`SvmArray::read`].
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn read(&self, range: Range<usize>) -> Result<PageReadGuard<'_, T>> {
        let _span = open_span(span::PAGES);
        let guard = self.lock.read(range);
        self.tally.add(self.lock.counts());
        guard.map_err(|error| array_error(self.team, &error))
    }

    /// As [`SvmArray::write`].
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
    /// Releases the lock, as dropping it does, and reports errors.
    ///
    /// # Errors
    /// As [`SvmArray`] says.
    pub fn unlock(self) -> Result<()> {
        let SvmLock { lock, team, tally } = self;
        tally.add(lock.counts());
        lock.unlock().map_err(|error| array_error(team, &error))
    }
}

/// All-gathers the addresses of the members; if they span several hosts, they open sockets first. The inner error is
/// the first error of a member.
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
