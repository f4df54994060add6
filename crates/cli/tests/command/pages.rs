//! Parts of pages that commands print: compared, or written anew.

use std::fs;
use std::path::Path;

/// The variable with which tests write the pages instead of comparing them.
const WRITE: &str = "ISLES_TEST_WRITE_PAGES";

/// Compares what stands between `mark` and `<!-- end -->` on a page with `wanted`, or writes it.
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

/// The line where two texts part.
fn first_difference<'a>(one: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    let lines = |text: &'a str| text.trim().lines().chain([""]);
    lines(one).zip(lines(other)).find(|(one, other)| one != other)
}
