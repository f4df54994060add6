//! The end of a program: its last output and its exit code, also if its output is no longer read.
//!
//! A test without the harness, which would write to the closed pipe itself and hide the program's exit code. Without
//! arguments it runs the cases; with the name of a case it is the program of that case.

mod destructors;

mod printing;
mod repeated;
mod stale;
mod unread;

use isles::prelude::*;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// As a shell says it of a program that was ended by SIGPIPE: 128 + 13.
const EXIT_CLOSED_PIPE: i32 = 141;

/// The variable that says which program this process is.
const CASE: &str = "ISLES_TEST_CASE";

/// The variable that says that the descriptors of this process are closed.
const CLOSED: &str = "ISLES_TEST_CLOSED";

/// The machines of this build.
const MACHINES: &[&str] = if cfg!(feature = "chip") {
    &["threads", "processes", "loopback", "chip:scc"]
} else {
    &["threads", "processes", "loopback"]
};

/// Time limit of a case; far beyond what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Says the same until nobody listens.
async fn talk() {
    loop {
        println!("hello from {}", here());
        isles::yield_now().await;
    }
}

async fn everywhere() -> isles::Result<()> {
    finish(async {
        for place in places() {
            spawn_at!(place, talk().await);
        }
    })
    .await
}

async fn called() -> isles::Result<()> {
    at!(here().next(), talk().await).await
}

async fn in_the_main_task() -> isles::Result<()> {
    talk().await;
    Ok(())
}

async fn beside_an_error() -> isles::Result<()> {
    finish(async {
        spawn_at!(here().next(), Err::<(), _>(isles::Error::message("something else")));
        spawn_at!(here().next(), talk().await);
    })
    .await
}

async fn with_a_hook_of_its_own() -> isles::Result<()> {
    std::panic::set_hook(Box::new(|_| eprintln!("the hook of the program")));
    isles::yield_now().await;
    at!(here(), panic!("the roof is off")).await
}

/// A body that ends its process.
async fn exits() -> isles::Result<()> {
    at!(here().next(), std::process::exit(3)).await
}

/// A local array of 4 MB, there before an `await` and after it.
async fn large() -> isles::Result<()> {
    let array = [7_u8; 4 << 20];
    let sum = array.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    assert_eq!(at!(here().next(), sum).await?, 7 << 22);
    assert_eq!(array[array.len() / 2], 7);
    Ok(())
}

/// An `init` after which, in a place's process, all descriptors are closed that it has not opened.
fn closes_descriptors() {
    if std::env::var_os("ISLES_JOIN").is_some() && std::env::var_os(CLOSED).is_none() {
        // A shell closes them, because no safe code of ours can, and becomes this program again.
        let close = (3..10).map(|descriptor| format!("{descriptor}>&- ")).collect::<String>();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {close}; exec \"$0\"")]).arg(std::env::current_exe().unwrap());
        panic!("{}", shell.env(CLOSED, "").exec());
    }
}

/// An `init` that starts runs of its own.
fn runs_within() {
    let launch = isles::Launch::from_environment().unwrap().places(2);
    for machine in [isles::Machine::Threads, isles::Machine::Processes] {
        let ended = launch.clone().machine(machine).run(async || println!("{}", isles::place_count()));
        match ended {
            Ok((result, _)) => result.unwrap(),
            Err(error) => {
                // In one piece, since several processes print.
                let line = format!("{machine}: {error}\n");
                eprint!("{line}");
            }
        }
    }
}

