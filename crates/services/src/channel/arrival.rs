//! Receiving messages about channels, and those of the home.
//!
//! Bytes are checked here; the protocol interprets them. Invariant: a message that is refused has changed nothing.

use super::control_block::{AnyChannel, ChannelKind};
use super::home::HomeChannel;
use super::message::{ChannelId, ChannelMessage};
use super::ring::TakeFrom;
use crate::channel::control_block::ChannelTable;
use crate::channel::message::CHANNEL;
use isles_protocol::PlaceId;
use isles_protocol::channel::{
    Cancelled, ChannelHome, ChannelStep, Choice, OfferOutcome, OperationId, WantOutcome,
};
use isles_runtime::Local;
use isles_runtime::capture::CanSend;
use isles_runtime::service::{Refused, drop_caught, refuse};
use isles_runtime::wire::{DecodeError, Reader};
use isles_transport::{Class, notice};
use std::cell::RefCell;
use std::rc::Rc;

/// The refusal of a message that uses slots its sender does not have.
const SLOT_VIOLATION: &str = "it uses slots of a channel that it was not given";

/// The refusal of a place that writes more values than it may, or uses a ring that it does not have.
const RING_VIOLATION: &str = "it misuses the value ring of a channel";

/// The refusal of a message that puts back more values than its sender got.
const PUT_BACK_VIOLATION: &str = "it puts back values of a channel that it does not have";

impl<T: CanSend> HomeChannel<T> {
    /// Receives a message to the home.
    pub(super) fn receive_at_home(
        self: &Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        if head.is_charged() {
            self.parts.control.charge(local);
        }
        let mut steps = self.new_steps();
        let id = |number| OperationId { place: source, number };
        if matches!(head, ChannelMessage::Offer { .. } | ChannelMessage::Item | ChannelMessage::Chosen { .. })
        {
            self.empty_ring(local, source);
        }
        let answer = match head {
            ChannelMessage::Offer { operation: number } => match reader.take_value::<T>() {
                Err(fault) => Some(ChannelMessage::Faulty { operation: number, text: fault.to_string() }),
                Ok(value) => {
                    let outcome = self.home.borrow_mut().offer(id(number), value, true, &mut steps);
                    offered(number, outcome)
                }
            },
            ChannelMessage::Item => {
                self.receive_item(source, reader.take_value::<T>(), &mut steps)?;
                let shape = self.parts.control.kind.ring_shape();
                shape.and_then(|shape| self.parts.control.inward.note_item(local, shape, source))
            }
            ChannelMessage::Ask { operation: number, waits } => {
                ask(&self.home, id(number), None, waits, &mut steps)
            }
            ChannelMessage::AskSelect { operation: number, waits, choice } => {
                ask(&self.home, id(number), Some(choice), waits, &mut steps)
            }
            ChannelMessage::Chosen { operation: number } => {
                self.receive_chosen(id(number), reader.take_value::<T>(), &mut steps)?
            }
            ChannelMessage::Want { operation: number, waits } => {
                self.want(local, id(number), None, waits, &mut steps)
            }
            ChannelMessage::WantSelect { operation: number, waits, choice } => {
                self.want(local, id(number), Some(choice), waits, &mut steps)
            }
            ChannelMessage::PutBack | ChannelMessage::Taken { .. } | ChannelMessage::NotTaken { .. } => {
                self.receive_back(source, &head, reader, &mut steps)?;
                None
            }
            head => self.receive_word(local, source, &head, &mut steps)?,
        };
        if let Some(answer) = answer {
            // A dead place needs no answer.
            let _ = self.parts.control.send_message(local, source, &answer);
        }
        self.execute_steps(local, steps);
        Ok(())
    }

