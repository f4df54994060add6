//! Messages between places about shared objects. Changes follow the message that brings them.

use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedKey;
use isles_protocol::ordered_keys;
use isles_protocol::shared::{GiveBack, GuardMode, InvalidationRange, Token};
use isles_transport::HandlerId;
use serde::{Deserialize, Serialize};

/// The number of a token of a shared object, and its control, on the wire.
pub(crate) const OBJECT: HandlerId = HandlerId(20);

/// The name of an object in the whole run; the order in which several are acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ObjectId {
    /// The place that made it.
    pub(super) home: PlaceId,
    /// Counts the objects that `home` made.
    pub(super) serial: u64,
}

ordered_keys! {
    ObjectId: 96,
        |id| (id.home, id.serial).to_number(),
        |number| {
            let (home, serial) = OrderedKey::from_number(number);
            ObjectId { home, serial }
        };
}

/// A token that goes back, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReturnedToken {
    keeps: Token,
    generation: u64,
    had_written: bool,
    is_poisoned: bool,
}

impl ReturnedToken {
    pub(super) fn of(back: GiveBack) -> ReturnedToken {
        let GiveBack { keeps, generation, had_written, is_poisoned } = back;
        ReturnedToken { keeps, generation, had_written, is_poisoned }
    }

    pub(super) fn back(self) -> GiveBack {
        let ReturnedToken { keeps, generation, had_written, is_poisoned } = self;
        GiveBack { keeps, generation, had_written, is_poisoned }
    }
}

/// One message; the object is named before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ObjectMessage {
    /// To the home: a token is wanted; the sender's copy is of this generation.
    Request(GuardMode, u64),
    /// From the home: a token. The changes since the copy of the request follow, or the error that kept the home from
    /// writing them.
    Grant {
        mode: GuardMode,
        generation: u64,
        /// True if cached copies may be stale.
        flushes: bool,
        is_poisoned: bool,
        /// True if changes follow, and no error.
        has_changes: bool,
    },
    /// From the home: the token is wanted back, but for this.
    Recall(Token),
    /// To the home: here it is; changes follow.
    GiveBack(ReturnedToken),
    /// Caches are old.
    Invalidate(InvalidationRange),
    /// All places that were sent the receiver's flag with this token know it.
    Invalidated(u32),
}
