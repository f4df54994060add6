//! `isles plot`, and `--svg` of the commands that have results: pictures of files that Isles itself has just written.
//!
//! Every shape of input is made by the command that makes it (those of the bench by hand, because measuring takes
//! minutes), so a change of a format fails here. The appearance of figures is tested in `isles-plot`.

use crate::scene::{Ended, Scene, ended, words};
use roxmltree::Document;

/// Runs a command that must succeed.
fn run(scene: &Scene, line: &str) -> Ended {
    let ended = scene.run(&words(line));
    assert_eq!(ended.code, Some(0), "isles {line}: {ended:?}");
    ended
}

/// Contents of a picture.
struct Picture {
    title: String,
    /// All lines of text.
    text: String,
    metadata: String,
    /// Number of marks and bars by series.
    counts: Vec<(String, usize)>,
}

fn picture(svg: &str) -> Picture {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let root = document.root_element();
    let child = |name: &str| {
        let found = root.children().find(|node| node.has_tag_name(name)).and_then(|node| node.text());
        found.unwrap_or_else(|| panic!("no {name} in {svg}")).to_owned()
    };
    let texts = root.descendants().filter(|node| node.has_tag_name("text"));
    let is_mark = |class: &str| class.split(' ').any(|class| class == "mark" || class == "bar");
    let series =
        root.descendants().filter_map(|node| Some((node.attribute("data-series")?.to_owned(), node)));
    let counts = series.map(|(name, node)| {
        (name, node.children().filter(|child| child.attribute("class").is_some_and(is_mark)).count())
    });
    Picture {
        title: child("title"),
        text: texts.filter_map(|node| node.text()).collect::<Vec<_>>().join("\n"),
        metadata: child("metadata"),
        counts: counts.collect(),
    }
}

impl Picture {
    fn of(scene: &Scene, line: &str) -> Picture {
        picture(&run(scene, &format!("plot {line} --out -")).stdout)
    }

    fn count(&self, series: &str) -> usize {
        self.counts.iter().filter(|(name, _)| name == series).map(|(_, count)| count).sum()
    }

    fn assert_says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "{part:?} is not said: {}", self.text);
        }
    }
}

const SWEEP: &str = "sweep --app bc --graph karate --places 1,8 --dividers 2,3,16";

#[test]
fn the_json_of_a_run_is_bars_by_place_and_several_are_a_curve() {
    let scene = Scene::new("plot");
    for places in [1, 2, 3] {
        let line = format!("run pi --points 20000 --machine threads --places {places} --csv /dev/null");
        run(&scene, &format!("{line} --json {places}.json"));
    }
    let bars = Picture::of(&scene, "3.json");
    assert_eq!((bars.title.as_str(), bars.count("3")), ("What each place did: pi", 3));
    bars.assert_says(&["3 places (threads)", "seed 1", "Place", "Time at work"]);
    assert_eq!(Picture::of(&scene, "2.json 3.json --kind bars").counts, [("2".into(), 2), ("3".into(), 3)]);
    let curve = Picture::of(&scene, "1.json 2.json 3.json");
    assert_eq!((curve.title.as_str(), curve.count("pi (threads)")), ("Speed-up by places", 3));
    curve.assert_says(&["Speed-up", "ideal"]);
    let times = Picture::of(&scene, "2.json 3.json");
    assert_eq!(times.title, "Time by places", "without one place there is no speed-up");
}

#[test]
fn the_summary_of_a_run_on_a_chip_is_where_time_and_energy_went() {
    let scene = Scene::new("plot");
    let line =
        "run bc --graph karate --machine chip:scc --places 4 --seed 7 --json /dev/null --csv /dev/null";
    run(&scene, &format!("{line} --summary one.json"));
    run(&scene, &format!("{line} --governor fixed:16 --summary slow.json"));
    let time = Picture::of(&scene, "one.json");
    assert_eq!((time.count("working"), time.count("waiting")), (4, 4));
    assert!(
        time.metadata.contains("chip: chip:scc; seed: 7; command: isles plot one.json"),
        "{}",
        time.metadata
    );
    time.assert_says(&["4 places on chip:scc, doorbell", "chip:scc · seed 7"]);
    let energy = Picture::of(&scene, "one.json --what energy");
    assert_eq!((energy.title.as_str(), energy.count("energy")), ("Energy of each place", 4));
    let both = Picture::of(&scene, "one.json slow.json");
    assert_eq!(both.count("working"), 2);
    let both = Picture::of(&scene, "one.json slow.json --what energy");
    assert_eq!(both.count("cores with places"), 2);
    both.assert_says(&["one", "slow", "mesh", "the rest of the chip"]);
}

