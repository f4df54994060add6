//! Which finish counts a task.

use crate::call::CallId;
use isles_protocol::PlaceId;
use isles_protocol::finish::{FinishId, Key};

/// Which finish counts what a task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The finish behind this key; the task itself is one of its live tasks.
    Counted(Key),
    /// The body of an `at!`: the caller's task is counted, and this body only once it starts something. The
    /// number is its entry in the place's table of [`RemoteScope`] scopes.
    Remote(u32),
    /// None: the task was started with `spawn_detached`.
    Detached,
}

/// The scope of the body of an `at!` from another place.
pub(crate) struct RemoteScope {
    /// The finish of the caller's task.
    pub(crate) finish: FinishId,
    /// The caller's place.
    pub(crate) caller: PlaceId,
    /// The key here, once the body has started or asked something under the finish.
    pub(crate) key: Option<Key>,
    /// Whether the finish counts the body; then the answer says so.
    pub(crate) counted: bool,
    /// The caller's name of the call.
    pub(crate) call: CallId,
    /// Whether the caller has gone: the body is to be dropped.
    pub(crate) abandoned: bool,
}
