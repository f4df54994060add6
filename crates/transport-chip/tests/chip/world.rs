//! Guarantees of a modelled chip beyond the conformance suite: exact costs, order by time, reproducible runs.

use isles_chip::Chip;
use isles_chip::quantity::Picoseconds;
use isles_transport::random::Random;
use isles_transport::{
    Arrival, Body, Class, Endpoint, HandlerId, Inbound, PlaceId, SendError, Work, WorkModel,
};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, Costs, Protocol, Report, TimeCategory, TurnOutcome, WorldError,
};
use std::panic::Location;
use std::time::Duration;

const A: PlaceId = PlaceId(0);

fn costs() -> Costs {
    Costs::of(&Chip::find("scc").unwrap()).unwrap()
}

fn scc(places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    let world = ChipWorld::new(places, costs(), 0).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

fn send(from: &ChipEndpoint, to: PlaceId, class: Class, len: usize) -> Result<(), SendError> {
    from.send(to, class, HandlerId(1), len, &mut |bytes| {
        bytes.fill(from.here().0 as u8);
        Some(len)
    })
}

/// Returns the number of arrivals that `endpoint` receives in a turn.
fn take(endpoint: &ChipEndpoint) -> usize {
    endpoint.progress(Inbound::All, &mut |_| ())
}

const IDLE: TurnOutcome = TurnOutcome::Idle { due: None };

/// Nanoseconds of the SCC at 533/800/800: a read and a write of a line in the same tile, and 300 cycles of a core.
const READ: f64 = 105.0;
const WRITE: f64 = 145.0;
const HOP: f64 = 5.0;
const HANDLE: f64 = 562.5;

/// A poll of two places: one line of doorbells and 60 cycles.
const POLL: f64 = READ + 112.5;

fn nanoseconds(time: Picoseconds) -> f64 {
    time.0 as f64 / 1e3
}

/// Gives turns to the places, each with `step`, until no event is left.
fn run(world: &ChipWorld, mut step: impl FnMut(PlaceId) -> TurnOutcome) -> Report {
    while let Some(place) = world.next() {
        let turn = step(place);
        world.end_turn(place, turn);
    }
    world.report()
}

/// Sends a message of 16 bytes from the first to the last of `places` places; returns the final times of both.
fn one_message(places: u32) -> [Picoseconds; 2] {
    let (world, endpoints) = scc(places);
    let last = PlaceId(places - 1);
    let report = run(&world, |place| {
        let endpoint = &endpoints[place.index()];
        if place == A && world.now(A) == Duration::ZERO {
            send(endpoint, last, Class::Data, 16).unwrap();
        }
        take(endpoint);
        IDLE
    });
    assert_eq!((report.messages, report.bytes), (1, 16));
    [A, last].map(|place| report.ledgers[place.index()].total())
}

#[test]
fn a_short_message_costs_its_instructions_its_lines_and_its_polls() {
    let [sender, receiver] = one_message(7).map(nanoseconds);
    // The last of seven places is alone on its tile, three hops from the first.
    let sent = HANDLE + 2.0 * (WRITE + 3.0 * HOP);
    assert_eq!(sender, sent + POLL);
    // The receiver polls until a poll begins after the doorbell was written, and once more.
    let polls = (sent / POLL).ceil() + 1.0;
    assert_eq!(receiver, polls * POLL + HANDLE + READ + WRITE + 3.0 * HOP);
    assert!(
        (1_500.0..2_060.0).contains(&(receiver - WRITE)),
        "half a ping-pong of iRCCE takes 2,060 ns: {receiver}"
    );
}

#[test]
fn a_message_of_two_places_lies_in_the_line_that_the_receiver_polls() {
    let [sender, receiver] = one_message(2).map(nanoseconds);
    let sent = HANDLE + WRITE;
    assert_eq!(sender, sent + POLL);
    let polls = (sent / POLL).ceil() + 1.0;
    assert_eq!(receiver, polls * POLL + HANDLE + WRITE);
}

#[test]
fn each_hop_adds_to_each_line() {
    // 47 places: three lines of doorbells; the last one is 8 hops away and alone on its tile.
    let sent = HANDLE + 2.0 * (WRITE + 8.0 * HOP);
    let poll = 3.0 * READ + 112.5;
    let [sender, receiver] = one_message(47).map(nanoseconds);
    assert_eq!(sender, sent + poll);
    let polls = (sent / poll).ceil() + 1.0;
    assert_eq!(receiver, polls * poll + HANDLE + READ + WRITE + 8.0 * HOP);
}

#[test]
fn a_longer_message_lies_in_the_buffer_of_its_sender() {
    let (world, endpoints) = scc(48);
    let far = PlaceId(47);
    world.next();
    send(&endpoints[0], far, Class::Data, 320).unwrap();
    let ledger = world.report().ledgers[0];
    // Ten local lines; one remote line of the ring, and the remote doorbell.
    let expected = 10.0 * WRITE + 2.0 * (WRITE + 8.0 * HOP);
    assert_eq!(nanoseconds(ledger.time(TimeCategory::Copying)), expected);
}

/// Returns the rate of a block of `len` bytes between two places, in MB/s, and the report.
fn block_rate(len: usize) -> (f64, Report) {
    let (world, endpoints) = scc(2);
    let mut taken = 0;
    let mut sent = false;
    let report = run(&world, |place| {
        if place == A && !sent {
            endpoints[0]
                .send_block(PlaceId(1), Class::Data, HandlerId(1), len, &mut |bytes| bytes.fill(9))
                .unwrap();
            sent = true;
        }
        let arrived = endpoints[place.index()].progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            assert!(matches!(message.body, Body::Block(_)));
            taken += message.body.bytes().iter().filter(|byte| **byte == 9).count();
        });
        if arrived > 0 { TurnOutcome::Busy } else { IDLE }
    });
    assert_eq!((taken, world.live_blocks()), (len, 0));
    (len as f64 / nanoseconds(report.ledgers[1].total()) * 1e3, report)
}

