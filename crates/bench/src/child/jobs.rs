//! Jobs: the cost of being stoppable between steps, and the time of checkpoints by size.
//!
//! A job server over two threads gets requests through its socket, as from users. Invariants: the plain loop does the
//! same steps with nothing between them; a checkpoint has ended when its file is complete, a restart when the job
//! runs.

use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure};
use isles::{Launch, Machine, Random};
use isles_jobs::{
    Job, JobKind, JobOrder, JobOutput, JobProgress, JobReply, JobRequest, JobServerOptions, JobSpec, Policy,
    Runnable, Store, ask, offer, serve, socket_path,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Numbers per step, and per run: a quarter of a millisecond, and two seconds.
const STEP: u64 = 200_000;
const NUMBERS: u64 = 2_000_000_000;

/// Sizes of checkpoints in MB.
const SIZES: [u64; 4] = [1, 16, 64, 256];

/// Polling interval of a job whose change of state is timed.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Polling interval of a job that times itself: longer, because polling takes host time that a plain loop does not
/// lose.
const SLOW_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The kinds of jobs here.
const KINDS: &[JobKind] = &[JobKind::of::<TimedSum>(), JobKind::of::<HeldBlock>()];

/// Sum of random numbers, which reports the time from its first step to its last.
struct TimedSum {
    done: u64,
    sum: f64,
    begun: Option<Instant>,
}

impl TimedSum {
    fn new() -> TimedSum {
        TimedSum { done: 0, sum: 0.0, begun: None }
    }
}

impl Job for TimedSum {
    const NAME: &'static str = "sum";
    const WORDS: &'static str = "";

    fn create(_: &[String]) -> Result<TimedSum, String> {
        Ok(TimedSum::new())
    }

    fn step(&mut self, _: &mut JobOutput) -> Result<JobProgress, String> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let mut random = Random::stream(1, self.done);
        self.sum += (0..STEP).map(|_| random.unit()).sum::<f64>();
        self.done += STEP;
        // The sum is printed so that it is computed.
        let result = || format!("{} {}", begun.elapsed().as_secs_f64(), self.sum);
        Ok(if self.done >= NUMBERS { JobProgress::Done(result()) } else { JobProgress::More })
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(_: &[u8]) -> Result<TimedSum, String> {
        Err("it is not moved here".to_owned())
    }
}

/// A block of memory that is only held.
struct HeldBlock(Vec<u8>);

impl Job for HeldBlock {
    const NAME: &'static str = "block";
    const WORDS: &'static str = "MEGABYTES";

    fn create(words: &[String]) -> Result<HeldBlock, String> {
        let megabytes: usize = words.first().and_then(|word| word.parse().ok()).unwrap_or(1);
        let mut bytes = vec![0; megabytes << 20];
        Random::new(1).fill(&mut bytes);
        Ok(HeldBlock(bytes))
    }

    fn step(&mut self, _: &mut JobOutput) -> Result<JobProgress, String> {
        sleep(Duration::from_millis(1));
        Ok(JobProgress::More)
    }

    fn memory(&self) -> u64 {
        self.0.len() as u64
    }

    fn save(&self) -> Vec<u8> {
        self.0.clone()
    }

    fn restore(bytes: &[u8]) -> Result<HeldBlock, String> {
        Ok(HeldBlock(bytes.to_vec()))
    }
}

/// Prints `plain_s` and `job_s`.
pub fn cost(effort: Effort) {
    with_server(&std::env::temp_dir(), |folder| {
        let (mut plain, mut jobs) = (Vec::new(), Vec::new());
        for _ in 0..effort.repetitions {
            plain.push(plain_seconds());
            let id = begin(folder, "sum", Vec::new());
            let reason = until(folder, id, "finished", SLOW_POLL_INTERVAL);
            jobs.push(
                reason.split(' ').next().and_then(|seconds| seconds.parse().ok()).expect("it says its time"),
            );
        }
        print_figure("plain_s", median(plain));
        print_figure("job_s", median(jobs));
    });
}

fn plain_seconds() -> f64 {
    let (mut job, mut output) = (TimedSum::new(), JobOutput::default());
    loop {
        if let Ok(JobProgress::Done(result)) = job.step(&mut output) {
            let seconds = result.split(' ').next().and_then(|seconds| seconds.parse().ok());
            return seconds.expect("it says its time");
        }
    }
}

/// Prints `save_N_s` and `load_N_s` for N megabytes, in a folder of the cache, which is on a disk.
pub fn on_disk(effort: Effort) {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    by_size(effort, &home.map_or_else(std::env::temp_dir, |home| home.join(".cache/isles/bench")));
}

/// Prints the same for a memory file system.
pub fn in_memory(effort: Effort) {
    by_size(effort, Path::new("/dev/shm"));
}

fn by_size(effort: Effort, parent: &Path) {
    with_server(parent, |folder| {
        for size in SIZES {
            let id = begin(folder, "block", vec![size.to_string()]);
            until(folder, id, "running", POLL_INTERVAL);
            let (mut saves, mut loads) = (Vec::new(), Vec::new());
            for _ in 0..effort.repetitions {
                saves.push(timed(folder, id, JobOrder::Checkpoint, "checkpointed"));
                loads.push(timed(folder, id, JobOrder::Start { at: Some(1) }, "running"));
            }
            print_figure(&format!("save_{size}_s"), median(saves));
            print_figure(&format!("load_{size}_s"), median(loads));
            send_order(folder, id, JobOrder::Kill);
            until(folder, id, "stopped", POLL_INTERVAL);
            send_order(folder, id, JobOrder::Remove);
        }
    });
}

fn timed(folder: &Path, id: u64, order: JobOrder, state: &str) -> f64 {
    let begun = Instant::now();
    send_order(folder, id, order);
    until(folder, id, state, POLL_INTERVAL);
    begun.elapsed().as_secs_f64()
}

/// Runs `body` with the directory of a job server over two threads.
fn with_server(parent: &Path, body: impl FnOnce(&Path)) {
    let folder = parent.join(format!("isles-bench-jobs-{}", std::process::id()));
    let store = Store::open(&folder, "isles-bench").unwrap_or_else(|error| panic!("{error}"));
    offer(KINDS);
    let launch = Launch::from_environment().unwrap_or_else(|error| panic!("{error}"));
    let launch = launch.machine(Machine::Threads).places(2);
    let options = JobServerOptions {
        store,
        policy: Policy::Manyman,
        demonstration: None,
        is_modelled: false,
        page_commands: false,
    };
    let server = std::thread::spawn(move || serve(launch, options, Arc::new(AtomicBool::new(false))));
    while !socket_path(&folder).exists() {
        sleep(POLL_INTERVAL);
    }
    body(&folder);
    asked(&folder, &JobRequest::End { force: false });
    server.join().expect("it ends well").unwrap_or_else(|error| panic!("{error}"));
    let _ = std::fs::remove_dir_all(&folder); // what stays is small
}

fn asked(folder: &Path, request: &JobRequest) -> JobReply {
    ask(folder, request).unwrap_or_else(|error| panic!("{error}"))
}

fn begin(folder: &Path, kind: &str, words: Vec<String>) -> u64 {
    let spec = JobSpec::new(kind, Runnable::Task(kind.to_owned(), words));
    match asked(folder, &JobRequest::Begin { spec, at: Some(1) }) {
        JobReply::Job { job, .. } => job.id,
        other => panic!("{other:?}"),
    }
}

fn send_order(folder: &Path, job: u64, order: JobOrder) {
    let reply = asked(folder, &JobRequest::Order { job, order });
    assert!(!matches!(reply, JobReply::Refused { .. }), "{reply:?}");
}

/// Polls job `id`, with pauses of `apart`, until it is in `state`; returns its result, if it has one.
fn until(folder: &Path, id: u64, state: &str, apart: Duration) -> String {
    loop {
        let JobReply::Jobs { jobs, .. } = asked(folder, &JobRequest::List) else { panic!("no list") };
        let job = jobs.into_iter().find(|job| job.id == id).expect("it is there");
        if job.state == state {
            return job.reason;
        }
        assert_ne!(job.state, "failed", "{}", job.reason);
        sleep(apart);
    }
}
