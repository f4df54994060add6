//! Waiting for several futures of one task.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Waits for all `futures`; gives their outputs in the same order.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<(Option<Pin<Box<F>>>, Option<F::Output>)> =
        futures.into_iter().map(|future| (Some(Box::pin(future)), None)).collect();
    std::future::poll_fn(move |context| {
        let mut left = 0;
        for (future, output) in &mut waiting {
            if let Some(pinned) = future {
                match pinned.as_mut().poll(context) {
                    Poll::Ready(value) => (*future, *output) = (None, Some(value)),
                    Poll::Pending => left += 1,
                }
            }
        }
        if left > 0 {
            return Poll::Pending;
        }
        Poll::Ready(waiting.iter_mut().filter_map(|(_, output)| output.take()).collect())
    })
    .await
}
