//! What lies at a place of the messages between two members, who waits, and how what comes is received.
//!
//! `docs/design/messages.md` has the protocol, `isles_protocol::matching` the matching and the credit. Tasks that send
//! and receive are in `sending` and `receiving`; they come here for the state that outlives a poll.
//! Invariant: nothing is sent, woken or dropped that belongs to the program while the table is borrowed.

use super::super::header::{ElementType, TeamId};
use super::super::payload::Payload;
use super::header::{MessageHead, MessageKind};
use crate::local::Local;
use crate::message::{Handler, Refused};
use crate::part::table::NumberHasherBuilder;
use crate::wire::{DecodeError, Reader, Writer};
use isles_protocol::PlaceId;
use isles_protocol::matching::{
    Acknowledgement, Envelope, Matched, Matching, MessageCredit, ReceiveId, TooMany, UNACKNOWLEDGED_MAX,
    Wanted,
};
use isles_transport::Class;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::Location;
use std::task::{Poll, Waker};

/// A message that lies at its receiver.
pub(super) enum Message {
    /// All of it.
    Eager(ElementType, Payload),
    /// That it waits at its sender, by whose number, and its length in bytes.
    Announced(ElementType, u64, u64),
}

impl Message {
    pub(super) fn element(&self) -> ElementType {
        let (Message::Eager(element, _) | Message::Announced(element, ..)) = self;
        *element
    }
}

/// A receive that had to wait.
pub(super) struct Receive {
    wanted: Wanted,
    caller: &'static Location<'static>,
    waker: Waker,
    outcome: Option<ReceiveOutcome>,
}

/// What became of a receive.
pub(super) enum ReceiveOutcome {
    Got(Matched<Message>),
    /// Nothing will come from a place that is dead.
    Dead(PlaceId),
}

/// A long message that is sent from here.
pub(super) struct LongSend {
    to: PlaceId,
    bytes: u64,
    caller: &'static Location<'static>,
    /// The transfer that its receiver has asked for.
    transfer: Option<u64>,
    /// How many parts of it have been taken.
    taken: usize,
    is_dead: bool,
    waker: Option<Waker>,
}

/// A long message that is received here.
pub(super) struct Transfer {
    source: PlaceId,
    /// The sender's number.
    send: u64,
    parts: VecDeque<Payload>,
    ended: Option<TransferEnd>,
    waker: Option<Waker>,
}

/// Why nothing more of a transfer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferEnd {
    Withdrawn,
    Dead,
}

/// What is known of another place.
#[derive(Default)]
struct Peer {
    credit: MessageCredit,
    acknowledgement: Acknowledgement,
    /// Sends that wait for credit.
    waiting: BTreeMap<u64, (Waker, &'static Location<'static>)>,
}

/// See the file header.
#[derive(Default)]
pub(crate) struct MessageTable {
    matching: Matching<Message>,
    receives: BTreeMap<ReceiveId, Receive>,
    sends: BTreeMap<u64, LongSend>,
    transfers: BTreeMap<u64, Transfer>,
    peers: HashMap<PlaceId, Peer, NumberHasherBuilder>,
    next_number: u64,
    /// Messages that nobody wanted yet when they came, in all.
    unexpected: u64,
}

impl MessageTable {
    /// Messages that nobody wanted yet when they came, since the place began.
    pub(crate) fn unexpected(&self) -> u64 {
        self.unexpected
    }

    fn new_number(&mut self) -> u64 {
        self.next_number = (self.next_number + 1) & super::header::number_mask();
        self.next_number
    }

    /// Whether the next message of `wanted` that comes may be read where it is.
    #[inline]
    pub(super) fn is_next(&self, wanted: Wanted) -> bool {
        self.matching.is_next(wanted)
    }

    /// A message has come; gives whom to wake.
    fn arrive(&mut self, envelope: Envelope, message: Message) -> Option<Waker> {
        let matched = self.matching.arrive(envelope, message);
        self.unexpected += u64::from(matched.is_none());
        self.hand_over(matched)
    }

