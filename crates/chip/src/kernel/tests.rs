//! The guarantees of the kernel: a total order, a digest of everything, reservations without overlap, and a network
//! close to the one with an event for each hop.

use super::exact::{self, Packet};
use super::timeline::INTERVALS_MAX;
use super::*;
use crate::quantity::Picoseconds;
use proptest::prelude::*;

const PACE: LinkTiming =
    LinkTiming { hop: Picoseconds(5_000), flit: Picoseconds(1_250), recovery: Picoseconds(2_500) };

fn key(time: u64, owner: u32, sequence: u32) -> Key {
    TieBreak::new(0).key(Picoseconds(time), EventClass::Ready, owner, sequence)
}

#[test]
fn time_comes_before_class_before_owner_before_sequence() {
    let tie_break = TieBreak::new(0);
    let ordered = [
        tie_break.key(Picoseconds(1), EventClass::Ready, 9, 9),
        tie_break.key(Picoseconds(2), EventClass::Arrival, 9, 9),
        tie_break.key(Picoseconds(2), EventClass::Timer, 8, 9),
        tie_break.key(Picoseconds(2), EventClass::Ready, 7, 9),
        tie_break.key(Picoseconds(2), EventClass::Ready, 8, 0),
        tie_break.key(Picoseconds(2), EventClass::Ready, 8, u32::MAX),
        tie_break.key(Picoseconds(u64::MAX), EventClass::Arrival, 0, 0),
    ];
    assert!(ordered.is_sorted() && ordered.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(ordered[6].time(), Picoseconds(u64::MAX));
}

#[test]
fn a_seed_permutes_the_owners_of_one_moment_and_loses_none() {
    let order = |seed, time| {
        let mut owners: Vec<u32> = (0..48).collect();
        owners.sort_by_key(|&owner| TieBreak::new(seed).key(Picoseconds(time), EventClass::Ready, owner, 0));
        owners
    };
    let natural: Vec<u32> = (0..48).collect();
    assert_eq!(order(0, 7), natural);
    assert_ne!(order(1, 7), natural);
    assert_ne!(order(1, 7), order(2, 7));
    assert_ne!(order(1, 7), order(1, 8));
    for seed in 1..20 {
        let keys: std::collections::BTreeSet<Key> = (0..1 << 14)
            .map(|owner| TieBreak::new(seed).key(Picoseconds(3), EventClass::Ready, owner * 1_024 + 5, 0))
            .collect();
        assert_eq!(keys.len(), 1 << 14, "two owners share a key");
    }
}

#[test]
fn an_event_that_moves_or_is_taken_out_happens_once_or_not_at_all() {
    let mut queue = Queue::new(4);
    for owner in 0..4 {
        queue.set(owner, key(10 + u64::from(owner), owner, 0));
    }
    queue.set(0, key(30, 0, 1));
    queue.set(3, key(1, 3, 1));
    assert_eq!((queue.remove(1), queue.remove(1)), (Some(key(11, 1, 0)), None));
    assert_eq!((queue.key_of(0), queue.key_of(1)), (Some(key(30, 0, 1)), None));
    assert_eq!(queue.first(), Some((key(1, 3, 1), 3)));
    let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(popped, [(key(1, 3, 1), 3), (key(12, 2, 0), 2), (key(30, 0, 1), 0)]);
    queue.set(1, key(5, 1, 1));
    assert_eq!((queue.pop(), queue.pop()), (Some((key(5, 1, 1), 1)), None));
}

#[test]
fn the_digest_sees_time_kind_owner_size_and_order() {
    let digest = |events: &[(Key, u32, u64)]| {
        let mut digest = Digest::default();
        events.iter().for_each(|&(key, kind, size)| digest.record(key, kind, size));
        (digest.to_string(), digest.events())
    };
    let (a, b) = ((key(1, 0, 0), 1, 8), (key(2, 1, 0), 2, 16));
    let all = [
        digest(&[a, b]),
        digest(&[b, a]),
        digest(&[a]),
        digest(&[a, (key(3, 1, 0), 2, 16)]),
        digest(&[a, (key(2, 2, 0), 2, 16)]),
        digest(&[a, (key(2, 1, 0), 3, 16)]),
        digest(&[a, (key(2, 1, 0), 2, 17)]),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert_eq!((digest(&[a, b]).1, digest(&[a, b]).0.len()), (2, 32));
}

proptest! {
    #[test]
    fn no_bit_of_an_event_passes_a_lane_of_the_digest_unseen(
        events in prop::collection::vec((any::<u64>(), 0..1_u32 << 24, any::<u32>(), 1..8_u32, 0..1_u64 << 61), 1..6),
        which in any::<prop::sample::Index>(),
        bit in 0..64_u32,
    ) {
        let digest = |events: &[(u64, u32, u32, u32, u64)]| {
            let mut digest = Digest::default();
            for &(time, owner, sequence, kind, size) in events {
                digest.record(TieBreak::new(0).key(Picoseconds(time), EventClass::Ready, owner, sequence), kind, size);
            }
            digest.to_string()
        };
        let (mut others, index) = (events.clone(), which.index(events.len()));
        let (time, owner, sequence, kind, size) = events[index];
        let flipped = |number: u32, bits: u32| number ^ 1 << (bit % bits);
        let kind = if flipped(kind, 3) == 0 { kind } else { flipped(kind, 3) };
        for other in [
            (time ^ 1 << bit, owner, sequence, events[index].3, size),
            (time, flipped(owner, 24), sequence, events[index].3, size),
            (time, owner, flipped(sequence, 32), events[index].3, size),
            (time, owner, sequence, kind, size ^ 1 << (bit % 61)),
        ] {
            others[index] = other;
            let (one, other) = (digest(&events), digest(&others));
            // A change of owner or number shows in the second lane only.
            prop_assert_ne!(&one[16..], &other[16..]);
        }
    }
}

#[test]
fn an_earlier_request_fills_a_gap_and_a_longer_one_does_not() {
    let mut line = Timeline::default();
    let mut reserve =
        |from, duration| line.reserve(Picoseconds(0), Picoseconds(from), Picoseconds(duration)).0;
    assert_eq!(reserve(100, 50), 100);
    assert_eq!(reserve(120, 10), 150);
    assert_eq!(reserve(10, 20), 10);
    assert_eq!(reserve(10, 70), 30, "it fits to the last picosecond");
    assert_eq!(reserve(0, 11), 160);
    assert_eq!(reserve(0, 10), 0);
    assert_eq!(line.intervals(Picoseconds(0)), [(0, 171)]);
}

#[test]
fn what_takes_no_time_is_in_nobodys_way() {
    let mut line = Timeline::default();
    let mut reserve =
        |from, duration| line.reserve(Picoseconds(0), Picoseconds(from), Picoseconds(duration)).0;
    for (from, duration) in [(40_000, 20_000), (10_000, 0), (45_000, 0), (5_000, 30_000)] {
        assert_eq!(reserve(from, duration), from);
    }
}

#[test]
fn what_is_past_is_forgotten_and_the_rest_is_bounded() {
    let mut line = Timeline::default();
    for number in 0..1_000 {
        line.reserve(Picoseconds(0), Picoseconds(number * 100), Picoseconds(10 + number % 7));
    }
    assert_eq!(line.intervals(Picoseconds(0)).len(), INTERVALS_MAX);
    // Past intervals are dropped first, so no gap between the new ones is closed.
    let new = |number: usize| 100_000 + 100 * number as u64;
    for number in 0..INTERVALS_MAX {
        line.reserve(Picoseconds(new(0)), Picoseconds(new(number)), Picoseconds(10));
    }
    let kept: Vec<_> = line.intervals(Picoseconds(new(0))).into_iter().map(|(start, _)| start).collect();
    assert_eq!(kept, (0..INTERVALS_MAX).map(new).collect::<Vec<_>>());
}

#[test]
fn a_link_recovers_after_each_packet_and_a_packet_alone_waits_for_nothing() {
    let mut network = Network::new(2, PACE);
    let mut send =
        |from, packets| network.send(Picoseconds(0), Picoseconds(from), [0, 1], Train { packets, flits: 3 });
    assert_eq!(send(0, 1), Picoseconds(0));
    assert_eq!(send(3_750, 4), PACE.recovery, "the link is free after the flits and the recovery");
    let four = (PACE.flit * 3 + PACE.recovery) * 4;
    assert_eq!(send(6_250, 1), four, "each packet of a train brings its own recovery");
    assert_eq!(network.flits().collect::<Vec<_>>(), [18, 18], "no flit passes while a link recovers");
}

proptest! {
    #[test]
    fn events_come_in_the_order_of_their_keys(
        steps in prop::collection::vec((0..40_u32, 0..50_u64, 0..4_u32, 0..3_usize), 0..300), seed in 0..4_u64,
    ) {
        // At equal times, the class or the seed may put the later owner first.
        let (tie_break, classes) = (TieBreak::new(seed), [EventClass::Arrival, EventClass::Timer, EventClass::Ready]);
        let mut queue = Queue::new(40);
        let mut expected = std::collections::BTreeMap::new();
        for (number, &(owner, time, what, class)) in (0..).zip(&steps) {
            match what {
                0 => prop_assert_eq!(queue.remove(owner), expected.remove(&owner)),
                1 => {
                    let first = expected.iter().min_by_key(|(_, key)| **key);
                    let first = first.map(|(owner, key)| (*key, *owner));
                    prop_assert_eq!(queue.pop(), first);
                    first.map(|(_, owner)| expected.remove(&owner));
                }
                _ => {
                    let key = tie_break.key(Picoseconds(time), classes[class], owner, number);
                    queue.set(owner, key);
                    expected.insert(owner, key);
                }
            }
            prop_assert_eq!(queue.key_of(owner), expected.get(&owner).copied());
        }
        let mut expected: Vec<_> = expected.into_iter().map(|(owner, key)| (key, owner)).collect();
        expected.sort();
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        prop_assert_eq!(popped, expected);
    }

    #[test]
    fn reservations_never_overlap_and_never_come_early(
        requests in prop::collection::vec((0..5_000_u64, 1..80_u64), 1..400)
    ) {
        let mut line = Timeline::default();
        let mut granted = Vec::new();
        for &(from, duration) in &requests {
            let start = line.reserve(Picoseconds(0), Picoseconds(from), Picoseconds(duration)).0;
            prop_assert!(start >= from);
            granted.push((start, start + duration));
        }
        granted.sort_unstable();
        prop_assert!(granted.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    #[test]
    fn a_reservation_is_the_earliest_gap_there_is(
        requests in prop::collection::vec((0..300_u64, 1..10_u64), 1..50)
    ) {
        let mut line = Timeline::default();
        let mut taken = [false; 2_000];
        for &(from, duration) in &requests {
            let free = |start: u64| taken[start as usize..(start + duration) as usize].iter().all(|taken| !taken);
            let earliest = (from..).find(|&start| free(start)).expect("there is room at the end");
            let start = line.reserve(Picoseconds(0), Picoseconds(from), Picoseconds(duration)).0;
            prop_assert_eq!(start, earliest);
            taken[start as usize..(start + duration) as usize].fill(true);
        }
    }

    /// Times of all sizes, so that numbers wrap around, and lengths from one to more than the rows hold; past intervals
    /// are dropped repeatedly.
    #[test]
    fn a_reservation_is_the_earliest_gap_whatever_the_distances(
        requests in prop::collection::vec((0..27_u32, any::<u64>(), 0..25_u32, any::<u64>(), 0..3_u32), 1..200)
    ) {
        let mut line = Timeline::default();
        let (mut present, mut granted) = (0, Vec::<(u64, u64)>::new());
        for (ahead_bits, ahead, length_bits, length, step) in requests {
            present += (ahead >> 40) * u64::from(step == 0);
            let from = present + (ahead & ((1 << ahead_bits) - 1));
            let duration = 1 + (length & ((1 << length_bits) - 1));
            granted.retain(|(_, end)| *end > present);
            if granted.len() == INTERVALS_MAX {
                continue;
            }
            let mut earliest = from;
            let in_the_way = |start: u64| {
                let busy = |(from, end): &&(u64, u64)| *from < start + duration && *end > start;
                granted.iter().find(busy).map(|(_, end)| *end)
            };
            while let Some(end) = in_the_way(earliest) {
                earliest = end;
            }
            let start = line.reserve(Picoseconds(present), Picoseconds(from), Picoseconds(duration)).0;
            prop_assert_eq!(start, earliest);
            granted.push((start, start + duration));
        }
    }

    #[test]
    fn on_one_link_in_order_of_time_both_networks_agree(
        packets in prop::collection::vec((0..30_000_u64, 1..9_u64), 1..60)
    ) {
        let mut at = 0;
        let packets: Vec<Packet> = packets.iter().map(|&(pause, flits)| {
            at += pause;
            Packet { from: Picoseconds(at), path: vec![0], flits }
        }).collect();
        prop_assert_eq!(quick(1, &packets), exact::arrivals(1, PACE, &packets));
    }

    #[test]
    fn nothing_arrives_sooner_than_alone_and_all_flits_are_counted(packets in row(100, 200_000)) {
        let mut network = Network::new(LINKS, PACE);
        let mut flits = 0;
        for packet in &packets {
            network.send(Picoseconds(0), packet.from, packet.path.iter().copied(), single(packet.flits));
            flits += packet.flits * packet.path.len() as u64;
        }
        prop_assert_eq!(network.flits().sum::<u64>(), flits);
        // The quick network returns a delay, so its packets cannot arrive sooner than alone; those of the exact one
        // could.
        for (packet, arrival) in packets.iter().zip(exact::arrivals(LINKS, PACE, &packets)) {
            prop_assert!(arrival >= packet.from + PACE.alone(packet.path.len(), packet.flits));
        }
    }

    /// In the quick network, which returns only delays, no link carries two packets at once.
    #[test]
    fn nothing_arrives_sooner_than_the_busiest_link_lets_it_pass(packets in row(100, 20_000)) {
        let last = quick(LINKS, &packets).into_iter().max().unwrap_or_default();
        let busy = |link: usize| -> u64 {
            let over = packets.iter().filter(|packet| packet.path.contains(&link));
            over.map(|packet| PACE.flit.0 * packet.flits + PACE.recovery.0).sum::<u64>()
        };
        let busiest = (0..LINKS).map(busy).max().unwrap_or_default();
        prop_assert!(last.0 + PACE.recovery.0 >= busiest, "{last} and {busiest}");
    }

    /// Compares the mean latency, including that of a packet alone, at a third of the capacity of the row's middle
    /// link.
    #[test]
    fn the_quick_network_is_within_a_tenth_of_the_exact_one(packets in row(400, 3_200_000)) {
        let quick = latency(&packets, &quick(LINKS, &packets));
        let exact = latency(&packets, &exact::arrivals(LINKS, PACE, &packets));
        prop_assert!(quick.abs_diff(exact) * 10 <= exact, "{quick} and {exact}");
    }

    /// The same for trains of packets on a mesh, at a third of the capacity of its middle links.
    #[test]
    fn trains_on_a_mesh_are_within_a_tenth_of_the_exact_network(trains in mesh(400, 2_120_000)) {
        let quick = trains.iter().scan(Network::new(MESH_LINKS, PACE), |network, (packets, train)| {
            let Packet { from, path, .. } = packets;
            let delay = network.send(*from, *from, path.iter().copied(), *train);
            Some((train.last(*from) - *from + PACE.alone(path.len(), train.flits) + delay).0)
        }).sum::<u64>();
        let single: Vec<Packet> = trains.iter().flat_map(|(first, train)| train.apart(first)).collect();
        let arrivals = exact::arrivals(MESH_LINKS, PACE, &single);
        let mut ends = arrivals.into_iter();
        let exact = trains.iter().map(|(first, train)| {
            let last = ends.by_ref().take(train.packets as usize).max().unwrap_or_default();
            (last - first.from).0
        }).sum::<u64>();
        prop_assert!(quick.abs_diff(exact) * 10 <= exact, "{quick} and {exact}");
    }
}

/// Returns the sum of all latencies.
fn latency(packets: &[Packet], arrivals: &[Picoseconds]) -> u64 {
    arrivals.iter().zip(packets).map(|(arrival, packet)| (*arrival - packet.from).0).sum()
}

impl Train {
    /// Returns the time at which its last packet enters if its first does so at `from`.
    fn last(self, from: Picoseconds) -> Picoseconds {
        from + (PACE.flit * self.flits + PACE.recovery) * (self.packets - 1)
    }

    /// Returns the packets of the train as separate packets, one behind the other.
    fn apart(self, first: &Packet) -> impl Iterator<Item = Packet> {
        let first = first.clone();
        (1..=self.packets).map(move |packets| {
            let from = Train { packets, ..self }.last(first.from);
            Packet { from, ..first.clone() }
        })
    }
}

/// A mesh of four by four routers, with a link each way between neighbours: east, west, south and north of each.
const SIDE: usize = 4;
const MESH_LINKS: usize = 4 * SIDE * SIDE;

/// Returns the links from one router to another, along the row and then along the column.
fn route(source: usize, target: usize) -> Vec<usize> {
    let (mut at, mut path) = (source, Vec::new());
    let mut go = |at: &mut usize, step: isize, direction: usize| {
        path.push(4 * *at + direction);
        *at = at.wrapping_add_signed(step);
    };
    while at % SIDE != target % SIDE {
        let is_east = at % SIDE < target % SIDE;
        if is_east { go(&mut at, 1, 0) } else { go(&mut at, -1, 1) }
    }
    while at != target {
        let is_south = at < target;
        if is_south { go(&mut at, SIDE as isize, 2) } else { go(&mut at, -(SIDE as isize), 3) }
    }
    path
}

/// `number` trains of up to eight packets of three flits between random routers of the mesh, in order of time.
fn mesh(number: usize, span: u64) -> impl Strategy<Value = Vec<(Packet, Train)>> {
    let routers = SIDE * SIDE;
    let train = (0..span, 0..routers, 0..routers, 1..9_u64).prop_map(|(from, source, target, packets)| {
        let packet = Packet { from: Picoseconds(from), path: route(source, target), flits: 3 };
        (packet, Train { packets, flits: 3 })
    });
    prop::collection::vec(train, number).prop_map(|mut trains| {
        trains.sort_by_key(|(packet, _)| packet.from);
        trains
    })
}

/// A row of eight routers, with a link each way between neighbours.
const ROUTERS: usize = 8;
const LINKS: usize = 2 * (ROUTERS - 1);

fn single(flits: u64) -> Train {
    Train { packets: 1, flits }
}

fn quick(links: usize, packets: &[Packet]) -> Vec<Picoseconds> {
    let mut network = Network::new(links, PACE);
    let send = |packet: &Packet| {
        let train = single(packet.flits);
        let delay = network.send(packet.from, packet.from, packet.path.iter().copied(), train);
        packet.from + PACE.alone(packet.path.len(), packet.flits) + delay
    };
    packets.iter().map(send).collect()
}

/// `number` packets between random routers of the row, entering within `span`, in order of time.
fn row(number: usize, span: u64) -> impl Strategy<Value = Vec<Packet>> {
    let packet = (0..span, 0..ROUTERS, 0..ROUTERS, 1..13_u64).prop_map(|(from, source, target, flits)| {
        let path = if source < target {
            (source..target).collect()
        } else {
            (target..source).rev().map(|link| ROUTERS - 1 + link).collect()
        };
        Packet { from: Picoseconds(from), path, flits }
    });
    prop::collection::vec(packet, number).prop_map(|mut packets| {
        packets.sort_by_key(|packet| packet.from);
        packets
    })
}
