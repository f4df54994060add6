//! SPARQL over the data of LUBM: the program of the application, and oxigraph, over the same file of N-Triples.
//!
//! Invariant: all contenders answer the same queries over the same triples, and one with another number of rows has no
//! figures.

use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use crate::output::Output;
use crate::program::available::{built, built_example};
use crate::work_folder::WorkFolder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The data: ten universities with the triples implied by the ontology, about 1.8 million triples.
const DATA: &str = "lubm:10";

/// Number of rows of the fourteen queries over this data, by oxigraph 0.5.13.
const ROWS: f64 = 199_995.0;

/// Time limit of a program.
const LIMIT: Duration = Duration::from_secs(200);

/// Approximate number of times that each place of a run in the mode `task` gets all queries.
const ROUNDS: usize = 20;

fn program() -> PathBuf {
    built("isles-rdf").unwrap_or_else(|missing| panic!("{}: {}", missing.why, missing.remedy))
}

/// Returns the file of the data, creating it if it is missing.
fn data(program: &Path) -> PathBuf {
    let folder = WorkFolder::open().unwrap_or_else(|why| panic!("{why}"));
    let file = folder.folder(concat!("lubm-10-", env!("CARGO_PKG_VERSION"), ".nt"));
    if !file.is_file() {
        let fresh = file.with_extension("new");
        let mut command = Command::new(program);
        command.args(["--data", DATA, "-e", "CONSTRUCT WHERE { ?s ?p ?o }", "--results"]).arg(&fresh);
        command.args(["--places", "1", "--machine", "threads", "--json", "-", "--csv", "/dev/null"]);
        Output::of(&mut command, LIMIT).unwrap_or_else(|why| panic!("{DATA}: {why}"));
        std::fs::rename(&fresh, &file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    file
}

/// Returns the output of the application for these queries over the data.
fn run(words: &[&str], repetitions: usize) -> Output {
    let program = program();
    let mut command = Command::new(&program);
    command.arg("--data").arg(data(&program)).args(words).args(["--repeat", &repetitions.to_string()]);
    command.args(["--json", "-", "--csv", "/dev/null"]);
    Output::of(&mut command, LIMIT).unwrap_or_else(|why| panic!("{words:?}: {why}"))
}

fn figure(output: &Output, name: &str) -> f64 {
    output.figure(name).unwrap_or_else(|why| panic!("{why}"))
}

/// Answers the fourteen queries. Prints `mean_ms`, `load_rate` and `load_ms`.
pub fn lubm(effort: Effort) {
    print_lubm(&run(&["--queries", "lubm"], effort.repetitions));
}

/// Answers the same over a snapshot for one place, which this program creates first.
pub fn snapshot(effort: Effort) {
    let program = program();
    let file = data(&program).with_extension("snap");
    let mut saved = Command::new(&program);
    saved.arg("--data").arg(data(&program)).arg("--save").arg(&file).args(["-e", "ASK {}"]);
    saved.args(["--places", "1", "--machine", "threads", "--json", "-", "--csv", "/dev/null"]);
    Output::of(&mut saved, LIMIT).unwrap_or_else(|why| panic!("--save: {why}"));
    let mut command = Command::new(&program);
    command.arg("--data").arg(&file).args(["--queries", "lubm", "--repeat", &effort.repetitions.to_string()]);
    command.args(["--json", "-", "--csv", "/dev/null"]);
    print_lubm(&Output::of(&mut command, LIMIT).unwrap_or_else(|why| panic!("{}: {why}", file.display())));
}

fn print_lubm(output: &Output) {
    assert!(figure(output, "rows") == ROWS, "{} rows, not {ROWS}", figure(output, "rows"));
    ["mean_ms", "load_rate"].iter().for_each(|name| print_figure(name, figure(output, name)));
    print_figure("load_ms", figure(output, "load_seconds") * 1e3);
}

/// Answers queries with more than 100,000 intermediate rows. Prints `sum_ms`.
pub fn large(effort: Effort) {
    print_figure("sum_ms", figure(&run(&["--queries", "lubm-large"], effort.repetitions), "sum_ms"));
}

/// Answers all queries of both kinds many times, each at one place. Prints `query_seconds`.
pub fn tasks(_: Effort) {
    let output = run(&["--queries", "lubm-large", "--mode", "task"], ROUNDS);
    print_figure("query_seconds", figure(&output, "query_seconds"));
}

/// Runs oxigraph over the same data. Prints `mean_ms`, `load_rate` and `load_ms`.
pub fn oxigraph(effort: Effort) {
    let peer = built_example("isles-rdf", "oxigraph").unwrap_or_else(|missing| panic!("{}", missing.why));
    let mut command = Command::new(peer);
    command.arg(data(&program())).arg(effort.repetitions.to_string());
    let output = Output::of(&mut command, LIMIT).unwrap_or_else(|why| panic!("oxigraph: {why}"));
    let rows: f64 = output.figures.iter().filter(|(name, _)| name.ends_with("_rows")).map(|row| row.1).sum();
    assert!(rows == ROWS, "{rows} rows, not {ROWS}");
    output.version.iter().for_each(|version| println!("version {version}"));
    ["mean_ms", "load_rate", "load_ms"].iter().for_each(|name| print_figure(name, figure(&output, name)));
}
