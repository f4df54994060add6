//! The fastest route of an underwater glider through time-dependent currents; dive profiles are distributed over
//! places.
//!
//! From the bottom up: [`current`] and `file` have the currents, [`sea`] adds land, obstacles and the sea floor,
//! [`glide`] computes the time along an edge with one dive profile, [`search`] is a time-dependent Dijkstra search
//! that requests arrivals of edges, [`zermelo`] has the analytic optima. `parallel` distributes the profiles of an
//! edge over workers, `run` is the application, `route` and `picture` write the result. The paper is Woithe et al.,
//! Enabling Computation Intensive Applications in Battery-Operated Cyber-Physical Systems, 6th MARC symposium (2012);
//! the algorithm is TVE of M. Eichhorn (2009). Invariant: the route depends on the arguments only.

#![forbid(unsafe_code)]

mod case;
pub mod current;
mod file;
pub mod glide;
mod parallel;
mod picture;
mod route;
mod run;
pub mod sea;
pub mod search;
pub mod zermelo;

#[cfg(test)]
mod tests;

pub use case::{Case, Mission, PlanArguments};
pub use run::PathPlanner;
pub use search::best;

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<PathPlanner>()
}
