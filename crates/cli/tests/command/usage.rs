//! Bad input to the `isles` command: one clear line, exit code 2, nothing left behind.
//!
//! Each case is run as a user would run it, in a folder of its own. The line must name the source of the value, the
//! value, and the allowed values; no process, file or result may remain. Good input is in `run.rs`.

use crate::page_block::assert_shown;
use crate::scene::{Ended, Running, Scene, busy_ns, ended, has_thread, until, words};
use isles::{SETTINGS, SettingDefault, SettingRow};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Runs `isles` with bad arguments and returns the line of its refusal.
fn refuse(arguments: &[&str]) -> String {
    let scene = Scene::new("usage");
    let line = scene.run(arguments).refusal().to_owned();
    scene.assert_nothing_left();
    line
}

/// Asserts that the line of a refusal contains all of `parts`.
fn assert_says(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part:?} is not said: {line}");
    }
}

#[test]
fn the_help_of_an_application_begins_with_what_it_computes() {
    let scene = Scene::new("help");
    for (line, begins) in [
        ("run bc --help", "Betweenness centrality of a graph"),
        ("launch --help", "Starts your own program over places"),
        ("power fit --help", "Fits power models to a table of measured powers"),
    ] {
        let ended = scene.run(&words(line));
        assert!(ended.code == Some(0) && ended.stdout.starts_with(begins), "{ended:?}");
    }
    let launch = scene.run(&words("launch --help")).stdout;
    let of_chip = "Files of a run on a modelled chip:\n";
    // A trace is not only for chips.
    let order = ["Arguments:\n  <PROGRAM>...", "Options:\n", "Files of a run:\n", "--trace <FILE>", of_chip];
    let order = order.map(|part| launch.find(part).unwrap_or_else(|| panic!("{part:?} in {launch}")));
    assert!(order.is_sorted(), "the program is none of the files: {launch}");
    let list = scene.run(&words("run --help"));
    let bc = list.stdout.lines().find_map(|line| line.strip_prefix("  bc  "));
    assert!(bc.is_some_and(|about| about.trim_start().starts_with("Betweenness centrality")), "{list:?}");
    let graphs = scene.run(&words("data list"));
    assert!(graphs.stdout.contains("rmat-medium") && graphs.stdout.contains("`rmat:n,a,b,c,d"), "{graphs:?}");
}

/// Returns the names of the commands that a help text lists.
fn commands_in(help: &str) -> Vec<String> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A text that continues on the next line is indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_help_is_at_most_100_columns_wide() {
    let scene = Scene::new("help");
    let mut seen = 0;
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(words) = open.pop() {
        // The help of `isles bench` is that of another program.
        if words.last().is_some_and(|word| word == "help" || word == "bench") {
            continue;
        }
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = scene.run(&arguments).stdout;
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "isles {}: {line:?}", arguments.join(" "));
        }
        seen += 1;
        open.extend(commands_in(&help).into_iter().map(|name| [words.clone(), vec![name]].concat()));
    }
    assert!(seen >= 15, "only {seen} helps were seen");
}

#[test]
fn the_first_help_says_what_the_command_is_and_begins_with_running() {
    let scene = Scene::new("help");
    let help = scene.run(&["--help"]).stdout;
    assert!(help.starts_with("Runs one Rust program over many places"), "{help}");
    let order =
        ["\n  run ", "\n  launch ", "\n  sweep ", "\n  data ", "isles run bc --graph karate --places 4"];
    let order = order.map(|part| help.find(part).unwrap_or_else(|| panic!("{part:?} in {help}")));
    assert!(order.is_sorted(), "{help}");
}

#[test]
fn what_is_said_of_a_modelled_chip_stands_in_a_group_of_its_own() {
    let scene = Scene::new("help");
    for line in ["run bc --help", "launch --help", "sweep --help"] {
        let help = scene.run(&words(line)).stdout;
        let (general, chip) = help.split_once("\nSettings of a modelled chip:\n").expect(line);
        for flag in ["--protocol ", "--governor ", "--voltages ", "--work "] {
            assert!(!general.contains(flag) && chip.contains(flag), "{line}: {flag}");
        }
        for flag in ["--machine ", "--places "] {
            assert!(general.contains(flag), "{line}: {flag}");
        }
    }
    let help = scene.run(&words("run bc --help")).stdout;
    assert!(
        help.ends_with("\nbc uses no collectives of teams: --broadcast and --reduce change nothing.\n"),
        "{help}"
    );
}

#[test]
fn the_help_has_each_setting_with_its_text_and_a_launched_program_finds_it() {
    let scene = Scene::new("settings");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let helps = ["launch --help", "run bc --help", "doctor --help", "calibrate --help"];
    let helps = helps.map(|line| joined(&scene.run(&words(line)).stdout));
    let mut launch = words("launch --machine chip:scc");
    let values: Vec<(&SettingRow, &str)> =
        SETTINGS.iter().filter(|row| row.flag.is_some()).map(|row| (row, sample(row))).collect();
    for (row, value) in &values {
        let Some(flag) = row.flag else { continue };
        for help in &helps {
            let line = format!("{} <{}> {}", flag.name, flag.value, joined(&row.help()));
            assert!(help.contains(&line), "{line:?} is not in {help}");
        }
        if !["machine", "pinning"].contains(&row.name) {
            launch.extend([flag.name, *value]);
        }
    }
    launch.extend(["--", "env"]);
    let ended = scene.run(&launch);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (row, value) in values.into_iter().filter(|(row, _)| row.name != "pinning") {
        let line = format!("{}={value}", row.variable);
        assert!(ended.stdout.lines().any(|other| other == line), "{line} is not in {}", ended.stdout);
    }
}

