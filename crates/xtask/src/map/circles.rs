//! Import circles inside a crate: files that reach each other by their imports.
//!
//! Cargo refuses a circle between crates; inside a crate the compiler accepts any. The files of a circle can
//! only be understood together, so its size is counted and may only shrink (`[circles]` of the ratchet). An
//! import of a re-exported name leads to the file that has the item. Tests do not count, nor do the paths
//! inside macros that start with `$crate`.

use super::imports::{Import, imports};
use crate::finding::Finding;
use crate::ratchet::{Ratchet, Unit};
use crate::syntax::items;
use crate::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The most files that a circle may have without an entry in the ratchet.
const FILES_MAX: usize = 4;

/// Whole files.
const FILES: Unit =
    Unit { name: "files in its largest import circle", advice: "turn an import round", steps: 1 };

/// The most re-exports that one import is followed through.
const HOPS_MAX: usize = 16;

/// The findings about circles that are too large.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let numbers = largest(tree).into_iter().map(|(name, circle)| {
        let first = circle.first().cloned().unwrap_or_default();
        (name, (first, 0, circle.len()))
    });
    match Ratchet::read_as(tree, "circles", &FILES) {
        Ok(ratchet) => ratchet.judge(FILES_MAX, numbers.collect()),
        Err(finding) => vec![finding],
    }
}

/// The crates that have a circle, and the paths of the files in the largest, the largest crates first.
pub fn largest(tree: &Tree) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = tree
        .crates()
        .into_iter()
        .map(|name| {
            let modules = ModuleTree::of(tree, &format!("{}/src/", tree.folder(&name)));
            (name, modules.largest_circle())
        })
        .filter(|(_, circle)| circle.len() > 1)
        .collect();
    found.sort_by_key(|(name, circle)| (std::cmp::Reverse(circle.len()), name.clone()));
    found
}

/// A line for each file of the largest circle of the crate `name`: the files of the circle that it imports.
pub fn describe(tree: &Tree, name: &str) -> Vec<String> {
    let folder = format!("{}/src/", tree.folder(name));
    let modules = ModuleTree::of(tree, &folder);
    let circle = modules.largest_circle();
    let of_circle = |path: &ModulePath| {
        let file = &modules.modules[path].file.path;
        circle.contains(file).then(|| file.strip_prefix(&folder).unwrap_or(file))
    };
    let lines = modules.modules.keys().filter_map(|path| {
        let to: Vec<&str> = modules.imported(path).into_iter().filter_map(of_circle).collect();
        Some(format!("{} -> {}", of_circle(path)?, to.join(", ")))
    });
    lines.collect()
}

/// A path of modules from the root of the crate.
type ModulePath = Vec<String>;

/// One file of a crate.
struct Module<'a> {
    file: &'a File,
    imports: Vec<Import>,
    items: BTreeSet<&'a str>,
}

/// The files of one crate by their module paths.
struct ModuleTree<'a> {
    modules: BTreeMap<ModulePath, Module<'a>>,
}

impl<'a> ModuleTree<'a> {
    fn of(tree: &'a Tree, folder: &str) -> ModuleTree<'a> {
        let files = tree.files_ending("rs").filter(|file| !file.is_test());
        let modules = files.filter_map(|file| {
            let path = module_path(file.path.strip_prefix(folder)?)?;
            let items = items(&file.source).map(|item| item.name).collect();
            Some((path, Module { file, imports: imports(file), items }))
        });
        ModuleTree { modules: modules.collect() }
    }

    /// The files whose items the file at `path` imports.
    fn imported(&self, path: &ModulePath) -> BTreeSet<&ModulePath> {
        let imports = self.modules[path].imports.iter().filter(|import| !import.is_reexport);
        imports.filter_map(|import| self.find(path, &import.path, 0)).filter(|to| *to != path).collect()
    }

    /// The file that has what `path` means in the file `from`.
    fn find(&self, from: &ModulePath, path: &[String], hops: usize) -> Option<&ModulePath> {
        let (start, rest) = self.start(from, path)?;
        let mut at = start;
        for (index, name) in rest.iter().enumerate() {
            let child = [at.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            let elsewhere = (hops < HOPS_MAX).then(|| self.through(&at, &rest[index..], hops)).flatten();
            return elsewhere.or(self.modules.get_key_value(&at).map(|(path, _)| path));
        }
        self.modules.get_key_value(&at).map(|(path, _)| path)
    }

    /// The module where a path begins, and what is left of the path; `None` for another crate.
    fn start<'p>(&self, from: &ModulePath, path: &'p [String]) -> Option<(ModulePath, &'p [String])> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((ModulePath::new(), rest)),
            "self" => Some((from.clone(), rest)),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let kept = from.len().checked_sub(ups)?;
                Some((from[..kept].to_vec(), &path[ups..]))
            }
            child => {
                let child = [from.as_slice(), &[child.to_owned()]].concat();
                self.modules.contains_key(&child).then_some((child, rest))
            }
        }
    }

    /// The file that the import of `rest` in the module `at` leads to.
    fn through(&self, at: &ModulePath, rest: &[String], hops: usize) -> Option<&ModulePath> {
        let module = self.modules.get(at)?;
        let name = &rest[0];
        if module.items.contains(name.as_str()) {
            return None;
        }
        if let Some(import) = module.imports.iter().find(|import| import.name.as_ref() == Some(name)) {
            let whole = [import.path.as_slice(), &rest[1..]].concat();
            return self.find(at, &whole, hops + 1);
        }
        let globs = module.imports.iter().filter(|import| import.is_glob);
        globs
            .filter_map(|glob| self.find(at, &glob.path, hops + 1))
            .find(|to| *to != at && self.modules[*to].items.contains(name.as_str()))
    }

    /// The paths of the files in the largest circle.
    fn largest_circle(&self) -> Vec<String> {
        let paths: Vec<&ModulePath> = self.modules.keys().collect();
        let index: BTreeMap<&ModulePath, usize> =
            paths.iter().enumerate().map(|(at, path)| (*path, at)).collect();
        let edges: Vec<Vec<usize>> =
            paths.iter().map(|path| self.imported(path).into_iter().map(|to| index[to]).collect()).collect();
        let circles = components(&edges);
        let largest = circles.into_iter().max_by_key(Vec::len).unwrap_or_default();
        let mut files: Vec<String> =
            largest.into_iter().map(|at| self.modules[paths[at]].file.path.clone()).collect();
        files.sort();
        files
    }
}

