//! The state of a place for messages between members: unexpected messages, waiting tasks, transfers in progress.
//!
//! `docs/design/messages.md` has the protocol, `isles_protocol::matching` the matching and the credit. Tasks that send
//! and receive are in `sending` and `receiving`; the state that outlives a poll is here. Invariant: while the table is
//! borrowed, nothing is sent, woken, or dropped that belongs to the program.

use super::super::payload::Payload;
use super::header::{HEAD_BYTES, LongMessage, MessageHeader, MessageKind};
use crate::table::service::Service;
use crate::team::point_to_point::header::POINT_TO_POINT;
use crate::team::service::Teams;
use isles_protocol::PlaceId;
use isles_protocol::credit::{SendCredit, TooMany};
use isles_protocol::matching::{
    Acknowledgement, Envelope, Matched, Matching, ReceiveId, ReceivePattern, TakeOutcome, UNACKNOWLEDGED_MAX,
};
use isles_protocol::ordered::OrderedMap;
use isles_protocol::team::{ElementType, TeamId};
use isles_runtime::Local;
use isles_runtime::service::{Inquiry, NumberHasherBuilder, Refused};
use isles_runtime::wire::{DecodeError, Reader, Writer};
use isles_transport::Class;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::Location;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A message at its receiver, before a receive takes it.
pub(super) enum Message {
    /// The whole message, and its type.
    Eager(ElementType, Payload),
    /// The request to send a long message.
    RequestToSend {
        element: ElementType,
        /// Its number at the sender.
        send: u64,
        /// Its length, and the loan if it can be read in place.
        long: LongMessage,
        /// The transfer that brings it, once a receive has begun one.
        transfer: Option<u64>,
    },
}

impl Message {
    pub(super) fn element(&self) -> ElementType {
        let (Message::Eager(element, _) | Message::RequestToSend { element, .. }) = self;
        *element
    }
}

/// A posted receive, with its task.
pub(super) struct Receive {
    wanted: ReceivePattern,
    caller: &'static Location<'static>,
    waker: Waker,
    outcome: Option<ReceiveOutcome>,
}

/// The outcome of a posted receive.
pub(super) enum ReceiveOutcome {
    Matched(Matched<Message>),
    /// No message will come: this place is dead.
    Dead(PlaceId),
}

/// A long message that this place sends.
pub(super) struct LongSend {
    to: PlaceId,
    bytes: u64,
    caller: &'static Location<'static>,
    /// The transfer that the receiver has asked for.
    transfer: Option<u64>,
    /// Number of its chunks that the receiver has taken.
    taken: usize,
    /// True if the receiver has read it in the sender's memory.
    is_read: bool,
    is_dead: bool,
    waker: Option<Waker>,
}

/// A long message that this place receives.
pub(super) struct Transfer {
    source: PlaceId,
    /// The sender's number.
    send: u64,
    /// True for a value, which comes in one chunk.
    is_value: bool,
    chunks: VecDeque<Payload>,
    ended: Option<TransferError>,
    waker: Option<Waker>,
}

/// Reason why a transfer ends before its last chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferError {
    Withdrawn,
    Dead,
}

/// The credit to and from another place.
#[derive(Default)]
struct Peer {
    credit: SendCredit,
    acknowledgement: Acknowledgement,
    /// Sends that wait for credit.
    waiting: OrderedMap<u64, (Waker, &'static Location<'static>)>,
}

/// The messages between members at one place.
#[derive(Default)]
pub(crate) struct MessageTable {
    matching: Matching<Message>,
    /// Faster than an [`OrderedMap`] here: each receive of a value goes through it.
    receives: BTreeMap<ReceiveId, Receive>,
    sends: OrderedMap<u64, LongSend>,
    transfers: OrderedMap<u64, Transfer>,
    peers: HashMap<PlaceId, Peer, NumberHasherBuilder>,
    next_number: u64,
    /// Number of messages that came before their receive.
    unexpected: u64,
}

impl MessageTable {
    /// Returns the number of messages that came before their receive since the place started.
    pub(crate) fn unexpected(&self) -> u64 {
        self.unexpected
    }

    fn new_number(&mut self) -> u64 {
        self.next_number = (self.next_number + 1) & super::header::number_mask();
        self.next_number
    }

