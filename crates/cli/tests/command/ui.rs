//! The live page of a run: it is served, it ends with the run or is kept, and the run does not depend on it.

use crate::scene::{built, install, is_over};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A folder of one test, which is removed when the test ends; runs leave their temporary files there.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("isles-ui-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn isles(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.current_dir(&self.0).env("XDG_RUNTIME_DIR", &self.0).args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Creates a shell script.
    fn script(&self, name: &str, text: &str) {
        let from = self.0.join(format!("{name}.copied"));
        std::fs::write(&from, format!("#!/bin/sh\n{text}\n")).unwrap();
        install(&from, &self.0.join(name));
    }

    fn folders_of_runs(&self) -> usize {
        let entries = std::fs::read_dir(&self.0).unwrap().filter_map(Result::ok);
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("isles-")).count()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the port and the token that a run has printed.
fn address(child: &mut Child) -> (u16, String) {
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(errors.read_line(&mut line).unwrap(), 0, "no address is printed");
        if let Some(known) = address_in(&line) {
            std::thread::spawn({
                move || _ = errors.read_to_string(&mut String::new()) // somebody has to take it
            });
            return known;
        }
    }
}

/// Returns the port and the token in a line, if it has them.
fn address_in(line: &str) -> Option<(u16, String)> {
    let (_, rest) = line.split_once("http://127.0.0.1:")?;
    let (port, token) = rest.trim().split_once("/#token=")?;
    Some((port.parse().ok()?, token.to_owned()))
}

/// Returns the answer of the server to a program with the token.
fn get((port, token): &(u16, String), path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    stream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Returns the snapshots that the server sends to a reader, one after the other.
fn snapshots((port, token): &(u16, String)) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
    let head = format!("GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    stream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned))
}

/// Returns the processes that a run has started.
fn children_of(child: &Child) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = format!("PPid:\t{}\n", child.id());
    let is_child = |process: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        status.is_ok_and(|status| status.contains(&parent))
    };
    processes.filter(is_child).collect()
}

/// Returns the process of the server that a run has started.
fn server_of(child: &Child) -> Option<i32> {
    children_of(child).into_iter().find(|process| {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        // The system truncates names.
        name.starts_with("isles-dashboard")
    })
}

