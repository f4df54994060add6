//! Waiting for several futures of one task.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits for all `futures`; gives their outputs in the same order.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<Member<F>> =
        futures.into_iter().map(|future| Member::Waiting(Box::pin(future))).collect();
    std::future::poll_fn(move |context| {
        let mut is_over = true;
        for member in &mut waiting {
            is_over &= member.poll(context).is_ready();
        }
        if !is_over {
            return Poll::Pending;
        }
        Poll::Ready(waiting.drain(..).filter_map(Member::output).collect())
    })
    .await
}

/// One future of a join, or what came out of it.
enum Member<F: Future> {
    Waiting(Pin<Box<F>>),
    Over(F::Output),
}

impl<F: Future> Member<F> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Member::Waiting(future) = self {
            match future.as_mut().poll(context) {
                Poll::Ready(output) => *self = Member::Over(output),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    fn output(self) -> Option<F::Output> {
        match self {
            Member::Over(output) => Some(output),
            Member::Waiting(_) => None,
        }
    }
}
