//! Leftovers: markers of unfinished work, sleeping tests, printing macros, paths of one machine.
//!
//! Refused: the markers of [`WORDS`] in comments and documents, the macros of [`MACROS`] in code, a call of
//! `sleep` in a test but `isles::sleep` (drive progress instead), the macros of [`PRINTS`] where places run, but in
//! tests, and the folders of [`machine_paths`] in any text.

use crate::finding::Finding;
use crate::syntax;
use crate::tree::{File, Tree, inside_crate};

/// Markers of unfinished work, as whole words.
const WORDS: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// Macros that stand for unfinished work.
const MACROS: &[&str] = &["dbg", "todo", "unimplemented"];

/// Macros that panic where the stream is a pipe that nobody reads any more.
const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln"];

/// The crates that run in the process of a place.
const IN_PLACES: &[&str] =
    &["isles", "protocol", "runtime", "transport", "transport-chip", "transport-mpi", "transport-shm"];

/// The files that print for the program, as the macros of the standard library do.
const PRINTS_OF_PROGRAMS: &[&str] = &["crates/isles/src/print.rs", "crates/runtime/src/local/output.rs"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .flat_map(|file| [markers(file), macros(file), sleeps(file), prints(file), paths(file)].concat())
        .collect()
}

fn markers(file: &File) -> Vec<Finding> {
    let comments = file.source.comments.iter().map(|comment| (comment.line, comment.text.as_str()));
    let texts: Vec<(usize, &str)> =
        if file.path.ends_with(".rs") { comments.collect() } else { file.lines().collect() };
    let hits = texts.into_iter().flat_map(|(line, text)| {
        let words = text.split(|next: char| !next.is_alphanumeric() && next != '_');
        words.filter(|word| WORDS.contains(word)).map(move |word| (line, word))
    });
    hits.map(|(line, word)| Finding::new(&file.path, line, format!("`{word}`: do it now, or open an issue")))
        .collect()
}

fn macros(file: &File) -> Vec<Finding> {
    let calls = file.source.code.windows(2).filter(|pair| pair[1].is("!"));
    let left = calls.filter(|pair| MACROS.iter().any(|name| pair[0].is(name)));
    left.map(|pair| Finding::new(&file.path, pair[0].line, format!("`{}!` was left behind", pair[0].text)))
        .collect()
}

fn prints(file: &File) -> Vec<Finding> {
    let is_product = inside_crate(&file.path)
        .is_some_and(|(name, inside)| IN_PLACES.contains(&name) && inside.starts_with("src/"));
    if !is_product || PRINTS_OF_PROGRAMS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let calls = file.source.code.windows(2).filter(|pair| pair[1].is("!"));
    let calls = calls.filter(|pair| PRINTS.iter().any(|name| pair[0].is(name)));
    let calls = calls.filter(|pair| !file.is_test_line(pair[0].line));
    let message = |name| format!("`{name}!` panics where nobody reads, which ends a place: use `notice`");
    calls.map(|pair| Finding::new(&file.path, pair[0].line, message(&pair[0].text))).collect()
}

fn sleeps(file: &File) -> Vec<Finding> {
    let code = &file.source.code;
    // A timer of the product itself, `isles::sleep`, is what a test of it is about, and its time may be invented.
    let is_own = |at: usize| at >= 3 && code[at - 3].is("isles");
    let calls = code.windows(2).enumerate().filter(|(_, pair)| pair[0].is("sleep") && pair[1].is("("));
    let calls = calls.filter(|(at, _)| !is_own(*at)).map(|(_, pair)| pair);
    let declared = syntax::items(&file.source).filter(|item| item.name == "sleep").map(|item| item.line);
    let declared: Vec<usize> = declared.collect();
    let in_tests = calls.filter(|pair| file.is_test_line(pair[0].line) && !declared.contains(&pair[0].line));
    in_tests
        .map(|pair| {
            Finding::new(
                &file.path,
                pair[0].line,
                "a test does not sleep: drive progress, or wait for the event",
            )
        })
        .collect()
}

fn paths(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if let Some(path) = machine_paths().into_iter().find(|path| line.contains(path)) {
            let message = format!("`{path}` is a path of one machine: use one relative to the repository");
            findings.push(Finding::new(&file.path, number, message));
        }
    }
    findings
}

/// Folders that exist on one machine only; written in halves so that this file does not name them.
fn machine_paths() -> [&'static str; 5] {
    [
        concat!("/wo", "rk/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("/tmp/", "h/"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{check, machine_paths};

    #[test]
    fn finished_text_passes() {
        let text = "// Done, mktemp XXXXXX.\nfn a() { b(\"TODO\"); sleep(c); }\nfn todo() {}";
        assert!(found(check, &[("crates/a/src/b.rs", text), ("a.md", "What to do.\n")]).is_empty());
    }

    #[test]
    fn markers_in_comments_and_documents_are_refused() {
        for word in super::WORDS {
            let files = [
                ("a.rs", format!("// {word}: later")),
                ("b.md", format!("({word})")),
                ("run", format!("# {word}")),
            ];
            let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
            assert_eq!(found(check, &files).len(), 3, "{word}");
        }
    }

    #[test]
    fn macros_of_unfinished_work_are_refused() {
        assert_eq!(
            found(check, &[("a.rs", "fn a() { todo!() }\nfn b() { dbg!(1); unimplemented!() }")]).len(),
            3
        );
    }

    #[test]
    fn a_sleeping_test_is_refused() {
        let sleep = "fn a() { std::thread::sleep(b); }";
        let module = format!("#[cfg(test)]\nmod tests {{\n{sleep}\n}}");
        let files = [
            ("crates/a/tests/b.rs", sleep),
            ("crates/a/src/b/tests.rs", sleep),
            ("crates/a/src/b.rs", &module),
        ];
        assert_eq!(found(check, &files).len(), 3);
        assert!(found(check, &[("crates/a/src/b.rs", sleep)]).is_empty());
        let own = "async fn a() { isles::sleep(b).await; }";
        assert!(found(check, &[("crates/a/tests/b.rs", own)]).is_empty());
    }

    #[test]
    fn macros_that_panic_where_nobody_reads_are_refused_where_places_run() {
        let text = "fn a() { println!(b); eprint!(c); std::eprintln!(d) }";
        assert_eq!(found(check, &[("crates/runtime/src/a.rs", text)]).len(), 3);
        let module = format!("#[cfg(test)]\nmod tests {{\n{text}\n}}");
        let allowed = [
            ("crates/runtime/src/b.rs", "fn println() { notice(c) } // eprintln!(d)"),
            ("crates/runtime/src/c.rs", &module),
            ("crates/runtime/src/local/output.rs", text),
            ("crates/runtime/tests/d.rs", text),
            ("crates/cli/src/e.rs", text),
        ];
        assert!(found(check, &allowed).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_refused_everywhere() {
        for path in machine_paths() {
            let text = format!("const A: &str = \"{path}x\";");
            assert_eq!(found(check, &[("a.rs", &text), ("b.md", &text), ("c.toml", &text)]).len(), 3);
        }
    }
}
