//! Betweenness centrality on the workloads of X10 on the SCC: the speed-up of many cores over one, by transport, on the
//! chip and on the paper's cluster.
//!
//! Each row is a run of `isles run bc` of its own, with the sources assigned beforehand as in X10's program. The paper
//! says that its graphs are weighted but not with which weights; weights of one are assumed, and the graphs are
//! searched by Dijkstra's algorithm. One row has the result of breadth-first search. The first run of a workload
//! computes every source and stores its cost in a file, and the other runs of that workload read it from there.

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

/// The workload whose figures are published, and those with less load, the smallest first.
const LARGE: &str = "large";
const SMALLER: [&str; 2] = ["small", "medium"];

/// The larger workload of the cluster; its smaller one, `low`, is `large` of the chip.
const HIGH: &str = "high";

/// Parameters of the run behind a row.
#[derive(Clone, Copy)]
struct BcRun {
    machine: &'static str,
    preset: Option<&'static str>,
    weights: &'static str,
    places: u32,
    placement: &'static str,
    protocol: Protocol,
}

const BY_DIJKSTRA: &str = "unit";
const BREADTH_FIRST: &str = "ignore";

/// Placements on the first cores, which fill one memory controller after the other, and on cores far from each other.
const LINEAR: &str = "linear";
const SPREAD: &str = "spread";

const ONE: BcRun = BcRun {
    machine: SCC,
    preset: None,
    weights: BY_DIJKSTRA,
    places: 1,
    placement: LINEAR,
    protocol: Protocol::RcceX10,
};

const SHAPE: Family = Family {
    deck: "V13",
    unit: "",
    band: Band::AtMost,
    basis: Basis::Predicted,
    source: "000:293",
    reading: "",
};
const ALONE: Family = Family { band: Band::Unpublished, ..SHAPE };

/// Speed-ups by number of cores.
type Curve = [f64; X10_CORES.len()];

/// Placements on the chip and rates of a memory controller: the part of a title, placement and preset.
const SETUPS: [(&str, &str, Option<&str>); 4] = [
    ("", LINEAR, None),
    ("spread", SPREAD, None),
    (QUADRANT, LINEAR, Some(QUADRANT)),
    ("533/800/800 quadrant, spread", SPREAD, Some(QUADRANT)),
];

fn betweenness() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let small = Transports::measure(SMALLER[0])?;
    small.rows(&mut rows);
    let medium = by_setup(SMALLER[1], &EffortsFile::of(SMALLER[1]))?;
    medium_rows(&medium, &mut rows);
    let large = Large::measure()?;
    large.rows(&mut rows);
    rows.extend(more_load_on_the_cluster(&large)?);
    small.compared(&mut rows);
    let by_load = [
        (SMALLER[0], small.last(Protocol::RcceX10)),
        (SMALLER[1], last(&medium[0])),
        (LARGE, last(&large.by_setup[0])),
    ];
    let better = SHAPE.at("000:295").reading("≤ 1: “the higher the load the better the speedup”");
    for pair in by_load.windows(2) {
        let [(less, one), (more, other)] = pair else { unreachable!("windows are of two") };
        let title = Title::from(format!("{less} / {more}")).over(Quantity::cores(CORES));
        rows.push(better.row(title.and(transport(Protocol::RcceX10)), 1.0, one / other));
    }
    Ok(rows)
}

fn last(curve: &Curve) -> f64 {
    curve[X10_CORES.len() - 1]
}

/// Returns the speed-ups of a workload by `rcce-x10`, in each of the set-ups.
fn by_setup(workload: &'static str, efforts: &EffortsFile) -> Result<[Curve; SETUPS.len()], Failure> {
    let of_setup = |(_, placement, preset): (&str, &'static str, Option<&'static str>)| {
        [1].into_iter().chain(X10_CORES).map(move |places| BcRun { preset, placement, places, ..ONE })
    };
    let all: Vec<BcRun> = SETUPS.into_iter().flat_map(of_setup).collect();
    let times = times(workload, &all, efforts)?;
    let mut curves = [Curve::default(); SETUPS.len()];
    for (curve, times) in curves.iter_mut().zip(times.chunks(X10_CORES.len() + 1)) {
        *curve = std::array::from_fn(|at| times[0] / times[at + 1]);
    }
    Ok(curves)
}

