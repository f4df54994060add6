//! A receive in progress: in the transport's queue if its message comes soon, otherwise by matching; chunk by chunk if
//! long.
//!
//! Invariant: a matched message that is not received is put back at its old place in the order.

use super::super::algorithms::{LOOKS, LOOKS_AROUND};
use super::super::header::{chunk_of, element_of, name_of};
use super::super::ongoing::misused;
use super::super::payload::{self, Payload};
use super::super::state::TeamState;
use super::header::{LongMessage, MessageHeader, MessageKind};
use super::table::{self, Message, ReceiveOutcome, TransferError, Unexpected, acknowledge};
use crate::team::point_to_point::header::POINT_TO_POINT;
use crate::team::point_to_point::table::MessageTable;
use isles_protocol::PlaceId;
use isles_protocol::matching::{Matched, ReceiveId, ReceivePattern};
use isles_protocol::team::ElementType;
use isles_runtime::capture::Element;
use isles_runtime::service::coop::{Attempt, slow_path};
use isles_runtime::service::span::OpenSpan;
use isles_runtime::service::{coop, span};
use isles_runtime::wire::Reader;
use isles_runtime::{Error, Local, Result};
use isles_telemetry::CounterId;
use isles_transport::{Class, Inbound, Next, Source};
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

/// Number of polls of a receive before its first pause: a pause takes as long as a message.
const POLLS_BEFORE_PAUSE: u32 = 16;

/// Length of a long message that is read at a time: some 200 us, after which the place looks at its other work.
const READ_BYTES: usize = 2 << 20;

/// A receive of a task: the team, tag and sender that it wants, and the line of the program.
#[derive(Clone, Copy)]
pub(super) struct ReceiveRequest<'t> {
    pub(super) state: &'t TeamState,
    pub(super) tag: u64,
    pub(super) source: Option<PlaceId>,
    pub(super) caller: &'static Location<'static>,
}

impl<'t> ReceiveRequest<'t> {
    fn wanted(&self) -> ReceivePattern {
        ReceivePattern { team: self.state.id.bits(), tag: self.tag, source: self.source }
    }

    /// Receives a value; returns its sender and the value.
    pub(super) async fn value<T: DeserializeOwned>(&self) -> Result<(PlaceId, T)> {
        poll_fn(coop::poll_proceed).await;
        let mut value = None;
        let element = element_of::<T>();
        let source = match self.unexpected(|_, _| false) {
            Unexpected::Nothing => self.spin_read(element, |bytes| {
                value = Some(payload::decode(Reader::new(bytes), |reader| reader.take_value()));
                Some(())
            }),
            Unexpected::Received(_) | Unexpected::Other => None,
        };
        if let (Some(source), Some(value)) = (source, value) {
            return Ok((source, value?));
        }
        loop {
            let got = self.next_match().await?;
            got.check(element, type_name::<T>())?;
            if let Some(received) = got.value().await? {
                return Ok(received);
            }
        }
    }

