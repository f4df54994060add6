//! One collective in progress at one member: the steps that it sends and receives.
//!
//! An [`OngoingCollective`] knows its position in the team's sequence of collectives and stamps it on each step. It
//! also guards the team's order: one that is dropped before its end (an error, a panic of an operator, a cancelled
//! task) notifies the other members, whose waits then end with an error. Its callers decide what is sent to which
//! member.

use super::algorithms::{
    BarrierAlgorithm, CHUNKS_IN_FLIGHT, YIELD_EVERY, barrier_algorithm, leaders_barrier_algorithm,
};
use super::header::{Arrival, TeamHeader, element_of};
use super::state::{ElementName, TeamState};
use super::{Team, header, payload};
use crate::team::header::TEAM;
use isles_protocol::PlaceId;
use isles_protocol::team::schedule::{Chunks, Shape, TeamHosts, Tree, dissemination};
use isles_protocol::team::{CollectiveKind, CollectiveTag, ElementType, MemberReport, Mismatch, STEPS};
use isles_runtime::limits::{PLACES_MAX, ROOM_GUESS};
use isles_runtime::service::coop;
use isles_runtime::service::span::OpenSpan;
use isles_runtime::wire::{DecodeError, EncodeError, Reader, Writer};
use isles_runtime::{Error, ErrorKind, Local, Result, yield_now};
use isles_transport::Class;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Number of the first step of an inner barrier; steps of chunks are counted modulo it, and ranks are below it.
const FIRST_SYNC_STEP: usize = 0x1_0000;

/// Number of the first step that acknowledges something long; all other steps are below it.
const TAKEN: usize = 0x2_0000;

const _: () = assert!((PLACES_MAX as usize) < FIRST_SYNC_STEP && TAKEN + FIRST_SYNC_STEP <= STEPS);

/// A collective in progress; see the file header. One word, because it is passed often; its state is in [`TeamState`].
pub(super) struct OngoingCollective<'t> {
    state: &'t TeamState,
}

impl Team {
    /// Begins a collective without a value of the program.
    #[inline]
    pub(super) fn begin(&self, kind: CollectiveKind) -> BeginCollective<'_> {
        BeginCollective {
            state: &self.state,
            kind,
            root: 0,
            element: ElementType::NONE,
            element_name: || "",
            pause: None,
        }
    }

    /// Begins a collective without a root, on values or elements of type `T`.
    #[inline]
    pub(super) fn begin_of<T>(&self, kind: CollectiveKind) -> BeginCollective<'_> {
        self.begin_at::<T>(kind, 0)
    }

    /// Begins a collective with a root, on values or elements of type `T`.
    #[inline]
    pub(super) fn begin_at<T>(&self, kind: CollectiveKind, root: usize) -> BeginCollective<'_> {
        let (element, element_name) = (element_of::<T>(), std::any::type_name::<T>);
        BeginCollective { state: &self.state, kind, root, element, element_name, pause: None }
    }
}

/// The start of a collective.
///
/// Now and then it yields to other tasks of the place and, if the members may have drifted apart, waits for all of
/// them. Usually it ends at once; it is written by hand, because a short collective takes hardly longer than it.
pub(super) struct BeginCollective<'t> {
    state: &'t TeamState,
    kind: CollectiveKind,
    root: usize,
    element: ElementType,
    element_name: ElementName,
    pause: Option<Pause<'t>>,
}

type Pause<'t> = Pin<Box<dyn Future<Output = Result<OngoingCollective<'t>>> + 't>>;

impl<'t> Future for BeginCollective<'t> {
    type Output = Result<OngoingCollective<'t>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(pause) = &mut self.pause {
            return pause.as_mut().poll(context);
        }
        let BeginCollective { state, kind, root, element, element_name, .. } = *self;
        let ongoing = match OngoingCollective::begin(state, kind, root, element, element_name) {
            Ok(ongoing) => ongoing,
            Err(error) => return self.pause.insert(refuse(error)).as_mut().poll(context),
        };
        let (is_long, needs_synchronization) = (
            self.state.order.sequence().is_multiple_of(YIELD_EVERY),
            ongoing.needs_synchronization(self.kind),
        );
        if is_long || needs_synchronization {
            return self.pause.insert(ongoing.pause(is_long, needs_synchronization)).as_mut().poll(context);
        }
        Poll::Ready(Ok(ongoing))
    }
}

