//! Run-time part of `select!`: polls several futures and chooses the first that is ready.
//!
//! A branch that is an operation of a channel has no effect before it is chosen: a send asks for room first, and a
//! value that arrives for a branch that was not chosen goes to the next receiver. Any other future is polled as it is.
//! If two are ready, their turn decides. A send over a rendezvous is chosen when its receiver is; until that is known
//! the other operations are suspended, so that two `select!`s that wait for each other never both proceed. Invariant:
//! at most one branch takes effect.

use super::control_block::BranchReceives;
use super::operation::{RecvFuture, SendFuture};
use crate::channel::control_block::ChannelTable;
use isles_runtime::Local;
use isles_runtime::capture::CanSend;
use isles_runtime::service::coop::{OPERATION, cooperate};
use std::cell::Cell;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};

/// One `select!` that waits.
pub struct Selection {
    /// Number of the `select!` at its place: its own sends and receives never match.
    number: u64,
    branches: usize,
    /// Index of the branch to look at first.
    first: Cell<usize>,
    /// The branch that has sent its value over a rendezvous and has no outcome yet.
    chosen: Cell<Option<usize>>,
    waits: bool,
}

/// Yields if that is due, and begins a selection, which waits for a ready branch if `waits`.
pub async fn begin(branches: usize, waits: bool) -> Selection {
    cooperate(OPERATION, ready(())).await;
    let number = Local::with(|local| ChannelTable::of(local).borrow_mut().next_turn());
    let first = Cell::new((number % branches.max(1) as u64) as usize);
    Selection { number, branches, first, chosen: Cell::new(None), waits }
}

impl Selection {
    /// Returns the branch to look at in turn `number`, or `None` if another one is already chosen.
    pub fn turn(&self, number: usize) -> Option<usize> {
        let branch = (self.first.get() + number) % self.branches.max(1);
        self.chosen.get().is_none_or(|chosen| chosen == branch).then_some(branch)
    }

    /// Returns `true` if a branch is chosen but not over.
    pub fn is_chosen(&self) -> bool {
        self.chosen.get().is_some()
    }

    /// Notes whether the send of `branch` is chosen and pending. A declined send is polled last from now on: other
    /// ready branches come first, so that two `select!`s do not decline each other for ever.
    fn note(&self, branch: usize, is_chosen: bool) {
        if is_chosen {
            self.chosen.set(Some(branch));
        } else if self.chosen.take().is_some() {
            self.first.set(branch + 1);
        }
    }
}

/// A branch.
pub struct Branch<'p, F> {
    future: Pin<&'p mut F>,
    number: usize,
    /// True if the future is over, or reported that it would have to wait.
    is_over: bool,
    /// Receives that wait inside the future, if it is no channel operation itself.
    receives: BranchReceives,
}

impl<'p, F> Branch<'p, F> {
    /// Creates branch `number`.
    pub fn new(number: usize, future: Pin<&'p mut F>) -> Branch<'p, F> {
        Branch { future, number, is_over: false, receives: Vec::new() }
    }

    /// Polls the future; ready with `None` if it is not ready and must not wait.
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
        selection: &Selection,
    ) -> Poll<Option<<SendFuture<'_, T> as Future>::Output>> {
        let number = self.number;
        self.poll_future(|mut send| {
            send.select(Some(selection.number), selection.waits);
            let polled = send.as_mut().poll(context);
            selection.note(number, polled.is_pending() && send.is_chosen());
            polled.map(|sent| match sent {
                Err(error) if !selection.waits && error.kind == super::SendErrorKind::Full => None,
                sent => Some(sent),
            })
        })
    }

    /// Suspends this branch because another one is chosen: it begins anew if that is declined.
    pub fn suspend(&mut self, selection: &Selection) {
        if selection.chosen.get() != Some(self.number) {
            self.future.suspend();
        }
    }
}

impl<T: CanSend> Branch<'_, RecvFuture<'_, T>> {
    /// Receives, if there is a value.
    pub fn poll_branch(
        &mut self,
        context: &mut Context<'_>,
        selection: &Selection,
    ) -> Poll<Option<<RecvFuture<'_, T> as Future>::Output>> {
        self.poll_future(|mut recv| {
            recv.select(Some(selection.number), selection.waits);
            recv.poll(context).map(|received| match received {
                Err(super::RecvError::Empty) if !selection.waits => None,
                received => Some(received),
            })
        })
    }

    /// As for a send; a receive is never chosen in advance.
    pub fn suspend(&mut self, _selection: &Selection) {
        self.future.suspend();
    }
}

/// A branch of any other future.
pub trait PollBranch {
    /// Output of the future.
    type Output;

    /// Polls it.
    fn poll_branch(&mut self, context: &mut Context<'_>, selection: &Selection)
    -> Poll<Option<Self::Output>>;

    /// Suspends the receives that wait inside this branch because another one is chosen: they begin anew if that is
    /// declined. So nothing is lent to a task that cannot take it.
    fn suspend(&mut self, selection: &Selection);
}

impl<F: Future> PollBranch for Branch<'_, F> {
    type Output = F::Output;

    fn poll_branch(&mut self, context: &mut Context<'_>, selection: &Selection) -> Poll<Option<F::Output>> {
        let mut noted = std::mem::take(&mut self.receives);
        let noting = BranchReceivesGuard::begin(&mut noted, selection.number);
        let polled = self.poll_future(|future| match future.poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if selection.waits => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
        });
        drop(noting);
        self.receives = noted;
        polled
    }

    fn suspend(&mut self, _selection: &Selection) {
        Local::with(|local| {
            for (end, number) in self.receives.drain(..) {
                end.suspend_receive(local, number);
            }
        });
    }
}

/// Collects the receives that begin to wait during its lifetime, which ends even if the branch panics.
struct BranchReceivesGuard<'a> {
    noted: &'a mut BranchReceives,
    /// Receives of the enclosing `select!`, which also gets those noted here.
    outer: Option<(u64, BranchReceives)>,
}

impl<'a> BranchReceivesGuard<'a> {
    fn begin(noted: &'a mut BranchReceives, number: u64) -> BranchReceivesGuard<'a> {
        let within = Some((number, Vec::new()));
        let outer = Local::with(|local| ChannelTable::of(local).borrow_mut().note_within(within));
        BranchReceivesGuard { noted, outer }
    }
}

impl Drop for BranchReceivesGuard<'_> {
    fn drop(&mut self) {
        Local::try_with(|local| {
            let mut table = ChannelTable::of(local).borrow_mut();
            *self.noted = table.note_within(None).map_or(Vec::new(), |(_, noted)| noted);
            let outer = self.outer.take().map(|(number, mut outer)| {
                outer.extend(self.noted.iter().cloned());
                (number, outer)
            });
            table.note_within(outer);
        });
    }
}