/// The module path of a file below `src/`; `None` for programs of their own.
fn module_path(file: &str) -> Option<ModulePath> {
    if file.starts_with("bin/") {
        return None;
    }
    let path = file.strip_suffix(".rs")?;
    let path = match path {
        "lib" | "main" | "mod" => "",
        path => path.strip_suffix("/mod").unwrap_or(path),
    };
    Some(path.split('/').filter(|name| !name.is_empty()).map(String::from).collect())
}

/// The strongly connected components of a graph: Kosaraju's two walks.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, list) in edges.iter().enumerate() {
        list.iter().for_each(|to| back[*to].push(from));
    }
    let mut seen = vec![false; edges.len()];
    let mut finished = Vec::new();
    (0..edges.len()).for_each(|start| walk(start, edges, &mut seen, &mut finished));
    let mut taken = vec![false; edges.len()];
    let components = finished.into_iter().rev().map(|start| {
        let mut component = Vec::new();
        walk(start, &back, &mut taken, &mut component);
        component
    });
    components.filter(|component| !component.is_empty()).collect()
}

/// Appends what is reached from `start` and was not seen, each after all that it reaches.
fn walk(start: usize, edges: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    edges[start].iter().for_each(|next| walk(*next, edges, seen, finished));
    finished.push(start);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        largest(&tree).into_iter().next().map(|(_, circle)| circle).unwrap_or_default()
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let files = [
            ("crates/a/src/lib.rs", "mod b; mod c; mod d;"),
            ("crates/a/src/b.rs", "use crate::c::C; pub struct B;"),
            ("crates/a/src/c.rs", "use super::b::{B, self}; pub struct C;"),
            ("crates/a/src/d.rs", "use super::b::B;"),
        ];
        assert_eq!(circle(&files), ["crates/a/src/b.rs", "crates/a/src/c.rs"]);
    }

    #[test]
    fn a_reexport_is_no_import_and_leads_to_the_item() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;"),
            ("crates/a/src/b/mod.rs", "mod c; mod d; pub use c::C; pub(crate) use d::*;"),
            ("crates/a/src/b/c.rs", "use super::D; pub struct C;"),
            ("crates/a/src/b/d.rs", "pub struct D;"),
        ];
        assert_eq!(circle(&files), [""; 0]);
    }

    #[test]
    fn a_circle_through_a_reexport_and_a_path_in_code_is_seen() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;"),
            ("crates/a/src/b/mod.rs", "mod c; mod d; pub use c::C; pub use d::*;"),
            ("crates/a/src/b/c.rs", "use super::D; pub struct C;"),
            ("crates/a/src/b/d.rs", "pub struct D; fn f() { crate::b::C::new() }"),
        ];
        assert_eq!(circle(&files), ["crates/a/src/b/c.rs", "crates/a/src/b/d.rs"]);
    }

    #[test]
    fn imports_of_tests_do_not_count() {
        let files = [
            ("crates/a/src/lib.rs", "mod b; mod c;"),
            ("crates/a/src/b.rs", "use crate::c::C; pub struct B;"),
            ("crates/a/src/c.rs", "pub struct C;\n#[cfg(test)]\nmod tests {\nuse crate::b::B;\n}"),
        ];
        assert_eq!(circle(&files), [""; 0]);
    }

    #[test]
    fn a_circle_over_the_limit_needs_an_entry_and_the_entry_follows_it() {
        let ring = |count: usize| -> Vec<(String, String)> {
            let file = |at: usize| {
                (format!("crates/a/src/m{at}.rs"), format!("use crate::m{}::S;", (at + 1) % count))
            };
            (0..count).map(file).collect()
        };
        let judge = |count: usize, list: &str| {
            let mut files = ring(count);
            files.push(("crates/xtask/ratchet.toml".into(), list.into()));
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
            check(&Tree::of(&files)).into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(judge(FILES_MAX, ""), [""; 0]);
        assert!(judge(FILES_MAX + 1, "")[0].contains("5 files in its largest import circle; at most 4"));
        assert_eq!(judge(FILES_MAX + 1, "[circles]\na = 5"), [""; 0]);
        assert!(judge(FILES_MAX + 1, "[circles]\na = 6")[0].contains("set it to 5"));
    }
}
