//! The outcome as JSON, written and read back.
//!
//! A separate file because programs read it: its fields are stable, the table's words are not. Verdicts are written
//! for those programs, and recomputed from the values when a file is read back: a table always shows the targets of
//! the version that writes it. Invariant: `format` changes when the meaning of a field changes.

pub mod markdown;
pub mod table;

use crate::child::timing::Effort;
use crate::machine::Machine;
use crate::measure::{Better, Figure, Figures, Row, Verdict, samples};
use crate::program::available::Missing;
use crate::samples::Samples;
use crate::session::{Session, SessionOutcome};
use crate::suite::Suite;
use isles_app::console;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// 3: `peers` are baselines and `beside` are not, a verdict has a `judgement` and all values of `reached`; each figure
/// has its name.
const FORMAT: u32 = 3;

#[derive(Serialize, Deserialize)]
struct SessionReport {
    format: u32,
    suite: String,
    machine: Machine,
    runs: usize,
    batch_milliseconds: u64,
    repetitions: usize,
    quick: bool,
    left_out: Vec<String>,
    groups: Vec<GroupReport>,
}

#[derive(Serialize, Deserialize)]
struct GroupReport {
    name: String,
    setting: String,
    versions: BTreeMap<String, String>,
    absent: BTreeMap<String, Missing>,
    rows: Vec<RowReport>,
}

#[derive(Serialize, Deserialize)]
struct RowReport {
    name: String,
    question: String,
    unit: String,
    #[serde(skip_deserializing)]
    better: Option<Better>,
    isles: Option<FigureReport>,
    peers: Vec<FigureReport>,
    beside: Vec<FigureReport>,
    #[serde(skip_deserializing)]
    verdicts: Vec<Verdict>,
}

#[derive(Serialize, Deserialize)]
struct FigureReport {
    contender: String,
    name: String,
    min: f64,
    median: f64,
    max: f64,
    values: Samples,
}

