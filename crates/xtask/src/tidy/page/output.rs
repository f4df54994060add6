//! Output that user pages show: each block names the test that compares it with what a program prints.
//!
//! A block `text` of README and of the book holds commands, or follows a comment that says where it comes from:
//! `<!-- printed by FILE -->` or `<!-- printed by FILE: WHICH -->`, which the test file also has, or the mark of a
//! transcript (`<!-- $ COMMAND -->`, `<!-- refused: COMMAND -->`, `<!-- isles COMMAND -->`). File formats have
//! languages of their own (`csv`, `conf`). Design notes and reproduction pages are not read.

use crate::finding::Finding;
use crate::tree::{File, Tree};

/// First words of commands.
const COMMANDS: &[&str] = &[
    "./run",
    "./test",
    "apt-get",
    "cargo",
    "curl",
    "isles",
    "mpicc",
    "mpirun",
    "pkill",
    "python3",
    "rustup",
    "sbatch",
    "target/release/isles",
    "unzip",
];

/// Beginnings of the marks of blocks that tests of the command write.
const TRANSCRIPTS: &[&str] = &["<!-- $ isles ", "<!-- refused: isles ", "<!-- isles "];

const PRINTED: &str = "<!-- printed by ";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files_ending("md").filter(|page| is_user_page(&page.path));
    pages.flat_map(|page| unchecked(tree, page)).collect()
}

fn is_user_page(path: &str) -> bool {
    let inside = path.strip_prefix("docs/").unwrap_or(path);
    path == "README.md" || path.starts_with("docs/") && (inside.starts_with("chip/") || !inside.contains('/'))
}

/// The blocks of `page` that no test compares.
fn unchecked(tree: &Tree, page: &File) -> Vec<Finding> {
    let (mut findings, mut before, mut fence) = (Vec::new(), "", None);
    let mut lines = page.lines().peekable();
    while let Some((number, line)) = lines.next() {
        match (fence, line.trim_start().strip_prefix("```")) {
            (None, Some("text")) => {
                let first = lines.peek().map_or("", |(_, line)| line);
                let fault = fault_of(tree, &page.path, before, first);
                findings.extend(fault.map(|fault| Finding::new(&page.path, number, fault)));
                fence = Some(());
            }
            (None, Some(_)) => fence = Some(()),
            (Some(()), Some(_)) => fence = None,
            (_, None) => {}
        }
        if !line.trim().is_empty() {
            before = line;
        }
    }
    findings
}

/// The fault of a block that begins with the line `first`, behind the line `before`.
fn fault_of(tree: &Tree, page: &str, before: &str, first: &str) -> Option<String> {
    if let Some(source) = before.strip_prefix(PRINTED).and_then(|rest| rest.strip_suffix(" -->")) {
        let path =
            source.split(": ").next().unwrap_or_default().trim_start_matches("./").split(' ').next()?;
        let Some(test) = tree.file(path) else {
            return Some(format!("there is no `{path}`, which prints this block"));
        };
        let name = page.rsplit('/').next().unwrap_or(page);
        let compares = !path.contains("/tests/") || test.text.contains(name) && test.text.contains(source);
        return (!compares).then(|| format!("`{path}` does not compare this block: call `assert_shown`"));
    }
    let mut words = first.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'));
    let is_command = words.next().is_some_and(|word| COMMANDS.contains(&word));
    let is_known = is_command || TRANSCRIPTS.iter().any(|mark| before.starts_with(mark));
    (!is_known).then(|| {
        "a block of output needs a test that compares it, and the mark `<!-- printed by FILE -->`; a file format has a \
         language of its own"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::found;

    fn faults(page: &str) -> usize {
        let test = "assert_shown(\"a.md\", \"crates/x/tests/t.rs\", \"\")";
        found(check, &[("docs/a.md", page), ("crates/x/tests/t.rs", test)]).len()
    }

    #[test]
    fn commands_formats_and_compared_output_pass() {
        assert_eq!(faults("```text\nISLES_PLACES=2 cargo run\n```\n\n```csv\na,b\n```\n"), 0);
        assert_eq!(faults("<!-- printed by crates/x/tests/t.rs -->\n\n```text\nplace 0: dead\n```\n"), 0);
        assert_eq!(faults("<!-- $ isles sweep -->\n\n```text\n$ isles sweep\n48\n```\n"), 0);
    }

    #[test]
    fn output_that_no_test_compares_is_refused() {
        assert_eq!(faults("Text.\n\n```text\nplace 0: dead\n```\n"), 1);
        assert_eq!(faults("<!-- printed by crates/x/tests/gone.rs -->\n\n```text\nplace 0: dead\n```\n"), 1);
        assert_eq!(
            faults("<!-- printed by crates/x/tests/t.rs: other -->\n\n```text\nplace 0: dead\n```\n"),
            1
        );
    }

    #[test]
    fn design_notes_are_not_read() {
        assert!(found(check, &[("docs/design/a.md", "```text\nplace 0: dead\n```\n")]).is_empty());
    }
}
