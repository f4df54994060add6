//! The script that fills the data queue, announces this on the control queue, and continues when there is room.
//!
//! Place 1 takes control messages only, until it learns the number of data messages that place 0 has sent; then it
//! takes data until it has that number. The run stalls if a control message waits behind data, or a sender is not woken
//! when there is room again.

use super::traffic::small_max;
use super::{Script, Step};
use crate::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};

const RECEIVER: PlaceId = PlaceId(1);

/// Number of messages that exceeds every queue.
const QUEUE_MESSAGES_MAX: u64 = 1 << 20;

/// Length of the data messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::conformance) enum Size {
    Least,
    Most,
}

/// Returns the script of `here`: place 0 fills the queue `rounds` times, place 1 empties it.
pub(in crate::conformance) fn back_pressure(here: PlaceId, rounds: u32, size: Size) -> Box<dyn Script> {
    match here {
        RECEIVER => Box::new(Receiver { received: 0, announced: 0, rounds }),
        _ => Box::new(Sender { sent: 0, filled_from: 0, announcing: false, rounds, size }),
    }
}

struct Sender {
    sent: u64,
    filled_from: u64,
    announcing: bool,
    rounds: u32,
    size: Size,
}

struct Receiver {
    received: u64,
    announced: u64,
    rounds: u32,
}

impl Sender {
    fn send(&self, endpoint: &dyn Endpoint, class: Class) -> bool {
        let room = match (class, self.size) {
            (Class::Data, Size::Most) => small_max(class, &endpoint.limits()),
            _ => 8,
        };
        let answer = endpoint.send(RECEIVER, class, HandlerId(0), room, &mut |bytes| {
            bytes[..8].copy_from_slice(&self.sent.to_le_bytes());
            Some(room)
        });
        assert!(matches!(answer, Ok(()) | Err(SendError::Full)), "{class:?}: {answer:?}");
        answer.is_ok()
    }
}

impl Script for Sender {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        endpoint.progress(Inbound::All, &mut |_| panic!("nobody sends to the sender"));
        if self.announcing {
            if !self.send(endpoint, Class::Control) {
                return Step::Idle;
            }
            (self.announcing, self.filled_from) = (false, self.sent);
            self.rounds -= 1;
        }
        if self.rounds == 0 {
            return Step::Done;
        }
        if self.send(endpoint, Class::Data) {
            self.sent += 1;
            assert!(self.sent - self.filled_from < QUEUE_MESSAGES_MAX, "the data queue never fills");
            return Step::Busy;
        }
        if self.sent == self.filled_from {
            return Step::Idle;
        }
        self.announcing = true;
        Step::Busy
    }
}

impl Script for Receiver {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let inbound = if self.received < self.announced { Inbound::All } else { Inbound::Control };
        let arrived = endpoint.progress(inbound, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            let bytes = message.body.bytes();
            let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
            if message.class == Class::Control {
                self.announced = number;
                self.rounds -= 1;
                return;
            }
            assert_eq!(inbound, Inbound::All, "a data message came through control only");
            assert_eq!(number, self.received, "data: order broken");
            self.received += 1;
        });
        match (arrived, self.rounds == 0 && self.received == self.announced) {
            (_, true) => Step::Done,
            (0, false) => Step::Idle,
            (_, false) => Step::Busy,
        }
    }
}
