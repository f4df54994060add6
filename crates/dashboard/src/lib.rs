//! The servers of Isles, for the same user: the live page of a run, and SPARQL over a program that has the data.
//!
//! It is a separate process, so a run neither waits for it nor fails with it. [`serve`] listens on the loopback address
//! only. Every request passes one guard and one table of routes, in this order: host, origin, path, method, session.
//! The contents come from `isles_view`.
//!
//! Further reading: `guard` (authorisation), `routes` (requests), `accept` (limits), `stream` (live snapshots), `jobs`
//! (requests to a job server), `report` (a run in one file), `sparql` (queries). The interface of the page is
//! `openapi.json`. Invariant: requests can only change the jobs of a run, and only with the manager role.

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
