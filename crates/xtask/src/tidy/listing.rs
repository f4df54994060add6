//! The listings of the book are compiled and shown.
//!
//! Refused: a file in `docs/listings/` whose text no page shows, or that the façade does not compile as an
//! example. The pages hold the text itself, so that they can be read as files.

use crate::finding::Finding;
use crate::tree::Tree;

const FACADE: &str = "crates/isles/Cargo.toml";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.file(FACADE).map_or("", |file| file.text.as_str());
    let mut findings = Vec::new();
    for file in tree.files_ending("rs").filter(|file| file.path.starts_with("docs/listings/")) {
        let shown = format!("\n```rust,ignore\n{}\n```\n", file.text.trim_end());
        if !tree.files_ending("md").any(|page| page.text.contains(&shown)) {
            let text = "no page of the book shows this text; copy it into its page, in a block `rust,ignore`";
            findings.push(Finding::new(&file.path, 0, text));
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
    const PAGE: (&str, &str) = ("docs/first.md", "# One\n\n```rust,ignore\n//! Hello.\n```\n");
    const OLD_PAGE: (&str, &str) = ("docs/first.md", "# One\n\n```rust,ignore\n//! Hallo.\n```\n");
    const MANIFEST: (&str, &str) =
        (FACADE, "[[example]]\nname = \"hello\"\npath = \"../../docs/listings/hello.rs\"\n");

    #[test]
    fn a_listing_that_is_shown_and_compiled_passes() {
        assert!(found(check, &[LISTING, PAGE, MANIFEST]).is_empty());
    }

    #[test]
    fn a_listing_that_is_not_shown_or_not_compiled_is_refused() {
        assert_eq!(found(check, &[LISTING, MANIFEST]).len(), 1);
        assert_eq!(found(check, &[LISTING, OLD_PAGE, MANIFEST]).len(), 1);
        assert_eq!(found(check, &[LISTING, PAGE]).len(), 1);
        assert_eq!(found(check, &[LISTING]).len(), 2);
    }
}
