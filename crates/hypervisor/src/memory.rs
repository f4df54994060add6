//! The memory of a guest: page tables that map addresses of the process to themselves, and KVM's memory slots.
//!
//! Physical addresses of the guest are made of chunks of 64 MiB. A chunk is one memory slot, over an aligned range of
//! addresses of the process; the host's kernel consults the tables of the process, so a slot follows `mmap`, `munmap`
//! and `mprotect` automatically. When the guest touches a page that its page tables do not map, the monitor adds the
//! page if `/proc/self/maps` permits the access ([`GuestMemory::resolve`]).
//!
//! Nothing here allocates or locks: the guest may have exited in the middle of an allocation.

use crate::error::GuestError;
use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;
use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Bytes of a memory slot, a power of two.
const CHUNK: u64 = 64 << 20;

/// Bytes reserved for page tables, enough to map 512 GiB. Unwritten pages take no memory.
const TABLES: u64 = 1 << 30;

/// End of a process's addresses: the host's kernel maps nothing in the last page below 2^47, and refuses a memory slot
/// that contains it.
const ADDRESS_END: u64 = (1 << 47) - PAGE;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const NOT_EXECUTABLE: u64 = 1 << 63;
const ADDRESS_BITS: u64 = 0x000f_ffff_ffff_f000;

/// Memory that the process uses for nothing else, initially zero.
pub struct Reserved {
    base: u64,
    bytes: u64,
}

/// Types of numbers in reserved memory.
///
/// # Safety
/// Every bit pattern is a value.
pub unsafe trait PlainWord: Copy {}
// NEED: the trait is unsafe.
// SOUND: every pattern of bits is an integer.
unsafe impl PlainWord for u8 {}
// NEED: as above.
// SOUND: as above.
unsafe impl PlainWord for u16 {}
// NEED: as above.
// SOUND: as above.
unsafe impl PlainWord for u32 {}
// NEED: as above.
// SOUND: as above.
unsafe impl PlainWord for u64 {}

impl Reserved {
    /// Reserves `bytes` bytes at an address that the system chooses.
    pub fn new(bytes: u64) -> Result<Reserved, GuestError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // NEED: the memory of tables and stacks is mapped.
        // SOUND: the system chooses a range that nothing uses.
        let mapped =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes as usize, protection, flags) };
        let base = mapped.map_err(GuestError::of("mmap"))?;
        Ok(Reserved { base: base as u64, bytes })
    }

    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.base..self.base + self.bytes).contains(&address)
    }

    fn at<T: PlainWord>(&self, offset: u64) -> *mut T {
        assert!(offset + size_of::<T>() as u64 <= self.bytes, "beyond reserved memory");
        (self.base + offset) as *mut T
    }

    /// Writes `value` at `offset`.
    pub fn write<T: PlainWord>(&self, offset: u64, value: T) {
        // NEED: the memory is the guest's, too, so no slice of it may exist.
        // SOUND: `at` has checked the range, which stays mapped as long as `self`.
        unsafe { self.at::<T>(offset).write_unaligned(value) }
    }

    /// Returns the number at `offset`.
    pub fn read<T: PlainWord>(&self, offset: u64) -> T {
        // NEED: as in `write`.
        // SOUND: as in `write`; every pattern of bits is a value.
        unsafe { self.at::<T>(offset).read_unaligned() }
    }

    /// Makes the first page inaccessible, so that a stack that grows into it faults.
    pub fn guard_first_page(&self) -> Result<(), GuestError> {
        // NEED: the protection of mapped memory is changed.
        // SOUND: the page belongs to `self`, and no reference into it exists.
        let done = unsafe {
            rustix::mm::mprotect(self.base as *mut _, PAGE as usize, rustix::mm::MprotectFlags::empty())
        };
        done.map_err(GuestError::of("mprotect"))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // NEED: the memory is given back.
        // SOUND: it was mapped by `new`, and only `self` gives out its addresses, as numbers.
        let _ = unsafe { rustix::mm::munmap(self.base as *mut _, self.bytes as usize) };
    }
}