    /// A message that was got is not received.
    #[must_use]
    pub(super) fn put_back(&mut self, matched: Matched<Message>) -> Option<Waker> {
        let matched = self.matching.put_back(matched);
        self.hand_over(matched)
    }

    fn hand_over(&mut self, matched: Option<(ReceiveId, Matched<Message>)>) -> Option<Waker> {
        let (id, matched) = matched?;
        let receive = self.receives.get_mut(&id)?;
        receive.outcome = Some(ReceiveOutcome::Got(matched));
        Some(receive.waker.clone())
    }

    /// Takes the oldest message that is wanted, if one lies here.
    pub(super) fn take(&mut self, wanted: Wanted) -> Option<Matched<Message>> {
        self.matching.take(wanted)
    }

    /// Notes a receive that waits.
    pub(super) fn wait(
        &mut self,
        wanted: Wanted,
        waker: Waker,
        caller: &'static Location<'static>,
    ) -> ReceiveId {
        let id = self.matching.wait(wanted);
        self.receives.insert(id, Receive { wanted, caller, waker, outcome: None });
        id
    }

    /// What became of a receive that waits; it is over then.
    pub(super) fn poll_receive(&mut self, id: ReceiveId, waker: &Waker) -> Poll<ReceiveOutcome> {
        let receive = self.receives.get_mut(&id).expect("a receive is there until it is over");
        let Some(outcome) = receive.outcome.take() else {
            receive.waker.clone_from(waker);
            return Poll::Pending;
        };
        self.receives.remove(&id);
        Poll::Ready(outcome)
    }

    /// A receive is given up; what it has got is put back.
    #[must_use]
    pub(super) fn give_up(&mut self, id: ReceiveId) -> Option<Waker> {
        self.matching.stop_waiting(id);
        match self.receives.remove(&id)?.outcome {
            Some(ReceiveOutcome::Got(matched)) => self.put_back(matched),
            Some(ReceiveOutcome::Dead(_)) | None => None,
        }
    }

    /// Takes the right to send a message to `to`; else notes that `ticket` waits for it.
    pub(super) fn take_credit(
        &mut self,
        to: PlaceId,
        ticket: &mut Option<u64>,
        waker: &Waker,
        caller: &'static Location<'static>,
    ) -> bool {
        let peer = self.peers.entry(to).or_default();
        if peer.credit.take() {
            ticket.take().map(|ticket| peer.waiting.remove(&ticket));
            return true;
        }
        let number = *ticket.get_or_insert_with(|| self.new_number());
        self.peers.entry(to).or_default().waiting.insert(number, (waker.clone(), caller));
        false
    }

    /// A send waits for credit to `to` no more.
    pub(super) fn leave_credit(&mut self, to: PlaceId, ticket: Option<u64>) {
        if let (Some(ticket), Some(peer)) = (ticket, self.peers.get_mut(&to)) {
            peer.waiting.remove(&ticket);
        }
    }

    /// Gives a right to send back that was not used.
    #[must_use]
    pub(super) fn give_back_credit(&mut self, to: PlaceId) -> Vec<Waker> {
        let peer = self.peers.entry(to).or_default();
        peer.credit.give_back();
        peer.wake_all()
    }

    /// A long message is to be announced; its number.
    pub(super) fn begin_send(&mut self, to: PlaceId, bytes: u64, caller: &'static Location<'static>) -> u64 {
        let number = self.new_number();
        let send = LongSend { to, bytes, caller, transfer: None, taken: 0, is_dead: false, waker: None };
        self.sends.insert(number, send);
        number
    }

    /// A send is over; its receiver, if that is still to be told.
    pub(super) fn end_send(&mut self, number: u64) -> Option<PlaceId> {
        self.sends.remove(&number).filter(|send| !send.is_dead).map(|send| send.to)
    }

    /// Which transfer the receiver of message `number` has asked for.
    ///
    /// # Errors
    /// It is dead.
    pub(super) fn poll_go(&mut self, number: u64, waker: &Waker) -> Poll<Result<u64, PlaceId>> {
        self.poll_send(number, waker, |send| send.transfer)
    }

