//! Half a ping-pong between two places of a modelled chip, without a runtime, to time a protocol alone.
//!
//! `isles repro` compares it with published figures of the original protocols. Invariant: one message is in flight.

use crate::{ChipEndpoint, ChipWorld, Costs, Protocol, TurnOutcome, WorldError};
use isles_transport::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};
use std::time::Duration;

/// Number of rounds, whose mean is taken.
const ROUNDS: u32 = 20;

/// Returns half the round-trip time of `bytes` bytes between the first place and `other`, with `places` places in
/// total; the others wait.
///
/// # Errors
/// [`WorldError`]: the chip does not support the protocol with that many places.
pub fn half_ping_pong(
    costs: Costs,
    protocol: Protocol,
    other: PlaceId,
    places: u32,
    bytes: usize,
) -> Result<Duration, WorldError> {
    assert!((1..places).contains(&other.0), "{other} does not play with itself or does not exist");
    let world = ChipWorld::with_protocol(places, costs, protocol, 0)?;
    let peer =
        |place| Peer { endpoint: world.endpoint(PlaceId(place)), other, has_ball: place == 0, thrown: 0 };
    let mut peers: Vec<Peer> = (0..places).map(peer).collect();
    while let Some(place) = world.next() {
        let peer = &mut peers[place.index()];
        peer.step(bytes);
        if peer.thrown == ROUNDS + 1 {
            return Ok(world.now(PlaceId(0)) / (2 * ROUNDS));
        }
        world.end_turn(place, TurnOutcome::Idle { due: None });
    }
    panic!("a ball is lost with {protocol}")
}

struct Peer {
    endpoint: ChipEndpoint,
    /// The peer besides the first place.
    other: PlaceId,
    has_ball: bool,
    thrown: u32,
}

impl Peer {
    fn step(&mut self, bytes: usize) {
        let Peer { endpoint, has_ball, .. } = self;
        endpoint.progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            assert_eq!(message.body.bytes().len(), bytes, "the ball is the same");
            *has_ball = true;
        });
        if self.has_ball && self.throw(bytes) {
            self.has_ball = false;
            self.thrown += 1;
        }
    }

    /// Returns `true` if the message was sent, `false` if there is no room yet.
    fn throw(&self, bytes: usize) -> bool {
        let to = if self.endpoint.here() == self.other { PlaceId(0) } else { self.other };
        let (class, handler) = (Class::Data, HandlerId(1));
        let sent = if bytes <= self.endpoint.limits().inline_bytes_max {
            self.endpoint.send(to, class, handler, bytes, &mut |_| Some(bytes))
        } else {
            self.endpoint.send_block(to, class, handler, bytes, &mut |_| ())
        };
        match sent {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(error) => panic!("a ball of {bytes} bytes: {error:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_of_buffers_plays_and_longer_is_later() {
        let costs = Costs::of(&isles_chip::Chip::find("scc").unwrap()).unwrap();
        for protocol in Protocol::OF_BUFFERS {
            let time =
                |other, bytes| half_ping_pong(costs.clone(), protocol, PlaceId(other), 48, bytes).unwrap();
            let (near, far, long) = (time(1, 100), time(47, 100), time(1, 10_000));
            assert!(near.max(far) < long, "{protocol}: {near:?} {far:?} {long:?}");
        }
    }

    #[test]
    fn no_protocol_of_buffers_is_quicker_than_ours_among_few_places_or_many_near_or_far() {
        let costs = Costs::of(&isles_chip::Chip::find("scc").unwrap()).unwrap();
        for places in [2, 3, 4, 5, 6, 8, 48] {
            for (other, bytes) in
                [1, places - 1].into_iter().flat_map(|other| LENGTHS.map(|bytes| (other, bytes)))
            {
                let time = |protocol| {
                    half_ping_pong(costs.clone(), protocol, PlaceId(other), places, bytes).unwrap()
                };
                let ours = time(Protocol::Doorbell);
                for protocol in Protocol::OF_BUFFERS {
                    let theirs = time(protocol);
                    assert!(
                        ours <= theirs,
                        "{places} places, {other}, {bytes}: {ours:?}, {protocol} {theirs:?}"
                    );
                }
            }
        }
    }

    /// Lengths on both sides of the capacity of a cell, a line, a ring and a slot.
    const LENGTHS: [usize; 14] = [0, 8, 24, 25, 32, 64, 100, 256, 513, 800, 1_024, 1_500, 2_048, 4_096];
}
