//! Places as ranks of an MPI run, connected by shared memory within a host and by the MPI library between hosts.
//!
//! The launcher starts the same program everywhere. Only rank 0 interprets the command line; the other ranks wait for
//! its message that a run starts, or that it ends without one. `docs/design/hosts.md` has the rest. Invariant: only
//! rank 0 runs the program's `main` beyond the start.

mod clocks;
mod observed;
pub(super) mod recorded;
pub(super) mod startup;

use crate::launch::{EXIT_USAGE, Launch, LaunchError, Main};
use crate::machine::driver::{LaunchResult, MachineDriver};
use crate::machine::launcher::{Launcher, names_of_launchers};
use crate::machine::mpi::recorded::RecordedRun;
use crate::machine::mpi::startup::{ConnectedRank, StartupError};
use crate::observe::{Observation, observe_by};
use crate::output::WriteError;
use crate::print::notice;
use crate::settings::Environment;
use crate::test::TestBody;
use crate::trace::{Collector, attach};
use isles_runtime::{Clock, Local, run};
use isles_services::Collectives;
use isles_telemetry::RunDescription;
use isles_transport::composite::CompositeEndpoint;
use isles_transport::{Arrival, Body, Class, Endpoint, EndpointExt, HandlerId, Inbound, PlaceId, SendError};
use isles_transport_mpi::{Library, MpiEndpoint};
use isles_transport_shm::{SharedWords, ShmEndpoint};
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time limit for finalizing MPI; MPICH over TCP sometimes never returns (openucx/ucx 8738).
const END_LIMIT: Duration = Duration::from_secs(5);

/// Time after which ranks 0 and 1 report that they still wait for the others; rank 1 too, because rank 0 may be
/// missing.
const LATE: Duration = Duration::from_secs(30);

/// Time after which a rank that has not met the others exits.
///
/// A large start takes long, but a rank would wait forever for one that runs alone or runs another program.
const CONNECT_LIMIT: Duration = Duration::from_secs(300);

/// Time that a rank waits for the others at the end of a run.
const OTHERS_LIMIT: Duration = Duration::from_secs(10);

/// Message of rank 0 before a run: no run, or a run, with a bit for each record that is kept.
const NO_RUN: u8 = 0;
const RUN: u8 = 1;
const TRACED: u8 = 2;
const OBSERVED: u8 = 4;

/// The handler of messages before a run; the runtime does not use this number.
const START: HandlerId = HandlerId(u16::MAX);

type RankEndpoint = CompositeEndpoint<ShmEndpoint, MpiEndpoint>;

/// This process as a rank.
struct MpiRank {
    library: Rc<Library>,
    /// Taken when the run begins.
    connected: RefCell<Option<ConnectedRank>>,
}

thread_local! {
    /// Set in all ranks; never freed, so that it exists when the process exits.
    static RANKS: Cell<Option<&'static MpiRank>> = const { Cell::new(None) };
}

/// Driver of the machine `mpi`: runs a program on ranks.
pub(crate) struct Driver;

impl MachineDriver for Driver {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn places_max(&self) -> (u32, String) {
        (isles_runtime::limits::PLACES_MAX, String::new())
    }

    fn places(&self, _: &Environment) -> u32 {
        RANKS.get().map_or(1, |ranks| ranks.library.size())
    }

    fn is_traced(&self) -> bool {
        true
    }

    fn run(
        &self,
        launch: &Launch,
        collector: Option<Collector>,
        main: Main<'_>,
        _: &mut Vec<WriteError>,
    ) -> LaunchResult {
        run(launch, collector, main)
    }

    fn run_test(&self, _: &Launch, _: &'static str, _: TestBody<'_>) -> std::result::Result<(), String> {
        Err("a test starts its places itself, and ranks are started by a launcher".to_owned())
    }
}

/// Returns `true` if this process is the first of the ranks that a launcher has started.
pub(super) fn is_first_rank() -> bool {
    RANKS.get().is_some()
}

/// Returns the name and version of the library.
pub(super) fn library_version() -> String {
    Library::version()
}

