//! The size of the documents: all pages together have at most [`WORDS_MAX`] words that people write.
//!
//! Parts between a mark (`<!-- isles repro flush -->`) and its end (`<!-- end -->`, `<!-- end of figures -->`) are
//! written by commands and do not count. Words are what `wc -w` counts.

use crate::finding::Finding;
use crate::tree::Tree;

/// The most words of all Markdown files outside of parts that commands write.
const WORDS_MAX: usize = 90_000;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let words: usize = tree.files_ending("md").map(|page| written(&page.text)).sum();
    let message = format!(
        "the documents have {words} words outside of tables that commands write; at most {WORDS_MAX}: say each thing \
         once"
    );
    if words > WORDS_MAX { vec![Finding::new("docs", 0, message)] } else { Vec::new() }
}

/// The words of `text` outside of parts that commands write.
fn written(text: &str) -> usize {
    let (before, last) = text.rsplit_once("<!-- end").unwrap_or(("", text));
    // Each part but the last ends with what a command writes, behind the last mark that begins a line.
    let by_people = before.split("<!-- end").map(|part| {
        let marks =
            part.match_indices("\n<!-- ").filter(|(at, _)| !part[*at..].starts_with("\n<!-- printed by"));
        count(marks.last().map_or(part, |(at, _)| &part[..at]))
    });
    by_people.sum::<usize>() + count(last)
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::{WORDS_MAX, check, written};
    use crate::tidy::found;

    #[test]
    fn what_commands_write_does_not_count() {
        assert_eq!(written("one two\n\n<!-- isles repro a -->\n\n| 1 | 2 |\n\n<!-- end -->\nthree"), 4);
        assert_eq!(written("one\n<!-- printed by a.rs -->\n```text\ntwo\n```\n"), 9);
    }

    #[test]
    fn documents_that_are_too_long_are_refused() {
        assert!(found(check, &[("docs/a.md", &"a ".repeat(WORDS_MAX))]).is_empty());
        assert_eq!(found(check, &[("docs/a.md", &"a ".repeat(WORDS_MAX)), ("README.md", "b")]).len(), 1);
    }
}
