//! Betweenness centrality on the workloads of X10 on the SCC: how much faster many cores are than one, by transport, on
//! the chip and on the paper's cluster.
//!
//! Each row is a run of `isles run bc` of its own, with the sources assigned beforehand as in X10's program. The paper
//! says that its graphs are weighted and not with what; weights of one are assumed, so they are searched by Dijkstra's
//! algorithm. One row says what breadth-first search comes to. The first run of a workload computes every source and
//! keeps what it took in a file, and the others of that workload know it from there.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{CLUSTER, CORES, QUADRANT, SCC, TRANSPORTS, X10_CORES, transport};
use isles::Protocol;
use isles_app::frame::NO_FILES;
use isles_app::{Failure, runs};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// V13.
pub const BETWEENNESS: Experiment = Experiment {
    name: "betweenness",
    about: "betweenness centrality of R-MAT graphs, weights of one: how many times faster than one core, at 533/800/800",
    source: "X10 on the SCC (2011), section 4.3.2",
    instructions: "",
    rows: RowSource::Runs(betweenness),
};

/// The workload whose figures are published, and those of less load, the least first.
const LARGE: &str = "large";
const SMALLER: [&str; 2] = ["small", "medium"];

/// How a row is computed.
#[derive(Clone, Copy)]
struct BcRun {
    machine: &'static str,
    preset: Option<&'static str>,
    weights: &'static str,
    places: u32,
    protocol: Protocol,
}

const BY_DIJKSTRA: &str = "unit";
const BREADTH_FIRST: &str = "ignore";

const ONE: BcRun =
    BcRun { machine: SCC, preset: None, weights: BY_DIJKSTRA, places: 1, protocol: Protocol::RcceX10 };

const SHAPE: Family =
    Family { deck: "V13", unit: "", band: Band::AtMost, basis: Basis::Predicted, source: "000:293" };
const ALONE: Family = Family { band: Band::Unpublished, source: "", ..SHAPE };

fn betweenness() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let by_load = SMALLER.into_iter().map(|workload| less_load(workload, &mut rows));
    let mut by_load = by_load.collect::<Result<Vec<_>, Failure>>()?;
    let large = Large::measure()?;
    by_load.push((LARGE, *large.of(CORES, Protocol::RcceX10)));
    large.rows(&mut rows);
    for pair in by_load.windows(2) {
        let [(less, one), (more, other)] = pair else { unreachable!("windows are of two") };
        let title = Title::from(format!("{less} against {more}")).over(Quantity::cores(CORES));
        let title = title.and(transport(Protocol::RcceX10));
        rows.push(SHAPE.at("000:295").row(title, 1.0, one / other));
    }
    Ok(rows)
}

/// The rows of a workload of less load, and its speed-up on all cores.
fn less_load(workload: &'static str, rows: &mut Vec<Row>) -> Result<(&'static str, f64), Failure> {
    let many = X10_CORES.map(|places| BcRun { places, ..ONE });
    let times = times(workload, &[&[ONE], &many[..]].concat())?;
    let speedups = times[1..].iter().map(|time| times[0] / time);
    for (search, speedup) in many.iter().zip(speedups) {
        let title = Title::from(workload).over(Quantity::cores(search.places));
        rows.push(ALONE.row(title.and(transport(search.protocol)), f64::NAN, speedup));
    }
    Ok((workload, times[0] / times[X10_CORES.len()]))
}

/// The speed-ups of the published workload.
struct Large {
    /// By number of cores and transport.
    on_chip: [[f64; TRANSPORTS.len()]; X10_CORES.len()],
    breadth_first: f64,
    /// By the other reading of what a memory controller gives.
    on_quadrants: f64,
    /// By number of cores; the last before all of them, so that a drop shows.
    on_cluster: [f64; CLUSTER_CORES.len()],
}

/// Cores of the cluster.
const CLUSTER_CORES: [u32; 6] = [8, 16, 24, 36, 44, CORES];

impl Large {
    fn measure() -> Result<Large, Failure> {
        let cluster = BcRun { machine: CLUSTER, protocol: Protocol::Packets, ..ONE };
        let breadth = BcRun { weights: BREADTH_FIRST, ..ONE };
        let quadrant = BcRun { preset: Some(QUADRANT), ..ONE };
        let mut all = vec![ONE, cluster, breadth, BcRun { places: CORES, ..breadth }];
        all.extend([quadrant, BcRun { places: CORES, ..quadrant }]);
        all.extend(CLUSTER_CORES.map(|places| BcRun { places, ..cluster }));
        let by_cores = X10_CORES.into_iter();
        all.extend(by_cores.flat_map(|places| TRANSPORTS.map(|protocol| BcRun { places, protocol, ..ONE })));
        let times = times(LARGE, &all)?;
        let [one, one_of_cluster, one_by_breadth, many_by_breadth, quadrants @ ..] = &times[..] else {
            unreachable!("there are more")
        };
        let [one_of_quadrants, all_quadrants, many @ ..] = quadrants else { unreachable!("there are more") };
        let mut large = Large {
            on_chip: Default::default(),
            breadth_first: one_by_breadth / many_by_breadth,
            on_quadrants: one_of_quadrants / all_quadrants,
            on_cluster: Default::default(),
        };
        let (of_cluster, of_chip) = many.split_at(CLUSTER_CORES.len());
        for (speedup, time) in large.on_cluster.iter_mut().zip(of_cluster) {
            *speedup = one_of_cluster / time;
        }
        for (speedup, time) in large.on_chip.iter_mut().flatten().zip(of_chip) {
            *speedup = one / time;
        }
        Ok(large)
    }

