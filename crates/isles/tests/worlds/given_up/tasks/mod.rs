//! Tasks that interact by what they are given: stages of pipelines, and tasks over hubs.

mod hubs;
mod pipelines;
