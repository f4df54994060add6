//! Sending: directly into the queue if there is room, waiting otherwise.
//!
//! A full queue makes the sender wait: it takes in its own messages meanwhile (tasks are queued, not run), so two
//! places that flood each other both make room. A message goes to the outbox on the heap only if its sender can neither
//! send nor take in more, because its backlog is at its bound, or if the sender is delivering messages itself (or a
//! simulated world says so); the outbox is emptied before anything else is sent the same way. What is sent while
//! another message is being written, by the encoding of a value, goes there, too, because that message holds the
//! queue's memory.
//!
//! Messages of one class to one place leave in the order of their sends: one that finds no room queues in the outbox
//! while it waits, and what is sent meanwhile, by handlers or by its own encoding, queues behind it. So nothing
//! deadlocks and nothing is lost; the outbox (`outbox`) grows only by the answers of handlers, and by what one poll
//! sends against a full queue at that bound.

use super::outbox::{OutboxTicket, Transmit, WaitingMessage};
use super::unsent::Unsent;
use super::{Clock, Local, Step, WritingGuard};
use crate::limits::{ROOM_GUESS, ROOM_WAIT};
use crate::wire::{EncodeError, Writer};
use isles_protocol::PlaceId;
use isles_telemetry::CounterId;
use isles_transport::{Class, EndpointExt, HandlerId, Inbound, SendError};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;
use std::time::Duration;

/// Writes the body of a message.
///
/// The sending code is not generic: a program has hundreds of kinds of bodies, and instances of this code for each
/// would take a compiler long and make no message faster.
pub type Encode<'a> = dyn Fn(&mut Writer<'_>) -> Result<(), EncodeError> + 'a;

/// Outcome of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Length of the message's body in bytes.
    pub bytes: usize,
}

impl Local {
    /// Sends what `encode` writes to another place; waits for room if need be.
    ///
    /// `encode` may be called several times (once for each attempt) and must write the same length each time.
    ///
    /// # Errors
    /// Nothing was sent; see [`Unsent`].
    #[inline]
    pub fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        encode: impl Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Sent, Unsent> {
        self.send_with_size_hint(to, class, handler, ROOM_GUESS, encode)
    }

    /// As [`Local::send`], for a message of probably `guess` bytes, which is then written only once.
    #[inline]
    pub fn send_with_size_hint(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        guess: usize,
        encode: impl Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Sent, Unsent> {
        self.send_encoded(to, class, handler, guess, &encode)
    }

    /// As [`Local::send_with_size_hint`], for any kind of body.
    fn send_encoded(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        guess: usize,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        if self.writing.get().is_some() {
            return self.defer_nested(to, class, handler, encode);
        }
        let behind = self.outbox_len.get() > 0 && self.outbox.borrow().holds(to, class);
        match self.attempt_in_turn(behind, to, class, handler, guess, encode) {
            Err(Unsent::Full) => self.send_in_turn(to, class, handler, guess, encode),
            done => done,
        }
    }

    /// Tries once, unless an earlier send waits.
    #[inline]
    fn attempt_in_turn(
        &self,
        behind: bool,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        guess: usize,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        match behind {
            // Deferred messages to a dead place are dropped, so nothing would report the death.
            true if self.endpoint.is_dead(to) => Err(Unsent::DeadPlace(to)),
            true => Err(Unsent::Full),
            false => self.attempt(to, class, handler, guess, encode),
        }
    }

    /// Sends what found no room; what is sent to the same place meanwhile waits behind it.
    #[cold]
    fn send_in_turn(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        guess: usize,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        let ticket = OutboxTicketGuard::new(self, to, class);
        loop {
            if !self.may_wait() || !self.make_room() {
                return self.defer_send(ticket, handler, encode);
            }
            let behind = !self.outbox.borrow().is_next(ticket.ticket);
            match self.attempt_in_turn(behind, to, class, handler, guess, encode) {
                Err(Unsent::Full) => {}
                done => return done,
            }
        }
    }

    /// Marks that a message to `to` is being written until the guard is dropped: what is sent meanwhile is deferred.
    #[inline]
    pub fn begin_writing(&self, to: PlaceId) -> WritingGuard<'_> {
        self.has_refused.set(false);
        WritingGuard { local: self, before: self.writing.replace(Some(to)) }
    }

