//! Bytes of captures and results: a writer that only counts beyond its end, and a reader that checks everything.
//!
//! Both directions must agree to the byte, so the format is defined here and nowhere else. It does not know what
//! travels nor why; it sends nothing.
//!
//! Format: plain slices are a length (`u64`, in elements), zero bytes up to their alignment, then the elements as they
//! lie in memory; plain values are their bytes; other values of the program are encoded by `writing`, messages of the
//! runtime itself by postcard. All places run the same program image, so layouts agree. Invariant: positions count from
//! the start of the slice on both sides, so the slice of the reader must start at the byte where the slice of the
//! writer started.

mod interior_mutability;
mod numbers;
pub mod plain;
mod reading;
#[cfg(test)]
mod tests;
mod writing;

pub use numbers::{is_word, of_word, word_of};

use crate::error::{Error, ErrorKind, panic};
use bytemuck::{AnyBitPattern, NoUninit};
use isles_transport::BlockMemory;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// Length from which slices start on a cache line, so that copying and reading them is fastest, in bytes.
const LINE_ALIGNED_BYTES_MIN: usize = 4096;

/// Bytes of a cache line; blocks are aligned to it.
const LINE_BYTES: usize = 64;

/// Largest nesting depth of values. Without optimisation a level takes up to 2 KiB of stack, and a thread that is a
/// place may have 2 MiB.
const DEPTH_MAX: u32 = 500;

/// Message for a value that is nested too deeply.
const NESTED_TOO_DEEP: &str = "values are nested more than 500 deep";

/// Returns a byte that identifies the name of a variant: made of its length and its ends, so that it costs next to
/// nothing.
#[inline]
fn name_mark(name: &str) -> u8 {
    let bytes = name.as_bytes();
    let word = |from: usize, len: usize| {
        bytes[from..from + len].iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    let (first, last) = match bytes.len() {
        0 => (0, 0),
        len @ 1..4 => (word(0, 1), word(len / 2, len - len / 2)),
        len @ 4..8 => (word(0, 4), word(len - 4, 4)),
        len => (word(0, 8), word(len - 8, 8)),
    };
    // Twice 2^64 over the golden ratio (Knuth, volume 3, 6.4): all bits take part in the highest.
    let mixed = (first ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ last).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Returns the alignment of a slice of `bytes` bytes of `T`.
const fn slice_alignment<T>(bytes: usize) -> usize {
    if bytes >= LINE_ALIGNED_BYTES_MIN && align_of::<T>() < LINE_BYTES { LINE_BYTES } else { align_of::<T>() }
}

/// Returns the next multiple of `alignment` (a power of two) from `position` on.
const fn aligned(position: usize, alignment: usize) -> usize {
    debug_assert!(alignment.is_power_of_two());
    position.saturating_add(alignment - 1) & !(alignment - 1)
}

/// Reason why a value has no encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Its `Serialize` refused, or needs something that the format lacks; in words.
    Refused(Box<str>),
    /// A message of the runtime itself cannot be written.
    Unsupported(postcard::Error),
    /// Its `Serialize` panicked; the text says where and what.
    Panicked(Box<str>),
    /// It was written twice, with different lengths.
    Unsteady,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::Refused(why) => write!(f, "the value cannot be sent: {why}"),
            EncodeError::Unsupported(cause) => write!(f, "the value cannot be serialised: {cause}"),
            EncodeError::Panicked(text) => write!(f, "its `Serialize` panicked {text}"),
            EncodeError::Unsteady => {
                write!(f, "the value cannot be serialised: its length differs each time")
            }
        }
    }
}

impl std::error::Error for EncodeError {}

