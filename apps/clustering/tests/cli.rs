//! `isles run modularity`: the same moves on every machine with each controller and memory, pictures, refusals in a
//! line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-modularity");

/// Returns the JSON output of `isles run modularity` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("modularity");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_moves_are_the_same_on_every_machine_with_each_controller_and_memory() {
    let one = document("--graph karate --search all --places 1 --machine threads --verify");
    assert_eq!(one["verification"]["holds"], true, "{one}");
    let modularity = one["modularity"].as_f64().unwrap();
    // As networkx computes it for these clusters.
    assert!((modularity - 0.3611111111111111).abs() < 1e-12, "{one}");
    for (machine, places) in [("threads", 3), ("processes", 2), ("loopback", 5), ("chip:scc", 7)] {
        for controller in ["broadcast", "overlapped", "timestamp"] {
            let memories: &[&str] = match machine {
                "chip:scc" => &["cached", "uncached", "through", "mixed"],
                _ => &["mixed"],
            };
            for memory in memories {
                let line = format!(
                    "--graph karate --controller {controller} --memory {memory} --machine {machine} --places {places}"
                );
                for search in ["all", "bounds"] {
                    let other = document(&format!("{line} --search {search}"));
                    assert_eq!(other["hash"], one["hash"], "{line}, {search}");
                    let counts = |found: &Value| (found["moves"].clone(), found["steps"].clone());
                    assert_eq!(counts(&other), counts(&one), "{line}, {search}");
                }
            }
        }
    }
}

#[test]
fn several_levels_make_the_same_moves_on_every_machine_with_each_controller_and_memory() {
    let line = "--method multilevel --graph power";
    let one = document(&format!("{line} --places 1 --machine threads --verify"));
    assert_eq!(one["verification"]["holds"], true, "{one}");
    // 4,941 vertices make batches that several places search together, 34 make one that each machine searches alone.
    for (machine, places) in [("threads", 3), ("processes", 2), ("loopback", 5)] {
        for controller in ["broadcast", "timestamp"] {
            let other =
                document(&format!("{line} --controller {controller} --machine {machine} --places {places}"));
            assert_eq!(other["hash"], one["hash"], "{controller}, {machine}");
        }
    }
    let line = "--method multilevel --graph karate";
    let one = document(&format!("{line} --places 1 --machine threads --verify"));
    // The best of all clusterings, by integer programming.
    assert!((one["modularity"].as_f64().unwrap() - 0.4197896121).abs() < 1e-9, "{one}");
    for controller in ["broadcast", "overlapped", "timestamp"] {
        for memory in ["cached", "uncached", "through", "mixed"] {
            let options =
                format!("--controller {controller} --memory {memory} --machine chip:scc --places 7");
            assert_eq!(document(&format!("{line} {options}"))["hash"], one["hash"], "{options}");
        }
    }
}

/// By the table of `isles repro modularity`, mixed memory is best on a few cores.
#[test]
fn the_memory_that_measures_best_is_taken() {
    let line = "--graph trade-66 --search all --machine chip:scc --preset 800/1600/1066 --places 4";
    let measured = document(&format!("{line} --memory measured"));
    assert_eq!((&measured["memory"], &measured["run"]["memory"]), (&"mixed".into(), &"measured".into()));
    let mixed = document(&format!("{line} --memory mixed"));
    assert_eq!(measured["hash"], mixed["hash"]);
    let coherent = document("--graph karate --places 2 --machine threads --memory measured");
    assert_eq!(coherent["memory"], "mixed");
}

