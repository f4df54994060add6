//! Messages between tasks and hubs: requests, replies, and the packets that carry them.

use crate::PlaceId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of a hub, in the order of its [`Directory`](super::Directory); the same at every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HubId(pub u32);

/// Number of a task, in the order of its [`Directory`](super::Directory); the same at every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub u32);

/// The id of a request: the place of its task, and a number that is unique there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The place of the task.
    pub place: PlaceId,
    /// Its number there.
    pub number: u64,
}

/// The two sides of a hub, whose names depend on its kind: a resource is unlocked and locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HubOperation {
    /// Signal, raise, put, enqueue, unlock, deallocate, post, write.
    Put,
    /// Test, get, dequeue, lock, allocate, read.
    Get,
}

/// A service request of a task to a hub.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceRequest {
    /// Its id.
    pub id: RequestId,
    /// The hub.
    pub hub: HubId,
    /// The task that asks.
    pub task: TaskId,
    /// The side of the hub.
    pub operation: HubOperation,
    /// True if it waits when it cannot synchronise at once.
    pub waits: bool,
    /// True if its time-out passed before it arrived: it synchronises at once or has timed out.
    pub expired: bool,
    /// The priority of the task when it was sent, as changed by inheritance since.
    pub priority: u8,
    /// The priority of the task without inheritance.
    pub base: u8,
    /// The used part of the packet's data.
    #[serde(with = "bytes")]
    pub payload: Vec<u8>,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It has synchronised.
    Done,
    /// It does not wait, and could not synchronise at once.
    Failed,
    /// Its time-out passed before it could synchronise.
    TimedOut,
    /// The task does not own the resource or the block that it gives back.
    NotOwner,
    /// The task owns the resource already.
    AlreadyOwned,
    /// The task is more urgent than the ceiling of the resource allows.
    CeilingViolated,
    /// The hub is a pool of another place: memory does not travel.
    NotLocal,
    /// The data is longer than the hub can hold.
    TooLong,
    /// A counter of the hub is at its bound, or too many requests of the place wait.
    Overflow,
    /// The place of the hub, or one on the way to it, is dead.
    DeadPlace(PlaceId),
    /// The hub, or an operand of the request, does not exist.
    Invalid,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Done => "it is done",
            Status::Failed => "the hub could not synchronise at once",
            Status::TimedOut => "the time-out passed",
            Status::NotOwner => "the task does not own what it gives back",
            Status::AlreadyOwned => "the task already owns the resource",
            Status::CeilingViolated => "the task is more urgent than the ceiling of the resource",
            Status::NotLocal => "a pool serves the tasks of its own place only",
            Status::TooLong => "the data is longer than the hub can hold",
            Status::Overflow => {
                "the counter of the hub is at its bound, or too many requests of the place wait"
            }
            Status::DeadPlace(place) => return write!(f, "{place}, of the hub or on the way to it, is dead"),
            Status::Invalid => "there is no such hub or block",
        })
    }
}

impl std::error::Error for Status {}

/// Reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceReply {
    /// The request.
    pub id: RequestId,
    /// The hub.
    pub hub: HubId,
    /// The priority of the request when it was carried out.
    pub priority: u8,
    /// Outcome of the request.
    pub status: Status,
    /// The data that it got.
    #[serde(with = "bytes")]
    pub payload: Vec<u8>,
    /// Number of the lock that it has acquired or released, if the hub is a resource.
    pub grant: Option<u64>,
    /// The priority of the most urgent task that already waits for that lock, if it is more urgent than the owner.
    pub boost: Option<u8>,
}

/// Content of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PacketBody {
    /// A request, to the place of the hub.
    Request(ServiceRequest),
    /// A reply, to the place of the task.
    Return(ServiceReply),
    /// The time-out of a request has passed, or nothing waits for it any more; to the place of the hub.
    Withdraw {
        /// The request.
        id: RequestId,
        /// Its hub.
        hub: HubId,
    },
    /// The task of a request has a new priority; to the place of the hub.
    ChangeRequest {
        /// The request.
        id: RequestId,
        /// Its hub.
        hub: HubId,
        /// The new priority.
        priority: u8,
    },
    /// Tasks wait for the lock `grant` of `hub`, which `task` holds, the most urgent with `priority`; to the place of
    /// the task.
    ChangeTask {
        /// The owner.
        task: TaskId,
        /// The resource.
        hub: HubId,
        /// The number of the lock.
        grant: u64,
        /// The priority that the owner inherits; `None` if no waiting task is more urgent.
        priority: Option<u8>,
    },
}

/// A packet: a header of fixed size, and its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HubPacket {
    /// The place that sent it.
    pub from: PlaceId,
    /// Its destination.
    pub to: PlaceId,
    /// Its priority on the way.
    pub priority: u8,
    /// Content of the packet.
    pub body: PacketBody,
}

impl HubPacket {
    /// Length of a packet's header on a link, in bytes (the source, section III.B).
    pub const HEADER_BYTES: usize = 32;

    /// Returns the used part of the packet's data.
    pub fn payload(&self) -> &[u8] {
        match &self.body {
            PacketBody::Request(request) => &request.payload,
            PacketBody::Return(reply) => &reply.payload,
            PacketBody::Withdraw { .. }
            | PacketBody::ChangeRequest { .. }
            | PacketBody::ChangeTask { .. } => &[],
        }
    }
}

/// Encodes data as one byte string, not byte by byte.
mod bytes {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
}
