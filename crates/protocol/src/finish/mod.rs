//! Distributed termination: a finish is over when all tasks started under it, at any place, have ended.
//!
//! A pure state machine: the runtime reports what its tasks do ([`Finishes::begin`], [`Finishes::depart`], ...) and
//! what peers send ([`Finishes::receive`]), and carries out each [`Output`]. docs/design/finish.md has the problem, the
//! protocol, the proof and the message counts. Nothing here runs tasks, keeps time or moves bytes.
//!
//! The runtime promises in return:
//! 1. Control messages between two live places arrive once and in order. Tasks may arrive in any order.
//! 2. A task is counted by its sender (`depart`) before it can arrive, and each arrived task is counted (`arrive`) and
//!    ended (`end`) once, even if its body cannot be decoded.
//! 3. A place that `place_died` names runs no task and sends nothing any more.

mod control;
mod fault;
mod finishes;
mod home;
mod id;
mod ledger;
mod limits;
mod proxy;
mod slot;
#[cfg(test)]
mod tests;

pub use crate::place::Entry;
pub use control::{Control, FinishReport, Output, TaskRefusal, Violation};
pub use fault::{Fault, Outcome, Payload, PayloadTooLong, Reason, Text};
pub use finishes::{Explanation, Finishes, Waiting};
pub use id::{FinishId, FinishKind, Key};
pub use limits::{
    CONTROL_BYTES_MAX, FAULTS_MAX, FORGET_BATCH, PAYLOAD_BYTES_MAX, REPORT_ENTRIES_MAX, TEXT_BYTES_MAX,
};
