//! `isles run pipeline`: the same objects on every machine whatever is resized when, a check, files, refusals in a
//! line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::{Scene, words};
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-pipeline");

/// A scene that takes little time.
const SMALL: &str = "--width 128 --height 64 --objects 1";

/// Returns the JSON output of `isles run pipeline` with these arguments.
fn document(line: &str) -> Value {
    let scene = Scene::new("pipeline");
    let ended = scene.run(&words(&format!("--json - --csv /dev/null {SMALL} {line}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_objects_are_the_same_on_every_machine_whatever_is_resized_when() {
    let one = document("--frames 24 --places 1 --machine threads --verify");
    assert_eq!(one["verification"]["holds"], true, "{one}");
    assert_eq!(one["frames"].as_array().unwrap().len(), 24);
    for (line, resizes) in [
        ("--places 2 --machine threads --resize 1@8,2@16", 2),
        ("--places 3 --machine processes --cores 1 --resize 3@5,2@6,1@7,3@20", 4),
        ("--places 18 --machine loopback --resize 9@3,18@12", 2),
        ("--places 18 --machine chip:scc --cores 4 --resize 18@10", 1),
        ("--places 3 --machine threads --checkpoint 5 --resize 1@11", 1),
        ("--places 24 --machine chip:scc --replicas 4 --cores 20 --resize 24@10", 1),
        ("--places 4 --machine processes --replicas 2 --cores 2 --resize 4@5,3@9", 2),
    ] {
        let other = document(&format!("--frames 24 {line}"));
        assert_eq!((&other["frames"], &other["bad_pixels"]), (&one["frames"], &one["bad_pixels"]), "{line}");
        // The stages may also have been recombined by what they cost.
        let changes = other["pipeline"]["resizes"].as_array().unwrap();
        let changed = changes.iter().filter(|change| change["from"] != change["to"]).count();
        let stages = other["pipeline"]["stages"].as_array().unwrap();
        assert_eq!(stages.len(), 18);
        if line.contains("--places 24") {
            let replicas = |stage: &Value| stage["places"].as_array().unwrap().len();
            assert_eq!((replicas(&stages[0]), replicas(&stages[6]) > 1), (1, true), "{stages:?}");
            continue; // which places are used depends on the costs known by then
        }
        assert_eq!(changed, resizes, "{line}: {changes:?}");
    }
}

#[test]
fn replicas_of_two_slow_stages_make_a_pipeline_on_the_modelled_chip_that_many_times_faster() {
    // The two stages that match images take ten times as long as each other one, so their replicas set the rate.
    let cost_of = |stage| if matches!(stage, 6 | 12) { "2000000" } else { "200000" };
    let costs = (0..18).map(cost_of).collect::<Vec<_>>().join(",");
    let seconds = |replicas: u32| {
        let line = format!("--machine chip:scc --places 48 --frames 200 --replicas {replicas}");
        document(&format!("{line} --stage-costs {costs}"))["run"]["seconds"].as_f64().unwrap()
    };
    let one = seconds(1);
    for replicas in [2, 4, 8] {
        let (speed_up, limit) = (one / seconds(replicas), f64::from(replicas));
        assert!((0.85 * limit..=limit).contains(&speed_up), "{replicas} replicas: {speed_up} times");
    }
}

#[test]
fn a_second_pipeline_comes_and_goes_and_both_find_what_they_would_alone() {
    let alone = document("--frames 24 --places 1 --machine threads");
    let other = document("--frames 8 --places 1 --machine threads --random-seed 2");
    for line in ["--places 2 --machine threads", "--places 4 --machine loopback --objective fairness"] {
        let both = document(&format!("--frames 24 --apps 2 {line} --verify"));
        assert_eq!(
            (&both["frames"], &both["second"]["frames"]),
            (&alone["frames"], &other["frames"]),
            "{line}"
        );
        assert_eq!(both["verification"]["holds"], true);
        let cores = ["cores", "cores_of_first"].map(|name| both["second"][name].as_u64().unwrap());
        assert!(cores.iter().all(|cores| *cores > 0) && cores.iter().sum::<u64>() <= 4, "{cores:?}");
    }
}

#[test]
fn a_run_lasts_until_its_resizes_have_happened() {
    let found = document("--places 2 --machine threads --resize 1@50,2@100");
    assert_eq!(found["frames"].as_array().unwrap().len(), 120);
    let found = document("--places 2 --machine threads --resize 1@5");
    assert_eq!(found["frames"].as_array().unwrap().len(), 60);
}

#[test]
fn a_run_tells_what_was_found_and_draws_the_last_frame() {
    let scene = Scene::new("pipeline-files");
    let line = format!("{SMALL} --frames 12 --places 2 --cores 1 --resize 2@4 --png depth.png --verify");
    let ended = scene.run(&words(&line));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heading =
        "12 frames of two pairs of 128 by 64 pixels, 1 object, 18 stages on 1 core; 2 places (processes)\n";
    assert!(ended.stdout.starts_with(heading), "{ended:?}");
    for printed in [
        "\nstages   capture 1 + capture 2",
        "\nresize   1 to 2 groups at frame 4: ",
        "; compared with the same stages in a plain loop\n",
    ] {
        assert!(ended.stdout.contains(printed), "{printed}: {ended:?}");
    }
    assert!(scene.result("out/pipeline.csv").starts_with("frame,object,x,y,disparity\n"));
    assert!(std::fs::read(scene.path("depth.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn what_cannot_be_run_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("pipeline-refused");
    for (line, expected) in [
        ("--places 2 --cores 0", "--cores is 0; allowed: 1 to 2, for 18 stages and 2 places"),
        ("--places 2 --cores 3", "--cores is 3; allowed: 1 to 2, for 18 stages and 2 places"),
        ("--replicas 0", "0 is not in 1..=64"),
        ("--places 2 --resize 0@5", "--resize 0@5: allowed: 1 to 2 cores"),
        ("--places 2 --resize 3@5", "--resize 3@5: allowed: 1 to 2 cores"),
        ("--places 2 --frames 60 --resize 1@60", "--resize 1@60: allowed: frames 1 to 59"),
        ("--places 2 --resize 1@1000000", "--resize 1@1000000: allowed: frames 1 to 999999"),
        ("--places 2 --resize 1", "--resize 1: allowed: cores and frame, such as 10@100"),
        ("--places 2 --resize 1@9,2@8", "--resize: the frames must increase"),
        ("--places 1 --apps 2", "--apps is 2; allowed: at most one for each of the 1 places"),
        ("--places 2 --apps 2 --frames 5", "--frames is 5; allowed with --apps 2: at least 12"),
        ("--places 2 --stage-costs 1,2", "--stage-costs: allowed: 18 numbers"),
        ("--images nowhere", "nowhere/motorcycle_left.png: No such file or directory"),
        ("--width 100", "100 is not in 128..=4096"),
        ("--checkpoint 0", "0 is not in 1.."),
    ] {
        let ended = scene.run(&words(line));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}
