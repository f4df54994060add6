//! The run directory, in which an observer finds a run and its log afterwards.
//!
//! The first process of a run creates it with access for its user only. It holds a socket and the event log. An
//! observer that connects receives the counter file, read-only, and the description of the run; from then on the
//! connection only shows that the first process is alive. Invariants: only the same user or root receives anything; an
//! observer can neither write to the counters nor make the run wait.

use crate::description::{FACTS_BYTES_MAX, RunDescription};
use crate::log::LogWriter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::getuid;
use std::fmt;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The socket of a run directory.
const SOCKET: &str = "observe.sock";

/// The event log of a run directory.
const LOG: &str = "events.log";

/// Maximum length, in bytes, of a socket path that systems accept, with its terminator.
const PATH_BYTES_MAX: usize = 100;

/// Maximum number of observers of a run at a time; the next is turned away.
const OBSERVERS_MAX: usize = 64;

/// Time limit for a run's answer to an observer; longer in tests, which may wait for a CPU.
const ANSWER_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 5 });

/// Error of creating a run directory or of observing its run.
#[derive(Debug)]
pub enum DirectoryError {
    /// The directory is not empty.
    NotEmpty(PathBuf),
    /// Its path is too long for a socket.
    TooLong(PathBuf),
    /// No run directory exists there.
    NotFound(PathBuf),
    /// The run in it is over, or its first process was killed.
    RunEnded(PathBuf),
    /// The run closed the connection without an answer.
    Rejected(PathBuf),
    /// The run's answer is malformed.
    Malformed(PathBuf),
    /// A process listens but does not answer in time.
    NoAnswer(PathBuf),
    /// A system call failed.
    System(PathBuf, io::Error),
}

/// Returns a path for output on a terminal, with control characters escaped.
pub fn shown(path: &Path) -> String {
    let one = |character: char| match character.is_control() {
        true => character.escape_debug().to_string(),
        false => character.to_string(),
    };
    path.to_string_lossy().chars().map(one).collect()
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryError::NotEmpty(path) => write!(f, "{} is not empty", shown(path)),
            DirectoryError::TooLong(path) => {
                write!(f, "{} is too long for a socket; allowed: at most {PATH_BYTES_MAX} bytes", shown(path))
            }
            DirectoryError::NotFound(path) => write!(f, "{} is not a run directory", shown(path)),
            DirectoryError::RunEnded(path) => write!(f, "the run in {} has ended", shown(path)),
            DirectoryError::Rejected(path) => write!(
                f,
                "the run in {} does not answer: it has {OBSERVERS_MAX} observers, is another user's, or has just ended",
                shown(path)
            ),
            DirectoryError::Malformed(path) => {
                write!(f, "the process answering in {} is not a run of this version", shown(path))
            }
            DirectoryError::NoAnswer(path) => write!(
                f,
                "the run in {} does not answer within {} s: its first process is stopped, or has no processor",
                shown(path),
                ANSWER_LIMIT.as_secs()
            ),
            DirectoryError::System(path, cause) => write!(f, "{}: {cause}", shown(path)),
        }
    }
}

impl std::error::Error for DirectoryError {}

/// A run directory of this user.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Creates the directory, or takes an empty one, with access for its user only.
    ///
    /// # Errors
    /// It is not empty, or cannot be created.
    pub fn create(path: &Path) -> Result<RunDirectory, DirectoryError> {
        let system = |cause| DirectoryError::System(path.to_owned(), cause);
        RunDirectory::check(path)?;
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(system)?;
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(system)?;
        Ok(RunDirectory { path: path.to_owned() })
    }

    /// Checks that [`RunDirectory::create`] can succeed; creates nothing.
    ///
    /// # Errors
    /// It is not empty, or no directory.
    pub fn check(path: &Path) -> Result<(), DirectoryError> {
        if path.join(SOCKET).as_os_str().len() > PATH_BYTES_MAX {
            return Err(DirectoryError::TooLong(path.to_owned()));
        }
        match fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                Some(_) => Err(DirectoryError::NotEmpty(path.to_owned())),
                None => Ok(()),
            },
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(DirectoryError::System(path.to_owned(), cause)),
        }
    }

    /// Returns the path of the run directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the event log of a run directory.
    pub fn log_path(directory: &Path) -> PathBuf {
        directory.join(LOG)
    }

    /// Begins the event log.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn begin_log(&self, description: &RunDescription) -> Result<LogWriter, DirectoryError> {
        let path = RunDirectory::log_path(&self.path);
        LogWriter::create(&path, description).map_err(|cause| DirectoryError::System(path, cause))
    }

    /// Opens the socket that sends observers `counters`, a file open for reading.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn listen(
        &self,
        counters: File,
        description: &RunDescription,
    ) -> Result<ObserverSocket, DirectoryError> {
        let path = self.path.join(SOCKET);
        let listen = || -> io::Result<UnixListener> {
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|cause| DirectoryError::System(path.clone(), cause))?;
        let answer = description.encode();
        Ok(ObserverSocket { listener, counters, answer, observers: Vec::new(), path })
    }
}

