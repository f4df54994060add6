//! Mappings: arrays that grow by chunks of 4 KiB; only the chunks that a copy lacks travel.
//!
//! On a machine with modelled memory, the elements are stored there by chunks, and each access is charged to the core.
//! The table of chunks is cached for every kind of memory, so a writer that only sets elements makes no cache stale if
//! elements are not cached. Invariant: if the stamp of a chunk is not [`PENDING`], its elements are those of that
//! generation.

use super::memory::{ByteLines, MemoryRange, ObjectMemory};
use super::value::{SharedValue, ValueLines};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_protocol::shared::MemoryKind;
use isles_runtime::Result;
use isles_runtime::wire::{DecodeError, Reader, Writer};
use std::ops::Range;

/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = 4096;

/// The stamp of a chunk that a guard is changing.
const PENDING: u64 = u64::MAX;

/// An array of plain elements for a [`Shared`](crate::Shared), which grows without moving.
///
/// New elements are zero. Only changed chunks of [`CHUNK_BYTES`] travel.
pub struct Mapping<V> {
    len: usize,
    chunks: Vec<Chunk<V>>,
    /// The chunks that a guard has changed, whose stamp is [`PENDING`].
    pending: Vec<u32>,
    /// Generation in which the length last changed.
    len_stamp: u64,
    /// Lines of the elements, where memory is modelled.
    lines: Option<ElementLines>,
}

struct Chunk<V> {
    elements: Box<[V]>,
    stamp: u64,
}

/// The elements in memory that no hardware keeps coherent.
struct ElementLines {
    memory: ObjectMemory,
    ranges: Vec<MemoryRange>,
    /// True if the table of ranges has changed since it was stored.
    is_table_changed: bool,
    /// For each chunk, whether a cached element has changed since it was last written back.
    is_changed: Vec<bool>,
}

impl<V: NoUninit + AnyBitPattern> Mapping<V> {
    /// Number of elements in a chunk.
    const CHUNK: usize = {
        assert!(size_of::<V>() > 0 && size_of::<V>() <= CHUNK_BYTES, "an element fits a chunk");
        CHUNK_BYTES / size_of::<V>()
    };

    /// Makes a mapping of `len` elements, all zero.
    pub fn new(len: usize) -> Mapping<V> {
        let mut mapping =
            Mapping { len: 0, chunks: Vec::new(), pending: Vec::new(), len_stamp: 0, lines: None };
        mapping.grow(len);
        mapping.stamp(0);
        mapping
    }

