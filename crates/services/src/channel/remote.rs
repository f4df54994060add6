//! A channel at a place that is not its home: requests to the home, and messages from it.
//!
//! Invariant: a value stays with its task until it has been sent.

use super::control_block::{AnyChannel, ChannelKind, ControlBlock, RingHeld, value_bytes};
use super::local_channel::{ChannelEnd, EndParts, ReceiveOptions, SendOptions};
use super::message::{ChannelId, ChannelMessage};
use super::ring::RingSend;
use super::waits::{Begun, Caller, ChannelAnswer};
use crate::channel::control_block::ChannelTable;
use isles_protocol::PlaceId;
use isles_runtime::capture::CanSend;
use isles_runtime::service::{Refused, drop_caught};
use isles_runtime::wire::{DecodeError, Reader};
use isles_runtime::{Error, Local};
use std::rc::Rc;

/// A channel at a place that is not its home.
pub(crate) struct RemoteChannel<T> {
    pub(super) parts: EndParts<T>,
}

impl<T: CanSend> RemoteChannel<T> {
    /// Returns the channel `id`, created if it is not here yet; `None` if its values are no `T`, or its home is no
    /// place of the run.
    pub(super) fn of(local: &Local, id: ChannelId, capacity: u32) -> Option<Rc<RemoteChannel<T>>> {
        let known = ChannelTable::of(local).borrow().get(id);
        if let Some(known) = known {
            return known.into_any().downcast().ok();
        }
        if id.home.0 >= local.places() {
            return None;
        }
        let control = ControlBlock::new(local, id, ChannelKind::of::<T>(capacity), None);
        let end = Rc::new(RemoteChannel { parts: EndParts::new(control) });
        ChannelTable::of(local).borrow_mut().insert(id, Rc::clone(&end) as Rc<dyn AnyChannel>);
        Some(end)
    }

    /// Sends a value for which a slot was taken; `None` if the ring cannot take it, and the slot is put back.
    #[inline]
    fn send_by_slot(&self, local: &Local, value: &mut Option<T>) -> Option<ChannelAnswer> {
        let Some(item) = value.as_ref() else { return Some(ChannelAnswer::Refused) };
        let ringed = match self.parts.control.free_ring() {
            Ok(ring) => ring.map(|ring| ring.send(local, self.parts.control.id.home, item)),
            Err(RingHeld) => Some(Ok(RingSend::NoRoom)),
        };
        let sent = match ringed {
            Some(Ok(RingSend::Sent)) => Ok(()),
            Some(Ok(RingSend::Dead)) => Err(ChannelAnswer::Dead),
            Some(Ok(RingSend::NoRoom)) => {
                self.parts.control.keep_slot(local);
                return None;
            }
            Some(Err(fault)) => Err(ChannelAnswer::Faulty(Error::unencodable(fault))),
            None => self.parts.control.send_item(local, value_bytes::<T>(), &|writer| writer.put_value(item)),
        };
        Some(match sent {
            Ok(()) => {
                *value = None;
                ChannelAnswer::Accepted
            }
            Err(answer) => {
                // Nothing was sent: the slot goes back to the home.
                self.parts.control.return_slots(local, 1);
                answer
            }
        })
    }

    /// Receives a message of the home.
    fn receive_from_home(
        self: &Rc<Self>,
        local: &Local,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        match head {
            ChannelMessage::Value { operation: number } => match reader.take_value::<T>() {
                Ok(value) => self.arrive(local, number, value),
                Err(fault) => self.receive_faulty(local, number, &fault),
            },
            head => {
                if let Some((number, answer)) = self.parts.control.receive_from_home(local, head)? {
                    self.answer(local, number, answer, None);
                }
            }
        }
        Ok(())
    }

    /// Handles a value that cannot be decoded: its receiver gets the error, if it still waits; for its sender it counts
    /// as taken.
    fn receive_faulty(self: &Rc<Self>, local: &Local, number: u64, fault: &DecodeError) {
        self.send_taken(local, number);
        self.answer(local, number, ChannelAnswer::Faulty(Error::message(fault)), None);
    }
}

impl<T: CanSend> ChannelEnd for RemoteChannel<T> {
    type Value = T;

    #[inline]
    fn parts(&self) -> &EndParts<T> {
        &self.parts
    }

    fn send(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: Caller,
    ) -> Begun {
        let control = &self.parts.control;
        match control.take_slot(local) {
            Ok(true) => {
                if let Some(answer) = self.send_by_slot(local, value) {
                    return Ok(answer);
                }
            }
            Ok(false) => {}
            Err(answer) => return Ok(answer),
        }
        let number = control.new_number();
        match value {
            Some(value) if options.blocking && !options.reserves => {
                control.wait(number, "room in", caller);
                let head = ChannelMessage::Offer { operation: number };
                let sent = self.parts.send_message(local, control.id.home, &head, value);
                control.waits_if_sent(number, sent)
            }
            _ => {
                let head = control.kind.ask_message(number, options.blocking, options.choice);
                control.ask(local, number, "room in", caller, &head)
            }
        }
    }

