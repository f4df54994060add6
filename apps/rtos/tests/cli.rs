//! `isles run semaphore-loop`, `port-throughput` and `control-loop`: the values of tasks under many maps, counters of
//! the kernel, one-line refusals.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, ended, words};
use serde_json::Value;

/// The program of this name, as the scene finds it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-semaphore-loop");
const PORT: &str = env!("CARGO_BIN_EXE_isles-port-throughput");
const CONTROL: &str = env!("CARGO_BIN_EXE_isles-control-loop");

/// The maps of the repository.
const MAPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/maps");

/// Returns the JSON that a run of a program with these arguments writes.
fn document(program: &str, line: &str, more: &[&str]) -> Value {
    let scene = Scene::new("rtos");
    let mut command = scene.program(program);
    command.args(words(&format!("--json - --csv /dev/null {line}"))).args(more);
    let ended = ended(command);
    assert_eq!(ended.code, Some(0), "{line} {more:?}: {ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["verification"]["holds"], true, "{line}: {document}");
    document
}

/// Maps these names onto `places` places; the number fixes the map.
fn map_of(names: &[&str], places: u64, number: u64) -> String {
    let mut word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = |name: &&str| {
        word ^= word >> 29;
        word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(number);
        format!("{name}={}", (word >> 33) % places)
    };
    names.iter().map(place).collect::<Vec<_>>().join(",")
}

/// Returns maps of each program's names with the numbers of places that they need: 20 of 1 to 8 places.
fn maps(names: &[&str]) -> Vec<(u64, String)> {
    let places = |number| 1 + number % 8;
    (0..20).map(|number| (places(number), map_of(names, places(number), number))).collect()
}

const MACHINES: [&str; 4] = ["loopback", "threads", "chip:scc", "processes"];

#[test]
fn the_control_loop_has_the_same_values_under_twenty_maps() {
    let names = [
        "sensor",
        "controller",
        "actuator",
        "logger",
        "readings",
        "commands",
        "applied",
        "levels",
        "drives",
        "set point",
        "log",
        "end",
    ];
    let alone = document(CONTROL, "--machine loopback --places 1 --steps 40", &[]);
    for (number, (places, map)) in maps(&names).into_iter().enumerate() {
        let line = format!("--machine {} --places {places} --steps 40", MACHINES[number % 4]);
        let mapped = document(CONTROL, &line, &["--map", &map]);
        assert_eq!(mapped["tasks"], alone["tasks"], "{line} --map {map}");
    }
}

#[test]
fn loops_and_packets_are_the_same_under_twenty_maps() {
    for (number, (places, map)) in maps(&["left", "right", "ping", "pong"]).into_iter().enumerate() {
        let line = format!("--machine {} --places {places} --loops 30", MACHINES[number % 4]);
        let found = document(PROGRAM, &line, &["--map", &map]);
        assert_eq!((&found["left"], &found["right"]), (&Value::from(31), &Value::from(31)), "{line} {map}");
        assert_eq!(found["packets"], 8.0, "{line} --map {map}");
    }
    let alone = document(PORT, "--machine loopback --places 1 --packets 20 --bytes 100", &[]);
    for (number, (places, map)) in maps(&["sender", "receiver", "port"]).into_iter().enumerate() {
        let line = format!("--machine {} --places {places} --packets 20 --bytes 100", MACHINES[number % 4]);
        let found = document(PORT, &line, &["--map", &map]);
        assert_eq!(found["received"], alone["received"], "{line} --map {map}");
    }
}

#[test]
fn a_buffer_that_is_handed_over_carries_the_same_data() {
    let alone = document(PORT, "--machine loopback --places 1 --packets 20 --bytes 100", &[]);
    for (machine, places, memory) in [
        ("loopback", 1, "cached"),
        ("loopback", 2, "through"),
        ("threads", 2, "cached"),
        ("processes", 3, "uncached"),
        ("chip:scc", 2, "uncached"),
        ("chip:scc", 2, "through"),
        ("chip:scc --protocol ring", 2, "cached"),
    ] {
        let line = format!("--machine {machine} --places {places} --packets 20 --bytes 100");
        let found = document(PORT, &line, &["--hand-over", memory]);
        assert_eq!(found["received"], alone["received"], "{line} --hand-over {memory}");
    }
}

#[test]
fn the_control_loop_runs_under_the_maps_of_the_repository() {
    let alone = document(CONTROL, "--machine loopback --places 1 --steps 40", &[]);
    for (name, places) in [("one", 1), ("two", 2), ("four", 4)] {
        let line = format!("--machine threads --places {places} --steps 40");
        let mapped = document(CONTROL, &line, &["--map", &format!("{MAPS}/{name}.toml")]);
        assert_eq!(mapped["tasks"], alone["tasks"], "{name}");
    }
}

#[test]
fn a_loop_on_one_core_is_four_switches_four_requests_and_eight_packets() {
    let found = document(PROGRAM, "--machine chip:scc --places 1 --loops 100", &[]);
    assert_eq!((&found["requests"], &found["packets"]), (&Value::from(4.0), &Value::from(8.0)), "{found}");
    let switches = found["switches"].as_f64().unwrap();
    assert!((4.0..4.1).contains(&switches), "{found}");
    // 2,612 cycles of 533 MHz.
    let time = found["loop_us"].as_f64().unwrap();
    assert!((4.8..5.0).contains(&time), "{found}");
}

#[test]
fn a_loop_between_two_places_is_four_messages() {
    let found = document(PROGRAM, "--machine loopback --places 2 --loops 100", &[]);
    assert_eq!((&found["messages"], &found["packets"]), (&Value::from(4.0), &Value::from(8.0)), "{found}");
}

#[test]
fn the_port_of_one_core_levels_off_near_twenty_megabytes_a_second() {
    let of = |bytes: u32| {
        let line = format!("--machine chip:scc --places 1 --packets 50 --bytes {bytes}");
        document(PORT, &line, &[])["mb_per_s"].as_f64().unwrap()
    };
    let [small, large] = [of(128), of(4096)];
    assert!(small < large && (19.0..20.5).contains(&large), "{small} {large}");
}

#[test]
fn a_wrong_map_is_refused_in_a_line_before_anything_runs() {
    let refusals = [
        (
            PROGRAM,
            "--map left=0,lef=1",
            "--map: no task or hub has the name \"lef\"; allowed: left, ping, pong, right",
        ),
        (PROGRAM, "--map left=0,left=1", "--map: \"left\" has two places; allowed: each name once"),
        (PORT, "--map sender=2 --places 2", "--map: \"sender\" is at place 2; allowed: 0 to 1"),
        (
            PORT,
            "--map sender",
            "--map is \"sender\"; allowed: a file NAME.toml, or name=place pairs separated by commas",
        ),
        (CONTROL, "--map nowhere.toml", "--map is \"nowhere.toml\"; allowed: a file that can be read"),
        (PORT, "--bytes 0", "0 is not in 1..=1048576"),
    ];
    for (program, line, expected) in refusals {
        let scene = Scene::new("rtos");
        let mut command = scene.program(program);
        command.args(words(line));
        let ended = ended(command);
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{line}: {}", ended.stderr);
    }
}

#[test]
fn a_map_comes_from_the_environment_too() {
    let scene = Scene::new("rtos");
    let mut command = scene.program(PROGRAM);
    command.args(words("--machine loopback --places 1 --loops 3")).env("ISLES_MAP", "right=1");
    let ended = ended(command);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ISLES_MAP: \"right\" is at place 1; allowed: 0 to 0"), "{}", ended.stderr);
}
