//! The calls of the kernel: memory files, mappings, and userfaultfd by its ioctls.
//!
//! Invariants: a [`PageMapping`] is mapped as long as it lives; what is in it is accessed by atomics here, because
//! other processes may change it at any time. Slices are made in `guard` only.

use crate::RegionError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{Advice, MapFlags, ProtFlags, UserfaultfdFlags};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes of a page. On a system with larger pages, the kernel refuses the calls.
pub const PAGE_BYTES: usize = 4096;

/// `UFFD_USER_MODE_ONLY`: faults of system calls are not handled. Needs no privilege.
const USER_MODE_ONLY: u32 = 1;
const MODE_MISSING_WP_MINOR: u64 = 0b111;
const CONTINUE_PROTECTED: u64 = 1 << 1;
const EVENT_PAGE_FAULT: u8 = 0x12;

/// The features that a region needs: missing and minor faults, and protection from stores, of memory files.
const fn features() -> u64 {
    const MISSING_SHMEM: u64 = 1 << 5;
    const MINOR_SHMEM: u64 = 1 << 10;
    const PROTECT_SHMEM: u64 = 1 << 12;
    MISSING_SHMEM | MINOR_SHMEM | PROTECT_SHMEM
}

/// Returns a conversion of system errors into errors of a region.
pub fn failed(call: &'static str, remedy: &'static str) -> impl Fn(Errno) -> RegionError {
    move |error| RegionError::System { call, error: io::Error::from(error), remedy }
}

/// Creates a memory file of `bytes` zeros, which is gone with the last process that has it open.
pub fn memory_file(bytes: usize) -> Result<OwnedFd, RegionError> {
    let file = rustix::fs::memfd_create("isles-svm", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(failed("memfd_create", "allow more open files"))?;
    rustix::fs::ftruncate(&file, bytes as u64).map_err(failed("ftruncate", "ask for a smaller region"))?;
    Ok(file)
}

/// Memory of this process: a file mapped shared, or a range that is reserved for such.
pub struct PageMapping {
    base: *mut u8,
    len: usize,
}

// NEED: the service thread and the worker share mappings.
// SOUND: the pointer is not changed after the creation, and all accesses through `PageMapping` are atomic.
unsafe impl Send for PageMapping {}
// NEED: as above.
// SOUND: as above.
unsafe impl Sync for PageMapping {}

impl PageMapping {
    /// Maps `len` bytes of `file` from its start.
    pub fn of_file(file: BorrowedFd<'_>, len: usize) -> Result<PageMapping, RegionError> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // NEED: mapping memory is a call of the kernel.
        // SOUND: the kernel chooses an address that nothing else uses.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, flags, file, 0) }
            .map_err(failed("mmap", "ask for a smaller region"))?;
        let mapping = PageMapping { base: base.cast(), len };
        mapping.advise(0..len, Advice::LinuxNoHugepage)?;
        Ok(mapping)
    }

    /// Replaces the pages at `bytes` by those of `file` at the same offset.
    pub fn replace(&mut self, file: BorrowedFd<'_>, bytes: Range<usize>) -> Result<(), RegionError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        let at = self.at(bytes.start, bytes.len()).cast::<c_void>();
        // NEED: mapping memory is a call of the kernel.
        // SOUND: the range lies in this mapping, which nobody else has a reference into, because it is borrowed
        // mutably.
        unsafe { rustix::mm::mmap(at, bytes.len(), protection, flags, file, bytes.start as u64) }
            .map_err(failed("mmap", "ask for a smaller region"))?;
        self.advise(bytes, Advice::LinuxNoHugepage)
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Drops the pages at `bytes` from this mapping; their content stays in the file.
    pub fn unmap_pages(&self, bytes: Range<usize>) -> Result<(), RegionError> {
        self.advise(bytes, Advice::LinuxDontNeed)
    }

    fn advise(&self, bytes: Range<usize>, advice: Advice) -> Result<(), RegionError> {
        let at = self.at(bytes.start, bytes.len()).cast::<c_void>();
        // NEED: `madvise` is a call of the kernel.
        // SOUND: a shared mapping keeps its content under both advices.
        unsafe { rustix::mm::madvise(at, bytes.len(), advice) }
            .map_err(failed("madvise", "use a kernel with shared memory files"))
    }

    /// Returns the address of `len` bytes at `offset`.
    ///
    /// # Panics
    /// If they are not all in the mapping.
    pub fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "{len} bytes at {offset} of {} are mapped",
            self.len
        );
        // NEED: an address in mapped memory.
        // SOUND: checked to lie in the mapping.
        unsafe { self.base.add(offset) }
    }

    /// The byte at `offset`.
    pub fn byte(&self, offset: usize) -> &AtomicU8 {
        // NEED: memory that others change.
        // SOUND: mapped, in bounds, any byte is valid, accessed by atomics.
        unsafe { &*self.at(offset, 1).cast::<AtomicU8>() }
    }

    /// The word number `index`, of 4 bytes.
    pub fn word32(&self, index: usize) -> &AtomicU32 {
        // NEED: memory that others change.
        // SOUND: mapped, in bounds, aligned because the base is a page.
        unsafe { &*self.at(index * 4, 4).cast::<AtomicU32>() }
    }

    /// Stores the content of page `page`, of [`PAGE_BYTES`] bytes; what is missing keeps its value.
    pub fn store_page(&self, page: usize, content: &[u8]) {
        for (word, bytes) in (page * PAGE_BYTES / 8..).zip(content.chunks_exact(8).take(PAGE_BYTES / 8)) {
            let value = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
            self.word64(word).store(value, Ordering::Relaxed);
        }
    }

    /// The word number `index`, of 8 bytes.
    pub fn word64(&self, index: usize) -> &AtomicU64 {
        // NEED: memory that others change.
        // SOUND: mapped, in bounds, aligned because the base is a page.
        unsafe { &*self.at(index * 8, 8).cast::<AtomicU64>() }
    }
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        // NEED: ending a mapping is a call of the kernel.
        // SOUND: references into it borrow the mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len) };
    }
}

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct UserfaultRange {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: UserfaultRange,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    range: UserfaultRange,
    mode: u64,
}