    /// Receives a slice into `into`; passes its sender to `end`.
    #[inline]
    pub(super) fn slice<'a, T, V>(
        self,
        into: &'a mut [T],
        end: impl FnOnce(PlaceId) -> Result<V> + 'a,
    ) -> Result<Attempt<'a, V>>
    where
        T: Element,
        't: 'a,
    {
        let (element, into): (_, &mut [u8]) = (element_of::<[T]>(), bytemuck::cast_slice_mut(into));
        match self.try_slice(element, into) {
            Some(source) => end(source).map(Attempt::Done),
            None => Ok(slow_path(|| async move {
                let source = self.slice_bytes(element, type_name::<[T]>(), into).await?;
                end(source)
            })),
        }
    }

    /// Receives an eager slice that has arrived or arrives at once; returns its sender.
    fn try_slice(&self, element: ElementType, into: &mut [u8]) -> Option<PlaceId> {
        let mut take =
            |bytes: &[u8]| (bytes.len() == into.len()).then(|| into.copy_from_slice(bytes)).is_some();
        let mut found = self.unexpected(|other, bytes| other == element && take(bytes));
        if let Unexpected::Nothing = found {
            let looked = self.spin_read(element, |bytes| take(bytes).then_some(()));
            if looked.is_some() {
                return looked;
            }
            // Polling may have stored messages that arrived meanwhile.
            found = self.unexpected(|other, bytes| other == element && take(bytes));
        }
        let Unexpected::Received(source) = found else { return None };
        coop::spend_budget(coop::CALL);
        Some(source)
    }

    /// Receives an unexpected eager message, if there is one for which `takes` holds; runs no code of the program.
    #[inline]
    fn unexpected(&self, takes: impl FnOnce(ElementType, &[u8]) -> bool) -> Unexpected {
        Local::with(|local| table::receive_unexpected(local, self.wanted(), takes))
    }

    /// Receives a slice of elements called `name`; returns its sender.
    async fn slice_bytes(&self, element: ElementType, name: &str, into: &mut [u8]) -> Result<PlaceId> {
        loop {
            let got = self.next_match().await?;
            got.check(element, name)?;
            if let Some(source) = got.slice(into).await? {
                return Ok(source);
            }
        }
    }

    /// Polls a while for an eager message in the transport's queue, if the receive names its sender; passes its bytes
    /// there to `read`. Returns the sender if `read` has taken them. Call it only if the next message to arrive is for
    /// this receive.
    #[inline]
    fn spin_read(&self, element: ElementType, mut read: impl FnMut(&[u8]) -> Option<()>) -> Option<PlaceId> {
        let source = self.source?;
        let team = self.state.id;
        let head = MessageHeader { team, tag: self.tag, kind: MessageKind::Eager, element, number: 0 };
        Local::with(|local| {
            if source == local.here() {
                return None;
            }
            let looks = if local.shares_processors() { 1 } else { LOOKS };
            for look in 1..=looks {
                if local.has_ready() {
                    return None;
                }
                let next = local.take_next(source, Class::Control, POINT_TO_POINT, |message| {
                    head.open(message).and_then(&mut read)
                });
                if next == Next::Taken {
                    coop::spend_budget(coop::CALL);
                    table::received_in_queue(local, source);
                    return Some(source);
                }
                let is_due = next == Next::Left || look.is_multiple_of(LOOKS_AROUND);
                if is_due && local.poll_messages(Inbound::All) > 0 {
                    return None;
                }
                // A message that comes at once is not delayed by a pause; later a pause leaves the cache line to the
                // sender.
                if look > POLLS_BEFORE_PAUSE {
                    std::hint::spin_loop();
                }
            }
            None
        })
    }

    /// Returns the matched message; waits until there is one.
    fn next_match(&self) -> MatchFuture<'_, 't> {
        MatchFuture { request: self, waiting: None, span: OpenSpan::NONE }
    }
}

/// The wait for a matching message.
struct MatchFuture<'r, 't> {
    request: &'r ReceiveRequest<'t>,
    waiting: Option<ReceiveId>,
    span: OpenSpan,
}

impl Future for MatchFuture<'_, '_> {
    type Output = Result<MatchedMessage>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Local::with(|local| {
            let mut table = MessageTable::of(local).borrow_mut();
            if let Some(id) = self.waiting {
                let outcome = ready!(table.poll_receive(id, context.waker()));
                self.waiting = None;
                self.span = OpenSpan::NONE;
                return Poll::Ready(match outcome {
                    ReceiveOutcome::Matched(matched) => Ok(MatchedMessage::of(matched)),
                    ReceiveOutcome::Dead(place) => Err(Error::dead(place)),
                });
            }
            let wanted = self.request.wanted();
            if let Some(matched) = table.take(wanted) {
                coop::spend_budget(coop::CALL);
                return Poll::Ready(Ok(MatchedMessage::of(matched)));
            }
            if let Some(dead) = self.request.dead(local) {
                coop::spend_budget(coop::CALL);
                return Poll::Ready(Err(Error::dead(dead)));
            }
            self.waiting = Some(table.wait(wanted, context.waker().clone(), self.request.caller));
            let source = || Some(Source::of_caller(self.request.caller));
            self.span = local.span(span::RECEIVE, wanted.source, source);
            Poll::Pending
        })
    }
}

impl Drop for MatchFuture<'_, '_> {
    fn drop(&mut self) {
        if let Some(id) = self.waiting {
            let woken = Local::try_with(|local| MessageTable::of(local).borrow_mut().give_up(id));
            woken.flatten().into_iter().for_each(Waker::wake);
        }
    }
}

impl ReceiveRequest<'_> {
    /// Returns the dead place because of which no message will come, if any.
    fn dead(&self, local: &Local) -> Option<PlaceId> {
        match self.source {
            Some(source) => Some(source).filter(|source| local.is_dead(*source)),
            None => {
                let deaths = local.deaths();
                deaths.iter().copied().find(|dead| self.state.members().rank_of(*dead).is_some())
            }
        }
    }
}