/// Returns a value of a setting that a run on the modelled SCC may have.
fn sample(row: &SettingRow) -> &'static str {
    match (row.name, row.default) {
        ("machine", _) => "chip:scc",
        ("places", _) => "2",
        ("report", _) => "finish",
        ("color", _) => "never",
        ("record", _) => "run",
        ("protocol", _) => "sections",
        ("constants", _) => "links.flit_time=2",
        ("preset", _) => "800/1600/1066",
        ("power model" | "voltages", _) => "manyman",
        ("work", _) => "host:20",
        ("summary", _) => "-",
        ("links" | "traffic" | "heat" | "trace" | "folded" | "joules" | "tape", _) => row.name,
        (_, SettingDefault::Value(value)) => value,
        _ => panic!("which value may {} have?", row.name),
    }
}

#[test]
fn a_program_can_be_launched_as_mpirun_does_it() {
    let scene = Scene::new("launch");
    for line in ["launch -n 3 -- sh -c", "launch -n 3 sh -c", "launch --places 3 sh -c"] {
        let ended = scene.run(&[&words(line)[..], &["echo $ISLES_PLACES $0", "-n"]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "3 -n\n"), "{line}: {ended:?}");
    }
    assert_eq!(refuse(&words("launch -m threads -- true")), "error: unexpected argument '-m' found");
}

#[test]
fn a_program_that_is_none_of_isles_is_started_with_a_word_about_it() {
    let scene = Scene::new("launch");
    let strange = scene.run(&words("launch --places 2 -- true"));
    let warning = "warning: true does not look like an Isles program: it is started once, without places\n";
    assert_eq!((strange.code, strange.stderr.as_str()), (Some(0), warning));
    let own = scene.isles(&["launch", "--", crate::PROGRAM, "--version"]);
    assert_eq!(crate::scene::ended(own).stderr, "");
    let script = scene.executable("script", "#!/bin/sh\n");
    let script = scene.isles(&["launch", "--", script.to_str().unwrap()]);
    assert_eq!(crate::scene::ended(script).stderr, "", "a script may start a program of Isles");
}

#[test]
fn an_unknown_machine_is_named_with_those_that_are_known() {
    let line = refuse(&["run", "bc", "--machine", "gpu"]);
    assert_eq!(
        line,
        r#"error: --machine is "gpu"; allowed: threads, processes, mpi, loopback, chip:NAME, chip:FILE.toml"#
    );
}

