//! Accesses by message, if the origin cannot access a part itself.
//!
//! It checks nothing: its callers check ranges and epochs. Invariant: no message is longer than [`PIECE_BYTES_MAX`] and
//! its header.

use super::header::{HEAD_BYTES, MessageHeader, MessageKind, put_pieces};
use super::memory::Pieces;
use super::state::{PartLocation, WindowState};
use crate::table::service::Service;
use crate::window::table::WindowTable;
use isles_runtime::limits::PIECE_BYTES_MAX;
use isles_runtime::service::Encode;
use isles_runtime::wire::Writer;
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_transport::Region;
use std::ops::Range;
use std::rc::Rc;

/// Cuts a layout into pieces of one message each, with their ranges of the data.
fn split_by_message(layout: Pieces) -> impl Iterator<Item = (Pieces, Range<usize>)> {
    let Pieces { offset, block, stride, count } = layout;
    let pieces_at_once = (PIECE_BYTES_MAX / block.max(1)).max(1);
    let groups = if block == 0 { 0 } else { count.div_ceil(pieces_at_once) };
    (0..groups).flat_map(move |group| {
        let first = group * pieces_at_once;
        let count = pieces_at_once.min(count - first);
        let cuts = if count == 1 { block.div_ceil(PIECE_BYTES_MAX) } else { 1 };
        (0..cuts).map(move |index| {
            let skipped = index * PIECE_BYTES_MAX;
            let block = if cuts == 1 { block } else { PIECE_BYTES_MAX.min(block - skipped) };
            let data = first * layout.block + skipped;
            let layout = Pieces { offset: offset + first * stride + skipped, block, stride, count };
            (layout, data..data + block * count)
        })
    })
}

/// Sends the data of a put, and the notice of it.
///
/// # Errors
/// The target is dead.
pub(super) fn send_put(
    state: &Rc<WindowState>,
    target: u32,
    layout: Pieces,
    data: &[u8],
    notifies: bool,
) -> Result<()> {
    Local::with(|local| {
        let mut is_notified = false;
        for (piece, range) in split_by_message(layout) {
            let data = &data[range.clone()];
            let is_strided = piece.count > 1;
            let is_last = notifies && range.end == layout.block * layout.count && !is_strided;
            is_notified |= is_last;
            let kind = match (is_strided, is_last) {
                (true, _) => MessageKind::PutStrided,
                (false, true) => MessageKind::PutNotify,
                (false, false) => MessageKind::Put,
            };
            let head = MessageHeader { offset: piece.offset as u64, ..MessageHeader::new(state.id, kind) };
            state.send(local, target, head, &|writer| {
                if is_strided {
                    put_pieces(writer, piece);
                }
                writer.put_bytes(data);
                Ok(())
            })?;
        }
        if notifies && !is_notified {
            state.send(local, target, MessageHeader::new(state.id, MessageKind::Notice), &|_| Ok(()))?;
        }
        state.peers[target as usize].is_touched.set(true);
        Ok(())
    })
}

/// Sends the operands of an accumulate.
///
/// # Errors
/// The target is dead.
pub(super) fn send_accumulate(
    state: &Rc<WindowState>,
    target: u32,
    offset: usize,
    kinds: [u8; 8],
    operands: &[u8],
) -> Result<()> {
    Local::with(|local| {
        for (piece, range) in split_by_message(Pieces::contiguous(offset, operands.len())) {
            let head = MessageHeader {
                offset: piece.offset as u64,
                ..MessageHeader::new(state.id, MessageKind::Accumulate)
            };
            state.send(local, target, head, &|writer| {
                writer.put_bytes(&kinds);
                writer.put_bytes(&operands[range.clone()]);
                Ok(())
            })?;
        }
        state.peers[target as usize].is_touched.set(true);
        Ok(())
    })
}

/// Sends a request to `target` at once; returns the future of its answer.
///
/// # Errors
/// The target is dead, when the request is sent or before it answers.
pub(super) fn request(
    state: &Rc<WindowState>,
    target: u32,
    what: &'static str,
    head: MessageHeader,
    body: &Encode<'_>,
) -> impl Future<Output = Result<Vec<u8>>> + use<> {
    let sent = Local::with(|local| {
        // A server lives on after the owner's death.
        if state.servers.is_some() && local.is_dead(state.place(target)) {
            return Err(Error::dead(state.place(target)));
        }
        let open = WindowTable::of(local).open(state.server_of(target), what);
        let head = MessageHeader { token: open.token, ..head };
        state.send(local, target, head, body).map(|()| open)
    });
    async move { sent?.await }
}

