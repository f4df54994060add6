//! The interface of a job: a state, and a step that is repeated.

use crate::runner::{criu, process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::sync::OnceLock;

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobProgress {
    /// More steps remain.
    More,
    /// The job has ended, with this result.
    Done(String),
}

/// A job that can be stopped between any two steps, and continue elsewhere from its state.
///
/// A step should take about a millisecond, because it blocks its place. On a modelled chip it declares its cost by
/// [`isles::work`].
pub trait Job: Sized + 'static {
    /// Name of this kind of jobs.
    const NAME: &'static str;
    /// Arguments of the kind, as help shows them.
    const WORDS: &'static str;

    /// Creates a job that has not begun.
    ///
    /// # Errors
    /// A line with the invalid word and the allowed ones.
    fn create(words: &[String]) -> Result<Self, String>;

    /// Executes a step; writes lines to `output`.
    ///
    /// # Errors
    /// A description of the failure; the job has failed.
    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String>;

    /// Returns the memory that the job holds, in bytes.
    fn memory(&self) -> u64 {
        size_of::<Self>() as u64
    }

    /// Returns its state as bytes; [`to_bytes`] suits most jobs.
    fn save(&self) -> Vec<u8>;

    /// Returns the job with the state `bytes`; [`from_bytes`] suits most jobs.
    ///
    /// # Errors
    /// `bytes` is not a state of such a job.
    fn restore(bytes: &[u8]) -> Result<Self, String>;
}

/// Encodes a value, for [`Job::save`].
///
/// # Panics
/// If its serializer fails, which derived ones never do.
pub fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("a derived form refuses no value")
}

/// Decodes a value encoded by [`to_bytes`], for [`Job::restore`].
///
/// # Errors
/// The bytes do not encode such a value.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    postcard::from_bytes(bytes).map_err(|fault| fault.to_string())
}

/// Pending output lines of a job.
#[derive(Debug, Default)]
pub struct JobOutput(VecDeque<String>);

impl JobOutput {
    /// Writes a line.
    pub fn line(&mut self, text: impl Into<String>) {
        self.0.push_back(text.into());
    }

    /// Takes the pending lines.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A job of any kind.
pub(crate) trait AnyJob {
    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String>;
    fn memory(&self) -> u64;
    fn save(&self) -> Vec<u8>;
}

impl<J: Job> AnyJob for J {
    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String> {
        Job::step(self, output)
    }

    fn memory(&self) -> u64 {
        Job::memory(self)
    }

    fn save(&self) -> Vec<u8> {
        Job::save(self)
    }
}

/// Creates a job from words, or from a state.
type Open = fn(&[String], Option<&[u8]>) -> Result<Box<dyn AnyJob>, String>;

/// A kind of jobs, by its name.
#[derive(Clone, Copy)]
pub struct JobKind {
    pub(crate) name: &'static str,
    pub(crate) words: &'static str,
    pub(crate) open: Open,
}

impl JobKind {
    /// Returns the kind of the jobs `J`.
    pub const fn of<J: Job>() -> JobKind {
        JobKind { name: J::NAME, words: J::WORDS, open: open::<J> }
    }

    /// Returns the name of this kind of jobs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the arguments of the kind, as help shows them.
    pub fn words(&self) -> &'static str {
        self.words
    }
}

fn open<J: Job>(words: &[String], state: Option<&[u8]>) -> Result<Box<dyn AnyJob>, String> {
    let job = match state {
        Some(bytes) => J::restore(bytes)?,
        None => J::create(words)?,
    };
    Ok(Box::new(job))
}

/// The kinds of this program: the same at all places, because each place runs its `main`.
static OFFERED: OnceLock<&'static [JobKind]> = OnceLock::new();

/// Declares the kinds of jobs that this program offers. Call it once, before [`isles::serve_if_joined`], so that all
/// places know them. A process that a place has started to become a command, or to wait for a restored one, does so
/// here, and does not return.
pub fn offer(kinds: &'static [JobKind]) {
    process::exec_if_requested();
    criu::wait_if_requested();
    OFFERED.get_or_init(|| kinds);
}

/// Returns the kinds of jobs that this program offers.
pub(crate) fn offered() -> &'static [JobKind] {
    OFFERED.get().copied().unwrap_or_default()
}

/// Returns the kind of that name.
///
/// # Errors
/// No such kind exists; the line names the existing ones.
pub(crate) fn kind(name: &str) -> Result<&'static JobKind, String> {
    offered().iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = offered().iter().map(|kind| kind.name).collect();
        format!("--task is {name:?}; allowed: {}", names.join(", "))
    })
}
