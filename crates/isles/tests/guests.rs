//! Places as guests: barriers of 48, faults, and a killed guest.
//!
//! A test without the harness, because its processes start again as places. Without arguments it runs the cases; with
//! the name of a case it is the program of that case. Without `/dev/kvm` it prints that the cases are skipped.
//! `ISLES_TEST_ROUNDS` is the number of runs with 48 guests.

#![forbid(unsafe_code)]

use isles::prelude::*;
use isles::{ErrorKind, Launch, Machine};
use std::process::{Command, ExitCode, Output};

/// Variable with the name of the case that this process runs.
const CASE: &str = "ISLES_TEST_CASE";

/// Default number of runs with 48 guests.
const ROUNDS: u32 = 3;

/// Guests of a run, and its barriers.
const MEMBERS: &str = "48";
const BARRIERS: u64 = 5;

/// All places pass several barriers, and the first one hears from each.
async fn meet() -> isles::Result<()> {
    let team = Team::world();
    let passed = Counter::new();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for barrier in 1..=BARRIERS {
                    passed.add(1).await?;
                    team.barrier().await?;
                    // No place passes a barrier before all have arrived.
                    let all = passed.get().await?;
                    assert!(all >= barrier * place_count() as u64, "{all} at barrier {barrier}");
                    team.barrier().await?;
                }
                Ok::<(), isles::Error>(())
            });
        }
    })
    .await?;
    println!("{} met", passed.get().await?);
    Ok(())
}

/// Awaits `harm`, a call that the last place does not survive, and checks that the place before it still answers.
async fn after(harm: impl Future<Output = isles::Result<()>>) -> isles::Result<()> {
    let error = harm.await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DeadPlace(_)), "{error}");
    let still = places().nth(place_count() - 2).unwrap();
    println!("{error}; {} answers", at!(still, here()).await?);
    Ok(())
}

/// The last place calls a function that recurses endlessly.
async fn faults() -> isles::Result<()> {
    let last = places().last().unwrap();
    after(async move { at!(last, overflow_the_stack()).await }).await
}

/// Grows the stack into the page below it.
fn overflow_the_stack() {
    fn deeper(depth: u64) -> u64 {
        let frame = std::hint::black_box([depth; 64]);
        if depth == u64::MAX { 0 } else { deeper(depth + 1) + frame[9] }
    }
    std::hint::black_box(deeper(std::hint::black_box(0)));
}

/// The last place is killed from outside.
async fn killed() -> isles::Result<()> {
    let last = places().last().unwrap();
    after(async move {
        at!(last, {
            Command::new("kill").args(["-9", &std::process::id().to_string()]).status()?;
            std::future::pending::<()>().await;
            Ok::<(), isles::Error>(())
        })
        .await
    })
    .await
}

/// A body that panics: an error of its task; the place continues.
async fn panics() -> isles::Result<()> {
    let last = places().last().unwrap();
    let error = at!(last, panic!("the roof is off")).await.unwrap_err();
    println!("{error}; {} answers", at!(last, here()).await?);
    Ok(())
}

fn program(case: &str) -> ExitCode {
    match case {
        "meet" => isles::__private::main(meet),
        "faults" => isles::__private::main(faults),
        "killed" => isles::__private::main(killed),
        _ => isles::__private::main(panics),
    }
}

fn output(case: &str, places: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env(CASE, case)
        .env("ISLES_MACHINE", "guests")
        .env("ISLES_PLACES", places)
        .env("RUST_BACKTRACE", "0");
    command.output().unwrap()
}

/// Returns the standard output and standard error of the program of `case`, which must end with `code`.
#[track_caller]
fn said(case: &str, places: &str, code: i32) -> (String, String) {
    let output = output(case, places);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{case}: {said:?}");
    said
}

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(CASE) {
        return program(&case);
    }
    let launch = Launch::from_environment().unwrap().machine(Machine::Guests).places(1);
    if let Err(why) = launch.run(async || Ok::<(), isles::Error>(())) {
        assert!(why.to_string().contains("/dev/kvm"), "{why}");
        println!("skipped: guests meet, fault, are killed and panic: {why}");
        return ExitCode::SUCCESS;
    }
    let (out, err) = said("faults", "3", 1);
    assert!(
        out.starts_with("at place 2: DeadPlace: place 2 is dead") && out.ends_with("; place 1 answers\n"),
        "{out}"
    );
    assert!(out.contains("signal 11"), "{out}");
    assert!(err.starts_with("place 2: the guest failed: page fault (vector 14,"), "{err}");
    let (out, err) = said("killed", "3", 1);
    assert!(out.contains("signal 9") && out.ends_with("; place 1 answers\n"), "{out}");
    assert!(!err.contains("the guest failed"), "{err}");
    let (out, _) = said("panics", "2", 0);
    assert!(out.contains("the roof is off") && out.ends_with("; place 1 answers\n"), "{out}");
    let rounds =
        std::env::var("ISLES_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    for round in 0..rounds {
        let (out, _) = said("meet", MEMBERS, 0);
        assert_eq!(out, "240 met\n", "round {round}");
    }
    println!("48 guests met {rounds} of {rounds} times");
    ExitCode::SUCCESS
}