    /// Matches an arriving message; returns the waker of the receive that now has it.
    fn arrive(&mut self, envelope: Envelope, message: Message) -> Option<Waker> {
        let matched = self.matching.arrive(envelope, message);
        self.unexpected += u64::from(matched.is_none());
        self.complete(matched)
    }

    /// Puts back a matched message that was not received; returns the waker of another receive that now has it.
    #[must_use]
    pub(super) fn put_back(&mut self, matched: Matched<Message>) -> Option<Waker> {
        let matched = self.matching.put_back(matched);
        self.complete(matched)
    }

    fn complete(&mut self, matched: Option<(ReceiveId, Matched<Message>)>) -> Option<Waker> {
        let (id, matched) = matched?;
        let receive = self.receives.get_mut(&id)?;
        receive.outcome = Some(ReceiveOutcome::Matched(matched));
        Some(receive.waker.clone())
    }

    /// Takes the oldest wanted message among the unexpected ones, if any.
    pub(super) fn take(&mut self, wanted: ReceivePattern) -> Option<Matched<Message>> {
        self.matching.take(wanted)
    }

    /// Takes the oldest wanted message among the unexpected ones, if it is eager and `takes` holds for it.
    #[inline]
    fn take_eager(
        &mut self,
        wanted: ReceivePattern,
        takes: impl FnOnce(ElementType, &[u8]) -> bool,
    ) -> TakeOutcome<Message> {
        self.matching.take_if(wanted, |message| match message {
            Message::Eager(element, payload) => takes(*element, payload.bytes()),
            Message::RequestToSend { .. } => false,
        })
    }

    /// Posts a receive.
    pub(super) fn wait(
        &mut self,
        wanted: ReceivePattern,
        waker: Waker,
        caller: &'static Location<'static>,
    ) -> ReceiveId {
        let id = self.matching.post(wanted);
        self.receives.insert(id, Receive { wanted, caller, waker, outcome: None });
        id
    }

    /// Returns the outcome of a posted receive, which is then removed.
    pub(super) fn poll_receive(&mut self, id: ReceiveId, waker: &Waker) -> Poll<ReceiveOutcome> {
        let receive = self.receives.get_mut(&id).expect("a receive is there until it is over");
        let Some(outcome) = receive.outcome.take() else {
            receive.waker.clone_from(waker);
            return Poll::Pending;
        };
        self.receives.remove(&id);
        Poll::Ready(outcome)
    }

    /// Cancels a posted receive; puts its message back if it has one.
    #[must_use]
    pub(super) fn give_up(&mut self, id: ReceiveId) -> Option<Waker> {
        self.matching.cancel(id);
        match self.receives.remove(&id)?.outcome {
            Some(ReceiveOutcome::Matched(matched)) => self.put_back(matched),
            Some(ReceiveOutcome::Dead(_)) | None => None,
        }
    }

    /// Takes credit for one message to `to`; if there is none, makes `ticket` wait for it and returns `false`.
    pub(super) fn take_credit(
        &mut self,
        to: PlaceId,
        ticket: &mut Option<u64>,
        waker: &Waker,
        caller: &'static Location<'static>,
    ) -> bool {
        let peer = self.peers.entry(to).or_default();
        if peer.credit.take(UNACKNOWLEDGED_MAX) {
            ticket.take().map(|ticket| peer.waiting.remove(ticket));
            return true;
        }
        let number = *ticket.get_or_insert_with(|| self.new_number());
        self.peers.entry(to).or_default().waiting.insert(number, (waker.clone(), caller));
        false
    }

    /// Takes credit for one message to `to`, if there is any.
    #[inline]
    pub(super) fn take_credit_at_once(&mut self, to: PlaceId) -> bool {
        self.peers.entry(to).or_default().credit.take(UNACKNOWLEDGED_MAX)
    }

    /// Ends the wait of `ticket` for credit to `to`.
    pub(super) fn leave_credit(&mut self, to: PlaceId, ticket: Option<u64>) {
        if let (Some(ticket), Some(peer)) = (ticket, self.peers.get_mut(&to)) {
            peer.waiting.remove(ticket);
        }
    }

    /// Gives back unused credit; returns the wakers of the sends that wait for some.
    #[must_use]
    pub(super) fn give_back_credit(&mut self, to: PlaceId) -> Vec<Waker> {
        let peer = self.peers.entry(to).or_default();
        peer.credit.give_back();
        peer.wake_all()
    }

