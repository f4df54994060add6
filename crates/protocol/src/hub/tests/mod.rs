//! Hubs against a model of lists, over an invented network; priority inheritance by hand.

mod inheritance;
mod model;
mod world;

use super::*;
use crate::PlaceId;

/// A directory with these tasks and hubs, each with its place.
fn directory(tasks: &[(&str, u8, u32)], hubs: &[(&str, HubKind, u32)], places: u32) -> Directory {
    let mut directory = Directory::new();
    for (name, priority, _) in tasks {
        directory.add_task(TaskSpec { name: (*name).to_owned(), priority: *priority }).expect("a new name");
    }
    for (name, kind, _) in hubs {
        let spec = HubSpec { name: (*name).to_owned(), entity: Entity::Known(kind.clone()) };
        directory.add_hub(spec).expect("a new name");
    }
    let map = tasks.iter().map(|(name, _, place)| (*name, *place));
    let map = map.chain(hubs.iter().map(|(name, _, place)| (*name, *place)));
    directory.apply_map(map, places).expect("a good map");
    directory
}

fn ask(task: u32, hub: u32, operation: HubOperation, waits: bool) -> Submission {
    Submission { task: TaskId(task), hub: HubId(hub), operation, waits, payload: Vec::new(), tag: 0 }
}

#[test]
fn a_map_is_refused_as_a_whole() {
    let mut directory = directory(&[("a", 1, 0)], &[("s", HubKind::Event, 0)], 2);
    let mut refused =
        |map: &[(&str, u32)]| directory.apply_map(map.iter().copied(), 2).expect_err("a bad map").to_string();
    assert_eq!(refused(&[("a", 1), ("b", 0)]), "no task or hub has the name \"b\"; allowed: a, s");
    assert_eq!(refused(&[("a", 1), ("a", 0)]), "\"a\" has two places; allowed: each name once");
    assert_eq!(refused(&[("s", 2)]), "\"s\" is at place 2; allowed: 0 to 1");
    assert_eq!(directory.place_of_task(TaskId(0)), Some(PlaceId(0)));
    let repeated = directory.add_task(TaskSpec { name: "s".to_owned(), priority: 3 });
    assert_eq!(repeated, Err(DirectoryFault::Repeated("s".to_owned())));
    assert_eq!(directory.hub("s"), Some(HubId(0)));
    let kind = Entity::Known(HubKind::Fifo { capacity: 0 });
    let empty = directory.add_hub(HubSpec { name: "f".to_owned(), entity: kind });
    assert_eq!(empty, Err(DirectoryFault::NoRoom("f".to_owned())));
}

#[test]
fn routes_lead_to_each_place_without_circles() {
    let links = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)].map(|(one, other)| (PlaceId(one), PlaceId(other)));
    let all: Vec<Routes> =
        (0..5).map(|here| Routes::over_links(PlaceId(here), 5, &links).expect("connected")).collect();
    for from in 0..5 {
        for to in 0..5 {
            let (mut at, mut hops) = (PlaceId(from), 0);
            while at != PlaceId(to) {
                at = all[at.index()].next_hop(PlaceId(to));
                hops += 1;
            }
            assert!(hops <= 3, "{from} to {to}");
        }
    }
    let error = Routes::over_links(PlaceId(0), 3, &links[..1]).expect_err("place 2 has no link");
    assert_eq!(error, RouteError::NoRoute { from: PlaceId(0), to: PlaceId(2) });
    assert_eq!(Routes::direct(PlaceId(0), 3).next_hop(PlaceId(2)), PlaceId(2));
}

#[test]
fn an_urgent_packet_is_next_behind_a_hundred_others() {
    let packet = |number, priority| HubPacket {
        from: PlaceId(0),
        to: PlaceId(1),
        priority,
        body: PacketBody::Withdraw { id: RequestId { place: PlaceId(0), number }, hub: HubId(0) },
    };
    let mut queue = PacketQueue::new();
    (0..100).for_each(|number| queue.push(packet(number, 200)));
    queue.push(packet(100, 10));
    assert_eq!(queue.pop().map(|packet| packet.priority), Some(10));
    let order: Vec<HubPacket> = std::iter::from_fn(|| queue.pop()).collect();
    let expected: Vec<HubPacket> = (0..100).map(|number| packet(number, 200)).collect();
    assert_eq!(order, expected);
}

#[test]
fn both_ends_of_a_route_over_a_dead_place_lose_each_other() {
    let links = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)].map(|(one, other)| (PlaceId(one), PlaceId(other)));
    let lost = |here: u32, dead: u32| -> Vec<u32> {
        let routes = Routes::over_links(PlaceId(here), 5, &links).expect("connected");
        routes.lost_with(PlaceId(dead)).into_iter().map(|place| place.0).collect()
    };
    assert_eq!([lost(4, 3), lost(0, 4), lost(2, 3)], [vec![0, 1, 2, 3], vec![4], vec![3, 4]]);
    for dead in 0..5 {
        for (one, other) in (0..5).flat_map(|one| (0..5).map(move |other| (one, other))) {
            if one != dead && other != dead {
                assert_eq!(
                    lost(one, dead).contains(&other),
                    lost(other, dead).contains(&one),
                    "{one} {other}"
                );
            }
        }
    }
    assert_eq!(Routes::direct(PlaceId(0), 5).lost_with(PlaceId(3)), [PlaceId(3)]);
    let unknown = Routes::over_links(PlaceId(0), 2, &[(PlaceId(1), PlaceId(9))]).expect_err("no place 9");
    assert_eq!(unknown.to_string(), "a link is of place 9; allowed: 0 to 1");
}