#[test]
fn a_block_moves_at_the_speed_of_its_lines() {
    // Writing and then reading a line takes 250 ns: 128 MB/s. If both cores copy at once, up to 220 MB/s.
    let (rate, report) = block_rate(8 << 10);
    assert!((128.0..220.0).contains(&rate), "{rate} MB/s");
    assert_eq!(report.ledgers[0].time(TimeCategory::Fetching), Picoseconds::ZERO);
    assert_eq!(report.fetched, 0);
}

#[test]
fn a_block_that_no_cache_has_moves_at_the_speed_of_memory() {
    // Each side loads a line in 132 ns, and one of them writes it back. Both copy at once.
    let (rate, report) = block_rate(1 << 20);
    assert!((60.0..100.0).contains(&rate), "{rate} MB/s");
    let lines = (1_u64 << 20) / 32;
    assert!((2 * lines * 9 / 10..=2 * lines).contains(&report.fetched), "{}", report.fetched);
    // The second cache holds the block, so no controller is accessed.
    let (near, report) = block_rate(64 << 10);
    assert!((rate..220.0).contains(&near) && report.fetched == 0, "{near} MB/s");
    assert!(report.ledgers[0].time(TimeCategory::Fetching) > Picoseconds::ZERO);
}

#[test]
fn a_place_that_waits_pays_for_polls_and_not_for_turns() {
    let (world, endpoints) = scc(2);
    let mut turns = [0; 2];
    let report = run(&world, |place| {
        turns[place.index()] += 1;
        let endpoint = &endpoints[place.index()];
        take(endpoint);
        if place == A && turns[0] == 1 {
            endpoint.work(&Work::new().cycles(533_333_333), Location::caller());
            send(endpoint, PlaceId(1), Class::Control, 8).unwrap();
        }
        IDLE
    });
    assert_eq!(turns, [1, 2], "a second of waiting is one turn");
    let waited = report.ledgers[1].time(TimeCategory::Waiting).0;
    assert!(waited.abs_diff(1_000_000_000_000) < 10_000_000, "{report}");
}

