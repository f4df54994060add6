//! The barrier, as a future written by hand.
//!
//! If two members come at about the same time, the barrier ends in one poll, without the states of nested `async`
//! functions, which would take a fifth of its time. A longer wait continues as any other collective. It knows no
//! schedule but that of two members.

use super::Team;
use super::ongoing::{BeginCollective, OngoingCollective};
use isles_protocol::team::CollectiveKind;
use isles_runtime::{Local, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

impl Team {
    /// Waits until every member has called it.
    ///
    /// # Errors
    /// As [`Team`] says.
    #[inline]
    pub fn barrier(&self) -> impl Future<Output = Result<()>> {
        Barrier { begin: self.begin(CollectiveKind::Barrier), rest: None }
    }
}

/// Future of a barrier.
struct Barrier<'t> {
    begin: BeginCollective<'t>,
    /// The remaining work, if the barrier did not end at once.
    rest: Option<SlowPath<'t>>,
}

type SlowPath<'t> = Pin<Box<dyn Future<Output = Result<()>> + 't>>;

impl Future for Barrier<'_> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(rest) = &mut self.rest {
            return rest.as_mut().poll(context);
        }
        let ongoing = ready!(Pin::new(&mut self.begin).poll(context))?;
        let rest = if ongoing.size() == 2 {
            let other = 1 - ongoing.rank();
            ongoing.signal(other, 0)?;
            let is_complete = ongoing.spin_read(other, 0, |_, _| ());
            if is_complete && Local::with(|local| !local.tasks_wait_for_sends()) {
                return Poll::Ready(ongoing.end(()));
            }
            wait(ongoing, other, is_complete)
        } else {
            synchronize(ongoing)
        };
        self.rest.insert(rest).as_mut().poll(context)
    }
}

/// Waits for the signal of the `other` of two members, unless it has arrived, and until the own signal is sent.
#[cold]
fn wait(ongoing: OngoingCollective<'_>, other: usize, is_complete: bool) -> SlowPath<'_> {
    Box::pin(async move {
        if !is_complete {
            ongoing.take(other, 0).await?;
        }
        ongoing.complete(()).await
    })
}

/// Waits for more than two members.
fn synchronize(ongoing: OngoingCollective<'_>) -> SlowPath<'_> {
    Box::pin(async move {
        ongoing.synchronize(0).await?;
        ongoing.complete(()).await
    })
}
