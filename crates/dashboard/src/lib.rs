//! The server of the live page: one run, live or from its log, for browsers of the same user.
//!
//! It is a process of its own, so a run neither waits for it nor falls with it. [`serve`] answers on the loopback
//! address only. Everything that is asked goes through one table of routes and one guard, in this order: host, origin,
//! path, method, session. What it shows comes from `isles_view`; here is no knowledge of runs.
//!
//! Where to read on: `guard` (who may ask), `routes` (what can be asked), `accept` (how much at a time), `stream`
//! (the live half), `jobs` (what is passed on to a job server), `report` (a run in one file). The interface is
//! `openapi.json`. Invariant: no request changes anything of a run but its jobs, and those only who has the role
//! for it.

#![forbid(unsafe_code)]

mod accept;
mod answer;
mod assets;
mod guard;
mod jobs;
mod metrics;
mod report;
mod routes;
mod server;
mod stream;

pub use report::report;
pub use server::{LAST_WORDS, RunSource, ServeError, ServeOptions, serve};