    /// Whether so many parts of `transfer` have been taken; false if its receiver has given it up.
    ///
    /// # Errors
    /// It is dead.
    pub(super) fn poll_taken(
        &mut self,
        number: u64,
        transfer: u64,
        parts: usize,
        waker: &Waker,
    ) -> Poll<Result<bool, PlaceId>> {
        self.poll_send(number, waker, |send| match send.transfer == Some(transfer) {
            true => (send.taken >= parts).then_some(true),
            false => Some(false),
        })
    }

    fn poll_send<R>(
        &mut self,
        number: u64,
        waker: &Waker,
        ask: impl FnOnce(&LongSend) -> Option<R>,
    ) -> Poll<Result<R, PlaceId>> {
        let send = self.sends.get_mut(&number).expect("a send is there until it is over");
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

    /// Begins to receive message `send` of `source`; the number of the transfer.
    pub(super) fn begin_transfer(&mut self, source: PlaceId, send: u64) -> u64 {
        let number = self.new_number();
        let transfer = Transfer { source, send, parts: VecDeque::new(), ended: None, waker: None };
        self.transfers.insert(number, transfer);
        number
    }

    /// The next part of a transfer.
    ///
    /// # Errors
    /// None comes any more.
    pub(super) fn poll_part(&mut self, number: u64, waker: &Waker) -> Poll<Result<Payload, TransferEnd>> {
        let transfer = self.transfers.get_mut(&number).expect("a transfer is there until it is over");
        if let Some(part) = transfer.parts.pop_front() {
            return Poll::Ready(Ok(part));
        }
        if let Some(end) = transfer.ended {
            return Poll::Ready(Err(end));
        }
        transfer.waker = Some(waker.clone());
        Poll::Pending
    }

    /// A transfer is over; how it had ended before, if it had.
    pub(super) fn end_transfer(&mut self, number: u64) -> Option<TransferEnd> {
        // What lies there goes with it: bytes of Isles.
        self.transfers.remove(&number).and_then(|transfer| transfer.ended)
    }

    /// What this place waits for, for reports.
    pub(crate) fn explain(&self) -> Vec<String> {
        let receives = self.receives.values().filter(|receive| receive.outcome.is_none());
        let receives = receives.map(|Receive { wanted, caller, .. }| {
            let source = wanted.source.map_or("any member".to_owned(), |source| source.to_string());
            let tag = match wanted.tag >> super::header::TAG_BITS {
                0 => format!("with tag {}", wanted.tag),
                _ => "of a neighbor exchange".to_owned(),
            };
            format!("a message of {source} {tag}, at {caller}")
        });
        let sends = self.sends.values().filter(|send| send.waker.is_some() && !send.is_dead);
        let sends = sends.map(|LongSend { to, bytes, caller, .. }| {
            format!("{to} to receive a message of {bytes} bytes, sent at {caller}")
        });
        let transfers = self.transfers.values().filter(|transfer| transfer.waker.is_some());
        let transfers =
            transfers.map(|transfer| format!("the rest of a long message of {}", transfer.source));
        let mut peers: Vec<_> = self.peers.iter().collect();
        peers.sort_unstable_by_key(|(to, _)| **to);
        let credits = peers.into_iter().flat_map(|(to, peer)| {
            peer.waiting.values().map(move |(_, caller)| {
                format!(
                    "{to} to receive some of the {UNACKNOWLEDGED_MAX} messages that lie there, to send one at {caller}"
                )
            })
        });
        receives.chain(transfers).chain(sends).chain(credits).collect()
    }
}

impl Peer {
    fn wake_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting).into_values().map(|(waker, _)| waker).collect()
    }
}

/// Notes that a message of `source` was received, and tells it now and then.
pub(super) fn acknowledge(local: &Local, source: PlaceId) {
    let due = local.messages.borrow_mut().peers.entry(source).or_default().acknowledgement.received();
    if let Some(count) = due {
        tell_received(local, source, count);
    }
}

