//! Hubs: the synchronisation objects of a distributed real-time kernel, as in OpenComRTOS.
//!
//! Tasks interact only through hubs, by prioritised packets. A hub lives at one place; a task's request goes to it as a
//! packet, and the outcome returns as another, even if both are at one place. So the places of tasks and hubs change
//! only the latency. The source is Sputh, Lukin and Verhulst, "Transparent Programming of Many/Multi Cores with
//! OpenComRTOS" (6th MARC symposium, 2012), section II.
//!
//! [`Hub`] is the generic hub: a [`HubRule`] (a predicate and an action) and a waiting list. [`rules`] has the rules of
//! all kinds. [`HubNode`] is the state of one place: its hubs, its tasks with their priorities, and the waiting
//! requests. [`PacketQueue`] is an inbox or an outbox, [`Routes`] the next hops, [`Directory`] the unique names and the
//! map.
//!
//! Priorities are 0 to 255; 0 is the most urgent. Nothing here reads a clock: a passed time-out is an input.
//!
//! The carrier of packets promises that those of one pair of places arrive once and in order.

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
