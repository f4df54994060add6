//! The servers of Isles, for the same user: the live page of a run, and SPARQL over a program that has the data.
//!
//! It is a process of its own, so a run neither waits for it nor falls with it. [`serve`] answers on the loopback
//! address only. Everything that is asked goes through one table of routes and one guard, in this order: host, origin,
//! path, method, session. What it shows comes from `isles_view`; here is no knowledge of runs.
//!
//! Further reading: `guard` (who may ask), `routes` (what can be asked), `accept` (how much at a time), `stream` (the
//! live half), `jobs` (what is passed on to a job server), `report` (a run in one file), `sparql` (queries). The
//! interface of the page is `openapi.json`. Invariant: no request changes anything of a run but its jobs, and those
//! only if it has the role for that.

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
mod sparql;
mod stream;

pub use report::report;
pub use server::{END_SHOWN, RunSource, ServeError, ServeOptions, serve};
pub use sparql::{SparqlOptions, serve_sparql};
