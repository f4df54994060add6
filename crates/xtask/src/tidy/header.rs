//! Each Rust file starts with a header that says what it is and what it does not do.
//!
//! Refused: a first line that is not a `//!` sentence.

use crate::finding::Finding;
use crate::tree::Tree;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let headless = tree.files_ending("rs").filter(|file| {
        let first = file.text.lines().next().unwrap_or_default();
        first.strip_prefix("//! ").is_none_or(|sentence| sentence.trim().is_empty())
    });
    headless
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "start the file with `//! `: what it is, why it exists, what it does not do",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn a_file_with_a_header_passes() {
        assert!(found(check, &[("a.rs", "//! Places.\n\nfn a() {}")]).is_empty());
    }

    #[test]
    fn a_file_without_a_header_is_refused() {
        for text in ["", "fn a() {}", "// Places.\n", "\n//! Late.\n", "//! \n"] {
            assert_eq!(found(check, &[("a.rs", text)]).len(), 1, "{text:?}");
        }
    }
}
