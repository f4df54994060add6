//! Availability of programs: installed ones, our own that are built on demand, and the reason why a contender is
//! missing.

use crate::install::Package;
use isles_app::companion::Companion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Reason why a contender has no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Reason: the missing thing, or the failure.
    pub why: String,
    /// Remedy for the user.
    pub remedy: String,
    /// Package to install, if that is sufficient.
    #[serde(skip)]
    pub package: Option<Package>,
}

impl Missing {
    /// Creates the reason for a missing thing, and its remedy.
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Missing {
        Missing { why: why.into(), remedy: remedy.into(), package: None }
    }

    /// Creates the reason for a thing that a package provides.
    pub fn of_package(why: impl Into<String>, package: Package) -> Missing {
        Missing { why: why.into(), remedy: package.to_string(), package: Some(package) }
    }
}

/// Returns `true` if a program of this name can be started.
pub fn is_installed(program: impl AsRef<OsStr>) -> bool {
    let quiet = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok()
}

/// Returns the program of another of our packages: inside the checkout built from the current sources, elsewhere the
/// file beside this program.
///
/// # Errors
/// It is not there, or cannot be built.
pub fn built(program: &str) -> Result<PathBuf, Missing> {
    // Some programs share a package.
    let companion = program.strip_prefix("isles-").map(Companion::application);
    let package = companion.as_ref().map_or(program, |companion| companion.package());
    up_to_date(&["-p", package])?;
    of_release(Path::new(program), &format!("cargo build --release -p {package}"))
}

/// Returns an example of one of our packages, as [`built`]: a peer that is a Rust library needed only by the package's
/// tests.
///
/// # Errors
/// It is not there, or cannot be built.
pub fn built_example(package: &str, name: &str) -> Result<PathBuf, Missing> {
    up_to_date(&["-p", package, "--example", name])?;
    let how = format!("cargo build --release -p {package} --example {name}");
    of_release(&Path::new("examples").join(name), &how)
}

/// Returns a program that needs a feature of its package, as [`built`].
///
/// # Errors
/// It is not there, or cannot be built.
pub fn built_with(program: &str, package: &str, feature: &str) -> Result<PathBuf, Missing> {
    up_to_date(&["-p", package, "--bin", program, "--features", feature])?;
    of_release(Path::new(program), &format!("cargo build --release -p {package} --features {feature}"))
}

/// Returns the file with that name in the folder of this program.
fn of_release(file: &Path, how: &str) -> Result<PathBuf, Missing> {
    let path = own_program()?.with_file_name("").join(file);
    let lacks = || Missing::new(format!("{} not found", file.display()), how);
    if path.is_file() { Ok(path) } else { Err(lacks()) }
}

fn own_program() -> Result<PathBuf, Missing> {
    std::env::current_exe().map_err(|error| Missing::new(format!("own program: {error}"), "start it again"))
}

/// Builds the target of these Cargo arguments, if this program is in the checkout where it was built.
fn up_to_date(words: &[&str]) -> Result<(), Missing> {
    let own = own_program()?;
    let checkout = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let target = own.parent().filter(|folder| folder.ends_with("release")).and_then(Path::parent);
    let Some(target) = target.filter(|_| checkout.join("Cargo.toml").is_file()) else { return Ok(()) };
    // Changes of the sources while the bench runs are ignored, so each is built once.
    static BUILT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut known = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.contains(&words.join(" ")) {
        let mut cargo = Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")));
        cargo.current_dir(checkout).arg("build").arg("--target-dir").arg(target);
        cargo.args(["--quiet", "--release", "--locked"]).args(words);
        if !succeeds(&mut cargo) {
            let arguments = words.join(" ");
            return Err(Missing::new(
                format!("{arguments} cannot be built"),
                format!("cargo build --release {arguments}"),
            ));
        }
        known.insert(words.join(" "));
    }
    Ok(())
}

/// Runs a command without output; returns `true` if it succeeds.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}