#[repr(C)]
struct Continue {
    range: UserfaultRange,
    mode: u64,
    mapped: i64,
}

/// A page fault.
#[derive(Clone, Copy, Debug)]
pub struct FaultEvent {
    /// The address, or that of its page.
    pub address: usize,
    /// True if it was a store.
    pub is_store: bool,
}

/// The descriptor that reports and resolves faults.
pub struct Userfault {
    descriptor: OwnedFd,
    /// True if only page faults in user mode are handled; a system call that touches a page then fails with `EFAULT`.
    pub is_user_mode_only: bool,
}

impl Userfault {
    /// Opens a descriptor, in user mode if the process may not handle faults of the kernel.
    pub fn open() -> Result<Userfault, RegionError> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        let user_mode = flags | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
        // NEED: rustix leaves the use of the descriptor to its caller.
        // SOUND: it is used for mappings of this crate.
        let (descriptor, is_user_mode_only) = match unsafe { rustix::mm::userfaultfd(flags) } {
            // NEED: as above.
            // SOUND: as above.
            Err(Errno::PERM) => (unsafe { rustix::mm::userfaultfd(user_mode) }, true),
            opened => (opened, false),
        };
        let remedy = "shared virtual memory needs this call, which a container may forbid (seccomp)";
        let descriptor = descriptor.map_err(failed("userfaultfd", remedy))?;
        let mut api = Api { api: 0xAA, features: features(), ioctls: 0 };
        const UFFDIO_API: u32 = opcode::read_write::<Api>(0xAA, 0x3F);
        // NEED: an ioctl.
        // SOUND: the opcode takes this structure.
        unsafe { ioctl(&descriptor, Updater::<UFFDIO_API, Api>::new(&mut api)) }
            .map_err(failed("UFFDIO_API", "shared virtual memory needs Linux 5.19"))?;
        Ok(Userfault { descriptor, is_user_mode_only })
    }

    /// Registers `bytes` of `mapping`, so that accesses to missing pages are reported.
    pub fn register(&self, mapping: &PageMapping, bytes: Range<usize>) -> Result<(), RegionError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let range = range_of(mapping, bytes);
        let mut register = Register { range, mode: MODE_MISSING_WP_MINOR, ioctls: 0 };
        const UFFDIO_REGISTER: u32 = opcode::read_write::<Register>(0xAA, 0x00);
        // NEED: an ioctl.
        // SOUND: the opcode takes this structure, and the range is of a mapping of this crate.
        unsafe { ioctl(&self.descriptor, Updater::<UFFDIO_REGISTER, Register>::new(&mut register)) }
            .map_err(failed("UFFDIO_REGISTER", "shared virtual memory needs Linux 5.19"))
    }

    /// Maps a page that is in its file, and wakes threads that wait for it. A mapped page changes its protection.
    pub fn map(&self, mapping: &PageMapping, page: usize, is_protected: bool) -> Result<(), RegionError> {
        let bytes = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        let mode = if is_protected { CONTINUE_PROTECTED } else { 0 };
        let mut request = Continue { range: range_of(mapping, bytes.clone()), mode, mapped: 0 };
        const UFFDIO_CONTINUE: u32 = opcode::read_write::<Continue>(0xAA, 0x07);
        // NEED: an ioctl.
        // SOUND: the opcode takes this structure, and the page is of a mapping of this crate.
        match unsafe { ioctl(&self.descriptor, Updater::<UFFDIO_CONTINUE, Continue>::new(&mut request)) } {
            Err(Errno::EXIST) => {
                self.protect(mapping, bytes.clone(), is_protected)?;
                self.wake(mapping, bytes)
            }
            other => other.map_err(failed("UFFDIO_CONTINUE", "shared virtual memory needs Linux 5.19")),
        }
    }

    /// Protects mapped pages from stores, or ends that.
    pub fn protect(
        &self,
        mapping: &PageMapping,
        bytes: Range<usize>,
        is_protected: bool,
    ) -> Result<(), RegionError> {
        let mut request = WriteProtect { range: range_of(mapping, bytes), mode: u64::from(is_protected) };
        const UFFDIO_WRITEPROTECT: u32 = opcode::read_write::<WriteProtect>(0xAA, 0x06);
        // NEED: an ioctl.
        // SOUND: the opcode takes this structure, and the pages are of a mapping of this crate.
        unsafe { ioctl(&self.descriptor, Updater::<UFFDIO_WRITEPROTECT, WriteProtect>::new(&mut request)) }
            .map_err(failed("UFFDIO_WRITEPROTECT", "shared virtual memory needs Linux 5.19"))
    }

    fn wake(&self, mapping: &PageMapping, bytes: Range<usize>) -> Result<(), RegionError> {
        let mut range = range_of(mapping, bytes);
        const UFFDIO_WAKE: u32 = opcode::read::<UserfaultRange>(0xAA, 0x02);
        // NEED: an ioctl.
        // SOUND: the opcode takes this structure, and reads it only.
        unsafe { ioctl(&self.descriptor, Updater::<UFFDIO_WAKE, UserfaultRange>::new(&mut range)) }
            .map_err(failed("UFFDIO_WAKE", "shared virtual memory needs Linux 5.19"))
    }

    /// Returns the next fault, or `None` if none is there.
    pub fn next(&self) -> Option<FaultEvent> {
        let mut message = [0_u8; 32];
        let read = rustix::io::read(&self.descriptor, &mut message).ok()?;
        let word = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().expect("eight bytes"));
        // Flags: 1 a store, 2 a store into a protected page.
        (read == 32 && message[0] == EVENT_PAGE_FAULT)
            .then(|| FaultEvent { address: word(16) as usize, is_store: word(8) & 0b11 != 0 })
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn range_of(mapping: &PageMapping, bytes: Range<usize>) -> UserfaultRange {
    UserfaultRange { start: mapping.at(bytes.start, bytes.len()) as u64, len: bytes.len() as u64 }
}
