//! `--ui` of `isles run` and `isles launch`, `isles replay`, `isles report` and `isles top`: observed runs.
//!
//! The server is another program, so a run neither waits for it nor fails with it; this module finds, starts and
//! releases it. Invariant: nothing stays that the user has not requested: neither a server nor a folder.

use crate::companion::{DASHBOARD, spawn_failure};
use crate::console;
use crate::runs::refusal;
use crate::{Failure, PlaceArguments};
use clap::Args;
use isles::{SettingRow, setting};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a server to end by itself after its run.
const END_LIMIT: Duration = Duration::from_secs(3);

/// Time to wait for the server's address; a server waits no longer for a run to begin.
const ADDRESS_LIMIT: Duration = Duration::from_secs(60);

/// File in the run directory in which a server leaves its address.
const ADDRESS: &str = "ui-address";

/// Interval at which its end is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Setting of the run directory, which the page reads.
const RECORD: &SettingRow = setting("record");

/// The machine of the run, and the one whose runs are not observed.
const MACHINE: &SettingRow = setting("machine");
const UNOBSERVED: &str = "loopback";

/// Arguments of the live page.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The live page")]
pub struct UiArguments {
    /// Show the run in a browser: prints an address of this host
    #[arg(long)]
    ui: bool,

    /// Keep the page after the run has ended, until Ctrl-C
    #[arg(long, requires = "ui")]
    keep_ui: bool,

    /// Port of the page [default: any free port]
    #[arg(long, value_name = "PORT", requires = "ui", allow_negative_numbers = true)]
    ui_port: Option<String>,

    /// Seconds between two pictures of the run, 0.1 to 60 [default: 0.5]
    #[arg(long, value_name = "SECONDS", requires = "ui", allow_negative_numbers = true)]
    ui_every: Option<String>,
}

/// A requested page.
pub struct UiPlan {
    directory: PathBuf,
    jobs: Option<PathBuf>,
    is_scratch: bool,
    is_kept: bool,
    port: u16,
    /// Polling interval of the run; the server's default if `None`.
    poll_interval: Option<Duration>,
}

/// A server that shows a run.
pub struct UiServer {
    plan: UiPlan,
    child: Child,
    /// Open as long as this process lives; `Child::wait` would close it.
    _owner: Option<ChildStdin>,
}

impl UiArguments {
    /// Refuses the flag together with `other`; `why` has the reason and the remedy.
    ///
    /// # Errors
    /// It is said.
    pub fn reject_with(&self, other: &str, why: &str) -> Result<(), Failure> {
        match self.ui {
            true => Err(Failure::Usage(format!("--ui cannot be combined with {other}: {why}"))),
            false => Ok(()),
        }
    }

    /// Returns the page if requested; the run is then recorded, in a temporary folder if no other is given.
    ///
    /// # Errors
    /// The port is invalid or not free.
    pub fn plan(&self, places: &mut PlaceArguments) -> Result<Option<UiPlan>, Failure> {
        if !self.ui {
            return Ok(None);
        }
        let machine =
            places.value_of(MACHINE).map(str::to_owned).or_else(|| std::env::var(MACHINE.variable).ok());
        if let Some(machine) = machine.filter(|machine| machine == UNOBSERVED) {
            return Err(Failure::Usage(format!("--ui does not support machine {machine} yet")));
        }
        let port = free_port("--ui-port", self.ui_port.as_deref().unwrap_or("0"))?;
        let poll_interval = self.ui_every.as_deref().map(parse_interval).transpose()?;
        let by_variable = || std::env::var(RECORD.variable).ok().filter(|value| !value.is_empty());
        let value = places.value_of(RECORD).map(str::to_owned).or_else(by_variable);
        let is_scratch = value.is_none();
        let directory = value.map_or_else(scratch, PathBuf::from);
        places.set(RECORD, directory.to_string_lossy().into_owned());
        Ok(Some(UiPlan { directory, jobs: None, is_scratch, is_kept: self.keep_ui, port, poll_interval }))
    }
}

/// Parses the port of `flag` and checks that it is free: a run does not begin without its requested page.
///
/// # Errors
/// It is invalid or not free.
pub fn free_port(flag: &str, value: &str) -> Result<u16, Failure> {
    let port = value.parse().map_err(|_| refusal(flag, value, "a port from 0 (any free port) to 65535"))?;
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(port),
        Err(cause) => Err(refusal(flag, value, &format!("a free port ({cause})"))),
    }
}

/// The interval that `--ui-every` says.
fn parse_interval(value: &str) -> Result<Duration, Failure> {
    let seconds = value.parse().ok().filter(|seconds| (0.1..=60.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| refusal("--ui-every", value, "seconds from 0.1 to 60"))?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Returns a temporary folder with a random name.
fn scratch() -> PathBuf {
    let parent = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    parent.join(format!("isles-{:016x}", RandomState::new().build_hasher().finish()))
}

impl UiPlan {
    /// The page also manages the jobs of that directory.
    pub fn with_jobs(self, jobs: PathBuf) -> UiPlan {
        UiPlan { jobs: Some(jobs), ..self }
    }

    /// Starts the server, which waits for the run to begin.
    ///
    /// # Errors
    /// There is no such program, or it cannot be started.
    pub fn start(self) -> Result<UiServer, Failure> {
        let mut command = DASHBOARD.command()?;
        command.arg("live").arg(&self.directory).args(["--owned", "--port", &self.port.to_string()]);
        if self.is_kept {
            command.arg("--keep");
        }
        if let Some(every) = self.poll_interval {
            command.args(["--every", &every.as_millis().to_string()]);
        }
        if self.is_scratch {
            command.arg("--scratch");
        }
        if let Some(jobs) = &self.jobs {
            command.arg("--jobs").arg(jobs);
        }
        // It is never written to: its close tells the server that this process has ended.
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        // Ctrl-C, or a launcher that kills a rank, ends all processes of a group at once; the server outlives them to
        // clean up.
        command.process_group(0);
        let mut child = command.spawn().map_err(|cause| spawn_failure(&command, &cause))?;
        let owner = child.stdin.take();
        Ok(UiServer { plan: self, child, _owner: owner })
    }
}

impl UiServer {
    /// Its process.
    pub fn process(&self) -> &Child {
        &self.child
    }

    /// Waits for the server after the run; it shows the end for a moment, or as long as it is kept.
    pub fn end(mut self) {
        if self.plan.is_kept && self.plan.directory.is_dir() {
            // A short run may be over before its server has begun.
            let (address, until) = (self.plan.directory.join(ADDRESS), Instant::now() + ADDRESS_LIMIT);
            while Instant::now() < until && !address.is_file() && self.is_running() {
                std::thread::sleep(POLL_INTERVAL);
            }
            if self.is_running() {
                console::notice("the run has ended; its page stays until Ctrl-C");
            }
            let _ = self.child.wait(); // of a process of ours it always can
        }
        let until = Instant::now() + END_LIMIT;
        while Instant::now() < until && self.plan.directory.is_dir() && self.is_running() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns `true` if the server has not ended.
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for UiServer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
        if self.plan.is_scratch {
            let _ = std::fs::remove_dir_all(&self.plan.directory); // of a run that did not begin there is none
        }
    }
}
