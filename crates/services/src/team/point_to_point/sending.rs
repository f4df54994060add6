//! A send under way: when it has credit, and, if the message is long, chunk by chunk.
//!
//! Invariants: credit that is not used goes back; a long message whose send is dropped is withdrawn.

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

/// The length in bytes of the longest eager message, which does not wait for its receive: that of Open MPI on one host.
pub(super) const EAGER_BYTES_MAX: usize = 4 << 10;

/// The same of a message to another host, where to ask first costs more than to copy: half of what Open MPI sends so
/// over TCP.
const REMOTE_EAGER_BYTES_MAX: usize = 32 << 10;

/// The length in bytes of a chunk of a long slice to another host, so that one is copied while others are under way.
const REMOTE_CHUNK_BYTES: usize = 128 << 10;

/// The length in bytes of the longest slice that goes to another host as one chunk: a library asks its peer before
/// each.
const REMOTE_WHOLE_BYTES_MAX: usize = 512 << 10;

/// The length in bytes of the longest value that is serialised once: its bytes are then copied into the message.
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

    /// Sends `value`; returns when it is on its way, or, if it is long, received.
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

    /// Sends `slice`; it is on its way when the attempt is over, or, if it is long, received.
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

    /// Sends a slice of these bytes; returns when it is on its way, or, if it is long, received.
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

    /// Returns whether a message of `bytes` bytes is eager; one of a place to itself always is.
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

/// State of an eager message: on its way, or waiting here for room and keeping its task back.
#[derive(Clone, Copy)]
enum EagerSendState {
    Gone,
    Waits,
}

/// The wait of a send for credit; `ticket` names it in the table once it has begun.
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

/// The credit for one message; goes back when it is dropped unused.
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

/// A slice that its receiver may read where it lies, until this is dropped.
struct LoanGuard(Option<LentSlice>);

impl LoanGuard {
    /// Lends `slice`, if it can be, and its receiver is not on another host.
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

/// A long message whose receiver has the request to send; withdraws it when it is dropped.
struct LongSendGuard {
    number: u64,
    to: PlaceId,
    _span: OpenSpan,
}

impl LongSendGuard {
    /// Returns the number of the transfer that its receiver asks for; none if it has read the message where it lies.
    /// Waits until then.
    async fn clear_to_send(&self) -> Result<Option<u64>> {
        let poll = |context: &mut Context<'_>| {
            Local::with(|local| {
                MessageTable::of(local).borrow_mut().poll_clear_to_send(self.number, context.waker())
            })
        };
        poll_fn(poll).await.map_err(Error::dead)
    }

    /// Waits until the receiver has taken `chunks` chunks of `transfer`; returns false if it has given the transfer up.
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

    /// Sends all chunks of a slice; returns false if the receiver has given the transfer up.
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
                // A dead place need not know.
                let head = MessageHeader::control(MessageKind::Withdrawn, self.number);
                let _ = table::send_control(local, to, head, None);
            }
        });
    }
}
