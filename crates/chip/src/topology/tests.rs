//! Tests of the topology: the SCC by hand, all shapes by properties.

use super::*;
use proptest::prelude::*;

fn scc() -> Topology {
    Topology::new(Shape::Mesh, [6, 4, 1], 2).unwrap()
}

fn any_topology() -> impl Strategy<Value = Topology> {
    let shape = prop_oneof![Just(Shape::Mesh), Just(Shape::Torus), Just(Shape::Crossbar)];
    (shape, 1..9_u32, 1..9_u32, 1..5_u32, 1..5_u32)
        .prop_map(|(shape, x, y, z, cores)| Topology::new(shape, [x, y, z], cores).unwrap())
}

fn any_tiles(count: usize) -> impl Strategy<Value = (Topology, Vec<TileId>)> {
    any_topology().prop_flat_map(move |topology| {
        (Just(topology), prop::collection::vec((0..topology.tiles()).prop_map(TileId), count))
    })
}

#[test]
fn cores_count_as_rcce_counts_them() {
    let scc = scc();
    for y in 0..4 {
        for x in 0..6 {
            let tile = scc.tile_at([x, y, 0]).unwrap();
            let cores: Vec<u32> = scc.cores_of(tile).map(|core| core.0).collect();
            assert_eq!(cores, [12 * y + 2 * x, 12 * y + 2 * x + 1]);
        }
    }
    assert_eq!((scc.tiles(), scc.cores(), scc.diameter()), (24, 48, 8));
}

#[test]
fn packets_go_along_x_first() {
    let scc = scc();
    let (from, to) = (scc.tile_at([4, 0, 0]).unwrap(), scc.tile_at([2, 2, 0]).unwrap());
    let ports: Vec<Port> = scc.route(from, to).map(|link| link.port).collect();
    assert_eq!(ports, [Port::West, Port::West, Port::North, Port::North]);
}

#[test]
fn a_torus_is_crossed_over_its_ends() {
    let torus = Topology::new(Shape::Torus, [8, 8, 8], 4).unwrap();
    let (from, to) = (torus.tile_at([7, 0, 0]).unwrap(), torus.tile_at([1, 0, 6]).unwrap());
    let ports: Vec<Port> = torus.route(from, to).map(|link| link.port).collect();
    assert_eq!(ports, [Port::East, Port::East, Port::Down, Port::Down]);
    assert_eq!(torus.diameter(), 12);
}

#[test]
fn a_crossbar_is_two_links_from_tile_to_tile() {
    let crossbar = Topology::new(Shape::Crossbar, [8, 1, 1], 1).unwrap();
    let route: Vec<Link> = crossbar.route(TileId(3), TileId(5)).collect();
    let expected = [Link { tile: TileId(3), port: Port::Out }, Link { tile: TileId(5), port: Port::In }];
    assert_eq!(route, expected);
    assert_eq!(crossbar.hops(TileId(3), TileId(3)), 0);
}

#[test]
fn the_largest_machine_has_its_links_and_distances() {
    let torus = Topology::new(Shape::Torus, [32, 32, 32], 4).unwrap();
    assert_eq!((torus.cores(), torus.link_slots()), (131_072, 196_608));
    assert_eq!(torus.links().count(), 196_608);
    let hops: u64 = (0..torus.tiles()).map(|tile| u64::from(torus.hops(TileId(0), TileId(tile)))).sum();
    assert_eq!(hops, 24 * u64::from(torus.tiles()), "the mean distance is 24 hops");
}

#[test]
fn a_mesh_has_no_links_beyond_its_rim() {
    // 5 * 4 pairs of neighbours in rows, 6 * 3 in columns, each with a link each way.
    assert_eq!(scc().links().count(), 2 * (5 * 4 + 6 * 3));
    assert_eq!(scc().ends(Link { tile: TileId(5), port: Port::East }), None);
}

