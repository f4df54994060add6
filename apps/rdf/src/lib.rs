//! SPARQL over RDF triples distributed over places, with complete answers.
//!
//! `store` has the triples and terms of one place, `load` loads them, `peers` has the exchanges between places,
//! `query` evaluates, `answer` and `results` have the answers and their formats, `requests` and `serve` answer queries
//! of clients, `run` is the application. Invariant: an answer has each solution with the multiplicity that SPARQL 1.1
//! defines, on any number of places and any machine.

#![forbid(unsafe_code)]

pub mod answer;
pub mod load;
mod nesting;
mod peers;
mod queries;
pub mod query;
mod requests;
mod results;
mod run;
mod serve;
mod session;
pub mod store;
mod verify;

pub use run::Rdf;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Rdf>()
}
