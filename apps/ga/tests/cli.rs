//! `isles run ga`: the same evolution on every machine with any number of places, a check, files, refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-ga");

/// Returns the JSON output of `isles run ga` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("ga");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// All of a result; none of it may depend on the places.
fn answer(document: &Value) -> [&Value; 7] {
    ["generations", "is_found", "best", "fitness", "island", "generation", "history"]
        .map(|name| &document[name])
}

#[test]
fn the_answer_is_the_same_on_every_machine_with_more_and_with_fewer_places_than_islands() {
    for (islands, machines) in [
        ("1", [("threads", "3"), ("processes", "2"), ("loopback", "2"), ("chip:scc", "4")]),
        ("4", [("threads", "2"), ("processes", "3"), ("loopback", "4"), ("chip:scc", "6")]),
        ("7", [("threads", "7"), ("processes", "2"), ("loopback", "3"), ("chip:scc", "48")]),
        ("30", [("threads", "4"), ("processes", "5"), ("loopback", "7"), ("chip:scc", "1")]),
    ] {
        let line = format!("--islands {islands} --population 210 --generations-max 60");
        let one = document(&format!("{line} --places 1 --machine threads --verify"));
        assert_eq!(one["verification"]["holds"], true, "{one}");
        assert_eq!(one["history"].as_array().unwrap().len(), 61);
        for (machine, places) in machines {
            let other = document(&format!("{line} --places {places} --machine {machine}"));
            assert_eq!(answer(&other), answer(&one), "{islands} islands, {places} places, {machine}");
            assert_eq!(other["run"]["places"].to_string(), places);
            assert_eq!(other["run"]["islands"].to_string(), islands);
            let shares = other["run"]["shares"].as_array().unwrap();
            if machine == "chip:scc" {
                assert!(shares.is_empty());
            } else {
                let units: u64 = shares.iter().map(|share| share["units"].as_u64().unwrap()).sum();
                assert_eq!(units, 60 * islands.parse::<u64>().unwrap());
            }
        }
    }
}

#[test]
fn a_text_is_found_by_an_island_for_each_place_and_the_run_keeps_files() {
    let scene = Scene::new("ga-files");
    let ended = scene.run(&words("--places 3 --text Hello --population 200 --verify"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heading = "200 individuals on 3 islands look for 5 characters; 3 places (processes)\ngenerations  ";
    assert!(ended.stdout.starts_with(heading), "{ended:?}");
    assert!(ended.stdout.contains("\nbest         Hello\nfitness      0\nisland       "), "{ended:?}");
    let checked = "\nchecked  the text was found; compared with the same islands one after the other, without channels\n";
    assert!(ended.stdout.contains(checked), "{ended:?}");
    assert!(ended.stdout.ends_with("wrote  out/ga.json\nwrote  out/ga.csv\n"), "{ended:?}");
    let table = scene.result("out/ga.csv");
    assert!(table.starts_with("generation,fitness\n0,"), "{table}");
    let document: Value = serde_json::from_str(&scene.result("out/ga.json")).unwrap();
    let last = format!("\n{},0\n", document["generations"]);
    assert!(table.ends_with(&last), "{table}");
}

#[test]
fn an_end_without_the_text_says_how_far_the_best_is() {
    let scene = Scene::new("ga-end");
    let ended = scene.run(&words("--places 2 --machine threads --generations-max 3 --islands 2"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\nchecked  the best of 3 generations has fitness "), "{ended:?}");
}

#[test]
fn what_cannot_evolve_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("ga-refused");
    for (line, expected) in [
        (
            "--places 4 --population 3",
            "--population is 3; allowed: at least 20, for 4 islands and their migrants",
        ),
        ("--islands 5000", "5000 is not in 1..=4096"),
        ("--text x", "2 to 1000 ASCII characters, each from blank to ~"),
        ("--mutation 200", "200 is not in 0..=100"),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}
