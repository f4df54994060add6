//! Cooperative scheduling: tasks that never have to wait give way all the same (as tokio's `coop`).
//!
//! An operation that ends in its first poll, with a value or an error, spends from a budget of its place; where that is
//! spent, the next operation lets the other tasks and the messages of the place have their turn before it begins. So a
//! loop of operations cannot keep its place to itself, whatever they answer. One that waits gives way by waiting.
//!
//! Places that share a thread have nobody who interrupts them, so there such an operation ends the turn of its place,
//! as [`yield_now`] does. On a modelled chip it does so, too, when the clock of the place has moved on by
//! [`TURN_TIME_MAX`] since the turn began: what other places have sent meanwhile is looked at before more is taken from
//! them. And so where there are other hosts, because only the place itself serves them.

use crate::error::Result;
use crate::limits::TURN_TIME_MAX;
use crate::local::{Clock, Local};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};

/// Effort of operations that end at once before a task gives way.
const BUDGET: u32 = 64;

/// The same where time passes between turns only: each operation on a handle has a turn.
const BUDGET_IN_STEPS: u32 = OPERATION;

/// Effort of an operation on a handle, a phaser or a finish: a few dozen nanoseconds.
pub(crate) const OPERATION: u32 = 8;

/// Effort of an `at!`, or of a message to a member, that is over at once: next to nothing.
pub(crate) const CALL: u32 = 1;

/// Effort of an `at!` that fails at once: a turn. Nothing that computes depends on it, and a loop that only fails moves
/// the clock of a modelled chip by no more than its turns.
const FAILED_CALL: u32 = BUDGET;

/// Lets other tasks and messages of the place have their turn.
pub async fn yield_now() {
    Local::try_with(|local| local.gave_way.set(true));
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

/// Whether an operation may begin; if not, the task goes to the back of the queue of ready tasks, with a new budget.
#[inline]
pub(crate) fn poll_proceed(context: &mut Context<'_>) -> Poll<()> {
    if Local::with(must_give_way) {
        context.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}

/// Whether the budget of the place is spent, or its turn has been long enough; then a new budget begins.
///
/// Counted by place, so that a simulated run does not depend on the runs before it on the same thread.
#[inline]
fn must_give_way(local: &Local) -> bool {
    let spent = local.spent.get();
    let is_over = match local.clock() {
        Clock::Host(_) if local.has_far => {
            spent >= BUDGET || local.clock().now().saturating_sub(local.turn_start.get()) >= TURN_TIME_MAX
        }
        Clock::Host(_) => spent >= BUDGET,
        Clock::Steps(_) => spent >= BUDGET_IN_STEPS,
        // Where a program's code is measured, that before the first operation of a turn may take longer than a turn
        // should: so after a turn that ended early an operation proceeds whatever the time.
        Clock::Modelled(now) => {
            let proceeds = local.turn_ended_early.take();
            let is_long = !proceeds && now().saturating_sub(local.turn_start.get()) >= TURN_TIME_MAX;
            local.turn_ended_early.set(is_long);
            spent >= BUDGET || is_long
        }
    };
    if is_over {
        local.spent.set(0);
        // On a host another thread may serve the place's peers meanwhile; a batch of tasks costs less than a look.
        if local.has_far || !matches!(local.clock(), Clock::Host(_)) {
            local.gave_way.set(true);
        }
    }
    is_over
}

/// Notes that an operation has ended in its first poll.
#[inline]
pub(crate) fn spend(effort: u32) {
    Local::with(|local| local.spent.set(local.spent.get() + effort));
}

/// Runs `operation` when the budget allows it, and spends `effort` if it does not wait.
#[inline]
pub(crate) async fn cooperate<F: Future>(effort: u32, operation: F) -> F::Output {
    cooperate_by(|_| effort, operation).await
}

/// Runs an `at!` as [`cooperate`] does.
#[inline]
pub(crate) async fn cooperate_call<V>(call: impl Future<Output = Result<V>>) -> Result<V> {
    cooperate_by(|result| if result.is_ok() { CALL } else { FAILED_CALL }, call).await
}

#[inline]
async fn cooperate_by<F: Future>(effort: impl Fn(&F::Output) -> u32, operation: F) -> F::Output {
    let mut operation = pin!(operation);
    let mut has_begun = false;
    poll_fn(|context| {
        if has_begun {
            return operation.as_mut().poll(context);
        }
        ready!(poll_proceed(context));
        has_begun = true;
        let polled = operation.as_mut().poll(context);
        if let Poll::Ready(output) = &polled {
            spend(effort(output));
        }
        polled
    })
    .await
}