    /// The speed-up on so many cores by a transport.
    fn of(&self, cores: u32, protocol: Protocol) -> &f64 {
        let at = X10_CORES.iter().position(|other| *other == cores);
        let by = TRANSPORTS.iter().position(|other| *other == protocol);
        let (at, by) = at.zip(by).expect("it is one of those that were run");
        &self.on_chip[at][by]
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        for (cores, by_transport) in X10_CORES.into_iter().zip(&self.on_chip) {
            for (protocol, speedup) in TRANSPORTS.into_iter().zip(by_transport) {
                let title = Title::from(LARGE).over(Quantity::cores(cores)).and(transport(protocol));
                let published = Family { band: Band::Within(20.0), ..SHAPE };
                let family = if (cores, protocol) == (CORES, Protocol::RcceX10) { published } else { ALONE };
                rows.push(family.row(title, 25.0, *speedup));
            }
        }
        let title = Title::from(LARGE).over(Quantity::cores(CORES)).and(transport(Protocol::RcceX10));
        rows.push(ALONE.row(title.clone().and("breadth first"), f64::NAN, self.breadth_first));
        // Which reading is right is not known, so neither is judged by the other's row.
        rows.push(ALONE.at("000:293").row(title.and(QUADRANT), 25.0, self.on_quadrants));
        self.compared_transports(rows);
        self.compared_machines(rows);
    }

    /// The order of the transports and where they tail off, as ratios that are at most one.
    fn compared_transports(&self, rows: &mut Vec<Row>) {
        for (cores, [first, others @ ..]) in X10_CORES.into_iter().zip(&self.on_chip) {
            let best = others.iter().copied().fold(0.0, f64::max);
            let title = Title::from(LARGE).over(Quantity::cores(cores));
            rows.push(SHAPE.row(title.and("the best other transport against rcce-x10"), 1.0, best / first));
        }
        let gain = |protocol| self.of(CORES, protocol) / self.of(TAIL, protocol) - 1.0;
        // "Start to tail off": read as growing at most half as much as the one that continues scaling.
        let tail = Family { basis: Basis::Derived, ..SHAPE };
        for protocol in [Protocol::Sections, Protocol::MpiSockets] {
            let ratio = gain(protocol) / gain(Protocol::RcceX10);
            let title = format!(
                "{LARGE}, growth from {TAIL} to {CORES} cores, {} against rcce-x10",
                transport(protocol)
            );
            rows.push(tail.row(title, 0.5, ratio));
        }
        let title = format!("{LARGE}, rcce-x10, {TAIL} cores against {CORES}");
        rows.push(SHAPE.row(title, 1.0, 1.0 / (1.0 + gain(Protocol::RcceX10))));
        // "Seem to track each other rather closely."
        let close = Family { band: Band::Within(10.0), ..SHAPE };
        for cores in X10_CORES {
            let ratio = self.of(cores, Protocol::Sockets) / self.of(cores, Protocol::MpiSockets);
            let title = Title::from(LARGE).over(Quantity::cores(cores)).and("sockets against mpi-sock");
            rows.push(close.row(title, 1.0, ratio));
        }
    }

    /// The cluster, and that it scales as the chip does but for a drop on all its cores.
    fn compared_machines(&self, rows: &mut Vec<Row>) {
        for (cores, speedup) in CLUSTER_CORES.into_iter().zip(self.on_cluster) {
            let title = Title::from("low, cluster").over(Quantity::cores(cores));
            rows.push(ALONE.row(title, f64::NAN, speedup));
        }
        let alike = Family { band: Band::Within(20.0), ..SHAPE }.at("000:295");
        for (cores, speedup) in CLUSTER_CORES.into_iter().zip(self.on_cluster) {
            if cores < CORES && X10_CORES.contains(&cores) {
                let title = Title::from("large, chip against cluster").over(Quantity::cores(cores));
                rows.push(alike.row(title, 1.0, self.of(cores, Protocol::RcceX10) / speedup));
            }
        }
        let [.., before, all] = self.on_cluster;
        let [.., few, many] = CLUSTER_CORES;
        let title = format!("low, cluster, {many} cores against {few}");
        rows.push(SHAPE.at("000:295").row(title, 1.0, all / before));
    }
}

/// Cores from where both transports of MPI tail off.
const TAIL: u32 = 36;

/// Picoseconds that runs of a workload take, each with the distribution of the graph.
fn times(workload: &str, searches: &[BcRun]) -> Result<Vec<f64>, Failure> {
    let efforts = EffortsFile::of(workload);
    runs::all(searches.len(), "runs", |number| predicted(workload, searches[number], &efforts.0))
}

/// The file in which runs of a workload find what its sources take; gone with the last run.
struct EffortsFile(PathBuf);

impl EffortsFile {
    fn of(workload: &str) -> EffortsFile {
        EffortsFile(env::temp_dir().join(format!("isles-repro-{}-{workload}.json", process::id())))
    }
}

impl Drop for EffortsFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // a run that was refused has left none
    }
}

/// Picoseconds that a run takes, with the distribution of the graph.
fn predicted(workload: &str, search: BcRun, efforts: &Path) -> Result<f64, Failure> {
    let BcRun { machine, preset, weights, places, protocol } = search;
    let words = format!(
        "--rmat {workload} --weights {weights} --balance static --machine {machine} --places {places} --protocol {protocol}"
    );
    let mut own: Vec<String> = words.split(' ').chain(NO_FILES).map(str::to_owned).collect();
    own.extend(preset.into_iter().flat_map(|preset| ["--preset".to_owned(), preset.to_owned()]));
    own.extend(["--known-efforts".to_owned(), efforts.display().to_string()]);
    let summary = runs::summary("bc", &own, [])?;
    let time = summary["predicted_ps"].as_u64();
    time.map(|time| time as f64).ok_or_else(|| Failure::Ended("a run of bc has no predicted time".to_owned()))
}
