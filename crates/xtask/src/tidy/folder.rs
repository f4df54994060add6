//! Folders: a file is an idea, so there are neither too many files nor too small ones.
//!
//! Refused below a crate's `src`: a folder of [`FILES_MIN`] files or more whose median file has under
//! [`MEDIAN_LINES_MIN`] lines; a folder with more than [`FLAT_MAX`] files directly in it; and a module `x.rs` beside
//! its folder `x/`, which should be `x/mod.rs`. Test files do not count, but a folder with tests only is a folder; nor
//! has a folder of programs (`src/bin`) a median, each of which calls its library.
//! Each rule has a list of exceptions that may only shrink.

use crate::finding::Finding;
use crate::ratchet::{Ratchet, Unit};
use crate::tree::{File, Tree, crate_of, inside_crate};
use std::collections::BTreeMap;

/// Files from which on a folder has a median that says something.
const FILES_MIN: usize = 3;

/// Lines that the median file of a folder has at least.
const MEDIAN_LINES_MIN: usize = 100;

/// Files that may lie directly in one folder.
const FLAT_MAX: usize = 12;

const SHORTFALL: Unit =
    Unit { name: "lines too few in its median file", advice: "merge files that are one idea", steps: 1 };
const FLAT: Unit = Unit { name: "files", advice: "give those that belong together a folder", steps: 1 };
const BESIDE: Unit = Unit { name: "folder of its name beside it", advice: "move it to `mod.rs`", steps: 1 };

/// A number of each file or folder, by its path; as [`Ratchet::judge`] takes it.
type Numbers = BTreeMap<String, (String, usize, usize)>;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let folders = folders(tree);
    let mut findings = judge(tree, "medians", &SHORTFALL, 0, shortfalls(&folders));
    findings.extend(judge(tree, "flat", &FLAT, FLAT_MAX, counts(&folders)));
    findings.extend(judge(tree, "modules", &BESIDE, 0, modules_beside_folders(tree)));
    findings
}

fn judge(
    tree: &Tree,
    section: &'static str,
    unit: &'static Unit,
    max: usize,
    numbers: Numbers,
) -> Vec<Finding> {
    Ratchet::read_as(tree, section, unit)
        .map_or_else(|finding| vec![finding], |ratchet| ratchet.judge(max, numbers))
}

/// The lines of each file directly in each folder, in ascending order.
fn folders(tree: &Tree) -> BTreeMap<&str, Vec<usize>> {
    let mut folders: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for file in sources(tree) {
        if let Some((folder, _)) = file.path.rsplit_once('/') {
            folders.entry(folder).or_default().push(file.lines().count());
        }
    }
    folders.values_mut().for_each(|lines| lines.sort_unstable());
    folders
}

/// The Rust files below the `src` of each crate, without tests.
fn sources(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files_ending("rs").filter(|file| {
        let is_source = crate_of(&file.path).is_some_and(|name| below_src(&file.path, name));
        is_source && !file.path.ends_with("/tests.rs") && !file.path.contains("/tests/")
    })
}

fn below_src(path: &str, name: &str) -> bool {
    inside_crate(path).is_some_and(|(own, path)| own == name && path.starts_with("src/"))
}

/// Returns, for each folder, the number of lines that its median file lacks.
fn shortfalls(folders: &BTreeMap<&str, Vec<usize>>) -> Numbers {
    let has_median = |folder: &str, lines: &[usize]| lines.len() >= FILES_MIN && !folder.ends_with("src/bin");
    let judged = folders.iter().filter(|(folder, lines)| has_median(folder, lines));
    judged.map(|(folder, lines)| number(folder, MEDIAN_LINES_MIN.saturating_sub(median(lines)))).collect()
}

/// The middle of `sorted`, or the mean of both middles, cut to a whole.
fn median(sorted: &[usize]) -> usize {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { sorted[middle - 1].midpoint(sorted[middle]) }
}

/// Returns the number of files directly in each folder.
fn counts(folders: &BTreeMap<&str, Vec<usize>>) -> Numbers {
    folders.iter().map(|(folder, lines)| number(folder, lines.len())).collect()
}