#[test]
fn credit_is_of_use_when_it_has_arrived_and_not_before() {
    let (world, endpoints) = scc(48);
    let (far, mut credited, mut sent) = (PlaceId(47), None, 0);
    run(&world, |place| {
        if place == far && take(&endpoints[47]) > 0 && credited.is_none() {
            credited = Some(world.now(far));
        }
        if place != A || sent == 2 {
            return IDLE;
        }
        endpoints[0].work(&Work::new().cycles(10), Location::caller());
        let before = world.now(A);
        if send(&endpoints[0], far, Class::Control, 8).is_ok() {
            assert!(sent == 0 || before >= credited.unwrap(), "{before:?}, {credited:?}");
            sent += 1;
        }
        TurnOutcome::Busy
    });
    assert_eq!(sent, 2);
}

#[test]
fn a_deadline_ends_a_wait() {
    let (world, endpoints) = scc(2);
    let due = Duration::from_millis(7);
    let mut turns = 0;
    run(&world, |place| {
        take(&endpoints[place.index()]);
        turns += u32::from(place == A);
        if place == A && turns == 1 { TurnOutcome::Idle { due: Some(due) } } else { IDLE }
    });
    assert_eq!(turns, 2);
    assert!(world.now(A) >= due && world.now(A) < due + Duration::from_micros(1), "{:?}", world.now(A));
}

#[test]
fn many_senders_to_one_place_wait_for_its_port_and_its_links() {
    let slowest = |senders: u32| {
        let (world, endpoints) = scc(48);
        let mut sent = [false; 48];
        let report = run(&world, |place| {
            if (1..=senders).contains(&place.0) && !sent[place.index()] {
                send(&endpoints[place.index()], A, Class::Data, 40).unwrap();
                sent[place.index()] = true;
            }
            take(&endpoints[place.index()]);
            IDLE
        });
        let ledgers = &report.ledgers[1..=senders as usize];
        ledgers.iter().map(|ledger| ledger.time(TimeCategory::Copying)).max().unwrap()
    };
    let alone = nanoseconds(slowest(1));
    assert_eq!(alone, 3.0 * WRITE);
    let crowded = nanoseconds(slowest(47));
    assert!(crowded > 3.0 * (WRITE + 8.0 * HOP) + 100.0, "{crowded} ns");
}

/// Lets places send to each other at random until each has sent `count` messages; returns the report and the arrivals
/// in order.
fn gossip(seed: u64, count: u32) -> (Report, Vec<(u32, u8)>) {
    let world = ChipWorld::new(12, costs(), seed).unwrap();
    let endpoints: Vec<ChipEndpoint> = (0..12).map(|place| world.endpoint(PlaceId(place))).collect();
    let mut left = [count; 12];
    let mut random: Vec<Random> = (0..12).map(Random::new).collect();
    let mut came = Vec::new();
    let report = run(&world, |place| {
        let endpoint = &endpoints[place.index()];
        let mut worked = endpoint.progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            came.push((place.0, message.source.0 as u8));
        });
        let (random, left) = (&mut random[place.index()], &mut left[place.index()]);
        if *left > 0 {
            let to = PlaceId((place.0 + 1 + random.below(11) as u32) % 12);
            let sent = send(endpoint, to, Class::Data, random.index(200)).is_ok();
            *left -= u32::from(sent);
            worked += usize::from(sent);
        }
        if worked > 0 { TurnOutcome::Busy } else { IDLE }
    });
    (report, came)
}

#[test]
fn one_seed_is_one_run_and_another_one_is_another_order() {
    assert_eq!(gossip(3, 100), gossip(3, 100));
    let ((natural, came), (permuted, other)) = (gossip(0, 100), gossip(5, 100));
    assert_eq!((natural.messages, permuted.messages), (1_200, 1_200));
    assert_ne!(natural.digest, permuted.digest);
    assert_ne!(came, other);
}

