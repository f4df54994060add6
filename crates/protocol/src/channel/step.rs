//! What the two kinds of channel have in common: operations, steps, and outcomes.
//!
//! What becomes of the operation at hand is returned; what happens to others is a [`ChannelStep`], to be carried out in
//! order. Invariant: an operation that waits is told its end once, or is cancelled.

use crate::PlaceId;

/// An operation that waits: a number of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId {
    /// The place of the task that waits.
    pub place: PlaceId,
    /// Number of the operation at its place.
    pub number: u64,
}

/// Number of a task's choice at its place, of whose operations at most one happens; or `None`.
pub type Choice = Option<u64>;

/// Action to take for an operation that has waited, or message to a place that holds slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelStep<V> {
    /// A receiver gets this value.
    Deliver(OperationId, V),
    /// A receiver is offered the value of a rendezvous; its place says whether it was taken.
    Lend(OperationId, V),
    /// The value of a sender is in the buffer or received; its place has this many more slots.
    Accept(OperationId, u32),
    /// A sender is refused, because the channel is closed; its value goes back, if it had been handed over.
    Refuse(OperationId, Option<V>),
    /// A sender that was not to wait is refused, because the receiver it met has left; its value goes back.
    Full(OperationId, Option<V>),
    /// A sender that gave up while its value was lent has it back.
    GiveBack(OperationId, V),
    /// A receiver waits for nothing: the channel is closed and empty.
    End(OperationId),
    /// A receiver that was not to wait finds nothing: the sender that it met has left.
    Empty(OperationId),
    /// The sender that asked for room may send its value now, if it still wants to.
    Grant(OperationId),
    /// The receiver whom a chosen sender has met has left; the sender waits as before, and its value goes back.
    Decline(OperationId, V),
    /// Slots of a place are free again.
    Announce(PlaceId, u32),
    /// A place must return the slots that it has not used.
    Recall(PlaceId),
    /// The same, and there are no more: the channel is closed.
    Close(PlaceId),
    /// A place must say when each value that went there has been taken or put back.
    Settle(PlaceId),
}

/// Outcome of an offer, or of the question for room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferOutcome<V> {
    /// The value is in the buffer or received, or room is granted; its place has this many more slots.
    Accepted(u32),
    /// It waits.
    Waits,
    /// The channel is closed.
    Refused(V),
    /// There is no room, and it does not wait.
    Full(V),
}

/// Outcome of the question for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantOutcome<V> {
    /// Here it is.
    Value(V),
    /// It waits, if no step has a value for it.
    Waits,
    /// The channel is closed and empty.
    Ended,
    /// There is no value, and it does not wait.
    Empty,
}

/// Outcome of cancelling an operation that nobody waits for any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled<V> {
    /// It no longer waits; its value, if it had one.
    Now(Option<V>),
    /// Room that was granted to it is free again. The grant was reported to it; nothing more will be.
    Granted,
    /// Its answer is on the way, or will be when its value, which is lent, has been taken or not.
    Later,
}

/// Resource a task of a place has and has not used, so that others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldResource {
    /// Room that it was granted, or of a rendezvous a receiver.
    Room,
    /// A value of a rendezvous, which no task there has taken yet.
    Value,
}

/// A place uses or returns slots, or room, that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotViolation;

/// A place puts back, or says that it has taken, more values than have gone to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutBackViolation;
