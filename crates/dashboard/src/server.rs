//! The server: its run, its address, and its lifetime.
//!
//! One thread polls the run, and answers all requests. Invariants: it listens on the loopback address only; its printed
//! addresses contain the token, its answers never do; it ends by itself when the run has ended, unless it is kept.

use crate::accept::{RequestService, accept};
use crate::answer::Answer;
use crate::guard::Guard;
use crate::jobs;
use crate::routes::{self, Found};
use crate::stream::{Published, Readers};
use hyper::Request;
use hyper::body::Incoming;
use isles_telemetry::{DirectoryError, HostMeter, HostReading, LogError, shown};
use isles_view::{LiveRun, ReplayedRun, RunView, WatchError};
use std::fs::File;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Maximum interval at which the end of the run is polled.
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(500);

/// Interval between attempts to find a starting run.
const BEGIN_EVERY: Duration = Duration::from_millis(20);

/// Time for which a server that is not kept shows the end of its run, or of the process that started it.
pub const END_SHOWN: Duration = Duration::from_secs(1);

/// Maximum bytes of the body of a request; the page needs no more.
const BODY_BYTES_MAX: u64 = 16 << 10;

/// Source of the run that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSource {
    /// The live run of a run directory, and the time to wait for it if it has not begun.
    Live(PathBuf, Duration),
    /// The event log of a run directory.
    Replay(PathBuf),
}

/// Options of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// The port; 0 for any free port.
    pub port: u16,
    /// `true` to keep serving when the run has ended.
    pub is_kept: bool,
    /// Time between two snapshots of a live run; above 0.
    pub poll_interval: Duration,
    /// The directory of the jobs, if the run manages any.
    pub jobs: Option<PathBuf>,
}