    /// Begins to send a long message; returns its number.
    pub(super) fn begin_send(&mut self, to: PlaceId, bytes: u64, caller: &'static Location<'static>) -> u64 {
        let number = self.new_number();
        let send = LongSend {
            to,
            bytes,
            caller,
            transfer: None,
            taken: 0,
            is_read: false,
            is_dead: false,
            waker: None,
        };
        self.sends.insert(number, send);
        number
    }

    /// Ends a send; returns its receiver unless that is dead.
    pub(super) fn end_send(&mut self, number: u64) -> Option<PlaceId> {
        self.sends.remove(number).filter(|send| !send.is_dead).map(|send| send.to)
    }

    /// Returns the transfer that the receiver of message `number` asks for, or `None` if it has read the message in
    /// place.
    ///
    /// # Errors
    /// It is dead.
    pub(super) fn poll_clear_to_send(
        &mut self,
        number: u64,
        waker: &Waker,
    ) -> Poll<Result<Option<u64>, PlaceId>> {
        self.poll_send(number, waker, |send| if send.is_read { Some(None) } else { send.transfer.map(Some) })
    }

    /// Returns `true` once the receiver has taken `chunks` chunks of `transfer`, `false` if it has given up the
    /// transfer.
    ///
    /// # Errors
    /// It is dead.
    pub(super) fn poll_taken(
        &mut self,
        number: u64,
        transfer: u64,
        chunks: usize,
        waker: &Waker,
    ) -> Poll<Result<bool, PlaceId>> {
        self.poll_send(number, waker, |send| match send.transfer == Some(transfer) {
            true => (send.taken >= chunks).then_some(true),
            false => Some(false),
        })
    }

    fn poll_send<R>(
        &mut self,
        number: u64,
        waker: &Waker,
        ask: impl FnOnce(&LongSend) -> Option<R>,
    ) -> Poll<Result<R, PlaceId>> {
        let send = self.sends.get_mut(number).expect("a send is there until it is over");
        if send.is_dead {
            return Poll::Ready(Err(send.to));
        }
        match ask(send) {
            Some(answer) => Poll::Ready(Ok(answer)),
            None => {
                send.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Begins to receive the long message `send` of `source`; returns the number of the transfer.
    pub(super) fn begin_transfer(&mut self, source: PlaceId, send: u64, is_value: bool) -> u64 {
        let number = self.new_number();
        let transfer = Transfer { source, send, is_value, chunks: VecDeque::new(), ended: None, waker: None };
        self.transfers.insert(number, transfer);
        number
    }

    /// Returns the next chunk of a transfer.
    ///
    /// # Errors
    /// The reason why no more chunks come.
    pub(super) fn poll_chunk(&mut self, number: u64, waker: &Waker) -> Poll<Result<Payload, TransferError>> {
        let transfer = self.transfers.get_mut(number).expect("a transfer is there until it is over");
        if let Some(chunk) = transfer.chunks.pop_front() {
            return Poll::Ready(Ok(chunk));
        }
        if let Some(end) = transfer.ended {
            return Poll::Ready(Err(end));
        }
        transfer.waker = Some(waker.clone());
        Poll::Pending
    }

    /// Leaves a transfer to the next receive of its message, if it brings a value that is here or may still come;
    /// returns whether it does. A value is sent only once: it may carry handles, which a second send would count again.
    pub(super) fn leave_transfer(&mut self, number: u64) -> bool {
        let Some(transfer) = self.transfers.get_mut(number) else { return false };
        let is_left = transfer.is_value && (transfer.ended.is_none() || !transfer.chunks.is_empty());
        if is_left {
            transfer.waker = None;
            transfer.chunks.iter_mut().for_each(Payload::copy);
        }
        is_left
    }

    /// Ends a transfer; returns why its sender ended it, if it did.
    pub(super) fn end_transfer(&mut self, number: u64) -> Option<TransferError> {
        // Its chunks are bytes, so dropping them runs no code of the program.
        self.transfers.remove(number).and_then(|transfer| transfer.ended)
    }
}

impl Peer {
    fn wake_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, (waker, _))| waker).collect()
    }
}

impl MessageTable {
    /// Returns the table of `local`.
    #[inline]
    pub(crate) fn of(local: &Local) -> &RefCell<MessageTable> {
        Service::of(local)
    }
}

impl Service for RefCell<MessageTable> {
    const ROW: usize = 1;