    /// Tries once: in the queue itself if the message is short enough, otherwise as a block.
    fn attempt(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        guess: usize,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        let _writing = self.begin_writing(to);
        let inline_max =
            if class == Class::Data { self.limits.inline_bytes_max } else { self.limits.control_bytes_max };
        let needed = Cell::new(0);
        let fault = Cell::new(None);
        let mut fill = |room: &mut [u8]| {
            let len = room.len();
            let mut writer = Writer::new(room);
            let error = encode(&mut writer).err();
            let failed = error.is_some();
            fault.set(error);
            needed.set(writer.written());
            (writer.written() <= len && !failed).then_some(writer.written())
        };
        let room = if guess <= inline_max { guess } else { ROOM_GUESS.min(inline_max) };
        let mut result = self.endpoint.send(to, class, handler, room, &mut fill);
        if let Some(fault) = fault.take() {
            self.parts.borrow_mut().roll_back_sent();
            return Err(Unsent::Unencodable(fault));
        }
        if result == Err(SendError::Abandoned) {
            self.parts.borrow_mut().roll_back_sent();
            let len = needed.get();
            result = if len <= inline_max {
                self.endpoint.send(to, class, handler, len, &mut fill)
            } else {
                return self.attempt_block(to, class, handler, len, encode);
            };
            if let Some(fault) = fault.take() {
                self.parts.borrow_mut().roll_back_sent();
                return Err(Unsent::Unencodable(fault));
            }
            if result == Err(SendError::Abandoned) {
                self.parts.borrow_mut().roll_back_sent();
                return Err(Unsent::Unencodable(EncodeError::Unsteady));
            }
        }
        self.settle(result, to, class, needed.get())
    }

