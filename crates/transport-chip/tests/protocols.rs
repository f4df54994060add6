//! What the protocols of the literature cost, and how they refuse; what all protocols promise is in `conformance.rs`.

use isles_chip::Chip;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, SendError};
use isles_transport_chip::{ChipEndpoint, Costs, Misfit, Protocol, Report, Spending, Turn, World};
use std::time::Duration;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);
const C: PlaceId = PlaceId(2);

/// The protocols of message buffers, as the SCC has them.
const BUFFERED: [Protocol; 3] = [Protocol::Isles, Protocol::RcceX10, Protocol::Sections];

const IDLE: Turn = Turn::Idle { due: None };

/// Nanoseconds of the SCC at 533/800/800: reading and writing a line in the own tile, and 300 cycles of a core.
const READ: f64 = 105.0;
const WRITE: f64 = 145.0;
const HOP: f64 = 5.0;
const HANDLE: f64 = 562.5;

fn costs() -> Costs {
    Costs::of(&Chip::find("scc").unwrap()).unwrap()
}

fn scc(protocol: Protocol, places: u32) -> (World, Vec<ChipEndpoint>) {
    let world = World::with_protocol(places, costs(), protocol, 0).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

fn send(from: &ChipEndpoint, to: PlaceId, class: Class, len: usize) -> Result<(), SendError> {
    from.send(to, class, HandlerId(1), len, &mut |_| Some(len))
}

fn send_block(from: &ChipEndpoint, to: PlaceId, len: usize) -> Result<(), SendError> {
    from.send_block(to, Class::Data, HandlerId(1), len, &mut |_| ())
}

fn take(endpoint: &ChipEndpoint) -> usize {
    endpoint.progress(Inbound::All, &mut |_| ())
}

/// One message from the first to the last of so many places, in a world where nobody does anything else.
fn one_message(protocol: Protocol, places: u32, len: usize) -> Report {
    let (world, endpoints) = scc(protocol, places);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        if place == A && world.now(A) == Duration::ZERO {
            send(endpoint, PlaceId(places - 1), Class::Data, len).unwrap();
        }
        take(endpoint);
        world.end_turn(place, IDLE);
    }
    assert_eq!(world.report().messages, 1);
    world.report()
}

/// Nanoseconds that the first and the last place spend on handling and copying.
fn spent(report: &Report) -> [f64; 2] {
    let last = report.ledgers.len() - 1;
    [0, last].map(|place| {
        let time = |spending| report.ledgers[place].time(spending).0 as f64 / 1e3;
        time(Spending::Handling) + time(Spending::Copying)
    })
}

#[test]
fn rcce_x10_writes_at_home_and_fetches_from_the_sender() {
    let far = 8.0 * HOP;
    // 320 bytes are ten lines. The receiver clears its flag, fetches and answers.
    let [sender, receiver] = spent(&one_message(Protocol::RcceX10, 47, 320));
    assert_eq!(sender, HANDLE + 10.0 * WRITE + WRITE + far);
    assert_eq!(receiver, HANDLE + WRITE + 10.0 * (READ + far) + WRITE + far);
}

#[test]
fn sections_are_written_at_the_receiver_and_read_at_home() {
    let far = 8.0 * HOP;
    // Three lines of data are one chunk; the header goes with them, the answer back.
    let [sender, receiver] = spent(&one_message(Protocol::Sections, 47, 96));
    assert_eq!(sender, HANDLE + 4.0 * (WRITE + far));
    assert_eq!(receiver, HANDLE + 3.0 * READ + WRITE + far);
}

#[test]
fn a_poll_reads_a_line_for_each_other_place() {
    for protocol in [Protocol::RcceX10, Protocol::Sections] {
        let (world, endpoints) = scc(protocol, 48);
        assert_eq!(world.next(), Some(A));
        take(&endpoints[0]);
        // 60 cycles, and 5 for each flag.
        let expected = 47.0 * READ + 295.0 * HANDLE / 300.0;
        let polling = world.report().ledgers[0].time(Spending::Polling);
        assert!(polling.0.abs_diff((expected * 1e3) as u64) <= 1, "{protocol}: {polling:?}");
    }
}

#[test]
fn the_buffer_of_an_rcce_x10_sender_holds_one_message_of_each_class_for_all_receivers() {
    let (world, endpoints) = scc(Protocol::RcceX10, 3);
    assert_eq!(world.next(), Some(A));
    let a = &endpoints[0];
    assert_eq!(send(a, B, Class::Data, 8), Ok(()));
    assert_eq!(send(a, B, Class::Data, 8), Err(SendError::Full));
    assert_eq!(send(a, C, Class::Data, 8), Err(SendError::Full));
    assert_eq!(send_block(a, C, 8), Err(SendError::Full));
    assert_eq!(send(a, C, Class::Control, 8), Ok(()));
    assert_eq!(send(a, B, Class::Control, 8), Err(SendError::Full));
}

#[test]
fn a_section_holds_one_message_of_each_class_for_its_receiver_alone() {
    let (world, endpoints) = scc(Protocol::Sections, 3);
    assert_eq!(world.next(), Some(A));
    let a = &endpoints[0];
    assert_eq!(send(a, B, Class::Data, 8), Ok(()));
    assert_eq!(send(a, B, Class::Data, 8), Err(SendError::Full));
    assert_eq!(send_block(a, B, 8), Err(SendError::Full));
    assert_eq!(send(a, B, Class::Control, 8), Ok(()));
    assert_eq!(send(a, C, Class::Data, 8), Ok(()));
}

