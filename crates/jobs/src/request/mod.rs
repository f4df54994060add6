//! Requests to a job server and its replies: one line of JSON each.

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
    /// Lists all jobs.
    List,
    /// Lists all cores, with the score that chooses one.
    Cores,
    /// Creates a job without starting it.
    Create(JobSpec),
    /// Creates a job and starts it at a place or at the best one; if that fails, no job is created.
    Begin {
        /// The job.
        spec: JobSpec,
        /// The place.
        at: Option<usize>,
    },
    /// Sends an order to a job.
    #[serde(rename = "tell")]
    Order {
        /// Its number.
        job: u64,
        /// The order.
        #[serde(flatten)]
        order: JobOrder,
    },
    /// Returns the last lines that a job has written.
    Output {
        /// Its number.
        job: u64,
        /// Number of lines.
        lines: usize,
    },
    /// Sets the clock divider on a chip: of the supply of a place, of its tile alone, or of all supplies.
    Clock {
        /// The divider.
        divider: u32,
        /// A place of the supply; all supplies if absent.
        at: Option<usize>,
        /// `true` to change only the tile of that place, at its present voltage.
        #[serde(default)]
        tile: bool,
    },
    /// Sets the voltage on a chip: of the supply of a place, or of all supplies. Clocks stay.
    Voltage {
        /// Volts, rounded up to the next step.
        volts: f64,
        /// A place of the supply; all supplies if absent.
        at: Option<usize>,
    },
    /// Sets the governor of the clocks of a chip, or of one of its supplies.
    Govern {
        /// The governor, as for `--governor`.
        policy: String,
        /// A place of the supply; the whole chip if absent.
        #[serde(default)]
        at: Option<usize>,
    },
    /// Ends the job server: jobs are checkpointed, commands are killed. Can be repeated: the reply has the reasons for
    /// waiting.
    End {
        /// `true` to kill everything that does not answer, and lose its state.
        #[serde(default)]
        force: bool,
    },
    /// A request from a page, which has fewer permissions.
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
        /// The existing kinds of jobs.
        kinds: Vec<KindView>,
        /// `true` if a page may create jobs from commands.
        page_commands: bool,
        /// `true` if CRIU can checkpoint and move commands.
        criu: bool,
    },
    /// All cores.
    Cores {
        /// Policy for the choice of a core.
        policy: String,
        /// Governor of the chip's clocks, on a chip.
        governor: Option<String>,
        /// By number.
        cores: Vec<CoreView>,
    },
    /// A job after the request.
    Job {
        /// The job.
        job: Box<JobView>,
        /// Scores of all cores, if the place was chosen by policy.
        scores: Vec<f64>,
    },
    /// The last lines of a job.
    Output {
        /// The lines.
        lines: Vec<String>,
        /// Bytes before them in the file.
        before: u64,
        /// The file.
        file: String,
    },
    /// The job server ends when its jobs are written.
    Ending {
        /// Reasons for waiting, if it takes more than a moment.
        waits: Vec<String>,
    },
    /// Success.
    Done {
        /// Text of the result.
        text: String,
    },
    /// Failure.
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

/// A job as shown to users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Task or command that it runs.
    #[serde(rename = "what")]
    pub runnable: Runnable,
    /// The folder in which a command runs, if it is not that of the job server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Its state.
    pub state: String,
    /// Its place, or the last one.
    pub place: Option<usize>,
    /// Use of a processor in percent.
    pub processor: f64,
    /// Memory in bytes.
    pub memory: u64,
    /// Computing time so far, in seconds.
    pub busy: f64,
    /// Its result, or the reason for its state.
    pub reason: String,
}

/// A core as shown to users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreView {
    /// Its place.
    pub place: usize,
    /// Use of its processor in percent.
    pub processor: f64,
    /// Use of its memory in percent.
    pub memory: f64,
    /// Use of its processor by anything that is not a job, in percent.
    pub other: f64,
    /// Jobs on the core.
    pub jobs: Vec<u64>,
    /// Divider of its clock, on a chip.
    pub divider: Option<u32>,
    /// Number of its supply, on a chip: cores with the same supply change together.
    pub supply: Option<u32>,
    /// Its clock rate in megahertz, on a chip.
    pub megahertz: Option<f64>,
    /// Voltage of its supply in volts, on a chip that defines it.
    pub volts: Option<f64>,
    /// Governor of its supply's clocks, on a chip.
    pub governor: Option<String>,
    /// `true` if its place is dead.
    pub is_dead: bool,
    /// Its score by the policy; lower is better.
    pub score: f64,
}
