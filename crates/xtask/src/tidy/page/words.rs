//! The size of the documents: all Markdown files together have at most [`WORDS_MAX`] words, with tables and
//! listings.
//!
//! A word is a piece between blanks or `|` with at least one letter from A to Z, so figures, marks and symbols do not
//! count: `git ls-files '*.md' | xargs cat | tr -s ' \t|' '\n' | grep -c '[A-Za-z]'`.

use crate::finding::Finding;
use crate::tree::Tree;

/// The most words of all Markdown files.
const WORDS_MAX: usize = 90_000;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let words: usize = tree.files_ending("md").map(|page| count(&page.text)).sum();
    let message = format!("the documents have {words} words; at most {WORDS_MAX}: say each thing once");
    if words > WORDS_MAX { vec![Finding::new("docs", 0, message)] } else { Vec::new() }
}

fn count(text: &str) -> usize {
    let pieces = text.split(|character: char| character.is_whitespace() || character == '|');
    pieces.filter(|piece| piece.contains(|character: char| character.is_ascii_alphabetic())).count()
}

#[cfg(test)]
mod tests {
    use super::{WORDS_MAX, check, count};
    use crate::tidy::found;

    #[test]
    fn words_of_tables_and_blocks_count_and_figures_do_not() {
        assert_eq!(count("| step |4.9 us| 1,004 | - |\n|---|---|---|---|\n"), 2);
        assert_eq!(count("<!-- printed by a.rs -->\n```text\none, two\n```\n"), 6);
    }

    #[test]
    fn documents_that_are_too_long_are_refused() {
        assert!(found(check, &[("docs/a.md", &"a ".repeat(WORDS_MAX))]).is_empty());
        assert_eq!(found(check, &[("docs/a.md", &"a ".repeat(WORDS_MAX)), ("README.md", "b")]).len(), 1);
    }
}
