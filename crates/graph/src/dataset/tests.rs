//! Tests of the catalogue, and of fetching with replacements for the tools of Debian.
//!
//! A fetch reads PATH and runs programs, so each case runs this test program again as a child, with its own PATH.

use super::*;
use crate::{Graph, ReadOptions};
use std::process::{Command, Stdio};

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("isles-dataset-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("tools")).unwrap();
        Folder(folder)
    }

    fn tool(&self, name: &str, script: &str) -> &Folder {
        let (text, file) = (self.0.join(name), self.0.join("tools").join(name));
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Another process writes the tool: a child of another test that inherited the open file would prevent its
        // execution.
        let ended = Command::new("install").args(["-m", "755"]).args([&text, &file]).status().unwrap();
        assert!(ended.success());
        self
    }

    /// Links the system's own `tool`, by a path that does not depend on PATH.
    fn real(&self, tool: &str) -> &Folder {
        self.tool(tool, &format!("PATH=/usr/bin:/bin exec {tool} \"$@\""))
    }

    /// Returns the report of a child that fetches `name` with these tools.
    fn fetch(&self, name: &str) -> String {
        self.fetch_aloud(name).0
    }

    /// Returns the report, and the standard error.
    fn fetch_aloud(&self, name: &str) -> (String, String) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "dataset::tests::child", "--ignored", "--nocapture"]);
        child.env("PATH", self.0.join("tools")).env("ISLES_CACHE", self.0.join("cache")).env("WANTED", name);
        let output = child.stdin(Stdio::null()).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let report =
            lines.lines().find_map(|line| line.split_once("REPORT ")).map(|(_, report)| report.to_string());
        let report = report.unwrap_or_else(|| panic!("no report in {lines}"));
        (report, String::from_utf8(output.stderr).unwrap())
    }

    fn cached(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("cache")).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Creates tools that deliver a package with `bytes` as the file of `name`.
    fn delivering(&self, name: &str, bytes: &[u8]) -> &Folder {
        let path = find(name).unwrap().path.trim_start_matches('/');
        let root = self.0.join("root");
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), bytes).unwrap();
        let archive = self.0.join("archive.tar");
        let tar = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg("./usr").status();
        assert!(tar.unwrap().success());
        self.tool("apt-get", "echo archive > package.deb");
        self.tool("dpkg-deb", &format!("PATH=/usr/bin:/bin exec cat {}", archive.display())).real("tar")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
#[ignore = "the child of the tests below"]
fn child() {
    let wanted = std::env::var("WANTED").unwrap();
    let result = match find(&wanted) {
        // `fetch` would use the built-in graph.
        Some(known) => fetch_into(known, &cache().unwrap()),
        None => fetch(&wanted),
    };
    match result {
        Ok(bytes) => println!("\nREPORT {} bytes", bytes.len()),
        Err(error) => println!("\nREPORT {error}"),
    }
}

#[test]
fn a_fetch_sweeps_away_what_killed_ones_left_and_nothing_else() {
    let folder = Folder::new("swept");
    // Process ids are far below this one.
    let stale = format!("{SCRATCH_PREFIX}{}-0", u32::MAX);
    let living = format!("{SCRATCH_PREFIX}{}-0", std::process::id());
    let foreign = format!("{SCRATCH_PREFIX}of-a-person");
    for name in [&stale, &living, &foreign] {
        std::fs::create_dir_all(folder.0.join("cache").join(name).join("usr/share")).unwrap();
    }
    let karate = fetch("karate").unwrap();
    let report = format!("{} bytes", karate.len());
    assert_eq!(folder.delivering("karate", &karate).fetch("karate"), report);
    let graph = format!("karate-{}.gt.gz", &find("karate").unwrap().sha256[..12]);
    let mut expected = [living, foreign, graph];
    expected.sort();
    assert_eq!(folder.cached(), expected);
}

