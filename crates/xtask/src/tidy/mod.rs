//! `xtask tidy`: the rules about the text of the tree.
//!
//! One file a rule family; each says in its header what it refuses. The list below is the whole command.

mod comment;
mod folder;
mod header;
mod homonym;
mod marker;
mod name;
mod page;
mod pair;
mod phrase;
mod size;
mod tuple;
mod unsafety;

use crate::finding::Finding;
use crate::tree::Tree;

/// Returns all findings, by path and line.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let checks: &[fn(&Tree) -> Vec<Finding>] = &[
        header::check,
        comment::check,
        phrase::check,
        unsafety::check,
        pair::check,
        tuple::check,
        name::check,
        homonym::check,
        size::check,
        folder::check,
        marker::check,
        page::check,
    ];
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check(tree)).collect();
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings
}

/// The messages that `check` gives for a tree of `files`, each with its path and line.
#[cfg(test)]
fn found(check: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(Finding::to_string).collect()
}
