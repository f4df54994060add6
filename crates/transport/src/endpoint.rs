//! The interface between one place and the transport that carries its messages.
//!
//! [`Endpoint`] is small: send, receive, wait. Capabilities that not every transport has are traits of their own, such
//! as [`Multicast`], [`WorkModel`], [`SpanSink`] and [`MappedMemory`], which each endpoint returns or not. Invariant:
//! no method has a default, so the compiler finds methods that a wrapping endpoint does not forward.

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
    /// Returns the bytes of the message, aligned to 64 bytes if the transport supports that.
    fn bytes(&self) -> &[u8];
}

/// An owned large message. Dropping it returns its memory to the sender, and wakes the sender if it was refused for
/// lack of memory.
pub type Block = Box<dyn BlockMemory>;

/// Body of a message.
pub enum Body<'a> {
    /// Bytes in the queue itself, valid during the call only; aligned to 8 bytes.
    Inline(&'a [u8]),
    /// A large message that can be kept without a copy.
    Block(Block),
}

impl Body<'_> {
    /// Returns the bytes of either form.
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
    /// The bytes that the sender wrote.
    pub body: Body<'a>,
}

/// Reason why a place counts as dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Death {
    /// It ended in an unknown way: its endpoint was dropped, or its simulated world removed it.
    Ended,
    /// Its process ended by itself, with this exit code.
    Exited(i32),
    /// Its process was ended by this signal.
    Killed(i32),
    /// It violated the transport's format; the text says where.
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
    /// No message has arrived.
    Nothing,
    /// There may be a message, which only [`Endpoint::progress`] can take.
    Left,
    /// The message was taken.
    Taken,
}

/// Reason why nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no room at present: call [`Endpoint::progress`] and try again, or [`EndpointExt::wait`].
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
    /// Makes the current wait return immediately, or the next one if the place does not wait.
    fn unpark(&self);
}

/// One place's attachment to the others.
///
/// An endpoint belongs to one thread. Call `progress` regularly, and `wait_with` when there is nothing to do. A place
/// must not send to itself through its endpoint; an assertion checks this.
pub trait Endpoint {
    /// Returns the place of this endpoint.
    fn here(&self) -> PlaceId;

    /// Returns the number of places of the run; constant.
    fn places(&self) -> u32;

    /// Returns the limits of this endpoint; constant.
    fn limits(&self) -> Limits;

    /// Returns `true` if places share processors, so that polling in a loop may keep the sender from running; constant.
    fn shares_processors(&self) -> bool;

    /// Sends a small message, written in place.
    ///
    /// `fill` gets exactly `room` bytes with unspecified content and returns the length of the message, which starts at
    /// the front; `None` abandons it. `fill` is called at most once and must not call the endpoint, because a second
    /// message would be written into the same memory; an assertion checks this. `send` may be called from within
    /// `deliver` of [`Endpoint::progress`].
    ///
    /// # Errors
    /// Nothing was sent; see [`SendError`].
    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError>;

    /// Sends a large message of exactly `len` bytes, which `fill` writes directly into memory that the receiver reads.
    /// It arrives as [`Body::Block`], in order with the small messages of its class.
    ///
    /// # Errors
    /// Nothing was sent and `fill` was not called. [`SendError::Full`] is also returned while the receiver keeps so
    /// many blocks that another one does not fit in memory.
    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError>;

    /// Delivers a bounded batch of arrivals without blocking. Returns their number.
    ///
    /// `deliver` may send; it must not call `progress` or `wait_with`.
    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize;

    /// Returns `true` if there may be something to do: an arrival, room after a send that returned [`SendError::Full`]
    /// (in a queue, or in the memory for blocks, once the receiver drops one), or an [`Unpark`] that has ended no wait
    /// yet.
    fn is_ready(&self) -> bool;

    /// Returns when [`Endpoint::is_ready`] or `also` is true, or after `timeout`. May return early.
    ///
    /// `also` is evaluated whenever the endpoint polls. A thread that makes it true while the place may sleep must call
    /// [`Unpark::unpark`] of [`Endpoint::unparker`].
    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool);

    /// Returns the means to end a wait from another thread.
    fn unparker(&self) -> Arc<dyn Unpark>;

    /// Returns `true` if `place` is known to be dead. A place that has left is not dead: its end was orderly.
    fn is_dead(&self, place: PlaceId) -> bool;

    /// Declares `place` dead for all places, because it sent an invalid message. Its death is reported like any other;
    /// messages that it sent before may be lost. Has no effect if it is dead already.
    ///
    /// May be called from within `deliver` of [`Endpoint::progress`].
    fn declare_dead(&self, place: PlaceId);

    /// Returns the cause of the death of `place`, as far as it is known; `None` while the place is not known to be
    /// dead.
    fn death(&self, place: PlaceId) -> Option<Death>;

    /// Returns `true` if some sent messages need further calls of this endpoint to make progress.
    fn is_sending(&self) -> bool;

    /// Declares that this place sends and takes no more messages: from now on its end is orderly and not a death. Later
    /// sends to it return [`SendError::DeadPlace`].
    fn leave(&self);

    /// Passes the oldest message of `class` from `from` to `wants`, if there is one and it is in a queue of small
    /// messages. Takes the message if `wants` returns `true`.
    ///
    /// This is much faster than [`Endpoint::progress`] if the caller waits for this message only, but does not replace
    /// it: all other arrivals stay where they are, and so does a message that is not wanted. `wants` may send, like
    /// `deliver`. Must not be called from within `deliver`. A transport without this capability returns [`Next::Left`].
    fn take_next(&self, from: PlaceId, class: Class, wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool)
    -> Next;

    /// Returns the model that charges the place's work to its core; `None` on a real machine.
    fn work_model(&self) -> Option<&dyn WorkModel>;

    /// Returns the trace that receives the place's spans; `None` if there is no trace.
    fn span_sink(&self) -> Option<&dyn SpanSink>;

    /// Returns the means to send one message to several places; `None` if the transport does not support it.
    fn multicast(&self) -> Option<&dyn Multicast>;

    /// Returns the memory that this place shares with others; `None` if it shares none.
    fn shared_memory(&self) -> Option<&dyn MappedMemory>;

    /// Returns the means to read memory that other places of this host lend; `None` if the transport does not support
    /// it.
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
    /// Returns `true` if `place` is on another host, so that a request and its answer take longer than a copy of
    /// about ten kibibytes; constant.
    fn is_far(&self, place: PlaceId) -> bool;

    /// Returns the first place on the host of `place`; constant, and the same at all places.
    fn host_of(&self, place: PlaceId) -> PlaceId;

    /// Sends small messages that are held back for coalescing, unless many were sent recently. Called before a task
    /// that may compute for long.
    fn flush_coalesced(&self);
}

