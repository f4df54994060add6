//! Places of several hosts over an MPI library.
//!
//! Open MPI or MPICH moves the bytes, through a shim in C; this crate has the frames in which small messages travel
//! ([`frame`]), the credit of each pair of places ([`credit`]), and the endpoint made of both. Places of one host do
//! not use it: the façade combines it with shared memory. `docs/design/hosts.md` has the design. Invariant: only the
//! thread that started the library calls it.

pub mod credit;
pub mod failure_detector;
pub mod frame;
pub mod token_bucket;

#[cfg(feature = "library")]
mod bell;
#[cfg(any(feature = "library", test))]
mod block;
#[cfg(feature = "library")]
mod endpoint;
#[cfg(feature = "library")]
mod inlet;
#[cfg(feature = "library")]
mod library;

#[cfg(feature = "library")]
pub use bell::Bell;
#[cfg(feature = "library")]
pub use endpoint::{MpiBlock, MpiEndpoint};
#[cfg(feature = "library")]
pub use library::{Library, MpiError};