#[test]
fn numbers_that_make_no_chip_are_refused() {
    for extent in [[0, 4, 1], [6, 0, 1], [1 << 16, 1 << 16, 1], [1 << 20, 2, 1]] {
        assert_eq!(Topology::new(Shape::Mesh, extent, 1), None, "{extent:?}");
    }
    assert_eq!(Topology::new(Shape::Mesh, [6, 4, 1], 0), None);
    assert!(Topology::new(Shape::Mesh, [1 << 20, 1, 1], 1).is_some());
}

proptest! {
    #[test]
    fn a_route_is_as_long_as_the_distance_and_leads_from_stop_to_stop((topology, tiles) in any_tiles(2)) {
        let (from, to) = (tiles[0], tiles[1]);
        let route = topology.route(from, to);
        prop_assert_eq!(route.len(), topology.hops(from, to) as usize);
        prop_assert_eq!(route.clone().count(), route.len());
        prop_assert!(topology.hops(from, to) <= topology.diameter());
        let mut at = LinkEnd::Tile(from);
        for link in route {
            let (start, end) = topology.ends(link).expect("a link of a route stays on the chip");
            prop_assert_eq!(start, at);
            prop_assert!(topology.link_id(link).0 < topology.link_slots());
            at = end;
        }
        prop_assert_eq!(at, LinkEnd::Tile(to));
    }

    #[test]
    fn a_distance_is_a_distance((topology, tiles) in any_tiles(3)) {
        let [a, b, c] = [tiles[0], tiles[1], tiles[2]];
        prop_assert_eq!(topology.hops(a, a), 0);
        prop_assert_eq!(topology.hops(a, b), topology.hops(b, a));
        prop_assert!(topology.hops(a, c) <= topology.hops(a, b) + topology.hops(b, c));
    }

    #[test]
    fn the_distance_on_a_grid_is_the_sum_over_its_axes((topology, tiles) in any_tiles(2)) {
        let (from, to) = (topology.coordinates(tiles[0]), topology.coordinates(tiles[1]));
        let along = |axis: usize| {
            let straight = from[axis].abs_diff(to[axis]);
            if topology.shape() == Shape::Torus { straight.min(topology.extent()[axis] - straight) } else { straight }
        };
        let sum = (0..3).map(along).sum::<u32>();
        let expected = if topology.shape() == Shape::Crossbar { 2 * u32::from(sum > 0) } else { sum };
        prop_assert_eq!(topology.hops(tiles[0], tiles[1]), expected);
    }

    #[test]
    fn a_distance_on_a_torus_stays_when_both_ends_move_alike(
        (x, y, z) in (1..9_u32, 1..9_u32, 1..9_u32),
        [a, b, by] in any::<[[u8; 3]; 3]>()
    ) {
        let torus = Topology::new(Shape::Torus, [x, y, z], 1).unwrap();
        let tile = |at: [u8; 3], by: [u8; 3]| {
            let at = [0, 1, 2].map(|axis| (u32::from(at[axis]) + u32::from(by[axis])) % torus.extent()[axis]);
            torus.tile_at(at).unwrap()
        };
        let still = [0; 3];
        prop_assert_eq!(torus.hops(tile(a, still), tile(b, still)), torus.hops(tile(a, by), tile(b, by)));
    }

    #[test]
    fn identities_and_coordinates_are_each_others_inverse((topology, tiles) in any_tiles(1)) {
        let tile = tiles[0];
        prop_assert_eq!(topology.tile_at(topology.coordinates(tile)), Some(tile));
        for core in topology.cores_of(tile) {
            prop_assert!(core.0 < topology.cores());
            prop_assert_eq!(topology.tile_of(core), tile);
        }
    }

    #[test]
    fn no_two_links_share_a_number(topology in any_topology()) {
        let mut numbers: Vec<_> = topology.links().map(|link| topology.link_id(link)).collect();
        let count = numbers.len();
        prop_assert!(numbers.is_sorted());
        numbers.dedup();
        prop_assert_eq!(numbers.len(), count);
    }
}
