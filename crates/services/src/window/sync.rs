//! The epochs of a window: fence, post and start, lock, flush, and notices.
//!
//! The rules of the epochs are in `isles_protocol::window`; here are the messages and the waits.

use super::access::named;
use super::forms::queue::{NotSent, QueuedOperationKind};
use super::header::{MessageHeader, MessageKind};
use super::state::{Line, PartLocation, WindowState};
use super::{Window, describe, table, transfer};
use crate::table::service::Service;
use crate::window::table::WindowTable;
use isles_protocol::PlaceId;
use isles_protocol::window::{EpochFault, LockMode};
use isles_runtime::service::coop::{Attempt, FastPath, slow_path};
use isles_runtime::service::span;
use isles_runtime::{Error, ErrorKind, Local, Result};
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{self, Ordering};

fn misused(what: &str, fault: EpochFault<Option<Line>>) -> Error {
    Error::new(ErrorKind::Misused, format!("{what}: {}", describe(fault)))
}

/// Makes writes to mapped parts visible before everything that follows.
#[inline]
fn order_memory() {
    // SeqCst: reads of this place after a flush are not older than its writes before it.
    atomic::fence(Ordering::SeqCst); // PAIR window: publish, observe
}

impl<T: 'static> Window<T> {
    /// Ends the epoch of all members and begins the next: every access before it is done when it returns.
    ///
    /// A collective: every member calls it, as [`Team::barrier`](crate::Team::barrier).
    ///
    /// # Errors
    /// As [`Window`] says. [`DeadPlace`](ErrorKind::DeadPlace): a member died; every later fence of the window fails,
    /// too.
    #[track_caller]
    pub fn fence(&self) -> impl Future<Output = Result<()>> {
        self.fence_at(Location::caller())
    }

    /// As [`Window::fence`], for the line of the program that called it.
    pub(super) async fn fence_at(&self, line: Line) -> Result<()> {
        named(line, fence(self.state(), line).await)
    }

    /// Waits until all accesses of this place to the part of `target` are done there.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    #[inline]
    pub fn flush(&self, target: usize) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        let state = self.state();
        FastPath::named(line, move || {
            let rank = state.check_rank(target)?;
            if state.is_queued(rank) || state.peers[target].is_touched.get() {
                return Ok(slow_path(|| flush_messages(state, rank)));
            }
            order_memory();
            state.death(rank).unwrap_or(Ok(())).map(Attempt::Done)
        })
    }

    /// Lets the members of `group`, by rank, access the part here, from their `start` to their `complete`.
    ///
    /// Does not wait. [`Window::wait`] ends it.
    ///
    /// # Errors
    /// As [`Window`] says. [`Misused`](ErrorKind::Misused): an earlier `post` has no `wait` yet.
    #[track_caller]
    pub fn post(&self, group: &[usize]) -> Result<()> {
        let line = Location::caller();
        named(line, post(self.state(), group))
    }

    /// Begins an epoch of accesses to the parts of `group`, by rank; returns once all of them have posted.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn start(&self, group: &[usize]) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, start(self.state(), group, line).await) }
    }

    /// Ends the epoch of `start`; all accesses are done at a target once it has called [`Window::wait`].
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn complete(&self) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, complete(self.state(), line).await) }
    }

    /// Waits until all members for which this place has posted have completed.
    ///
    /// # Errors
    /// As [`Window`] says. [`Misused`](ErrorKind::Misused): there was no `post`.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, wait(self.state()).await) }
    }

    /// Locks the part of `target` exclusively, and begins an epoch of accesses to it.
    ///
    /// A place may lock several parts at once; places that lock the same parts in different orders may deadlock.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn lock(&self, target: usize) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, lock(self.state(), target, LockMode::Exclusive, line).await) }
    }

    /// As [`Window::lock`], but shares the lock with others that lock it shared.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn lock_shared(&self, target: usize) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, lock(self.state(), target, LockMode::Shared, line).await) }
    }

    /// Unlocks the part of `target`; all accesses to it are done there.
    ///
    /// # Errors
    /// As [`Window`] says.
    #[track_caller]
    pub fn unlock(&self, target: usize) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, unlock(self.state(), target, line).await) }
    }

    /// Waits until member `from` has done `count` puts with a notice to the part here since the window was made; their
    /// data are there.
    ///
    /// # Errors
    /// [`DeadPlace`](ErrorKind::DeadPlace): the member died before.
    #[track_caller]
    pub fn notified(&self, from: usize, count: u64) -> impl Future<Output = Result<()>> {
        let line = Location::caller();
        async move { named(line, notified(self.state(), from, count).await) }
    }
}