/// Fails a collective that could not begin. A member may retry for ever, so this yields now and then.
#[cold]
fn refuse<'t>(error: Error) -> Pause<'t> {
    coop::spend_budget(coop::OPERATION);
    Box::pin(async {
        poll_fn(coop::poll_proceed).await;
        Err(error)
    })
}

/// The wait for the next message of one member.
pub(super) struct ReceiveNext<'a, 't> {
    ongoing: &'a OngoingCollective<'t>,
    source: PlaceId,
    /// Tag of the awaited message.
    tag: CollectiveTag,
}

impl Future for ReceiveNext<'_, '_> {
    type Output = Result<Arrival>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ReceiveNext { ongoing, source, tag } = *self;
        match ongoing.state.pop(source) {
            Some(arrival) if arrival.header.tag == tag => Poll::Ready(Ok(arrival)),
            Some(other) => Poll::Ready(Err(ongoing.mismatch(source, tag, other.header.tag))),
            None => ongoing.state.poll_or_wait(source, context),
        }
    }
}

impl<'t> OngoingCollective<'t> {
    #[inline]
    fn begin(
        state: &'t TeamState,
        kind: CollectiveKind,
        root: usize,
        element: ElementType,
        element_name: ElementName,
    ) -> Result<OngoingCollective<'t>> {
        state.check_membership()?;
        if let Some(error) = state.broken() {
            return Err(error);
        }
        if state.busy.replace(true) {
            return Err(second_task_error(state));
        }
        let ongoing = OngoingCollective { state };
        Local::with(|local| {
            state.span.set(local.span(kind.name(), None, || None));
            state.advance(local, kind, root, element, element_name)
        })?;
        if root < ongoing.size() { Ok(ongoing) } else { Err(ongoing.without_root(root)) }
    }

    #[cold]
    fn without_root(self, root: usize) -> Error {
        self.misused(format_args!("root {root} of a team of {}", self.size()))
    }

    /// Ends the collective with an error, of which the other members are notified.
    #[cold]
    pub(super) fn fail(&self, error: Error) -> Error {
        give_up(self.state, &format!(": {error}"));
        error
    }

    /// Returns the error of an invalid call, of which the other members are notified.
    #[cold]
    pub(super) fn misused(&self, text: impl std::fmt::Display) -> Error {
        self.fail(misused(text))
    }

    /// Counts the collectives that do not wait for all members; returns whether it is time to wait for them.
    #[inline]
    fn needs_synchronization(&self, kind: CollectiveKind) -> bool {
        self.state.order.needs_synchronization(kind)
    }

    /// Returns the rank of this member.
    #[inline]
    pub(super) fn rank(&self) -> usize {
        self.state.rank().expect("a turn is begun by a member")
    }

    /// Returns the number of members.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.state.members().len()
    }

    /// Returns the hosts of the members, if some of them share a host and others do not.
    #[inline]
    pub(super) fn hosts(&self) -> Option<&'t TeamHosts> {
        self.state.hosts()
    }

    /// Yields to the other tasks of the place, or waits for the other members, before the collective goes on.
    #[cold]
    fn pause(self, is_long: bool, needs_synchronization: bool) -> Pause<'t> {
        Box::pin(async move {
            if is_long {
                yield_now().await;
            }
            if needs_synchronization {
                self.synchronize(FIRST_SYNC_STEP).await?;
            }
            Ok(self)
        })
    }

    /// Ends the collective successfully, once everything that this member sent has left.
    #[inline]
    pub(super) async fn complete<R>(self, result: R) -> Result<R> {
        coop::wait_until_sent().await;
        self.end(result)
    }

    /// Ends the collective successfully; no message waits for room.
    #[inline]
    pub(super) fn end<R>(self, result: R) -> Result<R> {
        self.state.busy.set(false);
        self.state.span.set(OpenSpan::NONE);
        std::mem::forget(self);
        Ok(result)
    }

    /// Sends one message to member `to`; returns the length of its payload.
    #[inline]
    fn send(
        &self,
        to: usize,
        step: usize,
        bytes: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<usize> {
        self.post(to, self.header(step, bytes as u64), ROOM_GUESS, encode)
    }

    /// Returns the header of a message of `step`; `bytes` is the length of a whole slice, otherwise 0.
    #[inline]
    fn header(&self, step: usize, bytes: u64) -> TeamHeader {
        TeamHeader { team: self.state.id, tag: self.state.order.tag().step(step), bytes }
    }

    #[inline]
    fn post(
        &self,
        to: usize,
        header: TeamHeader,
        guess: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<usize> {
        let to = self.state.members().member(to);
        let sent = Local::with(|local| {
            local.send_with_size_hint(to, Class::Control, TEAM, guess, |writer| {
                header.encode(writer);
                encode(writer)
            })
        });
        match sent {
            Ok(sent) => Ok(header::payload_bytes(sent.bytes)),
            Err(unsent) => Err(self.unsent(unsent.into())),
        }
    }

    #[cold]
    fn unsent(&self, error: Error) -> Error {
        if matches!(error.kind(), ErrorKind::DeadPlace(_)) {
            // The others learn of it by themselves.
            self.state.mark_broken(error.clone());
            return error;
        }
        self.fail(error)
    }

    /// Polls a while for the next message of member `from`; if it belongs to `step` and is small, shows it to `read` in
    /// the queue itself and takes it. See [`TeamState::spin_read`].
    ///
    /// If this returns `false`, wait with [`OngoingCollective::take`].
    #[inline]
    pub(super) fn spin_read(&self, from: usize, step: usize, read: impl FnOnce(u64, &[u8])) -> bool {
        let (source, tag) = (self.state.members().member(from), self.state.order.tag().step(step));
        Local::with(|local| self.state.spin_read(local, source, tag, read))
    }

    /// Waits for the next message of member `from`, which must belong to `step`, and takes it.
    #[inline]
    pub(super) fn take(&self, from: usize, step: usize) -> ReceiveNext<'_, 't> {
        ReceiveNext {
            ongoing: self,
            source: self.state.members().member(from),
            tag: self.state.order.tag().step(step),
        }
    }

    #[cold]
    fn mismatch(&self, source: PlaceId, ours: CollectiveTag, theirs: CollectiveTag) -> Error {
        Local::with(|local| {
            let known = MemberReport { place: local.here(), tag: ours };
            self.state.mismatch(local, Mismatch { known, other: MemberReport { place: source, tag: theirs } })
        })
    }

    /// Sends a step without payload.
    #[inline]
    pub(super) fn signal(&self, to: usize, step: usize) -> Result<()> {
        self.send(to, step, 0, |_| Ok(())).map(drop)
    }

    /// Waits for a step without payload.
    #[inline]
    async fn await_signal(&self, from: usize, step: usize) -> Result<()> {
        match self.spin_read(from, step, |_, _| ()) {
            true => Ok(()),
            false => self.take(from, step).await.map(drop),
        }
    }

    /// Waits until all members have come here; the steps are numbered from `first`.
    #[inline]
    pub(super) async fn synchronize(&self, first: usize) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        if size > 2
            && let Some(hosts) = self.hosts()
        {
            // Boxed, so that the future of a barrier on one host is no larger for it.
            return Box::pin(self.synchronize_hierarchically(hosts, first)).await;
        }
        match barrier_algorithm(size) {
            BarrierAlgorithm::Dissemination => {
                for (number, round) in dissemination(rank, size).enumerate() {
                    self.signal(round.to, first + number)?;
                    self.await_signal(round.from, first + number).await?;
                }
            }
            BarrierAlgorithm::AtFirst if rank > 0 => {
                self.signal(0, first)?;
                self.await_signal(0, first).await?;
            }
            BarrierAlgorithm::AtFirst => {
                for other in 1..size {
                    self.await_signal(other, first).await?;
                }
                for other in 1..size {
                    self.signal(other, first)?;
                }
            }
            BarrierAlgorithm::Tree => {
                // Boxed, so that the future of a barrier of few members is no larger for it.
                Box::pin(self.synchronize_in_tree(Tree::new(Shape::Binomial, rank, 0, size), first)).await?;
            }
        }
        Ok(())
    }

    /// As [`OngoingCollective::synchronize`]: the members of a host meet at its leader, and the leaders meet for all.
    #[cold]
    async fn synchronize_hierarchically(&self, hosts: &TeamHosts, first: usize) -> Result<()> {
        let (leader, others) = hosts.own();
        if self.rank() != leader {
            self.signal(leader, first)?;
            return self.await_signal(leader, first).await;
        }
        for other in others {
            self.await_signal(*other, first).await?;
        }
        let (own, leaders) = (hosts.own_host(), hosts.leaders());
        match leaders_barrier_algorithm(leaders.len()) {
            BarrierAlgorithm::AtFirst if own > 0 => {
                self.signal(leaders[0], first)?;
                self.await_signal(leaders[0], first).await?;
            }
            BarrierAlgorithm::AtFirst => {
                for other in &leaders[1..] {
                    self.await_signal(*other, first).await?;
                }
                leaders[1..].iter().try_for_each(|other| self.signal(*other, first))?;
            }
            BarrierAlgorithm::Dissemination | BarrierAlgorithm::Tree => {
                for (number, round) in dissemination(own, leaders.len()).enumerate() {
                    self.signal(leaders[round.to], first + number)?;
                    self.await_signal(leaders[round.from], first + number).await?;
                }
            }
        }
        others.iter().try_for_each(|other| self.signal(*other, first))
    }

    /// Waits until all members have arrived here, along `tree`.
    #[cold]
    async fn synchronize_in_tree(&self, tree: Tree, step: usize) -> Result<()> {
        for child in tree.children() {
            self.await_signal(child, step).await?;
        }
        if let Some(parent) = tree.parent() {
            self.signal(parent, step)?;
            self.await_signal(parent, step).await?;
        }
        tree.children().try_for_each(|child| self.signal(child, step))
    }

    /// Sends what `encode` writes; returns whether it is long, so that its receiver acknowledges it.
    #[inline]
    fn send_with(
        &self,
        to: usize,
        step: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<bool> {
        self.send(to, step, 0, encode).map(header::is_awaited)
    }

    /// Sends a value and, if it is long, waits until it is received.
    #[inline]
    pub(super) async fn send_value<T: Serialize>(&self, to: usize, step: usize, value: &T) -> Result<()> {
        if self.send_with(to, step, |writer| writer.put_value(value))? {
            self.await_signal(to, TAKEN + step).await?;
        }
        Ok(())
    }

    /// Receives a value.
    #[inline]
    pub(super) async fn receive<T: DeserializeOwned>(&self, from: usize, step: usize) -> Result<T> {
        self.receive_with(from, step, |reader| reader.take_value()).await
    }

    /// Receives what was sent with [`OngoingCollective::send_with`].
    #[inline]
    async fn receive_with<T>(
        &self,
        from: usize,
        step: usize,
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let (mut read, mut value) = (Some(read), None);
        self.spin_read(from, step, |_, payload| {
            value = read.take().map(|read| payload::decode(Reader::new(payload), read));
        });
        let Some(read) = read else {
            return value.expect("it was read").map_err(|error| self.fail(error));
        };
        let arrival = self.take(from, step).await?;
        let value = arrival.decode(read).map_err(|error| self.fail(error))?;
        if arrival.is_awaited() {
            // Its memory goes back before its sender goes on.
            drop(arrival);
            self.signal(from, TAKEN + step)?;
        }
        Ok(value)
    }

    /// Sends what `encode` writes to one member, and receives from another in the same step with `read`; if the sent
    /// message is long, waits until it is received.
    #[inline]
    pub(super) async fn swap<T>(
        &self,
        to: usize,
        from: usize,
        step: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let is_awaited = self.send_with(to, step, encode)?;
        let value = self.receive_with(from, step, read).await?;
        if is_awaited {
            self.await_signal(to, TAKEN + step).await?;
        }
        Ok(value)
    }

    /// Sends a chunk of a slice of `bytes` bytes in all; the receiver does not acknowledge it.
    #[inline]
    pub(super) fn send_chunk(&self, to: usize, index: usize, bytes: usize, chunk: &[u8]) -> Result<()> {
        self.send_parts(to, index, bytes, [chunk, &[]])
    }

    /// Sends a chunk that lies in two parts.
    #[inline]
    pub(super) fn send_parts(&self, to: usize, index: usize, bytes: usize, parts: [&[u8]; 2]) -> Result<()> {
        let encode = |writer: &mut Writer<'_>| {
            header::put_chunk(writer, parts);
            Ok(())
        };
        self.post(
            to,
            self.header(index % FIRST_SYNC_STEP, bytes as u64),
            header::message_bytes(parts),
            encode,
        )
        .map(drop)
    }

    /// Receives a chunk of a slice; its header has the length of the whole slice.
    #[inline]
    pub(super) async fn take_chunk(&self, from: usize, index: usize) -> Result<Arrival> {
        let (step, mut arrival) = (index % FIRST_SYNC_STEP, None);
        self.spin_read(from, step, |bytes, payload| {
            arrival = Some(Arrival::copy_of(self.header(step, bytes), payload));
        });
        match arrival {
            Some(arrival) => Ok(arrival),
            None => self.take(from, step).await,
        }
    }

    /// Sends chunk `index` of a slice of `bytes` bytes in all; if the slice is long, waits until one more chunk may be
    /// in flight.
    #[inline]
    pub(super) async fn push(&self, to: usize, index: usize, bytes: usize, chunk: &[u8]) -> Result<()> {
        if has_to_wait(index, bytes) {
            self.await_signal(to, TAKEN).await?;
        }
        self.send_chunk(to, index, bytes, chunk)
    }

    /// As [`OngoingCollective::push`], to each of these members; by multicast where the machine offers it.
    #[inline]
    pub(super) async fn push_to_all(
        &self,
        to: impl Iterator<Item = usize>,
        index: usize,
        bytes: usize,
        chunk: &[u8],
    ) -> Result<()> {
        if Local::with(|local| local.offers_multicast()) {
            return self.multicast(to.collect(), index, bytes, chunk).await;
        }
        for to in to {
            self.push(to, index, bytes, chunk).await?;
        }
        Ok(())
    }

    #[cold]
    async fn multicast(&self, to: Vec<usize>, index: usize, bytes: usize, chunk: &[u8]) -> Result<()> {
        if has_to_wait(index, bytes) {
            for to in &to {
                self.await_signal(*to, TAKEN).await?;
            }
        }
        let header = self.header(index % FIRST_SYNC_STEP, bytes as u64);
        let len = header::message_bytes([chunk, &[]]);
        let members: Vec<PlaceId> = to.into_iter().map(|to| self.state.members().member(to)).collect();
        let sent = Local::with(|local| {
            local.multicast(&members, Class::Control, TEAM, len, &|writer| {
                header.encode(writer);
                header::put_chunk(writer, [chunk, &[]]);
                Ok(())
            })
        });
        sent.map_err(|unsent| self.unsent(unsent.into()))
    }

    /// Waits until `to` has taken the last of the pushed chunks, if the slice of `bytes` bytes is long.
    #[inline]
    pub(super) async fn settle(&self, to: usize, bytes: usize, chunks: Chunks) -> Result<()> {
        if header::is_awaited(bytes) {
            for _ in 0..chunks.count().min(CHUNKS_IN_FLIGHT) {
                self.await_signal(to, TAKEN).await?;
            }
        }
        Ok(())
    }

    /// Receives chunk `index`, of `len` bytes, of a slice of `bytes` bytes in all.
    #[inline]
    pub(super) async fn pull(&self, from: usize, index: usize, bytes: usize, len: usize) -> Result<Arrival> {
        let arrival = self.take_chunk(from, index).await?;
        self.check_bytes(from, &arrival, bytes, len)?;
        Ok(arrival)
    }

    /// Receives chunk `index` of a slice of `bytes` bytes in all into `own`; straight from the queue if it comes soon
    /// and is short enough.
    #[inline]
    pub(super) async fn pull_into(
        &self,
        from: usize,
        index: usize,
        bytes: usize,
        own: &mut [u8],
    ) -> Result<()> {
        let (step, mut odd) = (index % FIRST_SYNC_STEP, None);
        let is_taken = self.spin_read(from, step, |sent, payload| match header::chunk_of(payload) {
            chunk if sent == bytes as u64 && chunk.len() == own.len() => own.copy_from_slice(chunk),
            _ => odd = Some(Arrival::copy_of(self.header(step, sent), payload)),
        });
        if let Some(arrival) = odd {
            return Err(self.odd_length(from, &arrival, bytes));
        }
        if is_taken {
            return if header::is_awaited(bytes) { self.signal(from, TAKEN) } else { Ok(()) };
        }
        let arrival = self.take(from, step).await?;
        self.check_bytes(from, &arrival, bytes, own.len())?;
        own.copy_from_slice(arrival.chunk());
        self.release_chunk(from, arrival, bytes)
    }

    /// Acknowledges a pulled chunk that is no longer needed, of a slice of `bytes` bytes.
    #[inline]
    pub(super) fn release_chunk(&self, from: usize, arrival: Arrival, bytes: usize) -> Result<()> {
        // Its memory goes back before its sender goes on.
        drop(arrival);
        if header::is_awaited(bytes) { self.signal(from, TAKEN) } else { Ok(()) }
    }

    /// Checks that the slice of another member has `bytes` bytes, and this chunk of it `len`.
    #[inline]
    pub(super) fn check_bytes(&self, from: usize, arrival: &Arrival, bytes: usize, len: usize) -> Result<()> {
        let fits = arrival.header.bytes == bytes as u64 && arrival.chunk().len() == len;
        if fits { Ok(()) } else { Err(self.odd_length(from, arrival, bytes)) }
    }

    /// Returns the error of a slice of the wrong length, of which the other members are notified.
    #[cold]
    pub(super) fn odd_length(&self, from: usize, arrival: &Arrival, bytes: usize) -> Error {
        Local::with(|local| {
            let text = format!(
                "the slices differ in length: {} bytes at {}, {bytes} at {}, in {}",
                arrival.header.bytes,
                self.state.members().member(from),
                local.here(),
                self.state.description(),
            );
            self.state.break_team(local, misused(text))
        })
    }
}

