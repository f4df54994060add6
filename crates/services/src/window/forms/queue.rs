//! The queued form: operations that an origin defers until a synchronisation sends them, as RCKMPI did.
//!
//! Lock, data and unlock then go one after the other, each lock and unlock with its answer. It exists to be compared
//! with the direct form. Invariant: operations for one member are sent in order.

use crate::window::header::{MessageHeader, MessageKind};
use crate::window::memory::Pieces;
use crate::window::state::WindowState;
use crate::window::sync::LockRequest;
use crate::window::transfer;
use isles_protocol::window::LockMode;
use isles_runtime::Result;
use std::collections::VecDeque;
use std::rc::Rc;

/// An operation to send.
pub(in crate::window) struct QueuedOperation {
    pub(in crate::window) target: u32,
    pub(in crate::window) kind: QueuedOperationKind,
}

/// Kind of a queued operation.
pub(in crate::window) enum QueuedOperationKind {
    Lock(LockMode),
    Put { layout: Pieces, data: Vec<u8>, notifies: bool },
    Accumulate { offset: usize, kinds: [u8; 8], operands: Vec<u8> },
}

/// Fate of operations that could not be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::window) enum NotSent {
    /// They stay, before the operations queued meanwhile.
    Kept,
    /// They are dropped: their epoch has ended.
    Dropped,
}

/// Operations that are being sent; those left when it is dropped were not sent.
struct UnsentGuard<'a> {
    state: &'a WindowState,
    target: u32,
    operations: VecDeque<QueuedOperationKind>,
    not_sent: NotSent,
}

impl Drop for UnsentGuard<'_> {
    fn drop(&mut self) {
        if self.not_sent == NotSent::Kept {
            let target = self.target;
            let left = self.operations.drain(..).map(|kind| QueuedOperation { target, kind });
            self.state.queued.borrow_mut().splice(..0, left);
        }
    }
}

impl WindowState {
    /// Returns `true` if operations of this place on the part of `target` are deferred.
    #[inline]
    pub(in crate::window) fn is_queued(&self, target: u32) -> bool {
        self.options.queued && target != self.rank
    }

    pub(in crate::window) fn enqueue(&self, target: u32, kind: QueuedOperationKind) {
        self.queued.borrow_mut().push(QueuedOperation { target, kind });
    }

    /// Returns the members for which operations are queued.
    pub(in crate::window) fn queued_targets(&self) -> Vec<u32> {
        let mut targets: Vec<u32> = self.queued.borrow().iter().map(|queued| queued.target).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Sends the operations queued for `target`; `not_sent` says what to do with the rest if that fails or is given up.
    ///
    /// # Errors
    /// The target is dead.
    pub(in crate::window) async fn send_queued(
        self: &Rc<Self>,
        target: u32,
        not_sent: NotSent,
    ) -> Result<()> {
        let mut unsent = UnsentGuard { state: self, target, operations: self.take_queued(target), not_sent };
        while let Some(kind) = unsent.operations.front() {
            match kind {
                QueuedOperationKind::Lock(mode) => LockRequest::queued(self, target).granted(*mode).await?,
                QueuedOperationKind::Put { layout, data, notifies } => {
                    transfer::send_put(self, target, *layout, data, *notifies)?;
                }
                QueuedOperationKind::Accumulate { offset, kinds, operands } => {
                    transfer::send_accumulate(self, target, *offset, *kinds, operands)?;
                }
            }
            unsent.operations.pop_front();
        }
        Ok(())
    }

    fn take_queued(&self, target: u32) -> VecDeque<QueuedOperationKind> {
        let mut all = self.queued.borrow_mut();
        let (of_target, others) = all.drain(..).partition(|queued| queued.target == target);
        *all = others;
        let of_target: Vec<QueuedOperation> = of_target;
        of_target.into_iter().map(|queued| queued.kind).collect()
    }

    /// Asks `target` for its lock and waits until it is granted.
    ///
    /// # Errors
    /// The target is dead.
    pub(in crate::window) async fn ask_for_lock(self: &Rc<Self>, target: u32, mode: LockMode) -> Result<()> {
        let kind = match mode {
            LockMode::Shared => MessageKind::LockShared,
            LockMode::Exclusive => MessageKind::LockExclusive,
        };
        transfer::request(self, target, "the lock of", MessageHeader::new(self.id, kind), &|_| Ok(()))
            .await
            .map(drop)
    }
}