    fn new(_here: PlaceId, _places: u32) -> Self {
        RefCell::default()
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        let teams = Teams::of(local).table.borrow();
        let has_member = |team| teams.has_member(TeamId::of_bits(team), place);
        let mut table = self.borrow_mut();
        let mut wakers = Vec::new();
        for id in table.matching.place_died(place, has_member) {
            if let Some(receive) = table.receives.get_mut(&id) {
                receive.outcome = Some(ReceiveOutcome::Dead(place));
                wakers.push(receive.waker.clone());
            }
        }
        table.sends.for_each_mut(|_, send| {
            if send.to == place {
                send.is_dead = true;
                wakers.extend(send.waker.take());
            }
        });
        table.transfers.for_each_mut(|_, transfer| {
            if transfer.source == place {
                transfer.ended.get_or_insert(TransferError::Dead);
                wakers.extend(transfer.waker.take());
            }
        });
        if let Some(peer) = table.peers.get_mut(&place) {
            wakers.extend(peer.wake_all());
        }
        drop((table, teams));
        wakers.into_iter().for_each(Waker::wake);
    }

    fn explain(&self, _inquiry: &Inquiry<'_>) -> Vec<String> {
        let table = self.borrow();
        let receives = table.receives.values().filter(|receive| receive.outcome.is_none());
        let receives = receives.map(|Receive { wanted, caller, .. }| {
            let source = wanted.source.map_or("any member".to_owned(), |source| source.to_string());
            let tag = match wanted.tag >> super::header::TAG_BITS {
                0 => format!("with tag {}", wanted.tag),
                _ => "of a neighbor exchange".to_owned(),
            };
            format!("a message of {source} {tag}, at {caller}")
        });
        let sends = table.sends.values().filter(|send| send.waker.is_some() && !send.is_dead);
        let sends = sends.map(|LongSend { to, bytes, caller, .. }| {
            format!("{to} to receive a message of {bytes} bytes, sent at {caller}")
        });
        let transfers = table.transfers.values().filter(|transfer| transfer.waker.is_some());
        let transfers =
            transfers.map(|transfer| format!("the rest of a long message of {}", transfer.source));
        let mut peers: Vec<_> = table.peers.iter().collect();
        peers.sort_unstable_by_key(|(to, _)| **to);
        let credits = peers.into_iter().flat_map(|(to, peer)| {
            peer.waiting.values().map(move |(_, caller)| {
                format!(
                    "{to} to receive some of its {UNACKNOWLEDGED_MAX} pending messages, to send one at \
                     {caller}"
                )
            })
        });
        receives.chain(transfers).chain(sends).chain(credits).collect()
    }

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn run_due(&self, _local: &Local) -> bool {
        false
    }
}

/// Counts a received message of `source`; acknowledges many together.
pub(super) fn acknowledge(local: &Local, source: PlaceId) {
    let due =
        MessageTable::of(local).borrow_mut().peers.entry(source).or_default().acknowledgement.received();
    if let Some(count) = due {
        send_acknowledgement(local, source, count);
    }
}

#[cold]
fn send_acknowledgement(local: &Local, source: PlaceId, count: u32) {
    if source == local.here() {
        let wakers = acknowledged(local, source, u64::from(count));
        wakers.into_iter().flatten().for_each(Waker::wake);
        return;
    }
    // A dead place needs no acknowledgement.
    let _ = send_control(
        local,
        source,
        MessageHeader::control(MessageKind::Acknowledged, u64::from(count)),
        None,
    );
}

fn acknowledged(local: &Local, source: PlaceId, count: u64) -> Result<Vec<Waker>, TooMany> {
    let mut table = MessageTable::of(local).borrow_mut();
    let peer = table.peers.entry(source).or_default();
    peer.credit.acknowledge(u32::try_from(count).map_err(|_| TooMany)?)?;
    Ok(peer.wake_all())
}

/// Sends `head`, followed by the number `rest` if there is one.
pub(super) fn send_control(
    local: &Local,
    to: PlaceId,
    head: MessageHeader,
    rest: Option<u64>,
) -> Result<(), isles_runtime::service::Unsent> {
    let encode = |writer: &mut Writer<'_>| {
        head.encode(writer);
        rest.into_iter().for_each(|number| writer.put_u64(number));
        Ok(())
    };
    let guess = HEAD_BYTES + size_of::<u64>();
    local.send_with_size_hint(to, Class::Control, POINT_TO_POINT, guess, encode).map(drop)
}

