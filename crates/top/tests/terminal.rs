//! The program on a terminal of its own: however it ends, the terminal is restored.
//!
//! The terminal is a pseudo-terminal; the run is a run directory that this process serves.

use isles_telemetry::{HeaderWriter, ObserverSocket, PageLayout, RunDescription, RunDirectory, WordMemory};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A run directory, served until this is dropped.
struct Run {
    directory: PathBuf,
    _ending: std::io::PipeWriter,
}

fn answer(mut socket: ObserverSocket, end: &PipeReader) {
    while !socket.serve(end.as_fd(), Duration::from_secs(60)) {}
}

impl Run {
    fn new() -> Run {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("isles-top-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let layout = PageLayout::new(2, 0);
        let words: Arc<Vec<AtomicU64>> = Arc::new((0..layout.words()).map(|_| AtomicU64::new(0)).collect());
        HeaderWriter::begin(Arc::clone(&words) as Arc<dyn WordMemory>, layout, 1);
        let description = RunDescription {
            places: 2,
            program: "pictured".into(),
            machine: "threads".into(),
            ..Default::default()
        };
        let made = RunDirectory::create(&directory).unwrap();
        let file = File::create_new(directory.join("counters")).unwrap();
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        file.write_all_at(&bytes, 0).unwrap();
        let socket = made.listen(File::open(directory.join("counters")).unwrap(), &description).unwrap();
        let (end, ending) = std::io::pipe().unwrap();
        std::thread::spawn(move || answer(socket, &end));
        Run { directory, _ending: ending }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The program on a terminal.
struct Session {
    child: Child,
    /// The master end of the terminal. This process does not hold the other end, so a read fails once the program has
    /// ended.
    ours: File,
    _run: Run,
}

impl Session {
    /// Starts the program, and waits until it has drawn.
    fn start() -> Session {
        let run = Run::new();
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs: OwnedFd =
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        // A new one has no lines and no columns.
        tcsetwinsize(&ours, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let (stdin, stdout) = (theirs.try_clone().unwrap(), theirs.try_clone().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_isles-top"))
            .arg(&run.directory)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(theirs)
            .spawn()
            .unwrap();
        let mut session = Session { child, ours: File::from(ours), _run: run };
        session.read_until("help");
        session
    }

    /// Reads the program's output up to `text`, and returns it.
    fn read_until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = self.ours.read(&mut piece).unwrap();
            seen.extend(&piece[..read]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// Returns `true` if the terminal is in raw mode; both ends report the same.
    fn is_raw(&self) -> bool {
        !tcgetattr(&self.ours).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end, and checks that the terminal is restored.
    fn ended(mut self) -> ExitStatus {
        // Back on the main screen, with a cursor.
        let last = self.read_until("\u{1b}[?25h");
        assert!(last.contains("\u{1b}[?1049l"), "{last:?}");
        let status = self.child.wait().unwrap();
        assert!(!self.is_raw(), "keys are shown again, line by line");
        status
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        kill_process(process, signal).unwrap();
    }
}

#[test]
fn a_key_ends_it_and_the_terminal_is_as_it_was() {
    let mut session = Session::start();
    assert!(session.is_raw());
    session.ours.write_all(b"q").unwrap();
    assert!(session.ended().success());
}

#[test]
fn term_and_hup_end_it_and_the_terminal_is_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let session = Session::start();
        session.signal(signal);
        assert!(session.ended().success(), "{signal:?}");
    }
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let session = Session::start();
    let Session { mut child, ours, _run } = session;
    drop(ours);
    // With any exit code: it does not loop forever.
    child.wait().unwrap();
}

#[test]
fn a_run_whose_first_process_is_stopped_is_told_of_in_one_line() {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("isles-top-\u{1b}[31m{}-{number}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    // Like a stopped process: the system accepts the connection, and there is no answer.
    let listener = std::os::unix::net::UnixListener::bind(directory.join("observe.sock")).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_isles-top")).arg(&directory).arg("--once").output().unwrap();
    drop(listener);
    std::fs::remove_dir_all(&directory).unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), printed.lines().count()), (Some(2), 1), "{printed}");
    assert!(printed.contains("its first process is stopped, or has no processor"), "{printed}");
    assert!(
        !printed.contains("replay") && !printed.contains('\u{1b}') && printed.contains("\\u{1b}[31m"),
        "{printed:?}"
    );
}
