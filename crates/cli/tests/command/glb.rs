//! `isles run uts` and `isles run nqueens`: the same answer on every machine, the published sizes, refusals in a line,
//! and the exact answer when a place is killed at a random moment.
//!
//! `ISLES_TEST_KILLS` is the number of places that are killed, `ISLES_SEED` the seed of the random numbers.

use crate::scene::{Random, Running, Scene, busy_ns, has_thread, is_over, kill, until, words};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the JSON of `isles run` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("glb");
    let ended = scene.run(&words(&format!("run {line} --json - --csv /dev/null")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Places and machines of a run.
const MACHINES: [(&str, &str); 6] = [
    ("threads", "1"),
    ("threads", "3"),
    ("processes", "2"),
    ("processes", "5"),
    ("loopback", "4"),
    ("chip:scc", "12"),
];

#[test]
fn a_tree_has_the_same_size_on_every_machine() {
    // Results of `apps/uts/tests/uts.py`.
    for (tree, expected) in [
        ("T1 --depth 7", [63_914, 51_124, 7]),
        ("T4 --depth 8 --batch 50", [15_914, 11_966, 73]),
        ("T2 --depth 3 --batch 1 --random-steals 0", [996, 705, 16]),
        ("t5 --depth 10 --lifeline-base 2 --lifelines 4 --steal-seed 5", [5577, 3111, 10]),
    ] {
        for (machine, places) in MACHINES {
            let found = document(&format!("uts --tree {tree} --machine {machine} --places {places}"));
            let size = ["nodes", "leaves", "depth"].map(|name| found[name].as_u64().unwrap());
            assert_eq!(size, expected, "{tree} on {places} {machine}");
            assert_eq!(found["verification"], Value::Null, "{tree} was not published");
            let balance = found["balance"]["places"].as_array().unwrap();
            let tasks: u64 = balance.iter().map(|place| place["tasks"].as_u64().unwrap()).sum();
            assert_eq!((balance.len().to_string().as_str(), tasks), (places, expected[0] - 1));
        }
    }
}

#[test]
fn boards_of_queens_have_the_known_counts_on_every_machine() {
    for (machine, places) in MACHINES {
        let found = document(&format!("nqueens --n 8 --machine {machine} --places {places} --verify"));
        assert_eq!(
            (&found["solutions"], &found["placed"]),
            (&Value::from(92), &Value::from(2056)),
            "{machine}"
        );
        assert_eq!(found["verification"]["holds"], true);
        assert_eq!(found["run"]["queens"], 8);
    }
}

#[test]
fn a_search_says_what_it_found_and_how_it_was_balanced() {
    let scene = Scene::new("uts-text");
    let ended = scene.run(&words("run uts --depth 6 --places 2 --machine threads --verify"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heading = "tree T1 (geometric, depth 6, root 19); 2 places (threads)\nnodes  16000\nleaves 12839\n";
    assert!(ended.stdout.starts_with(heading), "{ended:?}");
    assert!(ended.stdout.contains("\nidle   "), "{ended:?}");
    assert!(ended.stdout.contains("asked    stolen   gifts   given    idle\n    0  "), "{ended:?}");
    assert!(ended.stdout.contains("\nchecked  compared with a walk of one processor\n"), "{ended:?}");
    assert_eq!(scene.result("out/uts-T1.csv"), "tree,nodes,leaves,depth\nT1,16000,12839,6\n");
}

#[test]
fn stolen_sources_and_units_are_told_as_balanced_tasks_are() {
    for line in ["bc --graph karate --places 3 --balance glb", "hf --molecule h2o --places 3 --balance glb"] {
        let scene = Scene::new("glb-units");
        let ended =
            scene.run(&words(&format!("run {line} --report balance --machine threads --json run.json")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let table = "asked    stolen   gifts   given    idle\n    0  ";
        let printed = format!("% of the places' time\n\nplace         tasks     {table}");
        assert!(ended.stdout.contains(&printed), "{ended:?}");
        assert!(ended.stderr.contains(" %  idle\nplace  ") && ended.stderr.contains(table), "{ended:?}");
        let found: Value = serde_json::from_str(&scene.result("run.json")).unwrap();
        let places = found["balance"]["places"].as_array().unwrap();
        let sum = |name: &str| places.iter().map(|place| place[name].as_u64().unwrap()).sum::<u64>();
        assert!(sum("stolen") + sum("gifts") == sum("given") && sum("given") > 0, "{found}");
        let shares = found["run"]["shares"].as_array().unwrap();
        let units: u64 = shares.iter().map(|share| share["units"].as_u64().unwrap()).sum();
        match line.starts_with("bc") {
            true => assert_eq!((units, sum("tasks")), (34, 34), "a task is a source"),
            false => assert!(
                units.is_multiple_of(25) && sum("tasks") > units,
                "a task is a part of a unit: {found}"
            ),
        }
    }
    let dealt = Scene::new("dealt").run(&words("run bc --graph karate --report balance --machine threads"));
    assert!(dealt.code == Some(0) && dealt.stderr.ends_with("nothing was balanced\n"), "{dealt:?}");
}

#[test]
fn what_cannot_be_searched_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("uts-refused");
    for (line, expected) in [
        ("uts --tree T9", "--tree is \"T9\"; allowed: T1, T2, T3, T4, T5, T1L, T3L"),
        ("uts --tree T3 --depth 5", "--depth is 5; allowed: none for the binomial tree T3"),
        ("uts --depth 0", "0 is not in 1..=1000"),
        ("uts --places 9 --lifelines 1", "--lifelines is 1; allowed: 2 to 1024 for 9 places and base 4"),
        ("uts --batch 0", "0 is not in 1..=1048576"),
        ("nqueens --n 21", "21 is not in 1..=20"),
        ("nqueens --n 0", "0 is not in 1..=20"),
    ] {
        let ended = scene.run(&words(&format!("run {line}")));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}

/// Search during which places are killed, and its nodes: a debug build takes seconds for a million nodes.
const KILLED: (&str, u64) =
    if cfg!(debug_assertions) { ("--depth 9", 1_031_269) } else { ("--tree T1", 4_130_071) };

/// Processor time after which a place with all its threads surely has a bag, and so have the others.
const SEARCHING_NS: u64 = 20_000_000;

/// Number of places killed in the ordinary tests.
const KILLS: u64 = 4;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Kills a place other than the first when it has searched for a random time. Returns the output of the run.
fn killed(random: &mut Random, longest_ns: u64) -> Value {
    let scene = Scene::new("glb-kill");
    let places = 2 + random.below(4);
    let line = format!("run uts {} --resilient --machine processes --places {places}", KILLED.0);
    let running = Running::start(scene.isles(&words(&format!("{line} --json - --csv /dev/null"))));
    let (chosen, first) = (random.below(places - 1) as usize, running.child.id() as i32);
    let mut others = Vec::new();
    until("the places have started, or all is over", || {
        others = scene.places();
        others.len() as u64 == places - 1 || is_over(first)
    });
    if let Some(victim) = others.get(chosen) {
        until("it has joined", || has_thread(victim.pid, "isles-watch") || busy_ns(victim.pid).is_none());
        let joined = busy_ns(victim.pid).unwrap_or_default();
        let more = SEARCHING_NS + random.below(longest_ns);
        until("it has searched", || busy_ns(victim.pid).is_none_or(|time| time >= joined + more));
        kill(victim.pid);
    }
    let ended = running.finish();
    scene.until_all_ended();
    scene.assert_nothing_left();
    assert_eq!(ended.code, Some(0), "one of {others:?}, of {places} places: {ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_resilient_search_is_exact_when_a_place_is_killed() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let first = from_environment("ISLES_SEED", clock);
    let kills = from_environment("ISLES_TEST_KILLS", KILLS);
    let (mut recovered, mut round) = (0, 0);
    // A place that was killed when the run was over does not count.
    while recovered < kills {
        println!("ISLES_SEED={} (round {round})", first + round);
        assert!(round < 20 * kills, "{recovered} kills of {round} came before the end");
        let mut random = Random(first + round);
        round += 1;
        let found = killed(&mut random, if cfg!(debug_assertions) { 300_000_000 } else { 100_000_000 });
        assert_eq!(found["nodes"], KILLED.1, "{found}");
        recovered += found["balance"]["recovered"].as_u64().unwrap();
    }
    println!("{recovered} places were killed before the end of {round} runs; each was exact");
}

#[test]
fn a_search_that_is_not_resilient_says_what_a_death_has_cost() {
    let scene = Scene::new("glb-dead");
    let line = "run uts --tree T1L --machine processes --places 3 --json - --csv /dev/null";
    let running = Running::start(scene.isles(&words(line)));
    let mut others = Vec::new();
    until("the places have started", || {
        others = scene.places();
        others.len() == 2
    });
    let victim = others[1];
    until("it has joined", || has_thread(victim.pid, "isles-watch"));
    let joined = busy_ns(victim.pid).expect("nobody has killed it yet");
    until("it has searched", || busy_ns(victim.pid).expect("it lives") >= joined + SEARCHING_NS);
    kill(victim.pid);
    let ended = running.finish();
    scene.until_all_ended();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    let name = format!("DeadPlace: place {} is dead; its bag", victim.place);
    assert!(
        ended.stderr.contains(&name) && ended.stderr.contains("2 other places had processed"),
        "{ended:?}"
    );
}
