//! The socket of a job server: access to the directory permits managing its jobs.
//!
//! A connection carries requests, a line each, and a reply to each. Separate threads read the lines and share only a
//! queue with places; the job server polls it between its other tasks.

use crate::request::{JobReply, JobRequest, Refusal, RefusalKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum bytes of a request line.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Time limit for an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Time limit of the client, longer than that of the server.
const ASK_WAIT: Duration = Duration::from_secs(65);

/// Time limit for each answer to a client that ends the job server.
const END_ASK_WAIT: Duration = Duration::from_secs(3);

/// Interval at which the client polls for the end.
const END_ASK_EVERY: Duration = Duration::from_millis(100);

/// Time after which the client reports the reasons for waiting.
const END_NOTICE_AFTER: Duration = Duration::from_secs(1);

/// Interval between such reports.
const END_NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Time limit for a killed process to end.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// Idle limit of a connection; then it is closed, to admit others.
const IO_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of connections at a time.
const CONNECTIONS_MAX: usize = 64;

/// A request, and the channel of its reply.
pub(crate) type QueuedRequest = (JobRequest, Sender<JobReply>);

/// Returns the path of the socket of this directory.
pub fn socket_path(directory: &Path) -> PathBuf {
    directory.join("socket")
}

/// Maximum time for which the end of a job server waits for its last answers to be written.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A socket that is removed with its job server.
pub(crate) struct JobSocket {
    path: PathBuf,
    requests: Receiver<QueuedRequest>,
    /// Number of requests whose answers are not written.
    open: Arc<AtomicUsize>,
}

impl JobSocket {
    /// Listens in `directory`, which the caller has locked.
    ///
    /// # Errors
    /// A system call failed: a line.
    pub(crate) fn listen(directory: &Path) -> Result<JobSocket, String> {
        let path = socket_path(directory);
        let failed = |cause: io::Error| format!("{}: {cause}", path.display());
        // An existing socket belongs to a killed job server.
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let (sender, requests) = channel();
        let unanswered = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&unanswered);
        let accept = move || {
            let (done, free) = channel::<()>();
            let mut open = 0;
            for stream in listener.incoming() {
                open -= free.try_iter().count();
                let Ok(stream) = stream else { continue };
                if open == CONNECTIONS_MAX {
                    continue; // it is closed
                }
                open += 1;
                let (sender, done, counted) = (sender.clone(), done.clone(), Arc::clone(&counted));
                let serve = move || {
                    let _ = serve_connection(stream, &sender, &counted); // a client that left needs no answer
                    let _ = done.send(());
                };
                if thread::Builder::new().name("isles job".to_owned()).spawn(serve).is_err() {
                    open -= 1;
                }
            }
        };
        thread::Builder::new().name("isles jobs".to_owned()).spawn(accept).map_err(failed)?;
        Ok(JobSocket { path, requests, open: unanswered })
    }

    /// Returns the next request, if any.
    pub(crate) fn next(&self) -> Option<QueuedRequest> {
        self.requests.try_recv().ok()
    }
}

impl Drop for JobSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // it may have been removed already
        // The process may end directly after this.
        let until = Instant::now() + LAST_ANSWERS;
        // PAIR answers: observe
        while self.open.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Guard of a request whose answer is not written.
struct Unanswered<'a>(&'a AtomicUsize);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        // PAIR answers: publish
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn serve_connection(
    stream: UnixStream,
    requests: &Sender<QueuedRequest>,
    open: &AtomicUsize,
) -> io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        open.fetch_add(1, Ordering::Relaxed);
        let _unanswered = Unanswered(open);
        let is_cut = line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n");
        let reply = if is_cut {
            // A reply in the middle of a request line would not be read.
            lines.skip_until(b'\n')?;
            let text = format!(
                "the request is longer than {LINE_BYTES_MAX} bytes; allowed: fewer words, or a smaller environment"
            );
            JobReply::Refused(Refusal::of(RefusalKind::TooLong, text))
        } else {
            answer(&line, requests)
        };
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        out.write_all(&text)?;
    }
}

/// Answers a request.
fn answer(line: &[u8], requests: &Sender<QueuedRequest>) -> JobReply {
    match serde_json::from_slice(line) {
        Err(fault) => {
            let text = format!("malformed request: {fault}");
            JobReply::Refused(Refusal::of(RefusalKind::BadRequest, text))
        }
        Ok(request) => {
            let (answer, answered) = channel();
            let is_sent = requests.send((request, answer)).is_ok();
            let answer = is_sent.then(|| answered.recv_timeout(ANSWER_WAIT).ok()).flatten();
            answer.unwrap_or(JobReply::Refused("the job server does not answer".to_owned().into()))
        }
    }
}

