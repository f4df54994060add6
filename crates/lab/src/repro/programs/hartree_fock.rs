//! Hartree-Fock as in X10's program: benzene on the modelled SCC by number of cores, transport and balance; benzene and
//! aspirin on the cluster of the paper.
//!
//! Each row is a run of `isles run hf` of its own, which iterates until it reaches the energy of PySCF. The paper
//! prints the speed-ups of the cluster; for the chip it describes its plots in words, so those rows are ratios.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{CLUSTER, CORES, SCC, TRANSPORTS, X10_CORES, document, seconds, transport};
use isles::Protocol;
use isles_app::{Failure, runs};

/// The figures of the computation of the energy of benzene, and of aspirin.
pub(crate) const HARTREE_FOCK: Experiment = Experiment {
    name: "hf",
    about: "Hartree-Fock energies of benzene and aspirin: how many times faster than one core, at 533/800/800",
    source: "X10 on the SCC (2011), section 4.3.1",
    instructions: "",
    rows: RowSource::Runs(hartree_fock),
};

/// Assignments of units, as arguments of the command.
const BALANCES: [&str; 2] = [BEFOREHAND, BY_COUNTER];
const BEFOREHAND: &str = "static";
const BY_COUNTER: &str = "dynamic";

/// Minimum number of cores on which the program of the paper had enough memory.
const FEW: u32 = 8;

/// Bytes of memory of a core, as that chip was configured (000:49).
const CORE_MEMORY: f64 = 322.0 * 1024.0 * 1024.0;

/// Speed-ups by balance, number of cores and transport.
type Speedups = [[[f64; TRANSPORTS.len()]; X10_CORES.len()]; BALANCES.len()];

const SHAPE: Family = Family {
    deck: "",
    unit: "",
    band: Band::AtMost,
    basis: Basis::Predicted,
    source: "000:220",
    reading: "",
};
const ALONE: Family = Family { band: Band::Unpublished, source: "", ..SHAPE };

/// One run.
#[derive(Clone, Copy)]
struct HfRun {
    molecule: &'static str,
    set: &'static str,
    machine: &'static str,
    balance: &'static str,
    cores: u32,
    protocol: Protocol,
}

/// Benzene on one core of the chip.
const ONE: HfRun = HfRun {
    molecule: "benzene",
    set: "sto-3g",
    machine: SCC,
    balance: BEFOREHAND,
    cores: 1,
    protocol: Protocol::RcceX10,
};

/// The same run on one core of the cluster.
const ONE_OF_CLUSTER: HfRun = HfRun { machine: CLUSTER, protocol: Protocol::Packets, ..ONE };

fn hartree_fock() -> Result<Vec<Row>, Failure> {
    let by_cores = || X10_CORES.into_iter();
    let many = BALANCES.into_iter().flat_map(|balance| {
        by_cores().flat_map(move |cores| TRANSPORTS.map(|protocol| HfRun { balance, cores, protocol, ..ONE }))
    });
    let of_chip: Vec<_> = [ONE].into_iter().chain(many).collect();
    // The longest runs come first, so that all processors end at about the same time.
    let cluster = ClusterRuns::all();
    let mut all: Vec<_> = cluster.iter().map(|(run, _)| *run).collect();
    let beside = BALANCES.map(|balance| X10_CORES.map(|cores| HfRun { balance, cores, ..ONE_OF_CLUSTER }));
    all.extend(beside.iter().flatten());
    all.extend(&of_chip);
    let found = runs::all(all.len(), "runs", |number| Found::of(all[number]))?;
    let (of_cluster, found) = found.split_at(cluster.len());
    let (beside, found) = found.split_at(BALANCES.len() * X10_CORES.len());
    let units = Family { band: Band::Within(0.0), ..SHAPE }.at("000:218");
    let mut rows = vec![units.row("benzene in STO-3G, units of work", 576.0, found[0].units)];
    let memory = SHAPE.at("000:218");
    let memory = memory.reading("≤ 1: “does not run for fewer than eight places due to memory constraints”");
    rows.push(memory.row(
        "static, memory of a core / held by a place on 1 core",
        1.0,
        CORE_MEMORY / found[0].memory,
    ));
    rows.push(Family { unit: "s", ..ALONE }.row("time of 1 core", f64::NAN, found[0].seconds));
    let mut speedups = Speedups::default();
    for (speedup, (run, of_run)) in
        speedups.iter_mut().flatten().flatten().zip(of_chip.iter().zip(found).skip(1))
    {
        *speedup = found[0].seconds / of_run.seconds;
        let title = Title::from(run.balance).over(Quantity::cores(run.cores)).and(transport(run.protocol));
        rows.push(ALONE.row(title, f64::NAN, *speedup));
    }
    rows.extend(order_of_transports(&speedups));
    rows.extend(cost_of_the_counter(&speedups));
    rows.extend(chip_against_cluster(&found[1..], beside));
    rows.extend(ClusterRuns::rows(&cluster, of_cluster));
    Ok(rows)
}

