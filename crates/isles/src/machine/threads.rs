//! Places as threads of this process, over a segment of their own.

use crate::launch::{Launch, LaunchError, Main, pinned_places};
use crate::machine::STACK_BYTES;
use crate::machine::driver::{LaunchResult, MachineDriver};
use crate::observe::{Observation, observe_in};
use crate::output::WriteError;
use crate::settings::Environment;
use crate::trace::{Collector, attach};
use isles_runtime::{Clock, Local, run};
use isles_telemetry::RunDescription;
use isles_transport::PlaceId;
use isles_transport_shm::Segment;

/// Driver of the machine `threads`.
pub(crate) struct Driver;

impl MachineDriver for Driver {
    fn name(&self) -> &'static str {
        "threads"
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
        run(launch, collector, main)
    }
}

/// Runs `main` at the first place, on the calling thread.
///
/// Places record their activity for `collector`, if given.
fn run(launch: &Launch, collector: Option<Collector>, main: Main<'_>) -> LaunchResult {
    let unable = |error: &dyn std::fmt::Display| LaunchError::Machine(format!("machine threads: {error}"));
    // Threads share one program image, so the segment needs no identity.
    let segment = Segment::for_places(launch.places, [0; 16]).map_err(|error| unable(&error))?;
    segment.keep_processors(&launch.pinning.value);
    let observation = Observation::begin(launch, RunDescription::default(), 0)?;
    observation.iter().for_each(|observation| observation.offer(&segment));
    let mut threads = Vec::new();
    for place in (1..launch.places).map(PlaceId) {
        let (shared, collector) = (segment.clone(), collector.clone());
        let thread = std::thread::Builder::new().name(place.to_string()).stack_size(STACK_BYTES);
        let body = move || {
            shared.settle(place);
            match shared.endpoint(place) {
                Ok(endpoint) => {
                    let local =
                        Local::new(attach(endpoint, collector), Clock::host(), isles_services::services);
                    observe_in(&shared, &local);
                    run::serve(&local);
                }
                Err(_) => shared.mark_dead(place),
            }
        };
        match thread.spawn(body) {
            Ok(handle) => threads.push((place, handle)),
            Err(error) => {
                (0..launch.places).map(PlaceId).for_each(|place| segment.mark_dead(place));
                return Err(unable(&format_args!("{place} could not be started: {error}")));
            }
        }
    }
    segment.settle(PlaceId(0));
    let endpoint = segment.endpoint(PlaceId(0)).map_err(|error| unable(&error))?;
    let local = Local::new(attach(endpoint, collector), Clock::host(), isles_services::services);
    observe_in(&segment, &local);
    let outcome = run::run_first_place(&local, main(), launch.stall);
    drop(local);
    for (place, thread) in threads {
        // A place that never stops computing has no report; its thread is not joined.
        if outcome.1.places[place.index()].is_some() {
            let _ = thread.join();
        }
    }
    if let Some(observation) = observation {
        observation.finish(&outcome.0);
    }
    Ok(outcome)
}
