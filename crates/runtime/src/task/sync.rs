//! Primitives that tasks share with other threads, from the language or from loom.
//!
//! The word of a task, the injector and the memory of cells are written once; under `--cfg loom` every interleaving of
//! a place with its foreign wakers is tried, and every allocation that is leaked or freed twice is reported. Modules of
//! this folder take atomics, locks and raw memory only from here; it offers nothing else.

#[cfg(not(loom))]
pub(super) use std::{
    alloc::{alloc, dealloc},
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

#[cfg(loom)]
pub(super) use loom::{
    alloc::{alloc, dealloc},
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};
