//! The counters of places, the file through which observers read them, and the event log.
//!
//! An observed run has a shared file of words, separate from its messages: each place copies its counters into its own
//! page ([`PlaceWriter`]), and an observer reads them ([`PagesReader`]). Observers get the file through a
//! [`RunDirectory`]; a [`LogWriter`] keeps samples for later. `isles-view` turns samples into views.
//! `docs/design/telemetry.md` explains why no reader can make a run wait.
//!
//! It knows no transport, task or HTTP; the caller provides the memory. Invariant: the names of the counters are one
//! table, [`COUNTERS`], whose hash is in each file.

#![forbid(unsafe_code)]

mod counter;
mod description;
mod directory;
mod host;
mod log;
mod page;
mod sample;
mod stages;

pub use counter::{COUNTERS, CounterGroup, CounterId, CounterInfo, CounterKind};
pub use description::{MeshDescription, RunDescription};
pub use directory::{DirectoryError, ObserverLink, ObserverSocket, RunDirectory, shown};
pub use host::{EnergyZone, HostClock, HostMeter, HostPart, HostReading};
pub use log::{LogError, LogReader, LogWriter, RecordedRun};
pub use page::{
    CounterTable, HeaderWriter, PageError, PageLayout, PagesReader, PlaceWriter, WAITS, WordMemory,
};
pub use sample::{
    CounterValues, DeathCause, EnergySample, LinkSample, Liveness, OpenFinish, OutputLine, OutputStream,
    PairCount, PlaceSample, ProgressSample, RunEnd, Sample,
};
pub use stages::StageSample;
