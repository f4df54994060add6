//! The memory of the chip as the launcher sees it: an anonymous file, read and written by offset.

use crate::arguments::Run;
use bare_map::{self as map, program, record, register};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

/// The file that all machines map. It has no name, so nothing is left behind.
pub struct Chip {
    file: File,
}

impl Chip {
    /// Creates the memory of an idle chip with the descriptions of the programs of `run`.
    ///
    /// # Errors
    /// The system cannot provide the memory.
    pub fn new(run: &Run) -> io::Result<Chip> {
        let file = File::from(rustix::fs::memfd_create("isles-bare", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.set_len(map::FILE_BYTES as u64)?;
        let chip = Chip { file };
        for tile in 0..map::TILES {
            let (x, y) = map::position_of(tile);
            let registers = map::registers_of(tile);
            chip.store(registers + register::RATES, run.tile_mhz | run.mesh_mhz << 16)?;
            chip.store(registers + register::TILE_ID, (x << 3 | y << 7) as u32)?;
        }
        let shared = (map::SHARED_BYTES / run.programs.len()) & !0xffff;
        for (number, of) in run.programs.iter().enumerate() {
            let area = map::program_of(number);
            chip.store(area + program::RANKS, of.cores.len() as u32)?;
            chip.store(area + program::ARGUMENTS, 1 + of.arguments.len() as u32)?;
            chip.store(area + program::SHARED, (number * shared) as u32)?;
            chip.store(area + program::SHARED_BYTES, shared as u32)?;
            let name = of.image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let words = [name.chars().take(50).collect()].into_iter().chain(of.arguments.iter().cloned());
            let text: Vec<u8> = words.flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            chip.file.write_all_at(&text, (area + program::ARGUMENT_TEXT) as u64)?;
            for (rank, core) in of.cores.iter().enumerate() {
                chip.store(area + program::CORES + 4 * rank, *core as u32)?;
                chip.store(map::record_of(*core) + record::PROGRAM, number as u32)?;
                chip.store(map::record_of(*core) + record::RANK, rank as u32)?;
            }
        }
        chip.store(4, map::VERSION)?;
        chip.store(0, map::MAGIC)?;
        Ok(chip)
    }

    /// Returns the descriptor of the memory.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reads the word at `offset`, repeating until two reads agree, because reading a file is not atomic.
    ///
    /// # Errors
    /// Those of the system.
    pub fn load(&self, offset: usize) -> io::Result<u32> {
        let read = || {
            let mut bytes = [0; 4];
            self.file.read_exact_at(&mut bytes, offset as u64).map(|()| u32::from_le_bytes(bytes))
        };
        let mut value = read()?;
        loop {
            let again = read()?;
            if value == again {
                return Ok(value);
            }
            value = again;
        }
    }

    /// Writes the word at `offset`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn store(&self, offset: usize, value: u32) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), offset as u64)
    }

    /// Reads bytes at `offset`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset as u64)
    }

    /// Reads a word of the record of `core`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn record(&self, core: usize, offset: usize) -> io::Result<u32> {
        self.load(map::record_of(core) + offset)
    }
}