fn program(case: &str) -> ExitCode {
    match case {
        "parts" => isles::__private::main(destructors::parts),
        "payloads" => isles::__private::main(destructors::payloads),
        "losses" => isles::__private::main(destructors::losses),
        "answers" => isles::__private::main(destructors::answers),
        "closes" => {
            isles::__private::init(closes_descriptors);
            isles::__private::main(destructors::all_answer)
        }
        "init" => {
            isles::__private::init(runs_within);
            isles::__private::main(destructors::all_answer)
        }
        "prints" => isles::__private::main(printing::prints),
        "floods" => isles::__private::main(printing::floods),
        "stale handles" => stale::in_the_next_run(),
        "many runs" => repeated::many_runs(),
        "large" => isles::__private::main(large),
        "with a hook" => isles::__private::main(with_a_hook_of_its_own),
        "exits" => isles::__private::main(exits),
        "stands still" => isles::__private::main(unread::stands_still),
        "loses a detached task" => isles::__private::main(unread::loses_a_detached_task),
        "everywhere" => isles::__private::main(everywhere),
        "called" => isles::__private::main(called),
        "in the main task" => isles::__private::main(in_the_main_task),
        _ => isles::__private::main(beside_an_error),
    }
}

fn command(case: &str, machine: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(CASE, case).env("ISLES_MACHINE", machine).env("ISLES_PLACES", "3").env("RUST_BACKTRACE", "0");
    command
}

/// Runs the program of `case`, reads one line of it and closes the pipe; returns its exit code, and what it says of
/// it.
fn after_one_line(case: &str, machine: &str) -> (Option<i32>, String) {
    let mut child = command(case, machine).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("hello from place "), "{line:?}");
    // The reader is gone with its buffer.
    end_of(child)
}

/// The exit code of a program, and its errors if they are piped. Who does not end is ended, and has another exit code.
fn end_of(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    let pid = child.id().to_string();
    let (done, watch) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if watch.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
    });
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said).unwrap();
    }
    let code = child.wait().unwrap().code();
    drop(done);
    watch.join().unwrap();
    (code, said)
}

/// The exit code and the errors of the program of `case`, which says nothing else.
fn after_all(case: &str, machine: &str) -> (Option<i32>, String) {
    end_of(command(case, machine).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(CASE) {
        return program(&case);
    }
    let hooked = command("with a hook", "threads").output().unwrap();
    let said = String::from_utf8_lossy(&hooked.stderr);
    let line = format!("error: at place 0: panicked at {}:", file!());
    assert!(said.contains("the hook of the program") && said.contains(&line), "{said}");
    let (code, said) = after_all("closes", "processes");
    let line = " could not join: its `init` closed descriptors that it had not opened\n";
    let is_reported_once = said.starts_with("error: machine processes: place ") && said.ends_with(line);
    assert!(code == Some(2) && is_reported_once && said.lines().count() == 1, "{code:?}: {said}");
    unread::check();
    for machine in MACHINES {
        for case in ["everywhere", "called", "in the main task"] {
            let ended = after_one_line(case, machine);
            let said = ended.1.lines().filter(|line| !line.starts_with("chip:scc: ")).collect::<String>();
            assert_eq!((ended.0, said.as_str()), (Some(EXIT_CLOSED_PIPE), ""), "{case} on {machine}");
        }
        let (code, said) = after_all("large", machine);
        assert_eq!(code, Some(0), "on {machine}: {said}");
        destructors::check(machine);
        stale::check(machine);
        // A modelled chip, on which a run takes a hundred times as long, keeps its table of costs as documented.
        if !machine.starts_with("chip:") {
            repeated::check(machine);
        }
        printing::check(machine);
        let (code, said) = after_all("init", machine);
        // Each process has its own `init`, which hears what the matter is.
        let printed = said.matches("processes: machine processes: no run can be started in `init`").count();
        let processes = if *machine == "processes" { 3 } else { 1 };
        assert_eq!((code, printed), (Some(0), processes), "on {machine}: {said}");
        let (code, said) = after_all("exits", machine);
        assert!(code == Some(1) && said.contains("error: "), "{code:?} on {machine}: {said}");
        let how =
            if *machine == "processes" { "its process ended with code 3" } else { "exited, and with it" };
        assert!(said.contains("place 1") && said.contains(how), "on {machine}: {said}");
        let (code, said) = after_one_line("beside an error", machine);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("something else") && !said.contains("thread '"), "on {machine}: {said}");
    }
    ExitCode::SUCCESS
}
