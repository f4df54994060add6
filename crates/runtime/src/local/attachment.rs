//! Which place of which run something belongs to.
//!
//! A program can keep a handle longer than its run: in a static, or a variable of its thread. What such a handle names
//! by numbers would be something else in the next run, so it also names its attachment, and is refused elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};

/// One place in one run; no two that ever were in the process are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment(u64);

impl Attachment {
    /// One that never was before.
    pub(super) fn next() -> Attachment {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed is enough: only that the numbers differ matters.
        Attachment(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