fn medium_rows(curves: &[Curve], rows: &mut Vec<Row>) {
    for ((name, ..), curve) in SETUPS.into_iter().zip(curves) {
        for (cores, speedup) in X10_CORES.into_iter().zip(curve) {
            let title = Title::from(SMALLER[1]).over(Quantity::cores(cores));
            rows.push(ALONE.row(title.and(transport(Protocol::RcceX10)).and(name), f64::NAN, *speedup));
        }
    }
}

/// The speed-ups of a workload by transport.
struct Transports {
    workload: &'static str,
    curves: [Curve; TRANSPORTS.len()],
}

/// Numbers of cores at which transports are compared; on fewer cores they hardly differ.
const COMPARED: [u32; 3] = [24, TAIL, CORES];

impl Transports {
    fn measure(workload: &'static str) -> Result<Transports, Failure> {
        let of = |protocol| X10_CORES.map(|places| BcRun { places, protocol, ..ONE });
        let all: Vec<BcRun> = [ONE].into_iter().chain(TRANSPORTS.into_iter().flat_map(of)).collect();
        let times = times(workload, &all, &EffortsFile::of(workload))?;
        let mut curves = [Curve::default(); TRANSPORTS.len()];
        for (curve, of_transport) in curves.iter_mut().zip(times[1..].chunks(X10_CORES.len())) {
            *curve = std::array::from_fn(|at| times[0] / of_transport[at]);
        }
        Ok(Transports { workload, curves })
    }

    fn of(&self, protocol: Protocol, cores: u32) -> f64 {
        let at = X10_CORES.iter().position(|other| *other == cores);
        let by = TRANSPORTS.iter().position(|other| *other == protocol);
        let (at, by) = at.zip(by).expect("it is one of those that were run");
        self.curves[by][at]
    }

    fn last(&self, protocol: Protocol) -> f64 {
        self.of(protocol, CORES)
    }

    fn title(&self, cores: u32) -> Title {
        Title::from(self.workload).over(Quantity::cores(cores))
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        for (protocol, curve) in TRANSPORTS.into_iter().zip(&self.curves) {
            for (cores, speedup) in X10_CORES.into_iter().zip(curve) {
                rows.push(ALONE.row(self.title(cores).and(transport(protocol)), f64::NAN, *speedup));
            }
        }
    }

    /// Adds the rows on the order of the transports and on where they tail off.
    fn compared(&self, rows: &mut Vec<Row>) {
        let others = || TRANSPORTS.into_iter().filter(|protocol| *protocol != Protocol::RcceX10);
        let ahead = SHAPE.reading("≤ 1: “X10 has a slight advantage across the full range of places”");
        let close = Family { band: Band::Within(10.0), ..SHAPE };
        let close = close.reading("1: “seem to track each other rather closely”");
        for cores in COMPARED {
            let best = others().map(|protocol| self.of(protocol, cores)).fold(0.0, f64::max);
            let own = self.of(Protocol::RcceX10, cores);
            let title = self.title(cores).and("best other transport / rcce-x10");
            rows.push(ahead.row(title, 1.0, best / own));
            let ratio = self.of(Protocol::Sockets, cores) / self.of(Protocol::MpiSockets, cores);
            rows.push(close.row(self.title(cores).and("sockets / mpi-sock"), 1.0, ratio));
        }
        let growth = |protocol| self.last(protocol) / self.of(protocol, TAIL);
        let gain = |protocol| growth(protocol) - 1.0;
        // "Start to tail off" is read as growing at most half as much as the transport that continues to scale.
        let tail = Family { basis: Basis::Derived, ..SHAPE };
        let tail = tail.reading("≤ 1 / 2: “start to tail off at around 36 places”");
        let workload = self.workload;
        for protocol in [Protocol::Sections, Protocol::MpiSockets] {
            let name = transport(protocol);
            let title = format!("{workload}, growth from {TAIL} to {CORES} cores, {name} / rcce-x10");
            rows.push(tail.row(title, 0.5, gain(protocol) / gain(Protocol::RcceX10)));
        }
        let continues = SHAPE.reading("≤ 1: “whereas RCCE-X10 continues scaling”");
        let title = format!("{workload}, rcce-x10, {TAIL} cores / {CORES}");
        rows.push(continues.row(title, 1.0, 1.0 / growth(Protocol::RcceX10)));
        let further = SHAPE.reading("≤ 1: “scaling further than the other two”");
        let most = others().map(growth).fold(0.0, f64::max);
        let title =
            format!("{workload}, growth from {TAIL} to {CORES} cores, best other transport / rcce-x10");
        rows.push(further.row(title, 1.0, most / growth(Protocol::RcceX10)));
        let smoother = SHAPE.reading("≤ 1: “with RCCE-X10 having smoother speedup”");
        let least = others().map(|protocol| self.roughness(protocol)).fold(f64::INFINITY, f64::min);
        let title = format!("{workload}, largest step of efficiency, rcce-x10 / smoothest other");
        rows.push(smoother.row(title, 1.0, self.roughness(Protocol::RcceX10) / least));
        let similar = Family { band: Band::Within(20.0), ..SHAPE };
        let similar = similar.reading("1: “all the transports scale similarly”");
        let slowest = others().map(|protocol| self.last(protocol)).fold(f64::INFINITY, f64::min);
        let title = self.title(CORES).and("slowest transport / rcce-x10");
        rows.push(similar.row(title, 1.0, slowest / self.last(Protocol::RcceX10)));
    }

