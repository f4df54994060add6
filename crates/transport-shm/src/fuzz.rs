//! Entry point for fuzzing: a place whose peer writes arbitrary data into the shared memory.
//!
//! It exists here so that a fuzz target is one line and sees no more of this crate than any program; it is built for
//! tests and under the fuzzer only. The input is a list of instructions for the peer: words of its choice into its
//! rings, credit lines, bells and blocks, true messages between them, and what the place itself sends. The place must
//! return from every call, deliver a bounded batch at each `progress`, and learn once, within a bounded number of
//! turns, that a peer broke the format or died. The place that a broken peer accuses is not checked: it may be any.
//! Races that one thread cannot show, such as a peer that writes while the place reads, are not tried here.

use crate::arena::block::BlockDescriptor;
use crate::endpoint::ShmEndpoint;
use crate::layout::{Geometry, PlaceBlock};
use crate::ring::{Credit, GRAIN, RecordHeader, RecordKind};
use crate::segment::Segment;
use isles_transport::{Arrival, Body, Class, Endpoint, EndpointExt, HandlerId, Inbound, PlaceId, SendError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HERE: PlaceId = PlaceId(0);
const PEER: PlaceId = PlaceId(1);

/// Bytes of each ring: the smallest.
const RING_BYTES: u64 = 4096;

/// Maximum number of turns of `progress` until the end of the peer is reported.
const TURNS_MAX: usize = 64;

/// Maximum number of arrivals that one `progress` may deliver: a batch of each ring, and the ends.
const ARRIVALS_MAX: usize = 3 * 64;

/// The two places.
struct Pair {
    segment: Segment,
    here: ShmEndpoint,
    peer: ShmEndpoint,
    /// Number of times the end of the peer was reported.
    ends: usize,
}

/// Reads an input byte by byte; zero after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Reads a class, from the lowest bit of a byte.
    fn class(&mut self) -> Class {
        if self.byte() & 1 == 0 { Class::Control } else { Class::Data }
    }

    /// Reads eight bytes.
    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Reads a header that is likely to be valid.
    fn header(&mut self) -> RecordHeader {
        let kind = [RecordKind::Inline, RecordKind::Block, RecordKind::Skip][usize::from(self.byte() % 3)];
        let len = u64::from(self.byte()) << (self.byte() % 5);
        RecordHeader::new(kind, u16::from(self.byte()), len as usize)
    }
}

/// Runs a place with a peer that follows the instructions in `input`.
///
/// # Panics
/// If the place breaks a promise of its endpoint.
pub fn ring(input: &[u8]) {
    let Some((&places, input)) = input.split_first() else { return };
    // With and without a bell.
    let places = if places & 1 == 0 { 2 } else { 9 };
    let geometry =
        Geometry { places, control_bytes: RING_BYTES, data_bytes: RING_BYTES, arena_bytes: 2 << 20 };
    let segment = Segment::create(geometry, [0; 16]).expect("a segment of the smallest size");
    let endpoint = |place| segment.endpoint(place).expect("nobody has joined as that place");
    let (here, peer) = (endpoint(HERE), endpoint(PEER));
    let mut pair = Pair { segment, here, peer, ends: 0 };
    let mut script = Script(input);
    while !script.0.is_empty() {
        pair.follow(&mut script);
    }
    pair.conclude();
}

impl Pair {
    /// Executes the next instruction.
    fn follow(&mut self, script: &mut Script<'_>) {
        match script.byte() % 10 {
            0 => {
                let (class, grain) = (script.class(), u64::from(script.byte()));
                let header = script.header();
                self.scribble(class, grain * GRAIN, header.0);
            }
            1 => {
                let (class, offset) = (script.class(), u64::from(script.byte()) * 8);
                self.scribble(class, offset, script.word());
            }
            2 => {
                let (class, head) = (script.class(), script.word());
                // Relaxed, all of them: one thread runs both places.
                self.credit(class).head.store(head, Ordering::Relaxed);
            }
            3 => {
                let (class, wish) = (script.class(), u32::from(script.byte()));
                self.credit(class).starved.store(wish, Ordering::Relaxed);
            }
            4 => self.ring_bells(script),
            5 => {
                let (class, grain) = (script.class(), u64::from(script.byte()));
                let len = u64::from(script.byte()) << (script.byte() % 32);
                let ticket = BlockDescriptor { offset: script.word() >> (script.byte() % 64), len };
                self.scribble(
                    class,
                    grain * GRAIN,
                    RecordHeader::new(RecordKind::Block, 0, BlockDescriptor::BYTES).0,
                );
                self.scribble(class, grain * GRAIN + 8, ticket.offset);
                self.scribble(class, grain * GRAIN + 16, ticket.len);
            }
            6 => {
                let offset = u64::from(script.byte()) * 64;
                let block = self.segment.layout().arena(HERE) + offset;
                self.word(block).store(script.word(), Ordering::Relaxed);
            }
            7 => send(&self.peer, HERE, script),
            8 => send(&self.here, PEER, script),
            _ => self.turn(),
        }
    }

