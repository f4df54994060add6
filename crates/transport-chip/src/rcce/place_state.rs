//! What one place keeps of its meetings.
//!
//! Plain state; who may meet whom is decided in the module above. Invariant: the bytes of a message are in one place
//! only: with the sender until the last chunk is written, in that chunk from then on.

use crate::message::{MessageContent, ReceivedMessage};
use isles_chip::kernel::Key;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, HandlerId, PlaceId};

/// A message of which a chunk is to be written.
pub(super) struct PartialSend {
    pub(super) target: PlaceId,
    pub(super) class: Class,
    pub(super) handler: HandlerId,
    pub(super) load: MessageContent,
    /// Lines that are not written yet.
    pub(super) left: u32,
}

/// A message whose last written chunk is not answered, as the sender knows.
pub(super) struct UnfinishedSend {
    pub(super) target: PlaceId,
    pub(super) class: Class,
    /// When the answer has come, or will.
    pub(super) answer: Option<Picoseconds>,
    /// What is to be written then.
    sending: Option<PartialSend>,
}

/// A chunk as the receiver finds it; the last one brings the message.
pub(super) struct Chunk {
    pub(super) key: Key,
    pub(super) source: PlaceId,
    pub(super) lines: u32,
    /// Bytes of all of its message.
    pub(super) of: usize,
    pub(super) message: Option<(Class, HandlerId, MessageContent)>,
}

impl PartialSend {
    /// What the receiver finds of a chunk of `lines` lines, and what stays here.
    pub(super) fn split(self, key: Key, source: PlaceId, lines: u32) -> (Chunk, UnfinishedSend) {
        let (target, class, of) = (self.target, self.class, self.load.len());
        if self.left > 0 {
            let chunk = Chunk { key, source, lines, of, message: None };
            return (chunk, UnfinishedSend { target, class, answer: None, sending: Some(self) });
        }
        let message = Some((class, self.handler, self.load));
        (
            Chunk { key, source, lines, of, message },
            UnfinishedSend { target, class, answer: None, sending: None },
        )
    }
}

impl UnfinishedSend {
    /// What is to be written after the answer.
    pub(super) fn going_on(self) -> Option<PartialSend> {
        self.sending
    }

    /// Whether the receiver has answered for all and given the registers back; the sender need only see it.
    pub(super) fn is_over(&self) -> bool {
        self.sending.is_none() && self.answer.is_some()
    }
}

impl Chunk {
    /// The message that it brings, if it is the last.
    pub(super) fn open(self) -> Option<ReceivedMessage> {
        let (class, handler, load) = self.message?;
        Some(ReceivedMessage { source: self.source, class, handler, load, arrival: self.key.time() })
    }
}

/// See the file header.
#[derive(Default)]
pub(super) struct PlaceState {
    /// Whether its register is taken, by itself or by who sends to it.
    pub(super) taken: bool,
    /// Since when it is not, and who gave it back: that one knows at once.
    pub(super) free: (Picoseconds, Option<PlaceId>),
    pub(super) sending: Option<UnfinishedSend>,
    /// Whether it has taken a chunk of a message and the last one is to come.
    pub(super) receiving: bool,
    /// The chunk that waits for it.
    pub(super) chunk: Option<Chunk>,
}

impl PlaceState {
    /// Whether it is in a meeting, as it knows.
    pub(super) fn is_in_rendezvous(&self) -> bool {
        self.sending.is_some() || self.receiving
    }

    /// Whether the end of a message of `source` waits here.
    pub(super) fn holds_end_from(&self, source: PlaceId) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.source == source && chunk.message.is_some())
    }
}