/// The socket of a run, at its first process.
#[derive(Debug)]
pub struct ObserverSocket {
    listener: UnixListener,
    counters: File,
    answer: Vec<u8>,
    observers: Vec<UnixStream>,
    path: PathBuf,
}

impl ObserverSocket {
    /// Answers observers that connect, for up to `limit` or until `end` is readable.
    ///
    /// Returns `true` if `end` is readable.
    pub fn serve(&mut self, end: BorrowedFd<'_>, limit: Duration) -> bool {
        let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        let mut watched =
            [PollFd::new(&self.listener, PollFlags::IN), PollFd::from_borrowed_fd(end, PollFlags::IN)];
        // An interrupted wait counts as a short one.
        let _ = poll(&mut watched, Some(&timeout));
        let [connects, ends] = watched.map(|descriptor| !descriptor.revents().is_empty());
        if connects {
            self.accept();
        }
        ends
    }

    /// Accepts new observers and drops those that have disconnected.
    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            self.observers.retain(is_connected);
            // Other users get no answer, nor do observers beyond the limit.
            if self.observers.len() < OBSERVERS_MAX && is_permitted(&stream) && self.answer(&stream).is_ok() {
                self.observers.push(stream);
            }
        }
    }

    fn answer(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let descriptors = [self.counters.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let len = (self.answer.len() as u32).to_le_bytes();
        let parts = [IoSlice::new(&len), IoSlice::new(&self.answer)];
        let sent = sendmsg(stream, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        // A new socket has room for the whole message.
        if sent == len.len() + self.answer.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

impl Drop for ObserverSocket {
    fn drop(&mut self) {
        // If removal fails, an observer that connects finds that the run is over.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns `true` if the other end runs as the same user, or as root.
fn is_permitted(stream: &UnixStream) -> bool {
    let own = getuid();
    socket_peercred(stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

/// Returns `true` if the other end is connected; it never sends anything.
fn is_connected(stream: &UnixStream) -> bool {
    let mut byte = [0];
    matches!((&*stream).read(&mut byte), Err(cause) if cause.kind() == io::ErrorKind::WouldBlock)
}

/// An observer's connection to a run.
#[derive(Debug)]
pub struct ObserverLink {
    stream: UnixStream,
    description: RunDescription,
}

impl ObserverLink {
    /// Connects to the run in `directory`; also returns its counter file, open for reading.
    ///
    /// # Errors
    /// There is no run directory, its run is over, or it does not answer.
    pub fn connect(directory: &Path) -> Result<(ObserverLink, File), DirectoryError> {
        let path = directory.join(SOCKET);
        let stream = UnixStream::connect(&path).map_err(|cause| match cause.kind() {
            io::ErrorKind::ConnectionRefused => DirectoryError::RunEnded(directory.to_owned()),
            io::ErrorKind::NotFound if directory.join(LOG).is_file() => {
                DirectoryError::RunEnded(directory.to_owned())
            }
            io::ErrorKind::NotFound => DirectoryError::NotFound(directory.to_owned()),
            _ => DirectoryError::System(path.clone(), cause),
        })?;
        let answer = receive(&stream).map_err(|cause| match cause.kind() {
            // A timeout of a socket is reported as `WouldBlock`.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                DirectoryError::NoAnswer(directory.to_owned())
            }
            // The run ended before it accepted the connection, or while it answered.
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                DirectoryError::RunEnded(directory.to_owned())
            }
            io::ErrorKind::ConnectionRefused => DirectoryError::Rejected(directory.to_owned()),
            _ => DirectoryError::System(path.clone(), cause),
        })?;
        let malformed = || DirectoryError::Malformed(directory.to_owned());
        let (file, bytes) = answer.ok_or_else(malformed)?;
        let description = RunDescription::decode(&bytes).ok_or_else(malformed)?;
        stream.set_nonblocking(true).map_err(|cause| DirectoryError::System(path, cause))?;
        Ok((ObserverLink { stream, description }, file))
    }

    /// Returns the description of the run.
    pub fn description(&self) -> &RunDescription {
        &self.description
    }

    /// Returns `true` if the first process of the run is alive.
    pub fn is_alive(&self) -> bool {
        is_connected(&self.stream)
    }
}

/// Receives the file and the bytes of an answer; `None` if it is malformed. No answer at all counts as a refused
/// connection.
fn receive(stream: &UnixStream) -> io::Result<Option<(File, Vec<u8>)>> {
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; 4 + FACTS_BYTES_MAX];
    let received = loop {
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        match recvmsg(stream, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if received == 0 {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let Some(len) = bytes[..received].first_chunk::<4>() else { return Ok(None) };
    let end = 4 + u32::from_le_bytes(*len) as usize;
    if end > bytes.len() {
        return Ok(None);
    }
    let mut stream = stream;
    if received < end {
        stream.read_exact(&mut bytes[received..end])?;
    }
    Ok(descriptor.map(|descriptor: OwnedFd| (File::from(descriptor), bytes[4..end].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("isles-run-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn an_observer_gets_the_file_and_the_description_and_sees_the_end() {
        let path = scratch("observer");
        let directory = RunDirectory::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let description =
            RunDescription { places: 4, program: "p".repeat(9000), ..RunDescription::default() };
        fs::write(path.join("file"), "seen").unwrap();
        let mut socket = directory.listen(File::open(path.join("file")).unwrap(), &description).unwrap();
        let (end, mut ending) = std::io::pipe().unwrap();
        let server = std::thread::spawn(move || while !socket.serve(end.as_fd(), ANSWER_LIMIT) {});
        let (link, mut file) = ObserverLink::connect(&path).unwrap();
        assert_eq!(link.description(), &description);
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "seen");
        assert!(file.write(b"x").is_err());
        assert!(link.is_alive());
        ending.write_all(b"x").unwrap();
        server.join().unwrap();
        assert!(!link.is_alive());
        assert!(matches!(ObserverLink::connect(&path), Err(DirectoryError::NotFound(_))));
        fs::write(RunDirectory::log_path(&path), "").unwrap();
        assert!(matches!(ObserverLink::connect(&path), Err(DirectoryError::RunEnded(_))));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn observers_that_are_too_many_or_gone_cost_nothing() {
        let path = scratch("many");
        let directory = RunDirectory::create(&path).unwrap();
        let null = File::open("/dev/null").unwrap();
        let mut socket = directory.listen(null, &RunDescription::default()).unwrap();
        let (end, _ending) = std::io::pipe().unwrap();
        let mut connect = || {
            let stream = UnixStream::connect(path.join(SOCKET)).unwrap();
            assert!(!socket.serve(end.as_fd(), ANSWER_LIMIT));
            stream
        };
        let held: Vec<UnixStream> = (0..OBSERVERS_MAX).map(|_| connect()).collect();
        assert!(receive(&held[0]).unwrap().is_some());
        let turned_away = receive(&connect()).unwrap_err().kind();
        assert_eq!(turned_away, io::ErrorKind::ConnectionRefused, "one too many is turned away");
        std::thread::scope(|scope| {
            let observer = scope.spawn(|| ObserverLink::connect(&path));
            assert!(!socket.serve(end.as_fd(), ANSWER_LIMIT));
            let error = observer.join().unwrap().unwrap_err();
            assert!(error.to_string().contains("it has 64 observers"), "{error}");
        });
        drop(held);
        let again = UnixStream::connect(path.join(SOCKET)).unwrap();
        assert!(!socket.serve(end.as_fd(), ANSWER_LIMIT));
        assert!(receive(&again).unwrap().is_some());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_run_that_ends_before_it_has_answered_is_over() {
        let path = scratch("late");
        let directory = RunDirectory::create(&path).unwrap();
        let null = File::open("/dev/null").unwrap();
        let socket = directory.listen(null, &RunDescription::default()).unwrap();
        let observer = std::thread::spawn({
            let path = path.clone();
            move || ObserverLink::connect(&path)
        });
        let mut waiting = [PollFd::new(&socket.listener, PollFlags::IN)];
        poll(&mut waiting, None).unwrap();
        drop(socket);
        assert!(matches!(observer.join().unwrap(), Err(DirectoryError::RunEnded(_))));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_directory_with_something_in_it_is_refused() {
        let path = scratch("full");
        fs::create_dir(&path).unwrap();
        RunDirectory::create(&path).unwrap();
        fs::write(path.join("mine"), "").unwrap();
        assert!(matches!(RunDirectory::create(&path), Err(DirectoryError::NotEmpty(_))));
        assert!(matches!(RunDirectory::create(&path.join("mine")), Err(DirectoryError::System(..))));
        let long = path.join("x".repeat(PATH_BYTES_MAX));
        assert!(matches!(RunDirectory::create(&long), Err(DirectoryError::TooLong(_))));
        fs::remove_dir_all(path).unwrap();
    }
}