    /// Makes a mapping with a copy of `elements`.
    pub fn of(elements: &[V]) -> Mapping<V> {
        let mut mapping = Mapping::new(elements.len());
        mapping.write(0, elements);
        mapping.stamp(0);
        mapping
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of elements that fit before another chunk is needed.
    pub fn capacity(&self) -> usize {
        let chunks = self.lines.as_ref().map_or(self.chunks.len(), |lines| lines.ranges.len());
        chunks * Self::CHUNK
    }

    /// Appends zeros until there are `len` elements; does nothing if there are already.
    pub fn grow(&mut self, len: usize) {
        if len <= self.len {
            return;
        }
        self.len = len;
        self.len_stamp = PENDING;
        let chunks = len.div_ceil(Self::CHUNK);
        if let Some(lines) = &mut self.lines {
            lines.grow(chunks);
            return;
        }
        while self.chunks.len() < chunks {
            self.pending.push(self.chunks.len() as u32);
            let elements = vec![V::zeroed(); Self::CHUNK].into_boxed_slice();
            self.chunks.push(Chunk { elements, stamp: PENDING });
        }
    }

    /// Returns the element at `index`.
    ///
    /// # Panics
    /// If `index` is out of bounds.
    #[inline]
    #[track_caller]
    pub fn get(&self, index: usize) -> V {
        assert!(index < self.len, "element {index} of a mapping of {}", self.len);
        match &self.lines {
            None => self.chunks[index / Self::CHUNK].elements[index % Self::CHUNK],
            Some(lines) => {
                let mut element = [V::zeroed()];
                lines.read::<V>(index / Self::CHUNK, index % Self::CHUNK, &mut element);
                element[0]
            }
        }
    }

    /// Sets the element at `index`.
    ///
    /// # Panics
    /// If `index` is out of bounds.
    #[inline]
    #[track_caller]
    pub fn set(&mut self, index: usize, element: V) {
        self.write(index, &[element]);
    }

    /// Reads the elements from `at` on.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[track_caller]
    pub fn read(&self, at: usize, into: &mut [V]) {
        let mut done = 0;
        for (chunk, range) in self.pieces(at, into.len()) {
            let piece = &mut into[done..done + range.len()];
            done += range.len();
            match &self.lines {
                None => piece.copy_from_slice(&self.chunks[chunk].elements[range]),
                Some(lines) => lines.read(chunk, range.start, piece),
            }
        }
    }

    /// Writes the elements from `at` on.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[track_caller]
    pub fn write(&mut self, at: usize, from: &[V]) {
        let mut done = 0;
        for (index, range) in self.pieces(at, from.len()) {
            let piece = &from[done..done + range.len()];
            done += range.len();
            if let Some(lines) = &mut self.lines {
                lines.write(index, range.start, piece);
                continue;
            }
            let chunk = &mut self.chunks[index];
            if chunk.stamp != PENDING {
                chunk.stamp = PENDING;
                self.pending.push(index as u32);
            }
            chunk.elements[range].copy_from_slice(piece);
        }
    }

    /// Returns the chunks that hold the elements, with the range in each.
    #[track_caller]
    fn pieces(&self, at: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> + use<V> {
        let end = at.checked_add(len).filter(|end| *end <= self.len);
        assert!(end.is_some(), "{len} elements from {at} on in a mapping of {}", self.len);
        let end = at + len;
        (at / Self::CHUNK..end.div_ceil(Self::CHUNK)).map(move |chunk| {
            let first = chunk * Self::CHUNK;
            (chunk, at.max(first) - first..end.min(first + Self::CHUNK) - first)
        })
    }

    /// Returns the table as it lies in memory: the length, and the name of each range.
    fn table(&self) -> Vec<u8> {
        let names = self.lines.iter().flat_map(|lines| &lines.ranges).flat_map(MemoryRange::name);
        (self.len as u64).to_le_bytes().into_iter().chain(names).collect()
    }

    fn set_table(&mut self, table: &[u8]) -> Result<(), DecodeError> {
        let malformed = || DecodeError::Refused("the table of chunks is none, or is old".into());
        let (len, names) = table.split_first_chunk::<8>().ok_or_else(malformed)?;
        let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| malformed())?;
        let Some(lines) = &mut self.lines else { return Err(malformed()) };
        let names = names.chunks_exact(MemoryRange::NAME_BYTES);
        let range = |name| MemoryRange::named(name, CHUNK_BYTES as u64, lines.memory.kind);
        let ranges: Vec<MemoryRange> = names.map_while(range).collect();
        if ranges.len() < len.div_ceil(Self::CHUNK) {
            return Err(malformed());
        }
        lines.is_changed.resize(ranges.len(), false);
        lines.ranges = ranges;
        self.len = len;
        Ok(())
    }
}

impl ElementLines {
    fn grow(&mut self, chunks: usize) {
        while self.ranges.len() < chunks {
            // A chip that had memory for the object has it for a chunk.
            let Some(range) = self.memory.memory.take(self.memory.kind, CHUNK_BYTES as u64) else { return };
            // Chunks go round the controllers, because each serves only a few readers at a time.
            let controllers = self.memory.memory.controllers().max(1);
            let controller = (range.start / CHUNK_BYTES as u64 % u64::from(controllers)) as u32;
            self.ranges.push(MemoryRange { controller, ..range });
            self.is_changed.push(false);
        }
        self.is_table_changed = true;
    }

    #[inline]
    fn read<V: NoUninit + AnyBitPattern>(&self, chunk: usize, at: usize, into: &mut [V]) {
        let offset = (at * size_of::<V>()) as u64;
        self.memory.memory.read(&self.ranges[chunk], offset, bytemuck::cast_slice_mut(into));
    }

    fn write<V: NoUninit>(&mut self, chunk: usize, at: usize, from: &[V]) {
        let offset = (at * size_of::<V>()) as u64;
        self.is_changed[chunk] = true;
        self.memory.memory.write(&self.ranges[chunk], offset, bytemuck::cast_slice(from));
    }
}

impl<V: NoUninit + AnyBitPattern> SharedValue for Mapping<V> {
    const IS_READ_BY_PROGRAM: bool = false;

    fn changes(&self, since: Option<u64>) -> Result<Vec<u8>> {
        if self.lines.is_some() {
            return Ok(Vec::new());
        }
        let is_missing = |chunk: &&(usize, &Chunk<V>)| since.is_none_or(|since| chunk.1.stamp > since);
        let all = self.chunks.iter().enumerate().collect::<Vec<_>>();
        let missing: Vec<_> = all.iter().filter(is_missing).collect();
        let mut bytes = vec![0; 16 + missing.len() * (16 + CHUNK_BYTES)];
        let mut writer = Writer::new(&mut bytes);
        writer.put_u64(self.len as u64);
        writer.put_u64(self.len_stamp);
        for (index, chunk) in missing {
            writer.put_u64(*index as u64);
            writer.put_u64(chunk.stamp);
            writer.put_bytes(bytemuck::cast_slice(&chunk.elements));
        }
        let written = writer.written();
        bytes.truncate(written);
        Ok(bytes)
    }

