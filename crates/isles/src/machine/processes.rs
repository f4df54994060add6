//! Places as processes of this host; the first one starts the others from the same program.

use crate::init;
use crate::launch::{Launch, LaunchError, Main, pinned_places};
use crate::machine::driver::{LaunchResult, MachineDriver, serve_if_rank, test_outcome};
use crate::machine::guests::{GUEST_VARIABLE, PlaceCode};
use crate::machine::supervisor::supervise_as_process_1;
use crate::machine::{STACK_BYTES, image};
use crate::observe::{Observation, observe_in};
use crate::output::WriteError;
use crate::print::notice;
use crate::settings::Environment;
use crate::test::{TestBody, same_test};
use crate::trace::{Collector, TRACE_VARIABLE, attach};
use isles_runtime::{Clock, Local, run};
use isles_telemetry::RunDescription;
use isles_transport::PlaceId;
use isles_transport_shm::processes::{JoinError, ProcessExit, Program};
use isles_transport_shm::{Segment, processes};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Time limits for the places to join, and to end once the run is over.
const JOIN_LIMIT: Duration = Duration::from_secs(30);
const END_LIMIT: Duration = Duration::from_secs(5);

/// Exit code of a process whose place panicked outside of any task, as Rust has it.
const EXIT_PANICKED: i32 = 101;

/// Exit code of a process that cannot join because `init` has closed the descriptors for joining.
///
/// The first process reports this once for all places.
const EXIT_DESCRIPTORS_CLOSED: i32 = 120;

/// Driver of the machines `processes` and `guests`.
pub(crate) struct Driver {
    code: PlaceCode,
}

/// Places that run in their processes.
pub(crate) const PROCESSES: Driver = Driver { code: PlaceCode::OfProcesses };

/// Places that run in guests.
pub(crate) const GUESTS: Driver = Driver { code: PlaceCode::OfGuests };

impl MachineDriver for Driver {
    fn name(&self) -> &'static str {
        match self.code {
            PlaceCode::OfProcesses => "processes",
            PlaceCode::OfGuests => "guests",
        }
    }

    fn places(&self, environment: &Environment) -> u32 {
        pinned_places(environment)
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
        run_program(launch, &Program::current(), collector, main, self.code)
    }

    fn run_test(
        &self,
        launch: &Launch,
        name: &'static str,
        body: TestBody<'_>,
    ) -> std::result::Result<(), String> {
        test_outcome(run_program(launch, &same_test(name), None, Box::new(body), self.code))
    }
}

/// Checks that the tasks of places can run as `code` says.
///
/// # Errors
/// The text of the error, if this host or this program does not support guests.
fn check_code(code: PlaceCode) -> std::result::Result<(), String> {
    #[cfg(feature = "guests")]
    return code.check();
    #[cfg(not(feature = "guests"))]
    match code {
        PlaceCode::OfProcesses => Ok(()),
        PlaceCode::OfGuests => Err(crate::machine::driver::lacks_feature("guests", "guests")),
    }
}

/// Runs `main` at the first place, in this process; the other places execute `program`.
///
/// Places record their activity for `collector`, if given.
fn run_program(
    launch: &Launch,
    program: &Program,
    collector: Option<Collector>,
    main: Main<'_>,
    code: PlaceCode,
) -> LaunchResult {
    let unable = |error: &dyn Display| LaunchError::Machine(format!("machine {}: {error}", launch.machine));
    if init::is_running() {
        return Err(unable(
            &"no run can be started in `init`, because each process of a run calls it; start it in `main`",
        ));
    }
    check_code(code).map_err(|error| unable(&error))?;
    let image = image::identity().map_err(|error| unable(&error))?;
    let segment = Segment::for_places(launch.places, image).map_err(|error| unable(&error))?;
    segment.keep_processors(&launch.pinning.value);
    let observation = Observation::begin(launch, RunDescription::default(), 0)?;
    observation.iter().for_each(|observation| observation.offer(&segment));
    let mut program = program.clone();
    let descriptor = collector.as_ref().map(Collector::descriptor).unwrap_or_default();
    program.environment.push((TRACE_VARIABLE.into(), descriptor.into()));
    program
        .environment
        .push((GUEST_VARIABLE.into(), if code == PlaceCode::OfGuests { "1" } else { "" }.into()));
    let mut space = code.prepare(PlaceId(0)).map_err(|error| unable(&error))?;
    let children = processes::spawn(&segment, &program, (1..launch.places).map(PlaceId));
    let children = children.map_err(|error| unable(&error))?;
    let joined = children.wait_until_joined(JOIN_LIMIT);
    joined.map_err(|error| unable(&join_failure(&error, init::exists())))?;
    segment.settle(PlaceId(0));
    let endpoint = segment.endpoint(PlaceId(0)).map_err(|error| unable(&error))?;
    let local = Local::new(attach(endpoint, collector), Clock::host(), isles_services::services);
    observe_in(&segment, &local);
    let outcome = space.run(|| run::run_first_place(&local, main(), launch.stall));
    drop(local);
    children.finish(END_LIMIT);
    if let Some(observation) = observation {
        observation.finish(&outcome.0);
    }
    Ok(outcome)
}

