//! Command-line tests of `isles-hello`: a greeting from each place of each machine, and what is refused.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::process::{Command, Output};

fn hello(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isles-hello"));
    command.current_dir(std::env::temp_dir()).args(words).args(["--csv", "/dev/null"]).output().unwrap()
}

fn document(words: &[&str]) -> Value {
    let output = hello(&[words, &["--json", "-", "--verify"]].concat());
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the one line on standard error with which the program refuses `words`; its exit code is 2.
#[track_caller]
fn refused(words: &[&str]) -> String {
    let output = hello(words);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.lines().count() == 1 && output.stdout.is_empty(), "{stderr}");
    stderr
}

#[test]
fn each_place_of_each_machine_greets() {
    for (machine, places) in [("threads", "3"), ("processes", "4"), ("loopback", "2"), ("chip:scc", "18")] {
        let found = document(&["--machine", machine, "--places", places]);
        assert_eq!(found["complete"], true, "{machine}");
        assert_eq!(found["verification"]["holds"], true, "{machine}");
        assert_eq!(found["run"]["places"].to_string(), places);
    }
}

#[test]
fn greetings_are_in_the_order_of_places() {
    let output = hello(&["--machine", "processes", "--places", "3", "--json", "/dev/null"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("hello from ")).collect();
    assert_eq!(lines, ["hello from place 0", "hello from place 1", "hello from place 2"], "{text}");
}

#[test]
fn what_is_wrong_is_refused_in_one_line() {
    let stderr = refused(&["--machine", "guest"]);
    assert!(stderr.starts_with("error: --machine is \"guest\"; allowed: threads, processes, "), "{stderr}");
    assert!(refused(&["--places", "0"]).starts_with("error: --places is \"0\"; allowed: "));
}

#[cfg(not(feature = "guests"))]
#[test]
fn guests_are_refused_without_the_feature() {
    let output = hello(&["--machine", "guests", "--places", "2"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    let end = "build it with: cargo build --release -p isles-hello --features guests\n";
    assert!(
        stderr.contains("machine guests: isles-hello was built without guests; ") && stderr.ends_with(end),
        "{stderr}"
    );
}

#[cfg(feature = "guests")]
#[test]
fn each_guest_greets_or_one_line_says_why_there_is_none() {
    let output = hello(&["--machine", "guests", "--places", "4", "--json", "-"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(2) {
        assert!(
            stderr.contains("machine guests: ") && stderr.contains("KVM") || stderr.contains("/dev/kvm"),
            "{stderr}"
        );
        println!("skipped: each_guest_greets_or_one_line_says_why_there_is_none: {stderr}");
        return;
    }
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["complete"], &found["run"]["machine"]), (&true.into(), &"guests".into()), "{stderr}");
}
