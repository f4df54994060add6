//! Runs that are observed: the memory for their counters, the run directory, and the thread that serves both.
//!
//! `ISLES_RECORD` turns it on. The thread belongs to the first process: it hands the counters to observers, sends the
//! heartbeat, and writes the event log. Invariants: observation never makes a place wait; a failure after the start is
//! reported in one line and does not fail the run.

use crate::launch::{Launch, LaunchError};
use crate::machine::Machine;
use crate::print::notice;
use crate::settings::{ConfigError, Setting};
use isles_runtime::{Local, Result};
use isles_telemetry::{
    DirectoryError, HeaderWriter, LogWriter, ObserverSocket, PageLayout, PagesReader, PlaceWriter,
    RunDescription, RunDirectory, RunEnd, Sample, WordMemory,
};
use isles_transport_shm::{Segment, SharedWords};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two samples of the log.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Time between samples until [`DENSE_UNTIL`], because many runs are short.
const SAMPLE_EVERY_FIRST: Duration = Duration::from_millis(100);
const DENSE_UNTIL: Duration = Duration::from_secs(3);

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(250);

/// Requirement on a run directory, for error texts.
const ALLOWED: &str = "a directory that is empty or does not exist yet";

/// The counters of a run as shared memory.
struct CounterMemory(SharedWords);

impl WordMemory for CounterMemory {
    fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

fn memory(words: &SharedWords) -> Arc<dyn WordMemory> {
    Arc::new(CounterMemory(words.clone()))
}

/// Checks that a run on `machine` can be recorded in the directory of `record`, if there is one.
///
/// # Errors
/// The directory is unusable, or runs on this machine cannot be observed.
pub(crate) fn check(
    record: Option<&Setting<PathBuf>>,
    machine: Machine,
) -> std::result::Result<(), ConfigError> {
    let Some(Setting { value, source }) = record else { return Ok(()) };
    let refused = |allowed: String| Err(ConfigError::new(source, &value.to_string_lossy(), allowed));
    match machine {
        Machine::Loopback => {
            return refused(format!("nothing with machine {machine} (its runs cannot be observed)"));
        }
        Machine::Threads | Machine::Processes | Machine::Guests | Machine::Mpi | Machine::Chip(_) => {}
    }
    match RunDirectory::check(value) {
        Ok(()) => Ok(()),
        Err(DirectoryError::NotEmpty(_)) => refused(format!("{ALLOWED}; this one is not empty")),
        Err(error) => refused(format!("{ALLOWED} ({error})")),
    }
}

/// The observation of a run, at its first process.
pub(crate) struct Observation {
    words: SharedWords,
    head: HeaderWriter,
    /// Pipe that tells the thread to end.
    ending: PipeWriter,
    thread: JoinHandle<Option<LogWriter>>,
}

impl Observation {
    /// Starts observing the run, if requested. `known` has the parts of the description that only the machine knows;
    /// `links` is the number of links of a modelled chip, else 0.
    ///
    /// # Errors
    /// The directory cannot be created, or the system refuses memory or a thread.
    pub(crate) fn begin(
        launch: &Launch,
        known: RunDescription,
        links: u32,
    ) -> std::result::Result<Option<Observation>, LaunchError> {
        let Some(Setting { value: path, source }) = &launch.record else { return Ok(None) };
        check(launch.record.as_ref(), launch.machine)?;
        let unable = |cause: &dyn std::fmt::Display| {
            ConfigError::new(source, &path.to_string_lossy(), format!("{ALLOWED} ({cause})"))
        };
        let (started, now) = (Instant::now(), SystemTime::now());
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_unix_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let description = RunDescription {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: launch.machine.name().to_owned(),
            started_unix_ms,
            places: launch.places,
            process: std::process::id(),
            ..known
        };
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let description = description.with_command(words);
        let layout = PageLayout::new(launch.places, links);
        let words = SharedWords::create(layout.words()).map_err(|error| unable(&error))?;
        let head = HeaderWriter::begin(memory(&words), layout, started_unix_ms);
        let directory = RunDirectory::create(path).map_err(|error| unable(&error))?;
        let file = words.for_reading().map_err(|error| unable(&error))?;
        let own = file.try_clone().map_err(|error| unable(&error))?;
        let reader = PagesReader::open(own).map_err(|error| unable(&error))?;
        let log = directory.begin_log(&description).map_err(|error| unable(&error))?;
        let socket = directory.listen(file, &description).map_err(|error| unable(&error))?;
        let (end, ending) = std::io::pipe().map_err(|error| unable(&error))?;
        let watch = Watch {
            socket,
            reader,
            log: Some(log),
            head: head.clone(),
            started,
            printed: vec![0; launch.places as usize],
        };
        let thread = std::thread::Builder::new().name("observe".to_owned());
        let thread = thread.spawn(move || watch.run(&end)).map_err(|error| unable(&error))?;
        Ok(Some(Observation { words, head, ending, thread }))
    }

