//! Commands as process 1 of a container, for which the kernel ignores the default action of signals: each ends on
//! SIGTERM and SIGINT as elsewhere, and leaves nothing behind.
//!
//! The container is a pid namespace of `unshare`, which needs root; without it the tests print this and prove nothing.

use crate::scene::{Running, Scene, built, signal, until, words};
use rustix::process::Signal;
use std::process::{Command, Stdio};

/// Arguments of `unshare` that make a program process 1 of a pid namespace of its own.
const CONTAINER: [&str; 3] = ["-p", "-f", "--mount-proc"];

/// Signals, each with the exit code that a shell reports for a program that the signal has ended.
const ENDS: [(Signal, i32); 2] = [(Signal::TERM, 143), (Signal::INT, 130)];

/// A run over two processes that takes longer than any test.
const LONG_RUN: &str = "--graph rmat-high --machine processes --places 2 --json -";

/// Returns `true` if containers are possible here.
fn has_containers() -> bool {
    let mut command = Command::new("unshare");
    command.args(CONTAINER).arg("true").stderr(Stdio::null());
    let has = command.status().is_ok_and(|status| status.success());
    if !has {
        println!("skipped: `unshare -p -f --mount-proc true` fails here; it needs root");
    }
    has
}

/// Returns the process number in the innermost namespace, if the process is in one of its own.
fn number_inside(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let numbers: Vec<i32> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
    (numbers.len() > 1).then(|| numbers[numbers.len() - 1])
}

/// Runs the program in a container once for each signal, sends the signal when `has_begun`, and asserts that the
/// program ends.
fn assert_ends(program: &str, line: &str, prepare: impl Fn(&Scene), has_begun: impl Fn(&Scene) -> bool) {
    for (sent, code) in ENDS {
        let scene = Scene::new("container");
        prepare(&scene);
        let mut command = scene.program("unshare");
        let program = program.replace("SCENE", &scene.path("").to_string_lossy());
        command.args(CONTAINER).arg(program).args(words(line));
        let running = Running::start(command);
        until("it has begun", || has_begun(&scene));
        let first = scene.processes().into_iter().find(|pid| number_inside(*pid) == Some(1));
        signal(first.expect("it has not ended"), sent);
        let ended = running.finish();
        assert_eq!(ended.code, Some(code), "{line}, {sent:?}: {ended:?}");
        scene.until_all_ended();
    }
}

/// Returns `true` if the places of a run have started.
fn has_places(scene: &Scene) -> bool {
    !scene.places().is_empty()
}

#[test]
fn an_application_ends_by_a_signal_as_process_1() {
    if has_containers() {
        let program = built("isles-bc");
        let program = program.to_str().unwrap();
        assert_ends(program, LONG_RUN, |_| (), has_places);
        let line = format!("launch {program} {LONG_RUN}");
        assert_ends(crate::PROGRAM, &line, |_| (), has_places);
        assert_ends(crate::PROGRAM, &format!("run bc {LONG_RUN}"), |_| (), has_places);
    }
}

#[test]
fn a_sweep_ends_by_a_signal_as_process_1_with_its_runs() {
    if has_containers() {
        built("isles-bc");
        let line = "sweep --app bc --rmat 18,0.25,0.25,0.25,0.25 --places 1 --dividers 2 --csv -";
        let runs = |scene: &Scene| scene.processes().len() >= 4; // unshare, process 1, the sweep, a run of it
        assert_ends(crate::PROGRAM, line, |_| (), runs);
    }
}

#[test]
fn a_command_that_becomes_or_awaits_another_program_ends_by_a_signal_as_process_1() {
    /// Replaces the program that the command executes or waits for, and has no signal handlers.
    const STUB: &str = "#!/bin/sh\n: > begun\nexec sleep 1000\n";
    if !has_containers() {
        return;
    }
    for (line, program) in [
        ("bench core --quick", "isles-bench"),
        ("bench core --svg bench.svg", "isles-bench"),
        ("repro", "isles-lab"),
        ("replay run", "isles-dashboard"),
        ("report run --html -", "isles-dashboard"),
        ("launch ./program", "program"),
    ] {
        let prepare = |scene: &Scene| {
            let from = scene.executable(program, STUB);
            let isles = scene.executable("isles", std::fs::read(crate::PROGRAM).unwrap());
            scene.leave("left", "");
            std::fs::rename(&isles, scene.path("isles")).unwrap();
            std::fs::rename(&from, scene.path(program)).unwrap();
        };
        assert_ends("SCENE/isles", line, prepare, |scene| scene.path("begun").is_file());
    }
}
