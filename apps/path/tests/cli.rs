//! `isles run path`: the same route on every machine, with workers that block or sleep; files, and refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-path");

/// A small sea, which is planned quickly.
const SMALL: &str = "--columns 9 --rows 7 --spacing 4 --piece 100";

/// Returns the JSON output of `isles run path` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("path");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Seconds of a run on the modelled SCC by RCKMPI.
fn seconds(places: u32, line: &str) -> f64 {
    let line = format!("{SMALL} --machine chip:scc --protocol sections --places {places} {line}");
    document(&line)["run"]["seconds"].as_f64().unwrap()
}

#[test]
fn the_route_is_the_same_on_every_machine_whether_workers_block_or_sleep() {
    let one = document(&format!("{SMALL} --places 1 --machine threads --verify"));
    assert_eq!(one["verification"]["holds"], true, "{one}");
    assert!(one["legs"].as_array().unwrap().len() > 3, "{one}");
    for (machine, places) in [("threads", 3), ("processes", 2), ("loopback", 5), ("chip:scc", 22)] {
        for idle in ["block", "sleep"] {
            let other = document(&format!("{SMALL} --idle {idle} --places {places} --machine {machine}"));
            for part in ["arrival", "length", "edges", "dives", "evaluations", "legs"] {
                assert_eq!(other[part], one[part], "{part}, {idle}, {places} places, {machine}");
            }
        }
    }
}

/// The steps of the paper: a round more or less of twenty dives.
#[test]
fn on_the_modelled_chip_two_cores_are_slower_than_one_and_twenty_one_are_best() {
    let [one, two, eleven, twelve, twenty, best, more] =
        [1, 2, 11, 12, 20, 21, 22].map(|places| seconds(places, "--case jet"));
    assert!(two > one, "{one} {two}");
    assert!((twelve / eleven - 1.0).abs() < 0.02, "{eleven} {twelve}");
    assert!(best < 0.7 * twenty && best < more, "{twenty} {best} {more}");
}

#[test]
fn a_worker_that_sleeps_pays_at_the_first_receive_and_at_the_end() {
    let [blocks, sleeps] =
        ["block", "sleep --nap 50000"].map(|idle| seconds(30, &format!("--case jet --idle {idle}")));
    assert!(sleeps > blocks + 0.05 && sleeps < blocks + 0.11, "{blocks} {sleeps}");
}

#[test]
fn the_case_of_zermelo_names_its_optimum_and_the_route_is_drawn() {
    let scene = Scene::new("path-zermelo");
    let line = "--case zermelo --places 2 --machine threads --verify --svg route.svg --geojson route.geojson";
    let ended = scene.run(&words(line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\noptimum   27.47 h by Zermelo; the route is "), "{ended:?}");
    assert!(ended.stdout.contains("; compared with the search on one processor\n"), "{ended:?}");
    let collection: Value = serde_json::from_str(&scene.result("route.geojson")).unwrap();
    let features = collection["features"].as_array().unwrap();
    assert_eq!(features[0]["geometry"]["type"], "LineString");
    let points = features[0]["geometry"]["coordinates"].as_array().unwrap().len();
    assert_eq!(
        (features.len(), features[points]["properties"]["arrival_s"].as_u64()),
        (points + 1, Some(100_082))
    );
    assert!(scene.result("route.svg").contains("<polyline points="));
    let table = scene.result("out/path-zermelo.csv");
    assert_eq!(table.lines().count(), points + 1);
}

#[test]
fn a_program_that_ends_at_once_has_no_route() {
    let one = document("--noop --places 4 --machine chip:scc");
    assert_eq!((&one["arrival"], &one["edges"]), (&Value::Null, &Value::from(0)));
    assert!(one["run"]["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_cannot_be_planned_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("path-refused");
    let text = scene.file("text.nc", "no netCDF");
    let not_netcdf = format!("--currents {}", text.display());
    for (line, expected) in [
        ("--from 26,10", "--from is 26,10; allowed: a position in water, outside obstacles"),
        ("--to 90,0", "--to is 90,0; allowed: X,Y in kilometres from 0,0 to 48,24"),
        ("--to x", "--to is x; allowed: X,Y in kilometres"),
        ("--obstacle 1,2", "--obstacle is 1,2; allowed: X,Y,R in kilometres, with R above 0"),
        ("--obstacle 1,2,-3", "--obstacle is 1,2,-3; allowed: X,Y,R in kilometres, with R above 0"),
        ("--piece 0", "--piece is 0; allowed: 1 to 10000"),
        ("--case storm", "--case is \"storm\"; allowed: uniform, zermelo, jet"),
        ("--currents nowhere.nc", "nowhere.nc"),
        (not_netcdf.as_str(), "not a netCDF file of the classic format"),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}
