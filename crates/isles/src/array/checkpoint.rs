//! Saves an array to a file and loads it: one file for the whole array, independent of its distribution.
//!
//! Rank 0 reads and writes; it exchanges the parts with the other members one after the other, so it needs memory for
//! two parts. The file is a header of 64 bytes and then all elements row by row, in the byte order of this host:
//!
//! ```text
//! 0   "ISLESARR"            what it is
//! 8   version 2             also says the byte order
//! 16  bytes of an element
//! 24  number of axes
//! 32  three extents         those of axes that the array lacks are 1 and come first
//! 56  check word            of all elements
//! ```
//!
//! The check word is the sum of [`check_word`] over all elements, because parts arrive in the order of members and not
//! in that of the file. A change of one eight-byte word is always detected.
//!
//! Invariants: a file gets its name only when it is complete; an array is changed only if the whole file is valid.

use super::moves::{failed, for_lines};
use super::{DistArray, Element};
use crate::Result;
use crate::output::Destination;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::{fmt, io};

const MARK: &[u8; 8] = b"ISLESARR";
const VERSION: u64 = 2;
const HEADER_BYTES: u64 = 64;

/// The offset of the check word in the header; the bytes before it describe the array.
const CHECK_AT: usize = 56;

/// A range of the file, in elements.
type Line = (usize, usize);

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Writes all elements to a file at rank 0; collective. Every member returns the result of rank 0.
    ///
    /// # Errors
    /// The file cannot be written; the text has its name and the cause, and an earlier file is unchanged. Otherwise as
    /// [`DistArray`] says.
    pub async fn save(&self, path: &Path) -> Result<()> {
        self.team.together(self.save_parts(path)).await
    }

    async fn save_parts(&self, path: &Path) -> Result<()> {
        let is_writer = self.team.rank() == 0;
        let destination = Destination::at(&path.to_string_lossy());
        let drafted = is_writer.then(|| destination.draft());
        let (mut file, draft) = match drafted.transpose() {
            Ok(Some((file, draft))) => (Ok(Some(file)), Some(draft)),
            Ok(None) => (Ok(None), None),
            Err(cause) => (Err(cause), None),
        };
        let mut check = 0_u64;
        let own: Vec<T> = self.read().owned().copied().collect();
        for rank in 0..self.team.size() {
            if !is_writer {
                if rank == self.team.rank() && !own.is_empty() {
                    self.team.exchange_slices([(0, own.as_slice())], []).await?;
                }
                continue;
            }
            let part = if rank == 0 { own.clone() } else { self.part_of(rank).await? };
            check = check.wrapping_add(self.check_part(rank, &part));
            // After an error the parts of the other members are still received, and dropped.
            if let Ok(Some(opened)) = &file
                && let Err(cause) = self.write_part(opened, rank, &part)
            {
                file = Err(cause);
            }
        }
        if let Ok(Some(opened)) = &file
            && let Err(cause) = opened.write_all_at(&self.header(check), 0)
        {
            file = Err(cause);
        }
        let finished = file.and_then(|_| draft.map_or(Ok(()), |draft| draft.finish()));
        self.agree(finished.map_err(|cause| fault_of(path, cause))).await
    }

    /// Loads all elements from a file that [`DistArray::save`] wrote for an array of the same extents and type;
    /// collective. Halos are unchanged.
    ///
    /// # Errors
    /// The file cannot be read, belongs to another kind of array, is truncated, or fails its check; the text names the
    /// file, what was found and what is allowed, and the array is unchanged. Otherwise as [`DistArray`] says.
    pub async fn load(&self, path: &Path) -> Result<()> {
        self.team.together(self.load_parts(path)).await
    }

    async fn load_parts(&self, path: &Path) -> Result<()> {
        let is_reader = self.team.rank() == 0;
        let opened = match is_reader {
            true => self.open_checkpoint(path).map(Some),
            false => Ok(None),
        };
        let (file, found) = match opened {
            Ok(file) => (file, Ok(())),
            Err(fault) => (None, Err(fault_of(path, fault))),
        };
        self.agree(found).await?;
        let mut part: Vec<T> = bytemuck::zeroed_vec(self.read().owned().count());
        let (mut read, mut check) = (Ok(()), 0_u64);
        for rank in 0..self.team.size() {
            let Some((file, _)) = &file else {
                if rank == self.team.rank() && !part.is_empty() {
                    self.team.exchange_slices([], [(0, part.as_mut_slice())]).await?;
                }
                continue;
            };
            let mut of_rank: Vec<T> = bytemuck::zeroed_vec(self.layout.lengths(rank).iter().product());
            if read.is_ok() {
                read = self.read_part(file, rank, &mut of_rank);
            }
            check = check.wrapping_add(self.check_part(rank, &of_rank));
            match rank {
                0 => part = of_rank,
                _ if of_rank.is_empty() => {}
                _ => self.team.exchange_slices([(rank, of_rank.as_slice())], []).await?,
            }
        }
        let read = read.map_err(|cause| cause.to_string()).and_then(|()| match &file {
            Some((_, written)) if *written != check => Err(format!(
                "its elements have the checksum {check:016x}; allowed: {written:016x}, as in its header: \
                 the file was changed after `save`"
            )),
            _ => Ok(()),
        });
        self.agree(read.map_err(|fault| fault_of(path, fault))).await?;
        let mut elements = part.into_iter();
        self.lock().for_each(|_, element| *element = elements.next().expect("as many as the part has"));
        Ok(())
    }

    /// Broadcasts the result of rank 0 to every member.
    async fn agree(&self, found: std::result::Result<(), String>) -> Result<()> {
        let found = (self.team.rank() == 0).then_some(found);
        self.team.broadcast(0, found).await?.map_err(failed)
    }

    async fn part_of(&self, rank: usize) -> Result<Vec<T>> {
        let mut part: Vec<T> = bytemuck::zeroed_vec(self.layout.lengths(rank).iter().product());
        if !part.is_empty() {
            self.team.exchange_slices([], [(rank, part.as_mut_slice())]).await?;
        }
        Ok(part)
    }

    /// Returns the header of a file of this array.
    fn header(&self, check: u64) -> [u8; HEADER_BYTES as usize] {
        let [first, middle, last] = self.layout.extents().map(|extent| extent as u64);
        let numbers = [VERSION, size_of::<T>() as u64, N as u64, first, middle, last, check];
        let mut header = [0; HEADER_BYTES as usize];
        header[..8].copy_from_slice(MARK);
        for (number, bytes) in numbers.into_iter().zip(header[8..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&number.to_ne_bytes());
        }
        header
    }

    /// Opens a file and checks that its header matches this array; returns it with its check word.
    fn open_checkpoint(&self, path: &Path) -> std::result::Result<(File, u64), String> {
        let (file, len) = File::open(path)
            .and_then(|file| file.metadata().map(|found| (file, found.len())))
            .map_err(|cause| cause.to_string())?;
        let mut header = [0; HEADER_BYTES as usize];
        let is_whole = file.read_exact_at(&mut header, 0).is_ok();
        if !is_whole || header[..8] != *MARK {
            return Err("not a checkpoint of an array; allowed: a file written by `save`".to_owned());
        }
        let number = |at: usize| u64::from_ne_bytes(header[8 * at..8 * at + 8].try_into().expect("8 bytes"));
        let wanted = self.header(0);
        if number(1) != VERSION {
            return Err(format!(
                "version {}; allowed: {VERSION}, written on a host of the same byte order",
                number(1)
            ));
        }
        if header[..CHECK_AT] != wanted[..CHECK_AT] {
            let axes = (number(3) as usize).clamp(1, 3);
            let found: Vec<u64> = (7 - axes..7).map(number).collect();
            return Err(format!(
                "an array of {found:?} with {} bytes per element; allowed: {:?} with {}",
                number(2),
                self.extents(),
                size_of::<T>()
            ));
        }
        let elements: usize = self.layout.extents().iter().product();
        let whole = HEADER_BYTES + (elements * size_of::<T>()) as u64;
        match len == whole {
            true => Ok((file, number(CHECK_AT / 8))),
            false => Err(format!("{len} bytes; allowed: {whole}, as in its header")),
        }
    }

    fn write_part(&self, file: &File, rank: usize, part: &[T]) -> io::Result<()> {
        let mut rest = part;
        self.lines(rank).into_iter().try_for_each(|(start, len)| {
            let (line, others) = rest.split_at(len);
            rest = others;
            file.write_all_at(bytemuck::cast_slice(line), position::<T>(start))
        })
    }

    fn read_part(&self, file: &File, rank: usize, part: &mut [T]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut rest = part;
        self.lines(rank).into_iter().try_for_each(|(start, len)| {
            let (line, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            bytes.resize(len * size_of::<T>(), 0);
            file.read_exact_at(&mut bytes, position::<T>(start))?;
            for (element, bytes) in line.iter_mut().zip(bytes.chunks_exact(size_of::<T>().max(1))) {
                *element = bytemuck::pod_read_unaligned(bytes);
            }
            Ok(())
        })
    }

    /// Returns the contribution of a member's elements to the check word of the file.
    fn check_part(&self, rank: usize, part: &[T]) -> u64 {
        let mut rest = part;
        let lines = self.lines(rank).into_iter().map(|(start, len)| {
            let (line, others) = rest.split_at(len);
            rest = others;
            let each = line.iter().enumerate();
            let words =
                each.map(|(k, element)| check_word(position::<T>(start + k), bytemuck::bytes_of(element)));
            words.fold(0, u64::wrapping_add)
        });
        lines.fold(0, u64::wrapping_add)
    }

    /// Returns the lines of a member in the order of its part; lines that are adjacent in the file are joined.
    fn lines(&self, rank: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for_lines(&self.layout, rank, |start, len| match lines.last_mut() {
            Some((before, of)) if *before + *of == start => *of += len,
            _ => lines.push((start, len)),
        });
        lines
    }
}

/// Returns a hash of the bytes of an element and their position in the file. It differs for elements that differ in
/// exactly one eight-byte word, because each word is mixed by an invertible function, that of SplitMix64 (Steele, Lea,
/// Flood, OOPSLA 2014).
fn check_word(position: u64, element: &[u8]) -> u64 {
    let words = element.chunks(8).enumerate().map(|(number, bytes)| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let place = (position + 8 * number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut mixed = u64::from_ne_bytes(word).wrapping_add(place);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    });
    words.fold(0, u64::wrapping_add)
}

/// Returns the error text of a file, with its name.
fn fault_of(path: &Path, fault: impl fmt::Display) -> String {
    format!("{}: {fault}", path.display())
}

/// Returns the position of an element in the file, in bytes.
fn position<T>(element: usize) -> u64 {
    HEADER_BYTES + (element * size_of::<T>()) as u64
}
