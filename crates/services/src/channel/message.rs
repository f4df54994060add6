//! What places say to each other about channels.
//!
//! Each message is a head and, where it says so, a value as the wire writes it. Heads are read before the type of the
//! value is known. Invariant: a head that is answered names the operation by the number that its place gave it.

use isles_protocol::PlaceId;
use isles_runtime::wire::Writer;
use isles_transport::HandlerId;
use serde::{Deserialize, Serialize};

/// The number of values and control of channels, on the wire.
pub(crate) const CHANNEL: HandlerId = HandlerId(10);

/// The name of a channel in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ChannelId {
    /// Where its buffer is.
    pub(super) home: PlaceId,
    /// Counts the channels made at `home`; never reused.
    pub(super) serial: u32,
}

/// What is said; see `docs/design/channels.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Head {
    /// To the home, with a value: its sender waits for the answer to this operation.
    Offer(u64),
    /// To the home, with a value for which the place had a slot.
    Item,
    /// To the home: room is wanted; at once, or it waits.
    Ask(u64, bool),
    /// To the home: a value is wanted; at once, or it waits.
    Want(u64, bool),
    /// To the home, with a value that arrived for nobody.
    PutBack,
    /// To the home: nobody waits for the operation any more.
    Cancel(u64),
    /// To the home: slots that were not used.
    ReturnSlots(u32),
    /// To the home: nothing shall be sent any more.
    Close,
    /// The value is in the buffer or received; with the number of slots that come along.
    Accepted(u64, u32),
    /// The channel is closed.
    Refused(u64),
    /// There is no room now.
    Full(u64),
    /// Room for the one who asked: it may send its value.
    Granted(u64),
    /// With the value that was wanted.
    Value(u64),
    /// The channel is closed and empty.
    Ended(u64),
    /// There is no value now.
    Empty(u64),
    /// The operation waited, and does so no more.
    Cancelled(u64),
    /// A value could not be written or read; in words.
    Faulty(u64, String),
    /// Slots are free again.
    Slots(u32),
    /// Unused slots are wanted back.
    Recall,
    /// The same, and the channel is closed.
    Closed,
    /// The place shall say when each value that has gone there is taken or put back.
    Settle,
    /// To the home: that is so.
    Settled,
    /// To the home of a rendezvous, as `Ask`, of an operation that is one of a choice.
    AskAs(u64, bool, u64),
    /// To the home of a rendezvous, as `Want`, of an operation that is one of a choice.
    WantAs(u64, bool, u64),
    /// To the home, with the value of one who was granted room.
    Chosen(u64),
    /// The receiver whom the one who chose has met is gone; it waits as before.
    Declined(u64),
    /// To the home of a rendezvous: the value that came for this operation was taken.
    Taken(u64),
    /// To the home of a rendezvous: it was not taken.
    NotTaken(u64),
    /// The region of a value ring: its first word, and how many it has.
    Ring(u64, u64),
    /// To the home: values sent by slots are in the ring from now on.
    RingUsed,
}

/// Most bytes of the head of an item with the name of its channel: two numbers of 32 bits and one byte that says which
/// head it is.
const ITEM_HEAD_BYTES_MAX: usize = 2 * 5 + 1;

/// What each item of one channel begins with, as bytes: it is written in one piece.
pub(super) struct ItemHead {
    bytes: [u8; ITEM_HEAD_BYTES_MAX],
    len: usize,
}

impl ItemHead {
    pub(super) fn new(channel: ChannelId) -> ItemHead {
        let mut bytes = [0; ITEM_HEAD_BYTES_MAX];
        let mut writer = Writer::new(&mut bytes);
        let written = writer.put_serde(&(channel, Head::Item));
        let len = writer.written();
        assert!(written.is_ok() && len <= ITEM_HEAD_BYTES_MAX, "the head of an item fits");
        ItemHead { bytes, len }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Head {
    /// Whether a home on a modelled chip pays for it: it looks at the buffer, or at those who wait.
    pub(super) fn is_charged(&self) -> bool {
        use Head::*;
        matches!(self, Offer(_) | Item | Ask(..) | AskAs(..) | Chosen(_) | Want(..) | WantAs(..) | PutBack)
    }
}
