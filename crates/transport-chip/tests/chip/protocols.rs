//! Costs and refusals of the protocols of the literature. `conformance.rs` tests the guarantees of all protocols.

use isles_chip::Chip;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, SendError, Work, WorkModel};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, Costs, Protocol, Report, TimeCategory, TurnOutcome, WorldError,
};
use std::panic::Location;
use std::time::Duration;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);
const C: PlaceId = PlaceId(2);

const IDLE: TurnOutcome = TurnOutcome::Idle { due: None };

/// Nanoseconds of the SCC at 533/800/800: a read and a write of a line in the same tile, and 300 cycles of a core.
const READ: f64 = 105.0;
const WRITE: f64 = 145.0;
const HOP: f64 = 5.0;
const HANDLE: f64 = 562.5;

fn costs() -> Costs {
    Costs::of(&Chip::find("scc").unwrap()).unwrap()
}

fn scc(protocol: Protocol, places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    open(costs(), protocol, places)
}

fn open(costs: Costs, protocol: Protocol, places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    let world = ChipWorld::with_protocol(places, costs, protocol, 0).unwrap();
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

/// Sends one message from the first to the last of `places` places in an otherwise idle world.
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

/// Returns the nanoseconds that the first and the last place spend on handling and copying.
fn spent(report: &Report) -> [f64; 2] {
    let last = report.ledgers.len() - 1;
    [0, last].map(|place| {
        let time = |category| report.ledgers[place].time(category).0 as f64 / 1e3;
        time(TimeCategory::Handling) + time(TimeCategory::Copying)
    })
}

/// Lets two places answer each other a number of times with messages of a line, and returns the lines written. With
/// seven places there are no cells, so each message takes a separate line.
fn answers(number: u32) -> u64 {
    let (world, endpoints) = scc(Protocol::Doorbell, 7);
    let mut left = number;
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        let begins = place == A && left == number;
        if (take(endpoint) > 0 || begins) && left > 0 {
            send(endpoint, PlaceId(1 - place.0), Class::Control, 16).unwrap();
            left -= 1;
        }
        world.end_turn(place, IDLE);
    }
    assert_eq!(world.report().messages, u64::from(number));
    world.report().lines.written
}

#[test]
fn an_answer_tells_what_was_taken_so_that_only_the_last_message_is_credited_by_itself() {
    // Each message takes a line and a line of flags.
    assert_eq!([1, 2, 100].map(answers), [2 + 1, 4 + 1, 200 + 1]);
}

#[test]
fn rcce_x10_writes_at_home_and_fetches_from_the_sender() {
    let far = 8.0 * HOP;
    // 320 bytes are ten lines. The receiver clears its flag, fetches and answers; the sender waits for the answer and
    // clears its own flag.
    let [sender, receiver] = spent(&one_message(Protocol::RcceX10, 47, 320));
    assert_eq!(sender, HANDLE + 10.0 * WRITE + WRITE + far + WRITE);
    assert_eq!(receiver, HANDLE + WRITE + 10.0 * (READ + far) + WRITE + far);
}

#[test]
fn an_rcce_x10_sender_has_no_turn_until_its_receiver_answers_and_serves_others_meanwhile() {
    let (world, endpoints) = scc(Protocol::RcceX10, 3);
    let (mut turns, mut served, mut taken) = ([0; 3], None, None);
    while let Some(place) = world.next() {
        let (endpoint, turn) = (&endpoints[place.index()], turns[place.index()]);
        turns[place.index()] += 1;
        match (place, turn) {
            (A, 0) => send(endpoint, B, Class::Data, 8).unwrap(),
            (B, 0) => endpoint.work(&Work::new().cycles(1_000_000), Location::caller()),
            (C, 0) => send(endpoint, A, Class::Data, 8).unwrap(),
            (C, 1) => served = Some(world.now(C)),
            (A, 1) => {
                assert!(world.now(A) > world.now(B) - Duration::from_micros(100), "its send is not over");
                assert_eq!(take(endpoint), 1, "what came meanwhile was kept");
                taken = Some(world.now(A));
            }
            _ => drop(take(endpoint)),
        }
        world.end_turn(place, if (place, turn) == (B, 0) { TurnOutcome::Busy } else { IDLE });
    }
    assert!(served.unwrap() < Duration::from_micros(100), "{served:?}");
    assert!(taken.unwrap() > Duration::from_micros(1_800) && world.report().messages == 2, "{taken:?}");
}

