//! The common parts of both kinds of channel: operations, steps and outcomes.
//!
//! The outcome of the current operation is returned; effects on others are [`ChannelStep`]s, which must be carried out
//! in order. Invariant: an operation that waits gets its outcome once, or is cancelled.

use crate::PlaceId;

/// Id of an operation, unique in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId {
    /// The place of the task.
    pub place: PlaceId,
    /// Number of the operation at its place.
    pub number: u64,
}

/// Number of a task's choice at its place, if it has one; at most one operation of a choice takes effect.
pub type Choice = Option<u64>;

/// Action to take for an operation that has waited, or message to a place that holds slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelStep<V> {
    /// A receiver gets this value.
    Deliver(OperationId, V),
    /// A receiver is offered the value of a rendezvous; its place reports whether it was taken.
    Lend(OperationId, V),
    /// The value of a sender is in the buffer or received; its place gets this number of further slots.
    Accept(OperationId, u32),
    /// A sender is refused, because the channel is closed; its value goes back, if it had been passed on.
    Refuse(OperationId, Option<V>),
    /// A nonblocking sender is refused, because its receiver has left; its value goes back.
    Full(OperationId, Option<V>),
    /// A sender that gave up while its value was lent gets it back.
    GiveBack(OperationId, V),
    /// The wait of a receiver ends: the channel is closed and empty.
    End(OperationId),
    /// A nonblocking receiver finds no value, because its sender has left.
    Empty(OperationId),
    /// The sender that asked for room may send its value now, if it still wants to.
    Grant(OperationId),
    /// The receiver of a chosen sender has left; the sender waits as before, and its value goes back.
    Decline(OperationId, V),
    /// Slots of a place are free again.
    Announce(PlaceId, u32),
    /// A place must return the slots that it has not used.
    Recall(PlaceId),
    /// As `Recall`, and the channel is closed.
    Close(PlaceId),
    /// A place must report when each value sent to it has been taken or put back.
    Settle(PlaceId),
}

/// Outcome of an offer, or of a request for room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferOutcome<V> {
    /// The value is in the buffer or received, or room is granted; its place gets this number of further slots.
    Accepted(u32),
    /// The operation waits.
    Waits,
    /// The channel is closed.
    Refused(V),
    /// There is no room, and the operation does not wait.
    Full(V),
}

/// Outcome of a request for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantOutcome<V> {
    /// The value.
    Value(V),
    /// The operation waits, unless a step has a value for it.
    Waits,
    /// The channel is closed and empty.
    Ended,
    /// There is no value, and the operation does not wait.
    Empty,
}

/// Outcome of the cancellation of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled<V> {
    /// The operation no longer waits; this is its value, if it had one.
    Now(Option<V>),
    /// Its granted room is free again. The grant was reported to the operation; it gets no further outcome.
    Granted,
    /// Its outcome is in transit, or will be when its lent value has been taken or not.
    Later,
}

/// Unused resource of a place's task for which others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeldResource {
    /// Granted room, or a granted receiver of a rendezvous.
    Room,
    /// A value of a rendezvous, which no task there has taken yet.
    Value,
}

/// Error of a place that uses or returns slots or room that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotViolation;

/// Error of a place that puts back, or reports as taken, more values than it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutBackViolation;
