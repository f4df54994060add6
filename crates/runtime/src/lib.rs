//! One place: its tasks, and everything a program does with them.
//!
//! The crate turns a transport's endpoint into a place of Isles: tasks, `finish`, `at`, handles, teams. It
//! does not know which transports exist, and nothing of machines; the façade `isles` brings both together.
//! Protocol logic that can be tested without threads is in `isles_protocol`.

mod call;
pub mod capture;
mod coop;
mod error;
mod everywhere;
mod finish;
mod foreign_error;
mod function;
mod handle;
mod hasher;
mod image;
mod join;
pub mod limits;
mod local;
mod message;
mod monitor;
mod output_queue;
mod panic;
mod part;
mod phaser;
mod place;
pub mod plain;
mod process;
mod report;
pub mod run;
mod scope;
mod site;
mod span;
mod task;
mod team;
mod time;
mod timer;
pub mod wire;

pub use call::{at, at_here, at_there, is_here, spawn, spawn_at, spawn_detached, spawn_with, try_here};
pub use coop::yield_now;
pub use error::{Error, ErrorKind, Result};
pub use everywhere::everywhere;
pub use finish::{Canceller, Finish, Outcome, cancel, finish};
pub use foreign_error::{BodyError, StdError};
pub use handle::{
    Counter, CounterNumber, Global, NotHome, Opened, PlaceGuard, PlaceLocal, PlaceRef, Replicated,
};
pub use isles_transport::{Table, Work};
pub use local::{Clock, Local, Step};
pub use monitor::Monitor;
pub use phaser::Phaser;
pub use place::{Place, here, place_count, place_of, places};
pub use process::watch_exits;
pub use report::{PlaceReport, RunReport, together};
pub use site::{Site, SiteCell};
pub use task::Priority;
pub use team::{BroadcastAlgorithm, Collectives, Shape, Team};
pub use time::{Cycles, now, work};
pub use timer::{Sleep, sleep, timeout};
