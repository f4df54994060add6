//! Places that only aggregate, with buckets and acknowledgements in any order.

use super::{BucketLimits, Buckets, ItemRoute, OutgoingBucket, RouteFault, Router, Torus};
use crate::PlaceId;
use proptest::prelude::*;
use std::collections::VecDeque;

/// An item: its number, and its destination.
type Item = (usize, PlaceId);

/// A bucket that has arrived: its sender, and the items not handed on yet.
struct Batch {
    source: PlaceId,
    key: u8,
    items: VecDeque<Item>,
}

/// All places of a run, and the buckets in flight.
struct World {
    places: Vec<Buckets<Item, u8>>,
    batches: Vec<(PlaceId, Batch)>,
    acknowledgements: Vec<(PlaceId, PlaceId)>,
    applied: Vec<Item>,
}

impl World {
    fn new(route: &ItemRoute, places: u32, limits: BucketLimits) -> World {
        let place = |here| Buckets::new(Router::new(route.clone(), PlaceId(here), places).unwrap(), limits);
        World {
            places: (0..places).map(place).collect(),
            batches: Vec::new(),
            acknowledgements: Vec::new(),
            applied: Vec::new(),
        }
    }

    fn leave(&mut self, from: PlaceId, outgoing_bucket: OutgoingBucket<Item, u8>) {
        assert!(outgoing_bucket.items.len() <= self.places[from.index()].capacity());
        if outgoing_bucket.to.is_empty() {
            assert!(
                outgoing_bucket.items.iter().all(|(_, to)| *to == outgoing_bucket.peer),
                "all of it is for the peer"
            );
        }
        let (key, items) = (outgoing_bucket.key, outgoing_bucket.items.into());
        self.batches.push((outgoing_bucket.peer, Batch { source: from, key, items }));
    }

    /// Stores an item at `at`; returns `false` if it must wait.
    fn store(&mut self, at: PlaceId, key: u8, item: Item) -> bool {
        let place = &mut self.places[at.index()];
        if place.store_within(key, item.1, item).is_ok() {
            return true;
        }
        let Ok(stored) = place.store(key, item.1, item) else { return false };
        stored.outgoing.into_iter().for_each(|outgoing_bucket| self.leave(at, outgoing_bucket));
        true
    }

    /// Hands on one bucket while there is room; returns whether anything moved.
    fn forward(&mut self, index: usize) -> bool {
        let (at, mut batch) = self.batches.swap_remove(index);
        let mut moved = batch.items.is_empty();
        while let Some(item) = batch.items.front().copied() {
            if item.1 == at {
                self.applied.push(item);
            } else if !self.store(at, batch.key, item) {
                break;
            }
            batch.items.pop_front();
            moved = true;
        }
        if !batch.items.is_empty() {
            // At its old position, so that an iteration over the buckets misses none.
            self.batches.push((at, batch));
            let last = self.batches.len() - 1;
            self.batches.swap(index, last);
        } else if batch.source != at {
            self.acknowledgements.push((batch.source, at));
        }
        moved
    }

    /// Takes a step that `choice` selects; returns `false` if only a flush is left.
    fn step(&mut self, choice: usize) -> bool {
        let total = self.batches.len() + self.acknowledgements.len();
        if total == 0 {
            return false;
        }
        for offset in 0..total {
            let index = (choice + offset) % total;
            if index < self.batches.len() {
                if self.forward(index) {
                    return true;
                }
                continue;
            }
            let (at, peer) = self.acknowledgements.swap_remove(index - self.batches.len());
            if let Some(outgoing_bucket) = self.places[at.index()].acknowledged(peer).expect("it departed") {
                self.leave(at, outgoing_bucket);
            }
            return true;
        }
        panic!("batches wait for each other");
    }
}

/// Routes with their numbers of places.
fn routes() -> impl Strategy<Value = (ItemRoute, u32)> {
    let shape = prop::collection::vec(1_u32..4, 1..4).prop_map(|extents| Torus::new(&extents).unwrap());
    prop_oneof![
        (1_u32..9).prop_map(|places| (ItemRoute::Direct, places)),
        shape.clone().prop_map(|shape| (ItemRoute::Torus(shape.clone()), shape.nodes())),
        shape.clone().prop_map(|shape| {
            let places = shape.nodes() * (shape.extents().len() as u32 + 1);
            (ItemRoute::Roles(shape), places)
        }),
        (shape, 1_u32..4, 1_u32..4).prop_map(|(shape, routers, appliers)| {
            let routers = routers.min(shape.extents().len() as u32);
            let places = shape.nodes() * (routers + appliers);
            (ItemRoute::SharedRoles { shape, routers, appliers }, places)
        }),
    ]
}