/// One for each module whose folder lies beside it.
fn modules_beside_folders(tree: &Tree) -> Numbers {
    let beside = sources(tree).filter(|file| {
        file.path.strip_suffix(".rs").is_some_and(|folder| tree.contains(&format!("{folder}/")))
    });
    beside.map(|file| number(&file.path, 1)).collect()
}

fn number(path: &str, number: usize) -> (String, (String, usize, usize)) {
    (path.to_string(), (path.to_string(), 0, number))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{check, median};
    use crate::ratchet;

    const FOLDER: &str = "crates/a/src/b";

    /// Returns the findings about a folder whose files have these lengths in lines.
    fn folder(lines: &[usize], list: &str) -> Vec<String> {
        let files = lines.iter().enumerate();
        let files: Vec<(String, String)> =
            files.map(|(at, lines)| (format!("{FOLDER}/f{at}.rs"), "\n".repeat(*lines))).collect();
        let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
        files.push((ratchet::PATH, list));
        found(check, &files)
    }

    #[test]
    fn a_folder_whose_median_file_is_under_100_lines_is_refused() {
        assert!(folder(&[10, 100, 500], "").is_empty());
        assert_eq!(
            folder(&[10, 99, 500], ""),
            ["crates/a/src/b:0: `crates/a/src/b` has 1 lines too few in its median file; at most 0: \
              merge files that are one idea"]
        );
        assert_eq!((median(&[1, 2, 9]), median(&[1, 2, 9, 12])), (2, 5));
    }

    #[test]
    fn two_files_have_no_median() {
        assert!(folder(&[10, 20], "").is_empty());
    }

    #[test]
    fn more_than_12_files_in_one_folder_are_refused() {
        assert!(folder(&[100; 12], "").is_empty());
        assert_eq!(
            folder(&[100; 13], ""),
            ["crates/a/src/b:0: `crates/a/src/b` has 13 files; at most 12: \
              give those that belong together a folder"]
        );
    }

    #[test]
    fn a_module_beside_its_folder_is_refused_even_if_that_has_only_tests() {
        let refused = "crates/a/src/b.rs:0: `crates/a/src/b.rs` has 1 folder of its name beside it; at most 0: \
                       move it to `mod.rs`";
        for inside in ["crates/a/src/b/c.rs", "crates/a/src/b/tests.rs"] {
            assert_eq!(found(check, &[("crates/a/src/b.rs", ""), (inside, "")]), [refused]);
            assert!(found(check, &[("crates/a/src/b/mod.rs", ""), (inside, "")]).is_empty());
        }
    }

    #[test]
    fn tests_and_what_is_not_below_src_do_not_count() {
        let short = |folder: &str, name: &str| -> Vec<String> {
            (0..13).map(|at| format!("{folder}/{at}{name}")).collect()
        };
        for paths in [
            short("crates/a/tests", ".rs"),
            short("crates/a/src/tests", ".rs"),
            short("crates/a/src", "/tests.rs"),
            short("docs/listings", ".rs"),
            short("crates/a/src", ".md"),
        ] {
            let files: Vec<(&str, &str)> = paths.iter().map(|path| (&**path, "")).collect();
            assert!(found(check, &files).is_empty(), "{paths:?}");
        }
    }

    #[test]
    fn what_is_tolerated_may_only_shrink() {
        let list = "[medians]\n\"crates/a/src/b\" = 40\n";
        assert!(folder(&[60; 3], list).is_empty());
        assert_eq!(folder(&[59; 3], list).len(), 1);
        assert!(folder(&[70; 3], list)[0].ends_with("set it to 30"));
        assert!(folder(&[100; 3], list)[0].ends_with("remove it"));
        let list = "[flat]\n\"crates/a/src/b\" = 14\n";
        assert!(folder(&[100; 14], list).is_empty());
        assert_eq!(folder(&[100; 15], list).len(), 1);
        assert!(folder(&[100; 13], list)[0].ends_with("set it to 13"));
        let list = "[modules]\n\"crates/a/src/b.rs\" = 1\n";
        let beside = [("crates/a/src/b.rs", ""), ("crates/a/src/b/c.rs", ""), (ratchet::PATH, list)];
        assert!(found(check, &beside).is_empty());
        assert!(found(check, &beside[1..])[0].ends_with("is gone: remove it"));
    }
}
