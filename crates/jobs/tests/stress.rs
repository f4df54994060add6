//! Job servers whose places are killed while clients send commands in quick succession: no job stays on its way, the
//! job server ends each time, and no process of a command is left.
//!
//! `ISLES_TEST_RUNS` says how many runs of each kind there are; without it there are a few, and short ones.
//! `ISLES_TEST_PROGRAM` names another build of the program, which may be an earlier one.

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

/// Limit beyond which an event counts as never happening.
const NEVER: Duration = Duration::from_secs(120);

struct JobServer {
    process: Child,
    folder: PathBuf,
    /// Output of the server after it listens.
    stderr: Option<JoinHandle<String>>,
}

impl Drop for JobServer {
    fn drop(&mut self) {
        let _ = self.process.kill(); // it may have ended
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The variable that identifies all processes of one of the test's job servers.
const MARK: &str = "ISLES_TEST_JOB_SERVER";

/// A folder for a job server, with nothing in it.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("isles-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it need not be there
    folder
}

fn serve(folder: PathBuf, mark: &str) -> JobServer {
    let program = std::env::var_os("ISLES_TEST_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_isles-jobs").into());
    let mut command = Command::new(program);
    command.arg("serve").arg("--state").arg(&folder).args(["--machine", "processes", "--places"]);
    command.arg(PLACES.to_string()).env(MARK, mark).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.contains("jobs are managed in") {
        assert!(lines.read_line(&mut stderr).unwrap() > 0, "the job server has ended: {stderr}");
    }
    let stderr = std::thread::spawn(move || {
        let _ = lines.read_to_string(&mut stderr); // what there is
        stderr
    });
    JobServer { process, folder, stderr: Some(stderr) }
}

/// All processes for which `holds`, of what a file of theirs has.
fn processes(file: &str, holds: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|number| std::fs::read(format!("/proc/{number}/{file}")).is_ok_and(|text| holds(&text)))
        .collect()
}

/// The processes whose parent is that.
fn children(parent: u32) -> Vec<u32> {
    processes("stat", |text| {
        let text = String::from_utf8_lossy(text);
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(1) == Some(&parent.to_string())
    })
}

/// The processes of a job server with that mark; one that has ended has no environment.
fn marked(mark: &str) -> Vec<u32> {
    let line = format!("{MARK}={mark}");
    processes("environ", |text| text.split(|byte| *byte == 0).any(|found| found == line.as_bytes()))
}

fn kill(process: u32) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}

fn list(folder: &Path) -> Vec<JobView> {
    match ask(folder, &JobRequest::List) {
        Ok(JobReply::Jobs { jobs, .. }) => jobs,
        other => panic!("{other:?}"),
    }
}

/// One client: random verbs for random jobs; `done` counts those of all clients.
fn send_random_commands(folder: &Path, random: &mut Random, commands: u64, done: &AtomicU64) {
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
        let reply = ask(folder, &JobRequest::Order { job, order });
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
    let folder = folder(&format!("stress-{run}"));
    let mut server = serve(folder.clone(), "stress");
    for _ in 0..JOBS {
        let what = Runnable::Task("pi".to_owned(), vec!["1000000000000".to_owned()]);
        let spec = JobSpec::new("a job", what);
        let begun = ask(&folder, &JobRequest::Begin { spec, at: None });
        assert!(matches!(begun, Ok(JobReply::Job { .. })), "{begun:?}");
    }
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (folder, done) = (&folder, &done);
            let mut random = Random::new(run * CLIENTS + client);
            scope.spawn(move || send_random_commands(folder, &mut random, commands / CLIENTS, done));
        }
        if is_killing {
            let places = children(server.process.id());
            assert_eq!(places.len(), PLACES - 1);
            let place = places[random.index(places.len())];
            let moment = random.below(commands * 9 / 10);
            while done.load(Ordering::Relaxed) < moment {
                std::thread::yield_now();
            }
            kill(place);
        }
    });
    let stays =
        |job: &JobView| !matches!(&job.state[..], "creating" | "checkpointing" | "moving" | "stopping");
    let settles = holds_at_last(|| list(&folder).iter().all(stays));
    assert!(settles, "run {run}: a job stands still: {:#?}", list(&folder));
    assert_eq!(list(&folder).len() as u64, JOBS);
    end(&mut server, run);
}

