//! Programs of Isles that are built separately from the command, because of their dependencies.
//!
//! A program is found beside the current one or on `PATH`, or is built in the checkout on first use. A program that
//! starts places must support the machines of the current one, and the machine of the run: one without MPI or guests is
//! rebuilt. Invariant: the caller of a program needs none of its packages.

use crate::Failure;
use crate::console;
use isles::VERSION_VARIABLE;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::borrow::Cow;
use std::env;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The text of `--version` of a program of this package, with the machines that features add.
pub const VERSION: &str = match (cfg!(feature = "mpi"), cfg!(feature = "guests")) {
    (false, false) => env!("CARGO_PKG_VERSION"),
    (true, false) => concat!(env!("CARGO_PKG_VERSION"), " with MPI"),
    (false, true) => concat!(env!("CARGO_PKG_VERSION"), " with guests"),
    (true, true) => concat!(env!("CARGO_PKG_VERSION"), " with MPI with guests"),
};

/// A machine that a feature adds to programs.
struct FeatureMachine {
    feature: &'static str,
    /// Name of the machine in a version and in messages.
    name: &'static str,
    /// True if this program has it.
    is_built: bool,
    /// `true` if a program is built with it when a run names the machine. (Ranks of MPI are started by a launcher.)
    is_on_demand: bool,
}

/// All machines that a feature adds.
const FEATURE_MACHINES: [FeatureMachine; 2] = [
    FeatureMachine { feature: "mpi", name: "MPI", is_built: cfg!(feature = "mpi"), is_on_demand: false },
    FeatureMachine {
        feature: "guests",
        name: "guests",
        is_built: cfg!(feature = "guests"),
        is_on_demand: true,
    },
];

/// Least time of a build that is reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// A program and its package.
#[derive(Clone, Debug)]
pub struct Companion {
    program: Cow<'static, str>,
    package: Cow<'static, str>,
    /// Folder of the sources of the package in the checkout.
    folder: Cow<'static, str>,
    /// `true` if it starts places, and must support the machines of this program.
    starts_places: bool,
    /// The features that its package needs for it, in Cargo's syntax.
    features: &'static str,
    /// The machine of the run, if a feature adds it on demand.
    machine: Option<&'static str>,
}

/// The command itself: for pictures.
pub const ISLES: Companion = Companion::new("isles", "isles-cli", "crates/cli", true);

/// The measurements.
pub const BENCH: Companion = Companion::new("isles-bench", "isles-bench", "crates/bench", false);

/// The server of the live page.
pub const DASHBOARD: Companion =
    Companion::new("isles-dashboard", "isles-dashboard", "crates/dashboard", false);

/// Published experiments, power models, calibration.
pub const LAB: Companion = Companion::new("isles-lab", "isles-lab", "crates/lab", true);

/// Management of jobs.
pub const JOBS: Companion = Companion::new("isles-jobs", "isles-jobs", "crates/jobs", true);

/// C programs of RCCE, on hosts and modelled chips.
pub const RCCE: Companion = Companion::new("isles-rcce", "isles-rcce", "crates/rcce", false);

/// Images for bare cores.
pub const BARE: Companion = Companion::new("isles-bare", "isles-bare", "crates/bare", false);

/// Measurement of the cost of a guest of the hypervisor on this host.
pub const GUEST: Companion =
    Companion::new("isles-guest", "isles-hypervisor", "crates/hypervisor", false).with_features("guests");

/// A run in a terminal.
pub const TOP: Companion = Companion::new("isles-top", "isles-top", "crates/top", false);

/// Programs of the applications: for each, its name without `isles-`, the folder of its package, and a description; see
/// `build.rs`.
const APPLICATIONS: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/applications"));

/// Returns the applications of the suite by name, with their descriptions.
pub fn applications() -> impl Iterator<Item = (&'static str, &'static str)> {
    APPLICATIONS.iter().map(|(name, _, about)| (*name, *about))
}

impl Companion {
    const fn new(
        program: &'static str,
        package: &'static str,
        folder: &'static str,
        starts_places: bool,
    ) -> Companion {
        let (program, package, folder) =
            (Cow::Borrowed(program), Cow::Borrowed(package), Cow::Borrowed(folder));
        Companion { program, package, folder, starts_places, features: "", machine: None }
    }

