//! The queued form: what an origin notes until a synchronization sends it, as RCKMPI did.
//!
//! Lock, data and unlock then go one after the other, each lock and unlock with its answer. It exists to be compared
//! with the direct form. Invariant: what was noted for one member is sent in its order.

use super::header::{MessageHead, MessageKind};
use super::memory::Pieces;
use super::state::WindowState;
use super::sync::LockRequest;
use super::transfer;
use isles_protocol::window::LockMode;
use isles_runtime::Result;
use std::collections::VecDeque;
use std::rc::Rc;

/// Something to be sent.
pub(super) struct Noted {
    pub(super) target: u32,
    pub(super) what: NotedWhat,
}

/// Operation of a note.
pub(super) enum NotedWhat {
    Lock(LockMode),
    Put { layout: Pieces, data: Vec<u8>, notifies: bool },
    Accumulate { offset: usize, kinds: [u8; 8], operands: Vec<u8> },
}

/// Fate of notes that could not be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NotSent {
    /// The notes stay, before those that were added since.
    Kept,
    /// The notes are dropped: their epoch has ended.
    Dropped,
}

/// Notes that are being sent; those that are left when it is dropped were not.
struct Unsent<'a> {
    state: &'a WindowState,
    target: u32,
    notes: VecDeque<NotedWhat>,
    not_sent: NotSent,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if self.not_sent == NotSent::Kept {
            let target = self.target;
            let left = self.notes.drain(..).map(|what| Noted { target, what });
            self.state.noted.borrow_mut().splice(..0, left);
        }
    }
}

impl WindowState {
    /// Returns `true` if operations of this place on the part of `target` are only noted.
    #[inline]
    pub(super) fn is_noted(&self, target: u32) -> bool {
        self.options.queued && target != self.rank
    }

    pub(super) fn note(&self, target: u32, what: NotedWhat) {
        self.noted.borrow_mut().push(Noted { target, what });
    }

    /// Returns the members for which something is noted.
    pub(super) fn noted_targets(&self) -> Vec<u32> {
        let mut targets: Vec<u32> = self.noted.borrow().iter().map(|noted| noted.target).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Sends what was noted for `target`; `not_sent` says what becomes of the rest if that fails or is given up.
    ///
    /// # Errors
    /// It is dead.
    pub(super) async fn send_noted(self: &Rc<Self>, target: u32, not_sent: NotSent) -> Result<()> {
        let mut unsent = Unsent { state: self, target, notes: self.take_noted(target), not_sent };
        while let Some(what) = unsent.notes.front() {
            match what {
                NotedWhat::Lock(mode) => LockRequest::noted(self, target).granted(*mode).await?,
                NotedWhat::Put { layout, data, notifies } => {
                    transfer::send_put(self, target, *layout, data, *notifies)?;
                }
                NotedWhat::Accumulate { offset, kinds, operands } => {
                    transfer::send_accumulate(self, target, *offset, *kinds, operands)?;
                }
            }
            unsent.notes.pop_front();
        }
        Ok(())
    }

    fn take_noted(&self, target: u32) -> VecDeque<NotedWhat> {
        let mut all = self.noted.borrow_mut();
        let (of_target, others) = all.drain(..).partition(|noted| noted.target == target);
        *all = others;
        let of_target: Vec<Noted> = of_target;
        of_target.into_iter().map(|noted| noted.what).collect()
    }

    /// Asks `target` for its lock and waits until it is granted.
    ///
    /// # Errors
    /// It is dead.
    pub(super) async fn ask_for_lock(self: &Rc<Self>, target: u32, mode: LockMode) -> Result<()> {
        let kind = match mode {
            LockMode::Shared => MessageKind::LockShared,
            LockMode::Exclusive => MessageKind::LockExclusive,
        };
        transfer::request(self, target, "the lock of", MessageHead::new(self.id, kind), &|_| Ok(()))
            .await
            .map(drop)
    }
}
