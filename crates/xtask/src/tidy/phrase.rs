//! Turns of phrase that no native engineer would write.
//!
//! Refused in pages, and in comments and texts of Rust files outside of tests: the phrases of [`PHRASES`], each with
//! what to write instead. Code blocks of pages count as well. Each crate or folder that has some is in the list
//! `[phrases]`, with a number that may only shrink.

use crate::finding::Finding;
use crate::lexer::TokenKind;
use crate::ratchet::{self, Ratchet, Unit};
use crate::tree::{File, Tree, owner_of};
use std::collections::BTreeMap;

/// Phrases, in lower case, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("so many", "name the number: `n places`, `that many`"),
    ("for so long", "name the duration: `for up to the limit`"),
    ("needs not", "`need not`"),
    ("is not to", "`must not`"),
    ("are not to", "`must not`"),
    ("of which there", "name what there is"),
    ("as many as there are", "`one for each`"),
    ("with as many", "`with the same number of`"),
    ("it and no other", "`only it`"),
    ("what it was told", "name what it got"),
    ("as it is told", "`on request`, or name who decides"),
    ("by which", "an active verb, or `which .. by`"),
    ("who has", "name the subject: `a place that has`"),
    ("who have", "name the subject: `users that have`"),
    ("tells of", "`reports`"),
    ("told of", "`reported`"),
];

/// The file that lists the phrases.
const OWN: &str = "crates/xtask/src/tidy/phrase.rs";

const COUNT: Unit =
    Unit { name: "phrases that are not plain English", advice: "write what the check says", steps: 1 };

pub fn check(tree: &Tree) -> Vec<Finding> {
    let list = match Ratchet::read_as(tree, "phrases", &COUNT) {
        Ok(list) => list,
        Err(finding) => return vec![finding],
    };
    let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    let files = tree.files_ending("md").chain(tree.files_ending("rs")).filter(|file| file.path != OWN);
    for file in files {
        for finding in found_in(file) {
            found.entry(owner_of(&file.path).to_owned()).or_default().push(finding);
        }
    }
    let numbers = found.iter().map(|(owner, findings)| {
        (owner.clone(), (findings[0].path.clone(), findings[0].line, findings.len()))
    });
    let findings = list.judge(0, numbers.collect());
    // An owner with too many phrases gets all of them, each with its line.
    let each = findings.into_iter().flat_map(|finding| match finding.path == ratchet::PATH {
        true => vec![finding],
        false => found.remove(owner_of(&finding.path)).unwrap_or_default(),
    });
    each.collect()
}

fn found_in(file: &File) -> impl Iterator<Item = Finding> {
    texts(file).into_iter().flat_map(move |(number, text)| {
        let text = text.to_lowercase();
        let refused: Vec<_> = PHRASES.iter().filter(|(phrase, _)| has(&text, phrase)).collect();
        refused.into_iter().map(move |(phrase, instead)| {
            Finding::new(&file.path, number, format!("`{phrase}` is not plain English: {instead}"))
        })
    })
}

/// Returns the lines of a page, or the comments of a Rust file and its string literals outside of tests, with their
/// line numbers. A literal of several lines is one text.
fn texts(file: &File) -> Vec<(usize, String)> {
    if !file.path.ends_with(".rs") {
        return file.lines().map(|(number, line)| (number, line.to_owned())).collect();
    }
    let comments = file.lines().map(|(number, line)| (number, comment_of(line).to_owned()));
    let literals = file.source.code.iter().filter(|token| token.kind == TokenKind::Text);
    let literals = literals.filter(|token| !file.is_test_line(token.line)).map(|token| {
        let words: Vec<&str> = token.text.split_whitespace().filter(|word| *word != "\\").collect();
        (token.line, words.join(" "))
    });
    comments.chain(literals).collect()
}

/// Returns the comment of a line of Rust, or nothing.
fn comment_of(line: &str) -> &str {
    line.find("//").filter(|at| line[..*at].trim().is_empty()).map_or("", |at| &line[at..])
}

/// Returns `true` if `text` has `phrase` with no letter on either side.
fn has(text: &str, phrase: &str) -> bool {
    let is_alphanumeric = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !is_alphanumeric(before.chars().next_back()) && !is_alphanumeric(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;
    use crate::ratchet;

    #[test]
    fn phrases_are_refused_in_pages_comments_and_texts_and_not_in_code_tests_or_within_words() {
        assert_eq!(found(check, &[("docs/a.md", "It Needs not wait.")]).len(), 1);
        assert_eq!(found(check, &[("a.rs", "//! A.\n    // So many\nlet a = 1; // so many")]).len(), 1);
        let literal = "//! A.\nlet a = \"so \\\n    many\";";
        assert!(found(check, &[("crates/a/src/a.rs", literal)])[0].starts_with("crates/a/src/a.rs:2: "));
        let fine = [
            ("crates/a/tests/a.rs", "//! A.\nlet text = \"so many\";"),
            ("docs/a.md", "This is not told, also manyfold."),
        ];
        assert!(found(check, &fine).is_empty());
    }

    #[test]
    fn a_crate_of_the_list_may_have_its_number_and_no_more() {
        const LIST: &str = "[phrases]\na = 1\n";
        let with = |text: &str| found(check, &[("crates/a/src/a.rs", text), (ratchet::PATH, LIST)]);
        assert!(with("// by which\n").is_empty());
        assert_eq!(with("// by which\n// who has\n").len(), 2);
        assert!(with("")[0].ends_with("is gone: remove it"), "{:?}", with(""));
    }
}
