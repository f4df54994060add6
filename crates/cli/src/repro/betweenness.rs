//! Betweenness centrality on the graphs of the X10 paper: how much faster many cores are than one, by protocol.
//!
//! Each row is a run of `isles run bc` of its own, with the sources dealt out beforehand as in X10's program. It takes
//! minutes, because every source of every graph is computed.

use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_apps::console;
use isles_apps::registry::Failure;
use serde_json::Value;
use std::process::Command;

/// V13.
pub const BETWEENNESS: Experiment = Experiment {
    name: "betweenness",
    about: "betweenness centrality of R-MAT graphs: how many times faster than one core, at 533/800/800",
    source: "X10 on the SCC (2011): 25 times with rcce-x10 on 48 cores, smaller graphs less",
    rows: Rows::Runs(betweenness),
};

/// The graphs, smallest first, and the numbers of cores.
const GRAPHS: [(&str, &[u32]); 4] =
    [("rmat-11", &[8, 16, 32, 48]), ("rmat-14-steep", &[48]), ("rmat-14", &[48]), ("rmat-15", &[48])];

/// The graph that the published figure is taken to be of.
const LARGEST: &str = "rmat-15";

fn betweenness() -> Result<Vec<Row>, Failure> {
    let published = Family { deck: "V13", unit: "", band: Band::Within(20.0), basis: Basis::Predicted };
    let alone = Family { band: Band::Unpublished, ..published };
    let mut rows = Vec::new();
    for (graph, many) in GRAPHS {
        let one = predicted(graph, 1, "isles")?;
        for &places in many {
            for protocol in ["rcce-x10", "sections", "sockets", "isles"] {
                let is_published = graph == LARGEST && protocol == "rcce-x10";
                let family = if is_published { published } else { alone };
                let ours = one / predicted(graph, places, protocol)?;
                rows.push(family.row(format!("{graph}, {places} cores, {protocol}"), 25.0, ours));
            }
        }
    }
    Ok(rows)
}

/// Picoseconds that a run takes on the chip.
fn predicted(graph: &str, places: u32, protocol: &str) -> Result<f64, Failure> {
    console::notice(format_args!("{graph} on {places} cores with {protocol}"));
    let failed = |what: String| Failure::Usage(format!("isles run bc --graph {graph}: {what}"));
    let own = std::env::current_exe().map_err(|cause| failed(cause.to_string()))?;
    let mut command = Command::new(own);
    command.args(["run", "bc", "--balance", "static", "--machine", "chip:scc", "--graph", graph]);
    command.args(["--protocol", protocol, "--places", &places.to_string(), "--top", "0"]);
    command.args(["--summary", "-", "--json", "/dev/null", "--csv", "/dev/null"]);
    // What this process was told of places and machines is not for the experiment.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ISLES_")) {
        command.env_remove(name);
    }
    let output = command.output().map_err(|cause| failed(cause.to_string()))?;
    let summary: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let time = summary.and_then(|summary| summary["predicted_ps"].as_f64());
    time.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        failed(said.lines().last().unwrap_or("it said nothing").to_owned())
    })
}
