//! Tasks that interact through objects passed to them: stages of pipelines, and tasks over hubs.

mod hubs;
mod pipelines;