/// The first place is refused by the second one, whose answer then comes while the first still has its turn, and in
/// the same turn looks whether the third one has answered; gives whether it can send to the second one in a later turn.
fn refused_then_looked(protocol: Protocol) -> bool {
    let (world, endpoints) = scc(protocol, 3);
    let a = &endpoints[0];
    let (mut filled, mut looked) = (None, false);
    while let Some(place) = world.next() {
        let turn = match place {
            A if filled.is_none() => {
                while send(a, B, Class::Data, 8).is_ok() {}
                while send(a, C, Class::Control, 8).is_ok() {}
                filled = Some(world.now(A));
                Turn::Busy
            }
            A if world.report().messages == 0 => {
                a.work(10);
                Turn::Busy
            }
            A if !looked => {
                assert_eq!(send(a, B, Class::Data, 8), Err(SendError::Full), "{protocol}: too early");
                a.work(10_000);
                let abandoned = a.send(C, Class::Control, HandlerId(1), 8, &mut |_| None);
                assert_eq!(abandoned, Err(SendError::Full), "{protocol}");
                looked = true;
                IDLE
            }
            A => return send(a, B, Class::Data, 8).is_ok(),
            // It takes nothing before the first place has filled its buffers.
            B if filled.is_none_or(|time| world.now(B) <= time) => {
                endpoints[1].work(100);
                Turn::Busy
            }
            B => {
                take(&endpoints[1]);
                IDLE
            }
            _ => IDLE,
        };
        world.end_turn(place, turn);
    }
    false
}

#[test]
fn whoever_is_refused_is_woken_although_a_later_look_of_the_same_turn_could_have_seen_its_credit() {
    for protocol in BUFFERED {
        assert!(refused_then_looked(protocol), "{protocol}: never woken");
    }
}

#[test]
fn a_place_that_is_killed_while_it_is_refused_gets_no_turn_any_more() {
    for protocol in BUFFERED {
        let (world, endpoints) = scc(protocol, 2);
        assert_eq!(world.next(), Some(A));
        while send(&endpoints[0], B, Class::Data, 8).is_ok() {}
        world.end_turn(A, IDLE);
        world.kill(A);
        while let Some(place) = world.next() {
            assert_eq!(place, B, "{protocol}: the dead have turns");
            take(&endpoints[1]);
            world.end_turn(B, IDLE);
        }
    }
}

#[test]
fn the_same_messages_take_another_time_by_each_protocol_and_the_same_time_again() {
    let time = |protocol| one_message(protocol, 12, 300).ledgers[11].total();
    let times = BUFFERED.map(time);
    assert_eq!(times, BUFFERED.map(time));
    assert!(times[0] != times[1] && times[1] != times[2] && times[2] != times[0], "{times:?}");
    assert!(times.iter().all(|time| *time > Picoseconds::ZERO));
}

#[test]
fn a_buffer_that_is_too_small_says_what_the_protocol_needs() {
    for (protocol, least) in [(Protocol::RcceX10, 100), (Protocol::Sections, 144)] {
        let with = |lines| World::with_protocol(48, costs().with_buffer_lines(lines), protocol, 0);
        assert!(with(least).is_ok());
        assert_eq!(with(least - 1).err(), Some(Misfit::Buffer { lines: least - 1, needed: least }));
    }
}

#[test]
fn a_protocol_of_buffers_needs_buffers_and_one_of_packets_needs_packets() {
    let torus = Costs::of(&Chip::find("bluegene-p").unwrap()).unwrap();
    for protocol in BUFFERED {
        assert_eq!(World::with_protocol(2, torus.clone(), protocol, 0).map(|_| ()), Err(Misfit::NoBuffers));
    }
    assert_eq!(World::with_protocol(2, costs(), Protocol::Packets, 0).map(|_| ()), Err(Misfit::NoPackets));
    assert_eq!((costs().default_protocol(), torus.default_protocol()), (Protocol::Isles, Protocol::Packets));
}

#[test]
fn thousands_of_places_pass_a_message_on_and_two_runs_are_equal() {
    const PLACES: u32 = 5_000;
    let run = || {
        let costs = Costs::of(&Chip::find("bluegene-p").unwrap()).unwrap();
        let world = World::new(PLACES, costs, 0).unwrap();
        let endpoints: Vec<_> = (0..PLACES).map(|place| world.endpoint(PlaceId(place))).collect();
        let mut begun = false;
        while let Some(place) = world.next() {
            let here = &endpoints[place.index()];
            let told = here.progress(Inbound::All, &mut |_| ()) > 0;
            if told || (place.0 == 0 && !std::mem::replace(&mut begun, true)) {
                for child in (2 * place.0 + 1..2 * place.0 + 3).filter(|child| *child < PLACES) {
                    send(here, PlaceId(child), Class::Data, 100).unwrap();
                }
            }
            world.end_turn(place, IDLE);
        }
        world.report()
    };
    let report = run();
    assert_eq!(report.messages, u64::from(PLACES) - 1);
    assert_eq!(run(), report);
}
