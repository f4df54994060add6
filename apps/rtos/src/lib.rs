//! Programs over the hubs of a distributed real-time kernel (OpenComRTOS): `semaphore-loop`, `port-throughput` and
//! `control-loop`.
//!
//! Each describes its tasks and hubs by name; a map assigns them to places. Invariant: the values of the tasks are the
//! same under every map.

#![forbid(unsafe_code)]

mod control_loop;
mod port_throughput;
mod program;
mod semaphore_loop;

pub use control_loop::ControlLoop;
pub use port_throughput::PortThroughput;
pub use semaphore_loop::SemaphoreLoop;
