//! A folder in which one test runs the `isles` command, and checks for its remains.
//!
//! The tests of the command share one way to start it, to find the processes that it starts, and to show that nothing
//! is left behind. Every process of a scene is found by an environment variable that no other scene has, so tests may
//! run in parallel. Invariant: dropping a scene ends its processes and removes its folder.

#![allow(dead_code, reason = "each test program uses its own part")]

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The variable that marks the processes of a scene.
const MARK: &str = "ISLES_TEST_SCENE";

/// Time after which a test stops waiting; a loaded machine needs far less.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// One folder, and the processes that were started in it.
pub struct Scene {
    folder: PathBuf,
    mark: String,
}

/// One process of a scene that was started as a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceProcess {
    pub pid: i32,
    pub place: u32,
}

/// Exit and output of a command.
#[derive(Debug)]
pub struct Ended {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Scene {
    pub fn new(name: &str) -> Scene {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only the number matters.
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let mark = format!("isles-{name}-{}-{serial}", std::process::id());
        let folder = std::env::temp_dir().join(&mark);
        std::fs::create_dir(&folder).unwrap();
        Scene { folder, mark }
    }

    /// Creates a file of the scene that does not count as left behind.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.join("brought");
        std::fs::create_dir_all(&path).unwrap();
        let path = path.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Creates an executable file.
    pub fn executable(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let from = self.file(&format!("{name}.copied"), bytes);
        let to = from.with_file_name(name);
        install(&from, &to);
        to
    }

    /// Returns the text that a command has written into a file of the folder in which it ran.
    pub fn result(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Creates a file in the folder of the command before it runs.
    pub fn leave(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.work()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Returns the path of a file in the folder of the command.
    pub fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// Returns a command that runs in this scene only: in its folder, with its temporary files and without settings of
    /// ours.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ISLES_"))
        {
            command.env_remove(name);
        }
        let work = self.work();
        std::fs::create_dir_all(&work).unwrap();
        command.env(MARK, &self.mark).env("TMPDIR", &work).current_dir(work);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the program under test: `isles`, or that of an application.
    pub fn isles(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(crate::PROGRAM);
        command.args(arguments);
        command
    }

    /// Runs the program under test to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.isles(arguments))
    }

    /// Returns the numbers of the processes of this scene that still run.
    pub fn processes(&self) -> Vec<i32> {
        self.environments().into_iter().map(|(pid, _)| pid).collect()
    }

    /// Returns the processes that were started as places, in order of the places.
    pub fn places(&self) -> Vec<PlaceProcess> {
        let found = self.environments().into_iter().filter_map(|(pid, environment)| {
            let join = variable(&environment, "ISLES_JOIN")?;
            Some(PlaceProcess { pid, place: join.rsplit(':').next()?.parse().ok()? })
        });
        let mut found: Vec<PlaceProcess> = found.collect();
        found.sort_by_key(|process| process.place);
        found
    }

    /// Returns every process with our mark, with its environment. The environment of a process that has ended is empty.
    fn environments(&self) -> Vec<(i32, Vec<u8>)> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let environments =
            pids.filter_map(|pid| Some((pid, std::fs::read(format!("/proc/{pid}/environ")).ok()?)));
        environments
            .filter(|(_, environment)| variable(environment, MARK).as_deref() == Some(&self.mark))
            .collect()
    }

