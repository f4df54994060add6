//! `isles launch --hosts` writes the command line for the installed MPI launcher, and refuses a line that the launcher
//! cannot start.
//!
//! The launcher is a script of the scene that prints its library's name and its arguments.

use crate::scene::{Ended, Scene, ended, words};

/// Runs `isles launch` with an `mpirun` that prints `version`.
fn launch(version: &str, line: &str) -> Ended {
    let scene = Scene::new("hosts");
    let script = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}' || echo \"told $*\"\n");
    let mpirun = scene.executable("mpirun", script);
    let mut command = scene.isles(&words(line));
    // No other program is found, in particular no other installed launcher.
    command.env("PATH", mpirun.parent().unwrap()).env("ISLES_STALL", "60");
    ended(command)
}

const OPEN_MPI: &str = "mpirun (Open MPI) 4.1.4";
const MPICH: &str = "HYDRA build details:";

#[test]
fn a_dry_run_prints_the_line_in_the_words_of_the_library() {
    let line = "launch --hosts a,b --places-per-host 3 --report finish --dry-run -- prog --own 1";
    let printed = launch(MPICH, line);
    assert_eq!(
        printed.stdout, "mpirun -hosts a:3,b:3 -n 6 -genv ISLES_REPORT finish prog --own 1\n",
        "{printed:?}"
    );
    let printed = launch(OPEN_MPI, line).stdout;
    assert!(printed.starts_with("mpirun --host a:3,b:3 -n 6 "), "{printed}");
    assert!(printed.contains(" -x ISLES_STALL -x "), "what is set goes to the other hosts, too: {printed}");
    assert!(printed.ends_with(" -x ISLES_REPORT=finish prog --own 1\n"), "{printed}");
}

#[test]
fn the_launcher_is_started_with_that_line() {
    let printed = launch(MPICH, "launch --hosts localhost --places-per-host 2 -- prog");
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (Some(0), "told -hosts localhost:2 -n 2 prog\n"),
        "{printed:?}"
    );
}

#[test]
fn what_cannot_be_started_is_said_in_one_line() {
    for (line, says) in [
        ("launch --hosts a,,b -- prog", "--hosts is \"a,,b\"; allowed: host names or addresses"),
        ("launch --hosts no.such.host.invalid -- prog", "allowed: hosts whose names resolve"),
        ("launch --hosts localhost --places-per-host 0 -- prog", "--places-per-host is \"0\"; allowed: 1 to"),
        (
            "launch --hosts localhost --places 3 -- prog",
            "--places cannot be combined with --hosts; allowed: --places-per-host",
        ),
        ("launch --hosts localhost --machine threads -- prog", "--machine is \"threads\"; allowed: mpi"),
        ("launch --hosts localhost --ui -- prog", "put --ui after the --, as in `-- isles run bc --ui`"),
    ] {
        let printed = launch(OPEN_MPI, line);
        let refusal = printed.refusal();
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
    let printed = launch("Another MPI 1.0", "launch --hosts localhost -- prog");
    assert!(
        printed.refusal().contains("mpirun is \"Another MPI 1.0\"; allowed: the launcher of Open MPI"),
        "{printed:?}"
    );
}