#[test]
fn all_time_is_in_the_ledger_and_all_bytes_are_counted() {
    let (report, came) = gossip(0, 200);
    assert_eq!(report.messages, came.len() as u64);
    assert!(report.ledgers.iter().all(|ledger| ledger.total() > Picoseconds::ZERO));
    assert_eq!(report.time, report.ledgers[0].total());
    let text = report.to_string();
    assert!(text.contains("predicted time") && text.contains(&report.digest.to_string()), "{text}");
}

#[test]
fn a_place_that_has_left_still_empties_its_blocks() {
    let (world, endpoints) = scc(2);
    let len = 100_000;
    let mut taken = 0;
    let mut left = false;
    run(&world, |place| {
        if place == PlaceId(1) {
            assert!(!left, "a place that has left gets a turn");
            endpoints[1].send_block(A, Class::Data, HandlerId(1), len, &mut |bytes| bytes.fill(1)).unwrap();
            endpoints[1].leave();
            left = true;
            return TurnOutcome::Busy;
        }
        let arrived = endpoints[0].progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => taken += message.body.bytes().len(),
            Arrival::Died { place, .. } => panic!("{place} is not dead"),
        });
        if arrived > 0 { TurnOutcome::Busy } else { IDLE }
    });
    assert_eq!(taken, len);
    assert_eq!(send(&endpoints[0], PlaceId(1), Class::Data, 8), Err(SendError::DeadPlace(PlaceId(1))));
    assert!(!endpoints[0].is_dead(PlaceId(1)));
}

#[test]
fn a_place_that_has_left_gives_up_its_blocks_to_one_that_dies_and_empties_the_others() {
    const DEAD: PlaceId = PlaceId(2);
    for protocol in Protocol::ALL {
        let name = if protocol == Protocol::Packets { "bluegene-p" } else { "scc" };
        let chip = Costs::of(&Chip::find(name).unwrap()).unwrap();
        let world = ChipWorld::with_protocol(3, chip, protocol, 0).unwrap();
        let endpoints: Vec<_> = (0..3).map(|place| world.endpoint(PlaceId(place))).collect();
        let (len, mut taken, mut has_begun) = (100_000, 0, [false; 3]);
        run(&world, |place| {
            let endpoint = &endpoints[place.index()];
            let is_first = !std::mem::replace(&mut has_begun[place.index()], true);
            if place == A {
                endpoint.progress(Inbound::All, &mut |arrival| {
                    taken +=
                        if let Arrival::Message(message) = arrival { message.body.bytes().len() } else { 0 };
                });
            } else if place == DEAD {
                if is_first {
                    send(endpoint, PlaceId(1), Class::Control, 8).unwrap(); // It is never taken.
                }
                take(endpoint);
            } else if is_first {
                for to in [A, DEAD] {
                    let fill = &mut |bytes: &mut [u8]| bytes.fill(1);
                    endpoint.send_block(to, Class::Data, HandlerId(1), len, fill).unwrap();
                }
            } else if place == PlaceId(1) {
                endpoint.leave();
                world.kill(DEAD);
            }
            IDLE
        });
        assert_eq!(taken, len, "{protocol}");
    }
}

#[test]
fn a_chip_that_is_too_small_says_what_is_missing() {
    let refused = |places, costs| ChipWorld::new(places, costs, 0).err().map(|error| error.to_string());
    assert_eq!(refused(49, costs()).as_deref(), Some("the chip has 48 cores"));
    let narrow = refused(48, costs().with_buffer_lines(100)).unwrap();
    assert_eq!(narrow, "the message buffer of a core has 100 lines, but 156 are needed");
    assert_eq!(refused(48, costs().with_buffer_lines(156)), None);
    assert_eq!(ChipWorld::new(49, costs(), 0).err(), Some(WorldError::Cores { cores: 48 }));
}