    /// Returns the largest relative step of the efficiency from one number of cores to the next.
    fn roughness(&self, protocol: Protocol) -> f64 {
        let efficiency = |at: usize| self.of(protocol, X10_CORES[at]) / f64::from(X10_CORES[at]);
        (1..X10_CORES.len()).map(|at| (efficiency(at) / efficiency(at - 1) - 1.0).abs()).fold(0.0, f64::max)
    }
}

/// The speed-ups of the published workload.
struct Large {
    by_setup: [Curve; SETUPS.len()],
    /// Speed-up on all cores, by transport.
    by_transport: [f64; TRANSPORTS.len()],
    breadth_first: f64,
    /// Speed-up by number of cores; the last but one is just below all cores, so that a drop is visible.
    on_cluster: [f64; CLUSTER_CORES.len()],
}

/// Cores of the cluster.
const CLUSTER_CORES: [u32; 6] = [8, 16, 24, 36, 44, CORES];

impl Large {
    fn measure() -> Result<Large, Failure> {
        let cluster = BcRun { machine: CLUSTER, protocol: Protocol::Packets, ..ONE };
        let breadth = BcRun { weights: BREADTH_FIRST, ..ONE };
        let mut all = vec![ONE, cluster, breadth, BcRun { places: CORES, ..breadth }];
        all.extend(TRANSPORTS.map(|protocol| BcRun { places: CORES, protocol, ..ONE }));
        all.extend(CLUSTER_CORES.map(|places| BcRun { places, ..cluster }));
        let efforts = EffortsFile::of(LARGE);
        let times = times(LARGE, &all, &efforts)?;
        let [one, one_of_cluster, one_by_breadth, many_by_breadth, many @ ..] = &times[..] else {
            unreachable!("there are more")
        };
        let (by_transport, of_cluster) = many.split_at(TRANSPORTS.len());
        Ok(Large {
            by_setup: by_setup(LARGE, &efforts)?,
            by_transport: std::array::from_fn(|at| one / by_transport[at]),
            breadth_first: one_by_breadth / many_by_breadth,
            on_cluster: std::array::from_fn(|at| one_of_cluster / of_cluster[at]),
        })
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        let published = Family { band: Band::Within(20.0), ..SHAPE };
        for ((name, ..), curve) in SETUPS.into_iter().zip(&self.by_setup) {
            for (cores, speedup) in X10_CORES.into_iter().zip(curve) {
                // With all cores, the placement does not matter. Both readings of a controller's rate are compared.
                let is_published = cores == CORES && !name.contains("spread");
                let title = Title::from(LARGE).over(Quantity::cores(cores));
                let title = title.and(transport(Protocol::RcceX10)).and(name);
                let family = if is_published { published } else { ALONE };
                rows.push(family.row(title, 25.0, *speedup));
            }
        }
        let title = |what: &str| Title::from(LARGE).over(Quantity::cores(CORES)).and(what);
        for (protocol, speedup) in TRANSPORTS.into_iter().zip(self.by_transport).skip(1) {
            rows.push(ALONE.row(title(transport(protocol)), f64::NAN, speedup));
        }
        rows.push(ALONE.row(title("rcce-x10, breadth first"), f64::NAN, self.breadth_first));
        let similar = Family { band: Band::Within(20.0), ..SHAPE };
        let similar = similar.reading("1: “all the transports scale similarly”");
        let slowest = self.by_transport.into_iter().fold(f64::INFINITY, f64::min);
        let ratio = slowest / self.by_transport[0];
        rows.push(similar.row(title("slowest transport / rcce-x10"), 1.0, ratio));
        self.compared_machines(rows);
    }

