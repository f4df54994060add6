//! The outcome as JSON.
//!
//! Its own file because programs read it: its fields are a promise, the table's words are not.
//! It computes nothing that the table does not. The invariant: `format` changes when a field changes its meaning.

use crate::machine::Machine;
use crate::measure::{Better, Figure, Row, Verdict, samples};
use crate::program::Absence;
use crate::samples::Samples;
use crate::session::{Outcome, Session};
use isles_apps::console;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// 2: `values` are in the order of the runs, and ratios are the medians of those within a run.
const FORMAT: u32 = 2;

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    suite: &'static str,
    machine: &'a Machine,
    runs: usize,
    batch_milliseconds: u128,
    repetitions: usize,
    groups: Vec<GroupReport<'a>>,
}

#[derive(Serialize)]
struct GroupReport<'a> {
    name: &'static str,
    setting: &'static str,
    versions: &'a BTreeMap<&'static str, String>,
    absent: &'a BTreeMap<&'static str, Absence>,
    rows: Vec<RowReport<'a>>,
}

#[derive(Serialize)]
struct RowReport<'a> {
    name: &'static str,
    question: &'static str,
    unit: &'static str,
    better: Better,
    isles: Option<FigureReport<'a>>,
    peers: Vec<FigureReport<'a>>,
    verdicts: Vec<Verdict>,
}

#[derive(Serialize)]
struct FigureReport<'a> {
    contender: &'static str,
    min: f64,
    median: f64,
    max: f64,
    values: &'a Samples,
}

/// Writes the session to `path`, or to standard output if it is `-`.
///
/// # Errors
/// One line that names the file.
pub fn write(session: &Session, path: &Path) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(&report(session)).expect("the report is plain values");
    text.push('\n');
    let written = if path == Path::new("-") { console::print(text) } else { std::fs::write(path, text) };
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn report(session: &Session) -> Report<'_> {
    Report {
        format: FORMAT,
        suite: session.options.suite.name(),
        machine: &session.machine,
        runs: session.options.runs,
        batch_milliseconds: session.options.effort.batch.as_millis(),
        repetitions: session.options.effort.repetitions,
        groups: session.groups.iter().map(group).collect(),
    }
}

fn group(outcome: &Outcome) -> GroupReport<'_> {
    GroupReport {
        name: outcome.group.name,
        setting: outcome.group.setting,
        versions: &outcome.versions,
        absent: &outcome.absences,
        rows: outcome.rows.iter().map(|row| row_report(row, outcome)).collect(),
    }
}

fn row_report<'a>(row: &Row, outcome: &'a Outcome) -> RowReport<'a> {
    RowReport {
        name: row.name,
        question: row.question,
        unit: row.unit,
        better: row.better,
        isles: figure(row.ours, outcome),
        peers: row.peers.iter().filter_map(|peer| figure(*peer, outcome)).collect(),
        verdicts: row.verdicts(&outcome.figures),
    }
}

fn figure(figure: Figure, outcome: &Outcome) -> Option<FigureReport<'_>> {
    let values = samples(&outcome.figures, figure)?;
    Some(FigureReport {
        contender: figure.contender,
        min: values.min(),
        median: values.median(),
        max: values.max(),
        values,
    })
}
