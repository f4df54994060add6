//! A doc comment begins with a verb in the third person or with a noun phrase.
//!
//! Refused: a first word such as `What` or `How`, which begins a clause without a subject. Each crate that has some is
//! in the list `[comments]`, with a number that may only shrink.

use crate::finding::Finding;
use crate::ratchet::{Ratchet, Unit};
use crate::tree::{File, Tree, owner_of};
use std::collections::BTreeMap;

/// First words of clauses that have no subject.
const HEADLESS: &[&str] = &["What", "Who", "Whom", "Whose", "Where", "Which", "How", "Whether"];

const COMMENTS: Unit = Unit {
    name: "doc comments that begin with `What`, `How` or the like",
    advice: "begin with a verb in the third person, or with a noun",
    steps: 1,
};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let list = match Ratchet::read_as(tree, "comments", &COMMENTS) {
        Ok(list) => list,
        Err(finding) => return vec![finding],
    };
    let mut counts: BTreeMap<String, (String, usize, usize)> = BTreeMap::new();
    for file in tree.files_ending("rs") {
        for line in headless(file) {
            let first = || (file.path.clone(), line, 0);
            counts.entry(owner_of(&file.path).to_owned()).or_insert_with(first).2 += 1;
        }
    }
    list.judge(0, counts)
}

/// Returns the lines of `file` on which a doc comment begins without a subject.
fn headless(file: &File) -> Vec<usize> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        let text = line.trim_start().strip_prefix("///");
        let word = text.and_then(|text| text.split_whitespace().next());
        if !is_inside && word.is_some_and(|word| HEADLESS.contains(&word)) {
            found.push(number);
        }
        is_inside = text.is_some();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    const LIST: &str = "crates/xtask/ratchet.toml";

    #[test]
    fn a_verb_and_a_noun_pass_wherever_the_words_come_later() {
        let text = "//! Places.\n\n/// Returns the place.\n/// What it has is told.\nfn a() {}\n/// Number of rows.\nb";
        assert!(found(check, &[("crates/a/src/lib.rs", text)]).is_empty());
    }

    #[test]
    fn clauses_without_a_subject_are_counted_by_crate_and_the_list_shrinks_with_them() {
        let file = ("crates/a/src/lib.rs", "//! Places.\n\n    /// How many rows.\nx\n/// Whether it is.\ny");
        assert!(found(check, &[file])[0].contains("`a` has 2 doc comments"));
        assert!(found(check, &[file, (LIST, "[comments]\na = 2")]).is_empty());
        assert!(found(check, &[file, (LIST, "[comments]\na = 3")])[0].contains("set it to 2"));
    }
}
