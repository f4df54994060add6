//! Features of packages: each package of ours must have one set of them, and be built of one, in all programs.
//!
//! Cargo compiles a package once for each set of features, its own and those of all that it is built of. A program that
//! needs one more feature of a shared package would build that package, and its dependents, a second time. `cargo tree`
//! lists the features of each program. Invariant: features that only tests need do not count.

use crate::finding::Finding;
use crate::tree::{Tree, inside_crate};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Error};
use std::process::Command;

/// The crate that is a program of this house, and not of the product.
const HOUSE: &str = "xtask";

/// Programs whose packages may have other features: they are rarely used, so a second build is accepted.
const APART: &[&str] = &["jacobi", "hashtable", "prk"]; // `svm`, which no other program needs

/// The packages of a program: of each the features, and the packages that it uses itself.
type Packages<'a> = BTreeMap<&'a str, (&'a str, BTreeSet<&'a str>)>;

/// Packages of which a package is built, itself included, with the features of each.
type Build<'a> = BTreeSet<(&'a str, &'a str)>;

/// The ways in which a package is built, and the programs of each.
type Ways<'a> = BTreeMap<Build<'a>, Vec<&'a str>>;

/// The findings about packages of ours that programs of `tree` share, and would compile several times.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let programs = programs(tree);
    let trees: io::Result<Vec<String>> =
        host().and_then(|host| programs.iter().map(|program| dependencies(&host, program)).collect());
    match trees {
        Ok(trees) => differences(&programs, &trees),
        Err(error) => {
            vec![Finding::new("Cargo.toml", 0, format!("Cargo cannot be asked for features: {error}"))]
        }
    }
}

/// The crates that are programs.
fn programs(tree: &Tree) -> Vec<String> {
    let roots = tree.files().filter_map(|file| {
        let (name, inside) = inside_crate(&file.path)?;
        let is_root = matches!(inside, "src/main.rs" | "src/bin/main.rs");
        (is_root && name != HOUSE && !APART.contains(&name)).then(|| name.to_owned())
    });
    roots.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The target of the compiler here.
fn host() -> io::Result<String> {
    let version = stdout_of(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Error::other("rustc -vV names no host"))
}

/// The packages of a program, a line each: how deep it stands below the program, its name, its features.
fn dependencies(host: &str, program: &str) -> io::Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--locked", "--target", host, "--edges", "no-dev", "--prefix", "depth"]);
    cargo.args(["--format", "{p} [{f}]", "--package", &format!("isles-{program}")]);
    stdout_of(&mut cargo)
}

/// Returns the standard output of a command.
fn stdout_of(command: &mut Command) -> io::Result<String> {
    let ended = command.output()?;
    if !ended.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&ended.stderr).trim().to_owned()));
    }
    String::from_utf8(ended.stdout).map_err(Error::other)
}

/// The findings about `programs`, of which `trees` are the packages in the same order.
fn differences(programs: &[String], trees: &[String]) -> Vec<Finding> {
    let all: Vec<Packages<'_>> = trees.iter().map(|text| packages(text)).collect();
    let mut builds: BTreeMap<&str, Ways<'_>> = BTreeMap::new();
    for (program, packages) in programs.iter().zip(&all) {
        for package in packages.keys().filter(|package| is_ours(package)) {
            let build = build_of(packages, package);
            builds.entry(package).or_default().entry(build).or_default().push(program);
        }
    }
    let several = builds.into_iter().filter(|(_, builds)| builds.len() > 1);
    several.map(|(package, builds)| finding(package, &builds)).collect()
}

fn is_ours(package: &str) -> bool {
    package.starts_with("isles-") || package.starts_with("isles ")
}

/// Names one of the packages whose features differ, for each of the ways in which `package` is built.
fn finding(package: &str, builds: &Ways<'_>) -> Finding {
    let ways = builds.iter().map(|(build, programs)| {
        let is_elsewhere = |part: &&(&str, &str)| builds.keys().all(|other| other.contains(*part));
        let own = build.iter().find(|part| !is_elsewhere(part));
        let (part, features) = own.copied().unwrap_or((package, "less"));
        format!("with {part} [{features}] in {}", programs.join(", "))
    });
    let ways = ways.collect::<Vec<_>>().join("; ");
    Finding::new("Cargo.toml", 0, format!("`{package}` is compiled {} times: {ways}", builds.len()))
}