/// Delivers a message of this place to itself.
pub(super) fn deliver_here(local: &Local, envelope: Envelope, message: Message) {
    let mut table = MessageTable::of(local).borrow_mut();
    let within = table.peers.entry(local.here()).or_default().acknowledgement.arrived();
    debug_assert!(within.is_ok(), "the credit of a place to itself is its own");
    let waker = table.arrive(envelope, message);
    drop(table);
    waker.into_iter().for_each(Waker::wake);
}

/// Counts an eager message of `source` that a receive read in the queue itself.
pub(super) fn received_in_queue(local: &Local, source: PlaceId) {
    let mut table = MessageTable::of(local).borrow_mut();
    let acknowledgement = &mut table.peers.entry(source).or_default().acknowledgement;
    let due = acknowledgement.arrived().map(|()| acknowledgement.received());
    drop(table);
    match due {
        Ok(None) => {}
        Ok(Some(count)) => send_acknowledgement(local, source, count),
        Err(TooMany) => local.endpoint().declare_dead(source),
    }
}

/// Result of [`receive_unexpected`].
pub(super) enum Unexpected {
    /// The message of this place, which `takes` has taken.
    Received(PlaceId),
    /// A message that must be received in another way, or that is for another receive.
    Other,
    /// No message; the next one to arrive is for this receive.
    Nothing,
}

/// Receives an unexpected eager message, if there is one for which `takes` holds.
#[inline]
pub(super) fn receive_unexpected(
    local: &Local,
    wanted: ReceivePattern,
    takes: impl FnOnce(ElementType, &[u8]) -> bool,
) -> Unexpected {
    let mut table = MessageTable::of(local).borrow_mut();
    match table.take_eager(wanted, takes) {
        TakeOutcome::Taken(matched) => {
            drop(table);
            acknowledge(local, matched.envelope.source);
            Unexpected::Received(matched.envelope.source)
        }
        TakeOutcome::Nothing if table.matching.is_next(wanted) => Unexpected::Nothing,
        TakeOutcome::Left | TakeOutcome::Nothing => Unexpected::Other,
    }
}

/// Refusal of a message beyond the credit, or of an acknowledgement of one that was not sent.
const CREDIT_VIOLATION: &str = "it breaks the credit of messages";

/// Receives a message of another place.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let head = MessageHeader::decode(reader)?;
    let wakers = match head.kind {
        MessageKind::Eager | MessageKind::RequestToSend => {
            return receive_message(local, source, head, reader);
        }
        MessageKind::Acknowledged => acknowledged(local, source, head.number)
            .map_err(|TooMany| Refused::of_service(CREDIT_VIOLATION))?,
        MessageKind::Chunk => receive_chunk(local, source, head.number, reader)?,
        MessageKind::ClearToSend | MessageKind::Taken | MessageKind::Stop | MessageKind::Read => {
            let transfer = reader.take_u64()?;
            receive_answer(local, source, head, transfer)
        }
        MessageKind::Withdrawn => return withdrawn(local, source, head.number),
    };
    reader.finish()?;
    wakers.into_iter().for_each(Waker::wake);
    Ok(())
}

fn receive_message(
    local: &Local,
    source: PlaceId,
    head: MessageHeader,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    if !head.team.is_of(local.places()) {
        return Err(Refused::NotItsHome);
    }
    let mut message = match head.kind {
        MessageKind::RequestToSend => Message::RequestToSend {
            element: head.element,
            send: head.number,
            long: LongMessage::decode(reader)?,
            transfer: None,
        },
        _ => Message::Eager(head.element, Payload::take(reader)),
    };
    let envelope = Envelope { team: head.team.bits(), tag: head.tag, source };
    let is_over = is_over(local, head.team);
    let mut table = MessageTable::of(local).borrow_mut();
    let peer = table.peers.entry(source).or_default();
    peer.acknowledgement.arrived().map_err(|TooMany| Refused::of_service(CREDIT_VIOLATION))?;
    if is_over {
        drop(table);
        acknowledge(local, source);
        return Ok(());
    }
    if let Message::Eager(_, payload) = &mut message {
        // Copied, because its task may not run for long.
        payload.copy();
    }
    let waker = table.arrive(envelope, message);
    drop(table);
    waker.into_iter().for_each(Waker::wake);
    Ok(())
}

