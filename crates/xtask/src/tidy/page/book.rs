//! The book: every link leads somewhere, every page is in the table of contents, every listing is compiled and shown.
//!
//! Refused: a link whose file is not in the tree, a `#heading` that the page does not have, a page in `docs/` that
//! `docs/SUMMARY.md` does not link, and a file in `docs/listings/` whose text no page shows, or that neither the façade
//! compiles as an example nor a stage of `./test` tries. The pages hold that text itself, so that they can be read as
//! files: all of it, or after `[listings/NAME](listings/NAME), in part` pieces of it with lines [`OMISSION`] between
//! them. Addresses outside the repository are not fetched.

use crate::finding::Finding;
use crate::tree::{File, Tree};

const SUMMARY: &str = "docs/SUMMARY.md";
const FACADE: &str = "crates/isles/Cargo.toml";
const STAGES: &str = ".ci/stages/";
/// The line of a block for the lines of a listing that it leaves out.
const OMISSION: &str = "// ..";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files_ending("md") {
        for (line, target) in links(file) {
            let message = broken(tree, file, &target);
            findings.extend(message.map(|message| Finding::new(&file.path, line, message)));
        }
    }
    findings.extend(unlisted(tree));
    findings.extend(listings(tree));
    findings
}

/// The targets of the links of `file` that stay in the repository.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in file.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let text: String = if fenced { String::new() } else { line.split('`').step_by(2).collect() };
        let inline =
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        let named = text.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        let targets = inline.chain(named).map(str::trim);
        let inside = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
        found.extend(inside.map(|target| (number, target.trim_matches(['<', '>']).to_string())));
    }
    found
}

/// Returns the fault of the link `target` as seen from `file`, if it has one.
fn broken(tree: &Tree, file: &File, target: &str) -> Option<String> {
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
    if !tree.contains(&path) {
        return Some(format!("link to `{target}`: there is no `{path}`"));
    }
    let page = tree.file(&path).filter(|page| page.path.ends_with(".md"))?;
    let heading = heading?;
    let known = headings(page).any(|known| known == heading);
    (!known).then(|| format!("link to `{target}`: `{path}` has no such heading"))
}

/// `target` relative to the folder of `from`, without `.` and `..`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of the headings of a page, as mdBook and the forges write them.
fn headings(page: &File) -> impl Iterator<Item = String> {
    let lines = page.text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let kept = line
            .trim_start_matches('#')
            .trim()
            .chars()
            .filter(|next| next.is_alphanumeric() || " -_".contains(*next));
        kept.flat_map(char::to_lowercase).map(|next| if next == ' ' { '-' } else { next }).collect()
    })
}

fn unlisted(tree: &Tree) -> Vec<Finding> {
    let listed: Vec<String> = tree
        .file(SUMMARY)
        .map_or(Vec::new(), links)
        .into_iter()
        .map(|(_, target)| resolve(SUMMARY, target.split('#').next().unwrap_or_default()))
        .collect();
    let pages = tree.files_ending("md").filter(|file| file.path.starts_with("docs/") && file.path != SUMMARY);
    let missing = pages.filter(|page| !listed.contains(&page.path));
    missing.map(|page| Finding::new(&page.path, 0, format!("the page is not in {SUMMARY}"))).collect()
}

/// Returns `true` if `page` has a block with all of `listing`, or with parts of it, in their order, and a link to the
/// rest.
fn shows(page: &str, listing: &File) -> bool {
    const START: &str = "\n```rust,ignore\n";
    if page.contains(&format!("{START}{}\n```\n", listing.text.trim_end())) {
        return true;
    }
    let name = listing.path.trim_start_matches("docs/");
    let after = page.split_once(&format!("{name}), in part")).and_then(|(_, after)| after.split_once(START));
    let Some((block, _)) = after.and_then(|(_, block)| block.split_once("\n```\n")) else { return false };
    let all: Vec<&str> = listing.text.lines().map(str::trim).collect();
    let shown: Vec<&str> = block.lines().map(str::trim).collect();
    let mut rest = all.as_slice();
    shown.split(|line| *line == OMISSION).all(|part| {
        let found = rest.windows(part.len().max(1)).position(|lines| lines == part);
        rest = &rest[found.map_or(rest.len(), |at| at + part.len())..];
        found.is_some() && part.iter().any(|line| line.contains(char::is_alphabetic))
    })
}