/// Error of starting a server.
#[derive(Debug)]
pub enum ServeError {
    /// There is no run to show.
    Watch(WatchError),
    /// The log cannot be replayed.
    Log(PathBuf, LogError),
    /// The port is unavailable.
    Port(u16, io::Error),
    /// A system call failed; the text names it.
    System(String),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Watch(error) => error.fmt(f),
            ServeError::Log(path, error) => {
                write!(f, "{} cannot be replayed: {error}", shown(&path.join("events.log")))
            }
            ServeError::Port(port, cause) => {
                write!(f, "--port is \"{port}\"; allowed: a free port ({cause})")
            }
            ServeError::System(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ServeError {}

/// State that all requests share.
pub(crate) struct Shared {
    pub(crate) guard: Guard,
    pub(crate) snapshots: watch::Receiver<Arc<Published>>,
    pub(crate) readers: Readers,
    /// The directory of the jobs that the run manages.
    pub(crate) jobs: Option<PathBuf>,
    /// Meter of the host, for a run that runs on its processors.
    host: Option<Mutex<HostMeter>>,
    view: Arc<Mutex<View>>,
}

/// The run that is shown.
enum View {
    Live(Box<LiveRun>),
    Replay(Box<ReplayedRun>),
}

impl View {
    fn open(source: &RunSource) -> Result<View, ServeError> {
        match source {
            RunSource::Live(path, wait) => begin(path, *wait).map_err(ServeError::Watch),
            RunSource::Replay(path) => {
                let run = ReplayedRun::open(path).map_err(|error| ServeError::Log(path.clone(), error))?;
                Ok(View::Replay(Box::new(run)))
            }
        }
    }

    fn as_run(&mut self) -> &mut dyn RunView {
        match self {
            View::Live(run) => &mut **run,
            View::Replay(run) => &mut **run,
        }
    }
}

/// Connects to a run, which may not have begun yet, or opens the log of a finished one.
fn begin(path: &Path, wait: Duration) -> Result<View, WatchError> {
    let started = Instant::now();
    loop {
        let error = match LiveRun::connect(path) {
            Ok(run) => return Ok(View::Live(Box::new(run))),
            Err(error) => error,
        };
        let is_whole = |run: &ReplayedRun| run.recorded().end().is_some();
        if let Some(run) = ReplayedRun::open(path).ok().filter(is_whole) {
            return Ok(View::Replay(Box::new(run)));
        }
        let may_begin = matches!(
            &error,
            WatchError::Directory(
                DirectoryError::NotFound(_) | DirectoryError::RunEnded(_) | DirectoryError::NoAnswer(_)
            )
        );
        if !may_begin || started.elapsed() >= wait {
            return Err(error);
        }
        std::thread::sleep(BEGIN_EVERY);
    }
}

impl Shared {
    /// Calls `ask` with the run, without awaiting.
    pub(crate) fn with_view<R>(&self, ask: impl FnOnce(&mut dyn RunView) -> R) -> R {
        // A panic in a poll leaves the previous values, which can be shown.
        ask(self.view.lock().unwrap_or_else(PoisonError::into_inner).as_run())
    }

    /// Returns the power and clocks of the run's host now; `None` for a replay, or a modelled chip.
    pub(crate) fn host(&self) -> Option<HostReading> {
        Some(self.host.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).read())
    }
}

impl RequestService for Shared {
    fn guard(&self) -> &Guard {
        &self.guard
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        match routes::answer(&self, &request) {
            Found::Answer(answer) => answer,
            Found::Jobs => jobs::answer(&self, request).await,
        }
    }
}

/// Serves the run until it has ended, or for ever.
///
/// Once it listens, `on_ready` gets the addresses to open; the read-only ones, if there is a manager role; and the
/// remark on a truncated log.
///
/// # Errors
/// See [`ServeError`]; nothing is served.
pub fn serve(
    source: &RunSource,
    options: &ServeOptions,
    on_ready: impl FnOnce(&[String; 2], Option<&[String; 2]>, Option<&str>),
) -> Result<(), ServeError> {
    let system = |context: &str| {
        let context = context.to_owned();
        move |cause: io::Error| ServeError::System(format!("{context}: {cause}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("the server cannot start"))?;
    runtime.block_on(async {
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await;
        let listener = listening.map_err(|cause| ServeError::Port(options.port, cause))?;
        let port = listener.local_addr().map_err(system("the server has no address"))?.port();
        let guard = Guard::new(port, options.jobs.is_some(), BODY_BYTES_MAX).map_err(ServeError::System)?;
        let mut view = View::open(source)?;
        let first = Arc::new(Published::new(view.as_run().latest()));
        let (sender, snapshots) = watch::channel(first);
        let cut = match &view {
            View::Replay(run) => cut_of(run),
            View::Live(_) => None,
        };
        let view = Arc::new(Mutex::new(view));
        on_ready(&guard.addresses(), guard.view_addresses().as_ref(), cut.as_deref());
        if let RunSource::Live(directory, _) = source {
            write_address_file(directory, &guard.addresses()[0]);
        }
        let (jobs, readers) = (options.jobs.clone(), Readers::default());
        let is_modelled = |view: &mut dyn RunView| view.description().is_modelled();
        let is_of_host = matches!(source, RunSource::Live(..))
            && !is_modelled(view.lock().unwrap_or_else(PoisonError::into_inner).as_run());
        let host = is_of_host.then(|| Mutex::new(HostMeter::of_system()));
        let shared = Shared { guard, snapshots, readers, jobs, host, view: Arc::clone(&view) };
        tokio::spawn(accept(listener, Arc::new(shared)));
        poll_run(&view, &sender, options).await;
        Ok(())
    })
}

/// Returns the remark on a log that ends without the end of its run.
pub(crate) fn cut_of(run: &ReplayedRun) -> Option<String> {
    run.latest().reason.clone().filter(|_| run.recorded().end().is_none())
}

/// Polls the run until it has ended, or for ever if the server is kept.
async fn poll_run(view: &Mutex<View>, sender: &watch::Sender<Arc<Published>>, options: &ServeOptions) {
    // The end is detected soon, even with a long interval between snapshots.
    let mut interval = tokio::time::interval(options.poll_interval.min(POLL_INTERVAL_MAX));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut due = Instant::now();
    loop {
        let now = interval.tick().await.into_std();
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        let View::Live(run) = &mut *view else { break };
        let (published, is_over) = match run.refresh() {
            Ok(snapshot) => (Some(Published::new(snapshot)), run.is_over()),
            // The counters are no longer readable: the last values stay.
            Err(_) => (None, true),
        };
        if let Some(published) = published.filter(|_| is_over || now >= due) {
            due = now + options.poll_interval;
            sender.send_replace(Arc::new(published));
        }
        if is_over {
            break;
        }
    }
    match options.is_kept {
        true => std::future::pending().await,
        false => tokio::time::sleep(END_SHOWN).await,
    }
}

/// Writes the address to the run directory, readable by its user only, so that it can be found again.
fn write_address_file(directory: &Path, address: &str) {
    let path = directory.join("ui-address");
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    // The address was printed as well.
    let _ = file.and_then(|mut file| writeln!(file, "{address}"));
}