#[cold]
fn tell_received(local: &Local, source: PlaceId, count: u32) {
    if source == local.here() {
        let wakers = acknowledged(local, source, u64::from(count));
        wakers.into_iter().flatten().for_each(Waker::wake);
        return;
    }
    // A dead place need not know.
    let _ = tell(local, source, MessageHead::control(MessageKind::Acknowledged, u64::from(count)), None);
}

fn acknowledged(local: &Local, source: PlaceId, count: u64) -> Result<Vec<Waker>, TooMany> {
    let mut table = local.messages.borrow_mut();
    let peer = table.peers.entry(source).or_default();
    peer.credit.acknowledge(u32::try_from(count).map_err(|_| TooMany)?)?;
    Ok(peer.wake_all())
}

/// Sends a head, and a number if one follows it.
pub(super) fn tell(
    local: &Local,
    to: PlaceId,
    head: MessageHead,
    rest: Option<u64>,
) -> Result<(), crate::local::Unsent> {
    let encode = |writer: &mut Writer<'_>| {
        head.encode(writer);
        rest.into_iter().for_each(|number| writer.put_u64(number));
        Ok(())
    };
    local.send(to, Class::Control, Handler::PointToPoint.id(), encode).map(drop)
}

/// A message of this place to itself.
pub(super) fn put_here(local: &Local, envelope: Envelope, message: Message) {
    let mut table = local.messages.borrow_mut();
    let within = table.peers.entry(local.here()).or_default().acknowledgement.arrived();
    debug_assert!(within.is_ok(), "the credit of a place to itself is its own");
    let waker = table.arrive(envelope, message);
    drop(table);
    waker.into_iter().for_each(Waker::wake);
}

/// A short message of `source` was read in its queue.
pub(super) fn note_read(local: &Local, source: PlaceId) {
    let mut table = local.messages.borrow_mut();
    let acknowledgement = &mut table.peers.entry(source).or_default().acknowledgement;
    let due = acknowledgement.arrived().map(|()| acknowledgement.received());
    drop(table);
    match due {
        Ok(None) => {}
        Ok(Some(count)) => tell_received(local, source, count),
        Err(TooMany) => local.endpoint().condemn(source),
    }
}

