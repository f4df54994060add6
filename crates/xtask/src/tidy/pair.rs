//! Each labelled release has its acquire: `// PAIR name: publish` and `// PAIR name: observe`.
//!
//! Refused: a label with one side only, a label that cannot be read, and a release or acquire without a
//! label. A read-modify-write that does both says `publish, observe`. Tests are free. Whether an ordering is
//! right is for the model checker, not for this check.

use crate::finding::Finding;
use crate::lexer::Token;
use crate::syntax::comments_at;
use crate::tree::{File, Tree};
use std::collections::BTreeMap;

/// Positions of each side of one label.
#[derive(Default)]
struct Sides {
    publish: Vec<(String, usize)>,
    observe: Vec<(String, usize)>,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = unpaired(tree);
    findings.extend(tree.files_ending("rs").flat_map(unlabelled));
    findings
}

/// Release and acquire operations without a label.
fn unlabelled(file: &File) -> Vec<Finding> {
    let code = &file.source.code;
    let operations =
        (0..code.len()).filter(|at| is_ordering(code, *at) && !file.is_test_line(code[*at].line));
    let bare = operations.filter(|at| {
        !comments_at(&file.source, &file.text, *at).iter().any(|comment| comment.text.starts_with("PAIR "))
    });
    let mut findings: Vec<Finding> = bare
        .map(|at| {
            let message = format!("label this `{}`: `// PAIR name: publish` or `observe`", code[at].text);
            Finding::new(&file.path, code[at].line, message)
        })
        .collect();
    findings.dedup_by_key(|finding| finding.line);
    findings
}

/// Returns `true` if the token at `at` is the ordering of an operation, and not a word that looks like it.
fn is_ordering(code: &[Token], at: usize) -> bool {
    let named = ["Acquire", "Release", "AcqRel"].iter().any(|word| code[at].is(word));
    let follows = |back: usize, text: &str| at >= back && code[at - back].is(text);
    let qualified = follows(1, ":") && follows(3, "Ordering");
    let last_argument =
        (follows(1, ",") || follows(1, "(")) && code.get(at + 1).is_some_and(|next| next.is(")"));
    named && (qualified || last_argument)
}

/// Labels that have one side only, or cannot be read.
fn unpaired(tree: &Tree) -> Vec<Finding> {
    let mut labels: BTreeMap<&str, Sides> = BTreeMap::new();
    let mut findings = Vec::new();
    for file in tree.files_ending("rs") {
        for comment in &file.source.comments {
            let Some(text) = comment.text.strip_prefix("PAIR ") else { continue };
            let Some((name, publish, observe)) = read(text) else {
                let message =
                    "write `PAIR name: publish`, `PAIR name: observe` or `PAIR name: publish, observe`";
                findings.push(Finding::new(&file.path, comment.line, message));
                continue;
            };
            let sides = labels.entry(name).or_default();
            let place = (file.path.clone(), comment.line);
            sides.publish.extend(publish.then(|| place.clone()));
            sides.observe.extend(observe.then_some(place));
        }
    }
    for (name, sides) in labels {
        let (unpaired, missing) = match (sides.publish.first(), sides.observe.first()) {
            (Some(place), None) => (place, "observe"),
            (None, Some(place)) => (place, "publish"),
            _ => continue,
        };
        let message = format!("pair `{name}` has no `{missing}` side; label it or drop the ordering");
        findings.push(Finding::new(&unpaired.0, unpaired.1, message));
    }
    findings
}

/// The name of a label and which sides it marks.
fn read(text: &str) -> Option<(&str, bool, bool)> {
    let (name, sides) = text.split_once(": ")?;
    let sides = sides.trim_end_matches('.').split(". ").next()?.split(" (").next()?;
    let marks: Vec<&str> = sides.split(", ").collect();
    let known = marks.iter().all(|mark| matches!(*mark, "publish" | "observe"));
    let named = !name.is_empty() && !name.contains(' ');
    (known && named).then(|| (name, marks.contains(&"publish"), marks.contains(&"observe")))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    #[test]
    fn a_label_with_both_sides_passes_across_files() {
        let files =
            [("a.rs", "// PAIR ring.slot: publish"), ("b.rs", "// PAIR ring.slot: observe (the length)")];
        assert!(found(check, &files).is_empty());
    }

    #[test]
    fn one_operation_may_be_both_sides() {
        assert!(found(check, &[("a.rs", "// PAIR state: publish, observe")]).is_empty());
    }

    #[test]
    fn a_label_with_one_side_is_refused() {
        for side in ["publish", "observe"] {
            let text = format!("// PAIR a: publish, observe\n// PAIR b: {side}");
            let found = found(check, &[("a.rs", text.as_str())]);
            assert_eq!(found.len(), 1);
            assert!(found[0].starts_with("a.rs:2: pair `b` has no"), "{found:?}");
        }
    }

    #[test]
    fn an_operation_without_a_label_is_refused() {
        for text in [
            "fn a() { b.store(1, Ordering::Release); }",
            "fn a() { b.load(Acquire); }",
            "// PAIR c: publish, observe\nb.load();\nb.fetch_update(Ordering::AcqRel, Ordering::Acquire, c); }",
        ] {
            assert_eq!(found(check, &[("a.rs", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_label_stands_above_the_statement_or_behind_it() {
        let above = "fn a() {\n// PAIR c: publish, observe\nlet d =\nb.swap(1, Ordering::AcqRel); }";
        let behind = "fn a() { b.swap(1, AcqRel) // PAIR c: publish, observe\n}";
        let free = "use std::sync::atomic::Ordering::{self, Acquire, Release};\nenum A { Release, Acquire(B) }\n\
            #[cfg(test)]\nmod tests { fn a() { b.load(Acquire); } }";
        for text in [above, behind, free] {
            assert_eq!(found(check, &[("a.rs", text)]), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_unreadable_label_is_refused() {
        for text in ["// PAIR a", "// PAIR a: release", "// PAIR a b: publish", "// PAIR a: publish, acquire"]
        {
            assert_eq!(found(check, &[("a.rs", text)]).len(), 1, "{text}");
        }
    }
}
