//! The program image, and the entry descriptors in it.
//!
//! A body of `at!` or `spawn_at!` travels as the offset of its descriptor: a constant that the compiler puts among the
//! relocated read-only data of the program. All places run the same image (the transport's handshake checks that), so
//! an offset means the same everywhere, wherever the image is loaded. An arriving offset is accepted only if it lies in
//! that range, is aligned, and shows the magic word and the sender's hash.

use crate::local::Local;
use crate::message::Arrived;
use crate::wire::DecodeError;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

/// The first word of each descriptor.
const MAGIC: u64 = u64::from_le_bytes(*b"isl:entr");

/// Function that runs a travelling body: decodes its captures and starts its task.
pub(crate) type Run = unsafe fn(&Local, Arrived<'_, '_>) -> Result<(), DecodeError>;

/// One monomorphic body of `at!` or `spawn_at!`.
#[repr(C)]
pub(crate) struct Descriptor {
    magic: u64,
    hash: u64,
    run: Run,
}

/// Reason why an entry was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryFault {
    /// The offset is outside the descriptor range, or not aligned.
    Outside(u32),
    /// There is no descriptor at the offset.
    Magic(u32),
    /// The descriptor is not the one that the sender meant.
    Hash(u32),
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryFault::Outside(offset) => {
                write!(f, "entry {offset:#x} lies outside the program's descriptors")
            }
            EntryFault::Magic(offset) => write!(f, "there is no descriptor at entry {offset:#x}"),
            EntryFault::Hash(offset) => write!(f, "the descriptor at entry {offset:#x} is of another type"),
        }
    }
}

/// A descriptor as it is named on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Bytes from the start of the descriptor range.
    pub(crate) offset: u32,
    /// The low half of the descriptor's hash.
    pub(crate) hash: u32,
}

impl Descriptor {
    /// Makes a descriptor of the body that `hash` identifies.
    ///
    /// # Safety
    /// `run` must be sound to call, at any time, with any captures that arrived for this descriptor.
    pub(crate) const unsafe fn new(hash: u64, run: Run) -> Self {
        Descriptor { magic: MAGIC, hash, run }
    }

    /// Returns its name on the wire.
    ///
    /// # Panics
    /// If the descriptor lies outside the image's range: then this code was loaded in a way that Isles does not know.
    #[inline]
    pub(crate) fn entry(&'static self) -> Entry {
        let range = descriptors();
        let address = std::ptr::from_ref(self) as usize;
        assert!(range.contains(&address), "descriptor {address:#x} outside of the image's range {range:x?}");
        Entry { offset: (address - range.start) as u32, hash: self.hash as u32 }
    }
}

impl Entry {
    /// Returns the function of an entry that came over the wire.
    #[inline]
    pub(crate) fn resolve(self) -> Result<Run, EntryFault> {
        let range = descriptors();
        let address = range.start + self.offset as usize;
        let aligned = address.is_multiple_of(align_of::<Descriptor>());
        if !aligned || address + size_of::<Descriptor>() > range.end {
            return Err(EntryFault::Outside(self.offset));
        }
        // NEED: the words at an offset are looked at before they are known to be a descriptor.
        // SOUND: the range is mapped, readable, constant after relocation, and the address is aligned in it.
        let (magic, hash) = unsafe { (word(address), word(address + size_of::<u64>())) };
        if magic != MAGIC {
            return Err(EntryFault::Magic(self.offset));
        }
        if hash as u32 != self.hash {
            return Err(EntryFault::Hash(self.offset));
        }
        // NEED: back from the offset to the descriptor.
        // SOUND: the magic word stands at the start of descriptors only; the compiler placed one here.
        Ok(unsafe { (*std::ptr::with_exposed_provenance::<Descriptor>(address)).run })
    }
}

/// Reads the word at `address`.
///
/// # Safety
/// The address is aligned, mapped and readable; its content does not change.
#[inline]
unsafe fn word(address: usize) -> u64 {
    #[cfg(all(fuzzing, target_arch = "x86_64"))]
    {
        let word: u64;
        // NEED: the address sanitizer of the fuzzer takes the gaps between constants for nobody's memory.
        // SOUND: by the contract; the instruction reads the word and nothing else.
        unsafe {
            std::arch::asm!("mov {}, [{}]", out(reg) word, in(reg) address, options(readonly, nostack))
        };
        word
    }
    #[cfg(not(all(fuzzing, target_arch = "x86_64")))]
    // NEED: an address that came over the wire becomes a pointer.
    // SOUND: by the contract.
    unsafe {
        *std::ptr::with_exposed_provenance::<u64>(address)
    }
}

