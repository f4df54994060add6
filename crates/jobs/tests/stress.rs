//! Clients that send commands in quick succession, while places are killed: no job stays on its way, and the job server
//! ends each time.
//!
//! `ISLES_TEST_RUNS` says how many runs there are, each with 2,400 commands; without it there are a few short ones.

use isles::Random;
use isles_jobs::{JobOrder, JobReply, JobRequest, JobSpec, JobView, Runnable, ask};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CLIENTS: u64 = 3;
const JOBS: u64 = 6;
const PLACES: usize = 3;

/// What takes longer never happens.
const NEVER: Duration = Duration::from_secs(120);

struct JobServer {
    process: Child,
    folder: PathBuf,
    /// What it says after it listens.
    said: Option<JoinHandle<String>>,
}

impl Drop for JobServer {
    fn drop(&mut self) {
        let _ = self.process.kill(); // it may have ended
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn serve(run: u64) -> JobServer {
    let folder = std::env::temp_dir().join(format!("isles-stress-{run}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it need not be there
    let program = std::env::var_os("ISLES_TEST_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_isles-jobs").into());
    let mut command = Command::new(program);
    command.arg("serve").arg("--state").arg(&folder).args(["--machine", "processes", "--places"]);
    command.arg(PLACES.to_string()).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("jobs are managed in") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "the job server has ended: {said}");
    }
    let said = std::thread::spawn(move || {
        let _ = lines.read_to_string(&mut said); // what there is
        said
    });
    JobServer { process, folder, said: Some(said) }
}

/// The processes whose parent is that.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |number: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    numbers.filter(is_child).collect()
}

fn list(folder: &Path) -> Vec<JobView> {
    match ask(folder, &JobRequest::List) {
        Ok(JobReply::Jobs { jobs, .. }) => jobs,
        other => panic!("{other:?}"),
    }
}

/// One client: random verbs for random jobs; `done` counts those of all clients.
fn hammer(folder: &Path, random: &mut Random, commands: u64, done: &AtomicU64) {
    for _ in 0..commands {
        let job = 1 + random.below(JOBS);
        let place = random.below(PLACES as u64 + 1) as usize;
        let place = (place < PLACES).then_some(place);
        let order = match random.below(5) {
            0 => JobOrder::Checkpoint,
            1 => JobOrder::Start { at: place },
            2 => JobOrder::Move { to: place },
            3 => JobOrder::Pause,
            _ => JobOrder::Resume,
        };
        let reply = ask(folder, &JobRequest::Tell { job, order });
        assert!(matches!(reply, Ok(JobReply::Job { .. } | JobReply::Refused(_))), "{reply:?}");
        done.fetch_add(1, Ordering::Relaxed); // a count, for no other memory
    }
}

/// Polls until `holds`, at most as long as something counts as possible.
fn holds_at_last(mut holds: impl FnMut() -> bool) -> bool {
    let limit = Instant::now() + NEVER;
    while Instant::now() < limit {
        if holds() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn run(run: u64, commands: u64, is_killing: bool) {
    let mut random = Random::new(run);
    let mut server = serve(run);
    let folder = server.folder.clone();
    for _ in 0..JOBS {
        let what = Runnable::Task("pi".to_owned(), vec!["1000000000000".to_owned()]);
        let spec = JobSpec { name: "a job".to_owned(), what };
        let begun = ask(&folder, &JobRequest::Begin { spec, at: None });
        assert!(matches!(begun, Ok(JobReply::Job { .. })), "{begun:?}");
    }
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (folder, done) = (&folder, &done);
            let mut random = Random::new(run * CLIENTS + client);
            scope.spawn(move || hammer(folder, &mut random, commands / CLIENTS, done));
        }
        if is_killing {
            let places = children(server.process.id());
            assert_eq!(places.len(), PLACES - 1);
            let place = places[random.index(places.len())].to_string();
            let moment = random.below(commands * 9 / 10);
            while done.load(Ordering::Relaxed) < moment {
                std::thread::yield_now();
            }
            assert!(Command::new("kill").args(["-9", &place]).status().unwrap().success());
        }
    });
    let stays =
        |job: &JobView| !matches!(&job.state[..], "creating" | "checkpointing" | "moving" | "stopping");
    let settles = holds_at_last(|| list(&folder).iter().all(stays));
    assert!(settles, "run {run}: a job stands still: {:#?}", list(&folder));
    assert_eq!(list(&folder).len() as u64, JOBS);
    let ended = ask(&folder, &JobRequest::End);
    assert!(matches!(ended, Ok(JobReply::Done { .. })), "{ended:?}");
    let mut status = None;
    let ends = holds_at_last(|| {
        status = server.process.try_wait().unwrap();
        status.is_some()
    });
    assert!(ends, "run {run}: the job server does not end");
    let said = server.said.take().unwrap().join().unwrap();
    assert!(status.is_some_and(|status| status.success()), "run {run}: {status:?}: {said}");
}

#[test]
fn commands_in_quick_succession_leave_no_job_on_its_way_also_if_places_are_killed() {
    let runs = std::env::var("ISLES_TEST_RUNS").ok().and_then(|runs| runs.parse().ok());
    let commands = if runs.is_some() { 2400 } else { 300 };
    for number in 0..runs.unwrap_or(2) {
        run(number, commands, number % 2 == 1);
        println!("run {number}: {commands} commands, all jobs settled, the job server ended");
    }
}
