//! Parts of windows in memory of a modelled chip, and the places that serve them.
//!
//! A part lies in a message buffer or in memory behind a controller. The server, a place on the other core of the
//! owner's tile, handles all accesses, locks and flushes; the owner reads and writes its part itself. Invariant: only
//! the server changes a part for others, so two updates of one element never meet.

use crate::shared::{IncoherentMemory, MemoryKind, MemoryRange, incoherent_memory};
use crate::table::service::Service;
use crate::window::PartLengths;
use crate::window::header::WINDOW;
use crate::window::header::{MessageHeader, MessageKind, WindowId};
use crate::window::memory::{self, Pieces, WORD_BYTES, words_of};
use crate::window::number::{Combine, NumberKind};
use crate::window::state::WindowState;
use crate::window::table::{WindowTable, accumulate_bytes};
use isles_protocol::PlaceId;
use isles_runtime::service::{Members, Refused};
use isles_runtime::wire::Reader;
use isles_runtime::{Error, ErrorKind, Local, Result};
use isles_transport::Class;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

/// Memory of the parts of a served window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServedMemory {
    /// Memory that all cores share, behind the controller of the owner.
    Shared,
    /// Lines of the owner's message buffer that are kept for windows (`--window-lines`).
    Buffer,
}

/// The part of one member in memory of a modelled chip.
pub(in crate::window) struct ServedPart {
    memory: Rc<dyn IncoherentMemory>,
    pub(in crate::window) range: MemoryRange,
}

impl ServedPart {
    /// Takes zeroed memory for a part of this place; `None` if there is no room.
    pub(in crate::window) fn take(local: &Local, kind: ServedMemory, bytes: u64) -> Option<ServedPart> {
        let memory = Rc::clone(incoherent_memory(local)?);
        let bytes = words_of(bytes).max(1) * WORD_BYTES as u64;
        let range = match kind {
            ServedMemory::Shared => memory.take(MemoryKind::Through, bytes)?,
            ServedMemory::Buffer => memory.take_buffer(bytes)?,
        };
        Some(ServedPart { memory, range })
    }

    /// Writes the pieces of `layout`, which lies within the part, through to memory.
    pub(in crate::window) fn store(&self, layout: Pieces, data: &[u8]) {
        for (offset, piece) in layout.offsets().zip(data.chunks_exact(layout.block.max(1))) {
            self.memory.write(&self.range, offset as u64, piece);
        }
        self.memory.drain(&self.range);
    }

    /// Reads the pieces of `layout`, which lies within the part, from memory.
    pub(in crate::window) fn load(&self, layout: Pieces, into: &mut [u8]) {
        self.memory.invalidate();
        for (offset, piece) in layout.offsets().zip(into.chunks_exact_mut(layout.block.max(1))) {
            self.memory.read(&self.range, offset as u64, piece);
        }
    }

    /// Applies `change` to the words around the `len` bytes from `offset` on; it also gets the offset of these bytes.
    pub(in crate::window) fn update<R>(
        &self,
        offset: usize,
        len: usize,
        change: impl FnOnce(&[AtomicU64], usize) -> R,
    ) -> R {
        let first = offset / WORD_BYTES * WORD_BYTES;
        let mut bytes = vec![0; (offset + len).next_multiple_of(WORD_BYTES) - first];
        self.load(Pieces::contiguous(first, bytes.len()), &mut bytes);
        let words: Vec<AtomicU64> = (0..bytes.len() / WORD_BYTES).map(|_| AtomicU64::default()).collect();
        memory::store(&words, Pieces::contiguous(0, bytes.len()), &bytes);
        let result = change(&words, offset - first);
        let changed = Pieces::contiguous(offset - first, len);
        memory::load(&words, changed, &mut bytes[..len]);
        self.store(Pieces::contiguous(offset, len), &bytes[..len]);
        result
    }

    /// Combines the numbers from byte `offset` on with operands.
    pub(in crate::window) fn accumulate(
        &self,
        offset: usize,
        kind: NumberKind,
        how: Combine,
        operands: &[u8],
    ) {
        self.update(offset, operands.len(), |words, within| {
            accumulate_bytes(words, within, kind, how, operands)
        });
    }

    pub(in crate::window) fn give_back(&self) {
        self.memory.give_back_buffer(&self.range);
    }
}

