//! Appending to the event log.
//!
//! Invariant: after each call the file is valid up to its end, except for a last frame that a full disk has cut.

use super::{FrameKind, MAGIC, codec, frame};
use crate::description::RunDescription;
use crate::sample::{OutputLine, RunEnd, Sample};
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Milliseconds between whole samples.
const KEY_MS: u64 = 60_000;

/// Milliseconds between frames with the lists of pairs and links.
const LISTS_MS: u64 = 10_000;

/// Length in bytes after which only one sample per [`SPARSE_MS`] is kept.
const FULL_BYTES: u64 = 64 << 20;

/// Length in bytes after which only the end of the run is kept.
const LAST_BYTES: u64 = 256 << 20;

/// Bytes of lines after which only the last ones are kept, written at the end.
const OUTPUT_BYTES: u64 = 16 << 20;

/// Milliseconds between samples of a long log.
const SPARSE_MS: u64 = 10_000;

/// Writes the event log of one run.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    before: Sample,
    /// Times at which the last whole sample, the last lists and the last sample were written, in milliseconds of the
    /// run.
    last_key: Option<u64>,
    last_lists: u64,
    last_sample: u64,
    bytes: u64,
    /// Number of these bytes that are printed lines.
    output_bytes: u64,
}

impl LogWriter {
    /// Creates a log at `path`, where no file exists yet, readable by its user only.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn create(path: &Path, description: &RunDescription) -> io::Result<LogWriter> {
        let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        let mut writer = LogWriter {
            file,
            before: Sample::default(),
            last_key: None,
            last_lists: 0,
            last_sample: 0,
            bytes: 0,
            output_bytes: 0,
        };
        writer.write(MAGIC)?;
        writer.write(&frame(FrameKind::Description, &description.encode()))?;
        Ok(writer)
    }

    /// Appends a sample; skips it if the log is too long.
    ///
    /// # Errors
    /// The system reports an error; the log should then be closed.
    pub fn append(&mut self, sample: &Sample) -> io::Result<()> {
        let since = |before: u64| sample.time_ms.saturating_sub(before);
        let is_over = sample.end != RunEnd::Running;
        let is_sparse = self.bytes > FULL_BYTES && since(self.last_sample) < SPARSE_MS;
        if (is_sparse || self.bytes > LAST_BYTES) && !is_over {
            return Ok(());
        }
        let is_key = self.last_key.is_none_or(|key| since(key) >= KEY_MS);
        let with_lists = is_key || is_over || since(self.last_lists) >= LISTS_MS;
        let (kind, before) = match is_key {
            true => (FrameKind::Key, &Sample::default()),
            false => (FrameKind::Difference, &self.before),
        };
        let content = codec::encode(before, sample, with_lists);
        self.write(&frame(kind, &content))?;
        if is_key {
            self.last_key = Some(sample.time_ms);
        }
        if with_lists {
            self.last_lists = sample.time_ms;
        }
        self.last_sample = sample.time_ms;
        self.before = sample.clone();
        Ok(())
    }

    /// Appends lines that `place` has printed. After 16 MiB of all places they are skipped, unless the run `is_over`:
    /// then they are the last ones, as kept in the file of counters.
    ///
    /// # Errors
    /// The system reports an error; the log should then be closed.
    pub fn append_output(&mut self, place: u32, lines: &[OutputLine], is_over: bool) -> io::Result<()> {
        if lines.is_empty() || (self.output_bytes > OUTPUT_BYTES && !is_over) {
            return Ok(());
        }
        let content = postcard::to_allocvec(&(place, lines)).unwrap_or_default();
        self.output_bytes += content.len() as u64;
        self.write(&frame(FrameKind::Output, &content))
    }

    /// Returns `true` once lines printed before the end of the run are left out.
    pub fn is_full_of_output(&self) -> bool {
        self.output_bytes > OUTPUT_BYTES
    }

    /// Appends the end of the run, with the reason if it failed.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn finish(mut self, end: RunEnd, reason: Option<&str>) -> io::Result<()> {
        let content = postcard::to_allocvec(&(end, reason)).unwrap_or_default();
        self.write(&frame(FrameKind::End, &content))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}
