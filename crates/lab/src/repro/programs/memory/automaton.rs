//! The automaton with one-sided and two-sided messages, on the SCC and on the cluster beside it.
//!
//! Each run is one of `isles run automaton`. The field is fixed: rows of 8,192 cells, so that an edge has the paper's 8
//! KB. The paper does not give the number of rows; 1,008 is divisible by most numbers of cores. The protocol is that of
//! RCKMPI, a section of the buffers for each process. Times are of the steps. The paper shows its speed-ups as a plot;
//! the statements of its text about them are rows.

use crate::repro::programs::{SCC, document, seconds};
use crate::repro::quantity::{Quantity, Title};
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::{Failure, runs};

/// The speed-ups of the paper's figure 3.
pub const AUTOMATON: Experiment = Experiment {
    name: "automaton",
    about: "a cellular automaton one-sided and two-sided: how many times faster than 1 core, at 533/800/800",
    source: "Christgau and Schnor, One-sided communication in RCKMPI for the SCC, MARC 2012",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// The cluster, as a machine.
const CLUSTER: &str = "chip:xeon-cluster";

/// Numbers of cores; the cluster has 28, so the paper does not use more.
const PROCESSES: [u32; 10] = [1, 2, 4, 7, 8, 12, 14, 16, 21, MOST];
const MOST: u32 = 28;

/// Number of rows of the field, and of steps of a run and of a shorter one.
const FIELD_ROWS: u32 = 1008;
const STEPS: u32 = 20;
const FEW_STEPS: u32 = 10;

/// Messages of an edge in the queued form that are answers: the grant of the lock, and the acknowledgement of the
/// unlock.
const ANSWERS: f64 = 2.0;

/// Configuration of a run: a machine and a halo exchange method.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    machine: &'static str,
    exchange: &'static str,
}

/// The paper's three variants, and the form that it did not have.
const TWO_SIDED: Variant = Variant { name: "two-sided", machine: SCC, exchange: "two-sided" };
const QUEUED: Variant = Variant { name: "queued", machine: SCC, exchange: "queued" };
const DIRECT: Variant = Variant { name: "direct", machine: SCC, exchange: "one-sided" };
const INFINIBAND: Variant = Variant { name: "InfiniBand, direct", machine: CLUSTER, exchange: "one-sided" };
const VARIANTS: [Variant; 4] = [TWO_SIDED, QUEUED, DIRECT, INFINIBAND];

/// The form that the paper proposes: windows in shared memory, and a core of each tile for accesses.
const SERVED: Variant = Variant { name: "served", machine: SCC, exchange: "served" };
const SERVED_BUFFERS: Variant =
    Variant { name: "served in buffers", machine: SCC, exchange: "served-buffers" };

/// Cores that compute in the proposed form: the SCC has 24 tiles.
const SERVED_PROCESSES: [u32; 9] = [1, 2, 4, 7, 8, 12, 14, 16, 21];

/// Columns of a field whose windows, two pairs of rows, fit in the message buffers, and the lines that they take.
const NARROW: u32 = 512;
const NARROW_LINES: u32 = 4 * NARROW / 32;

/// Family of the paper's remarks in words.
const SAID: Family = Family {
    deck: "",
    unit: "",
    band: Band::Within(15.0),
    basis: Basis::Derived,
    source: "004:963",
    reading: "",
};
const UNPUBLISHED: Family = Family { band: Band::Unpublished, basis: Basis::Predicted, source: "", ..SAID };

/// Result of a run.
#[derive(Clone, Copy)]
struct Automaton {
    seconds: f64,
    messages: f64,
}