impl Drop for OngoingCollective<'_> {
    /// Gives up the collective; [`OngoingCollective::complete`] and [`OngoingCollective::end`] prevent it.
    #[cold]
    fn drop(&mut self) {
        self.state.busy.set(false);
        self.state.span.set(OpenSpan::NONE);
        self.state.stop_waiting();
        give_up(self.state, "");
    }
}

/// Notifies the team that this member gives up its collective, and why, unless the team is broken already.
#[cold]
pub(super) fn give_up(state: &TeamState, why: &str) {
    // Outside of a place there is no member left to notify.
    state.attachment.try_with(|local| {
        let text = format!("{} gave up {} of the team{why}", local.here(), state.description());
        state.break_team(local, Error::new(ErrorKind::Cancelled, text));
    });
}

/// Returns the error of a second task of a place in a team, which also ends the collective of the first.
#[cold]
fn second_task_error(state: &TeamState) -> Error {
    Local::with(|local| {
        let (here, first) = (local.here(), state.description());
        let text = format!(
            "two tasks of {here} are in collectives of the team at once: one began another collective \
             while one was in {first}"
        );
        state.break_team(local, misused(text))
    })
}

/// Returns `true` if chunk `index` of a slice of `bytes` bytes is sent only after an earlier one was taken.
#[inline]
fn has_to_wait(index: usize, bytes: usize) -> bool {
    index >= CHUNKS_IN_FLIGHT && header::is_awaited(bytes)
}

/// Returns the error of an invalid call.
pub(super) fn misused(text: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Misused, text.to_string())
}
