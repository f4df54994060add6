//! The model of a chip alone: places that send and receive, without a runtime; and one program with a runtime.
//!
//! SimGrid's side of the same traffic is in `peers/simgrid.cpp`. Invariant: all messages of a figure have been
//! received, and building the world is not timed, like building the platform there.

mod machine;

pub use machine::{machine, program as machine_program};

use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use crate::suite::twin::{LONG, MESH_MESSAGES, PING_PONGS, SHORT, TASKS, TORUS_MESSAGES};
use isles::prelude::*;
use isles::{Launch, ModelledChip, place_count};
use isles_chip::Chip;
use isles_transport::random::Random;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId};
use isles_transport_chip::{ChipEndpoint, ChipWorld, Costs, TurnOutcome};
use std::fs::File;
use std::io;
use std::time::Instant;

/// Number of places of an SCC.
const SCC_PLACES: u32 = 48;

/// Number of places of the torus, and bytes of a message that fills a packet with its header.
const TORUS_PLACES: u32 = 1_000;
const PACKET: usize = 232;

/// A place that sends its messages to random others, one per turn, and receives incoming ones.
struct Player {
    endpoint: ChipEndpoint,
    random: Random,
    left: u32,
    bytes: usize,
}

impl Player {
    fn step(&mut self) -> TurnOutcome {
        let arrived = self.endpoint.progress(Inbound::All, &mut |_| ());
        let sent = self.left > 0 && self.send();
        self.left -= u32::from(sent);
        if arrived > 0 || sent { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } }
    }

    fn send(&mut self) -> bool {
        let places = self.endpoint.places();
        let distance = 1 + self.random.below(u64::from(places) - 1) as u32;
        let to = PlaceId((self.endpoint.here().0 + distance) % places);
        send(&self.endpoint, to, self.bytes)
    }
}

/// Sends a message; returns `true` if there was room.
fn send(endpoint: &ChipEndpoint, to: PlaceId, bytes: usize) -> bool {
    send_as(endpoint, to, HandlerId(1), bytes)
}

fn send_as(endpoint: &ChipEndpoint, to: PlaceId, handler: HandlerId, bytes: usize) -> bool {
    let mut fill = |room: &mut [u8]| Some(room.len()); // As they are: SimGrid's messages have no bytes either.
    endpoint.send(to, Class::Data, handler, bytes, &mut fill).is_ok()
}

fn scc(places: u32) -> ChipWorld {
    let costs = Chip::find("scc").ok().as_ref().and_then(Costs::of).expect("the SCC comes with the product");
    ChipWorld::new(places, costs, 0).expect("it has enough cores")
}

/// Runs until no event is left; returns the seconds.
fn drive(world: &ChipWorld, mut step: impl FnMut(PlaceId) -> TurnOutcome) -> f64 {
    let started = Instant::now();
    while let Some(place) = world.next() {
        let turn = step(place);
        world.end_turn(place, turn);
    }
    started.elapsed().as_secs_f64()
}

fn random_traffic(world: &ChipWorld, messages: u32, bytes: usize) -> f64 {
    let places = world.report().ledgers.len() as u32;
    let player = |place| Player {
        endpoint: world.endpoint(PlaceId(place)),
        random: Random::new(u64::from(place)),
        left: messages,
        bytes,
    };
    let mut players: Vec<Player> = (0..places).map(player).collect();
    drive(world, |place| players[place.index()].step())
}

/// Prints the messages and events per second. `once` returns a world that has run, and its seconds; it runs once per
/// process, cold, as SimGrid does. The median is taken over processes.
fn measure(messages: u64, once: impl FnOnce() -> (ChipWorld, f64)) {
    let (world, seconds) = once();
    let report = world.report();
    assert_eq!(report.messages, messages, "every message was taken in");
    print_figure("messages_million", messages as f64 / seconds / 1e6);
    print_figure("events_million", report.digest.events() as f64 / seconds / 1e6);
}

/// Two places of one tile: round trips.
pub fn ping_pong(_effort: Effort) {
    measure(2 * u64::from(PING_PONGS), || {
        let world = scc(2);
        let endpoints = [0, 1].map(|place| world.endpoint(PlaceId(place)));
        let (mut serves, mut begun) = ([PING_PONGS; 2], false);
        let seconds = drive(&world, |place| {
            let here = place.index();
            let arrived = endpoints[here].progress(Inbound::All, &mut |_| ());
            let first = here == 0 && !std::mem::replace(&mut begun, true);
            if (arrived > 0 || first) && serves[here] > 0 {
                serves[here] -= 1;
                assert!(
                    send(&endpoints[here], PlaceId(1 - place.0), SHORT as usize),
                    "there is room for one message"
                );
            }
            TurnOutcome::Idle { due: None }
        });
        (world, seconds)
    });
}

