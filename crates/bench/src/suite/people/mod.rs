//! The suites about users of a run: observing it, and managing its jobs.

pub mod jobs;
pub mod ui;