impl WindowState {
    /// # Errors
    /// There is no such member.
    #[inline]
    pub(super) fn check_rank(&self, rank: usize) -> Result<u32> {
        if rank < self.peers.len() { Ok(rank as u32) } else { Err(self.no_rank(rank)) }
    }

    fn group(&self, group: &[usize]) -> Result<Vec<u32>> {
        let mut ranks = group.iter().map(|rank| self.check_rank(*rank)).collect::<Result<Vec<u32>>>()?;
        ranks.sort_unstable();
        ranks.dedup();
        Ok(ranks)
    }

    /// Returns an error if a place has died that accesses to the part of `rank` need: its owner or its server.
    #[inline]
    fn death<R>(&self, rank: u32) -> Option<Result<R>> {
        death_of(self.place(rank)).or_else(|| self.death_of_server(rank))
    }

    /// Returns an error if a place has died that accesses of `origin` to the own part come through: `origin`, or the
    /// server of the part here.
    fn death_of_origin<R>(&self, origin: u32) -> Option<Result<R>> {
        death_of(self.place(origin)).or_else(|| self.death_of_server(self.rank))
    }

    /// Returns an error if another place serves the part of `rank` and has died.
    #[inline]
    fn death_of_server<R>(&self, rank: u32) -> Option<Result<R>> {
        self.servers.as_ref().and_then(|servers| death_of(servers[rank as usize]))
    }
}

/// Returns an error if `place` has died.
#[inline]
fn death_of<R>(place: PlaceId) -> Option<Result<R>> {
    Local::with(|local| local.is_dead(place)).then(|| Err(Error::dead(place)))
}

async fn fence(state: &Rc<WindowState>, line: Line) -> Result<()> {
    let begun = state.attachment.with(|_| state.epoch.borrow_mut().fence(Some(line)))?;
    begun.map_err(|fault| misused("a fence within another epoch", fault))?;
    let _span = Local::with(|local| local.span(span::FENCE, None, || None));
    for target in state.queued_targets() {
        state.send_queued(target, NotSent::Kept).await?;
    }
    let flushes: Vec<_> =
        (0..state.peers.len() as u32).filter_map(|rank| flush_touched(state, rank)).collect();
    for flushed in flushes {
        flushed.await?;
    }
    order_memory();
    let team = state.team.as_ref().expect("a member has the team of its fences");
    team.barrier().await?;
    state.fences.set(state.fences.get() + 1);
    if state.options.checked {
        state.log.borrow_mut().fenced(state.fences.get());
    }
    Ok(())
}

/// Asks `target` to answer once all accesses sent to it are done; `None` if none were sent.
fn flush_touched(state: &Rc<WindowState>, target: u32) -> Option<impl Future<Output = Result<()>> + use<>> {
    let unflushed = FlushRequest::take(state, target)?;
    let head = MessageHeader::new(state.id, MessageKind::Flush);
    let answer = transfer::request(state, target, "the flush of", head, &|_| Ok(()));
    Some(async move {
        answer.await?;
        unflushed.end();
        Ok(())
    })
}

/// Accesses to a target that are being flushed; if dropped before the answer, they still have to be flushed.
struct FlushRequest {
    state: Rc<WindowState>,
    target: u32,
    is_answered: bool,
}

impl FlushRequest {
    /// Takes the unflushed accesses to `target`, if there are any.
    fn take(state: &Rc<WindowState>, target: u32) -> Option<FlushRequest> {
        let is_touched = state.peers[target as usize].is_touched.take();
        is_touched.then(|| FlushRequest { state: Rc::clone(state), target, is_answered: false })
    }

    /// Ends the flush: the target has answered.
    fn end(mut self) {
        self.is_answered = true;
    }
}

impl Drop for FlushRequest {
    fn drop(&mut self) {
        if !self.is_answered {
            self.state.peers[self.target as usize].is_touched.set(true);
        }
    }
}

