//! The pages of `docs/reproduction/` compared with the papers: each cited line contains the published figure, or words
//! from which it follows.
//!
//! The papers are not part of the project. They are searched for in the folder `ISLES_SEEDS`, or else in
//! `../shared/seeds` beside the workspace; if they are missing, a test reports this and ends. Invariant: every row with
//! a published figure from a paper is checked, and a page with an unreadable table fails.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the lines of the papers, by number; `None` if they are missing.
fn papers() -> Option<HashMap<String, Vec<String>>> {
    let folder =
        env::var_os("ISLES_SEEDS").map_or_else(|| workspace().join("../shared/seeds"), PathBuf::from);
    let entries = fs::read_dir(&folder).ok()?;
    let mut papers = HashMap::new();
    for entry in entries {
        let path = entry.expect("a folder can be read to its end").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((number, _)) = name.split_once('_') {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            papers.insert(number.to_owned(), text.split('\n').map(str::to_owned).collect());
        }
    }
    Some(papers)
}

/// A row of a page: its position, and the parts that the test needs.
#[derive(Debug)]
struct PageRow {
    page: String,
    figure: String,
    published: String,
    basis: String,
    /// Paper and lines.
    cited: Option<(String, String)>,
    reading: String,
}

impl PageRow {
    /// Returns the row of a line of a page, if it is one with a published figure; `notes` are those below its table.
    ///
    /// # Panics
    /// The row refers to a note that the page does not have.
    fn of(page: &str, line: &str, notes: &[&str]) -> Option<PageRow> {
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let [figure, published, _, _, _, _, basis, source] = cells[..] else { return None };
        if published == "Published" || published.starts_with("---") {
            return None;
        }
        let (place, reading) = match source.strip_suffix(']').and_then(|source| source.split_once(" [")) {
            Some((place, number)) => {
                let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let note = index.and_then(|index| notes.get(index));
                (place, *note.unwrap_or_else(|| panic!("{page}: {figure:?} cites a note that is not there")))
            }
            None => (source, ""),
        };
        let cited = place.split_once(':').map(|(paper, lines)| (paper.to_owned(), lines.to_owned()));
        Some(PageRow {
            page: page.to_owned(),
            figure: figure.to_owned(),
            published: published.to_owned(),
            basis: basis.to_owned(),
            cited,
            reading: reading.to_owned(),
        })
    }

    /// Compares the row with the text of the lines that it cites. Returns the fault, if there is one.
    fn fault(&self, text: &str) -> Option<String> {
        if self.basis == "derived" && self.reading.is_empty() {
            return Some("is derived, and no formula says how".to_owned());
        }
        if self.reading.is_empty() {
            let figure = self.published.split(' ').next().and_then(|figure| figure.parse::<f64>().ok());
            let Some(figure) = figure else { return Some(format!("has no figure: {}", self.published)) };
            if figure == 1.0 {
                return Some("is a comparison, and no reading says of which words".to_owned());
            }
            let found = figures(text).into_iter().any(|printed| is_same(figure, printed));
            return (!found).then(|| format!("publishes {figure}, which does not stand there"));
        }
        let quotes = quotes(&self.reading);
        if quotes.is_empty() {
            return Some("has a reading that quotes nothing".to_owned());
        }
        let plain_text = plain(text);
        let missing = quotes.into_iter().find(|quote| !plain_text.contains(&plain(quote)));
        missing.map(|quote| format!("quotes “{quote}”, which does not stand there"))
    }
}

/// Returns the texts between quotation marks.
fn quotes(reading: &str) -> Vec<&str> {
    reading.split('“').skip(1).filter_map(|rest| rest.split_once('”')).map(|(quote, _)| quote).collect()
}

/// Returns a text without the marks of its formulas, in lower case and with single blanks.
fn plain(text: &str) -> String {
    let text = text.replace("\\,", ",").replace("\\text", "").replace("\\mathrm", "");
    let kept: String = text.chars().filter(|character| !"$\\{}*^".contains(*character)).collect();
    kept.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns all numbers of a text. Those that follow a letter, as in MPICH2, are names.
fn figures(text: &str) -> Vec<f64> {
    let letters: Vec<char> = text.replace("\\,", ",").chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let is_start = letters[at].is_ascii_digit()
            && !(at > 0
                && (letters[at - 1].is_alphanumeric() || letters[at - 1] == '.' || letters[at - 1] == '_'));
        if !is_start {
            at += 1;
            continue;
        }
        let begin = at;
        while at < letters.len() && (letters[at].is_ascii_digit() || is_inner(&letters, at)) {
            at += 1;
        }
        let number: String =
            letters[begin..at].iter().filter(|character| !", ".contains(**character)).collect();
        found.extend(number.parse::<f64>().ok());
    }
    found
}

/// Returns `true` if a character is the decimal point of a number, or a comma or a blank before three of its digits.
fn is_inner(letters: &[char], at: usize) -> bool {
    let digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    match letters[at] {
        '.' => digit(at + 1),
        ',' | ' ' => digit(at + 1) && digit(at + 2) && digit(at + 3) && !digit(at + 4),
        _ => false,
    }
}

