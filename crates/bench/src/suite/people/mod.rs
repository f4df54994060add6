//! The suites of what people do with a run: they look at it, and manage its jobs.

pub mod jobs;
pub mod ui;
