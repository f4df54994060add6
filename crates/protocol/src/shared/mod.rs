//! Shared objects: which place may hold a guard, and when a place must drop its copy.
//!
//! [`Holder`] is one place's side of one object, [`Home`] that of the place that made it. [`Staleness`] and
//! [`Invalidations`] are for caches that no hardware keeps coherent. All of them return the messages to send, and none
//! knows values. `docs/design/shared.md` has the proof.

mod holder;
mod home;
mod staleness;
#[cfg(test)]
mod staleness_tests;
#[cfg(test)]
mod tests;

pub use holder::{Admission, GiveBack, Granted, Holder, NotAsked};
pub use home::{Home, HomeStep, NotHeld, ObjectRequest};
pub use staleness::{
    AwaitedAnswer, Flags, InvalidationFault, InvalidationRange, Invalidations, Known, Staleness,
};

use serde::{Deserialize, Serialize};

/// Access that a guard gives its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GuardMode {
    /// Read, beside other readers.
    Read,
    /// Read and write, alone.
    Write,
}

/// Right of a place to act without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Token {
    /// None.
    #[default]
    None,
    /// Tasks may read.
    Read,
    /// Tasks may read and write: no other place has a token.
    Write,
}

impl Token {
    /// Returns `true` if the token is enough for a guard.
    #[inline]
    pub fn covers(self, mode: GuardMode) -> bool {
        self >= Token::for_guard(mode)
    }

    /// Returns the least token for a guard.
    #[inline]
    pub(crate) fn for_guard(mode: GuardMode) -> Token {
        match mode {
            GuardMode::Read => Token::Read,
            GuardMode::Write => Token::Write,
        }
    }
}

/// Protocol that tells places that their copies are stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Controller {
    /// Flags all others when a write ends that has changed something.
    #[default]
    Broadcast,
    /// Flags all others when a write begins, whether it changes something or not.
    Overlapped,
    /// Each write that changes something counts a generation, which every guard compares with the last one it saw.
    Timestamp,
}

/// Caching of memory that the cores of a modelled chip share; without effect elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemoryKind {
    /// Past all caches, word by word. Slow, and never stale.
    Uncached,
    /// In both caches of a core. A write stays in the core's line until the line is evicted or flushed.
    #[default]
    Cached,
    /// Only in the first cache, with a tag, so that all such lines can be invalidated at once. Writes gather in a
    /// buffer of one line, which goes to memory when it is full, when another line is written, or when it is drained.
    Through,
}