/// Access rights of a guest to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRights {
    pub user: bool,
    pub write: bool,
    pub execute: bool,
}

impl PageRights {
    fn bits(self) -> u64 {
        let user = if self.user { USER } else { 0 };
        let write = if self.write { WRITABLE } else { 0 };
        PRESENT | user | write | if self.execute { 0 } else { NOT_EXECUTABLE }
    }
}

/// A mapping of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMapping {
    pub range: Range<u64>,
    pub read: bool,
    pub write: bool,
    pub execute: bool,
}

/// Memory of a guest.
pub struct GuestMemory {
    vm: VmFd,
    /// First addresses of the chunks. Chunk `n` has slot `n` and the physical addresses from `(n + 1) * CHUNK`.
    chunks: Box<[u64]>,
    chunk_count: usize,
    tables: Reserved,
    tables_used: u64,
}

impl GuestMemory {
    /// Creates the memory of `vm`, which may have `slots` memory slots and physical addresses of `physical_bits` bits.
    pub fn new(vm: VmFd, slots: usize, physical_bits: u32) -> Result<GuestMemory, GuestError> {
        let addressable = ((1_u64 << physical_bits.clamp(32, 52)) / CHUNK - 1) as usize;
        let chunks = vec![0; slots.min(addressable)].into_boxed_slice();
        Ok(GuestMemory { vm, chunks, chunk_count: 0, tables: Reserved::new(TABLES)?, tables_used: PAGE })
    }

    pub fn vm(&self) -> &VmFd {
        &self.vm
    }

    /// Returns the physical address of the top page table, for the guest's control register.
    pub fn root(&mut self) -> Result<u64, GuestError> {
        self.physical(self.tables.base())
    }

    /// Returns the guest's physical address of `address`; adds a memory slot for its chunk if needed.
    fn physical(&mut self, address: u64) -> Result<u64, GuestError> {
        let base = address & !(CHUNK - 1);
        let known = self.chunks[..self.chunk_count].iter().position(|chunk| *chunk == base);
        let index = match known {
            Some(index) => index,
            None => self.add_chunk(base)?,
        };
        Ok((index as u64 + 1) * CHUNK + (address - base))
    }

    fn add_chunk(&mut self, base: u64) -> Result<usize, GuestError> {
        let index = self.chunk_count;
        *self.chunks.get_mut(index).ok_or(GuestError::Exhausted("memory slots"))? = base;
        let slot = kvm_userspace_memory_region {
            slot: index as u32,
            flags: 0,
            guest_phys_addr: (index as u64 + 1) * CHUNK,
            memory_size: CHUNK.min(ADDRESS_END - base),
            userspace_addr: base,
        };
        // NEED: the call takes addresses of this process.
        // SOUND: the guest's page tables, which only `self` writes, decide what of the chunk the guest reaches.
        unsafe { self.vm.set_user_memory_region(slot) }
            .map_err(GuestError::of_kvm("KVM_SET_USER_MEMORY_REGION"))?;
        self.chunk_count += 1;
        Ok(index)
    }

    /// Returns the offset in `tables` of the table at a physical address of the guest.
    fn table_at(&self, physical: u64) -> u64 {
        let chunk = self.chunks[(physical / CHUNK - 1) as usize];
        chunk + physical % CHUNK - self.tables.base()
    }

    /// Returns the offset in `tables` of the last-level table for `address`; creates missing tables.
    fn last_table(&mut self, address: u64) -> Result<u64, GuestError> {
        let mut table = 0;
        for level in (1..4).rev() {
            let entry = table + ((address >> (12 + 9 * level)) & 511) * 8;
            let mut next = self.tables.read::<u64>(entry);
            if next & PRESENT == 0 {
                if self.tables_used == TABLES {
                    return Err(GuestError::Exhausted("page tables"));
                }
                let made = self.tables.base() + self.tables_used;
                next = self.physical(made)? | PRESENT | WRITABLE | USER;
                self.tables_used += PAGE;
                self.tables.write::<u64>(entry, next);
            }
            table = self.table_at(next & ADDRESS_BITS);
        }
        Ok(table)
    }