    /// Makes the places of a segment count in the memory that observers read.
    pub(crate) fn offer(&self, segment: &Segment) {
        segment.set_counters(self.words.clone());
    }

    /// Ends the observation of a run with this result.
    pub(crate) fn finish(mut self, result: &Result<()>) {
        let end = if result.is_ok() { RunEnd::Ended } else { RunEnd::Failed };
        self.head.end(end);
        let reason = result.as_ref().err().map(ToString::to_string);
        let ended = self.ending.write_all(b".").map_err(|cause| cause.to_string());
        let log = ended.and_then(|()| self.thread.join().map_err(|_| "its thread has panicked".to_owned()));
        let written = log.and_then(|log| {
            let Some(log) = log else { return Ok(()) };
            log.finish(end, reason.as_deref()).map_err(|cause| cause.to_string())
        });
        if let Err(cause) = written {
            notice_log_end(&cause);
        }
    }
}

/// Methods used by a modelled chip only.
#[cfg(feature = "chip")]
impl Observation {
    /// Returns the writer of the header, for data of the whole run.
    pub(crate) fn head(&self) -> &HeaderWriter {
        &self.head
    }

    /// Makes a place of this process count in the memory that observers read; `links` is the number of links of the
    /// chip.
    pub(crate) fn observe(&self, local: &Local, links: u32) {
        observe_by(&self.words, local, links);
    }
}

/// Methods used by ranks of MPI only.
#[cfg(feature = "mpi")]
impl Observation {
    /// Returns the memory of the counters, which other ranks of this host join.
    pub(crate) fn words(&self) -> &SharedWords {
        &self.words
    }
}

/// Makes a place count in the memory that observers read, if the run of its segment is observed.
pub(crate) fn observe_in(segment: &Segment, local: &Local) {
    if let Some(words) = segment.counters() {
        observe_by(words, local, 0);
    }
}

/// Makes the place of `local` write its counters into `words`; `links` is the number of links of the run's chip, or 0.
pub(crate) fn observe_by(words: &SharedWords, local: &Local, links: u32) {
    let layout = PageLayout::new(local.places(), links);
    local.observe(PlaceWriter::new(memory(words), layout, local.here().0));
}

fn notice_log_end(cause: &dyn std::fmt::Display) {
    notice(format_args!("isles: the event log of the run ends early: {cause}"));
}

/// State of the thread that serves observers.
struct Watch {
    socket: ObserverSocket,
    reader: PagesReader,
    log: Option<LogWriter>,
    head: HeaderWriter,
    started: Instant,
    /// Sequence number of the last printed line that was logged, for each place.
    printed: Vec<u64>,
}

impl Watch {
    /// Serves until `end` is written to; returns the log unless writing it has failed.
    fn run(mut self, end: &PipeReader) -> Option<LogWriter> {
        let mut due = Duration::ZERO;
        loop {
            let wait = due.saturating_sub(self.started.elapsed()).min(HEARTBEAT);
            let is_over = self.socket.serve(end.as_fd(), wait);
            let now = self.started.elapsed();
            self.head.heartbeat(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
            if now >= due || is_over {
                due = now + if now < DENSE_UNTIL { SAMPLE_EVERY_FIRST } else { SAMPLE_EVERY };
                self.sample(is_over);
            }
            if is_over {
                return self.log;
            }
        }
    }

    fn sample(&mut self, is_over: bool) {
        if let Some(log) = &mut self.log
            && let Err(cause) = Watch::keep(log, &mut self.reader, &mut self.printed, is_over)
        {
            notice_log_end(&cause);
            self.log = None;
        }
    }

    /// Appends a sample and the lines that places have printed since the last one; `printed` has the number of the last
    /// logged line of each place.
    fn keep(
        log: &mut LogWriter,
        reader: &mut PagesReader,
        printed: &mut [u64],
        is_over: bool,
    ) -> std::result::Result<(), String> {
        let sample: Sample = reader.read().map_err(|error| error.to_string())?;
        log.append(&sample).map_err(|cause| cause.to_string())?;
        if log.is_full_of_output() && !is_over {
            return Ok(());
        }
        for (printed, place) in printed.iter_mut().zip(0..) {
            let lines = reader.output(place, *printed).map_err(|error| error.to_string())?;
            *printed = lines.last().map_or(*printed, |line| line.seq);
            log.append_output(place, &lines, is_over).map_err(|cause| cause.to_string())?;
        }
        Ok(())
    }
}

/// Reads the setting.
pub(crate) fn read(source: &str, value: &str) -> std::result::Result<Setting<PathBuf>, ConfigError> {
    Ok(Setting::new(source, Path::new(value).to_owned()))
}
