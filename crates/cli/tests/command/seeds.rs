//! `isles run --seeds` as a user sees it: a row for each seed, the spread, and one line for each refusal.

use crate::scene::{Ended, Scene, words};
use serde_json::Value;

const RUN: &str = "run bc --graph karate --machine chip:scc --places 8";

/// Returns the cells of the line of `text` that begins with `name`.
fn cells<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("{name} in {text}")).split_whitespace().skip(1).collect()
}

#[test]
fn each_seed_is_a_row_with_the_figures_of_its_own_run_and_the_spread_is_theirs() {
    let scene = Scene::new("seeds");
    let ended = scene.run(&words(&format!("{RUN} --seeds 5 --protocol rcce-x10")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut times = Vec::new();
    for seed in ["0", "1", "2", "3", "4"] {
        let alone =
            format!("{RUN} --protocol rcce-x10 --seed {seed} --json /dev/null --csv /dev/null --summary -");
        let alone = scene.run(&words(&format!("{alone} --top 0")));
        let summary: serde_json::Value = serde_json::from_str(&alone.stdout).unwrap();
        let time = summary["predicted_ps"].as_u64().unwrap() as f64 / 1e9;
        let energy = summary["energy"]["models"][0]["total_j"].as_f64().unwrap() * 1e3;
        let (time_cell, energy_cell) = (format!("{time:.6}"), format!("{energy:.6}"));
        assert!((1.0..1e3).contains(&energy), "the unit fits: {energy}");
        let digest = summary["digest"].as_str().unwrap();
        assert_eq!(cells(&ended.stdout, seed), [&time_cell, "ms", &energy_cell, "mJ", digest]);
        times.push(time);
    }
    times.sort_by(f64::total_cmp);
    assert!(times[0] < times[4], "no order of ties matters, so this says nothing: {times:?}");
    let printed = cells(&ended.stdout, "time");
    let expected = [times[0], times[2], times[4]].map(|time| format!("{time:.6}"));
    assert_eq!([printed[0], printed[2], printed[4]], [&expected[0], &expected[1], &expected[2]]);
    let spread: f64 = printed[6].parse().unwrap();
    assert!((spread - (times[4] - times[0]) / times[2] * 100.0).abs() < 1e-3, "{spread} {times:?}");
    assert!(ended.stdout.ends_with("a difference below this spread means nothing.\n"), "{ended:?}");
    scene.assert_nothing_left();
}

#[test]
fn the_summary_of_several_seeds_has_the_settings_the_runs_and_how_far_they_move() {
    let scene = Scene::new("seeds");
    let summary = |more: &str, text: &dyn Fn(&Ended) -> String| -> Value {
        let ended = scene.run(&words(&format!("{RUN} {more}")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&text(&ended)).unwrap_or_else(|fault| panic!("{fault}: {ended:?}"))
    };
    let flags = "--protocol rcce-x10 --rest nap:1us";
    let alone = format!("{flags} --seed 2 --top 0 --json /dev/null --csv /dev/null --summary -");
    let alone = summary(&alone, &|ended| ended.stdout.clone());
    let of_file = summary(&format!("{flags} --seeds 4 --summary s.json"), &|_| scene.result("s.json"));
    let of_output = summary(&format!("{flags} --seeds 4 --summary -"), &|ended| {
        assert!(ended.stderr.contains("seed            time          energy  digest\n"), "{ended:?}");
        ended.stdout.clone()
    });
    assert_eq!(of_file, of_output);
    assert_eq!(of_file["schema"], "isles.seeds.1");
    for (name, value) in of_file["settings"].as_object().unwrap() {
        assert_eq!(value, &alone[name], "{name}");
    }
    assert_eq!(
        (&of_file["settings"]["rest"], &of_file["settings"]["places"]),
        (&"nap:1us".into(), &8.into())
    );
    let third = &of_file["seeds"][2];
    assert_eq!((&third["seed"], &third["digest"]), (&2.into(), &alone["digest"]));
    assert_eq!(
        (&third["predicted_ps"], &third["energy_j"]),
        (&alone["predicted_ps"], &alone["energy"]["models"][0]["total_j"])
    );
    for name in ["predicted_ps", "energy_j"] {
        let runs = of_file["seeds"].as_array().unwrap().iter();
        let mut values: Vec<f64> = runs.map(|run| run[name].as_f64().unwrap()).collect();
        values.sort_by(f64::total_cmp);
        let span = &of_file[name];
        let printed = ["least", "median", "most", "spread"].map(|key| span[key].as_f64().unwrap());
        let median = (values[1] + values[2]) / 2.0;
        assert_eq!(printed, [values[0], median, values[3], (values[3] - values[0]) / median]);
    }
}

/// Compares all output; a digest covers only the events that the world records.
#[test]
fn one_seed_says_the_same_to_the_last_byte_in_another_process() {
    let run = |padding: &str| {
        let scene = Scene::new("seeds");
        let flags = "--protocol rcce-x10 --seed 3 --json - --csv r.csv --links l.csv --summary s.json";
        let mut command = scene.isles(&words(&format!("{RUN} {flags} --report chip")));
        // Another environment moves the stack, and addresses are random, so results that depend on them would differ.
        let ended = crate::scene::ended({
            command.env("ISLES_TEST_PADDING", padding);
            command
        });
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let printed: Vec<_> = ended.stderr.lines().filter(|line| !line.contains("on this host")).collect();
        assert!(printed.len() > 10 && !ended.stdout.is_empty(), "{ended:?}");
        let mut summary: Value = serde_json::from_str(&scene.result("s.json")).unwrap();
        summary.as_object_mut().unwrap().retain(|name, _| !name.starts_with("host"));
        let mut result: Value = serde_json::from_str(&ended.stdout).unwrap();
        // Memory use on this host varies by pages.
        result["run"].as_object_mut().unwrap().remove("memory_peak").unwrap();
        (result, printed.join("\n"), summary, scene.result("r.csv"), scene.result("l.csv"))
    };
    assert_eq!(run(""), run(&"x".repeat(5_000)));
}

#[test]
fn what_seeds_cannot_go_with_is_refused_before_anything_runs() {
    let scene = Scene::new("seeds");
    for (arguments, says) in [
        ("--seeds 1", "--seeds is \"1\"; allowed: a whole number from 2 to 10000"),
        ("--seeds -3", "--seeds is \"-3\"; allowed: a whole number"),
        ("--seeds few", "--seeds is \"few\"; allowed: a whole number"),
        (
            "--seeds 3 --seed 7",
            "--seed is \"7\"; allowed: nothing with --seeds, because it makes several \
             runs",
        ),
        ("--seeds 3 --links l.csv", "--links is \"l.csv\"; allowed: nothing with --seeds"),
        ("--seeds 3 --summary no/s.json", "--summary is \"no/s.json\"; allowed: - or a file that can be"),
        ("--seeds 3 --report chip", "--report is \"chip\"; allowed: nothing with --seeds"),
        (
            "--seeds 3 --json j.json",
            "--json is \"j.json\"; allowed: nothing with --seeds, because its runs show no results",
        ),
        ("--seeds 3 --work host:20", "--work is \"host:20\"; allowed: said with --seeds"),
        (
            "--seeds 3 --placement 0-3",
            "--placement is \"0-3\"; allowed: at least 8 cores, one for each place",
        ),
    ] {
        let line = scene.run(&words(&format!("{RUN} {arguments}"))).refusal().to_owned();
        assert!(line.starts_with("error: ") && line.contains(says), "{arguments}: {line}");
    }
    let nowhere = scene.run(&words("run bc --graph nosuch --machine chip:scc --seeds 3"));
    assert!(nowhere.refusal().contains("`nosuch`"), "{nowhere:?}");
    let line = scene.run(&words("run bc --machine threads --seeds 3")).refusal().to_owned();
    assert_eq!(
        line,
        "error: --machine is \"threads\"; allowed: a modelled chip such as chip:scc with --seeds"
    );
    scene.assert_nothing_left();
}

#[test]
fn a_program_of_somebody_is_run_with_several_seeds_as_an_application_is() {
    let scene = Scene::new("seeds");
    let by_name = scene.run(&words(&format!("{RUN} --seeds 3")));
    assert_eq!(by_name.code, Some(0), "{by_name:?}");
    let own =
        ["--", crate::PROGRAM, "run", "bc", "--graph", "karate", "--json", "/dev/null", "--csv", "/dev/null"];
    let launch = words("launch --machine chip:scc --places 8 --seeds 3");
    let by_program = scene.run(&[&launch[..], &own].concat());
    assert_eq!((by_program.code, by_program.stdout), (Some(0), by_name.stdout), "{}", by_program.stderr);
    let refused = |more: &str| scene.run(&[&words(more)[..], &["--", "true"]].concat()).refusal().to_owned();
    assert_eq!(
        refused("launch --machine chip:scc --places 8 --seeds 3"),
        "error: the program is \"true\"; allowed: a program that is built with Isles and starts a run; this one \
         ended without starting one"
    );
    assert!(
        refused("launch --machine threads --seeds 3")
            .contains("--machine is \"threads\"; allowed: a modelled chip")
    );
    assert!(
        refused("launch --machine chip:scc --seeds 1")
            .contains("--seeds is \"1\"; allowed: a whole number from 2")
    );
    scene.assert_nothing_left();
}
