//! Every command refuses to write to a file that it reads, whatever the flag and the spelling of the name: it prints
//! one line, and the file remains unchanged.

use crate::scene::{Scene, words};
use std::fs;
use std::os::unix::fs::symlink;

const SCC: &str = include_str!("../../../../chips/scc.toml");

/// Three points of a power model.
const POWERS: &str = "frequency_mhz,power_w\n100,10\n200,20\n400,50\n800,150\n";

/// Returns a folder with the files that are read, other spellings of their names, and a tape of a run on the chip.
fn scene() -> Scene {
    let scene = Scene::new("apart");
    for (name, text) in [("my.toml", SCC), ("g.txt", "0 1\n1 2\n"), ("p.csv", POWERS)] {
        scene.leave(name, text);
    }
    fs::create_dir(scene.path("sub")).unwrap();
    symlink("my.toml", scene.path("link")).unwrap();
    fs::hard_link(scene.path("my.toml"), scene.path("hard")).unwrap();
    symlink("../g.txt", scene.path("sub/link")).unwrap();
    let record = "run bc --graph g.txt --machine chip:my.toml --places 2 --work host:1 --tape k.tape";
    let ended = scene.run(&words(&format!("{record} --json /dev/null --csv /dev/null")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    scene
}

#[test]
fn no_output_is_written_over_what_is_read() {
    let scene = scene();
    let kept = ["my.toml", "g.txt", "p.csv", "k.tape"];
    let read = || kept.map(|name| fs::read(scene.path(name)).unwrap());
    let before = read();
    let (chip, graph) = ("the chip file", "the graph");
    let tape = "run bc --graph g.txt --machine chip:my.toml --places 2 --work tape:k.tape --csv /dev/null";
    for (line, flag, value, what) in [
        ("chip show my.toml", "--svg", "my.toml", chip),
        ("chip show ./my.toml", "--svg", "hard", chip),
        ("run bc --machine chip:my.toml", "--summary", "my.toml", chip),
        ("run bc --machine chip:sub/../my.toml", "--trace", "my.toml", chip),
        ("run bc --machine chip:my.toml", "--json", "link", chip),
        ("run bc --machine chip:my.toml", "--csv", "hard", chip),
        ("launch --machine chip:my.toml", "--heat", "./my.toml", chip),
        (tape, "--summary", "k.tape", "the tape"),
        ("run bc --machine threads --graph g.txt", "--csv", "g.txt", graph),
        ("run bc --machine threads --graph g.txt", "--json", "sub/link", graph),
        ("run bc --machine chip:scc --graph sub/link", "--summary", "g.txt", graph),
        ("run bc --machine chip:scc --graph g.txt", "--links", "./g.txt", graph),
        ("sweep --app bc --machine chip:my.toml", "--csv", "my.toml", chip),
        ("sweep --app bc --graph g.txt", "--csv", "sub/../g.txt", graph),
        ("power fit p.csv", "--json", "./p.csv", "the file to fit"),
        ("launch --machine chip:scc", "--summary", "p.csv", "the program"),
    ] {
        let program: &[&str] = if line.starts_with("launch") { &["--", "./p.csv"] } else { &[] };
        let ended = scene.run(&[&words(line)[..], &[flag, value], program].concat());
        let expected =
            format!("error: {flag} is {value:?}; allowed: a file other than {what}, because that is read");
        assert_eq!(ended.refusal(), expected, "{line}");
        assert!(read() == before, "{line}");
    }
}

#[test]
fn a_variable_and_a_default_are_outputs_too() {
    let scene = scene();
    let mut command = scene.isles(&words("run bc --graph g.txt --machine chip:scc"));
    command.env("ISLES_CHIP_FOLDED", "g.txt");
    let line = "error: ISLES_CHIP_FOLDED is \"g.txt\"; allowed: a file other than the graph, because \
         that is read";
    assert_eq!(crate::scene::ended(command).refusal(), line);
    fs::create_dir(scene.path("out")).unwrap();
    scene.leave("out/bc-karate.json", SCC);
    let ended = scene.run(&words("run bc --graph karate --machine chip:out/bc-karate.json --csv /dev/null"));
    let line = "error: --json is not given, and the default is \"out/bc-karate.json\"; allowed: a file \
         other than the chip file, because that is read";
    assert_eq!(ended.refusal(), line);
    assert_eq!(scene.result("out/bc-karate.json"), SCC);
}

#[test]
fn a_name_of_a_chip_or_of_a_graph_is_no_file() {
    let scene = Scene::new("apart");
    let ended = scene.run(&words("chip show scc --svg scc"));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let ended = scene.run(&words("run bc --graph karate --machine threads --json karate --csv /dev/null"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
