//! Destinations of results and output: checked before the computation, and without a panic if a pipe is closed or a
//! disk is full.
//!
//! The contents of the results are tested in `run.rs`, other bad input in `usage.rs`.

use crate::scene::{Ended, Scene, ended, words};
use std::fs::{File, OpenOptions};
use std::io::pipe;
use std::process::Stdio;

/// A short run; each case adds its output files.
const RUN: &str = "run bc --graph karate --machine threads --places 2";

fn run(scene: &Scene, more: &[&str]) -> Ended {
    scene.run(&[&words(RUN), more].concat())
}

#[test]
fn a_result_that_cannot_be_written_is_refused_before_the_computation() {
    let scene = Scene::new("refused");
    for (flag, other) in [("--json", "--csv"), ("--csv", "--json")] {
        for (path, cause) in [("missing/file", "No such file"), ("", "No such file"), ("/", "Is a directory")]
        {
            let ended = run(&scene, &[other, "kept", flag, path]);
            let expected = format!("error: {flag} is {path:?}; allowed: - or a file that can be written (");
            assert!(ended.refusal().starts_with(&expected), "{ended:?}");
            assert!(ended.refusal().contains(cause), "{ended:?}");
        }
    }
    scene.assert_nothing_left();
}

#[test]
fn a_default_that_cannot_be_written_is_refused_before_the_computation() {
    let scene = Scene::new("default");
    scene.leave("out", "a file where the folder would be");
    let ended = run(&scene, &[]);
    let expected =
        r#"error: --json is not given, and the default is "out/bc-karate.json"; allowed: - or a file"#;
    assert!(ended.refusal().starts_with(expected), "{ended:?}");
}

#[test]
fn one_file_for_both_results_is_refused() {
    let scene = Scene::new("same");
    for (json, csv) in [("same", "same"), ("same", "./same"), ("-", "-"), ("link", "same")] {
        if json == "link" {
            scene.leave("same", "old");
            std::os::unix::fs::symlink("same", scene.path("link")).unwrap();
        }
        let ended = run(&scene, &["--json", json, "--csv", csv]);
        let expected = format!("error: --csv is {csv:?}; allowed: a file other than that of --json");
        assert_eq!(ended.refusal(), expected);
    }
    assert_eq!(scene.result("same"), "old");
    let ended = run(&scene, &["--json", "/dev/null", "--csv", "/dev/null"]);
    assert_eq!(ended.code, Some(0), "a device may take both: {ended:?}");
}

#[test]
fn a_result_that_does_not_fit_is_named_after_the_table_and_the_other_is_written() {
    for (flag, other) in [("--json", "--csv"), ("--csv", "--json")] {
        let scene = Scene::new("full");
        let ended = run(&scene, &[flag, "/dev/full", other, "kept"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.starts_with("error: cannot write /dev/full: No space left"), "{ended:?}");
        for part in ["231.0714", "time ", "wrote  kept"] {
            assert!(ended.stdout.contains(part), "{part:?} is not said: {ended:?}");
        }
        assert!(scene.result("kept").contains("231.07142857142856"), "{ended:?}");
    }
}

#[test]
fn a_file_of_the_run_itself_that_cannot_be_written_loses_no_result() {
    let cases = [("threads", "--trace"), ("processes", "--trace"), ("chip:scc", "--links")];
    for (machine, flag) in cases {
        let scene = Scene::new("aside");
        let line =
            format!("run bc --graph karate --machine {machine} --places 2 --json kept {flag} /dev/full");
        let ended = scene.run(&words(&line));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        for part in ["231.0714", "time ", "wrote  kept", "wrote  out/bc-karate.csv"] {
            assert!(ended.stdout.contains(part), "{part:?} is not said: {ended:?}");
        }
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: cannot write /dev/full: No space left"), "{ended:?}");
        assert!(scene.result("kept").contains("231.07142857142856"), "{ended:?}");
        // Each file that could not be written is named.
        let ended = scene.run(&words(&line.replace("kept", "/dev/full")));
        assert_eq!((ended.code, ended.stderr.matches("error: cannot write /dev/full").count()), (Some(1), 2));
    }
}

#[test]
fn a_run_that_cannot_start_leaves_old_results_and_makes_no_new_ones() {
    let scene = Scene::new("kept");
    scene.leave("old.json", "old");
    let mut shell = scene.program("sh");
    shell.args(["-c", "ulimit -v 60000; exec \"$0\" \"$@\"", crate::PROGRAM]);
    shell.args(words(RUN)).args(["--json", "old.json", "--csv", "new.csv"]);
    let ended = ended(shell);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(scene.result("old.json"), "old");
    assert!(!scene.path("new.csv").exists());
}

#[test]
fn a_file_that_does_not_fit_is_what_it_was() {
    let scene = Scene::new("limit");
    let made = scene.run(&words("run bc --graph karate --machine threads --json r.json --record run"));
    assert_eq!(made.code, Some(0), "{made:?}");
    let cases = [
        "report run --html old",
        "plot r.json --out old",
        "sweep --app bc --places 1,2 --dividers 2 --svg old -- --graph karate",
        "repro lines --json old",
    ];
    for line in cases {
        scene.leave("old", "old");
        let mut shell = scene.program("sh");
        // Files of at most one block, and an error instead of a signal that ends the process.
        shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"", crate::PROGRAM]);
        shell.args(words(line));
        let ended = ended(shell);
        assert_eq!(ended.code, Some(1), "{line}: {ended:?}");
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: cannot write old: File too large"), "{line}: {ended:?}");
        assert_eq!(scene.result("old"), "old", "{line}");
        let left = std::fs::read_dir(scene.path(".")).unwrap().flatten();
        let parts = left.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "part"));
        assert_eq!(parts.count(), 0, "{line}");
    }
}

/// Commands that write to standard output.
const TALKERS: [&str; 6] = [
    RUN,
    "run bc --graph karate --machine threads --json - --csv /dev/null",
    "data list",
    "data fetch karate",
    "run bc --help",
    "--version",
];

fn with_stdout(scene: &Scene, line: &str, stdout: impl Into<Stdio>) -> Ended {
    let mut command = scene.isles(&words(line));
    command.stdout(stdout);
    ended(command)
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly_as_it_ends_a_program() {
    for line in TALKERS {
        let scene = Scene::new("closed");
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let ended = with_stdout(&scene, line, writer);
        assert_eq!(ended.code, Some(141), "{line}: {ended:?}");
        assert!(!ended.stderr.contains("error") && !ended.stderr.contains("panicked"), "{line}: {ended:?}");
        if line == RUN {
            assert!(scene.result("out/bc-karate.json").contains("231.07142857142856"));
        }
    }
}

#[test]
fn a_full_standard_output_is_one_line() {
    let scene = Scene::new("full");
    for line in TALKERS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = with_stdout(&scene, line, full);
        assert_eq!(ended.code, Some(1), "{line}: {ended:?}");
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: cannot write standard output: No space left"), "{line}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{line}: {ended:?}");
    }
}

#[test]
fn notices_that_nobody_reads_change_nothing() {
    let scene = Scene::new("mute");
    let files = ["--json", "/dev/null", "--csv", "/dev/null"];
    let cases =
        [(vec!["run", "bc", "--machine", "gpu"], 2), ([&words(RUN), &files[..]].concat(), 0), (vec![], 2)];
    for (arguments, code) in cases {
        let mut command = scene.isles(&arguments);
        let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
        command.env("ISLES_REPORT", "captures,finish").stderr(full);
        assert_eq!(ended(command).code, Some(code), "{arguments:?}");
    }
}
