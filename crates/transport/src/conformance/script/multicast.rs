//! The script about messages to several places at once, between messages to one.
//!
//! Every message has a number, and each receiver sees those of one place and class in order. Invariant: it is done when
//! all its messages are sent and all messages of the others have arrived.

use super::{Script, Step};
use crate::{Arrival, Class, Endpoint, HandlerId, Inbound, Message, PlaceId, SendError};
use std::collections::BTreeMap;

/// Number of messages of each place in each class; every second one goes to all at once.
const MESSAGES: u32 = 60;

/// Sends to each other place and to all, in turn.
#[derive(Default)]
pub(in crate::conformance) struct MulticastExchange {
    is_refusal_checked: bool,
    /// Number of the next message, and of the places that already have it, by class.
    next: [(u32, u32); 2],
    /// The expected number, by source and class.
    expected: BTreeMap<(PlaceId, u8), u32>,
}

/// Returns the length of message `number`, if it goes to all at once; `None` if that is not supported for its class.
fn shared_len(endpoint: &dyn Endpoint, class: Class, number: u32) -> Option<usize> {
    let bytes = endpoint.multicast()?.bytes(class);
    let lengths = [bytes.start, bytes.start + 1, bytes.end.saturating_sub(1), (bytes.start + bytes.end) / 2];
    let is_shared = number % 2 == 1 && !bytes.is_empty();
    is_shared.then(|| lengths[(number / 2) as usize % lengths.len()].clamp(bytes.start, bytes.end - 1))
}

/// Returns the bytes of message `number`.
fn content(len: usize, number: u32) -> impl Iterator<Item = u8> {
    (0..len as u32).map(move |index| (index.wrapping_mul(7) ^ number) as u8)
}

impl MulticastExchange {
    /// Panics unless unsupported lengths are refused.
    fn check_refusals(endpoint: &dyn Endpoint, others: &[PlaceId]) {
        let multicast = endpoint.multicast().unwrap_or_else(|| panic!("{} offers none", endpoint.here()));
        for class in [Class::Control, Class::Data] {
            let bytes = multicast.bytes(class);
            for len in bytes.start.checked_sub(1).into_iter().chain([bytes.end]) {
                let answer = multicast.send_to_all(others, class, HandlerId(0), &vec![0; len]);
                assert!(
                    matches!(answer, Err(SendError::TooLong { .. })),
                    "{class:?}, {len} bytes: {answer:?}"
                );
            }
        }
    }

    /// Sends the next message of `class`. Returns `true` if it was sent to at least one place.
    fn send(&mut self, endpoint: &dyn Endpoint, others: &[PlaceId], class: Class) -> bool {
        let (number, sent) = &mut self.next[class as usize];
        let handler = HandlerId(*number as u16);
        let answer = match (shared_len(endpoint, class, *number), endpoint.multicast()) {
            (Some(len), Some(multicast)) => {
                *sent = others.len() as u32 - 1;
                let message: Vec<u8> = content(len, *number).collect();
                multicast.send_to_all(others, class, handler, &message)
            }
            _ => endpoint.send(others[*sent as usize], class, handler, 8, &mut |room| {
                room.iter_mut().zip(content(8, *number)).for_each(|(byte, value)| *byte = value);
                Some(8)
            }),
        };
        match answer {
            Ok(()) => *sent += 1,
            Err(SendError::Full) => return false,
            Err(error) => panic!("{class:?}, message {number}: {error}"),
        }
        if *sent == others.len() as u32 {
            (*number, *sent) = (*number + 1, 0);
        }
        true
    }

    fn check(&mut self, endpoint: &dyn Endpoint, message: &Message<'_>) {
        let (source, class) = (message.source, message.class);
        let expected = self.expected.entry((source, class as u8)).or_default();
        assert_eq!(message.handler, HandlerId(*expected as u16), "order broken: {source}, {class:?}");
        // The supported lengths are the same at all places.
        let len = shared_len(endpoint, class, *expected).unwrap_or(8);
        let is_as_sent = message.body.bytes().iter().copied().eq(content(len, *expected));
        assert!(is_as_sent, "bytes changed: {source}, {class:?}, message {expected}");
        *expected += 1;
    }
}

impl Script for MulticastExchange {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let here = endpoint.here();
        let others: Vec<PlaceId> =
            (0..endpoint.places()).map(PlaceId).filter(|place| *place != here).collect();
        if !std::mem::replace(&mut self.is_refusal_checked, true) {
            MulticastExchange::check_refusals(endpoint, &others);
        }
        let mut sent = false;
        for class in [Class::Data, Class::Control] {
            while self.next[class as usize].0 < MESSAGES && self.send(endpoint, &others, class) {
                sent = true;
            }
        }
        let arrived = endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => self.check(endpoint, &message),
            Arrival::Died { place, .. } => panic!("{place} was told dead and is not"),
        });
        let all_came = self.expected.len() == 2 * others.len()
            && self.expected.values().all(|expected| *expected == MESSAGES);
        if all_came && self.next == [(MESSAGES, 0); 2] {
            return Step::Done;
        }
        if sent || arrived > 0 { Step::Busy } else { Step::Idle }
    }
}
