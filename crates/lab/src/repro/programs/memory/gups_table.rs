//! Table 2 of the paper on RandomAccess, on this host: four places on one table, with locks and without, and errors.
//!
//! The chip's model has no memory that the cores of a node share, so these runs are made on the host, and change with
//! it. The table is in a window, which every place accesses directly. Of several runs of a mode, run alternately, the
//! fastest counts. Part a, the errors, is an experiment of its own, because it takes minutes. Invariant: all modes make
//! the same updates of the same table.

use crate::repro::programs::document;
use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::Failure;
use isles_app::console;

/// Entries of the table: 16 Mi, as in the paper.
const BITS: u32 = 24;

/// Updates of the timed runs, enough for places to wait for locks often.
const UPDATES: u64 = 4 << 20;

/// Number of runs of each mode.
const REPEATS: usize = 3;

/// Part b: title, arguments, rate relative to one core without locks, and source.
const MODES: [(&str, &str, f64, &str); 4] = [
    ("without locks", "unlocked", 2.58, "003:123"),
    ("1 lock", "locks --locks 1", 0.83, "003:124"),
    ("16 locks", "locks --locks 16", 1.83, "003:125"),
    ("32 locks", "locks --locks 32", 1.87, "003:126"),
];

/// Part a, which takes minutes: updates in Mi, wrong entries per million, their standard deviation, the ratio of both,
/// and the source.
const ERRORS: [(u64, [f64; 3], &str); 5] = [
    (32, [2.92, 1.49, 0.51], "003:115"),
    (64, [3.46, 1.55, 0.45], "003:116"),
    (128, [6.14, 2.50, 0.41], "003:117"),
    (256, [8.52, 1.91, 0.22], "003:118"),
    (512, [19.13, 3.27, 0.17], "003:119"),
];

/// Number of runs with each number of updates.
const ERROR_RUNS: usize = 4;

/// Ways to map the benchmark that its rules permit (modes 1, 6 and 8 of table 1), as arguments of the command.
const PERMITTED: [&str; 3] =
    ["--places 4 --mode direct", "--places 4 --mode atomic", "--places 4 --mode roles"];

/// Part a of table 2.
pub(crate) const ERRORS_OF_RACES: Experiment = Experiment {
    name: "gups-errors",
    about: "wrong entries of a table that four places of this host change without locks, by number of updates",
    source: "Aggarwal, Sabharwal, Garg, Heidelberger, HPCC RandomAccess for Next Generation Supercomputers (2009)",
    instructions: "",
    rows: RowSource::Runs(errors),
};

const FAMILY: Family =
    Family { deck: "", unit: "", band: Band::Within(20.0), basis: Basis::Measured, source: "", reading: "" };

/// Returns the rows of table 2.
///
/// # Errors
/// A run failed.
pub(super) fn rows() -> Result<Vec<Row>, Failure> {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); MODES.len() + 1];
    for repeat in 1..=REPEATS {
        console::notice(format_args!("table 2 on this host, {repeat} of {REPEATS}"));
        rates[0].push(run(1, "unlocked", UPDATES)?.0);
        for ((_, mode, ..), rates) in MODES.iter().zip(&mut rates[1..]) {
            rates.push(run(4, mode, UPDATES)?.0);
        }
    }
    let fastest = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let alone = fastest(&rates[0]);
    let mut rows: Vec<Row> = MODES
        .into_iter()
        .zip(&rates[1..])
        .map(|((name, _, published, source), rates)| {
            let title = format!("this host, four places / one, {name}");
            FAMILY.at(source).row(title, published, fastest(rates) / alone)
        })
        .collect();
    let mut right = 0;
    for words in PERMITTED {
        let found = document("gups", &format!("--machine processes --bits 12 {words}"))?;
        right += u32::from(found["errors"].as_u64() == Some(0));
    }
    let modes = Family { band: Band::Within(0.0), ..FAMILY }.at("003:82");
    let modes =
        modes.reading("3: “mapping modes 1 (1 MPI process per core), 6 and 8 (one MPI process per node)”");
    rows.push(modes.row("mappings with all updates right on this host", 3.0, f64::from(right)));
    Ok(rows)
}

/// Returns the rows of part a: the mean number of wrong entries, its deviation from run to run, and the ratio of both.
fn errors() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (updates, [mean, deviation, ratio], source) in ERRORS {
        let mut wrong = Vec::new();
        for number in 1..=ERROR_RUNS {
            console::notice(format_args!("{updates} Mi updates on this host, {number} of {ERROR_RUNS}"));
            wrong.push(run(4, "unlocked", updates << 20)?.1 * 1e6 / f64::from(1 << BITS));
        }
        let our_mean = wrong.iter().sum::<f64>() / ERROR_RUNS as f64;
        let squares: f64 = wrong.iter().map(|wrong| (wrong - our_mean).powi(2)).sum();
        let our_deviation = (squares / (ERROR_RUNS - 1) as f64).sqrt();
        let title = |what: &str| format!("{updates} Mi updates without locks, {what}");
        let family = FAMILY.at(source);
        let at_most = Family { band: Band::AtMost, ..family };
        rows.push(at_most.row(title("wrong entries of a million"), mean, our_mean));
        rows.push(at_most.row(title("standard deviation, of a million"), deviation, our_deviation));
        rows.push(family.row(title("standard deviation of the mean"), ratio, our_deviation / our_mean));
        if updates << 20 == 4 << BITS {
            let rules = FAMILY.at("003:102");
            let title = "four updates an entry as the rules ask, standard deviation of the mean";
            rows.push(rules.row(title, 0.45, our_deviation / our_mean));
        }
    }
    Ok(rows)
}

/// Runs a mode. Returns its updates per nanosecond and its number of wrong entries.
fn run(places: u32, mode: &str, updates: u64) -> Result<(f64, f64), Failure> {
    let words =
        format!("--machine processes --places {places} --bits {BITS} --updates {updates} --mode {mode}");
    let found = document("gups", &words)?;
    let number = |key: &str| found[key].as_f64();
    let found = number("gups").filter(|rate| *rate > 0.0).zip(number("errors"));
    found.ok_or_else(|| Failure::Ended("a run of gups took no time".to_owned()))
}