/// Completes all accesses to `target` that are not done yet.
async fn flush_messages(state: &Rc<WindowState>, target: u32) -> Result<()> {
    state.send_queued(target, NotSent::Kept).await?;
    if let Some(flushed) = flush_touched(state, target) {
        flushed.await?;
    }
    order_memory();
    Ok(())
}

fn post(state: &Rc<WindowState>, group: &[usize]) -> Result<()> {
    let ranks = state.group(group)?;
    let opened = state.attachment.with(|_| state.exposure.borrow_mut().post(ranks.clone()))?;
    opened.map_err(|_| Error::new(ErrorKind::Misused, "a post before the wait for the previous one"))?;
    Local::with(|local| {
        for rank in ranks {
            if rank == state.rank {
                state.exposure.borrow_mut().posted(rank);
                state.wake();
            } else {
                // A member that died never starts; `wait` reports it.
                let _ = state.send(local, rank, MessageHeader::new(state.id, MessageKind::Post), &|_| Ok(()));
            }
        }
    });
    Ok(())
}

async fn start(state: &Rc<WindowState>, group: &[usize], line: Line) -> Result<()> {
    let ranks = state.group(group)?;
    let begun =
        state.attachment.with(|_| state.epoch.borrow_mut().start(ranks.iter().copied(), Some(line)))?;
    begun.map_err(|fault| misused("a start within another epoch", fault))?;
    let request = StartRequest { state };
    let what = || format!("the posts of {} for a window", RankList(state, &ranks));
    let posted = state.wait_until(what, || match state.exposure.borrow_mut().start(&ranks) {
        None => Some(Ok(())),
        Some(missing) => state.death(missing),
    });
    posted.await?;
    state.epoch.borrow_mut().started();
    std::mem::forget(request);
    Ok(())
}

/// A `start` that waits for posts; dropping it gives it up and ends its epoch.
struct StartRequest<'a> {
    state: &'a WindowState,
}

impl Drop for StartRequest<'_> {
    fn drop(&mut self) {
        self.state.epoch.borrow_mut().give_up_start();
    }
}

async fn complete(state: &Rc<WindowState>, line: Line) -> Result<()> {
    let ended = state.attachment.with(|_| state.epoch.borrow_mut().complete(Some(line)))?;
    let targets = ended.map_err(|fault| misused("a complete without a start", fault))?;
    let mut result = Ok(());
    for target in targets {
        result = result.and(complete_at(state, target).await);
    }
    result
}

async fn complete_at(state: &Rc<WindowState>, target: u32) -> Result<()> {
    if state.is_own(target) {
        state.exposure.borrow_mut().completed(target).expect("this place has posted for itself");
        state.wake();
        return Ok(());
    }
    state.send_queued(target, NotSent::Kept).await?;
    state.peers[target as usize].is_touched.set(false);
    let head = MessageHeader::new(state.id, MessageKind::Complete);
    Local::with(|local| state.send(local, target, head, &|_| Ok(())))
}

async fn wait(state: &Rc<WindowState>) -> Result<()> {
    let what = || "the members for which it has posted to complete their epochs of a window".to_owned();
    let not_open = |_| Error::new(ErrorKind::Misused, "a wait without a post");
    state
        .wait_until(what, || match state.exposure.borrow_mut().wait().map_err(not_open) {
            Err(misuse) => Some(Err(misuse)),
            Ok(None) => Some(Ok(())),
            Ok(Some(missing)) => state.death_of_origin(missing),
        })
        .await?;
    state.log.borrow_mut().waited();
    Ok(())
}

/// A lock whose epoch has begun and that is not granted yet; dropping it gives it up and ends its epoch.
pub(super) struct LockRequest<'a> {
    state: &'a Rc<WindowState>,
    target: u32,
    /// True if the owner may know of the request.
    is_asked: bool,
    /// True if giving up the request ends the epoch. The epoch of a queued request goes on, and the lock stays queued.
    ends_epoch: bool,
}