    const fn with_features(mut self, features: &'static str) -> Companion {
        self.features = features;
        self
    }

    /// Returns the application of this name.
    pub fn application(name: &str) -> Companion {
        let folder = APPLICATIONS.iter().find(|row| row.0 == name).map_or(name, |row| row.1);
        let named = |name: &str| Cow::Owned(format!("isles-{name}"));
        let (program, package) = (named(name), named(folder));
        let folder = Cow::Owned(format!("apps/{folder}"));
        Companion { program, package, folder, starts_places: true, features: "", machine: None }
    }

    /// The program for a run on `machine`: it is built again if it lacks a machine that a feature adds on demand.
    pub fn on_machine(mut self, machine: &str) -> Companion {
        let found = FEATURE_MACHINES.iter().find(|known| known.is_on_demand && known.name == machine);
        self.machine = found.map(|known| known.name);
        self
    }

    /// The package that it is built of.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Returns a command that runs the program: the file beside this program, the one on `PATH`, or one that Cargo
    /// builds in the checkout that contains the current directory or this program.
    ///
    /// # Errors
    /// It does not exist and cannot be built; the line names the remedy.
    pub fn command(&self) -> Result<Command, Failure> {
        let path = self.fitting().map_or_else(|| self.build(), Ok)?;
        let mut command = Command::new(path);
        command.env(VERSION_VARIABLE, env!("CARGO_PKG_VERSION"));
        Ok(command)
    }

    /// Becomes the program with these arguments.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn exec<W: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = W>,
    ) -> Result<(), Failure> {
        let mut command = self.command()?;
        command.args(arguments);
        let cause = command.exec();
        Err(spawn_failure(&command, &cause))
    }

    /// The first of the program's files that knows the machines that it needs.
    fn fitting(&self) -> Option<PathBuf> {
        self.installed().find(|file| self.fits(file))
    }

    /// The machines of features that the program needs, because this program has them or the run asks for them.
    fn needed(&self) -> impl Iterator<Item = &'static FeatureMachine> {
        let (starts_places, asked) = (self.starts_places, self.machine);
        FEATURE_MACHINES
            .iter()
            .filter(move |machine| starts_places && (machine.is_built || asked == Some(machine.name)))
    }

    /// The names of the machines that it needs, for a sentence.
    fn needed_names(&self) -> String {
        self.needed().map(|machine| machine.name).collect::<Vec<_>>().join(" or ")
    }

    /// The features that it needs, as Cargo reads them.
    fn needed_features(&self) -> String {
        self.needed().map(|machine| machine.feature).collect::<Vec<_>>().join(",")
    }

    /// Returns `true` if the program in `file` has the machines of features that it needs.
    fn fits(&self, file: &Path) -> bool {
        if self.needed().next().is_none() {
            return true;
        }
        // Without variables of a launcher, with which it would act as a rank.
        let mut command = Command::new(file);
        command.arg("--version").env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        command.envs(env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"));
        let version = command.output().map(|output| output.stdout).unwrap_or_default();
        let version = String::from_utf8_lossy(&version);
        self.needed().all(|machine| version.contains(&format!(" with {}", machine.name)))
    }

    /// The program's files beside this program and on `PATH`.
    fn installed(&self) -> impl Iterator<Item = PathBuf> {
        let beside = env::current_exe().unwrap_or_default().with_file_name(&*self.program);
        let folders = env::var_os("PATH").unwrap_or_default();
        let on_path: Vec<_> = env::split_paths(&folders).map(|folder| folder.join(&*self.program)).collect();
        std::iter::once(beside).chain(on_path).filter(|file| file.is_file())
    }

    /// Builds the program in the checkout, and returns its file. A long build is reported, with its time.
    ///
    /// # Errors
    /// There is no checkout or no Cargo; or the build fails, and has reported the reason.
    fn build(&self) -> Result<PathBuf, Failure> {
        let name = &self.program;
        let own = env::current_exe().unwrap_or_default();
        let manifest = env::current_dir().ok().and_then(|here| manifest_above(&here));
        let manifest = manifest.or_else(|| manifest_above(&own)).ok_or_else(|| {
            let folder = &self.folder;
            if let Some(file) = self.installed().next() {
                return Failure::Usage(format!(
                    "{} was built without {}, which this run needs; build it inside the Isles \
                     sources: cargo build --release -p {} --features {}",
                    file.display(),
                    self.needed_names(),
                    self.package,
                    self.needed_features()
                ));
            }
            Failure::Usage(format!(
                "{name} is neither beside this program nor on PATH; run this inside the Isles sources, \
                 which builds it, or install it from there: cargo install --path {folder}"
            ))
        })?;
        // Of several ranks one builds, and the others use its build.
        let lock = File::open(&manifest);
        let _locked = lock.as_ref().map(|lock| flock(lock, FlockOperation::LockExclusive));
        if let Some(file) = self.fitting() {
            return Ok(file);
        }
        let mut cargo = self.cargo_build(&manifest);
        let begin = Instant::now();
        let (end, ended) = channel::<()>();
        let reporter = thread::spawn({
            let why = match self.installed().next() {
                Some(_) => format!("which was built without {}", self.needed_names()),
                None => "which is built on first use".to_owned(),
            };
            let line = format!("building {name}, {why}");
            move || {
                let _ = ended.recv_timeout(REPORT_AFTER); // nothing is ever sent: it waits for the end
                if begin.elapsed() >= REPORT_AFTER {
                    console::notice(line);
                }
            }
        });
        let built = cargo.spawn().and_then(|child| child.wait_with_output());
        drop(end);
        let _ = reporter.join();
        let built = built.map_err(|cause| match cause.kind() {
            ErrorKind::NotFound => Failure::Usage(format!(
                "{name} is not built, and cargo was not found: install Rust (https://rustup.rs), or put \
                 {name} on PATH"
            )),
            _ => spawn_failure(&cargo, &cause),
        })?;
        let file = built.status.success().then(|| executable(&built.stdout)).flatten();
        let file = file.ok_or_else(|| {
            Failure::Usage(format!(
                "cannot build {name} in {}; see the output of cargo above",
                manifest.display()
            ))
        })?;
        if begin.elapsed() >= REPORT_AFTER {
            console::notice(format_args!("built {name} in {:.0} s", begin.elapsed().as_secs_f64()));
        }
        Ok(file)
    }

    fn cargo_build(&self, manifest: &Path) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--locked", "--message-format=json-render-diagnostics"]);
        cargo.args(["--package", &self.package, "--bin", &self.program]);
        let features = [self.features, &self.needed_features()].join(",");
        if features != "," {
            cargo.args(["--features", &features]);
        }
        if !std::io::stderr().is_terminal() {
            cargo.arg("--quiet");
        }
        cargo.arg("--manifest-path").arg(manifest);
        cargo.stdin(Stdio::null()).stdout(Stdio::piped());
        cargo
    }
}

