//! Whole programs, timed from outside or without places: the first `./run`, two runs at once, the sequential kernel.
//!
//! The first `./run` on a fresh machine includes a whole build. The figure includes the downloads of its packages, but
//! not those of Rust itself; sources, build folder, Cargo's folder and data cache are fresh. Two simultaneous runs of
//! one place each are not pinned, to find out whether they interfere. The kernel of betweenness is that of the
//! application. Invariants: no earlier build or download is used; reading a graph is not timed, as for the peer.

use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure};
use crate::machine::cores;
use crate::output::{Output, SECONDS};
use crate::program::available::{built, built_example, built_with};
use crate::suite::BC_POWER;
use crate::work_folder::WorkFolder;
use isles_bc::Scores;
use isles_graph::{Graph, ReadOptions, Weights, open};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Prints `seconds`.
pub fn cold_run(_effort: Effort) {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    assert!(source.join("run").exists(), "{}: no checkout with a `run`", source.display());
    let folder = WorkFolder::open().expect("there is a cache folder");
    let fresh = folder.fresh_folder("cold").expect("the cache folder can be written");
    copy(source, &fresh);
    let cargo_home = fresh.join("cargo-home");
    std::fs::create_dir(&cargo_home).expect("the cache folder can be written");
    for name in ["config.toml", "config"] {
        if let Some(from) = cargo_folder().map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            std::fs::copy(from, cargo_home.join(name)).expect("the cache folder can be written");
        }
    }
    let mut command = Command::new("./run");
    command.current_dir(&fresh).env_remove("CARGO_TARGET_DIR").env_remove("CARGO_NET_OFFLINE");
    command.env("CARGO_HOME", &cargo_home).env("XDG_CACHE_HOME", fresh.join("cache"));
    let start = Instant::now();
    succeed(&mut command);
    print_figure("seconds", start.elapsed().as_secs_f64());
    std::fs::remove_dir_all(&fresh).expect("the own folder can be removed");
}

/// Returns the folder of Cargo's downloads and the user's settings.
fn cargo_folder() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