/// Follows what `package` uses.
fn build_of<'a>(packages: &Packages<'a>, package: &'a str) -> Build<'a> {
    let (mut found, mut next) = (BTreeSet::new(), vec![package]);
    while let Some(package) = next.pop() {
        if let Some((features, uses)) = packages.get(package)
            && found.insert((package, *features))
        {
            next.extend(uses);
        }
    }
    found
}

/// Parses the output of `cargo tree`. A repeated package is listed without its dependencies.
fn packages(text: &str) -> Packages<'_> {
    let mut found = Packages::new();
    let mut above: Vec<&str> = Vec::new();
    for (depth, package, features) in text.lines().filter_map(parts) {
        above.truncate(depth);
        if let Some((_, uses)) = above.last().and_then(|user| found.get_mut(user)) {
            uses.insert(package);
        }
        found.entry(package).or_insert_with(|| (features, BTreeSet::new()));
        above.push(package);
    }
    found
}

/// Depth, package with its version, and features of a line: `2name v1.0.0 (path) [a,b] (*)`.
fn parts(line: &str) -> Option<(usize, &str, &str)> {
    let (depth, rest) = line.split_at(line.find(|character: char| !character.is_ascii_digit())?);
    let end = rest.match_indices(' ').nth(1).map_or(rest.len(), |(at, _)| at);
    let (_, features) = rest.split_once('[')?;
    Some((depth.parse().ok()?, &rest[..end], features.split_once(']')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(trees: [&str; 2]) -> Vec<String> {
        let programs = ["cli", "bc"].map(str::to_owned);
        differences(&programs, &trees.map(str::to_owned)).iter().map(Finding::to_string).collect()
    }

    const CLI: &str = "0isles-cli v0.1.0 (/x/crates/cli) []\n1isles v0.1.0 (/x/crates/isles) [chip]\n\
        2serde v1.0.1 [std]\n3derive v1.0.0 (proc-macro) []\n1other v2.0.0 []\n";

    #[test]
    fn a_shared_crate_is_found_if_what_it_is_built_of_has_other_features() {
        let alike = "0isles-bc v0.1.0 (/x/apps/bc) []\n1serde v1.0.1 [std]\n2derive v1.0.0 (proc-macro) []\n\
            1isles v0.1.0 (/x/crates/isles) [chip]\n2serde v1.0.1 [std] (*)\n";
        assert_eq!(found([CLI, alike]), Vec::<String>::new());
        let deeper = alike.replace("derive v1.0.0 (proc-macro) []", "derive v1.0.0 (proc-macro) [full]");
        assert_eq!(
            found([CLI, &deeper]),
            ["Cargo.toml:0: `isles v0.1.0` is compiled 2 times: with derive v1.0.0 [] in cli; \
                 with derive v1.0.0 [full] in bc"]
        );
        let own = alike.replace("isles) [chip]", "isles) []");
        assert!(found([CLI, &own])[0].contains("with isles v0.1.0 [] in bc"), "{:?}", found([CLI, &own]));
    }

    #[test]
    fn a_package_of_others_that_no_shared_crate_is_built_of_does_not_count() {
        let other = "0isles-bc v0.1.0 (/x/apps/bc) []\n1other v2.0.0 [more]\n";
        assert_eq!(found([CLI, other]), Vec::<String>::new());
    }

    #[test]
    fn programs_are_crates_with_a_main() {
        let files = [
            "apps/bc/src/bin/main.rs",
            "crates/cli/src/main.rs",
            "crates/xtask/src/main.rs",
            "crates/isles/src/lib.rs",
        ];
        let tree = Tree::of(&files.map(|path| (path, "")));
        assert_eq!(programs(&tree), ["bc", "cli"]);
    }
}
