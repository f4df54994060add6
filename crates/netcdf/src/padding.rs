//! Inserts record padding that the format omits and the reader expects.
//!
//! A record is padded to a multiple of four bytes for each variable, but not if only one variable has records and its
//! type is of one or two bytes ("NetCDF Classic Format Specification", note on padding). The crate `netcdf3` knows no
//! such exception. Only the header is parsed. Invariant: all bytes before the records stay as they are.

use std::borrow::Cow;

/// Number of records in the header of a file that is written as it grows.
const STREAMING: u32 = u32::MAX;

/// Multiple of bytes that everything in a file is padded to.
const ALIGNED: usize = 4;

/// Returns a file in which records have the padding that `netcdf3` expects: `bytes`, unless the exception holds for
/// them. A header that has an error is left to the reader.
pub fn with_padded_records(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(UnpaddedRecords { begin, len, count }) = unpadded_records(bytes) else {
        return Cow::Borrowed(bytes);
    };
    let Some(records) = bytes.get(begin..) else { return Cow::Borrowed(bytes) };
    let mut padded = bytes[..begin].to_vec();
    for record in records.chunks(len).take(count) {
        padded.extend_from_slice(record);
        padded.resize(padded.len() + (len.next_multiple_of(ALIGNED) - len), 0);
    }
    Cow::Owned(padded)
}

/// The records of a file that are not padded.
struct UnpaddedRecords {
    /// Position of the first.
    begin: usize,
    /// Bytes of each.
    len: usize,
    /// Number of records.
    count: usize,
}

/// Finds the records of a file with one variable of records, whose length is no multiple of four bytes.
fn unpadded_records(bytes: &[u8]) -> Option<UnpaddedRecords> {
    let mut header = Header { bytes: bytes.strip_prefix(b"CDF")? };
    let is_wide = match header.take(1)?[0] {
        1 => false,
        2 => true,
        _ => return None,
    };
    let count = header.number()?;
    let mut dimensions = Vec::new();
    for _ in 0..header.list()? {
        header.name()?;
        dimensions.push(header.number()? as usize);
    }
    header.attributes()?;
    let mut found = None;
    for _ in 0..header.list()? {
        header.name()?;
        let rank = header.number()?;
        let lens = (0..rank).map(|_| dimensions.get(header.number()? as usize).copied());
        let lens: Vec<usize> = lens.collect::<Option<_>>()?;
        header.attributes()?;
        let of_value = value_bytes(header.number()?)?;
        header.number()?; // the size with padding
        let upper = if is_wide { u64::from(header.number()?) << 32 } else { 0 };
        let begin = usize::try_from(upper | u64::from(header.number()?)).ok()?;
        if let Some((0, inner)) = lens.split_first() {
            if found.is_some() {
                return None; // each of several is padded
            }
            let len = inner.iter().try_fold(of_value, |len, more| len.checked_mul(*more))?;
            let count = if count == STREAMING { usize::MAX } else { count as usize };
            found = Some(UnpaddedRecords { begin, len, count });
        }
    }
    found.filter(|records| records.len % ALIGNED != 0)
}

/// Bytes of a value by the number of its type.
fn value_bytes(kind: u32) -> Option<usize> {
    [1, 1, 2, 4, 4, 8].get((kind as usize).checked_sub(1)?).copied()
}

/// A cursor in the header.
struct Header<'a> {
    bytes: &'a [u8],
}

impl<'a> Header<'a> {
    /// The next bytes, without their padding.
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// The number of elements of a list; its tag says of what.
    fn list(&mut self) -> Option<u32> {
        self.number()?;
        self.number()
    }

    fn skip_padded(&mut self, len: usize) -> Option<()> {
        self.take(len.checked_next_multiple_of(ALIGNED)?).map(|_| ())
    }

    fn name(&mut self) -> Option<()> {
        let len = self.number()? as usize;
        self.skip_padded(len)
    }

    fn attributes(&mut self) -> Option<()> {
        for _ in 0..self.list()? {
            self.name()?;
            let of_value = value_bytes(self.number()?)?;
            let len = (self.number()? as usize).checked_mul(of_value)?;
            self.skip_padded(len)?;
        }
        Some(())
    }
}