    /// Receives a message to the home that neither has nor concerns a value.
    fn receive_word(
        self: &Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: &ChannelMessage,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> Result<Option<ChannelMessage>, Refused> {
        Ok(match *head {
            ChannelMessage::Cancel { operation: number } => {
                let cancelled = self.home.borrow_mut().cancel(OperationId { place: source, number }, steps);
                let is_now = matches!(cancelled, Cancelled::Now(_));
                drop_caught(cancelled);
                is_now.then_some(ChannelMessage::Cancelled { operation: number })
            }
            ChannelMessage::ReturnSlots { count: slots } => {
                let returned = self.home.borrow_mut().return_slots(source, slots, steps);
                returned.map_err(|_| Refused::of_service(SLOT_VIOLATION))?;
                None
            }
            ChannelMessage::Close => {
                self.home.borrow_mut().close(steps);
                None
            }
            ChannelMessage::Settled => {
                self.home.borrow_mut().settled(source, steps);
                None
            }
            ChannelMessage::RingUsed => {
                if !self.parts.control.inward.begin(source) {
                    return Err(Refused::of_service(RING_VIOLATION));
                }
                self.watch_rings(local);
                None
            }
            _ => return Err(Refused::NotItsHome),
        })
    }

    /// Takes all values of the ring of `place` as items from it.
    #[inline]
    pub(super) fn empty_ring(self: &Rc<Self>, local: &Local, place: PlaceId) {
        if self.parts.control.inward.are_used.get() {
            self.empty_used_ring(local, place);
        }
    }

    #[inline(never)]
    fn empty_used_ring(self: &Rc<Self>, local: &Local, place: PlaceId) {
        let mut steps = self.new_steps();
        while self.take_from_rings(local, TakeFrom::Place(place), &mut steps) {}
        self.execute_steps(local, steps);
    }

    /// Takes the next value of a ring as an item from its place. Returns `false` if there was none or it was refused.
    #[inline(never)]
    pub(super) fn take_from_rings(
        &self,
        local: &Local,
        from: TakeFrom,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> bool {
        let taken = match self.parts.control.inward.take(from) {
            Ok(None) => return false,
            Ok(Some((source, value))) => {
                self.receive_item(source, value, steps).map_err(|fault| (source, fault))
            }
            Err(source) => Err((source, Refused::of_service(RING_VIOLATION))),
        };
        taken.map_err(|(source, fault)| refuse(local, source, &fault)).is_ok()
    }

    /// Moves values from the rings to the buffer, if that is empty.
    #[inline]
    pub(super) fn fill_from_rings(&self, local: &Local, steps: &mut Vec<ChannelStep<T>>) {
        if self.parts.control.inward.are_used.get() && self.home.borrow().is_empty() {
            while self.take_from_rings(local, TakeFrom::Any { may_spin: false }, steps) {}
        }
    }

    /// Returns the next value of any ring, if a task of this place may have it at once.
    #[inline]
    pub(super) fn pass_from_rings(&self, local: &Local, steps: &mut Vec<ChannelStep<T>>) -> Option<T> {
        if !self.home.borrow().may_pass() {
            return None;
        }
        match self.parts.control.inward.take(TakeFrom::Any { may_spin: local.may_spin() }) {
            Ok(Some((source, Ok(value)))) => match self.home.borrow_mut().pass(source, steps) {
                Ok(()) => Some(value),
                Err(_) => self.refuse_ring(local, source, SLOT_VIOLATION),
            },
            Ok(None) => None,
            // The next attempt goes the long way.
            Ok(Some((source, value))) => match self.receive_item(source, value, steps) {
                Ok(()) => None,
                Err(_) => self.refuse_ring(local, source, SLOT_VIOLATION),
            },
            Err(source) => self.refuse_ring(local, source, RING_VIOLATION),
        }
    }

    #[cold]
    fn refuse_ring(&self, local: &Local, source: PlaceId, violation: &str) -> Option<T> {
        refuse(local, source, &Refused::of_service(violation));
        None
    }

    /// Makes the place poll the rings as long as tasks wait for values.
    pub(super) fn watch_rings(self: &Rc<Self>, local: &Local) {
        if self.parts.control.inward.are_used.get() && !self.parts.control.inward.are_watched.get() {
            ChannelTable::of(local).borrow_mut().watch(Rc::clone(self) as Rc<dyn AnyChannel>);
            local.set_watching(true);
        }
    }

    /// Receives the outcome of a value that was sent to `source`.
    fn receive_back(
        &self,
        source: PlaceId,
        head: &ChannelMessage,
        reader: &mut Reader<'_>,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> Result<(), Refused> {
        let id = |number| OperationId { place: source, number };
        let unneeded = match *head {
            ChannelMessage::Taken { operation: number } => self.home.borrow_mut().taken(id(number), steps),
            ChannelMessage::NotTaken { operation: number } => {
                self.home.borrow_mut().not_taken(id(number), steps).map(|()| None)
            }
            _ => {
                let value = reader.take_value::<T>()?;
                self.home.borrow_mut().put_back(source, value, steps)
            }
        };
        drop_caught(unneeded.map_err(|_| Refused::of_service(PUT_BACK_VIOLATION))?);
        Ok(())
    }

    /// Sends the wanted value if there is one. Returns the answer otherwise, or `None` if the operation waits.
    fn want(
        self: &Rc<Self>,
        local: &Local,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> Option<ChannelMessage> {
        self.parts.control.note_remote_receiver();
        local.note_request();
        self.fill_from_rings(local, steps);
        let wanted = self.home.borrow_mut().want(id, choice, waits, steps);
        match wanted {
            WantOutcome::Value(value) => {
                self.deliver(local, id, value);
                None
            }
            WantOutcome::Waits => {
                self.watch_rings(local);
                None
            }
            WantOutcome::Ended => Some(ChannelMessage::Ended { operation: id.number }),
            WantOutcome::Empty => Some(ChannelMessage::Empty { operation: id.number }),
        }
    }

    /// Receives the value, or its decoding error, of an operation that was granted room. Only a rendezvous answers.
    fn receive_chosen(
        &self,
        id: OperationId,
        value: Result<T, DecodeError>,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> Result<Option<ChannelMessage>, Refused> {
        let waits = matches!(self.parts.control.kind, ChannelKind::Rendezvous);
        let value = match value {
            Ok(value) => value,
            Err(fault) => {
                let cancelled = self.home.borrow_mut().cancel(id, steps);
                drop_caught(cancelled);
                if !waits {
                    self.report_lost(id.place, &fault);
                }
                return Ok(
                    waits.then(|| ChannelMessage::Faulty { operation: id.number, text: fault.to_string() })
                );
            }
        };
        let chosen = self.home.borrow_mut().choose(id, value, steps);
        match chosen.map_err(|_| Refused::of_service(SLOT_VIOLATION))? {
            OfferOutcome::Accepted(_) | OfferOutcome::Waits => Ok(None),
            OfferOutcome::Refused(value) | OfferOutcome::Full(value) => {
                drop_caught(value);
                Ok(waits.then_some(ChannelMessage::Refused { operation: id.number }))
            }
        }
    }

    fn report_lost(&self, source: PlaceId, fault: &DecodeError) {
        let here = self.parts.control.here;
        notice(format_args!("isles: {here}: a value of {source} for a channel is lost: {fault}"));
    }

    /// Receives a value for which `source` had a slot, or its decoding error.
    fn receive_item(
        &self,
        source: PlaceId,
        value: Result<T, DecodeError>,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> Result<(), Refused> {
        let received = match value {
            Ok(value) => self.home.borrow_mut().item(source, value, steps),
            Err(fault) => {
                self.report_lost(source, &fault);
                self.home.borrow_mut().return_slots(source, 1, steps).map(|()| None)
            }
        };
        // A value that can no longer be received is dropped here, where nothing is borrowed.
        drop_caught(received.map_err(|_| Refused::of_service(SLOT_VIOLATION))?);
        Ok(())
    }
}

/// Asks for room. Returns the answer, or `None` if the operation waits.
fn ask<T>(
    home: &RefCell<ChannelHome<T>>,
    id: OperationId,
    choice: Choice,
    waits: bool,
    steps: &mut Vec<ChannelStep<T>>,
) -> Option<ChannelMessage> {
    match home.borrow_mut().ask(id, choice, waits, steps) {
        OfferOutcome::Accepted(_) => Some(ChannelMessage::Granted { operation: id.number }),
        OfferOutcome::Waits => None,
        OfferOutcome::Refused(()) => Some(ChannelMessage::Refused { operation: id.number }),
        OfferOutcome::Full(()) => Some(ChannelMessage::Full { operation: id.number }),
    }
}

/// Returns the answer to an offer, or `None` if it waits.
fn offered<V>(number: u64, outcome: OfferOutcome<V>) -> Option<ChannelMessage> {
    match outcome {
        OfferOutcome::Accepted(slots) => Some(ChannelMessage::Accepted { operation: number, slots }),
        OfferOutcome::Waits => None,
        // The value here is a copy; its sender has kept the original.
        OfferOutcome::Refused(copy) => {
            drop_caught(copy);
            Some(ChannelMessage::Refused { operation: number })
        }
        OfferOutcome::Full(copy) => {
            drop_caught(copy);
            Some(ChannelMessage::Full { operation: number })
        }
    }
}

/// Receives a message about a channel.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let item = ChannelTable::of(local).borrow().next_item(reader);
    if let Some(end) = item {
        return end.receive(local, source, ChannelMessage::Item, reader);
    }
    let (id, head) = reader.take_serde::<(ChannelId, ChannelMessage)>()?;
    let end = ChannelTable::of(local).borrow().get(id);
    match end {
        Some(end) => {
            if let ChannelMessage::Item = head {
                ChannelTable::of(local).borrow_mut().note_item(&end);
            }
            end.receive(local, source, head, reader)
        }
        None => {
            // A channel that is gone here has already returned its slots.
            let answer = match head {
                ChannelMessage::Slots { count: slots } => ChannelMessage::ReturnSlots { count: slots },
                // The home waits for an answer all the same.
                ChannelMessage::Recall | ChannelMessage::Closed => ChannelMessage::ReturnSlots { count: 0 },
                ChannelMessage::Settle => ChannelMessage::Settled,
                ChannelMessage::Ring { .. } => ChannelMessage::RingUsed,
                _ => return Ok(()),
            };
            if id.home == source {
                let returned = (id, answer);
                // A dead home needs none.
                let _ = local.send(source, Class::Data, CHANNEL, |to| to.put_serde(&returned));
            }
            Ok(())
        }
    }
}