/// Returns `true` if `team` was made here and no handle to it is left, so that nothing will receive its messages.
fn is_over(local: &Local, team: TeamId) -> bool {
    team != TeamId::WORLD && team.maker() == local.here() && !Teams::of(local).table.borrow().is_known(team)
}

fn receive_chunk(
    local: &Local,
    source: PlaceId,
    number: u64,
    reader: &mut Reader<'_>,
) -> Result<Vec<Waker>, DecodeError> {
    let mut payload = Payload::take(reader);
    reader.rest();
    let mut table = MessageTable::of(local).borrow_mut();
    let transfer = table.transfers.get_mut(number).filter(|transfer| transfer.source == source);
    // Chunks of a transfer that was given up here may still arrive.
    Ok(transfer.map_or_else(Vec::new, |transfer| {
        if transfer.waker.is_none() {
            // Copied, because no task is about to read it.
            payload.copy();
        }
        transfer.chunks.push_back(payload);
        transfer.waker.take().into_iter().collect()
    }))
}

/// Receives an answer of the receiver of a long message; returns the wakers of its send.
fn receive_answer(local: &Local, source: PlaceId, head: MessageHeader, transfer: u64) -> Vec<Waker> {
    let mut table = MessageTable::of(local).borrow_mut();
    // A withdrawn message is no longer known.
    let Some(send) = table.sends.get_mut(head.number).filter(|send| send.to == source) else {
        return Vec::new();
    };
    match head.kind {
        MessageKind::ClearToSend => (send.transfer, send.taken) = (Some(transfer), 0),
        MessageKind::Read => send.is_read = true,
        _ if send.transfer != Some(transfer) => {}
        MessageKind::Taken => send.taken += 1,
        _ => send.transfer = None,
    }
    send.waker.take().into_iter().collect()
}

/// Removes the long message `number` of `source`, which has withdrawn it.
fn withdrawn(local: &Local, source: PlaceId, number: u64) -> Result<(), Refused> {
    let is_it = |envelope: &Envelope, message: &Message| {
        envelope.source == source && matches!(message, Message::RequestToSend { send, .. } if *send == number)
    };
    let is_its = |transfer: &Transfer| transfer.source == source && transfer.send == number;
    let mut table = MessageTable::of(local).borrow_mut();
    let is_here = |transfer: &Transfer| is_its(transfer) && transfer.is_value && !transfer.chunks.is_empty();
    if table.transfers.values().any(is_here) {
        // The value is here: its sender gave up too late.
        return Ok(());
    }
    let gone = table.matching.remove(is_it).len();
    let got = table.receives.iter().find(|(_, receive)| match &receive.outcome {
        Some(ReceiveOutcome::Matched(matched)) => is_it(&matched.envelope, &matched.message),
        _ => false,
    });
    let got = got.map(|(id, receive)| (*id, receive.wanted));
    if let Some((id, wanted)) = got {
        let other = table.matching.post_again(id, wanted);
        if let Some(receive) = table.receives.get_mut(&id) {
            receive.outcome = other.map(ReceiveOutcome::Matched);
        }
    }
    if gone > 0 || got.is_some() {
        // No receive has it.
        table.transfers.retain(|_, transfer| !is_its(transfer));
    }
    let ended = table.transfers.iter().find(|(_, transfer)| is_its(transfer)).map(|(number, _)| number);
    let waker = ended.and_then(|number| table.transfers.get_mut(number)).and_then(|transfer| {
        transfer.ended.get_or_insert(TransferError::Withdrawn);
        transfer.waker.take()
    });
    drop(table);
    waker.into_iter().for_each(Waker::wake);
    (0..gone + usize::from(got.is_some())).for_each(|_| acknowledge(local, source));
    Ok(())
}

/// Removes the messages of a team to which no handle is left here.
pub(in crate::team) fn forget_team(local: &Local, team: TeamId) {
    let gone =
        MessageTable::of(local).borrow_mut().matching.remove(|envelope, _| envelope.team == team.bits());
    for matched in &gone {
        if let Message::RequestToSend { transfer: Some(number), .. } = matched.message {
            MessageTable::of(local).borrow_mut().end_transfer(number);
        }
    }
    gone.iter().for_each(|matched| acknowledge(local, matched.envelope.source));
}
