//! Savings of AT-Opt: the kernels of IMSuite with minimal captures, and with all the data that X10 would have shipped.
//!
//! A row is a run of `isles run imsuite` on eight places, or the ratio of two of them, each run in a process of its own
//! as a user starts it. On processes, the time is measured on this host; the smallest of a few runs is taken, because
//! other load can only add to it. On the modelled SCC it is predicted. Bytes are those of the whole run, the
//! distribution of the network included. Each answer is verified, so no time belongs to a wrong one. The paper's sweep
//! of places is in `places`. Invariant: the two runs of a ratio differ only in the data that their calls take along.

mod places;

use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{document, seconds};
use isles_app::Failure;
use isles_app::console;
use serde_json::Value;

/// The sweep of the paper's single-node evaluation, and the kernels of the suite on eight places.
pub(crate) const AT_OPT: Experiment = Experiment {
    name: "at-opt",
    about: "IMSuite: calls that take along all that X10 would against minimal ones, on 2 to 16 places and on the chip",
    source: "AT-Opt, single-node evaluation, PACT'18: X10's two back ends on an Intel and an AMD host",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// The kernels, in the order of the suite.
pub(super) const KERNELS: [&str; 12] =
    ["BF", "DST", "BY", "DR", "DS", "KC", "DP", "HS", "LCR", "MIS", "MST", "VC"];

/// Data that a run ships with its calls, as arguments of the command.
pub(super) const MINIMAL: &str = "minimal";
pub(super) const REACHABLE: &str = "reachable";

/// Places of the rows by network, and their nodes.
const PLACES: u32 = 8;
const NODES: usize = 128;

/// Nodes of BY on the chip, as in the smaller set of the suite: with 128 it sends 44 GB, which takes minutes to model.
const NODES_OF_BY: usize = 32;

/// On processes, the fastest of `REPEATS` runs of each kind counts. One run of each counts if the first one with all
/// reachable data takes `SECONDS_MAX` or more.
const REPEATS: usize = 5;
const SECONDS_MAX: f64 = 1.0;

/// Machine on which the kernels run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Processes,
    Chip,
}

impl Host {
    fn name(self) -> &'static str {
        match self {
            Host::Processes => "processes",
            Host::Chip => "chip:scc",
        }
    }
}

/// One run.
#[derive(Clone, Copy)]
pub(super) struct AtOptRun<'a> {
    pub(super) machine: &'static str,
    pub(super) kernel: &'a str,
    pub(super) family: &'a str,
    pub(super) nodes: usize,
    pub(super) places: u32,
    pub(super) ship: &'static str,
}

/// Result of a run.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) memory_peak: f64,
}

impl AtOptRun<'_> {
    /// Runs the kernel in a process of its own, which also verifies its answer.
    pub(super) fn measure(self) -> Result<Measured, Failure> {
        let AtOptRun { machine, kernel, family, nodes, places, ship } = self;
        let words = format!(
            "--kernel {kernel} --generate {nodes},{family} --ship {ship} --places {places} --machine {machine}"
        );
        let document = document("imsuite", &words)?;
        let whole = |value: &Value| value.as_u64().unwrap_or_default();
        let (seconds, run) = (seconds("imsuite", &document)?, &document["run"]);
        Ok(Measured {
            seconds,
            calls: whole(&document["calls"]),
            bytes: whole(&run["bytes_moved"]),
            memory_peak: run["memory_peak"].as_f64().unwrap_or(f64::NAN),
        })
    }
}

fn rows() -> Result<Vec<Row>, Failure> {
    let mut all = Vec::new();
    for host in [Host::Processes, Host::Chip] {
        let mut logarithms = Vec::new();
        for kernel in KERNELS {
            for family in families(kernel) {
                console::notice(format_args!("{kernel} {family} on {}", host.name()));
                let [minimal, reachable] = compared(host, kernel, family)?;
                let ratio = reachable.seconds / minimal.seconds;
                logarithms.push(ratio.ln());
                all.extend(rows_of(host, &format!("{kernel} {family}"), minimal, reachable));
            }
        }
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        all.push(family(host, "").row(
            format!("{}, geometric mean, times as long", host.name()),
            f64::NAN,
            mean,
        ));
    }
    all.extend(places::rows()?);
    Ok(all)
}