/// A matched message; it is put back if dropped before it is received.
struct MatchedMessage {
    /// `None` only at the end.
    matched: Option<Matched<Message>>,
    /// The transfer where a withdrawal finds a long message whose task yielded while it read; its sender was not asked
    /// for it.
    unrequested: Option<u64>,
}

impl MatchedMessage {
    fn of(matched: Matched<Message>) -> Self {
        MatchedMessage { matched: Some(matched), unrequested: None }
    }

    fn matched(&self) -> &Matched<Message> {
        self.matched.as_ref().expect("it is taken at the end only")
    }

    fn source(&self) -> PlaceId {
        self.matched().envelope.source
    }

    /// # Errors
    /// It is of another type.
    fn check(&self, element: ElementType, name: &str) -> Result<()> {
        let other = self.matched().message.element();
        if other == element {
            return Ok(());
        }
        let other = name_of(other).map_or("another type".to_owned(), |name| format!("`{name}`"));
        Err(misused(format_args!("the next message of {} is of {other}, not of `{name}`", self.source())))
    }

    /// Completes the receive: the message is acknowledged, and not put back.
    fn received(mut self) {
        let source = self.source();
        Local::with(|local| {
            if let Message::RequestToSend { send, transfer, .. } = self.matched().message {
                let (kind, number) = match transfer {
                    Some(number) => {
                        MessageTable::of(local).borrow_mut().end_transfer(number);
                        (MessageKind::Taken, number)
                    }
                    None => {
                        local.add_count(CounterId::MemberRead, 1);
                        (MessageKind::Read, 0)
                    }
                };
                // A dead sender needs no answer.
                let _ = send_control(local, source, kind, send, number);
            }
            self.end_unrequested(local);
            self.matched = None;
            acknowledge(local, source);
        });
    }

    /// Returns the sender and the value; `None` if the message was withdrawn meanwhile.
    async fn value<T: DeserializeOwned>(mut self) -> Result<Option<(PlaceId, T)>> {
        let source = self.source();
        let value = match &self.matched().message {
            Message::Eager(_, payload) => payload.decode(|reader| reader.take_value()),
            Message::RequestToSend { .. } => {
                let (_, number) = self.transfer(true)?;
                // Its memory goes back before its sender goes on.
                match chunk(number).await {
                    Ok(chunk) => chunk.decode(|reader| reader.take_value()),
                    Err(end) => return self.ended(end).map(|()| None),
                }
            }
        };
        self.received();
        Ok(Some((source, value?)))
    }

    /// Receives the message into `into`; returns its sender, or `None` if it was withdrawn meanwhile.
    async fn slice(mut self, into: &mut [u8]) -> Result<Option<PlaceId>> {
        let source = self.source();
        let (len, is_eager) = match &self.matched().message {
            Message::Eager(_, payload) => (payload.bytes().len() as u64, true),
            Message::RequestToSend { long, .. } => (long.bytes, false),
        };
        if len != into.len() as u64 {
            let into = into.len();
            let text = format!("the next message of {source} is a slice of {len} bytes, not of {into}");
            return Err(misused(text));
        }
        if let Message::Eager(_, payload) = &self.matched().message {
            into.copy_from_slice(payload.bytes());
        }
        if !is_eager && !self.read_in_place(into).await {
            let (send, number) = self.transfer(false)?;
            let mut left = into;
            while !left.is_empty() {
                let chunk = match chunk(number).await {
                    Ok(chunk) => chunk,
                    Err(end) => return self.ended(end).map(|()| None),
                };
                left = take_chunk(left, chunk, source)?;
                if !left.is_empty() {
                    // A dead sender needs no answer.
                    let _ =
                        Local::with(|local| send_control(local, source, MessageKind::Taken, send, number));
                }
            }
        }
        self.received();
        Ok(Some(source))
    }

    /// Reads a long message that its sender has lent into `into`; returns whether it did. Otherwise, ask for its
    /// chunks.
    async fn read_in_place(&mut self, into: &mut [u8]) -> bool {
        let Message::RequestToSend {
            send, long: LongMessage { loan: Some(loan), .. }, transfer: None, ..
        } = self.matched().message
        else {
            return false;
        };
        let (source, mut offset) = (self.source(), 0);
        for piece in into.chunks_mut(READ_BYTES) {
            poll_fn(|context| {
                let proceeds = coop::poll_proceed(context);
                if proceeds.is_pending() && self.unrequested.is_none() {
                    self.unrequested = Some(begin_transfer(source, send, false));
                }
                proceeds
            })
            .await;
            let read = |local: &Local| {
                local
                    .endpoint()
                    .lending()
                    .is_some_and(|lending| lending.read(source, &loan, offset, piece).is_ok())
            };
            if !Local::with(read) {
                return false;
            }
            offset += piece.len() as u64;
            coop::spend_budget(coop::PIECE);
        }
        true
    }

