//! `isles run bc` and `isles launch` as a user sees them: known answers, the same bytes on every machine, plain lines.

use crate::scene::{Running, Scene, ended, kill, until, words};
use serde_json::Value;

/// Protocols that carry messages across a modelled chip.
const PROTOCOLS: [&str; 3] = ["doorbell", "rcce-x10", "sections"];

/// A graph that is so skewed that sums in another order would differ in their last bits.
const STEEP: &str = "rmat:8,0.55,0.1,0.1,0.25";

/// Runs `isles run bc` and returns its JSON document, as text.
fn document(arguments: &[&str]) -> String {
    let scene = Scene::new("run");
    let ended = scene.run(&[&["run", "bc", "--json", "-", "--csv", "/dev/null"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    scene.assert_nothing_left();
    ended.stdout
}

/// Returns the scores in a document, as they are written.
fn scores(document: &str) -> &str {
    let (_, rest) = document.split_once("\"betweenness\":[").expect("a document has scores");
    rest.split_once(']').unwrap().0
}

#[test]
fn karate_has_the_published_scores() {
    let document: Value = serde_json::from_str(&document(&["--graph", "karate"])).unwrap();
    let score = |vertex: usize| document["betweenness"][vertex].as_f64().unwrap();
    assert!((score(0) - 231.0714285714).abs() < 1e-9, "{}", score(0));
    assert!((score(33) - 160.5515873016).abs() < 1e-9, "{}", score(33));
    assert_eq!(document["betweenness"].as_array().unwrap().len(), 34);
    let run = &document["run"];
    assert_eq!((run["vertices"].as_u64(), run["edges"].as_u64()), (Some(34), Some(78)));
    assert_eq!(run["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert!(run["processors"].as_u64() >= Some(1), "{run}");
}

#[test]
fn the_scores_are_the_same_bytes_however_they_are_computed() {
    let reference = document(&["--graph", STEEP, "--places", "1", "--machine", "threads"]);
    assert!(scores(&reference).contains('.'), "{reference}");
    for machine in ["threads", "processes", "loopback"] {
        for places in ["1", "2", "3", "5"] {
            for balance in ["static", "dynamic", "glb"] {
                let other = document(&[
                    "--graph",
                    STEEP,
                    "--places",
                    places,
                    "--machine",
                    machine,
                    "--balance",
                    balance,
                ]);
                assert_eq!(scores(&other), scores(&reference), "{places} places, {machine}, {balance}");
                let run: Value = serde_json::from_str(&other).unwrap();
                let run = &run["run"];
                assert_eq!(
                    (run["machine"].as_str(), run["balance"].as_str()),
                    (Some(machine), Some(balance))
                );
                assert_eq!(run["places"].to_string(), places);
            }
        }
    }
}

#[test]
fn a_modelled_chip_gives_the_scores_of_threads_on_any_number_of_cores_by_any_protocol() {
    for graph in ["karate", STEEP] {
        let reference = document(&["--graph", graph, "--places", "2", "--machine", "threads"]);
        for protocol in PROTOCOLS {
            for places in ["1", "2", "8", "48"] {
                let line =
                    format!("--graph {graph} --places {places} --machine chip:scc --protocol {protocol}");
                // Karate also with stolen sources.
                let line = if graph == "karate" && places != "2" { line + " --balance glb" } else { line };
                let other = document(&words(&line));
                assert_eq!(scores(&other), scores(&reference), "{line}");
                let run: Value = serde_json::from_str(&other).unwrap();
                assert_eq!(run["run"]["machine"].as_str(), Some("chip:scc"));
            }
        }
    }
}

#[test]
fn a_modelled_chip_tells_its_time_and_the_same_digest_again() {
    let run = |protocol: &str, seed: &str| {
        let scene = Scene::new("chip");
        let mut command = scene.isles(&["run", "bc", "--graph", "karate", "--machine", "chip:scc"]);
        command.args(["--places", "8", "--report", "chip", "--json", "/dev/null", "--csv", "/dev/null"]);
        let ended = ended({
            command.env("ISLES_SEED", seed).env("ISLES_CHIP_PROTOCOL", protocol);
            command
        });
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let line = |name: &str| {
            let mut lines = ended.stderr.lines();
            lines
                .find(|line| line.starts_with(name))
                .unwrap_or_else(|| panic!("{name}: {ended:?}"))
                .to_owned()
        };
        let heading = format!(" ms predicted on 8 cores with {protocol} at 533/800/800, ");
        assert!(line("chip:scc: ").contains(&heading), "{ended:?}");
        (line("predicted time"), line("digest"))
    };
    let runs = PROTOCOLS.map(|protocol| run(protocol, "0"));
    assert_eq!(PROTOCOLS.map(|protocol| run(protocol, "0")), runs);
    for (protocol, (_, digest)) in PROTOCOLS.iter().zip(&runs) {
        assert_ne!(*digest, run(protocol, "1").1, "{protocol}");
    }
    assert!(runs[0] != runs[1] && runs[1] != runs[2] && runs[2] != runs[0], "{runs:?}");
}

#[test]
fn weighted_scores_are_the_same_bytes_too() {
    let scene = Scene::new("weights");
    let ring = (0..40).map(|vertex| {
        format!(
            "{vertex} {} {}\n{vertex} {} 2.5\n",
            (vertex + 1) % 40,
            0.1 * f64::from(vertex % 7 + 1),
            (vertex + 9) % 40
        )
    });
    let path = scene.file("ring.txt", ring.collect::<String>());
    let path = path.to_str().unwrap();
    let reference =
        document(&["--graph", path, "--weights", "file", "--places", "1", "--machine", "threads"]);
    let line = ["run", "bc", "--graph", path, "--places", "1", "--machine", "threads", "--json", "/dev/null"];
    let unused = format!("the weights of {path} are not used; --weights file uses them\n");
    assert!(scene.run(&line).stderr.contains(&unused));
    for machine in ["threads", "processes", "loopback"] {
        let other = document(&["--graph", path, "--weights", "file", "--places", "3", "--machine", machine]);
        assert_eq!(scores(&other), scores(&reference), "{machine}");
    }
}

#[test]
fn files_hold_the_same_scores_as_the_standard_output() {
    let scene = Scene::new("files");
    let ended = scene.run(&["run", "bc", "--graph", "karate", "--top", "2"]);
    // On a very busy host it reports its progress.
    let is_progress = |line: &str| line.contains(" of 34 sources");
    assert!(ended.code == Some(0) && ended.stderr.lines().all(is_progress), "{ended:?}");
    for part in [
        "karate: 34 vertices, 78 edges, undirected",
        "231.0714",
        "160.5516",
        "A vertex is its number in the graph, from 0.",
        "place     sources   share     busy   computing\n    0 ",
        "time ",
        "speed ",
        "moved ",
        "out/bc-karate.json",
        "out/bc-karate.csv",
    ] {
        assert!(ended.stdout.contains(part), "{part:?} is not said: {}", ended.stdout);
    }
    let written = scene.result("out/bc-karate.json");
    assert_eq!(scores(&written), scores(&document(&["--graph", "karate"])));
    let table = scene.result("out/bc-karate.csv");
    let column: Vec<f64> =
        table.lines().skip(1).map(|line| line.split_once(',').unwrap().1.parse().unwrap()).collect();
    let array: Vec<f64> = scores(&written).split(',').map(|score| score.parse().unwrap()).collect();
    assert_eq!(column, array);
}

#[test]
fn a_launched_program_gets_the_places_and_its_own_arguments() {
    let scene = Scene::new("launch");
    let script = r#"echo "$ISLES_PLACES $ISLES_MACHINE $ISLES_REPORT"; for word; do echo "<$word>"; done"#;
    let launch = ["launch", "--places", "3", "--machine", "processes", "--report", "captures", "--"];
    let ended =
        scene.run(&[&launch[..], &["sh", "-c", script, "sh", "its own", "--places", "9", ""]].concat());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "3 processes captures\n<its own>\n<--places>\n<9>\n<>\n"),
        "{ended:?}"
    );
    let code = scene.run(&["launch", "--", "sh", "-c", "exit 7"]).code;
    assert_eq!(code, Some(7), "the program's exit code is its own");
}

#[test]
fn a_launched_program_of_isles_runs_over_the_places() {
    let scene = Scene::new("launch");
    let own = "run bc --graph karate --json - --csv /dev/null";
    let line = format!("launch --places 3 --machine processes -- {} {own}", crate::PROGRAM);
    let ended = scene.run(&words(&line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((run["run"]["places"].as_u64(), run["run"]["machine"].as_str()), (Some(3), Some("processes")));
    scene.assert_nothing_left();
}

#[test]
fn progress_is_told_in_plain_lines_where_there_is_no_terminal() {
    let scene = Scene::new("progress");
    let running = Running::start(
        scene.isles(&words("run bc --graph rmat-high --places 2 --machine processes --json -")),
    );
    let line = running.until_line("progress", |line| line.contains(" sources, "));
    assert!(line.contains(" of 32768 sources, ") && line.contains(" left, "), "{line:?}");
    assert!(line.ends_with(" sources/s\n"), "{line:?}");
    assert!(!line.trim_end().contains(|character: char| character.is_control()), "{line:?}");
    kill(running.child.id() as i32);
    running.finish();
    scene.until_all_ended();
}

#[test]
fn a_run_of_which_nobody_knows_how_long_it_is_says_that_it_is_alive_and_foretells_nothing() {
    // All at the same time: each reports its progress when it has run for five seconds.
    let runs = [
        ("run uts --tree T1 --depth 30 --places 2 --machine processes", " nodes at the first place so far, "),
        ("run uts --tree T1 --depth 30 --machine chip:scc", " nodes so far, "),
        ("run nqueens --n 18 --places 2 --machine threads", " queens at the first place so far, "),
        ("run nqueens --n 18 --places 2 --machine threads --record run", " queens so far, "),
    ];
    let runs = runs.map(|(line, unit)| {
        let scene = Scene::new("alive");
        let running = Running::start(scene.isles(&words(line)));
        (line, unit, scene, running)
    });
    for (line, unit, scene, running) in runs {
        let printed = running.until_line("that it is alive", |printed| printed.contains(unit));
        assert!(!printed.contains("left") && printed.ends_with("/s\n"), "{line}: {printed:?}");
        kill(running.child.id() as i32);
        running.finish();
        scene.until_all_ended();
    }
}

#[test]
fn a_run_with_reports_prints_them_on_standard_error() {
    let scene = Scene::new("report");
    let mut command = scene.isles(&words("run bc --graph karate --places 2 --json - --csv /dev/null"));
    command.env("ISLES_REPORT", "captures,finish");
    let ended = ended(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("bc/src/run.rs:"), "the call sites are named: {}", ended.stderr);
    assert!(serde_json::from_str::<Value>(&ended.stdout).is_ok(), "{}", ended.stdout);
}

#[test]
fn known_graphs_are_listed_with_where_they_are() {
    let scene = Scene::new("list");
    let ended = scene.run(&["data", "list"]);
    assert_eq!(ended.code, Some(0));
    let karate = ended.stdout.lines().find(|line| line.starts_with("karate ")).unwrap();
    assert!(["34", "78", "undirected", "built in"].iter().all(|part| karate.contains(part)), "{karate}");
    until("nothing runs", || scene.processes().is_empty());
    scene.assert_nothing_left();
}

#[test]
fn scores_are_checked_against_their_definition_when_that_is_asked_for() {
    let scene = Scene::new("verified");
    for graph in ["karate", "rmat:6,0.5,0.2,0.2,0.1"] {
        for weights in ["ignore", "unit"] {
            let line = ["run", "bc", "--graph", graph, "--weights", weights, "--places", "2", "--verify"];
            let ended = scene.run(&line);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.stdout.contains("\nchecked  8 scores against their definition"), "{ended:?}");
        }
    }
    let written: serde_json::Value = serde_json::from_str(&scene.result("out/bc-karate.json")).unwrap();
    assert_eq!(written["verification"]["holds"], true);
    assert_eq!(written["run"]["app"], "bc");
}
