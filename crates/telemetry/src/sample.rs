//! The counts of a run at one moment, as read from its pages or from its log.
//!
//! Plain values, the same for a live run and a replay. Invariant: `places` of a sample has one entry for each place of
//! its run.

use crate::counter::{COUNTERS, CounterId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Activity of a place, as last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Liveness {
    /// Has not reported yet.
    #[default]
    Silent,
    /// Waits for messages.
    Idle,
    /// Runs tasks.
    Busy,
    /// Has left the run.
    Ended,
}

impl Liveness {
    /// Returns the word of a page.
    pub(crate) fn encode(self) -> u64 {
        match self {
            Liveness::Silent => 0,
            Liveness::Idle => 1,
            Liveness::Busy => 2,
            Liveness::Ended => 3,
        }
    }

    /// Decodes a word of a page; `Silent` if its value is unknown.
    pub(crate) fn decode(word: u64) -> Liveness {
        let all = [Liveness::Silent, Liveness::Idle, Liveness::Busy, Liveness::Ended];
        all.into_iter().find(|liveness| liveness.encode() == word).unwrap_or_default()
    }
}

/// Cause of a place's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathCause {
    /// The cause is unknown.
    Unseen,
    /// Its process ended with this code.
    Exited(i32),
    /// Its process was ended by this signal.
    Killed(i32),
    /// It sent a malformed message.
    Corrupt,
}

impl DeathCause {
    /// Returns the word of the table of deaths; never 0.
    pub(crate) fn encode(self) -> u64 {
        let (kind, number) = match self {
            DeathCause::Unseen => (1, 0),
            DeathCause::Exited(code) => (2, code),
            DeathCause::Killed(signal) => (3, signal),
            DeathCause::Corrupt => (4, 0),
        };
        kind << 32 | u64::from(number as u32)
    }

    /// Decodes a word of the table of deaths; `None` for a place that lives.
    pub(crate) fn decode(word: u64) -> Option<DeathCause> {
        let number = word as u32 as i32;
        match word >> 32 {
            0 => None,
            2 => Some(DeathCause::Exited(number)),
            3 => Some(DeathCause::Killed(number)),
            4 => Some(DeathCause::Corrupt),
            _ => Some(DeathCause::Unseen),
        }
    }
}

impl fmt::Display for DeathCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeathCause::Unseen => f.write_str("it is gone for an unknown reason"),
            DeathCause::Exited(code) => write!(f, "its process ended with code {code}"),
            DeathCause::Killed(signal) => write!(f, "its process was ended by signal {signal}"),
            DeathCause::Corrupt => f.write_str("it broke the format of messages"),
        }
    }
}

/// Values of the counters of a place.
pub type CounterValues = [u64; COUNTERS.len()];

/// One place at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceSample {
    /// Reported activity.
    pub liveness: Liveness,
    /// Time of that report, in nanoseconds of its own clock since it started.
    pub at_ns: u64,
    /// Number of times it has copied its counters; if it stays the same while the place is busy, the place has not
    /// yielded.
    pub copies: u64,
    /// Its process.
    pub process: u32,
    /// Cause of its death, if it is dead.
    pub death: Option<DeathCause>,
    /// Its counters, in the order of [`COUNTERS`].
    pub values: CounterValues,
}

impl Default for PlaceSample {
    fn default() -> Self {
        let (liveness, values) = (Liveness::default(), [0; COUNTERS.len()]);
        PlaceSample { liveness, at_ns: 0, copies: 0, process: 0, death: None, values }
    }
}

impl PlaceSample {
    /// Returns the value of a counter.
    pub fn value(&self, counter: CounterId) -> u64 {
        self.values[counter.index()]
    }
}

/// A finish that is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFinish {
    /// Its number, at its home.
    pub id: u64,
    /// Number of the place that opened it.
    pub home: u32,
    /// The number of the finish around it at the same place, if that is known.
    pub parent: Option<u64>,
    /// Time at which its place first reported it, in milliseconds by the clock of the place.
    pub since_ms: u64,
    /// Its tasks at its home.
    pub live: u64,
    /// Places that it waits for, with the number of tasks there; the first few.
    pub waits_for: Vec<(u32, u32)>,
    /// The source line that opened it.
    pub label: String,
}

