//! A simulated run, the server that shows it, and raw requests.
//!
//! For an observer the run is real: a run directory, its socket and its counters, written by this process. The server
//! is the real program.

use isles_telemetry::{
    COUNTERS, CounterId, CounterValues, EnergySample, HeaderWriter, Liveness, ObserverSocket, PageLayout,
    PlaceWriter, RunDescription, RunDirectory, RunEnd, WordMemory,
};
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time after which an event counts as never happening.
pub const NEVER: Duration = Duration::from_secs(60);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A run with its directory.
pub struct Run {
    pub directory: PathBuf,
    words: Arc<Vec<AtomicU64>>,
    file: File,
    pub head: HeaderWriter,
    pub places: Mutex<Vec<PlaceWriter>>,
    ending: Option<PipeWriter>,
    socket: Option<JoinHandle<()>>,
}

fn answer(mut socket: ObserverSocket, end: &PipeReader) {
    while !socket.serve(end.as_fd(), NEVER) {}
}

impl Run {
    pub fn new(places: u32) -> Run {
        Run::described(RunDescription { machine: "processes".into(), places, ..RunDescription::default() })
    }

    pub fn described(description: RunDescription) -> Run {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("isles-ui-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let layout = PageLayout::new(description.places, 0);
        let words: Arc<Vec<AtomicU64>> = Arc::new((0..layout.words()).map(|_| AtomicU64::new(0)).collect());
        let memory = Arc::clone(&words) as Arc<dyn WordMemory>;
        let head = HeaderWriter::begin(Arc::clone(&memory), layout, 1);
        let places =
            (0..description.places).map(|place| PlaceWriter::new(Arc::clone(&memory), layout, place));
        let places = Mutex::new(places.collect());
        let run_directory = RunDirectory::create(&directory).unwrap();
        let path = directory.join("counters");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut run = Run { directory, words, file, head, places, ending: None, socket: None };
        run.copy(0);
        let socket = run_directory.listen(File::open(path).unwrap(), &description).unwrap();
        let (end, ending) = std::io::pipe().unwrap();
        run.ending = Some(ending);
        run.socket = Some(std::thread::spawn(move || answer(socket, &end)));
        run
    }

    /// Makes all places copy their counters to the shared file; `tasks` is their count of tasks.
    pub fn copy(&self, tasks: u64) {
        let mut values = [0; COUNTERS.len()];
        values[CounterId::Tasks.index()] = tasks;
        self.copy_all(tasks, &values);
    }

    /// Makes all places copy these counters to the shared file.
    pub fn copy_values(&self, values: CounterValues) {
        let until_ns = values[CounterId::EnergyTime.index()];
        self.head.energy(EnergySample { until_ns, nanojoules: values[CounterId::Energy.index()] });
        self.copy_all(1, &values);
    }

    fn copy_all(&self, time_ms: u64, values: &CounterValues) {
        for place in self.places.lock().unwrap().iter_mut() {
            place.copy(Liveness::Idle, time_ms, values);
        }
        self.head.heartbeat(time_ms);
        self.flush();
    }

    /// Ends the run with success.
    pub fn end(&self) {
        self.head.end(RunEnd::Ended);
        self.flush();
    }

    /// Makes the first process disappear.
    pub fn vanish(&mut self) {
        self.ending.take();
        if let Some(socket) = self.socket.take() {
            socket.join().unwrap();
        }
    }

    fn flush(&self) {
        let bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        self.file.write_all_at(&bytes, 0).unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.vanish();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The server, killed on drop.
pub struct Server {
    pub child: Child,
    pub port: u16,
    pub token: String,
    /// The read-only token, if there is a manager role.
    pub view_token: Option<String>,
    /// Its unique name.
    pub name: String,
}

impl Server {
    pub fn start(verb: &str, run: &Run, more: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isles-dashboard"));
        command.arg(verb).arg(&run.directory).args(more).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        errors.read_line(&mut line).unwrap();
        let is_managed = line.starts_with("manage");
        let prefix = if is_managed { "manage the run at http://" } else { "watch the run at http://" };
        let address = line.trim().strip_prefix(prefix).unwrap_or_else(|| panic!("{line}"));
        let (host, token) = address.split_once("/#token=").unwrap();
        let view_token = is_managed.then(|| {
            let mut lines = String::new();
            (0..2).for_each(|_| _ = errors.read_line(&mut lines).unwrap());
            lines.trim().rsplit_once("#token=").unwrap().1.to_owned()
        });
        let (name, port) = host.rsplit_once(':').unwrap();
        // The rest of its output is not needed, but must be read.
        std::thread::spawn(move || _ = errors.read_to_string(&mut String::new()));
        Server {
            child,
            port: port.parse().unwrap(),
            token: token.to_owned(),
            view_token,
            name: name.to_owned(),
        }
    }

    pub fn live(run: &Run) -> Server {
        Server::start("live", run, &["--keep"])
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(NEVER)).unwrap();
        stream.set_write_timeout(Some(NEVER)).unwrap();
        stream
    }

    /// The answer to a request with these headers, and no others.
    pub fn ask_bare(&self, line: &str, headers: &[&str]) -> Reply {
        let mut stream = self.connect();
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        headers.iter().for_each(|header| text += &format!("{header}\r\n"));
        stream.write_all((text + "\r\n").as_bytes()).unwrap();
        Reply::read(stream)
    }

    /// The same with the right host.
    pub fn ask(&self, line: &str, headers: &[&str]) -> Reply {
        let host = format!("Host: 127.0.0.1:{}", self.port);
        self.ask_bare(line, &[&[host.as_str()], headers].concat())
    }

    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// The answer to a request that carries the token.
    pub fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), &[&self.bearer()])
    }

    /// A stream of snapshots, its headers read.
    pub fn stream(&self) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let (port, bearer) = (self.port, self.bearer());
        let request = format!("GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{bearer}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0);
        }
        reader
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next snapshot of a stream.
pub fn next(stream: &mut BufReader<TcpStream>) -> serde_json::Value {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream has ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Reply {
    pub fn read(mut stream: TcpStream) -> Reply {
        let mut bytes = Vec::new();
        // A server that refuses a request may close before reading it to its end.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Reply { status, headers: headers.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}
