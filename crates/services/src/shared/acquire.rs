//! Guards of several objects at once, in one order, so that tasks that take them cannot wait in a circle.
//!
//! An acquisition is a tree: waits for guards are its leaves, tuples and composed objects its nodes. Invariant: the
//! leaves are acquired by the rank of their objects, wherever in the tree they stand.

use super::guard::{ReadFuture, ReadGuard, WriteFuture, WriteGuard};
use super::value::SharedValue;
use isles_runtime::Result;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Position of an object in the order in which several are acquired.
pub type ObjectRank = (u32, u64);

/// Waits for guards of several objects; all tasks acquire them in one order, whatever order they are listed in.
///
/// ```ignore
/// let (graph, mut parts) = acquire_all((graph.read(), parts.write())).await?;
/// ```
///
/// # Errors
/// As [`Shared::read`](crate::Shared::read), of the first that fails; then none is held.
pub async fn acquire_all<G: AcquireAll>(guards: G) -> Result<G::Guards> {
    let mut parts = guards.parts();
    let mut order = Vec::new();
    parts.ranks(&mut order);
    order.sort_unstable();
    for rank in order {
        let is_acquired = poll_fn(|context| parts.poll_rank(rank, context)).await?;
        debug_assert!(is_acquired, "each rank stands in the order as often as in the tree");
    }
    Ok(parts.guards())
}

/// Waits for guards, for [`acquire_all`]: of one object, tuples of such waits, and those of composed objects.
///
/// An object composed of others combines their guards with [`AcquireAll::compose`], and can be part of further ones. An
/// object that several of them read is acquired once; the others get it without a wait.
///
/// ```ignore
/// struct Graph { offsets: Shared<Mapping<u32>>, targets: Shared<Mapping<u32>> }
/// struct GraphReading<'a> { offsets: ReadGuard<'a, Mapping<u32>>, targets: ReadGuard<'a, Mapping<u32>> }
///
/// impl Graph {
///     fn read(&self) -> impl AcquireAll<Guards = GraphReading<'_>> {
///         let parts = (self.offsets.read(), self.targets.read());
///         parts.compose(|(offsets, targets)| GraphReading { offsets, targets })
///     }
/// }
/// let (graph, mut colours) = acquire_all((graph.read(), colours.write())).await?;
/// ```
pub trait AcquireAll: Sized {
    /// The guards.
    type Guards;

    #[doc(hidden)]
    type Parts: AcquiredParts<Guards = Self::Guards>;

    /// Begins the wait.
    #[doc(hidden)]
    fn parts(self) -> Self::Parts;

    /// Returns the same wait, with its guards combined into one value.
    fn compose<C, F: FnOnce(Self::Guards) -> C>(self, compose: F) -> Composed<Self, F> {
        Composed { parts: self, compose }
    }
}

/// A tree of waits, some of which have their guards.
#[doc(hidden)]
pub trait AcquiredParts {
    type Guards;

    /// Appends the ranks of all leaves to `into`.
    fn ranks(&self, into: &mut Vec<ObjectRank>);

    /// Polls for the first missing guard of this rank; returns whether there was one to wait for.
    fn poll_rank(&mut self, rank: ObjectRank, context: &mut Context<'_>) -> Poll<Result<bool>>;

    /// Returns the guards, once all are there.
    fn guards(self) -> Self::Guards;
}

/// A wait for one guard.
#[doc(hidden)]
pub struct Leaf<W, G> {
    wait: W,
    rank: ObjectRank,
    guard: Option<G>,
}

impl<W: Future<Output = Result<G>> + Unpin, G> AcquiredParts for Leaf<W, G> {
    type Guards = G;

    fn ranks(&self, into: &mut Vec<ObjectRank>) {
        into.push(self.rank);
    }

    fn poll_rank(&mut self, rank: ObjectRank, context: &mut Context<'_>) -> Poll<Result<bool>> {
        if self.rank != rank || self.guard.is_some() {
            return Poll::Ready(Ok(false));
        }
        self.guard = Some(ready!(Pin::new(&mut self.wait).poll(context))?);
        Poll::Ready(Ok(true))
    }

    fn guards(self) -> G {
        self.guard.expect("each rank was acquired")
    }
}

impl<'a, T: SharedValue> AcquireAll for ReadFuture<'a, T> {
    type Guards = ReadGuard<'a, T>;
    type Parts = Leaf<Self, ReadGuard<'a, T>>;

    fn parts(self) -> Self::Parts {
        Leaf { rank: self.rank(), wait: self, guard: None }
    }
}

impl<'a, T: SharedValue> AcquireAll for WriteFuture<'a, T> {
    type Guards = WriteGuard<'a, T>;
    type Parts = Leaf<Self, WriteGuard<'a, T>>;

    fn parts(self) -> Self::Parts {
        Leaf { rank: self.rank(), wait: self, guard: None }
    }
}

/// The wait of a composed object; see [`AcquireAll::compose`].
pub struct Composed<P, F> {
    parts: P,
    compose: F,
}

impl<G: AcquireAll, C, F: FnOnce(G::Guards) -> C> AcquireAll for Composed<G, F> {
    type Guards = C;
    type Parts = Composed<G::Parts, F>;

    fn parts(self) -> Self::Parts {
        Composed { parts: self.parts.parts(), compose: self.compose }
    }
}

impl<P: AcquiredParts, C, F: FnOnce(P::Guards) -> C> AcquiredParts for Composed<P, F> {
    type Guards = C;

    fn ranks(&self, into: &mut Vec<ObjectRank>) {
        self.parts.ranks(into);
    }

    fn poll_rank(&mut self, rank: ObjectRank, context: &mut Context<'_>) -> Poll<Result<bool>> {
        self.parts.poll_rank(rank, context)
    }

    fn guards(self) -> C {
        (self.compose)(self.parts.guards())
    }
}

macro_rules! tuples {
    ($( $part:ident $index:tt ),+) => {
        impl<$( $part: AcquireAll ),+> AcquireAll for ($( $part, )+) {
            type Guards = ($( $part::Guards, )+);
            type Parts = ($( $part::Parts, )+);

            fn parts(self) -> Self::Parts {
                ($( self.$index.parts(), )+)
            }
        }

        impl<$( $part: AcquiredParts ),+> AcquiredParts for ($( $part, )+) {
            type Guards = ($( $part::Guards, )+);

            fn ranks(&self, into: &mut Vec<ObjectRank>) {
                $( self.$index.ranks(into); )+
            }

            fn poll_rank(&mut self, rank: ObjectRank, context: &mut Context<'_>) -> Poll<Result<bool>> {
                $(
                    if ready!(self.$index.poll_rank(rank, context))? {
                        return Poll::Ready(Ok(true));
                    }
                )+
                Poll::Ready(Ok(false))
            }

            fn guards(self) -> Self::Guards {
                ($( self.$index.guards(), )+)
            }
        }
    };
}

tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
