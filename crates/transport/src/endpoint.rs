//! The interface between one place and the means that carries its messages.
//!
//! [`Endpoint`] is small: send, receive, wait. What not every transport has is a trait of its own, [`Multicast`],
//! [`WorkModel`], [`SpanSink`] and [`MappedMemory`], for which each endpoint answers. Invariant: no method has a
//! default, so the compiler finds what an endpoint that wraps another forgets to hand on.

use crate::region::Region;
use crate::span::{Span, SpanId};
use crate::work::Work;
use isles_protocol::PlaceId;
use isles_protocol::ordered_keys;
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The priority class of a message. Order is kept within one class of one ordered pair of places.
///
/// The classes have separate queues, so control messages never wait behind data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Finish, replies, collectives, handles: never blocked by a full data queue.
    Control,
    /// Tasks and their captures.
    Data,
}

ordered_keys! {
    Class: 8, |class| class as u128, |number| if number == 0 { Class::Control } else { Class::Data };
}

/// The number of the function that receives a message; the runtime owns the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandlerId(pub u16);

/// Bounds of an endpoint, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest `room` that [`Endpoint::send`] takes in the data class.
    pub inline_bytes_max: usize,
    /// Largest `room` that [`Endpoint::send`] takes in the control class.
    pub control_bytes_max: usize,
    /// Largest `len` that [`Endpoint::send_block`] takes.
    pub block_bytes_max: usize,
}

/// Memory of a large message, owned by the receiver until it is dropped.
pub trait BlockMemory {
    /// The bytes of the message; the first is aligned to 64 bytes where the transport can do that.
    fn bytes(&self) -> &[u8];
}

/// An owned large message; dropping it gives its memory back to the sender, and wakes one that was refused for lack
/// of it.
pub type Block = Box<dyn BlockMemory>;

/// Body of a message.
pub enum Body<'a> {
    /// Bytes in the queue itself, valid during the call only; aligned to 8 bytes.
    Inline(&'a [u8]),
    /// A large message that can be kept without a copy.
    Block(Block),
}

impl Body<'_> {
    /// The bytes, wherever they lie.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Body::Inline(bytes) => bytes,
            Body::Block(block) => block.bytes(),
        }
    }
}

/// One message as it arrives.
pub struct Message<'a> {
    /// The place that sent it.
    pub source: PlaceId,
    /// The class it was sent in.
    pub class: Class,
    /// The function that receives it, unchecked.
    pub handler: HandlerId,
    /// Its bytes, as the sender wrote them.
    pub body: Body<'a>,
}

/// Reason why a place counts as dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Death {
    /// It is gone, and nobody saw how: its endpoint was dropped, or its simulated world took it away.
    Ended,
    /// Its process ended by itself, with this exit code.
    Exited(i32),
    /// Its process was ended by this signal.
    Killed(i32),
    /// It broke the transport's format; the text names where.
    Corrupt(String),
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Death::Ended => write!(f, "it will never answer again"),
            Death::Exited(code) => write!(f, "its process ended with code {code}"),
            Death::Killed(signal) => write!(f, "its process was ended by signal {signal}"),
            Death::Corrupt(place_of_fault) => write!(f, "it broke the format: {place_of_fault}"),
        }
    }
}

/// Arrival that [`Endpoint::progress`] delivers.
pub enum Arrival<'a> {
    /// A message.
    Message(Message<'a>),
    /// A place died; delivered once for each dead place, after all of its messages that will ever arrive.
    Died {
        /// The dead place.
        place: PlaceId,
        /// Cause of its death.
        cause: Death,
    },
}

/// Classes from which [`Endpoint::progress`] may take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// Both classes.
    All,
    /// Control only: the caller has no room for more data.
    Control,
}

/// Result of [`Endpoint::take_next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing has arrived there.
    Nothing,
    /// There may be something, for [`Endpoint::progress`].
    Left,
    /// The message was wanted, and is gone.
    Taken,
}

