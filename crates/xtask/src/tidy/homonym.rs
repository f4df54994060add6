//! Homonyms: a type name that stands for different things in more than two crates.
//!
//! Two crates may share a word, as an interface and its user do; with three, the name is ambiguous. Only the types of
//! the product count, not those of tests. There is a list of exceptions that may only shrink.

use crate::finding::Finding;
use crate::ratchet::{Ratchet, Unit};
use crate::syntax::items;
use crate::tree::{Tree, crate_of};
use std::collections::BTreeMap;

/// Crates that may each have a type of one name.
const CRATES_MAX: usize = 2;

const OWNERS: Unit = Unit { name: "crates with a type of that name", advice: "rename one", steps: 1 };

/// A definition: the path of its file and its line.
type Definition<'a> = (&'a str, usize);

/// The first definition of a name in each crate that has one.
type Owners<'a> = BTreeMap<&'a str, Definition<'a>>;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let types = types(tree);
    let numbers = types.iter().map(|(name, owners)| {
        let (path, line) = owners.values().last().copied().unwrap_or_default();
        (name.to_string(), (path.to_string(), line, owners.len()))
    });
    let mut findings = Ratchet::read_as(tree, "homonyms", &OWNERS)
        .map_or_else(|finding| vec![finding], |ratchet| ratchet.judge(CRATES_MAX, numbers.collect()));
    for finding in &mut findings {
        let owners = finding.message.split('`').nth(1).and_then(|name| types.get(name));
        let crates: Vec<&str> = owners.into_iter().flat_map(BTreeMap::keys).copied().collect();
        if !crates.is_empty() {
            finding.message += &format!(" ({})", crates.join(", "));
        }
    }
    findings
}

/// The types of the product, by name.
fn types(tree: &Tree) -> BTreeMap<&str, Owners<'_>> {
    let mut types: BTreeMap<&str, Owners> = BTreeMap::new();
    for file in tree.files_ending("rs").filter(|file| file.path.contains("/src/") && !file.is_test()) {
        let Some(owner) = crate_of(&file.path) else { continue };
        let of_types = |keyword| matches!(keyword, "struct" | "enum" | "union" | "trait");
        for item in items(&file.source).filter(|item| of_types(item.keyword)) {
            if !file.is_test_line(item.line) {
                types.entry(item.name).or_default().entry(owner).or_insert((&file.path, item.line));
            }
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;
    use crate::ratchet;

    const TYPE: &str = "pub struct Row;\n";

    #[test]
    fn two_crates_may_share_a_name_and_three_may_not() {
        let mut files = vec![("crates/a/src/x.rs", TYPE), ("crates/b/src/x.rs", "enum Row {}")];
        assert!(found(check, &files).is_empty());
        files.push(("crates/c/src/x.rs", "\ntrait Row {}"));
        assert_eq!(
            found(check, &files),
            [
                "crates/c/src/x.rs:2: `Row` has 3 crates with a type of that name; at most 2: rename one (a, b, c)"
            ]
        );
    }

    #[test]
    fn a_tolerated_homonym_may_only_lose_crates() {
        let mut files = vec![
            ("crates/a/src/x.rs", TYPE),
            ("crates/b/src/x.rs", TYPE),
            ("crates/c/src/x.rs", TYPE),
            (ratchet::PATH, "[homonyms]\nRow = 3\n"),
        ];
        assert!(found(check, &files).is_empty());
        files.push(("crates/d/src/x.rs", TYPE));
        assert_eq!(found(check, &files).len(), 1);
        assert!(found(check, &files[1..4])[0].contains("remove it"));
    }

    #[test]
    fn tests_modules_and_functions_do_not_count() {
        let test = "#[cfg(test)]\nmod tests {\nstruct Row;\n}\n";
        let files = [
            ("crates/a/src/x.rs", TYPE),
            ("crates/b/src/x.rs", TYPE),
            ("crates/c/src/x.rs", test),
            ("crates/d/tests/x.rs", TYPE),
            ("crates/e/src/x.rs", "fn Row() {}\nmod Row {}"),
            ("crates/f/src/x/tests.rs", TYPE),
        ];
        assert!(found(check, &files).is_empty());
    }
}
