//! The order of the collectives of a team: one member's count, and what it knows of the others.
//!
//! All members call the same collectives in the same order, so counts agree without being sent. A message of another
//! collective with the same number shows that two members are apart. Invariant: for each of the last [`KNOWN`] numbers
//! at most one tag is known, and the first report of it stays.

use super::tag::{CollectiveKind, CollectiveTag, ElementType};
use crate::PlaceId;
use std::cell::Cell;

/// Number of successive collectives that do not wait for all members, after which the team waits for all.
pub const AHEAD_MAX: u32 = 16;

/// Number of collectives that are compared: more than one member can be ahead of another.
const KNOWN: usize = 32;

const _: () = assert!(KNOWN as u32 > AHEAD_MAX + 1 && (1 << 24) % KNOWN == 0);

/// A report that a place is in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberReport {
    /// The place.
    pub place: PlaceId,
    /// The collective.
    pub tag: CollectiveTag,
}

/// Two members of a team that are in different collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The member whose collective was known first.
    pub known: MemberReport,
    /// The other member.
    pub other: MemberReport,
}

/// One member's count of the collectives of its team, and the reports of others about them.
///
/// Its fields are cells, because each step of a short collective reads them.
#[derive(Clone, Debug)]
pub struct CollectiveOrder {
    here: PlaceId,
    /// Number of collectives begun so far.
    sequence: Cell<u32>,
    /// Number of collectives since the last one that waited for all members.
    unsynchronized: Cell<u32>,
    /// The collective that is in progress, or was last.
    tag: Cell<CollectiveTag>,
    /// Reports about the last collectives, and about those that others have begun before this member, by their numbers.
    known: [Cell<MemberReport>; KNOWN],
}

impl CollectiveOrder {
    /// Makes the order of a team in which the member at `here` has begun nothing.
    pub fn new(here: PlaceId) -> CollectiveOrder {
        let nothing = MemberReport { place: PlaceId(0), tag: CollectiveTag::NONE };
        CollectiveOrder {
            here,
            sequence: Cell::new(0),
            unsynchronized: Cell::new(0),
            tag: Cell::new(CollectiveTag::new(0, CollectiveKind::Barrier, 0, ElementType::NONE)),
            known: std::array::from_fn(|_| Cell::new(nothing)),
        }
    }

    /// Returns the collective that is in progress here, or was last.
    #[inline]
    pub fn tag(&self) -> CollectiveTag {
        self.tag.get()
    }

    /// Returns the number of collectives begun here, modulo 2^32.
    #[inline]
    pub fn sequence(&self) -> u32 {
        self.sequence.get()
    }

    /// Returns `true` if `tag` belongs to a collective that this member has not begun.
    pub fn is_ahead(&self, tag: CollectiveTag) -> bool {
        tag.is_after(self.sequence.get())
    }

    /// Returns `true` if members may be apart: there were collectives since all last waited for each other.
    pub fn may_be_apart(&self) -> bool {
        self.unsynchronized.get() > 0
    }

    /// Begins the next collective.
    ///
    /// # Errors
    /// Another member is known to be in a different collective.
    #[inline]
    pub fn begin(&self, kind: CollectiveKind, root: usize, element: ElementType) -> Result<(), Mismatch> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        let tag = CollectiveTag::new(sequence, kind, root, element);
        self.tag.set(tag);
        let own = MemberReport { place: self.here, tag };
        let known = self.known[tag.sequence() % KNOWN].replace(own);
        if known.tag.sequence() == tag.sequence() && known.tag != tag {
            return Err(Mismatch { known: own, other: known });
        }
        Ok(())
    }

    /// Counts the collective that was begun; returns whether all members must wait for each other before it.
    #[inline]
    pub fn needs_synchronization(&self, kind: CollectiveKind) -> bool {
        let unsynchronized = if kind.waits_for_all() { 0 } else { self.unsynchronized.get() + 1 };
        let is_due = unsynchronized > AHEAD_MAX;
        self.unsynchronized.set(if is_due { 1 } else { unsynchronized });
        is_due
    }

    /// Compares a message of `source` with what is known of its collective.
    ///
    /// # Errors
    /// `source` is in another collective than the one known for this number.
    #[inline]
    pub fn compare(&self, source: PlaceId, tag: CollectiveTag) -> Result<(), Mismatch> {
        let tag = tag.first_step();
        let entry = &self.known[tag.sequence() % KNOWN];
        let (known, report) = (entry.get(), MemberReport { place: source, tag });
        if known.tag.sequence() != tag.sequence() {
            if self.is_ahead(tag) {
                entry.set(report);
            }
            return Ok(());
        }
        if known.tag == tag { Ok(()) } else { Err(Mismatch { known, other: report }) }
    }
}
