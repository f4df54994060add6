//! The function of `#[isles::main(init = ..)]`, which runs first in each process, and its state.
//!
//! In a process started as a place, `init` runs before the process joins its run. A run started by `init` would join in
//! its stead, so joining is refused until `init` returns. Invariant: no process joins while its `init` runs.

use crate::machine::supervisor::supervise_as_process_1;
use std::sync::atomic::{AtomicU8, Ordering};

/// The program has no `init`, or it has not started.
const NONE: u8 = 0;
const RUNNING: u8 = 1;
const OVER: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NONE);

/// Runs the `init` of this process. A panic in it ends the process, so the state need not be reset.
pub fn run(init: impl FnOnce()) {
    supervise_as_process_1();
    // Relaxed is enough, here and below: readers are called by `init` or after it.
    STATE.store(RUNNING, Ordering::Relaxed);
    init();
    STATE.store(OVER, Ordering::Relaxed);
}

/// Returns `true` while the `init` of this process runs.
pub(crate) fn is_running() -> bool {
    STATE.load(Ordering::Relaxed) == RUNNING
}

/// Returns `true` if the program has an `init` that this process has begun.
pub(crate) fn exists() -> bool {
    STATE.load(Ordering::Relaxed) != NONE
}