    fn choose(
        self: &Rc<Self>,
        local: &Local,
        number: u64,
        value: &mut Option<T>,
        caller: Caller,
    ) -> Option<ChannelAnswer> {
        let control = &self.parts.control;
        let waits = matches!(control.kind, ChannelKind::Rendezvous);
        let chosen = value.as_ref()?;
        if waits {
            control.wait(number, "a receiver of", caller);
        }
        let head = ChannelMessage::Chosen { operation: number };
        match self.parts.send_message(local, control.id.home, &head, chosen) {
            Ok(()) if waits => None,
            Ok(()) => {
                *value = None;
                control.hold_ring();
                Some(ChannelAnswer::Accepted)
            }
            Err(answer) => {
                // Nothing was sent: the room is free again.
                control.waits.forget(number);
                self.withdraw(local, number);
                Some(answer)
            }
        }
    }

    /// As [`LocalChannel::receive_value`](super::local_channel::LocalChannel::receive_value); a value never comes at
    /// once.
    fn receive_value(
        self: &Rc<Self>,
        local: &Local,
        _: &mut Option<T>,
        options: &ReceiveOptions,
        caller: Caller,
    ) -> Begun {
        let control = &self.parts.control;
        let choice = control.choice_or_within(local, &options.choice);
        let number = control.new_number();
        let head = control.kind.want_message(number, options.blocking, choice);
        control.arrivals.borrow_mut().begin(number);
        let asked = control.ask(local, number, "a value of", caller, &head);
        if asked.is_ok() {
            // The request was not sent, so no answer will come and no step is needed.
            let _ = control.arrivals.borrow_mut().ended(number);
        }
        asked
    }

    fn close(self: &Rc<Self>) {
        self.parts.control.attachment.try_with(|local| self.parts.control.close_remotely(local));
    }

    fn receive_message(
        self: &Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: ChannelMessage,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        if source != self.parts.control.id.home {
            return Err(Refused::NotItsHome);
        }
        self.receive_from_home(local, head, reader)
    }

    fn send_taken(self: &Rc<Self>, local: &Local, number: u64) {
        let control = &self.parts.control;
        if let ChannelKind::Rendezvous = control.kind {
            // A dead home has no waiting sender.
            let head = ChannelMessage::Taken { operation: number };
            let _ = control.send_message(local, control.id.home, &head);
        }
    }

    fn put_back(self: &Rc<Self>, local: &Local, number: u64, value: T) {
        let control = &self.parts.control;
        // A dead home has no buffer and no waiting sender.
        let _ = match control.kind {
            ChannelKind::Buffered { .. } => {
                self.parts.send_message(local, control.id.home, &ChannelMessage::PutBack, &value)
            }
            ChannelKind::Rendezvous => {
                let head = ChannelMessage::NotTaken { operation: number };
                control.send_message(local, control.id.home, &head)
            }
        };
        drop_caught(value);
    }

    fn withdraw(self: &Rc<Self>, local: &Local, number: u64) {
        let control = &self.parts.control;
        // A dead home answers by its death.
        let _ = control.send_message(local, control.id.home, &ChannelMessage::Cancel { operation: number });
    }

    fn cancel_send(self: &Rc<Self>, local: &Local, number: u64) {
        let control = &self.parts.control;
        let head = ChannelMessage::Cancel { operation: number };
        if control.send_message(local, control.id.home, &head).is_err() {
            control.waits.forget(number); // a dead home does not answer
        }
        // The value may have been accepted, and then comes before later ones.
        control.hold_ring();
    }

    fn explain_holders(&self) -> Vec<String> {
        Vec::new()
    }

    fn serve_from_rings(self: &Rc<Self>, _: &Local) -> (usize, bool) {
        (0, false)
    }

    fn place_died(self: &Rc<Self>, local: &Local, place: PlaceId) {
        let control = &self.parts.control;
        if place != control.id.home {
            return;
        }
        let spare = control.arrivals.borrow_mut().home_died();
        let mut arrived = self.parts.arrived.borrow_mut();
        let first = arrived.len().saturating_sub(spare);
        let left = arrived.split_off(first);
        drop(arrived);
        let waiting = control.waits.numbers();
        waiting.into_iter().for_each(|number| self.parts.answer_one(number, ChannelAnswer::Dead, None));
        control.forget_if_unused(local);
        drop_caught(left);
    }
}
