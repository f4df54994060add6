//! Checks `isles-bench` when its output pipe is closed, and when the device is full.
//!
//! The figures are not the subject: only its help and its list are asked for.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

fn run(word: &str, stdout: impl Into<Stdio>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isles-bench"));
    command.arg(word).stdin(Stdio::null()).stderr(Stdio::piped()).stdout(stdout);
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_closed_pipe_is_quiet_and_a_full_device_one_line() {
    for word in ["--help", "--list"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(word, writer);
        assert_eq!((closed.status.code(), closed.stderr.len()), (Some(141), 0), "{closed:?}");
        let full = run(word, OpenOptions::new().write(true).open("/dev/full").unwrap());
        let stderr = String::from_utf8_lossy(&full.stderr);
        assert_eq!(full.status.code(), Some(2), "{stderr}");
        assert!(stderr.starts_with("isles-bench: standard output: No space left"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn the_help_is_at_most_100_columns_wide() {
    let help = run("--help", Stdio::piped());
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(text.starts_with("usage: isles bench core") && help.status.success(), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line:?}");
    }
}