/// Sends one message to several places.
pub trait Multicast {
    /// Returns the supported lengths of messages of `class`, in bytes; constant.
    fn bytes(&self, class: Class) -> Range<usize>;

    /// Sends one message to several other places, each listed once. It is written once, and each of them fetches it.
    ///
    /// It arrives as if from [`Endpoint::send`], in order with the other small messages of its class.
    ///
    /// # Errors
    /// Nothing was sent to any of them: one of them is dead, or there is not enough room for all.
    /// [`SendError::TooLong`] if the length is not in [`Multicast::bytes`].
    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError>;
}

/// An access of a program to a file, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// Number of the file, the same for all places that use the same name.
    pub file: u64,
    /// Number of bytes read or written.
    pub bytes: u64,
    /// True if it was written.
    pub is_write: bool,
}

/// Charges the activities of a place to the clock of its modelled core.
///
/// It is part of the run: the charges affect when messages leave and arrive.
pub trait WorkModel {
    /// Advances the clock of the core by the cost of `work`, which the program states at `line`.
    fn work(&self, work: &Work, line: &'static Location<'static>);

    /// Advances the clock of the core to the end of a file access.
    fn access_file(&self, access: &FileAccess);
}

/// Receives the spans of a place, for a trace.
///
/// It only observes: a run with it has the same modelled times and message order as one without.
pub trait SpanSink {
    /// Begins a span of this place now. No other open span of the place has the returned number.
    fn begin_span(&self, span: &Span) -> SpanId;

    /// Ends a span of this place now; ignored if it began before the trace.
    fn end_span(&self, span: SpanId);

    /// Adds `by` to the counter `name` of this place, which starts at 0. A sink that draws no counters ignores it.
    fn add_count(&self, name: &'static str, by: u64);
}

/// Memory that a place shares with some others: words for flags and counts, and regions.
///
/// A write to it does not wake a place. The writer either sends a message, which also carries the order, or
/// [wakes](MappedMemory::wake) a reader that checks the memory before it sleeps.
pub trait MappedMemory {
    /// Returns word `index` of `place`, mapped here; `None` if its memory is not shared with this place, or there is no
    /// such word. Words start at zero. A place always shares its own.
    fn word(&self, place: PlaceId, index: u32) -> Option<&AtomicU64>;

    /// Returns the number of words of each place.
    fn words(&self) -> u32;

    /// Allocates a region of `words` zero words in the memory of this place, until [`MappedMemory::free`]. Returns
    /// `None` if there is no room, or the system has no memory.
    fn allocate(&self, words: u64) -> Option<Region>;

    /// Returns the words of a region, mapped here; `None` if the memory of its place is not shared with this place, or
    /// does not exist. After the region was freed, the words may belong to another one.
    fn view(&self, region: Region) -> Option<&[AtomicU64]>;

    /// Returns a handle that keeps the memory of all regions mapped here, even after the endpoint is dropped.
    fn hold(&self) -> Rc<dyn Any>;

    /// Frees a region that [`MappedMemory::allocate`] returned at this place.
    ///
    /// # Panics
    /// The region is not from this place, or was freed before.
    fn free(&self, region: Region);

    /// Ends the wait of `place`, if it sleeps. Returns `false` without an effect if the place is dead or shares no
    /// memory with this place.
    ///
    /// Either the condition that `place` checks before it sleeps (`also` of [`Endpoint::wait_with`]) sees this place's
    /// earlier writes to shared memory, or that sleep ends.
    fn wake(&self, place: PlaceId) -> bool;
}

/// A slice that a place has lent, as described in a message to its reader.
///
/// It has numbers only: an invented or outdated one is refused, or reads bytes that its sender could have sent anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LentSlice {
    /// The system's number of the process that owns the memory.
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
    /// The loan has ended, or its place is dead; bytes already read are invalid.
    Ended,
    /// The system does not let processes of the run read each other. This is permanent.
    NotAllowed,
}

/// The means to read slices that other places of the same host lend.
pub trait Lending {
    /// Lends `bytes` until [`Lending::end`]; `None` if no process could read them, or too many slices are lent.
    ///
    /// The caller must end the loan before the bytes are changed or freed. A later read gets [`LendingError::Ended`];
    /// without the end it would read the new content of that memory.
    fn lend(&self, bytes: &[u8]) -> Option<LentSlice>;

    /// Ends a loan of this place. A read that is in progress fails.
    fn end(&self, loan: &LentSlice);

    /// Copies the bytes of a loan of `owner` from `offset` on.
    ///
    /// # Errors
    /// See [`LendingError`]; the content of `into` is then unspecified.
    fn read(
        &self,
        owner: PlaceId,
        loan: &LentSlice,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), LendingError>;
}
