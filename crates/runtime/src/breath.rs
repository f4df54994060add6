//! Giving way: how a task that never has to wait lets its place look at its messages.

use crate::local::Local;
use std::future::poll_fn;
use std::task::Poll;

/// Operations that end at once before a task gives way.
const BREATH: u32 = 8;

/// Lets other tasks and messages of the place have their turn.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Gives way now and then; called by operations that ended without waiting.
pub(crate) async fn breathe() {
    // Counted by place, so that a simulated run does not depend on the runs before it on the same thread.
    let operations = Local::with(|local| local.operations.replace((local.operations.get() + 1) % BREATH)) + 1;
    if operations == BREATH {
        yield_now().await;
    }
}
