//! Hubs: the synchronisation objects of a distributed real-time kernel, as in OpenComRTOS.
//!
//! Tasks interact only through hubs, by prioritised packets. A hub lives at one place; the request of a task goes to
//! it as a packet, and what it comes to is returned as another, also when both are at one place. So where tasks and
//! hubs are changes latency only. The source is Sputh, Lukin and Verhulst, "Transparent Programming of Many/Multi Cores
//! with OpenComRTOS" (6th MARC symposium, 2012), section II.
//!
//! [`Hub`] is the one generic hub: a [`HubRule`] (a predicate and an action) and a waiting list. [`rules`] has those of
//! all kinds. [`HubNode`] is what one place knows: its hubs, its tasks with their priorities, and the requests that
//! wait. [`PacketQueue`] is an inbox or an outbox, [`Routes`] the next hops, [`Directory`] the unique names and the
//! map.
//!
//! Priorities are 0 to 255; 0 is the most urgent. Nothing here reads a clock: that a time-out has passed is an input.
//!
//! Whoever carries the packets promises that those of one pair of places arrive once and in the order in which they
//! were sent.

mod directory;
mod generic;
mod message;
mod node;
mod queue;
mod route;
pub mod rules;
mod run_queue;
mod slots;
#[cfg(test)]
mod tests;
mod waiting;

pub use directory::{Directory, DirectoryFault, Entity, HubSpec, TaskSpec};
pub use generic::Hub;
pub use message::{
    HubId, HubOperation, HubPacket, PacketBody, RequestId, ServiceReply, ServiceRequest, Status, TaskId,
};
pub use node::{AtOnce, HubNode, Output, Submission};
pub use queue::PacketQueue;
pub use route::{RouteError, Routes};
pub use rules::{HubKind, HubRule, Readiness};
pub use run_queue::RunQueue;
pub use slots::RequestTable;