/// All cores of an SCC, with random targets.
pub fn mesh(_effort: Effort) {
    mesh_of(SHORT);
}

/// Same as `mesh`, with messages that occupy their links.
pub fn mesh_long(_effort: Effort) {
    mesh_of(LONG);
}

fn mesh_of(bytes: u32) {
    measure(u64::from(SCC_PLACES * MESH_MESSAGES), || {
        let world = scc(SCC_PLACES);
        let seconds = random_traffic(&world, MESH_MESSAGES, bytes as usize);
        (world, seconds)
    });
}

/// Packets on a mesh that consists only of such links.
pub fn mesh_packets(_effort: Effort) {
    mesh_packets_of(SHORT);
}

/// Same as `mesh_packets`, with messages that occupy their links.
pub fn mesh_packets_long(_effort: Effort) {
    mesh_packets_of(LONG);
}

fn mesh_packets_of(bytes: u32) {
    let chip = Chip::parse("mesh.toml", include_str!("mesh.toml")).expect("the file describes a chip");
    measure(u64::from(SCC_PLACES * MESH_MESSAGES), || {
        let costs = Costs::of(&chip).expect("it carries packets");
        let world = ChipWorld::new(SCC_PLACES, costs, 0).expect("it has enough cores");
        let seconds = random_traffic(&world, MESH_MESSAGES, bytes as usize);
        (world, seconds)
    });
}

/// Same as `mesh`, with a trace into a file.
pub fn mesh_traced(_effort: Effort) {
    let path = std::env::temp_dir().join(format!("isles-bench-{}.perfetto-trace", std::process::id()));
    measure(u64::from(SCC_PLACES * MESH_MESSAGES), || {
        let world = scc(SCC_PLACES);
        let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let traced = world.trace("isles bench twin", Box::new(file));
        traced.unwrap_or_else(|error| panic!("a thread for the trace: {error}"));
        let seconds = random_traffic(&world, MESH_MESSAGES, SHORT as usize);
        let started = Instant::now();
        world.end_trace().unwrap_or_else(|error: io::Error| panic!("{}: {error}", path.display()));
        (world, seconds + started.elapsed().as_secs_f64())
    });
    let _ = std::fs::remove_file(&path); // it is in the folder for such files
}

/// Nodes of a torus of 10 x 10 x 10, one place each, with random targets.
pub fn torus(_effort: Effort) {
    measure(u64::from(TORUS_PLACES * TORUS_MESSAGES), || {
        let world = ChipWorld::new(TORUS_PLACES, torus_costs(), 0).expect("it has enough cores");
        let seconds = random_traffic(&world, TORUS_MESSAGES, PACKET);
        (world, seconds)
    });
}

/// Returns the costs of Blue Gene/P with another torus, the same that SimGrid gets.
fn torus_costs() -> Costs {
    let file = include_str!("../../../../../chips/bluegene-p.toml");
    let file = file.replace("tiles = [32, 32, 32]", "tiles = [10, 10, 10]");
    let file = file.replace("cores_per_tile = 4", "cores_per_tile = 1");
    let chip = Chip::parse("torus", &file).expect("a smaller torus is a chip, too");
    let costs = Costs::of(&chip).expect("it carries packets");
    assert_eq!(costs.cores(), TORUS_PLACES);
    costs
}

/// Tasks of a program: each place starts some at random others, all under one finish. Prints `tasks_million` and
/// `events_million`; one cold run.
pub fn program(_effort: Effort) {
    let launch = Launch::from_environment().unwrap_or_else(|error| panic!("{error}"));
    let launch = launch.places(SCC_PLACES);
    let chip = ModelledChip::new("scc").unwrap_or_else(|error| panic!("{error}"));
    let main = || async {
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let mut random = Random::new(here().index() as u64);
                    for _ in 0..TASKS {
                        let distance = 1 + random.below(place_count() as u64 - 1) as usize;
                        let to = Place::new((here().index() + distance) % place_count());
                        spawn_at!(to.expect("it is below their number"), ());
                        isles::yield_now().await;
                    }
                });
            }
        })
        .await
    };
    let started = Instant::now();
    let (result, _, report) = launch.run_on_chip(chip, main).unwrap_or_else(|error| panic!("{error}"));
    let seconds = started.elapsed().as_secs_f64();
    result.unwrap_or_else(|error| panic!("{error}"));
    print_figure("tasks_million", f64::from(SCC_PLACES * TASKS) / seconds / 1e6);
    print_figure("events_million", report.digest.events() as f64 / seconds / 1e6);
}
