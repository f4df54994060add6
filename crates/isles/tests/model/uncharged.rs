//! Code without a declared cost on a modelled chip: a run with much of it prints a warning at its end.
//!
//! Other tests run the programs in separate processes, and read their standard error.

use isles::Launch;
use isles::prelude::*;
use std::process::Command;

/// Returns the processor time of this thread on the host.
fn thread_time_ns() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split_whitespace().next().unwrap().parse().unwrap()
}

/// Computes for `milliseconds` of processor time of this thread, however busy the host is.
fn compute(milliseconds: u64) {
    let end = thread_time_ns() + milliseconds * 1_000_000;
    while thread_time_ns() < end {}
}

/// Runs a program on two cores, whose places compute for a fifth of a second and then declare `cycles`.
fn program(cycles: u64) {
    let main = move || async move {
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    compute(200);
                    work(Cycles(cycles));
                });
            }
        })
        .await
    };
    let launch = Launch::from_environment().unwrap();
    launch.run(main).unwrap().0.unwrap();
}

#[test]
#[ignore = "run by another test"]
fn says_nothing() {
    program(0);
}

#[test]
#[ignore = "run by another test"]
fn says_what_it_costs() {
    program(100_000_000);
}

/// Runs the program `name` with the settings `more`. Returns its lines on standard error.
fn said(name: &str, more: &[(&str, &str)]) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("uncharged::{name}"), "--exact", "--ignored", "--nocapture"])
        .envs(more.iter().copied());
    command.env("ISLES_MACHINE", "chip:scc").env("ISLES_PLACES", "2");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect()
}

fn warnings(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).filter(|line| line.starts_with("warning: ")).collect()
}

#[test]
fn much_code_that_was_charged_nothing_is_told_after_the_prediction() {
    let lines = said("says_nothing", &[]);
    let warned = warnings(&lines);
    let [line] = warned.as_slice() else { panic!("{lines:?}") };
    let seconds = line.split_once(" % of the program's code (").and_then(|(_, rest)| {
        let (seconds, rest) = rest.split_once(" s on this host) ran in turns")?;
        seconds.parse::<f64>().ok().filter(|_| !rest.is_empty())
    });
    // Two places computed for a fifth of a second each; a busy host takes longer.
    assert!(seconds.is_some_and(|seconds| seconds > 0.2), "{line}");
    let advice = "declare its cost with `work`, or measure it with --work host:RATIO (ISLES_CHIP_WORK)";
    assert!(line.ends_with(advice), "{line}");
    let [predicted, warned] = ["chip:scc: ", "warning: "]
        .map(|start| lines.iter().position(|line| line.starts_with(start)).unwrap_or_default());
    assert!(predicted < warned, "{lines:?}");
}

#[test]
fn code_that_is_said_or_measured_is_no_reason_for_a_warning() {
    for (name, work) in [("says_what_it_costs", "said"), ("says_nothing", "host:2")] {
        let lines = said(name, &[("ISLES_CHIP_WORK", work)]);
        assert!(lines.iter().any(|line| line.starts_with("chip:scc: ")), "{lines:?}");
        assert_eq!(warnings(&lines), [""; 0], "{name} {work}");
    }
}