    /// Returns the named files in the folders of shared memory and temporary files that processes of this scene have
    /// open or mapped.
    pub fn named_memory(&self) -> Vec<String> {
        let shared =
            |path: &str| path.starts_with("/dev/shm/") || path.starts_with(&*self.work().to_string_lossy());
        let mut named = Vec::new();
        for pid in self.processes() {
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            named.extend(maps.lines().filter_map(|line| line.split_whitespace().nth(5)).map(str::to_owned));
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            named.extend(links.map(|link| link.to_string_lossy().into_owned()));
        }
        named.retain(|path| shared(path));
        named
    }

    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Asserts that no process of the scene runs any more, and that no file is left.
    pub fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), [0; 0], "processes are left");
        assert_eq!(names_in(&self.work()), [""; 0], "files are left");
        let shared = names_in(Path::new("/dev/shm"));
        let ours: Vec<_> = shared.iter().filter(|name| name.to_lowercase().contains("isles")).collect();
        assert_eq!(ours, [""; 0], "shared memory is left");
    }

    /// Waits until no process of the scene runs any more. Returns the time that this took.
    pub fn until_all_ended(&self) -> Duration {
        let since = Instant::now();
        until("all processes have ended", || self.processes().is_empty());
        since.elapsed()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for pid in self.processes() {
            kill(pid);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn variable(environment: &[u8], name: &str) -> Option<String> {
    let entries = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    entries.filter_map(|entry| Some(entry.strip_prefix(name)?.strip_prefix('=')?.to_owned())).next()
}

/// Returns the words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Returns the path of another package's program with the package's name, beside the one under test; it is built if it
/// is missing.
pub fn built(name: &str) -> PathBuf {
    let program = PathBuf::from(crate::PROGRAM).with_file_name(name);
    if !program.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--package", name, "--manifest-path"]);
        cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
        if program.parent().is_some_and(|folder| folder.ends_with("release")) {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    }
    program
}

/// Copies a file to where it can be executed. Another process writes it: if this one had it open for writing, a child
/// of a concurrent test would inherit the descriptor, and the file could not be executed ("text file busy").
pub fn install(from: &Path, to: &Path) {
    assert!(Command::new("install").args(["-m", "755"]).args([from, to]).status().unwrap().success());
}

/// Returns `true` if a process has ended, even if nobody has waited for it yet.
pub fn is_over(pid: i32) -> bool {
    state(pid).is_none_or(|state| state == 'Z')
}

/// Returns the state letter of a process in `/proc/PID/stat`.
pub fn state(pid: i32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

/// Sends SIGKILL.
pub fn kill(pid: i32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal; the process may have ended already.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Returns the nanoseconds of processor time of the threads of a process; `None` if it is gone.
pub fn busy_ns(pid: i32) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    texts.map(|text| text.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

/// Returns `true` if the process has a thread of that name.
pub fn has_thread(pid: i32, name: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.into_iter().any(|found| found.trim_end() == name)
}

/// Minimum interval between two checks.
const LOOKS_APART: Duration = Duration::from_micros(100);

/// Checks repeatedly until `happened`.
///
/// The checks take at most a quarter of a processor, so that the awaited processes have the rest.
pub fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let begun = Instant::now();
        if happened() {
            return;
        }
        assert!(begun < deadline, "in {PATIENCE:?} it did not come to this: {what}");
        std::thread::park_timeout((3 * begun.elapsed()).max(LOOKS_APART));
    }
}

/// Runs a command to its end.
pub fn ended(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    Ended::from(output)
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    /// Returns the phases that standard error names, in order.
    pub fn phases(&self) -> Vec<&str> {
        self.stderr.lines().filter_map(|line| line.strip_prefix("phase: ")).collect()
    }

    /// Returns the one line that states the refusal.
    ///
    /// # Panics
    /// The command did not end with code 2, printed more than one line, or wrote a result.
    pub fn refusal(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
        let line = self.stderr.strip_suffix('\n').unwrap_or_default();
        assert!(line.starts_with("error: ") && !line.contains('\n'), "not one line: {:?}", self.stderr);
        line
    }
}

/// A running command whose output is read as it is printed.
pub struct Running {
    pub child: Child,
    stderr: Receiver<String>,
    stdout: Receiver<String>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Running { stdout: lines(stdout), stderr: lines(stderr), child }
    }

    /// Waits for a line on standard error.
    pub fn until_line(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line =
                self.stderr.recv_timeout(left).unwrap_or_else(|_| panic!("there was no such line: {what}"));
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Waits for the end, and returns the output that was not read yet.
    pub fn finish(mut self) -> Ended {
        let mut status = None;
        until("the command ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        // The senders are dropped when no process has the other ends of the pipes any more.
        let rest = |lines: Receiver<String>| lines.iter().collect::<String>();
        Ended { code: status.unwrap().code(), stdout: rest(self.stdout), stderr: rest(self.stderr) }
    }
}

/// Returns the lines of a pipe, each with its line end, as they arrive.
fn lines(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let (mut text, mut room) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = pipe.read(&mut room) {
            text.extend_from_slice(&room[..read]);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        }
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    receiver
}

/// Random numbers that a seed determines: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}
