//! Writes the commit that the command is built from, for `isles --version`.
//!
//! It asks git, because worktrees and packed references make git's files hard to read. Without git, or if the sources
//! are in no checkout of their own (an archive unpacked in another repository), it writes only the version. It does not
//! tell whether the sources have changed since the commit: that would rebuild the command whenever a file changes.
//! Invariant: Cargo runs it again only when another commit is checked out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Path of this package in a checkout of Isles, as git prints it.
const PREFIX: &str = "crates/cli/";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let checkout = Checkout::around(Path::new("."));
    if let Some(journal) = checkout.as_ref().and_then(|checkout| checkout.journal.as_ref()) {
        println!("cargo::rerun-if-changed={}", journal.display());
    }
    let mut version = version(env!("CARGO_PKG_VERSION"), checkout.as_ref());
    if env::var_os("CARGO_FEATURE_MPI").is_some() {
        // As in the other programs; see `companion.rs` of `isles-app`.
        version += " with MPI";
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("version"), version)
}

/// Returns the text of `isles --version` after the name.
pub fn version(number: &str, checkout: Option<&Checkout>) -> String {
    match checkout {
        Some(Checkout { commit, .. }) => format!("{number} ({commit})"),
        None => number.to_owned(),
    }
}

/// Checkout that contains a package.
#[derive(Debug)]
pub struct Checkout {
    /// The first digits of the commit: seven, or more if needed to be unique.
    pub commit: String,
    /// File that changes whenever another commit is checked out; `None` if git keeps no such file there.
    pub journal: Option<PathBuf>,
}

impl Checkout {
    /// Returns the checkout of Isles in which `package` is `crates/cli`.
    pub fn around(package: &Path) -> Option<Checkout> {
        let mut git = Command::new("git");
        git.current_dir(package).args(["rev-parse", "--show-prefix", "--git-path", "logs/HEAD"]);
        let said = git.args(["--git-path", "HEAD", "--short=7", "HEAD"]).output().ok()?;
        let said = String::from_utf8(said.stdout).ok().filter(|_| said.status.success())?;
        let [PREFIX, journal, head, commit] = said.lines().collect::<Vec<_>>()[..] else { return None };
        // A missing file would run this at each build.
        let journal = [journal, head].map(|path| package.join(path)).into_iter().find(|path| path.is_file());
        Some(Checkout { commit: commit.to_owned(), journal })
    }
}
