//! The atomic types of the group, from the language or from loom.
//!
//! The group under a sequence number is written once; it runs on mapped memory in the product and on owned memory under
//! `--cfg loom`. Invariant: `group` takes its atomics from here and nowhere else.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
