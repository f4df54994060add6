//! Tables of figures in documents, filled by the bench.
//!
//! A separate file because a document keeps its own text: only the part between two marks is replaced, and the first
//! mark selects the rows. It measures nothing. Invariant: a table names its machine, day, commit and number of runs,
//! and shows the spread beside each median.

use crate::measure::{Better, Figure, Judgement, Row, Verdict, samples};
use crate::report::table::{self, digits};
use crate::samples::Samples;
use crate::session::{Session, SessionOutcome};
use crate::suite::Suite;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::PathBuf;

const END: &str = "<!-- end of figures -->";

/// Longest line of a paragraph.
const COLUMNS: usize = 120;

/// Fills the tables of these documents; a missing one is created with a table of all rows.
///
/// # Errors
/// One line with the file, and its error or that of its marks.
pub fn fill(session: &Session, documents: &[PathBuf]) -> Result<(), String> {
    if documents.is_empty() {
        return Ok(());
    }
    if session.quick {
        return Err("the tables of a document are of full runs; these figures are of --quick".to_owned());
    }
    for path in documents {
        let named = |why: String| format!("{}: {why}", path.display());
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                format!("# Figures\n\n<!-- figures {} -->\n{END}\n", session.suite.name())
            }
            read => read.map_err(|error| named(error.to_string()))?,
        };
        let filled = filled(&text, session).map_err(named)?;
        std::fs::write(path, filled).map_err(|error| named(error.to_string()))?;
    }
    Ok(())
}

fn filled(text: &str, session: &Session) -> Result<String, String> {
    let start = format!("\n<!-- figures {}", session.suite.name());
    let (mut result, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(&start) {
        let unended = || format!("a table for {} without {END}", session.suite.name());
        let (wanted, after) = after.split_once("-->").ok_or_else(unended)?;
        let (_, after) = after.split_once(END).ok_or_else(unended)?;
        let _ = write!(result, "{before}{start}{wanted}-->\n\n{}\n{END}", table(session, wanted)?);
        rest = after;
    }
    if result.is_empty() {
        return Err(format!("no line `{} -->`, so no table was filled", start.trim_start()));
    }
    Ok(result + rest)
}

/// Returns the circumstances and the rows; `wanted` is `: NAME, NAME`, empty for all, or ` in short: NAME = WORDS;
/// ..`.
fn table(session: &Session, wanted: &str) -> Result<String, String> {
    if let Some(rows) = wanted.trim().strip_prefix("in short:") {
        return short_table(session, rows);
    }
    let names = wanted.trim().strip_prefix(':').map(names).transpose()?;
    let mut text = circumstances(session);
    text.push_str("\n| Measure | Isles | Peers, the best one first | Isles / best peer | Target | |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    let mut left = names.clone();
    for (row, outcome) in all_rows(session) {
        let is_wanted = names.as_ref().is_none_or(|names| names.contains(row.name));
        if is_wanted {
            write_row(&mut text, row, outcome, session.runs);
            left.iter_mut().for_each(|left| {
                left.remove(row.name);
            });
        }
    }
    match left.filter(|left| !left.is_empty()) {
        Some(left) => {
            let left: Vec<_> = left.into_iter().collect();
            Err(format!("the session has no {}: measure it, or take it out of the mark", left.join(", ")))
        }
        None => Ok(text),
    }
}

/// Returns the named rows in their order, each with its own words, the medians and the best peer; without targets and
/// spread.
fn short_table(session: &Session, rows: &str) -> Result<String, String> {
    let machine = &session.machine;
    let mut text = wrapped(&format!(
        "Medians of {} runs, `isles bench {}` on {}, commit {}: {}, {} cores.",
        session.runs,
        session.suite.name(),
        machine.date,
        machine.commit.as_deref().unwrap_or("unknown"),
        machine.cpu,
        machine.cores,
    ));
    text.push_str("\n| | Isles | Best peer | Ratio |\n|---|---|---|---|\n");
    for entry in rows.split(';') {
        let (name, words) = entry.split_once('=').ok_or_else(|| format!("no `NAME = WORDS`: {entry:?}"))?;
        let (name, words) = (name.trim(), words.split_whitespace().collect::<Vec<_>>().join(" "));
        let (row, outcome) = all_rows(session)
            .find(|(row, _)| row.name == name)
            .ok_or_else(|| format!("the session has no {name}: measure it, or take it out of the mark"))?;
        let ours = row.ours(&outcome.figures).ok_or_else(|| format!("{name} was not measured"))?;
        let value = format!("{} {}", digits(ours.median()), micro(row.unit));
        let (peer, ratio) = match row.best_peer(&outcome.figures) {
            Some((peer, theirs)) => (
                format!("{}: {}", row.label(peer), digits(theirs.median())),
                digits(ours.ratios_to(theirs).median()),
            ),
            None => (String::new(), String::new()),
        };
        let _ = writeln!(text, "| {words} | {value} | {peer} | {ratio} |");
    }
    Ok(text)
}

/// Returns the rows that a mark names, and those that must accompany them.
fn names(list: &str) -> Result<BTreeSet<String>, String> {
    let mut names: BTreeSet<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    let all = || Suite::ALL.into_iter().flat_map(|suite| suite.groups()).flat_map(|group| group.rows);
    for name in names.clone() {
        let row = all().find(|row| row.name == name).ok_or_else(|| format!("no row {name:?}"))?;
        names.extend(row.quoted_with.map(str::to_owned));
    }
    Ok(names)
}

fn all_rows(session: &Session) -> impl Iterator<Item = (&'static Row, &SessionOutcome)> {
    session.groups.iter().flat_map(|outcome| outcome.rows.iter().map(move |row| (*row, outcome)))
}

fn circumstances(session: &Session) -> String {
    let machine = &session.machine;
    let versions: BTreeSet<_> = session.groups.iter().flat_map(|outcome| outcome.versions.values()).collect();
    let versions: Vec<_> = versions.into_iter().map(String::as_str).collect();
    let peers = if versions.is_empty() { String::new() } else { format!(" Peers: {}.", versions.join("; ")) };
    wrapped(&format!(
        "Measured by `isles bench {}` on {}, commit {}: {}, {} cores, Linux {}. Medians (smallest to largest) of {} \
         runs.{peers}",
        session.suite.name(),
        machine.date,
        machine.commit.as_deref().unwrap_or("unknown"),
        machine.cpu,
        machine.cores,
        machine.kernel,
        session.runs,
    ))
}

/// Wraps the text into lines of at most [`COLUMNS`].
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 {
            let is_full = column + 1 + length > COLUMNS;
            lines.push(if is_full { '\n' } else { ' ' });
            column = if is_full { 0 } else { column + 1 };
        }
        lines.push_str(word);
        column += length;
    }
    lines.push('\n');
    lines
}

