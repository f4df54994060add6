//! The files of the repository, read once, or given by a test.
//!
//! It exists so that no check accesses the disk. It does not use git: all files in the folder count, except in built or
//! downloaded folders ([`SKIPPED`]). Paths use `/` and are relative to the root.

use crate::lexer::{Source, lex};
use crate::syntax::{self, Lines};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Built or downloaded folders.
const SKIPPED: &[&str] = &[".git", "target", "out", "corpus", "artifacts", "node_modules"];

/// Extensions of the files whose text is read; of other files only the path counts.
const READ: &[&str] = &["rs", "md", "toml", "sh", "c", "go", "py", "yml"];

/// One file.
#[derive(Debug)]
pub struct File {
    /// Path relative to the root.
    pub path: String,
    /// Its text; empty where the file is not of a kind that is read.
    pub text: String,
    /// Its tokens and comments, where it is Rust.
    pub source: Source,
    /// The lines of its test modules, where it is Rust.
    tests: Vec<Lines>,
}

impl File {
    fn new(path: &str, text: &str) -> File {
        let source = if path.ends_with(".rs") { lex(text) } else { Source::default() };
        let tests = syntax::test_modules(&source);
        File { path: path.to_string(), text: text.to_string(), source, tests }
    }

    /// The lines of the file, each with its number from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The lines of its test modules.
    pub fn tests(&self) -> &[Lines] {
        &self.tests
    }

    /// Returns `true` if the whole file is a test.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs") || self.path.contains("conformance")
    }

    /// Returns `true` if `line` belongs to a test.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.is_test() || self.tests.iter().any(|lines| lines.contains(&line))
    }
}

/// All files, by path.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, File>,
}

impl Tree {
    /// Reads the tree below `root`.
    ///
    /// # Errors
    /// A folder or file that cannot be read; the error names it.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// The tree that consists of these paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| (path.to_string(), File::new(path, text))).collect() }
    }

    /// All files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// The files whose names end in `.ending`.
    pub fn files_ending(&self, ending: &str) -> impl Iterator<Item = &File> {
        let ending = format!(".{ending}");
        self.files.values().filter(move |file| file.path.ends_with(&ending))
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// Returns `true` if `path` is a file or a folder with files.
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder))
    }

    /// The names of the folders directly in `apps/` and `crates/`, in order.
    pub fn crates(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.files.keys().filter_map(|path| crate_of(path)).map(String::from).collect();
        names.dedup();
        names
    }

    /// The folder of the crate `name`.
    pub fn folder(&self, name: &str) -> String {
        let of_app = format!("{APPS}{name}");
        if self.contains(&of_app) { of_app } else { format!("{CRATES}{name}") }
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.read_folder(&entry.path(), &format!("{path}/"))?;
                }
                continue;
            }
            let ending = name.rsplit_once('.').map(|(_, ending)| ending);
            let script = ending.is_none() && !name.starts_with("LICENSE");
            let text = match ending {
                Some(ending) if READ.contains(&ending) => std::fs::read_to_string(entry.path()),
                _ if script => std::fs::read_to_string(entry.path()).or(Ok(String::new())),
                _ => Ok(String::new()),
            };
            let text = text.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
            self.files.insert(path.clone(), File::new(&path, &text));
        }
        Ok(())
    }
}

/// Folder of the applications' crates; below, that of all others.
pub const APPS: &str = "apps/";
const CRATES: &str = "crates/";

/// The crate that `path` lies in, and its path there.
pub fn inside_crate(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(APPS).or(path.strip_prefix(CRATES))?.split_once('/')
}

/// The crate that `path` lies in.
pub fn crate_of(path: &str) -> Option<&str> {
    inside_crate(path).map(|(name, _)| name)
}

/// The crate that `path` lies in, or its folder, or for a file at the root the file itself.
pub fn owner_of(path: &str) -> &str {
    let folder = || path.split('/').next().unwrap_or(path);
    crate_of(path).unwrap_or_else(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_as_contained_when_it_holds_a_file() {
        let tree = Tree::of(&[("docs/book.md", ""), ("docs-old.md", "")]);
        assert!(tree.contains("docs") && tree.contains("docs/") && tree.contains("docs/book.md"));
        assert!(!tree.contains("doc") && !tree.contains("docs/boo"));
    }

    #[test]
    fn the_crates_are_the_folders_in_crates() {
        let tree =
            Tree::of(&[("crates/b/x", ""), ("crates/a/y", ""), ("crates/a/z", ""), ("crates/README.md", "")]);
        assert_eq!(tree.crates(), ["a", "b"]);
    }

    #[test]
    fn reading_the_disk_skips_built_folders_and_keeps_the_rest() {
        let root = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        for (path, text) in [("target/a.rs", "x"), ("src/b.rs", "fn b() {}"), ("graph.gt", "\0")] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::read(&root).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let paths: Vec<&str> = tree.files().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["graph.gt", "src/b.rs"]);
        assert_eq!(tree.file("src/b.rs").unwrap().source.code.len(), 6);
    }
}
