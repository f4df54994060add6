//! Values of objects: how their changes travel, and how they lie in memory that nothing keeps coherent.

use super::memory::{ByteLines, ObjectMemory};
use isles_runtime::Result;
use isles_runtime::service::drop_caught;
use isles_runtime::wire::{DecodeError, from_bytes, to_bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that places can share: one that serde can carry, or a [`Mapping`](crate::Mapping).
///
/// Its functions are those of the runtime; a program has no use for them.
pub trait SharedValue: Sized + 'static {
    /// True if code of the program reads the changes, and so may refuse what a sound place has sent.
    #[doc(hidden)]
    const IS_READ_BY_PROGRAM: bool;

    /// Returns what a copy of generation `since` misses; of all, if there is no copy.
    #[doc(hidden)]
    fn changes(&self, since: Option<u64>) -> Result<Vec<u8>>;

    /// Makes a copy of what [`SharedValue::changes`] returned of all.
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

    /// The same at another place, which has a copy; the value lies behind the head that starts there.
    #[doc(hidden)]
    fn find(&mut self, memory: &ObjectMemory, start: u64, controller: u32) -> ValueLines;

    /// Prepares the value for a guard that begins: caches forget what may be stale if `is_old`, and the copy is read
    /// anew.
    #[doc(hidden)]
    fn refresh(
        &mut self,
        memory: &ObjectMemory,
        lines: &mut ValueLines,
        is_old: bool,
    ) -> Result<(), DecodeError>;

    /// Returns `true` if any write makes caches of other places stale, so that they can be told when it begins.
    #[doc(hidden)]
    fn is_cached(&self, memory: &ObjectMemory) -> bool {
        let _ = memory;
        true
    }

    /// Ends a write guard that may have changed something. Returns whether caches of other places are now stale, so
    /// that something has to be written back.
    #[doc(hidden)]
    fn store(&mut self, memory: &ObjectMemory, lines: &mut ValueLines) -> Result<bool>;

    /// Writes stored lines back to memory.
    #[doc(hidden)]
    fn write_back(&mut self, memory: &ObjectMemory, lines: &ValueLines);
}

/// Lines of a value in memory that nothing keeps coherent.
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
