//! `isles run pi`, the smallest application: the same hits on every machine, a verification, and files.

use crate::scene::{Scene, words};
use serde_json::Value;

/// Returns the JSON of `isles run pi` with these arguments.
fn document(arguments: &[&str]) -> Value {
    let scene = Scene::new("pi");
    let ended = scene.run(&[&["run", "pi", "--json", "-", "--csv", "/dev/null"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_hits_are_the_same_on_every_machine_and_with_any_number_of_places() {
    let one = document(&["--points", "99999", "--places", "1", "--machine", "threads"]);
    let off = (one["pi"].as_f64().unwrap() - std::f64::consts::PI).abs();
    assert!(off < 5.0 * 1.6422 / 99_999_f64.sqrt(), "{one}");
    assert_eq!(one["verification"]["holds"], true);
    for (machine, places) in [("threads", "2"), ("processes", "3"), ("loopback", "4"), ("chip:scc", "48")] {
        let other = document(&["--points", "99999", "--places", places, "--machine", machine]);
        assert_eq!(other["hits"], one["hits"], "{machine}");
        assert_eq!(other["run"]["places"].to_string(), places);
    }
    let seeded = document(&["--points", "99999", "--random-seed", "2", "--machine", "threads"]);
    assert_ne!(seeded["hits"], one["hits"]);
}

#[test]
fn no_place_is_busy_for_more_than_the_run_lasts_also_by_a_clock_of_its_own() {
    for (machine, has_busy) in [("loopback", false), ("threads", true)] {
        let scene = Scene::new("pi");
        let line =
            format!("run pi --points 999999 --places 2 --machine {machine} --json /dev/null --csv /dev/null");
        let ended = scene.run(&words(&line));
        assert_eq!((ended.code, ended.stdout.contains(" busy ")), (Some(0), has_busy), "{ended:?}");
    }
}

#[test]
fn a_run_says_what_its_result_was_checked_against_and_keeps_files() {
    let scene = Scene::new("pi-files");
    let ended = scene.run(&["run", "pi", "--points", "100000", "--places", "2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("100000 points; 2 places (processes)\n"), "{ended:?}");
    assert!(ended.stdout.contains("\nchecked  "), "{ended:?}");
    assert!(ended.stdout.contains(" is one standard deviation\n"), "{ended:?}");
    assert!(ended.stdout.ends_with("wrote  out/pi.json\nwrote  out/pi.csv\n"), "{ended:?}");
    assert_eq!(scene.result("out/pi.csv").lines().count(), 2);
    let refused = scene.run(&["run", "pi", "--points", "0"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let listed = scene.run(&["list"]);
    assert!(listed.stdout.contains("\nbc  "), "{listed:?}");
    assert!(listed.stdout.contains("\npi  "), "{listed:?}");
}

#[test]
fn it_can_be_swept_and_compared_by_seeds_as_any_application() {
    let scene = Scene::new("pi-sweep");
    let line = "sweep --app pi --points 200000 --places 1,4 --dividers 3 --all";
    let swept = scene.run(&words(line));
    assert_eq!(swept.code, Some(0), "{swept:?}");
    assert!(swept.stdout.contains("choice: 4 places, 533 MHz"), "{swept:?}");
    let help = scene.run(&words("run pi --help"));
    assert!(help.stdout.contains("--points") && !help.stdout.contains("--graph"), "{help:?}");
    let other = scene.run(&words("sweep --app pi --graph karate"));
    assert_eq!(other.code, Some(2), "{other:?}");
    let seeds =
        scene.run(&words("run pi --points 200000 --machine chip:scc --places 4 --seeds 2 --random-seed 7"));
    assert_eq!(seeds.code, Some(0), "{seeds:?}");
    scene.assert_nothing_left();
}

#[test]
fn a_run_draws_where_its_time_went_by_place() {
    let scene = Scene::new("pi-svg");
    for (machine, says) in
        [("threads", "What each place did: pi"), ("chip:scc", "Where the time of each place went")]
    {
        let line = format!("run pi --points 100000 --machine {machine} --places 3 --svg pi.svg");
        let ended = scene.run(&words(&line));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let picture = scene.result("pi.svg");
        assert!(picture.contains(says) && picture.contains(&line), "{machine}: {picture}");
    }
    let same = scene.run(&words("run pi --points 100000 --json pi.svg --svg pi.svg")).refusal().to_owned();
    assert!(same.contains("--svg is \"pi.svg\"; allowed: a file other than that of --json"), "{same}");
}
