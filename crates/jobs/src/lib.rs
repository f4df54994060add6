//! Interactive management of jobs over the places of a run.
//!
//! `isles serve` becomes the program of this crate: one run, whose first place keeps a table of jobs and executes
//! requests from a socket; the other places run jobs, too. A [`Job`] of a program can be stopped between two steps:
//! paused, checkpointed to a file, or moved to another place. A system command can be a job as well: it can be paused
//! and killed, and with CRIU also checkpointed and moved. The states of jobs and their transitions are the state
//! machine of `isles_protocol::job`; `docs/design/jobs.md` describes the design.

#![forbid(unsafe_code)]

mod admission;
mod command_queue;
mod demonstration;
mod job;
mod kinds;
mod request;
mod response_tracker;
mod runner;
mod server;
mod socket;
mod store;
mod table;
#[cfg(test)]
mod tests;

pub use admission::steers_text;
pub use isles_protocol::job::Policy;
pub use job::{Job, JobKind, JobOutput, JobProgress, from_bytes, offer, to_bytes};
pub use kinds::KINDS;
pub use request::{
    CoreView, JobOrder, JobReply, JobRequest, JobView, ORDERS, OrderInfo, Refusal, RefusalClass, RefusalKind,
};
pub use runner::{Caller, Environment, Runnable};
pub use server::{JobServerOptions, serve};
pub use socket::{ask, end, socket_path};
pub use store::{JobSpec, Store, StoreError};
