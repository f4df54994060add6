//! Measurements of Isles, with its peers in the same run.
//!
//! A separate crate because the peers (rayon, tokio and so on) are heavy and nothing else in the project should pay
//! for building them. The binary `isles-bench` is what `isles bench` starts. It tests nothing: a figure that misses
//! its target is printed as missed and is not a failure.
//!
//! Invariant: a figure is printed only if it was measured in this run. A peer that is not installed is named as absent,
//! with the way to install it.
//!
//! Read on: [`suite`] lists the measurements and their targets; [`session`] runs them; [`child`] is the code of the
//! timed processes.

#![forbid(unsafe_code)]

pub mod child;
pub mod install;
pub mod machine;
pub mod measure;
pub mod mpi;
pub mod options;
pub mod output;
pub mod program;
pub mod report;
pub mod samples;
pub mod session;
pub mod suite;
pub mod work_folder;
