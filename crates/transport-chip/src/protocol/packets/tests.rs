//! Tests of packets: their costs, their windows, and the order of messages.

use super::*;
use crate::cores::Costs;
use crate::placement::Placement;
use crate::protocol::inbox::MessageContent;
use crate::protocol::{Outgoing, ProtocolModel, Wakeups};
use isles_chip::Chip;
use isles_transport::random::Random;
use isles_transport::{AlignedBytes, HandlerId};
use proptest::prelude::*;

const A: PlaceId = PlaceId(0);

/// Nodes of four cores: the next node along x, then along y, then along z.
const NEIGHBOUR: PlaceId = PlaceId(4);
const FAR: PlaceId = PlaceId(4 * 32 * 3 + 5);

fn torus(places: u32) -> (Cores, Packets) {
    on(&Chip::find("bluegene-p").unwrap(), places)
}

fn on(chip: &Chip, places: u32) -> (Cores, Packets) {
    let costs = Costs::of(chip).unwrap();
    let packets = costs.packets().unwrap();
    let cores = Cores::new(costs.clone(), Placement::Linear.core_map(costs.topology(), places).unwrap());
    let packets = Packets::new(packets, places, TieBreak::new(0));
    (cores, packets)
}

fn out(from: PlaceId, to: PlaceId) -> Outgoing {
    Outgoing { from, to, class: Class::Data, handler: HandlerId(1) }
}

fn send(cores: &mut Cores, packets: &mut Packets, to: PlaceId, len: usize) -> Option<Picoseconds> {
    let fits = packets.has_room(cores, &out(A, to), len);
    fits.then(|| packets.send(cores, &out(A, to), MessageContent::Inline(Box::new(AlignedBytes::new(len)))))
        .flatten()
}

#[test]
fn up_to_four_packets_that_have_arrived_are_received_by_one_call() {
    let at = |time| Picoseconds(time);
    let mut call = ReceiveCall::default();
    // Five arrived packets take two calls; three more fit into the second one if they arrived before it began.
    let calls: Vec<u32> = (0..5).map(|_| call.take(1, at(10), at(20))).collect();
    assert_eq!(calls, [1, 0, 0, 0, 1]);
    assert_eq!(
        [call.take(1, at(20), at(30)), call.take(1, at(21), at(40)), call.take(3, at(21), at(40))],
        [0, 1, 0]
    );
    assert_eq!(
        [call.take(9, at(21), at(50)), call.take(3, at(21), at(60)), call.take(1, at(21), at(70))],
        [3, 0, 1]
    );
}

#[test]
fn a_message_costs_its_packets_its_way_and_its_flits() {
    let (mut cores, mut packets) = torus(600);
    // 150 cycles of 850 MHz; then 404 ns, 96 ns a hop, and 75.294 ns a flit of 32 bytes.
    let sent = Picoseconds(176_471);
    let short = send(&mut cores, &mut packets, NEIGHBOUR, 8).unwrap();
    assert_eq!((cores.now(A), short), (sent, sent + Picoseconds(500_000 + 75_294)));
    // 481 bytes and a header of 8 are three packets; the last one carries 9 bytes besides its own 16.
    let before = cores.now(A);
    let long = send(&mut cores, &mut packets, FAR, 481).unwrap();
    assert_eq!(cores.now(A), before + sent * 3);
    let hops =
        u64::from(cores.topology().hops(isles_chip::topology::TileId(0), isles_chip::topology::TileId(97)));
    assert_eq!(hops, 4);
    // Packets of eight flits pass the first link one after the other, more slowly than the core sends them.
    let flit = Picoseconds(75_294);
    assert_eq!(long, before + sent + flit * 16 + Picoseconds(404_000 + 96_000 * hops) + flit);
}

