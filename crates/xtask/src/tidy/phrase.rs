//! Turns of phrase that no native engineer would write.
//!
//! Refused in pages and in comments of Rust files: the phrases of [`PHRASES`], each with what to write instead. Code
//! blocks of pages count as well.

use crate::finding::Finding;
use crate::tree::{File, Tree};

/// Phrases, in lower case, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("so many", "name the number: `n places`, `that many`"),
    ("needs not", "`need not`"),
    ("is not to", "`must not`"),
    ("are not to", "`must not`"),
    ("of which there", "name what there is"),
    ("as many as there are", "`one for each`"),
    ("it and no other", "`only it`"),
    ("what it was told", "name what it got"),
];

/// The file that lists the phrases.
const OWN: &str = "crates/xtask/src/tidy/phrase.rs";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files_ending("md").chain(tree.files_ending("rs")).filter(|file| file.path != OWN);
    files.flat_map(found_in).collect()
}

fn found_in(file: &File) -> impl Iterator<Item = Finding> {
    file.lines().flat_map(move |(number, line)| {
        let text = if file.path.ends_with(".rs") { comment_of(line) } else { line };
        let text = text.to_lowercase();
        let refused = PHRASES.iter().filter(move |(phrase, _)| has(&text, phrase));
        refused.map(move |(phrase, instead)| {
            Finding::new(&file.path, number, format!("`{phrase}` is no plain English: {instead}"))
        })
    })
}

/// Returns the comment of a line of Rust, or nothing.
fn comment_of(line: &str) -> &str {
    line.find("//").filter(|at| line[..*at].trim().is_empty()).map_or("", |at| &line[at..])
}

/// Returns `true` if `text` has `phrase` with no letter on either side.
fn has(text: &str, phrase: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn phrases_are_refused_in_pages_and_in_comments_and_not_in_code_or_within_words() {
        assert_eq!(found(check, &[("docs/a.md", "It Needs not wait.")]).len(), 1);
        assert_eq!(found(check, &[("a.rs", "//! A.\n    // So many\nlet a = 1; // so many")]).len(), 1);
        let fine =
            [("a.rs", "//! A.\nlet text = \"so many\";"), ("docs/a.md", "This is not told, also manyfold.")];
        assert!(found(check, &fine).is_empty());
    }
}
