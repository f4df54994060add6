//! Tests of the server over raw sockets: requests that are refused, limits, answers, and that a run goes on beside it.

mod bounds;
mod guard;
mod interface;
mod jobs;
mod scene;
