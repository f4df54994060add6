//! The trace of a run on processors of the host: recorded by each place, and written by the first at the end.
//!
//! `record` has the records of a place, `endpoint` makes them, `collect` brings them to the first place, and `write`
//! makes the file, with the encoder that traces of modelled chips use as well. Machines only wrap the endpoint of each
//! place with [`attach`]. The design is in `docs/design/traces.md`.
//!
//! Invariants: a run without a trace uses none of this; a file gets its name only when it is complete.

mod collect;
mod endpoint;
mod record;
mod write;

pub(crate) use collect::{Collector, TRACE_VARIABLE};
#[cfg(feature = "mpi")]
pub(crate) use record::now;

use crate::launch::{Launch, LaunchError};
use crate::machine::Machine;
use crate::output::{AtomicFile, Destination, Export, WriteError};
use crate::print::notice;
use isles_transport::{Endpoint, PlaceId};
use record::Part;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Returns the endpoint of a place, recorded if there is a collector.
pub(crate) fn attach<E: Endpoint + 'static>(endpoint: E, collector: Option<Collector>) -> Box<dyn Endpoint> {
    match collector {
        Some(collector) => Box::new(endpoint::RecordedEndpoint::new(endpoint, collector)),
        None => Box::new(endpoint),
    }
}

/// A requested trace of a run.
pub(crate) struct TraceRequest {
    destination: Destination,
    file: File,
    draft: AtomicFile,
    collector: Collector,
    places: u32,
    run: String,
}

impl TraceRequest {
    /// Creates the file for the trace of `launch`, if it requests one and its machine records traces.
    ///
    /// # Errors
    /// The file or the memory for the records cannot be created.
    pub(crate) fn of(launch: &Launch) -> Result<Option<TraceRequest>, LaunchError> {
        let wanted = launch.exports.iter().find(|wanted| wanted.export == Export::Trace);
        let Some(wanted) = wanted.filter(|_| launch.machine.driver().is_traced()) else { return Ok(None) };
        let destination = wanted.destination();
        let (file, draft) = destination
            .draft()
            .map_err(|cause| LaunchError::Machine(destination.unwritten(cause).to_string()))?;
        let places = launch.places;
        let collector = match launch.machine {
            Machine::Processes | Machine::Guests => Collector::shared(),
            _ => Ok(Collector::within()),
        };
        let collector = collector.map_err(|cause| {
            LaunchError::Machine(format!("machine {}: no memory for the trace: {cause}", launch.machine))
        })?;
        let clocks = if launch.machine == Machine::Mpi { "a clock for each host" } else { "one clock" };
        let run = format!("{}, {places} places, {clocks}", launch.machine);
        Ok(Some(TraceRequest { destination, file, draft, collector, places, run }))
    }

    /// Returns the collector for the records of the places.
    pub(crate) fn collector(&self) -> Collector {
        self.collector.clone()
    }

    /// Writes the trace after all places have left, and reports on standard error what it lacks.
    ///
    /// # Errors
    /// [`WriteError`]; an earlier file then keeps its content.
    pub(crate) fn write(self) -> Result<(), WriteError> {
        let parts: Vec<Option<Part>> =
            (0..self.places).map(|place| self.collector.part(PlaceId(place))).collect();
        let mut out = BufWriter::new(self.file);
        let written = write::write(&mut out, &self.run, &parts).and_then(|()| out.flush());
        written.and_then(|()| self.draft.finish()).map_err(|cause| self.destination.unwritten(cause))?;
        for (place, part) in (0..).map(PlaceId).zip(&parts) {
            let line = match part {
                None => format!("{place} is missing: it did not reach the end of the run"),
                Some(part) if part.dropped > 0 => {
                    format!("{place} kept {} events and dropped {}", part.records.len(), part.dropped)
                }
                Some(_) => continue,
            };
            notice(format_args!("isles: in the trace, {line}"));
        }
        Ok(())
    }
}