/// Sends a request to the job server of this directory.
///
/// # Errors
/// No job server listens there, or it is gone or does not answer: a line.
pub fn ask(directory: &Path, request: &JobRequest) -> Result<JobReply, String> {
    let path = socket_path(directory);
    let stream = UnixStream::connect(&path).map_err(|cause| {
        format!(
            "{}: no job server listens there ({cause}); isles serve starts one, --state names its directory",
            path.display()
        )
    })?;
    match exchange(&stream, request, ASK_WAIT) {
        Ok(Some(reply)) => Ok(reply),
        Ok(None) => Err(unresponsive_text(&path, &stream)),
        Err(fault) => Err(format!("{}: {fault}", path.display())),
    }
}

/// Ends the job server of this directory, and waits until its process has ended. `notify` receives the reasons for
/// waiting. With `force`, everything that does not answer is killed.
///
/// # Errors
/// No job server listens there, or it refuses to end: a line.
pub fn end(directory: &Path, force: bool, notify: impl Fn(&str)) -> Result<JobReply, String> {
    let path = socket_path(directory);
    let request = JobRequest::End { force };
    let done = |text: &str| JobReply::Done { text: text.to_owned() };
    // The first request shows whether a job server runs.
    let mut server =
        Server::connect(&path).map_err(|_| ask(directory, &request).err().unwrap_or_default())?;
    let mut next_notice = Instant::now() + END_NOTICE_AFTER;
    loop {
        let waits = match exchange(&server.stream, &request, END_ASK_WAIT) {
            Ok(Some(JobReply::Ending { waits })) => waits.join("; "),
            // The job server has closed the connection, and ends.
            Ok(Some(JobReply::Refused(_))) | Err(_) => String::new(),
            Ok(Some(_)) => return Err(format!("{}: the job server has a different version", path.display())),
            Ok(None) if force => {
                server.kill();
                server.has_ended(KILL_WAIT);
                return Ok(done("the job server did not answer, and was killed"));
            }
            Ok(None) => unresponsive_text(&path, &server.stream),
        };
        if server.has_ended(END_ASK_EVERY) {
            return Ok(done("the job server has ended"));
        }
        if !waits.is_empty() && Instant::now() >= next_notice {
            next_notice = Instant::now() + END_NOTICE_EVERY;
            notify(&waits);
        }
        // A connection may fail because there are too many.
        if let Ok(again) = Server::connect(&path) {
            server = again;
        }
    }
}

/// A job server at the other end of a connection.
struct Server {
    path: PathBuf,
    stream: UnixStream,
    /// Its process; `None` if not visible from here, or ended.
    process: Option<OwnedFd>,
}

impl Server {
    fn connect(path: &Path) -> io::Result<Server> {
        let stream = UnixStream::connect(path)?;
        let process =
            socket_peercred(&stream).and_then(|peer| pidfd_open(peer.pid, PidfdFlags::empty())).ok();
        Ok(Server { path: path.to_owned(), stream, process })
    }

    /// Returns `true` if its process ends within `limit`.
    fn has_ended(&self, limit: Duration) -> bool {
        let Some(process) = &self.process else {
            thread::sleep(limit);
            return UnixStream::connect(&self.path).is_err();
        };
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    fn kill(&self) {
        if let Some(process) = &self.process {
            let _ = pidfd_send_signal(process, Signal::KILL); // it may have ended
        }
    }
}

fn unresponsive_text(path: &Path, stream: &UnixStream) -> String {
    let process = socket_peercred(stream).map_or(0, |peer| peer.pid.as_raw_nonzero().get());
    format!(
        "{}: the job server does not answer; its process {process} is stopped, or a step of a job at place 0 does \
         not return",
        path.display()
    )
}

/// Sends a request and waits for its reply; `None` on timeout.
fn exchange(
    mut stream: &UnixStream,
    request: &JobRequest,
    limit: Duration,
) -> Result<Option<JobReply>, String> {
    let gone = |cause: io::Error| format!("the job server is gone: {cause}");
    stream.set_read_timeout(Some(limit)).map_err(gone)?;
    let mut text = serde_json::to_vec(request).expect("a request has a form");
    text.push(b'\n');
    stream.write_all(&text).map_err(gone)?;
    let mut line = String::new();
    match BufReader::new(stream).read_line(&mut line) {
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(cause) => return Err(gone(cause)),
        Ok(_) => {}
    }
    serde_json::from_str(&line).map(Some).map_err(|fault| format!("malformed answer: {fault}"))
}
