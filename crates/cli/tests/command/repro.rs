//! `isles repro` as a user sees it: the pages contain the command's output, and impossible requests are refused in one
//! line.
//!
//! These tests do not check if a figure is in its band. If a figure leaves its band, its page changes, and the test
//! names the figure.

use crate::pages::write_or_compare;
use crate::scene::{Ended, Scene, words};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The page that lists the experiments.
const INDEX: &str = "reproduction.md";

/// Returns the path of a page of the book.
fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page)
}

fn text(page: &str) -> String {
    fs::read_to_string(path(page)).unwrap_or_else(|error| panic!("docs/{page}: {error}"))
}

/// Returns the page of an experiment.
fn page_of(experiment: &str) -> String {
    format!("reproduction/{experiment}.md")
}

/// Compares the text between the marks of a page, or writes it.
fn check_page(page: &str, mark: &str, wanted: &str) {
    write_or_compare(&path(page), mark, wanted, "repro::pages");
}

fn repro(arguments: &[&str]) -> Ended {
    let scene = Scene::new("repro");
    let ended = scene.run(&[&["repro"], arguments].concat());
    scene.assert_nothing_left();
    ended
}

/// Returns the tables of all experiments that the command runs by default; computed once.
fn generated() -> &'static Ended {
    static GENERATED: OnceLock<Ended> = OnceLock::new();
    GENERATED.get_or_init(|| repro(&["--markdown", "-"]))
}

fn refused(arguments: &[&str]) -> String {
    repro(arguments).refusal().to_owned()
}

#[test]
fn a_full_disk_is_an_error() {
    for flag in ["--csv", "--json", "--markdown"] {
        let ended = repro(&["lines", flag, "/dev/full"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("error: cannot write /dev/full: No space left"), "{ended:?}");
    }
}

#[test]
fn the_pages_hold_what_the_command_prints() {
    let ended = generated();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left_out =
        "Left out (they run Isles itself, bare, betweenness, hf, gups, gups-errors, modularity, at-opt and auv for \
        minutes): isles repro echo rcce bare teams rates power-loops manyman betweenness hf ga pipeline gups \
        gups-errors automaton modularity at-opt auv rdf rtos svm bounds
";
    assert!(ended.stderr.contains(left_out), "{ended:?}");
    let mut sections = ended.stdout.split("\n### ");
    check_page(INDEX, "<!-- isles repro -->", sections.next().unwrap_or_default());
    for section in sections {
        let (name, table) = section.split_once('\n').expect("a section begins with its name");
        check_page(&page_of(name), &format!("<!-- isles repro {name} -->"), table);
    }
}

#[test]
fn the_list_of_pages_has_each_experiment_with_its_verdicts() {
    let (list, index) = (repro(&["--list"]).stdout, text(INDEX));
    for name in list.lines().filter_map(|line| line.split(' ').next()) {
        let row = index.lines().find(|row| row.starts_with(&format!("| [{name}](")));
        let row = row.unwrap_or_else(|| panic!("docs/{INDEX} lacks {name}"));
        if !row.contains(&page_of(name)) {
            continue; // its rows do not stand on a page
        }
        let rows = verdicts(text(&page_of(name)).lines());
        let [inside, outside, alone] =
            ["in", "OUT", "-"].map(|verdict| rows.iter().filter(|(_, of_row)| of_row == verdict).count());
        let counts = format!(" | {inside} | {outside} | {alone} |");
        assert!(row.ends_with(&counts), "docs/{INDEX} says\n{row}\nand its page{counts}");
    }
}

#[test]
fn one_experiment_is_printed_as_a_table_and_written_as_csv_and_json() {
    let scene = Scene::new("repro");
    let (csv, json) = (scene.path("rows.csv"), scene.path("rows.json"));
    let (csv, json) = (csv.display().to_string(), json.display().to_string());
    let ended = scene.run(&["repro", "flush", "--csv", &csv, "--json", &json]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.contains("V8   all 8,192 lines"), "{ended:?}");
    let summary = "0 of 4 published figures are OUT of their bands; of the 4 that must be in them, 0.\n\
                   By basis: 3 calibrated (0 OUT), 1 derived (0 OUT).\n";
    assert!(ended.stdout.ends_with(summary), "{ended:?}");
    let table = scene.result("rows.csv");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0],
        "experiment,deck,figure,over,unit,published,ours,error_percent,band,verdict,basis,source,reading"
    );
    assert_eq!(
        lines[2],
        "flush,V8,\"64 lines\",\"Lines of 32 bytes = 64 [64 lines]\",,26700,26700,0,10,in,derived,\"004:801\",\
         \"“300N+7,500”, N lines\""
    );
    assert_eq!(lines.len(), 5);
    let report: Value = serde_json::from_str(&scene.result("rows.json")).unwrap();
    assert_eq!(report["schema"], "isles.repro.1");
    let row = &report["rows"][3];
    assert_eq!((row["figure"].as_str(), row["ours"].as_f64()), (Some("all 8,192 lines"), Some(582_000.0)));
    assert_eq!((row["verdict"].as_str(), row["required"].as_bool()), (Some("in"), Some(true)));
}

