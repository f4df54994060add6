//! A region at one place: its creation, its guards, release and acquire.
//!
//! Memory of the file: `pages` pages of content, then a word of 4 bytes for each page (see `release`). In the models
//! exclusive and strong, the program maps that file, and only permissions move; pages are accessed in place. In the
//! model release, the program maps it for the pages of this home, and a file of this place for all others. In a region
//! that spans hosts, each place has its own file, and pages travel.

use crate::guard::{Borrows, PageReadGuard, PageWriteGuard};
use crate::peers::{self, PlaceAddress, RegionSeed};
use crate::release::{Differences, ReleasePages, home_block};
use crate::service::{STOPS, Service, encode, send};
use crate::state::{RegionCounts, RegionState};
use crate::sys::{PAGE_BYTES, PageMapping, Userfault, memory_file};
use crate::{RegionError, state};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_protocol::PlaceId;
use isles_protocol::svm::Consistency;
use rustix::fd::{AsFd, OwnedFd};
use std::fs::File;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Elements that all places of a region share. The elements are zeros at first.
///
/// A value of this type is the part of one place, bound to the thread that created it. Dropping it loses the region for
/// places that still use it, so places synchronise first.
///
/// The visibility of stores depends on the model. With [`Consistency::Exclusive`] and [`Consistency::Strong`] all
/// places see one order of all guards. With [`Consistency::Release`], a place sees the stores that another made before
/// a [`PageRegion::release`] that precedes its own [`PageRegion::acquire`].
pub struct PageRegion<T> {
    pub(crate) shared: Arc<RegionState>,
    pub(crate) borrows: Borrows,
    len: usize,
    thread: Option<JoinHandle<()>>,
    /// At the first place: the descriptors that the others open while they join.
    _memory: Option<OwnedFd>,
    // Guards of one thread only, because one thread waits for the pins of a page.
    element: PhantomData<(T, *mut ())>,
}

/// Returns the pages of a region of `len` elements.
fn pages_of<T>(len: usize) -> Result<u32, RegionError> {
    let bytes = len.saturating_mul(size_of::<T>());
    let pages = u32::try_from(bytes.div_ceil(PAGE_BYTES)).ok().filter(|pages| *pages > 0);
    pages.ok_or(RegionError::Size { bytes })
}

fn file_bytes(pages: u32) -> usize {
    (pages as usize * PAGE_BYTES + pages as usize * 4).next_multiple_of(PAGE_BYTES)
}

impl<T: AnyBitPattern + NoUninit> PageRegion<T> {
    /// Opens the descriptors of this place for a region of `len` elements. `is_first` at one place only.
    ///
    /// # Errors
    /// An invalid size, or a failed system call.
    pub fn prepare(len: usize, is_first: bool) -> Result<RegionSeed, RegionError> {
        let pages = pages_of::<T>(len)?;
        RegionSeed::new(is_first.then(|| file_bytes(pages)))
    }

    /// Joins the region, whose places were prepared with the same `len` and have these addresses, in this order. All
    /// places must have joined before one of them drops its part.
    ///
    /// # Errors
    /// A place is dead, or on another host without listening; a system call fails.
    ///
    /// # Panics
    /// If `here` is not one of the addresses.
    pub fn join(
        seed: RegionSeed,
        here: PlaceId,
        addresses: &[PlaceAddress],
        len: usize,
        model: Consistency,
    ) -> Result<PageRegion<T>, RegionError> {
        let (pages, places) = (pages_of::<T>(len)?, addresses.len() as u32);
        assert!(here.0 < places, "{here} is not one of {places} places");
        let sockets = seed.connect(here, addresses)?;
        let has_sockets = sockets.is_some();
        let (peers, memory) = match sockets {
            Some(peers) => (peers, File::from(memory_file(file_bytes(pages))?)),
            None => (peers::open_peers(here, addresses)?, peers::open_memory(addresses)?),
        };
        let frames = PageMapping::of_file(memory.as_fd(), file_bytes(pages))?;
        let fault = Userfault::open()?;
        let (program, copies) = views(&memory, pages, places, here, model, &fault)?;
        let shared = Arc::new(RegionState {
            model,
            here,
            places,
            pages,
            program,
            frames,
            has_sockets,
            fault,
            states: (0..pages).map(|_| AtomicU8::new(0)).collect(),
            pins: (0..pages).map(|_| AtomicU64::new(0)).collect(),
            deferred: AtomicU32::new(0),
            wanted: RegionState::wants_nothing(),
            lost: AtomicU64::new(0),
            counts: state::Counts::default(),
            release: Mutex::new(ReleasePages::new(pages, copies)),
            differences: Differences::default(),
            locks: Mutex::default(),
            bell: Mutex::new(File::from(OwnedFd::from(seed.writer))),
            processor: AtomicUsize::new(state::NO_CPU),
        });
        let service = Service::new(shared.clone(), seed.reader, peers);
        let spawned = std::thread::Builder::new().name("isles-svm".into()).spawn(move || service.run());
        let remedy = "allow more threads";
        let thread =
            spawned.map_err(|error| RegionError::System { call: "a service thread", error, remedy })?;
        let borrows = Borrows::default();
        let (thread, element) = (Some(thread), PhantomData);
        Ok(PageRegion { shared, borrows, len, thread, _memory: seed.memory, element })
    }

