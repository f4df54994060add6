//! The jobs of a run: the list of the job server, and the last lines of one job.
//!
//! Each request to the socket of the job server is a line of JSON. Invariants: it only reads and controls no job; if
//! the server does not answer, the previous list stays, with the reason.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for an answer, so that keys get a response; longer in tests, which have no keys.
const ANSWER_WAIT: Duration = if cfg!(test) { Duration::from_secs(60) } else { Duration::from_millis(300) };

/// Longest answer in bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Requested lines of output.
const OUTPUT_LINES: u64 = 100;

/// Source of the jobs: the socket of their server.
#[derive(Clone, Debug)]
pub struct JobSource {
    socket: PathBuf,
}

/// A job as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownJob {
    pub id: u64,
    pub name: String,
    pub state: String,
    pub place: Option<u64>,
    /// In percent of a CPU, bytes, seconds.
    pub processor: f64,
    pub memory: f64,
    pub busy: f64,
    pub reason: String,
}

/// Last answer of the job server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownJobs {
    pub jobs: Vec<ShownJob>,
    /// The last lines of the job that was chosen.
    pub output: Vec<String>,
    /// Reason why the last request failed.
    pub trouble: Option<String>,
}

impl JobSource {
    /// The job server that keeps its jobs in `directory`.
    pub fn of(directory: &Path) -> JobSource {
        JobSource { socket: directory.join("socket") }
    }

    /// Requests all jobs, and the output of job `chosen`.
    pub fn refresh(&self, shown: &mut ShownJobs, chosen: Option<u64>) {
        shown.trouble = self.ask_all(shown, chosen).err();
    }

    fn ask_all(&self, shown: &mut ShownJobs, chosen: Option<u64>) -> Result<(), String> {
        let list = self.ask(&json!({ "ask": "list" }))?;
        shown.jobs = list["jobs"].as_array().into_iter().flatten().map(ShownJob::of).collect();
        shown.output.clear();
        if let Some(job) = chosen.filter(|chosen| shown.jobs.iter().any(|job| job.id == *chosen)) {
            let output = self.ask(&json!({ "ask": "output", "job": job, "lines": OUTPUT_LINES }))?;
            let lines = output["lines"].as_array().into_iter().flatten();
            shown.output = lines.filter_map(|line| line.as_str().map(str::to_owned)).collect();
        }
        Ok(())
    }

    fn ask(&self, request: &Value) -> Result<Value, String> {
        let failed = |cause: io::Error| format!("{}: {cause}", self.socket.display());
        let mut stream = UnixStream::connect(&self.socket).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_WAIT)).map_err(failed)?;
        stream.write_all(format!("{request}\n").as_bytes()).map_err(failed)?;
        let mut line = Vec::new();
        BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut line).map_err(failed)?;
        let answer: Value = serde_json::from_slice(&line).map_err(|cause| failed(cause.into()))?;
        match answer["answer"].as_str() {
            Some("refused") => Err(answer["reason"].as_str().unwrap_or("it refuses").to_owned()),
            _ => Ok(answer),
        }
    }
}

impl ShownJob {
    fn of(job: &Value) -> ShownJob {
        let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| job[name].as_f64().unwrap_or_default();
        ShownJob {
            id: job["id"].as_u64().unwrap_or_default(),
            name: text("name"),
            state: text("state"),
            place: job["place"].as_u64(),
            processor: number("processor"),
            memory: number("memory"),
            busy: number("busy"),
            reason: text("reason"),
        }
    }
}