/// Copies the contents of the repository, with uncommitted changes, and without build products.
fn copy(source: &Path, fresh: &Path) {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(source);
    let output = list.output().expect("git can be started");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    for name in output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = Path::new(std::str::from_utf8(name).expect("names in the repository are UTF-8"));
        let (from, to) = (source.join(name), fresh.join(name));
        if !from.exists() {
            continue; // listed, but deleted and not yet committed
        }
        std::fs::create_dir_all(to.parent().expect("a file lies in a folder"))
            .expect("the cache folder can be written");
        std::fs::copy(&from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

fn succeed(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

const LIMIT: Duration = Duration::from_secs(60);
const RUNS: usize = 3;

/// Prints `alone_s` and `together_s`, the slower one of the two.
pub fn side_by_side(_effort: Effort) {
    assert!(cores() >= 2, "one core cannot carry two runs side by side");
    let alone = (0..RUNS).map(|_| betweenness());
    print_figure("alone_s", median(alone.collect()));
    let together = (0..RUNS).map(|_| {
        thread::scope(|scope| {
            let other = scope.spawn(betweenness);
            betweenness().max(other.join().expect("the run does not panic"))
        })
    });
    print_figure("together_s", median(together.collect()));
}

/// Returns the seconds of the main job at one place, in its own process.
fn betweenness() -> f64 {
    let task = BC_POWER;
    let mut command =
        Command::new(built(&task.program()).unwrap_or_else(|missing| panic!("{}", missing.why)));
    command.args(task.words()).env("ISLES_MACHINE", "processes").env("ISLES_PLACES", "1");
    let output = Output::of(&mut command, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    output.figure(SECONDS).expect("the run reports its seconds")
}

/// Runs the application's kernel without places, on power. Prints `seconds`.
pub fn sequential_power(_effort: Effort) {
    sequential("power");
}

/// Runs the same on hep-th.
pub fn sequential_hep_th(_effort: Effort) {
    sequential("hep-th");
}

fn sequential(name: &str) {
    let graph = graph(name);
    let start = Instant::now();
    let mut scores = Scores::zero();
    for source in 0..graph.vertices() {
        scores.add_source(&graph, source);
    }
    print_figure("seconds", start.elapsed().as_secs_f64());
    assert_eq!(scores.sources(), graph.vertices(), "each source is added once");
    std::hint::black_box(scores); // so that the work is not left out
}

/// Returns the graph as the peers read it: undirected, with edges of length one.
pub fn graph(name: &str) -> Graph {
    open(name, &ReadOptions { weights: Weights::Ignored, directed: false })
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Time limit of a search in the time-expanded graph.
const PLANNER_LIMIT: Duration = Duration::from_secs(200);

/// Returns the example of the path planner that also searches the time-expanded graph.
fn expanded() -> PathBuf {
    built_example("isles-path", "expanded").unwrap_or_else(|missing| panic!("{}", missing.why))
}

/// Returns the output of the example for one of its searches.
fn searched(mode: &str, effort: Effort) -> Output {
    let mut command = Command::new(expanded());
    command.args([mode, &effort.repetitions.to_string()]);
    Output::of(&mut command, PLANNER_LIMIT).unwrap_or_else(|why| panic!("{mode}: {why}"))
}

fn figure(output: &Output, name: &str) -> f64 {
    output.figure(name).unwrap_or_else(|why| panic!("{why}"))
}

/// Runs the planner over the table. Prints `search_ms`.
pub fn path_planner(effort: Effort) {
    print_figure("search_ms", figure(&searched("planner", effort), "search_ms"));
}

/// Runs petgraph in the expanded graph. Prints `search_ms`.
pub fn path_petgraph(effort: Effort) {
    print_figure("search_ms", figure(&searched("petgraph", effort), "search_ms"));
}

/// Runs networkx in the expanded graph, only once because it is slow. Prints `search_ms`.
pub fn path_networkx(effort: Effort) {
    let expected = figure(&searched("planner", effort), "arrival_s");
    let folder = WorkFolder::open().unwrap_or_else(|why| panic!("{why}"));
    let edges = Command::new(expanded()).args(["edges", "1"]).output().expect("the example was built");
    let file = folder.folder("expanded-edges.txt");
    std::fs::write(&file, edges.stdout).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let script = folder.write_file("expanded.py", include_str!("../../peers/expanded.py"));
    let script = script.unwrap_or_else(|missing| panic!("{}", missing.why));
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", folder.python_modules()).arg(script).arg(file).arg("1");
    let output = Output::of(&mut command, PLANNER_LIMIT).unwrap_or_else(|why| panic!("networkx: {why}"));
    let arrival = figure(&output, "arrival_s");
    assert!(arrival == expected, "networkx arrives at {arrival} s, the planner at {expected} s");
    output.version.iter().for_each(|version| println!("version {version}"));
    print_figure("search_ms", figure(&output, "search_ms"));
}

/// Runs the example of the crate of shared pages.
pub fn svm_faults(_: Effort) {
    run_faults(
        "pages",
        &["read_us", "write_us", "alone_us", "socket_read_us", "busy_read_us", "busy_write_us"],
    );
}

/// Runs the bare fault handler of the same example.
pub fn svm_bare(_: Effort) {
    run_faults("bare", &["bare_us", "busy_bare_us"]);
}

fn run_faults(part: &str, names: &[&str]) {
    let program = built_example("isles-svm", "faults").unwrap_or_else(|missing| panic!("{}", missing.why));
    let output =
        Output::of(Command::new(program).arg(part), PLANNER_LIMIT).unwrap_or_else(|why| panic!("{why}"));
    for name in names {
        print_figure(name, figure(&output, name));
    }
}

/// Prints `start_ms`: the whole life of a guest of the hypervisor.
pub fn guest_start(_: Effort) {
    let program = built_with("isles-guest", "isles-hypervisor", "guests");
    let program = program.unwrap_or_else(|missing| panic!("{}", missing.why));
    let output =
        Output::of(Command::new(program).arg("starts"), PLANNER_LIMIT).unwrap_or_else(|why| panic!("{why}"));
    print_figure("start_ms", figure(&output, "start_ms"));
}