/// Returns `true` if a figure of four digits is a printed one, in its unit, in one that differs by a factor of a
/// thousand, a million or a billion, or in per cent.
fn is_same(figure: f64, printed: f64) -> bool {
    let units = [1.0, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9, 1e2, 1e-2];
    units.into_iter().any(|unit| (printed * unit - figure.abs()).abs() <= figure.abs() * 6e-4)
}

/// Returns the text of lines such as `784-786, 801`; `None` if the paper does not have one of them.
fn text_of(paper: &[String], lines: &str) -> Option<String> {
    let mut text = Vec::new();
    for part in lines.split(", ") {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        text.extend_from_slice(paper.get(first.checked_sub(1)?..last)?);
    }
    Some(text.join("\n"))
}

/// Returns the notes below the table of a page, in their order.
fn notes(text: &str) -> Vec<&str> {
    let (table, _) = text.split_once("<!-- end -->").unwrap_or((text, ""));
    let (_, list) = table.split_once("\nNotes:\n").unwrap_or_default();
    list.lines().filter_map(|line| line.split_once(". ")).map(|(_, note)| note).collect()
}

/// Returns the rows of all pages.
fn rows() -> Vec<PageRow> {
    let folder = workspace().join("docs/reproduction");
    let mut pages: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let mut rows = Vec::new();
    for path in pages {
        let page = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
        let before = rows.len();
        let notes = notes(&text);
        rows.extend(text.lines().filter_map(|line| PageRow::of(&page, line, &notes)));
        let has_table = text.contains("| Published |");
        assert!(!has_table || rows.len() > before, "{page} has a table without a row");
    }
    rows
}

#[test]
fn every_derived_figure_has_its_formula() {
    let without: Vec<String> = rows()
        .iter()
        .filter(|row| row.basis == "derived" && row.reading.is_empty())
        .map(|row| format!("{}: {}", row.page, row.figure))
        .collect();
    assert!(
        without.is_empty(),
        "{} rows are derived without a formula:\n{}",
        without.len(),
        without.join("\n")
    );
}

#[test]
fn published_figures_stand_at_the_lines_that_are_cited() {
    let Some(papers) = papers() else {
        eprintln!(
            "skipped published_figures_stand_at_the_lines_that_are_cited: no papers; name them in ISLES_SEEDS"
        );
        return;
    };
    let (mut faults, mut checked) = (Vec::new(), 0);
    for row in rows() {
        let Some((paper, lines)) = &row.cited else { continue };
        checked += 1;
        let text = papers.get(paper).and_then(|paper| text_of(paper, lines));
        let fault = match text {
            Some(text) => row.fault(&text),
            None => Some("cites lines that are not there".to_owned()),
        };
        faults.extend(fault.map(|fault| format!("{}: {} ({paper}:{lines}) {fault}", row.page, row.figure)));
    }
    assert!(checked > 400, "only {checked} rows cite a paper");
    assert!(faults.is_empty(), "{} of {checked} rows:\n{}", faults.len(), faults.join("\n"));
    println!("{checked} published figures stand at their lines");
}

#[test]
fn numbers_are_read_as_papers_print_them() {
    let text = "MPICH2 at 7.5 has 1,024 or 8 000 cycles, 13–14 of 38; 300N+7\\,500 and x.5";
    assert_eq!(figures(text), [7.5, 1024.0, 8000.0, 13.0, 14.0, 38.0, 300.0, 7500.0]);
    assert!(is_same(8192.0, 8.192) && is_same(0.68, 68.0) && is_same(2232.0, 2_232_382_092.0));
    assert!(!is_same(1.6, 60.0) && !is_same(2.0, 2.01));
}

#[test]
fn a_row_without_its_figure_or_its_words_at_the_line_is_a_fault() {
    let notes = notes("\nNotes:\n\n1. 1: “do not interfere”\n2. 1: “do interfere”\n3. 1: as it is\n");
    assert_eq!(notes, ["1: “do not interfere”", "1: “do interfere”", "1: as it is"]);
    let row = |cells: &str| {
        PageRow::of("page.md", &format!("| V1 figure | {cells} |"), &notes).expect("it is a row")
    };
    let text = "Up to three cores do not interfere, and one takes $105 \\text{ ns}$.";
    let of = |cells: &str| row(cells).fault(text).is_none();
    assert!(of("105 ns | 105 ns | 0.0 | ±5 | in | calibrated | 004:799"));
    assert!(!of("104 ns | 105 ns | 0.0 | ±5 | in | calibrated | 004:799"));
    assert!(of("1 | 1 | 0.0 | ±5 | in | derived | 004:799 [1]"));
    assert!(!of("1 | 1 | 0.0 | ±5 | in | derived | 004:799 [2]"));
    assert!(!of("1 | 1 | 0.0 | ±5 | in | derived | 004:799 [3]"));
    assert!(!of("105 | 105 | 0.0 | ±5 | in | derived | 004:799"));
    assert!(!of("1 | 1 | 0.0 | ±5 | in | predicted | 004:799"));
    let unpublished = "| figure | 105 ns | predicted |";
    assert!(PageRow::of("page.md", unpublished, &notes).is_none());
}
