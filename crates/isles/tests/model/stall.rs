//! Output of tests: stalled runs report their waits and end; other processes of a test are silent.
//!
//! Other tests run the tests that stall or print, in separate processes with a short stall limit.

use crate::page_block::assert_shown;
use isles::Result;
use isles::prelude::*;
use std::future::pending;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

#[isles::test(places = 2, machines = [threads, processes])]
#[ignore = "stands still on purpose"]
async fn stands_still() -> Result<()> {
    finish(async { spawn_at!(here().next(), pending::<()>().await) }).await
}

/// Computes for longer than any place waits for an answer, and then blocks the thread without a processor.
fn compute_for_ever() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {}
    loop {
        std::thread::park();
    }
}

#[isles::test(places = 2, machines = [threads, processes])]
#[ignore = "never ends on purpose"]
async fn computes_for_ever() -> Result<()> {
    finish(async { spawn_at!(here().next(), compute_for_ever()) }).await
}

/// The receiving task was notified of a value, and never takes it.
#[isles::test(places = 2, machines = [threads])]
#[ignore = "never ends on purpose"]
async fn computes_beside_a_value() -> Result<()> {
    let ((sender, receiver), (tell, printed)) = (channel::<u64>(0), channel::<()>(1));
    finish(async {
        spawn_at!(here().next(), {
            let receiver = receiver.clone();
            spawn(async move { receiver.recv().await });
            isles::yield_now().await;
            tell.send(()).await?;
            compute_for_ever();
        });
        printed.recv().await?;
        sender.send(1).await?;
        Ok::<_, isles::Error>(())
    })
    .await
}

#[isles::test(places = 2, machines = [threads, processes])]
#[ignore = "never ends on purpose"]
async fn fails_beside_a_place_that_asks() -> Result<()> {
    let home = here();
    spawn_at!(
        here().next(),
        loop {
            at!(home, ()).await?;
        }
    );
    Err(isles::Error::message("the body fails"))
}

#[isles::test(places = 2, machines = [threads, processes])]
#[ignore = "never ends on purpose"]
async fn panics_beside_a_place_that_asks() -> Result<()> {
    let home = here();
    spawn_at!(
        here().next(),
        loop {
            at!(home, ()).await?;
        }
    );
    panic!("the body panics")
}

#[isles::test(places = 3, machines = [threads, processes])]
#[ignore = "stands still on purpose"]
async fn meets_nobody() -> Result<()> {
    Team::world().barrier().await
}

#[isles::test(places = 3, machines = [threads, processes])]
#[ignore = "stands still on purpose"]
async fn two_of_three_meet() -> Result<()> {
    finish(async {
        spawn_at!(here().next(), Team::world().barrier().await?);
        Team::world().barrier().await
    })
    .await
}

#[isles::test(places = 3, machines = [processes])]
#[ignore = "prints on purpose"]
async fn speaks_everywhere() -> Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, println!("hello from {}", here()));
        }
    })
    .await
}

/// Runs the test `name`, which may be silent for a fifth of a second; returns its output.
fn run_impatiently(name: &str) -> Output {
    run_with_patience(name, "0.1", "0.2")
}

fn run_with_patience(name: &str, report: &str, limit: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("stall::{name}"), "--exact", "--ignored", "--nocapture"]);
    command.env("ISLES_STALL", report).env("ISLES_STALL_LIMIT", limit).output().unwrap()
}

/// Checks the test `name` on threads and on processes concurrently, because each waits most of its time.
fn on_both_machines(name: &str, check: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for machine in ["threads", "processes"] {
            let check = &check;
            scope.spawn(move || check(&format!("{name}::{machine}")));
        }
    });
}

/// Runs the test `name` up to three times, because a place may have no processor for half a second.
#[track_caller]
fn assert_fails_saying(name: &str, expected: &[&str]) {
    assert_one_says(name, || run_impatiently(name), expected);
}

#[track_caller]
fn assert_one_says(name: &str, run: impl Fn() -> Output, expected: &[&str]) {
    let says = |output: &Output| expected.iter().all(|line| text_of(output).contains(line));
    let output = (0..2).map(|_| run()).find(says).unwrap_or_else(&run);
    assert_says(name, &output, expected);
}

fn text_of(output: &Output) -> String {
    (String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout)).into_owned()
}

#[track_caller]
fn assert_says(name: &str, output: &Output, expected: &[&str]) {
    let text = text_of(output);
    assert!(text.contains("0 passed; 1 failed"), "{name}: {text}");
    let message = &text[text.find("panicked at").expect("the test panics")..];
    for line in expected {
        assert!(message.contains(line), "{name}: {line:?} is not in {message}");
    }
}

#[test]
fn of_the_processes_of_a_test_only_the_first_speaks_of_tests() {
    let output = run_with_patience("speaks_everywhere::processes", "10", "60");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for place in 0..3 {
        assert_eq!(text.matches(&format!("hello from place {place}\n")).count(), 1, "{text}");
    }
    assert_eq!(text.matches("running 1 test\n").count(), 1, "{text}");
}

