//! `isles sweep` as a user sees it: a table, a choice with its reason, and one line for each refusal.

use crate::scene::{Ended, Running, Scene, busy_ns, kill, until, words};

/// A sweep of six settings that takes a second or two.
const SMALL: &str = "sweep --app bc --graph karate --places 1,8 --dividers 2,3,16";

/// Processor time after which a run has read its arguments and computes.
const COMPUTING_NS: u64 = 50_000_000;

fn sweep(more: &str) -> (Scene, Ended) {
    let scene = Scene::new("sweep");
    let ended = scene.run(&words(&format!("{SMALL} {more}")));
    (scene, ended)
}

/// Returns the cells of a column of a CSV.
fn column(csv: &str, name: &str) -> Vec<String> {
    // Every other part of a line is between quotes, where a comma does not separate cells.
    let cells = |line: &str| -> Vec<String> {
        let parts = line.split('"').enumerate();
        let parts =
            parts.map(|(at, part)| if at % 2 == 0 { part.replace(',', "\n") } else { part.to_owned() });
        parts.collect::<String>().split('\n').map(str::to_owned).collect()
    };
    let mut lines = csv.lines();
    let number = cells(lines.next().unwrap()).iter().position(|other| other == name).unwrap();
    lines.map(|line| cells(line)[number].clone()).collect()
}

fn numbers(csv: &str, name: &str) -> Vec<f64> {
    column(csv, name).iter().map(|number| number.parse().unwrap()).collect()
}

fn line<'a>(text: &'a str, begins: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(begins));
    found.unwrap_or_else(|| panic!("{begins:?} in {text}"))
}

#[test]
fn the_choice_without_a_limit_is_the_least_product_of_energy_and_time_of_all_that_were_tried() {
    let (scene, ended) = sweep("--csv all.csv");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let csv = scene.result("all.csv");
    assert_eq!(column(&csv, "places"), ["1", "1", "1", "8", "8", "8"]);
    assert_eq!(column(&csv, "governor")[..3], ["fixed:2", "fixed:3", "fixed:16"]);
    assert_eq!(numbers(&csv, "voltage_v")[..3], [1.1625, 0.85625, 0.65625]);
    let (times, joules) = (numbers(&csv, "time_s"), numbers(&csv, "energy_j"));
    // One place only computes, so its time is proportional to the divider.
    assert!(
        (times[2] / times[0] - 8.0).abs() < 0.01 && (times[1] / times[0] - 1.5).abs() < 0.01,
        "{times:?}"
    );
    let products: Vec<f64> = times.iter().zip(&joules).map(|(time, energy)| time * energy).collect();
    let least = products.iter().copied().reduce(f64::min).unwrap();
    let chosen = products.iter().position(|product| *product == least).unwrap();
    let clock = ["800 MHz", "533 MHz", "100 MHz"][chosen % 3];
    let choice = line(&ended.stdout, "choice: ");
    assert!(
        choice.starts_with(&format!("{} place", [1, 8][chosen / 3])) && choice.contains(clock),
        "{ended:?}"
    );
    assert!(line(&ended.stdout, "reason: ").starts_with(
        "the lowest product of energy and time of the 6 \
             settings"
    ));
    assert!(line(&ended.stdout, "caveat: ").contains("by cichowski"), "{ended:?}");
}

#[test]
fn a_few_steps_stand_for_all_of_them() {
    let scene = Scene::new("sweep");
    let sweep = |more: &str, csv: &str| {
        let small = "sweep ocean --case basin --rows 8 --columns 8 --levels 2 --steps 2 --places 2";
        let ended = scene.run(&words(format!("{small} --dividers 2,4 --csv {csv} {more}").trim_end()));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    sweep("", "once.csv");
    let all = sweep("--times 100", "all.csv");
    for name in ["time_s", "energy_j"] {
        let (once, all) = (numbers(&scene.result("once.csv"), name), numbers(&scene.result("all.csv"), name));
        let expected: Vec<f64> = once.iter().map(|value| value * 100.0).collect();
        assert_eq!(all, expected, "{name}");
    }
    assert_eq!(numbers(&scene.result("all.csv"), "times"), [100.0, 100.0]);
    assert!(all.stdout.contains("100 times those, and mean is that, of the region steps"), "{all:?}");
    for (flags, allowed) in [
        ("--times 0", "a whole number from 1 to 1000000"),
        ("--times 2 --region none", "1, for runs judged as a whole"),
    ] {
        let refused = scene.run(&words(&format!("{SMALL} {flags}")));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(allowed), "{refused:?}");
    }
}

