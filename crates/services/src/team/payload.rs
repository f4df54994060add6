//! Payload of an arrived message, until it is taken.
//!
//! Collectives and messages between two members share it. Invariant: a payload in the memory of its sender is known as
//! such, and can be copied.

use isles_runtime::Error;
use isles_runtime::wire::{DecodeError, Reader};
use isles_transport::BlockMemory;
use std::rc::Rc;

/// Longest payload that is kept without an allocation, in words.
const SHORT_WORDS: usize = 4;

/// Payload of an arrived message, until it is taken.
pub(super) enum Payload {
    /// A payload of this number of bytes, in words: that of a short collective's message moves from register to
    /// register.
    Short([u64; SHORT_WORDS], usize),
    /// A longer payload that came in a queue.
    Long(Box<[u8]>),
    /// A payload that came as a block, and the byte at which it starts.
    Block(Rc<dyn BlockMemory>, usize),
}

impl Payload {
    /// Keeps the rest of a message.
    #[inline]
    pub(super) fn take(reader: &mut Reader<'_>) -> Payload {
        match reader.block() {
            Some(block) => Payload::Block(Rc::clone(block), reader.position()),
            None => Payload::copy_of(reader.rest()),
        }
    }

    /// Keeps a copy of a message that lies in a queue.
    #[inline]
    pub(super) fn copy_of(bytes: &[u8]) -> Payload {
        match bytes.len() {
            0 => Payload::Short([0; SHORT_WORDS], 0),
            8 => {
                let word = u64::from_ne_bytes(bytes.try_into().expect("there are eight"));
                Payload::Short([word, 0, 0, 0], 8)
            }
            len if len <= 8 * SHORT_WORDS => {
                let mut short = [0; SHORT_WORDS];
                bytemuck::bytes_of_mut(&mut short)[..len].copy_from_slice(bytes);
                Payload::Short(short, len)
            }
            _ => Payload::Long(bytes.into()),
        }
    }

    /// Returns `true` if the payload lies in the memory of its sender.
    #[inline]
    pub(super) fn is_block(&self) -> bool {
        matches!(self, Payload::Block(..))
    }

    /// Copies the payload out of the memory of its sender.
    #[cold]
    pub(super) fn copy(&mut self) {
        if let Payload::Block(block, start) = self {
            *self = Payload::Long(block.bytes()[*start..].into());
        }
    }

    /// Returns the bytes after the header.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Payload::Short(words, len) => &bytemuck::bytes_of(words)[..*len],
            Payload::Long(bytes) => bytes,
            Payload::Block(block, start) => &block.bytes()[*start..],
        }
    }

    /// Reads the value after the header.
    #[inline]
    pub(super) fn decode<T>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, Error> {
        let reader = match self {
            Payload::Block(block, start) => {
                let mut reader = Reader::from_block(block);
                reader.take_bytes(*start).map_err(undecodable)?;
                reader
            }
            _ => Reader::new(self.bytes()),
        };
        decode(reader, read)
    }
}

/// Reads a value that fills the whole payload.
#[inline]
pub(super) fn decode<T>(
    mut reader: Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, Error> {
    let value = read(&mut reader).map_err(undecodable)?;
    reader.finish().map_err(undecodable)?;
    Ok(value)
}

fn undecodable(fault: DecodeError) -> Error {
    Error::undecodable("what a member of the team sent", fault)
}