/// Reason why bytes cannot be decoded. Either the sender runs another program, or memory was damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early.
    Truncated {
        /// Bytes that the next item needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A length that no memory can hold.
    LengthOutOfRange {
        /// The length as read, in elements.
        len: u64,
    },
    /// A value breaks the format, or its `Deserialize` refused; in words.
    Refused(Box<str>),
    /// A message of the runtime itself breaks the format.
    Malformed(postcard::Error),
    /// Bytes are left where the message should end.
    Trailing {
        /// Bytes that are left.
        left: usize,
    },
    /// The `Deserialize` of a value panicked; the text says where and what.
    Panicked(Box<str>),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated { needed, left } => {
                write!(f, "the message ends too early: {needed} bytes needed, {left} left")
            }
            DecodeError::LengthOutOfRange { len } => write!(f, "a length of {len} elements is impossible"),
            DecodeError::Refused(why) => write!(f, "a value cannot be read: {why}"),
            DecodeError::Malformed(cause) => write!(f, "a value cannot be read: {cause}"),
            DecodeError::Trailing { left } => write!(f, "{left} bytes are left after the end of the message"),
            DecodeError::Panicked(text) => write!(f, "a `Deserialize` panicked {text}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Writes items one after the other into a slice, and goes on counting where the slice ends.
///
/// It never fails for lack of room: [`Writer::written`] is then larger than the slice, and the caller encodes again
/// into memory of that size. The content of the slice after an overflow is unspecified.
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    /// Bytes written or counted so far.
    position: usize,
    /// True if values with interior mutability are refused.
    watching: bool,
}

impl<'a> Writer<'a> {
    /// Makes a writer that starts at the first byte of `bytes`.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Writer { bytes, position: 0, watching: false }
    }

    /// As [`Writer::new`], for a round-trip check of captures: refuses cells inside structures.
    pub(crate) fn watching(bytes: &'a mut [u8]) -> Self {
        Writer { watching: true, ..Writer::new(bytes) }
    }

    /// Returns the length of all items so far, whether they fitted or not.
    pub fn written(&self) -> usize {
        self.position
    }

    /// Returns `true` if some item did not fit.
    pub fn overflowed(&self) -> bool {
        self.position > self.bytes.len()
    }

    /// Appends `source` as it is, without a length.
    #[inline]
    pub fn put_bytes(&mut self, source: &[u8]) {
        let end = self.position.saturating_add(source.len());
        if let Some(room) = self.bytes.get_mut(self.position..end) {
            room.copy_from_slice(source);
        }
        self.position = end;
    }

    /// Appends one byte.
    #[inline]
    fn put_byte(&mut self, byte: u8) {
        if let Some(room) = self.bytes.get_mut(self.position) {
            *room = byte;
        }
        self.position = self.position.saturating_add(1);
    }

    /// Appends four bytes, little-endian.
    #[inline]
    pub fn put_u32(&mut self, value: u32) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes, little-endian.
    #[inline]
    pub fn put_u64(&mut self, value: u64) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends zero bytes until the position is a multiple of `alignment`, a power of two.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        let end = aligned(self.position, alignment);
        if let Some(room) = self.bytes.get_mut(self.position..end) {
            room.fill(0);
        }
        self.position = end;
    }

    /// Appends the bytes of one plain value.
    #[inline]
    pub fn put_pod<T: NoUninit>(&mut self, value: &T) {
        self.put_bytes(bytemuck::bytes_of(value));
    }

    /// Appends a plain slice with its length and alignment; costs one copy of its memory.
    #[inline]
    pub fn put_pod_slice<T: NoUninit>(&mut self, slice: &[T]) {
        self.put_u64(slice.len() as u64);
        self.align(slice_alignment::<T>(size_of_val(slice)));
        self.put_bytes(bytemuck::cast_slice(slice));
    }

    /// Appends a value of the program; allocates nothing itself. Vectors of numbers, even inside it, cost one copy of
    /// their memory. This and [`Reader::take_value`] are the only calls of the program's code while a message is
    /// written or read, so its panics are caught here.
    ///
    /// # Errors
    /// [`EncodeError`]: the value cannot travel; what was written so far is useless.
    #[inline]
    pub fn put_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        panic::catch_panic_text(|| writing::Values::new(self).put(value)).map_err(EncodeError::Panicked)?
    }

    /// Appends the elements of a slice as [`Writer::put_value`] does with a vector of them.
    ///
    /// # Errors
    /// As for [`Writer::put_value`].
    #[inline]
    pub fn put_values<T: Serialize>(&mut self, slice: &[T]) -> Result<(), EncodeError> {
        let mut values = writing::Values::new(self);
        match numbers::of_slice(slice) {
            Some(block) => values.put_block(block),
            None => panic::catch_panic_text(|| values.put(slice)).map_err(EncodeError::Panicked)?,
        }
    }

    /// Appends numbers as [`Writer::put_value`] does with a tuple of them.
    #[inline]
    pub(crate) fn put_numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        if numbers.iter().all(|number| *number < 0x80) {
            return self.put_bytes(&numbers.map(|number| number as u8));
        }
        let mut values = writing::Values::new(self);
        numbers.into_iter().for_each(|number| values.put_number(number));
    }

    /// Appends a message of the runtime itself; allocates nothing.
    ///
    /// # Errors
    /// [`EncodeError::Unsupported`]; what was written so far is useless.
    #[inline]
    pub fn put_serde<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        postcard::serialize_with_flavor(value, Cursor { writer: self }).map_err(EncodeError::Unsupported)
    }
}

/// Length of the longest number of 64 bits.
const NUMBER_BYTES_MAX: usize = 10;

/// A writer with the interface that postcard needs.
struct Cursor<'w, 'a> {
    writer: &'w mut Writer<'a>,
}

impl postcard::ser_flavors::Flavor for Cursor<'_, '_> {
    type Output = ();

