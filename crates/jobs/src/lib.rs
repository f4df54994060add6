//! Jobs that people manage by hand, over the places of a run.
//!
//! `isles serve` becomes the program of this crate: one run, whose first place keeps a table of jobs and carries out
//! what people say through a socket; its other places run jobs, too. A [`Job`] of a program is written so that it can
//! be stopped between two steps: it is paused, written to a file, moved to another place. A command of the system can
//! be a job as well, which is paused and killed only. The states of jobs, and what leads from one to another, are the
//! machine of `isles_protocol::job`; `docs/design/jobs.md` says how it all hangs together.

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
