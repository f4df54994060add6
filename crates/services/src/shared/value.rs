//! Values of objects: how their changes travel, and how they lie in memory that no hardware keeps coherent.

use super::memory::{ByteLines, ObjectMemory};
use isles_runtime::Result;
use isles_runtime::service::drop_caught;
use isles_runtime::wire::{DecodeError, from_bytes, to_bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that places can share: one that serde can encode, or a [`Mapping`](crate::Mapping).
///
/// The runtime calls its functions; a program need not.
pub trait SharedValue: Sized + 'static {
    /// True if code of the program reads the changes, and so may refuse what a valid place has sent.
    #[doc(hidden)]
    const IS_READ_BY_PROGRAM: bool;

    /// Returns the changes that a copy of generation `since` lacks; the whole value if there is no copy.
    #[doc(hidden)]
    fn changes(&self, since: Option<u64>) -> Result<Vec<u8>>;

    /// Makes a copy from what [`SharedValue::changes`] returned for the whole value.
    #[doc(hidden)]
    fn from_changes(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// Applies changes to a copy.
    #[doc(hidden)]
    fn apply(&mut self, bytes: &[u8]) -> Result<(), DecodeError>;

    /// Marks the changes of a guard with `generation`; returns whether it has changed anything, given that it may have.
    #[doc(hidden)]
    fn stamp(&mut self, generation: u64) -> bool;

    /// Grows to `len` elements, if it is an array with fewer.
    #[doc(hidden)]
    fn grow_to(&mut self, len: usize) {
        let _ = len;
    }

    /// Puts the value into the machine's memory; returns the lines at which other places find it.
    #[doc(hidden)]
    fn place(&mut self, memory: &ObjectMemory) -> Option<ValueLines>;

    /// Does the same at another place, which has a copy; the head of the value starts at `start`.
    #[doc(hidden)]
    fn find(&mut self, memory: &ObjectMemory, start: u64, controller: u32) -> ValueLines;

    /// Prepares the value for a guard that begins: drops what may be stale from caches if `is_old`, and reads the copy
    /// again.
    #[doc(hidden)]
    fn refresh(
        &mut self,
        memory: &ObjectMemory,
        lines: &mut ValueLines,
        is_old: bool,
    ) -> Result<(), DecodeError>;

    /// Returns `true` if any write makes caches of other places stale, so that they can be told as it begins.
    #[doc(hidden)]
    fn is_cached(&self, memory: &ObjectMemory) -> bool {
        let _ = memory;
        true
    }

    /// Ends a write guard that may have changed something. Returns whether caches of other places are now stale, which
    /// means that something must be written back.
    #[doc(hidden)]
    fn store(&mut self, memory: &ObjectMemory, lines: &mut ValueLines) -> Result<bool>;

    /// Writes stored lines back to memory.
    #[doc(hidden)]
    fn write_back(&mut self, memory: &ObjectMemory, lines: &ValueLines);
}

/// Lines of a value in memory that no hardware keeps coherent.
pub struct ValueLines(pub(super) ByteLines);

impl<T: Serialize + DeserializeOwned + 'static> SharedValue for T {
    const IS_READ_BY_PROGRAM: bool = true;

    fn changes(&self, _since: Option<u64>) -> Result<Vec<u8>> {
        to_bytes(self)
    }

    fn from_changes(bytes: &[u8]) -> Result<T, DecodeError> {
        from_bytes(bytes)
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        drop_caught(std::mem::replace(self, from_bytes(bytes)?));
        Ok(())
    }

    fn stamp(&mut self, _generation: u64) -> bool {
        true
    }

    fn place(&mut self, memory: &ObjectMemory) -> Option<ValueLines> {
        let mut lines = ByteLines::new(memory, memory.kind)?;
        lines.store(memory, &to_bytes(self).ok()?);
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
            drop_caught(std::mem::replace(self, from_bytes(&bytes)?));
        }
        Ok(())
    }

    fn store(&mut self, memory: &ObjectMemory, lines: &mut ValueLines) -> Result<bool> {
        lines.0.store(memory, &to_bytes(self)?);
        Ok(true)
    }

    fn write_back(&mut self, memory: &ObjectMemory, lines: &ValueLines) {
        lines.0.write_back(memory);
    }
}
