//! The first `./run` on a fresh machine.
//!
//! Its own file because it starts a whole build. The downloads of its packages are in the figure; Rust itself is not.
//! The invariant: nothing built or fetched earlier is found; sources, build folder, Cargo's folder and data cache are
//! fresh. What of Cargo's folder says how to reach the packages is taken along.

use super::say;
use crate::options::Effort;
use crate::work_folder::WorkFolder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Prints `seconds`.
pub fn run(_effort: Effort) {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    assert!(source.join("run").exists(), "{}: no checkout with a `run`", source.display());
    let workshop = WorkFolder::open().expect("there is a cache folder");
    let fresh = workshop.fresh_folder("cold").expect("the cache folder can be written");
    copy(source, &fresh);
    let cargo_home = fresh.join("cargo-home");
    std::fs::create_dir(&cargo_home).expect("the cache folder can be written");
    for name in ["config.toml", "config"] {
        if let Some(from) = cargo_folder().map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            std::fs::copy(from, cargo_home.join(name)).expect("the cache folder can be written");
        }
    }
    let mut command = Command::new("./run");
    command.current_dir(&fresh).env_remove("CARGO_TARGET_DIR").env_remove("CARGO_NET_OFFLINE");
    command.env("CARGO_HOME", &cargo_home).env("XDG_CACHE_HOME", fresh.join("cache"));
    let start = Instant::now();
    succeed(&mut command);
    say("seconds", start.elapsed().as_secs_f64());
    std::fs::remove_dir_all(&fresh).expect("the own folder can be removed");
}

/// Where Cargo keeps what it has fetched, and the person's settings.
fn cargo_folder() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

/// Copies what the repository holds, with changes that are not committed, and nothing that was built.
fn copy(source: &Path, fresh: &Path) {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(source);
    let output = list.output().expect("git can be started");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    for name in output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = Path::new(std::str::from_utf8(name).expect("names in the repository are UTF-8"));
        let (from, to) = (source.join(name), fresh.join(name));
        if !from.exists() {
            continue; // listed, but deleted and not yet committed
        }
        std::fs::create_dir_all(to.parent().expect("a file lies in a folder"))
            .expect("the cache folder can be written");
        std::fs::copy(&from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

fn succeed(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