/// Writes the session to `path`, or to standard output if it is `-`.
///
/// # Errors
/// One line that names the file.
pub fn write(session: &Session, path: &Path) -> Result<(), String> {
    let text = text(session);
    let written = if path == Path::new("-") { console::print(text) } else { std::fs::write(path, text) };
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads sessions back; several with the same suite, commit, processor and effort are joined into one with all runs.
///
/// # Errors
/// One line with the file and its error.
pub fn read(paths: &[PathBuf]) -> Result<Session, String> {
    let mut whole: Option<Session> = None;
    for path in paths {
        let named = |why: String| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        let session = session(&text).map_err(named)?;
        whole = Some(match whole {
            None => session,
            Some(before) => before.joined(session).map_err(named)?,
        });
    }
    whole.ok_or_else(|| "no file".to_owned())
}

fn text(session: &Session) -> String {
    let mut text = serde_json::to_string_pretty(&report(session)).expect("the report is plain values");
    text.push('\n');
    text
}

fn report(session: &Session) -> SessionReport {
    SessionReport {
        format: FORMAT,
        suite: session.suite.name().to_owned(),
        machine: session.machine.clone(),
        runs: session.runs,
        batch_milliseconds: session.effort.batch.as_millis() as u64,
        repetitions: session.effort.repetitions,
        quick: session.quick,
        left_out: session.left_out.clone(),
        groups: session.groups.iter().map(group).collect(),
    }
}

fn group(outcome: &SessionOutcome) -> GroupReport {
    GroupReport {
        name: outcome.group.name.to_owned(),
        setting: outcome.group.setting.to_owned(),
        versions: outcome.versions.clone(),
        absent: outcome.absences.clone(),
        rows: outcome.rows.iter().map(|row| row_report(row, outcome)).collect(),
    }
}

fn row_report(row: &Row, outcome: &SessionOutcome) -> RowReport {
    let reports =
        |figures: &[Figure]| figures.iter().filter_map(|one| figure_report(*one, outcome)).collect();
    RowReport {
        name: row.name.to_owned(),
        question: row.question.to_owned(),
        unit: row.unit.to_owned(),
        better: Some(row.better),
        isles: figure_report(row.ours, outcome),
        peers: reports(row.peers),
        beside: reports(row.beside),
        verdicts: row.verdicts(&outcome.figures),
    }
}

fn figure_report(figure: Figure, outcome: &SessionOutcome) -> Option<FigureReport> {
    let values = samples(&outcome.figures, figure)?;
    Some(FigureReport {
        contender: figure.contender.to_owned(),
        name: figure.name.to_owned(),
        min: values.min(),
        median: values.median(),
        max: values.max(),
        values: values.clone(),
    })
}

/// Parses a session; its rows and contenders are looked up in the suite.
fn session(text: &str) -> Result<Session, String> {
    #[derive(Deserialize)]
    struct FormatNumber {
        format: u32,
    }
    let FormatNumber { format } =
        serde_json::from_str(text).map_err(|error| format!("not written by isles bench --json: {error}"))?;
    if format != FORMAT {
        return Err(format!("format {format}; this version reads format {FORMAT}: measure again"));
    }
    let report: SessionReport = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let suite = Suite::ALL.into_iter().find(|suite| suite.name() == report.suite);
    let suite = suite.ok_or_else(|| format!("no suite {:?}", report.suite))?;
    Ok(Session {
        machine: report.machine,
        suite,
        runs: report.runs,
        effort: Effort {
            batch: Duration::from_millis(report.batch_milliseconds),
            repetitions: report.repetitions,
        },
        quick: report.quick,
        left_out: report.left_out,
        groups: report.groups.into_iter().map(|group| outcome(suite, group)).collect::<Result<_, _>>()?,
    })
}

fn outcome(suite: Suite, report: GroupReport) -> Result<SessionOutcome, String> {
    let unknown = |name: &str| format!("no {name:?} in this version of the suite: measure again");
    let group = suite.groups().iter().find(|group| group.name == report.name);
    let group = group.ok_or_else(|| unknown(&report.name))?;
    let (mut rows, mut figures) = (Vec::new(), Figures::new());
    for row in report.rows {
        rows.push(group.rows.iter().find(|own| own.name == row.name).ok_or_else(|| unknown(&row.name))?);
        for figure in row.isles.into_iter().chain(row.peers).chain(row.beside) {
            let contender = group.contenders.iter().find(|own| own.label == figure.contender);
            let contender = contender.ok_or_else(|| unknown(&figure.contender))?;
            figures.insert((contender.label, figure.name), figure.values);
        }
    }
    Ok(SessionOutcome { group, rows, figures, versions: report.versions, absences: report.absent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::example;

    #[test]
    fn a_session_is_read_back_as_it_was_written() {
        let before = example("abc", &[1.0, 2.0, 3.0]);
        assert_eq!(text(&session(&text(&before)).unwrap()), text(&before));
    }

    #[test]
    fn sessions_of_one_commit_are_joined_and_others_are_refused() {
        let joined = example("abc", &[1.0, 2.0]).joined(example("abc", &[4.0])).unwrap();
        assert_eq!(joined.runs, 3);
        let (row, outcome) = (joined.groups[0].rows[0], &joined.groups[0]);
        assert_eq!(row.ours(&outcome.figures), Samples::new(vec![1.0, 2.0, 4.0]).as_ref());
        let refusal = example("abc", &[1.0]).joined(example("def", &[1.0])).err().unwrap();
        assert!(refusal.contains("commit"), "{refusal}");
    }

    #[test]
    fn files_of_other_formats_and_rows_of_other_versions_are_refused() {
        let good = text(&example("abc", &[1.0]));
        let refusal = |text: &str| session(text).err().unwrap();
        assert!(refusal("{}").contains("not written by"));
        assert!(refusal(&good.replace("\"format\": 3", "\"format\": 2")).contains("format 2"));
        assert!(refusal(&good.replace("\"barrier\"", "\"fence\"")).contains("\"fence\""));
    }
}
