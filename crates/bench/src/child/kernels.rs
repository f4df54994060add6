//! The kernels of IMSuite, each in separate runs of the application's program, so that its bytes are known.
//!
//! Invariant: the application verifies each answer, and both ways of shipping have the same networks and draws.

use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure};
use crate::output::{BYTES, Output, SECONDS};
use crate::program::available::built;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The kernels, in the order of the suite.
const KERNELS: [&str; 12] = ["BF", "DST", "BY", "DR", "DS", "KC", "DP", "HS", "LCR", "MIS", "MST", "VC"];

/// Time limit of a run.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the kernels with minimal captures. Prints `mean_ms`, and `KERNEL_ms` and `KERNEL_kb` of each kernel.
pub fn minimal(effort: Effort) {
    all(effort, "minimal");
}

/// Runs the kernels with captures of everything reachable. Prints the same.
pub fn reachable(effort: Effort) {
    all(effort, "reachable");
}

fn all(effort: Effort, ship: &str) {
    let program = built("isles-imsuite").unwrap_or_else(|missing| panic!("{}", missing.why));
    let mut logarithms = Vec::new();
    for kernel in KERNELS {
        let (mut seconds, mut bytes) = (Vec::new(), 0.0);
        // A run longer than a batch varies less, and costs more.
        while seconds.len() < effort.repetitions
            && seconds.iter().all(|time| *time < effort.batch.as_secs_f64())
        {
            let (time, moved) =
                measured(&program, kernel, ship).unwrap_or_else(|why| panic!("{kernel}: {why}"));
            seconds.push(time);
            bytes = moved;
        }
        let seconds = median(seconds);
        logarithms.push(seconds.ln());
        print_figure(&format!("{kernel}_ms"), seconds * 1e3);
        print_figure(&format!("{kernel}_kb"), bytes / 1e3);
    }
    print_figure("mean_ms", (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp() * 1e3);
}

/// Returns the seconds of a run, and the bytes that it moved.
fn measured(program: &Path, kernel: &str, ship: &str) -> Result<(f64, f64), String> {
    let network = match kernel {
        "HS" | "LCR" => "128,ring",
        "VC" => "128,chain",
        _ => "128,sparse-min",
    };
    let mut command = Command::new(program);
    command.args(["--kernel", kernel, "--generate", network, "--ship", ship]);
    command.args(["--json", "-", "--csv", "/dev/null"]);
    let output = Output::of(&mut command, LIMIT)?;
    Ok((output.figure(SECONDS)?, output.figure(BYTES)?))
}
