//! The memory that all cores share and nothing keeps coherent: who reads an old copy gets the old bytes.
//!
//! A core has its two caches and one line of a write buffer, and sees the memory through them by the kind of the
//! memory: see [`Kind`]. So a read can miss a write, as on the chip, when the reader still has a copy, when the
//! writer's core has not let go of it, or when a third core has written an older copy back over it. Such a read returns
//! what it found, and is noted with the write that it missed. What an access costs is the caller's business: each says
//! what it moved.
//!
//! Accesses of one core come in the order of its time. Those of different cores need not, because a driver may let a
//! core run ahead: a write is seen from its time on, whoever asks first. Invariant: no read returns a byte that is
//! written after it.

mod history;
#[cfg(test)]
mod tests;

use crate::cache::Cache;
use crate::chip::Caches;
use crate::quantity::Picoseconds;
use crate::topology::CoreId;
use history::{History, Image, WriteId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a line.
pub const LINE_BYTES: usize = 32;

/// How many stale reads are kept; of the others only their number.
pub const STALE_KEPT: usize = 100;

/// How cores see a stretch of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Past all caches: every access goes to memory, word by word. Never stale.
    Uncached,
    /// Reads take lines into both caches. A write to a line that the core holds stays there until the line goes or is
    /// flushed; one to another line goes to memory, and takes nothing in.
    Cached,
    /// Reads take lines into the first cache, with a tag by which [`SharedMemory::invalidate`] forgets all of them.
    /// Writes change such a copy, and gather in the write buffer: it lets its line go after the access with which all
    /// of it is written, or when another line is.
    Through,
}

/// A write, as a report names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Who wrote.
    pub core: CoreId,
    /// When.
    pub at: Picoseconds,
}

/// Why a read missed a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The memory has it; the reader's cache has an older copy.
    OldCopy,
    /// It is still in the cache, or in the write buffer, of the core that wrote.
    NotLetGo,
    /// The memory had it, or would have: a core with an older copy of the line wrote that back over it.
    Overwritten,
}

impl Cause {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::OldCopy => "old-copy",
            Cause::NotLetGo => "not-let-go",
            Cause::Overwritten => "overwritten",
        }
    }

    /// What the program lacks, in words.
    pub const fn advice(self) -> &'static str {
        match self {
            Cause::OldCopy => "the reader has an old copy: invalidate or flush before the read",
            Cause::NotLetGo => "the writer has not let go of it: drain or flush after the write",
            Cause::Overwritten => {
                "another core wrote an older copy of the line back: keep lines of different writers apart"
            }
        }
    }
}

/// A read that missed a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleRead {
    /// Who read.
    pub core: CoreId,
    /// When.
    pub at: Picoseconds,
    /// The first byte that was old.
    pub address: u64,
    /// What the read found there, and what it should have.
    pub found: u8,
    /// See `found`.
    pub newest: u8,
    /// The newest write to that byte.
    pub missed: Write,
    /// Why.
    pub cause: Cause,
}

impl StaleRead {
    /// The read in a line of words, `who` being what runs on a core: `place`, for example.
    pub fn told(&self, who: &str) -> String {
        let StaleRead { core, at, address, found, newest, missed, cause } = self;
        let microseconds = |time: &Picoseconds| time.0 as f64 / 1e6;
        format!(
            "{who} {core} read {found} at address {address:#x} at {:.3} µs and missed the {newest} that {who} {} wrote \
             at {:.3} µs; {}",
            microseconds(at),
            missed.core,
            microseconds(&missed.at),
            cause.advice()
        )
    }
}

/// What an access moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Lines that the first cache had.
    pub first: u32,
    /// Lines that the second cache had.
    pub second: u32,
    /// Lines fetched from memory.
    pub fetched: u32,
    /// Lines that caches wrote back.
    pub written_back: u32,
    /// Lines that the write buffer let go.
    pub let_go: u32,
    /// Words that were read from memory.
    pub words_read: u32,
    /// Words that were written to memory.
    pub words_written: u32,
}