fn rows() -> Result<Vec<Row>, Failure> {
    let long = VARIANTS.into_iter().flat_map(|variant| PROCESSES.map(|cores| (variant, cores, STEPS)));
    let short = VARIANTS.into_iter().map(|variant| (variant, MOST, FEW_STEPS));
    let all: Vec<_> = long.chain(short).collect();
    let ran = runs::all(all.len(), "runs", |number| {
        let (variant, cores, steps) = all[number];
        run(variant, cores, steps)
    })?;
    let (long, short) = ran.split_at(VARIANTS.len() * PROCESSES.len());
    let curves: Vec<Vec<f64>> = long
        .chunks(PROCESSES.len())
        .map(|runs| runs.iter().map(|run| runs[0].seconds / run.seconds).collect())
        .collect();
    let mut rows = Vec::new();
    for (variant, curve) in VARIANTS.iter().zip(&curves) {
        let of = PROCESSES.iter().zip(curve);
        rows.extend(of.map(|(cores, value)| UNPUBLISHED.row(title(variant.name, *cores), f64::NAN, *value)));
    }
    rows.extend(shapes(&curves));
    let edges = f64::from(2 * MOST * (STEPS - FEW_STEPS));
    let last = long.chunks(PROCESSES.len()).filter_map(|runs| runs.last());
    let of_edge: Vec<f64> =
        last.zip(short).map(|(long, short)| (long.messages - short.messages) / edges).collect();
    rows.extend(messages(&of_edge));
    rows.extend(served_rows(&curves[0])?);
    Ok(rows)
}

/// Returns the rows on windows that a core of each tile serves, beside the two-sided form. The paper proposes them
/// without a figure.
fn served_rows(two_sided: &[f64]) -> Result<Vec<Row>, Failure> {
    let narrow = format!("--columns {NARROW} --window-lines {NARROW_LINES}");
    let forms = [
        ("served", SERVED, "--columns 8192".to_owned()),
        ("served, rows of 512 B", SERVED, narrow.clone()),
        ("served in buffers, rows of 512 B", SERVED_BUFFERS, narrow),
    ];
    let all: Vec<_> = forms.iter().flat_map(|form| SERVED_PROCESSES.map(|cores| (form, cores))).collect();
    let seconds = runs::all(all.len(), "runs", |number| {
        let ((_, variant, field), cores) = all[number];
        Ok(run_field(*variant, 2 * cores, STEPS, field)?.seconds)
    })?;
    let mut rows = Vec::new();
    let mut speeds = Vec::new();
    for ((name, ..), seconds) in forms.iter().zip(seconds.chunks(SERVED_PROCESSES.len())) {
        let speed = seconds.iter().map(|time| seconds[0] / time);
        speeds.extend(SERVED_PROCESSES.into_iter().zip(speed).map(|(cores, speed)| (*name, cores, speed)));
    }
    rows.extend(
        speeds.iter().map(|(name, cores, speed)| UNPUBLISHED.row(title(name, *cores), f64::NAN, *speed)),
    );
    let unpublished = Family { band: Band::Unpublished, ..SAID };
    for (_, cores, speed) in speeds.iter().filter(|(name, cores, _)| *name == "served" && *cores >= 4) {
        let linear = f64::from(*cores);
        rows.push(unpublished.row(title("served / linear", *cores), 0.0, speed / linear));
        let index = PROCESSES.iter().position(|other| other == cores).expect("it was run");
        let ratio = speed / two_sided[index];
        rows.push(unpublished.row(title("served / two-sided", *cores), 0.0, ratio));
    }
    Ok(rows)
}

fn title(what: &str, cores: u32) -> Title {
    Title::from(what).over(Quantity::cores(cores))
}

