//! What people ask of a job server, and what it answers: one line of JSON each.

mod order;
mod refusal;

pub use order::{JobOrder, ORDERS, OrderInfo};
pub use refusal::{Refusal, RefusalClass, RefusalKind};

use crate::runner::Runnable;
use crate::store::JobSpec;
use serde::{Deserialize, Serialize};

/// Request to a job server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum JobRequest {
    /// All jobs.
    List,
    /// All cores, with the score that chooses one.
    Cores,
    /// A new job, which is not started.
    Create(JobSpec),
    /// A new job, which is started at a place or at the best one; if it cannot be, there is none.
    Begin {
        /// The job.
        spec: JobSpec,
        /// The place.
        at: Option<usize>,
    },
    /// A job is to do something.
    Tell {
        /// Its number.
        job: u64,
        /// Order to the job.
        #[serde(flatten)]
        order: JobOrder,
    },
    /// The last lines that a job has written.
    Output {
        /// Its number.
        job: u64,
        /// Number of lines.
        lines: usize,
    },
    /// Another divider of clocks, on a chip: of the supply of a place, of its tile alone, or of all.
    Clock {
        /// The divider.
        divider: u32,
        /// A place of the supply; all supplies without.
        at: Option<usize>,
        /// `true` to change only the tile of that place, at its present voltage.
        #[serde(default)]
        tile: bool,
    },
    /// Another voltage, on a chip: of the supply of a place, or of all. Clocks stay.
    Voltage {
        /// In volts; the next step that is not below.
        volts: f64,
        /// A place of the supply; all supplies without.
        at: Option<usize>,
    },
    /// Another governor of the clocks of a chip, or of one supply of it.
    Govern {
        /// Its name, as `--governor` takes it.
        policy: String,
        /// A place of the supply; the whole chip without.
        #[serde(default)]
        at: Option<usize>,
    },
    /// Ends the job server: jobs are written, commands are killed. May be asked again: the answer says what is waited
    /// for.
    End {
        /// `true` to kill everything that does not answer; it is lost.
        #[serde(default)]
        force: bool,
    },
    /// A reader of a page asks, who may ask for less.
    Page {
        /// The request.
        request: Box<JobRequest>,
    },
}

/// Reply of a job server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum JobReply {
    /// All jobs.
    Jobs {
        /// By number.
        jobs: Vec<JobView>,
        /// The kinds of jobs that there are.
        kinds: Vec<KindView>,
        /// `true` if a page may create jobs from commands.
        page_commands: bool,
    },
    /// All cores.
    Cores {
        /// The policy that chooses one.
        policy: String,
        /// Governor of the chip's clocks, on a chip.
        governor: Option<String>,
        /// By number.
        cores: Vec<CoreView>,
    },
    /// A job, after the request.
    Job {
        /// The job.
        job: Box<JobView>,
        /// Scores of all cores, if one was chosen: the reason for the job's place.
        scores: Vec<f64>,
    },
    /// The last lines of a job.
    Output {
        /// The lines.
        lines: Vec<String>,
        /// Bytes before them, which its file has.
        before: u64,
        /// The file.
        file: String,
    },
    /// The job server ends when its jobs are written.
    Ending {
        /// Reasons for waiting, if it takes more than a moment.
        waits: Vec<String>,
    },
    /// It is done.
    Done {
        /// Result, for people.
        text: String,
    },
    /// It is not done.
    Refused(Refusal),
}

/// A kind of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindView {
    /// Its name.
    pub name: String,
    /// Arguments of the kind, as help shows them.
    pub words: String,
}

/// A job as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Task or command that it runs.
    pub what: Runnable,
    /// The folder in which a command runs, if it is not that of the job server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Its state.
    pub state: String,
    /// Its place, or the last one.
    pub place: Option<usize>,
    /// Use of a processor in percent.
    pub processor: f64,
    /// Bytes that it holds.
    pub memory: u64,
    /// Computing time so far, in seconds.
    pub busy: f64,
    /// Its result, or why it is in its state.
    pub reason: String,
}

/// A core as people see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreView {
    /// Its place.
    pub place: usize,
    /// Use of its processor in percent, and of its memory.
    pub processor: f64,
    /// In percent.
    pub memory: f64,
    /// Use of its processor by anything that is not a job, in percent.
    pub other: f64,
    /// Jobs that are there.
    pub jobs: Vec<u64>,
    /// Divider of its clock, on a chip.
    pub divider: Option<u32>,
    /// The number of its supply, on a chip: cores with the same one change together.
    pub supply: Option<u32>,
    /// Its rate in megahertz, on a chip.
    pub megahertz: Option<f64>,
    /// Voltage of its supply, on a chip that states it.
    pub volts: Option<f64>,
    /// Governor of its supply's clocks, on a chip.
    pub governor: Option<String>,
    /// `true` if its place is dead.
    pub is_dead: bool,
    /// Its score by the policy; less is better.
    pub score: f64,
}
