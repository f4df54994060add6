//! Places are pinned to processors; threads and processes that a body starts are not.
//!
//! The processors of threads and of a child process are compared with those of the first thread of the process, which
//! runs no place.

use isles::prelude::*;
use isles::{Launch, Machine, Pinning, Result};
use std::process::Command;

/// Returns the processors that a thread may use, from its file in `/proc`.
fn allowed(page: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{page}/status")).unwrap();
    listed(&text)
}

fn listed(status: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// Returns the processors that a body and all that it starts may use.
fn processors_of_a_body() -> [String; 3] {
    let thread = std::thread::spawn(|| allowed("thread-self")).join().unwrap();
    let child = Command::new("cat").arg("/proc/self/status").output().unwrap();
    [allowed("thread-self"), thread, listed(&String::from_utf8(child.stdout).unwrap())]
}

async fn every_place_sees_the_processors_of_the_program() -> Result<()> {
    let given = allowed("self");
    for place in places() {
        let (seen, parallelism) =
            at!(place, (processors_of_a_body(), std::thread::available_parallelism().unwrap().get())).await?;
        assert_eq!(seen, [(); 3].map(|()| given.clone()), "{place}");
        // Only a quota of the system can reduce it, which holds for all threads of the process.
        assert_eq!(parallelism, std::thread::available_parallelism().unwrap().get(), "{place}");
    }
    Ok(())
}

#[isles::test(places = 2, machines = [threads, processes])]
async fn a_body_its_threads_and_its_children_may_use_the_processors_of_the_program() -> Result<()> {
    every_place_sees_the_processors_of_the_program().await
}

#[isles::test(places = 1, machines = [threads, processes])]
async fn the_same_holds_for_one_place() -> Result<()> {
    every_place_sees_the_processors_of_the_program().await
}

#[test]
fn a_list_of_processors_leaves_them_free_too_and_one_that_cannot_be_is_refused() {
    let launch = |list| {
        let launch = Launch::from_environment().unwrap().machine(Machine::Threads).places(1);
        launch.pinning(Pinning::Processors(list)).run(every_place_sees_the_processors_of_the_program)
    };
    let first = allowed("thread-self").split([',', '-']).next().unwrap().parse().unwrap();
    launch(vec![first]).unwrap().0.unwrap();
    let refusal = launch(vec![]).unwrap_err().to_string();
    assert_eq!(
        refusal,
        r#"the pinning is "no processor"; allowed: one processor for each of 1 places (this list has 0)"#
    );
    let refusal = launch(vec![1023]).unwrap_err().to_string();
    assert!(refusal.contains("processors that this program may use"), "{refusal}");
}