/// Prepares a run in rank 0; in the other ranks, serves as a place and ends the process.
pub(super) fn serve_as_rank(launcher: &Launcher) {
    if RANKS.get().is_some() {
        return;
    }
    let ranks: &'static MpiRank = Box::leak(Box::new(match begin(launcher) {
        Ok(ranks) => ranks,
        Err(text) => {
            if launcher.is_first() {
                refuse(&text);
            }
            std::process::exit(EXIT_USAGE.into());
        }
    }));
    RANKS.set(Some(ranks));
    ranks.library.at_exit(exiting);
    if ranks.library.rank() > 0 {
        let start_flags = wait_for_start(ranks);
        if start_flags != NO_RUN
            && let Some(connected) = ranks.connected.take()
        {
            let words = (start_flags & OBSERVED != 0)
                .then(|| observed::join(&ranks.library, &connected.hosts))
                .flatten();
            let collector = (start_flags & TRACED != 0).then(Collector::within);
            run_place(&ranks.library, connected, collector, words, run::serve);
        }
        std::process::exit(0);
    }
}

fn refuse(text: &dyn Display) {
    notice(format_args!("error: machine mpi: {text}"));
}

fn begin(launcher: &Launcher) -> std::result::Result<MpiRank, String> {
    let _met = watch_meeting(launcher);
    let library = Rc::new(Library::begin().map_err(|error| error.to_string())?);
    if let Some(size) = launcher.ranks.filter(|size| *size != library.size()) {
        return Err(format!(
            "the launcher reports {size} ranks, the MPI library of this program {}: they are of \
             different libraries; this program was built for {}; allowed: the launcher of that library{}",
            library.size(),
            Library::version(),
            names_of_launchers()
        ));
    }
    let connected = startup::connect(&library).map_err(|error| {
        if let StartupError::Mismatch(text) = &error {
            if launcher.is_first() {
                refuse(text);
            }
            // A launcher ends all ranks when one fails, so all wait until rank 0 has printed the reason.
            library.gather_all(&[1]);
            library.end();
            std::process::exit(EXIT_USAGE.into());
        }
        library.end();
        error.to_string()
    })?;
    Ok(MpiRank { library, connected: RefCell::new(Some(connected)) })
}

/// Starts a watchdog that reports if the ranks are late to meet, and exits if they never do; dropping the returned
/// sender stops it.
///
/// The cause may be a broken link or a rank that does not take part; no MPI library reports either.
fn watch_meeting(launcher: &Launcher) -> mpsc::Sender<()> {
    let (waits, connected) = mpsc::channel();
    let rank = launcher.rank();
    let watch = move || {
        let is_late = |limit| connected.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        let causes = "a host, or a link to one, may be down, or a rank may run alone, with another \
             ISLES_MACHINE or another program";
        if is_late(LATE) {
            if rank < 2 {
                let seconds = LATE.as_secs();
                notice(format_args!(
                    "isles: the ranks have not met within {seconds} s; rank {rank} still waits: {causes}"
                ));
            }
            if is_late(CONNECT_LIMIT - LATE) {
                let seconds = CONNECT_LIMIT.as_secs();
                refuse(&format_args!("rank {rank} has not met the others within {seconds} s: {causes}"));
                std::process::exit(EXIT_USAGE.into());
            }
        }
    };
    // If the thread cannot be started, there is no watchdog.
    let _ = std::thread::Builder::new().name("isles-start".into()).spawn(watch);
    waits
}

/// Collectives that ignore host boundaries.
struct FlatCollectives;

impl Collectives for FlatCollectives {
    fn is_hierarchical(&self) -> bool {
        false
    }
}

/// Runs `body` at the place of this rank, traced for `collector` and counted in `words`, if given; a collective call.
pub(super) fn run_place<V>(
    library: &Library,
    ConnectedRank { endpoint, hosts, hierarchical_collectives }: ConnectedRank,
    collector: Option<Collector>,
    words: Option<SharedWords>,
    body: impl FnOnce(&Rc<Local>) -> V,
) -> V {
    let recorded = collector.map(|collector| RecordedRun::begin(library, &hosts, collector));
    let endpoint = attach(endpoint, recorded.as_ref().map(RecordedRun::collector));
    let local = Local::new(endpoint, Clock::host(), isles_services::services);
    if !hierarchical_collectives {
        isles_services::set_collectives(&local, Rc::new(FlatCollectives));
    }
    if let Some(words) = words {
        observe_by(&words, &local, 0);
    }
    let outcome = body(&local);
    // Dropping the endpoint waits for the other ranks, so that no message is in flight afterwards.
    drop(local);
    if let Some(recorded) = recorded {
        recorded.finish(library);
    }
    outcome
}

