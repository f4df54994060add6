//! The messages of teams: a fixed header, and its payload.
//!
//! The header has 24 bytes, so that an eight-byte value fits one cache line together with the transport's own header.
//! It names the step exactly, so a receiver notices when a member is in another collective.

use super::payload::Payload;
use isles_protocol::team::{CollectiveTag, ElementType, ROOTS, SpecialKind, TeamId};
use isles_runtime::Error;
use isles_runtime::wire::{DecodeError, Reader, Writer};
use isles_transport::HandlerId;
use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// Longest slice or value that is sent without waiting until it is received, in bytes.
pub(super) const EAGER_BYTES_MAX: usize = 64 << 10;

/// Number of the message with a step of a collective.
pub(crate) const TEAM: HandlerId = HandlerId(5);

/// Kind of a message that is not a step of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum TeamNotice {
    /// To the maker of the team: asks whether any handle to it is left. See [`super::state::TeamTable`].
    Asked = 28,
    /// From the maker: no handle is left.
    Over = 29,
    /// To all others: the team is broken. The reason follows, in the wire form of an error.
    Broken = 30,
    /// To all others: the sender waits in the collective whose tag follows. Sent only when nothing else happens any
    /// more.
    Waits = 31,
}

impl TeamNotice {
    const ALL: [TeamNotice; 4] = [TeamNotice::Asked, TeamNotice::Over, TeamNotice::Broken, TeamNotice::Waits];

    /// Returns the number of the notice among the kinds of collectives.
    const fn kind(self) -> SpecialKind {
        SpecialKind::new(self as u8)
    }
}

/// Returns the number of the type `T`: the lowest bits of the compiler's hash of it, a constant of the program. It is
/// the same at all places, because they run one program image.
#[inline]
pub(super) fn element_of<T: ?Sized>() -> ElementType {
    let mut bits = TypeBits(0);
    type_id::<T>().hash(&mut bits);
    ElementType::of_hash(bits.0)
}

/// Returns the number of the type that receives a value sent as `T`: text is received as a string.
#[inline]
pub(super) fn element_of_sent<T: ?Sized>() -> ElementType {
    let sent = element_of::<T>();
    if sent == element_of::<str>() || sent == element_of::<&str>() {
        return element_of::<String>();
    }
    sent
}

/// Returns the name of a type, if it is one of the usual ones.
pub(super) fn name_of(element: ElementType) -> Option<&'static str> {
    macro_rules! names {
        ($($element:ty),*) => {
            [$((element_of::<$element>(), stringify!($element)),
                (element_of::<[$element]>(), concat!("[", stringify!($element), "]")),
                (element_of::<Vec<$element>>(), concat!("Vec<", stringify!($element), ">"))),*]
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
    known.into_iter().find(|(known, _)| *known == element).map(|(_, name)| name)
}

/// Returns a description of the collective of `tag` for people; `element` is the name of its type, if known.
pub(super) fn describe(tag: CollectiveTag, element: Option<&str>) -> String {
    match element.or(name_of(tag.element())) {
        _ if tag.element() == ElementType::NONE => tag.to_string(),
        Some(element) => format!("{tag} of {element}"),
        None => format!("{tag} of another type"),
    }
}

/// Returns the id of a type that need not be `'static`: lifetimes make no difference here.
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

/// Takes the bits of a [`TypeId`], which already are a hash.
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

// A root is the rank of a place.
const _: () = assert!(isles_runtime::limits::PLACES_MAX as u64 <= ROOTS);

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TeamHeader {
    pub(super) team: TeamId,
    pub(super) tag: CollectiveTag,
    /// Length of a transfer of a slice in bytes, below 2^[`TeamHeader::LENGTH_BITS`]; otherwise 0.
    pub(super) bytes: u64,
}

/// Length of the header in bytes.
const HEAD_BYTES: usize = 24;

/// Payloads of slices of at least this many bytes start on a cache line.
const LINE_ALIGNED_BYTES_MIN: usize = 4096;

/// Alignment of such a payload, in bytes.
const LINE_BYTES: usize = 64;

// Notices have numbers that no collective has, and a type fits above a length.
const _: () = {
    let mut index = 0;
    while index < TeamNotice::ALL.len() {
        TeamNotice::ALL[index].kind();
        index += 1;
    }
    assert!(ElementType::BITS + TeamHeader::LENGTH_BITS == u64::BITS);
};

impl TeamHeader {
    /// Returns the header of a notice.
    pub(super) fn of_notice(team: TeamId, notice: TeamNotice) -> TeamHeader {
        TeamHeader { team, tag: CollectiveTag::special(notice.kind()), bytes: 0 }
    }

    /// Returns the notice, or `None` for a step of a collective.
    #[inline]
    pub(super) fn notice(&self) -> Option<TeamNotice> {
        let index = self.tag.kind().checked_sub(TeamNotice::ALL[0] as u64)?;
        TeamNotice::ALL.get(index as usize).copied()
    }

    /// Number of bits of the length: slices are below one TiB.
    const LENGTH_BITS: u32 = 40;

    /// Returns the length and, above it, the type.
    #[inline]
    fn last_word(&self) -> u64 {
        assert!(self.bytes >> Self::LENGTH_BITS == 0, "a slice of {} bytes in a collective", self.bytes);
        self.bytes | self.tag.element().bits() << Self::LENGTH_BITS
    }

    #[inline]
    fn of_last_word(word: u64) -> (u64, ElementType) {
        (word & ((1 << Self::LENGTH_BITS) - 1), ElementType::of_bits(word >> Self::LENGTH_BITS))
    }

    #[inline]
    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        let words = [self.team.bits(), self.tag.word(), self.last_word()].map(u64::to_le);
        writer.put_bytes(bytemuck::bytes_of(&words));
    }

    /// Returns the [`TeamHeader::bytes`] and the payload of `message`, if its header has `team` and `tag` and its
    /// sender does not wait for its receipt.
    #[inline]
    pub(super) fn open(message: &[u8], team: TeamId, tag: CollectiveTag) -> Option<(u64, &[u8])> {
        let (head, payload) = message.split_first_chunk::<HEAD_BYTES>()?;
        let word =
            |index: usize| u64::from_le_bytes(head[index..index + 8].try_into().expect("it is eight bytes"));
        let (bytes, element) = Self::of_last_word(word(16));
        let is_it = word(8) == tag.word() && word(0) == team.bits() && element == tag.element();
        (is_it && !is_awaited(payload.len())).then_some((bytes, payload))
    }

    #[inline]
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<TeamHeader, DecodeError> {
        let [team, tag, last] = reader.take_pod::<[u64; HEAD_BYTES / 8]>()?.map(u64::from_le);
        let (bytes, element) = Self::of_last_word(last);
        Ok(TeamHeader { team: TeamId::of_bits(team), tag: CollectiveTag::of_word(tag, element), bytes })
    }
}