/// A line as one core has it.
#[derive(Clone, Debug)]
struct Copy {
    image: Image,
    dirty: bool,
}

/// What one core has of the memory.
#[derive(Clone, Debug)]
struct Side {
    first: Cache,
    second: Cache,
    /// The lines that either cache has.
    copies: BTreeMap<u64, Copy>,
    /// Lines of the first cache that bear the tag.
    tagged: Vec<u64>,
    /// The line in the write buffer, and which of its bytes are written.
    gathering: Option<(u64, u32, Image)>,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// What is in memory.
    memory: History,
    /// What would be there if every write went there at once.
    newest: History,
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    sides: Vec<Side>,
    lines: BTreeMap<u64, Line>,
    /// All writes, by their numbers.
    writes: Vec<Write>,
    present: Picoseconds,
    stale: Vec<StaleRead>,
    stale_number: u64,
}

impl SharedMemory {
    /// Memory of zeros, under so many cores with empty caches.
    pub fn new(caches: &Caches, cores: u32) -> SharedMemory {
        let lines =
            |size: Option<crate::quantity::Bytes>| size.map_or(0, |size| size.0 as usize / LINE_BYTES);
        let side = Side {
            first: Cache::new(lines(caches.first)),
            second: Cache::new(lines(caches.second)),
            copies: BTreeMap::new(),
            tagged: Vec::new(),
            gathering: None,
        };
        let nobody = Write { core: CoreId(0), at: Picoseconds::ZERO };
        SharedMemory {
            sides: vec![side; cores as usize],
            lines: BTreeMap::new(),
            writes: vec![nobody],
            present: Picoseconds::ZERO,
            stale: Vec::new(),
            stale_number: 0,
        }
    }

    /// Says that no access comes before `present` any more.
    pub fn set_present(&mut self, present: Picoseconds) {
        self.present = present;
    }

    /// Reads from `address` on, as `core` sees it at `now`.
    pub fn read(
        &mut self,
        (core, now): (CoreId, Picoseconds),
        kind: Kind,
        address: u64,
        into: &mut [u8],
    ) -> Moved {
        let mut moved = Moved::default();
        for (line, bytes, part) in parts(address, into.len()) {
            let image = match kind {
                Kind::Uncached => {
                    moved.words_read += words(&bytes);
                    self.memory_at(line, now)
                }
                Kind::Cached => self.read_cached((core, now), line, &mut moved),
                Kind::Through => self.read_through((core, now), line, &mut moved),
            };
            into[part].copy_from_slice(&image.bytes[bytes.clone()]);
            self.compare((core, now), line, bytes, &image);
        }
        moved
    }

    /// Writes from `address` on, as `core` does at `now`.
    pub fn write(
        &mut self,
        (core, now): (CoreId, Picoseconds),
        kind: Kind,
        address: u64,
        from: &[u8],
    ) -> Moved {
        let mut moved = Moved::default();
        for (line, bytes, part) in parts(address, from.len()) {
            self.writes.push(Write { core, at: now });
            let id = (self.writes.len() - 1) as WriteId;
            let mut image = Image::EMPTY;
            image.bytes[bytes.clone()].copy_from_slice(&from[part]);
            image.writes = [id; LINE_BYTES];
            let mask = mask(&bytes);
            self.lines.entry(line).or_default().newest.put(self.present, now, mask, &image);
            match kind {
                Kind::Uncached => {
                    moved.words_written += words(&bytes);
                    self.store(line, now, mask, &image);
                }
                Kind::Cached if self.change_copy(core, line, mask, &image, &mut moved) => {}
                Kind::Cached => {
                    moved.words_written += words(&bytes);
                    self.store(line, now, mask, &image);
                }
                Kind::Through => {
                    // What it counts of caches is free here: the line goes to memory as well.
                    self.change_copy(core, line, mask, &image, &mut Moved::default());
                    self.gather((core, now), line, (mask, image), &mut moved);
                }
            }
        }
        moved
    }

