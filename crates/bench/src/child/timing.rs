//! Measuring in a timed process: repeated steps, the median of batches, cores, and the lines that it prints.
//!
//! It knows no child and no target. Invariant: side 0 and side 1 never share a core if the process may use two.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Work of a timed program for one figure: a number of batches of a minimum length; the median counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Least length of one batch.
    pub batch: Duration,
    /// Batches for each figure, odd.
    pub repetitions: usize,
}

impl Effort {
    /// Reads back the words that [`crate::program`] passes to a child: milliseconds and repetitions.
    ///
    /// # Errors
    /// One line that names the word.
    pub fn read(batch: &str, repetitions: &str) -> Result<Effort, String> {
        let number = |word: &str| match word.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{word:?}: a whole number from 1 up is wanted")),
        };
        Ok(Effort {
            batch: Duration::from_millis(u64::from(number(batch)?)),
            repetitions: number(repetitions)? as usize,
        })
    }
}

/// Prints one figure.
pub fn print_figure(name: &str, value: f64) {
    println!("measured {name} {value}");
}

/// Prints the version of a library from the lock file that this binary was built with.
pub fn print_version(library: &str) {
    let lock = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"{library}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split('"').next());
    println!("version {library} {}", version.unwrap_or("of unknown version"));
}

/// Returns the median of the seconds per step. `step(count)` does `count` steps and returns when the last one has
/// ended.
pub fn seconds_per_step(effort: Effort, mut step: impl FnMut(u64)) -> f64 {
    let mut time = |count| {
        let start = Instant::now();
        step(count);
        start.elapsed()
    };
    let count = calibrate(effort.batch, &mut time);
    median((0..effort.repetitions).map(|_| time(count).as_secs_f64() / count as f64).collect())
}

/// Returns the median of the seconds per step of fixed size, excluding the first one.
pub fn seconds_of_whole(effort: Effort, mut step: impl FnMut()) -> f64 {
    step();
    let time = |_| {
        let start = Instant::now();
        step();
        start.elapsed().as_secs_f64()
    };
    median((0..effort.repetitions).map(time).collect())
}

/// Returns the middle one of an odd number of values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn calibrate(batch: Duration, time: &mut impl FnMut(u64) -> Duration) -> u64 {
    let mut count = 1;
    while time(count) < batch {
        count *= 2;
    }
    count
}

/// Cores that the process could use at the first query; pinning a thread narrows them for its children.
static CORES: OnceLock<Vec<usize>> = OnceLock::new();

/// Looks up the cores. Must be called by the first thread, before any is pinned or started.
pub fn prepare() {
    CORES.get_or_init(|| {
        let allowed = sched_getaffinity(None).expect("the own affinity can be read");
        (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
    });
}

/// Pins the calling thread to core number `side` of those that the process may use, wrapping around.
pub fn pin(side: usize) {
    let cores = CORES.get().expect("`prepare` was called first");
    let mut one = CpuSet::new();
    one.set(cores[side % cores.len()]);
    sched_setaffinity(None, &one).expect("a core that the process may use can be chosen");
}
