//! What a place costs in memory.
//!
//! Its own file because it reads the kernel's books, not a clock. It counts pages that are resident in
//! the process of one place, shared ones included, less those of the same program without places.
//! The invariant: the place that is looked at does nothing else.

use super::run;
use crate::child::say;
use crate::options::Effort;
use crate::output::Output;
use isles::prelude::*;
use isles::{Launch, SMALL_TASK_BYTES};
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

const FLOOD: u64 = 1_000_000;
const ARRAYS: u64 = 64;
const WORDS: usize = (2 << 20) / size_of::<u64>();
const LIMIT: Duration = Duration::from_secs(10);

/// Prints `idle_mib` and `loaded_mib` of a place that is not the first one, beyond the bare program, and the bound on
/// the latter that the product states.
pub fn measure(_effort: Effort) {
    run(move || async move {
        let there = here().next();
        let bare = bare_program();
        let idle = at!(there, resident_mib()).await?;
        say("idle_mib", idle - bare);
        flood(there).await?;
        let loaded = at!(there, resident_mib()).await?;
        say("loaded_mib", loaded - bare);
        let launch = Launch::from_environment()?;
        if let Some(bound) = launch.resident_bytes_max(SMALL_TASK_BYTES) {
            say("stated_bound_mib", bound as f64 / (1 << 20) as f64);
        }
        Ok(())
    });
}

/// The program without places. Prints `resident_mib`.
pub fn bare(_effort: Effort) {
    say("resident_mib", resident_mib());
}

fn bare_program() -> f64 {
    let program = std::env::current_exe().expect("the own program can be found");
    let mut command = Command::new(program);
    command.args(["child", "bare", "1", "1"]);
    let output = Output::of(&mut command, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    output.figures[0].1
}

async fn flood(there: Place) -> isles::Result<()> {
    finish(async {
        for number in 0..FLOOD {
            spawn_at!(there, {
                black_box(number);
            });
        }
    })
    .await?;
    let array = vec![1_u64; WORDS];
    finish(async {
        for _ in 0..ARRAYS {
            spawn_at!(there, {
                black_box(array.len());
            });
        }
    })
    .await
}

/// Resident pages of this process in MiB, as the kernel counts them page by page.
fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel tells");
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).expect("the kernel tells Rss");
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("Rss is a number");
    kib / 1024.0
}
