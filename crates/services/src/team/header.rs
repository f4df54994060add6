//! The messages of teams: a fixed head, and what follows it.
//!
//! The head is 24 bytes, so that an eight-byte value fits one cache line together with the transport's own header. It
//! names the step exactly; that is how a receiver sees that a member is in another collective.

use super::payload::Payload;
use isles_protocol::PlaceId;
use isles_runtime::Error;
use isles_runtime::wire::{DecodeError, Reader, Writer};
use isles_transport::HandlerId;
use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// Longest slice or value that is sent without waiting until it is taken, in bytes.
pub(super) const EAGER_BYTES_MAX: usize = 64 << 10;

/// The number of one step of a collective, on the wire.
pub(crate) const TEAM: HandlerId = HandlerId(5);

/// The name of a team in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct TeamId(u64);

impl TeamId {
    /// All places.
    pub(super) const WORLD: TeamId = TeamId(0);

    /// The team that `maker` made as number `serial`, from 1.
    pub(super) fn of(maker: PlaceId, serial: u64) -> TeamId {
        TeamId(u64::from(maker.0) << Self::SERIAL_BITS | serial)
    }

    const SERIAL_BITS: u32 = 48;

    /// The place that made the team; of that of all places, the first one.
    pub(super) fn maker(self) -> PlaceId {
        PlaceId((self.0 >> Self::SERIAL_BITS) as u32)
    }

    /// As a number.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Decodes the result of [`TeamId::bits`].
    pub(super) fn of_bits(bits: u64) -> TeamId {
        TeamId(bits)
    }

    /// Returns `true` if a run of `places` places can have such a team.
    pub(super) fn is_of(self, places: u32) -> bool {
        self.0 >> Self::SERIAL_BITS < u64::from(places)
    }
}

/// The collective that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CollectiveKind {
    Barrier,
    Broadcast,
    BroadcastSlice,
    Reduce,
    ReduceSlice,
    AllReduce,
    AllReduceSlice,
    Gather,
    GatherSlice,
    Gatherv,
    AllGather,
    AllGatherSlice,
    AllGatherv,
    Scatter,
    ScatterSlice,
    Scatterv,
    AllToAll,
    AllToAllSlice,
    AllToAllv,
    Scan,
    ScanSlice,
    ExclusiveScan,
    ExclusiveScanSlice,
    Split,
}

impl CollectiveKind {
    const NAMES: [&'static str; 24] = [
        "barrier",
        "broadcast",
        "broadcast_slice",
        "reduce",
        "reduce_slice",
        "all_reduce",
        "all_reduce_slice",
        "gather",
        "gather_slice",
        "gatherv",
        "all_gather",
        "all_gather_slice",
        "all_gatherv",
        "scatter",
        "scatter_slice",
        "scatterv",
        "all_to_all",
        "all_to_all_slice",
        "all_to_allv",
        "scan",
        "scan_slice",
        "exclusive_scan",
        "exclusive_scan_slice",
        "split",
    ];

    /// Collectives of which one member is the root.
    const ROOTED: [CollectiveKind; 10] = [
        CollectiveKind::Broadcast,
        CollectiveKind::BroadcastSlice,
        CollectiveKind::Reduce,
        CollectiveKind::ReduceSlice,
        CollectiveKind::Gather,
        CollectiveKind::GatherSlice,
        CollectiveKind::Gatherv,
        CollectiveKind::Scatter,
        CollectiveKind::ScatterSlice,
        CollectiveKind::Scatterv,
    ];

    /// Its name in the interface of teams.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns `true` if no member leaves it before all have entered.
    pub(super) fn waits_for_all(self) -> bool {
        use CollectiveKind::*;
        matches!(
            self,
            Barrier
                | AllReduce
                | AllReduceSlice
                | AllGather
                | AllGatherSlice
                | AllGatherv
                | AllToAll
                | AllToAllSlice
                | AllToAllv
                | Split
        )
    }
}

/// Kind of a message that is no step of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum TeamNotice {
    /// To the maker of the team: is any handle to it left? See [`super::state::TeamTable`].
    Asked = 28,
    /// From the maker: none is.
    Over = 29,
    /// To all others: the team is of no use any more. What follows says why, in the wire form of an error.
    Broken = 30,
    /// To all others: in which collective the sender waits, as its tag follows. Sent only when nothing happens any
    /// more.
    Waits = 31,
}

