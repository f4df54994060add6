//! `isles run jacobi`: the same digest by every memory, model and number of places; a death; refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Running, Scene, kill, until, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-jacobi");

/// The result of a run, as JSON.
fn document(line: &str) -> Value {
    let scene = Scene::new("jacobi");
    let mut command = scene.program(PROGRAM);
    command.args(words(&format!("--json - --csv /dev/null {line}")));
    let ended = scene::ended(command);
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_digest_is_the_same_by_each_memory_and_model_at_any_number_of_places() {
    for (order, sweeps) in [(3, 2), (67, 9), (512, 4)] {
        let size = format!("--order {order} --sweeps {sweeps}");
        let alone = document(&format!("{size} --places 1 --machine threads --verify"));
        assert_eq!(alone["verification"]["holds"], true, "{alone}");
        for machine in ["loopback", "chip:scc", "processes"] {
            let parts = document(&format!("{size} --places 3 --machine {machine}"));
            assert_eq!(parts["digest"], alone["digest"], "{machine}");
            assert!(parts["pages"].is_null());
        }
        for (model, machine, places) in [
            ("exclusive", "processes", 2),
            ("exclusive", "threads", 3),
            ("strong", "processes", 3),
            ("strong", "threads", 2),
            ("release", "processes", 3),
            ("release", "threads", 2),
            ("release", "processes", 1),
        ] {
            let line = format!("{size} --memory svm --model {model} --machine {machine} --places {places}");
            let found = document(&line);
            assert_eq!(found["digest"], alone["digest"], "{line}");
            assert_eq!(found["run"]["model"], model);
            let faults = found["pages"]["faults"].as_u64().unwrap();
            // One place of the model release is the home of all pages.
            assert_eq!(faults > 0, places > 1 || model != "release", "{line}: {found}");
        }
    }
}

#[test]
fn a_trace_has_faults_pages_and_bytes() {
    let scene = Scene::new("jacobi");
    let mut command = scene.program(PROGRAM);
    let trace = scene.path("trace");
    command
        .args(words("--order 512 --sweeps 4 --memory svm --places 2 --machine processes --trace"))
        .arg(&trace);
    let ended = scene::ended(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let trace = std::fs::read(trace).unwrap();
    for counter in ["page_faults", "pages_fetched", "page_bytes"] {
        assert!(trace.windows(counter.len()).any(|bytes| bytes == counter.as_bytes()), "{counter}");
    }
}

/// With rows of whole pages, an inner row is fetched once a sweep by the place beside it: 2 places, 1 page each.
#[test]
fn release_fetches_the_rows_of_neighbours_and_nothing_else() {
    let found = document("--order 512 --sweeps 7 --memory svm --places 2 --machine processes");
    let pages = &found["pages"];
    assert_eq!((pages["pages"].as_u64(), pages["faults"].as_u64()), (Some(14), Some(14)), "{found}");
    assert_eq!((pages["messages"].as_u64(), pages["bytes"].as_u64()), (Some(0), Some(14 * 4096)), "{found}");
}

#[test]
fn a_place_that_is_killed_ends_the_run_with_a_line_that_names_it() {
    for model in ["exclusive", "strong", "release"] {
        let scene = Scene::new("jacobi-killed");
        let mut command = scene.program(PROGRAM);
        let line = "--order 512 --sweeps 1000000 --places 3 --machine processes --memory svm --model";
        command.args(words(&format!("{line} {model}")));
        let running = Running::start(command);
        // Its arrays are there: each has a service thread.
        until("the places have arrays", || {
            let places = scene.places();
            places.len() == 2 && places.iter().all(|place| scene::has_thread(place.pid, "isles-svm"))
        });
        let victim = &scene.places()[1];
        kill(victim.pid);
        let ended = running.finish();
        assert_eq!(ended.code, Some(1), "{model}: {ended:?}");
        let dead = format!("place {}", victim.place);
        assert!(ended.stderr.contains(&dead), "{model}: {ended:?}");
        scene.assert_nothing_left();
    }
}

#[test]
fn what_cannot_run_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("jacobi-refused");
    for (line, expected) in [
        (
            "--memory svm --machine chip:scc",
            "--memory is \"svm\" with machine chip:scc; allowed with svm: processes, threads, mpi",
        ),
        (
            "--memory svm --machine loopback",
            "--memory is \"svm\" with machine loopback; allowed with svm: processes, threads, mpi",
        ),
        ("--memory svm --model lazy", "--model is \"lazy\"; allowed: exclusive, strong, release"),
        ("--model strong", "--model is not for --memory parts; allowed only with --memory svm"),
        ("--order 1000000 --memory svm", "--order: the array has 16000000000000 bytes, but this host has "),
        ("--order 3 --places 4", "--order is 3; allowed with 4 places: at least one row for each"),
        ("--order 2", "2 is not in 3..=1048576"),
    ] {
        let mut command = scene.program(PROGRAM);
        command.args(words(line));
        let ended = scene::ended(command);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}
