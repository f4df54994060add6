//! The guarantees to programs, on every machine: one test program, because each one links the runtime again.
//!
//! A test that observes its whole process is a separate program.

mod aggregation;
mod anywhere;
mod array;
mod balance;
mod cancel;
mod capture;
mod channels;
#[cfg(feature = "chip")]
mod chip;
#[cfg(feature = "chip")]
mod clock_law;
mod cooperate;
mod counters;
mod decoding;
#[cfg(feature = "chip")]
mod dynamic;
mod encoding;
mod errors;
mod everywhere;
mod exchange;
mod failure;
#[cfg(feature = "chip")]
mod files;
mod given_up;
#[cfg(feature = "chip")]
mod held;
#[cfg(feature = "chip")]
mod interrupts;
mod limits;
#[cfg(feature = "chip")]
mod many;
mod messages;
mod names;
mod order;
#[path = "../../../cli/tests/command/page_block.rs"]
mod page_block;
mod phaser;
mod pinning;
mod place_local;
mod positional;
mod prelude;
#[cfg(feature = "chip")]
#[allow(dead_code, reason = "not all that a trace holds is looked at here")]
#[path = "../../../transport-chip/tests/chip/protobuf.rs"]
mod protobuf;
mod random;
#[cfg(feature = "chip")]
mod regions;
mod rendezvous;
#[cfg(feature = "chip")]
mod roots;
mod serialise;
#[cfg(feature = "chip")]
mod served_windows;
#[cfg(feature = "chip")]
mod shared;
#[cfg(feature = "chip")]
mod shared_memory;
#[cfg(feature = "chip")]
mod spans;
mod stall;
#[cfg(feature = "chip")]
mod steps;
mod team;
#[cfg(feature = "chip")]
mod timer;
mod traffic;
#[cfg(feature = "chip")]
mod uncharged;
mod wakers;
mod windows;
