//! Parts of pages that commands print: compared, or rewritten.

use std::fs;
use std::path::Path;

/// The variable that makes tests write the pages instead of comparing them.
const WRITE: &str = "ISLES_TEST_WRITE_PAGES";

/// Compares the text between `mark` and `<!-- end -->` on a page with `wanted`, or writes it.
pub fn write_or_compare(page: &Path, mark: &str, wanted: &str, tests: &str) {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (page_name, wanted) = (page.display(), wanted.trim());
    let (before, rest) = text.split_once(mark).unwrap_or_else(|| panic!("{page_name} lacks {mark}"));
    let (found, after) = rest.split_once("<!-- end -->").expect("the page has the second mark");
    if found.trim() == wanted {
        return;
    }
    if std::env::var_os(WRITE).is_some() {
        return fs::write(page, format!("{before}{mark}\n\n{wanted}\n\n<!-- end -->{after}")).unwrap();
    }
    let (page_says, now) = first_difference(found, wanted).unwrap_or_default();
    panic!(
        "{page_name} says\n{page_says}\nand the command\n{now}\n\
         {WRITE}=1 cargo test -p isles-cli --test command {tests} writes it; add -- --ignored if that is ignored"
    );
}

/// Returns the first line in which two texts differ.
fn first_difference<'a>(one: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    let lines = |text: &'a str| text.trim().lines().chain([""]);
    lines(one).zip(lines(other)).find(|(one, other)| one != other)
}