/// Returns the rows on the order of transports: X10's own is ahead on all numbers of cores and the sockets are last, as
/// ratios that are at most one.
fn order_of_transports(speedups: &Speedups) -> Vec<Row> {
    let mut rows = Vec::new();
    let first = SHAPE.reading("≤ 1: “RCCE-X10 has superior performance across the full range of places”");
    let last_one = SHAPE.at("000:247").reading("≤ 1: “does not perform as well as the other transports”");
    let scaling = SHAPE.at("000:222").reading("≤ 1: “Scaling is better for RCCE-X10”");
    for (balance, by_cores) in BALANCES.into_iter().zip(speedups) {
        for (cores, [own, others @ ..]) in X10_CORES.into_iter().zip(by_cores) {
            let best = others.iter().copied().fold(0.0, f64::max);
            let title = Title::from(balance).over(Quantity::cores(cores));
            rows.push(first.row(title.and("best other transport / rcce-x10"), 1.0, best / own));
        }
        let last = |[others @ .., sockets]: &[f64; TRANSPORTS.len()]| {
            sockets / others.iter().copied().fold(f64::INFINITY, f64::min)
        };
        let worst = by_cores.iter().map(last).fold(0.0, f64::max);
        let title = format!("{balance}, sockets / worst other transport, most on any number of cores");
        rows.push(last_one.row(title, 1.0, worst));
        let gain = |transport: usize| by_cores[X10_CORES.len() - 1][transport] / by_cores[0][transport];
        let best = (1..TRANSPORTS.len()).map(gain).fold(0.0, f64::max);
        let title = format!("{balance}, gain from {FEW} to {CORES} cores, best other transport / rcce-x10");
        rows.push(scaling.row(title, 1.0, best / gain(0)));
    }
    rows
}

/// Returns the rows on the cost of a counter on few cores and on all, and on the smoothness of the scaling of both
/// assignments.
fn cost_of_the_counter([beforehand, dynamic]: &Speedups) -> [Row; 4] {
    let ratio = |at: usize| dynamic[at][0] / beforehand[at][0];
    let mean = (0..X10_CORES.len()).map(ratio).sum::<f64>() / X10_CORES.len() as f64;
    // The frequency with which a place yields was chosen with the counter's cost on all cores in view.
    let level = Family { band: Band::Within(10.0), basis: Basis::Calibrated, ..SHAPE };
    let level = level.reading("1: “at 48 places it gives similar performance to static load balancing”");
    let costly = SHAPE.reading("≤ 1: “Dynamic load balancing is costly for few places”");
    let better = SHAPE.at("000:222").reading("≤ 1: “static performs better generally”");
    let smooth = SHAPE.at("000:222").reading("≤ 1: static is “less smooth in distributing work”");
    // Largest change of the efficiency from one number of cores to the next.
    let roughness = |speedups: &[[f64; TRANSPORTS.len()]; X10_CORES.len()]| {
        let efficiency = |at: usize| speedups[at][0] / f64::from(X10_CORES[at]);
        (1..X10_CORES.len()).map(|at| (efficiency(at) / efficiency(at - 1) - 1.0).abs()).fold(0.0, f64::max)
    };
    let title = |cores| format!("rcce-x10, dynamic / static (on {cores} cores)");
    [
        costly.row(title(FEW), 1.0, ratio(0)),
        level.row(title(CORES), 1.0, ratio(X10_CORES.len() - 1)),
        better.row("rcce-x10, dynamic / static, mean", 1.0, mean),
        smooth.row(
            "rcce-x10, largest step of efficiency, dynamic / static",
            1.0,
            roughness(dynamic) / roughness(beforehand),
        ),
    ]
}

