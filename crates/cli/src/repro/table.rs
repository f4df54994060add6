//! Rows as a text for people, as tables of a page, as CSV and as JSON.
//!
//! Invariant: all four hold every row, and the first three the same digits, so that the page can be compared with what
//! the command prints.

use super::Outcome;
use super::row::{Band, Row, Verdict};
use serde::Serialize;

/// Significant digits of a figure.
const DIGITS: i32 = 4;

/// A figure with four significant digits, without an exponent.
fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = (DIGITS - 1 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// An error with its sign, to a tenth of a per cent; zero has none.
fn percent(error: f64) -> String {
    let text = format!("{error:+.1} %");
    if error.abs() < 0.05 { "0.0 %".to_owned() } else { text }
}

/// The cells of a row after its name: published, ours, error, band, verdict, basis.
fn cells(row: &Row) -> [String; 6] {
    let with_unit = |value: f64| format!("{} {}", figure(value), row.unit).trim_end().to_owned();
    let dash = || "-".to_owned();
    [
        row.published().map_or_else(dash, with_unit),
        with_unit(row.ours),
        row.error().filter(|_| row.band != Band::AtMost).map_or_else(dash, percent),
        match row.band {
            Band::Within(percent) => format!("± {} %", figure(percent)),
            Band::AtMost => "at most".to_owned(),
            Band::Unpublished => dash(),
        },
        row.verdict().name().to_owned(),
        row.basis.name().to_owned(),
    ]
}

/// Which rows are out of their bands although they must not be, and last how many are.
fn summary(outcomes: &[Outcome]) -> Vec<String> {
    let rows = || outcomes.iter().flat_map(|outcome| &outcome.rows);
    let count = |verdict| rows().filter(|row| row.verdict() == verdict).count();
    let (inside, outside, alone) = (count(Verdict::In), count(Verdict::Out), count(Verdict::Alone));
    let missed: Vec<String> = rows()
        .filter(|row| row.is_missed())
        .map(|row| format!("- {} {} ({})", row.deck, row.figure, percent(row.error().unwrap_or_default())))
        .collect();
    let mut lines = vec![format!("{alone} figures have no published value.")];
    if !missed.is_empty() {
        lines.push("Out of band although they must not be:".to_owned());
    }
    let (out, musts) = (missed.len(), rows().filter(|row| row.is_required()).count());
    lines.extend(missed);
    lines.push(format!(
        "{outside} of {} published figures are OUT of their bands; of the {musts} that must be in them, {out}.",
        inside + outside
    ));
    lines
}

/// How many rows are out of their bands although they must not be.
pub fn missed(outcomes: &[Outcome]) -> usize {
    outcomes.iter().flat_map(|outcome| &outcome.rows).filter(|row| row.is_missed()).count()
}

/// For people, in columns; with a line on what is not there.
pub fn text(outcomes: &[Outcome], left_out: Option<&str>) -> String {
    let mut text = String::new();
    for Outcome { experiment, rows } in outcomes {
        text += &format!("{}: {}\n", experiment.name, experiment.about);
        if !experiment.instructions.is_empty() {
            text += &format!("  instructions: {}\n", experiment.instructions.replace('\n', "\n    "));
        }
        let widest = rows.iter().map(|row| row.figure.chars().count()).max().unwrap_or_default();
        for row in rows {
            let [published, ours, error, band, verdict, basis] = cells(row);
            text += &format!(
                "  {:<4} {:<widest$}  {published:>12} {ours:>12} {error:>9} {band:>9}  {verdict:<3}  {basis}\n",
                row.deck, row.figure
            );
        }
        text.push('\n');
    }
    text += &left_out.map(|line| format!("{line}\n")).unwrap_or_default();
    text += "(columns: published, ours, error, band, whether in it, whether the model was made with the figure)\n";
    text + &summary(outcomes).join("\n") + "\n"
}

/// For a page.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = summary(outcomes).join("\n") + "\n";
    for Outcome { experiment, rows } in outcomes {
        text +=
            &format!("\n### {}\n\n{}.\nSource: {}.\n", experiment.name, experiment.about, experiment.source);
        if !experiment.instructions.is_empty() {
            text += &format!("Instructions: {}.\n", experiment.instructions);
        }
        text.push('\n');
        text += "| | Figure | Published | Ours | Error | Band | In it | Basis |\n|---|---|---|---|---|---|---|---|\n";
        for row in rows {
            text += &format!("| {} | {} | {} |\n", row.deck, row.figure, cells(row).join(" | "));
        }
    }
    text
}

/// One line a row; figures as they are, not rounded.
pub fn csv(outcomes: &[Outcome]) -> String {
    let mut text = "experiment,deck,figure,unit,published,ours,error_percent,band,verdict,basis\n".to_owned();
    for record in records(outcomes) {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        text += &format!(
            "{},{},\"{}\",{},{},{},{},{},{},{}\n",
            record.experiment,
            record.deck,
            record.figure,
            record.unit,
            number(record.published),
            record.ours,
            number(record.error_percent),
            record.band,
            record.verdict,
            record.basis
        );
    }
    text
}

/// One object; see `docs/reproduction.md`.
pub fn json(outcomes: &[Outcome]) -> String {
    let report = Report { schema: "isles.repro.1", chip: "scc", rows: records(outcomes) };
    serde_json::to_string_pretty(&report).expect("plain values become JSON") + "\n"
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    chip: &'static str,
    rows: Vec<Record>,
}

#[derive(Serialize)]
struct Record {
    experiment: &'static str,
    deck: &'static str,
    figure: String,
    unit: &'static str,
    published: Option<f64>,
    ours: f64,
    error_percent: Option<f64>,
    band: String,
    verdict: &'static str,
    required: bool,
    basis: &'static str,
}

fn records(outcomes: &[Outcome]) -> Vec<Record> {
    let record = |outcome: &Outcome, row: &Row| Record {
        experiment: outcome.experiment.name,
        deck: row.deck,
        figure: row.figure.clone(),
        unit: row.unit,
        published: row.published(),
        ours: row.ours,
        error_percent: row.error(),
        band: match row.band {
            Band::Within(percent) => figure(percent),
            Band::AtMost => "at most".to_owned(),
            Band::Unpublished => String::new(),
        },
        verdict: row.verdict().name(),
        required: row.is_required(),
        basis: row.basis.name(),
    };
    outcomes.iter().flat_map(|outcome| outcome.rows.iter().map(move |row| record(outcome, row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits_and_errors_one_decimal() {
        let figures = [305.0, 304.76190, 0.5113, 12_345.6, 1.0, 0.0, 44.04, 184_164.0].map(figure);
        assert_eq!([0.04, -0.04, 0.06, -5.0].map(percent), ["0.0 %", "0.0 %", "+0.1 %", "-5.0 %"]);
        assert_eq!(figures, ["305", "304.8", "0.5113", "12346", "1", "0", "44.04", "184164"]);
    }
}
