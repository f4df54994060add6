//! Asynchronous broadcasts: cores forward messages in interrupts, whatever their places are doing.

use isles_chip::Chip;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, Multicast, PlaceId, SendError, Work, WorkModel};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, Costs, Protocol, ProtocolConfig, TimeCategory, TurnOutcome, WorldError,
};
use std::panic::Location;
use std::time::Duration;

const IDLE: TurnOutcome = TurnOutcome::Idle { due: None };
const ROOT: PlaceId = PlaceId(0);

/// Cycles for which a place computes without polling: a hundred times the duration of a broadcast.
const LONG: u64 = 3_000_000;

/// The same at 533 MHz.
const COMPUTED: Duration = Duration::from_nanos(LONG * 1_876 / 1_000);

/// Maximum number of unread messages of one sender and class at a place, and a number above it.
const UNREAD_MAX: u32 = 16;
const MORE: u32 = UNREAD_MAX + 8;

fn costs() -> Costs {
    Costs::of(&Chip::find("scc").unwrap()).unwrap()
}

fn world(places: u32, relays: Option<u32>) -> (ChipWorld, Vec<ChipEndpoint>) {
    let wiring = ProtocolConfig { protocol: Protocol::Doorbell, relays };
    let world = ChipWorld::with_protocol(places, costs(), wiring, 0).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

/// Sends a chunk to all others.
fn broadcast(endpoint: &ChipEndpoint) -> Result<(), SendError> {
    let others: Vec<_> =
        (0..endpoint.places()).map(PlaceId).filter(|place| *place != endpoint.here()).collect();
    endpoint.send_to_all(&others, Class::Data, HandlerId(1), &[7; 512])
}

/// Sends one broadcast while the second place computes. Returns the time after which each of the others received it,
/// and the total handling time of the second place.
fn beside_one_that_computes(relays: Option<u32>) -> (Vec<Duration>, Picoseconds) {
    let (world, endpoints) = world(8, relays);
    let (mut found, mut has_begun) = (vec![Duration::ZERO; 8], [false; 8]);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        let is_first = !std::mem::replace(&mut has_begun[place.index()], true);
        match place {
            ROOT if is_first => broadcast(endpoint).unwrap(),
            PlaceId(1) if is_first => endpoint.work(&Work::new().cycles(LONG), Location::caller()),
            _ => {}
        }
        if endpoint.progress(Inbound::All, &mut |_| ()) > 0 {
            found[place.index()] = world.now(place);
        }
        world.end_turn(place, IDLE);
    }
    (found, world.report().ledgers[1].time(TimeCategory::Handling))
}

#[test]
fn a_core_passes_on_while_its_place_computes_and_the_place_loses_that_time() {
    // With one child per place, the second place forwards everything.
    let (found, handling) = beside_one_that_computes(Some(1));
    assert!(found[2..].iter().all(|found| *found < COMPUTED / 10), "{found:?}");
    assert!(found[1] > COMPUTED, "the place itself looks when it has computed");
    let (_, without) = beside_one_that_computes(None);
    assert!(handling > without + Picoseconds(5_000_000), "{handling} {without}");
}

#[test]
fn places_that_wait_lose_nothing_by_what_their_cores_pass_on() {
    let (world, endpoints) = world(8, Some(1));
    let mut has_begun = false;
    while let Some(place) = world.next() {
        if place == ROOT && !std::mem::replace(&mut has_begun, true) {
            broadcast(&endpoints[0]).unwrap();
        }
        endpoints[place.index()].progress(Inbound::All, &mut |_| ());
        world.end_turn(place, IDLE);
    }
    let report = world.report();
    let handling = |place: usize| report.ledgers[place].time(TimeCategory::Handling);
    assert_eq!(
        (1..8).map(handling).collect::<Vec<_>>(),
        vec![handling(7); 7],
        "only what it takes to take it"
    );
}

#[test]
fn a_sender_is_refused_when_much_of_it_lies_unread_and_goes_on_when_it_is_read() {
    let (world, endpoints) = world(4, Some(2));
    let (mut sent, mut sent_before, mut ignored, mut taken) = (0, 0, 0, 0);
    let mut turns = [0; 4];
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        turns[place.index()] += 1;
        if place == PlaceId(3) && ignored < 100 {
            endpoint.work(&Work::new().cycles(10_000), Location::caller());
            (ignored, sent_before) = (ignored + 1, sent);
            world.end_turn(place, TurnOutcome::Busy);
            continue;
        }
        let arrived = endpoint.progress(Inbound::All, &mut |_| ());
        taken += if place == PlaceId(3) { arrived as u32 } else { 0 };
        while place == ROOT && sent < 3 * UNREAD_MAX && broadcast(endpoint).is_ok() {
            sent += 1;
        }
        world.end_turn(place, IDLE);
    }
    assert_eq!((sent_before, sent, taken), (UNREAD_MAX, 3 * UNREAD_MAX, 3 * UNREAD_MAX));
    assert!(turns[0] < 20, "who waits for receipts has no turn before there is one: {}", turns[0]);
}