fn family(host: Host, unit: &'static str) -> Family {
    let basis = if host == Host::Chip { Basis::Predicted } else { Basis::Measured };
    Family { deck: "", unit, band: Band::Unpublished, basis, source: "", reading: "" }
}

/// Returns the network families of a kernel: those of the suite's files.
fn families(kernel: &str) -> &'static [&'static str] {
    match kernel {
        "HS" | "LCR" => &["ring"],
        "VC" => &["chain", "star"],
        _ => &["sparse-max", "sparse-min"],
    }
}

fn rows_of(host: Host, network: &str, minimal: Measured, reachable: Measured) -> Vec<Row> {
    let name = |what: &str| format!("{}, {network}, {what}", host.name());
    let time = |what: &str, run: Measured| family(host, "ms").row(name(what), f64::NAN, run.seconds * 1e3);
    let bytes =
        |what: &str, run: Measured| family(host, "KB").row(name(what), f64::NAN, run.bytes as f64 / 1e3);
    vec![
        time("minimal", minimal),
        time("reachable", reachable),
        family(host, "").row(name("times as long"), f64::NAN, reachable.seconds / minimal.seconds),
        family(host, "calls").row(name("between places"), f64::NAN, minimal.calls as f64),
        bytes("minimal", minimal),
        bytes("reachable", reachable),
    ]
}

/// Returns a run with minimal captures and one with all reachable data; of several, the fastest ones, run alternately.
fn compared(host: Host, kernel: &str, family: &str) -> Result<[Measured; 2], Failure> {
    let repeats = if host == Host::Chip { 1 } else { REPEATS };
    let [minimal, reachable] = fastest(repeats, |ship| measured(host, kernel, family, ship))?;
    if minimal.calls != reachable.calls {
        return Err(Failure::WrongResult(format!(
            "{kernel} makes {} calls or {}",
            minimal.calls, reachable.calls
        )));
    }
    Ok([minimal, reachable])
}

/// Returns the fastest of at most `repeats` runs of each kind, run alternately. Both kinds have the same number of
/// runs, because noise makes the fastest of more runs faster.
fn fastest(
    repeats: usize,
    mut run: impl FnMut(&'static str) -> Result<Measured, Failure>,
) -> Result<[Measured; 2], Failure> {
    let mut fastest = [run(MINIMAL)?, run(REACHABLE)?];
    // A long run varies less and costs more.
    if fastest[1].seconds < SECONDS_MAX {
        for _ in 1..repeats {
            for (fastest, ship) in fastest.iter_mut().zip([MINIMAL, REACHABLE]) {
                let again = run(ship)?;
                if again.seconds < fastest.seconds {
                    *fastest = again;
                }
            }
        }
    }
    Ok(fastest)
}

/// Measures a run of the rows by network.
fn measured(host: Host, kernel: &str, family: &str, ship: &'static str) -> Result<Measured, Failure> {
    let is_small = (host, kernel) == (Host::Chip, "BY");
    let nodes = if is_small { NODES_OF_BY } else { NODES };
    AtOptRun { machine: host.name(), kernel, family, nodes, places: PLACES, ship }.measure()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates runs that take these seconds in turn. Returns the seconds of the fastest of each kind, and the number
    /// of runs of each.
    fn fastest_of(seconds: [&[f64]; 2]) -> ([f64; 2], [usize; 2]) {
        let mut runs = [0; 2];
        let run = |ship| {
            let kind = usize::from(ship == REACHABLE);
            runs[kind] += 1;
            Ok(Measured { seconds: seconds[kind][runs[kind] - 1], calls: 1, bytes: 1, memory_peak: 1.0 })
        };
        let found = fastest(3, run).map_err(|fault| fault.to_string()).unwrap();
        (found.map(|run| run.seconds), runs)
    }

    #[test]
    fn both_kinds_are_run_equally_often_and_the_fastest_counts() {
        assert_eq!(fastest_of([&[0.3, 0.2, 0.4], &[0.9, 0.5, 1.5]]), ([0.2, 0.5], [3, 3]));
        assert_eq!(fastest_of([&[0.3, 0.2, 0.4], &[1.0, 0.5, 0.5]]), ([0.3, 1.0], [1, 1]));
    }
}