#[test]
fn a_test_that_stands_still_fails_and_says_what_every_place_waits_for() {
    let said = [
        "nothing has happened for ",
        "place 0: the finish at",
        "stall.rs:15:",
        "1 at place 1",
        "place 1: 1 waiting task started at",
        "stall.rs:",
    ];
    on_both_machines("stands_still", |name| assert_fails_saying(name, &said));
}

#[test]
fn a_test_of_which_one_place_computes_for_ever_fails_too() {
    let said = ["nothing has happened for ", "1 at place 1", "place 1: does not answer: it computes"];
    on_both_machines("computes_for_ever", |name| assert_fails_saying(name, &said));
}

/// A place that sends requests for ever is never silent, so the silence of the first place cannot end it.
#[test]
fn a_test_whose_body_fails_ends_although_another_place_goes_on() {
    let how = [("fails", "`main` has failed (the body fails), "), ("panics", "`main` has panicked, ")];
    for (name, said) in how {
        let said = [said, "what it started still runs 0.2 s later", "1 at place 1"];
        on_both_machines(&format!("{name}_beside_a_place_that_asks"), |name| {
            let output = run_impatiently(name);
            let text = text_of(&output);
            assert!(text.contains("0 passed; 1 failed"), "{name}: {text}");
            assert!(said.iter().all(|line| text.contains(line)), "{name}: {text}");
        });
    }
}

#[test]
fn a_place_that_keeps_others_waiting_at_a_channel_is_named() {
    let said = [
        "place 0: ",
        "a task of place 1 to take a value that arrived there over a channel of place 0",
        "place 1: does not answer: it computes",
    ];
    assert_fails_saying("computes_beside_a_value::threads", &said);
}

#[test]
fn a_collective_to_which_members_do_not_come_is_named_with_them() {
    let said = [
        "place 0: in `barrier` number 1 of the team of all places, place 1 has not come",
        "place 1: has not begun `barrier` number 1 of the team of all places, as place 0 did",
        "place 2: has not begun `barrier` number 1 of the team of all places, as place 0 did",
    ];
    on_both_machines("meets_nobody", |name| assert_fails_saying(name, &said));
}

/// Members tell each other after a second in which collectives they wait; that is no progress.
#[test]
fn a_run_in_which_members_compare_their_waits_still_stands_still() {
    let said = ["nothing has happened for ", "place 2: has not begun `barrier` number 1"];
    on_both_machines("two_of_three_meet", |name| {
        assert_one_says(name, || run_with_patience(name, "1.3", "1.6"), &said);
    });
}

/// Returns the lines of the error of a run of `places` places that stalls.
fn stands_still_saying<F: Future<Output = Result<()>> + 'static>(
    places: u32,
    main: fn() -> F,
) -> Vec<String> {
    let (result, ..) = isles::simulate(places, isles::Plan::adversarial(0), main);
    result.unwrap_err().to_string().lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_panic_that_others_wait_for_is_named_first_and_what_places_wait_for_alike_once() {
    let lines = stands_still_saying(40, || async {
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    assert!(here().index() != 7, "the roof is off");
                    Team::world().barrier().await?;
                });
            }
        })
        .await
    });
    let text = lines.join("\n");
    assert!(lines[0].starts_with("the run is stalled; failures:"), "{text}");
    assert!(
        lines[1].starts_with("at place 7: panicked at ") && lines[1].contains("the roof is off"),
        "{text}"
    );
    assert_eq!(lines[2], "waiting for:");
    assert!(
        lines[3].ends_with(": 1 live here, as last reported 1 at each of 38 places (1-6, 8-39)"),
        "{text}"
    );
    let tasks = "39 places (0-6, 8-39): 1 waiting task started at ";
    assert!(lines.iter().any(|line| line.starts_with(tasks)), "{text}");
    let barrier = "in `barrier` number 1 of the team of all places, place 7 has not come";
    assert!(lines.iter().any(|line| line.contains(barrier)), "{text}");
}

#[test]
fn a_task_that_only_something_outside_could_wake_is_named_as_the_cause() {
    let lines = stands_still_saying(2, || async {
        pending::<()>().await;
        Ok(())
    });
    let cause = "place 0: the main task, which waits for nothing of Isles except perhaps a monitor: a thread or \
                 a timer of the program wakes tasks on threads and processes only";
    assert_eq!(lines, ["the run is stalled; waiting for:", cause]);
}

#[test]
fn members_that_both_send_first_are_told_what_each_waits_for() {
    let lines = stands_still_saying(2, || async {
        everywhere!({
            let team = Team::world();
            let other = 1 - team.rank();
            team.send_slice(other, &vec![0_u8; 80_000]).await?;
            team.recv_slice(other, &mut vec![0_u8; 80_000]).await
        })
        .await
        .map(drop)
    });
    assert_shown("messages.md", "crates/isles/tests/model/stall.rs", &lines.join("\n"));
}
