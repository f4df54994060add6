//! `isles run power-loops`: clocks by domain on a modelled chip, none on a host, sums by formulas, one-line refusals.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-power-loops");

/// Returns the JSON output of a run with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("power-loops");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Returns a number of each place, or `None` for places without one.
fn by_place(document: &Value, name: &str) -> Vec<Option<u64>> {
    document["loops"].as_array().unwrap().iter().map(|place| place[name].as_u64()).collect()
}

#[test]
fn so_many_domains_take_the_high_clock_and_the_master_of_each_is_its_first_core() {
    let line = "--machine chip:scc --places 48 --milliseconds 20";
    let found = document(&format!("{line} --high-domains 2 --high-divider 3 --low-divider 8"));
    assert_eq!(found["verification"]["holds"], true, "{found}");
    let masters = by_place(&found, "master");
    assert_eq!(masters.iter().flatten().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let dividers = by_place(&found, "divider");
    assert_eq!(dividers.iter().filter(|divider| **divider == Some(3)).count(), 16);
    assert_eq!(dividers.iter().filter(|divider| **divider == Some(8)).count(), 32);
    for (master, divider) in masters.into_iter().zip(dividers).filter(|(master, _)| master.is_some()) {
        assert_eq!(divider, Some(if master <= Some(2) { 3 } else { 8 }), "{master:?}");
    }
}

#[test]
fn faster_domains_get_round_more_often_and_memory_is_waited_for() {
    let passes = |program: &str| {
        let line =
            format!("--machine chip:scc --places 48 --milliseconds 500 --high-domains 3 --program {program}");
        let found = document(&line);
        assert_eq!(found["verification"]["holds"], true, "{found}");
        let of = |wanted: u64| {
            let pairs = by_place(&found, "divider").into_iter().zip(by_place(&found, "passes"));
            pairs
                .filter(|(divider, _)| *divider == Some(wanted))
                .filter_map(|(_, passes)| passes)
                .sum::<u64>()
        };
        (of(2), of(16))
    };
    let (fast, slow) = passes("increment");
    assert!((7 * slow..9 * slow).contains(&fast), "800 MHz against 100: {fast} {slow}");
    assert!(passes("seventh").0 < fast / 10);
}

#[test]
fn on_a_host_clocks_stay_and_the_sums_are_the_same() {
    for machine in ["threads", "processes", "loopback"] {
        let found = document(&format!("--machine {machine} --places 3 --milliseconds 1 --program most"));
        assert_eq!(found["verification"]["holds"], true, "{found}");
        assert!(by_place(&found, "master").iter().all(Option::is_none));
    }
}

#[test]
fn dividers_that_the_chip_does_not_have_are_refused() {
    let ended = Scene::new("power-loops").run(&words("--high-divider 17"));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("17"), "{ended:?}");
}