#[test]
fn sections_are_written_at_the_receiver_and_read_at_home() {
    let far = 8.0 * HOP;
    // Three lines of data are one chunk; the header travels with them, and the answer returns.
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
        let polling = world.report().ledgers[0].time(TimeCategory::Polling);
        assert!(polling.0.abs_diff((expected * 1e3) as u64) <= 1, "{protocol}: {polling:?}");
    }
}

#[test]
fn an_rcce_x10_sender_sends_one_message_after_the_other_before_it_does_anything_else() {
    let (world, endpoints) = scc(Protocol::RcceX10, 3);
    assert_eq!(world.next(), Some(A));
    let a = &endpoints[0];
    assert_eq!(send(a, B, Class::Data, 8), Ok(()));
    // One message of each class may be in flight to each receiver; they share the buffer, so others must wait.
    assert_eq!(send(a, B, Class::Data, 8), Err(SendError::Full));
    assert_eq!(send_block(a, C, 8), Ok(()));
    assert_eq!(send(a, C, Class::Data, 8), Err(SendError::Full));
    assert_eq!(send(a, C, Class::Control, 8), Ok(()));
    world.end_turn(A, TurnOutcome::Busy);
    let mut taken = [0; 3];
    while let Some(place) = world.next() {
        if place == A {
            assert_eq!(taken, [0, 1, 2], "it has a turn although not all is answered");
        }
        taken[place.index()] += take(&endpoints[place.index()]);
        world.end_turn(place, IDLE);
    }
    assert_eq!(taken, [0, 1, 2]);
}

#[test]
fn a_buffer_has_a_section_for_each_core_of_the_chip_or_for_each_place_that_runs() {
    // 9 lines: three chunks of three lines, each answered, or one chunk of all lines.
    let time = |protocol| one_message(protocol, 2, 288).ledgers[0].total();
    assert!(time(Protocol::Sections) > time(Protocol::SectionsByPlaces));
    // With 48 places, both have the same number of sections.
    let all = |protocol| one_message(protocol, 48, 288).ledgers[0].total();
    assert_eq!(all(Protocol::Sections), all(Protocol::SectionsByPlaces));
}

#[test]
fn sections_in_memory_are_slower_for_short_messages_and_mixed_ones_are_never_the_slower_ones() {
    let time = |protocol, bytes| one_message(protocol, 48, bytes).ledgers[0].total();
    let [buffers, memory, mixed] = [Protocol::Sections, Protocol::SectionsMemory, Protocol::SectionsMixed]
        .map(|protocol| {
            // 48 sections have three lines of data.
            [32, 96, 97, 512].map(|bytes| time(protocol, bytes))
        });
    assert_eq!((mixed[..2].to_vec(), mixed[2..].to_vec()), (buffers[..2].to_vec(), memory[2..].to_vec()));
    assert!((0..2).all(|length| buffers[length] < memory[length]), "{buffers:?} {memory:?}");
}

#[test]
fn mpi_over_sockets_takes_its_calls_and_a_second_copy_more_than_the_sockets() {
    let [[sender, receiver], [mpi_sender, mpi_receiver]] =
        [Protocol::Sockets, Protocol::MpiSockets].map(|protocol| spent(&one_message(protocol, 2, 1_024)));
    let cycles = |number: f64| number * HANDLE / 300.0;
    // A call and the lines of a longer header.
    let more = mpi_sender - sender;
    assert!((cycles(1_500.0)..cycles(2_000.0)).contains(&more), "{mpi_sender} {sender}");
    // A call and a copy of 33 lines.
    assert_eq!(mpi_receiver - receiver, cycles(1_500.0 + 33.0 * 100.0));
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

/// The second place refuses a send of the first one. Its answer arrives during the same turn, in which the first place
/// also checks for an answer of the third one. Returns `true` if the first place can send to the second one in a later
/// turn.
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
                TurnOutcome::Busy
            }
            A if world.report().messages == 0 => {
                a.work(&Work::new().cycles(10), Location::caller());
                TurnOutcome::Busy
            }
            A if !looked => {
                assert_eq!(send(a, B, Class::Data, 8), Err(SendError::Full), "{protocol}: too early");
                a.work(&Work::new().cycles(10_000), Location::caller());
                let abandoned = a.send(C, Class::Control, HandlerId(1), 8, &mut |_| None);
                assert_eq!(abandoned, Err(SendError::Full), "{protocol}");
                looked = true;
                IDLE
            }
            A => return send(a, B, Class::Data, 8).is_ok(),
            // B receives nothing until A has filled its buffers.
            B if filled.is_none_or(|time| world.now(B) <= time) => {
                endpoints[1].work(&Work::new().cycles(100), Location::caller());
                TurnOutcome::Busy
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
    // A sender with a protocol of RCCE has no turn until the answer has arrived.
    let stands = |protocol: &Protocol| matches!(protocol, Protocol::Rcce | Protocol::RcceX10);
    for protocol in Protocol::OF_BUFFERS.into_iter().filter(|protocol| !stands(protocol)) {
        assert!(refused_then_looked(protocol), "{protocol}: never woken");
    }
}

