//! Ranges of memory: found by size, joined to their neighbours.
//!
//! The table of what is free, for whoever gives memory out. It knows numbers only. Invariant: ranges do not touch, so
//! that each is as long as it can be, and both tables hold the same ones.

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

    /// Adds a range, none of which is there.
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

    /// Takes `bytes` bytes out of the shortest range that has them, of its low end; answers their offset.
    ///
    /// Of equal ones the lowest: so the same memory is used again and again, and little of the arena at all.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let (len, offset) = self.by_size.first_from((bytes, 0))?;
        self.remove(offset, len);
        self.insert(offset + bytes, len - bytes);
        Some(offset)
    }

    /// Takes out what lies in a range; answers it in order.
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

    /// Takes out at most `bytes` bytes of the last range, of its high end; answers them. There is a range.
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