fn write_row(text: &mut String, row: &Row, outcome: &SessionOutcome, runs: usize) {
    let figures = &outcome.figures;
    let ours = row.ours(figures);
    let value = match ours {
        None => "not measured".to_owned(),
        Some(ours) if ours.runs() == runs => format!("{} {}", spread(ours), micro(row.unit)),
        Some(ours) => format!("{} {}, of {}", spread(ours), micro(row.unit), ours.runs()),
    };
    let ratio = match (ours, row.best_peer(figures)) {
        (Some(ours), Some((_, theirs))) => spread(&ours.ratios_to(theirs)),
        _ => String::new(),
    };
    let verdicts = row.verdicts(figures);
    let targets: Vec<_> = verdicts.iter().map(|verdict| typeset(&verdict.target)).collect();
    let outcomes: Vec<_> = verdicts.iter().map(|verdict| phrase(verdict, &value, &ratio)).collect();
    let _ = writeln!(
        text,
        "| {} | {value} | {} | {ratio} | {} | {} |",
        row.question,
        peers(row, outcome),
        targets.join("; "),
        outcomes.join("; ")
    );
}

/// Returns the median, and the smallest and the largest value if there are several.
fn spread(values: &Samples) -> String {
    table::spread(values).replace(" to ", "–")
}

/// Returns a target with mathematical signs.
fn typeset(target: &str) -> String {
    micro(target).replace("<=", "≤").replace(">=", "≥").replace(" x ", " × ")
}

/// Returns a unit, or a sentence that ends in one, with the micro sign.
fn micro(text: &str) -> String {
    match text.strip_suffix("us") {
        Some(rest) if rest.is_empty() || rest.ends_with(' ') => format!("{rest}µs"),
        _ => text.to_owned(),
    }
}

/// Returns the verdict on a target in words, with the value reached unless the row shows it already.
fn phrase(verdict: &Verdict, value: &str, ratio: &str) -> String {
    let word = verdict.judgement.word();
    match (&verdict.reached, verdict.judgement) {
        (_, Judgement::NotJudged) => format!("{word}: {}", verdict.remark),
        (Some(reached), _) if !value.starts_with(&spread(reached)) && spread(reached) != ratio => {
            format!("{word}: {}", spread(reached))
        }
        _ => word.to_owned(),
    }
}

