//! `isles calibrate` writes a chip on which messages take the same time as between the places.

use crate::scene::{Scene, words};
use serde_json::Value;

#[test]
fn the_file_is_a_chip_that_is_like_the_places() {
    for machine in ["threads", "processes"] {
        let scene = Scene::new("calibrate");
        let file = scene.path("here.toml");
        let out = file.to_str().unwrap();
        let ended = scene
            .run(&words(&format!("calibrate --machine {machine} --places 2 --force --json --out {out}")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found: Value = serde_json::from_str(&ended.stdout).unwrap();
        let rows = found.as_array().unwrap();
        assert_eq!(rows.len(), 9, "a row for each figure of the one way: {found}");
        for row in rows {
            let [least, median, most] =
                ["least_ns", "measured_ns", "most_ns"].map(|key| row[key].as_f64().unwrap());
            assert!(0.0 < least && least <= median && median <= most, "of five rounds: {row}");
        }
        assert!(
            scene.result("here.toml").contains("\n# The rounds of measuring differ by up to a factor of ")
        );
        let figures = |figure: &str| {
            let row = rows.iter().find(|row| row["figure"] == figure).unwrap();
            assert_eq!(row["way"], "near", "{row}");
            ["measured_ns", "chip_ns"].map(|key| row[key].as_f64().unwrap())
        };
        // The chip reproduces this figure whatever the places measured; the deviation of the others depends on the
        // load of this host.
        let [latency, on_chip] = figures("empty at!");
        assert!(latency > 0.0 && (on_chip / latency - 1.0).abs() < 0.05, "{found}");
        let [_, long_on_chip] = figures("2097152 bytes");
        assert!(long_on_chip > on_chip, "{found}");
        let checked = scene.run(&words(&format!("chip check {out}")));
        assert!(checked.stdout.contains("no fault") && checked.stdout.contains("64 cores"), "{checked:?}");
        let ran = scene.run(&words(&format!("run pi --machine chip:{out} --places 6 --work host:1")));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("predicted on 6 cores with packets"), "{ran:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_said_in_one_line() {
    let scene = Scene::new("calibrate");
    for (line, says) in [
        ("calibrate --machine chip:scc", "--machine is \"chip:scc\"; allowed: threads, processes, mpi"),
        ("calibrate --places 1", "--places is 1; allowed: 2 or more"),
        (
            "calibrate --machine threads -n 2 --hosts 4",
            "--hosts is 4; allowed: 1, because all measured places",
        ),
        (
            "calibrate --machine threads -n 2 --places-per-host 0",
            "--places-per-host is 0; allowed: 1 or more",
        ),
        (
            "calibrate --machine threads -n 2 --out /no/such/folder/x.toml",
            "--out is \"/no/such/folder/x.toml\"",
        ),
    ] {
        let ended = scene.run(&words(line));
        let refusal = ended.refusal();
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
}

#[test]
fn the_example_is_a_chip_that_runs_run_on() {
    let scene = Scene::new("calibrate-example");
    let file = scene.file("cluster.toml", include_str!("../../../../chips/cluster.toml"));
    let file = file.to_str().unwrap();
    let checked = scene.run(&words(&format!("chip check {file}")));
    assert!(checked.stdout.contains("no fault") && checked.stdout.contains("6 cores"), "{checked:?}");
    let line =
        format!("run bc --graph karate --machine chip:{file} --places 2 --placement 0,2 --work host:1 --csv");
    let ran = scene.run(&[&words(&line)[..], &["/dev/null", "--json", "/dev/null"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("predicted on 2 cores with packets"), "{ran:?}");
}
