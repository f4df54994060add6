//! `isles doctor` reports the features of the host and the transport between each pair of places.

use crate::scene::{Scene, ended, words};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn places_that_are_processes_talk_through_memory() {
    let scene = Scene::new("doctor");
    let ended = scene.run(&words("doctor --json --places 3"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let places = found["places"].as_array().unwrap();
    let processes: BTreeSet<u64> = places.iter().map(|place| place["process"].as_u64().unwrap()).collect();
    assert_eq!(processes.len(), 3, "a process each: {found}");
    let paths = found["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 6, "each pair both ways: {found}");
    assert!(paths.iter().all(|path| path["by"] == "memory"), "{found}");
    let facts = found["facts"].as_array().unwrap();
    for name in ["processors", "memory", "kernel", "open files", "host name", "MPI library", "MPI launcher"] {
        let fact = facts.iter().find(|fact| fact["name"] == name);
        let fact = fact.unwrap_or_else(|| panic!("{name} in {found}"));
        let has_advice = fact["advice"].is_string();
        assert_eq!(has_advice, fact["verdict"] != "good", "what is not good comes with advice: {fact}");
        assert!(!fact["value"].as_str().unwrap().is_empty(), "{fact}");
    }
    scene.assert_nothing_left();
}

#[test]
fn the_table_says_the_same_in_words() {
    let scene = Scene::new("doctor");
    let ended = scene.run(&words("doctor --machine threads --places 2"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("machine threads, 2 places"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("memory: 1\n") && ended.stdout.ends_with("memory: 0\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn where_no_run_is_possible_the_list_is_whole_and_says_why() {
    let scene = Scene::new("doctor");
    let cases = [
        ("ulimit -n 8", "could not be started as place 1: Too many open files"),
        ("ulimit -v 60000", "of address space for a shared segment"),
    ];
    for (limit, why) in cases {
        for more in ["", "--json"] {
            let mut shell = scene.program("sh");
            let line = format!("{limit}; exec \"$0\" doctor --places 2 {more}");
            shell.args(["-c", &line, crate::PROGRAM]);
            let ended = ended(shell);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            for name in ["processors", "open files", "host name", "MPI launcher"] {
                assert!(ended.stdout.contains(name), "{name}: {ended:?}");
            }
            assert!(ended.stdout.contains("no run is possible") && ended.stdout.contains(why), "{ended:?}");
            assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(why), "{ended:?}");
        }
    }
    scene.assert_nothing_left();
}

#[test]
fn a_machine_that_is_not_this_host_is_refused() {
    let scene = Scene::new("doctor");
    let ended = scene.run(&words("doctor --machine chip:scc"));
    let line = ended.refusal();
    assert!(line.contains("--machine is \"chip:scc\"; allowed: threads, processes, mpi"), "{line}");
}