    /// Returns the sender's number of a long message and the number of its transfer, which begins now or which another
    /// receive has left.
    fn transfer(&mut self, is_value: bool) -> Result<(u64, u64)> {
        let source = self.source();
        let message = self.matched.as_mut().map(|matched| &mut matched.message);
        let Some(Message::RequestToSend { send, transfer, .. }) = message else {
            unreachable!("an eager message has no transfer");
        };
        if let Some(number) = *transfer {
            return Ok((*send, number));
        }
        let number = self.unrequested.take().unwrap_or_else(|| begin_transfer(source, *send, is_value));
        Local::with(|local| {
            if let Err(unsent) = send_control(local, source, MessageKind::ClearToSend, *send, number) {
                MessageTable::of(local).borrow_mut().end_transfer(number);
                return Err(Error::from(unsent));
            }
            *transfer = Some(number);
            Ok((*send, number))
        })
    }

    /// Ends the transfer for which the sender was not asked; returns why the message is gone, if it is.
    fn end_unrequested(&mut self, local: &Local) -> Option<TransferError> {
        let number = self.unrequested.take()?;
        MessageTable::of(local).borrow_mut().end_transfer(number)
    }

    /// Ends the receive of a message that is gone.
    ///
    /// # Errors
    /// Its sender is dead.
    fn ended(self, end: TransferError) -> Result<()> {
        match end {
            TransferError::Withdrawn => Ok(()),
            TransferError::Dead => Err(Error::dead(self.source())),
        }
    }
}

impl Drop for MatchedMessage {
    fn drop(&mut self) {
        let Some(mut matched) = self.matched.take() else { return };
        Local::try_with(|local| {
            let source = matched.envelope.source;
            let mut stop = None;
            let mut is_gone = self.end_unrequested(local).is_some();
            if let Message::RequestToSend { send, transfer, .. } = &mut matched.message
                && let Some(number) = *transfer
                && !MessageTable::of(local).borrow_mut().leave_transfer(number)
            {
                *transfer = None;
                is_gone = MessageTable::of(local).borrow_mut().end_transfer(number).is_some();
                stop = Some((*send, number)).filter(|_| !is_gone);
            }
            if is_gone {
                return acknowledge(local, source);
            }
            // Before anything is sent: a send that waits for room may deliver a withdrawal, which must find the
            // message.
            let waker = MessageTable::of(local).borrow_mut().put_back(matched);
            waker.into_iter().for_each(Waker::wake);
            if let Some((send, number)) = stop {
                // A dead sender needs no answer.
                let _ = send_control(local, source, MessageKind::Stop, send, number);
            }
        });
    }
}

/// Begins to receive the long message `send` of `source`; returns the number of the transfer, where a withdrawal finds
/// the message.
fn begin_transfer(source: PlaceId, send: u64, is_value: bool) -> u64 {
    Local::with(|local| MessageTable::of(local).borrow_mut().begin_transfer(source, send, is_value))
}

/// Returns the next chunk of transfer `number`.
async fn chunk(number: u64) -> std::result::Result<Payload, TransferError> {
    let poll = |context: &mut Context<'_>| {
        Local::with(|local| MessageTable::of(local).borrow_mut().poll_chunk(number, context.waker()))
    };
    poll_fn(poll).await
}

/// Sends a control message about transfer `number` to the sender of message `send`.
fn send_control(
    local: &Local,
    source: PlaceId,
    kind: MessageKind,
    send: u64,
    number: u64,
) -> std::result::Result<(), isles_runtime::service::Unsent> {
    table::send_control(local, source, MessageHeader::control(kind, send), Some(number))
}

/// Copies `chunk` to the beginning of `left`; returns the rest of `left`.
///
/// # Errors
/// The chunk is longer than `left`.
fn take_chunk(left: &mut [u8], chunk: Payload, source: PlaceId) -> Result<&mut [u8]> {
    let chunk = chunk_of(chunk.bytes());
    let Some((now, later)) = left.split_at_mut_checked(chunk.len()) else {
        return Err(misused(format_args!("{source} sent more than its request to send announced")));
    };
    now.copy_from_slice(chunk);
    Ok(later)
}
