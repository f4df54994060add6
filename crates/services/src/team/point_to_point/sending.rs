//! A send in progress: it waits for credit, and a long message goes chunk by chunk.
//!
//! Invariants: unused credit goes back; a long message is withdrawn if its send is dropped.

use super::super::algorithms::{CHUNK_BYTES, CHUNKS_IN_FLIGHT};
use super::super::header::{element_of, element_of_sent, message_bytes, put_chunk};
use super::header::{HEAD_BYTES, LongMessage, MessageHeader, MessageKind};
use super::table::{self, Message};
use crate::team::payload::Payload;
use crate::team::point_to_point::header::POINT_TO_POINT;
use crate::team::point_to_point::table::MessageTable;
use bytemuck::NoUninit;
use isles_protocol::PlaceId;
use isles_protocol::matching::Envelope;
use isles_protocol::team::schedule::Chunks;
use isles_protocol::team::{ElementType, TeamId};
use isles_runtime::service::coop::{Attempt, slow_path};
use isles_runtime::service::span::OpenSpan;
use isles_runtime::service::{coop, span};
use isles_runtime::wire::{EncodeError, Writer};
use isles_runtime::{Error, Local, Result};
use isles_telemetry::CounterId;
use isles_transport::{Class, LentSlice, Source};
use serde::Serialize;
use std::future::poll_fn;
use std::panic::Location;
use std::task::{Context, Poll, Waker};

/// Length of the longest eager message, which does not wait for its receive, in bytes: that of Open MPI on one host.
pub(super) const EAGER_BYTES_MAX: usize = 4 << 10;

/// The same for a message to another host, where a request costs more than a copy: half of what Open MPI sends eagerly
/// over TCP.
const REMOTE_EAGER_BYTES_MAX: usize = 32 << 10;

/// Length of a chunk of a long slice to another host, in bytes, so that copies overlap with transfers.
const REMOTE_CHUNK_BYTES: usize = 128 << 10;

/// Length of the longest slice that goes to another host as one chunk, in bytes: an MPI library has a handshake for
/// each.
const REMOTE_WHOLE_BYTES_MAX: usize = 512 << 10;

/// Length of the longest value that is serialised only once, in bytes: its bytes are then copied into the message.
const SMALL_BYTES: usize = 64;

/// Returns an encoder that writes `bytes` as they are.
fn bytes_of(bytes: &[u8]) -> impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError> + '_ {
    move |writer| {
        writer.put_bytes(bytes);
        Ok(())
    }
}

/// Returns the length in bytes of the chunks of a long slice of `bytes` bytes.
fn chunk_bytes(bytes: usize, is_remote: bool) -> usize {
    match is_remote {
        true if bytes <= REMOTE_WHOLE_BYTES_MAX => bytes,
        true => REMOTE_CHUNK_BYTES,
        false => CHUNK_BYTES,
    }
}

/// The destination of a message: the receiver, with team and tag, and the line of the program that sends.
#[derive(Clone, Copy)]
pub(super) struct Destination {
    pub(super) team: TeamId,
    pub(super) tag: u64,
    pub(super) to: PlaceId,
    pub(super) caller: &'static Location<'static>,
}

impl Destination {
    fn head(&self, kind: MessageKind, element: ElementType, number: u64) -> MessageHeader {
        MessageHeader { team: self.team, tag: self.tag, kind, element, number }
    }