    /// Returns a guard to read a range of elements. Waits until other places have released conflicting pages.
    ///
    /// # Errors
    /// The range is outside of the region, or not above held guards; a place is lost.
    ///
    /// # Panics
    /// If a guard of this place writes one of the elements.
    pub fn read(&self, range: Range<usize>) -> Result<PageReadGuard<'_, T>, RegionError> {
        PageReadGuard::new(self, range)
    }

    /// Returns a guard to read and write a range of elements. Waits until other places have released conflicting pages.
    ///
    /// # Errors
    /// As for [`PageRegion::read`].
    ///
    /// # Panics
    /// If a guard of this place has one of the elements.
    pub fn write(&self, range: Range<usize>) -> Result<PageWriteGuard<'_, T>, RegionError> {
        PageWriteGuard::new(self, range)
    }

    /// Returns the address of the first element, for accesses without guards. An access to a page that this place lacks
    /// blocks the thread until it arrives. After the loss of a place, pages are mapped with their local content.
    ///
    /// # Safety
    /// The caller keeps from accessing an element while a place stores into it, as for memory that threads share, and
    /// does not store into one of which a guard exists. The address is valid as long as the region.
    pub unsafe fn as_ptr(&self) -> *mut T {
        self.shared.program.base().cast()
    }
}

impl<T> PageRegion<T> {
    /// Returns the number of elements.
    #[expect(clippy::len_without_is_empty, reason = "a region has at least one element")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the model.
    pub fn model(&self) -> Consistency {
        self.shared.model
    }

    /// Writes the changes of this place to the homes of the pages. Needed by the model release only. It takes the
    /// region mutably, because no guard may be held.
    ///
    /// # Errors
    /// A place is lost; a system call fails.
    pub fn release(&mut self) -> Result<(), RegionError> {
        self.shared.check()?;
        self.shared.flush()
    }

    /// Drops the copies of this place, so that it sees the released changes of others. Needed by the model release
    /// only.
    ///
    /// # Errors
    /// As for [`PageRegion::release`], which it calls first.
    pub fn acquire(&mut self) -> Result<(), RegionError> {
        self.release()?;
        self.shared.invalidate()
    }

    /// Returns the counts of this place since it joined.
    pub fn counts(&self) -> RegionCounts {
        self.shared.counted()
    }

    /// Returns `true` if only page faults in user mode are handled, because the process lacks the privilege for more.
    ///
    /// A system call that accesses a page that this place lacks then fails with `EFAULT`. Slices of guards work.
    pub fn is_user_mode_only(&self) -> bool {
        self.shared.fault.is_user_mode_only
    }
}

impl<T> Drop for PageRegion<T> {
    fn drop(&mut self) {
        let stop = encode(self.shared.here, STOPS, 0, 0);
        let sent = send(&mut self.shared.bell.lock().unwrap_or_else(|lock| lock.into_inner()), &stop);
        if let (Ok(()), Some(thread)) = (sent, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// Maps the view of the program, and for the model release the copies of this place.
fn views(
    memory: &File,
    pages: u32,
    places: u32,
    here: PlaceId,
    model: Consistency,
    fault: &Userfault,
) -> Result<(PageMapping, Option<PageMapping>), RegionError> {
    let bytes = pages as usize * PAGE_BYTES;
    if model != Consistency::Release {
        let program = PageMapping::of_file(memory.as_fd(), bytes)?;
        fault.register(&program, 0..bytes)?;
        return Ok((program, None));
    }
    let file = memory_file(bytes)?;
    let copies = PageMapping::of_file(file.as_fd(), bytes)?;
    let mut program = PageMapping::of_file(file.as_fd(), bytes)?;
    let own = home_block(pages, places, here.0);
    let own = own.start as usize * PAGE_BYTES..own.end as usize * PAGE_BYTES;
    program.replace(memory.as_fd(), own.clone())?;
    fault.register(&program, 0..own.start)?;
    fault.register(&program, own.end..bytes)?;
    Ok((program, Some(copies)))
}
