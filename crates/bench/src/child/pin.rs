//! Threads on cores of their own.
//!
//! Its own file because two sides of an exchange must not share a core when there are two. It does not place
//! Isles' own places; they do that. The invariant: side 0 and side 1 never get the same core if the process may
//! use two.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// Cores that the process might use when it first asked; pinning a thread narrows what its children see.
static CORES: OnceLock<Vec<usize>> = OnceLock::new();

/// Looks up the cores. To be called by the first thread before any is pinned or started.
pub fn prepare() {
    CORES.get_or_init(|| {
        let allowed = sched_getaffinity(None).expect("the own affinity can be read");
        (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
    });
}

/// Pins the calling thread to the `side`-th core that the process may use, counted round.
pub fn pin(side: usize) {
    let cores = CORES.get().expect("`prepare` was called first");
    let mut one = CpuSet::new();
    one.set(cores[side % cores.len()]);
    sched_setaffinity(None, &one).expect("a core that the process may use can be chosen");
}
