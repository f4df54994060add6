//! The headers of messages of windows: 24 bytes, as those of collectives.

use super::memory::Pieces;
use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedKey;
use isles_protocol::ordered_keys;
use isles_runtime::wire::{DecodeError, Reader, Writer};
use isles_transport::HandlerId;
use serde::{Deserialize, Serialize};

/// Number of the message with an access to a part of a window, its answer, or its control.
pub(crate) const WINDOW: HandlerId = HandlerId(14);

/// The id of a window in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct WindowId {
    /// The place that made it.
    pub(super) home: PlaceId,
    /// Number of the window among those that `home` made.
    pub(super) serial: u64,
}

ordered_keys! {
    WindowId: 96,
        |id| (id.home, id.serial).to_number(),
        |number| {
            let (home, serial) = OrderedKey::from_number(number);
            WindowId { home, serial }
        };
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageKind {
    /// Data for one piece; they follow.
    Put,
    /// The same, with a notice.
    PutNotify,
    /// Notice that data have arrived.
    Notice,
    /// Data for several pieces: block, stride, data.
    PutStrided,
    /// Request for several pieces: block, stride, count.
    Get,
    /// Operands for consecutive elements: kinds, operands.
    Accumulate,
    /// Request to add: kinds, operand.
    FetchAdd,
    /// Request to compare and exchange: kinds, expected, new.
    CompareExchange,
    /// Request that is answered once everything before it is done.
    Flush,
    /// Request for the location of the part.
    Locate,
    /// Request for the lock, exclusive or shared.
    LockExclusive,
    LockShared,
    /// Gives the lock back; answered if the token says so.
    Unlock,
    /// The receiver may access the part of the sender.
    Post,
    /// The sender has ended its epoch of accesses.
    Complete,
    /// Request to record an access, which follows.
    Check,
    /// Answer to the request with this token; it follows.
    Reply,
    /// Request to serve the part that follows.
    Serve,
    /// Ends the service of the part, and gives back its range, which follows.
    EndServe,
    /// Notice by the member with the rank `offset`, from the server of the part.
    ServedNotice,
    /// The same for a complete.
    ServedComplete,
}

impl MessageKind {
    const ALL: [MessageKind; 21] = [
        MessageKind::Put,
        MessageKind::PutNotify,
        MessageKind::Notice,
        MessageKind::PutStrided,
        MessageKind::Get,
        MessageKind::Accumulate,
        MessageKind::FetchAdd,
        MessageKind::CompareExchange,
        MessageKind::Flush,
        MessageKind::Locate,
        MessageKind::LockExclusive,
        MessageKind::LockShared,
        MessageKind::Unlock,
        MessageKind::Post,
        MessageKind::Complete,
        MessageKind::Check,
        MessageKind::Reply,
        MessageKind::Serve,
        MessageKind::EndServe,
        MessageKind::ServedNotice,
        MessageKind::ServedComplete,
    ];
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) window: WindowId,
    pub(super) kind: MessageKind,
    /// Number of the sender's request that is to be answered; 0 for none.
    pub(super) token: u32,
    /// First byte of the access; a rank in messages that a server forwards.
    pub(super) offset: u64,
}

/// Length of the header in bytes.
pub(super) const HEAD_BYTES: usize = 24;

/// Bit at which the kind begins in its word.
const KIND_SHIFT: u32 = 56;

impl MessageHeader {
    pub(super) fn new(window: WindowId, kind: MessageKind) -> MessageHeader {
        MessageHeader { window, kind, token: 0, offset: 0 }
    }

    #[inline]
    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        let kind_and_serial = (self.kind as u64) << KIND_SHIFT | self.window.serial;
        let home_and_token = u64::from(self.window.home.0) << u32::BITS | u64::from(self.token);
        let words = [kind_and_serial, home_and_token, self.offset].map(u64::to_le);
        writer.put_bytes(bytemuck::bytes_of(&words));
    }

    /// # Errors
    /// The bytes are too few, or name no kind.
    #[inline]
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<MessageHeader, DecodeError> {
        let [kind_and_serial, home_and_token, offset] =
            reader.take_pod::<[u64; HEAD_BYTES / 8]>()?.map(u64::from_le);
        let kind = MessageKind::ALL.get((kind_and_serial >> KIND_SHIFT) as usize);
        Ok(MessageHeader {
            window: WindowId {
                home: PlaceId((home_and_token >> u32::BITS) as u32),
                serial: kind_and_serial & ((1 << KIND_SHIFT) - 1),
            },
            kind: *kind.ok_or(DecodeError::Malformed(postcard::Error::DeserializeBadEncoding))?,
            token: home_and_token as u32,
            offset,
        })
    }
}

/// Writes the pieces of a layout without the first byte, which is in the header.
pub(super) fn put_pieces(writer: &mut Writer<'_>, layout: Pieces) {
    [layout.block, layout.stride, layout.count].into_iter().for_each(|number| writer.put_u64(number as u64));
}

/// Reads the pieces that [`put_pieces`] wrote.
///
/// # Errors
/// The bytes are too few, or more than any memory has.
pub(super) fn take_pieces(offset: u64, reader: &mut Reader<'_>) -> Result<Pieces, DecodeError> {
    let mut next = || size_of_number(reader.take_u64()?);
    let (block, stride, count) = (next()?, next()?, next()?);
    Ok(Pieces { offset: size_of_number(offset)?, block, stride, count })
}

/// # Errors
/// More bytes than any memory has.
pub(super) fn size_of_number(number: u64) -> Result<usize, DecodeError> {
    usize::try_from(number).map_err(|_| DecodeError::LengthOutOfRange { len: number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        for kind in MessageKind::ALL {
            let window = WindowId { home: PlaceId(7), serial: (1 << KIND_SHIFT) - 2 };
            let head = MessageHeader { window, kind, token: u32::MAX, offset: 1 << 40 };
            let mut bytes = [0; HEAD_BYTES];
            head.encode(&mut Writer::new(&mut bytes));
            assert_eq!(MessageHeader::decode(&mut Reader::new(&bytes)), Ok(head));
        }
        let no_kind = [0xff; HEAD_BYTES];
        assert!(MessageHeader::decode(&mut Reader::new(&no_kind)).is_err());
        assert!(MessageHeader::decode(&mut Reader::new(&no_kind[..8])).is_err());
    }
}
