//! The barrier: a future written out.
//!
//! Of two members that come at about the same time it is over in one poll, without the states of nested `async`
//! functions, which would be a fifth of it. What takes longer goes on as any other collective. It knows no schedule
//! but that of two.

use super::Team;
use super::letter::Kind;
use super::turn::{Begin, Turn};
use crate::error::Result;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

impl Team {
    /// Waits until every member has called it.
    ///
    /// # Errors
    /// As [`Team`] says.
    #[inline]
    pub fn barrier(&self) -> impl Future<Output = Result<()>> {
        Barrier { begin: self.begin(Kind::Barrier), rest: None }
    }
}

/// See the file header.
struct Barrier<'t> {
    begin: Begin<'t>,
    /// What is left to do, if it was not over at once.
    rest: Option<Rest<'t>>,
}

type Rest<'t> = Pin<Box<dyn Future<Output = Result<()>> + 't>>;

impl Future for Barrier<'_> {
    type Output = Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(rest) = &mut self.rest {
            return rest.as_mut().poll(context);
        }
        let turn = ready!(Pin::new(&mut self.begin).poll(context))?;
        let rest = if turn.size() == 2 {
            let other = 1 - turn.rank();
            turn.signal(other, 0)?;
            if turn.look(other, 0, |_, _| ()) {
                return Poll::Ready(turn.complete(()));
            }
            wait(turn, other)
        } else {
            meet(turn)
        };
        self.rest.insert(rest).as_mut().poll(context)
    }
}

/// Waits for the signal of the `other` one of two.
#[cold]
fn wait(turn: Turn<'_>, other: usize) -> Rest<'_> {
    Box::pin(async move {
        turn.take(other, 0).await?;
        turn.complete(())
    })
}

/// Waits for more than two.
fn meet(turn: Turn<'_>) -> Rest<'_> {
    Box::pin(async move {
        turn.meet(0).await?;
        turn.complete(())
    })
}
