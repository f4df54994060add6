//! Tables of messages: a design note that says where its messages are declared has a row for each of them.
//!
//! A note declares them by the words "the enum `Name` in `path`". Refused: a variant of that enum that stands in no row
//! of a table of the note, a row whose first cell names no variant beside rows that do, and an enum that is not there.

use crate::finding::Finding;
use crate::lexer::TokenKind;
use crate::syntax::items;
use crate::tree::{File, Tree};

/// Folder of the design notes.
const NOTES: &str = "docs/design/";

/// The words before the name of an enum that a note declares.
const DECLARATION: &str = "the enum `";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let notes = tree.files_ending("md").filter(|file| file.path.starts_with(NOTES));
    notes.flat_map(|note| check_note(tree, note)).collect()
}

fn check_note(tree: &Tree, note: &File) -> Vec<Finding> {
    let tables = tables(note);
    let mut findings = Vec::new();
    for (name, path) in declarations(note) {
        let variants = tree.file(&path).map(|file| variants(file, &name)).unwrap_or_default();
        if variants.is_empty() {
            findings.push(Finding::new(&note.path, 0, format!("there is no enum `{name}` in `{path}`")));
            continue;
        }
        let is_in_a_row = |variant: &String| {
            tables.iter().flatten().any(|row| row.first.contains(variant) || row.others.contains(variant))
        };
        for variant in variants.iter().filter(|variant| !is_in_a_row(variant)) {
            let text = format!("no row of a table names `{variant}` of `{name}` in `{path}`");
            findings.push(Finding::new(&note.path, 0, text));
        }
        let is_of_enum = |row: &TableRow| row.first.iter().any(|word| variants.contains(word));
        for row in tables.iter().filter(|table| table.iter().any(is_of_enum)).flatten() {
            let strangers = row.first.iter().filter(|word| !variants.contains(word));
            let text = |word| format!("`{word}` is no variant of `{name}` in `{path}`");
            findings.extend(strangers.map(|word| Finding::new(&note.path, row.line, text(word))));
        }
    }
    findings
}

/// A row of a table: its line, and the pieces of code in its first cell and in the others.
struct TableRow {
    line: usize,
    first: Vec<String>,
    others: Vec<String>,
}

/// The tables of a page.
fn tables(page: &File) -> Vec<Vec<TableRow>> {
    let mut tables = vec![Vec::new()];
    for (line, text) in page.lines() {
        match text.strip_prefix('|').and_then(|cells| cells.split_once('|')) {
            Some((first, others)) => {
                let row = TableRow { line, first: code(first), others: code(others) };
                tables.last_mut().expect("there is one at the beginning").push(row);
            }
            None => tables.push(Vec::new()),
        }
    }
    tables
}

/// The pieces of code of a text.
fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The enums that a note says its messages are, each with its file.
fn declarations(note: &File) -> Vec<(String, String)> {
    let text = note.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = text.split(DECLARATION).skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("` in `")?;
        Some((name.to_owned(), rest.split_once('`')?.0.to_owned()))
    });
    named.collect()
}

/// The variants of the enum `name` of `file`; none if it has no such enum.
fn variants(file: &File, name: &str) -> Vec<String> {
    let code = &file.source.code;
    let found = items(&file.source).find(|item| item.keyword == "enum" && item.name == name);
    let Some(begin) =
        found.and_then(|item| code.iter().position(|token| token.line == item.line && token.is(name)))
    else {
        return Vec::new();
    };
    let mut variants = Vec::new();
    let mut depth = 0_usize;
    let mut is_next = false; // whether a variant may begin here
    for token in &code[begin..] {
        if token.is("{") || token.is("(") || token.is("[") {
            depth += 1;
            is_next |= depth == 1;
        } else if token.is("}") || token.is(")") || token.is("]") {
            depth = depth.saturating_sub(1);
            if depth == 0 && token.is("}") {
                break;
            }
        } else if depth == 1 && token.is(",") {
            is_next = true;
        } else if depth == 1 && is_next && token.kind == TokenKind::Word {
            variants.push(token.text.clone());
            is_next = false;
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::found;

    const CODE: (&str, &str) = (
        "crates/a/src/message.rs",
        "//! A.\n/// One.\n#[derive(Clone)]\npub(super) enum Head {\n    /// To (all, of) them.\n    #[x(y, z)]\n    \
         Offer(u64, [u8; 2]),\n    Item,\n    Close { why: Vec<(u8, u8)>, when: u8 } ,\n}\nenum Other { Strange }\n",
    );

    /// The findings for a note whose table has these rows.
    fn note(rows: &str) -> Vec<String> {
        let text = format!(
            "All are the\nenum `Head` in `crates/a/src/message.rs`.\n\n| It | Says |\n|---|---|\n{rows}"
        );
        found(check, &[CODE, ("docs/design/a.md", &text)])
    }

    #[test]
    fn a_row_for_each_variant_passes_also_as_an_answer() {
        assert!(note("| `Offer`, `Item` | this |\n").len() == 1);
        assert_eq!(note("| `Offer`, `Item` | this; then `Close` |\n"), [""; 0]);
        assert_eq!(note("| `Offer` | |\n\n| `Item` | `Close` |\n\n| `another` | |\n"), [""; 0]);
    }

    #[test]
    fn a_missing_row_and_one_of_no_variant_are_refused() {
        let missing =
            "docs/design/a.md:0: no row of a table names `Close` of `Head` in `crates/a/src/message.rs`";
        assert_eq!(note("| `Offer` | |\n| `Item` | |\n\nIn the text stands `Close`.\n"), [missing]);
        let stranger = "docs/design/a.md:8: `Count` is no variant of `Head` in `crates/a/src/message.rs`";
        assert_eq!(note("| `Offer` | |\n| `Item` | |\n| `Close` | |\n").len(), 0);
        assert_eq!(note("| `Offer`, `Item` | |\n| `Close` | |\n| `Count` | |\n"), [stranger]);
    }

    #[test]
    fn an_enum_that_is_not_there_is_refused() {
        let text =
            "the enum `Gone` in `crates/a/src/message.rs`, and the enum `Head` in `crates/b/src/b.rs`.";
        assert_eq!(found(check, &[CODE, ("docs/design/a.md", text)]).len(), 2);
        assert!(found(check, &[CODE, ("docs/a.md", text)]).is_empty());
    }
}