/// Returns the rows on the paper's remarks about its figure.
fn shapes(curves: &[Vec<f64>]) -> Vec<Row> {
    let [two_sided, queued, direct, infiniband] = curves else { unreachable!("there are four variants") };
    let mut rows = Vec::new();
    let many = |from: u32| (0..PROCESSES.len()).filter(move |index| PROCESSES[*index] >= from);
    // "Only one half of the optimal linear speedup", and "about one third smaller than the two other versions".
    let half = SAID.reading("1 / 2: “only one half of the optimal linear speedup”");
    let third = SAID.reading("1 - 1 / 3: “about one third smaller than the two other versions”");
    for index in many(4) {
        let cores = PROCESSES[index];
        let linear = f64::from(cores);
        rows.push(half.row(title("queued / linear", cores), 0.5, queued[index] / linear));
        let ratio = queued[index] / two_sided[index];
        rows.push(third.row(title("queued / two-sided", cores), 2.0 / 3.0, ratio));
        let ratio = queued[index] / infiniband[index];
        rows.push(third.row(title("queued / InfiniBand, direct", cores), 2.0 / 3.0, ratio));
    }
    // "All variants scale in a linear fashion" is read as twice the speed-up with twice the cores.
    let at = |cores: u32| PROCESSES.iter().position(|other| *other == cores).expect("it was run");
    for (variant, curve) in VARIANTS.iter().zip(curves) {
        if variant.name != DIRECT.name {
            let text = format!("{}, {MOST} cores / 14", variant.name);
            let linear = SAID.at("004:991").reading("28 / 14: “all variants scale in a linear fashion”");
            rows.push(linear.row(text, 2.0, curve[at(MOST)] / curve[at(14)]));
        }
    }
    for index in many(4) {
        let (cores, linear) = (PROCESSES[index], f64::from(PROCESSES[index]));
        let text = title("InfiniBand, direct / linear", cores);
        let near = SAID.at("004:971").reading("1: “reached approximately linear speedup”");
        rows.push(near.row(text, 1.0, infiniband[index] / linear));
    }
    // "The two-sided version on the SCC outperforms the two others."
    let at_most = Family { band: Band::AtMost, ..SAID }.at("004:991");
    let at_most = at_most.reading("≤ 1: “the two-sided version on the SCC outperforms the two others”");
    for (name, curve) in [("queued", queued), ("InfiniBand, direct", infiniband)] {
        let text = title(&format!("{name} / two-sided"), MOST);
        rows.push(at_most.row(text, 1.0, curve[at(MOST)] / two_sided[at(MOST)]));
    }
    // The paper hopes that windows in shared memory scale better (004:995), but has no figure.
    let unpublished = Family { band: Band::Unpublished, ..SAID };
    for index in many(2) {
        let text = title("two-sided / direct", PROCESSES[index]);
        rows.push(unpublished.row(text, 0.0, two_sided[index] / direct[index]));
    }
    rows
}

/// Returns the rows on the messages of an edge: "at least three", compared with one.
fn messages(of_edge: &[f64]) -> Vec<Row> {
    let [two_sided, queued, direct, _] = of_edge else { unreachable!("there are four variants") };
    let count = Family { unit: "messages", ..SAID }.at("004:967");
    let three = count.reading("3: “at least three MPI message”");
    let one = count.reading("1: “the single non-blocking communication call”");
    vec![
        three.row("of an edge, queued, without answers", 3.0, queued - ANSWERS),
        one.row("of an edge, two-sided", 1.0, *two_sided),
        Family { unit: "messages", ..UNPUBLISHED }.row("of an edge, direct", f64::NAN, *direct),
    ]
}

/// Runs the automaton.
fn run(variant: Variant, cores: u32, steps: u32) -> Result<Automaton, Failure> {
    run_field(variant, cores, steps, "--columns 8192")
}

/// Runs the automaton on `places` places; `field` has further arguments.
fn run_field(variant: Variant, places: u32, steps: u32, field: &str) -> Result<Automaton, Failure> {
    let Variant { machine, exchange, .. } = variant;
    let protocol = if machine == SCC { " --protocol sections" } else { "" };
    let words = format!(
        "--pattern random --rows {FIELD_ROWS} {field} --generations {steps} --exchange {exchange} \
         --machine {machine} --places {places}{protocol}"
    );
    let document = document("automaton", &words)?;
    let messages = document["run"]["messages"].as_f64();
    let messages =
        messages.ok_or_else(|| Failure::Ended("a run of automaton has no count of messages".to_owned()))?;
    Ok(Automaton { seconds: seconds("automaton", &document)?, messages })
}