    /// Overwrites a word of a ring from the peer to here.
    fn scribble(&self, class: Class, offset: u64, word: u64) {
        let ring = self.segment.layout().ring(PEER, HERE, class);
        self.word(ring + offset % RING_BYTES).store(word, Ordering::Relaxed);
    }

    fn ring_bells(&self, script: &mut Script<'_>) {
        let block: &PlaceBlock = self.segment.block(HERE);
        let (class, index) = (usize::from(script.byte() & 1), usize::from(script.byte() & 3));
        block.bell.bits[class][index].store(script.word(), Ordering::Relaxed);
        block.sleeping.0.store(u32::from(script.byte()), Ordering::Relaxed);
        block.arena_starved.0.store(u32::from(script.byte()), Ordering::Relaxed);
        block.coming.0.store(u32::from(script.byte()), Ordering::Relaxed);
    }

    /// Returns the credit line that the peer writes as the receiver of messages from here.
    fn credit(&self, class: Class) -> &Credit {
        self.segment.mapping().view(self.segment.layout().credit(HERE, PEER, class))
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        self.segment.mapping().view(offset)
    }

    /// Runs one turn of the place: receives all messages, reads them, and gets as far as a sleep.
    fn turn(&mut self) {
        let ends = &mut self.ends;
        let block_max = self.here.limits().block_bytes_max;
        let mut read = 0;
        let count = self.here.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => {
                assert_eq!(*ends, 0, "a message after the end of its sender");
                assert_eq!(message.source, PEER);
                let bytes = message.body.bytes();
                match message.body {
                    Body::Inline(_) => assert!(bytes.len() <= RING_BYTES as usize / 4),
                    Body::Block(_) => assert!(bytes.len() <= block_max, "a block of {} bytes", bytes.len()),
                }
                // Only both ends of it: a block may be large.
                read +=
                    bytes.iter().take(64).chain(bytes.last()).map(|byte| usize::from(*byte)).sum::<usize>();
            }
            Arrival::Died { place, .. } => {
                assert_eq!(place, PEER);
                *ends += 1;
            }
        });
        std::hint::black_box(read);
        assert!(count <= ARRIVALS_MAX, "{count} arrivals at once");
        assert!(self.ends <= 1, "a death is told once");
        self.here.wait(Some(Duration::ZERO));
    }

    /// Kills the peer, if it is not dead yet; the place learns of it.
    fn conclude(mut self) {
        self.segment.mark_dead(PEER);
        for _ in 0..TURNS_MAX {
            self.turn();
        }
        assert_eq!(self.ends, 1, "the end of the peer is not told within {TURNS_MAX} turns");
        let refused = self.here.send(PEER, Class::Data, HandlerId(0), 0, &mut |_| Some(0));
        assert_eq!(refused, Err(SendError::DeadPlace(PEER)));
    }
}

/// Sends a valid message, if there is room.
fn send(from: &ShmEndpoint, to: PlaceId, script: &mut Script<'_>) {
    let (class, handler) = (script.class(), HandlerId(u16::from(script.byte())));
    let len = usize::from(script.byte()) << (script.byte() & 3);
    let fill = script.byte();
    // Not checked: the ring may be full, or the receiver dead.
    let _ = if script.byte() & 3 == 0 {
        from.send_block(to, class, handler, len, &mut |room| room.fill(fill))
    } else {
        let len = len.min(RING_BYTES as usize / 4 - 8);
        from.send(to, class, handler, len, &mut |room| {
            room.fill(fill);
            Some(len)
        })
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_transport::random::Random;

    #[test]
    fn a_place_survives_whatever_its_peer_writes() {
        for seed in 0..3000 {
            let mut random = Random::new(seed);
            let len = 1 + random.index(300);
            let mask = [0xff, 0x0f, 0x03][random.index(3)];
            let input: Vec<u8> = (0..len).map(|_| random.bits() as u8 & mask).collect();
            ring(&input);
        }
    }

    #[test]
    fn a_ticket_for_more_than_a_block_is_a_broken_format() {
        // One MiB from the beginning of an arena of two, of which a block may have half of one.
        let ticket = [5, 1, 0, 1, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let input: Vec<u8> = [0].into_iter().chain(ticket).chain([9]).collect();
        ring(&input);
    }

    #[test]
    fn stale_records_all_over_a_ring_do_not_hide_the_end_of_their_sender() {
        // Every grain of both rings: an empty record without end.
        let records = |class| (0..64).flat_map(move |grain| [0, class, grain, 0, 0, 0, 0]);
        let input: Vec<u8> = [0].into_iter().chain(records(0)).chain(records(1)).collect();
        ring(&input);
    }
}
