//! Ranges of memory: found by size, joined to their neighbours.
//!
//! The free table of an allocator. It handles numbers only. Invariant: ranges do not touch, so each is as long as
//! possible, and both tables have the same ranges.

use isles_protocol::ordered::{OrderedMap, OrderedSet};

/// Ranges of offsets that do not touch.
#[derive(Debug, Default)]
pub struct Ranges {
    /// Length by offset.
    by_offset: OrderedMap<u64, u64>,
    /// Length, then offset.
    by_size: OrderedSet<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    /// Returns the total length of all ranges, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a range, which must not overlap the existing ones.
    pub fn add(&mut self, mut offset: u64, mut bytes: u64) {
        let before = self.by_offset.last_before(offset).map(|(before, len)| (before, *len));
        if let Some((before, len)) = before.filter(|(before, len)| before + len == offset) {
            self.remove(before, len);
            (offset, bytes) = (before, bytes + len);
        }
        if let Some(&len) = self.by_offset.get(offset + bytes) {
            self.remove(offset + bytes, len);
            bytes += len;
        }
        self.insert(offset, bytes);
    }

    /// Takes `bytes` bytes from the low end of the shortest range that has them. Returns their offset.
    ///
    /// Of equal ranges the lowest is chosen, so that the same memory is reused and only a small part of the arena is
    /// touched.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let (len, offset) = self.by_size.first_from((bytes, 0))?;
        self.remove(offset, len);
        self.insert(offset + bytes, len - bytes);
        Some(offset)
    }

    /// Removes the parts of a range that are present. Returns them in order.
    pub fn cut(&mut self, offset: u64, bytes: u64) -> Vec<(u64, u64)> {
        let end = offset + bytes;
        let first = self.by_offset.last_before(offset).map_or(offset, |(start, _)| start);
        let touched: Vec<(u64, u64)> =
            self.by_offset.range(first..=end).map(|(start, len)| (start, *len)).collect();
        let mut cut = Vec::with_capacity(touched.len());
        for (start, len) in touched {
            let (low, high) = (start.max(offset), (start + len).min(end));
            if low < high {
                self.remove(start, len);
                self.insert(start, low - start);
                self.insert(high, start + len - high);
                cut.push((low, high - low));
            }
        }
        cut
    }

    /// Removes at most `bytes` bytes from the high end of the last range, and returns them. There must be a range.
    pub fn cut_last(&mut self, bytes: u64) -> (u64, u64) {
        let (offset, &len) = self.by_offset.last().expect("bytes are counted with their ranges");
        let bytes = bytes.min(len);
        self.remove(offset, len);
        self.insert(offset, len - bytes);
        (offset + len - bytes, bytes)
    }

    fn insert(&mut self, offset: u64, bytes: u64) {
        if bytes > 0 {
            self.by_offset.insert(offset, bytes);
            self.by_size.insert((bytes, offset));
            self.bytes += bytes;
        }
    }

    fn remove(&mut self, offset: u64, bytes: u64) {
        self.by_offset.remove(offset);
        self.by_size.remove((bytes, offset));
        self.bytes -= bytes;
    }
}