    /// Tries once to send a block of `len` bytes, which an earlier attempt has measured.
    fn attempt_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        let mut fault = None;
        let mut fill = |room: &mut [u8]| {
            if let Err(error) = encode_again(room, encode) {
                fault = Some(error);
                // A block whose memory is lent can only be given up by unwinding; it hardly ever happens.
                resume_unwind(Box::new("the block is given up"));
            }
        };
        let sent =
            catch_unwind(AssertUnwindSafe(|| self.endpoint.send_block(to, class, handler, len, &mut fill)));
        match (sent, fault) {
            (Ok(sent), _) => self.settle(sent, to, class, len),
            (Err(_), Some(fault)) => {
                self.parts.borrow_mut().roll_back_sent();
                Err(Unsent::Unencodable(fault))
            }
            (Err(panic), None) => resume_unwind(panic),
        }
    }

    /// Completes the accounting of an attempt.
    #[inline]
    fn settle(
        &self,
        result: Result<(), SendError>,
        to: PlaceId,
        class: Class,
        bytes: usize,
    ) -> Result<Sent, Unsent> {
        match result {
            Ok(()) => {
                self.parts.borrow_mut().commit_sent();
                self.tally.sent(class, bytes);
                self.note_sent(to, bytes);
                Ok(Sent { bytes })
            }
            Err(error) => {
                self.parts.borrow_mut().roll_back_sent();
                Err(error.into())
            }
        }
    }

    /// Completes the accounting of a message that was written on the heap.
    pub fn settle_sent(&self, written: Result<(), EncodeError>) -> Result<(), Unsent> {
        let mut parts = self.parts.borrow_mut();
        match written {
            Ok(()) => parts.commit_sent(),
            Err(_) => parts.roll_back_sent(),
        }
        written.map_err(Unsent::Unencodable)
    }

    /// Writes what `encode` writes for `to` into `room`. Returns its length, and whether `room` holds all of it and may
    /// be sent as it is: the message that carries handles must lend them itself.
    pub fn write_ahead(
        &self,
        to: PlaceId,
        room: &mut [u8],
        encode: &Encode<'_>,
    ) -> Result<(usize, bool), EncodeError> {
        let _writing = self.begin_writing(to);
        let mut writer = Writer::new(room);
        let written = encode(&mut writer);
        let (len, fits) = (writer.written(), !writer.overflowed());
        let mut parts = self.parts.borrow_mut();
        let has_lent = parts.has_lent();
        if has_lent {
            parts.roll_back_sent();
        }
        written.map(|()| (len, fits && !has_lent))
    }

    /// Returns the `len` bytes that `encode` writes for this place itself.
    pub fn encode_for_self(&self, len: usize, encode: &Encode<'_>) -> Result<Vec<u8>, Unsent> {
        let mut bytes = vec![0; len];
        let _writing = self.begin_writing(self.here);
        self.settle_sent(encode_again(&mut bytes, encode))?;
        Ok(bytes)
    }

    /// Keeps a message on the heap until there is room.
    fn defer_send(
        &self,
        ticket: OutboxTicketGuard<'_>,
        handler: HandlerId,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        let _writing = self.begin_writing(ticket.ticket.to());
        let mut measure = Writer::new(&mut []);
        let measured = encode(&mut measure);
        let len = measure.written();
        self.parts.borrow_mut().roll_back_sent();
        measured.map_err(Unsent::Unencodable)?;
        let max = self.limits.block_bytes_max;
        if len > max {
            return Err(Unsent::TooLong { len, max });
        }
        let mut bytes = vec![0; len];
        self.settle_sent(encode_again(&mut bytes, encode))?;
        ticket.fill(WaitingMessage { handler, bytes });
        self.tally.add(CounterId::PutAside, 1);
        Ok(Sent { bytes: len })
    }

    /// Keeps a message on the heap because another one is being written.
    #[cold]
    fn defer_nested(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        encode: &Encode<'_>,
    ) -> Result<Sent, Unsent> {
        if self.endpoint.is_dead(to) {
            return Err(Unsent::DeadPlace(to));
        }
        let lent = self.parts.borrow_mut().begin_nested();
        let sent = self.defer_send(OutboxTicketGuard::new(self, to, class), handler, encode);
        self.parts.borrow_mut().resume(lent);
        sent
    }

    /// Sends what `encode` writes, `len` bytes, to several other places; written once if the machine offers multicast.
    ///
    /// Otherwise sends as [`Local::send`] to each of them, in this order. With multicast all get it at the same time; a
    /// message without room is deferred, because so far only invented worlds offer multicast.
    ///
    /// # Errors
    /// Some places may have got it; see [`Unsent`].
    pub fn multicast(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        len: usize,
        encode: &Encode<'_>,
    ) -> Result<(), Unsent> {
        let offered = self.endpoint.multicast().filter(|offered| offered.bytes(class).contains(&len));
        let is_offered = self.writing.get().is_none() && offered.is_some();
        if to.len() < 2 || !is_offered {
            return to
                .iter()
                .try_for_each(|to| self.send_encoded(*to, class, handler, len, encode).map(drop));
        }
        let mut bytes = vec![0; len];
        let written = {
            let _writing = self.begin_writing(to[0]);
            encode_again(&mut bytes, encode)
        };
        if self.parts.borrow().has_lent() {
            // Each receiver of a handle takes its own weight.
            self.parts.borrow_mut().roll_back_sent();
            return to
                .iter()
                .try_for_each(|to| self.send_encoded(*to, class, handler, len, encode).map(drop));
        }
        written.map_err(Unsent::Unencodable)?;
        let message = WaitingMessage { handler, bytes };
        let is_behind =
            self.outbox_len.get() > 0 && to.iter().any(|to| self.outbox.borrow().holds(*to, class));
        let attempt = if is_behind { Err(Unsent::Full) } else { self.attempt_multicast(to, class, &message) };
        if !matches!(attempt, Err(Unsent::Full)) {
            return attempt;
        }
        self.outbox.borrow_mut().put_multicast(to, class, message);
        self.outbox_len.set(self.outbox_len.get() + to.len());
        to.iter().for_each(|_| self.tally.add(CounterId::PutAside, 1));
        Ok(())
    }

    fn attempt_multicast(
        &self,
        to: &[PlaceId],
        class: Class,
        message: &WaitingMessage,
    ) -> Result<(), Unsent> {
        let len = message.bytes.len();
        let offered = self.endpoint.multicast().ok_or(SendError::TooLong { len, max: 0 })?;
        offered.send_to_all(to, class, message.handler, &message.bytes)?;
        for place in to {
            self.tally.sent(class, message.bytes.len());
            self.note_sent(*place, message.bytes.len());
        }
        Ok(())
    }

    /// Returns `true` if a send may wait for room: not while messages are delivered, and not in an invented world in
    /// which the other places run only when this one returns.
    fn may_wait(&self) -> bool {
        !self.delivering.get() && (matches!(self.clock, Clock::Host(_)) || self.others.get().is_some())
    }

    /// Takes in messages, or waits a little, so that a full queue can empty; returns `false` if that cannot help.
    fn make_room(&self) -> bool {
        let bound = self.is_full();
        let inbound = if bound { Inbound::Control } else { Inbound::All };
        let arrived = self.poll_messages(inbound);
        self.flush_outbox();
        if bound && arrived == 0 {
            return false;
        }
        if let Some(others) = self.others.get() {
            return others();
        }
        if arrived == 0 {
            self.endpoint.wait(Some(ROOM_WAIT));
        }
        true
    }

    /// Sends messages of the outbox while there is room; returns the number sent.
    pub(super) fn flush_outbox(&self) -> usize {
        if self.outbox_len.get() == 0 {
            return 0;
        }
        let mut outbox = self.outbox.take();
        let removed = outbox.flush(&mut Retry(self));
        // Nothing was deferred meanwhile: the sends here try once, and do not nest.
        self.outbox.replace(outbox);
        self.outbox_len.set(self.outbox_len.get() - removed);
        removed
    }

    /// Returns `true` if tasks must wait until what was sent before them has left, as they do on a host, where the send
    /// itself waits. On a modelled chip a send cannot wait, and a task may compute for long; meanwhile neither messages
    /// that wait for room nor those written piece by piece would leave. Not at the bound of the backlog, where nothing
    /// is taken in that could make room.
    #[inline]
    pub fn tasks_wait_for_sends(&self) -> bool {
        matches!(self.clock, Clock::Modelled(_)) && self.is_sending() && !self.is_full()
    }

    /// Returns `true` if something that was sent needs this place in order to leave.
    pub(crate) fn is_sending(&self) -> bool {
        self.outbox_len.get() > 0 || self.endpoint.is_sending()
    }

    /// Wakes `waker` when everything has left.
    pub(crate) fn wake_when_sent(&self, waker: &Waker) {
        self.sent_waits.borrow_mut().push(waker.clone());
        self.has_sent_waits.set(true);
    }

    /// Wakes the tasks that wait until everything has left, if it has; returns their number.
    #[inline]
    pub(super) fn wake_if_sent(&self) -> usize {
        if !self.has_sent_waits.get() || self.is_sending() {
            return 0;
        }
        self.has_sent_waits.set(false);
        let waits = self.sent_waits.take();
        let woken = waits.len();
        waits.into_iter().for_each(Waker::wake);
        woken
    }

    /// Waits until nothing of `class` waits for room to `to`, for at most `limit`; at the end of the place.
    pub(crate) fn settle_outbox(&self, to: PlaceId, class: Class, limit: Duration) {
        let until = self.clock.now() + limit;
        while self.outbox.borrow().holds(to, class) && self.clock.now() < until {
            if self.progress_messages() == Step::Idle {
                self.endpoint.wait(Some(ROOM_WAIT));
            }
        }
    }
}

