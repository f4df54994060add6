//! State that the worker and the service thread of a region share, and the operations of both on a page.
//!
//! A page that a guard holds is *pinned*: the service thread defers its revocation. Only guards for writing defer the
//! end of a permission to write; those for reading keep theirs. The worker pins a page whose state allows the access,
//! and rechecks the state; the service thread marks the state, and checks the pins. Both in sequentially consistent
//! order, so at least one of them sees the other.

use crate::RegionError;
use crate::release::{Differences, ReleasePages};
use crate::sys::{PAGE_BYTES, PageMapping, Userfault};
use isles_protocol::PlaceId;
use isles_protocol::svm::{Consistency, PageAccess, PageNumber};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

/// In the state of a page: its revocation waits for the guards that hold it, and no new guard takes it before.
const REVOKING: u8 = 0x80;
/// In the state of a page: the end of its permission to write waits for the guards that write it, and no new guard to
/// write takes it before. Guards to read stay, and more may come.
const DOWNGRADING: u8 = 0x40;
/// In the state of a page: its permission, see [`RegionState::level`].
const PERMISSION: u8 = 0x3;

/// In the pins of a page: a guard to write; a guard to read counts 1.
const WRITER: u64 = 1 << 32;

/// In `RegionState::wanted`: the worker waits for no page.
const NOTHING: u64 = u64::MAX;
/// In `RegionState::wanted`: the service thread has pinned the page that the worker waits for.
const PINNED: u64 = u64::MAX - 1;

/// In `RegionState::processor`: the worker has touched no page yet.
pub const NO_CPU: usize = usize::MAX;

/// The counts of a place for a region, since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RegionCounts {
    /// Touches of pages that were not mapped for them.
    pub faults: u64,
    /// Fetched pages: granted permissions, or copies from homes.
    pub pages: u64,
    /// Revoked pages or permissions to write them, and dropped copies.
    pub revoked: u64,
    /// Messages to other places.
    pub messages: u64,
    /// Copied bytes: received pages, pages sent over a socket, differences to homes.
    pub bytes: u64,
    /// Locks acquired.
    pub locks: u64,
}

impl RegionCounts {
    /// Adds those of another place or region.
    #[must_use]
    pub fn plus(self, other: RegionCounts) -> RegionCounts {
        RegionCounts {
            faults: self.faults + other.faults,
            pages: self.pages + other.pages,
            revoked: self.revoked + other.revoked,
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            locks: self.locks + other.locks,
        }
    }
}

/// [`RegionCounts`] while they are counted.
#[derive(Default)]
pub struct Counts {
    pub faults: AtomicU64,
    pub pages: AtomicU64,
    pub revoked: AtomicU64,
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    pub locks: AtomicU64,
}

/// Adds to a count.
pub fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

/// The locks that the service thread has obtained for the worker, each with the ticket of its request.
#[derive(Default)]
pub struct LockWaits {
    pub granted: BTreeMap<u32, u32>,
    /// Wakes the task that waits for a lock.
    pub waker: Option<Waker>,
    tickets: u32,
}

impl LockWaits {
    /// Returns the ticket of a new request.
    pub fn next_ticket(&mut self) -> u32 {
        self.tickets = self.tickets.wrapping_add(1);
        self.tickets
    }
}

/// Reason why the region is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Died(PlaceId),
    Left(PlaceId),
}

/// The shared state of a region; see the module.
pub struct RegionState {
    pub model: Consistency,
    pub here: PlaceId,
    pub places: u32,
    pub pages: u32,
    /// The view of the program.
    pub program: PageMapping,
    /// The contents of pages, followed by a word for each page, see `region`. All places share it; in a region that
    /// spans hosts it is this place's own.
    pub frames: PageMapping,
    /// Pages travel over sockets, because the region spans hosts.
    pub has_sockets: bool,
    pub fault: Userfault,
    /// By page: 0 not mapped, 1 to read, 2 to write; plus [`REVOKING`] or [`DOWNGRADING`].
    pub states: Box<[AtomicU8]>,
    /// By page: guards of this place that hold it; each to write counts [`WRITER`].
    pub pins: Box<[AtomicU64]>,
    /// Revocations, and differences of other places, that wait for a guard.
    pub deferred: AtomicU32,
    /// The page that the worker waits for times 2, plus 1 to write.
    pub wanted: AtomicU64,
    /// 0, or the place that was lost plus 1, times 2, plus 1 if it has left.
    pub lost: AtomicU64,
    pub counts: Counts,
    pub release: Mutex<ReleasePages>,
    /// Differences in flight to other hosts.
    pub differences: Differences,
    pub locks: Mutex<LockWaits>,
    /// The write end of the pipe of this place's service thread.
    pub bell: Mutex<File>,
    /// The processor of the worker at its last fault.
    pub processor: AtomicUsize,
}