fn end(server: &mut JobServer, run: u64) {
    let ended = ask(&server.folder, &JobRequest::End { force: false });
    assert!(matches!(ended, Ok(JobReply::Ending { .. })), "{ended:?}");
    let mut status = None;
    let ends = holds_at_last(|| {
        status = server.process.try_wait().unwrap();
        status.is_some()
    });
    assert!(ends, "run {run}: the job server does not end");
    let stderr = server.stderr.take().unwrap().join().unwrap();
    assert!(status.is_some_and(|status| status.success()), "run {run}: {status:?}: {stderr}");
}

fn runs() -> Option<u64> {
    std::env::var("ISLES_TEST_RUNS").ok().and_then(|runs| runs.parse().ok())
}

#[test]
fn commands_in_quick_succession_leave_no_job_on_its_way_also_if_places_are_killed() {
    let commands = if runs().is_some() { 2400 } else { 300 };
    for number in 0..runs().unwrap_or(2) {
        run(number, commands, number % 2 == 1);
        println!("run {number}: {commands} commands, all jobs settled, the job server ended");
    }
}

/// A command that has started another one, and is started at a place.
fn begin_command(folder: &Path, at: usize, script: &str) -> Option<u64> {
    let words = ["sh", "-c", script].map(str::to_owned);
    let spec = JobSpec::new("a command", Runnable::Command(words.into()));
    match ask(folder, &JobRequest::Begin { spec, at: Some(at) }) {
        Ok(JobReply::Job { job, .. }) => Some(job.id),
        Ok(JobReply::Refused(_)) => None, // the place is dead
        other => panic!("{other:?}"),
    }
}

const TWO_SLEEP: &str = "sleep 1000 & exec sleep 1000";

#[test]
fn a_place_that_is_killed_while_it_starts_commands_leaves_none() {
    for run in 0..runs().unwrap_or(5) {
        let (mut random, mark) = (Random::new(run), format!("orphans-{run}-{}", std::process::id()));
        let mut server = serve(folder(&format!("orphans-{run}")), &mark);
        let folder = server.folder.clone();
        // The parent of a command is its place.
        let spy = begin_command(&folder, 1, "echo $PPID").unwrap();
        let mut place = None;
        assert!(holds_at_last(|| {
            let Ok(JobReply::Output { lines, .. }) = ask(&folder, &JobRequest::Output { job: spy, lines: 1 })
            else {
                return false;
            };
            place = lines.first().and_then(|line| line.parse().ok());
            place.is_some()
        }));
        let (begun, moment) = (AtomicU64::new(0), random.below(7));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..6 {
                    let _ = begin_command(&folder, 1, TWO_SLEEP);
                    begun.fetch_add(1, Ordering::Relaxed); // a count, for no other memory
                }
            });
            while begun.load(Ordering::Relaxed) < moment {
                std::thread::yield_now();
            }
            (0..random.below(3000)).for_each(|_| std::thread::yield_now());
            kill(place.unwrap());
        });
        let is_over = |job: &JobView| ["failed", "finished"].contains(&&job.state[..]);
        assert!(holds_at_last(|| list(&folder).iter().all(is_over)), "run {run}: {:#?}", list(&folder));
        // What is left is the job server and its other place.
        assert!(holds_at_last(|| marked(&mark).len() == PLACES - 1), "run {run}: {:?}", marked(&mark));
        end(&mut server, run);
        assert!(holds_at_last(|| marked(&mark).is_empty()), "run {run}: {:?}", marked(&mark));
    }
}

#[test]
fn a_job_server_that_is_killed_leaves_no_command_and_the_next_one_ends_what_those_had_started() {
    let mark = format!("killed-{}", std::process::id());
    let mut server = serve(folder("killed"), &mark);
    let folder = server.folder.clone();
    for at in 0..PLACES {
        begin_command(&folder, at, TWO_SLEEP).unwrap();
    }
    let commands = || marked(&mark).len() - PLACES;
    assert!(holds_at_last(|| commands() == 2 * PLACES));
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    // The commands end with their places; what they had started is left.
    assert!(holds_at_last(|| marked(&mark).len() == PLACES), "{:?}", marked(&mark));
    let mut next = serve(folder, &format!("next of {mark}"));
    assert!(holds_at_last(|| marked(&mark).is_empty()), "{:?}", marked(&mark));
    end(&mut next, 0);
}
