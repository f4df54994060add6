//! Cooperative scheduling: tasks that never wait yield all the same (as tokio's `coop`).
//!
//! An operation that completes in its first poll, with a value or an error, spends from a budget of its place; once
//! that is spent, the next operation lets the other tasks and the messages of the place have their turn before it
//! begins. So a loop of operations cannot monopolise its place, whatever they return. An operation that waits yields by
//! waiting.
//!
//! Such a yield ends the turn of the place, as [`yield_now`] does, if only the place itself can let others go on: if
//! places share a thread, which nothing interrupts, or if there are other hosts. Everywhere it does so when the turn
//! has been long by the clock of the place (`local/turn.rs`): the place looks for messages of other places before its
//! tasks take more from them.

use crate::error::{Error, Result};
use crate::local::{Clock, Local};
use isles_transport::Inbound;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

/// Effort of operations that complete at once, after which a task yields.
const BUDGET: u32 = 64;

/// The same on a modelled core, whose clock moves by turns, so that deadlines there do not take much longer on the host
/// beside such operations.
const BUDGET_MODELLED: u32 = 16;

/// The same if time passes only between turns: each operation on a handle gets a turn.
const BUDGET_IN_STEPS: u32 = OPERATION;

/// Effort of an operation on a handle, a phaser or a finish: a few dozen nanoseconds.
pub const OPERATION: u32 = 8;

/// Effort of an `at!`, or of a message to a member, that completes at once: next to nothing.
pub const CALL: u32 = 1;

/// Effort of an operation that has polled for another host: tens of microseconds at most.
pub const LOOK: u32 = 4;

/// Number of times a waiting task polls for messages before it yields: some 4 µs in all.
const LOOKS_MAX: u32 = 64;

/// Effort of a piece of a long message read from its sender's memory: a turn.
pub const PIECE: u32 = BUDGET;

/// Effort of an `at!` that fails at once: a turn. No computation depends on it, and a loop that only fails advances the
/// clock of a modelled chip by no more than its turns.
const FAILED_CALL: u32 = BUDGET;