    /// `core` forgets what its first cache has of [`Kind::Through`] memory; CL1INVMB on the SCC.
    pub fn invalidate(&mut self, core: CoreId) {
        let side = &mut self.sides[core.0 as usize];
        for line in std::mem::take(&mut side.tagged) {
            side.first.forget(line);
            side.copies.remove(&line);
        }
    }

    /// The write buffer of `core` lets its line go.
    pub fn drain(&mut self, (core, now): (CoreId, Picoseconds)) -> Moved {
        let mut moved = Moved::default();
        if let Some((line, mask, image)) = self.sides[core.0 as usize].gathering.take() {
            self.store(line, now, mask, &image);
            moved.let_go = 1;
        }
        moved
    }

    /// `core` writes back what it has changed of these bytes' lines in its caches, and forgets them.
    pub fn flush(&mut self, (core, now): (CoreId, Picoseconds), address: Range<u64>) -> Moved {
        let mut moved = Moved::default();
        if address.is_empty() {
            return moved;
        }
        let lines = address.start / LINE_BYTES as u64..=(address.end - 1) / LINE_BYTES as u64;
        let side = &mut self.sides[core.0 as usize];
        let held: Vec<u64> = side.copies.range(lines).map(|(line, _)| *line).collect();
        for line in held {
            let side = &mut self.sides[core.0 as usize];
            side.first.forget(line);
            side.second.forget(line);
            self.leave((core, now), line, &mut moved);
        }
        moved
    }

    /// The first stale reads, in the order in which they were made.
    pub fn stale_reads(&self) -> &[StaleRead] {
        &self.stale
    }

    /// How many stale reads there were.
    pub fn stale_number(&self) -> u64 {
        self.stale_number
    }

    fn memory_at(&self, line: u64, now: Picoseconds) -> Image {
        self.lines.get(&line).map_or(Image::EMPTY, |line| line.memory.at(now))
    }

    fn store(&mut self, line: u64, now: Picoseconds, mask: u32, image: &Image) {
        self.lines.entry(line).or_default().memory.put(self.present, now, mask, image);
    }

    /// Writes into the copy that a core has, if it has one.
    fn change_copy(&mut self, core: CoreId, line: u64, mask: u32, image: &Image, moved: &mut Moved) -> bool {
        let side = &mut self.sides[core.0 as usize];
        let Some(copy) = side.copies.get_mut(&line) else { return false };
        copy.image.take(mask, image);
        copy.dirty = true;
        if side.first.has(line) {
            moved.first += 1;
        } else if side.second.has(line) {
            moved.second += 1;
        }
        true
    }

    fn gather(
        &mut self,
        at: (CoreId, Picoseconds),
        line: u64,
        (mask, image): (u32, Image),
        moved: &mut Moved,
    ) {
        let is_other = |gathering: &(u64, u32, Image)| gathering.0 != line;
        if self.sides[at.0.0 as usize].gathering.as_ref().is_some_and(is_other) {
            moved.let_go += self.drain(at).let_go;
        }
        let side = &mut self.sides[at.0.0 as usize];
        let gathering = side.gathering.get_or_insert((line, 0, Image::EMPTY));
        gathering.1 |= mask;
        gathering.2.take(mask, &image);
        if gathering.1 == u32::MAX {
            moved.let_go += self.drain(at).let_go;
        }
    }

    fn read_cached(&mut self, at: (CoreId, Picoseconds), line: u64, moved: &mut Moved) -> Image {
        let memory = self.memory_at(line, at.1);
        let side = &mut self.sides[at.0.0 as usize];
        let mut gone = Vec::new();
        if side.first.has(line) {
            moved.first += 1;
        } else {
            if side.second.has(line) {
                moved.second += 1;
            } else {
                moved.fetched += 1;
                gone.extend(side.second.take_in(line));
                side.copies.insert(line, Copy { image: memory, dirty: false });
            }
            gone.extend(side.first.take_in(line));
        }
        let image = side.copies[&line].image;
        gone.into_iter().for_each(|way| self.leave_if_gone(at, way.line, moved));
        image
    }

