//! Betweenness centrality on the graphs of the X10 paper: how much faster many cores are than one, by protocol.
//!
//! Each row is a run of `isles run bc` of its own, with the sources assigned beforehand as in X10's program. The paper
//! calls its graphs weighted, with all weights one, so they are searched by Dijkstra's algorithm; some rows say what
//! breadth-first search comes to. The first run of a graph computes every source and keeps what it took in a file, and
//! the others of that graph know it from there; that takes minutes.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use isles::Protocol;
use isles_app::frame::NO_FILES;
use isles_app::{Failure, console, runs};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// V13.
pub const BETWEENNESS: Experiment = Experiment {
    name: "betweenness",
    about: "betweenness centrality of R-MAT graphs, weights of one: how many times faster than one core, at 533/800/800",
    source: "X10 on the SCC (2011): 25 times with rcce-x10 on 48 cores, smaller graphs less",
    instructions: "",
    rows: RowSource::Runs(betweenness),
};

/// The graphs, smallest first.
const GRAPHS: [&str; 4] = ["rmat-11", "rmat-14-steep", "rmat-14", "rmat-15"];

/// The graph that the published figure is taken to be of.
const LARGEST: &str = "rmat-15";

/// Numbers of cores beside one, and all of them.
const MANY: [u32; 4] = [8, 16, 32, CORES];
const CORES: u32 = 48;

/// How messages cross the chip: X10's three in the order in which they are taken to scale, best first, and ours.
const PROTOCOLS: [Protocol; 4] =
    [Protocol::RcceX10, Protocol::Sections, Protocol::Sockets, Protocol::Doorbell];

/// Speed-ups of a graph on all cores, by protocol.
type SpeedupsByProtocol = [f64; PROTOCOLS.len()];

fn betweenness() -> Result<Vec<Row>, Failure> {
    let (mut rows, mut on_all) = (Vec::new(), Vec::new());
    for graph in GRAPHS {
        on_all.push((graph, scaling(graph, &mut rows)?));
    }
    rows.extend(shapes(&on_all));
    Ok(rows)
}

/// The rows of one graph.
fn scaling(graph: &str, rows: &mut Vec<Row>) -> Result<SpeedupsByProtocol, Failure> {
    let published = Family {
        deck: "V13",
        unit: "",
        band: Band::Within(20.0),
        basis: Basis::Predicted,
        source: "000:293",
    };
    let alone = Family { band: Band::Unpublished, ..published };
    let (unit, ignore) = ("unit", "ignore");
    let many = MANY.into_iter().flat_map(|cores| PROTOCOLS.map(|protocol| (unit, cores, protocol)));
    let by_breadth = [(ignore, 1, Protocol::Doorbell), (ignore, CORES, Protocol::RcceX10)];
    let all: Vec<_> = [(unit, 1, Protocol::Doorbell)].into_iter().chain(many).chain(by_breadth).collect();
    console::notice(format_args!("{graph}: all sources, then {} runs", all.len()));
    let efforts = EffortsFile::of(graph);
    let times = runs::all(all.len(), "runs", |number| predicted(graph, all[number], &efforts.0))?;
    let [one, times @ .., one_by_breadth, many_by_breadth] = &times[..] else {
        unreachable!("there are more")
    };
    let mut on_all = SpeedupsByProtocol::default();
    for (places, by_protocol) in MANY.into_iter().zip(times.chunks(PROTOCOLS.len())) {
        for (at, (protocol, time)) in PROTOCOLS.into_iter().zip(by_protocol).enumerate() {
            let is_published = (graph, places, protocol) == (LARGEST, CORES, Protocol::RcceX10);
            let family = if is_published { published } else { alone };
            on_all[at] = one / time;
            let title = Title::from(graph).over(Quantity::cores(places)).and(protocol);
            rows.push(family.row(title, 25.0, on_all[at]));
        }
    }
    let ours = one_by_breadth / many_by_breadth;
    let title = Title::from(graph).over(Quantity::cores(CORES)).and("rcce-x10").and("breadth first");
    rows.push(alone.row(title, f64::NAN, ours));
    Ok(on_all)
}

/// The file in which runs of a graph find what its sources take; gone with the last run.
struct EffortsFile(PathBuf);

impl EffortsFile {
    fn of(graph: &str) -> EffortsFile {
        EffortsFile(env::temp_dir().join(format!("isles-repro-{}-{graph}.json", process::id())))
    }
}

impl Drop for EffortsFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // a run that was refused has left none
    }
}

/// What was published of the order of the transports and of the graphs, as ratios that are at most one.
fn shapes(on_all: &[(&str, SpeedupsByProtocol)]) -> Vec<Row> {
    let family =
        Family { deck: "V13", unit: "", band: Band::AtMost, basis: Basis::Predicted, source: "000:293" };
    let mut rows = Vec::new();
    for (graph, ours) in on_all {
        for (pair, speeds) in PROTOCOLS[..3].windows(2).zip(ours.windows(2)) {
            let title = Title::from(*graph).over(Quantity::cores(CORES));
            let title = title.and(format_args!("{} against {}", pair[1], pair[0]));
            rows.push(family.row(title, 1.0, speeds[1] / speeds[0]));
        }
    }
    for pair in on_all.windows(2) {
        let [(small, one), (large, other)] = pair else { unreachable!("windows are of two") };
        let title = Title::from(format!("{small} against {large}")).over(Quantity::cores(CORES));
        rows.push(family.row(title.and("rcce-x10"), 1.0, one[0] / other[0]));
    }
    rows
}

/// Picoseconds that a run takes on the chip, with the distribution of the graph.
fn predicted(
    graph: &str,
    (weights, places, protocol): (&str, u32, Protocol),
    efforts: &Path,
) -> Result<f64, Failure> {
    let words = format!(
        "--graph {graph} --weights {weights} --balance static --machine chip:scc --places {places} --protocol {protocol}"
    );
    let mut own: Vec<String> = words.split(' ').chain(NO_FILES).map(str::to_owned).collect();
    own.extend(["--known-efforts".to_owned(), efforts.display().to_string()]);
    let summary = runs::summary("bc", &own, [])?;
    let time = summary["predicted_ps"].as_u64();
    time.map(|time| time as f64).ok_or_else(|| Failure::Ended("a run of bc has no predicted time".to_owned()))
}
