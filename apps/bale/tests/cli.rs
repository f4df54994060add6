//! `isles run gups`, `histogram` and `index-gather`: whole results on each machine, no errors, refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, ended, words};
use serde_json::Value;

/// The program of this name, as the scene finds it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-gups");

/// The JSON that a run of a program with these arguments writes.
fn document(program: &str, line: &str) -> Value {
    let scene = Scene::new("bale");
    let mut command = scene.program(program);
    command.args(words(&format!("--json - --csv /dev/null {line}")));
    let ended = ended(command);
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["verification"]["holds"], true, "{line}: {document}");
    document
}

#[test]
fn gups_has_no_errors_in_any_mode_on_any_machine() {
    for machine in ["threads", "processes", "loopback", "chip:scc", "chip:bluegene-p"] {
        for mode in [
            "--places 3",
            "--places 6 --mode routed --shape 3x2",
            "--places 8 --mode roles",
            "--places 6 --mode roles --routers 1 --appliers 2",
            "--places 4 --mode roles --routers 2 --appliers 2 --shape 1x1",
            "--places 2 --mode messages",
        ] {
            let found = document(PROGRAM, &format!("--machine {machine} --bits 10 {mode}"));
            assert_eq!(found["errors"], 0, "{machine} {mode}");
            assert_eq!(found["updates"], 4096);
        }
    }
}

#[test]
fn a_table_that_places_change_by_themselves_is_right_where_it_is_locked_or_atomic() {
    for machine in ["threads", "processes", "loopback", "chip:scc"] {
        for mode in ["atomic", "locks", "locks --locks 1", "locks --locks 7"] {
            let line = format!("--machine {machine} --bits 10 --places 3 --mode {mode} --updates 3000");
            assert_eq!(document(PROGRAM, &line)["errors"], 0, "{line}");
        }
    }
}

#[test]
fn updates_of_what_nobody_locks_are_lost_where_a_read_and_a_write_are_far_apart() {
    let scene = Scene::new("bale");
    let mut command = scene.program(PROGRAM);
    command.args(words("--machine chip:scc --bits 6 --places 3 --mode unlocked --json - --csv /dev/null"));
    let ended = ended(command);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &found["verification"]["holds"]), (Some(1), &Value::Bool(false)), "{ended:?}");
    assert!(found["errors"].as_u64() > Some(0), "{found}");
}

#[test]
fn a_check_is_a_phase_of_its_own() {
    let programs = [
        (PROGRAM, "--bits 6", "updates"),
        (PROGRAM, "--bits 6 --mode atomic", "updates"),
        (env!("CARGO_BIN_EXE_isles-histogram"), "--entries 17 --counts 50", "counts"),
        (env!("CARGO_BIN_EXE_isles-index-gather"), "--entries 17 --reads 50", "reads"),
    ];
    for (program, line, first) in programs {
        let scene = Scene::new("bale");
        let mut command = scene.program(program);
        command.args(words(&format!("--places 2 --json /dev/null --csv /dev/null {line}")));
        let ended = ended(command);
        assert_eq!((ended.code, ended.phases()), (Some(0), vec![first, "check"]), "{ended:?}");
    }
}

#[test]
fn without_a_check_nobody_makes_the_updates_again_and_errors_are_unknown() {
    for mode in ["", " --mode locks", " --mode routed"] {
        let line = format!("--places 3 --bits 10 --machine chip:scc{mode}");
        let scene = Scene::new("bale");
        let run = |more: &str| {
            let mut command = scene.program(PROGRAM);
            command.args(words(&format!("{line}{more} --json - --csv /dev/null")));
            let ended = ended(command);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            serde_json::from_str::<Value>(&ended.stdout).unwrap()
        };
        let (checked, unchecked) = (run(""), run(" --no-check"));
        assert_eq!((&unchecked["errors"], &checked["errors"]), (&Value::Null, &Value::from(0)), "{mode}");
        let messages = |run: &Value| run["run"]["messages"].as_u64().unwrap();
        assert!(messages(&unchecked) < messages(&checked), "{mode}: {unchecked}");
    }
}

