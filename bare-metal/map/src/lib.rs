//! Layout of the chip in the memory shared by all its cores, and the addresses at which a core sees it.
//!
//! The cores are virtual machines that map one file through an ivshmem device. The launcher on the host uses the
//! offsets in the file, an image uses the addresses. Addresses and register offsets of message buffers, shared memory
//! and configuration registers are those of the Intel SCC (External Architecture Specification, revision 1.1; the
//! names are from `SCC_API.h` of RCCE). All words are 32 bits, little endian.

#![no_std]
#![forbid(unsafe_code)]

/// Cores of the chip.
pub const CORES: usize = 48;
/// Tiles of the chip: two cores each.
pub const TILES: usize = CORES / 2;
/// Columns of the mesh of tiles.
pub const COLUMNS: usize = 6;
/// Bytes of the message buffer of a core.
pub const BUFFER_BYTES: usize = 8192;
/// Programs that can run at once, on disjoint sets of cores.
pub const PROGRAMS_MAX: usize = 8;

/// First word of the file.
pub const MAGIC: u32 = 0x4953_4c45;
/// Second word of the file: the version of this layout.
pub const VERSION: u32 = 2;
/// Bytes of the file.
pub const FILE_BYTES: usize = 128 << 20;
/// Bytes of the window: all of the file except the shared memory.
pub const WINDOW_BYTES: usize = 16 << 20;
/// Offset of the shared memory (off-chip memory on the SCC).
pub const SHARED: usize = 64 << 20;
/// Bytes of the shared memory.
pub const SHARED_BYTES: usize = 64 << 20;

const RECORDS: usize = 0x1000;
const REGISTERS: usize = 0x1_0000;
const PROGRAMS: usize = 0x4_0000;
const BUFFERS: usize = 0x20_0000;
const CONSOLES: usize = 0x40_0000;
const PROGRAM_BYTES: usize = 0x2_0000;
const CONSOLE_BYTES: usize = 0x2_0000;

/// Bytes of the console ring of a core; unread bytes beyond that are overwritten.
pub const CONSOLE_RING_BYTES: usize = 64 << 10;

/// Address of the window.
pub const WINDOW_ADDRESS: usize = 0x9000_0000;
/// Address of the shared memory, as on the SCC.
pub const SHARED_ADDRESS: usize = 0x8000_0000;
/// Address of the message buffers of a program in the order of its ranks.
pub const RANK_BUFFERS_ADDRESS: usize = 0xb000_0000;
/// Address of the registers of the core's own tile, as on the SCC.
pub const OWN_TILE_ADDRESS: usize = 0xf800_0000;

/// Offsets of configuration registers in the 4 KiB of a tile.
pub mod register {
    /// Interrupt pins of core 0 of the tile; that of core 1 follows 8 bytes later (GLCFG0, GLCFG1).
    pub const PINS: usize = 0x10;
    /// Rates in MHz: the tile's in the low half, the mesh's in the high half (in place of GCBCFG's dividers).
    pub const RATES: usize = 0x80;
    /// Position: x in bits 3 to 6, y in bits 7 to 10 (TILEID).
    pub const TILE_ID: usize = 0x100;
    /// Test-and-set lock of core 0 of the tile (LOCK0): 0 or the owner's number + 1.
    pub const LOCK0: usize = 0x200;
    /// Test-and-set lock of core 1 of the tile (LOCK1).
    pub const LOCK1: usize = 0x400;
}

/// Offsets of words in the record of a core, and states of a core.
pub mod record {
    /// One of the states below.
    pub const STATE: usize = 0;
    /// Program that the core runs.
    pub const PROGRAM: usize = 4;
    /// Rank in that program.
    pub const RANK: usize = 8;
    /// Exit code, once the state is `ENDED`.
    pub const EXIT_CODE: usize = 12;
    /// Vector of the exception, once the state is `FAULTED`; 256 for a panic.
    pub const VECTOR: usize = 16;
    /// Flag: nonzero if the core wants its doorbell rung for each message.
    pub const BELL: usize = 20;

    /// No machine has been started.
    pub const OFF: u32 = 0;
    /// The image runs.
    pub const RUNNING: u32 = 1;
    /// The image has ended normally.
    pub const ENDED: u32 = 2;
    /// An exception or a panic has stopped the core.
    pub const FAULTED: u32 = 3;
    /// The machine has ended without setting a state.
    pub const LOST: u32 = 4;
}

