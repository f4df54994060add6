//! Names: nouns that say something, and one word for one thing.
//!
//! Refused: names that could stand for anything ([`EMPTY`], [`EMPTY_ALONE`]), the project's name as a
//! prefix, and the words that `docs/glossary.md` lists in its last column; the message then names the right
//! word. Only names that the source introduces and the paths of Rust files are checked. The long name of a test is an
//! English sentence, in which any word may occur. Bindings (`let`, parameters, fields) are checked for the words of the
//! glossary only, without those of [`ORDINARY`].

use crate::finding::Finding;
use crate::syntax::{bindings, items, words};
use crate::tree::{File, Tree, crate_of};
use std::collections::BTreeMap;

/// Words that say nothing wherever they stand in a name.
const EMPTY: &[&str] = &["manager", "helper", "helpers", "util", "utils", "misc", "wrapper", "engine"];

/// Words that say nothing when they are the whole name of a module or type.
const EMPTY_ALONE: &[&str] = &["common", "base", "impl", "data", "info", "core"];

/// Words of the glossary that a binding may have in their ordinary sense: retained, a CPU, an executor of another
/// library, a copy of a parser, those that have left.
const ORDINARY: &[&str] = &["kept", "processor", "executor", "coroutine", "fork", "departed"];

/// Words from which on the name of a function of a test is a sentence.
const SENTENCE_WORDS_MIN: usize = 5;

/// Path of the project's glossary.
const GLOSSARY: &str = "docs/glossary.md";

/// A word that is refused, and the word to use.
struct Refused {
    word: String,
    instead: String,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let refused = glossary(tree);
    let mut findings = Vec::new();
    if refused.is_empty() {
        findings.push(Finding::new(
            GLOSSARY,
            0,
            "has no table whose last column lists refused words in back-ticks",
        ));
    }
    for file in tree.files_ending("rs") {
        for name in path_names(&file.path) {
            findings
                .extend(complaint(name, true, &refused).map(|message| Finding::new(&file.path, 0, message)));
        }
        for item in items(&file.source) {
            let of_type = !matches!(item.keyword, "fn" | "const" | "static");
            let in_test = item.keyword == "fn" && file.is_test_line(item.line);
            let exempt = in_test && is_sentence(item.name);
            let message = complaint(item.name, of_type, if exempt { &[] } else { &refused });
            findings.extend(message.map(|message| Finding::new(&file.path, item.line, message)));
        }
        findings.extend(retired_bindings(file, &refused));
    }
    findings
}

/// Returns the bindings of a file that have a word of the glossary, once for each line.
fn retired_bindings(file: &File, refused: &[Refused]) -> Vec<Finding> {
    let ordinary = |word: &Refused| ORDINARY.contains(&word.word.as_str());
    let of_line = bindings(&file.source)
        .filter(|binding| !(file.is_test_line(binding.line) && is_sentence(binding.name)))
        .filter_map(|binding| Some(((binding.line, binding.name), hit(binding.name, refused)?)))
        .filter(|(_, hit)| !ordinary(hit));
    let of_line: BTreeMap<_, _> = of_line.collect();
    let finding =
        |((line, name), hit): ((usize, &str), &Refused)| Finding::new(&file.path, line, advice(name, hit));
    of_line.into_iter().map(finding).collect()
}

/// Returns `true` if a name is long enough to be the sentence that a test proves.
fn is_sentence(name: &str) -> bool {
    words(name).len() >= SENTENCE_WORDS_MIN
}

/// The rows of the glossary's table: first cell what to say, last cell what is refused.
fn glossary(tree: &Tree) -> Vec<Refused> {
    let lines = tree.file(GLOSSARY).map_or("", |file| file.text.as_str()).lines();
    let rows = lines.filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let instead = cells.first().unwrap_or(&"").to_string();
        let words =
            cells.last().unwrap_or(&"").split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>();
        words.into_iter().map(move |word| Refused { word, instead: instead.clone() })
    })
    .collect()
}

/// The folder and file names of a Rust file that are modules: all below the crate's `src`.
fn path_names(path: &str) -> impl Iterator<Item = &str> {
    let inside = crate_of(path).and_then(|_| path.split_once("/src/")).map_or("", |(_, inside)| inside);
    inside.trim_end_matches(".rs").split('/').filter(|name| !name.is_empty())
}

/// Returns the reason why `name` is refused, if it is; `of_type` marks modules and types. Names that start with two
/// underscores belong to macros, which must be unique in foreign code.
fn complaint(name: &str, of_type: bool, refused: &[Refused]) -> Option<String> {
    if name.starts_with("__") {
        return None;
    }
    let words = words(name);
    if let Some(word) = words.iter().find(|word| EMPTY.contains(&word.as_str())) {
        return Some(format!("`{name}`: `{word}` says nothing; name it by what it does"));
    }
    if of_type && words.len() == 1 && EMPTY_ALONE.contains(&words[0].as_str()) {
        return Some(format!("`{name}` says nothing; name it by what it holds"));
    }
    if words.len() > 1 && words[0] == "isles" {
        return Some(format!("`{name}`: leave the project's name out; the crate says it"));
    }
    hit(name, refused).map(|hit| advice(name, hit))
}