#[test]
fn what_handing_on_costs_is_paid_where_an_update_is_made_and_goes_on_and_not_where_it_is_applied() {
    // Two nodes of four places: half of the updates cross, from the first place of a node to the second of the other.
    let working = |cycles: u32| {
        let scene = Scene::new("bale");
        let mut command = scene.program(PROGRAM);
        let line = "--machine chip:bluegene-p --places 8 --mode roles --shape 2x1x1 --bits 10 --updates 4096 --no-check";
        command.args(words(&format!(
            "{line} --route-cycles {cycles} --summary - --json /dev/null --csv /dev/null"
        )));
        let ended = ended(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
        let of_place = |place: &Value| place["ledger_ps"]["working"].as_u64().unwrap();
        summary["by_place"].as_array().unwrap().iter().map(of_place).collect::<Vec<u64>>()
    };
    let (free, charged) = (working(0), working(850));
    let microseconds: Vec<u64> =
        free.iter().zip(&charged).map(|(free, charged)| (charged - free) / 1_000_000).collect();
    // A microsecond for each of the 2,048 that a node makes, and for each that comes along x; nothing goes along y, z.
    let [first, second, third, last] = [0, 1, 2, 3].map(|role| [microseconds[role], microseconds[4 + role]]);
    assert_eq!((first, third, last), ([2048, 2048], [0, 0], [0, 0]), "{microseconds:?}");
    assert!(second.iter().all(|of_node| (1..2048).contains(of_node)), "{microseconds:?}");
}

#[test]
fn a_division_finds_the_same_owners() {
    let found = document(PROGRAM, "--places 5 --bits 12 --division --machine loopback");
    assert_eq!(found["errors"], 0);
}

#[test]
fn no_place_of_gups_holds_more_than_the_rules_allow() {
    let found = document(PROGRAM, "--places 4 --bits 14 --machine loopback");
    // Three others with a bucket that fills and three on their way each, and its own.
    assert_eq!(found["bucket"], 1024 / 13);
    let buckets = found["buckets"].as_u64().unwrap();
    assert!(found["hops"].as_u64().unwrap() >= buckets, "{found}");
}

#[test]
fn counts_and_reads_are_right_on_each_machine() {
    for machine in ["threads", "processes", "loopback", "chip:scc"] {
        let line = format!("--machine {machine} --places 3 --entries 17");
        let found = document(env!("CARGO_BIN_EXE_isles-histogram"), &format!("{line} --counts 5000"));
        assert_eq!(found["counts"], 15_000);
        let found = document(env!("CARGO_BIN_EXE_isles-index-gather"), &format!("{line} --reads 5000"));
        assert_eq!(found["reads"], 15_000);
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_line_before_anything_is_allocated() {
    let histogram = env!("CARGO_BIN_EXE_isles-histogram");
    for (program, line, expected) in [
        (PROGRAM, "--bits 48", "--bits 48 takes 2097152.0 GiB; allowed: at most"),
        (PROGRAM, "--bits 2 --places 7", "--bits is 2; allowed with 7 owners: an entry for each, or more"),
        (PROGRAM, "--mode routed --shape 3x2 --places 4", "--shape is 3x2; allowed: one of 4 nodes"),
        (PROGRAM, "--mode routed --shape 4by4", "\"4by4\" is not a shape"),
        (PROGRAM, "--shape 2x1 --places 2", "--shape is 2x1; allowed only with --mode routed and roles"),
        (PROGRAM, "--mode roles --places 6", "--places is 6; allowed with --mode roles: groups of 4"),
        (PROGRAM, "--routers 2", "--routers is 2; allowed only with --mode roles"),
        (PROGRAM, "--appliers 2", "--appliers is 2; allowed only with --mode roles"),
        (PROGRAM, "--mode roles --routers 4", "--routers is 4; allowed: at most 3, one for each dimension"),
        (PROGRAM, "--mode roles --routers 0", "0 is not in 1.."),
        (PROGRAM, "--locks 16", "--locks is 16; allowed only with --mode locks"),
        (PROGRAM, "--mode locks --locks 0", "0 is not in 1..=1024"),
        (PROGRAM, "--lookahead 0", "0 is not in 1..=1048576"),
        (PROGRAM, "--bucket 9999999", "9999999 is not in 1..=1048576"),
        (histogram, "--entries 4294967295 --places 64", "allowed: at most"),
    ] {
        let scene = Scene::new("bale");
        let mut command = scene.program(program);
        command.args(words(line));
        let ended = ended(command);
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{line}: {}", ended.stderr);
    }
}
