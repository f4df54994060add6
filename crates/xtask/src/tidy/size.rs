//! Sizes: functions, files, test modules and lines that a reader can hold in the head.
//!
//! Refused: functions over 70 lines, files over 800 lines without their tests, test modules over 150 lines
//! inside a file, and lines over 120 columns (apart from tables, addresses and long texts in quotes, which cannot
//! be broken). The first two have a list of exceptions that may only shrink.

use crate::finding::Finding;
use crate::ratchet::Ratchet;
use crate::syntax::{functions, length};
use crate::tree::Tree;
use std::collections::BTreeMap;

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;
const TEST_LINES_MAX: usize = 150;
const COLUMNS_MAX: usize = 120;

/// Name of a measured thing: where it is and how long.
type Lengths = BTreeMap<String, (String, usize, usize)>;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = judge(tree, "functions", FUNCTION_LINES_MAX, function_lengths(tree));
    findings.extend(judge(tree, "files", FILE_LINES_MAX, file_lengths(tree)));
    findings.extend(long_test_modules(tree));
    findings.extend(long_lines(tree));
    findings
}

fn judge(tree: &Tree, section: &'static str, max: usize, lengths: Lengths) -> Vec<Finding> {
    Ratchet::read(tree, section).map_or_else(|finding| vec![finding], |ratchet| ratchet.judge(max, lengths))
}

fn function_lengths(tree: &Tree) -> Lengths {
    let mut lengths = Lengths::new();
    for file in tree.files_ending("rs") {
        for function in functions(&file.source) {
            let (line, lines) = (*function.lines.start(), length(&function.lines));
            let entry = lengths.entry(format!("{}::{}", file.path, function.name));
            let longest = entry.or_insert_with(|| (file.path.clone(), line, 0));
            if lines > longest.2 {
                *longest = (file.path.clone(), line, lines);
            }
        }
    }
    lengths
}

fn file_lengths(tree: &Tree) -> Lengths {
    let files = tree.files_ending("rs").filter(|file| !file.is_test());
    files
        .map(|file| {
            let tests: usize = file.tests().iter().map(length).sum();
            (file.path.clone(), (file.path.clone(), 0, file.lines().count() - tests))
        })
        .collect()
}

fn long_test_modules(tree: &Tree) -> Vec<Finding> {
    let modules =
        tree.files_ending("rs").flat_map(|file| file.tests().iter().map(move |lines| (file, lines)));
    let long = modules.filter(|(_, lines)| length(lines) > TEST_LINES_MAX);
    long.map(|(file, lines)| {
        let message =
            format!("a test module of {} lines; over {TEST_LINES_MAX} move it to `tests.rs`", length(lines));
        Finding::new(&file.path, *lines.start(), message)
    })
    .collect()
}

/// Columns of a text in quotes from which on its line may be as long as it needs.
const TEXT_COLUMNS: usize = 60;

fn long_lines(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        let document = file.path.ends_with(".md");
        for (number, line) in file.lines() {
            let columns = line.chars().count();
            // A text is easier to find, and in an attribute only possible, in one piece.
            let literal = line.split('"').skip(1).step_by(2).any(|text| text.chars().count() > TEXT_COLUMNS);
            let unbreakable = literal
                || line.contains("://")
                || (document && (line.starts_with('|') || line.contains("](")));
            if columns > COLUMNS_MAX && !unbreakable {
                let message = format!("a line of {columns} columns; at most {COLUMNS_MAX}");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;
    use crate::ratchet;

    /// A file with one function of `lines` lines.
    fn function(lines: usize) -> String {
        format!("fn a() {{\n{}}}\n", "b();\n".repeat(lines - 2))
    }

    #[test]
    fn what_is_within_the_limits_passes() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(147));
        let text = format!("{}{}{}{tests}", function(70), "\n".repeat(730), "");
        assert!(found(check, &[("a.rs", &text), ("b.md", &"x".repeat(120))]).is_empty());
    }

    #[test]
    fn a_function_of_71_lines_is_refused() {
        let found = found(check, &[("a.rs", &function(71))]);
        assert_eq!(found, ["a.rs:1: `a.rs::a` has 71 lines; at most 70: split it"]);
    }

    #[test]
    fn a_file_of_801_lines_is_refused_unless_it_is_a_test() {
        let text = "\n".repeat(801);
        assert_eq!(found(check, &[("crates/a/src/b.rs", &text)]).len(), 1);
        assert!(
            found(check, &[("crates/a/tests/b.rs", &text), ("crates/a/src/b/tests.rs", &text)]).is_empty()
        );
    }

    #[test]
    fn a_long_test_module_inside_a_file_is_refused() {
        let text = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(148));
        assert_eq!(found(check, &[("a.rs", &text)]).len(), 1);
    }

    #[test]
    fn a_line_of_121_columns_is_refused_unless_it_cannot_be_broken() {
        let long = "x".repeat(121);
        assert_eq!(found(check, &[("a.rs", &long)]).len(), 1);
        assert_eq!(found(check, &[("a.md", &long), ("run", &long)]).len(), 2);
        assert!(found(check, &[("a.md", &format!("|{long}"))]).is_empty());
        assert!(found(check, &[("a.rs", &format!("// https://{long}"))]).is_empty());
        assert!(found(check, &[("a.rs", &format!("note = \"{long}\""))]).is_empty());
    }

    #[test]
    fn a_tolerated_length_passes_but_may_not_grow() {
        let list = "[functions]\n\"a.rs::a\" = 75\n";
        assert!(found(check, &[("a.rs", &function(75)), (ratchet::PATH, list)]).is_empty());
        assert_eq!(found(check, &[("a.rs", &function(76)), (ratchet::PATH, list)]).len(), 1);
    }

    #[test]
    fn an_entry_of_the_list_follows_what_it_tolerates() {
        let list = "[functions]\n\"a.rs::a\" = 75\n";
        for (lines, advice) in [(74, "set it to 74"), (70, "remove it")] {
            let found = found(check, &[("a.rs", &function(lines)), (ratchet::PATH, list)]);
            assert_eq!(found.len(), 1);
            assert!(found[0].ends_with(advice), "{found:?}");
        }
        let found = found(check, &[("b.rs", ""), (ratchet::PATH, list)]);
        assert!(found[0].ends_with("is gone: remove it"), "{found:?}");
    }

    #[test]
    fn an_unreadable_list_is_reported() {
        for list in ["[functions", "[functions]\n\"a\" = \"long\"\n"] {
            assert!(!found(check, &[(ratchet::PATH, list)]).is_empty());
        }
    }
}