/// Returns the refused word that `name` has, if any.
fn hit<'r>(name: &str, refused: &'r [Refused]) -> Option<&'r Refused> {
    let joined = format!("_{}_", words(name).join("_"));
    refused.iter().find(|refused| joined.contains(&format!("_{}_", refused.word)))
}

fn advice(name: &str, hit: &Refused) -> String {
    format!("`{name}`: the glossary says {} for `{}`", hit.instead, hit.word)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::check;

    const WORDS: &str = "| Say | Meaning | Elsewhere | Refused |\n|---|---|---|---|\n\
        | `Task` | Work. | activity (X10) | `fiber`, `activity` |\n| `all_reduce` | All. | MPI | `allreduce` |\n";

    fn names(path: &str, text: &str) -> Vec<String> {
        found(check, &[("docs/glossary.md", WORDS), (path, text)])
    }

    #[test]
    fn plain_nouns_pass() {
        let text =
            "mod ring; struct Task; fn data() {} fn database() {} const BASE_FEE: u8 = 1; fn all_reduce() {}";
        assert!(names("crates/a/src/ring.rs", text).is_empty());
    }

    #[test]
    fn names_that_say_nothing_are_refused() {
        for text in [
            "mod util;",
            "struct RingManager;",
            "fn helper() {}",
            "mod data;",
            "struct Info;",
            "trait Core {}",
        ] {
            assert_eq!(names("crates/a/src/ring.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn paths_are_names_too() {
        for path in ["crates/a/src/utils.rs", "crates/a/src/common/mod.rs", "crates/a/src/data.rs"] {
            assert_eq!(names(path, "").len(), 1, "{path}");
        }
        assert!(names("crates/base/build.rs", "").is_empty());
    }

    #[test]
    fn the_projects_name_is_no_prefix() {
        assert_eq!(names("crates/a/src/b.rs", "struct IslesError;").len(), 1);
        assert!(names("crates/a/src/b.rs", "fn __isles_capture() {}").is_empty());
    }

    #[test]
    fn a_refused_word_of_the_glossary_names_the_right_one() {
        let found = names("crates/a/src/b.rs", "struct FiberQueue;\nfn allreduce() {}");
        assert!(found[0].contains("says `Task` for `fiber`"), "{found:?}");
        assert!(found[1].contains("says `all_reduce` for `allreduce`"), "{found:?}");
    }

    #[test]
    fn words_in_strings_and_comments_are_free() {
        assert!(names("crates/a/src/b.rs", "// struct Util;\nconst A: &str = \"struct Fiber;\";").is_empty());
    }

    #[test]
    fn a_missing_glossary_is_reported() {
        assert_eq!(found(check, &[("a.rs", "")]).len(), 1);
    }

    #[test]
    fn the_name_of_a_test_is_a_sentence_unless_it_is_short() {
        let (sentence, short) = ("fn a_fiber_is_left_alone() {}", "fn send_fiber() {}");
        assert!(names("crates/a/tests/b.rs", sentence).is_empty());
        assert!(
            names("crates/a/src/b.rs", &format!("#[cfg(test)]\nmod tests {{\n{sentence}\n}}\n")).is_empty()
        );
        assert_eq!(names("crates/a/src/b.rs", sentence).len(), 1);
        assert_eq!(names("crates/a/tests/b.rs", short).len(), 1);
    }

    #[test]
    fn bindings_are_checked_for_the_words_of_the_glossary_and_for_no_others() {
        for text in [
            "fn a() { let (mut fiber, b): (u8, u8) = c; }",
            "fn a(fiber: u8) {}",
            "struct A { my_fiber: u8 }",
            "fn a() { for (fiber, b) in c {} }",
            "fn a() { b.map(|&fiber| c) }",
            "fn a() { let Some(b::C { fiber }) = c else { return }; }",
        ] {
            assert_eq!(names("crates/a/src/b.rs", text).len(), 1, "{text}");
        }
        for text in [
            "fn a() { let data = fiber::new(b | fiber); }",
            "fn a() { fiber::b(c) }",
            "fn a() -> fiber {}",
            "impl A for B { fn a(&self) { fiber::b(c) } }",
        ] {
            assert!(names("crates/a/src/b.rs", text).is_empty(), "{text}");
        }
        let sentence = "fn a() { let a_fiber_is_left_alone = 1; }";
        assert!(names("crates/a/tests/b.rs", sentence).is_empty());
    }

    #[test]
    fn an_ordinary_word_may_name_a_binding_and_no_item() {
        let words = "| Say | Refused |\n|---|---|\n| `A` | `kept` |\n";
        let found = |text| found(check, &[("docs/glossary.md", words), ("crates/a/src/b.rs", text)]);
        assert!(found("fn a() { let kept = 1; }").is_empty());
        assert_eq!(found("fn kept() {}").len(), 1);
    }
}
