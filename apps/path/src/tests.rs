//! Tests of the planner: first in, first out; the arrivals of all ways and of a time-expanded graph; and Zermelo's
//! problem.

use crate::case::{Mission, PlanArguments};
use crate::current::{Current, Moment, SampledCurrent, Velocity};
use crate::glide::{Dive, NEVER, SPEED, glide};
use crate::parallel::sequential;
use crate::route::legs;
use crate::sea::{Obstacle, Position, Waypoint};
use crate::zermelo::{self, Shear};
use clap::{CommandFactory, FromArgMatches, Parser};
use petgraph::graph::DiGraph;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The arguments as a command line of their own.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    plan: PlanArguments,
}

fn plan(words: &str) -> Mission {
    let words = std::iter::once("path").chain(words.split_whitespace());
    let matches = Line::command().try_get_matches_from(words).unwrap();
    Line::from_arg_matches(&matches).unwrap().plan.plan().map_err(|fault| fault.to_string()).unwrap()
}

/// Returns the earliest arrival at the goal.
fn arrival(plan: &Mission) -> Option<u32> {
    legs(plan, &sequential(plan, |_| {}).search).last().map(|leg| leg.arrival)
}

/// Returns the earliest arrival along an edge over all profiles.
fn along(plan: &Mission, from: Waypoint, to: Waypoint, departure: u32) -> u32 {
    let arrival = |profile| glide(&plan.sea, &plan.resolution, Dive { from, to, departure, profile }).arrival;
    (0..plan.resolution.profiles).map(arrival).min().unwrap()
}

/// Generates a small sea with random samples of currents, some too strong for the glider, and a moving disc.
fn random_sea() -> impl Strategy<Value = Mission> {
    let samples = proptest::collection::vec(-0.6_f32..0.6, 2 * 3 * 2 * 4 * 4);
    let slots = prop_oneof![Just(900.0), 300.0_f64..1_200.0];
    (samples, -0.4_f64..0.4, -0.4_f64..0.4, slots).prop_map(|(samples, east, north, slot)| {
        let line = format!("--columns 4 --rows 4 --profiles 2 --piece 200 --slot {slot} --quantum 60");
        let mut plan = plan(&line);
        let (u, v) = samples.split_at(samples.len() / 2);
        let axes = [
            vec![0.0, 7_200.0, 20_000.0],
            vec![20.0, 150.0],
            vec![0.0, 2_000.0, 4_000.0, 6_000.0],
            vec![0.0, 2_000.0, 4_000.0, 6_000.0],
        ];
        plan.sea.current =
            Current::Sampled(Box::new(SampledCurrent { axes, east: u.to_vec(), north: v.to_vec() }));
        let middle = Position { east: 3_000.0, north: 3_000.0 };
        plan.sea.islands.clear();
        plan.sea.obstacles = vec![Obstacle { middle, radius: 700.0, velocity: Velocity { east, north } }];
        (plan.start, plan.goal, plan.resolution.horizon) = (Waypoint(0), Waypoint(15), 60_000);
        plan
    })
}

/// Computes the earliest arrivals by relaxing all edges until nothing changes.
fn relaxed(plan: &Mission) -> Vec<u32> {
    let mut earliest = vec![NEVER; plan.sea.waypoints() as usize];
    earliest[plan.start.0 as usize] = 0;
    loop {
        let before = earliest.clone();
        for from in (0..plan.sea.waypoints()).map(Waypoint) {
            let departure = earliest[from.0 as usize];
            for to in plan.sea.neighbours(from).into_iter().filter(|_| departure != NEVER) {
                let arrival = along(plan, from, to, departure);
                earliest[to.0 as usize] = earliest[to.0 as usize].min(arrival);
            }
        }
        if earliest == before {
            return earliest;
        }
    }
}