#[test]
fn the_flags_behind_the_choice_repeat_it_to_the_joule() {
    let scene = Scene::new("sweep");
    let bc = "bc --graph karate --machine chip:mesh";
    let chosen = scene.run(&words(&format!("sweep --app {bc} --places 2 --dividers 2,3 --csv all.csv")));
    let (_, flags) = line(&chosen.stdout, "choice: ").split_once(" (").unwrap();
    let flags = flags.strip_suffix(')').unwrap();
    assert_eq!(flags, "--places 2 --governor fixed:2", "{chosen:?}");
    let again = format!("run {bc} {flags} --json /dev/null --csv /dev/null --top 0 --summary -");
    let summary: serde_json::Value = serde_json::from_str(&scene.run(&words(&again)).stdout).unwrap();
    let joules = numbers(&scene.result("all.csv"), "energy_j")[0];
    assert_eq!(summary["energy"]["models"][0]["total_j"].as_f64(), Some(joules));
    let caveat = line(&chosen.stdout, "caveat: ");
    assert_eq!(caveat, "all figures are from invented, the only power model of the chip");
}

#[test]
fn a_cap_leaves_out_what_exceeds_it_and_tries_the_governor_that_keeps_it() {
    let (_scene, ended) = sweep("--cap 30W --all --csv -");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let csv = &ended.stdout;
    assert_eq!(column(csv, "places").len(), 8, "{csv}");
    let under: Vec<bool> = numbers(csv, "peak_w").into_iter().map(|watts| watts <= 30.0).collect();
    assert_eq!(column(csv, "under_cap"), under.iter().map(bool::to_string).collect::<Vec<_>>());
    assert!(under.contains(&true) && under.contains(&false), "{csv}");
    for (governor, under) in column(csv, "governor").iter().zip(&under) {
        assert!(governor != "capped:30W" || *under, "{csv}");
    }
    let times = numbers(csv, "time_s").into_iter().zip(&under).filter(|(_, under)| **under);
    let shortest = times.map(|(time, _)| time).reduce(f64::min).unwrap();
    let row = ended.stderr.lines().find(|line| line.ends_with("chosen")).unwrap();
    assert!(row.contains(&format!(" {:.1} µs ", shortest * 1e6)), "{shortest} {ended:?}");
    assert!(row.contains(" mJ ") && row.ends_with(" µJ s  chosen"), "a small run has figures, too: {row}");
    assert!(line(&ended.stderr, "reason: ").contains("that stay under 30W"), "{ended:?}");
}

#[test]
fn a_deadline_makes_the_least_energy_the_rule() {
    let (_scene, ended) = sweep("--deadline 1s");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(line(&ended.stdout, "reason: ").starts_with("the lowest energy of the 6 settings"), "{ended:?}");
}

