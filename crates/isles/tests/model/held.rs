//! Declared memory of places: its peak in the report of a run, and the warnings if a core has less memory, or if a
//! stream has no declared region.
//!
//! Another test runs the program that warns, in a separate process, and reads its standard error.

use isles::prelude::*;
use isles::{Launch, Machine, hold_memory};
use std::process::Command;

/// Place 1 holds twice this much, but not at the same time as a further half.
const BYTES: u64 = 200 << 20;

async fn program() -> isles::Result<()> {
    let beside = places().last().expect("there is a place");
    at!(beside, {
        drop(hold_memory(BYTES / 2));
        let _first = hold_memory(BYTES);
        drop(hold_memory(BYTES));
    })
    .await?;
    let _here = hold_memory(7);
    Ok(())
}

#[test]
#[ignore = "run by another test"]
fn holds_much() {
    let launch = Launch::from_environment().unwrap();
    launch.run(program).unwrap().0.unwrap();
}

#[test]
fn the_report_has_the_most_that_each_place_held_at_one_time() {
    for machine in [Machine::Threads, Machine::Loopback] {
        let launch = Launch::from_environment().unwrap().machine(machine).places(2);
        let (result, report) = launch.run(program).unwrap();
        result.unwrap();
        let held: Vec<_> = report.places.iter().flatten().map(|place| place.memory_held).collect();
        assert_eq!(held, [7, 2 * BYTES]);
    }
}

#[test]
#[ignore = "run by another test"]
fn streams_pieces() {
    let launch = Launch::from_environment().unwrap();
    let pieces = || async {
        (0..9).for_each(|_| work(Work::new().streamed(100_000).of(900_000)));
        (0..9).for_each(|_| work(Work::new().streamed(100_001)));
        Ok::<_, isles::Error>(())
    };
    launch.run(pieces).unwrap().0.unwrap();
}

/// Returns the lines on standard error of a run of a test with two places on `chip`.
fn said(test: &str, chip: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .envs([("ISLES_MACHINE", chip), ("ISLES_PLACES", "2")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_place_that_holds_more_than_a_core_has_is_warned_of() {
    let text = said("held::holds_much", "chip:scc");
    let warning = "warning: place 1 held 400.0 MiB of memory, but a core of chip:scc has only 322 MiB\n";
    assert!(text.contains(warning), "{text}");
    // Its file does not state the memory of a core.
    let text = said("held::holds_much", "chip:mesh");
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn pieces_that_say_no_region_are_warned_of_with_their_line() {
    let text = said("held::streams_pieces", "chip:scc");
    let warning = "tests/model/held.rs:49: consecutive steps stream 100001 bytes without a region, so the model finds \
                   all of them in the cache; write streamed(100001).of(bytes until the same data comes again)\n";
    assert!(text.contains(warning), "{text}");
    assert!(!said("held::streams_pieces", "chip:bluegene-p").contains("warning"));
}
