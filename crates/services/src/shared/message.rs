//! Messages between places about shared objects. The changes of a message follow it.

use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedKey;
use isles_protocol::ordered_keys;
use isles_protocol::shared::{GiveBack, GuardMode, InvalidationRange, Token};
use isles_transport::HandlerId;
use serde::{Deserialize, Serialize};

/// Number of the message with a token of a shared object, or its control.
pub(crate) const OBJECT: HandlerId = HandlerId(20);

/// The id of an object in the whole run; also the order in which several are acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ObjectId {
    /// The place that made it.
    pub(super) home: PlaceId,
    /// Number of the object among those that `home` made.
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

/// A returned token, on the wire.
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

/// One message; the id of the object precedes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ObjectMessage {
    /// To the home: asks for a token; the sender's copy has this generation.
    Request(GuardMode, u64),
    /// From the home: a token. The changes since the copy of the request follow, or the error that kept the home from
    /// writing them.
    Grant {
        mode: GuardMode,
        generation: u64,
        /// True if cached copies may be stale.
        flushes: bool,
        is_poisoned: bool,
        /// True if changes follow, not an error.
        has_changes: bool,
    },
    /// From the home: recalls the token, except for this.
    Recall(Token),
    /// To the home: returns the token; changes follow.
    GiveBack(ReturnedToken),
    /// The caches of the receiver are stale.
    Invalidate(InvalidationRange),
    /// All places that received the invalidation of this token have answered.
    Invalidated(u32),
}
