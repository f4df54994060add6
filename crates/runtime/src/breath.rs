//! Giving way: how a task that never has to wait lets its place look at its messages.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// Operations that end at once before a task gives way.
const BREATH: u32 = 8;

thread_local! {
    static OPERATIONS: Cell<u32> = const { Cell::new(0) };
}

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
    let operations = OPERATIONS.get() + 1;
    OPERATIONS.set(operations % BREATH);
    if operations == BREATH {
        yield_now().await;
    }
}