    /// Sends `value`; returns once it has left, or, if it is long, once it is received.
    pub(super) async fn send_value<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        poll_fn(coop::poll_proceed).await;
        let encode = |writer: &mut Writer<'_>| writer.put_value(value);
        let mut room = [0; SMALL_BYTES];
        let (bytes, is_written) = Local::with(|local| local.write_ahead(self.to, &mut room, &encode))
            .map_err(Error::unencodable)?;
        let element = element_of_sent::<T>();
        if is_written {
            return self.send_at_once(element, bytes, bytes_of(&room[..bytes])).await;
        }
        if self.is_eager(bytes) {
            return self.send_at_once(element, bytes, encode).await;
        }
        let send = self.request_to_send(element, LongMessage { bytes: bytes as u64, loan: None }).await?;
        loop {
            let Some(transfer) = send.clear_to_send().await? else { return Ok(()) };
            send.chunk(transfer, bytes, encode)?;
            if send.is_taken(transfer, 1).await? {
                return Ok(());
            }
        }
    }

    /// Sends `slice`; the attempt ends once the slice has left, or, if it is long, once it is received.
    #[inline]
    pub(super) fn send_slice<T: NoUninit>(self, slice: &[T]) -> Result<Attempt<'_, ()>> {
        let (element, all): (_, &[u8]) = (element_of::<[T]>(), bytemuck::cast_slice(slice));
        Ok(match self.try_send(element, all)? {
            Some(EagerSendState::Gone) => Attempt::Done(()),
            Some(EagerSendState::Waits) => slow_path(|| async {
                coop::wait_until_sent().await;
                Ok(())
            }),
            None => slow_path(|| async move { self.send_bytes(element, all).await }),
        })
    }

    /// Sends `all` if it is eager and there is credit.
    fn try_send(&self, element: ElementType, all: &[u8]) -> Result<Option<EagerSendState>> {
        if !self.is_eager(all.len()) {
            return Ok(None);
        }
        Local::with(|local| {
            if !MessageTable::of(local).borrow_mut().take_credit_at_once(self.to) {
                return Ok(None);
            }
            local.add_count(CounterId::MemberSent, 1);
            self.send_eager(local, SendCredit { to: self.to }, element, all.len(), bytes_of(all)).map(Some)
        })
    }

    /// Sends a slice of these bytes; returns once it has left, or, if it is long, once it is received.
    async fn send_bytes(&self, element: ElementType, all: &[u8]) -> Result<()> {
        let bytes = all.len();
        if self.is_eager(bytes) {
            return self.send_at_once(element, bytes, bytes_of(all)).await;
        }
        let is_remote = self.is_remote();
        let lent = LoanGuard::of(all, is_remote);
        let send = self.request_to_send(element, LongMessage { bytes: bytes as u64, loan: lent.0 }).await?;
        let chunks = Chunks::new(bytes, chunk_bytes(bytes, is_remote));
        loop {
            let Some(transfer) = send.clear_to_send().await? else { return Ok(()) };
            if send.chunks(transfer, all, chunks).await? {
                return Ok(());
            }
        }
    }

    /// Returns `true` if a message of `bytes` bytes is eager, as every message of a place to itself is.
    fn is_eager(&self, bytes: usize) -> bool {
        bytes <= EAGER_BYTES_MAX
            || Local::with(Local::here) == self.to
            || bytes <= REMOTE_EAGER_BYTES_MAX && self.is_remote()
    }

    fn is_remote(&self) -> bool {
        Local::with(|local| local.endpoint().other_hosts().is_some_and(|hosts| hosts.is_far(self.to)))
    }

    async fn send_at_once(
        &self,
        element: ElementType,
        bytes: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<()> {
        let credit = self.credit().await?;
        Local::with(|local| self.send_eager(local, credit, element, bytes, encode))?;
        coop::wait_until_sent().await;
        Ok(())
    }

    /// Sends what `encode` writes as an eager message.
    #[inline]
    fn send_eager(
        &self,
        local: &Local,
        credit: SendCredit,
        element: ElementType,
        bytes: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<EagerSendState> {
        if local.here() == self.to {
            let copy = local.encode_for_self(bytes, &encode).map_err(Error::from)?;
            let envelope = Envelope { team: self.team.bits(), tag: self.tag, source: self.to };
            table::deliver_here(local, envelope, Message::Eager(element, Payload::copy_of(&copy)));
        } else {
            let head = self.head(MessageKind::Eager, element, 0);
            let guess = message_bytes([&[], &[]]) + bytes;
            let whole = |writer: &mut Writer<'_>| {
                head.encode(writer);
                encode(writer)
            };
            let handler = POINT_TO_POINT;
            local.send_with_size_hint(self.to, Class::Control, handler, guess, whole).map_err(Error::from)?;
        }
        credit.use_up();
        coop::spend_budget_of(local, coop::CALL);
        Ok(if local.tasks_wait_for_sends() { EagerSendState::Waits } else { EagerSendState::Gone })
    }

    async fn request_to_send(&self, element: ElementType, long: LongMessage) -> Result<LongSendGuard> {
        let credit = self.credit().await?;
        Local::with(|local| {
            let number = MessageTable::of(local).borrow_mut().begin_send(self.to, long.bytes, self.caller);
            let source = || Some(Source::of_caller(self.caller));
            let span = local.span(span::SEND, Some(self.to), source);
            let send = LongSendGuard { number, to: self.to, _span: span };
            let head = self.head(MessageKind::RequestToSend, element, number);
            let handler = POINT_TO_POINT;
            let encode = |writer: &mut Writer<'_>| {
                head.encode(writer);
                long.encode(writer);
                Ok(())
            };
            let guess = HEAD_BYTES + LongMessage::BYTES;
            local
                .send_with_size_hint(self.to, Class::Control, handler, guess, encode)
                .map_err(Error::from)?;
            credit.use_up();
            Ok(send)
        })
    }

    /// Returns the credit for one message; waits until there is some.
    async fn credit(&self) -> Result<SendCredit> {
        let mut waiting = CreditWait { to: self.to, ticket: None };
        poll_fn(|context| self.poll_credit(&mut waiting, context)).await
    }

    fn poll_credit(&self, waiting: &mut CreditWait, context: &mut Context<'_>) -> Poll<Result<SendCredit>> {
        Local::with(|local| {
            if local.is_dead(self.to) {
                return Poll::Ready(Err(Error::dead(self.to)));
            }
            let is_first = waiting.ticket.is_none();
            let mut table = MessageTable::of(local).borrow_mut();
            match table.take_credit(self.to, &mut waiting.ticket, context.waker(), self.caller) {
                true => {
                    local.add_count(CounterId::MemberSent, 1);
                    Poll::Ready(Ok(SendCredit { to: self.to }))
                }
                false => {
                    local.add_count(CounterId::MemberWaits, u64::from(is_first));
                    Poll::Pending
                }
            }
        })
    }
}