/// Returns the rows on the slowdown of the chip relative to the same number of cores of the cluster, with rcce-x10.
fn chip_against_cluster(of_chip: &[Found], of_cluster: &[Found]) -> Vec<Row> {
    // "An order of magnitude."
    let order = Family { band: Band::Within(50.0), basis: Basis::Derived, ..SHAPE };
    let order = order.reading("10: “are an order of magnitude slower than on the AMD Opteron cluster”");
    let over = BALANCES.into_iter().flat_map(|balance| X10_CORES.map(|cores| (balance, cores)));
    let pairs = of_chip.chunks(TRANSPORTS.len()).zip(of_cluster).zip(over);
    pairs
        .map(|((chip, cluster), (balance, cores))| {
            let title = Title::from(format!("{balance}, time of chip / cluster"));
            let title = title.over(Quantity::cores(cores));
            order.row(title, 10.0, chip[0].seconds / cluster.seconds)
        })
        .collect()
}

/// Runs that the paper made on its cluster only.
struct ClusterRuns;

impl ClusterRuns {
    /// Returns the runs, each with its published speed-up if it has one; speed-ups are relative to those on one core.
    fn all() -> Vec<(HfRun, Option<f64>)> {
        let of =
            |molecule, balance, cores| HfRun { molecule, set: "3-21g", balance, cores, ..ONE_OF_CLUSTER };
        let benzene = |cores| of("benzene", BEFOREHAND, cores);
        vec![
            (of("aspirin", BEFOREHAND, 1), None),
            (of("aspirin", BEFOREHAND, 44), Some(31.0)),
            (of("aspirin", BY_COUNTER, CORES), Some(13.0)),
            (benzene(1), None),
            (benzene(12), Some(6.0)),
            (benzene(44), None),
            (of("benzene", BY_COUNTER, CORES), None),
        ]
    }

    fn rows(runs: &[(HfRun, Option<f64>)], found: &[Found]) -> Vec<Row> {
        let printed = Family { band: Band::Within(20.0), ..SHAPE }.at("000:216");
        let (mut rows, mut one, mut by_run) = (Vec::new(), f64::NAN, Vec::new());
        for ((run, published), found) in runs.iter().zip(found) {
            if run.cores == 1 {
                one = found.seconds;
                continue;
            }
            let speedup = one / found.seconds;
            by_run.push(speedup);
            let title = Title::from(format!("cluster, {} in {}, {}", run.molecule, run.set, run.balance));
            let title = title.over(Quantity::cores(run.cores));
            let family = if published.is_some() { printed } else { ALONE };
            rows.push(family.row(title, published.unwrap_or(f64::NAN), speedup));
        }
        let [of_aspirin, aspirin_by_counter, few, many, by_counter] = by_run[..] else {
            unreachable!("there are five")
        };
        let peak = SHAPE.at("000:216").reading("≤ 1: “the peak for Benzene 3-21G is 6times at 12 places”");
        let better = SHAPE.at("000:204-216");
        let better = better.reading("≤ 1: “Aspirin 3-21G shows better scaling compared to Benzene 3-21G”");
        let gap = SHAPE
            .at("000:216")
            .reading("≤ 1: “For static load balancing there is an even more pronounced gap”");
        rows.push(peak.row("cluster, benzene in 3-21g, static, 44 cores / 12", 1.0, many / few));
        let (of_static, of_dynamic) = (many / of_aspirin, by_counter / aspirin_by_counter);
        rows.push(better.row("cluster, static, 44 cores, benzene / aspirin", 1.0, of_static));
        rows.push(better.row("cluster, dynamic, 48 cores, benzene / aspirin", 1.0, of_dynamic));
        rows.push(gap.row(
            "cluster, aspirin / benzene, dynamic on 48 cores / static on 44",
            1.0,
            of_static / of_dynamic,
        ));
        rows
    }
}

/// Result of a run.
struct Found {
    /// Seconds from the first build to the last.
    seconds: f64,
    units: f64,
    /// Largest number of bytes that a place reports to hold.
    memory: f64,
}

impl Found {
    fn of(run: HfRun) -> Result<Found, Failure> {
        let HfRun { molecule, set, machine, balance, cores, protocol } = run;
        // X10 takes one unit at a time from the counter (000:176).
        let balance = if balance == BY_COUNTER { "single" } else { balance };
        let words = format!(
            "--molecule {molecule} --basis {set} --balance {balance} --machine {machine} --places {cores} --protocol {protocol}"
        );
        let document = document("hf", &words)?;
        let units = document["run"]["units"].as_f64();
        let units = units.ok_or_else(|| Failure::Ended("a run of hf has no units".to_owned()))?;
        let memory = document["run"]["memory_held"].as_f64();
        let memory =
            memory.ok_or_else(|| Failure::Ended("a run of hf does not say what it holds".to_owned()))?;
        Ok(Found { seconds: seconds("hf", &document)?, units, memory })
    }
}
