//! `isles chip` as a user sees it: the list, the drawing, the picture, and each fault of a file in a line of its own.

use crate::scene::{Ended, Scene, words};

/// The chip to copy, which tests break.
const MESH: &str = include_str!("../../../../chips/mesh.toml");

/// Runs `isles chip` with one file of the scene.
fn chip(verb: &str, text: &str) -> (Ended, String) {
    let scene = Scene::new("chip");
    let file = scene.file("my.toml", text).display().to_string();
    let ended = scene.run(&["chip", verb, &file]);
    scene.assert_nothing_left();
    (ended, file)
}

#[test]
fn lines_that_are_faster_than_their_links_are_warned_of() {
    let scene = Scene::new("chip");
    let check = |name: &str| scene.run(&["chip", "check", name]);
    for name in ["scc", "mesh", "c6678", "bluegene-p", "xeon-cluster", "opteron-cluster"] {
        let ended = check(name);
        assert!(ended.code == Some(0) && !ended.stdout.contains("warning"), "{name}: {ended:?}");
    }
    // Over one hop a line of the buffer takes 30 + 6 cycles of 1 ns; its five flits of 8 cycles and its head take 43.
    let mesh =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../chips/mesh.toml")).unwrap();
    let slow = mesh.replace("flit_time = \"1 cycle of mesh\"", "flit_time = \"8 cycles of mesh\"");
    assert_ne!(slow, mesh);
    std::fs::write(scene.path("slow.toml"), slow).unwrap();
    let ended = check("slow.toml");
    let warning =
        "warning: buffer_line.read of 1000/1000/800 takes 36 ns over 1 hop, but its flits alone take 43 ns";
    assert!(ended.code == Some(0) && ended.stdout.contains(warning), "{ended:?}");
    // A run prints the line too; it uses the first of the two times.
    let line =
        "run bc --graph karate --machine chip:mesh --places 2 --top 0 --json /dev/null --csv /dev/null";
    let run = |set: &str| scene.run(&[&words(line)[..], &["--set", set]].concat()).stderr;
    assert!(run("links.flit_time=8 cycles of mesh").contains(warning));
    assert!(!run("links.flit_time=2 cycles of mesh").contains("warning"));
}

