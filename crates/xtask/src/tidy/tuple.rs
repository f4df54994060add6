//! Parameters that are tuples: nothing says what their parts are or in which units.
//!
//! Counted: a parameter of a function or method whose type is a tuple or a reference to one, or whose pattern is a
//! tuple, outside of tests. Pairs inside of another type (`&[(u64, u64)]`), results, closures and function types do not
//! count. Each crate that has some is in the list `[tuples]`, with a number that may only shrink.

use crate::finding::Finding;
use crate::ratchet::{self, Ratchet, Unit};
use crate::syntax::tuple_parameters;
use crate::tree::{Tree, owner_of};
use std::collections::BTreeMap;

const PARAMETERS: Unit = Unit {
    name: "parameters that are tuples",
    advice: "use a struct with named fields, or two parameters",
    steps: 1,
};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let list = match Ratchet::read_as(tree, "tuples", &PARAMETERS) {
        Ok(list) => list,
        Err(finding) => return vec![finding],
    };
    let mut found: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for file in tree.files_ending("rs") {
        let tuples = tuple_parameters(&file.source).into_iter();
        for tuple in tuples.filter(|tuple| !file.is_test_line(tuple.line)) {
            let message = format!("`{}` has a parameter that is a tuple: {}", tuple.name, PARAMETERS.advice);
            let finding = Finding::new(&file.path, tuple.line, message);
            found.entry(owner_of(&file.path)).or_default().push(finding);
        }
    }
    let numbers = found.iter().map(|(owner, findings)| {
        ((*owner).to_owned(), (findings[0].path.clone(), findings[0].line, findings.len()))
    });
    let findings = list.judge(0, numbers.collect());
    // An owner with too many tuples gets all of them, each with its line.
    let each = findings.into_iter().flat_map(|finding| match finding.path == ratchet::PATH {
        true => vec![finding],
        false => found.remove(owner_of(&finding.path)).unwrap_or_default(),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;
    use crate::ratchet;

    fn count(text: &str) -> usize {
        found(check, &[("crates/a/src/a.rs", text)]).len()
    }

    #[test]
    fn tuples_count_in_functions_and_methods_with_and_without_names_for_their_parts() {
        assert_eq!(count("fn a(pair: (u64, u64)) {}"), 1);
        assert_eq!(count("trait A {\n fn a(&self, (one, other): (u8, &B<u8, u8>));\n}"), 1);
        assert_eq!(count("fn a<F: Fn(u8) -> u8, const N: usize>(mut a: &'a mut (F, u8), b: (u8,)) {}"), 2);
        assert_eq!(count("fn a(Pair { one, other }: Pair, (a, b): (impl Fn(u8) -> u8, u8)) {}"), 1);
        assert_eq!(count("type Pair = (u8, u8);\nfn a((one, other): Pair) {}"), 1);
        let found = found(check, &[("crates/a/src/a.rs", "\nfn a(\n  pair: (u64, u64),\n) {}")]);
        assert!(found[0].starts_with("crates/a/src/a.rs:2: `a` has a parameter"), "{found:?}");
    }

    #[test]
    fn pairs_inside_of_other_types_results_closures_and_tests_do_not_count() {
        for text in [
            "fn a(pairs: &[(u64, u64)], one: Option<(u8, u8)>) -> (u8, u8) {}",
            "fn a<T: FromIterator<(u8, u8)>>(unit: (), any: &(dyn Any + Send), call: impl Fn((u8, u8))) {}",
            "let a: fn((u8, u8)) = |(one, other): (u8, u8)| one;",
            "#[cfg(test)]\nmod tests {\nfn a(pair: (u8, u8)) {}\n}",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
        assert!(found(check, &[("crates/a/tests/a.rs", "fn a(pair: (u8, u8)) {}")]).is_empty());
    }

    #[test]
    fn a_crate_of_the_list_may_have_its_number_and_no_more() {
        const LIST: &str = "[tuples]\na = 1\n";
        let with = |text: &str| found(check, &[("crates/a/src/a.rs", text), (ratchet::PATH, LIST)]);
        assert!(with("fn a(pair: (u8, u8)) {}").is_empty());
        assert_eq!(with("fn a(pair: (u8, u8), other: (u8, u8)) {}").len(), 2);
        assert!(with("")[0].ends_with("is gone: remove it"), "{:?}", with(""));
    }
}
