//! The measurement of ManyMan: floating-point operations of an estimate of π, and power, at eight clocks.
//!
//! For each clock, `isles run pi --method series` runs on all cores. The cost of an operation is calibrated at 800 MHz.
//! Powers are those of the model that was fitted to the same paper, so operations per watt are calibrated too. The
//! operations at the other clocks are predicted. Of the rest of the evaluation, only the part that a chip can reproduce
//! is here: checkpoints are measured on the host, by `isles bench jobs`.

use super::super::quantity::Quantity;
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{CORES, SCC};
use isles_app::frame::NO_FILES;
use isles_app::{Failure, runs};

/// The evaluation in paper 8, table II.
pub(crate) const MANYMAN: Experiment = Experiment {
    name: "manyman",
    about: "operations in floating point and power of an estimate of π by clock, model `manyman`",
    source: "van der Woning and Bakker (ManyMan), MARC 2012, paper 8, table II",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// A line of table II: its source, the divider, MHz, operations per second, watts, operations per watt.
const TABLE: [(&str, u32, f64, f64, f64, f64); 8] = [
    ("004:1723", 2, 800.0, 2_232_382_092.0, 110.0, 20_294_383.0),
    ("004:1724", 3, 533.0, 1_517_496_998.0, 48.0, 31_614_521.0),
    ("004:1725", 4, 400.0, 1_138_837_303.0, 35.0, 32_538_209.0),
    ("004:1726", 5, 320.0, 912_457_180.0, 28.0, 32_587_756.0),
    ("004:1727", 6, 267.0, 760_936_186.0, 25.0, 30_437_447.0),
    ("004:1728", 7, 229.0, 653_551_028.0, 24.0, 27_231_293.0),
    ("004:1729", 8, 200.0, 570_407_521.0, 23.0, 24_800_327.0),
    ("004:1730", 16, 100.0, 285_427_629.0, 21.0, 13_591_792.0),
];

/// Number of terms of a run.
const TERMS: u64 = 200_000_000;

/// Number of operations of a term.
const OPERATIONS: f64 = 4.0;

fn rows() -> Result<Vec<Row>, Failure> {
    let measured = runs::all(TABLE.len(), "runs", |number| measure(TABLE[number].1))?;
    let (band, deck) = (Band::Within(5.0), "");
    let family = |unit, basis, source| Family { deck, unit, band, basis, source, reading: "" };
    let mut rows = Vec::new();
    let mut efficiencies = Vec::new();
    for ((source, divider, megahertz, rate, watts, efficiency), (our_rate, our_watts)) in
        TABLE.into_iter().zip(measured)
    {
        let clock = Quantity::clock(megahertz);
        let is_calibrated = divider == TABLE[0].1;
        let basis = if is_calibrated { Basis::Calibrated } else { Basis::Predicted };
        rows.push(family("MFLOP/s", basis, source).row(clock.clone(), rate / 1e6, our_rate / 1e6));
        rows.push(Family { band: Band::Within(6.0), ..family("W", Basis::Calibrated, source) }.row(
            clock.clone(),
            watts,
            our_watts,
        ));
        let ours = our_rate / our_watts;
        rows.push(Family { band: Band::Within(10.0), ..family("MFLOP/W", Basis::Calibrated, source) }.row(
            clock,
            efficiency / 1e6,
            ours / 1e6,
        ));
        efficiencies.push((ours, megahertz));
    }
    let best = efficiencies.iter().copied().max_by(|one, other| one.0.total_cmp(&other.0));
    let best = best.map_or(f64::NAN, |(_, megahertz)| megahertz);
    // "320-400 MHz is the most efficient"; in the table it is the lower of the two.
    let clock = Family { band: Band::Within(25.0), ..family("MHz", Basis::Predicted, "004:1720") };
    rows.push(clock.row("the clock with most operations a watt", 320.0, best));
    Ok(rows)
}

/// Returns the operations per second, and the watts, of a run with this divider.
fn measure(divider: u32) -> Result<(f64, f64), Failure> {
    let words = format!(
        "--method series --points {TERMS} --governor fixed:{divider} --machine {SCC} --places {CORES}"
    );
    let own: Vec<String> = words.split_whitespace().chain(NO_FILES).map(str::to_owned).collect();
    let summary = runs::summary("pi", &own, [])?;
    let models = summary["energy"]["models"].as_array();
    let model = models.and_then(|models| models.iter().find(|model| model["name"] == "manyman"));
    let watts = model.and_then(|model| model["mean_w"].as_f64());
    let seconds = summary["predicted_ps"].as_f64().map(|picoseconds| picoseconds / 1e12);
    let found = seconds.zip(watts).map(|(seconds, watts)| (OPERATIONS * TERMS as f64 / seconds, watts));
    found.ok_or_else(|| Failure::Ended("a run of pi has neither time nor power by manyman".to_owned()))
}
