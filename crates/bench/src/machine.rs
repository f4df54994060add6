//! Machine and time of the measurements.
//!
//! It measures nothing. Invariant: unknown properties are `None` or "unknown", never guessed.

use serde::{Deserialize, Serialize};
use std::process::Command;

/// The machine, the moment and the version of the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor as the kernel names it.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Runnable tasks over the last minute, before the first measurement; more than a little makes the
    /// figures doubtful.
    pub load_average: Option<f64>,
    /// Time of the first measurement, ISO 8601, UTC; for joined sessions, the first and the last one.
    pub date: String,
    /// Commit of the checkout in which this binary was built, with `-dirty` if changed since.
    pub commit: Option<String>,
}

/// Load average above which other programs are likely to affect the figures.
pub const LOAD_DOUBTFUL: f64 = 0.3;

impl Machine {
    /// Reads the properties of this machine.
    pub fn here() -> Machine {
        Machine {
            cpu: cpu().unwrap_or_else(|| "unknown".to_owned()),
            cores: cores(),
            kernel: file("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
            load_average: file("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            date: first_line(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))
                .unwrap_or_else(|| "unknown".to_owned()),
            commit: commit(),
        }
    }
}

/// Returns the number of cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn cpu() -> Option<String> {
    let text = file("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn commit() -> Option<String> {
    first_line(Command::new("git").args([
        "-C",
        env!("CARGO_MANIFEST_DIR"),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]))
}

fn file(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Returns the output of a command, if it succeeds and prints something.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