    fn from_changes(bytes: &[u8]) -> Result<Mapping<V>, DecodeError> {
        let mut mapping = Mapping::new(0);
        mapping.apply(bytes)?;
        Ok(mapping)
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.lines.is_some() {
            return Ok(());
        }
        let mut reader = Reader::new(bytes);
        let len = reader.take_u64()?;
        let out_of_range = || DecodeError::LengthOutOfRange { len };
        let (len, stamp) = (usize::try_from(len).map_err(|_| out_of_range())?, reader.take_u64()?);
        // The message brings each new chunk.
        let chunks = len.div_ceil(Self::CHUNK);
        let chunk_bytes = Self::CHUNK * size_of::<V>();
        if len < self.len || chunks > self.chunks.len() + reader.left() / (16 + chunk_bytes) {
            return Err(out_of_range());
        }
        self.grow(len);
        while reader.left() > 0 {
            let index = reader.take_u64()?;
            let stamp = reader.take_u64()?;
            let source = reader.take_bytes(chunk_bytes)?;
            let chunk = usize::try_from(index).ok().and_then(|index| self.chunks.get_mut(index));
            let chunk = chunk.ok_or(DecodeError::LengthOutOfRange { len: index })?;
            bytemuck::cast_slice_mut(&mut chunk.elements).copy_from_slice(source);
            chunk.stamp = stamp;
        }
        self.pending.clear();
        self.len_stamp = stamp;
        Ok(())
    }

    fn stamp(&mut self, generation: u64) -> bool {
        let is_changed = !self.pending.is_empty() || self.len_stamp == PENDING;
        for index in self.pending.drain(..) {
            self.chunks[index as usize].stamp = generation;
        }
        if self.len_stamp == PENDING {
            self.len_stamp = generation;
        }
        is_changed
    }

    fn grow_to(&mut self, len: usize) {
        self.grow(len);
    }

    fn place(&mut self, memory: &ObjectMemory) -> Option<ValueLines> {
        let chunks = std::mem::take(&mut self.chunks);
        let (ranges, is_changed) = (Vec::new(), Vec::new());
        let mut lines = ElementLines { memory: memory.clone(), ranges, is_table_changed: true, is_changed };
        lines.grow(chunks.len());
        for (index, chunk) in chunks.iter().enumerate() {
            memory.memory.write(lines.ranges.get(index)?, 0, bytemuck::cast_slice(&chunk.elements));
        }
        memory.write_back(&lines.ranges);
        lines.is_table_changed = false;
        self.lines = Some(lines);
        let mut table = ByteLines::new(memory, MemoryKind::Cached)?;
        table.store(memory, &self.table());
        table.write_back(memory);
        Some(ValueLines(table))
    }

    fn find(&mut self, memory: &ObjectMemory, start: u64, controller: u32) -> ValueLines {
        self.chunks = Vec::new();
        let (ranges, is_changed) = (Vec::new(), Vec::new());
        self.lines =
            Some(ElementLines { memory: memory.clone(), ranges, is_table_changed: false, is_changed });
        ValueLines(ByteLines::at(MemoryKind::Cached, start, controller))
    }

    fn refresh(
        &mut self,
        memory: &ObjectMemory,
        lines: &mut ValueLines,
        is_old: bool,
    ) -> Result<(), DecodeError> {
        if is_old {
            lines.0.forget(memory);
            let table = lines.0.load(memory).ok_or(DecodeError::Truncated { needed: 1, left: 0 })?;
            self.set_table(&table)?;
        }
        let Some(elements) = &self.lines else { return Ok(()) };
        match memory.kind {
            MemoryKind::Cached if is_old => memory.forget(&elements.ranges),
            // Messages do so as well where they lie in such memory; it takes one cycle.
            MemoryKind::Through if memory.flushes => memory.memory.invalidate(),
            MemoryKind::Cached | MemoryKind::Through | MemoryKind::Uncached => {}
        }
        Ok(())
    }

    /// Otherwise only a writer that grows the mapping makes the table of chunks stale.
    fn is_cached(&self, memory: &ObjectMemory) -> bool {
        memory.kind == MemoryKind::Cached
    }

    fn store(&mut self, memory: &ObjectMemory, lines: &mut ValueLines) -> Result<bool> {
        let table = self.table();
        let Some(elements) = &mut self.lines else { return Ok(false) };
        let is_table_changed = std::mem::take(&mut elements.is_table_changed);
        if is_table_changed {
            lines.0.store(memory, &table);
            lines.0.write_back(memory);
        }
        let is_cached_changed =
            memory.kind == MemoryKind::Cached && elements.is_changed.iter().any(|changed| *changed);
        Ok(is_table_changed || is_cached_changed)
    }

    fn write_back(&mut self, memory: &ObjectMemory, _lines: &ValueLines) {
        let Some(elements) = &mut self.lines else { return };
        let all = elements.is_changed.iter_mut().zip(&elements.ranges);
        let changed = all.filter_map(|(is_changed, range)| std::mem::take(is_changed).then_some(*range));
        let changed: Vec<MemoryRange> = changed.collect();
        memory.write_back(&changed);
    }
}
