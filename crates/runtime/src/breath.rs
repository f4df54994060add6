//! Giving way: how a task that never has to wait lets its place look at its messages.

use crate::local::Local;
use std::future::poll_fn;
use std::task::Poll;

/// Effort of operations that end at once before a task gives way.
const BREATH: u32 = 64;

/// Effort of an operation on a handle or a phaser: a few dozen nanoseconds.
pub(crate) const OPERATION: u32 = 8;

/// Effort of an `at!` at the own place: next to nothing.
pub(crate) const LOCAL_CALL: u32 = 1;

/// Lets other tasks and messages of the place have their turn.
pub async fn yield_now() {
    Local::try_with(|local| local.gave_way.set(true));
    step_aside().await;
}

/// Goes to the back of the queue of ready tasks.
async fn step_aside() {
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

/// Gives way now and then; called by operations that ended without waiting, with the effort that they were.
#[inline]
pub(crate) async fn breathe(effort: u32) {
    // Counted by place, so that a simulated run does not depend on the runs before it on the same thread.
    let is_due = Local::with(|local| {
        let spent = local.spent.get() + effort;
        local.spent.set(if spent < BREATH { spent } else { 0 });
        spent >= BREATH
    });
    if is_due {
        step_aside().await;
    }
}
