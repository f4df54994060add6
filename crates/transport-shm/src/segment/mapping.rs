//! Mapped memory: the anonymous file of a segment, and typed, bounds-checked views of it.
//!
//! One of the few files with unsafe code. It knows offsets and sizes, not the contents. The file has no name in any
//! file system, so nothing can be left behind whatever is killed; it is sealed against a change of its size, so no peer
//! can make a mapped page vanish.

use crate::layout::{PAGE_BYTES, PlaceBlock, SegmentHeader};
use crate::ring::Credit;
use crate::segment::Segment;
use rustix::fs::{self, FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Error of allocating the memory of a segment.
#[derive(Debug)]
pub enum MemoryError {
    /// The limit on file sizes (`ulimit -f`) is below the address space that the segment needs.
    FileSizeLimit {
        /// Size needed, in bytes.
        bytes: u64,
        /// Size allowed, in bytes.
        limit: u64,
    },
    /// The system refused an anonymous file, most often because too many descriptors are open.
    NoDescriptor(io::Error),
    /// The system refused that much address space.
    NoAddressSpace {
        /// Size needed, in bytes.
        bytes: u64,
        /// Total size allowed (`ulimit -v`), in bytes, if that is limited.
        limit: Option<u64>,
        /// Error of the system.
        cause: io::Error,
    },
    /// The system has no memory for the pages that are always needed.
    NoPages {
        /// Size needed, in bytes.
        bytes: u64,
        /// Error of the system.
        cause: io::Error,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryError::FileSizeLimit { bytes, limit } => {
                write!(
                    f,
                    "a segment of {bytes} bytes of address space; the file size limit (ulimit -f) is {limit} bytes: \
                     raise it, or start fewer places"
                )
            }
            MemoryError::NoDescriptor(cause) => write!(f, "no descriptor for a shared segment: {cause}"),
            MemoryError::NoAddressSpace { bytes, limit: Some(limit), cause } => write!(
                f,
                "no {bytes} bytes of address space for a shared segment: {cause}; the limit (ulimit -v) is {limit} \
                 bytes: raise it, or start fewer places"
            ),
            MemoryError::NoAddressSpace { bytes, limit: None, cause } => {
                write!(f, "no {bytes} bytes of address space for a shared segment: {cause}")
            }
            MemoryError::NoPages { bytes, cause } => {
                write!(f, "no memory for the first {bytes} bytes of a shared segment: {cause}")
            }
        }
    }
}

impl std::error::Error for MemoryError {}

/// Returns the total address space that this process may have, in bytes; `None` without a limit (`ulimit -v`).
pub(super) fn address_space_max() -> Option<u64> {
    getrlimit(Resource::As).current
}

fn no_address_space(bytes: u64, cause: Errno) -> MemoryError {
    MemoryError::NoAddressSpace { bytes, limit: address_space_max(), cause: cause.into() }
}

/// A type that may be viewed in shared memory.
///
/// # Safety
/// Every bit pattern is a value, and everything that changes after creation is atomic.
pub(crate) unsafe trait Mappable {}

// NEED: the views below are generic over what may lie in shared memory.
// SOUND: integers and atomics only; the plain fields of `SegmentHeader` are written before the segment is shared.
unsafe impl Mappable for SegmentHeader {}
// NEED: as above.
// SOUND: atomics, and reserved integers that nobody touches.
unsafe impl Mappable for PlaceBlock {}
// NEED: as above.
// SOUND: atomics only.
unsafe impl Mappable for Credit {}
// NEED: as above.
// SOUND: an atomic.
unsafe impl Mappable for AtomicU64 {}

/// A whole anonymous file, mapped for reading and writing.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    file: OwnedFd,
}

