//! The memory that all ranks share: control words, message buffers, off-chip memory, at one address in all of them.
//!
//! ```text
//! 0        control words        `ControlWords`
//! 128 KiB  message buffers      48 of 8 KiB
//! 640 KiB  words of ranks       `TurnWords`, for ranks of a chip that are processes
//! 1 MiB    off-chip memory      64 MiB
//! ```
//!
//! Programs store pointers into this memory and pass them to other ranks, so its address is the same in all processes.
//! Invariant: the mapping lives as long as the process.

use crate::chip::TurnWords;
use crate::interface::{BUFFER_BYTES, ControlWords, LINE_BYTES, RANKS_MAX, SHARED_BYTES};
use isles_app::Failure;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

/// Candidate addresses of the memory: below all mappings of the system, or above the shadow memory of sanitizers,
/// which covers the first candidate.
const ADDRESSES: [usize; 2] = [0x10_0000_0000, 0x2000_0000_0000];

/// Bytes for the words of one rank, so that ranks share no cache line.
const TURN_BYTES: usize = 128;

const BUFFERS: usize = 128 << 10;
const TURNS: usize = 640 << 10;
const SHARED: usize = 1 << 20;
const BYTES: usize = SHARED + SHARED_BYTES;

const _: () = assert!(size_of::<ControlWords>() <= BUFFERS && BUFFERS + RANKS_MAX * BUFFER_BYTES <= TURNS);
const _: () = assert!(TURNS + RANKS_MAX * TURN_BYTES <= SHARED && size_of::<TurnWords>() <= TURN_BYTES);

/// The mapped memory.
#[derive(Clone, Copy)]
pub struct RankMemory {
    start: *mut u8,
}

impl RankMemory {
    /// Creates the memory, filled with zeros, and the descriptor from which other processes map it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create() -> Result<(RankMemory, OwnedFd), Failure> {
        let refused =
            |cause: rustix::io::Errno| Failure::Ended(format!("no shared memory for the ranks: {cause}"));
        // Without `CLOEXEC`: the processes of ranks inherit it.
        let memory = memfd_create("isles-rcce", MemfdFlags::empty()).map_err(refused)?;
        ftruncate(&memory, BYTES as u64).map_err(refused)?;
        let [first, second] = ADDRESSES;
        let segment = RankMemory::map(memory.as_fd(), first);
        let segment =
            segment.or_else(|failure| RankMemory::map(memory.as_fd(), second).map_err(|_| failure))?;
        Ok((segment, memory))
    }

    /// Returns the address of the memory, which is the same in all ranks.
    pub fn address(self) -> usize {
        self.start.addr()
    }

    /// Maps the memory of [`create`](RankMemory::create) at its address.
    ///
    /// # Errors
    /// The system refuses, or the address is taken.
    pub fn map(memory: BorrowedFd<'_>, address: usize) -> Result<RankMemory, Failure> {
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        // NEED: programs need the memory at one address in all ranks.
        // SOUND: no mapping is replaced; the memory is shared with ranks only, and read by atomic words.
        let start = unsafe {
            mmap(
                ptr::without_provenance_mut(address),
                BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                memory,
                0,
            )
        };
        let start = start.map_err(|cause| {
            Failure::Ended(format!("cannot map the memory of the ranks at {address:#x}: {cause}"))
        })?;
        Ok(RankMemory { start: start.cast() })
    }

    /// Returns the control words.
    pub fn control(self) -> &'static ControlWords {
        // NEED: the words lie in mapped memory.
        // SOUND: zero bytes are valid `ControlWords`; they fit (see the assertion) and are page-aligned, and ranks
        // write only atomics; the mapping is never removed.
        unsafe { &*self.start.cast::<ControlWords>() }
    }

    /// Returns the words with which a rank process takes turns with its model.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn turn_words(self, rank: usize) -> &'static TurnWords {
        assert!(rank < RANKS_MAX, "rank {rank}");
        // NEED: the words lie in mapped memory.
        // SOUND: zero bytes are valid `TurnWords`; they fit and are aligned (see the assertion); the mapping is never
        // removed.
        unsafe { &*self.start.wrapping_add(TURNS + rank * TURN_BYTES).cast::<TurnWords>() }
    }

    /// Returns the first message buffer.
    pub fn buffers(self) -> *mut u8 {
        self.start.wrapping_add(BUFFERS)
    }

    /// Returns the off-chip memory.
    pub fn shared(self) -> *mut u8 {
        self.start.wrapping_add(SHARED)
    }

    /// Returns the content of a line of a rank's message buffer.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn line(self, rank: usize, line: usize) -> [u8; LINE_BYTES] {
        assert!(rank < RANKS_MAX && line < BUFFER_BYTES / LINE_BYTES, "line {line} of rank {rank}");
        let start = self.buffers().wrapping_add(rank * BUFFER_BYTES + line * LINE_BYTES);
        std::array::from_fn(|at| {
            // NEED: C programs write there.
            // SOUND: inside the mapping by the assertion; each byte is read as an atomic.
            let byte = unsafe { AtomicU8::from_ptr(start.wrapping_add(at)) };
            byte.load(Ordering::Relaxed)
        })
    }
}