/// Receives what another place sends.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let head = MessageHead::decode(reader)?;
    let wakers = match head.kind {
        MessageKind::Eager | MessageKind::Announced => return receive_message(local, source, head, reader),
        MessageKind::Acknowledged => {
            acknowledged(local, source, head.number).map_err(|TooMany| Refused::CreditViolation)?
        }
        MessageKind::Part => receive_part(local, source, head.number, reader)?,
        MessageKind::Go | MessageKind::Taken | MessageKind::Stop => {
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
    head: MessageHead,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    if !head.team.is_of(local.places()) {
        return Err(Refused::NotItsHome);
    }
    let mut message = match head.kind {
        MessageKind::Announced => Message::Announced(head.element, head.number, reader.take_u64()?),
        _ => Message::Eager(head.element, Payload::take(reader)),
    };
    let envelope = Envelope { team: head.team.bits(), tag: head.tag, source };
    let is_over = is_over(local, head.team);
    let mut table = local.messages.borrow_mut();
    let peer = table.peers.entry(source).or_default();
    peer.acknowledgement.arrived().map_err(|TooMany| Refused::CreditViolation)?;
    if is_over {
        drop(table);
        acknowledge(local, source);
        return Ok(());
    }
    if let Message::Eager(_, payload) = &mut message {
        // Its task may not run for long.
        payload.copy();
    }
    let waker = table.arrive(envelope, message);
    drop(table);
    waker.into_iter().for_each(Waker::wake);
    Ok(())
}

/// Whether this place has made the team, and no handle to it is left: nobody will receive its messages.
fn is_over(local: &Local, team: TeamId) -> bool {
    team != TeamId::WORLD && team.maker() == local.here() && !local.teams.borrow().is_known(team)
}

fn receive_part(
    local: &Local,
    source: PlaceId,
    number: u64,
    reader: &mut Reader<'_>,
) -> Result<Vec<Waker>, DecodeError> {
    let payload = Payload::take(reader);
    reader.rest();
    let mut table = local.messages.borrow_mut();
    let transfer = table.transfers.get_mut(&number).filter(|transfer| transfer.source == source);
    // Of a transfer that was given up here, parts may still come.
    Ok(transfer.map_or_else(Vec::new, |transfer| {
        transfer.parts.push_back(payload);
        transfer.waker.take().into_iter().collect()
    }))
}

/// What the receiver of a long message of this place says.
fn receive_answer(local: &Local, source: PlaceId, head: MessageHead, transfer: u64) -> Vec<Waker> {
    let mut table = local.messages.borrow_mut();
    // A message that was withdrawn is not known any more.
    let Some(send) = table.sends.get_mut(&head.number).filter(|send| send.to == source) else {
        return Vec::new();
    };
    match head.kind {
        MessageKind::Go => (send.transfer, send.taken) = (Some(transfer), 0),
        _ if send.transfer != Some(transfer) => {}
        MessageKind::Taken => send.taken += 1,
        _ => send.transfer = None,
    }
    send.waker.take().into_iter().collect()
}

/// A message that was announced does not come.
fn withdrawn(local: &Local, source: PlaceId, number: u64) -> Result<(), Refused> {
    let is_it = |envelope: &Envelope, message: &Message| {
        envelope.source == source && matches!(message, Message::Announced(_, other, _) if *other == number)
    };
    let mut table = local.messages.borrow_mut();
    let gone = table.matching.remove(is_it).len();
    let got = table.receives.iter().find(|(_, receive)| match &receive.outcome {
        Some(ReceiveOutcome::Got(matched)) => is_it(&matched.envelope, &matched.message),
        _ => false,
    });
    let got = got.map(|(id, receive)| (*id, receive.wanted));
    if let Some((id, wanted)) = got {
        let other = table.matching.wait_again(id, wanted);
        if let Some(receive) = table.receives.get_mut(&id) {
            receive.outcome = other.map(ReceiveOutcome::Got);
        }
    }
    let mut transfers = table.transfers.values_mut();
    let transfer = transfers.find(|transfer| transfer.source == source && transfer.send == number);
    let waker = transfer.and_then(|transfer| {
        transfer.ended.get_or_insert(TransferEnd::Withdrawn);
        transfer.waker.take()
    });
    drop(table);
    waker.into_iter().for_each(Waker::wake);
    (0..gone + usize::from(got.is_some())).for_each(|_| acknowledge(local, source));
    Ok(())
}

/// Ends what waits for a place that died.
pub(crate) fn place_died(local: &Local, place: PlaceId) {
    let teams = local.teams.borrow();
    let has_member = |team| teams.has_member(TeamId::of_bits(team), place);
    let mut table = local.messages.borrow_mut();
    let mut wakers = Vec::new();
    for id in table.matching.place_died(place, has_member) {
        if let Some(receive) = table.receives.get_mut(&id) {
            receive.outcome = Some(ReceiveOutcome::Dead(place));
            wakers.push(receive.waker.clone());
        }
    }
    for send in table.sends.values_mut().filter(|send| send.to == place) {
        send.is_dead = true;
        wakers.extend(send.waker.take());
    }
    for transfer in table.transfers.values_mut().filter(|transfer| transfer.source == place) {
        transfer.ended.get_or_insert(TransferEnd::Dead);
        wakers.extend(transfer.waker.take());
    }
    if let Some(peer) = table.peers.get_mut(&place) {
        wakers.extend(peer.wake_all());
    }
    drop((table, teams));
    wakers.into_iter().for_each(Waker::wake);
}

/// Forgets the messages of a team that no handle here leads to any more.
pub(in crate::team) fn forget_team(local: &Local, team: TeamId) {
    let gone = local.messages.borrow_mut().matching.remove(|envelope, _| envelope.team == team.bits());
    gone.iter().for_each(|matched| acknowledge(local, matched.envelope.source));
}