/// Returns the program's file, as named by the last of Cargo's messages that names an executable.
fn executable(messages: &[u8]) -> Option<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n').rev();
    let mut messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    messages.find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
}

/// Returns the manifest of the checkout of Isles that contains `inside`.
fn manifest_above(inside: &Path) -> Option<PathBuf> {
    let is_checkout = |folder: &&Path| folder.join("crates/isles/Cargo.toml").is_file();
    inside.ancestors().find(is_checkout).map(|folder| folder.join("Cargo.toml"))
}

/// Returns the failure of a program that cannot be started.
pub fn spawn_failure(command: &Command, cause: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot start {}: {cause}", command.get_program().display()))
}

/// Checks that this program has the version of the program that started it, if known.
///
/// # Errors
/// It is not.
pub fn check_version(program: &str) -> Result<(), Failure> {
    let Some(asked) = env::var_os(VERSION_VARIABLE) else { return Ok(()) };
    let own = env!("CARGO_PKG_VERSION");
    if asked == own {
        return Ok(());
    }
    let file = env::current_exe().unwrap_or_default();
    Err(Failure::Usage(format!(
        "{} is {program} {own}, but its caller is version {}; install the same version of both",
        file.display(),
        asked.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_on_guests_needs_their_feature_and_one_of_ranks_asks_for_nothing() {
        let features = |machine| Companion::application("hello").on_machine(machine).needed_features();
        let own = features("threads");
        assert_eq!(features("mpi"), own);
        assert!(features("guests").split(',').any(|feature| feature == "guests"));
        assert_eq!(own.contains("guests"), cfg!(feature = "guests"));
    }
}