/// Reason why nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No room at the moment: call [`Endpoint::progress`] and try again, or [`EndpointExt::wait`].
    Full,
    /// The receiver has died or left, and will never take a message. [`Endpoint::is_dead`] says which; no
    /// [`Arrival::Died`] reports a place that left.
    DeadPlace(PlaceId),
    /// The message can never be sent this way.
    TooLong {
        /// Requested length, in bytes.
        len: usize,
        /// Largest allowed length, in bytes.
        max: usize,
    },
    /// `fill` returned `None`.
    Abandoned,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full => write!(f, "the queue to the place is full"),
            SendError::DeadPlace(place) => write!(f, "{place} is dead"),
            SendError::TooLong { len, max } => {
                write!(f, "a message of {len} bytes; allowed: at most {max}")
            }
            SendError::Abandoned => write!(f, "the message was abandoned while it was written"),
        }
    }
}

impl std::error::Error for SendError {}

/// Ends an [`Endpoint::wait_with`] of the place from any thread.
pub trait Unpark: Send + Sync {
    /// Makes the wait under way, or the next one if there is none, return at once.
    fn unpark(&self);
}

/// One place's attachment to the others.
///
/// An endpoint belongs to one thread. Calling order: `progress` whenever there is time, `wait_with` when there
/// is nothing to do. A place never sends to itself through its endpoint; that is an assertion.
pub trait Endpoint {
    /// The place attached here.
    fn here(&self) -> PlaceId;

    /// Returns the number of places of the run; constant.
    fn places(&self) -> u32;

    /// The bounds of this endpoint; constant.
    fn limits(&self) -> Limits;

    /// Returns `true` if places share processors, so that looking for a message in a loop may keep its sender from
    /// running; constant.
    fn shares_processors(&self) -> bool;

    /// Sends a small message, written in place.
    ///
    /// `fill` gets exactly `room` bytes whose content is unspecified and returns how many of them (from the
    /// front) are the message; `None` abandons it. `fill` is called at most once and must not call the endpoint, which
    /// is an assertion: a second message would be written into the memory of the first.
    /// May be called from within `deliver` of [`Endpoint::progress`].
    ///
    /// # Errors
    /// Nothing was sent; see [`SendError`] for what can be done.
    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError>;

    /// Sends a large message of exactly `len` bytes, written by `fill` straight into memory that the
    /// receiver will read; arrives as [`Body::Block`], in order with the small messages of its class.
    ///
    /// # Errors
    /// Nothing was sent and `fill` was not called. [`SendError::Full`] is also the answer while the receiver keeps
    /// too many blocks for another one to fit in memory.
    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError>;

    /// Delivers what has arrived, a bounded batch, without blocking; returns how many arrivals.
    ///
    /// `deliver` may send; it must not call `progress` or `wait_with`.
    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize;

    /// Returns `true` if there may be something to do: an arrival, room after a send that returned [`SendError::Full`]
    /// (in a queue, or in the memory for blocks, once the receiver drops one), or an [`Unpark`] that has ended no wait
    /// yet.
    fn is_ready(&self) -> bool;

