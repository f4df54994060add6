//! The headers of messages between two members: 24 bytes, as those of collectives.

use isles_protocol::team::{ElementType, TeamId};
use isles_runtime::wire::{DecodeError, Reader, Writer};
use isles_transport::{HandlerId, LentSlice};

/// Number of the message to a member, and its control.
pub(crate) const POINT_TO_POINT: HandlerId = HandlerId(11);

/// The kind of a message between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageKind {
    /// An eager message; its data follow.
    Eager,
    /// Requests to send the long message of this number; its [`LongMessage`] follows (RTS).
    RequestToSend,
    /// Acknowledges this number of received messages.
    Acknowledged,
    /// Asks for the long message of this number; the number of the transfer follows (CTS).
    ClearToSend,
    /// A chunk of the transfer of this number; its data follow.
    Chunk,
    /// One chunk of the message of this number was received; the number of the transfer follows.
    Taken,
    /// The receiver gives up the transfer whose number follows, of the message of this number.
    Stop,
    /// The message of this number is withdrawn.
    Withdrawn,
    /// The receiver has read the message of this number in the sender's memory.
    Read,
}

impl MessageKind {
    const ALL: [MessageKind; 9] = [
        MessageKind::Eager,
        MessageKind::RequestToSend,
        MessageKind::Acknowledged,
        MessageKind::ClearToSend,
        MessageKind::Chunk,
        MessageKind::Taken,
        MessageKind::Stop,
        MessageKind::Withdrawn,
        MessageKind::Read,
    ];
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) team: TeamId,
    /// The program's tag, or one of Isles' own above [`TAG_BITS`].
    pub(super) tag: u64,
    pub(super) kind: MessageKind,
    /// The type of a value, or of a slice's elements; none for a control message.
    pub(super) element: ElementType,
    /// Depends on the kind: see [`MessageKind`].
    pub(super) number: u64,
}

/// Number of bits in a tag of a program.
pub(super) const TAG_BITS: u32 = u32::BITS;

/// Bit at which the kind begins in its word.
const KIND_SHIFT: u32 = 56;

/// Number of bits in a number; numbers wrap.
const NUMBER_BITS: u32 = 40;

/// Length of the header in bytes.
pub(super) const HEAD_BYTES: usize = 24;

impl MessageHeader {
    /// Returns the header of a control message between the sender and receiver of a long message, or of an
    /// acknowledgement.
    pub(super) fn control(kind: MessageKind, number: u64) -> MessageHeader {
        MessageHeader { team: TeamId::WORLD, tag: 0, kind, element: ElementType::NONE, number }
    }

    #[inline]
    fn words(&self) -> [u64; HEAD_BYTES / 8] {
        let kind_and_tag = self.tag | (self.kind as u64) << KIND_SHIFT;
        let number_and_element = self.number & number_mask() | self.element.bits() << NUMBER_BITS;
        [self.team.bits(), kind_and_tag, number_and_element].map(u64::to_le)
    }

    #[inline]
    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.put_bytes(bytemuck::bytes_of(&self.words()));
    }

    /// Returns the payload of `message` if it begins with exactly this header.
    #[inline]
    pub(super) fn open<'m>(&self, message: &'m [u8]) -> Option<&'m [u8]> {
        let (head, payload) = message.split_first_chunk::<HEAD_BYTES>()?;
        (head == bytemuck::bytes_of(&self.words())).then_some(payload)
    }

    /// # Errors
    /// The bytes are too few, or name no kind.
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<MessageHeader, DecodeError> {
        let [team, kind_and_tag, number_and_element] =
            reader.take_pod::<[u64; HEAD_BYTES / 8]>()?.map(u64::from_le);
        let kind = MessageKind::ALL.get((kind_and_tag >> KIND_SHIFT) as usize);
        Ok(MessageHeader {
            team: TeamId::of_bits(team),
            tag: kind_and_tag & ((1 << KIND_SHIFT) - 1),
            kind: *kind.ok_or(DecodeError::Malformed(postcard::Error::DeserializeBadEncoding))?,
            element: ElementType::of_bits(number_and_element >> NUMBER_BITS),
            number: number_and_element & number_mask(),
        })
    }
}

/// Description of the message in a request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongMessage {
    /// Its length.
    pub(super) bytes: u64,
    /// The slice that its receiver may read, if its sender lends it.
    pub(super) loan: Option<LentSlice>,
}

impl LongMessage {
    /// Length on the wire.
    pub(super) const BYTES: usize = 5 * size_of::<u64>();

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        let loan = self.loan.unwrap_or(LentSlice { process: 0, address: 0, guard: 0, token: 0 });
        let words = [self.bytes, loan.process, loan.address, loan.guard, loan.token];
        words.into_iter().for_each(|word| writer.put_u64(word));
    }

    /// # Errors
    /// The bytes are too few.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<LongMessage, DecodeError> {
        let bytes = reader.take_u64()?;
        let (process, address) = (reader.take_u64()?, reader.take_u64()?);
        let (guard, token) = (reader.take_u64()?, reader.take_u64()?);
        let loan = (token != 0).then_some(LentSlice { process, address, guard, token });
        Ok(LongMessage { bytes, loan })
    }
}

/// Returns the largest number: all bits set.
pub(super) const fn number_mask() -> u64 {
    (1 << NUMBER_BITS) - 1
}
