//! An array in a file, and back: one file for the whole array, whatever way it lies.
//!
//! The member of rank 0 reads and writes; the others send it their parts one after the other, so it needs room for two
//! parts. The file is a head of 64 bytes and then all elements row by row, in the byte order of this host:
//!
//! ```text
//! 0   "ISLESARR"            what it is
//! 8   version 1             also says the byte order
//! 16  bytes of an element
//! 24  number of axes
//! 32  three extents         those of axes that the array lacks are 1 and come first
//! 56  zero
//! ```
//!
//! Invariant: a file has its name only when all of it is there, and an array is changed only if the whole file suits.

use super::moves::{failed, for_lines};
use super::{DistArray, Element};
use crate::Result;
use crate::output::Destination;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MARK: &[u8; 8] = b"ISLESARR";
const VERSION: u64 = 1;
const HEAD_BYTES: u64 = 64;

/// A range of the file, in elements.
type Line = (usize, usize);

impl<T: Element, const N: usize> DistArray<T, N> {
    /// Writes all elements into a file at the member of rank 0; called by each member. Every member ends as that one.
    ///
    /// # Errors
    /// The file cannot be written, with its name and why; then an earlier one is what it was. As [`DistArray`] says.
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
        if let Ok(Some(opened)) = &file
            && let Err(cause) = opened.write_all_at(&self.head(), 0)
        {
            file = Err(cause);
        }
        let own: Vec<T> = self.read().owned().copied().collect();
        for rank in 0..self.team.size() {
            if !is_writer {
                if rank == self.team.rank() && !own.is_empty() {
                    self.team.exchange_slices([(0, own.as_slice())], []).await?;
                }
                continue;
            }
            let part = if rank == 0 { own.clone() } else { self.part_of(rank).await? };
            // After a fault the others' parts are received all the same, and dropped.
            if let Ok(Some(opened)) = &file
                && let Err(cause) = self.write_part(opened, rank, &part)
            {
                file = Err(cause);
            }
        }
        let finished = file.and_then(|_| draft.map_or(Ok(()), |draft| draft.finish()));
        self.agree(finished.map_err(|cause| format!("{}: {cause}", path.display()))).await
    }

    /// Sets all elements to those of a file that [`DistArray::save`] wrote of an array of the same extents and type;
    /// called by each member. Halos stay as they are.
    ///
    /// # Errors
    /// The file cannot be read, is of another array, or is cut short; the text names it, what was found and what is
    /// allowed, and the array is what it was. As [`DistArray`] says.
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
            Err(fault) => (None, Err(format!("{}: {fault}", path.display()))),
        };
        self.agree(found).await?;
        let mut part: Vec<T> = bytemuck::zeroed_vec(self.read().owned().count());
        let mut read = Ok(());
        for rank in 0..self.team.size() {
            let Some(file) = &file else {
                if rank == self.team.rank() && !part.is_empty() {
                    self.team.exchange_slices([], [(0, part.as_mut_slice())]).await?;
                }
                continue;
            };
            let mut of_rank: Vec<T> = bytemuck::zeroed_vec(self.layout.lengths(rank).iter().product());
            if read.is_ok() {
                read = self.read_part(file, rank, &mut of_rank);
            }
            match rank {
                0 => part = of_rank,
                _ if of_rank.is_empty() => {}
                _ => self.team.exchange_slices([(rank, of_rank.as_slice())], []).await?,
            }
        }
        self.agree(read.map_err(|cause| format!("{}: {cause}", path.display()))).await?;
        let mut elements = part.into_iter();
        self.lock().for_each(|_, element| *element = elements.next().expect("as many as the part has"));
        Ok(())
    }

    /// What the member of rank 0 found, at every member.
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

    fn head(&self) -> [u8; HEAD_BYTES as usize] {
        let [first, middle, last] = self.layout.extents().map(|extent| extent as u64);
        let numbers = [VERSION, size_of::<T>() as u64, N as u64, first, middle, last, 0];
        let mut head = [0; HEAD_BYTES as usize];
        head[..8].copy_from_slice(MARK);
        for (number, bytes) in numbers.into_iter().zip(head[8..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&number.to_ne_bytes());
        }
        head
    }

    /// Opens a file and checks that it is one of this array.
    fn open_checkpoint(&self, path: &Path) -> std::result::Result<File, String> {
        let (file, len) = File::open(path)
            .and_then(|file| file.metadata().map(|found| (file, found.len())))
            .map_err(|cause| cause.to_string())?;
        let mut head = [0; HEAD_BYTES as usize];
        let is_whole = file.read_exact_at(&mut head, 0).is_ok();
        if !is_whole || head[..8] != *MARK {
            return Err("this is no checkpoint of an array; allowed: what `save` wrote".to_owned());
        }
        let number = |at: usize| u64::from_ne_bytes(head[8 * at..8 * at + 8].try_into().expect("8 bytes"));
        let wanted = self.head();
        if number(1) != VERSION {
            return Err(format!(
                "version {}; allowed: {VERSION}, written on a host of this byte order",
                number(1)
            ));
        }
        if head != wanted {
            let axes = (number(3) as usize).clamp(1, 3);
            let found: Vec<u64> = (7 - axes..7).map(number).collect();
            return Err(format!(
                "an array of {found:?} with {} bytes an element; allowed: {:?} with {}",
                number(2),
                self.extents(),
                size_of::<T>()
            ));
        }
        let elements: usize = self.layout.extents().iter().product();
        let whole = HEAD_BYTES + (elements * size_of::<T>()) as u64;
        match len == whole {
            true => Ok(file),
            false => Err(format!("{len} bytes; allowed: {whole}, as its head says")),
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
            for (element, bytes) in line.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
                *element = bytemuck::pod_read_unaligned(bytes);
            }
            Ok(())
        })
    }

    /// The lines of a member in the order of its part; those that follow each other in the file are one.
    fn lines(&self, rank: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for_lines(&self.layout, rank, |start, len| match lines.last_mut() {
            Some((before, of)) if *before + *of == start => *of += len,
            _ => lines.push((start, len)),
        });
        lines
    }
}

/// Where an element lies in the file.
fn position<T>(element: usize) -> u64 {
    HEAD_BYTES + (element * size_of::<T>()) as u64
}
