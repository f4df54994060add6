//! What the model notes while it runs, in words of 64 bits, and the chunks that hold them.
//!
//! The model must not wait for its own trace, so what it notes is as small as can be: a stretch of time takes one word,
//! because it begins where the last one of its core has ended, and so does the
//! end of a span; a message and the beginning of a span take two. Nothing here says what becomes of it. Invariants:
//! entries come out as they went in, and in that order; none is cut at the end of a chunk.

use super::Transfer;
use crate::report::{TIME_CATEGORIES, TimeCategory};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

/// What a place did, or what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceEvent {
    /// It has spent so much time, at most [`TIME_MAX`], from its last end on.
    Spent { place: PlaceId, category: TimeCategory, time: Picoseconds },
    /// What it spends from now on belongs to something with a name.
    Begun(PlaceId),
    /// What had begun was nothing.
    Abandoned(PlaceId),
    /// It has taken in a piece of a block.
    ReceivedPiece(PlaceId),
    /// The source has sent a message.
    Sent(Transfer),
    /// The source has sent a block.
    SentBlock(Transfer),
    /// The target has taken it in.
    Received(Transfer),
    /// A span begins now, on a lane of its place: its topic, and the other place.
    SpanBegun { place: PlaceId, lane: u32, topic: u32, other: Option<PlaceId> },
    /// The span on a lane ends now.
    SpanEnded { place: PlaceId, lane: u32 },
}

/// The first word of an entry, from its least bit on: what it is (a spending or one of these), the place, and the time.
/// That of a message has the other place and the class instead of a time, and its bytes are the second word. That of a
/// span has its lane; its topic is the second word, and above it the other place and one, or 0.
const BEGUN: u64 = 8;
const ABANDONED: u64 = 9;
const RECEIVED_PIECE: u64 = 10;
const SENT: u64 = 11;
const SENT_BLOCK: u64 = 12;
const RECEIVED: u64 = 13;
const SPAN_BEGUN: u64 = 14;
const SPAN_ENDED: u64 = 15;
const KIND_BITS: u32 = 4;
const PLACE_BITS: u32 = 16;
const TOPIC_BITS: u32 = 32;

const _: () = assert!(TIME_CATEGORIES.len() as u64 <= BEGUN && SPAN_ENDED < 1 << KIND_BITS);

/// So many places can be told apart.
pub(super) const PLACES_MAX: u32 = 1 << PLACE_BITS;

/// The longest time of one entry: 17 seconds.
pub(super) const TIME_MAX: Picoseconds = Picoseconds(u64::MAX >> (KIND_BITS + PLACE_BITS));

impl TraceEvent {
    /// Its first word, and the second one if it has two.
    #[inline(always)] // What an entry is, is known where it is made.
    pub(super) fn words(self) -> (u64, Option<u64>) {
        let word = |kind, place: PlaceId, rest| {
            kind | u64::from(place.0) << KIND_BITS | rest << (KIND_BITS + PLACE_BITS)
        };
        let message = |kind, place: PlaceId, other: PlaceId, transfer: Transfer| {
            let rest = u64::from(other.0) | (transfer.class as u64) << PLACE_BITS;
            (word(kind, place, rest), Some(transfer.bytes))
        };
        match self {
            TraceEvent::Spent { place, category, time } => (word(category as u64, place, time.0), None),
            TraceEvent::Begun(place) => (word(BEGUN, place, 0), None),
            TraceEvent::Abandoned(place) => (word(ABANDONED, place, 0), None),
            TraceEvent::ReceivedPiece(place) => (word(RECEIVED_PIECE, place, 0), None),
            TraceEvent::Sent(transfer) => message(SENT, transfer.source, transfer.target, transfer),
            TraceEvent::SentBlock(transfer) => {
                message(SENT_BLOCK, transfer.source, transfer.target, transfer)
            }
            TraceEvent::Received(transfer) => message(RECEIVED, transfer.target, transfer.source, transfer),
            TraceEvent::SpanBegun { place, lane, topic, other } => {
                let other = other.map_or(0, |other| u64::from(other.0) + 1);
                (word(SPAN_BEGUN, place, u64::from(lane)), Some(u64::from(topic) | other << TOPIC_BITS))
            }
            TraceEvent::SpanEnded { place, lane } => (word(SPAN_ENDED, place, u64::from(lane)), None),
        }
    }

    /// The entry that begins with `word`; `second` gives its second word, if it has one.
    #[inline]
    fn read(word: u64, second: impl FnOnce() -> u64) -> TraceEvent {
        let place = PlaceId((word >> KIND_BITS) as u32 % PLACES_MAX);
        let rest = word >> (KIND_BITS + PLACE_BITS);
        let transfer = |is_source: bool, bytes: u64| {
            let other = PlaceId(rest as u32 % PLACES_MAX);
            let (source, target) = if is_source { (place, other) } else { (other, place) };
            let class =
                if rest >> PLACE_BITS == Class::Control as u64 { Class::Control } else { Class::Data };
            Transfer { source, target, class, bytes }
        };
        match word % (1 << KIND_BITS) {
            BEGUN => TraceEvent::Begun(place),
            ABANDONED => TraceEvent::Abandoned(place),
            RECEIVED_PIECE => TraceEvent::ReceivedPiece(place),
            SENT => TraceEvent::Sent(transfer(true, second())),
            SENT_BLOCK => TraceEvent::SentBlock(transfer(true, second())),
            RECEIVED => TraceEvent::Received(transfer(false, second())),
            SPAN_BEGUN => {
                let second = second();
                let other = (second >> TOPIC_BITS).checked_sub(1).map(|other| PlaceId(other as u32));
                TraceEvent::SpanBegun { place, lane: rest as u32, topic: second as u32, other }
            }
            SPAN_ENDED => TraceEvent::SpanEnded { place, lane: rest as u32 },
            kind => TraceEvent::Spent {
                place,
                category: TIME_CATEGORIES[kind as usize].0,
                time: Picoseconds(rest),
            },
        }
    }
}

/// Words of a chunk: the model notes some hundreds of messages in it, and all chunks under way are still small beside
/// the caches of a processor.
pub(super) const CHUNK_WORDS: usize = 1 << 13;

/// Room for entries, and those that are in it.
pub(super) struct Chunk {
    words: Box<[u64; CHUNK_WORDS]>,
    len: usize,
}

impl Chunk {
    pub(super) fn new() -> Chunk {
        Chunk { words: Box::new([0; CHUNK_WORDS]), len: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Takes the words of one entry more; false if it is full.
    #[inline(always)]
    pub(super) fn push(&mut self, first: u64, second: Option<u64>) -> bool {
        let at = self.len;
        if at > CHUNK_WORDS - 2 {
            return false;
        }
        self.words[at] = first;
        self.len = at + 1;
        if let Some(second) = second {
            self.words[at + 1] = second;
            self.len = at + 2;
        }
        true
    }

    /// What is in it.
    pub(super) fn entries(&self) -> impl Iterator<Item = TraceEvent> + '_ {
        let mut words = self.words[..self.len].iter().copied();
        std::iter::from_fn(move || {
            words.next().map(|word| TraceEvent::read(word, || words.next().unwrap_or(0)))
        })
    }
}