    fn read_through(&mut self, at: (CoreId, Picoseconds), line: u64, moved: &mut Moved) -> Image {
        let memory = self.memory_at(line, at.1);
        let side = &mut self.sides[at.0.0 as usize];
        if side.first.has(line) {
            moved.first += 1;
            return side.copies[&line].image;
        }
        moved.fetched += 1;
        let gone = side.first.take_in(line);
        side.copies.insert(line, Copy { image: memory, dirty: false });
        side.tagged.push(line);
        if let Some(gone) = gone {
            self.leave_if_gone(at, gone.line, moved);
        }
        memory
    }

    /// A line has had to go from one cache; if the other does not have it either, its copy ends.
    fn leave_if_gone(&mut self, at: (CoreId, Picoseconds), line: u64, moved: &mut Moved) {
        let side = &self.sides[at.0.0 as usize];
        if !side.first.holds(line) && !side.second.holds(line) {
            self.leave(at, line, moved);
        }
    }

    /// Ends a copy. A changed line goes to memory whole, with the bytes that the core did not change.
    fn leave(&mut self, (core, now): (CoreId, Picoseconds), line: u64, moved: &mut Moved) {
        let side = &mut self.sides[core.0 as usize];
        let is_tagged = side.tagged.iter().position(|tagged| *tagged == line);
        is_tagged.map(|at| side.tagged.swap_remove(at));
        let copy = side.copies.remove(&line);
        if let Some(copy) = copy.filter(|copy| copy.dirty && is_tagged.is_none()) {
            self.store(line, now, u32::MAX, &copy.image);
            moved.written_back += 1;
        }
    }

    /// Notes a read that missed a write, at its first byte that did.
    fn compare(&mut self, (core, now): (CoreId, Picoseconds), line: u64, bytes: Range<usize>, image: &Image) {
        let Some(state) = self.lines.get(&line) else { return };
        let newest = state.newest.at(now);
        let Some(at) = bytes.into_iter().find(|at| image.writes[*at] != newest.writes[*at]) else { return };
        self.stale_number += 1;
        if self.stale.len() < STALE_KEPT {
            let id = newest.writes[at];
            self.stale.push(StaleRead {
                core,
                at: now,
                address: line * LINE_BYTES as u64 + at as u64,
                found: image.bytes[at],
                newest: newest.bytes[at],
                missed: self.writes[id as usize],
                cause: self.cause(now, line, (at, id)),
            });
        }
    }

    /// Where a write is that was missed.
    fn cause(&self, now: Picoseconds, line: u64, (at, id): (usize, WriteId)) -> Cause {
        if self.memory_at(line, now).writes[at] == id {
            return Cause::OldCopy;
        }
        let side = &self.sides[self.writes[id as usize].core.0 as usize];
        let in_copy = side.copies.get(&line).is_some_and(|copy| copy.image.writes[at] == id);
        let in_buffer =
            side.gathering.as_ref().is_some_and(|(other, _, image)| *other == line && image.writes[at] == id);
        if in_copy || in_buffer { Cause::NotLetGo } else { Cause::Overwritten }
    }
}

/// The lines of a stretch of bytes: which, which bytes of it, and which of the stretch those are.
fn parts(address: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = address + done as u64;
        let first = (at % LINE_BYTES as u64) as usize;
        let count = (LINE_BYTES - first).min(len - done);
        let part = (at / LINE_BYTES as u64, first..first + count, done..done + count);
        done += count;
        Some(part)
    })
}

/// Words of four bytes that these bytes lie in.
fn words(bytes: &Range<usize>) -> u32 {
    (bytes.end.div_ceil(4) - bytes.start / 4) as u32
}

fn mask(bytes: &Range<usize>) -> u32 {
    let below = |end: usize| if end == LINE_BYTES { u32::MAX } else { (1_u32 << end) - 1 };
    below(bytes.end) & !below(bytes.start)
}
