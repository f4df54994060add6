//! The planner beside a search in the graph of all waypoints at all times: `expanded planner|petgraph|edges
//! REPETITIONS`.
//!
//! Both are given the same table: when a glider arrives that departs along an edge at each time. What is timed is the
//! search, and for the expanded graph also making it; the least of all repetitions is printed in the form that the
//! bench reads. `edges` writes the expanded graph for a peer in another language: the start, the goal, the waypoints,
//! and an edge a line. The arrival must be the same for all.

use clap::{CommandFactory, FromArgMatches, Parser};
use isles_path::PlanArguments;
use isles_path::glide::{Dive, NEVER, glide};
use isles_path::sea::Waypoint;
use isles_path::search::RouteSearch;
use isles_path::{Mission, best};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

/// The mission: arrivals are whole minutes.
const WORDS: [&str; 13] = [
    "expanded",
    "--case",
    "jet",
    "--quantum",
    "60",
    "--profiles",
    "1",
    "--piece",
    "400",
    "--columns",
    "9",
    "--rows",
    "5",
];

/// The arguments as a command of their own.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    plan: PlanArguments,
}

/// Arrivals of a glider along each edge, by the minute of its departure.
type Table = BTreeMap<(Waypoint, Waypoint), Vec<u32>>;

/// The arrival at the goal by the planner, whose costs come from `arrival`.
fn plan(mission: &Mission, arrival: impl Fn(Waypoint, Waypoint, u32) -> u32) -> Option<u32> {
    let mut search = RouteSearch::new(&mission.sea, mission.start, mission.goal);
    while let Some(edge) = search.next_edge() {
        search.record_arrival(edge, arrival(edge.from, edge.to, edge.departure), 0);
    }
    search.arrival(mission.goal)
}

/// The table up to the minute of the arrival.
fn table(mission: &Mission, minutes: u32) -> Table {
    let mut table = Table::new();
    for from in (0..mission.sea.waypoints()).map(Waypoint) {
        for to in mission.sea.neighbours(from) {
            let arrival = |minute| evaluated(mission, from, to, 60 * minute);
            table.insert((from, to), (0..=minutes).map(arrival).collect());
        }
    }
    table
}

/// Returns the arrival of a glider along an edge with its best profile.
fn evaluated(mission: &Mission, from: Waypoint, to: Waypoint, departure: u32) -> u32 {
    let arrival =
        |profile| glide(&mission.sea, &mission.resolution, Dive { from, to, departure, profile }).arrival;
    best((0..mission.resolution.profiles).map(arrival)).0
}

/// The arrival by petgraph, in the expanded graph that is made of the table.
fn expand(mission: &Mission, table: &Table, minutes: u32) -> Option<u32> {
    let waypoints = mission.sea.waypoints();
    let node = |Waypoint(waypoint), minute: u32| NodeIndex::new((minute * waypoints + waypoint) as usize);
    let nodes = (waypoints * (minutes + 1)) as usize;
    let mut graph = DiGraph::<(), u32>::with_capacity(nodes, table.len() * (minutes as usize + 1));
    (0..nodes).for_each(|_| {
        graph.add_node(());
    });
    for ((from, to), arrivals) in table {
        for (minute, arrival) in (0..).zip(arrivals) {
            if *arrival != NEVER && arrival / 60 <= minutes {
                graph.add_edge(node(*from, minute), node(*to, arrival / 60), arrival - 60 * minute);
            }
        }
    }
    let found = petgraph::algo::astar(
        &graph,
        node(mission.start, 0),
        |at| at.index() as u32 % waypoints == mission.goal.0,
        |edge| *edge.weight(),
        |_| 0, // without an estimate it is Dijkstra's algorithm, which ends at the goal
    );
    found.map(|(length, _)| length)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(mode), Some(repetitions)) = (arguments.next(), arguments.next()) else {
        return Err("expanded planner|petgraph|edges REPETITIONS".into());
    };
    let matches = Line::command().try_get_matches_from(WORDS)?;
    let mission = Line::from_arg_matches(&matches)?.plan.plan().map_err(|fault| fault.to_string())?;
    let expected = plan(&mission, |from, to, departure| evaluated(&mission, from, to, departure));
    let minutes = expected.ok_or("no route leads there")? / 60;
    let table = table(&mission, minutes);
    let looked_up = |from, to, departure: u32| {
        let known = table.get(&(from, to)).and_then(|arrivals| arrivals.get(departure as usize / 60));
        known.copied().unwrap_or(NEVER)
    };
    if mode == "edges" {
        println!("{} {} {}", mission.start.0, mission.goal.0, mission.sea.waypoints());
        for ((from, to), arrivals) in &table {
            for (minute, arrival) in arrivals.iter().enumerate().filter(|(_, arrival)| **arrival != NEVER) {
                println!("{} {} {minute} {}", from.0, to.0, arrival / 60);
            }
        }
        return Ok(());
    }
    let mut least = f64::INFINITY;
    for _ in 0..repetitions.parse::<u32>()? {
        let began = Instant::now();
        let found = match mode.as_str() {
            "planner" => plan(&mission, looked_up),
            "petgraph" => expand(&mission, &table, minutes),
            other => return Err(format!("{other}: planner, petgraph or edges").into()),
        };
        least = least.min(began.elapsed().as_secs_f64());
        assert_eq!(found, expected, "all arrive at the same time");
    }
    println!("measured search_ms {:.6}", 1e3 * least);
    println!("measured arrival_s {}", expected.unwrap_or_default());
    Ok(())
}
