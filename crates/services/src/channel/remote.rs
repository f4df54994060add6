//! A channel at a place that is not its home: what is sent to the home and asked of it.

use super::control_block::{RingHeld, value_bytes};
use super::local_channel::{LocalChannel, SendOptions};
use super::message::ChannelMessage;
use super::ring::RingSend;
use super::waits::ChannelAnswer;
use isles_protocol::channel::Choice;
use isles_runtime::capture::CanSend;
use isles_runtime::{Error, Local};
use std::panic::Location;
use std::rc::Rc;

impl<T: CanSend> LocalChannel<T> {
    pub(super) fn send_there(
        self: &Rc<Self>,
        local: &Local,
        value: &mut Option<T>,
        options: &SendOptions,
        caller: &'static Location<'static>,
    ) -> Result<ChannelAnswer, u64> {
        match self.control.take_slot(local) {
            Ok(true) => {
                if let Some(answer) = self.send_by_slot(local, value) {
                    return Ok(answer);
                }
            }
            Ok(false) => {}
            Err(answer) => return Ok(answer),
        }
        let number = self.control.new_number();
        match (&*value, options.reserves || !options.blocking) {
            (Some(value), false) => {
                self.control.wait(number, "room in", caller);
                let sent = self.send_message(
                    local,
                    self.control.id.home,
                    &ChannelMessage::Offer { operation: number },
                    value,
                );
                self.control.waits_if_sent(number, sent)
            }
            _ => {
                let head = match options.choice.filter(|_| self.control.is_rendezvous()) {
                    Some(choice) => {
                        ChannelMessage::AskSelect { operation: number, waits: options.blocking, choice }
                    }
                    None => ChannelMessage::Ask { operation: number, waits: options.blocking },
                };
                self.control.ask(local, (number, "room in", caller), &head)
            }
        }
    }

    /// Sends a value for which there was a slot; none if its ring does not take it, and the slot is there still.
    #[inline]
    pub(super) fn send_by_slot(&self, local: &Local, value: &mut Option<T>) -> Option<ChannelAnswer> {
        let Some(item) = value.as_ref() else { return Some(ChannelAnswer::Refused) };
        let ringed = match self.control.free_ring() {
            Ok(ring) => ring.map(|ring| ring.send(local, self.control.id.home, item)),
            Err(RingHeld) => Some(Ok(RingSend::NoRoom)),
        };
        let sent = match ringed {
            Some(Ok(RingSend::Sent)) => Ok(()),
            Some(Ok(RingSend::Dead)) => Err(ChannelAnswer::Dead),
            Some(Ok(RingSend::NoRoom)) => {
                self.control.keep_slot(local);
                return None;
            }
            Some(Err(fault)) => Err(ChannelAnswer::Faulty(Error::unencodable(fault))),
            None => self.control.send_item(local, value_bytes::<T>(), &|writer| writer.put_value(item)),
        };
        Some(match sent {
            Ok(()) => {
                *value = None;
                ChannelAnswer::Accepted
            }
            Err(answer) => {
                // Nothing was sent: the slot is still there.
                self.control.return_slots(local, 1);
                answer
            }
        })
    }

    pub(super) fn receive_there(
        &self,
        local: &Local,
        (waits, choice): (bool, Choice),
        caller: &'static Location<'static>,
    ) -> Result<ChannelAnswer, u64> {
        let number = self.control.new_number();
        let head = match choice.filter(|_| self.control.is_rendezvous()) {
            Some(choice) => ChannelMessage::WantSelect { operation: number, waits, choice },
            None => ChannelMessage::Want { operation: number, waits },
        };
        self.control.arrivals.borrow_mut().begin(number);
        let asked = self.control.ask(local, (number, "a value of", caller), &head);
        if asked.is_ok() {
            // Nothing will come. Nobody else waited for the place that this one had.
            let _ = self.control.arrivals.borrow_mut().ended(number);
        }
        asked
    }

    /// As [`LocalChannel::choose`], where the home is elsewhere.
    pub(super) fn choose_there(
        &self,
        local: &Local,
        number: u64,
        value: &mut Option<T>,
        caller: &'static Location<'static>,
    ) -> Option<ChannelAnswer> {
        let waits = self.control.is_rendezvous();
        let chosen = value.as_ref()?;
        if waits {
            self.control.wait(number, "a receiver of", caller);
        }
        match self.send_message(
            local,
            self.control.id.home,
            &ChannelMessage::Chosen { operation: number },
            chosen,
        ) {
            Ok(()) if waits => None,
            Ok(()) => {
                *value = None;
                self.control.hold_ring();
                Some(ChannelAnswer::Accepted)
            }
            Err(answer) => {
                // Nothing was sent: the room is free again.
                self.control.waits.forget(number);
                let _ = self.control.send_message(
                    local,
                    self.control.id.home,
                    &ChannelMessage::Cancel { operation: number },
                );
                Some(answer)
            }
        }
    }
}