    /// Adds the rows on the cluster, and on the claim that it scales like the chip except for a drop on all its cores.
    fn compared_machines(&self, rows: &mut Vec<Row>) {
        for (cores, speedup) in CLUSTER_CORES.into_iter().zip(self.on_cluster) {
            let title = Title::from("low, cluster").over(Quantity::cores(cores));
            rows.push(ALONE.row(title, f64::NAN, speedup));
        }
        let comparable = Family { band: Band::Within(20.0), ..SHAPE }.at("000:295");
        let comparable = comparable.reading("1: “scales similarly on both SCC and the AMD Opteron cluster”");
        for ((name, ..), curve) in SETUPS.into_iter().zip(&self.by_setup) {
            let on_chip = X10_CORES.into_iter().zip(curve).filter(|(cores, _)| *cores < CORES);
            for (cores, speedup) in on_chip {
                let at = CLUSTER_CORES.iter().position(|other| *other == cores).expect("it was run");
                let title = Title::from("large, chip / cluster").over(Quantity::cores(cores)).and(name);
                rows.push(comparable.row(title, 1.0, speedup / self.on_cluster[at]));
            }
        }
        let [.., before, all] = self.on_cluster;
        let [.., few, many] = CLUSTER_CORES;
        let title = format!("low, cluster, {many} cores / {few}");
        let drops =
            SHAPE.at("000:295").reading("≤ 1: “at 48 places where the cluster drops off significantly”");
        rows.push(drops.row(title, 1.0, all / before));
    }
}

/// Returns the rows on the larger workload of the cluster on all its cores: it scales further than the other one.
fn more_load_on_the_cluster(large: &Large) -> Result<[Row; 2], Failure> {
    let cluster = BcRun { machine: CLUSTER, protocol: Protocol::Packets, ..ONE };
    let efforts = EffortsFile::of(HIGH);
    let times = times(HIGH, &[cluster, BcRun { places: CORES, ..cluster }], &efforts)?;
    let speedup = times[0] / times[1];
    let better = SHAPE.at("000:295").reading("≤ 1: “the higher the load the better the speedup”");
    let title = |what: &str| Title::from(what).over(Quantity::cores(CORES));
    let [.., low] = large.on_cluster;
    Ok([
        ALONE.row(title("high, cluster"), f64::NAN, speedup),
        better.row(title("low / high, cluster"), 1.0, low / speedup),
    ])
}

/// Number of cores from which both transports of MPI tail off.
const TAIL: u32 = 36;

/// Returns the picoseconds of runs of a workload, each with the distribution of the graph.
fn times(workload: &str, searches: &[BcRun], efforts: &EffortsFile) -> Result<Vec<f64>, Failure> {
    runs::all(searches.len(), "runs", |number| predicted(workload, searches[number], &efforts.0))
}

/// The file that stores the costs of the sources for the runs of a workload; deleted with this value.
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

/// Returns the picoseconds of a run, with the distribution of the graph.
fn predicted(workload: &str, search: BcRun, efforts: &Path) -> Result<f64, Failure> {
    let BcRun { machine, preset, weights, places, placement, protocol } = search;
    let words = format!(
        "--rmat {workload} --weights {weights} --balance static --machine {machine} --places {places} --protocol {protocol}"
    );
    // The first cores of a cluster are those of its first hosts.
    let words = if machine == SCC { format!("{words} --placement {placement}") } else { words };
    let mut own: Vec<String> = words.split(' ').chain(NO_FILES).map(str::to_owned).collect();
    own.extend(preset.into_iter().flat_map(|preset| ["--preset".to_owned(), preset.to_owned()]));
    own.extend(["--known-efforts".to_owned(), efforts.display().to_string()]);
    let summary = runs::summary("bc", &own, [])?;
    let time = summary["predicted_ps"].as_u64();
    time.map(|time| time as f64).ok_or_else(|| Failure::Ended("a run of bc has no predicted time".to_owned()))
}
