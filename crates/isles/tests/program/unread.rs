//! Messages of Isles to a standard error that is no longer read: the run ends as it would with a reader.

use crate::{MACHINES, command, end_of};
use isles::prelude::*;
use isles::spawn_detached;
use std::future::pending;
use std::process::{Command, Stdio};

/// The cases, and what a reader would read of each on the machines whose places are places of the host.
const CASES: &[(&str, i32, &str)] = &[
    ("stands still", 1, "nothing has happened for"),
    ("loses a detached task", 0, "a detached task failed"),
    ("exits", 1, "place 1"),
];

/// Everyone waits for ever, so that places say for what.
pub async fn stands_still() -> isles::Result<()> {
    finish(async { spawn_at!(here().next(), pending::<()>().await) }).await
}

/// A task fails for which nobody waits.
pub async fn loses_a_detached_task() -> isles::Result<()> {
    spawn_detached(async { Err::<(), _>(isles::Error::message("nobody waits for this")) });
    isles::yield_now().await;
    Ok(())
}

/// The command of a case; the run that stands still is given up after 0.3 s.
fn command_of(case: &str, machine: &str) -> Command {
    let mut command = command(case, machine);
    if case == "stands still" {
        command.env("ISLES_STALL", "0.1").env("ISLES_STALL_LIMIT", "0.3");
    }
    command.stdout(Stdio::null());
    command
}

pub fn check() {
    for machine in MACHINES {
        for (case, code, line) in CASES {
            let (ended, said) = end_of(command_of(case, machine).stderr(Stdio::piped()).spawn().unwrap());
            assert_eq!(ended, Some(*code), "{case} on {machine}: {said}");
            let is_of_host = matches!(*machine, "threads" | "processes");
            assert!(!is_of_host || said.contains(line), "{case} on {machine}: {said}");
            let how = if *machine == "threads" { "exited, and with it" } else { "its process ended" };
            assert!(*case != "exits" || !is_of_host || said.contains(how), "{case} on {machine}: {said}");
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let (ended, _) = end_of(command_of(case, machine).stderr(writer).spawn().unwrap());
            assert_eq!(ended, Some(*code), "{case} on {machine}, where nobody reads what is said");
        }
    }
}