#[test]
fn clusters_are_drawn_and_told() {
    let scene = Scene::new("modularity-picture");
    let line = "--graph trade-66 --places 2 --machine threads --verify --svg trade.svg --csv trade.csv";
    let ended = scene.run(&words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heading = "trade-66, 66 vertices, 4290 edges, greedy, broadcast, mixed; 2 places (threads)\n";
    assert!(ended.stdout.starts_with(heading), "{ended:?}");
    assert!(ended.stdout.contains("\nclusters    4\nmoves       62 in 63 steps\n"), "{ended:?}");
    assert!(ended.stdout.contains("\nchecked  all 62 moves are those of one processor\n"), "{ended:?}");
    let (drawn, listed) = (scene.result("trade.svg"), scene.result("trade.csv"));
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    assert!(drawn.contains("<title>66 vertices in 4 clusters</title>"));
    assert_eq!(drawn.matches("<circle ").count(), 66);
    assert!(drawn.contains(">trade-66: 66 vertices in 4 clusters, modularity 0.391873 (greedy)</text>"));
    assert_eq!((listed.lines().next(), listed.lines().count()), (Some("vertex,cluster"), 67));
}

/// A list as that of the world's trade: names, tabs, both ways, and a pair that stands twice.
#[test]
fn a_list_of_named_vertices_keeps_their_names() {
    let scene = Scene::new("modularity-named");
    let trade = "ARG\tBRA\t2\nBRA\tARG\t1\nARG\tCHL\t1.5\nARG\tCHL\t1.5\nCHL\tBRA\t3\n\
                 FRA\tDEU\t2\nDEU\tFRA\t1\nFRA\tESP\t3\nESP\tDEU\t3\nCHL\tESP\t1\n";
    scene.leave("trade.el", trade);
    for method in ["greedy", "multilevel"] {
        let line = format!("--graph trade.el --method {method} --places 2 --machine threads --verify");
        let ended = scene.run(&words(&format!("{line} --json - --csv trade.csv --svg trade.svg")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found: Value = serde_json::from_str(&ended.stdout).unwrap();
        // Two triangles of weight 9 each, with an edge of 1 between them.
        let expected = 18.0 / 19.0 - 0.5;
        assert!((found["modularity"].as_f64().unwrap() - expected).abs() < 1e-12, "{found}");
        let listed = scene.result("trade.csv");
        let cluster = |name: &str| {
            let mut lines = listed.lines().filter_map(|line| line.split_once(','));
            lines.find(|line| line.0 == name).map(|line| line.1.to_owned())
        };
        assert!(cluster("ARG").is_some() && cluster("ARG") == cluster("CHL"), "{listed}");
        assert!(cluster("FRA") == cluster("ESP") && cluster("FRA") != cluster("BRA"), "{listed}");
        let drawn = scene.result("trade.svg");
        assert!(drawn.contains(">DEU</text>") && drawn.contains(">trade.el: 6 vertices in 2 clusters"));
    }
}

/// igraph 1.0 (`Graph.modularity`, `community_multilevel`) and networkx 3.6 (`MultiGraph`, and `Graph` with the sum)
/// say 0.40909090909 of a ring, one edge of which stands there twice.
#[test]
fn weights_of_one_pair_add_up_whether_vertices_have_names_or_numbers() {
    let scene = Scene::new("modularity-parallel");
    scene.leave("numbers.txt", "0 1 1\n0 1 9\n1 2 1\n2 3 10\n0 3 1\n");
    scene.leave("names.txt", "a b 1\na b 9\nb c 1\nc d 10\na d 1\n");
    let symmetric =
        "%%MatrixMarket matrix coordinate real symmetric\n4 4 5\n2 1 1\n1 2 9\n3 2 1\n4 3 10\n4 1 1\n";
    scene.leave("pairs.mtx", symmetric);
    scene.leave("pairs.csv", "source,target,weight\n0,1,1\n1,0,9\n1,2,1\n2,3,10\n0,3,1\n");
    let run = |line: &str| {
        scene.run(&words(&format!("--places 2 --machine threads --csv - --json run.json {line}")))
    };
    for file in ["numbers.txt", "names.txt", "pairs.mtx", "pairs.csv"] {
        let ended = run(&format!("--graph ./{file} --weights file"));
        assert_eq!(ended.code, Some(0), "{file}: {ended:?}");
        let found: Value = serde_json::from_str(&scene.result("run.json")).unwrap();
        let modularity = found["modularity"].as_f64().unwrap();
        assert!((modularity - 0.409_090_909_09).abs() < 1e-10, "{file}: {modularity}");
        let clusters: Vec<&str> =
            ended.stdout.lines().filter_map(|line| line.split_once(',')).map(|(_, own)| own).collect();
        assert!(
            clusters[1] == clusters[2] && clusters[3] == clusters[4] && clusters[2] != clusters[3],
            "{ended:?}"
        );
    }
    let ended = run("--graph ./numbers.txt");
    assert!(
        ended.stderr.contains("the weights of ./numbers.txt are not used; --weights file uses them\n"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("of ./numbers.txt 1 line repeats an edge, which counts once\n"),
        "{ended:?}"
    );
    assert!(!run("--graph ./numbers.txt --weights file").stderr.contains("of ./numbers.txt"));
    assert!(!run("--graph karate").stderr.contains("karate are not used"));
    for (file, text) in [("zero.txt", "0 1 1\n1 2 0\n"), ("zero-names.txt", "a b 1\nb c 0\n")] {
        scene.leave(file, text);
        let ended = run(&format!("--graph ./{file} --weights file"));
        assert!(
            ended.code == Some(2) && ended.stderr.contains("line 2") && ended.stderr.contains("above zero"),
            "{ended:?}"
        );
    }
    scene.leave("plain.txt", "0 1\n");
    let refused = run("--graph ./plain.txt --weights file");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("has no weights; allowed: ignore"),
        "{refused:?}"
    );
}

#[test]
fn bad_input_is_one_line_and_code_2() {
    let scene = Scene::new("modularity-refused");
    scene.leave("named.el", "ARG BRA 3\nARG CHL x\n");
    scene.leave("numbers.el", "0 1\n0 x\n");
    scene.leave("empty.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 0\n");
    for (line, expected) in [
        ("--graph nosuch", "`nosuch`: no such file, and no graph of that name; names are power, karate,"),
        (
            "--graph named.el",
            "named.el, line 2: \"ARG CHL x\"; allowed: `from to weight`, two names and a weight",
        ),
        ("--graph numbers.el", "numbers.el: line 2: found `0 x`, expected"),
        ("--graph empty.mtx", "empty.mtx: no edges; allowed: a graph with at least one"),
        ("--controller no", "--controller is \"no\"; allowed: broadcast, overlapped, timestamp"),
        ("--memory no", "--memory is \"no\"; allowed: cached, uncached, through, mixed, measured"),
        ("--method multilevel --steps 3", "--steps is only for `--method greedy`; leave it out"),
        ("--method multilevel --search all", "--search is only for `--method greedy`; leave it out"),
        ("--method no", "--method is \"no\"; allowed: greedy, multilevel"),
        ("--steps 0", "--steps is \"0\"; allowed: "),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{line}: {ended:?}");
    }
}