#[test]
fn governors_and_rests_that_cannot_be_are_named_with_what_can() {
    let refusal = |flags: &str| refuse(&words(&format!("run bc --machine chip:scc {flags}")));
    assert_eq!(
        refusal("--governor turbo"),
        "error: --governor is \"turbo\"; allowed: fixed, fixed:DIVIDER, on-demand, phase-aware, capped:WATTS such as \
         capped:60W"
    );
    assert_eq!(
        refusal("--governor fixed:1"),
        r#"error: --governor is "fixed:1"; allowed: a divider from 2 to 16"#
    );
    assert_says(
        &refusal("--governor capped:5W"),
        &[r#"--governor is "capped:5W"; allowed: at least 20."#, "slowest"],
    );
    assert_eq!(
        refusal("--rest nap:2s"),
        r#"error: --rest is "nap:2s"; allowed: poll, or nap:TIME with a time up to a second, such as nap:100us"#
    );
}

#[test]
fn collectives_that_are_not_known_are_named_with_those_that_are() {
    let refusal = |flags: &str| refuse(&words(&format!("run bc --machine chip:scc {flags}")));
    assert_eq!(
        refusal("--broadcast oc"),
        "error: --broadcast is \"oc\"; allowed: auto, flat, binomial, chain, scatter-allgather, fan:CHILDREN or \
         async:CHILDREN with 1 to 255 children such as fan:7"
    );
    assert_eq!(
        refusal("--broadcast async:47"),
        "error: --broadcast is \"async:47\"; allowed: at most async:29 on chip:scc with 48 places and doorbell (the message \
         buffer of a core has 256 lines, but 291 are needed)"
    );
    assert_eq!(
        refusal("--broadcast async:2 --protocol rcce"),
        "error: --broadcast is \"async:2\"; allowed: any but async on chip:scc with 48 places and rcce (asynchronous \
         broadcasts need the protocol doorbell)"
    );
    assert_eq!(refusal("--reduce log"), r#"error: --reduce is "log"; allowed: auto, serial, logarithmic"#);
}

#[test]
fn placements_that_cannot_be_are_named_with_what_can() {
    let refusal = |flags: &str| refuse(&words(&format!("run bc --machine chip:scc {flags}")));
    let lists = "linear, spread, or cores and ranges of cores separated by commas, such as 0,2,10-13";
    for value in ["near", "", "3-1", "-1", "0,,1"] {
        let line = refuse(&["run", "bc", "--machine", "chip:scc", "--placement", value]);
        assert_eq!(line, format!("error: --placement is {value:?}; allowed: {lists}"));
    }
    assert_eq!(
        refusal("--placement 0-3,2"),
        r#"error: --placement is "0-3,2"; allowed: each core once (2 is repeated)"#
    );
    assert_eq!(
        refusal("--placement 0,48"),
        r#"error: --placement is "0,48"; allowed: cores from 0 to 47 of the chip (48 is not one)"#
    );
    assert_eq!(
        refusal("--places 4 --placement 0,2-3"),
        r#"error: --placement is "0,2-3"; allowed: at least 4 cores, one for each place (this list has 3)"#
    );
    let line = refuse(&words("run bc --machine threads --placement spread"));
    assert_says(&line, &[r#"--placement is "spread"; allowed: nothing with machine threads"#]);
    let line = refuse(&words("launch --machine chip:scc --placement 0,0 -- true"));
    assert_says(&line, &[r#"--placement is "0,0"; allowed: each core once"#]);
    let scene = Scene::new("placement");
    let mut command = scene.isles(&words("run bc --machine chip:scc --places 3"));
    command.env("ISLES_CHIP_PLACEMENT", "5,7");
    assert_says(ended(command).refusal(), &[r#"ISLES_CHIP_PLACEMENT is "5,7"; allowed: at least 3 cores"#]);
    scene.assert_nothing_left();
}

#[test]
fn an_unknown_protocol_is_named_with_those_that_are_known() {
    let refusal = "error: --protocol is \"mpi\"; allowed: doorbell, rcce-x10, sections, sections-by-places, \
                   sections-memory, sections-mixed, sockets, mpi-sock, rcce, ring, packets";
    assert_eq!(refuse(&words("run bc --machine chip:scc --protocol mpi")), refusal);
    assert_eq!(refuse(&words("launch --protocol mpi -- true")), refusal);
    let scene = Scene::new("protocol");
    let mut command = scene.isles(&words("run bc --machine chip:scc"));
    command.env("ISLES_CHIP_PROTOCOL", "mpi");
    assert_eq!(ended(command).refusal(), refusal.replace("--protocol", "ISLES_CHIP_PROTOCOL"));
    scene.assert_nothing_left();
}

#[test]
fn a_number_of_places_that_cannot_be_is_named_with_its_bounds() {
    for value in ["0", "257", "1000000000000000000000", "-1", "1.5", "two", ""] {
        let line = refuse(&["run", "bc", &format!("--places={value}")]);
        assert_eq!(line, format!("error: --places is {value:?}; allowed: a whole number from 1 to 256"));
    }
    assert_says(&refuse(&["run", "bc", "--places", "-1"]), &["--places", "-1"]);
}

#[test]
fn processors_that_places_cannot_stay_on_are_named_with_what_can() {
    let lists = "auto, no, or processors and ranges of processors separated by commas, such as 0,2,4-7";
    for value in ["yes", "", "3-1", "-1", "0,,1"] {
        for line in ["run bc --machine threads", "run bc --machine chip:scc"] {
            let arguments = [words(line), vec!["--pin", value]].concat();
            assert_eq!(refuse(&arguments), format!("error: --pin is {value:?}; allowed: {lists}"));
        }
    }
    let line = refuse(&words("run bc --places 2 --pin 0,0"));
    assert_eq!(line, r#"error: --pin is "0,0"; allowed: each processor once (0 is repeated)"#);
    let line = refuse(&words("launch --pin 1023 --places 1 -- true"));
    assert_says(&line, &[r#"--pin is "1023"; allowed: processors that this program may use: "#]);
    for machine in ["loopback", "chip:scc"] {
        let line = refuse(&words(&format!("run bc --machine {machine} --pin no")));
        let allowed = format!("nothing with machine {machine} (all its places are one thread)");
        assert_eq!(line, format!(r#"error: --pin is "no"; allowed: {allowed}"#));
    }
}

#[test]
fn ranks_of_a_launcher_are_refused_by_a_program_that_was_built_without_mpi() {
    if cfg!(feature = "mpi") {
        return;
    }
    let rank = |rank: &str| {
        let scene = Scene::new("ranks");
        let mut isles = scene.isles(&words("run pi"));
        isles.env("PMI_RANK", rank).env("PMI_SIZE", "4");
        ended(isles)
    };
    let first = rank("0");
    assert_says(first.refusal(), &["machine mpi", "built without MPI", "--features mpi", "ISLES_MACHINE"]);
    // The other ranks leave the message to the first one.
    let other = rank("1");
    assert_eq!((other.code, other.stdout.as_str(), other.stderr.as_str()), (Some(2), "", ""));
}

#[test]
fn variables_with_bad_values_are_named() {
    let cases = [
        (
            "ISLES_PIN",
            "all",
            "auto, no, or processors and ranges of processors separated by commas, such \
             as 0,2,4-7",
        ),
        ("ISLES_MACHINE", "gpu", "threads, processes, mpi, loopback, chip:NAME, chip:FILE.toml"),
        ("ISLES_PLACES", "0", "a whole number from 1 to 256"),
        ("ISLES_PLACES", "257", "a whole number from 1 to 256"),
        ("ISLES_PLACES", "many", "a whole number from 1 to 256"),
        (
            "ISLES_REPORT",
            "all",
            "captures, finish, messages, counters, balance, chip, or several separated by commas",
        ),
        ("ISLES_STALL", "soon", "seconds of silence, from 0 (never) to 86400"),
        ("ISLES_STALL", "NaN", "seconds of silence, from 0 (never) to 86400"),
        ("ISLES_STALL_LIMIT", "a day", "seconds of silence, from 0 (never) to 86400"),
        ("ISLES_SEED", "-1", "a whole number from 0 to 2^64 - 1"),
    ];
    for (name, value, allowed) in cases {
        let scene = Scene::new("usage");
        let mut command = scene.isles(&["run", "bc", "--graph", "karate"]);
        command.env(name, value);
        assert_eq!(ended(command).refusal(), format!("error: {name} is {value:?}; allowed: {allowed}"));
        scene.assert_nothing_left();
    }
}

#[test]
fn variables_without_a_meaning_are_told_once_a_run_and_change_nothing() {
    let scene = Scene::new("misspelt");
    let bc = "run bc --graph karate --json /dev/null --csv /dev/null --top 0";
    let launch = format!("launch --machine processes --places 2 -- {} {bc}", crate::PROGRAM);
    for line in [
        &format!("{bc} --machine processes --places 3"),
        &format!("{bc} --machine chip:scc --places 3"),
        &launch,
        "sweep --app bc --graph karate --places 1,2 --dividers 2",
        "repro echo",
        "data list",
        "chip list",
    ] {
        let mut command = scene.isles(&words(line));
        command.envs([
            ("ISLES_PLACE", "7"),
            ("ISLES_CACHE", "/none"),
            ("ISLES_CHIP_SEED", ""),
            ("ISLES", "7"),
        ]);
        let ended = ended(command);
        let printed: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        let warning = "warning: unknown variable ISLES_PLACE; did you mean ISLES_PLACES?";
        assert_eq!((ended.code, printed), (Some(0), vec![warning]), "{line}: {ended:?}");
        assert!(!ended.stdout.contains("warning"), "{ended:?}");
        assert_shown("machines.md", "crates/cli/tests/command/usage.rs", &ended.stderr);
    }
}

#[test]
fn an_argument_that_is_no_text_is_named() {
    let scene = Scene::new("usage");
    for before in [
        &[][..],
        &["run"],
        &["run", "bc"],
        &["run", "bc", "--graph"],
        &["launch", "-n"],
        &["data"],
        &["sweep"],
    ] {
        let mut command = scene.isles(before);
        command.arg(OsStr::from_bytes(b"a\xff"));
        let ended = ended(command);
        assert_eq!(
            ended.refusal(),
            r#"error: the argument "a\xFF" is not text; allowed: UTF-8"#,
            "{before:?}"
        );
    }
    scene.assert_nothing_left();
}

#[test]
fn a_bad_variable_is_refused_unless_a_flag_takes_its_place() {
    let scene = Scene::new("usage");
    let files = ["--json", "/dev/null", "--csv", "/dev/null"];
    for (flag, code) in [("--places", 0), ("--machine", 2)] {
        let value = if flag == "--places" { "2" } else { "threads" };
        let mut command = scene.isles(&["run", "bc", "--graph", "karate", flag, value]);
        command.args(files).env("ISLES_PLACES", OsStr::from_bytes(b"\xff2"));
        let ended = ended(command);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        if code == 2 {
            let says = ["ISLES_PLACES is ", "allowed: a whole number from 1 to 256"];
            assert_says(ended.refusal(), &says);
        }
    }
    scene.assert_nothing_left();
}

#[test]
fn arguments_that_do_not_exist_are_named() {
    assert_says(&refuse(&["run", "bc", "--grph", "karate"]), &["--grph", "--graph"]);
    assert_says(&refuse(&["run", "bc", "karate"]), &["karate"]);
    assert_says(&refuse(&["run", "bc", "--report", "all"]), &["--report", "all", "captures, finish"]);
    assert_says(&refuse(&["run", "bc", "--graph"]), &["--graph"]);
    assert_says(&refuse(&["run"]), &["bc"]);
    assert_says(&refuse(&["run", "sort"]), &["sort"]);
    assert_says(&refuse(&["rum"]), &["rum", "run"]);
    assert_says(&refuse(&["launch", "--places", "2"]), &["PROGRAM"]);
}

#[test]
fn what_is_missing_or_too_much_is_said_with_what_belongs_there() {
    for (line, says) in [
        ("run", "isles run needs a command; allowed: APPS"),
        ("run --graph karate", "isles run needs a command before \"--graph\"; allowed: APPS"),
        ("run bc --csv", "a value is missing: --csv <FILE>"),
        ("run bc --balance", "--balance is \"\"; allowed: static, dynamic, single, glb"),
        ("sweep --app bc --cap", "a value is missing: --cap <WATTS>"),
        ("sweep --app bc bc", "unexpected argument 'bc' found; usage: isles run bc [OPTIONS]"),
        (
            "chip show",
            "the following required arguments were not provided: <NAME>; usage: isles chip show <NAME>",
        ),
        ("chip draw", "isles chip has no command \"draw\"; allowed: list, show, check"),
    ] {
        assert_eq!(refuse(&words(line)), format!("error: {says}").replace("APPS", &applications()));
    }
}

/// Returns the names of all applications, as a refusal lists them.
fn applications() -> String {
    let list = Scene::new("names").run(&["list"]).stdout;
    let names =
        list.lines().filter(|line| !line.starts_with("isles ")).filter_map(|line| line.split(' ').next());
    names.collect::<Vec<_>>().join(", ")
}

#[test]
fn values_of_every_flag_are_refused_in_the_same_words() {
    let cases = [
        ("--balance", "fair", "static, dynamic, single, glb"),
        ("--weights", "heavy", "ignore, file, unit"),
        ("--weights", "", "ignore, file, unit"),
        ("--top", "ten", "a whole number from 0 up"),
        ("--top", "-1", "a whole number from 0 up"),
        ("--machine", "gpu", "threads, processes, mpi, loopback, chip:NAME, chip:FILE.toml"),
        ("--places", "-1", "a whole number from 1 to 256"),
    ];
    for (flag, value, allowed) in cases {
        let line = refuse(&["run", "bc", flag, value]);
        assert_eq!(line, format!("error: {flag} is {value:?}; allowed: {allowed}"));
    }
}

#[test]
fn an_unknown_graph_is_named_with_those_that_are_known() {
    let known = ["karate", "power", "email-Enron", "rmat-high"];
    assert_says(
        &refuse(&["run", "bc", "--graph", "whales"]),
        &[&["`whales`", "no such file"], &known[..]].concat(),
    );
    assert_says(&refuse(&["data", "fetch", "whales"]), &["`whales`", "karate", "power", "email-Enron"]);
}

#[test]
fn parameters_of_a_generated_graph_are_checked() {
    for bad in [
        "rmat:",
        "rmat:0,0.25,0.25,0.25,0.25",
        "rmat:99,0.25,0.25,0.25,0.25",
        "rmat:9,1,1,1,1",
        "rmat:9,NaN,0,0,1",
    ] {
        assert_says(&refuse(&["run", "bc", "--graph", bad]), &[bad, "expected `rmat:n,a,b,c,d`"]);
    }
}

/// A file with a fault, the arguments that read it, and the expected refusal.
struct Fault {
    name: &'static str,
    bytes: &'static [u8],
    weights: &'static str,
    says: &'static [&'static str],
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "word.txt",
        bytes: b"# a graph\n0 1\n\n1 two\n",
        weights: "ignore",
        says: &["line 4: found `1 two`", "`from to`"],
    },
    Fault {
        name: "short.txt",
        bytes: b"0 1\n7\n",
        weights: "ignore",
        says: &["line 2: found `7`", "`from to`"],
    },
    Fault {
        name: "below.txt",
        bytes: b"0 1\n-1 0\n",
        weights: "ignore",
        says: &["line 2: found `-1 0`", "vertices from 0"],
    },
    Fault {
        name: "far.txt",
        bytes: b"0 1\n0 99999999999\n",
        weights: "ignore",
        says: &["line 2: vertex 99999999999 in a graph of 2 edges", "without large gaps"],
    },
    Fault {
        name: "empty.txt",
        bytes: b"",
        weights: "ignore",
        says: &["the graph has no vertices; allowed: at least one"],
    },
    Fault {
        name: "silent.txt",
        bytes: b"# nothing\n\n",
        weights: "ignore",
        says: &["the graph has no vertices; allowed: at least one"],
    },
    Fault {
        name: "negative.txt",
        bytes: b"0 1 2.5\n1 2 -1\n",
        weights: "file",
        says: &["line 2: weight -1 is not a length", "above zero and finite"],
    },
    Fault {
        name: "nan.txt",
        bytes: b"0 1 NaN\n",
        weights: "file",
        says: &["line 1: weight NaN is not a length", "above zero and finite"],
    },
    Fault {
        name: "zero.txt",
        bytes: b"0 1 0\n",
        weights: "file",
        says: &["line 1: weight 0 is not a length"],
    },
    Fault { name: "heavy.txt", bytes: b"0 1 x\n", weights: "file", says: &["line 1: found `0 1 x`"] },
    Fault {
        name: "some.txt",
        bytes: b"0 1 1\n1 2\n",
        weights: "file",
        says: &["line 2: found `1 2`", "a weight on each line or on none"],
    },
    Fault {
        name: "plain.txt",
        bytes: b"0 1\n",
        weights: "file",
        says: &["--weights is \"file\"", "plain.txt has no weights", "allowed: ignore, unit"],
    },
    Fault {
        name: "one-sided.graph",
        bytes: b"3 2\n2\n1 3\n\n",
        weights: "ignore",
        says: &["line 3: found `vertex 3`", "each edge in the lines of both its vertices", "edge list"],
    },
    Fault {
        name: "index.csv",
        bytes: b",source,target\n0,0,1\n",
        weights: "ignore",
        says: &["line 1: found `,source,target`, expected a head of `source,target`"],
    },
    Fault {
        name: "far.mtx",
        bytes: b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n4 1\n",
        weights: "ignore",
        says: &["line 4: vertex 4 is out of range; allowed: 1 to 3"],
    },
    Fault {
        name: "nobody.mtx",
        bytes: b"%%MatrixMarket matrix coordinate pattern symmetric\n0 0 0\n",
        weights: "ignore",
        says: &["the graph has no vertices"],
    },
    Fault {
        name: "early.mtx",
        bytes: b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n",
        weights: "ignore",
        says: &["ends early", "line"],
    },
    Fault {
        name: "binary",
        bytes: b"\x00\x01\x02\x03",
        weights: "ignore",
        says: &["unknown format; allowed: edge list, CSV, Matrix Market"],
    },
    Fault {
        name: "cut.gt",
        bytes: b"\xe2\x9b\xbe gt\x01\x00",
        weights: "ignore",
        says: &["ends early", "byte 8"],
    },
    Fault {
        name: "cut.gz",
        bytes: b"\x1f\x8b\x08\x00\x00",
        weights: "ignore",
        says: &["damaged gzip stream"],
    },
];

#[test]
fn a_faulty_graph_is_named_with_the_place_of_the_fault() {
    let scene = Scene::new("usage");
    for fault in FAULTS {
        let path = scene.file(fault.name, fault.bytes);
        let path = path.to_str().unwrap();
        for machine in ["processes", "threads"] {
            let ended =
                scene.run(&["run", "bc", "--graph", path, "--weights", fault.weights, "--machine", machine]);
            assert_says(ended.refusal(), fault.says);
            assert_says(ended.refusal(), &[path]);
            scene.assert_nothing_left();
        }
    }
}

#[test]
fn a_form_that_says_that_edges_lead_both_ways_is_not_read_as_directed() {
    let scene = Scene::new("directed");
    let ended = scene.run(&["run", "bc", "--graph", "karate", "--directed"]);
    let line = ended.refusal();
    assert!(
        line.contains("karate declares an undirected graph; allowed: an edge list, or a format that"),
        "{line}"
    );
}

#[test]
fn a_graph_that_cannot_be_read_is_named() {
    let scene = Scene::new("usage");
    let folder = scene.file("x", "").parent().unwrap().to_str().unwrap().to_owned();
    assert_says(
        scene.run(&["run", "bc", "--graph", &folder]).refusal(),
        &[&folder, "cannot be read: Is a directory"],
    );
    scene.assert_nothing_left();
}

/// Runs `isles` from a shell after `preparation`.
fn behind(scene: &Scene, preparation: &str, arguments: &[&str]) -> Ended {
    let mut shell = scene.program("sh");
    let script = format!("{preparation}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script, crate::PROGRAM]).args(arguments);
    ended(shell)
}

#[test]
fn shared_memory_that_cannot_be_had_is_a_refusal() {
    for machine in ["processes", "threads"] {
        let scene = Scene::new("memory");
        let line = format!("run bc --graph karate --machine {machine} --places 4 --json - --csv scores.csv");
        let arguments = words(&line);
        let line = behind(&scene, "ulimit -f 1", &arguments).refusal_after_heading();
        assert_says(&line, &[&format!("machine {machine}: "), "bytes of address space", "ulimit -f"]);
        let line = behind(&scene, "ulimit -v 60000", &arguments).refusal_after_heading();
        assert_says(&line, &[&format!("machine {machine}: "), "bytes of address space"]);
        scene.assert_nothing_left();
    }
}

impl Ended {
    /// Returns the refusal of a run that had read its graph and had therefore printed its heading.
    fn refusal_after_heading(&self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("error: "), "{self:?}");
        lines[1].to_owned()
    }
}

/// Starts `program` as a place by hand: descriptor 8 is the segment of the running `pid`, 9 a pipe of our own.
fn join_by_hand(scene: &Scene, program: &Path, pid: u32, place: u32) -> Ended {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten().map(|entry| entry.path());
    let is_segment = |file: &std::path::PathBuf| {
        std::fs::read_link(file).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:isles"))
    };
    let segment = files.filter(is_segment).min().expect("a run over processes has a segment");
    let mut shell = scene.program("sh");
    let script = format!("exec \"$0\" run bc --graph karate 8<>{} 9<&0 </dev/null", segment.display());
    shell.args(["-c", &script]).arg(program).env("ISLES_JOIN", format!("8:9:{place}"));
    let (lifeline, _held) = std::io::pipe().unwrap();
    shell.stdin(lifeline);
    ended(shell)
}

#[test]
fn a_process_with_another_program_image_is_refused_and_the_run_goes_on() {
    let scene = Scene::new("image");
    let line = "run bc --graph power --places 2 --machine processes --json - --csv /dev/null";
    let running = Running::start(scene.isles(&words(line)));
    let second = stop_second_place(&scene);
    let same = &Path::new(crate::PROGRAM).with_file_name("isles-bc");
    let mut bytes = std::fs::read(same).unwrap();
    bytes.push(0);
    let other = scene.executable("isles", bytes);

    let first = running.child.id();
    let line = join_by_hand(&scene, &other, first, 1).refusal().to_owned();
    assert_says(
        &line,
        &[
            "this process cannot join as a place",
            "the segment belongs to program image",
            "this program is image",
        ],
    );
    let (_, images) = line.split_once("image ").unwrap();
    assert_ne!(images[..32], images[images.len() - 32..], "the two images are told apart");

    let line = join_by_hand(&scene, same, first, 1).refusal().to_owned();
    assert_says(&line, &["place 1 is already attached, or dead"]);
    let line = join_by_hand(&scene, same, first, 7).refusal().to_owned();
    assert_says(&line, &["place 7 of 2 places"]);

    crate::scene::signal(second, Signal::CONT);
    let ended = running.finish();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    scene.assert_nothing_left();
}

/// Stops the second place once it computes, so that the run cannot end meanwhile. Returns its process.
fn stop_second_place(scene: &Scene) -> i32 {
    const COMPUTING_NS: u64 = 5_000_000;
    let mut second = 0;
    until("the second place has joined", || {
        second = scene.places().first().map_or(0, |found| found.pid);
        has_thread(second, "isles-watch")
    });
    let joined = busy_ns(second).unwrap();
    until("it computes", || busy_ns(second).unwrap() >= joined + COMPUTING_NS);
    crate::scene::signal(second, Signal::STOP);
    second
}

#[test]
fn a_join_variable_set_by_hand_is_refused() {
    for value in ["", "yes", "3", "3:4", "3:4:1:1", "1000:1001:1", "0:1:1", "3:3:1", "-3:4:1"] {
        let scene = Scene::new("join");
        let mut command = scene.isles(&["run", "bc", "--graph", "karate"]);
        command.env("ISLES_JOIN", value);
        let ended = ended(command);
        assert_says(
            ended.refusal(),
            &[&format!("ISLES_JOIN={value}:"), "SEGMENT:LIFELINE:PLACE", "not meant to be set by hand"],
        );
        scene.assert_nothing_left();
    }
}

#[test]
fn a_program_that_cannot_be_launched_is_named() {
    assert_says(&refuse(&["launch", "--", "/no/such/program"]), &["/no/such/program", "No such file"]);
    assert_says(
        &refuse(&["launch", "--machine", "gpu", "--", "true"]),
        &["--machine", "gpu", "allowed: threads"],
    );
    assert_says(&refuse(&["launch", "--places", "0", "--", "true"]), &["--places", "\"0\"", "from 1 to 256"]);
}

/// Returns a copy of the command in a folder of its own, where no `isles-bench` is beside it, with these arguments.
fn lonely_isles(scene: &Scene, arguments: &[&str]) -> std::process::Command {
    let lonely = scene.executable("isles", std::fs::read(crate::PROGRAM).unwrap());
    let mut command = scene.program(lonely);
    command.args(arguments);
    command
}

#[test]
fn the_help_of_the_bench_needs_no_bench() {
    let scene = Scene::new("bench");
    for line in ["bench --help", "bench core --help", "bench core --quick -h"] {
        let ended = ended(lonely_isles(&scene, &words(line)));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stdout.starts_with("usage: isles bench core"), "{ended:?}");
    }
    scene.assert_nothing_left();
}

/// Creates a program that replaces Cargo in the folder `brought`, which becomes the only one on `PATH`.
fn with_cargo(scene: &Scene, command: &mut std::process::Command, text: &str) {
    let cargo = scene.executable("cargo", text);
    command.env("PATH", cargo.parent().unwrap()).current_dir(scene.path("crates"));
}

#[test]
fn a_program_that_is_neither_built_nor_can_be_is_refused_with_how_one_gets_it() {
    let scene = Scene::new("built");
    let lonely = |line: &str| lonely_isles(&scene, &words(line));
    // A folder may have several programs.
    for (line, program, folder) in [
        ("run hf", "isles-hf", "apps/hf"),
        ("run gups", "isles-gups", "apps/bale"),
        ("run modularity", "isles-modularity", "apps/clustering"),
        ("bench core", "isles-bench", "crates/bench"),
        ("repro --list", "isles-lab", "crates/lab"),
    ] {
        assert_eq!(
            ended(lonely(line)).refusal(),
            format!(
                "error: {program} is neither beside this program nor on PATH; run this inside the Isles sources, which \
                 builds it, or install it from there: cargo install --path {folder}"
            )
        );
    }
    std::fs::create_dir_all(scene.path("crates/isles")).unwrap();
    scene.leave("crates/isles/Cargo.toml", "");
    let mut command = lonely("run hf");
    command.env("PATH", scene.path("nothing")).current_dir(scene.path("crates"));
    assert_eq!(
        ended(command).refusal(),
        "error: isles-hf is not built, and cargo was not found: install Rust (https://rustup.rs), or put \
         isles-hf on PATH"
    );
    let mut command = lonely("run hf");
    with_cargo(&scene, &mut command, "#!/bin/sh\necho 'no compiler' >&2; exit 101\n");
    let refused = ended(command);
    let manifest = scene.path("Cargo.toml");
    let line =
        format!("error: cannot build isles-hf in {}; see the output of cargo above\n", manifest.display());
    assert_eq!((refused.code, refused.stderr), (Some(2), format!("no compiler\n{line}")));
}

#[test]
fn a_program_that_is_not_built_is_built_inside_the_sources_and_told_how_long_that_took() {
    let scene = Scene::new("built");
    std::fs::create_dir_all(scene.path("crates/isles")).unwrap();
    scene.leave("crates/isles/Cargo.toml", "");
    let program = scene.executable("made", "#!/bin/sh\necho \"$@\"\n").display().to_string();
    let manifest = scene.path("Cargo.toml").display().to_string();
    for (line, package, name, printed) in [
        ("bench core --quick", "isles-bench", "isles-bench", "core --quick\n"),
        ("run hf --places 2", "isles-hf", "isles-hf", "--places 2\n"),
        ("run gups --bits 4", "isles-bale", "isles-gups", "--bits 4\n"),
    ] {
        let mut command = lonely_isles(&scene, &words(line));
        let cargo = format!(
            "#!/bin/sh\necho \"$@\" >&2\n/bin/sleep 1.2\n\
             echo '{{\"reason\":\"compiler-artifact\",\"executable\":null}}'\n\
             echo '{{\"executable\":\"{program}\"}}'\necho '{{\"reason\":\"build-finished\"}}'\n"
        );
        with_cargo(&scene, &mut command, &cargo);
        let ended = ended(command);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), printed), "{ended:?}");
        let said: Vec<&str> = ended.stderr.lines().collect();
        let build = format!(
            "build --release --locked --message-format=json-render-diagnostics --package {package} --bin {name} \
             --quiet --manifest-path {manifest}"
        );
        let printed = format!("building {name}, which is built on first use");
        // The order is not fixed, because the command does not know when `cargo` prints a line.
        assert!([&build, &printed].iter().all(|line| said[..2].contains(&line.as_str())), "{ended:?}");
        assert!(said[2].starts_with(&format!("built {name} in ")), "{ended:?}");
    }
}

#[test]
fn a_program_of_another_version_than_the_command_is_refused() {
    let scene = Scene::new("version");
    let program = Path::new(crate::PROGRAM).with_file_name("isles-bc");
    let mut command = scene.program(&program);
    command.args(words("--graph karate")).env("ISLES_COMMAND_VERSION", "9.8.7");
    assert_eq!(
        ended(command).refusal(),
        format!(
            "error: {} is bc {}, but its caller is version 9.8.7; install the same version of both",
            program.display(),
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn the_list_has_a_line_for_each_application_with_what_its_manifest_says() {
    let listed = Scene::new("list").run(&["list"]).stdout;
    let mut expected = Vec::new();
    for folder in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps")).unwrap() {
        let folder = folder.unwrap();
        let manifest = std::fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
        let about =
            manifest.lines().find_map(|line| line.strip_prefix("description = \"")?.strip_suffix('"'));
        // A package with several programs has a description of each.
        match manifest.split_once("[package.metadata.programs]\n") {
            Some((_, programs)) => expected.extend(programs.lines().map_while(|line| {
                let (name, about) = line.split_once(" = \"")?;
                Some((name.to_owned(), about.strip_suffix('"')?.to_owned()))
            })),
            None => expected.push((folder.file_name().display().to_string(), about.unwrap().to_owned())),
        }
    }
    expected.sort();
    let widest = expected.iter().map(|(name, _)| name.len()).max().unwrap();
    let lines = expected.iter().map(|(name, about)| format!("{name:<widest$}  {about}"));
    let mut expected: Vec<String> = lines.collect();
    expected.push("isles run NAME --help lists the options of each".to_owned());
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn help_of_an_application_is_asked_of_its_program() {
    let scene = Scene::new("help");
    let [run, help] = ["run pi --help", "help run pi"].map(|line| scene.run(&words(line)));
    assert_eq!((run.code, help.code, run.stdout.contains("--points")), (Some(0), Some(0), true), "{run:?}");
    assert_eq!(run.stdout, help.stdout);
    let all = scene.run(&words("run --help"));
    assert!(["bc", "hf", "uts"].iter().all(|name| all.stdout.contains(&format!("\n  {name}"))), "{all:?}");
}

#[test]
fn a_protocol_that_the_chip_does_not_carry_is_refused_before_anything_is_said() {
    let on = |chip: &str, more: &[&str]| {
        refuse(&[&["run", "bc", "--graph", "karate", "--machine", chip][..], more].concat())
    };
    assert_eq!(
        on("chip:bluegene-p", &["--protocol", "sections", "--places", "4"]),
        "error: --protocol is \"sections\"; allowed: packets on chip:bluegene-p with 4 places (the cores have no message \
         buffers)"
    );
    assert_eq!(
        on("chip:scc", &["--protocol", "packets"]),
        "error: --protocol is \"packets\"; allowed: doorbell, rcce-x10, sections, sections-by-places, \
         sections-memory, sections-mixed, sockets, mpi-sock, rcce, ring on chip:scc with 48 places \
         (the hardware carries no packets)"
    );
}

#[test]
fn a_cap_without_a_unit_is_told_what_a_cap_is() {
    let line =
        refuse(&["run", "bc", "--graph", "karate", "--machine", "chip:scc", "--governor", "capped:40"]);
    assert_eq!(
        line,
        r#"error: --governor is "capped:40"; allowed: a power with its unit, such as capped:60W or capped:800mW"#
    );
}

#[test]
fn commands_that_do_not_exist_are_named_with_those_that_do() {
    let meant = "error: isles has no command \"lauch\"; did you mean launch?; allowed: list, launch, ";
    assert_says(&refuse(&["lauch"]), &[meant]);
    assert_says(
        &refuse(&["walk"]),
        &["error: isles has no command \"walk\"; allowed: list, launch, ", "run", "sweep"],
    );
    let names = applications();
    assert_eq!(
        refuse(&["run", "walk"]),
        format!("error: isles run has no command \"walk\"; allowed: {names}")
    );
    assert_says(
        &refuse(&["chip", "walk"]),
        &["isles chip has no command \"walk\"; allowed: list, show, check"],
    );
}

#[test]
fn a_seed_is_a_flag_and_a_number() {
    let line = refuse(&["run", "bc", "--graph", "karate", "--machine", "chip:scc", "--seed", "x"]);
    assert!(line.starts_with(r#"error: --seed is "x"; allowed: "#), "{line}");
}

#[test]
fn flags_of_modelled_chips_are_refused_elsewhere_and_variables_passed_over() {
    let scene = Scene::new("elsewhere");
    for flag in [
        "--governor fixed:4",
        "--protocol doorbell",
        "--rest nap:100us",
        "--broadcast flat",
        "--reduce serial",
        "--set links.flit_time=2",
        "--preset x",
        "--power x",
        "--voltages x",
    ] {
        let (name, value) = flag.split_once(' ').unwrap();
        for verb in ["run bc --graph karate --machine threads", "launch --machine loopback"] {
            let program: &[&str] = if verb.starts_with("launch") { &["--", "true"] } else { &[] };
            let line =
                scene.run(&[&words(&format!("{verb} {flag}"))[..], program].concat()).refusal().to_owned();
            let machine = verb.rsplit(' ').next().unwrap();
            let allowed = format!("nothing with machine {machine} (not a modelled chip)");
            assert_eq!(line, format!("error: {name} is {value:?}; allowed: {allowed}"));
        }
    }
    let line = "run bc --graph karate --json /dev/null --csv /dev/null --top 0 --machine threads --places 2";
    let refused = scene.run(&words(&format!("{line} --report finish,chip"))).refusal().to_owned();
    let allowed = "captures, finish, messages, counters, balance with machine threads (not a modelled chip)";
    assert_eq!(refused, format!("error: --report is \"finish,chip\"; allowed: {allowed}"));
    let mut command = scene.isles(&words(line));
    command.env("ISLES_CHIP_GOVERNOR", "fixed:4").env("ISLES_REPORT", "chip");
    assert_eq!(ended(command).code, Some(0));
}

#[test]
fn clocks_and_power_model_are_chosen_by_the_names_of_the_chip_file() {
    let scene = Scene::new("preset");
    let line = "run bc --graph karate --machine chip:scc --places 4 --json /dev/null --csv /dev/null --top 0 --summary -";
    let run = |more: &str| {
        let ended = scene.run(&words(format!("{line} {more}").trim_end()));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    let summary = |more: &str| serde_json::from_str::<serde_json::Value>(&run(more).stdout).unwrap();
    let (own, fast) = (summary(""), summary("--preset 800/1600/1066 --power cichowski"));
    assert_eq!(
        (&own["clocks"]["preset"], &fast["clocks"]["preset"]),
        (&"533/800/800".into(), &"800/1600/1066".into())
    );
    assert!(fast["predicted_ps"].as_u64() < own["predicted_ps"].as_u64());
    let first = |summary: &serde_json::Value| summary["energy"]["models"][0]["name"].clone();
    assert_eq!((first(&own), first(&fast)), ("manyman".into(), "cichowski".into()));
    // 533 MHz needs 0.85625 V by one table and 0.8 V by the other, and nothing else changes.
    let lower = summary("--voltages rcce");
    assert_eq!((&own["voltages"], &lower["voltages"]), (&"manyman".into(), &"rcce".into()));
    let printed = run("--voltages rcce --power cichowski").stderr;
    assert!(printed.contains(" with doorbell at 533/800/800, voltages rcce, "), "{printed}");
    assert!(run("--power cichowski").stderr.contains(" at 533/800/800, "), "each by its own table");
    let joules = |summary: &serde_json::Value| summary["energy"]["models"][0]["total_j"].as_f64().unwrap();
    assert!(joules(&lower) < 0.95 * joules(&own) && lower["digest"] == own["digest"]);

    let refused = |more: &str| refuse(&words(&format!("run bc --graph karate --machine chip:scc {more}")));
    assert_eq!(
        refused("--preset 533"),
        "error: --preset is \"533\"; allowed: 533/800/800, 800/1600/1066, 533/800/800 formula, 533/800/800 quadrant"
    );
    assert_eq!(
        refused("--power moon"),
        "error: --power is \"moon\"; allowed: manyman, cichowski, manyman-cubic"
    );
    assert_eq!(
        refused("--voltages moon"),
        "error: --voltages is \"moon\"; allowed: manyman, cichowski, rcce"
    );
    scene.assert_nothing_left();
}
