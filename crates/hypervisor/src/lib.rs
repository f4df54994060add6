//! Code of this process as the guest of a small hypervisor.
//!
//! A `Guest` is a virtual machine with one virtual CPU, created by ioctls of `/dev/kvm`. `Guest::run` calls a closure
//! in its ring 3. The guest has the memory of the process at the same addresses, so the closure is ordinary Rust, and
//! memory shared with other processes stays shared. System calls enter a kernel of a few instructions, which asks the
//! monitor through one I/O port to execute them; the monitor is the thread that called `Guest::run`.
//!
//! `kernel` has the guest's kernel and its descriptor tables, `memory` the page tables and memory slots, `vcpu` the
//! registers, `syscall` the system calls, `fault` the dump of a guest that failed, and `guest` the loop of the monitor.
//! `docs/design/guests.md` explains why this is correct and what is not isolated.
//!
//! Without the feature `guests` the crate is empty.
#![cfg(all(feature = "guests", target_arch = "x86_64", target_os = "linux"))]

mod error;
mod fault;
mod guest;
mod kernel;
mod memory;
mod syscall;
#[cfg(test)]
mod tests;
mod vcpu;

pub use error::GuestError;
pub use guest::{Guest, GuestCalls, check};
pub use syscall::GuestCounts;
