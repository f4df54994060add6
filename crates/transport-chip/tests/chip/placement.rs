//! Places on chosen cores: distances, energies, clocks, memory and exports depend on the core.

use crate::sink::Sink;
use isles_chip::Chip;
use isles_chip::energy::Load;
use isles_chip::governor::Policy;
use isles_chip::quantity::{Attojoules, Picoseconds, scaled};
use isles_chip::shared::CachePolicy;
use isles_chip::topology::{LinkEnd, TileId};
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, Work, WorkModel};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, Costs, Placement, Protocol, Report, TimeCategory, TurnOutcome, export,
};
use std::panic::Location;
use std::time::Duration;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);

const IDLE: TurnOutcome = TurnOutcome::Idle { due: None };

fn scc() -> Chip {
    Chip::find("scc").unwrap()
}

/// Returns a world of `places` places on cores of the SCC, with a protocol.
fn placed_by(protocol: Protocol, placement: &str, places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    let (chip, placement) = (scc(), placement.parse::<Placement>().unwrap());
    let core_map = placement.core_map(chip.topology(), places).unwrap();
    let world = ChipWorld::with_core_map(core_map, Costs::of(&chip).unwrap(), protocol, 0).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

fn placed(placement: &str, places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    placed_by(Protocol::Doorbell, placement, places)
}

/// Lets each place send one message to the next one and work briefly.
fn pass_round(world: &ChipWorld, endpoints: &[ChipEndpoint]) -> Report {
    let places = endpoints.len() as u32;
    let mut sent = vec![false; endpoints.len()];
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        endpoint.progress(Inbound::All, &mut |_| ());
        if !std::mem::replace(&mut sent[place.index()], true) {
            endpoint.work(&Work::new().cycles(100_000), Location::caller());
            let to = PlaceId((place.0 + 1) % places);
            endpoint.send(to, Class::Data, HandlerId(1), 40, &mut |_| Some(40)).unwrap();
        }
        world.end_turn(place, IDLE);
    }
    world.report()
}

/// Sends a message of ten lines from the first to the second place; returns the copying time of both in picoseconds.
fn copying(placement: &str) -> [u64; 2] {
    let (world, endpoints) = placed_by(Protocol::RcceX10, placement, 2);
    let mut sent = false;
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        if place == A && !std::mem::replace(&mut sent, true) {
            endpoint.send(B, Class::Data, HandlerId(1), 320, &mut |_| Some(320)).unwrap();
        }
        endpoint.progress(Inbound::All, &mut |_| ());
        world.end_turn(place, IDLE);
    }
    let report = world.report();
    [0, 1].map(|place| report.ledgers[place].time(TimeCategory::Copying).0)
}

#[test]
fn two_places_pay_for_the_hops_between_their_cores_and_for_nothing_else() {
    const HOP: u64 = 5_000;
    // The sender writes a remote flag; the receiver fetches ten lines and writes a flag.
    let near = copying("0,1");
    for (placement, hops) in [("2,4", 1), ("0,47", 8), ("47,0", 8), ("10,36", 8), ("5,11", 3), ("22,23", 0)] {
        assert_eq!(copying(placement), [near[0] + hops * HOP, near[1] + 11 * hops * HOP], "{placement}");
    }
}

#[test]
fn a_list_of_the_first_cores_is_the_run_of_linear_and_another_one_is_not() {
    let digest = |placement| {
        let (world, endpoints) = placed(placement, 48);
        pass_round(&world, &endpoints).digest
    };
    assert_eq!(digest("0-47"), digest("linear"));
    assert_ne!(digest("spread"), digest("linear"));
}

#[test]
fn all_cores_in_another_order_do_the_same_work_and_draw_about_the_same() {
    let run = |placement| {
        let (world, endpoints) = placed(placement, 48);
        pass_round(&world, &endpoints)
    };
    let linear = run("linear");
    let time = |report: &Report, category| -> u64 {
        report.ledgers.iter().map(|ledger| ledger.time(category).0).sum()
    };
    assert_eq!(run("1,0,3,2,4-47").digest, linear.digest, "cores of one tile are the same");
    for placement in ["spread", "24-47,0-23", "47,0-46"] {
        let other = run(placement);
        assert_ne!(other.digest, linear.digest, "{placement}");
        assert_eq!(other.messages, linear.messages);
        for category in [TimeCategory::Working, TimeCategory::Handling] {
            assert_eq!(time(&other, category), time(&linear, category), "{placement}: {category:?}");
        }
        // At most ten lines per message and eight hops per line.
        let differ = time(&other, TimeCategory::Copying).abs_diff(time(&linear, TimeCategory::Copying));
        assert!(differ < 48 * 10 * 8 * 5_000, "{placement}: {differ}");
        let joules = |report: &Report| report.energy.as_ref().unwrap().models[0].total().joules();
        assert!((joules(&other) / joules(&linear) - 1.0).abs() < 0.05, "{placement}");
    }
}