/// Returns all peers from the best to the worst, then absent ones, then the figures of `beside`.
fn peers(row: &Row, outcome: &SessionOutcome) -> String {
    let measured = |of: &[Figure]| {
        let present = of.iter().filter_map(|peer| Some((*peer, samples(&outcome.figures, *peer)?)));
        let mut present: Vec<_> = present.collect();
        present.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
        present
    };
    let mut peers = measured(row.peers);
    if matches!(row.better, Better::More) {
        peers.reverse();
    }
    let phrase =
        |(figure, values): &(Figure, &Samples)| format!("{} {}", row.label(*figure), digits(values.median()));
    let mut parts: Vec<String> = peers.iter().map(phrase).collect();
    if let Some(first) = parts.first_mut() {
        *first = format!("**{first}**");
    }
    let is_absent = |peer: &&Figure| samples(&outcome.figures, **peer).is_none();
    let absent = row.peers.iter().filter(is_absent);
    parts.extend(absent.map(|peer| format!("{} absent", peer.contender)));
    let beside: Vec<String> = measured(row.beside).iter().map(phrase).collect();
    match (parts.is_empty(), beside.is_empty()) {
        (_, true) => parts.join(", "),
        (true, false) => format!("(beside: {})", beside.join(", ")),
        (false, false) => format!("{} (beside: {})", parts.join(", "), beside.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::example;

    fn refusal_of(session: &Session, mark: &str) -> String {
        filled(&page(mark), session).unwrap_err()
    }

    fn page(mark: &str) -> String {
        format!("before\n{mark}\nold\n{END}\nafter\n<!-- figures twin -->\nleft alone\n{END}\n")
    }

    #[test]
    fn only_what_lies_between_the_marks_of_the_suite_is_replaced() {
        let session = example("abc", &[1.0, 2.0, 3.0]);
        let text = filled(&page("<!-- figures core: barrier -->"), &session).unwrap();
        assert!(!text.contains("old") && text.contains("left alone"), "{text}");
        assert!(text.starts_with("before\n<!-- figures core: barrier -->\n\nMeasured by"), "{text}");
        assert!(text.contains("commit abc") && text.replace('\n', " ").contains("of 3 runs"), "{text}");
        let row = "| barrier of 2 places | 2.00 (1.00–3.00) µs | **Open MPI 4.00**, MPICH absent | 0.500 (0.250–0.750) \
                   | ≤ 0.7 × best peer | not judged: MPICH is not here |\n";
        assert!(text.contains(row), "{text}");
        assert_eq!(filled(&text, &session).unwrap(), text, "filled again it is the same");
        let mark = "<!-- figures core:\nbarrier -->";
        assert!(filled(&page(mark), &session).unwrap().contains(row), "a mark may take several lines");
    }

    #[test]
    fn a_short_table_has_the_words_of_its_mark_and_the_best_peer() {
        let session = example("abc", &[1.0, 2.0, 3.0]);
        let text =
            filled(&page("<!-- figures core in short: barrier = Two places\nmeet -->"), &session).unwrap();
        assert!(text.contains("| Two places meet | 2.00 µs | Open MPI: 4.00 | 0.500 |\n"), "{text}");
        assert!(text.contains("Medians of 3 runs, `isles bench core`"), "{text}");
        assert_eq!(filled(&text, &session).unwrap(), text, "filled again it is the same");
    }

    #[test]
    fn marks_that_cannot_be_filled_are_refused() {
        let session = example("abc", &[1.0]);
        assert!(
            refusal_of(&session, "<!-- figures core in short: fence = No words -->").contains("has no fence")
        );
        assert!(refusal_of(&session, "<!-- figures core in short: barrier -->").contains("NAME = WORDS"));
        let refusal = |text: &str| filled(text, &session).unwrap_err();
        assert!(refusal("no marks\n").contains("no line `<!-- figures core -->`"));
        assert!(refusal("a page\n<!-- figures core -->\n").contains("without"));
        assert!(refusal(&page("<!-- figures core: fence -->")).contains("no row \"fence\""));
        assert!(refusal(&page("<!-- figures core: at -->")).contains("has no at"));
    }

    #[test]
    fn a_row_of_fewer_runs_than_the_session_says_so() {
        let mut session = example("abc", &[1.0]);
        session.runs = 9;
        assert!(table(&session, "").unwrap().contains("| 1.00 µs, of 1 |"));
    }

    #[test]
    fn paragraphs_are_wrapped() {
        let text = wrapped(&"word ".repeat(100));
        assert!(text.lines().all(|line| line.len() <= COLUMNS && !line.ends_with(' ')), "{text}");
        assert_eq!(text.split_whitespace().count(), 100);
    }

    #[test]
    fn a_row_brings_along_the_one_that_it_is_quoted_with() {
        assert!(names("at, move-2m").unwrap().contains("read-2m"));
        assert!(!names("at, stream-2m").unwrap().contains("read-2m"));
    }
}