proptest! {
    /// In any order of arrivals, each item is applied once, at its place, and no bucket waits for ever.
    #[test]
    fn each_item_is_applied_once_at_its_place(
        (route, places) in routes(),
        capacity in 1_usize..5,
        in_flight in 1_u32..4,
        items in prop::collection::vec((any::<u32>(), any::<u32>(), 0_u8..3, any::<usize>()), 0..120),
    ) {
        let (group, appliers) = match &route {
            ItemRoute::Roles(shape) => (shape.extents().len() as u32 + 1, 1),
            ItemRoute::SharedRoles { routers, appliers, .. } => (routers + appliers, *appliers),
            _ => (1, 1),
        };
        let mut world = World::new(&route, places, BucketLimits { capacity, in_flight });
        let mut sent = Vec::new();
        for (number, (from, to, key, choice)) in items.into_iter().enumerate() {
            let from = PlaceId(from % places / group * group);
            let item = (number, PlaceId(to % places / group * group + group - 1 - key as u32 % appliers));
            while !world.store(from, key, item) {
                prop_assert!(world.step(choice), "what has no room waits for something under way");
            }
            sent.push(item);
        }
        let mut choice = 7;
        loop {
            while world.step(choice) {
                choice = choice.wrapping_mul(31).wrapping_add(11);
            }
            let flushed: Vec<_> = (0..places)
                .flat_map(|at| world.places[at as usize].flush(|_| true).into_iter().map(move |left| (at, left)))
                .collect();
            if flushed.is_empty() {
                break;
            }
            flushed.into_iter().for_each(|(at, outgoing_bucket)| world.leave(PlaceId(at), outgoing_bucket));
        }
        prop_assert!(world.places.iter().all(Buckets::is_empty));
        world.applied.sort_unstable();
        prop_assert_eq!(world.applied, sent);
    }
}

#[test]
fn a_place_holds_no_more_than_its_lookahead() {
    for (route, places) in [(ItemRoute::Direct, 48), (ItemRoute::Torus(Torus::of_nodes(512, 3)), 512)] {
        let router = Router::new(route, PlaceId(5), places).unwrap();
        for wanted in [1, 3] {
            let BucketLimits { capacity, in_flight } = BucketLimits::within(&router, 1024, wanted);
            assert!(in_flight == wanted && capacity > 1, "{capacity}");
            assert!(capacity * ((1 + in_flight as usize) * router.peers() + 1) <= 1024, "{capacity}");
        }
        let least = BucketLimits::within(&router, 1, 3);
        assert_eq!(least, BucketLimits { capacity: 1, in_flight: 1 });
        // All that is held is on its way, in as many buckets as possible, found without trying each number of them.
        let most = BucketLimits::within(&router, 1 << 20, u32::MAX);
        assert_eq!(most.capacity, 1);
        assert!(((1 + most.in_flight as usize) * router.peers() + 1) <= 1 << 20);
        assert!(((2 + most.in_flight as usize) * router.peers() + 1) > 1 << 20);
    }
}

proptest! {
    /// From each place a route leads to its end, or is refused at its beginning.
    #[test]
    fn a_route_ends_at_its_place_or_is_refused_at_its_beginning(
        (route, places) in routes(),
        from in any::<u32>(),
        to in any::<u32>(),
    ) {
        let to = PlaceId(to % places);
        let hop = |at| Router::new(route.clone(), at, places).unwrap().hop(to);
        let mut at = PlaceId(from % places);
        for step in 0..10 {
            let Some(next) = hop(at) else {
                prop_assert_eq!(step, 0, "an item is left at {:?}", at);
                return Ok(());
            };
            let router = Router::new(route.clone(), at, places).unwrap();
            prop_assert!(!router.is_last(next.lane) || next.peer == to, "{:?} applies an item for {:?}", next.peer, to);
            if next.peer == to && router.is_last(next.lane) {
                return Ok(());
            }
            at = next.peer;
        }
        prop_assert!(false, "no end");
    }
}

#[test]
fn roles_that_a_group_cannot_have_are_refused() {
    let shape = Torus::new(&[2, 2]).unwrap();
    for (routers, appliers) in [(0, 1), (3, 1), (1, 0), (0, 0), (3, u32::MAX)] {
        let route = ItemRoute::SharedRoles { shape: shape.clone(), routers, appliers };
        let places = 4 * routers.wrapping_add(appliers);
        let fault = Router::new(route, PlaceId(0), places).unwrap_err();
        assert_eq!(fault, RouteFault::Roles { dimensions: 2, routers, appliers });
    }
    // The division of a dimension for each router, and one that applies, is that of the paper.
    let places = 4 * 3;
    let (plain, shared) =
        (ItemRoute::Roles(shape.clone()), ItemRoute::SharedRoles { shape, routers: 2, appliers: 1 });
    for here in (0..places).map(PlaceId) {
        let [plain, shared] =
            [&plain, &shared].map(|route| Router::new(route.clone(), here, places).unwrap());
        assert_eq!((plain.lanes(), plain.peers()), (shared.lanes(), shared.peers()));
        for to in (0..places).map(PlaceId) {
            assert_eq!(plain.hop(to), shared.hop(to));
        }
    }
}

#[test]
fn shapes_are_as_even_as_the_number_of_nodes_allows() {
    for (nodes, shape) in [(64, "4x4x4"), (512, "8x8x8"), (768, "12x8x8"), (7, "7x1x1"), (1, "1x1x1")] {
        assert_eq!(Torus::of_nodes(nodes, 3).to_string(), shape);
    }
}

#[test]
fn a_wrong_shape_is_refused_with_what_is_allowed() {
    let fault = Router::new(ItemRoute::Torus(Torus::new(&[4, 2]).unwrap()), PlaceId(0), 7).unwrap_err();
    assert_eq!(fault.to_string(), "the shape 4x2 is for 8 places, but the run has 7");
    assert!("4x0".parse::<Torus>().unwrap_err().to_string().contains("[4, 0] is not a shape"));
    assert!("4xy".parse::<Torus>().unwrap_err().to_string().contains("\"4xy\" is not a shape"));
    assert!(Torus::new(&[65_536, 65_536]).is_err());
}
