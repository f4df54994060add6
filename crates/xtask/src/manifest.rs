//! The dependencies of one `Cargo.toml`.
//!
//! Features, versions and sources are not read. A dependency that is renamed counts by its real name.

use crate::finding::Finding;
use crate::tree::Tree;

/// Stage at which a dependency is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the product or its build script.
    Always,
    /// In tests, examples and benches only.
    Tests,
}

/// One dependency.
#[derive(Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Package name.
    pub package: String,
    /// Stage at which it is used.
    pub stage: Stage,
}

/// The dependencies of the crate `name`.
///
/// # Errors
/// A manifest that is missing or cannot be read.
pub fn dependencies(tree: &Tree, name: &str) -> Result<Vec<Dependency>, Finding> {
    let path = format!("{}/Cargo.toml", tree.folder(name));
    let file = tree.file(&path).ok_or_else(|| Finding::new(&path, 0, "the crate has no manifest"))?;
    let table: toml::Table = file.text.parse().map_err(|error| Finding::new(&path, 0, format!("{error}")))?;
    let mut found = sections(&table);
    let targets =
        table.get("target").and_then(toml::Value::as_table).into_iter().flat_map(|targets| targets.values());
    found.extend(targets.filter_map(toml::Value::as_table).flat_map(sections));
    Ok(found)
}

fn sections(table: &toml::Table) -> Vec<Dependency> {
    let stages = [
        ("dependencies", Stage::Always),
        ("build-dependencies", Stage::Always),
        ("dev-dependencies", Stage::Tests),
    ];
    let mut found = Vec::new();
    for (section, stage) in stages {
        let entries = table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
        found.extend(entries.map(|(name, value)| {
            let real = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
            Dependency { package: real.to_string(), stage }
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_section_is_read() {
        let text = "[dependencies]\na = { workspace = true }\nb.workspace = true\n\
            c = { package = \"d\", version = \"1\" }\n\
            [dependencies.e]\nversion = \"1\"\n[build-dependencies]\nf = \"1\"\n[dev-dependencies]\ng = \"1\"\n\
            [target.'cfg(loom)'.dependencies]\nh = \"1\"\n[target.'cfg(loom)'.dev-dependencies]\ni = \"1\"\n";
        let tree = Tree::of(&[("crates/x/Cargo.toml", text)]);
        let found = dependencies(&tree, "x").unwrap();
        let names = |stage| {
            let of_stage = found.iter().filter(move |dependency| dependency.stage == stage);
            of_stage.map(|dependency| dependency.package.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names(Stage::Always), ["a", "b", "d", "e", "f", "h"]);
        assert_eq!(names(Stage::Tests), ["g", "i"]);
    }

    #[test]
    fn a_missing_or_broken_manifest_is_an_error() {
        assert!(dependencies(&Tree::of(&[("crates/x/src/lib.rs", "")]), "x").is_err());
        assert!(dependencies(&Tree::of(&[("crates/x/Cargo.toml", "[dependencies")]), "x").is_err());
    }
}
