//! Several messages at once: there and back, and with all neighbours.
//!
//! Invariant: all sends and receives of an exchange go on together, so that long messages in a ring do not wait for
//! each other.

use crate::error::Result;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

/// Both, side by side; the first error ends it.
pub(super) async fn both<S, R>(
    send: impl Future<Output = Result<S>>,
    receive: impl Future<Output = Result<R>>,
) -> Result<R> {
    let (mut send, mut receive) = (pin!(send), pin!(receive));
    let (mut is_sent, mut received) = (false, None);
    poll_fn(|context| {
        if !is_sent && let Poll::Ready(sent) = send.as_mut().poll(context) {
            sent?;
            is_sent = true;
        }
        if received.is_none()
            && let Poll::Ready(value) = receive.as_mut().poll(context)
        {
            received = Some(value?);
        }
        match received.take_if(|_| is_sent) {
            Some(value) => Poll::Ready(Ok(value)),
            None => Poll::Pending,
        }
    })
    .await
}

/// All of them, side by side, in order; the first error ends it.
pub(super) async fn all<R>(futures: impl Iterator<Item = impl Future<Output = Result<R>>>) -> Result<Vec<R>> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut is_over = true;
        for (future, done) in &mut futures {
            if done.is_none() {
                match Pin::new(future).poll(context) {
                    Poll::Ready(value) => *done = Some(value?),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if !is_over {
            return Poll::Pending;
        }
        Poll::Ready(Ok(futures.drain(..).filter_map(|(_, done)| done).collect()))
    })
    .await
}
