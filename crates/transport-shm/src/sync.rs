//! The atomic types of the lock-free parts, from the language or from loom.
//!
//! The ring, the parking word and the bell are written once; they run on mapped memory in the product and on owned
//! memory under `--cfg loom`, where every interleaving within the bound is tried. Modules that loom explores take their
//! atomics from here and nowhere else; it does not offer anything else.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