/// Reads the pieces of `layout` of the part of `target`.
///
/// # Errors
/// The target is dead.
pub(super) async fn ask_for(
    state: &Rc<WindowState>,
    target: u32,
    layout: Pieces,
    into: &mut [u8],
) -> Result<()> {
    for (piece, range) in split_by_message(layout) {
        let head =
            MessageHeader { offset: piece.offset as u64, ..MessageHeader::new(state.id, MessageKind::Get) };
        let put = |writer: &mut Writer<'_>| {
            put_pieces(writer, piece);
            Ok(())
        };
        let answer = request(state, target, "a get from", head, &put).await?;
        let into = &mut into[range];
        if answer.len() != into.len() {
            return Err(malformed(state, target));
        }
        into.copy_from_slice(&answer);
    }
    Ok(())
}

/// Returns the error of an answer that no valid place sends.
pub(super) fn malformed(state: &WindowState, target: u32) -> Error {
    let text = format!("the answer of {} to an access of a window is of another length", state.place(target));
    Error::new(ErrorKind::Undecodable, text)
}

/// Finds the location of the part of `target`, unless it is known.
///
/// # Errors
/// The target is dead.
pub(super) async fn locate(state: &Rc<WindowState>, target: u32) -> Result<()> {
    let location = &state.peers[target as usize].location;
    if !matches!(location.get(), PartLocation::Unknown) || target == state.rank {
        return Ok(());
    }
    let place = state.place(target);
    let is_near = Local::with(|local| {
        let is_far = local.endpoint().other_hosts().is_some_and(|hosts| hosts.is_far(place));
        !is_far && local.endpoint().shared_memory().is_some()
    });
    if !is_near {
        location.set(PartLocation::Remote);
        return Ok(());
    }
    let head = MessageHeader::new(state.id, MessageKind::Locate);
    let answer = request(state, target, "where the part lies of", head, &|_| Ok(())).await?;
    let region = match bytemuck::try_pod_read_unaligned::<[u64; 2]>(&answer) {
        Ok([start, words]) => Some(Region { place, start: u64::from_le(start), words: u64::from_le(words) }),
        Err(_) if answer.is_empty() => None,
        Err(_) => return Err(malformed(state, target)),
    };
    // Another task may have set it meanwhile: to the same location.
    location.set(Local::with(|local| {
        let needed = super::memory::words_of(state.bytes_at(target));
        let view = |region| local.endpoint().shared_memory()?.view(region).map(<[_]>::len);
        match region {
            Some(region) if view(region).is_some_and(|words| words as u64 >= needed) => {
                PartLocation::Mapped(region)
            }
            _ => PartLocation::Remote,
        }
    }));
    Ok(())
}

const _: () = assert!(PIECE_BYTES_MAX > HEAD_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_the_pieces_in_their_order() {
        for layout in [
            Pieces::contiguous(3, 3 * PIECE_BYTES_MAX + 5),
            Pieces { offset: 8, block: 100, stride: 300, count: 2_000 },
            Pieces { offset: 0, block: PIECE_BYTES_MAX + 1, stride: 2 * PIECE_BYTES_MAX, count: 3 },
            Pieces { offset: 0, block: 0, stride: 1, count: 3 },
            Pieces { offset: 0, block: 4, stride: 8, count: 0 },
        ] {
            let mut expected = Vec::new();
            for piece in 0..layout.count {
                let first = layout.offset + piece * layout.stride;
                expected.extend(first..first + layout.block);
            }
            let (mut bytes, mut data_end) = (Vec::new(), 0);
            for (piece, range) in split_by_message(layout) {
                assert!(range.len() <= PIECE_BYTES_MAX && range.len() == piece.bytes().unwrap());
                assert_eq!(range.start, data_end);
                data_end = range.end;
                for index in 0..piece.count {
                    let first = piece.offset + index * piece.stride;
                    bytes.extend(first..first + piece.block);
                }
            }
            assert_eq!(bytes, expected);
        }
    }
}