#[test]
fn the_list_names_every_chip_with_its_cores() {
    let ended = Scene::new("chip").run(&["chip", "list"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let row = |name: &str| ended.stdout.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    for (name, cores) in [("scc ", " 48 "), ("bluegene-p ", " 131072 "), ("c6678 ", " 8 "), ("mesh ", " 16 ")]
    {
        assert!(row(name).is_some_and(|row| row.contains(cores)), "{name}: {ended:?}");
    }
}

#[test]
fn a_chip_is_shown_with_its_mesh_and_the_source_of_each_constant() {
    let ended = Scene::new("chip").run(&["chip", "show", "scc"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for part in [
        "48 P54C cores, 24 tiles in a mesh of 6 x 4",
        "| 36 37 |--| 38 39 |--| 40 41 |",
        "+-M0----+",
        "105 ns of core + 5 ns/hop of mesh",
        "[eval] Evaluation of the SCC interconnect",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

#[test]
fn every_chip_can_be_shown_and_the_largest_is_described() {
    for name in ["bluegene-p", "c6678", "mesh"] {
        let ended = Scene::new("chip").run(&["chip", "show", name]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{name}");
        assert_eq!(ended.stdout.contains("(no drawing: "), name == "bluegene-p");
    }
}

#[test]
fn a_picture_is_written_where_it_was_asked_for() {
    let scene = Scene::new("chip");
    let ended = scene.run(&["chip", "show", "scc", "--svg", "scc.svg"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""));
    let svg = scene.result("scc.svg");
    assert!(svg.starts_with("<svg ") && svg.contains(">46 47</text>") && svg.ends_with("</svg>\n"));
    let shown = Scene::new("chip").run(&["chip", "show", "scc", "--svg", "-"]);
    assert_eq!((shown.code, shown.stdout, shown.stderr.as_str()), (Some(0), svg, ""));
}

#[test]
fn a_picture_that_cannot_be_written_or_drawn_is_one_line() {
    let scene = Scene::new("chip");
    let ended = scene.run(&["chip", "show", "scc", "--svg", "no/such/folder.svg"]);
    let start =
        "error: --svg is \"no/such/folder.svg\"; allowed: - or a file that can be written (No such file";
    assert!(ended.refusal().starts_with(start), "{ended:?}");
    let refused = scene.run(&["chip", "show", "bluegene-p", "--svg", "big.svg"]);
    assert!(refused.refusal().contains("32 x 32 x 32 tiles; allowed in a drawing: at most"), "{refused:?}");
    scene.assert_nothing_left();
}

#[test]
fn a_file_without_fault_is_said_to_be_one() {
    let (ended, file) = chip("check", MESH);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.starts_with(&format!("{file}: no fault; 16 cores, ")), "{ended:?}");
    assert!(ended.stdout.contains(" constants, 1 source\n"), "{ended:?}");
}

#[test]
fn a_check_says_how_many_places_can_run_and_what_is_missing_if_none() {
    let last = |text: &str| {
        let (ended, _) = chip("check", text);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        ended.stdout.lines().find(|line| line.starts_with("places: ")).unwrap().to_owned()
    };
    assert_eq!(last(MESH), "places: up to 16 by doorbell");
    assert_eq!(
        last(&without_buffer_line()),
        "places: none, because preset \"1000/1000/800\" has no buffer_line"
    );
    let small = MESH.replace("per_core = \"16 KiB\"", "per_core = \"64 B\"");
    let line = last(&small);
    assert!(
        line.starts_with("places: none, because the message buffer of a core has 1 line, but "),
        "{line}"
    );

    let scene = Scene::new("chip");
    for (text, part) in [
        (without_buffer_line(), "(preset \"1000/1000/800\" has no buffer_line)"),
        (small, "(the message buffer of a core has 1 line, but "),
    ] {
        scene.leave("my.toml", &text);
        let ended = scene.run(&["run", "bc", "--graph", "karate", "--machine", "chip:my.toml"]);
        assert!(ended.refusal().contains(part), "{ended:?}");
    }
    let list = scene.run(&["chip", "list"]).stdout;
    let row =
        |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().nth(2);
    assert_eq!((row("scc"), row("c6678"), row("bluegene-p")), (Some("48"), Some("8"), Some("32768")));
}

#[test]
fn a_chip_with_more_cores_than_its_protocol_carries_says_which_carry_them_and_takes_one() {
    let mut larger = include_str!("../../../../chips/scc.toml").replace("tiles = [6, 4]", "tiles = [8, 6]");
    for (from, to) in [("[5, 1]", "[7, 1]"), ("[2, 3]", "[2, 5]"), ("[5, 3]", "[7, 5]")] {
        larger = larger.replace(&format!("serves_to = {from}"), &format!("serves_to = {to}"));
    }
    let larger = larger.as_str();
    let (checked, _) = chip("check", larger);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let line = |start: &str| checked.stdout.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert_eq!(line("places: "), "places: up to 80 by doorbell");
    let room: Vec<&str> = line("  doorbell ").split_whitespace().take(4).collect();
    assert_eq!(room, ["doorbell", "80", "of", "96"], "{checked:?}");
    let why = "(the message buffer of a core has 256 lines, but ";
    assert!(line("  doorbell ").contains(why), "{checked:?}");
    assert!(line("  ring ").ends_with(" 96 of 96"), "{checked:?}");

    let scene = Scene::new("chip");
    let file = scene.file("larger.toml", larger);
    let run = format!("run pi --machine chip:{} --json /dev/null --csv /dev/null", file.display());
    let launch = format!(
        "launch --machine chip:{} --places 96 -- {} run pi --json /dev/null --csv /dev/null",
        file.display(),
        crate::PROGRAM
    );
    let launched = scene.run(&words(&launch));
    let printed = launched.stderr.lines().filter(|line| line.contains(": the protocol is ")).count();
    assert_eq!((launched.code, printed), (Some(0), 1), "{launched:?}");
    let chosen = |more: &str| {
        let ended = scene.run(&words(&format!("{run}{more}")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines = ended.stderr.lines().filter(|line| line.contains(": the protocol is "));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert!(lines.len() < 2, "{ended:?}");
        (lines.concat(), ended.stderr)
    };
    let (line, said) = chosen("");
    assert!(line.contains(", because doorbell does not support 96 places (the message buffer "), "{said}");
    let name = line.split_once("the protocol is ").unwrap().1.split(',').next().unwrap();
    assert!(said.contains(&format!("predicted on 96 cores with {name} at ")), "{said}");
    for (more, protocol) in [(" --places 80", "doorbell"), (" --protocol ring", "ring")] {
        let (line, said) = chosen(more);
        assert!(line.is_empty() && said.contains(&format!(" cores with {protocol} at ")), "{said}");
    }
}

/// Returns the mesh without the cost of a line of a message buffer.
fn without_buffer_line() -> String {
    let (before, rest) = MESH.split_once("[preset.\"1000/1000/800\".buffer_line]\n").unwrap();
    let rest = rest.split_once("\n[").map_or("", |(_, rest)| rest);
    format!("{before}[{rest}")
}

#[test]
fn names_and_several_files_are_checked() {
    let scene = Scene::new("chip");
    scene.leave("a.toml", MESH);
    scene.leave("b.toml", &MESH.replace("per_core = \"16 KiB\"", "per_core = 16"));
    scene.leave("c", MESH);
    let good = scene.run(&["chip", "check", "scc", "a.toml", "c"]);
    assert_eq!((good.code, good.stderr.as_str()), (Some(0), ""));
    let heads = good.stdout.lines().filter(|line| line.contains(": no fault; "));
    let starts: Vec<&str> = heads.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(starts, ["scc:", "a.toml:", "c:"]);
    let one = scene.run(&["chip", "check", "b.toml", "a.toml"]);
    assert!(one.code == Some(2) && one.stdout.starts_with("a.toml: no fault; 16 cores"), "{one:?}");
    let lines: Vec<&str> = one.stderr.lines().collect();
    assert!(lines[0].starts_with("b.toml:") && lines[0].contains("buffer.per_core is 16"), "{one:?}");
    let ends = ["the chip file b.toml has 1 fault", "error: 1 of 2 chips have faults or cannot be read"];
    assert_eq!(lines[1..], ends);
}

#[test]
fn each_fault_of_a_file_is_a_line_with_its_place() {
    let broken = MESH
        .replace("per_core = \"16 KiB\"", "per_core = 16")
        .replace("voltage_change = \"100 us\"", "voltage_change = \"-100 us\"")
        .replace("at = [3, 3]", "at = [3, 4]");
    let line_of =
        |part: &str| broken.lines().position(|line| line.starts_with(part)).map_or(0, |line| line + 1);
    let (buffer, tile, change) =
        (line_of("per_core = 16"), line_of("at = [3, 4]"), line_of("voltage_change"));
    let scene = Scene::new("chip");
    scene.leave("my.toml", &broken);
    let run = scene.run(&["run", "bc", "--graph", "karate", "--machine", "chip:my.toml"]);
    let start = "error: --machine is \"chip:my.toml\"; allowed: a chip file without faults (my.toml:";
    assert!(run.refusal().starts_with(start), "{run:?}");
    assert!(run.refusal().ends_with("; and 2 more: isles chip check my.toml)"), "{run:?}");
    for verb in ["check", "show"] {
        let (ended, file) = chip(verb, &broken);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let starts = [
            format!("{file}:{buffer}: buffer.per_core is 16; it has no unit; allowed: a size in B, KiB"),
            format!(
                "{file}:{tile}: memory.controller.at is [3, 4]; it is outside the tiles; allowed: x to 3"
            ),
            format!(
                "{file}:{change}: preset.\"1000/1000/800\".voltage_change is \"-100 us\"; it is negative, not zero"
            ),
            format!("error: the chip file {file} has 3 faults"),
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:?}");
        for (line, start) in lines.into_iter().zip(starts) {
            assert!(line.starts_with(&start), "{line}\ninstead of {start}");
        }
    }
}

#[test]
fn a_chip_that_is_nowhere_is_one_line() {
    let scene = Scene::new("chip");
    let unknown = scene.run(&["chip", "show", "moon"]);
    let line = "error: chip is \"moon\"; allowed: scc, bluegene-p, c6678, mesh, opteron-cluster, \
                xeon-cluster, or a path that ends in .toml";
    assert_eq!(unknown.refusal(), line);
    assert_eq!(scene.run(&["chip", "check", "moon"]).refusal(), line);
    let missing = scene.run(&["chip", "check", "./moon"]);
    assert!(missing.refusal().starts_with("error: cannot read the chip file ./moon: "), "{missing:?}");
    scene.assert_nothing_left();
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let scene = Scene::new("chip");
    let file = scene.file("my.toml", b"\xff\xfe\x00").display().to_string();
    assert!(scene.run(&["chip", "check", &file]).refusal().contains("cannot read the chip file"));
}