#[test]
fn a_delivered_graph_enters_the_cache_and_is_not_delivered_twice() {
    let karate = fetch("karate").unwrap();
    let folder = Folder::new("delivered");
    let report = format!("{} bytes", karate.len());
    let (first, output) = folder.delivering("karate", &karate).fetch_aloud("karate");
    let cache = folder.0.join("cache");
    let announced = format!("fetching karate: Debian package python3-graph-tool, into {}\n", cache.display());
    assert_eq!((first, output.contains(&announced)), (report.clone(), true), "{output}");
    let expected = format!("karate-{}.gt.gz", &find("karate").unwrap().sha256[..12]);
    assert_eq!(folder.cached(), std::slice::from_ref(&expected));
    folder.tool("apt-get", "exit 1");
    let (second, output) = folder.fetch_aloud("karate");
    assert_eq!((second, output.contains("fetching")), (report, false), "{output}");
    std::fs::write(folder.0.join("cache").join(expected), "damaged").unwrap();
    assert_eq!(folder.fetch("karate"), "cannot download python3-graph-tool: exit status: 1");
}

#[test]
fn a_damaged_file_in_the_cache_is_no_graph() {
    let folder = Folder::new("presence");
    let known = Dataset { path: "/nonexistent".to_owned(), ..find("karate").unwrap().clone() };
    let file = known.cached_in(&folder.0);
    let karate = fetch("karate").unwrap();
    std::fs::write(&file, &karate).unwrap();
    assert_eq!(known.present_in(&folder.0), Some(karate));
    std::fs::write(&file, "x").unwrap();
    assert_eq!(known.present_in(&folder.0), None);
}

#[test]
fn a_package_with_another_file_is_refused_but_its_other_graphs_are_kept() {
    let folder = Folder::new("digest");
    folder.delivering("karate", &fetch("karate").unwrap()).delivering("dolphins", b"sharks");
    let expected =
        "the package python3-graph-tool holds no `dolphins` with the SHA-256 recorded in datasets.toml";
    assert_eq!(folder.fetch("dolphins"), expected);
    assert_eq!(folder.cached().len(), 1, "karate came along, dolphins and the scratch folder did not stay");
}

#[test]
fn each_failing_tool_is_named_with_what_to_do() {
    let folder = Folder::new("failing");
    let missing = "(No such file or directory (os error 2)); the graph is in the Debian package \
                   python3-graph-tool, which needs it";
    assert_eq!(folder.fetch("dolphins"), format!("cannot run apt-get {missing}"));
    folder.tool("apt-get", "echo 'E: Unable to locate package python3-graph-tool' >&2; exit 100");
    let unknown =
        "apt-get does not know the package python3-graph-tool; run `sudo apt-get update` and try again";
    assert_eq!(folder.fetch("dolphins"), unknown);
    folder.tool("apt-get", "echo 'first' >&2; echo 'E: Could not connect' >&2; exit 100");
    assert_eq!(folder.fetch("dolphins"), "cannot download python3-graph-tool: E: Could not connect");
    folder.tool("apt-get", "exit 0");
    let nothing = "cannot download python3-graph-tool: apt-get left no archive: entity not found";
    assert_eq!(folder.fetch("dolphins"), nothing);
    folder.tool("apt-get", "echo archive > package.deb");
    assert_eq!(folder.fetch("dolphins"), format!("cannot run dpkg-deb {missing}"));
    folder.tool("dpkg-deb", "exit 2");
    assert_eq!(folder.fetch("dolphins"), format!("cannot run tar {missing}"));
    folder.real("tar");
    let unpack = folder.fetch("dolphins");
    assert_eq!(unpack, "cannot unpack python3-graph-tool: dpkg-deb ended with exit status: 2");
    assert_eq!(folder.cached(), [""; 0], "nothing is left in the cache");
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let folder = Folder::new("cache");
    std::fs::write(folder.0.join("cache"), "a file").unwrap();
    let report = folder.fetch("dolphins");
    assert!(
        report.starts_with(&format!("cannot write the cache {}: ", folder.0.join("cache").display())),
        "{report}"
    );
    assert!(report.ends_with("; set ISLES_CACHE to another folder"), "{report}");
}

