//! The queued form: what an origin notes until a synchronization sends it, as RCKMPI did.
//!
//! Lock, data and unlock then go one after the other, each lock and unlock with its answer. It exists to be compared
//! with the direct form. Invariant: what was noted for one member is sent in its order.

use super::header::{MessageHead, MessageKind};
use super::memory::Pieces;
use super::state::WindowState;
use super::transfer;
use crate::error::Result;
use isles_protocol::window::LockMode;
use std::rc::Rc;

/// Something to be sent.
pub(super) struct Noted {
    pub(super) target: u32,
    pub(super) what: NotedWhat,
}

/// What.
pub(super) enum NotedWhat {
    Lock(LockMode),
    Put { layout: Pieces, data: Vec<u8>, notifies: bool },
    Accumulate { offset: usize, kinds: [u8; 8], operands: Vec<u8> },
}

impl WindowState {
    /// Whether what this place does to the part of `target` is noted only.
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

    /// Sends what was noted for `target`.
    ///
    /// # Errors
    /// It is dead.
    pub(super) async fn send_noted(self: &Rc<Self>, target: u32) -> Result<()> {
        let mut noted = Vec::new();
        {
            let mut all = self.noted.borrow_mut();
            let (of_target, others) = all.drain(..).partition(|noted| noted.target == target);
            noted.extend::<Vec<Noted>>(of_target);
            *all = others;
        }
        for Noted { what, .. } in noted {
            match what {
                NotedWhat::Lock(mode) => self.ask_for_lock(target, mode).await?,
                NotedWhat::Put { layout, data, notifies } => {
                    transfer::send_put(self, target, layout, &data, notifies)?;
                }
                NotedWhat::Accumulate { offset, kinds, operands } => {
                    transfer::send_accumulate(self, target, offset, kinds, &operands)?;
                }
            }
        }
        Ok(())
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