    /// Maps the pages of `range` at their own addresses.
    pub fn map(&mut self, range: Range<u64>, access: PageRights) -> Result<(), GuestError> {
        let mut page = range.start;
        while page < range.end {
            let table = self.last_table(page)?;
            let end = range.end.min((page | ((2 << 20) - 1)) + 1);
            let physical = self.physical(page)?;
            for address in (page..end).step_by(PAGE as usize) {
                let entry = table + ((address >> 12) & 511) * 8;
                self.tables.write::<u64>(entry, (physical + (address - page)) | access.bits());
            }
            page = end;
        }
        Ok(())
    }

    /// Maps the process's mapping at `address`, up to the end of its chunk. Returns `true` if the process has the
    /// access that the guest wanted; the guest's tables then caused the page fault, not the program.
    pub fn resolve(&mut self, address: u64, error: u64) -> Result<bool, GuestError> {
        const WROTE: u64 = 1 << 1;
        const FETCHED: u64 = 1 << 4;
        if address >= ADDRESS_END || self.tables.contains(address) {
            return Ok(false);
        }
        let Some(mapping) = mapping_at(address)? else { return Ok(false) };
        let may = if error & WROTE != 0 {
            mapping.write
        } else if error & FETCHED != 0 {
            mapping.execute
        } else {
            mapping.read
        };
        if !may {
            return Ok(false);
        }
        let chunk = address & !(CHUNK - 1);
        let range = mapping.range.start.max(chunk)..mapping.range.end.min(chunk + CHUNK);
        self.map(range, PageRights { user: true, write: mapping.write, execute: mapping.execute })?;
        Ok(true)
    }
}

/// Returns the mapping of this process that contains `address`, from `/proc/self/maps`.
fn mapping_at(address: u64) -> Result<Option<ProcessMapping>, GuestError> {
    let file = rustix::fs::open("/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let file = file.map_err(GuestError::of("open /proc/self/maps"))?;
    let mut parser = MapsParser::default();
    let mut piece = [0_u8; 4096];
    loop {
        let read = match rustix::io::read(&file, &mut piece) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(GuestError::of("read /proc/self/maps")(error)),
        };
        for byte in &piece[..read] {
            match parser.take(*byte) {
                Some(mapping) if mapping.range.contains(&address) => return Ok(Some(mapping)),
                Some(mapping) if mapping.range.start > address => return Ok(None),
                _ => {}
            }
        }
    }
}

/// Parser of `/proc/self/maps`, byte by byte, without allocation.
#[derive(Default)]
pub struct MapsParser {
    start: u64,
    end: u64,
    flags: [bool; 3],
    state: MapsState,
}

#[derive(Clone, Copy, Default)]
enum MapsState {
    #[default]
    Start,
    End,
    Flags(usize),
    Rest,
}

impl MapsParser {
    /// Takes the next byte; the last one of a line returns its mapping.
    pub fn take(&mut self, byte: u8) -> Option<ProcessMapping> {
        let digit = || u64::from(char::from(byte).to_digit(16).unwrap_or(0));
        match self.state {
            _ if byte == b'\n' => {
                let [read, write, execute] = self.flags;
                let mapping = ProcessMapping { range: self.start..self.end, read, write, execute };
                *self = MapsParser::default();
                return Some(mapping);
            }
            MapsState::Start if byte == b'-' => self.state = MapsState::End,
            MapsState::Start => self.start = self.start << 4 | digit(),
            MapsState::End if byte == b' ' => self.state = MapsState::Flags(0),
            MapsState::End => self.end = self.end << 4 | digit(),
            MapsState::Flags(index) if index < self.flags.len() => {
                self.flags[index] = byte != b'-';
                self.state = MapsState::Flags(index + 1);
            }
            MapsState::Flags(_) => self.state = MapsState::Rest,
            MapsState::Rest => {}
        }
        None
    }
}
