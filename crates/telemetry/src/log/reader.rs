//! Reading the event log, as far as it goes.
//!
//! A log may be cut anywhere and have any bit flipped. [`LogReader`] finds the valid frames, [`RecordedRun`] decodes
//! their samples. Invariant: every returned sample was written; missing frames only make them fewer.

use super::{FRAME_HEADER, FrameKind, MAGIC, MARK, codec, decode_frame};
use crate::description::RunDescription;
use crate::sample::{OutputLine, RunEnd, Sample};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::io::Read;
use std::path::Path;

/// Maximum length of a log that is read, in bytes; no written log is longer.
const LOG_BYTES_MAX: u64 = 512 << 20;

/// Error of opening a log.
#[derive(Debug)]
pub enum LogError {
    /// A system call failed.
    Unreadable(io::Error),
    /// The file is not an event log; the text names the fault.
    NotALog(&'static str),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Unreadable(cause) => write!(f, "it cannot be read: {cause}"),
            LogError::NotALog(why) => write!(f, "it is not an event log of Isles: {why}"),
        }
    }
}

impl std::error::Error for LogError {}

/// The frames of a log, one after the other.
struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of times that invalid bytes were skipped.
    gaps: u64,
    /// `true` if something is missing since the last whole sample.
    is_behind_gap: bool,
}

impl<'a> Frames<'a> {
    /// Returns the next valid frame and its offset.
    fn next(&mut self) -> Option<(usize, FrameKind, &'a [u8])> {
        while self.at < self.bytes.len() {
            let at = self.at;
            if let Some((kind, content)) = decode_frame(&self.bytes[at..]) {
                self.at += FRAME_HEADER + content.len();
                // A difference to a missing frame cannot be decoded.
                if kind == FrameKind::Difference && self.is_behind_gap {
                    continue;
                }
                self.is_behind_gap &= kind != FrameKind::Key;
                return Some((at, kind, content));
            }
            if !std::mem::replace(&mut self.is_behind_gap, true) {
                self.gaps += 1;
            }
            let next = self.bytes[at + 1..].windows(MARK.len()).position(|bytes| bytes == MARK);
            self.at = next.map_or(self.bytes.len(), |next| at + 1 + next);
        }
        None
    }
}

/// Reads a log.
pub struct LogReader;

impl LogReader {
    /// Reads the log at `path` as far as it goes.
    ///
    /// # Errors
    /// The file is no log, or even the description of its run is damaged.
    pub fn open(path: &Path) -> Result<RecordedRun, LogError> {
        let file = std::fs::File::open(path).map_err(LogError::Unreadable)?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).map_err(LogError::Unreadable)?;
        LogReader::read(bytes)
    }

    /// Reads a log that is in memory.
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub fn read(bytes: Vec<u8>) -> Result<RecordedRun, LogError> {
        if !bytes.starts_with(MAGIC) {
            return Err(LogError::NotALog("its first bytes are different"));
        }
        let mut frames = Frames { bytes: &bytes, at: MAGIC.len(), gaps: 0, is_behind_gap: false };
        let description = match frames.next() {
            Some((_, FrameKind::Description, content)) => RunDescription::decode(content),
            _ => None,
        };
        let description = description.filter(|description| description.places <= crate::page::PLACES_MAX);
        let description = description.ok_or(LogError::NotALog("the description of its run is incomplete"))?;
        let (mut samples, mut end, mut output) = (Vec::new(), None, BTreeMap::new());
        let mut before = Sample::default();
        let mut unsound = 0;
        while let Some((at, kind, content)) = frames.next() {
            match kind {
                FrameKind::Description => {}
                FrameKind::Output => keep_output(&mut output, content, description.places),
                FrameKind::End => end = postcard::from_bytes::<(RunEnd, Option<String>)>(content).ok(),
                FrameKind::Key | FrameKind::Difference => {
                    let base = if kind == FrameKind::Key { &Sample::default() } else { &before };
                    match codec::decode(base, description.places, content) {
                        Some(sample) => {
                            let is_key = kind == FrameKind::Key;
                            samples.push(FramePosition { at, time_ms: sample.time_ms, is_key });
                            before = sample;
                        }
                        None => {
                            unsound += 1;
                            frames.is_behind_gap = true;
                        }
                    }
                }
            }
        }
        let gaps = frames.gaps + unsound;
        Ok(RecordedRun { bytes, description, samples, end, gaps, output })
    }
}

/// Keeps the lines of a frame, except those already present and those of unknown places.
fn keep_output(output: &mut BTreeMap<u32, Vec<OutputLine>>, content: &[u8], places: u32) {
    let Ok((place, lines)) = postcard::from_bytes::<(u32, Vec<OutputLine>)>(content) else { return };
    if place < places {
        let kept = output.entry(place).or_default();
        for line in lines {
            if kept.last().is_none_or(|last: &OutputLine| last.seq < line.seq) {
                kept.push(line);
            }
        }
    }
}

/// Position of a sample.
#[derive(Clone, Copy, Debug)]
struct FramePosition {
    at: usize,
    time_ms: u64,
    is_key: bool,
}

/// A run as recorded in its log.
#[derive(Debug)]
pub struct RecordedRun {
    bytes: Vec<u8>,
    description: RunDescription,
    samples: Vec<FramePosition>,
    end: Option<(RunEnd, Option<String>)>,
    gaps: u64,
    output: BTreeMap<u32, Vec<OutputLine>>,
}

impl RecordedRun {
    /// Returns the description of the run.
    pub fn description(&self) -> &RunDescription {
        &self.description
    }

    /// Returns the end of the run, and the reason if it failed; `None` if the log ends before.
    pub fn end(&self) -> Option<(RunEnd, Option<&str>)> {
        self.end.as_ref().map(|(end, reason)| (*end, reason.as_deref()))
    }

    /// Returns the length of the log, in milliseconds of the run.
    pub fn length_ms(&self) -> u64 {
        self.samples.iter().map(|sample| sample.time_ms).max().unwrap_or(0)
    }

    /// Returns the number of times that invalid bytes were skipped.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Returns the lines that `place` has printed and that were kept, by their numbers.
    pub fn output(&self, place: u32) -> &[OutputLine] {
        self.output.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns `true` if there is no sample.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the index of the last sample at or before `time_ms`, or else of the first; `None` without samples.
    pub fn index_at(&self, time_ms: u64) -> Option<usize> {
        let after = self.samples.partition_point(|sample| sample.time_ms <= time_ms);
        (!self.samples.is_empty()).then(|| after.saturating_sub(1))
    }

    /// Returns the samples `from..to`, by index.
    pub fn samples(&self, from: usize, to: usize) -> Vec<Sample> {
        let mut found = Vec::new();
        self.visit(from, to, |sample| found.push(sample.clone()));
        found
    }

    /// Calls `visit` with the samples `from..to`, by index, in order.
    pub fn visit(&self, from: usize, to: usize, mut visit: impl FnMut(&Sample)) {
        let to = to.min(self.samples.len());
        let from = from.min(to);
        let key = self.samples[..(from + 1).min(to)].iter().rposition(|sample| sample.is_key).unwrap_or(0);
        let mut before = Sample::default();
        for (index, position) in self.samples.iter().enumerate().take(to).skip(key) {
            let base = if position.is_key { &Sample::default() } else { &before };
            let content =
                decode_frame(&self.bytes[position.at..]).map(|(_, content)| content).unwrap_or_default();
            // Every frame was decoded when the log was read.
            let Some(sample) = codec::decode(base, self.description.places, content) else { return };
            if index >= from {
                visit(&sample);
            }
            before = sample;
        }
    }
}
