//! The house checks: `xtask tidy` for the text of the tree, `xtask map` for the crate graph; `xtask circle` shows the
//! largest import circle of a crate.
//!
//! It executes the rules of CONTRIBUTING.md and ARCHITECTURE.md. It builds and formats nothing and changes no file.
//! Each check is a function from a [`Tree`] to findings, so that tests use trees in memory.

#![forbid(unsafe_code)]

mod finding;
mod lexer;
mod manifest;
mod map;
mod ratchet;
mod syntax;
mod tidy;
mod tree;

use finding::Finding;
use std::path::PathBuf;
use std::process::ExitCode;
use tree::Tree;

const USAGE: &str = "usage: xtask tidy|map|circle CRATE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let check: fn(&Tree) -> Vec<Finding> = match arguments[..] {
        ["tidy"] => tidy::check,
        ["map"] => map::check_with_features,
        ["circle", name] => return show_circle(name),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match root().and_then(|root| Tree::read(&root)) {
        Ok(tree) => report(arguments[0], &tree, check(&tree)),
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &std::io::Error) -> ExitCode {
    eprintln!("xtask: the tree cannot be read: {error}");
    ExitCode::from(2)
}

/// Prints the largest import circle of a crate: each file, and which others of the circle it imports.
fn show_circle(name: &str) -> ExitCode {
    match root().and_then(|root| Tree::read(&root)) {
        Ok(tree) if tree.crates().iter().any(|known| known == name) => {
            map::circle(&tree, name).iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Ok(tree) => {
            eprintln!("xtask: there is no crate `{name}`; there are {}", tree.crates().join(", "));
            ExitCode::from(2)
        }
        Err(error) => unreadable(&error),
    }
}

/// Prints the findings, one per line; the exit code is 1 if there are any.
fn report(name: &str, tree: &Tree, findings: Vec<Finding>) -> ExitCode {
    for finding in &findings {
        println!("{finding}");
    }
    println!("{name}: {} files read, {} findings", tree.files().count(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The nearest folder at or above the current one that holds the workspace.
fn root() -> std::io::Result<PathBuf> {
    let start = std::env::current_dir()?;
    let found = start
        .ancestors()
        .find(|folder| folder.join("Cargo.toml").is_file() && folder.join("crates").is_dir());
    found
        .map(PathBuf::from)
        .ok_or_else(|| std::io::Error::other("no workspace at or above the current folder"))
}
