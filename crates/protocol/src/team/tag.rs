//! Ids of teams, and tags of the steps of their collectives.
//!
//! A tag identifies its collective exactly, so a receiver notices that a member is in another one. Invariant: the tag
//! of a step is one word and an element type, so comparing two tags is comparing numbers.

use crate::PlaceId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The id of a team in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TeamId(u64);

impl TeamId {
    /// The team of all places.
    pub const WORLD: TeamId = TeamId(0);

    /// Returns the team that `maker` made as number `serial`, from 1.
    pub fn of(maker: PlaceId, serial: u64) -> TeamId {
        TeamId(u64::from(maker.0) << Self::SERIAL_BITS | serial)
    }

    const SERIAL_BITS: u32 = 48;

    /// Returns the place that made the team; the first place for the team of all.
    pub fn maker(self) -> PlaceId {
        PlaceId((self.0 >> Self::SERIAL_BITS) as u32)
    }

    /// Returns the id as a number.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Decodes the result of [`TeamId::bits`].
    #[inline]
    pub fn of_bits(bits: u64) -> TeamId {
        TeamId(bits)
    }

    /// Returns `true` if a run of `places` places can have such a team.
    #[inline]
    pub fn is_of(self, places: u32) -> bool {
        self.0 >> Self::SERIAL_BITS < u64::from(places)
    }
}

/// Declares the collectives: variant, name in the interface of teams, whether one member is the root, and whether no
/// member leaves before all have entered.
macro_rules! collective_kinds {
    ($($kind:ident $name:literal $is_rooted:literal $waits_for_all:literal;)*) => {
        /// The collective that a message belongs to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)] // the names of the methods of a team
        pub enum CollectiveKind {
            $($kind,)*
        }

        impl CollectiveKind {
            /// All collectives, by number.
            pub const ALL: [CollectiveKind; [$($name),*].len()] = [$(CollectiveKind::$kind),*];

            /// Returns the name in the interface of teams.
            pub fn name(self) -> &'static str {
                match self {
                    $(CollectiveKind::$kind => $name,)*
                }
            }

            /// Returns `true` if one member is the root.
            pub fn is_rooted(self) -> bool {
                match self {
                    $(CollectiveKind::$kind => $is_rooted,)*
                }
            }

            /// Returns `true` if no member leaves it before all have entered.
            #[inline]
            pub fn waits_for_all(self) -> bool {
                match self {
                    $(CollectiveKind::$kind => $waits_for_all,)*
                }
            }
        }
    };
}

collective_kinds! {
    Barrier "barrier" false true;
    Broadcast "broadcast" true false;
    BroadcastSlice "broadcast_slice" true false;
    Reduce "reduce" true false;
    ReduceSlice "reduce_slice" true false;
    AllReduce "all_reduce" false true;
    AllReduceSlice "all_reduce_slice" false true;
    Gather "gather" true false;
    GatherSlice "gather_slice" true false;
    Gatherv "gatherv" true false;
    AllGather "all_gather" false true;
    AllGatherSlice "all_gather_slice" false true;
    AllGatherv "all_gatherv" false true;
    Scatter "scatter" true false;
    ScatterSlice "scatter_slice" true false;
    Scatterv "scatterv" true false;
    AllToAll "all_to_all" false true;
    AllToAllSlice "all_to_all_slice" false true;
    AllToAllv "all_to_allv" false true;
    Scan "scan" false false;
    ScanSlice "scan_slice" false false;
    ExclusiveScan "exclusive_scan" false false;
    ExclusiveScanSlice "exclusive_scan_slice" false false;
    Split "split" false true;
}

/// The element type of a collective, as a number of [`ElementType::BITS`] bits; the same at all places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ElementType(u32);

impl ElementType {
    /// Element type of a collective without a value of the program.
    pub const NONE: ElementType = ElementType(0);

    /// Number of bits.
    pub const BITS: u32 = 24;

    /// Returns the type whose hash is `hash`; never [`ElementType::NONE`].
    #[inline]
    pub const fn of_hash(hash: u64) -> ElementType {
        ElementType((hash & ((1 << Self::BITS) - 1)) as u32 | 1)
    }

    /// Returns the type as a number, below 2^[`ElementType::BITS`].
    #[inline]
    pub fn bits(self) -> u64 {
        u64::from(self.0)
    }

    /// Decodes the result of [`ElementType::bits`].
    #[inline]
    pub fn of_bits(bits: u64) -> ElementType {
        ElementType(bits as u32)
    }
}

