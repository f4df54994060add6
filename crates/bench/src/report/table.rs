//! The outcome as a table of text.
//!
//! It computes only ratios. Invariant: every row states question, unit, setting and target, even without a figure.

use crate::machine::LOAD_DOUBTFUL;
use crate::measure::{Better, Figure, Judgement, Row, Verdict, samples};
use crate::samples::Samples;
use crate::session::{Session, SessionOutcome};
use crate::suite::Suite;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Returns all rows of a suite with their targets.
pub fn list(suite: Suite) -> String {
    let mut text = String::new();
    for group in suite.groups() {
        let _ = writeln!(text, "{} ({})", group.name, group.setting);
        for row in group.rows {
            let _ = writeln!(text, "  {:<18} {} [{}]", row.name, row.question, row.unit);
            for target in row.targets {
                let _ = writeln!(text, "  {:<18} target: {}", "", row.words(target));
            }
        }
    }
    text
}

/// Returns the whole outcome.
pub fn whole(session: &Session) -> String {
    let mut text = heading(session);
    for outcome in &session.groups {
        let _ = writeln!(text, "\n== {} ({}) ==", outcome.group.name, outcome.group.setting);
        for row in &outcome.rows {
            write_row(&mut text, row, outcome);
        }
    }
    text.push_str(&absences(session));
    text.push_str(&left_out(session));
    text.push_str(&summary(session));
    text
}

fn heading(session: &Session) -> String {
    let machine = &session.machine;
    let mut text = format!(
        "{}, {} cores, Linux {}, {}, commit {}\n{} runs of each program, in turn; \
         each figure in a run is the median of {} batches of {} ms or more;\n\
         a ratio is the median of the ratios within each run\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.date,
        machine.commit.as_deref().unwrap_or("unknown"),
        session.runs,
        session.effort.repetitions,
        session.effort.batch.as_millis(),
    );
    if let Some(load) = machine.load_average.filter(|load| *load > LOAD_DOUBTFUL) {
        let _ = writeln!(text, "other programs were running (load {load:.2}): the figures are doubtful");
    }
    let versions: BTreeSet<_> = session.groups.iter().flat_map(|outcome| outcome.versions.values()).collect();
    for version in versions {
        let _ = writeln!(text, "peer: {version}");
    }
    text
}

fn write_row(text: &mut String, row: &Row, outcome: &SessionOutcome) {
    let direction = match row.better {
        Better::Less => "less is better",
        Better::More => "more is better",
    };
    let _ = writeln!(text, "\n{}: {} [{}, {direction}]", row.name, row.question, row.unit);
    let _ = writeln!(text, "  {:<26} {:>10} {:>10} {:>10} {:>14}", "", "min", "median", "max", "isles / it");
    for figure in row.figures() {
        write_figure(text, row, figure, outcome);
    }
    if let Some((best, _)) = row.best_peer(&outcome.figures).filter(|_| row.peers.len() > 1) {
        let _ = writeln!(text, "  best peer here: {}", best.contender);
    }
    for verdict in row.verdicts(&outcome.figures) {
        let _ = writeln!(text, "  {}", sentence(&verdict));
    }
}

fn write_figure(text: &mut String, row: &Row, figure: Figure, outcome: &SessionOutcome) {
    let Some(values) = samples(&outcome.figures, figure) else {
        let _ = writeln!(text, "  {:<26} {}", row.label(figure), reason(outcome, figure));
        return;
    };
    let ratio = match row.ours(&outcome.figures) {
        Some(ours) if figure != row.ours => format!("{:.2}", ours.ratios_to(values).median()),
        _ => String::new(),
    };
    let (min, median, max) = (digits(values.min()), digits(values.median()), digits(values.max()));
    let _ = writeln!(text, "  {:<26} {min:>10} {median:>10} {max:>10} {ratio:>14}", row.label(figure));
}

fn reason(outcome: &SessionOutcome, figure: Figure) -> String {
    match outcome.absences.get(figure.contender) {
        Some(absence) => format!("absent: {} ({})", absence.why, absence.remedy),
        None => format!("absent: it did not print {}", figure.name),
    }
}

fn sentence(verdict: &Verdict) -> String {
    let remark = if verdict.remark.is_empty() { String::new() } else { format!(" ({})", verdict.remark) };
    let reached = verdict.reached.as_ref().map_or(String::new(), |reached| format!(" {}", spread(reached)));
    format!("target {}:{reached} {}{remark}", verdict.target, verdict.judgement.word())
}

/// Returns the median, and the smallest and the largest value if there are several.
pub fn spread(values: &Samples) -> String {
    let (min, median, max) = (digits(values.min()), digits(values.median()), digits(values.max()));
    if min == max { median } else { format!("{median} ({min} to {max})") }
}

/// Returns each missing peer once, with its remedy.
fn absences(session: &Session) -> String {
    let all = session.groups.iter().flat_map(|outcome| &outcome.absences);
    let lines: BTreeSet<String> =
        all.map(|(label, absence)| format!("{label}: {}: {}", absence.why, absence.remedy)).collect();
    let mut text = String::new();
    if !lines.is_empty() {
        text.push_str("\nNot measured:\n");
    }
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Returns a line on the groups left out of a quick run.
fn left_out(session: &Session) -> String {
    match &session.left_out[..] {
        [] => String::new(),
        names => format!("\nleft out by --quick, as a run takes minutes: {}\n", names.join(", ")),
    }
}

/// Returns the numbers of targets by judgement, and the rows with targets that were not met.
fn summary(session: &Session) -> String {
    let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for outcome in &session.groups {
        for row in &outcome.rows {
            for verdict in row.verdicts(&outcome.figures) {
                rows.entry(verdict.judgement.word()).or_default().push(row.name);
            }
        }
    }
    let counts: Vec<_> = rows.iter().map(|(word, names)| format!("{} {word}", names.len())).collect();
    let mut text = format!("\ntargets: {}\n", counts.join("; "));
    for (word, mut names) in rows.into_iter().filter(|(word, _)| *word != Judgement::Met.word()) {
        names.dedup(); // a row may have several targets
        let _ = writeln!(text, "{word}: {}", names.join(", "));
    }
    text
}

/// Formats a number with three significant digits, without an exponent.
pub fn digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let places = (2 - magnitude).clamp(0, 9) as usize;
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_three_significant_ones() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.20512, "0.205"),
            (1.0, "1.00"),
            (12.345, "12.3"),
            (43789.1, "43789"),
            (0.001234, "0.00123"),
        ] {
            assert_eq!(digits(value), text);
        }
    }

    #[test]
    fn a_target_without_all_its_peers_and_what_is_left_out_are_said() {
        let text = whole(&crate::session::tests::example("abc", &[1.0, 2.0, 3.0]));
        for part in [
            "commit abc",
            "best peer here: Open MPI",
            "not judged (MPICH is not here)",
            "left out by --quick, as a run takes minutes: cold",
            "not judged: barrier",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_list_names_every_row_and_target() {
        for suite in Suite::ALL {
            let text = list(suite);
            for row in suite.groups().iter().flat_map(|group| group.rows) {
                assert!(text.contains(row.name) && text.contains(row.question));
                assert!(row.targets.iter().all(|target| text.contains(&row.words(target))));
            }
        }
    }
}
