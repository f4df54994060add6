//! Checks of accesses to a window: the question to the owner before each access, and the report of a conflict.

use crate::window::state::WindowState;
use isles_protocol::PlaceId;
use isles_protocol::window::{AccessKind, Conflict, EpochTag, WindowAccess};
use serde::{Deserialize, Serialize};

/// Values of [`AccessRecord::kind`], on the wire.
pub(in crate::window) const GET: u8 = 0;
pub(in crate::window) const PUT: u8 = 1;
pub(in crate::window) const UPDATE: u8 = 2;

/// An access, as its origin reports it to the owner of the part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::window) struct AccessRecord {
    /// [`GET`], [`PUT`] or [`UPDATE`].
    pub(in crate::window) kind: u8,
    /// 0 started, 1 locked, 2 between fences.
    pub(in crate::window) epoch: u8,
    /// Number of fences before the access.
    pub(in crate::window) fences: u64,
    /// First element, elements in a piece, distance from one piece to the next, and number of pieces.
    pub(in crate::window) first: u64,
    pub(in crate::window) block: u64,
    pub(in crate::window) stride: u64,
    pub(in crate::window) count: u64,
    pub(in crate::window) line: String,
}

/// Largest number of pieces that an owner checks one by one; more are treated as one range from the first to the last.
const PIECES_MAX: u64 = 1 << 16;

/// Records an access of `origin` to the part here; returns a description of its conflict with an earlier one, if any.
pub(in crate::window) fn note(state: &WindowState, origin: PlaceId, claim: AccessRecord) -> Option<String> {
    let kind = match claim.kind {
        GET => AccessKind::Get,
        PUT => AccessKind::Put,
        _ => AccessKind::Update,
    };
    let epoch = match claim.epoch {
        0 => EpochTag::Started,
        1 => EpochTag::Locked,
        _ => EpochTag::Fence,
    };
    let piece = |index: u64| {
        let start = claim.first.saturating_add(index.saturating_mul(claim.stride));
        start..start.saturating_add(claim.block)
    };
    let elements = match claim.count {
        0 => Vec::new(),
        count if count <= PIECES_MAX && claim.stride >= claim.block => (0..count).map(piece).collect(),
        count => std::iter::once(claim.first..piece(count - 1).end).collect(),
    };
    let access = WindowAccess { origin, kind, epoch, fences: claim.fences, elements, line: claim.line };
    let conflict = state.log.borrow_mut().note(access).err()?;
    let Conflict { first, second, overlap } = *conflict;
    Some(format!(
        "{} and {} both access elements {} to {} of the part of rank {} in one epoch",
        describe_access(&second),
        describe_access(&first),
        overlap.start,
        overlap.end - 1,
        state.rank
    ))
}

fn describe_access(access: &WindowAccess<String>) -> String {
    let what = match access.kind {
        AccessKind::Get => "a get",
        AccessKind::Put => "a put",
        AccessKind::Update => "an update",
    };
    format!("{what} of {} at {}", access.origin, access.line)
}
