//! The parts of every application beside its kernel: arguments, results, progress, the live page, several seeds.
//!
//! An application is a crate with a program of three lines, which calls [`main`]. The `isles` command and the lab use
//! the same flags, failures and lines. It knows only the names of applications. Invariant: an application's answer does
//! not depend on it.

#![forbid(unsafe_code)]

pub mod companion;
pub mod console;
mod failure;
mod flags;
pub mod frame;
pub mod input;
pub mod picture;
mod program;
pub mod runs;
pub mod seeds;
pub mod ui;
pub mod usage;

pub use failure::{EndedRun, Failure, ended};
pub use flags::{ChipArguments, CommandArguments, PlaceArguments};
pub use program::main;
