//! A hash table over memory that places share page by page: random additions and look-ups from all places.
//!
//! `table` has the layout of the table and its operations on the slots of one stripe; `run` is the application.
//! Invariant: the additions to a key commute, so the final content is the same for any number of places; it is
//! compared with a sequential map.

#![forbid(unsafe_code)]

mod run;
mod table;

pub use run::Hashtable;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Hashtable>()
}