    /// Returns when [`Endpoint::is_ready`], or at the end of `timeout`, or when `also` says so. May return early.
    ///
    /// `also` is asked as often as the endpoint looks by itself. Whoever makes it true while the place may sleep ends
    /// the sleep by [`Endpoint::unparker`].
    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool);

    /// Returns the means to end a wait from another thread.
    fn unparker(&self) -> Arc<dyn Unpark>;

    /// Returns `true` if `place` is known to be dead. A place that has left is not: its end was orderly.
    fn is_dead(&self, place: PlaceId) -> bool;

    /// Declares `place` dead, for all places, because a message of it is not what a sound place sends. Its death is
    /// told like any other; what it had sent before may be lost. Nothing happens if it is dead already.
    ///
    /// May be called from within `deliver` of [`Endpoint::progress`].
    fn declare_dead(&self, place: PlaceId);

    /// Returns the reason why `place` is dead, as far as anybody knows; `None` while it is not known to be dead.
    fn death(&self, place: PlaceId) -> Option<Death>;

    /// Returns `true` if some of what was sent can go on its way only with further calls of this endpoint.
    fn is_sending(&self) -> bool;

    /// Says that this place sends nothing more and takes nothing more: its end is orderly from here on, not a death.
    /// Sends to it answer [`SendError::DeadPlace`].
    fn leave(&self);

    /// Shows the oldest message of `class` from `from` to `wants`, if there is one and it lies where small ones lie.
    /// Takes it if `wants` says so.
    ///
    /// For who waits for just this message: much shorter than a [`Endpoint::progress`], which it does not replace.
    /// Whatever else has arrived stays where it is, and so does a message that is not wanted. `wants` may
    /// send, as `deliver` may. Must not be called from within `deliver`. Where it is not offered, the answer is
    /// [`Next::Left`].
    fn take_next(&self, from: PlaceId, class: Class, wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool)
    -> Next;

    /// The model that charges the place's work to its core; none on a real machine, where work takes its time.
    fn work_model(&self) -> Option<&dyn WorkModel>;

    /// The trace that the place's spans go to; none while nobody draws any.
    fn span_sink(&self) -> Option<&dyn SpanSink>;

    /// The means to send one message to several places at once; none where it is not offered.
    fn multicast(&self) -> Option<&dyn Multicast>;

    /// Memory that this place shares with others; none where it shares none with anybody.
    fn shared_memory(&self) -> Option<&dyn MappedMemory>;

    /// The means to read what places of this host lend of their own memory; none where it is not offered.
    fn lending(&self) -> Option<&dyn Lending>;

    /// Returns the information about places on other hosts, or `None` if all are on one.
    fn other_hosts(&self) -> Option<&dyn OtherHosts>;
}

/// Methods that follow from those of [`Endpoint`]; no endpoint can write them itself.
pub trait EndpointExt: Endpoint {
    /// As [`Endpoint::wait_with`], for this endpoint alone.
    fn wait(&self, timeout: Option<Duration>) {
        self.wait_with(timeout, &|| false);
    }
}

impl<E: Endpoint + ?Sized> EndpointExt for E {}

/// Places on other hosts.
pub trait OtherHosts {
    /// Returns `true` if `place` is on another host, so that a request and its answer take longer than a copy of some
    /// ten kibibytes; constant.
    fn is_far(&self, place: PlaceId) -> bool;

    /// The first of all places that are on the same host as `place`; constant, and the same at all places.
    fn host_of(&self, place: PlaceId) -> PlaceId;

    /// Lets small messages go that wait for company, unless much has gone lately; called before a task runs that may
    /// compute for long.
    fn flush_coalesced(&self);
}

/// Sends one message to several places.
pub trait Multicast {
    /// The lengths of messages of `class` that are taken, in bytes; constant.
    fn bytes(&self, class: Class) -> Range<usize>;

    /// Sends one message to several other places, each named once. It is written once, and each of them fetches it.
    ///
    /// It arrives as from [`Endpoint::send`], in order with the other small messages of its class.
    ///
    /// # Errors
    /// Nothing was sent, to nobody: one of them is dead, or there is not room for all. [`SendError::TooLong`] if its
    /// length is none of [`Multicast::bytes`].
    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError>;
}

/// A file, or a part of one, that a program has read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// A number of it, the same for all who name it alike.
    pub file: u64,
    /// Number of bytes read or written.
    pub bytes: u64,
    /// True if it was written.
    pub is_write: bool,
}

/// Charges what a place does to the clock of its modelled core.
///
/// It takes part in the run: what it is told changes when messages leave and arrive.
pub trait WorkModel {
    /// Moves the clock of the core by what `work` costs there, as the program says at `line`.
    fn work(&self, work: &Work, line: &'static Location<'static>);

