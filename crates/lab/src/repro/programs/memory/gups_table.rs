//! Table 2 of the paper on RandomAccess, on this host: four places on one table, with locks and without, and errors.
//!
//! The chip's model has no memory that the cores of a node share, so these runs are of the host, and change with it.
//! The table lies in a window, which every place reads and writes by itself. Of several runs of a mode, taken in turn,
//! the fastest counts. Invariant: all modes make the same updates of the same table.

use crate::repro::programs::document;
use crate::repro::row::{Band, Basis, Family, Row};
use isles_app::Failure;
use isles_app::console;

/// Entries of the table: 16 Mi, as the paper has.
const BITS: u32 = 24;

/// Updates of the runs whose time counts, enough for places to wait for locks often.
const UPDATES: u64 = 4 << 20;

/// How often each mode is run.
const REPEATS: usize = 3;

/// Part b: what is run, with which words, its rate against one core without locks, and where that stands.
const MODES: [(&str, &str, f64, &str); 4] = [
    ("without locks", "unlocked", 2.58, "003:123"),
    ("1 lock", "locks --locks 1", 0.83, "003:124"),
    ("16 locks", "locks --locks 16", 1.83, "003:125"),
    ("32 locks", "locks --locks 32", 1.87, "003:126"),
];

/// Part a, as far as it takes seconds: updates in Mi, wrong entries of a million, and where they stand.
const ERRORS: [(u64, f64, &str); 3] = [(32, 2.92, "003:115"), (64, 3.46, "003:116"), (128, 6.14, "003:117")];

const FAMILY: Family =
    Family { deck: "", unit: "", band: Band::Within(20.0), basis: Basis::Measured, source: "", reading: "" };

/// The rows of table 2.
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
            let title = format!("four places of this host on one table against one, {name}");
            FAMILY.at(source).row(title, published, fastest(rates) / alone)
        })
        .collect();
    for (updates, published, source) in ERRORS {
        console::notice(format_args!("errors of {updates} Mi updates on this host"));
        let (_, errors) = run(4, "unlocked", updates << 20)?;
        let title = format!("errors of a million entries on this host, {updates} Mi updates without locks");
        let family = Family { band: Band::AtMost, ..FAMILY }.at(source);
        rows.push(family.row(title, published, errors * 1e6 / f64::from(1 << BITS)));
    }
    Ok(rows)
}

/// A run: its updates a nanosecond, and its wrong entries.
fn run(places: u32, mode: &str, updates: u64) -> Result<(f64, f64), Failure> {
    let words =
        format!("--machine processes --places {places} --bits {BITS} --updates {updates} --mode {mode}");
    let found = document("gups", &words)?;
    let number = |key: &str| found[key].as_f64();
    let found = number("gups").filter(|rate| *rate > 0.0).zip(number("errors"));
    found.ok_or_else(|| Failure::Ended("a run of gups took no time".to_owned()))
}