/// Appends a chunk of a slice, in two parts, to its header.
#[inline]
pub(super) fn put_chunk(writer: &mut Writer<'_>, parts: [&[u8]; 2]) {
    if parts[0].len() + parts[1].len() >= LINE_ALIGNED_BYTES_MIN {
        writer.align(LINE_BYTES);
    }
    parts.into_iter().for_each(|part| writer.put_bytes(part));
}

/// Returns the length of the message of a chunk in two parts, as [`put_chunk`] writes it.
#[inline]
pub(super) fn message_bytes(parts: [&[u8]; 2]) -> usize {
    let bytes = parts[0].len() + parts[1].len();
    bytes + if bytes >= LINE_ALIGNED_BYTES_MIN { LINE_BYTES } else { HEAD_BYTES }
}

/// Returns the chunk that [`put_chunk`] appended to a header, without the padding between them.
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
    /// Keeps the rest of the message.
    #[inline]
    pub(super) fn take(header: TeamHeader, reader: &mut Reader<'_>) -> Arrival {
        Arrival { header, payload: Payload::take(reader) }
    }

    /// Keeps a copy of a message that lies in a queue.
    #[inline]
    pub(super) fn copy_of(header: TeamHeader, bytes: &[u8]) -> Arrival {
        Arrival { header, payload: Payload::copy_of(bytes) }
    }

    /// Returns `true` if the payload lies in the memory of its sender.
    #[inline]
    pub(super) fn is_block(&self) -> bool {
        self.payload.is_block()
    }

    /// Copies the payload out of the memory of its sender.
    #[cold]
    pub(super) fn copy(&mut self) {
        self.payload.copy();
    }

    /// Returns the chunk that [`put_chunk`] appended; a long one is aligned to a cache line.
    #[inline]
    pub(super) fn chunk(&self) -> &[u8] {
        chunk_of(self.payload.bytes())
    }

    /// Returns `true` if the sender waits for the receipt.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        is_awaited(self.payload.bytes().len())
    }

    /// Reads the value after the header.
    #[inline]
    pub(super) fn decode<T>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, Error> {
        self.payload.decode(read)
    }
}

/// Returns `true` if the sender of a value or slice of `bytes` bytes waits for its receipt.
pub(super) fn is_awaited(bytes: usize) -> bool {
    bytes > EAGER_BYTES_MAX
}

/// Returns the length of the value in a message of `message_bytes` bytes.
pub(super) fn payload_bytes(message_bytes: usize) -> usize {
    message_bytes.saturating_sub(HEAD_BYTES)
}
