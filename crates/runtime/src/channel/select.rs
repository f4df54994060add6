//! What `select!` expands to: several futures, of which the first that is ready is chosen.
//!
//! A branch that is an operation of a channel does nothing before it is chosen: a send takes a slot first, and a value
//! that arrives for a branch that was not chosen goes back. Any other future is polled as it is. Where two are ready
//! the one is chosen whose turn it is. Invariant: at most one branch has happened.

use super::operation::{RecvFuture, SendFuture};
use crate::capture::CanSend;
use crate::local::Local;
use crate::task::coop::{OPERATION, cooperate};
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Gives way if that is due; which of `branches` branches is looked at first.
pub async fn turn(branches: usize) -> usize {
    cooperate(OPERATION, ready(())).await;
    Local::with(|local| {
        let turn = local.services.channels.borrow_mut().next_turn();
        turn as usize % branches.max(1)
    })
}

/// A branch.
pub struct Branch<'p, F> {
    future: Pin<&'p mut F>,
    /// Whether it has said that nothing is there.
    is_over: bool,
}

impl<'p, F> Branch<'p, F> {
    /// One of this future.
    pub fn new(future: Pin<&'p mut F>) -> Branch<'p, F> {
        Branch { future, is_over: false }
    }

    /// Polls the future; none if it is not ready and shall not wait.
    fn poll_future<O>(&mut self, poll: impl FnOnce(Pin<&mut F>) -> Poll<Option<O>>) -> Poll<Option<O>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let polled = poll(self.future.as_mut());
        self.is_over = polled.is_ready();
        polled
    }
}

impl<T: CanSend> Branch<'_, SendFuture<'_, T>> {
    /// Sends, if there is room.
    pub fn poll_branch(
        &mut self,
        context: &mut Context<'_>,
        waits: bool,
    ) -> Poll<Option<<SendFuture<'_, T> as Future>::Output>> {
        self.poll_future(|mut send| {
            send.select(waits);
            send.poll(context).map(|sent| match sent {
                Err(error) if !waits && error.kind == super::SendErrorKind::Full => None,
                sent => Some(sent),
            })
        })
    }
}

impl<T: CanSend> Branch<'_, RecvFuture<'_, T>> {
    /// Receives, if there is a value.
    pub fn poll_branch(
        &mut self,
        context: &mut Context<'_>,
        waits: bool,
    ) -> Poll<Option<<RecvFuture<'_, T> as Future>::Output>> {
        self.poll_future(|mut recv| {
            recv.select(waits);
            recv.poll(context).map(|received| match received {
                Err(super::RecvError::Empty) if !waits => None,
                received => Some(received),
            })
        })
    }
}

/// A branch of any other future.
pub trait PollBranch {
    /// What the future gives.
    type Output;

    /// Polls it.
    fn poll_branch(&mut self, context: &mut Context<'_>, waits: bool) -> Poll<Option<Self::Output>>;
}

impl<F: Future> PollBranch for Branch<'_, F> {
    type Output = F::Output;

    fn poll_branch(&mut self, context: &mut Context<'_>, waits: bool) -> Poll<Option<F::Output>> {
        self.poll_future(|future| match future.poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if waits => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
        })
    }
}
