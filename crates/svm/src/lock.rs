//! Locks of a region: stores made under a lock are visible to its next holder.
//!
//! The worker sends its request to its own service thread, through the pipe of that thread, and waits as a future, so
//! other tasks of the place run meanwhile. The service thread runs the protocol (`isles_protocol::svm::LockNode`) and
//! wakes the worker. A request carries a ticket, so that a late grant for a cancelled wait is not taken for a later
//! request.

use crate::service::{ASKS_LOCK, GIVES_LOCK, encode, send};
use crate::state::RegionState;
use crate::{PageRegion, RegionError};
use bytemuck::{AnyBitPattern, NoUninit};
use std::future::poll_fn;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A requested or held lock; dropping it releases the lock, or cancels the wait.
struct LockRequest {
    shared: Arc<RegionState>,
    number: u32,
    ticket: u32,
}

impl LockRequest {
    fn new(shared: &Arc<RegionState>, number: u32) -> LockRequest {
        let ticket = shared.lock_waits().next_ticket();
        let request = LockRequest { shared: shared.clone(), number, ticket };
        request.tell_service(ASKS_LOCK);
        request
    }

    fn tell_service(&self, kind: u32) {
        let message = encode(self.shared.here, kind, self.number, self.ticket);
        // The service thread reads its pipe as long as the region exists.
        let _ = send(&mut self.shared.bell.lock().expect("no holder panics"), &message);
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<(), RegionError>> {
        let mut waits = self.shared.lock_waits();
        if waits.granted.get(&self.number) == Some(&self.ticket) {
            return Poll::Ready(Ok(()));
        }
        if let Err(error) = self.shared.check() {
            return Poll::Ready(Err(error));
        }
        waits.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for LockRequest {
    fn drop(&mut self) {
        let mut waits = self.shared.lock_waits();
        waits.waker = None;
        if waits.granted.get(&self.number) == Some(&self.ticket) {
            waits.granted.remove(&self.number);
        }
        drop(waits);
        self.tell_service(GIVES_LOCK);
    }
}

/// A lock of a region that this place holds, and the region. Dropping it releases the region and the lock.
pub struct RegionLock<'r, T> {
    region: &'r mut PageRegion<T>,
    // Dropped after the release.
    _request: LockRequest,
}

impl<T> PageRegion<T> {
    /// Waits for the lock `number`, then acquires, so that this place sees all stores of previous holders. Any number
    /// is a lock; places that wait for one get it in the order in which their requests arrive. The region is borrowed
    /// mutably, so a place holds one lock of it at a time, and no guard while it waits.
    ///
    /// # Errors
    /// A place is lost, possibly the one that holds the lock; a system call fails.
    pub async fn lock(&mut self, number: u32) -> Result<RegionLock<'_, T>, RegionError> {
        self.shared.check()?;
        let request = LockRequest::new(&self.shared, number);
        poll_fn(|context| request.poll(context)).await?;
        self.acquire()?;
        crate::state::add(&self.shared.counts.locks, 1);
        Ok(RegionLock { region: self, _request: request })
    }
}

impl<T: AnyBitPattern + NoUninit> RegionLock<'_, T> {
    /// Returns a guard to read a range of elements; as [`PageRegion::read`].
    ///
    /// # Errors
    /// As [`PageRegion::read`].
    pub fn read(&self, range: Range<usize>) -> Result<crate::PageReadGuard<'_, T>, RegionError> {
        self.region.read(range)
    }

    /// Returns a guard to read and write a range of elements; as [`PageRegion::write`].
    ///
    /// # Errors
    /// As [`PageRegion::write`].
    pub fn write(&self, range: Range<usize>) -> Result<crate::PageWriteGuard<'_, T>, RegionError> {
        self.region.write(range)
    }
}

impl<T> RegionLock<'_, T> {
    /// Releases the region and the lock, like dropping it, and reports errors.
    ///
    /// # Errors
    /// A place is lost.
    pub fn unlock(self) -> Result<(), RegionError> {
        self.region.release()
    }
}

impl<T> Deref for RegionLock<'_, T> {
    type Target = PageRegion<T>;

    fn deref(&self) -> &PageRegion<T> {
        self.region
    }
}

impl<T> Drop for RegionLock<'_, T> {
    fn drop(&mut self) {
        match self.region.release() {
            // After a loss, no place is granted the lock.
            Ok(()) | Err(RegionError::DeadPlace(_) | RegionError::Left(_)) => {}
            // The next holder would miss the stores.
            Err(error) => crate::service::end_process(self.region.shared.here, &error),
        }
    }
}
