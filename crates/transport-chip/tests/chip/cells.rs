//! The protocol `doorbell` with few places: messages in the line of flags, and messages in halves
//! (`docs/chip/protocols/doorbell.md`).

use isles_chip::Chip;
use isles_transport::random::Random;
use isles_transport::{Arrival, Class, Endpoint, HandlerId, Inbound, PlaceId};
use isles_transport_chip::{ChipEndpoint, ChipWorld, Costs, Report, TurnOutcome};
use std::collections::VecDeque;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);
const IDLE: TurnOutcome = TurnOutcome::Idle { due: None };

fn scc(places: u32, seed: u64) -> (ChipWorld, Vec<ChipEndpoint>) {
    let world = ChipWorld::new(places, Costs::of(&Chip::find("scc").unwrap()).unwrap(), seed).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

fn send(from: &ChipEndpoint, to: PlaceId, class: Class, len: usize) {
    from.send(to, class, HandlerId(1), len, &mut |_| Some(len)).unwrap();
}

/// Returns the lines that the first of `places` places writes for each of these messages to the second one, before an
/// answer.
fn lines_written(places: u32, messages: &[(Class, usize)]) -> Vec<u64> {
    let (world, endpoints) = scc(places, 0);
    assert_eq!(world.next(), Some(A));
    let mut before = 0;
    let written = |(class, len): &(Class, usize)| {
        send(&endpoints[0], B, *class, *len);
        let now = world.report().lines.written;
        now - std::mem::replace(&mut before, now)
    };
    messages.iter().map(written).collect()
}

#[test]
fn a_header_lies_in_the_flag_and_a_short_message_with_it() {
    let data = |places, len| lines_written(places, &[(Class::Data, len)])[0];
    // The line of flags, and further lines for bytes that do not fit there.
    assert_eq!([0, 24, 25, 32, 33].map(|len| data(2, len)), [1, 1, 2, 2, 3]);
    assert_eq!([8, 9, 32].map(|len| data(3, len)), [1, 2, 2]);
    assert_eq!([2, 3, 32].map(|len| data(4, len)), [1, 2, 2]);
    assert_eq!([0, 1, 32].map(|len| data(5, len)), [1, 2, 2]);
    // With more places, each has only a byte or two, so the header is in the ring.
    assert_eq!([0, 24, 25].map(|len| data(6, len)), [2, 2, 3]);
}

#[test]
fn of_messages_that_are_not_credited_one_has_the_cell() {
    let (control, data) = ((Class::Control, 24), (Class::Data, 24));
    assert_eq!(lines_written(2, &[data, data, control, control]), [1, 2, 2, 2]);
    assert_eq!(lines_written(2, &[control, data, data]), [1, 2, 2]);
    assert_eq!(lines_written(2, &[(Class::Data, 1_024), data, control]), [34, 2, 2]);
}

#[test]
fn a_cell_is_free_again_when_its_entry_is_credited() {
    let (world, endpoints) = scc(2, 0);
    let (mut written, mut thrown) = (0, 0);
    while let Some(place) = world.next() {
        let here = &endpoints[place.index()];
        let has_ball = here.progress(Inbound::All, &mut |_| ()) > 0 || (place == A && thrown == 0);
        if has_ball && thrown < 10 {
            let before = world.report().lines.written;
            send(here, if place == A { B } else { A }, Class::Data, 24);
            written += world.report().lines.written - before;
            thrown += 1;
        }
        world.end_turn(place, IDLE);
    }
    assert_eq!((thrown, written), (10, 10), "each answer credits what it answers");
}

#[test]
fn a_long_message_goes_in_halves() {
    // A flag for each half; the header is in the cell.
    assert_eq!(lines_written(2, &[(Class::Data, 1_024)]), [32 + 2]);
    assert_eq!(lines_written(2, &[(Class::Data, 992)]), [31 + 1]);
    // In slots of the sender's buffer, with a line in the ring for each half.
    assert_eq!(lines_written(6, &[(Class::Data, 1_024)]), [32 + 2 * 2]);
    // Only one slot is left for a third message, which is not split.
    assert_eq!(
        lines_written(6, &[(Class::Data, 700), (Class::Data, 1_024), (Class::Data, 1_024)]),
        [24, 36, 34]
    );
}

/// Lets all places send to each other at random; checks that every message is intact, and that the messages of each
/// pair and class arrive in order.
fn traffic(places: u32, seed: u64) -> Report {
    let (world, endpoints) = scc(places, seed);
    let lane = |from: PlaceId, to: PlaceId, class: Class| {
        ((from.0 * places + to.0) * 2 + u32::from(class == Class::Data)) as usize
    };
    let mut under_way = vec![VecDeque::new(); (2 * places * places) as usize];
    let mut random = Random::new(seed);
    let mut left = vec![60; places as usize];
    while let Some(place) = world.next() {
        let (here, left) = (&endpoints[place.index()], &mut left[place.index()]);
        let mut worked = here.progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { panic!("nobody dies") };
            let sent = under_way[lane(message.source, place, message.class)].pop_front();
            assert_eq!(sent.as_deref(), Some(message.body.bytes()));
        });
        for _ in 0..random.index(6).min(*left) {
            let to = PlaceId((place.0 + 1 + random.below(u64::from(places) - 1) as u32) % places);
            let class = if random.below(2) == 0 { Class::Control } else { Class::Data };
            let len = [0, 8, 24, 32, 200, 600][random.index(6)];
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let fill = &mut |room: &mut [u8]| {
                room[..len].copy_from_slice(&bytes);
                Some(len)
            };
            if here.send(to, class, HandlerId(1), len, fill).is_ok() {
                under_way[lane(place, to, class)].push_back(bytes);
                *left -= 1;
                worked += 1;
            }
        }
        world.end_turn(place, if worked > 0 || *left > 0 { TurnOutcome::Busy } else { IDLE });
    }
    assert!(under_way.iter().all(VecDeque::is_empty), "none is lost");
    world.report()
}

#[test]
fn no_entry_is_lost_or_passes_another_one() {
    for (places, seed) in (2..=6).flat_map(|places| (0..8).map(move |seed| (places, seed))) {
        assert_eq!(traffic(places, seed).messages, 60 * u64::from(places));
    }
}