/// Returns the server of each rank: a place on the member's tile that is no member itself and serves only it. `None` if
/// the machine models no such memory.
///
/// # Errors
/// A member has no such place.
pub(in crate::window) fn servers(local: &Local, members: &Members) -> Result<Option<Vec<PlaceId>>> {
    let memory = incoherent_memory(local).filter(|memory| memory.controllers() > 0);
    let Some(memory) = memory else { return Ok(None) };
    let others = (0..local.places()).map(PlaceId).filter(|place| members.rank_of(*place).is_none());
    let mut free: Vec<(u32, PlaceId)> = others.map(|place| (memory.tile(place), place)).collect();
    let server = |rank| {
        let (place, tile) = (members.member(rank), memory.tile(members.member(rank)));
        let found = free.iter().position(|(other, _)| *other == tile);
        found.map(|index| free.remove(index).1).ok_or_else(|| {
            let text = format!(
                "a served window with {place}, but no place on its tile could serve it; allowed: members \
                 that each share a tile with a place outside the team"
            );
            Error::new(ErrorKind::Misused, text)
        })
    };
    (0..members.len()).map(server).collect::<Result<_>>().map(Some)
}

/// A request to serve a part, with everything that a server must know about it.
#[derive(Serialize, Deserialize)]
pub(in crate::window) struct ServeRequest {
    pub(in crate::window) members: Members,
    pub(in crate::window) lens: PartLengths,
    pub(in crate::window) element_bytes: usize,
    pub(in crate::window) servers: Vec<PlaceId>,
    pub(in crate::window) rank: u32,
    pub(in crate::window) range: MemoryRange,
}

impl ServeRequest {
    /// Returns `true` if `here` can serve the part: it is the server, and the owner has taken a range of this length.
    fn is_sound(&self, here: PlaceId, memory: &dyn IncoherentMemory) -> bool {
        let rank = self.rank as usize;
        let bytes = self.lens.of(rank).checked_mul(self.element_bytes as u64);
        let is_long_enough = bytes.is_some_and(|bytes| bytes <= self.range.bytes);
        self.servers.get(rank) == Some(&here)
            && self.servers.len() == self.members.len()
            && is_long_enough
            && memory.is_taken_by(self.members.member(rank), &self.range)
    }
}

/// Begins to serve the part that `reader` describes.
///
/// # Errors
/// This place cannot serve the part, or `source` is not the maker of the window.
pub(in crate::window) fn serve(
    local: &Local,
    source: PlaceId,
    id: WindowId,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    let request: ServeRequest = reader.take_serde()?;
    let memory = incoherent_memory(local).filter(|memory| request.is_sound(local.here(), &***memory));
    let memory = memory.filter(|_| source == id.home);
    let memory =
        memory.ok_or_else(|| Refused::of_service("it asks a place to serve a window that cannot"))?;
    let part = ServedPart { memory: Rc::clone(memory), range: request.range };
    WindowTable::of(local).begin_service(WindowState::server(local, id, request, part))
}

/// Ends the service of the part of `source` and gives its range back, even if the service has not begun.
///
/// # Errors
/// `source` does not own the part, or has not taken the range.
pub(in crate::window) fn end_serve(
    local: &Local,
    source: PlaceId,
    id: WindowId,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    let range: MemoryRange = reader.take_serde()?;
    let table = WindowTable::of(local);
    let is_other =
        |state: &WindowState| state.place(state.rank) != source || state.served_range() != Some(range);
    let memory = incoherent_memory(local).filter(|memory| memory.is_taken_by(source, &range));
    let memory = memory.filter(|_| !table.served(id).is_some_and(|state| is_other(&state)));
    let memory =
        memory.ok_or_else(|| Refused::of_service("it ends the service of a part that is not its own"))?;
    table.end_service(id);
    memory.give_back_buffer(&range);
    Ok(())
}

/// Forwards to the owner of a served part the notice or complete of the member with `rank`.
pub(in crate::window) fn forward(local: &Local, state: &WindowState, kind: MessageKind, rank: u32) {
    let kind = match kind {
        MessageKind::Complete => MessageKind::ServedComplete,
        _ => MessageKind::ServedNotice,
    };
    let head = MessageHeader { offset: u64::from(rank), ..MessageHeader::new(state.id, kind) };
    // Ignored by a dead owner.
    let _ = local.send(state.place(state.rank), Class::Control, WINDOW, |writer| {
        head.encode(writer);
        Ok(())
    });
}