#[test]
fn energy_goes_to_the_core_and_the_voltage_domain_of_the_place() {
    // Tiles 0, 1, 6 and 7 are the first domain of the SCC, cores 0 to 3 and 12 to 15; core 47 is in the last.
    let chip = scc();
    let power = chip.power_model("manyman").unwrap();
    let rate = chip.default_preset().clocks().core;
    let point = chip.voltage_table("manyman").unwrap().operating_point(rate).unwrap();
    for (core, domain) in [(0, 0), (13, 0), (4, 1), (47, 5)] {
        let (world, endpoints) = placed(&core.to_string(), 1);
        endpoints[0].work(&Work::new().cycles(53_333_333), Location::caller());
        let report = world.report();
        let energy = report.energy.as_ref().unwrap();
        let (own, of) = (&energy.models[0], |load| power.core(load, point).over(energy.span));
        for other in 0..48 {
            let load = if other == core { Load::Compute } else { Load::Sleep };
            assert_eq!(own.core(other), of(load), "core {other} with the place on core {core}");
        }
        let domains = energy.by_domain(own);
        let most = (0..6).max_by_key(|number| domains[*number]).unwrap();
        assert_eq!(most, domain, "{domains:?}");
        let windows: Attojoules = energy.profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum();
        assert_eq!(windows, own.total());
        let in_windows: Attojoules = energy.profile.windows().map(|(_, _, sums)| sums[domain]).sum();
        assert_eq!(in_windows, domains[domain]);
        let text = report.to_string();
        let by_place = text.lines().find(|line| line.starts_with("  by place")).unwrap().to_owned();
        assert!(by_place.ends_with(&scaled(own.core(core).joules(), "J")), "{by_place}");
    }
}

#[test]
fn the_clocks_of_a_place_are_those_of_its_core() {
    // The third place is on the first core of the first domain, the first on its last; the second is elsewhere.
    let (world, _endpoints) = placed("15,47,0", 3);
    let third = PlaceId(2);
    assert_eq!(world.shift_supply(third, 8), Ok(None), "the first place of the domain may ask");
    assert!(world.shift_supply(A, 8).unwrap().is_some());
    assert_eq!([A, B, third].map(|place| world.divider(place)), [Some(8), Some(3), Some(8)]);
    assert!(world.shift_supply(B, 4).unwrap().is_some(), "it is the first of its own domain");
    world.await_supply(third);
    let first_done = world.now(third);
    world.divide_tile(third, 16).unwrap();
    assert_eq!([A, B, third].map(|place| world.divider(place)), [Some(8), Some(4), Some(16)]);
    world.await_supply(B);
    assert!(Duration::ZERO < first_done && first_done < world.now(B), "one after the other");
}

#[test]
fn a_governor_looks_at_the_domain_of_the_place_that_works() {
    let (world, endpoints) = placed("47,0", 2);
    world.govern(Policy::OnDemand).unwrap();
    let mut left = 100;
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        endpoint.progress(Inbound::All, &mut |_| ());
        let mut turn = IDLE;
        if place == A && left > 0 {
            endpoint.work(&Work::new().cycles(533_333), Location::caller());
            left -= 1;
            if left == 0 {
                endpoint.send(B, Class::Data, HandlerId(1), 16, &mut |_| Some(16)).unwrap();
            }
            turn = TurnOutcome::Busy;
        }
        world.end_turn(place, turn);
    }
    let [working, waiting] = [A, B].map(|place| world.divider(place).unwrap());
    assert!(working < waiting, "{working} {waiting}");
}

#[test]
fn shared_memory_lies_behind_the_controller_of_the_core() {
    let chip = scc();
    // The controllers of the SCC are at the left and the right of the first and the third row.
    let time = |core: u32| {
        let (world, _endpoints) = placed(&core.to_string(), 1);
        let region = world.take_shared(A, CachePolicy::Uncached, 64).unwrap();
        world.read_shared(A, &region, 0, &mut [0; 4]);
        (chip.hops_to_memory(isles_chip::topology::CoreId(core)), world.report().time)
    };
    let mut times: Vec<(u32, Picoseconds)> = [0, 2, 4, 10, 16, 26, 47].map(time).to_vec();
    times.sort_unstable();
    assert!(times[0].0 == 0 && times.last().unwrap().0 > 1, "{times:?}");
    for pair in times.windows(2) {
        assert_eq!(pair[0].0 < pair[1].0, pair[0].1 < pair[1].1, "by the hops and nothing else: {times:?}");
    }
}