/// Lets the other tasks and the messages of the place have their turn.
pub async fn yield_now() {
    Local::try_with(|local| local.has_yielded.set(true));
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

/// Waits until everything that this place has sent can travel without it: nothing waits for room, and no message has
/// pieces left to write.
///
/// If messages go piece by piece, as on some modelled chips, a computing place sends no further pieces. Collectives,
/// sends to members and over channels, puts and accumulates end only when their messages have left. A task that has
/// sent much by `spawn_at!`, which does not wait, and is about to compute for long should wait here, as with `MPI_Wait`
/// for an `MPI_Isend`. On other machines this returns at once.
pub async fn flush_sends() {
    poll_fn(|context| {
        Local::with(|local| {
            if !local.is_sending() {
                return Poll::Ready(());
            }
            local.wake_when_sent(context.waker());
            Poll::Pending
        })
    })
    .await
}

/// Waits until everything that this place has sent has left, if its sends could not wait, so that the task's next
/// computation delays no message.
#[inline]
pub async fn wait_until_sent() {
    poll_fn(poll_until_sent).await;
}

/// Polls for messages while nothing else is ready to run here, until `condition` returns a value.
///
/// A message that comes soon is found sooner this way than through the place's queue.
pub fn spin_until<R>(condition: &mut impl FnMut() -> Option<R>) -> Option<R> {
    Local::with(|local| {
        let is_on_host = matches!(local.clock(), Clock::Host(_));
        let looks = if local.shares_processors() || !is_on_host { 0 } else { LOOKS_MAX };
        for _ in 0..looks {
            if local.has_ready() {
                return None;
            }
            if local.poll_messages(Inbound::All) > 0
                && let Some(result) = condition()
            {
                return Some(result);
            }
        }
        None
    })
}

/// Polls until everything that this place has sent has left; if its sends could not wait, the task goes on when it has.
///
/// Checks again at each poll, because it may be part of a future that its task polls twice in one turn.
#[inline]
pub fn poll_until_sent(context: &mut Context<'_>) -> Poll<()> {
    Local::with(|local| {
        if !local.tasks_wait_for_sends() {
            return Poll::Ready(());
        }
        // The place runs no task meanwhile.
        local.has_yielded.set(true);
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Polls for permission to begin an operation; without it, the task goes to the back of the ready queue, with a new
/// budget.
#[inline]
pub fn poll_proceed(context: &mut Context<'_>) -> Poll<()> {
    if Local::with(must_yield) {
        context.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}

/// Returns `true` if the budget of the place is spent, or its turn has been long enough; a new budget then begins.
///
/// Counted by place, so that a simulated run does not depend on the runs before it on the same thread.
#[inline]
pub fn must_yield(local: &Local) -> bool {
    let budget = match local.clock() {
        Clock::Host(_) => BUDGET,
        Clock::Modelled(_) => BUDGET_MODELLED,
        Clock::Steps(_) => BUDGET_IN_STEPS,
    };
    let is_long = local.is_turn_long();
    let is_over = is_long || local.spent.get() >= budget;
    if is_over {
        local.spent.set(0);
        // On a host another thread may serve the place's peers meanwhile; a batch of tasks costs less than a look.
        if is_long || local.has_remote_hosts || !matches!(local.clock(), Clock::Host(_)) {
            local.has_yielded.set(true);
        }
    }
    is_over
}

/// Records that an operation has completed in its first poll.
#[inline]
pub fn spend_budget(effort: u32) {
    Local::with(|local| spend_budget_of(local, effort));
}

/// As [`spend_budget`], for a known place.
#[inline]
pub fn spend_budget_of(local: &Local, effort: u32) {
    local.spent.set(local.spent.get() + effort);
}

/// Runs `operation` when the budget allows it, and spends `effort` if it does not wait.
#[inline]
pub async fn cooperate<F: Future>(effort: u32, operation: F) -> F::Output {
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
            spend_budget(effort(output));
        }
        polled
    })
    .await
}

/// The rest of an operation, as a future.
type SlowFuture<'a, R> = Pin<Box<dyn Future<Output = Result<R>> + 'a>>;

/// Outcome of the first attempt of an operation.
pub enum Attempt<'a, R> {
    /// It has completed.
    Done(R),
    /// It must wait.
    Slow(SlowFuture<'a, R>),
}

/// Makes an attempt that must wait for `operation`. A separate function, so that an attempt that completes keeps its
/// state in registers.
#[cold]
#[inline(never)]
pub fn slow_path<'a, R, F>(operation: impl FnOnce() -> F) -> Attempt<'a, R>
where
    F: Future<Output = Result<R>> + 'a,
{
    Attempt::Slow(Box::pin(operation()))
}

/// An operation that mostly completes in its first poll, and then needs none of the states of nested `async` functions.
///
/// It begins when the budget allows it; `attempt` spends its cost.
pub struct FastPath<'a, R, F> {
    /// The line of the program that errors name.
    line: Option<&'static Location<'static>>,
    /// Called once.
    attempt: F,
    slow: Option<SlowFuture<'a, R>>,
}

impl<'a, R, F: FnMut() -> Result<Attempt<'a, R>>> FastPath<'a, R, F> {
    /// Returns an operation that `attempt` begins.
    #[inline]
    pub fn new(attempt: F) -> Self {
        FastPath { line: None, attempt, slow: None }
    }

    /// As [`FastPath::new`], for an operation whose errors name `line`.
    #[inline]
    pub fn named(line: &'static Location<'static>, attempt: F) -> Self {
        FastPath { line: Some(line), attempt, slow: None }
    }
}

impl<'a, R, F: FnMut() -> Result<Attempt<'a, R>> + Unpin> Future for FastPath<'a, R, F> {
    type Output = Result<R>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        let name = |error: Error, line: Option<&'static Location<'static>>| match line {
            Some(line) => error.called_at(Local::with(Local::here), line),
            None => error,
        };
        let line = self.line;
        if self.slow.is_none() {
            ready!(poll_proceed(context));
            match (self.attempt)() {
                Ok(Attempt::Done(result)) => return Poll::Ready(Ok(result)),
                Ok(Attempt::Slow(slow)) => self.slow = Some(slow),
                Err(error) => return Poll::Ready(Err(name(error, line))),
            }
        }
        let slow = self.slow.as_mut().expect("an attempt that is not over goes on");
        slow.as_mut().poll(context).map(|result| result.map_err(|error| name(error, line)))
    }
}