#[test]
fn an_experiment_with_a_library_says_what_its_instructions_cost_and_what_another_choice_gives() {
    let ended = repro(&["bisection"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[1].starts_with("  instructions: nothing beside the lines"), "{ended:?}");
    let of = |name: &str| lines.iter().find(|line| line.contains(name)).expect("the row is there");
    assert!(of("V3   alone ").ends_with("in   calibrated  002:207"), "{ended:?}");
    assert!(of("     alone, iRCCE's instructions ").ends_with("OUT  predicted   002:207"), "{ended:?}");
    let [.., out, bases] = &lines[..] else { panic!("{ended:?}") };
    assert!(out.starts_with("3 of 8 ") && out.ends_with("of the 3 that must be in them, 0."), "{ended:?}");
    assert_eq!(*bases, "By basis: 3 calibrated (1 OUT), 4 derived (1 OUT), 1 predicted (1 OUT).");
    let flush = repro(&["flush"]).stdout;
    assert!(!flush.contains("instructions"), "it has none");
    assert!(!flush.contains("Left out"), "it was asked for alone");
}

#[test]
fn what_goes_to_standard_output_is_alone_there() {
    let ended = repro(&["flush", "--csv", "-"]);
    assert_eq!(ended.stdout.lines().count(), 5, "{ended:?}");
    assert!(ended.stderr.contains("all 8,192 lines"), "{ended:?}");
}

#[test]
fn experiments_of_whole_runs_are_not_in_the_generated_tables() {
    let list = repro(&["--list"]).stdout;
    let by_name = list.lines().filter_map(|line| line.strip_suffix("; only by name"));
    let names: Vec<&str> = by_name.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(
        names,
        [
            "echo",
            "rcce",
            "bare",
            "teams",
            "rates",
            "power-loops",
            "manyman",
            "betweenness",
            "hf",
            "ga",
            "pipeline",
            "gups",
            "gups-errors",
            "automaton",
            "modularity",
            "at-opt",
            "auv",
            "rdf",
            "rtos",
            "svm",
            "bounds"
        ]
    );
    let generated = &generated().stdout;
    assert!(names.iter().all(|name| !generated.contains(&format!("### {name}\n"))));
}

/// Returns the figures of a page with their verdicts; those without a published value have a dash.
fn verdicts<'a>(rows: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut is_published = true;
    let mut of_line = |line: &'a str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.len() < 4 {
            is_published = true; // the end of a table
        }
        match cells[..] {
            [_, head, "Ours", _] if head.starts_with("Without a published value, ") => {
                is_published = false;
                Vec::new()
            }
            [_, figure, _, _, _, _, verdict, _, _, _] => vec![(figure.to_owned(), verdict.to_owned())],
            [_, series, figures, _] if !is_published && !figures.starts_with("---") => {
                figures.split(", ").map(|_| (series.to_owned(), "-".to_owned())).collect()
            }
            _ => Vec::new(),
        }
    };
    rows.flat_map(&mut of_line).collect()
}

#[test]
fn the_page_names_the_shapes_that_whole_programs_have_and_those_that_they_lack() {
    let ended = repro(&["rates", "--markdown", "-"]);
    let now = verdicts(ended.stdout.lines());
    assert_eq!(verdicts(text(&page_of("rates")).lines()), now);
    let out = |(_, verdict): &&(String, String)| verdict == "OUT";
    let names: Vec<&str> = now.iter().filter(out).map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["V21 stencil out of memory, time of 48 cores at 400 MHz / 24 at 800"]);
}

#[test]
fn the_library_of_c_has_the_rows_of_the_ping_pong_of_bare_cores() {
    let ended = repro(&["rcce", "--markdown", "-"]);
    let now = verdicts(ended.stdout.lines());
    let judged = now.iter().filter(|(_, verdict)| verdict == "in" || verdict == "OUT");
    assert_eq!(judged.count(), 26, "{ended:?}");
    for page in ["rcce", "ping-pong"] {
        assert_eq!(verdicts(text(&page_of(page)).lines()), now, "{page}");
    }
}

#[test]
fn a_call_there_and_back_takes_as_long_each_time_and_the_longer_the_more() {
    let rows = |ended: Ended| -> Vec<f64> {
        // The names contain a comma.
        let lines = ended.stdout.lines().skip(1).map(|line| line.split(',').nth(7).unwrap().parse().unwrap());
        lines.collect()
    };
    let (one, other) = (rows(repro(&["echo", "--csv", "-"])), rows(repro(&["echo", "--csv", "-"])));
    assert_eq!(one, other);
    assert_eq!(one.len(), 9 * 10, "nine lengths by ten protocols");
    assert!(
        one.chunks(9).all(|protocol| protocol.is_sorted() && protocol[8] > 100.0 * protocol[0]),
        "{one:?}"
    );
}

