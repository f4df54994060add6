//! Exports of a run on a modelled chip, as a user sees them: files that agree with each other, and plain refusals.

use crate::scene::{Ended, Running, Scene, ended, kill, until, words};
use serde_json::Value;

const EXPORTS: [(&str, &str); 7] = [
    ("--summary", "s.json"),
    ("--links", "l.csv"),
    ("--traffic", "t.csv"),
    ("--heat", "h.svg"),
    ("--trace", "t.perfetto-trace"),
    ("--folded", "f.txt"),
    ("--joules", "j.txt"),
];

const RUN: [&str; 11] = [
    "run",
    "bc",
    "--graph",
    "karate",
    "--machine",
    "chip:scc",
    "--places=8",
    "--json",
    "/dev/null",
    "--csv",
    "/dev/null",
];

/// Runs a program on 8 cores with more arguments.
fn run(scene: &Scene, more: &[&str]) -> Ended {
    scene.run(&[&RUN[..], more].concat())
}

fn refuse(more: &[&str]) -> String {
    let scene = Scene::new("exports");
    let ended = run(&scene, more);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    scene.assert_nothing_left();
    ended.stderr.trim_end().to_owned()
}

#[test]
fn the_report_leaves_out_what_nothing_was_spent_on_and_the_summary_does_not() {
    let scene = Scene::new("spendings");
    let names = ["working", "fetching", "handling", "copying", "polling", "waiting", "sleeping", "measured"];
    let printed = |more: &[&str]| {
        let ended = run(&scene, &[&["--top", "0", "--report", "chip", "--summary", "-"], more].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
        let ledgers = [&summary["ledger_ps"], &summary["energy"]["by_spending_j"]];
        for (line, ledger) in ["cores           ", "  by category   "].into_iter().zip(ledgers) {
            let line = ended.stderr.lines().find_map(|text| text.strip_prefix(line)).unwrap();
            let printed: Vec<&str> = line.split(", ").filter_map(|part| part.split(' ').next()).collect();
            let spent = names.into_iter().filter(|name| ledger[name].as_f64().unwrap() > 0.0);
            assert_eq!(printed, spent.collect::<Vec<_>>(), "{ended:?}");
        }
        names.into_iter().filter(|name| ledgers[0][name] == 0).collect::<Vec<_>>()
    };
    assert_eq!(printed(&[]), ["fetching", "sleeping", "measured"]);
    assert_eq!(printed(&["--rest", "nap:1us"]), ["fetching", "measured"]);
}

#[test]
fn a_run_writes_all_that_it_can_and_has_the_digest_of_one_that_writes_nothing() {
    let scene = Scene::new("exports");
    let plain = run(&scene, &["--report", "chip"]);
    let flags: Vec<&str> = EXPORTS.iter().flat_map(|(flag, file)| [*flag, *file]).collect();
    let all = run(&scene, &[&flags[..], &["--report", "chip"]].concat());
    assert_eq!((plain.code, all.code), (Some(0), Some(0)), "{all:?}");
    let line = |ended: &Ended, name: &str| {
        let found = ended.stderr.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {ended:?}")).to_owned()
    };
    assert_eq!(line(&plain, "digest"), line(&all, "digest"));

    let summary: Value = serde_json::from_str(&scene.result("s.json")).unwrap();
    assert!(line(&all, "digest").ends_with(summary["digest"].as_str().unwrap()));
    assert_eq!((summary["chip"]["name"].as_str(), summary["places"].as_u64()), (Some("scc"), Some(8)));
    assert_eq!(summary["by_place"].as_array().unwrap().len(), 8);
    assert!(line(&all, "how far off").contains("by the errors stated in the chip's file"), "{all:?}");
    let speed: Vec<String> = line(&all, "speed").split_whitespace().map(str::to_owned).collect();
    assert!(speed[1].parse::<u64>().is_ok_and(|events| events > 0), "a short run has a speed, too: {all:?}");
    assert_eq!(speed[2..], ["events", "a", "second", "on", "this", "host"]);
    let peak = line(&all, "  peak ");
    assert!(peak.contains(" W over 1 µs from ") && peak.ends_with(" ms"), "{peak}");
    let band = |least: &str, predicted: &Value, most: &str| {
        let figures = [&summary["bands"][least], predicted, &summary["bands"][most]];
        let figures = figures.map(|figure| figure.as_f64().unwrap());
        assert!(figures[0] < figures[1] && figures[1] < figures[2], "{figures:?}");
    };
    band("time_least_ps", &summary["predicted_ps"], "time_most_ps");
    for model in summary["energy"]["models"].as_array().unwrap() {
        band("energy_least_j", &model["total_j"], "energy_most_j");
        band("mean_least_w", &model["mean_w"], "mean_most_w");
    }
    let rows = |file: &str, column: usize| -> u64 {
        let text = scene.result(file);
        text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(Some(rows("l.csv", 8)), summary["flit_hops"].as_u64());
    assert_eq!(Some(rows("t.csv", 2)), summary["messages"].as_u64());
    assert_eq!(Some(rows("t.csv", 3)), summary["bytes"].as_u64());
    let map = scene.result("h.svg");
    assert!(map.contains("chip:scc with 8 places") && map.contains("the busiest "), "{map}");
    // Eight places are on the first four tiles; the others have a dash.
    assert!(map.contains("<title>tile 3: core 6, place 6: ") && map.contains("; core 7, place 7: "), "{map}");
    assert_eq!(map.matches(">\u{2013}</text>").count(), 20, "{map}");
    assert!(scene.result("f.txt").contains("chip:scc;tile 3;core 7;waiting "));
    assert!(scene.result("j.txt").contains("chip:scc;tile 3;core 7;waiting "));
    assert_eq!(summary["energy"]["models"][0]["name"].as_str(), Some("manyman"));
    let drawn = |key: &str| summary["energy"]["models"][0][key].as_f64().unwrap();
    let places: f64 =
        summary["by_place"].as_array().unwrap().iter().map(|place| place["energy_j"].as_f64().unwrap()).sum();
    assert!((places - drawn("places_j")).abs() < 1e-9 * places && drawn("total_j") > places, "{summary}");
    let trace = std::fs::read(scene.path("t.perfetto-trace")).unwrap();
    assert!(trace.windows(15).any(|bytes| bytes == b"core 7, place 7"));
}

#[test]
fn a_placement_stands_in_all_that_is_said_of_a_run_and_as_many_places_run_as_it_has_cores() {
    let scene = Scene::new("exports");
    let line =
        "run bc --graph karate --machine chip:scc --placement 47,2,10-13 --json /dev/null --csv /dev/null";
    let files = "--report chip --summary s.json --trace t.perfetto-trace --folded f.txt --joules j.txt";
    let ended = scene.run(&words(&format!("{line} {files}")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let settings = "533/800/800, placement 47,2,10-13";
    assert!(
        ended.stderr.contains(&format!("predicted on 6 cores with doorbell at {settings}, ")),
        "{ended:?}"
    );
    assert!(ended.stderr.contains(&format!("\nsettings        {settings}\n")), "{ended:?}");
    let summary: Value = serde_json::from_str(&scene.result("s.json")).unwrap();
    assert_eq!((summary["placement"].as_str(), summary["places"].as_u64()), (Some("47,2,10-13"), Some(6)));
    let by_place = summary["by_place"].as_array().unwrap().iter();
    let found: Vec<[u64; 3]> =
        by_place.map(|place| ["place", "core", "tile"].map(|key| place[key].as_u64().unwrap())).collect();
    assert_eq!(found, [[0, 47, 23], [1, 2, 1], [2, 10, 5], [3, 11, 5], [4, 12, 6], [5, 13, 6]]);
    let stacks = |file: &str| {
        let text = scene.result(file);
        let cores = text.lines().filter(|line| line.contains(";working "));
        let mut cores: Vec<String> = cores.map(|line| line.split(';').nth(2).unwrap().to_owned()).collect();
        cores.sort();
        cores
    };
    let cores = ["core 10", "core 11", "core 12", "core 13", "core 2", "core 47"];
    assert_eq!(
        (stacks("f.txt"), stacks("j.txt")),
        (cores.map(str::to_owned).into(), cores.map(str::to_owned).into())
    );
    let trace = std::fs::read(scene.path("t.perfetto-trace")).unwrap();
    for name in ["core 47, place 0", "core 13, place 5", "placement 47,2,10-13"] {
        assert!(trace.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name}");
    }
}

#[test]
fn a_program_that_is_launched_writes_too_and_a_variable_says_the_same() {
    let scene = Scene::new("exports");
    let own = crate::PROGRAM;
    let launch = ["launch", "--machine", "chip:scc", "--places", "4", "--summary", "l.json", "--", own];
    let bc = ["run", "bc", "--graph", "karate", "--json", "/dev/null", "--csv", "/dev/null"];
    let launched = scene.run(&[&launch[..], &bc].concat());
    assert_eq!(launched.code, Some(0), "{launched:?}");
    let mut command = scene.isles(&[&bc[..], &["--machine", "chip:scc", "--places", "4"]].concat());
    command.env("ISLES_CHIP_SUMMARY", "v.json");
    let said = ended(command);
    assert_eq!(said.code, Some(0), "{said:?}");
    let digest = |file: &str| serde_json::from_str::<Value>(&scene.result(file)).unwrap()["digest"].clone();
    assert!(digest("l.json").is_string());
    assert_eq!(digest("l.json"), digest("v.json"));
}

#[test]
fn a_summary_on_standard_output_stands_there_alone() {
    let scene = Scene::new("exports");
    let ended = run(&scene, &["--summary", "-"]);
    let summary: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(summary["schema"].as_str(), Some("isles.chip-summary.1"));
    assert!(ended.stderr.contains("231.0714"), "{ended:?}");
}

#[test]
fn what_cannot_be_written_is_refused_in_one_line_before_anything_runs() {
    for (flag, _) in EXPORTS {
        let line = refuse(&[flag, "no/such/folder"]);
        assert!(line.starts_with(&format!("error: {flag} is \"no/such/folder\"; allowed: ")), "{line}");
        assert!(
            line.ends_with("a file that can be written (No such file or directory (os error 2))"),
            "{line}"
        );
        assert!(refuse(&[flag, "/"]).contains(&format!("{flag} is \"/\"; allowed: ")));
        assert!(refuse(&[flag, ""]).contains(&format!("{flag} is \"\"; allowed: ")));
    }
    assert_eq!(
        refuse(&["--trace", "-"]),
        r#"error: --trace is "-"; allowed: a file, not -, because it is binary"#
    );
    assert_eq!(
        refuse(&["--links", "x", "--traffic", "x"]),
        r#"error: --traffic is "x"; allowed: a file other than that of --links"#
    );
    assert!(refuse(&["--summary", "-", "--links", "-"]).contains("--links is \"-\""));
    assert_eq!(
        refuse(&["--links", "x", "--traffic", "./x"]),
        r#"error: --traffic is "./x"; allowed: a file other than that of --links"#
    );
    let scene = Scene::new("exports");
    for (trace, json) in [("d", "./d"), ("./d", "d")] {
        let ended =
            scene.run(&[&RUN[..7], &["--trace", trace, "--json", json, "--csv", "/dev/null"]].concat());
        let line = format!("error: --json is {json:?}; allowed: a file other than that of --trace");
        assert_eq!((ended.code, ended.stderr.trim_end()), (Some(2), line.as_str()), "{ended:?}");
        scene.assert_nothing_left();
    }
    let ended = scene.run(&[&RUN[..7], &["--csv", "/dev/null", "--summary", "out/bc-karate.json"]].concat());
    assert!(ended.refusal().starts_with("error: --summary is \"out/bc-karate.json\"; allowed: - or a file"));
    std::fs::create_dir(scene.path("out")).unwrap();
    let ended = scene.run(&[&RUN[..7], &["--csv", "/dev/null", "--summary", "out/bc-karate.json"]].concat());
    let line = "error: --json is not given, and the default is \"out/bc-karate.json\"; allowed: a file \
         other than that of --summary";
    assert_eq!(ended.refusal(), line);
}

#[test]
fn on_another_machine_there_is_nothing_to_write() {
    let scene = Scene::new("exports");
    let ended = scene.run(&["run", "bc", "--graph", "karate", "--machine", "threads", "--heat", "h.svg"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    let line = r#"error: --heat is "h.svg"; allowed: nothing with machine threads (not a modelled chip)"#;
    assert_eq!(ended.stderr.trim_end(), line);
}

#[test]
fn a_chip_too_large_for_a_picture_is_refused_before_anything_runs() {
    let scene = Scene::new("exports");
    let run = "run bc --graph karate --machine chip:bluegene-p --places 4 --heat h.svg";
    let ended = scene.run(&run.split(' ').collect::<Vec<_>>());
    let line = "error: --heat is \"h.svg\"; allowed: nothing with chip:bluegene-p: the chip has 32 x 32 x 32 tiles; \
                allowed in a drawing: at most 64 x 64 x 8";
    assert_eq!((ended.refusal(), ended.stdout.as_str()), (line, ""));
}

#[test]
fn a_device_that_is_full_fails_the_run_and_not_the_other_files() {
    let scene = Scene::new("exports");
    for flag in ["--summary", "--trace"] {
        let ended = run(&scene, &[flag, "/dev/full", "--links", "l.csv"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("error: cannot write /dev/full: No space left"), "{ended:?}");
        assert!(scene.result("l.csv").lines().count() > 70);
    }
}

#[test]
fn a_run_that_is_stopped_leaves_no_trace_that_looks_whole() {
    let scene = Scene::new("exports");
    scene.leave("t", "old");
    let line = "run bc --rmat small --machine chip:scc --places 8 --trace t --json s --csv /dev/null";
    let running = Running::start(scene.isles(&words(line)));
    let parts = || {
        let entries = std::fs::read_dir(scene.path(".")).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".part")).collect::<Vec<_>>()
    };
    until("the trace has grown", || {
        parts().iter().any(|name| std::fs::metadata(scene.path(name)).is_ok_and(|found| found.len() > 10_000))
    });
    kill(running.child.id() as i32);
    assert_eq!(running.finish().code, None);
    assert_eq!(scene.result("t"), "old");
    assert!(!scene.path("s").exists());
    assert_eq!(parts().len(), 1);
}
