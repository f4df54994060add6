//! How fast the model runs on this host: 48 cores of the SCC send short messages to each other at random.
//!
//! `cargo run --release -p isles-transport-chip --example traffic`. The figures are of this host and this moment; the
//! predicted time and the digest are the same everywhere.

use isles_chip::Chip;
use isles_transport::random::Random;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId};
use isles_transport_chip::{ChipEndpoint, Costs, Turn, World};
use std::time::Instant;

const PLACES: u32 = 48;

/// Messages that each place sends.
const MESSAGES: u32 = 20_000;

/// Most messages that a place sends in one turn.
const BURST: u32 = 1;

struct Player {
    endpoint: ChipEndpoint,
    random: Random,
    left: u32,
}

impl Player {
    fn step(&mut self) -> Turn {
        let arrived = self.endpoint.progress(Inbound::All, &mut |_| ());
        let mut sent = 0;
        while sent < BURST.min(self.left) && self.send() {
            sent += 1;
        }
        self.left -= sent;
        if arrived > 0 || sent > 0 { Turn::Busy } else { Turn::Idle { due: None } }
    }

    fn send(&mut self) -> bool {
        let distance = 1 + self.random.below(u64::from(PLACES) - 1) as u32;
        let to = PlaceId((self.endpoint.here().0 + distance) % PLACES);
        let mut fill = |bytes: &mut [u8]| {
            bytes.fill(1);
            Some(bytes.len())
        };
        self.endpoint.send(to, Class::Data, HandlerId(1), 24, &mut fill).is_ok()
    }
}

fn main() {
    let costs = Chip::find("scc").ok().as_ref().and_then(Costs::of).expect("the SCC comes with the product");
    let world = World::new(PLACES, costs, 0).expect("it has so many cores");
    let player = |place| Player {
        endpoint: world.endpoint(PlaceId(place)),
        random: Random::new(u64::from(place)),
        left: MESSAGES,
    };
    let mut players: Vec<Player> = (0..PLACES).map(player).collect();
    let started = Instant::now();
    while let Some(place) = world.next() {
        let turn = players[place.index()].step();
        world.end_turn(place, turn);
    }
    let seconds = started.elapsed().as_secs_f64();
    let report = world.report();
    let [events, messages] =
        [report.digest.events(), report.messages].map(|count| count as f64 / seconds / 1e6);
    println!("{report}\nspeed           {events:.2} million events, {messages:.2} million messages a second");
}
