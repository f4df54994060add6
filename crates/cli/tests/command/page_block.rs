//! Blocks of the book that show the output of programs, compared with output that a test captured.
//!
//! Tests of several crates share this file, so that a page cannot show outdated output.

use std::fs;
use std::path::Path;

/// Asserts that `printed` contains the block that follows the mark `<!-- printed by TEST -->` of `docs/PAGE`.
///
/// Numbers and line numbers of Rust files match any others, `..` matches any text, and line ends count as spaces.
#[track_caller]
pub fn assert_shown(page: &str, test: &str, printed: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs");
    let text = fs::read_to_string(docs.join(page)).unwrap();
    let mark = format!("<!-- printed by {test} -->");
    let (_, rest) = text.split_once(&mark).unwrap_or_else(|| panic!("{page} lacks {mark}"));
    let block = rest
        .split("```")
        .nth(1)
        .and_then(|block| block.split_once('\n'))
        .expect("a block follows the mark")
        .1;
    let printed = without_numbers(printed);
    let mut left = printed.as_str();
    for piece in without_numbers(block).split("..") {
        let found = left.split_once(piece.trim());
        left = found.unwrap_or_else(|| panic!("{page} shows `{piece}`; printed: {printed}")).1;
    }
}

/// Returns `text` as words with one space between them, and with `#` for each number and each line number of a Rust
/// file.
fn without_numbers(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let is_hexadecimal = word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if word.contains("0x") || word.contains(".rs:") || is_hexadecimal {
            return "#".to_owned();
        }
        let parts = word.replace(|byte: char| byte.is_ascii_digit(), "#").replace("#.#", "##");
        let mut masked = String::new();
        for byte in parts.chars() {
            if byte != '#' || !masked.ends_with('#') {
                masked.push(byte);
            }
        }
        masked
    });
    words.collect::<Vec<_>>().join(" ")
}
