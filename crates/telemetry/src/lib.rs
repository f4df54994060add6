//! The counters of places, the file in which observers find them, and the log of them.
//!
//! A run that is observed has a file of words apart from its messages: each place copies its counters into a page of
//! its own ([`PlaceWriter`]), and whoever has the file reads them ([`PagesReader`]). A [`RunDirectory`] is how an
//! observer gets the file, a [`LogWriter`] keeps samples for later. What people look at `isles-view` makes of samples.
//! Why no reader can make a run wait is in `docs/design/telemetry.md`.
//!
//! It knows no transport, no task and no HTTP; memory is handed to it. Invariant: the names of the counters are one
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
