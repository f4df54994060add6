//! What an object holds: how its changes travel, and how it lies in memory that nothing keeps coherent.

use super::memory::{ByteLines, ObjectMemory};
use crate::error::{Error, Result};
use crate::wire::{DecodeError, Reader, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that places can share: one that serde can carry, or a [`Mapping`](crate::Mapping).
///
/// Its functions are those of the runtime; a program has no use for them.
pub trait SharedValue: Sized + 'static {
    /// Returns what a copy of generation `since` misses; of all, if there is no copy.
    #[doc(hidden)]
    fn changes(&self, since: Option<u64>) -> Result<Vec<u8>>;

    /// Makes a copy of what [`SharedValue::changes`] returned of all.
    #[doc(hidden)]
    fn from_changes(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// Applies changes to a copy.
    #[doc(hidden)]
    fn apply(&mut self, bytes: &[u8]) -> Result<(), DecodeError>;

    /// What a guard has changed is of `generation`; returns whether it has changed anything, given that it may have.
    #[doc(hidden)]
    fn stamp(&mut self, generation: u64) -> bool;

    /// Has `len` elements from now on, if it is an array with fewer.
    #[doc(hidden)]
    fn grow_to(&mut self, len: usize) {
        let _ = len;
    }

    /// Puts the value into the machine's memory; returns the lines by which other places find it.
    #[doc(hidden)]
    fn place(&mut self, memory: &ObjectMemory) -> Option<ValueLines>;

    /// The same at another place, which has a copy; the value lies behind the head that starts there.
    #[doc(hidden)]
    fn find(&mut self, memory: &ObjectMemory, start: u64, controller: u32) -> ValueLines;

    /// A guard begins: caches forget what may be old if `is_old`, and the copy is read anew.
    #[doc(hidden)]
    fn refresh(
        &mut self,
        memory: &ObjectMemory,
        lines: &mut ValueLines,
        is_old: bool,
    ) -> Result<(), DecodeError>;

    /// Whether any write makes caches of other places old, so that they can be told when it begins.
    #[doc(hidden)]
    fn is_cached(&self, memory: &ObjectMemory) -> bool {
        let _ = memory;
        true
    }

    /// A write guard ends, which may have changed something. Returns whether caches of other places are old by it, and
    /// so something is to be written back.
    #[doc(hidden)]
    fn store(&mut self, memory: &ObjectMemory, lines: &mut ValueLines) -> Result<bool>;

    /// What was stored goes to memory.
    #[doc(hidden)]
    fn write_back(&mut self, memory: &ObjectMemory, lines: &ValueLines);
}

/// Where a value lies in memory that nothing keeps coherent.
pub struct ValueLines(pub(super) ByteLines);

/// Encodes a value of the program.
pub(super) fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    // Most values that change hands often are short.
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

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes);
    let value = reader.take_value()?;
    reader.finish()?;
    Ok(value)
}

impl<T: Serialize + DeserializeOwned + 'static> SharedValue for T {
    fn changes(&self, _since: Option<u64>) -> Result<Vec<u8>> {
        encoded(self)
    }

    fn from_changes(bytes: &[u8]) -> Result<T, DecodeError> {
        decoded(bytes)
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        *self = decoded(bytes)?;
        Ok(())
    }

    fn stamp(&mut self, _generation: u64) -> bool {
        true
    }

    fn place(&mut self, memory: &ObjectMemory) -> Option<ValueLines> {
        let mut lines = ByteLines::new(memory, memory.kind)?;
        lines.store(memory, &encoded(self).ok()?);
        lines.write_back(memory);
        Some(ValueLines(lines))
    }

    fn find(&mut self, memory: &ObjectMemory, start: u64, controller: u32) -> ValueLines {
        ValueLines(ByteLines::at(memory.kind, start, controller))
    }

    fn refresh(
        &mut self,
        memory: &ObjectMemory,
        lines: &mut ValueLines,
        is_old: bool,
    ) -> Result<(), DecodeError> {
        if is_old {
            lines.0.forget(memory);
            let bytes = lines.0.load(memory).ok_or(DecodeError::Truncated { needed: 1, left: 0 })?;
            *self = decoded(&bytes)?;
        }
        Ok(())
    }

    fn store(&mut self, memory: &ObjectMemory, lines: &mut ValueLines) -> Result<bool> {
        lines.0.store(memory, &encoded(self)?);
        Ok(true)
    }

    fn write_back(&mut self, memory: &ObjectMemory, lines: &ValueLines) {
        lines.0.write_back(memory);
    }
}
