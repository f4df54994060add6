//! `finish`: waits until everything started inside, at any place, has ended.
//!
//! The protocol is `isles_protocol::finish`, a pure machine; this module carries its messages, wakes waiting tasks, and
//! turns its outcome into a result. See `docs/design/finish.md`.

mod future;
pub(crate) mod output_queue;
mod table;

pub(crate) use future::finish_at;
pub use future::{Canceller, Finish, Outcome, cancel, finish};
pub(crate) use table::FinishTable;

use crate::call::CallId;
use crate::error::{Error, ErrorKind};
use crate::limits::ERROR_BYTES_MAX;
use crate::local::Local;
use crate::message::Refused;
use crate::wire::Reader;
use isles_protocol::PlaceId;
use isles_protocol::finish::{Control, Fault, FinishId, Key, Payload, Reason};
use std::panic::Location;

impl Local {
    /// Returns the key of the finish that counts what is started in `scope`; `None` if it is detached.
    ///
    /// From then on the body of an `at!` from another place is counted.
    #[inline]
    pub fn counting_key(&self, scope: Scope) -> Option<Key> {
        match scope.kind() {
            ScopeKind::Counted(key) => Some(key),
            ScopeKind::Detached => None,
            ScopeKind::Remote(_) => self.count_visit(scope),
        }
    }

    /// Counts the body of an `at!` that starts something.
    fn count_visit(&self, scope: Scope) -> Option<Key> {
        let key = self.visiting_key(scope)?;
        if let ScopeKind::Remote(index) = scope.kind()
            && let Some(entry) = self.calls.borrowed.borrow_mut().get_mut(index as usize)
            && !std::mem::replace(&mut entry.counted, true)
        {
            self.finishes.count_visit(key, entry.caller);
        }
        Some(key)
    }

    /// Returns the key of the finish of `scope` without counting anything; `None` if it is detached.
    #[inline]
    pub(crate) fn visiting_key(&self, scope: Scope) -> Option<Key> {
        match scope.kind() {
            ScopeKind::Counted(key) => Some(key),
            ScopeKind::Detached => None,
            ScopeKind::Remote(index) => self.visit(index),
        }
    }

    /// Registers the body of an `at!` with its finish here.
    fn visit(&self, index: u32) -> Option<Key> {
        let mut borrowed = self.calls.borrowed.borrow_mut();
        let entry = borrowed.get_mut(index as usize)?;
        if entry.key.is_none() {
            entry.key = self.finishes.visit(entry.finish, entry.caller).ok();
        }
        entry.key
    }
}

/// Converts an error for the protocol: our bytes, and the place in case that nothing can read them.
pub(crate) fn fault_of(local: &Local, error: &Error) -> Fault {
    let place = error.place().unwrap_or(local.here());
    let payload = Payload::try_from(error.to_wire(ERROR_BYTES_MAX));
    Fault::Failed { place, payload: payload.expect("the wire form of an error keeps to its bound") }
}

/// Converts an error back from the protocol, in the finish that the program called at `site`.
fn error_of(fault: Fault, site: Option<&Location<'_>>) -> Error {
    match fault {
        Fault::Failed { place, payload } => Error::from_wire(payload.as_bytes()).at(place, None),
        Fault::DeadPlace { place } => Error::dead_in(place, site),
    }
}

/// Returns the error of a finish that was cancelled.
fn cancelled(reason: &Reason, by_deadline: bool) -> Error {
    let kind = if by_deadline { ErrorKind::DeadlinePassed } else { ErrorKind::Cancelled };
    match reason {
        Reason::Requested(text) => Error::new(kind, text.as_str()),
        Reason::DeadHome(home) => Error::dead(*home),
    }
}

/// Receives a control message.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let control: Control = reader.take_serde()?;
    local.finishes.receive(local, source, control).map_err(Refused::Violation)
}

/// Tells the protocol that a place died.
pub(crate) fn place_died(local: &Local, place: PlaceId) {
    local.finishes.place_died(local, place);
}

/// Finish that counts the tasks that a task starts; see [`ScopeKind`].
// One word, as `Key` is: every message passes it through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope(u64);

/// Upper half of a scope that is not a key, for each kind.
const REMOTE: u64 = (u32::MAX - 1) as u64;
const DETACHED: u64 = u32::MAX as u64;

impl Scope {
    /// Scope without a finish; see [`ScopeKind::Detached`].
    pub const DETACHED: Scope = Scope(DETACHED << 32);

    /// Returns the scope of a task that the finish `key` of this place counts.
    #[inline]
    pub fn counted(key: Key) -> Scope {
        debug_assert!(key.to_bits() >> 32 < REMOTE, "a place has fewer finishes");
        Scope(key.to_bits())
    }

    #[inline]
    pub(crate) fn remote(index: u32) -> Scope {
        Scope(REMOTE << 32 | u64::from(index))
    }

    /// Returns the kind of the scope.
    #[inline]
    pub fn kind(self) -> ScopeKind {
        match self.0 >> 32 {
            DETACHED => ScopeKind::Detached,
            REMOTE => ScopeKind::Remote(self.0 as u32),
            _ => ScopeKind::Counted(Key::from_bits(self.0)),
        }
    }
}

/// The kinds of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// The finish with this key; the task itself is one of its live tasks.
    Counted(Key),
    /// The body of an `at!`: the finish counts the caller's task, and this body only once it starts something. The
    /// number is its entry in the place's table of `RemoteScope`s.
    Remote(u32),
    /// No finish: the task was started with `spawn_detached`.
    Detached,
}

/// The scope of the body of an `at!` from another place.
pub(crate) struct RemoteScope {
    /// The finish of the caller's task.
    pub(crate) finish: FinishId,
    /// The caller's place.
    pub(crate) caller: PlaceId,
    /// The key here, once the body has started or called something under the finish.
    pub(crate) key: Option<Key>,
    /// True if the finish counts the body; the answer then says so.
    pub(crate) counted: bool,
    /// The caller's id of the call.
    pub(crate) call: CallId,
    /// True if the caller is gone: the body must be dropped.
    pub(crate) abandoned: bool,
}