/// Offsets of words in the area of a program.
pub mod program {
    /// Cores of the program.
    pub const RANKS: usize = 0;
    /// Number of arguments, including the name of the image.
    pub const ARGUMENTS: usize = 4;
    /// Offset of the program's part of the shared memory, and its length.
    pub const SHARED: usize = 8;
    /// Bytes of the program's part of the shared memory.
    pub const SHARED_BYTES: usize = 12;
    /// Number of ranks that have reached the barrier.
    pub const ARRIVALS: usize = 0x40;
    /// Number of completed barriers.
    pub const ROUND: usize = 0x80;
    /// Core of each rank, one word each.
    pub const CORES: usize = 0x100;
    /// Arguments, each followed by a zero byte.
    pub const ARGUMENT_TEXT: usize = 0x400;
    /// Bytes for arguments.
    pub const ARGUMENT_TEXT_BYTES: usize = 0xc00;
    /// Memory shared by libraries of the program; zero at the start.
    pub const LIBRARY: usize = 0x1000;
    /// Bytes for libraries.
    pub const LIBRARY_BYTES: usize = 0x1_f000;
}

/// Offsets in the console of a core.
pub mod console {
    /// Total bytes written, modulo 2^32.
    pub const WRITTEN: usize = 0;
    /// The ring; byte number n is at n modulo the length of the ring.
    pub const RING: usize = 0x1000;
}

/// Offset of the record of `core`.
pub const fn record_of(core: usize) -> usize {
    RECORDS + core * 64
}

/// Offset of the registers of `tile`.
pub const fn registers_of(tile: usize) -> usize {
    REGISTERS + tile * 4096
}

/// Offset of the lock of `core`.
pub const fn lock_of(core: usize) -> usize {
    registers_of(core / 2) + if core.is_multiple_of(2) { register::LOCK0 } else { register::LOCK1 }
}

/// Offset of the word with the raised interrupt pins of `core`.
pub const fn pins_of(core: usize) -> usize {
    registers_of(core / 2) + register::PINS + core % 2 * 8
}

/// Offset of the area of `program`.
pub const fn program_of(program: usize) -> usize {
    PROGRAMS + program * PROGRAM_BYTES
}

/// Offset of the message buffer of `core`.
pub const fn buffer_of(core: usize) -> usize {
    BUFFERS + core * BUFFER_BYTES
}

/// Offset of the console of `core`.
pub const fn console_of(core: usize) -> usize {
    CONSOLES + core * CONSOLE_BYTES
}

/// Address of the message buffers of `tile`, as on the SCC: 16 KiB every 16 MiB.
pub const fn tile_buffer_address(tile: usize) -> usize {
    0xc000_0000 + (tile << 24)
}

/// Address of the registers of `tile`, as on the SCC.
pub const fn tile_register_address(tile: usize) -> usize {
    0xe000_0000 + (tile << 24)
}

/// Column and row of `tile` in the mesh.
pub const fn position_of(tile: usize) -> (usize, usize) {
    (tile % COLUMNS, tile / COLUMNS)
}

const _: () = assert!(WINDOW_BYTES <= SHARED && SHARED + SHARED_BYTES == FILE_BYTES);
const _: () = assert!(console::RING + CONSOLE_RING_BYTES <= CONSOLE_BYTES);
const _: () = assert!(program::LIBRARY + program::LIBRARY_BYTES <= PROGRAM_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_the_file_overlaps_another() {
        let mut parts = [(0, 0); 1 + TILES + PROGRAMS_MAX + 2 * CORES];
        let consoles = (0..CORES).map(|core| (console_of(core), CONSOLE_BYTES));
        let buffers = (0..CORES).map(|core| (buffer_of(core), BUFFER_BYTES));
        let programs = (0..PROGRAMS_MAX).map(|program| (program_of(program), PROGRAM_BYTES));
        let registers = (0..TILES).map(|tile| (registers_of(tile), 4096));
        let all = [(RECORDS, CORES * 64)].into_iter().chain(registers).chain(programs).chain(buffers);
        for (slot, part) in parts.iter_mut().zip(all.chain(consoles)) {
            *slot = part;
        }
        for pair in parts.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:x?}");
        }
        let (start, bytes) = parts[parts.len() - 1];
        assert!(start + bytes <= WINDOW_BYTES);
    }

    #[test]
    fn a_tile_has_two_locks_and_two_pin_words() {
        assert_eq!(lock_of(47), registers_of(23) + register::LOCK1);
        assert_eq!((pins_of(46), pins_of(47)), (registers_of(23) + 0x10, registers_of(23) + 0x18));
        assert_eq!(position_of(23), (5, 3));
        assert_eq!(tile_buffer_address(23) + 2 * BUFFER_BYTES, 0xd700_4000);
    }
}