/// Returns `true` if the parent process runs the same program.
fn was_started_by_its_program() -> bool {
    let program_of = |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).ok();
    let parent = std::os::unix::process::parent_id().to_string();
    program_of("self")
        .zip(program_of(&parent))
        .is_some_and(|(ours, parent)| (ours.dev(), ours.ino()) == (parent.dev(), parent.ino()))
}

/// Returns the reason why a place has not joined. Before joining, a process runs no code of the program except `init`.
fn join_failure(error: &processes::LaunchError, has_init: bool) -> String {
    match error {
        processes::LaunchError::Late(place) if has_init => {
            format!("{place} did not join within {} s: its `init` still runs", JOIN_LIMIT.as_secs())
        }
        processes::LaunchError::EndedEarly { place, exit: ProcessExit::Code(EXIT_DESCRIPTORS_CLOSED) }
            if has_init =>
        {
            format!("{place} could not join: its `init` closed descriptors that it had not opened")
        }
        error => error.to_string(),
    }
}

/// Serves as a place and ends the process, if a first process or an MPI launcher has started it as one. As process 1 of
/// a container, acts as [`supervise_as_process_1`]. Otherwise, and while `init` runs, does nothing.
///
/// `#[isles::main]` calls this. A program with its own `main` calls it first, so that the processes of its places do
/// not read arguments and files again. [`Launch::run`] does it for places only.
pub fn serve_if_joined() {
    supervise_as_process_1();
    serve_if_place();
}

/// As [`serve_if_joined`], but does not restart the program as process 1; for calls after the start.
pub(crate) fn serve_if_place() {
    serve_if_rank();
    if init::is_running() || std::env::var_os(processes::JOIN_VARIABLE).is_none() {
        return;
    }
    let joined = match image::identity() {
        Ok(image) => processes::join(image),
        Err(error) => fail(&error),
    };
    let (segment, place) = match joined {
        Some(Ok(joined)) => joined,
        Some(Err(JoinError::BadVariable { .. })) if init::exists() && was_started_by_its_program() => {
            std::process::exit(EXIT_DESCRIPTORS_CLOSED)
        }
        Some(Err(error)) => fail(&error),
        None => return,
    };
    // On a thread of its own, because panic messages call the first thread `main`.
    let thread = std::thread::Builder::new().name(place.to_string()).stack_size(STACK_BYTES);
    match thread.spawn(move || serve(&segment, place)).map(|thread| thread.join()) {
        Ok(Ok(())) => std::process::exit(0),
        // The panic has been printed.
        Ok(Err(_)) => std::process::exit(EXIT_PANICKED),
        Err(error) => fail(&error),
    }
}

/// Returns `true` if places of a run can be started from the file.
///
/// It is either a compiled program that contains the name of the variable for joining a run, or not a compiled program,
/// such as a script that may start one.
///
/// # Errors
/// The file cannot be read.
pub fn is_isles_program(file: &Path) -> io::Result<bool> {
    const ELF: &[u8] = b"\x7fELF";
    let mark = processes::JOIN_VARIABLE.as_bytes();
    let mut file = File::open(file)?;
    let mut piece = vec![0; 1 << 20];
    let mut kept = 0;
    let mut is_first = true;
    loop {
        let read = file.read(&mut piece[kept..])?;
        if std::mem::take(&mut is_first) && !piece[..read].starts_with(ELF) {
            return Ok(true);
        }
        let end = kept + read;
        if read == 0 || piece[..end].windows(mark.len()).any(|window| window == mark) {
            return Ok(read > 0);
        }
        // These bytes may be the start of the name.
        kept = end.min(mark.len() - 1);
        piece.copy_within(end - kept..end, 0);
    }
}

/// Serves as `place` until the run is over.
fn serve(segment: &Segment, place: PlaceId) {
    let mut space = match PlaceCode::of_this_process().prepare(place) {
        Ok(space) => space,
        Err(error) => fail(&error),
    };
    segment.settle(place);
    match segment.endpoint(place) {
        Ok(endpoint) => {
            let local =
                Local::new(attach(endpoint, Collector::inherited()), Clock::host(), isles_services::services);
            observe_in(segment, &local);
            space.run(|| run::serve(&local));
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &dyn Display) -> ! {
    let hint = if init::exists() { "; `init` must not touch descriptors that it has not opened" } else { "" };
    notice(format_args!("error: this process cannot join as a place: {error}{hint}"));
    std::process::exit(2);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "guests"))]
    #[test]
    fn guests_are_refused_in_one_line_that_names_the_feature() {
        let launch = Launch::from_environment().unwrap().machine(crate::Machine::Guests).places(2);
        let error = launch.run(async || Ok::<(), isles_runtime::Error>(())).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("machine guests: isles-") && text.contains(" was built without guests; "),
            "{text}"
        );
        assert!(text.ends_with("build it with: cargo build --release --features guests"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }

    #[test]
    fn a_late_place_is_told_to_be_in_its_init_if_there_is_one() {
        let late = processes::LaunchError::Late(PlaceId(2));
        assert_eq!(join_failure(&late, false), "place 2 did not join in time");
        assert_eq!(join_failure(&late, true), "place 2 did not join within 30 s: its `init` still runs");
    }
}