    #[inline]
    fn try_extend(&mut self, source: &[u8]) -> postcard::Result<()> {
        match source.len() {
            // A number, whose bytes were just stored one by one: a copy in wider words would stall on them.
            ..=NUMBER_BYTES_MAX => source.iter().for_each(|byte| self.writer.put_byte(*byte)),
            _ => self.writer.put_bytes(source),
        }
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.writer.put_byte(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Encodes a value of the program, for [`from_bytes`].
///
/// # Errors
/// The value cannot travel, or its `Serialize` panicked.
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> crate::Result<Vec<u8>> {
    // Most values that are encoded often are short.
    let mut short = [0; 64];
    let mut writer = Writer::new(&mut short);
    writer.put_value(value).map_err(Error::unencodable)?;
    let written = writer.written();
    if let Some(bytes) = short.get(..written) {
        return Ok(bytes.to_vec());
    }
    let mut bytes = vec![0; written];
    Writer::new(&mut bytes).put_value(value).map_err(Error::unencodable)?;
    Ok(bytes)
}

/// Decodes a value that [`to_bytes`] has encoded.
///
/// # Errors
/// The bytes are no such value.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes);
    let value = reader.take_value()?;
    reader.finish()?;
    Ok(value)
}

/// Reads items one after the other; never panics, whatever the bytes.
///
/// Memory: a plain slice allocates no more than the bytes that are there; a serialised sequence reserves at most 1 MiB
/// ahead of the elements read (serde's own bound).
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes read so far; never more than there are.
    position: usize,
    /// The owner of `bytes`, if slices may stay in place.
    block: Option<&'a Rc<dyn BlockMemory>>,
    /// Number of bytes of the message before the first of `bytes`; alignments count them.
    before: usize,
}

impl<'a> Reader<'a> {
    /// Makes a reader of borrowed bytes: everything that is kept is copied.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, position: 0, block: None, before: 0 }
    }

    /// As [`Reader::new`], for the rest of a message after its first `before` bytes.
    pub fn after(before: usize, bytes: &'a [u8]) -> Self {
        Reader { before, ..Reader::new(bytes) }
    }

    /// Makes a reader of an owned message: plain slices may stay in place and keep the block alive.
    pub fn from_block(block: &'a Rc<dyn BlockMemory>) -> Self {
        Reader { bytes: block.bytes(), position: 0, block: Some(block), before: 0 }
    }