/// Waits for the message of rank 0 that says whether a run starts, and returns it.
fn wait_for_start(ranks: &MpiRank) -> u8 {
    let connected = ranks.connected.borrow();
    let Some(ConnectedRank { endpoint, .. }) = &*connected else { return NO_RUN };
    let mut start_flags = None;
    while start_flags.is_none() {
        endpoint.wait(None);
        endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) if message.handler == START => {
                start_flags = Some(if let Body::Inline([start_flags, ..]) = message.body {
                    *start_flags
                } else {
                    NO_RUN
                });
            }
            Arrival::Died { place: PlaceId(0), .. } => start_flags = Some(NO_RUN),
            _ => {}
        });
    }
    let start_flags = start_flags.unwrap_or(NO_RUN);
    if start_flags != NO_RUN {
        // Rank 0 sends nothing more before all ranks have answered, so no other message was consumed here.
        send_byte(endpoint, PlaceId(0), start_flags);
        if let Some(others) = endpoint.other_hosts() {
            others.flush_coalesced();
        }
    }
    start_flags
}

/// Sends one byte to a rank, before a run.
fn send_byte(endpoint: &RankEndpoint, to: PlaceId, byte: u8) {
    let send = || {
        endpoint.send(to, Class::Control, START, 1, &mut |room| {
            room[0] = byte;
            Some(1)
        })
    };
    while send() == Err(SendError::Full) {
        endpoint.progress(Inbound::Control, &mut |_| ());
    }
}

/// Sends `start_flags` to all other ranks; for a run, waits until all have answered.
fn send_start(endpoint: &RankEndpoint, start_flags: u8) {
    let others = endpoint.places() - 1;
    (1..=others).for_each(|to| send_byte(endpoint, PlaceId(to), start_flags));
    let mut answers = 0;
    while start_flags != NO_RUN && answers < others {
        endpoint.wait(None);
        endpoint.progress(Inbound::All, &mut |_| answers += 1);
    }
}

/// Runs `main` at rank 0, which is this one. Places record their activity for `collector`, if given.
fn run(launch: &Launch, collector: Option<Collector>, main: Main<'_>) -> LaunchResult {
    if let Some(communicator) = launch.communicator {
        return super::section::run(launch, communicator, collector.is_some(), main);
    }
    let unable = |text: String| LaunchError::Machine(format!("machine mpi: {text}"));
    let none = "the program was not started as a rank; start it as `mpirun -n 4 PROGRAM`";
    let ranks = RANKS.get().ok_or_else(|| unable(none.to_owned()))?;
    let size = ranks.library.size();
    if launch.places != size {
        return Err(unable(format!("{} places on {size} ranks; allowed: one place per rank", launch.places)));
    }
    let once = "only one run per process is possible: its ranks ended with the first run";
    let host_of = match &*ranks.connected.borrow() {
        Some(connected) => observed::host_of(&connected.hosts),
        None => return Err(unable(once.to_owned())),
    };
    // If this fails, the other ranks are still waiting for a run, and end without one.
    let observation = Observation::begin(launch, RunDescription { host_of, ..RunDescription::default() }, 0)?;
    let connected = ranks.connected.take().ok_or_else(|| unable(once.to_owned()))?;
    let traced = if collector.is_some() { TRACED } else { 0 };
    let observed = if observation.is_some() { OBSERVED } else { 0 };
    send_start(&connected.endpoint, RUN | traced | observed);
    let words = observation.as_ref().map(|observation| {
        observed::offer(&ranks.library, &connected.hosts, observation.words());
        observation.words().clone()
    });
    let body = |local: &Rc<Local>| run::run_first_place(local, main(), launch.stall);
    let outcome = run_place(&ranks.library, connected, collector, words, body);
    if let Some(observation) = observation {
        observation.finish(&outcome.0);
    }
    Ok(outcome)
}

/// Called when the process exits: releases ranks that wait for a run, and finalizes MPI.
extern "C" fn exiting(code: i32) {
    let Some(ranks) = RANKS.get() else { return };
    if let Ok(mut connected) = ranks.connected.try_borrow_mut()
        && let Some(connected) = connected.take()
    {
        if ranks.library.rank() == 0 {
            send_start(&connected.endpoint, NO_RUN);
        }
        drop(connected);
    }
    ranks.library.end_within(END_LIMIT, code);
}