#[test]
fn broadcasts_of_other_lengths_and_trees_come_beside_the_published_ones() {
    let plain = repro(&["broadcast", "--csv", "-"]).stdout;
    let ended = repro(&["broadcast", "--lines", "32,4", "--children", "47,2", "--csv", "-"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let asked = ended.stdout.strip_prefix(&plain).unwrap_or_else(|| panic!("{ended:?}"));
    let row = |text: &str, figure: &str| -> f64 {
        let line = text.lines().find(|line| line.contains(&format!("\"{figure}\"")));
        let line = line.unwrap_or_else(|| panic!("{figure} in {text}"));
        // After the figure and the quantities, which are in quotation marks: unit, published, ours.
        let cells = line.split("\",").nth(2).unwrap();
        cells.split(',').nth(2).unwrap().parse().unwrap()
    };
    assert_eq!(asked.lines().count(), 2 * (5 + 2 * 2), "{asked}");
    for form in ["OC-Bcast", "asynchronous"] {
        let published = row(&plain, &format!("{form}, 32 lines"));
        assert_eq!(row(asked, &format!("{form}, k = 47, 32 lines")), published);
        assert!(row(asked, &format!("{form}, k = 2, 4 lines")) < published);
    }
    assert!(row(asked, "binomial, 4 lines") < row(asked, "serial sends, 4 lines"));
}

#[test]
fn broadcasts_that_cannot_be_asked_for_are_refused_before_anything_runs() {
    for (arguments, says) in [
        (
            "broadcast --lines 0",
            "--lines is \"0\"; allowed: whole numbers from 1 to 4096, separated by \
             commas",
        ),
        (
            "broadcast --lines 1,x",
            "--lines is \"1,x\"; allowed: whole numbers from 1 to 4096, separated \
             by commas",
        ),
        (
            "broadcast --lines 4 --children 48",
            "--children is \"48\"; allowed: whole numbers from 1 to 47, separated by commas",
        ),
        ("broadcast --children 2", "--children is \"2\"; allowed: nothing without --lines"),
        ("flush --lines 4", "--lines is \"4\"; allowed: nothing without the experiment broadcast"),
    ] {
        assert_eq!(refused(&words(arguments)), format!("error: {says}"));
    }
}

#[test]
fn an_unknown_experiment_is_named_with_those_that_are_known() {
    let line = refused(&["ping"]);
    assert!(line.starts_with("error: the experiment is \"ping\"; allowed: lines, bandwidth, "), "{line}");
    let list = repro(&["--list"]);
    let names: Vec<&str> = list.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(line.ends_with(&names.join(", ")), "{line}");
}

#[test]
fn several_experiments_run_in_the_order_of_their_names_and_each_once() {
    let run = |names: &[&str]| {
        let ended = repro(&[names, &["--csv", "-"]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    let (flush, bisection, both) =
        (run(&["flush"]), run(&["bisection"]), run(&["flush", "bisection", "flush"]));
    let (_, rows) = bisection.split_once('\n').unwrap();
    assert_eq!(both, format!("{flush}{rows}"));
}

#[test]
fn names_that_are_not_known_are_refused_together_before_anything_runs() {
    let line = refused(&["flush", "ping", "echo", "pong"]);
    assert!(
        line.starts_with("error: the experiments are \"ping\", \"pong\"; allowed: lines, bandwidth, "),
        "{line}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_runs() {
    for flag in ["--csv", "--json", "--markdown"] {
        let line = refused(&["flush", flag, "/no/such/folder/rows"]);
        assert!(line.starts_with(&format!("error: {flag} is \"/no/such/folder/rows\"; allowed: ")), "{line}");
    }
    let line = refused(&["flush", "--csv", "-", "--json", "-"]);
    assert_eq!(line, "error: --json is \"-\"; allowed: a file other than that of --csv");
}

#[test]
fn a_line_says_how_many_figures_are_out_and_a_strict_run_passes_if_none_must_be_in() {
    let last = |arguments: &[&str]| {
        let ended = repro(arguments);
        let line = ended.stdout.lines().rev().nth(1).unwrap_or_default().to_owned();
        (ended.code, line, ended.stderr)
    };
    let all_in = "0 of 4 published figures are OUT of their bands; of the 4 that must be in them, 0.";
    let some_out = "4 of 26 published figures are OUT of their bands; of the 0 that must be in them, 0.";
    for (experiment, said) in [("flush", all_in), ("ping-pong", some_out)] {
        assert_eq!(last(&[experiment]), (Some(0), said.to_owned(), String::new()));
        assert_eq!(last(&[experiment, "--strict"]), (Some(0), said.to_owned(), String::new()));
    }
}
