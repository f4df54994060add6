//! Arrays of integers as bytes that a reader uses in place: the contents of snapshots.
//!
//! An array is its length in elements, in eight bytes, followed by its elements, padded to a multiple of eight bytes.
//! All numbers are in the byte order of the host. It knows no file. Invariant: each array begins at a multiple of
//! eight from the start.

use std::borrow::Cow;

/// An array of numbers, owned or in a mapped file.
pub type Words = Cow<'static, [u32]>;

/// Writes arrays one after the other.
#[derive(Debug, Default)]
pub struct ArrayWriter(Vec<u8>);

impl ArrayWriter {
    /// Appends one number.
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    /// Appends an array.
    pub fn array<T: bytemuck::NoUninit>(&mut self, elements: &[T]) {
        self.number(elements.len() as u64);
        self.0.extend_from_slice(bytemuck::cast_slice(elements));
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }

    /// Returns the bytes, a multiple of eight.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads the output of [`ArrayWriter`]. Each function returns `None` if the bytes end too early.
#[derive(Debug)]
pub struct ArrayReader(&'static [u8]);

impl ArrayReader {
    /// Creates a reader of bytes, which must be aligned to eight bytes in memory.
    pub fn new(bytes: &'static [u8]) -> ArrayReader {
        ArrayReader(bytes)
    }

    /// Returns `true` if nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads one number.
    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*number))
    }

    /// Reads a number that must be a position or a size.
    pub fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// Reads an array.
    pub fn array<T: bytemuck::AnyBitPattern>(&mut self) -> Option<&'static [T]> {
        let bytes = self.size()?.checked_mul(size_of::<T>())?;
        let (array, _) = self.0.split_at_checked(bytes)?;
        self.0 = self.0.get(bytes.checked_next_multiple_of(8)?..)?;
        bytemuck::try_cast_slice(array).ok()
    }

    /// Reads an array of four-byte numbers.
    pub fn words(&mut self) -> Option<Words> {
        self.array().map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_and_no_cut_is_read_as_a_whole() {
        let mut writer = ArrayWriter::default();
        writer.number(7);
        writer.array(b"abc");
        writer.array::<u64>(&[]);
        writer.array(&[1_u32, 2, 3]);
        writer.array(&[u64::MAX]);
        let words: &'static [u64] = bytemuck::pod_collect_to_vec(&writer.into_bytes()).leak();
        let bytes: &'static [u8] = bytemuck::cast_slice(words);
        let read = |bytes: &'static [u8]| {
            let mut reader = ArrayReader::new(bytes);
            let all = (
                reader.number()?,
                reader.array::<u8>()?,
                reader.array::<u64>()?,
                reader.words()?.into_owned(),
                reader.array::<u64>()?,
            );
            reader.is_at_end().then_some(all)
        };
        assert_eq!(read(bytes), Some((7, &b"abc"[..], &[][..], vec![1, 2, 3], &[u64::MAX][..])));
        assert!((0..bytes.len()).all(|len| read(&bytes[..len]).is_none()));
        let huge: &'static [u64] = vec![u64::MAX, 0].leak();
        assert_eq!(ArrayReader::new(bytemuck::cast_slice(huge)).array::<u64>(), None);
    }
}