    /// Returns the number of bytes not yet read.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Takes all bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.position..];
        self.position = self.bytes.len();
        rest
    }

    /// Returns the number of bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the owner of the bytes, if they belong to a block.
    pub fn block(&self) -> Option<&'a Rc<dyn BlockMemory>> {
        self.block
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`]: not everything was read.
    #[inline]
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.left() == 0 { Ok(()) } else { Err(DecodeError::Trailing { left: self.left() }) }
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]: fewer are left; nothing was taken.
    #[inline]
    pub fn take_bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let range = self.range(len)?;
        Ok(&self.bytes[range])
    }

    /// Takes `prefix` if it comes next; returns whether it does.
    #[inline]
    pub fn take_prefix(&mut self, prefix: &[u8]) -> bool {
        let comes = self.bytes[self.position..].starts_with(prefix);
        self.position += if comes { prefix.len() } else { 0 };
        comes
    }

    /// Skips the next `len` bytes; returns their range.
    #[inline]
    fn range(&mut self, len: usize) -> Result<Range<usize>, DecodeError> {
        let left = self.left();
        if len > left {
            return Err(DecodeError::Truncated { needed: len, left });
        }
        let start = self.position;
        self.position += len;
        Ok(start..self.position)
    }

    /// Takes four bytes, little-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn take_u32(&mut self) -> Result<u32, DecodeError> {
        self.take_bytes(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
    }

    /// Takes eight bytes, little-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn take_u64(&mut self) -> Result<u64, DecodeError> {
        self.take_bytes(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    /// Moves to the next multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), DecodeError> {
        let position = self.before.saturating_add(self.position);
        self.range(aligned(position, alignment) - position).map(drop)
    }

    /// Takes one plain value.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline]
    pub fn take_pod<T: AnyBitPattern>(&mut self) -> Result<T, DecodeError> {
        self.take_bytes(size_of::<T>()).map(bytemuck::pod_read_unaligned)
    }

    /// Takes a plain slice as an owned vector; costs one copy.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::LengthOutOfRange`].
    #[inline]
    pub fn take_pod_vec<T: NoUninit + AnyBitPattern>(&mut self) -> Result<Vec<T>, DecodeError> {
        let (len, range) = self.pod_range::<T>()?;
        Ok(copied(len, &self.bytes[range]))
    }

    /// Takes a plain slice, in place if the bytes belong to a block and are aligned for `T`.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::LengthOutOfRange`].
    #[inline]
    pub fn take_pod_slice<T: NoUninit + AnyBitPattern>(&mut self) -> Result<PodSlice<T>, DecodeError> {
        let (len, range) = self.pod_range::<T>()?;
        let source = &self.bytes[range.clone()];
        let place = match self.block {
            Some(block) if size_of::<T>() != 0 && bytemuck::try_cast_slice::<u8, T>(source).is_ok() => {
                SliceStorage::Block(block.clone(), range)
            }
            _ => SliceStorage::Copied(copied(len, source)),
        };
        Ok(PodSlice { place })
    }

    /// Reads the length of a plain slice and skips its elements; returns the length and their range.
    #[inline]
    fn pod_range<T>(&mut self) -> Result<(usize, Range<usize>), DecodeError> {
        let len = self.take_u64()?;
        let elements = usize::try_from(len).map_err(|_| DecodeError::LengthOutOfRange { len })?;
        let bytes = elements.checked_mul(size_of::<T>()).ok_or(DecodeError::LengthOutOfRange { len })?;
        self.align(slice_alignment::<T>(bytes))?;
        Ok((elements, self.range(bytes)?))
    }

    /// Takes a value that [`Writer::put_value`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes end too early, or are no such value.
    #[inline]
    pub fn take_value<T: DeserializeOwned>(&mut self) -> Result<T, DecodeError> {
        panic::catch_panic_text(|| reading::Values::new(self).take(PhantomData))
            .map_err(DecodeError::Panicked)?
    }

    /// Takes numbers that [`Writer::put_numbers`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`]: the bytes end too early, or a number is too large.
    #[inline]
    pub(crate) fn take_numbers<const N: usize>(&mut self) -> Result<[u64; N], DecodeError> {
        if let Some(short) = self.bytes[self.position..].first_chunk::<N>()
            && short.iter().all(|byte| *byte < 0x80)
        {
            self.position += N;
            return Ok(short.map(u64::from));
        }
        let (mut values, mut numbers) = (reading::Values::new(self), [0; N]);
        for number in &mut numbers {
            *number = values.number()?;
        }
        Ok(numbers)
    }

    /// Takes a message of the runtime that [`Writer::put_serde`] wrote.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::Malformed`].
    #[inline]
    pub fn take_serde<T: DeserializeOwned>(&mut self) -> Result<T, DecodeError> {
        let source = &self.bytes[self.position..];
        let (value, rest) = postcard::take_from_bytes(source).map_err(|cause| match cause {
            postcard::Error::DeserializeUnexpectedEnd => {
                DecodeError::Truncated { needed: source.len() + 1, left: source.len() }
            }
            cause => DecodeError::Malformed(cause),
        })?;
        self.position = self.bytes.len() - rest.len();
        Ok(value)
    }
}

/// Returns a vector of `len` elements whose memory is a copy of `source`.
pub(crate) fn copied<T: NoUninit + AnyBitPattern>(len: usize, source: &[u8]) -> Vec<T> {
    let mut elements = bytemuck::zeroed_vec::<T>(len);
    bytemuck::cast_slice_mut(&mut elements).copy_from_slice(source);
    elements
}

/// A plain slice that has arrived.
pub struct PodSlice<T> {
    place: SliceStorage<T>,
}

/// Location of an arrived slice.
enum SliceStorage<T> {
    /// In the message itself, at these bytes; length and alignment are checked.
    Block(Rc<dyn BlockMemory>, Range<usize>),
    /// In memory of its own.
    Copied(Vec<T>),
}

impl<T> PodSlice<T> {
    /// Returns `true` if the elements still lie in the message.
    #[cfg(test)]
    fn is_in_place(&self) -> bool {
        matches!(self.place, SliceStorage::Block(..))
    }
}

impl<T: NoUninit + AnyBitPattern> Deref for PodSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.place {
            SliceStorage::Block(block, range) => bytemuck::cast_slice(&block.bytes()[range.clone()]),
            SliceStorage::Copied(elements) => elements,
        }
    }
}

impl Error {
    /// Returns the error of a value that could not be written.
    pub fn unencodable(fault: EncodeError) -> Self {
        match fault {
            EncodeError::Panicked(text) => Error::new(ErrorKind::Panicked, text),
            fault => Error::new(ErrorKind::Undecodable, fault.to_string()),
        }
    }

    /// Returns the error of `what`, which could not be read.
    pub fn undecodable(what: &str, fault: DecodeError) -> Self {
        match fault {
            DecodeError::Panicked(text) => Error::new(ErrorKind::Panicked, text),
            fault => Error::new(ErrorKind::Undecodable, format!("{what} could not be read: {fault}")),
        }
    }
}
