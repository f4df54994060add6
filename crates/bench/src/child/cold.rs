//! The first `./run` on a fresh machine.
//!
//! Its own file because it starts a whole build. It does not count the download: the packages are fetched first.
//! The invariant: nothing built earlier is found; sources, build folder and data cache are fresh.

use super::say;
use crate::options::Effort;
use crate::workshop::Workshop;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Prints `seconds`.
pub fn run(_effort: Effort) {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    assert!(source.join("run").exists(), "{}: no checkout with a `run`", source.display());
    let workshop = Workshop::open().expect("there is a cache folder");
    let fresh = workshop.fresh_folder("cold").expect("the cache folder can be written");
    copy(source, &fresh);
    succeed(Command::new("cargo").args(["fetch", "--quiet", "--locked"]).current_dir(&fresh));
    let mut command = Command::new("./run");
    command.current_dir(&fresh).env_remove("CARGO_TARGET_DIR").env("CARGO_NET_OFFLINE", "true");
    command.env("XDG_CACHE_HOME", fresh.join("cache"));
    let start = Instant::now();
    succeed(&mut command);
    say("seconds", start.elapsed().as_secs_f64());
    std::fs::remove_dir_all(&fresh).expect("the own folder can be removed");
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
