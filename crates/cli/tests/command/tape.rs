//! Work that is measured on the host, as a user sees it: a tape repeats its own run and no other.

use crate::scene::{Ended, Scene, ended, words};
use serde_json::Value;

const RUN: &str = "run bc --graph karate --json /dev/null --csv /dev/null --machine chip:scc --places 4";
const RECORD: &str = "--work host:20 --tape t.tape";

fn run(scene: &Scene, more: &str) -> Ended {
    scene.run(&words(&format!("{RUN} {more}")))
}

/// Returns a folder with the tape of `RUN`, and the output of the run that made it.
fn recorded() -> (Scene, Value) {
    let scene = Scene::new("tape");
    let ended = run(&scene, &format!("{RECORD} --summary s.json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("with doorbell at 533/800/800, work host:20, "), "{ended:?}");
    let summary = serde_json::from_str(&scene.result("s.json")).unwrap();
    (scene, summary)
}

/// Returns the line of a refusal of a run with the tape `t.tape`.
fn refusal(scene: &Scene, line: &str) -> String {
    let ended = scene.run(&words(line));
    ended.refusal().to_owned()
}

#[test]
fn a_tape_repeats_the_run_of_which_it_is_to_the_last_event() {
    let (scene, first) = recorded();
    let ledger = |summary: &Value, name: &str| summary["ledger_ps"][name].as_u64().unwrap();
    assert!(ledger(&first, "measured") > 0 && ledger(&first, "working") == 0, "{first}");
    assert_eq!(first["work"], "host:20");
    let mut repeated = Vec::new();
    for _ in 0..2 {
        let ended = run(&scene, "--work tape:t.tape --summary r.json");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        repeated.push(serde_json::from_str::<Value>(&scene.result("r.json")).unwrap());
    }
    for mut summary in repeated {
        let mut first = first.clone();
        for summary in [&mut summary, &mut first] {
            summary["host"] = Value::Null;
            summary["work"] = Value::Null;
        }
        assert_eq!(summary, first);
    }
}

#[test]
fn a_program_that_is_launched_has_a_tape_of_its_own() {
    let scene = Scene::new("tape");
    let own = crate::PROGRAM;
    let launch = |work: &str| {
        let line = format!(
            "launch --machine chip:scc --places 2 {work} -- {own} run bc --graph karate --csv /dev/null"
        );
        scene.run(&words(&format!("{line} --json /dev/null")))
    };
    let first = launch("--work host:3.5 --tape t.tape --report chip");
    let again = launch("--work tape:t.tape --report chip");
    assert_eq!((first.code, again.code), (Some(0), Some(0)), "{again:?}");
    let digest = |ended: &Ended| {
        let mut lines = ended.stderr.lines();
        lines.find(|line| line.starts_with("digest")).unwrap_or_else(|| panic!("{ended:?}")).to_owned()
    };
    assert_eq!(digest(&first), digest(&again));
    let missing = launch("--work tape:none.tape");
    let start = "error: --work is \"tape:none.tape\"; allowed: a tape that can be read (";
    assert!(missing.refusal().starts_with(start), "the user wrote no variable: {missing:?}");
    let line = "run pi --machine chip:scc --places 2 --work tape:t.tape";
    let other = "a tape of this program (this one is of another program or another build)";
    assert!(refusal(&scene, line).contains(other), "the tape tells applications apart");
    let line = "run bc --graph power --machine chip:scc --places 2 --work tape:t.tape";
    assert!(refusal(&scene, line).contains("a tape of the arguments \"--graph power\" (this one is of"));
}

#[test]
fn a_tape_of_another_run_is_refused_before_anything_runs() {
    let (scene, _) = recorded();
    let play = format!("{RUN} --work tape:t.tape");
    let chip = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../chips/scc.toml")).unwrap();
    let other = scene.file("other.toml", format!("{chip}\n# of mine\n"));
    let with = |from: &str, to: &str| refusal(&scene, &play.replace(from, to));
    let cases = [
        (with("--places 4", "--places 5"), "a tape of 5 places (this one is of 4)".to_owned()),
        (
            with("chip:scc", &format!("chip:{}", other.display())),
            "(this one is of another chip, preset or power model)".to_owned(),
        ),
        (
            with("--places 4", "--places 4 --preset 800/1600/1066"),
            "(this one is of another chip, preset or power model)".to_owned(),
        ),
        (
            with("--places 4", "--places 4 --protocol sections"),
            "the protocol sections (this one is of doorbell)".into(),
        ),
        (
            with("--places 4", "--places 4 --placement spread"),
            "the placement spread (this one is of linear)".into(),
        ),
        (
            with("--places 4", "--places 4 --governor fixed:4"),
            "the governor fixed:4 (this one is of fixed)".into(),
        ),
        (
            with("--places 4", "--places 4 --broadcast fan:2"),
            "the broadcast fan:2 (this one is of auto)".into(),
        ),
        (with("--places 4", "--places 4 --rest nap:1us"), "the rest nap:1us (this one is of poll)".into()),
        (with("karate", "power"), "a tape of the arguments \"--graph power".into()),
    ];
    for (line, ends) in cases {
        assert!(
            line.starts_with("error: --work is \"tape:t.tape\"; allowed: a tape of ") && line.contains(&ends),
            "{line}"
        );
    }
    let mut command = scene.isles(&words(&play));
    command.env("ISLES_SEED", "9");
    assert!(ended(command).refusal().ends_with("a tape of the seed 9 (this one is of 0)"));
}

#[test]
fn a_file_that_is_no_whole_tape_is_refused() {
    let (scene, _) = recorded();
    let whole = std::fs::read(scene.path("t.tape")).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let mut older = whole.clone();
    older[8] = 1;
    let cases = [
        (whole[..whole.len() - 1].to_vec(), "a complete tape (this one is truncated, or was changed)"),
        (whole[..40].to_vec(), "a complete tape (this one is truncated, or was changed)"),
        (flipped, "a complete tape (this one is truncated, or was changed)"),
        (older, "a tape of version 3 (this one has version 1)"),
        (b"not a tape at all".to_vec(), "a tape (this file is not one)"),
        (Vec::new(), "a tape (this file is not one)"),
    ];
    for (bytes, allowed) in cases {
        let path = scene.file("bad.tape", bytes);
        let line = refusal(&scene, &format!("{RUN} --work tape:{}", path.display()));
        assert_eq!(line, format!("error: --work is \"tape:{}\"; allowed: {allowed}", path.display()));
    }
    let unreadable = |path: &str| refusal(&scene, &format!("{RUN} --work tape:{path}"));
    assert!(unreadable("none.tape").contains("allowed: a tape that can be read (No such file"));
    assert!(unreadable("/").contains("allowed: a tape that can be read (Is a directory"));
}

#[test]
fn settings_that_cannot_be_are_named_with_what_can() {
    let scene = Scene::new("tape");
    let refused = |line: &str| {
        let line = refusal(&scene, line);
        scene.assert_nothing_left();
        line
    };
    assert_eq!(
        refused(&format!("{RUN} --work host:0")),
        "error: --work is \"host:0\"; allowed: said, host:RATIO with a ratio from 0.001 to 1000000 such as host:20, or \
         tape:FILE"
    );
    let elsewhere = RUN.replace("chip:scc", "threads");
    assert_eq!(
        refused(&format!("{elsewhere} --work host:20")),
        "error: --work is \"host:20\"; allowed: said with machine threads (not a modelled chip)"
    );
    for line in [format!("{RUN} --tape t.tape"), format!("{RUN} --work said --tape t.tape")] {
        let allowed = "nothing without --work host:RATIO (ISLES_CHIP_WORK), because nothing is measured";
        assert_eq!(refused(&line), format!("error: --tape is \"t.tape\"; allowed: {allowed}"));
    }
    assert_eq!(
        refused(&format!("{RUN} --work host:20 --tape -")),
        "error: --tape is \"-\"; allowed: a file, not -, because it is binary"
    );
}