#[test]
fn the_csv_of_a_sweep_is_a_plane_and_a_speed_up_where_only_places_vary() {
    let scene = Scene::new("plot");
    run(&scene, &format!("{SWEEP} --csv sweep.csv --svg sweep.svg"));
    let plane = Picture::of(&scene, "sweep.csv");
    assert_eq!((plane.title.as_str(), plane.count("sweep")), ("Time and energy: bc on chip:scc", 6));
    plane.assert_says(&["6 settings", "8 places, 800 MHz"]);
    let own = picture(&scene.result("sweep.svg"));
    assert_eq!(own.title, "Time and energy: bc on chip:scc");
    assert_eq!(own.counts.iter().map(|(_, count)| count).sum::<usize>(), 6);
    assert!(plane.metadata.contains("chip: chip:scc;"), "{}", plane.metadata);
    assert!(own.metadata.contains(&format!("chip: chip:scc; command: isles {SWEEP}")), "{}", own.metadata);
    let curve = Picture::of(&scene, "sweep.csv --kind curve");
    assert_eq!(curve.counts, [("800 MHz".into(), 2), ("533 MHz".into(), 2), ("100 MHz".into(), 2)]);
    let joules = Picture::of(&scene, "sweep.csv --what energy");
    assert_eq!((joules.title.as_str(), joules.counts), ("Energy by places: bc on chip:scc", curve.counts));

    run(
        &scene,
        "sweep --app bc --graph karate --places 1,2,4 --dividers 3 --csv places.csv --svg places.svg",
    );
    let speedup = picture(&scene.result("places.svg"));
    assert_eq!(speedup.title, "Speed-up by places: bc on chip:scc");
    assert_eq!(Picture::of(&scene, "places.csv").counts, [("533 MHz".into(), 3)]);
    // The last CSV has other settings, but both are sweeps.
    assert_eq!(
        Picture::of(&scene, "sweep.csv places.csv").counts,
        [("sweep".into(), 6), ("places".into(), 3)]
    );
}

#[test]
fn the_rows_of_repro_are_a_parity_and_one_experiment_a_curve() {
    let scene = Scene::new("plot");
    run(&scene, "repro lines power --json rows.json --csv rows.csv --svg both.svg");
    let both = picture(&scene.result("both.svg"));
    // 2 times of lines and 16 powers were calibrated, 16 times are derived; each is in both panels.
    assert_eq!((both.count("calibrated"), both.count("derived")), (36, 32));
    both.assert_says(&["Published figures and those of the modelled chip", "34 published figures"]);
    let from_json = Picture::of(&scene, "rows.json");
    assert_eq!(from_json.counts, both.counts);
    assert_eq!(Picture::of(&scene, "rows.csv").counts, both.counts);

    let curve = Picture::of(&scene, "rows.json --only lines");
    assert_eq!((curve.count("read, Isles"), curve.count("read, published")), (9, 9));
    curve.assert_says(&["Hops", "Time (ns)", "One line of a message buffer by distance, at 533/800/800"]);
    assert_eq!(Picture::of(&scene, "rows.csv --only lines").counts, curve.counts);
    assert_eq!(Picture::of(&scene, "rows.json --only lines --kind parity").count("derived"), 32);
    let power = Picture::of(&scene, "rows.json --only power");
    power.assert_says(&["Clock (MHz)", "Power (W)", "2 more figures are of other kinds"]);

    run(&scene, "repro lines --svg lines.svg");
    assert_eq!(picture(&scene.result("lines.svg")).counts, curve.counts);
    let piped = run(&scene, "repro lines --svg -");
    assert_eq!(picture(&piped.stdout).counts, curve.counts);
    assert!(piped.stderr.contains("lines: one line of a message buffer"), "the table gives way: {piped:?}");
}

/// Returns the positions of a picture's marks.
fn places(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    document.descendants().filter_map(|node| node.attribute("transform")).map(str::to_owned).collect()
}

