//! Other children of this binary in a separate process, observed by a page, a record, or a trace.
//!
//! The page is the real server, as a process, and a reader in this process that discards its stream. Only the observed
//! child is timed, by itself. Invariants: a run whose page has shown nothing has no figures; its files are removed at
//! the end.

use crate::child::timing::Effort;
use crate::child::timing::print_figure;
use crate::output::{ELAPSED, Output, PROCESSORS};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// The variable with the path of the server.
pub const SERVER: &str = "BENCH_DASHBOARD";

/// Time limit of a child.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs the flood with an open page. Prints the flood's figures, and `snapshots`, the number sent to the page.
pub fn flood(effort: Effort) {
    with_page("isles-flood", effort);
}

/// Runs betweenness of power several times, with an open page. Prints its figures, and `snapshots`.
pub fn power(effort: Effort) {
    with_page("isles-betweenness-power-often", effort);
}

/// Runs betweenness of hep-th several times, with an open page. Prints its figures, and `snapshots`.
pub fn hep_th(effort: Effort) {
    with_page("isles-betweenness-hep-th-often", effort);
}

/// Runs the recorded flood, without observers. Prints the figures of the flood.
pub fn recorded_flood(effort: Effort) {
    let folder = Folder::new();
    forward_figures(&mut child("isles-flood", effort, "ISLES_RECORD", &folder.0.join("run")));
}

/// Runs one flood with a trace that keeps only the first events. Prints the figures of the flood.
pub fn traced_flood(effort: Effort) {
    let folder = Folder::new();
    forward_figures(&mut child(
        "isles-flood-once",
        effort,
        "ISLES_TRACE",
        &folder.0.join("flood.perfetto-trace"),
    ));
}

/// Runs a short flood with a trace that keeps all events. Prints the figures of the flood.
pub fn traced_short(effort: Effort) {
    let folder = Folder::new();
    forward_figures(&mut child(
        "isles-flood-short",
        effort,
        "ISLES_TRACE",
        &folder.0.join("flood.perfetto-trace"),
    ));
}

fn with_page(name: &str, effort: Effort) {
    let folder = Folder::new();
    let directory = folder.0.join("run");
    let page = Page::open(&directory);
    forward_figures(&mut child(name, effort, "ISLES_RECORD", &directory));
    let snapshots = page.close();
    assert!(snapshots > 0, "the page was open and has shown nothing");
    print_figure("snapshots", snapshots as f64);
}

/// Returns a command for a child of this binary, with `variable` set to `path`.
fn child(name: &str, effort: Effort, variable: &str, path: &Path) -> Command {
    let program = std::env::current_exe().expect("the own program can be found");
    let mut command = Command::new(program);
    command.args(["child", name, &effort.batch.as_millis().to_string(), &effort.repetitions.to_string()]);
    command.env(variable, path);
    command
}

/// Prints the output of a child again.
fn forward_figures(command: &mut Command) {
    let output = Output::of(command, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let own = output.figures.iter().filter(|(name, _)| name != ELAPSED && name != PROCESSORS);
    own.for_each(|(name, value)| print_figure(name, *value));
}

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("isles-bench-{}", std::process::id()));
        std::fs::create_dir(&path).expect("the folder for temporary files can be written");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what is left lies among temporary files
    }
}

/// An open page: the server, and the reader of its stream.
struct Page {
    server: Child,
    reader: JoinHandle<u64>,
}

impl Page {
    /// Starts the server, which waits for the run in `directory`.
    fn open(directory: &Path) -> Page {
        let path = std::env::var_os(SERVER).expect("the bench passes the path of the server");
        let mut server = Command::new(path);
        server.arg("live").arg(directory).args(["--wait", "--port", "0"]);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = server.spawn().expect("the server can be started");
        let stderr = BufReader::new(server.stderr.take().expect("stderr is piped"));
        Page { server, reader: std::thread::spawn(move || read(stderr)) }
    }

    /// Ends the server; returns the number of snapshots that it has sent.
    fn close(mut self) -> u64 {
        let _ = self.server.kill(); // it may have ended with its run
        let _ = self.server.wait();
        self.reader.join().expect("the reader does not panic")
    }
}

/// Reads the address in the server's output, then its stream to the end; returns the number of snapshots.
fn read(mut stderr: impl BufRead) -> u64 {
    let mut line = String::new();
    let address = loop {
        line.clear();
        if stderr.read_line(&mut line).unwrap_or(0) == 0 {
            return 0; // it has ended and never listened
        }
        if let Some(address) =
            line.split_once("http://127.0.0.1:").and_then(|(_, rest)| rest.split_once("/#token="))
        {
            break address;
        }
    };
    let (port, token) = (address.0.parse::<u16>().unwrap_or(0), address.1.trim());
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return 0 };
    let request = format!(
        "GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    if stream.write_all(request.as_bytes()).is_err() {
        return 0;
    }
    let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
    lines.filter(|line| line.starts_with(b"data: ")).count() as u64
}