#[test]
fn what_the_chip_or_the_protocol_does_not_have_is_said() {
    let error = |chip: &str, protocol, relays| {
        let costs = Costs::of(&Chip::find(chip).unwrap()).unwrap();
        costs.check_protocol_config(ProtocolConfig { protocol, relays: Some(relays) }, 48).err()
    };
    assert_eq!(error("scc", Protocol::Doorbell, 7), None);
    assert_eq!(error("scc", Protocol::RcceX10, 7), Some(WorldError::NoRelays));
    assert!(matches!(error("scc", Protocol::Doorbell, 47), Some(WorldError::Buffer { lines: 256, .. })));
    assert_eq!(error("bluegene-p", Protocol::Packets, 2), Some(WorldError::NoRelays));
}

#[test]
fn its_lines_are_taken_from_those_of_other_messages() {
    let longest = |relays| world(48, relays).1[0].limits().inline_bytes_max;
    assert_eq!((longest(None), longest(Some(7))), (576, 288));
}

/// The first place sends the maximum number of messages to the second, which reads them after `delay` cycles. Meanwhile
/// the first place computes for 2,000,000 cycles; then it sends one more to the second and one to the third. Returns
/// the number sent to each.
fn two_wants(delay: u64) -> [u32; 2] {
    let (world, endpoints) = world(3, Some(2));
    let send = |to| {
        u32::from(endpoints[0].send_to_all(&[PlaceId(to)], Class::Data, HandlerId(1), &[7; 512]).is_ok())
    };
    let (mut has_begun, mut sent) = ([false; 3], [0; 2]);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        let is_first = !std::mem::replace(&mut has_begun[place.index()], true);
        if is_first && place.0 < 2 {
            if place == ROOT {
                sent[0] = (0..UNREAD_MAX).map(|_| send(1)).sum();
            }
            endpoint
                .work(&Work::new().cycles(if place == ROOT { 2_000_000 } else { delay }), Location::caller());
            world.end_turn(place, TurnOutcome::Busy);
            continue;
        }
        endpoint.progress(Inbound::All, &mut |_| ());
        if place == ROOT {
            sent[0] += if sent[0] <= UNREAD_MAX { send(1) } else { 0 };
            sent[1] += if sent[1] < 1 { send(2) } else { 0 };
        }
        world.end_turn(place, IDLE);
    }
    sent
}

#[test]
fn who_was_refused_and_could_then_send_to_another_is_woken_when_there_is_room() {
    // With some of these delays the acknowledgement is written before the sender polls again, and arrives after that.
    let lost: Vec<_> = (1_950_000..2_050_000)
        .step_by(2_000)
        .filter(|delay| two_wants(*delay) != [UNREAD_MAX + 1, 1])
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn control_goes_to_a_place_that_takes_no_data_before_it() {
    let (world, endpoints) = world(3, Some(2));
    let (mut data, mut control, mut taken) = (0, 0, 0);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        assert!(
            world.now(place) < Duration::from_millis(100),
            "{data} of data were sent, {control} of control"
        );
        if place == ROOT {
            endpoint.progress(Inbound::All, &mut |_| ());
            let send = |class| {
                let sent = endpoint.send_to_all(&[PlaceId(1), PlaceId(2)], class, HandlerId(1), &[7; 100]);
                u32::from(sent.is_ok())
            };
            data += (data..MORE).map(|_| send(Class::Data)).sum::<u32>();
            control += if control == 0 { send(Class::Control) } else { 0 };
        } else {
            let inbound = if taken < 2 { Inbound::Control } else { Inbound::All };
            taken += endpoint.progress(inbound, &mut |_| ());
        }
        world.end_turn(place, IDLE);
    }
    assert_eq!((data, control, taken), (MORE, 1, 2 * (MORE as usize + 1)));
}

/// Returns the time at which the last of eight places has `chunks` chunks, while the second one computes.
fn all_chunks_after(chunks: u32) -> Duration {
    let (world, endpoints) = world(8, Some(7));
    let (mut has_begun, mut sent, mut got, mut last) = (false, 0, 0, Duration::ZERO);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        if place == PlaceId(1) && !std::mem::replace(&mut has_begun, true) {
            endpoint.work(&Work::new().cycles(LONG), Location::caller());
        }
        let arrived = endpoint.progress(Inbound::All, &mut |_| ()) as u32;
        if place == PlaceId(7) && arrived > 0 {
            (got, last) = (got + arrived, world.now(place));
        }
        while place == ROOT && sent < chunks && broadcast(endpoint).is_ok() {
            sent += 1;
        }
        world.end_turn(place, IDLE);
    }
    assert_eq!(got, chunks);
    last
}

#[test]
fn sixteen_chunks_go_past_a_member_that_computes_and_the_next_one_waits_for_it() {
    assert!(all_chunks_after(UNREAD_MAX) < COMPUTED / 10);
    assert!(all_chunks_after(UNREAD_MAX + 1) > COMPUTED);
}
