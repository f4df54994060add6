//! Names: nouns that say something, and one word for one thing.
//!
//! Refused: names that could stand for anything ([`EMPTY`], [`EMPTY_ALONE`]), the project's name as a
//! prefix, and the words that `docs/glossary.md` lists in its last column; the message then names the right
//! word. Only names that the source introduces and the paths of Rust files are looked at. The long name of a test is an
//! English sentence, in which any word may stand.

use crate::finding::Finding;
use crate::syntax::{items, words};
use crate::tree::{Tree, crate_of};

/// Words that say nothing wherever they stand in a name.
const EMPTY: &[&str] = &["manager", "helper", "helpers", "util", "utils", "misc", "wrapper", "engine"];

/// Words that say nothing when they are the whole name of a module or type.
const EMPTY_ALONE: &[&str] = &["common", "base", "impl", "data", "info", "core"];

/// Words from which on the name of a function of a test is a sentence.
const SENTENCE_WORDS_MIN: usize = 5;

/// Path of the project's glossary.
const GLOSSARY: &str = "docs/glossary.md";

/// A word that is refused, and the word to use.
struct Refused {
    word: String,
    say: String,
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
            let is_sentence = in_test && words(item.name).len() >= SENTENCE_WORDS_MIN;
            let message = complaint(item.name, of_type, if is_sentence { &[] } else { &refused });
            findings.extend(message.map(|message| Finding::new(&file.path, item.line, message)));
        }
    }
    findings
}

/// The rows of the glossary's table: first cell what to say, last cell what is refused.
fn glossary(tree: &Tree) -> Vec<Refused> {
    let lines = tree.file(GLOSSARY).map_or("", |file| file.text.as_str()).lines();
    let rows = lines.filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let say = cells.first().unwrap_or(&"").to_string();
        let words =
            cells.last().unwrap_or(&"").split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>();
        words.into_iter().map(move |word| Refused { word, say: say.clone() })
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
    let joined = format!("_{}_", words.join("_"));
    let hit = refused.iter().find(|refused| joined.contains(&format!("_{}_", refused.word)))?;
    Some(format!("`{name}`: the glossary says {} for `{}`", hit.say, hit.word))
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
}
