//! The script that uses up the memory for blocks and continues when the receiver drops one.
//!
//! Place 1 keeps every block. Place 0 sends until it is refused although all its messages have been taken: then only
//! memory is short, and nothing happens before place 1 drops a block. The run stalls if that does not wake the sender.
//! If memory is ample, the promise is kept trivially.

use super::{Script, Step};
use crate::{Arrival, Block, Body, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};
use std::collections::VecDeque;

/// Number of times that memory must be returned.
const ROUNDS: u32 = 20;

/// Length of a block, if the transport takes such blocks; short, so that the script costs little.
const BLOCK_BYTES: usize = 64 << 10;

/// Number of blocks after which memory counts as unlimited; fixtures with less memory test the promise.
const BLOCKS_MAX: u64 = 100;

/// Turns that place 1 waits before it drops a block, so that place 0 can fall asleep.
const TURNS: u32 = 2_000;

/// Message of place 1: the number of blocks it has taken in.
const COUNT: HandlerId = HandlerId(1);

/// Message of place 0: the request to drop a block.
const DROP: HandlerId = HandlerId(2);

/// Message of place 0: the total number of blocks.
const END: HandlerId = HandlerId(3);

/// Returns the script of `here`.
pub(in crate::conformance) fn held_blocks(here: PlaceId) -> Box<dyn Script> {
    let pending = VecDeque::new();
    match here {
        PlaceId(0) => Box::new(Sender { sent: 0, taken: 0, asked: None, rounds: ROUNDS, pending }),
        _ => Box::new(Receiver { taken: 0, kept: VecDeque::new(), turns: 0, end: None, pending }),
    }
}

/// Control messages that wait for room.
type PendingMessages = VecDeque<(HandlerId, u64)>;

struct Sender {
    sent: u64,
    /// Number of blocks taken, as reported by place 1.
    taken: u64,
    /// Number of blocks sent when place 0 last asked for a drop.
    asked: Option<u64>,
    rounds: u32,
    pending: PendingMessages,
}

struct Receiver {
    taken: u64,
    kept: VecDeque<Block>,
    /// Turns until a block is dropped; 0 if there is no request.
    turns: u32,
    /// Total number of blocks, once it is known.
    end: Option<u64>,
    pending: PendingMessages,
}

/// Sends control messages as far as there is room. Returns `true` if none is left.
fn post(endpoint: &dyn Endpoint, pending: &mut PendingMessages) -> bool {
    while let Some(&(handler, number)) = pending.front() {
        let to = PlaceId(1 - endpoint.here().0);
        let answer = endpoint.send(to, Class::Control, handler, 8, &mut |bytes| {
            bytes.copy_from_slice(&number.to_le_bytes());
            Some(8)
        });
        match answer {
            Ok(()) => pending.pop_front(),
            Err(SendError::Full) => return false,
            Err(error) => panic!("control: {error}"),
        };
    }
    true
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))
}

impl Sender {
    /// Sends the next block, with its number in front.
    fn send(&self, endpoint: &dyn Endpoint) -> bool {
        let len = BLOCK_BYTES.min(endpoint.limits().block_bytes_max);
        let answer = endpoint.send_block(PlaceId(1), Class::Data, HandlerId(0), len, &mut |bytes| {
            bytes[..8].copy_from_slice(&self.sent.to_le_bytes());
        });
        assert!(matches!(answer, Ok(()) | Err(SendError::Full)), "block: {answer:?}");
        answer.is_ok()
    }
}

impl Script for Sender {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let heard = endpoint.progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            self.taken = number(message.body.bytes());
        });
        if !post(endpoint, &mut self.pending) {
            return Step::Idle;
        }
        if self.rounds == 0 {
            let waiting = if heard > 0 { Step::Busy } else { Step::Idle };
            return if self.taken == self.sent { Step::Done } else { waiting };
        }
        if self.send(endpoint) {
            self.rounds -= u32::from(self.asked == Some(self.sent));
            self.sent += 1;
            if self.rounds == 0 || self.sent == BLOCKS_MAX {
                self.rounds = 0;
                self.pending.push_back((END, self.sent));
            }
            return Step::Busy;
        }
        if self.taken < self.sent || self.asked == Some(self.sent) {
            return if heard > 0 { Step::Busy } else { Step::Idle };
        }
        self.asked = Some(self.sent);
        self.pending.push_back((DROP, 0));
        Step::Busy
    }
}

impl Script for Receiver {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let arrived = endpoint.progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            match (message.handler, message.body) {
                (HandlerId(0), Body::Block(block)) => {
                    assert_eq!(number(block.bytes()), self.taken, "data: order broken");
                    self.taken += 1;
                    self.kept.push_back(block);
                }
                (DROP, _) => self.turns = TURNS,
                (END, body) => self.end = Some(number(body.bytes())),
                (handler, _) => panic!("nobody sends {handler:?}"),
            }
            if message.class == Class::Data {
                self.pending.push_back((COUNT, self.taken));
            }
        });
        if self.turns > 0 {
            self.turns -= 1;
            if self.turns == 0 {
                // Outside of `progress`, and without a message after it.
                self.kept.pop_front();
            }
            return Step::Busy;
        }
        match (post(endpoint, &mut self.pending), arrived) {
            (true, _) if self.end == Some(self.taken) => Step::Done,
            (_, 0) => Step::Idle,
            _ => Step::Busy,
        }
    }
}
