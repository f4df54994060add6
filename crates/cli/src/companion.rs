//! Programs of Isles that are built apart from the command, because not everybody needs what they need.
//!
//! They lie beside the command, or are built from the sources when they are first asked for. Invariant: the command
//! itself needs none of their packages.

use isles_apps::console;
use isles_apps::registry::Failure;
use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, named as its package.
#[derive(Clone, Copy, Debug)]
pub struct Companion(&'static str);

/// The measurements.
pub const BENCH: Companion = Companion("isles-bench");

/// The server of the live page.
pub const DASHBOARD: Companion = Companion("isles-dashboard");

/// A run in a terminal.
pub const TOP: Companion = Companion("isles-top");

impl Companion {
    /// A command that runs it: the file beside this program, or, from inside the sources, what Cargo builds of it.
    ///
    /// # Errors
    /// It is neither beside nor can it be built; the line says how to get it.
    pub fn command(self) -> Result<Command, Failure> {
        let beside = env::current_exe().unwrap_or_default().with_file_name(self.0);
        if beside.is_file() {
            return Ok(Command::new(beside));
        }
        let mut cargo = self.cargo("run")?;
        console::notice(format_args!("building {}; the first time takes a minute or two", self.0));
        cargo.arg("--");
        Ok(cargo)
    }

    /// As [`Companion::command`], but what takes long has been done: the program starts at once.
    ///
    /// # Errors
    /// As there; or the build fails, and has said why.
    pub fn built(self) -> Result<Command, Failure> {
        let command = self.command()?;
        if command.get_program() == "cargo" {
            let built = self.cargo("build")?.status();
            if !built.is_ok_and(|status| status.success()) {
                return Err(Failure::Usage(format!("{} cannot be built", self.0)));
            }
        }
        Ok(command)
    }

    /// Becomes the program with these arguments.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn become_it<W: AsRef<std::ffi::OsStr>>(
        self,
        arguments: impl IntoIterator<Item = W>,
    ) -> Result<(), Failure> {
        let mut command = self.command()?;
        command.args(arguments);
        let cause = command.exec();
        Err(unstartable(&command, &cause))
    }

    fn cargo(self, verb: &str) -> Result<Command, Failure> {
        let own = env::current_exe().unwrap_or_default();
        let manifest = env::current_dir().ok().and_then(|here| manifest_above(&here));
        let manifest = manifest.or_else(|| manifest_above(&own)).ok_or_else(|| {
            let name = self.0;
            let how = format!("cargo build --release -p {name} --bin {name}");
            Failure::Usage(format!(
                "{name} is not built; run this inside the sources of Isles, or put it beside isles: {how}"
            ))
        })?;
        let mut cargo = Command::new("cargo");
        cargo
            .args([verb, "--release", "--locked", "--quiet", "--package", self.0, "--manifest-path"])
            .arg(manifest);
        Ok(cargo)
    }
}

/// The manifest of the sources of Isles that `inside` lies in.
fn manifest_above(inside: &Path) -> Option<PathBuf> {
    let sources = inside.ancestors().find(|folder| folder.join("crates/bench/Cargo.toml").is_file());
    sources.map(|folder| folder.join("Cargo.toml"))
}

/// The failure of a program that the system does not start.
pub fn unstartable(command: &Command, cause: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot start {}: {cause}", command.get_program().display()))
}