#[test]
fn links_and_folded_stacks_name_the_cores() {
    let (world, endpoints) = placed("47,10", 2);
    let report = pass_round(&world, &endpoints);
    assert_eq!(report.cores.iter().map(|core| core.0).collect::<Vec<_>>(), [47, 10]);
    // Core 10 is on tile 5, at the right end of the first row, below tile 23 of core 47.
    let used = world.link_loads().into_iter().filter(|load| load.flits > 0);
    let mut used: Vec<LinkEnd> = used.map(|load| load.ends.0).collect();
    let expected = [5, 11, 17, 11, 17, 23];
    assert_eq!(used.len(), expected.len(), "{used:?}");
    for tile in expected {
        let at = used.iter().position(|stop| *stop == LinkEnd::Tile(TileId(tile)));
        used.remove(at.unwrap_or_else(|| panic!("tile {tile} of {used:?}")));
    }
    let folded = export::folded("c", scc().topology(), &report);
    assert!(folded.lines().all(|line| line.contains(";core 47;") || line.contains(";core 10;")), "{folded}");
    assert!(folded.contains("c;tile 23;core 47;working ") && folded.contains("c;tile 5;core 10;working "));
}

#[test]
fn a_trace_has_a_track_for_each_core_with_its_place_within_its_tile() {
    let (world, endpoints) = placed("3,47,2,0", 4);
    let sink = Sink::default();
    world.trace("a run", Box::new(sink.clone())).unwrap();
    let report = pass_round(&world, &endpoints);
    world.end_trace().unwrap();
    let packets = crate::protobuf::packets(&sink.0.lock().unwrap());
    let mut processes: Vec<(u32, u64)> = Vec::new();
    let mut threads: Vec<(String, u64, u32)> = Vec::new();
    for track in packets.iter().filter_map(|packet| packet.track.as_ref()) {
        if let Some((pid, _)) = &track.process {
            processes.push((u32::try_from(*pid).unwrap(), track.uuid));
        }
        if let Some((pid, _, name)) = &track.thread {
            assert!(
                processes.iter().any(|(known, _)| u64::from(*known) == *pid),
                "its tile comes first: {name}"
            );
            threads.push((name.clone(), track.uuid, u32::try_from(*pid).unwrap()));
        }
    }
    assert_eq!(processes.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), [1, 2, 24], "each tile once");
    let found: Vec<(&str, u32)> = threads.iter().map(|(name, _, pid)| (name.as_str(), *pid)).collect();
    let expected =
        [("core 0, place 3", 1), ("core 2, place 2", 2), ("core 3, place 0", 2), ("core 47, place 1", 24)];
    assert_eq!(found, expected);
    // The work of the second place is on the track of its core.
    let track = threads[3].1;
    let worked = packets.iter().filter_map(|packet| Some((packet.time?, packet.event.as_ref()?)));
    let own: Vec<u64> = worked.filter(|(_, event)| event.track == track).map(|(time, _)| time).collect();
    assert_eq!(own.last(), Some(&report.ledgers[1].total().0));
}

#[test]
fn two_corners_of_a_very_large_chip_cost_no_table_of_all_tiles() {
    let text = include_str!("../../../../chips/mesh.toml");
    let chip = Chip::parse("mesh.toml", text).unwrap();
    let large = text
        .replacen("tiles = [4, 4]", "tiles = [100, 100]", 1)
        .replace("serves_to = [3,", "serves_to = [99,");
    let large = large.replace("[99, 3]", "[99, 99]");
    let large = Chip::parse("large.toml", &large).unwrap_or_else(|faults| panic!("{faults:?}"));
    let run = |chip: &Chip| {
        let last = chip.topology().cores() - 1;
        let core_map = Placement::on([0..=0, last..=last]).unwrap().core_map(chip.topology(), 2).unwrap();
        let costs = Costs::of(chip).unwrap();
        let protocol = costs.default_protocol();
        let world = ChipWorld::with_core_map(core_map, costs, protocol, 0).unwrap();
        let endpoints: Vec<_> = [A, B].map(|place| world.endpoint(place)).into();
        pass_round(&world, &endpoints).time
    };
    assert!(run(&large) > run(&chip));
}