/// Returns the earliest arrival over all ways that visit no waypoint twice.
fn earliest_way(plan: &Mission, at: Waypoint, time: u32, visited: &mut Vec<Waypoint>) -> u32 {
    if at == plan.goal || time == NEVER {
        return time;
    }
    visited.push(at);
    let next: Vec<Waypoint> =
        plan.sea.neighbours(at).into_iter().filter(|to| !visited.contains(to)).collect();
    let found = next.into_iter().map(|to| earliest_way(plan, to, along(plan, at, to, time), visited));
    let found = found.min().unwrap_or(NEVER);
    visited.pop();
    found
}

/// Returns the earliest arrival by a search with petgraph in the graph of all waypoints at all times up to `horizon`.
fn expanded(plan: &Mission, horizon: u32) -> Option<u32> {
    let quantum = plan.resolution.quantum;
    let mut graph = DiGraph::<(Waypoint, u32), u32>::new();
    let mut nodes = BTreeMap::new();
    for time in (0..=horizon).step_by(quantum as usize) {
        for waypoint in (0..plan.sea.waypoints()).map(Waypoint) {
            nodes.insert((waypoint, time), graph.add_node((waypoint, time)));
        }
    }
    for ((from, departure), node) in &nodes {
        for to in plan.sea.neighbours(*from) {
            let arrival = along(plan, *from, to, *departure);
            if let Some(other) = nodes.get(&(to, arrival)) {
                graph.add_edge(*node, *other, arrival - departure);
            }
        }
    }
    let start = nodes[&(plan.start, 0)];
    let lengths = petgraph::algo::dijkstra(&graph, start, None, |edge| *edge.weight());
    let at_goal = lengths.into_iter().filter(|(node, _)| graph[*node].0 == plan.goal);
    at_goal.map(|(_, length)| length).min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn who_departs_later_does_not_arrive_earlier(plan in random_sea(), times in (0_u32..30_000, 0_u32..30_000)) {
        let (early, late) = (times.0.min(times.1), times.0.max(times.1));
        for to in plan.sea.neighbours(Waypoint(5)) {
            for profile in 0..plan.resolution.profiles {
                let dive = |departure| Dive { from: Waypoint(5), to, departure, profile };
                let [one, other] = [early, late].map(|time| glide(&plan.sea, &plan.resolution, dive(time)).arrival);
                prop_assert!(one <= other, "{to:?}, profile {profile}: {one} after {early}, {other} after {late}");
            }
        }
    }

    #[test]
    fn the_search_finds_what_relaxing_all_edges_finds(plan in random_sea()) {
        let expected = Some(relaxed(&plan)[plan.goal.0 as usize]).filter(|arrival| *arrival != NEVER);
        prop_assert_eq!(arrival(&plan), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn no_way_is_faster_and_a_time_expanded_graph_agrees(mut plan in random_sea()) {
        (plan.sea.columns, plan.sea.rows, plan.goal) = (3, 3, Waypoint(8));
        let expected = earliest_way(&plan, plan.start, 0, &mut Vec::new());
        prop_assert_eq!(arrival(&plan), Some(expected).filter(|arrival| *arrival != NEVER));
        let found = expanded(&plan, expected.min(plan.resolution.horizon));
        prop_assert_eq!(found, Some(expected).filter(|arrival| *arrival != NEVER));
    }
}

/// Each value is a slot length with a multiple whose division by it is not exact.
#[test]
fn a_glider_that_lies_until_the_horizon_passes_each_slot_once() {
    for slot in [1.1, 30.1, 100.1, 299.7, 450.7] {
        let mut plan = plan(&format!("--case uniform --slot {slot}"));
        plan.sea.current = Current::Uniform(Velocity { east: 0.0, north: 2.0 * SPEED });
        let dive = Dive { from: Waypoint(0), to: Waypoint(1), departure: 0, profile: 0 };
        let found = glide(&plan.sea, &plan.resolution, dive);
        let slots = (f64::from(plan.resolution.horizon) / slot).ceil() as u32;
        assert_eq!(found.arrival, NEVER);
        assert!(found.evaluations.abs_diff(slots) <= 1, "{slot}: {} of {slots}", found.evaluations);
    }
}

#[test]
fn a_sea_of_one_row_has_a_route_in_each_case() {
    for case in ["uniform", "zermelo", "jet"] {
        let plan = plan(&format!("--case {case} --rows 1 --columns 7"));
        let Velocity { east, north } =
            plan.sea.current(Moment { east: 4_000.0, north: 0.0, depth: 10.0, time: 60.0 });
        assert!(east.is_finite() && north.is_finite(), "{case}: {east} {north}");
        assert!(arrival(&plan).is_some(), "{case}");
    }
}

#[test]
fn a_uniform_current_is_zermelos_closed_form() {
    let (from, to) = (Position { east: 0.0, north: 0.0 }, Position { east: 3_500.0, north: 0.0 });
    let still = Velocity::default();
    assert_eq!(zermelo::uniform(from, to, still, SPEED), Some(10_000.0));
    let with = Velocity { east: 0.35, north: 0.0 };
    assert!((zermelo::uniform(from, to, with, SPEED).unwrap() - 5_000.0).abs() < 1e-6);
    assert_eq!(zermelo::uniform(to, from, Velocity { east: 0.4, north: 0.0 }, SPEED), None);
    // For a cross current: v² = 0.35² - 0.21² = 0.28².
    let across = Velocity { east: 0.0, north: 0.21 };
    assert!((zermelo::uniform(from, to, across, SPEED).unwrap() - 12_500.0).abs() < 1e-6);
}

#[test]
fn a_shear_without_rate_is_still_water_and_with_one_is_what_three_straight_courses_do_not_beat() {
    let (from, to) = (Position { east: 0.0, north: 2_000.0 }, Position { east: 20_000.0, north: 6_000.0 });
    let still = zermelo::shear(from, to, Shear { middle: 0.0, rate: 0.0 }, SPEED).unwrap();
    assert!((still - from.distance(to) / SPEED).abs() < 1e-3);
    let (middle, rate) = (4_000.0, 5e-5);
    let best = zermelo::shear(from, to, Shear { middle, rate }, SPEED).unwrap();
    // Steer for a point beside the straight line and then for the goal, holding each course in small steps.
    let sail = |from: Position, to: Position| {
        let (length, mut time) = (from.distance(to), 0.0);
        let (east, north) = ((to.east - from.east) / length, (to.north - from.north) / length);
        for step in 0..1_000 {
            let at = from.north + (f64::from(step) + 0.5) / 1_000.0 * (to.north - from.north);
            let water = rate * (at - middle);
            let (along, across) = (water * east, -water * north);
            time += length / 1_000.0 / (along + (SPEED * SPEED - across * across).sqrt());
        }
        time
    };
    let by = |first: u32, second: u32| {
        let via = |third: f64, number: u32| Position {
            east: third * 20_000.0 / 3.0,
            north: f64::from(number) * 400.0,
        };
        let (one, other) = (via(1.0, first), via(2.0, second));
        sail(from, one) + sail(one, other) + sail(other, to)
    };
    let vias = (0..=30).flat_map(|first| (0..=30).map(move |second| (first, second)));
    let fastest = vias.map(|(first, second)| by(first, second)).fold(f64::INFINITY, f64::min);
    assert!(best < fastest && best > 0.96 * fastest, "{best} and {fastest}");
}

#[test]
fn the_planner_comes_nearer_to_zermelos_optimum_with_more_headings() {
    let of = |reach: u32| {
        let plan = plan(&format!("--case zermelo --columns 31 --rows 15 --reach {reach} --profiles 1"));
        let [from, to] = [plan.start, plan.goal].map(|end| plan.sea.position(end));
        let Current::Shear { middle, per_second } = plan.sea.current else { unreachable!("it is the case") };
        let best = zermelo::shear(from, to, Shear { middle, rate: per_second }, SPEED).unwrap();
        f64::from(arrival(&plan).unwrap()) / best
    };
    let [coarse, middle, fine] = [1, 2, 4].map(of);
    assert!(fine >= 0.999 && fine < middle && middle < coarse && fine < 1.01, "{coarse} {middle} {fine}");
}

#[test]
fn a_jet_is_without_divergence_and_decays_with_depth() {
    let plan = plan("--case jet");
    assert!(
        matches!(plan.sea.current, Current::Jet(_))
            && plan.sea.current != Current::Uniform(Velocity::default())
    );
    let at =
        |east: f64, north: f64, depth: f64| plan.sea.current(Moment { east, north, depth, time: 12_345.0 });
    let step = 1.0;
    for (east, north) in [(9_000.0, 11_000.0), (20_000.0, 14_500.0), (31_000.0, 9_500.0)] {
        let across = (at(east + step, north, 0.0).east - at(east - step, north, 0.0).east) / (2.0 * step);
        let up = (at(east, north + step, 0.0).north - at(east, north - step, 0.0).north) / (2.0 * step);
        assert!((across + up).abs() < 1e-3 * (across.abs() + up.abs()) + 1e-9, "{across} + {up}");
        let speed = |depth| {
            let Velocity { east, north } = at(east, north, depth);
            east.hypot(north)
        };
        assert!((speed(150.0) - speed(0.0) / std::f64::consts::E).abs() < 1e-9);
    }
}

#[test]
fn land_and_obstacles_are_gone_around() {
    let free = arrival(&plan("--case uniform --columns 13 --rows 9")).unwrap();
    let wall = plan("--case uniform --columns 13 --rows 9 --obstacle 12,8,5");
    assert!(arrival(&wall).unwrap() > free);
    let route = legs(&wall, &sequential(&wall, |_| {}).search);
    assert!(route.iter().all(|leg| leg.position.distance(Position { east: 12e3, north: 8e3 }) >= 5e3));
    // The route waits for a crossing ship, or goes round it.
    let ship = plan("--case uniform --columns 13 --rows 9 --obstacle 12,16,4,0,-0.2");
    let delayed = arrival(&ship).unwrap();
    assert!(delayed > free && delayed < free + 100_000, "{delayed} and {free}");
    let wall: String = (0..=4).map(|number| format!(" --obstacle 12,{},3", 4 * number)).collect();
    let enclosed = plan(&format!("--case uniform --columns 13 --rows 9{wall}"));
    assert_eq!(arrival(&enclosed), None);
}

/// Writes a file with an eastward current, slower at depth, and land in the north-east.
fn file_of_currents(path: &std::path::Path, names: [&str; 2]) {
    let mut set = netcdf3::DataSet::new();
    let axes =
        [("time", vec![0.0, 86_400.0]), ("depth", vec![0.0, 100.0]), ("y", vec![500.0, 1_500.0, 2_500.0])];
    let axes = [&axes[..], &[("x", vec![500.0, 1_500.0, 2_500.0, 3_500.0])]].concat();
    for (name, values) in &axes {
        set.add_fixed_dim(name, values.len()).unwrap();
        set.add_var_f64(name, &[name]).unwrap();
    }
    for name in names {
        set.add_var_f32(name, &["time", "depth", "y", "x"]).unwrap();
        set.add_var_attr_f32(name, "_FillValue", vec![netcdf3::NC_FILL_F32]).unwrap();
    }
    let mut file = netcdf3::FileWriter::open(path).unwrap();
    file.set_def(&set, netcdf3::Version::Classic, 0).unwrap();
    axes.iter().for_each(|(name, values)| file.write_var_f64(name, values).unwrap());
    for name in names {
        let value = |number: usize| match (number % 12, number / 12 % 2) {
            (11, _) => netcdf3::NC_FILL_F32,
            (_, 0) if name == "u" => 0.2,
            (_, 1) if name == "u" => 0.1,
            _ => 0.0,
        };
        file.write_var_f32(name, &(0..48).map(value).collect::<Vec<f32>>()).unwrap();
    }
    file.close().unwrap();
}

#[test]
fn currents_come_from_a_netcdf_file_and_a_file_without_them_says_what_it_has() {
    let path = std::env::temp_dir().join(format!("isles-path-{}.nc", std::process::id()));
    file_of_currents(&path, ["u", "v"]);
    let plan = plan(&format!("--currents {} --spacing 1", path.display()));
    assert_eq!((plan.sea.columns, plan.sea.rows), (4, 3));
    let at = |depth| plan.sea.current(Moment { east: 500.0, north: 500.0, depth, time: 3_600.0 });
    for (depth, expected) in [(0.0, 0.2), (50.0, 0.15), (300.0, 0.1)] {
        let Velocity { east, north } = at(depth);
        assert!((east - expected).abs() < 1e-6 && north == 0.0, "{depth} m: {east}");
    }
    assert!(plan.sea.is_closed(Position { east: 3_000.0, north: 2_000.0 }));
    assert!(!plan.sea.is_closed(Position { east: 2_000.0, north: 2_000.0 }));
    file_of_currents(&path, ["speed", "course"]);
    let error = crate::file::read_currents(path.to_str().unwrap()).err().unwrap().to_string();
    assert_eq!(error, "no variable \"u\"; it has time, depth, y, x, speed, course");
    std::fs::remove_file(path).unwrap();
}

/// Writes a file with packed currents: 0.25 m/s eastward in the west, land in the east.
fn file_of_packed_currents(path: &std::path::Path, easts: [f64; 3]) {
    let mut set = netcdf3::DataSet::new();
    let axes = [("time", vec![0.0]), ("depth", vec![0.0]), ("y", vec![0.0, 1_000.0]), ("x", easts.to_vec())];
    for (name, values) in &axes {
        set.add_fixed_dim(name, values.len()).unwrap();
        set.add_var_f64(name, &[name]).unwrap();
    }
    for name in ["u", "v"] {
        set.add_var_i16(name, &["time", "depth", "y", "x"]).unwrap();
        set.add_var_attr_f32(name, "scale_factor", vec![0.001]).unwrap();
        // Twice, because the writer does not pad to a whole word as the format requires.
        set.add_var_attr_i16(name, "_FillValue", vec![-30_000; 2]).unwrap();
    }
    let mut file = netcdf3::FileWriter::open(path).unwrap();
    file.set_def(&set, netcdf3::Version::Classic, 0).unwrap();
    axes.iter().for_each(|(name, values)| file.write_var_f64(name, values).unwrap());
    file.write_var_i16("u", &[250, 250, -30_000, 250, 250, -30_000]).unwrap();
    file.write_var_i16("v", &[0, 0, -30_000, 0, 0, -30_000]).unwrap();
    file.close().unwrap();
}

#[test]
fn packed_currents_are_metres_a_second_and_axes_are_finite() {
    let path = std::env::temp_dir().join(format!("isles-path-packed-{}.nc", std::process::id()));
    file_of_packed_currents(&path, [0.0, 1_000.0, 2_000.0]);
    let plan = plan(&format!("--currents {} --spacing 1 --from 0,0 --to 1,1", path.display()));
    assert_eq!((plan.sea.columns, plan.sea.rows), (3, 2));
    let Velocity { east, north } =
        plan.sea.current(Moment { east: 500.0, north: 500.0, depth: 0.0, time: 0.0 });
    assert!((east - 0.25).abs() < 1e-6 && north == 0.0, "{east} {north}");
    assert!(plan.sea.is_closed(Position { east: 2_000.0, north: 0.0 }));
    assert!(!plan.sea.is_closed(Position { east: 1_000.0, north: 0.0 }));
    file_of_packed_currents(&path, [0.0, 1_000.0, 1e15]);
    let far = self::plan(&format!("--currents {} --spacing 1", path.display()));
    assert_eq!((far.sea.columns, far.sea.rows), (25, 2));
    for easts in [[0.0, 1_000.0, f64::INFINITY], [-1e308, 0.0, 1.7e308], [0.0, f64::NAN, 1.0]] {
        file_of_packed_currents(&path, easts);
        let error = crate::file::read_currents(path.to_str().unwrap()).err().unwrap().to_string();
        assert_eq!(error, "variable \"x\" is not ascending; allowed: ascending finite numbers");
    }
    std::fs::remove_file(path).unwrap();
}
