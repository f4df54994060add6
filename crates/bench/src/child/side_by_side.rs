//! Two runs of one place each at the same time, and one alone.
//!
//! Its own file because it starts whole runs. It does not place them: whether two runs get in each other's way is the
//! question. The invariant: both runs do the same work, and each is timed by itself, without its start.

use super::batch::median;
use super::say;
use crate::machine::cores;
use crate::options::Effort;
use crate::output::Output;
use std::process::Command;
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const RUNS: usize = 3;

/// Prints `alone_s` and `together_s`, the slower one of the two.
pub fn run(_effort: Effort) {
    assert!(cores() >= 2, "one core cannot carry two runs side by side");
    let alone = (0..RUNS).map(|_| betweenness());
    say("alone_s", median(alone.collect()));
    let together = (0..RUNS).map(|_| {
        thread::scope(|scope| {
            let other = scope.spawn(betweenness);
            betweenness().max(other.join().expect("the run does not panic"))
        })
    });
    say("together_s", median(together.collect()));
}

/// The seconds of the main job at one place, in a process of its own.
fn betweenness() -> f64 {
    let program = std::env::current_exe().expect("the own program can be found");
    let mut command = Command::new(program);
    command.args(["child", "isles-betweenness-power", "1", "1"]);
    command.env("ISLES_MACHINE", "processes").env("ISLES_PLACES", "1");
    let output = Output::of(&mut command, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let seconds = output.figures.iter().find(|(name, _)| name == "seconds");
    seconds.expect("the run says its seconds").1
}