#[test]
fn a_governor_takes_the_place_of_the_dividers_or_stands_beside_those_that_are_named() {
    let scene = Scene::new("sweep");
    let governors = |more: &str| {
        let ended = scene.run(&words(&format!("sweep --app bc --graph karate --places 8 --csv - {more}")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        column(&ended.stdout, "governor")
    };
    assert_eq!(governors("--governor on-demand"), ["on-demand"]);
    assert_eq!(governors("--governor capped:40W --cap 40W"), ["capped:40W"]);
    assert_eq!(
        governors("--governor phase-aware --dividers 2,4 --cap 45W"),
        ["fixed:2", "fixed:4", "phase-aware", "capped:45W"]
    );
    assert_eq!(governors("--governor fixed:4 --dividers 2,4"), ["fixed:2", "fixed:4"]);
}

#[test]
fn the_runs_of_a_sweep_are_told_what_a_run_is_told() {
    let scene = Scene::new("sweep");
    let graph = "bc --graph karate --machine chip:scc --places 8";
    let sweep = |more: &str| {
        let mut command = scene.isles(&words(&format!("sweep --app {graph} --dividers 2 --csv -")));
        for word in more.split(' ') {
            match word.split_once('=') {
                Some(variable) => command.envs([variable]),
                None => command.arg(word),
            };
        }
        let ended = crate::scene::ended(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        numbers(&ended.stdout, "time_s")[0]
    };
    let run = |more: &str| {
        let quiet = "--governor fixed:2 --json /dev/null --csv /dev/null --top 0 --summary -";
        let ended = scene.run(&words(&format!("run {graph} {quiet} {more}")));
        let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        summary["predicted_ps"].as_u64().unwrap() as f64 / 1e12
    };
    let usual = run("--seed 0");
    for (flags, variables) in [
        ("--seed 3", "ISLES_SEED=3"),
        ("--preset 800/1600/1066", "ISLES_CHIP_PRESET=800/1600/1066"),
        ("--protocol sections --rest nap:100us", "ISLES_CHIP_PROTOCOL=sections ISLES_CHIP_REST=nap:100us"),
    ] {
        let alone = run(flags);
        assert_ne!(alone, usual, "{flags} changes nothing");
        assert_eq!((sweep(flags), sweep(variables)), (alone, alone), "{flags}");
    }
    assert!(sweep("--work host:1000") > 10.0 * usual, "measured and slowed down a thousand times");
    assert_eq!(sweep("ISLES_CHIP_SUMMARY=s.json ISLES_CHIP_GOVERNOR=fixed:16"), usual);
    scene.assert_nothing_left();
}

#[test]
fn the_runs_of_a_sweep_end_with_it_whatever_ends_it() {
    let scene = Scene::new("sweep");
    let line = "sweep --app bc --rmat 18,0.25,0.25,0.25,0.25 --places 1 --dividers 2";
    let sweep = Running::start(scene.isles(&words(line)));
    let own = sweep.child.id() as i32;
    // Not earlier, because a process that is about to execute another program cannot be found by its environment.
    let computes = |pid: &i32| *pid != own && busy_ns(*pid).is_some_and(|busy| busy >= COMPUTING_NS);
    until("its first run computes", || scene.processes().iter().any(computes));
    kill(own);
    assert_eq!(sweep.finish().code, None);
    scene.until_all_ended();
    scene.assert_nothing_left();
}

#[test]
fn all_settings_are_tried_with_the_placement_that_was_asked_for() {
    let time = |more: &str| {
        let (_scene, ended) = sweep(&format!("--csv - {more}"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        numbers(&ended.stdout, "time_s")
    };
    let (linear, corners) = (time("--all"), time("--placement 0,1,10,11,36,37,46,47"));
    // One place is on core 0 in both cases; eight are farther from each other.
    assert_eq!(linear[..3], corners[..3]);
    assert!(linear[3] < corners[3], "{linear:?} {corners:?}");
}

#[test]
fn what_nothing_can_meet_is_one_line_with_what_could_be_met() {
    let refuse = |more: &str| {
        let (_scene, ended) = sweep(more);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let errors: Vec<String> =
            ended.stderr.lines().filter(|line| line.contains("error: ")).map(str::to_owned).collect();
        assert_eq!(errors.len(), 1, "{ended:?}");
        errors[0].clone()
    };
    let before = refuse("--cap 5W");
    assert!(before.starts_with("error: --cap is \"5W\"; allowed: at least 18."), "{before}");
    assert!(
        before.contains(" W, the most that 1 place can draw with all clocks at their slowest"),
        "{before}"
    );
    let other = refuse("--cap 5W --power cichowski");
    assert!(other.starts_with("error: --cap is \"5W\"; allowed: at least 23."), "by another model: {other}");
    let after = refuse("--deadline 1us");
    assert!(after.starts_with("error: --deadline is \"1us\"; allowed: at least "), "{after}");
    assert!(after.ends_with("ms, the shortest of 6 settings"), "{after}");
}

/// Runs a sweep of two settings of a program, with the further flags `more`.
fn sweep_of(scene: &Scene, program: &[&str], more: &str) -> Ended {
    let flags = words("sweep --places 1,8 --dividers 3");
    scene.run(&[&flags[..], &words(more), &["--"], program].concat())
}

#[test]
fn a_program_of_somebody_is_swept_as_an_application_is() {
    let scene = Scene::new("sweep");
    let bc = ["run", "bc", "--graph", "karate", "--json", "/dev/null", "--csv", "/dev/null"];
    let program = [&[crate::PROGRAM], &bc[..]].concat();
    let by_program = sweep_of(&scene, &program, "--seed 3 --csv program.csv --svg program.svg");
    assert_eq!(by_program.code, Some(0), "{by_program:?}");
    assert!(line(&by_program.stdout, "choice: ").contains(" (--places "), "{by_program:?}");
    let by_name = "sweep --app bc --graph karate --places 1,8 --dividers 3 --seed 3 --csv name.csv";
    assert_eq!(scene.run(&words(by_name)).code, Some(0));
    let (program, name) = (scene.result("program.csv"), scene.result("name.csv"));
    for figure in ["flags", "places", "governor", "time_s", "energy_j"] {
        assert_eq!(column(&program, figure), column(&name, figure), "{figure}");
    }
    // Each row names its program, so a picture of the file does, too.
    assert_eq!(column(&name, "program"), ["bc --graph karate"; 2]);
    assert_eq!(
        (&column(&name, "machine")[0], &column(&name, "flags")[0]),
        (&"chip:scc".to_owned(), &"--seed 3".to_owned())
    );
    assert!(scene.result("program.svg").contains("isles on chip:scc"));
    assert_eq!(scene.run(&words("plot name.csv --out name.svg")).code, Some(0));
    assert!(scene.result("name.svg").contains(": bc on chip:scc"), "{}", scene.result("name.svg"));
    let left = std::fs::read_dir(scene.path(".")).unwrap().flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["name.csv", "name.svg", "program.csv", "program.svg"], "no summary is left");
}

#[test]
fn settings_at_which_a_program_fails_are_left_out_with_a_warning() {
    let scene = Scene::new("sweep");
    let good = format!("exec {} run bc --graph karate --json /dev/null --csv /dev/null", crate::PROGRAM);
    let swept = |fails: &str| {
        let script = format!("if {fails}; then echo 'error: eight are too many' >&2; exit 1; fi; {good}");
        sweep_of(&scene, &["sh", "-c", &script], "--csv - --all")
    };
    let ended = swept("[ $ISLES_PLACES = 8 ]");
    assert_eq!((ended.code, column(&ended.stdout, "places")), (Some(0), vec!["1".to_owned()]), "{ended:?}");
    assert_eq!(
        line(&ended.stderr, "warning: "),
        "1 of 2 settings failed and are left out, the first at --places 8 --governor fixed:3: eight are too many"
    );
    let ended = swept("true");
    assert_eq!((ended.code, line(&ended.stderr, "error: ")), (Some(1), "eight are too many"), "{ended:?}");
}

#[test]
fn constants_of_the_chip_are_varied_and_drawn() {
    let scene = Scene::new("sweep");
    let sweep = "sweep --machine chip:mesh --set links.flit_time=1..3 bc -- --graph karate --csv s.csv";
    let ended = scene.run(&words(sweep));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(line(&ended.stdout, "choice: ").contains("--set 'links.flit_time="), "{ended:?}");
    let csv = scene.result("s.csv");
    assert_eq!(column(&csv, "links.flit_time"), ["1", "2", "3"]);
    assert_eq!(numbers(&csv, "places"), [16.0; 3]);
    let times = numbers(&csv, "time_s");
    assert!(times[0] < times[2], "{times:?}");
    let alone =
        "run bc --graph karate --machine chip:mesh --places 16 --json /dev/null --csv /dev/null --top 0";
    let alone = scene
        .run(&[&words(alone)[..], &["--summary", "-", "--set", "links.flit_time=3 cycles of mesh"]].concat());
    let summary: serde_json::Value = serde_json::from_str(&alone.stdout).unwrap();
    assert_eq!(summary["predicted_ps"].as_f64().unwrap() / 1e12, times[2]);
    assert!(alone.stderr.contains("1000/1000/800, links.flit_time=3 cycles of mesh"), "{alone:?}");
    assert_eq!(scene.run(&words("plot s.csv --out s.svg")).code, Some(0));
    assert!(scene.result("s.svg").contains("Time by links.flit_time: bc on chip:mesh"));
    let most = format!("the most is {:.3} times the least", times[2] / times[0]);
    assert!(scene.result("s.svg").contains(&most), "{most}: {}", scene.result("s.svg"));
    // Clocks are constants, too, and are combined with each other; a chip without dividers is swept as it is.
    let sweep = "sweep --preset 800/1600/1066 --places 8 --csv c.csv --app bc --graph karate";
    let clocks = ["--set", "mesh=800 MHz,1600 MHz", "--set", "memory=533 MHz,1066 MHz"];
    assert_eq!(scene.run(&[&words(sweep)[..], &clocks].concat()).code, Some(0));
    let csv = scene.result("c.csv");
    assert_eq!(column(&csv, "mesh"), ["800 MHz", "800 MHz", "1600 MHz", "1600 MHz"]);
    let times = numbers(&csv, "time_s");
    assert!(times[0] > times[2] && times[1] > times[3], "{times:?}");
    let torus = "sweep --machine chip:xeon-cluster --places 2,4 --csv t.csv --app bc --graph karate";
    let ended = scene.run(&words(torus));
    assert!(ended.code == Some(0) || ended.refusal().contains("power model"), "{ended:?}");
}

#[test]
fn a_program_that_cannot_be_swept_is_one_line() {
    let scene = Scene::new("sweep");
    let isles = crate::PROGRAM;
    let cases: [(&[&str], &str, i32); 6] = [
        (&["true"], "the program is \"true\"; allowed: a program that is built with Isles", 2),
        (&["false"], "a run ended with exit code 1, without a line that begins with `error: `", 1),
        (&["./nowhere"], "cannot start ./nowhere: No such file", 2),
        (&["--graph", "karate"], "isles sweep needs something to run: --app NAME", 2),
        (&[], "isles sweep needs something to run: --app NAME", 2),
        (&[isles, "run", "bc", "--graph", "nosuch"], "nosuch", 2),
    ];
    for (program, says, code) in cases {
        let ended = sweep_of(&scene, program, "--seed 1");
        let errors: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!((ended.code, errors.len()), (Some(code), 1), "{program:?}: {ended:?}");
        assert!(errors[0].contains(says), "{program:?}: {ended:?}");
    }
    scene.assert_nothing_left();
}

#[test]
fn bad_arguments_are_refused_before_anything_runs() {
    let scene = Scene::new("sweep");
    for (arguments, says) in [
        ("--app bc --cap 60", "--cap is \"60\"; allowed: a power above zero such as 60W"),
        ("--app bc --cap -3W", "--cap is \"-3W\"; allowed: a power"),
        ("--app bc --deadline 5x", "--deadline is \"5x\"; allowed: a time above zero such as 90s"),
        (
            "--app bc --places 0,3",
            "--places is \"0,3\"; allowed: whole numbers from 1 to 48, separated \
             by commas",
        ),
        ("--app bc --places 49", "--places is \"49\"; allowed"),
        (
            "--app bc --dividers 1",
            "--dividers is \"1\"; allowed: whole numbers from 2 to 16, separated \
             by commas",
        ),
        (
            "--app bc --set links.flt=2",
            "--set is \"links.flt=2\"; allowed: one of links.flit, links.flit_time, links.head, ",
        ),
        ("--app bc --set links.flit_time=2apples", "--set is \"links.flit_time=2apples\"; allowed: "),
        (
            "--app bc --set links.flit_time=8..1",
            "--set is \"links.flit_time=8..1\"; allowed: a range of whole numbers from low to high",
        ),
        ("--app bc --machine threads", "--machine is \"threads\"; allowed: a modelled chip"),
        ("--app bc --protocol mpi", "--protocol is \"mpi\"; allowed: doorbell"),
        ("--app bc --placement near", "--placement is \"near\"; allowed: linear, spread, or cores"),
        (
            "--app bc --placement 0-11 --places 13",
            "--places is \"13\"; allowed: whole numbers from 1 to 12, separated by commas",
        ),
        (
            "--app bc --placement 40-50",
            "--placement is \"40-50\"; allowed: cores from 0 to 47 of the chip (50 is not one)",
        ),
        ("--app bc --rest soon", "--rest is \"soon\"; allowed: poll, or nap:"),
        ("--app bc --seed -1", "--seed is \"-1\"; allowed: a whole number"),
        ("--app bc --governor turbo", "--governor is \"turbo\"; allowed: fixed, fixed:DIVIDER"),
        ("--app bc --governor capped:20W", "--governor is \"capped:20W\"; allowed: at least 20."),
        ("--app bc --work soon", "--work is \"soon\"; allowed: said, host:RATIO"),
        (
            "--app bc --work tape:t",
            "--work is \"tape:t\"; allowed: said, or host:RATIO, because a tape belongs to one",
        ),
        ("--app life", "--app is \"life\"; allowed: automaton, bc, "),
        ("--app bc --rmat steep", "--rmat is \"steep\"; allowed: medium, its current name"),
        ("--app bc --rmat huge", "--rmat is \"huge\"; allowed: small, medium, large, low, high"),
        ("--app bc --graph nosuch", "nosuch"),
    ] {
        let line = scene.run(&words(&format!("sweep {arguments}"))).refusal().to_owned();
        assert!(line.starts_with("error: ") && line.contains(says), "{arguments}: {line}");
    }
    scene.assert_nothing_left();
}

#[test]
fn small_medium_and_large_are_the_published_workloads() {
    let scene = Scene::new("sweep");
    let run = |graph: &str| {
        let ended = scene.run(&words(&format!(
            "run bc {graph} --machine threads --places 2 --top 0 --json - --csv g.csv"
        )));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        result["betweenness"].clone()
    };
    assert_eq!(run("--rmat small"), run("--graph rmat-small"));
    assert_eq!(run("--rmat 5,.2,.15,.25,.4"), run("--graph rmat:5,.2,.15,.25,.4"));
}