#[test]
fn what_cores_spend_may_grow_with_the_way() {
    let text = include_str!("../../../../../chips/bluegene-p.toml");
    let grown =
        text.replace("150 cycles of core", "1 us + 100 ns/hop").replace("600 cycles of core", "1 us/hop");
    assert_ne!(text, grown);
    let (mut cores, mut packets) = on(&Chip::parse("grown", &grown).unwrap(), 600);
    for (to, hops) in [(PlaceId(1), 0), (NEIGHBOUR, 1), (FAR, 4)] {
        let before = cores.now(A);
        let arrival = send(&mut cores, &mut packets, to, 8).unwrap();
        assert_eq!(cores.now(A) - before, Picoseconds(1_000_000 + 100_000 * hops));
        let started = cores.now(to);
        packets.take(&mut cores, to, arrival, false).unwrap();
        assert_eq!(cores.now(to) - started, Picoseconds(1_000_000 * hops));
    }
}

#[test]
fn a_block_holds_links_for_no_more_flits_than_a_message_of_its_length() {
    for len in [1, 8, 232, 233, 1_000, 3_832] {
        let (mut cores, mut packets) = torus(8);
        let arrival = send(&mut cores, &mut packets, NEIGHBOUR, len).unwrap();
        let as_message = (cores.now(A), arrival, cores.flit_hops());
        let (mut cores, mut packets) = torus(8);
        let mut wakeups = Wakeups::new();
        let content = MessageContent::Inline(Box::new(AlignedBytes::new(len)));
        packets.begin_block(&mut cores, &out(A, NEIGHBOUR), content, &mut wakeups);
        assert_eq!(wakeups.len(), 1);
        assert_eq!((cores.now(A), wakeups[0].1, cores.flit_hops()), as_message, "{len} bytes");
    }
}

#[test]
fn no_more_is_under_way_than_the_window_and_a_receipt_opens_it() {
    let (mut cores, mut packets) = torus(8);
    for number in 0..WINDOW {
        let to = PlaceId(1 + number % 7);
        assert!(send(&mut cores, &mut packets, to, 8).is_some(), "{number}");
    }
    let to_neighbour = (0..WINDOW).filter(|number| PlaceId(1 + number % 7) == NEIGHBOUR).count() as u32;
    assert!(send(&mut cores, &mut packets, NEIGHBOUR, 8).is_none());
    assert!(packets.has_room(&mut cores, &Outgoing { class: Class::Control, ..out(A, NEIGHBOUR) }, 8));
    let later = cores.now(A) + Picoseconds(100_000_000);
    cores.wait_until(NEIGHBOUR, later);
    let until = cores.now(NEIGHBOUR);
    assert!(packets.take(&mut cores, NEIGHBOUR, until, true).is_none(), "there is no control");
    let mut wakeups = Wakeups::new();
    for _ in 0..(WINDOW - RESERVE) / 7 {
        assert!(packets.take(&mut cores, NEIGHBOUR, until, false).is_some());
    }
    packets.return_credits(&mut cores, NEIGHBOUR, &mut wakeups);
    assert!(wakeups.is_empty(), "nobody has asked for a receipt of those");
    while packets.take(&mut cores, NEIGHBOUR, until, false).is_some() {}
    packets.return_credits(&mut cores, NEIGHBOUR, &mut wakeups);
    assert_eq!((wakeups.len(), wakeups[0].0), (1, A), "one receipt for all of them");
    cores.wait_until(A, later);
    assert!(send(&mut cores, &mut packets, PlaceId(1), 8).is_none(), "the receipt is not there yet");
    cores.set_present(wakeups[0].1);
    cores.wait_until(A, wakeups[0].1);
    assert!(send(&mut cores, &mut packets, NEIGHBOUR, 8).is_some());
    let sent =
        1 + (0..).take_while(|_| send(&mut cores, &mut packets, NEIGHBOUR, 8).is_some()).count() as u32;
    assert_eq!(sent, to_neighbour, "also those that went before anybody asked");
}

#[test]
fn packets_for_which_nobody_asked_never_take_all_of_a_window() {
    let (mut cores, mut packets) = torus(200);
    let mut least = WINDOW;
    // Each packet goes to a different place, which receives no other from `A`; requested acknowledgements still return.
    for number in 1..200 {
        assert!(send(&mut cores, &mut packets, PlaceId(number), 3_832).is_some(), "{number}");
        let later = cores.now(A) + Picoseconds(100_000_000);
        cores.wait_until(PlaceId(number), later);
        packets.take(&mut cores, PlaceId(number), later, false).unwrap();
        packets.return_credits(&mut cores, PlaceId(number), &mut Wakeups::new());
        let even_later = later + Picoseconds(100_000_000);
        cores.set_present(even_later);
        cores.wait_until(A, even_later);
        packets.read_acknowledgements(&mut cores, A);
        least = least.min(packets.place_states[0].free[Class::Data as usize]);
    }
    assert_eq!(least, RESERVE);
}

