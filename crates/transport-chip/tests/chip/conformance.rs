//! Conformance of places on a modelled chip to the contract of transports.
//!
//! The fixture is a driver like the façade's: a waiting place gets no turn until something arrives for it, so a lost
//! wake-up ends the run early and fails the test.

use isles_chip::Chip;
use isles_chip::quantity::Picoseconds;
use isles_transport::conformance::{Fixture, Promise, Script, Step};
use isles_transport::{Arrival, Endpoint, Inbound, PlaceId};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, Costs, Ledger, Protocol, ProtocolConfig, TurnOutcome, WorldError,
};

/// All guarantees for a protocol of message buffers: with the chip's buffers, with another order of simultaneous
/// events, and with the smallest sufficient buffers.
macro_rules! with_buffers {
    (
        $($protocol:ident $keeps:ident $($more:ident)?: $whole:ident, $other_order:ident, $least_buffer:ident;)*
    ) => {$(
        isles_transport::conformance!(
            $whole,
            OnChip { wiring: Protocol::$protocol.into(), buffer_lines: 256, seed: 0 },
            keeps $keeps $($more)?
        );
        isles_transport::conformance!(
            $other_order,
            OnChip { wiring: Protocol::$protocol.into(), buffer_lines: 256, seed: 7 },
            keeps $keeps $($more)?
        );
        isles_transport::conformance!(
            $least_buffer,
            OnChip { wiring: Protocol::$protocol.into(), buffer_lines: 0, seed: 1 },
            keeps $keeps $($more)?
        );
    )*};
}

with_buffers! {
    Doorbell deaths multicast: scc, other_order, least_buffer;
    RcceX10 deaths: rcce_x10, rcce_x10_other_order, rcce_x10_least_buffer;
    Sections deaths: sections, sections_other_order, sections_least_buffer;
    SectionsByPlaces deaths: by_places, by_places_other_order, by_places_least_buffer;
    Sockets deaths: sockets, sockets_other_order, sockets_least_buffer;
    MpiSockets deaths: mpi_sock, mpi_sock_other_order, mpi_sock_least_buffer;
    Rcce deaths: rcce, rcce_other_order, rcce_least_buffer;
    Ring deaths: ring, ring_other_order, ring_least_buffer;
}

isles_transport::conformance!(
    packets,
    OnChip { wiring: Protocol::Packets.into(), buffer_lines: 0, seed: 0 },
    keeps deaths
);
isles_transport::conformance!(
    packets_other_order,
    OnChip { wiring: Protocol::Packets.into(), buffer_lines: 0, seed: 7 },
    keeps deaths
);

/// The protocol with asynchronous broadcasts, whose messages to several places use interrupts.
const ASYNCHRONOUS: ProtocolConfig = ProtocolConfig { protocol: Protocol::Doorbell, relays: Some(2) };

isles_transport::conformance!(
    asynchronous,
    OnChip { wiring: ASYNCHRONOUS, buffer_lines: 256, seed: 0 },
    keeps multicast deaths
);
isles_transport::conformance!(
    asynchronous_other_order,
    OnChip { wiring: ASYNCHRONOUS, buffer_lines: 256, seed: 7 },
    keeps multicast deaths
);
isles_transport::conformance!(
    asynchronous_least_buffer,
    OnChip { wiring: ASYNCHRONOUS, buffer_lines: 1, seed: 1 },
    keeps multicast deaths
);

fn costs(protocol: Protocol) -> Costs {
    let name = if protocol == Protocol::Packets { "bluegene-p" } else { "scc" };
    let chip = Chip::find(name).expect("it comes with the product");
    Costs::of(&chip).expect("it has message buffers, or carries packets")
}

/// Time limit of a test on the chip; the slowest one, with `sockets`, takes 1.9 s.
const LONGEST: Picoseconds = Picoseconds(4_000_000_000_000);

/// Runs the tests on a chip whose cores have buffers of `buffer_lines` lines, or of the fewest that suffice.
struct OnChip {
    wiring: ProtocolConfig,
    buffer_lines: u32,
    seed: u64,
}

impl OnChip {
    fn world(&self, places: u32) -> ChipWorld {
        let costs = costs(self.wiring.protocol);
        let of = |lines| {
            ChipWorld::with_protocol(places, costs.clone().with_buffer_lines(lines), self.wiring, self.seed)
        };
        match of(self.buffer_lines) {
            Ok(world) => world,
            Err(WorldError::Buffer { needed, .. }) => of(needed).expect("so many lines do"),
            Err(misfit) => panic!("{misfit}"),
        }
    }
}

struct ScriptRunner {
    endpoint: ChipEndpoint,
    script: Box<dyn Script>,
    last: Step,
}

impl Fixture for OnChip {
    fn keep(&self, promise: &Promise) {
        let world = self.world(promise.places);
        let runner = |here| ScriptRunner {
            endpoint: world.endpoint(here),
            script: (promise.script)(here),
            last: Step::Busy,
        };
        let mut runners: Vec<ScriptRunner> = (0..promise.places).map(PlaceId).map(runner).collect();
        while let Some(place) = world.next() {
            let runner = &mut runners[place.index()];
            let turn = play(runner);
            world.end_turn(place, turn);
            if runner.last == Step::Die {
                world.kill(place);
            }
        }
        let ended = |runner: &ScriptRunner| !matches!(runner.last, Step::Busy | Step::Idle);
        assert!(runners.iter().all(ended), "stalled: all wait and nothing is under way");
        drop(runners);
        let total = |ledger: &Ledger| ledger.total();
        let last = world.report().ledgers.iter().map(total).max().unwrap_or_default();
        assert!(last < LONGEST, "{} takes {last}", self.wiring.protocol);
        assert_eq!(world.live_blocks(), 0, "a block is not given back");
    }
}

fn play(runner: &mut ScriptRunner) -> TurnOutcome {
    if runner.last == Step::Done {
        let arrived = runner.endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => panic!("one message too many from {}", message.source),
            Arrival::Died { place, .. } => panic!("{place} was told dead once too often"),
        });
        return if arrived > 0 { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } };
    }
    runner.last = runner.script.step(&runner.endpoint);
    match runner.last {
        Step::Busy => TurnOutcome::Busy,
        Step::Leave => {
            runner.endpoint.leave();
            TurnOutcome::Busy
        }
        Step::Idle | Step::Done | Step::Die => TurnOutcome::Idle { due: None },
    }
}
