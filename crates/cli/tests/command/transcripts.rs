//! Transcripts and tables of output in the book match the current output of their commands.
//!
//! A block between `<!-- $ COMMAND -->` and `<!-- end -->` is the output of that command, with lines wrapped at the
//! width of the page; a block between `<!-- refused: COMMAND -->` and `<!-- end -->` is its error. Run by `./test
//! --long transcripts`, in a release build.

use crate::pages::write_or_compare;
use crate::scene::{Ended, Scene};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest line of a page.
const COLUMNS: usize = 120;

const START: &str = "<!-- $ isles ";
const REFUSED: &str = "<!-- refused: isles ";
const PROTOCOLS: &str = "<!-- protocols of bc power, 48 places -->";
const GOVERNORS: &str = "<!-- governors of bc power, 48 places -->";

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = entries
        .flat_map(|path| match path.is_dir() {
            true => pages(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

/// Wraps `line` at [`COLUMNS`], between words.
fn cut(line: &str) -> String {
    match line.get(..COLUMNS - 4).filter(|_| line.len() > COLUMNS) {
        Some(begin) => format!("{} ...", begin.rsplit_once(' ').map_or(begin, |(kept, _)| kept)),
        None => line.to_owned(),
    }
}

/// Runs a command of a page.
fn run(command: &str) -> Ended {
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    Scene::new("transcripts").run(&arguments)
}

#[test]
#[ignore = "some minutes; ./test --long transcripts"]
fn the_pages_hold_what_commands_print() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut checked = 0;
    for page in pages(&docs) {
        let text = fs::read_to_string(&page).unwrap();
        for mark in text.lines().filter(|line| line.starts_with(REFUSED)) {
            let command = mark.trim_start_matches("<!-- refused: ").trim_end_matches(" -->");
            let ended = run(command);
            assert_eq!(ended.code, Some(2), "{command}: {ended:?}");
            let error = ended.stderr.lines().find(|line| line.starts_with("error: ")).expect("an error");
            write_or_compare(&page, mark, &format!("```text\n{}\n```", cut(error)), "transcripts::");
        }
        for mark in text.lines().filter(|line| line.starts_with(START)) {
            let command = mark.trim_start_matches("<!-- $ ").trim_end_matches(" -->");
            let ended = run(command);
            assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
            let printed: Vec<String> = ended.stdout.trim_end().lines().map(cut).collect();
            let wanted = format!("```text\n$ {command}\n{}\n```", printed.join("\n"));
            write_or_compare(&page, mark, &wanted, "transcripts::");
            checked += 1;
        }
    }
    assert!(checked > 0, "no page has a line {START}.. -->");
}

/// Returns the summary of `bc` on the graph `power` with 48 places of the SCC.
fn summary_of_bc(flags: &[&str]) -> Value {
    let scene = Scene::new("bc-power");
    let summary = scene.path("summary.json").display().to_string();
    let run =
        ["run", "bc", "--graph", "power", "--machine", "chip:scc", "--places", "48", "--summary", &summary];
    let ended = scene.run(&[&run[..], flags].concat());
    assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
    serde_json::from_str(&scene.result("summary.json")).unwrap()
}

/// Returns a row of the table of governors: the choice, and the time, energy and powers of the run.
fn governor_row(label: &str, flags: &[&str]) -> String {
    let summary = summary_of_bc(flags);
    let number = |pointer: &str| summary.pointer(pointer).and_then(Value::as_f64).expect(pointer);
    let mut row = String::new();
    write!(
        row,
        "| {label} | {:.3} s | {:.1} J | {:.1} W | {:.1} W |",
        number("/energy/span_ps") * 1e-12,
        number("/energy/models/0/total_j"),
        number("/energy/models/0/mean_w"),
        number("/energy/peak_w"),
    )
    .unwrap();
    row
}

#[test]
#[ignore = "a minute; ./test --long transcripts"]
fn the_table_of_governors_is_what_runs_take() {
    let rows = [
        governor_row("`fixed`", &[]),
        governor_row("`fixed:4`", &["--governor", "fixed:4"]),
        governor_row("`on-demand`", &["--governor", "on-demand"]),
        governor_row("`phase-aware`", &["--governor", "phase-aware"]),
        governor_row("`capped:40W`", &["--governor", "capped:40W"]),
        governor_row("`fixed`, `nap:10us`", &["--rest", "nap:10us"]),
        governor_row("`fixed`, `nap:100us`", &["--rest", "nap:100us"]),
        governor_row("`capped:40W`, `nap:10us`", &["--governor", "capped:40W", "--rest", "nap:10us"]),
        governor_row("`fixed`, `--balance static`", &["--balance", "static"]),
    ];
    let head = "| | Time | Energy | Mean | Peak |\n|---|---|---|---|---|";
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/chip/energy.md");
    write_or_compare(&page, GOVERNORS, &format!("{head}\n{}", rows.join("\n")), "transcripts::");
}

#[test]
#[ignore = "half a minute; ./test --long transcripts"]
fn the_table_of_protocols_is_what_runs_take() {
    const NAMES: [&str; 6] = ["doorbell", "sections", "rcce-x10", "sockets", "ring", "rcce"];
    let row = |label: &str, balance: &str| {
        let seconds = |protocol: &&str| {
            let summary = summary_of_bc(&["--protocol", protocol, "--balance", balance]);
            let seconds = summary.pointer("/energy/span_ps").and_then(Value::as_f64).unwrap() * 1e-12;
            format!(" {seconds:.2} |")
        };
        format!("| {label} |{}", NAMES.iter().map(seconds).collect::<String>())
    };
    let head = format!("| Sources dealt out | `{}` |\n|---|---|---|---|---|---|---|", NAMES.join("` | `"));
    let rows = [row("by a counter", "dynamic"), row("beforehand", "static"), row("by stealing", "glb")];
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/chip/protocols/README.md");
    write_or_compare(&page, PROTOCOLS, &format!("{head}\n{}", rows.join("\n")), "transcripts::");
}
