//! Messages between places about channels.
//!
//! A [`ChannelMessage`] may be followed by an encoded value, and is read before the type of the value is known.
//! Invariant: an answer names the operation by the number that its place gave it.

use isles_protocol::PlaceId;
use isles_runtime::wire::Writer;
use isles_transport::HandlerId;
use serde::{Deserialize, Serialize};

/// Handler of all messages about channels.
pub(crate) const CHANNEL: HandlerId = HandlerId(10);

/// Id of a channel, unique in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ChannelId {
    /// Place of the buffer.
    pub(super) home: PlaceId,
    /// Serial number among the channels made at `home`; never reused.
    pub(super) serial: u32,
}

/// A message about a channel, without the value that may follow; see `docs/design/channels.md`.
///
/// `operation` is the number that the place of the task gave its operation; an answer names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChannelMessage {
    /// To the home, with a value whose sender waits for the answer.
    Offer { operation: u64 },
    /// To the home, with a value for which the place had a slot.
    Item,
    /// To the home: asks for room; without any, the operation waits if `waits`.
    Ask { operation: u64, waits: bool },
    /// To the home: asks for a value; without any, the operation waits if `waits`.
    Want { operation: u64, waits: bool },
    /// To the home, with a value that no task of the place took.
    PutBack,
    /// To the home: the operation was given up.
    Cancel { operation: u64 },
    /// To the home: returns unused slots.
    ReturnSlots { count: u32 },
    /// To the home: closes the channel.
    Close,
    /// The value is in the buffer or received; the place gets `slots` further slots.
    Accepted { operation: u64, slots: u32 },
    /// The channel is closed.
    Refused { operation: u64 },
    /// There is no room now.
    Full { operation: u64 },
    /// Room is granted: the operation may send its value.
    Granted { operation: u64 },
    /// With the value that the operation asked for.
    Value { operation: u64 },
    /// The channel is closed and empty.
    Ended { operation: u64 },
    /// There is no value now.
    Empty { operation: u64 },
    /// The operation no longer waits.
    Cancelled { operation: u64 },
    /// A value could not be encoded or decoded, for the reason in `text`.
    Faulty { operation: u64, text: String },
    /// Slots are free again.
    Slots { count: u32 },
    /// The place must return its unused slots.
    Recall,
    /// As `Recall`, and the channel is closed.
    Closed,
    /// The place must report when each value sent to it has been taken or put back.
    Settle,
    /// To the home: the answer to `Settle`.
    Settled,
    /// To the home of a rendezvous: an `Ask` of a branch of the `select!` with the number `choice`.
    AskSelect { operation: u64, waits: bool, choice: u64 },
    /// To the home of a rendezvous: a `Want` of a branch of the `select!` with the number `choice`.
    WantSelect { operation: u64, waits: bool, choice: u64 },
    /// To the home, with the value of an operation that was granted room.
    Chosen { operation: u64 },
    /// The receiver granted to the sender has left; the sender waits as before.
    Declined { operation: u64 },
    /// To the home of a rendezvous: the value sent for this operation was taken.
    Taken { operation: u64 },
    /// To the home of a rendezvous: the value sent for this operation was not taken.
    NotTaken { operation: u64 },
    /// The region of a value ring: its first word and its length in words.
    Ring { start: u64, words: u64 },
    /// To the home: values sent by slots go through the ring from now on.
    RingUsed,
}

/// Maximum bytes of a channel's id and the head of an item: two 32-bit numbers and one byte for the variant.
const ITEM_HEAD_BYTES_MAX: usize = 2 * 5 + 1;

/// The encoded header of each item of one channel, written as one slice.
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
    /// Returns `true` if a home on a modelled chip is charged for the message, because it accesses the buffer or the
    /// waiting operations.
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