#[test]
fn messages_of_one_pair_arrive_in_the_order_of_their_sending_across_crossing_traffic() {
    let (mut cores, mut packets) = torus(1_024);
    let mut random = Random::new(3);
    let mut last = Picoseconds::ZERO;
    for _ in 0..20 {
        // Other packets on the same links, with earlier and later reservations.
        for _ in 0..20 {
            let from = PlaceId(4 * (1 + random.below(8) as u32));
            let ahead = cores.now(A) + Picoseconds(random.below(3_000_000));
            cores.wait_until(from, ahead);
            let out = out(from, PlaceId(40 + random.below(3) as u32));
            if packets.has_room(&mut cores, &out, 1_000) {
                packets.send(&mut cores, &out, MessageContent::Inline(Box::new(AlignedBytes::new(1_000))));
            }
        }
        let arrival = send(&mut cores, &mut packets, PlaceId(40), random.below(500) as usize).unwrap();
        assert!(arrival >= last, "{arrival} and {last}");
        last = arrival;
    }
}

#[test]
fn what_goes_to_a_place_that_is_gone_frees_the_window() {
    let (mut cores, mut packets) = torus(8);
    while send(&mut cores, &mut packets, NEIGHBOUR, 2_000).is_some() {}
    let until = cores.now(A) + Picoseconds(100_000_000);
    cores.wait_until(NEIGHBOUR, until);
    packets.take(&mut cores, NEIGHBOUR, until, false).unwrap();
    packets.abort_place(NEIGHBOUR);
    packets.forget_receiver(A, NEIGHBOUR);
    assert_eq!(packets.place_states[0].free, [WINDOW; 2]);
    assert!(!packets.has_pending_from(A, NEIGHBOUR));
    let mut wakeups = Wakeups::new();
    packets.return_credits(&mut cores, NEIGHBOUR, &mut wakeups);
    assert!(wakeups.is_empty(), "a receipt for what is settled");
}

#[test]
fn who_leaves_still_takes_what_waits_and_nobody_gets_a_receipt_twice() {
    let (mut cores, mut packets) = torus(8);
    for _ in 0..3 {
        send(&mut cores, &mut packets, NEIGHBOUR, 2_000).unwrap();
    }
    let until = cores.now(A) + Picoseconds(100_000_000);
    cores.wait_until(NEIGHBOUR, until);
    packets.take(&mut cores, NEIGHBOUR, until, false).unwrap();
    packets.forget_receiver(A, NEIGHBOUR);
    assert_eq!(packets.place_states[0].free, [WINDOW; 2]);
    assert!(packets.has_pending_from(A, NEIGHBOUR));
    while packets.take(&mut cores, NEIGHBOUR, until, false).is_some() {}
    let mut wakeups = Wakeups::new();
    packets.return_credits(&mut cores, NEIGHBOUR, &mut wakeups);
    cores.set_present(until * 2);
    packets.read_acknowledgements(&mut cores, A);
    assert_eq!((packets.place_states[0].free, wakeups.len()), ([WINDOW; 2], 0));
}

/// Action of one place on another.
#[derive(Clone, Copy, Debug)]
enum TestAction {
    Send { class: Class, len: usize },
    BlockSend { class: Class, len: usize },
    Take { count: u32 },
    Tell,
    Look,
    Forget,
    Die,
}

fn actions() -> impl Strategy<Value = Vec<(u32, u32, TestAction)>> {
    let class = || prop_oneof![Just(Class::Control), Just(Class::Data)];
    let send = (class(), 0..1_900_usize).prop_map(|(class, len)| TestAction::Send { class, len });
    let stream = (class(), 0..100_000_usize).prop_map(|(class, len)| TestAction::BlockSend { class, len });
    let rest = prop_oneof![
        2 => stream,
        6 => (1..6_u32).prop_map(|count| TestAction::Take { count }),
        6 => Just(TestAction::Tell),
        6 => Just(TestAction::Look),
        1 => Just(TestAction::Forget),
        1 => Just(TestAction::Die),
    ];
    prop::collection::vec((0..4_u32, 1..4_u32, prop_oneof![send, rest]), 1..200)
}