/// Identifies a step of a collective: its [`ElementType`], and in one word the sequence number of the collective since
/// the team was made (24 bits, wrapping), the step (18), the [`CollectiveKind`] or a special kind (5), and the root
/// (17), from the lowest bit up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectiveTag(u64, ElementType);

/// Bits at which the step, the kind and the root begin in a [`CollectiveTag`].
const STEP_SHIFT: u32 = 24;
const KIND_SHIFT: u32 = 42;
const ROOT_SHIFT: u32 = 47;

/// Masks of the number of a collective, and of a kind.
const SEQUENCE_BITS: u64 = (1 << STEP_SHIFT) - 1;
const KIND_BITS: u64 = (1 << (ROOT_SHIFT - KIND_SHIFT)) - 1;

/// Steps are below this number.
pub const STEPS: usize = 1 << (KIND_SHIFT - STEP_SHIFT);

/// Roots are below this number.
pub const ROOTS: u64 = 1 << (u64::BITS - ROOT_SHIFT);

/// The kind of a message that is not a step of a collective; above those of all [`CollectiveKind`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialKind(u8);

impl SpecialKind {
    /// Returns the special kind `number`.
    ///
    /// # Panics
    /// If the number is that of a collective, or does not fit; in a constant that is a compile error.
    pub const fn new(number: u8) -> SpecialKind {
        assert!(number as usize >= CollectiveKind::ALL.len() && number as u64 <= KIND_BITS);
        SpecialKind(number)
    }
}

impl CollectiveTag {
    /// The tag of no collective.
    pub const NONE: CollectiveTag = CollectiveTag(u64::MAX, ElementType::NONE);

    /// Returns the first step of a collective; `root` is 0 if it has none.
    #[inline]
    pub fn new(sequence: u32, kind: CollectiveKind, root: usize, element: ElementType) -> CollectiveTag {
        let word =
            u64::from(sequence) & SEQUENCE_BITS | (kind as u64) << KIND_SHIFT | (root as u64) << ROOT_SHIFT;
        CollectiveTag(word, element)
    }

    /// Returns the tag of a message that is not a step of a collective.
    pub fn special(kind: SpecialKind) -> CollectiveTag {
        CollectiveTag(u64::from(kind.0) << KIND_SHIFT, ElementType::NONE)
    }

    /// Returns the tag as one word, without the type.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// Decodes the result of [`CollectiveTag::word`].
    #[inline]
    pub fn of_word(word: u64, element: ElementType) -> CollectiveTag {
        CollectiveTag(word, element)
    }

    /// Returns the element type.
    #[inline]
    pub fn element(self) -> ElementType {
        self.1
    }

    /// Returns the number of its collective, modulo 2^24.
    #[inline]
    pub fn sequence(self) -> usize {
        (self.0 & SEQUENCE_BITS) as usize
    }

    /// Returns the first step of its collective.
    #[inline]
    pub fn first_step(self) -> CollectiveTag {
        CollectiveTag(self.0 & !((STEPS as u64 - 1) << STEP_SHIFT), self.1)
    }

    /// Returns `true` if it belongs to a later collective of the team than number `sequence`.
    pub fn is_after(self, sequence: u32) -> bool {
        // In the highest bits of a word, so that wrapped numbers compare correctly.
        let [own, other] = [self.0, u64::from(sequence)].map(|number| number << (u64::BITS - STEP_SHIFT));
        own.wrapping_sub(other) as i64 > 0
    }

    /// Returns step `step`, below [`STEPS`], of the same collective.
    #[inline]
    pub fn step(self, step: usize) -> CollectiveTag {
        debug_assert!(step < STEPS);
        CollectiveTag(self.0 | (step as u64) << STEP_SHIFT, self.1)
    }

    /// Returns the number of its [`CollectiveKind`] or [`SpecialKind`].
    #[inline]
    pub fn kind(self) -> u64 {
        self.0 >> KIND_SHIFT & KIND_BITS
    }
}

impl fmt::Display for CollectiveTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sequence, root] = [self.0 & SEQUENCE_BITS, self.0 >> ROOT_SHIFT];
        let kind = CollectiveKind::ALL.get(self.kind() as usize);
        let name = kind.map_or("an unknown collective", |kind| kind.name());
        match kind {
            Some(kind) if kind.is_rooted() => write!(f, "`{name}` number {sequence} with root {root}"),
            _ => write!(f, "`{name}` number {sequence}"),
        }
    }
}