// NEED: the pointer keeps the type from being shared between threads by itself.
// SOUND: the memory stays mapped until the last owner drops it, and all views are atomics or pointers whose
// users argue for themselves.
unsafe impl Send for Mapping {}
// NEED: as above.
// SOUND: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates memory of `bytes` bytes, all zero, with pages reserved for the first `reserved` bytes.
    pub fn create(bytes: u64, reserved: u64) -> Result<Mapping, MemoryError> {
        // The kernel answers a breach of this limit with a fatal signal, so the limit is checked first.
        if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|limit| *limit < bytes) {
            return Err(MemoryError::FileSizeLimit { bytes, limit });
        }
        let file = fs::memfd_create("isles", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|cause| MemoryError::NoDescriptor(cause.into()))?;
        let no_space = |cause| no_address_space(bytes, cause);
        fs::ftruncate(&file, bytes).map_err(no_space)?;
        fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(no_space)?;
        fs::fallocate(&file, FallocateFlags::empty(), 0, reserved)
            .map_err(|cause| MemoryError::NoPages { bytes: reserved, cause: cause.into() })?;
        Mapping::map(file, bytes)
    }

    /// Maps the first `bytes` bytes of a file that is known to be sealed and at least as long.
    pub fn map(file: OwnedFd, bytes: u64) -> Result<Mapping, MemoryError> {
        let no_space = |cause| no_address_space(bytes, cause);
        let len = usize::try_from(bytes).map_err(|_| no_space(Errno::NOMEM))?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        // NEED: mapping memory has no safe form.
        // SOUND: the kernel chooses an address where nothing lies, and the mapping is removed only by `drop`.
        let start =
            unsafe { mm::mmap(std::ptr::null_mut(), len, access, flags, &file, 0) }.map_err(no_space)?;
        // NEED: as above.
        // SOUND: the advice keeps the memory out of core files and changes no content. It may be refused.
        let _ = unsafe { mm::madvise(start, len, Advice::LinuxDontDump) };
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address zero");
        Ok(Mapping { start, bytes: len, file })
    }

    /// Returns the descriptor of the file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the `T` at `offset`.
    #[inline]
    pub fn view<T: Mappable>(&self, offset: u64) -> &T {
        let start = self.range(offset, size_of::<T>()).cast::<T>();
        assert!(start.is_aligned());
        // NEED: a typed view of mapped memory.
        // SOUND: in bounds and aligned (checked), mapped as long as `self`, valid for every content (`Mappable`).
        unsafe { start.as_ref() }
    }

    /// Returns the whole memory as words.
    pub fn words(&self) -> &[AtomicU64] {
        self.words_at(0, self.bytes / size_of::<AtomicU64>())
    }

    /// Returns the `count` words at `offset`; panics if they are not in the mapping or not aligned.
    pub(crate) fn words_at(&self, offset: u64, count: usize) -> &[AtomicU64] {
        let start = self.range(offset, count * size_of::<AtomicU64>()).cast::<AtomicU64>();
        assert!(start.is_aligned());
        // NEED: a typed view of mapped memory.
        // SOUND: in bounds and aligned (checked), mapped as long as `self`, and every content is an atomic word.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), count) }
    }

    /// Returns the address of the `len` bytes at `offset`; panics if they are not in the mapping.
    #[inline]
    pub fn range(&self, offset: u64, len: usize) -> NonNull<u8> {
        let inside =
            usize::try_from(offset).ok().filter(|start| *start <= self.bytes && len <= self.bytes - start);
        let start = inside.unwrap_or_else(|| panic!("{len} bytes at {offset} of {}", self.bytes));
        // NEED: address arithmetic.
        // SOUND: the result lies in the mapping or one past its end (checked above).
        unsafe { self.start.add(start) }
    }

    /// Allocates the pages of a range and maps them here. Returns `false` if the system has none.
    pub(crate) fn populate(&self, offset: u64, len: u64) -> bool {
        let first = offset - offset % PAGE_BYTES;
        let len = (offset + len - first).next_multiple_of(PAGE_BYTES) as usize;
        let start = self.range(first, len);
        // NEED: advice on mapped memory has no safe form.
        // SOUND: the range lies in the mapping; the advice changes no content.
        match unsafe { mm::madvise(start.as_ptr().cast(), len, Advice::LinuxPopulateWrite) } {
            Ok(()) => true,
            // A kernel before 5.14: reserve the pages; they are mapped at their first touch.
            Err(Errno::INVAL) => {
                fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, first, len as u64).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Releases the pages of a range to the system; they read as zero afterwards.
    pub fn release(&self, offset: u64, len: u64) {
        // If the system refuses, the pages stay, which only costs memory.
        let _ =
            fs::fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len);
    }
}

/// A view that keeps its segment mapped.
pub(crate) struct View<T> {
    at: NonNull<T>,
    _segment: Segment,
}

// NEED: the pointer keeps the type from moving between threads.
// SOUND: it acts as a reference to a `Sync` value in a segment that the view owns a share of.
unsafe impl<T: Sync> Send for View<T> {}
// NEED: as above.
// SOUND: as above.
unsafe impl<T: Sync> Sync for View<T> {}

impl<T: Mappable> View<T> {
    /// Returns the `T` at `offset` of the segment.
    pub fn new(segment: &Segment, offset: u64) -> View<T> {
        View { at: NonNull::from(segment.mapping().view::<T>(offset)), _segment: segment.clone() }
    }
}

impl<T: Mappable> Deref for View<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // NEED: a view that is kept beside its segment cannot be a reference, and checking at each use costs.
        // SOUND: made from a reference into the segment, which stays mapped as long as this value.
        unsafe { self.at.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // NEED: unmapping has no safe form.
        // SOUND: the mapping is this value's own, and all views borrow from it.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
