//! `isles run hashtable`: the content of a sequential map by every model and number of places; a death; the report and
//! the trace; refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Running, Scene, kill, until, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-hashtable");

/// The result of a run, as JSON.
fn document(line: &str) -> Value {
    let scene = Scene::new("hashtable");
    let mut command = scene.program(PROGRAM);
    command.args(words(&format!("--verify --json - --csv /dev/null {line}")));
    let ended = scene::ended(command);
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_content_is_that_of_a_sequential_map_by_each_model_at_any_number_of_places() {
    // One lock and few keys: places meet at each operation; and keys of many pages.
    for size in ["--operations 600 --keys 9 --locks 0", "--operations 900 --keys 3000 --locks 4 --lookups 30"]
    {
        let alone = document(&format!("{size} --places 1 --machine threads"));
        for model in ["exclusive", "strong", "release"] {
            for (machine, places) in [("processes", 2), ("processes", 5), ("threads", 3)] {
                let line = format!("{size} --model {model} --machine {machine} --places {places}");
                let found = document(&line);
                assert_eq!(found["verification"]["holds"], true, "{line}: {found}");
                assert_eq!(found["digest"], alone["digest"], "{line}");
                assert_eq!(found["pages"]["locks"], found["run"]["operations"], "{line}");
                assert!(found["pages"]["messages"].as_u64() > Some(0), "{line}: {found}");
            }
        }
    }
    let other = document("--operations 600 --keys 9 --locks 0 --random-seed 2 --places 2 --machine threads");
    assert_ne!(other["digest"], document("--operations 600 --keys 9 --locks 0 --places 2")["digest"]);
}

#[test]
fn a_place_that_is_killed_ends_the_run_with_a_line_that_names_it() {
    for model in ["exclusive", "strong", "release"] {
        let scene = Scene::new("hashtable-killed");
        let mut command = scene.program(PROGRAM);
        let line = "--operations 1000000000 --keys 100 --locks 0 --places 3 --machine processes --model";
        command.args(words(&format!("{line} {model}")));
        let running = Running::start(command);
        until("the places have the table", || {
            let places = scene.places();
            places.len() == 2 && places.iter().all(|place| scene::has_thread(place.pid, "isles-svm"))
        });
        let victim = &scene.places()[1];
        kill(victim.pid);
        let ended = running.finish();
        assert_eq!(ended.code, Some(1), "{model}: {ended:?}");
        assert!(ended.stderr.contains(&format!("place {}", victim.place)), "{model}: {ended:?}");
        scene.assert_nothing_left();
    }
}

/// Returns the sum over all places in a row of the report.
fn reported(report: &str, counter: &str) -> Option<u64> {
    let row = report.lines().find(|line| line.split_whitespace().next() == Some(counter))?;
    row.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn the_report_counts_what_the_array_counts_and_the_trace_has_its_spans() {
    let scene = Scene::new("hashtable-report");
    let mut command = scene.program(PROGRAM);
    let line =
        "--operations 400 --places 2 --machine processes --report counters --trace t.trace --json found.json";
    command.args(words(line));
    let ended = scene::ended(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let output = format!("{}{}", ended.stdout, ended.stderr);
    let found: Value =
        serde_json::from_str(&std::fs::read_to_string(scene.path("found.json")).unwrap()).unwrap();
    for (counter, field) in [
        ("page_faults", "faults"),
        ("pages_fetched", "pages"),
        ("page_bytes", "bytes"),
        ("region_locks", "locks"),
    ] {
        assert_eq!(reported(&output, counter), found["pages"][field].as_u64(), "{counter}: {output}");
    }
    assert_eq!(reported(&output, "region_locks"), Some(400));
    let trace = std::fs::read(scene.path("t.trace")).unwrap();
    for name in ["pages ←", "lock"] {
        assert!(trace.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name}");
    }
}

#[test]
fn what_cannot_run_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("hashtable-refused");
    for (line, expected) in [
        ("--machine chip:scc", "hashtable with machine chip:scc; allowed: processes, threads, mpi"),
        ("--machine loopback", "hashtable with machine loopback; allowed: processes, threads, mpi"),
        ("--model lazy", "--model is \"lazy\"; allowed: exclusive, strong, release"),
        ("--lookups 101", "101 is not in 0..=100"),
        ("--locks 17", "17 is not in 0..=16"),
        ("--keys 0", "0 is not in 1..=268435456"),
    ] {
        let mut command = scene.program(PROGRAM);
        command.args(words(line));
        let ended = scene::ended(command);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}