/// State of an eager message: sent, or waiting here for room, which holds its task back.
#[derive(Clone, Copy)]
enum EagerSendState {
    Gone,
    Waits,
}

/// The wait of a send for credit; `ticket` is its number in the table once it has begun.
struct CreditWait {
    to: PlaceId,
    ticket: Option<u64>,
}

impl Drop for CreditWait {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            Local::try_with(|local| MessageTable::of(local).borrow_mut().leave_credit(self.to, self.ticket));
        }
    }
}

/// Credit for one message; goes back if dropped unused.
struct SendCredit {
    to: PlaceId,
}

impl SendCredit {
    fn use_up(self) {
        std::mem::forget(self);
    }
}

impl Drop for SendCredit {
    fn drop(&mut self) {
        let wakers = Local::try_with(|local| MessageTable::of(local).borrow_mut().give_back_credit(self.to));
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

/// A slice that its receiver may read in place until this is dropped.
struct LoanGuard(Option<LentSlice>);

impl LoanGuard {
    /// Lends `slice`, if that is possible and its receiver is on this host.
    fn of(slice: &[u8], is_remote: bool) -> LoanGuard {
        let lend = |local: &Local| local.endpoint().lending().and_then(|lending| lending.lend(slice));
        LoanGuard(if is_remote { None } else { Local::with(lend) })
    }
}

impl Drop for LoanGuard {
    fn drop(&mut self) {
        let Some(loan) = &self.0 else { return };
        Local::try_with(|local| local.endpoint().lending().inspect(|lending| lending.end(loan)).is_some());
    }
}

/// A long message whose receiver has the request to send; dropping it withdraws the message.
struct LongSendGuard {
    number: u64,
    to: PlaceId,
    _span: OpenSpan,
}

impl LongSendGuard {
    /// Waits until the receiver answers; returns the number of the transfer that it asks for, or `None` if it has read
    /// the message in place.
    async fn clear_to_send(&self) -> Result<Option<u64>> {
        let poll = |context: &mut Context<'_>| {
            Local::with(|local| {
                MessageTable::of(local).borrow_mut().poll_clear_to_send(self.number, context.waker())
            })
        };
        poll_fn(poll).await.map_err(Error::dead)
    }

    /// Waits until the receiver has taken `chunks` chunks of `transfer`; returns `false` if it has given up the
    /// transfer.
    async fn is_taken(&self, transfer: u64, chunks: usize) -> Result<bool> {
        let poll = |context: &mut Context<'_>| {
            Local::with(|local| {
                MessageTable::of(local).borrow_mut().poll_taken(
                    self.number,
                    transfer,
                    chunks,
                    context.waker(),
                )
            })
        };
        poll_fn(poll).await.map_err(Error::dead)
    }

    fn chunk(
        &self,
        transfer: u64,
        bytes: usize,
        encode: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<()> {
        let head = MessageHeader::control(MessageKind::Chunk, transfer);
        let whole = |writer: &mut Writer<'_>| {
            head.encode(writer);
            encode(writer)
        };
        let handler = POINT_TO_POINT;
        let sent =
            Local::with(|local| local.send_with_size_hint(self.to, Class::Control, handler, bytes, whole));
        sent.map(drop).map_err(Error::from)
    }

    /// Sends all chunks of a slice; returns `false` if the receiver has given up the transfer.
    async fn chunks(&self, transfer: u64, all: &[u8], chunks: Chunks) -> Result<bool> {
        for index in 0..chunks.count() {
            if index >= CHUNKS_IN_FLIGHT && !self.is_taken(transfer, index + 1 - CHUNKS_IN_FLIGHT).await? {
                return Ok(false);
            }
            let chunk = [&all[chunks.range(index)], &[]];
            self.chunk(transfer, message_bytes(chunk), |writer| {
                put_chunk(writer, chunk);
                Ok(())
            })?;
        }
        self.is_taken(transfer, chunks.count()).await
    }
}

impl Drop for LongSendGuard {
    fn drop(&mut self) {
        Local::try_with(|local| {
            let ended = MessageTable::of(local).borrow_mut().end_send(self.number);
            if let Some(to) = ended {
                // A dead place needs no notice.
                let head = MessageHeader::control(MessageKind::Withdrawn, self.number);
                let _ = table::send_control(local, to, head, None);
            }
        });
    }
}