/// Messages of a service thread besides those of the protocol.
pub const BELL: [u8; 16] = [0xFF; 16];

impl RegionState {
    /// Returns the least state of a page that permits `access`.
    pub fn level(access: PageAccess) -> u8 {
        match access {
            PageAccess::Read => 1,
            PageAccess::Write => 2,
        }
    }

    /// Returns the reason for the loss of the region, if any.
    pub fn loss(&self) -> Option<Loss> {
        let value = self.lost.load(Ordering::SeqCst);
        let place = PlaceId((value / 2).checked_sub(1)? as u32);
        Some(if value % 2 == 1 { Loss::Left(place) } else { Loss::Died(place) })
    }

    /// Returns an error if the region is lost.
    pub fn check(&self) -> Result<(), RegionError> {
        match self.loss() {
            None => Ok(()),
            Some(Loss::Died(place)) => Err(RegionError::DeadPlace(place)),
            Some(Loss::Left(place)) => Err(RegionError::Left(place)),
        }
    }

    /// Records the first loss.
    pub fn lose(&self, loss: Loss) {
        let value = match loss {
            Loss::Died(place) => (u64::from(place.0) + 1) * 2,
            Loss::Left(place) => (u64::from(place.0) + 1) * 2 + 1,
        };
        let _ = self.lost.compare_exchange(0, value, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns the state of a page that a guard needs, and what it counts in the pins.
    fn needed_by(&self, access: PageAccess) -> (PageAccess, u8, u64) {
        let access = if self.model == Consistency::Exclusive { PageAccess::Write } else { access };
        let level = RegionState::level(access);
        (access, level, if access == PageAccess::Write { WRITER } else { 1 })
    }

    /// Worker: gets a page and pins it. Waits until other places have released it.
    pub fn pin(&self, page: PageNumber, access: PageAccess) -> Result<(), RegionError> {
        let (needed, level, _) = self.needed_by(access);
        loop {
            self.check()?;
            if self.pin_if_mapped(page, access) {
                break;
            }
            self.processor.store(rustix::thread::sched_getcpu(), Ordering::Relaxed);
            self.wanted.store(u64::from(page.0) * 2 + u64::from(level == 2), Ordering::SeqCst);
            self.touch(page, needed);
            if self.wanted.swap(NOTHING, Ordering::SeqCst) == PINNED {
                break;
            }
            std::thread::yield_now();
        }
        self.check().inspect_err(|_| self.unpin(page, access))
    }

    /// Pins a page whose state allows it; returns whether it does. A pending revocation is no obstacle if a guard of
    /// this place holds the page, because that guard defers it anyway.
    pub fn pin_if_mapped(&self, page: PageNumber, access: PageAccess) -> bool {
        let ((_, level, count), index) = (self.needed_by(access), page.index());
        let allows = |pins: u64| {
            let state = self.states[index].load(Ordering::SeqCst);
            let is_held = if state & DOWNGRADING == 0 { pins > 0 } else { pins >= WRITER || level == 1 };
            state & PERMISSION >= level && (is_held || state & (REVOKING | DOWNGRADING) == 0)
        };
        if !allows(self.pins[index].load(Ordering::SeqCst)) {
            return false;
        }
        let is_pinned = allows(self.pins[index].fetch_add(count, Ordering::SeqCst));
        if !is_pinned {
            self.unpin(page, access);
        }
        is_pinned
    }

    /// Returns `true` if a guard of this place holds the page with a permission that is enough for `access`.
    pub fn is_held_for(&self, page: u32, access: PageAccess) -> bool {
        self.pins[page as usize].load(Ordering::SeqCst) > 0
            && self.states[page as usize].load(Ordering::SeqCst) & PERMISSION >= RegionState::level(access)
    }

    /// Worker: ends a pin.
    pub fn unpin(&self, page: PageNumber, access: PageAccess) {
        let (_, _, count) = self.needed_by(access);
        self.pins[page.index()].fetch_sub(count, Ordering::SeqCst);
        self.wake_deferred();
    }

    /// Worker, after the end of a guard: makes the service thread recheck deferred requests.
    pub fn wake_deferred(&self) {
        if self.deferred.load(Ordering::SeqCst) > 0 {
            // If the pipe is full, the service thread will check anyway.
            self.ring();
        }
    }

    /// Worker: makes the service thread check deferred requests and pending output.
    pub fn ring(&self) {
        let _ = self.bell.lock().expect("no holder panics").write_all(&BELL);
    }

    /// Service thread: lets the program access a page, and wakes the worker if it waits for it.
    pub fn map(&self, page: PageNumber, access: PageAccess) -> Result<(), RegionError> {
        let level = RegionState::level(access);
        self.states[page.index()].store(level, Ordering::SeqCst);
        let wanted = self.wanted.load(Ordering::SeqCst);
        if wanted < PINNED && wanted / 2 == u64::from(page.0) && wanted % 2 < u64::from(level) {
            let count = if wanted % 2 == 1 { WRITER } else { 1 };
            self.pins[page.index()].fetch_add(count, Ordering::SeqCst);
            let taken =
                self.wanted.compare_exchange(wanted, PINNED, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if !taken {
                self.pins[page.index()].fetch_sub(count, Ordering::SeqCst);
            }
        }
        self.fault.map(&self.program, page.index(), access == PageAccess::Read)
    }

    /// Service thread: revokes a page, or the permission to write it, unless a guard needs it. Returns the previous
    /// permission, or `None` if a guard needs the page.
    pub fn take(&self, page: PageNumber, keeps_read: bool) -> Result<Option<PageAccess>, RegionError> {
        let index = page.index();
        let (mark, least) = if keeps_read { (DOWNGRADING, WRITER) } else { (REVOKING, 1) };
        let before = self.states[index].fetch_or(mark, Ordering::SeqCst) & PERMISSION;
        if self.pins[index].load(Ordering::SeqCst) >= least {
            return Ok(None);
        }
        let bytes = index * PAGE_BYTES..(index + 1) * PAGE_BYTES;
        if keeps_read {
            self.fault.protect(&self.program, bytes, true)?;
        } else {
            self.program.unmap_pages(bytes)?;
        }
        self.states[index].store(u8::from(keeps_read), Ordering::SeqCst);
        add(&self.counts.revoked, 1);
        let writes = before >= RegionState::level(PageAccess::Write);
        Ok(Some(if writes { PageAccess::Write } else { PageAccess::Read }))
    }

    /// Service thread: copies the content of a page out of the frames.
    pub fn frame(&self, page: PageNumber) -> Vec<u8> {
        let words = page.index() * PAGE_BYTES / 8..(page.index() + 1) * PAGE_BYTES / 8;
        words.flat_map(|word| self.frames.word64(word).load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    /// Service thread: stores a page from another host. The program must not have access to it.
    pub fn set_frame(&self, page: PageNumber, content: &[u8]) {
        self.frames.store_page(page.index(), content);
        add(&self.counts.bytes, content.len());
    }

    /// Accesses a page without changing it.
    fn touch(&self, page: PageNumber, access: PageAccess) {
        let byte = self.program.byte(page.index() * PAGE_BYTES);
        match access {
            PageAccess::Read => byte.load(Ordering::Relaxed),
            // An addition of a constant zero would be compiled to a load.
            PageAccess::Write => byte.fetch_or(std::hint::black_box(0), Ordering::Relaxed),
        };
    }

    /// The locks of this place.
    pub fn lock_waits(&self) -> MutexGuard<'_, LockWaits> {
        self.locks.lock().expect("no holder panics")
    }

    /// Service thread: records that the lock is held for the request with this ticket.
    pub fn lock_granted(&self, number: u32, ticket: u32) {
        self.lock_waits().granted.insert(number, ticket);
        self.wake_lock_wait();
    }

    /// Service thread: wakes the worker to check for a grant or a loss.
    pub fn wake_lock_wait(&self) {
        let waker = self.lock_waits().waker.take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns what was counted so far.
    pub fn counted(&self) -> RegionCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { faults, pages, revoked, messages, bytes, locks } = &self.counts;
        RegionCounts {
            faults: load(faults),
            pages: load(pages),
            revoked: load(revoked),
            messages: load(messages),
            bytes: load(bytes),
            locks: load(locks),
        }
    }

    /// The value of `wanted` of a new region.
    pub const fn wants_nothing() -> AtomicU64 {
        AtomicU64::new(NOTHING)
    }
}