#[test]
fn a_place_that_is_killed_while_it_is_refused_gets_no_turn_any_more() {
    for protocol in Protocol::OF_BUFFERS {
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
    // A message that fits in a section of the buffer, and one that does not.
    let of = |protocol, bytes| one_message(protocol, 12, bytes).ledgers[11].total();
    let time = |protocol| of(protocol, 60) + of(protocol, 300);
    let times = Protocol::OF_BUFFERS.map(time);
    assert_eq!(times, Protocol::OF_BUFFERS.map(time));
    let different: std::collections::BTreeSet<_> = times.iter().collect();
    assert_eq!(different.len(), times.len(), "{times:?}");
    assert!(times.iter().all(|time| *time > Picoseconds::ZERO));
}

#[test]
fn a_buffer_that_is_too_small_says_what_the_protocol_needs() {
    for (protocol, places, least) in [
        (Protocol::RcceX10, 48, 100),
        (Protocol::Sections, 48, 144),
        (Protocol::Sections, 2, 144),
        (Protocol::SectionsByPlaces, 2, 6),
    ] {
        let with = |lines| ChipWorld::with_protocol(places, costs().with_buffer_lines(lines), protocol, 0);
        assert!(with(least).is_ok());
        assert_eq!(with(least - 1).err(), Some(WorldError::Buffer { lines: least - 1, needed: least }));
    }
}

#[test]
fn a_protocol_of_buffers_needs_buffers_and_one_of_packets_needs_packets() {
    let torus = Costs::of(&Chip::find("bluegene-p").unwrap()).unwrap();
    for protocol in Protocol::OF_BUFFERS {
        assert_eq!(
            ChipWorld::with_protocol(2, torus.clone(), protocol, 0).map(|_| ()),
            Err(WorldError::NoBuffers)
        );
    }
    assert_eq!(
        ChipWorld::with_protocol(2, costs(), Protocol::Packets, 0).map(|_| ()),
        Err(WorldError::NoPackets)
    );
    assert_eq!(
        (costs().default_protocol(), torus.default_protocol()),
        (Protocol::Doorbell, Protocol::Packets)
    );
}

#[test]
fn thousands_of_places_pass_a_message_on_and_two_runs_are_equal() {
    const PLACES: u32 = 5_000;
    let run = || {
        let costs = Costs::of(&Chip::find("bluegene-p").unwrap()).unwrap();
        let world = ChipWorld::new(PLACES, costs, 0).unwrap();
        let endpoints: Vec<_> = (0..PLACES).map(|place| world.endpoint(PlaceId(place))).collect();
        let mut begun = false;
        while let Some(place) = world.next() {
            let here = &endpoints[place.index()];
            let printed = here.progress(Inbound::All, &mut |_| ()) > 0;
            if printed || (place.0 == 0 && !std::mem::replace(&mut begun, true)) {
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

#[test]
fn rcce_puts_at_home_fetches_from_the_sender_and_takes_two_registers() {
    let far = 8.0 * HOP;
    // A register: 57.4 cycles of a core and 8.4 of the mesh per hop. A call of the library: 158 cycles; a line: 66.
    let (register, far_register) = (107.625, 107.625 + 8.0 * 10.5);
    let (call, line) = (296.25, 123.75);
    let [sender, receiver] = spent(&one_message(Protocol::Rcce, 47, 320));
    let close = |ours: f64, expected: f64| assert!((ours - expected).abs() < 0.01, "{ours}, {expected}");
    // Both registers; the chunk; the flag; later the cleared answer.
    close(
        sender,
        register + far_register + call + 10.0 * (line + WRITE) + (call + WRITE + far) + (call + WRITE),
    );
    // The cleared flag; the chunk; the answer; both registers.
    let flags = (call + WRITE) + (call + WRITE + far);
    close(receiver, flags + call + 10.0 * (line + READ + far) + register + far_register);
}

#[test]
fn a_sender_of_rcce_does_nothing_until_it_is_answered_and_then_computes_what_it_began() {
    let (world, endpoints) = scc(Protocol::Rcce, 2);
    let [a, b] = [&endpoints[0], &endpoints[1]];
    let (mut turns_of_a, mut answered) = (0, None);
    while let Some(place) = world.next() {
        if place == A {
            turns_of_a += 1;
            if turns_of_a == 1 {
                send(a, B, Class::Data, 8).unwrap();
                a.work(&Work::new().cycles(533_333), Location::caller()); // a millisecond
                assert!(world.now(A) < Duration::from_micros(10), "it waits first");
            } else {
                let free = answered.expect("no turn before the answer");
                assert!(world.now(A) > free + Duration::from_micros(999), "then it computes");
                return;
            }
        } else if world.now(B) < Duration::from_millis(5) {
            b.work(&Work::new().cycles(100_000), Location::caller());
        } else {
            take(b);
            answered = Some(world.now(B));
        }
        world.end_turn(place, if place == B && answered.is_none() { TurnOutcome::Busy } else { IDLE });
    }
    panic!("never answered");
}

#[test]
fn a_ring_of_rcce_senders_that_all_send_first_does_not_stand_still() {
    const PLACES: u32 = 5;
    let (world, endpoints) = scc(Protocol::Rcce, PLACES);
    let (mut sent, mut got) = ([false; PLACES as usize], [0; PLACES as usize]);
    while let Some(place) = world.next() {
        let here = &endpoints[place.index()];
        if !sent[place.index()] {
            // Longer than a chunk, so that there is more than one rendezvous.
            sent[place.index()] = send_block(here, PlaceId((place.0 + 1) % PLACES), 20_000).is_ok();
        }
        got[place.index()] += take(here);
        world.end_turn(place, IDLE);
    }
    assert_eq!((sent, got), ([true; PLACES as usize], [1; PLACES as usize]));
}

/// Returns the time for which the first of two places waits for room while it sends many messages to the other, which
/// computes for ten milliseconds, and the time for which the receiver computed.
fn beside_a_computing_receiver(protocol: Protocol) -> [Duration; 2] {
    let (world, endpoints) = scc(protocol, 2);
    let (mut left, mut done, mut computed) = (100, Duration::ZERO, None);
    while let Some(place) = world.next() {
        let turn = match place {
            A => {
                take(&endpoints[0]);
                while left > 0 && send(&endpoints[0], B, Class::Data, 64).is_ok() {
                    left -= 1;
                    done = world.now(A);
                }
                IDLE
            }
            _ if computed.is_none() => {
                endpoints[1].work(&Work::new().cycles(5_333_333), Location::caller());
                computed = Some(Duration::ZERO);
                TurnOutcome::Busy
            }
            _ => {
                take(&endpoints[1]);
                computed = computed.filter(|time| !time.is_zero()).or(Some(world.now(B)));
                IDLE
            }
        };
        world.end_turn(place, turn);
    }
    assert_eq!(world.report().messages, 100);
    [done, computed.unwrap()]
}

#[test]
fn whom_an_interrupt_calls_does_not_hold_up_who_sends_but_loses_time_itself() {
    let ten = Duration::from_millis(10);
    for protocol in [Protocol::Sockets, Protocol::Ring] {
        let [sent, computed] = beside_a_computing_receiver(protocol);
        assert!(sent < ten, "{protocol}: {sent:?}");
        assert!(computed > ten + ten / 20, "{protocol}: {computed:?}");
    }
    for protocol in [Protocol::RcceX10, Protocol::Sections, Protocol::Rcce] {
        let [sent, computed] = beside_a_computing_receiver(protocol);
        assert!(sent > ten, "{protocol}: {sent:?}");
        assert!(computed < ten + ten / 20, "{protocol}: {computed:?}");
    }
}

#[test]
fn who_waits_for_the_interrupt_of_the_ring_is_halted() {
    let report = one_message(Protocol::Ring, 2, 64);
    let time = |category| report.ledgers[1].time(category);
    assert!(time(TimeCategory::Sleeping) > Picoseconds(10_000_000), "{:?}", report.ledgers[1]);
    assert_eq!(time(TimeCategory::Waiting), Picoseconds::ZERO);
}
