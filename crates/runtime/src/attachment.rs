//! The run and place to which something belongs.
//!
//! A program can keep a handle longer than its run: in a static, or a thread-local variable. The numbers in such a
//! handle would mean something else in the next run, so it also holds its attachment, and is refused elsewhere.

use crate::error::{Error, ErrorKind, Result};
use crate::local::Local;
use std::sync::atomic::{AtomicU64, Ordering};

/// One place in one run. No two attachments of a process are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment(u64);

impl Attachment {
    /// Returns a new attachment.
    pub(crate) fn next() -> Attachment {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed is enough: the numbers only have to differ.
        Attachment(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs `f` with the place entered on this thread, if that is the attachment's place.
    pub fn try_with<R>(self, f: impl FnOnce(&Local) -> R) -> Option<R> {
        Local::try_with(|local| (local.attachment() == self).then(|| f(local))).flatten()
    }

    /// Runs `f` with the place entered on this thread, which must be the attachment's place.
    ///
    /// # Errors
    /// [`Misused`](ErrorKind::Misused): the entered place belongs to another run, or is another place of this run.
    ///
    /// # Panics
    /// If no place is entered.
    #[inline]
    #[track_caller]
    pub fn with<R>(self, f: impl FnOnce(&Local) -> R) -> Result<R> {
        Local::with(|local| if local.attachment() == self { Ok(f(local)) } else { Err(foreign()) })
    }

    /// Returns `true` if the thread has entered another place, where a handle of this one must not be used.
    #[inline]
    pub fn is_foreign(self) -> bool {
        Local::try_with(|local| local.attachment() != self) == Some(true)
    }
}

#[cold]
fn foreign() -> Error {
    Error::new(ErrorKind::Misused, FOREIGN)
}

/// Message for a handle that is used where it does not belong.
pub const FOREIGN: &str = "a handle of a run that has ended, or of another place; use it only in its own \
     run, and send it to another place in a body or a message";
