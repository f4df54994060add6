//! The listings of the book are compiled and shown.
//!
//! Refused: a file in `docs/listings/` that no page includes, or that the façade does not compile as an
//! example.

use crate::finding::Finding;
use crate::tree::Tree;

const FACADE: &str = "crates/isles/Cargo.toml";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.file(FACADE).map_or("", |file| file.text.as_str());
    let mut findings = Vec::new();
    for file in tree.files_ending("rs").filter(|file| file.path.starts_with("docs/listings/")) {
        let name = file.path.trim_start_matches("docs/");
        let included = format!("{{{{#include {name}");
        if !tree.files_ending("md").any(|page| page.text.contains(&included)) {
            findings.push(Finding::new(&file.path, 0, "no page of the book includes this listing"));
        }
        if !manifest.contains(&format!("\"../../{}\"", file.path)) {
            findings.push(Finding::new(
                &file.path,
                0,
                format!("not compiled: make it an [[example]] of {FACADE}"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{FACADE, check};

    const LISTING: (&str, &str) = ("docs/listings/hello.rs", "//! Hello.");
    const PAGE: (&str, &str) = ("docs/first.md", "{{#include listings/hello.rs}}");
    const MANIFEST: (&str, &str) =
        (FACADE, "[[example]]\nname = \"hello\"\npath = \"../../docs/listings/hello.rs\"\n");

    #[test]
    fn a_listing_that_is_shown_and_compiled_passes() {
        assert!(found(check, &[LISTING, PAGE, MANIFEST]).is_empty());
    }

    #[test]
    fn a_listing_that_is_not_shown_or_not_compiled_is_refused() {
        assert_eq!(found(check, &[LISTING, MANIFEST]).len(), 1);
        assert_eq!(found(check, &[LISTING, PAGE]).len(), 1);
        assert_eq!(found(check, &[LISTING]).len(), 2);
    }
}