impl TeamNotice {
    const ALL: [TeamNotice; 4] = [TeamNotice::Asked, TeamNotice::Over, TeamNotice::Broken, TeamNotice::Waits];
}

/// The type of what a collective carries: the lowest bits of the compiler's own hash of it, which is the same at all
/// places, because they run one program image. 0 stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct ElementType(u32);

impl ElementType {
    /// Element type of a collective that carries nothing of the program's.
    pub(super) const NONE: ElementType = ElementType(0);

    /// As many as the length of a slice leaves of its word.
    const BITS: u32 = u64::BITS - TeamHeader::LENGTH_BITS;

    /// The type `T`; a constant once it is compiled.
    #[inline]
    pub(super) fn of<T: ?Sized>() -> ElementType {
        let mut bits = TypeBits(0);
        type_id::<T>().hash(&mut bits);
        ElementType((bits.0 & ((1 << Self::BITS) - 1)) as u32 | 1)
    }

    /// The type of a value that is sent to be received as one of `T`: text is received as a string.
    #[inline]
    pub(super) fn of_sent<T: ?Sized>() -> ElementType {
        let sent = ElementType::of::<T>();
        if sent == ElementType::of::<str>() || sent == ElementType::of::<&str>() {
            return ElementType::of::<String>();
        }
        sent
    }

    /// As a number, of [`ElementType::BITS`] bits.
    pub(super) fn bits(self) -> u64 {
        u64::from(self.0)
    }

    /// Decodes the result of [`ElementType::bits`].
    pub(super) fn of_bits(bits: u64) -> ElementType {
        ElementType(bits as u32)
    }

    /// Returns the name of the type, if it is one of the usual ones.
    pub(super) fn name(self) -> Option<&'static str> {
        macro_rules! names {
            ($($element:ty),*) => {
                [$((ElementType::of::<$element>(), stringify!($element)),
                    (ElementType::of::<[$element]>(), concat!("[", stringify!($element), "]")),
                    (ElementType::of::<Vec<$element>>(), concat!("Vec<", stringify!($element), ">"))),*]
            };
        }
        let known = names!(
            u8,
            u16,
            u32,
            u64,
            u128,
            usize,
            i8,
            i16,
            i32,
            i64,
            i128,
            isize,
            f32,
            f64,
            bool,
            char,
            String,
            ()
        );
        known.into_iter().find(|(element, _)| *element == self).map(|(_, name)| name)
    }
}