#[test]
fn the_picture_on_the_page_is_what_the_command_draws() {
    let page = include_str!("../../../../docs/pictures/results-ping-pong.svg");
    let scene = Scene::new("plot");
    let drawn = run(&scene, "repro ping-pong --svg -").stdout;
    assert_eq!(
        places(page),
        places(&drawn),
        "isles repro ping-pong --svg docs/pictures/results-ping-pong.svg"
    );
    assert!(
        picture(page).metadata.ends_with("isles repro ping-pong --svg docs/pictures/results-ping-pong.svg")
    );
}

/// Returns the JSON of a bench session with these rows: names, the better direction, and medians of Isles and of two
/// peers.
fn session(rows: &[(&str, &str, f64, [f64; 2])]) -> String {
    let figure = |name: &str, value: f64| {
        format!(
            r#"{{"contender":"{name}","name":"x","min":{value},"median":{value},"max":{value},"values":[{value}]}}"#
        )
    };
    let row = |(name, better, ours, [one, other]): &(&str, &str, f64, [f64; 2])| {
        let head = format!(r#""name":"{name}","question":"?","unit":"us","better":"{better}""#);
        let [isles, mpich, open] =
            [("isles", ours), ("MPICH", one), ("Open MPI", other)].map(|(name, value)| figure(name, *value));
        format!(r#"{{{head},"isles":{isles},"peers":[{mpich},{open}],"beside":[]}}"#)
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!(
        r#"{{"format":3,"suite":"core","machine":{{"cpu":"A processor","cores":2,"commit":"abc"}},"runs":1,
            "groups":[{{"name":"collective","rows":[{}]}}]}}"#,
        rows.join(",")
    )
}

#[test]
fn the_json_of_the_bench_is_ratios_to_the_strongest_peer_or_a_curve_over_a_number() {
    let scene = Scene::new("plot");
    let rows = [
        ("barrier-8", "less", 5.0, [32.0, 10.0]),
        ("barrier-48", "less", 100.0, [480.0, 200.0]),
        ("rate", "more", 10.0, [2.0, 5.0]),
    ];
    scene.leave("bench.json", &session(&rows));
    let bars = Picture::of(&scene, "bench.json");
    assert_eq!(bars.count("bench"), 3);
    bars.assert_says(&["barrier-8 (Open MPI)", "rate (Open MPI)", "0.5", "below 1 Isles needs less"]);
    assert!(bars.metadata.contains("measured: measured at commit abc on A processor, 2 cores"));
    let curve = Picture::of(&scene, "bench.json --only barrier --kind curve");
    assert_eq!(curve.counts, [("isles".into(), 2), ("MPICH".into(), 2), ("Open MPI".into(), 2)]);
    assert_eq!(Picture::of(&scene, "bench.json --only rate").count("bench"), 1);
}

#[test]
fn the_bench_draws_what_it_measured_and_leaves_no_file_that_nobody_asked_for() {
    let scene = Scene::new("plot");
    let isles = scene.executable("isles", std::fs::read(crate::PROGRAM).unwrap());
    let json = scene.file("session.json", session(&[("barrier", "less", 1.0, [2.0, 4.0])]));
    // Replaces the program that measures; its last argument is the path of the JSON.
    let script = format!("#!/bin/sh\necho \"$@\"\nfor last; do :; done\ncp {} \"$last\"\n", json.display());
    scene.executable("isles-bench", script);
    let bench = |line: &str| {
        let mut command = scene.program(&isles);
        command.args(words(line));
        ended(command)
    };
    let said = bench("bench core --svg bench.svg --quick");
    assert!(said.code == Some(0) && said.stdout.starts_with("core --quick --json "), "{said:?}");
    assert_eq!(picture(&scene.result("bench.svg")).counts.len(), 1);
    std::fs::remove_file(scene.path("bench.svg")).unwrap();
    scene.assert_nothing_left();

    let said = bench("bench core --svg bench.svg --json own.json");
    assert_eq!(said.stdout, "core --json own.json\n");
    assert!(scene.path("bench.svg").is_file() && scene.path("own.json").is_file());
    for (line, refusal) in [
        ("bench core --svg", r#"--svg is ""; allowed: - or a file"#),
        (
            "bench core --list --svg x.svg",
            r#"--svg is "x.svg"; allowed: nothing with --list; to draw earlier measurements, use isles plot"#,
        ),
        (
            "bench core --json - --svg x.svg",
            r#"--json is "-"; allowed: a file, because --svg draws its contents"#,
        ),
        ("bench core --json a --svg a", r#"--svg is "a"; allowed: a file other than that of --json"#),
        ("bench core --svg none/x.svg", r#"--svg is "none/x.svg"; allowed: - or a file that can be written"#),
    ] {
        let said = bench(line);
        assert!(said.refusal().contains(refusal), "{line}: {said:?}");
    }
}

#[test]
fn any_csv_with_a_line_of_names_can_be_drawn() {
    let scene = Scene::new("plot");
    scene.leave(
        "own.csv",
        "# of a weekend\nlength (B),mine (µs),\"theirs, old (µs)\"\n1,2,3\n1024,5,\n1048576,100,200\n",
    );
    let curve = Picture::of(&scene, "own.csv --title Mine");
    assert_eq!(curve.counts, [("mine".into(), 3), ("theirs, old".into(), 2)]);
    assert_eq!(curve.title, "Mine");
    curve.assert_says(&["Mine", "length", "1 MiB", "mine"]);

    scene.leave("parts.csv", "part,time (s)\nwork,2\nwait,1\n");
    let bars = Picture::of(&scene, "parts.csv");
    assert_eq!(bars.count("time"), 2);
    bars.assert_says(&["work", "wait", "time (s)"]);
    assert_eq!(Picture::of(&scene, "own.csv --kind bars").count("mine"), 3);

    scene.leave("points.csv", "what,time (s),energy (J)\nfast,1,9\nbad,2,10\nfrugal,3,1\n");
    Picture::of(&scene, "points.csv --kind plane").assert_says(&["fast", "frugal", "time (s)", "energy (J)"]);
    assert_eq!(Picture::of(&scene, "points.csv --kind parity").count("points"), 6);
}

#[test]
fn names_that_stand_again_are_bars_of_their_own() {
    let scene = Scene::new("plot");
    scene.leave("times.csv", "name,time (s)\nalpha,10\nbeta,20\nalpha,30\nbeta,40\ngamma,5\n");
    let bars = Picture::of(&scene, "times.csv");
    assert_eq!(bars.count("time"), 5);
    bars.assert_says(&["alpha", "beta", "gamma"]);
    // With a second file, the first bar of a name is beside the other file's first bar of that name.
    scene.leave("more.csv", "name,time (s)\nalpha,1\nalpha,2\nalpha,3\n");
    let both = Picture::of(&scene, "times.csv more.csv");
    assert_eq!((both.count("times"), both.count("more")), (5, 3));
}

#[test]
fn what_a_picture_does_not_show_is_said_and_one_that_shows_nothing_is_refused() {
    let scene = Scene::new("plot");
    let picture = |name: &str, text: &str, kind: &str| {
        let path = scene.file(name, text);
        scene.run(&["plot", path.to_str().unwrap(), "--kind", kind, "--out", "x.svg"])
    };
    let printed = "the picture does not show all: 1 point was left out: ";
    for kind in ["curve", "bars", "plane"] {
        let some = picture("some.csv", "x,y\n0,1\n1,1e308\n2,3\n", kind);
        assert_eq!(some.code, Some(0), "{kind}");
        assert!(
            some.stderr.starts_with(printed) && some.stderr.ends_with("beyond 1e280\n"),
            "{kind}: {some:?}"
        );
    }
    let some = picture("some.csv", "x,y\n1,1\n-1,2\n", "parity");
    assert!(some.stderr.contains("1 point was left out: not above zero on a logarithmic axis"), "{some:?}");
    for (text, why) in [
        ("x,y\n1,1e308\n2,-1e308\n", "(2 points were left out: beyond 1e280)"),
        ("x,y\n1,\n2,\n", "(all cells of values are empty)"),
    ] {
        for kind in ["curve", "bars"] {
            let refusal = picture("none.csv", text, kind);
            assert!(
                refusal.refusal().contains(&format!("none.csv\" gives an empty picture {why}")),
                "{refusal:?}"
            );
        }
    }
}

#[test]
fn figures_of_any_size_make_pictures_of_finite_numbers() {
    let scene = Scene::new("plot");
    let ends =
        ["-1e308", "-1e280", "-1e279", "-1e-280", "0", "5e-324", "1e-280", "1", "1e279", "1e280", "1e308"];
    let mut table = "x,y\n".to_owned();
    for x in ends {
        for y in ends {
            table += &format!("{x},{y}\n");
        }
    }
    // One point alone has no extent.
    for end in ends {
        let path = scene.file("one.csv", format!("x,y\n{end},{end}\n"));
        for kind in ["curve", "bars", "plane", "parity"] {
            let done = scene.run(&["plot", path.to_str().unwrap(), "--kind", kind, "--out", "-"]);
            assert!(!done.stdout.contains("NaN") && !done.stdout.contains("inf "), "{end} {kind}");
        }
    }
    for (number, rows) in [1, 2, 11, 121].into_iter().enumerate() {
        let text: String = table.split_inclusive('\n').take(1 + rows).collect();
        for (from, text) in [
            ("all", text),
            (
                "end",
                format!(
                    "x,y\n{}",
                    table.lines().rev().take(rows).fold(String::new(), |all, line| all + line + "\n")
                ),
            ),
        ] {
            let path = scene.file(&format!("{from}{number}.csv"), &text);
            for kind in ["curve", "bars", "plane", "parity"] {
                let done = scene.run(&["plot", path.to_str().unwrap(), "--kind", kind, "--out", "-"]);
                let is_refused = done.code == Some(2) && done.stderr.contains("gives an empty picture");
                assert!(is_refused || done.code == Some(0), "{text} {kind}: {done:?}");
                assert!(!done.stdout.contains("NaN") && !done.stdout.contains("inf "), "{text} {kind}");
            }
        }
    }
}

#[test]
fn names_of_a_file_do_nothing_in_a_terminal_and_name_the_axes_of_a_parity() {
    let scene = Scene::new("plot");
    let evil = scene.file("evil.csv", "x,y\u{1b}[31m\n1,inf\n");
    let refusal = scene.run(&["plot", evil.to_str().unwrap(), "--out", "x.svg"]);
    assert!(refusal.refusal().contains("under y\\u{1b}[31m, not a finite"), "{refusal:?}");
    let fields = scene.file("evil.json", "{\"a\u{7f}\\u001b[31m\": 1}");
    let refusal = scene.run(&["plot", fields.to_str().unwrap(), "--out", "x.svg"]);
    assert!(refusal.refusal().contains("the fields a\\u{7f}\\u{1b}[31m"), "{refusal:?}");
    scene.leave("pairs.csv", "before (s),after (s)\n1,2\n3,4\n");
    let parity = Picture::of(&scene, "pairs.csv --kind parity");
    parity.assert_says(&["before (s)", "after (s)", "after / before"]);
}

#[test]
fn the_same_words_give_the_same_bytes() {
    let scene = Scene::new("plot");
    run(&scene, "repro lines --json rows.json");
    let once = run(&scene, "plot rows.json --out -").stdout;
    assert_eq!(once, run(&scene, "plot rows.json --out -").stdout);
    run(&scene, "plot rows.json --out file.svg");
    assert_eq!(picture(&scene.result("file.svg")).counts, picture(&once).counts);
}

/// Files that are not results, and the refusal of each after its name.
const BAD_FILES: &[(&str, &str, &str)] = &[
    ("empty.json", "", "is empty; allowed: the JSON of isles run"),
    ("broken.json", "{\"run\": ", "is not JSON (EOF while parsing"),
    ("other.json", "{\"a\": 1}", "holds JSON with the fields a; allowed"),
    ("list.json", "[]", "holds JSON that is not an object"),
    ("old.json", "{\"format\": 2, \"groups\": []}", "has format 2; this version reads format 3"),
    (
        "half.json",
        "{\"run\": {\"version\": \"0.1.0\"}}",
        "does not match its schema (missing field `machine`",
    ),
    ("none.json", "{\"schema\": \"isles.repro.1\", \"chip\": \"scc\", \"rows\": []}", "has no rows"),
    ("infinite.csv", "a,b\n1,2\n2,inf\n", "has \"inf\" in line 3 under b, not a finite number"),
    ("words.csv", "a,b\n1,two\n", "has \"two\" in line 2 under b"),
    ("gap.csv", "a,b\n,2\n", "has an empty cell under a"),
    ("ragged.csv", "a,b\n1,2\n1\n", "has 1 of 2 cells in line 3"),
    ("nameless.csv", "1,2\n3,4\n", "begins with numbers (1,2)"),
    ("sweep.csv", "places,governor,time_s,energy_j\n1,fixed,,2\n", "has an empty cell under time_s"),
    ("short.csv", "a,b\n", "has column names but no line of values"),
    ("sweep.csv", "places,governor,time_s,energy_j\n1,fixed,x,2\n", "has \"x\" in line 2 under time_s"),
];

#[test]
fn files_that_are_no_results_are_refused_with_what_is_wrong() {
    let scene = Scene::new("plot");
    for (name, text, says) in BAD_FILES {
        let path = scene.file(name, text);
        let refusal = scene.run(&["plot", path.to_str().unwrap(), "--out", "x.svg", "--kind", "curve"]);
        let line = refusal.refusal();
        assert!(line.contains(name) && line.contains(says), "{says}: {line}");
    }
    let long = scene.file("long.csv", "a,b\n".to_owned() + &"1,2\n".repeat(20_001));
    let refusal = scene.run(&["plot", long.to_str().unwrap(), "--out", "x.svg"]);
    assert!(
        refusal.refusal().contains("has 20001 lines of values; a picture shows at most 20000"),
        "{refusal:?}"
    );
    let bytes = scene.file("bytes.csv", b"\xff\xfe");
    let refusal = scene.run(&["plot", bytes.to_str().unwrap(), "--out", "x.svg"]);
    assert!(refusal.refusal().contains("a file that can be read (it is not UTF-8 text)"), "{refusal:?}");
    let refusal = scene.run(&["plot", "/dev/zero", "--out", "x.svg"]);
    assert!(
        refusal.refusal().contains("(it has more than 256 MiB; allowed: at most 256 MiB)"),
        "{refusal:?}"
    );
    scene.assert_nothing_left();
}

#[test]
fn what_cannot_be_drawn_is_refused_before_anything_is_written() {
    let scene = Scene::new("plot");
    let good = scene.file("good.csv", "a,b\n1,2\n");
    let good = good.to_str().unwrap();
    let chip = scene.file(
        "chip.json",
        r#"{"run":{"version":"0.1.0","machine":"chip:scc","places":2,"seconds":1.0,"shares":[]}}"#,
    );
    let chip = chip.to_str().unwrap();
    for (arguments, says) in [
        (
            vec!["none.json", "--out", "x.svg"],
            r#"is "none.json"; allowed: a file that can be read (No such file"#,
        ),
        (vec![good, "--out", good], "allowed: a file other than the results, because that is read"),
        (
            vec![good, "--out", "none/x.svg"],
            r#"--out is "none/x.svg"; allowed: - or a file that can be written"#,
        ),
        (
            vec![good, "--out", "x.svg", "--kind", "pie"],
            r#"--kind is "pie"; allowed: curve, bars, parity, plane"#,
        ),
        (vec![good, "--out", "x.svg", "--only", "lines"], "allowed: nothing for a CSV with a line of names"),
        (
            vec![good, "--out", "x.svg", "--what", "energy"],
            r#"--what is "energy"; allowed: nothing for a CSV"#,
        ),
        (
            vec![good, chip, "--out", "x.svg"],
            "is the JSON of a run; allowed: a CSV with a line of names, like",
        ),
        (vec![chip, "--out", "x.svg"], "a run without figures for each place; allowed: a run on threads"),
        (
            vec![chip, "--out", "x.svg", "--kind", "plane"],
            "--kind is \"plane\"; allowed: bars, curve for the JSON",
        ),
        (vec![good], "--out <FILE>"),
        (vec!["--out", "x.svg"], "<FILE>..."),
    ] {
        let refusal = scene.run(&[&["plot"][..], &arguments].concat());
        let line = refusal.refusal();
        assert!(line.contains(says), "{says}: {line}");
    }
    for line in
        ["repro lines --json a --svg a", "repro lines --svg none/x.svg", "sweep --app bc --svg none/x.svg"]
    {
        assert!(scene.run(&words(line)).refusal().contains("--svg is "), "{line}");
    }
    let refusal = scene.run(&words(&format!("{SWEEP} --csv - --svg -")));
    assert!(
        refusal.refusal().contains("--svg is \"-\"; allowed: a file other than that of --csv"),
        "{refusal:?}"
    );
    let rows = scene.file("rows.json", run(&scene, "repro lines --json -").stdout);
    let refusal = scene.run(&["plot", rows.to_str().unwrap(), "--out", "x.svg", "--only", "echo"]);
    assert!(refusal.refusal().contains("--only is \"echo\"; allowed: lines"), "{refusal:?}");
    scene.assert_nothing_left();
}