/// Returns the range of addresses of all descriptors of this image.
#[inline]
fn descriptors() -> Range<usize> {
    static RANGE: OnceLock<Range<usize>> = OnceLock::new();
    RANGE
        .get_or_init(|| {
            let anchor = std::ptr::from_ref(ANCHOR).expose_provenance();
            let kinds = &[libc::PT_LOAD, libc::PT_GNU_RELRO];
            find(anchor, kinds).map_or(anchor..anchor + size_of::<Descriptor>(), |segment| segment.range)
        })
        .clone()
}

/// Returns the code of this image.
#[inline]
pub(crate) fn code() -> &'static Segment {
    static CODE: OnceLock<Segment> = OnceLock::new();
    CODE.get_or_init(|| {
        let anchor = (find as *const ()).expose_provenance();
        find(anchor, &[libc::PT_LOAD]).unwrap_or(Segment { range: anchor..anchor })
    })
}

/// A descriptor that always exists; the others lie in the same segment.
static ANCHOR: &Descriptor =
    // NEED: a descriptor holds an unsafe function.
    // SOUND: `run` refuses every call.
    &const { unsafe { Descriptor::new(0, |_, _| Err(DecodeError::Trailing { left: 0 })) } };

/// A part of the image as the loader mapped it. It stays mapped until the process ends.
pub(crate) struct Segment {
    range: Range<usize>,
}

impl Segment {
    /// Returns the offset of `address` from the start, or `None` if it lies outside.
    pub(crate) fn offset(&self, address: usize) -> Option<u32> {
        self.range.contains(&address).then(|| u32::try_from(address - self.range.start).ok()).flatten()
    }

    /// Returns the address `offset` bytes from the start, or `None` if that is outside.
    pub(crate) fn address(&self, offset: u32) -> Option<usize> {
        self.range.start.checked_add(offset as usize).filter(|address| self.range.contains(address))
    }
}

struct Search<'a> {
    anchor: usize,
    /// The kinds of segments to search, each more specific than the one before.
    kinds: &'a [u32],
    /// The most specific segment that holds the anchor.
    found: Option<Segment>,
}

/// Returns the most specific segment of one of `kinds` that holds `anchor`.
fn find(anchor: usize, kinds: &[u32]) -> Option<Segment> {
    let mut search = Search { anchor, kinds, found: None };
    // NEED: the loader's list of images is a C interface.
    // SOUND: `visit` matches the C type and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// # Safety
/// Called by `dl_iterate_phdr` with a `Search` as `argument`.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, argument: *mut libc::c_void) -> i32 {
    // NEED: C interface.
    // SOUND: the loader passes a valid record, and `find` passes its search.
    let (info, search) = unsafe { (&*info, &mut *argument.cast::<Search<'_>>()) };
    // NEED: C interface.
    // SOUND: the record names its own headers and their number.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
    for wanted in search.kinds {
        for header in headers.iter().filter(|header| header.p_type == *wanted) {
            let start = info.dlpi_addr as usize + header.p_vaddr as usize;
            let range = start..start + header.p_memsz as usize;
            if range.contains(&search.anchor) {
                search.found = Some(Segment { range });
            }
        }
    }
    i32::from(search.found.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(_: &Local, _: Arrived<'_, '_>) -> Result<(), DecodeError> {
        Err(DecodeError::Trailing { left: 0 })
    }

    // NEED: a descriptor holds an unsafe function.
    // SOUND: `refuse` is safe to call.
    static HERE: &Descriptor = &const { unsafe { Descriptor::new(0x1234_5678_9abc, refuse) } };

    #[test]
    fn an_entry_finds_its_function_again() {
        assert!(HERE.entry().resolve().is_ok());
    }

    #[test]
    fn foreign_entries_are_refused() {
        let entry = HERE.entry();
        let beyond = Entry { offset: u32::MAX, ..entry };
        assert_eq!(beyond.resolve(), Err(EntryFault::Outside(u32::MAX)));
        let misaligned = Entry { offset: entry.offset + 1, ..entry };
        assert_eq!(misaligned.resolve(), Err(EntryFault::Outside(entry.offset + 1)));
        let shifted = Entry { offset: entry.offset + 8, ..entry };
        assert_eq!(shifted.resolve(), Err(EntryFault::Magic(entry.offset + 8)));
        let other = Entry { hash: entry.hash + 1, ..entry };
        assert_eq!(other.resolve(), Err(EntryFault::Hash(entry.offset)));
    }
}