/// Four places, three of which share one entry of a sender's `Unacknowledged`.
const PLACES: [PlaceId; 4] = [PlaceId(0), PlaceId(64), PlaceId(128), PlaceId(65)];

/// Returns the number of packets of `place` in a class that wait at `other`.
fn pending(packets: &Packets, place: PlaceId, class: Class, other: PlaceId) -> u32 {
    let queue = packets.place_states[other.index()].inbox.queue();
    queue.filter(|it| it.source == place && it.lane == class as u32).map(|it| it.cost.packets).sum()
}

/// Returns the number of packets of the window of `place` in a class, in all states.
fn window(packets: &Packets, place: PlaceId, class: Class) -> u32 {
    let of_place = |place_state: &PlaceState| -> u32 {
        let waiting = place_state.inbox.queue().filter(|it| it.source == place);
        let waiting = waiting.filter(|it| it.lane == class as u32).map(|it| it.cost.asked);
        let owed = place_state.owed.iter().filter(|it| it.source == place && it.lane == class as u32);
        waiting.sum::<u32>() + owed.map(|it| it.packets).sum::<u32>()
    };
    let place_state = &packets.place_states[place.index()];
    let returned =
        place_state.acknowledgements.iter().filter(|it| it.lane == class as u32).map(|it| it.packets);
    let unacknowledged = place_state.unacknowledged[class as usize].sum();
    let others = packets.place_states.iter().map(of_place).sum::<u32>();
    place_state.free[class as usize] + unacknowledged + returned.sum::<u32>() + others
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_packet_of_a_window_is_lost_or_counted_twice(actions in actions()) {
        let (mut cores, mut packets) = torus(129);
        let (mut wakeups, mut now) = (Wakeups::new(), Picoseconds::ZERO);
        let mut closed = std::collections::BTreeSet::new();
        for (place, distance, action) in actions {
            let [place, other] = [place, (place + distance) % 4].map(|index| PLACES[index as usize]);
            now += Picoseconds(5_000_000);
            PLACES.iter().for_each(|place| cores.wait_until(*place, now));
            cores.set_present(now);
            match action {
                TestAction::Send { class, len } => {
                    let out = Outgoing { class, ..out(place, other) };
                    if !closed.contains(&(place, other)) && packets.has_room(&mut cores, &out, len) {
                        packets.send(&mut cores, &out, MessageContent::Inline(Box::new(AlignedBytes::new(len))));
                    }
                }
                TestAction::BlockSend { class, len } => {
                    let out = Outgoing { class, ..out(place, other) };
                    if !closed.contains(&(place, other)) && packets.can_begin_block(&mut cores, &out) {
                        let content = MessageContent::Inline(Box::new(AlignedBytes::new(len)));
                        packets.begin_block(&mut cores, &out, content, &mut wakeups);
                    }
                }
                TestAction::Take { count } => {
                    (0..count).for_each(|_| _ = packets.take(&mut cores, place, now, false));
                }
                TestAction::Tell => packets.return_credits(&mut cores, place, &mut wakeups),
                TestAction::Look => packets.make_progress(&mut cores, place, &mut wakeups),
                TestAction::Forget => {
                    packets.forget_receiver(place, other);
                    closed.insert((place, other));
                }
                TestAction::Die => packets.abort_place(place),
            }
            for (place, class) in PLACES.iter().flat_map(|it| [(*it, Class::Control), (*it, Class::Data)]) {
                prop_assert_eq!(window(&packets, place, class), WINDOW, "{} {:?}", place, class);
                let open = PLACES.iter().filter(|other| !closed.contains(&(place, **other)));
                let under_way = open.map(|other| pending(&packets, place, class, *other)).sum::<u32>();
                let free = packets.place_states[place.index()].free[class as usize];
                prop_assert!(under_way + free <= WINDOW, "{} {:?}: {} are under way", place, class, under_way);
            }
        }
    }
}