/// Returns the number of a type, which need not be `'static`: what it borrows makes no difference here.
#[inline]
fn type_id<T: ?Sized>() -> TypeId {
    trait TypeOf {
        fn number(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> TypeOf for PhantomData<T> {
        #[inline]
        fn number(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let type_of: &dyn TypeOf = &PhantomData::<T>;
    // NEED: the number of a type is given for those only that live for ever.
    // SOUND: the lifetimes of a type are no part of its number, and `number` looks at nothing but the type: there is
    // no value of it.
    let type_of = unsafe { std::mem::transmute::<&dyn TypeOf, &(dyn TypeOf + 'static)>(type_of) };
    type_of.number()
}

/// Takes the bits of a [`TypeId`], which are a hash already.
struct TypeBits(u64);

impl Hasher for TypeBits {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Collective to which a message belongs: its [`ElementType`], and in one word the sequence number of the collective
/// since the team was made (24 bits, wrapping), its step (18), its [`CollectiveKind`] or a [`TeamNotice`] (5), and its
/// root (17), from the lowest bit up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct CollectiveTag(u64, ElementType);

/// Bits at which the step, the kind and the root begin in a [`CollectiveTag`].
const STEP_SHIFT: u32 = 24;
const KIND_SHIFT: u32 = 42;
const ROOT_SHIFT: u32 = 47;

/// The bits of the number of a collective, and of a kind.
const SEQUENCE_BITS: u64 = (1 << STEP_SHIFT) - 1;
const KIND_BITS: u64 = (1 << (ROOT_SHIFT - KIND_SHIFT)) - 1;

/// Steps are below this number.
pub(super) const STEPS: usize = 1 << (KIND_SHIFT - STEP_SHIFT);

// A root is the rank of a place, and so is a step at most, beside what `ongoing` adds to it.
const _: () = assert!(isles_runtime::limits::PLACES_MAX as u64 <= 1 << (u64::BITS - ROOT_SHIFT));
const _: () = assert!(
    CollectiveKind::NAMES.len() as u64 <= TeamNotice::Asked as u64 && TeamNotice::Waits as u64 <= KIND_BITS
);

impl CollectiveTag {
    /// Tag of no collective.
    pub(super) const NONE: CollectiveTag = CollectiveTag(u64::MAX, ElementType::NONE);

    /// The first step of a collective; `root` is 0 if it has none.
    #[inline]
    pub(super) fn new(
        sequence: u32,
        kind: CollectiveKind,
        root: usize,
        element: ElementType,
    ) -> CollectiveTag {
        let word =
            u64::from(sequence) & SEQUENCE_BITS | (kind as u64) << KIND_SHIFT | (root as u64) << ROOT_SHIFT;
        CollectiveTag(word, element)
    }

    /// The number of its collective, modulo 2^24.
    #[inline]
    pub(super) fn sequence(self) -> usize {
        (self.0 & SEQUENCE_BITS) as usize
    }

    /// The first step of its collective.
    #[inline]
    pub(super) fn first_step(self) -> CollectiveTag {
        CollectiveTag(self.0 & !((STEPS as u64 - 1) << STEP_SHIFT), self.1)
    }

    /// Returns a description for people; `element` is the name of its type, if known.
    pub(super) fn describe(self, element: Option<&str>) -> String {
        match element.or(self.1.name()) {
            _ if self.1 == ElementType::NONE => self.to_string(),
            Some(element) => format!("{self} of {element}"),
            None => format!("{self} of another type"),
        }
    }

    /// Returns `true` if it belongs to a later collective of the team than number `sequence`.
    pub(super) fn is_after(self, sequence: u32) -> bool {
        // In the highest bits of a word, so that what went round is after what did not yet.
        let [own, other] = [self.0, u64::from(sequence)].map(|number| number << (u64::BITS - STEP_SHIFT));
        own.wrapping_sub(other) as i64 > 0
    }

    /// Step `step`, below [`STEPS`], of the same collective.
    #[inline]
    pub(super) fn step(self, step: usize) -> CollectiveTag {
        debug_assert!(step < STEPS);
        CollectiveTag(self.0 | (step as u64) << STEP_SHIFT, self.1)
    }

    /// The number of its [`CollectiveKind`] or [`TeamNotice`].
    #[inline]
    fn kind(self) -> u64 {
        self.0 >> KIND_SHIFT & KIND_BITS
    }
}

impl fmt::Display for CollectiveTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sequence, kind, root] = [self.0 & SEQUENCE_BITS, self.kind(), self.0 >> ROOT_SHIFT];
        let name = CollectiveKind::NAMES.get(kind as usize).copied().unwrap_or("an unknown collective");
        match CollectiveKind::ROOTED.iter().any(|rooted| *rooted as u64 == kind) {
            true => write!(f, "`{name}` number {sequence} with root {root}"),
            false => write!(f, "`{name}` number {sequence}"),
        }
    }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TeamHeader {
    pub(super) team: TeamId,
    pub(super) tag: CollectiveTag,
    /// Number of bytes of a transfer of a slice, below 2^[`TeamHeader::LENGTH_BITS`]; else 0.
    pub(super) bytes: u64,
}

/// Bytes of the head.
const HEAD_BYTES: usize = 24;

/// Payloads of slices of at least this many bytes start on a cache line.
const LINE_ALIGNED_BYTES_MIN: usize = 4096;

/// Alignment of such a payload, in bytes.
const LINE_BYTES: usize = 64;

impl TeamHeader {
    /// The head of a notice.
    pub(super) fn of_notice(team: TeamId, notice: TeamNotice) -> TeamHeader {
        TeamHeader { team, tag: CollectiveTag((notice as u64) << KIND_SHIFT, ElementType::NONE), bytes: 0 }
    }

    /// Returns the notice if the message is no step of a collective.
    #[inline]
    pub(super) fn notice(&self) -> Option<TeamNotice> {
        let index = self.tag.kind().checked_sub(TeamNotice::ALL[0] as u64)?;
        TeamNotice::ALL.get(index as usize).copied()
    }

    /// The bits of its length: slices are below one TiB.
    const LENGTH_BITS: u32 = 40;

    /// The length and, above it, the type.
    #[inline]
    fn last_word(&self) -> u64 {
        assert!(self.bytes >> Self::LENGTH_BITS == 0, "a slice of {} bytes in a collective", self.bytes);
        self.bytes | u64::from(self.tag.1.0) << Self::LENGTH_BITS
    }

    #[inline]
    fn of_last_word(word: u64) -> (u64, ElementType) {
        (word & ((1 << Self::LENGTH_BITS) - 1), ElementType((word >> Self::LENGTH_BITS) as u32))
    }

    // Written and read in one piece.
    #[inline]
    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        let words = [self.team.0, self.tag.0, self.last_word()].map(u64::to_le);
        writer.put_bytes(bytemuck::bytes_of(&words));
    }

    /// Returns the [`TeamHeader::bytes`] and the payload of `message`, if its header has `team` and `tag` and its
    /// sender does not wait until it is taken.
    #[inline]
    pub(super) fn open(message: &[u8], team: TeamId, tag: CollectiveTag) -> Option<(u64, &[u8])> {
        let (head, payload) = message.split_first_chunk::<HEAD_BYTES>()?;
        let word =
            |index: usize| u64::from_le_bytes(head[index..index + 8].try_into().expect("it is eight bytes"));
        let (bytes, element) = Self::of_last_word(word(16));
        let is_it = word(8) == tag.0 && word(0) == team.0 && element == tag.1;
        (is_it && !is_awaited(payload.len())).then_some((bytes, payload))
    }

    #[inline]
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<TeamHeader, DecodeError> {
        let [team, tag, last] = reader.take_pod::<[u64; HEAD_BYTES / 8]>()?.map(u64::from_le);
        let (bytes, element) = Self::of_last_word(last);
        Ok(TeamHeader { team: TeamId(team), tag: CollectiveTag(tag, element), bytes })
    }
}

/// Appends a chunk of a slice, in two parts, to its head.
#[inline]
pub(super) fn put_chunk(writer: &mut Writer<'_>, parts: [&[u8]; 2]) {
    if parts[0].len() + parts[1].len() >= LINE_ALIGNED_BYTES_MIN {
        writer.align(LINE_BYTES);
    }
    parts.into_iter().for_each(|part| writer.put_bytes(part));
}

/// Bytes of a message of a chunk in two parts, as [`put_chunk`] writes it.
#[inline]
pub(super) fn message_bytes(parts: [&[u8]; 2]) -> usize {
    let bytes = parts[0].len() + parts[1].len();
    bytes + if bytes >= LINE_ALIGNED_BYTES_MIN { LINE_BYTES } else { HEAD_BYTES }
}

/// The chunk that [`put_chunk`] appended to a head, without the padding between them.
#[inline]
pub(super) fn chunk_of(payload: &[u8]) -> &[u8] {
    let padding = LINE_BYTES - HEAD_BYTES;
    if payload.len() >= LINE_ALIGNED_BYTES_MIN + padding { &payload[padding..] } else { payload }
}

/// A message that has arrived.
pub(super) struct Arrival {
    pub(super) header: TeamHeader,
    payload: Payload,
}

impl Arrival {
    /// Keeps what is left of the message.
    #[inline]
    pub(super) fn take(header: TeamHeader, reader: &mut Reader<'_>) -> Arrival {
        Arrival { header, payload: Payload::take(reader) }
    }

    /// Keeps a copy of a message that came in a queue.
    #[inline]
    pub(super) fn copy_of(header: TeamHeader, bytes: &[u8]) -> Arrival {
        Arrival { header, payload: Payload::copy_of(bytes) }
    }

    /// Returns `true` if the payload lies in the memory of its sender.
    #[inline]
    pub(super) fn is_block(&self) -> bool {
        self.payload.is_block()
    }

    /// Copies it out of the memory of its sender.
    #[cold]
    pub(super) fn copy(&mut self) {
        self.payload.copy();
    }

    /// The chunk that [`put_chunk`] appended; its alignment is that of a cache line if it is long.
    #[inline]
    pub(super) fn chunk(&self) -> &[u8] {
        chunk_of(self.payload.bytes())
    }

    /// Returns `true` if the sender waits until it is taken.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        is_awaited(self.payload.bytes().len())
    }

    /// Reads the value after the head.
    #[inline]
    pub(super) fn decode<T>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, Error> {
        self.payload.decode(read)
    }
}

/// Returns `true` if the sender of a value or slice of `bytes` bytes waits until it is taken.
pub(super) fn is_awaited(bytes: usize) -> bool {
    bytes > EAGER_BYTES_MAX
}

/// Bytes of the value in a message of `message_bytes` bytes.
pub(super) fn payload_bytes(message_bytes: usize) -> usize {
    message_bytes.saturating_sub(HEAD_BYTES)
}
