//! `--color` and `ISLES_COLOR` as a user sees them: on a terminal, in pipes, and with `NO_COLOR`.
//!
//! A terminal is a pseudo-terminal of the test. Invariant: an output without its colour marks equals the output to a
//! pipe.

use crate::scene::{Ended, Scene, ended, words};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

const ERROR: &str = "\x1b[1;31merror\x1b[0m: ";
const WARNING: &str = "\x1b[1;33mwarning\x1b[0m: ";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Returns the output of the command on a terminal of type `kind`, which is its standard output and error.
fn on_a_terminal(mut command: Command, kind: &str) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let name = std::ffi::OsStr::from_bytes(name.as_bytes());
    let end = OpenOptions::new().read(true).write(true).open(name).unwrap();
    command.stdout(end.try_clone().unwrap()).stderr(end).env("TERM", kind);
    let mut child = command.spawn().unwrap();
    drop(command); // which has the other end open
    let mut text = Vec::new();
    let _ = File::from(terminal).read_to_end(&mut text); // it ends with an error when nobody has the other end any more
    child.wait().unwrap();
    String::from_utf8(text).unwrap().replace("\r\n", "\n")
}

fn variables(scene: &Scene, line: &str, set: &[(&str, &str)]) -> Command {
    let mut command = scene.isles(&words(line));
    command.env_remove("NO_COLOR").envs(set.iter().copied());
    command
}

#[test]
fn a_terminal_gets_colours_unless_it_is_told_not_to() {
    let scene = Scene::new("color");
    let refused = "chip show none";
    let seen = |line: &str, set: &[(&str, &str)]| on_a_terminal(variables(&scene, line, set), "xterm");
    assert!(seen(refused, &[]).starts_with(ERROR));
    assert!(seen(refused, &[("NO_COLOR", "")]).starts_with(ERROR), "an empty variable is none");
    assert!(seen("--color always chip show none", &[("NO_COLOR", "1")]).starts_with(ERROR));
    for plain in [
        seen(refused, &[("NO_COLOR", "1")]),
        seen(refused, &[("ISLES_COLOR", "never")]),
        seen("chip show none --color never", &[("ISLES_COLOR", "always")]),
        on_a_terminal(variables(&scene, refused, &[]), "dumb"),
    ] {
        assert!(plain.starts_with("error: "), "{plain:?}");
    }
    let list = seen("chip list", &[]);
    let (head, rest) = list.split_once('\n').unwrap();
    assert!(head.starts_with(&format!("{BOLD}name")) && head.ends_with(PLAIN), "{list:?}");
    assert!(rest.starts_with("scc ") && !rest.contains('\x1b'), "{list:?}");
    assert!(seen("chip list", &[("ISLES_PLACE", "1")]).starts_with(WARNING));
}

/// Returns a text without its colour marks.
fn unmarked(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn a_pipe_gets_colours_only_if_they_are_asked_for_and_files_get_none() {
    let scene = Scene::new("color");
    let run =
        "run bc --graph karate --machine chip:scc --places 2 --report chip,finish --csv s.csv --json s.json";
    let of = |line: &str, set: &[(&str, &str)]| -> Ended { ended(variables(&scene, line, set)) };
    let lines = |ended: &Ended| -> usize { (ended.stdout.clone() + &ended.stderr).matches('\x1b').count() };
    let plain = of(run, &[]);
    assert_eq!((plain.code, lines(&plain)), (Some(0), 0), "{plain:?}");
    let files = ["s.csv", "s.json"].map(|name| scene.result(name));
    for coloured in [of(&format!("{run} --color always"), &[]), of(run, &[("ISLES_COLOR", "always")])] {
        // The heading of the run, the prediction, and the table of finishes, each with a mark at its start and end.
        assert_eq!((coloured.code, lines(&coloured)), (Some(0), 6), "{coloured:?}");
        let marked = format!("{BOLD}karate: 34 vertices");
        assert!(coloured.stdout.starts_with(&marked), "{coloured:?}");
        assert_eq!(unmarked(&coloured.stdout), plain.stdout);
        let unchanged = ["s.csv", "s.json"].map(|name| scene.result(name));
        assert_eq!(unchanged[0], files[0]);
        assert!(!unchanged[1].contains('\x1b') && !unchanged[1].is_empty());
    }
    let summary = of(&format!("{run} --summary - --color always"), &[]);
    assert!(!summary.stdout.contains('\x1b'), "JSON has no colours: {summary:?}");
}

#[test]
fn programs_and_runs_of_other_processes_have_the_setting() {
    let scene = Scene::new("color");
    let launched =
        ended(scene.isles(&["--color", "always", "launch", "--", "sh", "-c", "echo $ISLES_COLOR"]));
    assert_eq!(launched.stdout, "always\n", "{launched:?}");
    // A sweep reads the output of its runs without colours, but prints its own with them.
    let sweep = "sweep --app bc --graph none --places 1 --dividers 2 --color always";
    let refused = ended(variables(&scene, sweep, &[("ISLES_COLOR", "always")]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.starts_with(ERROR) && refused.stderr.matches('\x1b').count() == 2, "{refused:?}");
}

#[test]
fn other_words_are_refused_in_one_line() {
    let scene = Scene::new("color");
    let line = |line: &str, set: &[(&str, &str)]| ended(variables(&scene, line, set)).refusal().to_owned();
    let allowed = "allowed: auto, always, never";
    assert_eq!(line("chip list --color red", &[]), format!("error: --color is \"red\"; {allowed}"));
    for command in ["chip list", "run bc --graph karate", "data list"] {
        let refused = line(command, &[("ISLES_COLOR", "red")]);
        assert_eq!(refused, format!("error: ISLES_COLOR is \"red\"; {allowed}"));
    }
}