/// Traffic from one place to another since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCount {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// The load of one link of a chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSample {
    /// The tile where it begins.
    pub from: u32,
    /// The tile where it ends.
    pub to: u32,
    /// Picoseconds of modelled time for which it was busy, since the start.
    pub busy_ps: u64,
}

/// Energy of a whole modelled chip since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnergySample {
    /// Nanojoules, including those of the cores.
    pub nanojoules: u64,
    /// The modelled time up to which this energy and those of the cores are known, in nanoseconds.
    pub until_ns: u64,
}

/// End of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// No end is known.
    #[default]
    Running,
    /// Its main task succeeded.
    Ended,
    /// Its main task failed.
    Failed,
}

impl RunEnd {
    /// Returns the word of the header.
    pub(crate) fn encode(self) -> u64 {
        match self {
            RunEnd::Running => 0,
            RunEnd::Ended => 1,
            RunEnd::Failed => 2,
        }
    }

    /// Decodes a word of the header.
    pub(crate) fn decode(word: u64) -> RunEnd {
        let all = [RunEnd::Running, RunEnd::Ended, RunEnd::Failed];
        all.into_iter().find(|end| end.encode() == word).unwrap_or_default()
    }
}

/// Stream that a place prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputStream {
    /// Standard output.
    #[serde(rename = "stdout")]
    Standard,
    /// Standard error.
    #[serde(rename = "stderr")]
    Error,
    /// Not printed: a result, which the program prints after its run.
    #[serde(rename = "result")]
    Result,
    /// Not printed: a report about stages of a pipeline, for views of the run.
    #[serde(rename = "stages")]
    Stages,
}

/// A line that a place has printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLine {
    /// Number of the line at its place, from 1.
    pub seq: u64,
    /// Time at which it was printed, in milliseconds since the run began.
    pub time_ms: u64,
    /// Stream it was printed to.
    pub stream: OutputStream,
    /// Its text as printed; a viewer must escape control characters.
    pub text: String,
}

/// Progress of a program by its own account, in its current phase if it names phases.
///
/// Empty for a program without steps and phases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressSample {
    /// Steps that all places have done.
    pub done: u64,
    /// Total steps, as far as known.
    pub total: u64,
    /// `true` if the total will grow, or has grown since the first step was done.
    pub grows: bool,
    /// Name of the steps, in the plural.
    pub unit: String,
    /// The current phase; empty if the program names none.
    pub phase: String,
}

/// A run at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the run began.
    pub time_ms: u64,
    /// Nanoseconds of modelled time, on a chip.
    pub model_ns: u64,
    /// Energy of the chip.
    pub energy: EnergySample,
    /// State of the run: running, ended or failed.
    pub end: RunEnd,
    /// Progress by the program's own account.
    pub progress: ProgressSample,
    /// Number of groups that could not be read as of one moment; their values are older.
    pub missed: u64,
    /// Each place.
    pub places: Vec<PlaceSample>,
    /// Open finishes, the first few of each place.
    pub finishes: Vec<OpenFinish>,
    /// Pairs of places that have sent to each other, by sender and receiver.
    pub pairs: Vec<PairCount>,
    /// Links of the chip.
    pub links: Vec<LinkSample>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_states_and_deaths_are_read_as_they_were_written() {
        for liveness in [Liveness::Silent, Liveness::Idle, Liveness::Busy, Liveness::Ended] {
            assert_eq!(Liveness::decode(liveness.encode()), liveness);
        }
        for end in [RunEnd::Running, RunEnd::Ended, RunEnd::Failed] {
            assert_eq!(RunEnd::decode(end.encode()), end);
        }
        let causes = [DeathCause::Unseen, DeathCause::Exited(-3), DeathCause::Killed(9), DeathCause::Corrupt];
        for cause in causes {
            assert_eq!(DeathCause::decode(cause.encode()), Some(cause));
        }
        assert_eq!(DeathCause::decode(0), None);
        assert_eq!(Liveness::decode(77), Liveness::Silent);
    }
}