#[test]
fn a_run_is_shown_and_goes_on_when_the_server_is_killed() {
    built("isles-dashboard");
    let scratch = Scratch::new("killed");
    let arguments = ["run", "uts", "--tree", "T1", "--places", "2", "--ui"];
    let mut child = scratch.isles(&arguments).spawn().unwrap();
    let known = address(&mut child);
    let run = get(&known, "/api/v1/run");
    assert!(
        run.contains("\"machine\":\"processes\",\"mode\":\"live\"")
            && run.contains("isles-uts\",\"arguments\":[\"--tree\",\"T1\""),
        "{run}"
    );
    let server = server_of(&child).expect("a server was started");
    assert!(Command::new("kill").args(["-9", &server.to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("4130071 nodes as published"));
    assert_eq!(scratch.folders_of_runs(), 0, "the folder of the run goes with it");
}

#[test]
fn a_run_that_is_ended_with_all_its_group_leaves_no_folder_and_no_server() {
    built("isles-dashboard");
    // The signals of Ctrl-C, and of mpirun when another rank has died. A shell that starts the tests in the background
    // makes all their children ignore the first.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignores_interrupts = u64::from_str_radix(ignored, 16).unwrap() & 1 << 1 != 0;
    for signal in ["-INT", "-TERM", "-KILL"] {
        if signal == "-INT" && ignores_interrupts {
            continue;
        }
        let scratch = Scratch::new("group");
        let arguments = ["run", "bc", "--rmat", "high", "--places", "2", "--ui"];
        let mut child = scratch.isles(&arguments).process_group(0).spawn().unwrap();
        address(&mut child);
        let server = server_of(&child).expect("a server was started");
        assert_eq!(scratch.folders_of_runs(), 1);
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args([signal, "--", &group]).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
        // The parent may be slow to reap the server.
        let comm = PathBuf::from(format!("/proc/{server}/comm"));
        while std::fs::read_to_string(&comm).is_ok_and(|name| name.starts_with("isles-dashboard"))
            && !is_over(server)
        {
            std::thread::yield_now();
        }
        assert_eq!(scratch.folders_of_runs(), 0, "{signal}: the folder of the run goes with it");
    }
}

#[test]
fn how_far_a_run_is_is_shown_while_it_runs() {
    built("isles-dashboard");
    for machine in ["processes", "chip:scc"] {
        let scratch = Scratch::new("progress");
        let arguments = ["run", "bc", "--rmat", "high", "--places", "2", "--machine", machine, "--ui"];
        let mut child = scratch.isles(&arguments).spawn().unwrap();
        let known = address(&mut child);
        let done = snapshots(&known).find_map(|snapshot| {
            let (_, progress) = snapshot.split_once("\"progress\":{")?;
            let (_, printed) = progress.split_once("\"label\":\"sources\",\"done\":")?;
            let (done, rest) = printed.split_once(',')?;
            assert!(rest.starts_with("\"total\":"), "{rest}");
            let total: u64 = rest["\"total\":".len()..].split([',', '}']).next()?.parse().ok()?;
            done.parse::<u64>().ok().filter(|done| 0 < *done && *done < total)
        });
        assert!(done.is_some(), "{machine}: nothing between the first source and the last is shown");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn the_terminal_tells_the_count_of_the_page() {
    built("isles-dashboard");
    let scratch = Scratch::new("count");
    // On a chip the first place may be far ahead of the others.
    let words = ["run", "bc", "--rmat", "large", "--places", "8", "--machine", "chip:scc", "--ui"];
    let mut child = scratch.isles(&words).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let known = errors.find_map(|line| address_in(&line)).expect("an address is printed");
    let shown = || {
        snapshots(&known).filter_map(|snapshot| {
            let (_, progress) = snapshot.split_once("\"progress\":{")?;
            let (_, printed) = progress.split_once("\"label\":\"sources\",\"done\":")?;
            printed.split(',').next()?.parse::<u64>().ok()
        })
    };
    let said = |line: &String| {
        line.split_once(" of ").filter(|(_, of)| of.contains(" sources, "))?.0.parse::<u64>().ok()
    };
    // A line may have been printed before the page was requested.
    let both = (0..8).find_map(|_| {
        let mut page = shown();
        let before = page.next().expect("a snapshot");
        let printed = errors.find_map(|line| said(&line)).expect("a line of progress");
        (before <= printed).then_some((page, before, printed))
    });
    let (mut page, before, printed) = both.expect("the terminal is not behind the page");
    // Snapshots are in order, and progress that was printed is in the next snapshot but one at the latest.
    let after = page.find(|done| *done >= printed).expect("the page comes to where the terminal was");
    assert!((before..=after).contains(&printed), "{before} {printed} {after}");
    let next = page.next().expect("a snapshot");
    assert!(
        after - printed <= 2 * (next - before) + 100,
        "{before}, then {printed} told, {after} and {next} shown"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_page_that_is_kept_shows_the_end_and_the_run_stays_where_it_was_recorded() {
    built("isles-dashboard");
    let scratch = Scratch::new("kept");
    let arguments =
        ["run", "bc", "--graph", "karate", "--places", "2", "--ui", "--keep-ui", "--record", "run"];
    let mut child = scratch.isles(&arguments).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let known = errors.find_map(|line| address_in(&line)).expect("an address is printed");
    // The server may connect while the run is active, or only find its log: in the end the state is the same.
    while !get(&known, "/metrics").contains("isles_run_running 0") {
        assert!(child.try_wait().unwrap().is_none(), "it ended although it is kept");
        std::thread::yield_now();
    }
    let printed = "the run has ended; its page stays until Ctrl-C";
    assert!(errors.any(|line| line == printed), "how to end it is told");
    let server = server_of(&child).expect("the server is kept");
    assert!(Command::new("kill").arg(server.to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(scratch.0.join("run/events.log").is_file());
    let report = scratch.isles(&["report", "run", "--html", "report.html"]).output().unwrap();
    assert!(report.status.success(), "{report:?}");
    let html = std::fs::read_to_string(scratch.0.join("report.html")).unwrap();
    assert!(html.contains("id=\"isles-report\"") && html.contains("karate"));
}

#[test]
fn the_page_of_a_run_that_is_over_before_its_server_begins_is_told_before_how_to_end_it() {
    built("isles-dashboard");
    let scratch = Scratch::new("late");
    let beside = |name: &str| PathBuf::from(crate::PROGRAM).with_file_name(name);
    let isles = scratch.0.join("isles");
    install(crate::PROGRAM.as_ref(), &isles);
    scratch.script("program", &format!("{} --depth 3 && touch ended", beside("isles-uts").display()));
    let server = beside("isles-dashboard");
    scratch.script(
        "isles-dashboard",
        &format!("until [ -f ended ]; do :; done\nexec {} \"$@\"", server.display()),
    );
    assert!(scratch.isles(&["run", "uts", "--check"]).status().unwrap().success(), "it is built");
    let mut command = Command::new(isles);
    command.current_dir(&scratch.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.args(["launch", "-n", "2", "--ui", "--keep-ui", "--record", "run", "--", "./program"]);
    let mut child = command.spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let printed = errors.find(|line| address_in(line).is_some() || line.contains("its page stays"));
    let known = address_in(&printed.expect("something is told")).expect("the address is told first");
    assert!(errors.any(|line| line.contains("its page stays")));
    assert!(get(&known, "/metrics").contains("isles_run_running 0"));
    let server = server_of(&child).expect("the server is kept");
    assert!(Command::new("kill").arg(server.to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_run_that_fails_says_so_before_its_page_is_let_go() {
    built("isles-dashboard");
    let scratch = Scratch::new("failed");
    let arguments = ["run", "uts", "--depth", "30", "--places", "2", "--ui", "--keep-ui"];
    let mut child = scratch.isles(&arguments).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let known = errors.find_map(|line| address_in(&line)).expect("an address is printed");
    // A place that dies while it starts is a different failure.
    while get(&known, "/metrics").contains("isles_tasks_total{place=\"1\"} 0\n") {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        std::thread::yield_now();
    }
    let server = server_of(&child).expect("a server was started");
    // The other child is the second place.
    let place = children_of(&child).into_iter().find(|process| *process != server).expect("a place");
    assert!(Command::new("kill").args(["-9", &place.to_string()]).status().unwrap().success());
    let printed = errors.find(|line| line.starts_with("error: ")).expect("the failure is told");
    assert!(printed.contains("place 1 is dead"), "{printed}");
    assert!(child.try_wait().unwrap().is_none(), "the page is kept");
    assert!(Command::new("kill").arg(server.to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_launched_program_keeps_its_exit_code() {
    built("isles-dashboard");
    let scratch = Scratch::new("launched");
    scratch.script("program", "exit 7");
    let output = scratch.isles(&["launch", "-n", "2", "--ui", "--", "./program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn a_launched_program_that_dies_by_a_signal_has_its_number() {
    built("isles-dashboard");
    let scratch = Scratch::new("signalled");
    for (signal, code) in [("KILL", 137), ("SEGV", 139), ("ABRT", 134), ("TERM", 143)] {
        scratch.script("program", &format!("ulimit -c 0\nkill -{signal} $$"));
        let output = scratch.isles(&["launch", "-n", "3", "--ui", "--", "./program"]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = format!("error: \"./program\" was ended by signal {} (SIG{signal})\n", code - 128);
        assert!(printed.ends_with(&line), "{printed}");
    }
    assert_eq!(scratch.folders_of_runs(), 0);
}

#[test]
fn signals_to_a_launcher_end_its_program_and_then_its_page() {
    built("isles-dashboard");
    let scratch = Scratch::new("forwarded");
    let (run, launch) = (["run", "uts", "--check"], ["launch", "-n", "2", "--ui", "--keep-ui", "--"]);
    assert!(scratch.isles(&run).status().unwrap().success(), "it is built");
    let program = PathBuf::from(crate::PROGRAM).with_file_name("isles-uts");
    let words = [&launch[..], &[program.to_str().unwrap(), "--depth", "30"]].concat();
    let mut child = scratch.isles(&words).spawn().unwrap();
    let known = address(&mut child);
    while get(&known, "/metrics").contains("isles_tasks_total{place=\"1\"} 0\n") {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was seen");
        std::thread::yield_now();
    }
    let signal = |process: u32| {
        assert!(Command::new("kill").args(["-TERM", &process.to_string()]).status().unwrap().success());
    };
    signal(child.id());
    while !get(&known, "/metrics").contains("isles_run_running 0") {
        std::thread::yield_now();
    }
    assert!(child.try_wait().unwrap().is_none(), "the page is kept");
    while children_of(&child).len() > 1 {
        std::thread::yield_now();
    }
    signal(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(scratch.folders_of_runs(), 0);
}

#[test]
fn the_server_and_the_folder_of_a_page_go_with_a_run_that_is_killed() {
    built("isles-dashboard");
    for (signal, more) in [("-TERM", &["--keep-ui"][..]), ("-KILL", &["--keep-ui"]), ("-KILL", &[])] {
        let scratch = Scratch::new("owner");
        let words = [&["run", "uts", "--depth", "30", "--places", "2", "--ui"], more].concat();
        let mut child = scratch.isles(&words).spawn().unwrap();
        let known = address(&mut child);
        assert_eq!(scratch.folders_of_runs(), 1);
        let server = server_of(&child).expect("a server was started");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        child.wait().unwrap();
        // Only process 1 reaps a process without a parent, and it may leave it as a zombie.
        while !is_over(server) {
            std::thread::yield_now();
        }
        assert!(TcpStream::connect(("127.0.0.1", known.0)).is_err(), "{signal} {more:?}: it listens");
        assert_eq!(scratch.folders_of_runs(), 0, "{signal} {more:?}");
    }
}

#[test]
fn the_interval_of_the_looks_reaches_the_server_which_keeps_looking() {
    built("isles-dashboard");
    for (seconds, milliseconds) in [("0.1", "100"), ("1.5", "1500")] {
        let scratch = Scratch::new("interval");
        let words = ["run", "uts", "--depth", "30", "--places", "2", "--ui", "--ui-every", seconds];
        let mut child = scratch.isles(&words).spawn().unwrap();
        let known = address(&mut child);
        assert_eq!(snapshots(&known).take(3).count(), 3);
        let server = server_of(&child).expect("a server was started");
        let arguments = std::fs::read_to_string(format!("/proc/{server}/cmdline")).unwrap();
        assert!(arguments.contains(&format!("--every\0{milliseconds}\0")), "{arguments:?}");
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        child.wait().unwrap();
    }
}

#[test]
fn what_cannot_be_shown_is_one_line() {
    built("isles-dashboard");
    let scratch = Scratch::new("refused");
    let refusal = |arguments: &[&str]| {
        let output = scratch.isles(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        printed
    };
    let printed = refusal(&["run", "pi", "--ui", "--ui-port", "99999"]);
    assert_eq!(printed, "error: --ui-port is \"99999\"; allowed: a port from 0 (any free port) to 65535\n");
    assert!(refusal(&["run", "pi", "--keep-ui"]).contains("--ui"));
    for seconds in ["0", "61", "nan", "soon"] {
        let printed = refusal(&["run", "pi", "--ui", "--ui-every", seconds]);
        let expected = format!("error: --ui-every is \"{seconds}\"; allowed: seconds from 0.1 to 60\n");
        assert_eq!(printed, expected);
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let printed = refusal(&["run", "pi", "--ui", "--ui-port", &port]);
    assert!(
        printed.starts_with(&format!("error: --ui-port is \"{port}\"; allowed: a free port (")),
        "{printed}"
    );
    let printed = refusal(&["replay", "nowhere", "--port", &port]);
    assert!(
        printed.starts_with(&format!("error: --port is \"{port}\"; allowed: a free port (")),
        "{printed}"
    );
    assert!(refusal(&["replay", "nowhere", "--port", "-1"]).contains("from 0 (any free port) to 65535"));
    let printed = refusal(&["run", "pi", "--machine", "loopback", "--ui"]);
    let expected = "error: --ui does not support machine loopback yet";
    assert_eq!(printed.trim_end(), expected);
    let printed = refusal(&["replay", "no\u{1b}[31mwhere"]);
    assert!(printed.contains("no\\u{1b}[31mwhere/events.log cannot be replayed"), "{printed:?}");
    assert!(refusal(&["replay", "nowhere"]).contains("nowhere/events.log cannot be replayed"));
    std::fs::create_dir(scratch.0.join("other")).unwrap();
    std::fs::write(scratch.0.join("other/events.log"), "no log").unwrap();
    assert!(refusal(&["report", "other", "--html", "x.html"]).contains("it is not an event log of Isles"));
    assert!(!scratch.0.join("x.html").exists());
    assert_eq!(scratch.folders_of_runs(), 0);
}
