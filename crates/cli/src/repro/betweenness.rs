//! Betweenness centrality on the graphs of the X10 paper: how much faster many cores are than one, by protocol.
//!
//! Each row is a run of `isles run bc` of its own, with the sources dealt out beforehand as in X10's program. The paper
//! calls its graphs weighted, with all weights one, so they are searched by Dijkstra's algorithm; some rows say what
//! breadth-first search comes to. Every source of every graph is computed once and rehearsed in all runs of that graph;
//! that takes minutes.

use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles::{Launch, ModelledChip, Protocol};
use isles_apps::bc::Rehearsal;
use isles_apps::console;
use isles_apps::registry::Failure;

/// V13.
pub const BETWEENNESS: Experiment = Experiment {
    name: "betweenness",
    about: "betweenness centrality of R-MAT graphs, weights of one: how many times faster than one core, at 533/800/800",
    source: "X10 on the SCC (2011): 25 times with rcce-x10 on 48 cores, smaller graphs less",
    instructions: "",
    rows: Rows::Runs(betweenness),
};

/// The graphs, smallest first, and the numbers of cores.
const GRAPHS: [(&str, &[u32]); 4] =
    [("rmat-11", &[8, 16, 32, 48]), ("rmat-14-steep", &[48]), ("rmat-14", &[48]), ("rmat-15", &[48])];

/// All cores.
const CORES: u32 = 48;

/// The graph that the published figure is taken to be of.
const LARGEST: &str = "rmat-15";

/// How messages cross the chip.
const PROTOCOLS: [Protocol; 4] = [Protocol::RcceX10, Protocol::Sections, Protocol::Sockets, Protocol::Isles];

fn betweenness() -> Result<Vec<Row>, Failure> {
    let published = Family { deck: "V13", unit: "", band: Band::Within(20.0), basis: Basis::Predicted };
    let alone = Family { band: Band::Unpublished, ..published };
    let mut rows = Vec::new();
    for (graph, many) in GRAPHS {
        console::notice(format_args!("{graph}: all sources"));
        let by_breadth = Rehearsal::new(graph)?;
        let rehearsal = by_breadth.with_unit_lengths();
        let one = predicted(&rehearsal, 1, Protocol::Isles)?;
        let one_by_breadth = predicted(&by_breadth, 1, Protocol::Isles)?;
        for &places in many {
            for protocol in PROTOCOLS {
                let is_published = graph == LARGEST && protocol == Protocol::RcceX10;
                let family = if is_published { published } else { alone };
                let ours = one / predicted(&rehearsal, places, protocol)?;
                rows.push(family.row(format!("{graph}, {places} cores, {protocol}"), 25.0, ours));
            }
        }
        let ours = one_by_breadth / predicted(&by_breadth, CORES, Protocol::RcceX10)?;
        rows.push(alone.row(format!("{graph}, {CORES} cores, rcce-x10, breadth first"), f64::NAN, ours));
    }
    Ok(rows)
}

/// Picoseconds that a run takes on the chip.
fn predicted(rehearsal: &Rehearsal, places: u32, protocol: Protocol) -> Result<f64, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?;
    let chip = ModelledChip::new("scc").map_err(|error| usage(&error))?;
    let report = rehearsal.run(&launch.places(places).protocol(protocol), chip)?;
    Ok(report.time.0 as f64)
}
