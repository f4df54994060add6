//! Messages between places about channels.
//!
//! A [`ChannelMessage`] may be followed by a value as the wire writes it, and is read before the type of the value is
//! known. Invariant: an answer names the operation by the number that its place gave it.

use isles_protocol::PlaceId;
use isles_runtime::wire::Writer;
use isles_transport::HandlerId;
use serde::{Deserialize, Serialize};

/// The number of values and control of channels, on the wire.
pub(crate) const CHANNEL: HandlerId = HandlerId(10);

/// The name of a channel in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ChannelId {
    /// Place of the channel's buffer.
    pub(super) home: PlaceId,
    /// Counts the channels made at `home`; never reused.
    pub(super) serial: u32,
}

/// A message about a channel, without the value that may follow; see `docs/design/channels.md`.
///
/// `operation` is the number that the place of the task gave its operation; an answer names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChannelMessage {
    /// To the home, with a value: its sender waits for the answer.
    Offer { operation: u64 },
    /// To the home, with a value for which the place had a slot.
    Item,
    /// To the home: room is wanted; at once, or it waits.
    Ask { operation: u64, waits: bool },
    /// To the home: a value is wanted; at once, or it waits.
    Want { operation: u64, waits: bool },
    /// To the home, with a value that arrived for nobody.
    PutBack,
    /// To the home: nobody waits for the operation any more.
    Cancel { operation: u64 },
    /// To the home: slots that were not used.
    ReturnSlots { count: u32 },
    /// To the home: nothing shall be sent any more.
    Close,
    /// The value is in the buffer or received; `slots` more slots come along.
    Accepted { operation: u64, slots: u32 },
    /// The channel is closed.
    Refused { operation: u64 },
    /// There is no room now.
    Full { operation: u64 },
    /// Room for the one who asked: it may send its value.
    Granted { operation: u64 },
    /// With the value that was wanted.
    Value { operation: u64 },
    /// The channel is closed and empty.
    Ended { operation: u64 },
    /// There is no value now.
    Empty { operation: u64 },
    /// The operation waited, and does so no more.
    Cancelled { operation: u64 },
    /// A value could not be written or read, for the reason in `text`.
    Faulty { operation: u64, text: String },
    /// Slots are free again.
    Slots { count: u32 },
    /// Unused slots are wanted back.
    Recall,
    /// Unused slots are wanted back, and the channel is closed.
    Closed,
    /// The place must say when each value that has gone there is taken or put back.
    Settle,
    /// To the home: the answer to `Settle`.
    Settled,
    /// To the home of a rendezvous: an `Ask` of a branch of the `select!` with the number `choice`.
    AskSelect { operation: u64, waits: bool, choice: u64 },
    /// To the home of a rendezvous: a `Want` of a branch of the `select!` with the number `choice`.
    WantSelect { operation: u64, waits: bool, choice: u64 },
    /// To the home, with the value of one who was granted room.
    Chosen { operation: u64 },
    /// The receiver whom the one who chose has met is gone; it waits as before.
    Declined { operation: u64 },
    /// To the home of a rendezvous: the value that came for this operation was taken.
    Taken { operation: u64 },
    /// To the home of a rendezvous: it was not taken.
    NotTaken { operation: u64 },
    /// The region of a value ring: its first word, and how many it has.
    Ring { start: u64, words: u64 },
    /// To the home: values sent by slots are in the ring from now on.
    RingUsed,
}

/// Most bytes of the head of an item with the name of its channel: two numbers of 32 bits and one byte that says which
/// head it is.
const ITEM_HEAD_BYTES_MAX: usize = 2 * 5 + 1;

/// Header of each item of one channel, as bytes: it is written in one piece.
pub(super) struct ItemHeader {
    bytes: [u8; ITEM_HEAD_BYTES_MAX],
    len: usize,
}

impl ItemHeader {
    pub(super) fn new(channel: ChannelId) -> ItemHeader {
        let mut bytes = [0; ITEM_HEAD_BYTES_MAX];
        let mut writer = Writer::new(&mut bytes);
        let written = writer.put_serde(&(channel, ChannelMessage::Item));
        let len = writer.written();
        assert!(written.is_ok() && len <= ITEM_HEAD_BYTES_MAX, "the head of an item fits");
        ItemHeader { bytes, len }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl ChannelMessage {
    /// Returns `true` if a home on a modelled chip pays for the message: it reads the buffer, or the waiting
    /// operations.
    pub(super) fn is_charged(&self) -> bool {
        use ChannelMessage::*;
        matches!(
            self,
            Offer { .. }
                | Item
                | Ask { .. }
                | AskSelect { .. }
                | Chosen { .. }
                | Want { .. }
                | WantSelect { .. }
                | PutBack
        )
    }
}