/// Checks the programs of the pages.
fn listings(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.file(FACADE).map_or("", |file| file.text.as_str());
    let stages: Vec<&File> = tree.files().filter(|file| file.path.starts_with(STAGES)).collect();
    let mut findings = Vec::new();
    for file in tree.files_ending("rs").filter(|file| file.path.starts_with("docs/listings/")) {
        if !tree.files_ending("md").any(|page| shows(&page.text, file)) {
            let text = "no page of the book shows this text or parts of it; copy it into its page, in a block \
                        `rust,ignore`";
            findings.push(Finding::new(&file.path, 0, text));
        }
        let tried = stages.iter().any(|stage| stage.text.contains(&file.path));
        if !manifest.contains(&format!("\"../../{}\"", file.path)) && !tried {
            let text = format!(
                "not compiled: make it an [[example]] of {FACADE}, or let a stage of {STAGES} try it"
            );
            findings.push(Finding::new(&file.path, 0, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{FACADE, check, listings};
    use crate::tidy::found;

    const CONTENTS: (&str, &str) = ("docs/SUMMARY.md", "- [A](a.md)\n- [B](deep/b.md)\n");

    #[test]
    fn links_that_lead_somewhere_pass() {
        let a = "# One `two`, three\n[b](deep/b.md) [c](../crates/) [here](#one-two-three) [x](https://x.y)\n\
            ```text\n[gone](gone.md)\n```\n`[gone](gone.md)`\n[d]: ../crates/a.rs\n";
        let b = "[a](../a.md#one-two-three)";
        let files = [CONTENTS, ("docs/a.md", a), ("docs/deep/b.md", b), ("crates/a.rs", "")];
        assert_eq!(found(check, &files), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_nowhere_is_refused() {
        for text in ["[x](gone.md)", "![x](gone.png)", "[x]: gone.md", "[x](#gone)", "[x](a.md#gone)"] {
            let files = [("docs/SUMMARY.md", "- [A](a.md)\n"), ("docs/a.md", text)];
            assert_eq!(found(check, &files).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_page_outside_the_table_of_contents_is_refused() {
        let files =
            [CONTENTS, ("docs/a.md", ""), ("docs/deep/b.md", ""), ("docs/c.md", ""), ("README.md", "")];
        assert_eq!(found(check, &files), ["docs/c.md:0: the page is not in docs/SUMMARY.md"]);
    }

    const LISTING: (&str, &str) = ("docs/listings/hello.rs", "//! Hello.");
    const PAGE: (&str, &str) = ("docs/first.md", "# One\n\n```rust,ignore\n//! Hello.\n```\n");
    const OLD_PAGE: (&str, &str) = ("docs/first.md", "# One\n\n```rust,ignore\n//! Hallo.\n```\n");
    const MANIFEST: (&str, &str) =
        (FACADE, "[[example]]\nname = \"hello\"\npath = \"../../docs/listings/hello.rs\"\n");

    #[test]
    fn a_listing_that_is_shown_and_compiled_passes() {
        assert!(found(listings, &[LISTING, PAGE, MANIFEST]).is_empty());
        let stage = (".ci/stages/ranks.sh", "cp docs/listings/hello.rs main.rs");
        assert!(found(listings, &[LISTING, PAGE, stage]).is_empty());
    }

    #[test]
    fn a_listing_may_be_shown_in_part() {
        let listing = ("docs/listings/hello.rs", "//! Hello.\nfn one() {\n    two();\n    three();\n}\n");
        let faults = |block: &str| {
            let page =
                format!("[listings/hello.rs](listings/hello.rs), in part:\n\n```rust,ignore\n{block}\n```\n");
            found(listings, &[listing, ("docs/first.md", &page), MANIFEST]).len()
        };
        assert_eq!(faults("//! Hello.\n// ..\ntwo();\nthree();"), 0);
        assert_eq!(faults("//! Hello.\ntwo();"), 1);
        assert_eq!(faults("four();"), 1);
        assert_eq!(faults("two();\n// ..\n//! Hello."), 1, "in another order");
        assert_eq!(faults("two();\n// ..\ntwo();"), 1, "twice");
        assert_eq!(faults("}"), 1, "nothing that could differ");
    }

    #[test]
    fn a_listing_that_is_not_shown_or_not_compiled_is_refused() {
        assert_eq!(found(listings, &[LISTING, MANIFEST]).len(), 1);
        assert_eq!(found(listings, &[LISTING, OLD_PAGE, MANIFEST]).len(), 1);
        assert_eq!(found(listings, &[LISTING, PAGE]).len(), 1);
        assert_eq!(found(listings, &[LISTING]).len(), 2);
    }
}