/// An [`OutboxTicket`] in the outbox of a place; dropping it gives it up.
struct OutboxTicketGuard<'a> {
    local: &'a Local,
    ticket: OutboxTicket,
}

impl<'a> OutboxTicketGuard<'a> {
    fn new(local: &'a Local, to: PlaceId, class: Class) -> Self {
        let ticket = local.outbox.borrow_mut().enqueue(to, class);
        local.outbox_len.set(local.outbox_len.get() + 1);
        OutboxTicketGuard { local, ticket }
    }

    /// Puts a message in the place of the ticket.
    fn fill(self, message: WaitingMessage) {
        self.local.outbox.borrow_mut().fill(self.ticket, message);
        std::mem::forget(self);
    }
}

impl Drop for OutboxTicketGuard<'_> {
    fn drop(&mut self) {
        self.local.outbox.borrow_mut().give_up(self.ticket);
        self.local.outbox_len.set(self.local.outbox_len.get() - 1);
    }
}

/// Writes into `room`, whose length an earlier attempt has measured.
fn encode_again(room: &mut [u8], encode: &Encode<'_>) -> Result<(), EncodeError> {
    let len = room.len();
    let mut writer = Writer::new(room);
    encode(&mut writer)?;
    if writer.written() == len { Ok(()) } else { Err(EncodeError::Unsteady) }
}

/// Another attempt to send a waiting message.
struct Retry<'a>(&'a Local);

impl Transmit for Retry<'_> {
    fn unicast(&mut self, to: PlaceId, class: Class, message: &WaitingMessage) -> Result<(), Unsent> {
        let encode = |writer: &mut Writer<'_>| {
            writer.put_bytes(&message.bytes);
            Ok(())
        };
        self.0.attempt(to, class, message.handler, ROOM_GUESS, &encode).map(drop)
    }

    fn multicast(&mut self, to: &[PlaceId], class: Class, message: &WaitingMessage) -> Result<(), Unsent> {
        self.0.attempt_multicast(to, class, message)
    }
}