#[test]
fn an_unknown_name_is_answered_with_the_names() {
    let message = fetch("whales").unwrap_err().to_string();
    assert!(
        message.starts_with("unknown data set `whales`; allowed: power, karate, email-Enron, "),
        "{message}"
    );
}

#[test]
fn the_catalogue_is_sound() {
    assert_eq!((list().len(), files().len()), (19, 8));
    let mut names: Vec<_> = list().iter().chain(files()).map(|known| known.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 27, "names are unique");
    assert!(list().iter().all(|known| known.vertices > 0 && known.licence == "public domain"));
    assert!(files().iter().all(|known| known.vertices == 0 && !known.licence.is_empty()));
    for known in list().iter().chain(files()) {
        assert!(known.path.starts_with('/') && !known.path.contains(".."), "{}", known.path);
        assert!(
            known.sha256.len() == 64
                && known.sha256.bytes().all(|digit| b"0123456789abcdef".contains(&digit))
        );
    }
}

#[test]
fn a_file_that_is_no_graph_has_its_own_name_in_a_folder_of_its_package() {
    let folder = Folder::new("file");
    let known = find_file("etopo120").unwrap();
    assert!(find("etopo120").is_none(), "it is no graph");
    assert_eq!(known.cached_in(Path::new("/c")), Path::new("/c/ferret-datasets/etopo120.cdf"));
    let known = Dataset { path: "/nonexistent/depths.cdf".to_owned(), ..known.clone() };
    std::fs::create_dir_all(folder.0.join("ferret-datasets")).unwrap();
    std::fs::write(known.cached_in(&folder.0), "another file").unwrap();
    assert_eq!(known.present_in(&folder.0), None);
}

#[test]
#[ignore = "downloads 47 MB when the cache is empty; for the long run"]
fn every_file_can_be_fetched() {
    for known in files() {
        let bytes = fetch(&known.name).unwrap_or_else(|error| panic!("{error}"));
        assert!(known.verify(&bytes) && known.path_here().is_some(), "{}", known.name);
    }
}

#[test]
fn the_graphs_in_the_program_are_those_of_the_catalogue() {
    for (name, bytes) in BUILT_IN {
        let known = find(name).unwrap();
        assert!(known.verify(bytes), "{name} is another file than recorded");
        assert_eq!(known.presence(), Presence::BuiltIn);
        agrees(known, bytes);
    }
}

#[test]
#[ignore = "downloads 45 MB when the cache is empty; for the long run"]
fn every_graph_can_be_fetched_and_has_the_recorded_size() {
    for known in list() {
        agrees(known, &fetch(&known.name).unwrap_or_else(|error| panic!("{error}")));
    }
}

/// Graphs with a weight that is not a length: one edge of cond-mat-2005 has an infinite one.
const WITHOUT_LENGTHS: [&str; 1] = ["cond-mat-2005"];

fn agrees(known: &Dataset, bytes: &[u8]) {
    use crate::{GraphError, Weights};
    let decode = |weights| Graph::decode(bytes, &ReadOptions { weights, directed: false });
    if WITHOUT_LENGTHS.contains(&&*known.name) {
        let refused = decode(Weights::Lengths).unwrap_err();
        assert!(matches!(refused, GraphError::BadWeight { weight: f64::INFINITY, .. }), "{refused}");
        let graph = decode(Weights::Ignored).unwrap();
        crate::fuzz::check(&graph);
        assert_eq!((graph.vertices(), graph.edges()), (known.vertices, known.edges), "{}", known.name);
        return;
    }
    let graph = decode(Weights::Lengths).unwrap();
    crate::fuzz::check(&graph);
    let found = (graph.vertices(), graph.edges(), graph.is_directed(), graph.is_weighted());
    assert_eq!(found, (known.vertices, known.edges, known.directed, known.weighted), "{}", known.name);
}
