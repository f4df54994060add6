//! The outcomes of several seeds, as text and as JSON.
//!
//! It does not start runs. Invariant: a figure is that of its run, and spreads are shares of the median.

use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Outcome of a run with one seed.
#[derive(Serialize)]
pub struct SeedOutcome {
    pub seed: usize,
    pub predicted_ps: u64,
    /// Energy by the first power model of the chip, if any.
    pub energy_j: Option<f64>,
    pub digest: String,
}

/// The JSON document; `isles.seeds.1` as long as its fields keep their names and meanings.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    settings: &'a Map<String, Value>,
    seeds: &'a [SeedOutcome],
    predicted_ps: ValueRange,
    energy_j: Option<ValueRange>,
}

/// Range of a figure over the seeds.
#[derive(Serialize)]
struct ValueRange {
    least: f64,
    median: f64,
    most: f64,
    /// From the least to the most, as a share of the median.
    spread: f64,
}

/// Returns a row for each seed, then minimum, median and maximum of time and energy, with an explanation.
pub fn text(outcomes: &[SeedOutcome]) -> String {
    let mut text = String::from("seed            time          energy  digest\n");
    let (times, energies) = spans(outcomes);
    let time = Unit::of(&TIMES, times.median);
    let energy = Unit::of(&ENERGIES, energies.as_ref().map_or(0.0, |span| span.median));
    for SeedOutcome { seed, predicted_ps, energy_j, digest } in outcomes {
        let time = time.text(*predicted_ps as f64);
        let energy = energy_j.map_or("-".to_owned(), |joules| energy.text(joules));
        let _ = writeln!(text, "{seed:>4}  {time:>14}  {energy:>14}  {digest}"); // a string takes all
    }
    let _ = writeln!(text, "                 least          median            most  spread"); // as above
    for (name, span, unit) in [("time", Some(times), time), ("energy", energies, energy)] {
        let Some(ValueRange { least, median, most, spread }) = span else { continue };
        let [least, median, most] = [least, median, most].map(|figure| unit.text(figure));
        let percent = spread * 100.0;
        let _ = writeln!(text, "{name:<6}  {least:>14}  {median:>14}  {most:>14}  {percent:.4} %"); // as above
    }
    text + "What varies with the seed depends on an order that the chip leaves open: a difference below \
         this spread means nothing.\n"
}

/// Least, median and most of some numbers.
fn order(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    // The two in the middle; the same one if their number is odd.
    let median = (values[last / 2] + values[values.len() / 2]) / 2.0;
    [values[0], median, values[last]]
}

/// Unit of all figures of a column.
struct Unit {
    name: &'static str,
    /// Least figure for which it is chosen.
    least: f64,
    /// Size of this unit, in the unit of the figures.
    size: f64,
}

/// Units of picoseconds; milliseconds as long as the line at the end of a run says them.
const TIMES: [Unit; 2] =
    [Unit { name: "s", least: 1e13, size: 1e12 }, Unit { name: "ms", least: 0.0, size: 1e9 }];

/// Units of joules.
const ENERGIES: [Unit; 3] = [
    Unit { name: "J", least: 1.0, size: 1.0 },
    Unit { name: "mJ", least: 1e-3, size: 1e-3 },
    Unit { name: "µJ", least: 0.0, size: 1e-6 },
];

impl Unit {
    /// Returns the unit in which `figure` is written.
    fn of(units: &'static [Unit], figure: f64) -> &'static Unit {
        units.iter().find(|unit| figure >= unit.least).unwrap_or(&units[units.len() - 1])
    }

    /// Formats a figure with enough digits to show a small spread.
    fn text(&self, figure: f64) -> String {
        format!("{:.6} {}", figure / self.size, self.name)
    }
}

/// Returns the ranges of time and energy; the latter if all runs have one.
fn spans(outcomes: &[SeedOutcome]) -> (ValueRange, Option<ValueRange>) {
    let times = outcomes.iter().map(|outcome| outcome.predicted_ps as f64).collect();
    let energies: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.energy_j).collect();
    (span(times), energies.map(span))
}

fn span(values: Vec<f64>) -> ValueRange {
    let [least, median, most] = order(values);
    ValueRange { least, median, most, spread: (most - least) / median }
}

/// Writes all of it as one object.
///
/// # Errors
/// `out` returns an error.
pub fn write_json(
    out: &mut dyn Write,
    outcomes: &[SeedOutcome],
    settings: &Map<String, Value>,
) -> io::Result<()> {
    let (predicted_ps, energy_j) = spans(outcomes);
    let document = Document { schema: "isles.seeds.1", settings, seeds: outcomes, predicted_ps, energy_j };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_median_and_most_are_those_of_the_sorted_numbers() {
        assert_eq!(order(vec![3.0, 1.0, 2.0]), [1.0, 2.0, 3.0]);
        assert_eq!(order(vec![4.0, 1.0, 10.0, 2.0]), [1.0, 3.0, 10.0]);
        assert_eq!(order(vec![5.0, 5.0]), [5.0, 5.0, 5.0]);
    }

    #[test]
    fn a_table_has_a_row_a_seed_and_the_spread_of_each_figure_that_is_known() {
        let outcome = |seed: usize, energy_j| SeedOutcome {
            seed,
            predicted_ps: [1_000_000_000, 3_000_000_000][seed],
            energy_j,
            digest: "d".to_owned(),
        };
        let text = |joules: [Option<f64>; 2]| text(&[outcome(0, joules[0]), outcome(1, joules[1])]);
        let both = text([Some(1.0), Some(1.5)]);
        assert!(both.contains("\n   1     3.000000 ms      1.500000 J  d\n"), "{both}");
        assert!(
            both.contains("\ntime       1.000000 ms     2.000000 ms     3.000000 ms  100.0000 %\n"),
            "{both}"
        );
        assert!(
            both.contains("\nenergy      1.000000 J      1.250000 J      1.500000 J  40.0000 %\n"),
            "{both}"
        );
        let little = text([Some(0.5), Some(1.25)]);
        assert!(little.contains("\n   0     1.000000 ms   500.000000 mJ  d\n"), "one unit for all: {little}");
        assert!(!text([None, None]).contains("\nenergy "));
    }
}
