//! The script in which a send is refused, another one succeeds, and then the sender waits for room for the first.
//!
//! Place 0 fills the data class to one place, then sends a block of the control class, for which there is room. In
//! between it allows the place to take everything, so room may come at any moment before or during the following wait,
//! and no message announces it. A sender that forgets the refusal because a later send succeeded sleeps forever.

use super::{Script, Step};
use crate::{Arrival, Block, Body, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};

/// Number of refusals.
const ROUNDS: u64 = 60;

/// Length of a block, if the transport takes such blocks.
const BLOCK_BYTES: usize = 64 << 10;

/// Number of blocks after which memory counts as unlimited; fixtures with less memory test the promise.
const BLOCKS_MAX: u64 = 200;

/// Message of place 0: the total number of data blocks that may be taken.
const GO: HandlerId = HandlerId(1);

/// Message of place 0: the total numbers of blocks of data and of control.
const END: HandlerId = HandlerId(2);

/// Returns the script of `here`.
pub(in crate::conformance) fn refused_sends(here: PlaceId) -> Box<dyn Script> {
    match here {
        PlaceId(0) => Box::new(Sender::default()),
        _ => Box::new(Receiver::default()),
    }
}

#[derive(Default)]
struct Sender {
    /// Number of completed rounds.
    round: u64,
    stage: Stage,
    /// Blocks of data sent in this round.
    filled: u64,
    /// Blocks sent to the places 1 and 2, of data and of control.
    sent: [[u64; 2]; 2],
}

/// Stage of the sender.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Sends data until it is refused. Every turn begins here, because a transport need not remember earlier turns.
    #[default]
    Fill,
    /// Was refused: allows the receiver to take everything.
    Allow,
    /// Sends a block of control.
    Succeed,
    /// Tells places 1 and 2 the total numbers.
    End(u32),
    Done,
}

impl Sender {
    /// Returns the place this round fills up, and the one that gets the control block: another place, or the same.
    fn targets(&self) -> (PlaceId, PlaceId) {
        let (filled, other) = if self.round.is_multiple_of(2) { (1, 2) } else { (2, 1) };
        (PlaceId(filled), PlaceId(if self.round.is_multiple_of(3) { filled } else { other }))
    }

    fn block(&mut self, endpoint: &dyn Endpoint, to: PlaceId, class: Class) -> bool {
        let len = BLOCK_BYTES.min(endpoint.limits().block_bytes_max);
        let answer = endpoint.send_block(to, class, HandlerId(0), len, &mut |_| ());
        assert!(matches!(answer, Ok(()) | Err(SendError::Full)), "block: {answer:?}");
        self.sent[to.index() - 1][usize::from(class == Class::Control)] += u64::from(answer.is_ok());
        answer.is_ok()
    }

    fn send_numbers(endpoint: &dyn Endpoint, to: PlaceId, handler: HandlerId, numbers: [u64; 2]) -> bool {
        let answer = endpoint.send(to, Class::Control, handler, 16, &mut |bytes| {
            bytes[..8].copy_from_slice(&numbers[0].to_le_bytes());
            bytes[8..].copy_from_slice(&numbers[1].to_le_bytes());
            Some(16)
        });
        assert!(matches!(answer, Ok(()) | Err(SendError::Full)), "control: {answer:?}");
        answer.is_ok()
    }

    /// Executes one stage. Returns `false` if the next one waits for room.
    fn advance(&mut self, endpoint: &dyn Endpoint) -> bool {
        let (filled, other) = self.targets();
        match self.stage {
            Stage::Fill if self.round == ROUNDS || self.filled == BLOCKS_MAX => self.stage = Stage::End(1),
            Stage::Fill => {
                if self.block(endpoint, filled, Class::Data) {
                    self.filled += 1;
                } else {
                    self.stage = Stage::Allow;
                }
            }
            Stage::Allow => {
                let is_sent = Self::send_numbers(endpoint, filled, GO, self.sent[filled.index() - 1]);
                self.stage = if is_sent { Stage::Succeed } else { Stage::Fill };
                return is_sent;
            }
            Stage::Succeed => {
                if self.block(endpoint, other, Class::Control) {
                    (self.round, self.filled) = (self.round + 1, 0);
                }
                self.stage = Stage::Fill;
                // It waits for room for the refused data.
                return false;
            }
            Stage::End(place) => {
                if !Self::send_numbers(endpoint, PlaceId(place), END, self.sent[place as usize - 1]) {
                    return false;
                }
                self.stage = if place == 1 { Stage::End(2) } else { Stage::Done };
            }
            Stage::Done => return false,
        }
        true
    }
}

impl Script for Sender {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        endpoint.progress(Inbound::All, &mut |_| panic!("nobody sends to place 0, and nobody dies"));
        while self.advance(endpoint) {}
        if self.stage == Stage::Done { Step::Done } else { Step::Idle }
    }
}

#[derive(Default)]
struct Receiver {
    /// Number of blocks taken, of data and of control.
    taken: [u64; 2],
    /// Total number of data blocks that may be taken.
    allowed: u64,
    end: Option<[u64; 2]>,
}

impl Script for Receiver {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let inbound = if self.taken[0] < self.allowed { Inbound::All } else { Inbound::Control };
        let mut blocks: Vec<Block> = Vec::new();
        let arrived = endpoint.progress(inbound, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            match (message.handler, message.body) {
                (HandlerId(0), Body::Block(block)) => {
                    self.taken[usize::from(message.class == Class::Control)] += 1;
                    blocks.push(block);
                }
                (handler @ (GO | END), body) => {
                    let number =
                        |at| u64::from_le_bytes(body.bytes()[at..at + 8].try_into().expect("8 bytes"));
                    self.allowed = number(0);
                    self.end = (handler == END).then(|| [number(0), number(8)]);
                }
                (handler, _) => panic!("nobody sends {handler:?}"),
            }
        });
        drop(blocks);
        match (self.end == Some(self.taken), arrived) {
            (true, _) => Step::Done,
            (false, 0) => Step::Idle,
            (false, _) => Step::Busy,
        }
    }
}
