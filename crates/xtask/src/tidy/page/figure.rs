//! Figures in prose: on pages of tables that commands fill, prose has no measured figure that its tables lack.
//!
//! Read are `docs/figures.md` and the pages of `docs/reproduction/`. A figure is a number with one of [`UNITS`]. It may
//! also stand in a paragraph that cites a line of a paper (`004:2117`) or a commit, and in a block of code.

use super::sentence::paragraphs;
use crate::finding::Finding;
use crate::tree::{File, Tree};

/// Units of what is measured or predicted. Sizes and clocks are settings, so they are not here.
const UNITS: &[&str] = &["%", "ms", "µs", "us", "ns", "s", "J", "W", "GB/s", "MB/s", "cycles", "times"];

/// The marks around what `isles repro` writes.
const REPRO: &str = "<!-- isles repro ";
const END: &str = "<!-- end -->";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let is_read = |path: &str| path == "docs/figures.md" || path.starts_with("docs/reproduction/");
    tree.files_ending("md").filter(|page| is_read(&page.path)).flat_map(unfounded).collect()
}

/// The figures in the prose of `page` that no table of it has.
fn unfounded(page: &File) -> Vec<Finding> {
    let (mut known, mut filled, mut is_filled) = (Vec::new(), Vec::new(), false);
    for (number, line) in page.lines() {
        is_filled = line.starts_with(REPRO) || is_filled && !line.starts_with(END);
        if is_filled || line.starts_with('|') {
            known.extend(line.split(is_apart).map(plain));
            filled.push(number);
        }
    }
    let mut findings = Vec::new();
    for (line, text) in paragraphs(page) {
        if cites(&text) || filled.contains(&line) {
            continue;
        }
        for figure in figures(&text) {
            if !known.contains(&figure) {
                let message = format!(
                    "{figure} stands in no table of this page: cite its source, or let a command fill it"
                );
                findings.push(Finding::new(&page.path, line, message));
            }
        }
    }
    findings
}

/// The numbers of `text` with a unit, outside of code and links.
fn figures(text: &str) -> Vec<String> {
    let prose: String = text.split('`').step_by(2).collect();
    let words: Vec<&str> = prose.split(is_apart).filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).filter(|pair| UNITS.contains(&trimmed(pair[1])));
    pairs.map(|pair| plain(pair[0])).filter(|number| is_number(number)).collect()
}

fn is_apart(character: char) -> bool {
    character.is_whitespace() || "|()[]".contains(character)
}

fn trimmed(word: &str) -> &str {
    word.trim_end_matches([',', '.', ';', ':', '?'])
}

/// `word` without separators of thousands and punctuation.
fn plain(word: &str) -> String {
    trimmed(word).replace(',', "").trim_start_matches(['+', '-', '±', '*']).to_owned()
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.chars().all(|character| character.is_ascii_digit() || character == '.')
}

/// Returns whether `text` cites a line of a paper or a commit.
fn cites(text: &str) -> bool {
    let is_line = |word: &str| {
        let (paper, line) = word.split_once(':').unwrap_or_default();
        paper.len() == 3 && is_number(paper) && line.starts_with(|first: char| first.is_ascii_digit())
    };
    text.split(is_apart).any(is_line) || text.contains("commit ")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::found;

    const TABLE: &str = "| step | 4.9 us | 1,004 cycles | -17.6 |\n";

    fn faults(prose: &str) -> usize {
        found(check, &[("docs/reproduction/a.md", &format!("{TABLE}\n{prose}\n"))]).len()
    }

    #[test]
    fn figures_of_the_table_of_papers_and_of_commits_pass() {
        assert_eq!(faults("A step takes 4.9 µs, or 1004 cycles, 17.6 % less."), 0);
        assert_eq!(faults("The paper says 5.1 MB/s (004:542-560)."), 0);
        assert_eq!(faults("Measured: 3 ms (commit 0dcba30c)."), 0);
        assert_eq!(faults("At 533 MHz with 64 KiB, `3 ms`, in section 4.3.1."), 0);
    }

    #[test]
    fn a_figure_that_no_table_has_is_refused() {
        assert_eq!(faults("A step takes 4.8 µs (1.7 times as long)."), 2);
    }

    #[test]
    fn other_pages_are_not_read() {
        assert!(found(check, &[("docs/a.md", "It takes 4.8 ms.")]).is_empty());
    }
}