impl<'a> LockRequest<'a> {
    /// Returns a request whose epoch has begun, and that the owner does not know of yet.
    fn begun(state: &'a Rc<WindowState>, target: u32) -> LockRequest<'a> {
        LockRequest { state, target, is_asked: false, ends_epoch: true }
    }

    /// Returns a request that was queued and is sent now.
    pub(super) fn queued(state: &'a Rc<WindowState>, target: u32) -> LockRequest<'a> {
        state.epoch.borrow_mut().ask_lock(target);
        LockRequest { state, target, is_asked: false, ends_epoch: false }
    }

    /// Asks the owner, and waits until it grants the lock.
    ///
    /// # Errors
    /// The owner is dead.
    pub(super) async fn granted(mut self, mode: LockMode) -> Result<()> {
        let (state, target) = (self.state, self.target);
        self.is_asked = true;
        if state.is_own(target) {
            let open = Local::with(|local| {
                let open = WindowTable::of(local).open(local.here(), "the lock of");
                let granted = state.lock.borrow_mut().request(local.here(), mode, open.token);
                table::grant(local, state, granted);
                open
            });
            open.await?;
        } else {
            state.ask_for_lock(target, mode).await?;
        }
        self.end();
        Ok(())
    }

    /// Ends the request: this place has the lock.
    fn end(self) {
        self.state.epoch.borrow_mut().locked(self.target);
        std::mem::forget(self);
    }
}

impl Drop for LockRequest<'_> {
    fn drop(&mut self) {
        let (state, target) = (self.state, self.target);
        if self.ends_epoch {
            state.epoch.borrow_mut().give_up_lock(target);
        } else {
            state.epoch.borrow_mut().locked(target);
        }
        if !self.is_asked {
            return;
        }
        state.attachment.try_with(|local| {
            // The owner removes the request from its queue, or takes back the lock; a dead one has neither.
            if state.is_own(target) {
                let _ = table::unlock(local, state, local.here());
            } else {
                let _ =
                    state.send(local, target, MessageHeader::new(state.id, MessageKind::Unlock), &|_| Ok(()));
            }
        });
    }
}

async fn lock(state: &Rc<WindowState>, target: usize, mode: LockMode, line: Line) -> Result<()> {
    let target = state.check_rank(target)?;
    let begun = state.attachment.with(|_| state.epoch.borrow_mut().lock(target, mode, Some(line)))?;
    begun.map_err(|fault| misused("a lock within another epoch", fault))?;
    let request = LockRequest::begun(state, target);
    if state.is_queued(target) {
        state.enqueue(target, QueuedOperationKind::Lock(mode));
        request.end();
        return Ok(());
    }
    // The location of the part determines the class of its messages.
    transfer::locate(state, target).await?;
    let _span = Local::with(|local| local.span(span::LOCK, Some(state.place(target)), || None));
    request.granted(mode).await
}

async fn unlock(state: &Rc<WindowState>, target: usize, line: Line) -> Result<()> {
    let target = state.check_rank(target)?;
    let ended = state.attachment.with(|_| state.epoch.borrow_mut().unlock(target, Some(line)))?;
    ended.map_err(|fault| misused("an unlock without a lock", fault))?;
    order_memory();
    if state.is_own(target) {
        return Local::with(|local| table::unlock(local, state, local.here()))
            .map_err(|refused| Error::new(ErrorKind::Misused, refused.to_string()));
    }
    state.send_queued(target, NotSent::Dropped).await?;
    let head = MessageHeader::new(state.id, MessageKind::Unlock);
    let unflushed = FlushRequest::take(state, target);
    let is_mapped = matches!(state.peers[target as usize].location.get(), PartLocation::Mapped(_));
    // An owner that checks forgets the accesses under the lock before others learn of its end.
    if unflushed.is_some() || state.options.checked || state.options.queued && !is_mapped {
        transfer::request(state, target, "the unlock of", head, &|_| Ok(())).await?;
        unflushed.into_iter().for_each(FlushRequest::end);
        return Ok(());
    }
    Local::with(|local| state.send(local, target, head, &|_| Ok(())))
}

async fn notified(state: &Rc<WindowState>, from: usize, count: u64) -> Result<()> {
    let from = state.check_rank(from)?;
    state.attachment.with(|_| ())?;
    let what = || format!("{count} puts with a notice of {} in a window", state.place(from));
    let notices = &state.peers[from as usize].notices;
    state
        .wait_until(what, || if notices.get() >= count { Some(Ok(())) } else { state.death_of_origin(from) })
        .await
}

/// Members, for messages to people.
struct RankList<'a>(&'a WindowState, &'a [u32]);

impl std::fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, rank) in self.1.iter().enumerate() {
            write!(f, "{}{}", if index > 0 { ", " } else { "" }, self.0.place(*rank))?;
        }
        Ok(())
    }
}
