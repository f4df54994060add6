//! What places say about channels, taken in: by the home, and by other places.
//!
//! Bytes are checked here; what they mean is the protocol's. Invariant: a message that is refused has changed nothing.

use super::control_block::Answer;
use super::end::End;
use super::message::{ChannelId, Head};
use crate::capture::CanSend;
use crate::local::Local;
use crate::message::{Handler, Refused};
use crate::wire::{DecodeError, Reader};
use isles_protocol::PlaceId;
use isles_protocol::channel::{ChannelHome, ChannelStep, Offered, OperationId, Wanted};
use isles_transport::{Class, notice};
use std::cell::RefCell;
use std::rc::Rc;

/// The refusal of a message about slots that its sender was not given.
const SLOT_VIOLATION: &str = "it uses slots of a channel that it was not given";

/// The refusal of a message that puts back more values than have gone to its sender.
const PUT_BACK_VIOLATION: &str = "it puts back values of a channel that it does not have";

impl<T: CanSend> End<T> {
    /// A message to the home.
    pub(super) fn receive_at_home(
        self: &Rc<Self>,
        local: &Local,
        source: PlaceId,
        head: Head,
        reader: &mut Reader<'_>,
        home: &RefCell<ChannelHome<T>>,
    ) -> Result<(), Refused> {
        if let Head::Offer(_) | Head::Item | Head::Ask(..) | Head::Want(..) | Head::PutBack = head {
            self.control.charge(local);
        }
        let mut steps = Vec::new();
        let id = |number| OperationId { place: source, number };
        let answer = match head {
            Head::Offer(number) => match reader.take_value::<T>() {
                Err(fault) => Some(Head::Faulty(number, fault.to_string())),
                Ok(value) => {
                    let outcome = home.borrow_mut().offer(id(number), value, true, &mut steps);
                    offered(number, outcome)
                }
            },
            Head::Item => {
                self.receive_item(source, reader.take_value::<T>(), home, &mut steps)?;
                None
            }
            Head::Ask(number, waits) => match home.borrow_mut().ask(id(number), waits, &mut steps) {
                Offered::Accepted(_) => Some(Head::Granted(number)),
                other => offered(number, other),
            },
            Head::Want(number, waits) => {
                let wanted = home.borrow_mut().want(id(number), waits, &mut steps);
                self.answer_want(local, id(number), wanted)
            }
            Head::PutBack => {
                let value = reader.take_value::<T>()?;
                let nobody = home.borrow_mut().put_back(source, value, &mut steps);
                nobody.map(drop).map_err(|_| Refused::of_service(PUT_BACK_VIOLATION))?;
                None
            }
            Head::Cancel(number) => {
                let cancelled = home.borrow_mut().cancel(id(number), &mut steps);
                cancelled.map(|_| Head::Cancelled(number))
            }
            Head::ReturnSlots(slots) => {
                let returned = home.borrow_mut().return_slots(source, slots, &mut steps);
                returned.map_err(|_| Refused::of_service(SLOT_VIOLATION))?;
                None
            }
            Head::Close => {
                home.borrow_mut().close(&mut steps);
                None
            }
            Head::Settled => {
                home.borrow_mut().settled(source, &mut steps);
                None
            }
            Head::Count(number) => Some(Head::Counted(number, home.borrow().len() as u64)),
            _ => return Err(Refused::NotItsHome),
        };
        if let Some(answer) = answer {
            // A dead place needs no answer.
            let _ = self.control.tell(local, source, &answer);
        }
        self.carry_out(local, steps);
        Ok(())
    }

    /// Sends the value that was wanted, if it is there; else the answer, unless the operation waits.
    fn answer_want(self: &Rc<Self>, local: &Local, id: OperationId, wanted: Wanted<T>) -> Option<Head> {
        match wanted {
            Wanted::Value(value) => {
                self.deliver(local, id, value);
                None
            }
            Wanted::Waits => None,
            Wanted::Ended => Some(Head::Ended(id.number)),
            Wanted::Empty => Some(Head::Empty(id.number)),
        }
    }

    /// A value for which `source` had a slot, as far as it can be read.
    fn receive_item(
        &self,
        source: PlaceId,
        value: Result<T, DecodeError>,
        home: &RefCell<ChannelHome<T>>,
        steps: &mut Vec<ChannelStep<T>>,
    ) -> Result<(), Refused> {
        let received = match value {
            Ok(value) => home.borrow_mut().item(source, value, steps),
            Err(fault) => {
                notice(format_args!(
                    "isles: {}: a value of {source} for a channel is lost: {fault}",
                    self.control.here
                ));
                home.borrow_mut().return_slots(source, 1, steps).map(|()| None)
            }
        };
        // What nobody can receive any more is dropped here, where nothing is borrowed.
        received.map(drop).map_err(|_| Refused::of_service(SLOT_VIOLATION))
    }

    /// A message of the home to this place.
    pub(super) fn receive_from_home(
        self: &Rc<Self>,
        local: &Local,
        head: Head,
        reader: &mut Reader<'_>,
    ) -> Result<(), Refused> {
        let (number, answer) = match head {
            Head::Value(number) => match reader.take_value::<T>() {
                Ok(value) => (number, Answer::Value(value)),
                Err(fault) => (number, Answer::Faulty(fault.to_string())),
            },
            head => match self.control.receive_from_home(local, head)? {
                Some((number, answer)) => (number, answer.join(None)),
                None => return Ok(()),
            },
        };
        self.answer(local, number, answer);
        Ok(())
    }
}

/// The answer to an offer, or to the question for a slot; none if it waits.
fn offered<V>(number: u64, outcome: Offered<V>) -> Option<Head> {
    match outcome {
        Offered::Accepted(slots) => Some(Head::Accepted(number, slots)),
        Offered::Waits => None,
        Offered::Refused(_) => Some(Head::Refused(number)),
        Offered::Full(_) => Some(Head::Full(number)),
    }
}

/// Receives a message about a channel.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let (id, head) = reader.take_serde::<(ChannelId, Head)>()?;
    let end = local.services.channels.borrow().get(id);
    match end {
        Some(end) => end.receive(local, source, head, reader),
        None => {
            // What is gone here has returned the slots that it had.
            let answer = match head {
                Head::Slots(slots) => Head::ReturnSlots(slots),
                // The home waits for an answer all the same.
                Head::Recall | Head::Closed => Head::ReturnSlots(0),
                Head::Settle => Head::Settled,
                _ => return Ok(()),
            };
            if id.home == source {
                let returned = (id, answer);
                // A dead home needs none.
                let _ = local.send(source, Class::Data, Handler::Channel.id(), |to| to.put_serde(&returned));
            }
            Ok(())
        }
    }
}