    /// Moves the clock of the core to the end of an access of a file.
    fn access_file(&self, access: &FileAccess);
}

/// Receives the spans of a place, for a trace.
///
/// It only looks: a run with it takes the same modelled time and has the same order of messages as one without.
pub trait SpanSink {
    /// Begins a span of this place now. The number is that of no other open span of the place.
    fn begin_span(&self, span: &Span) -> SpanId;

    /// Ends a span of this place now; ignored if it began before the trace.
    fn end_span(&self, span: SpanId);

    /// Adds `by` to the counter `name` of this place, which starts at 0. A sink that draws no counters ignores it.
    fn add_count(&self, name: &'static str, by: u64);
}

/// Memory that a place shares with others, not necessarily with all: words for flags and counts, and regions.
///
/// Nobody is woken by what is written there. Whoever has written says so with a message, which carries the order, too;
/// or the reader looks there before it sleeps, and the writer [wakes](MappedMemory::wake) it.
pub trait MappedMemory {
    /// Word `index` of the words of `place`, mapped here; none if its memory is not shared with this place, or there is
    /// no such word. Words start at zero. A place always shares its own.
    fn word(&self, place: PlaceId, index: u32) -> Option<&AtomicU64>;

    /// Returns the number of words of each place.
    fn words(&self) -> u32;

    /// Takes `words` words of the memory of this place, all of them zero, until [`MappedMemory::free`]. None if there
    /// is no room, or the system has no memory.
    fn allocate(&self, words: u64) -> Option<Region>;

    /// The words of a region, mapped here. None if the memory of its place is not shared with this place, or there is
    /// no such memory. Of a region that was freed it shows whatever lies there by now.
    fn view(&self, region: Region) -> Option<&[AtomicU64]>;

    /// Returns what keeps the memory of all regions mapped here as long as it lives, also when the endpoint is gone.
    fn hold(&self) -> Rc<dyn Any>;

    /// Gives back a region that [`MappedMemory::allocate`] gave at this place.
    ///
    /// # Panics
    /// If it did not, or if the region was given back before.
    fn free(&self, region: Region);

    /// Ends the wait of `place`, if it sleeps. Returns false, and does nothing, if it is dead or shares no memory with
    /// this place.
    ///
    /// Either what this place has written to shared memory before is seen by what `place` asks before it sleeps (`also`
    /// of [`Endpoint::wait_with`]), or that sleep ends.
    fn wake(&self, place: PlaceId) -> bool;
}

/// A slice that a place has lent: what the place that reads it is told in a message.
///
/// It is only numbers: an invented or stale one is refused, or reads bytes that its sender could have sent as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LentSlice {
    /// The process in whose memory the slice lies, as the system numbers it.
    pub process: u64,
    /// Address of the slice there.
    pub address: u64,
    /// Address there of the word that holds `token` as long as the slice is lent.
    pub guard: u64,
    /// Token that no other loan of the run has; never zero.
    pub token: u64,
}

/// Reason why a lent slice could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LendingError {
    /// The loan has ended, or its place is dead; what was read of it is void.
    Ended,
    /// The system lets no process of the run read another one. So it stays.
    NotAllowed,
}

/// The means to read slices that other places of the same host lend.
pub trait Lending {
    /// Lends `bytes` until [`Lending::end`]; `None` where nobody could read them, or too many slices are lent.
    ///
    /// The caller ends the loan before the bytes are changed or given back: who reads them later gets
    /// [`LendingError::Ended`] then, and what lies there otherwise.
    fn lend(&self, bytes: &[u8]) -> Option<LentSlice>;

    /// Ends a loan of this place. A reading that is not over is refused.
    fn end(&self, loan: &LentSlice);

    /// Copies the bytes of a loan of `owner` from `offset` on.
    ///
    /// # Errors
    /// See [`LendingError`]; `into` holds anything then.
    fn read(
        &self,
        owner: PlaceId,
        loan: &LentSlice,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), LendingError>;
}
