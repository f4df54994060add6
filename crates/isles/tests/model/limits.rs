//! Runs under limits of the system: reduced sizes, and errors if a run is impossible.
//!
//! Each test starts this test program again, from a shell that sets the limit.

use isles::prelude::*;
use std::process::{Command, Output};

/// Sends a large message to every place and back.
#[isles::test(places = 3)]
#[ignore = "runs as a started process"]
async fn a_program() -> isles::Result<()> {
    for place in places() {
        let values: Vec<u64> = (0..100_000).collect();
        assert_eq!(at!(place, values.iter().rev().copied().collect::<Vec<u64>>()).await?[0], 99_999);
    }
    Ok(())
}

/// Runs [`a_program`] on `machine`, started from a shell behind `limit`; returns its output.
fn run(limit: &str, machine: &str) -> Output {
    let script = format!("{limit} && exec \"$@\"");
    let program = std::env::current_exe().unwrap();
    let arguments = [&format!("limits::a_program::{machine}"), "--exact", "--include-ignored", "--nocapture"];
    Command::new("sh").args(["-c", &script, "sh"]).arg(program).args(arguments).output().unwrap()
}

#[test]
fn three_places_run_where_a_batch_system_limits_address_space() {
    for machine in ["threads", "processes"] {
        let output = run("ulimit -v 4000000", machine);
        assert!(output.status.success(), "{machine}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{machine}: {output:?}");
    }
}

#[test]
fn a_missing_proc_is_named_with_its_remedy_and_threads_do_without() {
    let hide = "mount -t tmpfs none /proc";
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]);
        command
    };
    if !unshare().arg(hide).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: /proc cannot be hidden here (unshare --mount)");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let run = |machine: &str| {
        let arguments =
            [&format!("limits::a_program::{machine}"), "--exact", "--include-ignored", "--nocapture"];
        let script = format!("{hide} && exec \"$@\"");
        unshare().args([&script, "sh"]).arg(&program).args(arguments).output().unwrap()
    };
    let threads = run("threads");
    assert!(threads.status.success(), "{threads:?}");
    let processes = run("processes");
    let line = "machine processes: cannot start other places from /proc/self/exe: No such file or \
         directory (os error 2); mount /proc, or choose machine threads";
    let said = String::from_utf8_lossy(&processes.stderr).into_owned();
    assert!(!processes.status.success() && said.contains(line), "{said}");
}

#[isles::test(places = 2)]
async fn a_test_has_the_stack_of_a_program() -> isles::Result<()> {
    let array = [7_u8; 4 << 20];
    assert_eq!(at!(here().next(), here().index()).await?, 1);
    assert_eq!(array[array.len() / 2], 7);
    Ok(())
}
