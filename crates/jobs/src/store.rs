//! The directory in which jobs outlive their job server.
//!
//! `jobs.json` is the table; `job-N.state` is the state of job N, after a header line with its program and kind;
//! `job-N.out` is its output. The first two are written to a temporary name and renamed, so a reader finds either the
//! old or the new version. `lock` is empty, and locked while a job server uses the directory.

use crate::runner::{Caller, Environment, Runnable, StartId};
use isles_protocol::job::JobState;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{error, fmt};

/// The version of the file format.
const FORM: u32 = 1;

/// Maximum size of the table, in bytes.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// Specification of a job: its name and what it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Its name.
    pub name: String,
    /// Task or command that it runs.
    #[serde(rename = "what")]
    pub runnable: Runnable,
    /// Folder and environment of the shell in which a command was typed; without it, those of the job server are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
}

impl JobSpec {
    /// Returns the specification of a job of this name, which runs in the folder of the job server.
    pub fn new(name: impl Into<String>, runnable: Runnable) -> JobSpec {
        JobSpec { name: name.into(), runnable, caller: None }
    }
}

/// A stored job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredJob {
    pub(crate) id: u64,
    pub(crate) spec: JobSpec,
    /// The name of its state.
    pub(crate) state: String,
    /// Its last place.
    pub(crate) place: Option<usize>,
    /// Number of starts.
    pub(crate) starts: u64,
    /// Its result, or the reason for its state.
    pub(crate) reason: String,
    /// Computing time before its last start, in seconds.
    pub(crate) busy: f64,
    /// The number of the environment of its caller, while the table is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) environment: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct StoredTable {
    form: u32,
    program: String,
    next: u64,
    jobs: Vec<StoredJob>,
    /// Environments of the callers, each once: jobs of one terminal share one.
    #[serde(default)]
    environments: Vec<Environment>,
}

impl StoredTable {
    /// Moves the environments out of the jobs.
    fn share_environments(&mut self) {
        let mut numbers: BTreeMap<Environment, usize> = BTreeMap::new();
        for job in &mut self.jobs {
            let Some(caller) = &mut job.spec.caller else { continue };
            let next = numbers.len();
            let environment = std::mem::take(&mut caller.environment);
            job.environment = Some(*numbers.entry(environment).or_insert(next));
        }
        let mut all: Vec<(usize, Environment)> =
            numbers.into_iter().map(|(environment, number)| (number, environment)).collect();
        all.sort_unstable();
        self.environments = all.into_iter().map(|(_, environment)| environment).collect();
    }

    /// Restores the environment of each job; returns the first job without one.
    fn return_environments(&mut self) -> Result<(), u64> {
        for job in &mut self.jobs {
            let Some(caller) = &mut job.spec.caller else { continue };
            let number = job.environment.take().ok_or(job.id)?;
            caller.environment = self.environments.get(number).ok_or(job.id)?.clone();
        }
        Ok(())
    }
}

/// The header line of a state.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct StateHeader {
    form: u32,
    program: String,
    kind: String,
    bytes: u64,
    /// A hash of the bytes.
    check: u64,
}

/// Error of the job server's directory.
#[derive(Debug)]
pub enum StoreError {
    /// A system call failed.
    System {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        cause: io::Error,
    },
    /// A file is malformed.
    Fault {
        /// The file.
        path: PathBuf,
        /// Description of the fault and of the allowed values.
        fault: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::System { path, cause } => write!(f, "{}: {cause}", path.display()),
            StoreError::Fault { path, fault } => write!(f, "{}: {fault}", path.display()),
        }
    }
}

impl error::Error for StoreError {}

/// Lock of the one job server that uses a directory; the system releases it when that process ends.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

/// The directory of a job server.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    /// The program whose jobs it keeps.
    program: String,
}

impl Store {
    /// Opens the directory for the jobs of `program`; creates it, private to the user, if missing.
    ///
    /// # Errors
    /// A system call failed.
    pub fn open(directory: impl Into<PathBuf>, program: &str) -> Result<Store, StoreError> {
        let directory = directory.into();
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|cause| StoreError::System { path: directory.clone(), cause })?;
        Ok(Store { directory, program: program.to_owned() })
    }

    /// Locks the directory against other job servers, until the lock is dropped.
    ///
    /// # Errors
    /// Another job server holds it, or a system call failed.
    pub(crate) fn lock(&self) -> Result<StoreLock, StoreError> {
        let path = self.directory.join("lock");
        let file = File::options().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(|cause| StoreError::System { path: path.clone(), cause })?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StoreLock { _file: file }),
            Err(Errno::WOULDBLOCK) => {
                let fault = "another job server uses this directory; allowed: another --state".to_owned();
                Err(StoreError::Fault { path: self.directory.clone(), fault })
            }
            Err(cause) => Err(StoreError::System { path, cause: cause.into() }),
        }
    }

    /// Returns the path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the file of a job's output.
    pub(crate) fn output(&self, id: u64) -> PathBuf {
        self.directory.join(format!("job-{id}.out"))
    }

    /// Returns the folder of the image of a command.
    pub(crate) fn images(&self, id: u64) -> PathBuf {
        let folder = self.directory.join(format!("job-{id}.images"));
        // CRIU may run in another folder.
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// Returns the mark that identifies the processes of a start, also for a later job server of this directory.
    pub(crate) fn mark(&self, start: StartId) -> String {
        let path = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        let inode = fs::metadata(&path).map_or(0, |metadata| metadata.ino());
        format!("{}.{}.{inode}:{}", start.job, start.start, path.display())
    }

    fn state(&self, id: u64) -> PathBuf {
        self.directory.join(format!("job-{id}.state"))
    }

    fn table(&self) -> PathBuf {
        self.directory.join("jobs.json")
    }

    /// Loads the stored jobs, and the number of the next one.
    pub(crate) fn load(&self) -> Result<(u64, Vec<StoredJob>), StoreError> {
        let path = self.table();
        let mut text = String::new();
        match File::open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok((1, Vec::new())),
            Err(cause) => return Err(StoreError::System { path, cause }),
            Ok(file) => file
                .take(TABLE_BYTES_MAX)
                .read_to_string(&mut text)
                .map_err(|cause| StoreError::System { path: path.clone(), cause })?,
        };
        let fault = |fault: String| StoreError::Fault { path: path.clone(), fault };
        let mut table: StoredTable = serde_json::from_str(&text).map_err(|cause| fault(cause.to_string()))?;
        if table.form != FORM {
            return Err(fault(format!("the format is {}; allowed: {FORM}", table.form)));
        }
        if table.program != self.program {
            return Err(fault(format!(
                "the jobs are of {}; allowed: those of {}",
                table.program, self.program
            )));
        }
        for (index, job) in table.jobs.iter().enumerate() {
            if JobState::of_name(&job.state).is_none() || job.id == 0 || job.id >= table.next {
                let (id, state) = (job.id, &job.state);
                return Err(fault(format!(
                    "jobs[{index}] has number {id} and state {state:?}; allowed: 1 to {} and a state of a job",
                    table.next - 1
                )));
            }
        }
        table.return_environments().map_err(|id| {
            fault(format!("job {id} refers to an environment that does not exist; allowed: one of the table"))
        })?;
        Ok((table.next, table.jobs))
    }

    /// Stores the jobs.
    pub(crate) fn save(&self, next: u64, jobs: Vec<StoredJob>) -> Result<(), StoreError> {
        let program = self.program.clone();
        let mut table = StoredTable { form: FORM, program, next, jobs, environments: Vec::new() };
        table.share_environments();
        let text = serde_json::to_vec_pretty(&table).expect("a table has a form");
        self.replace(&self.table(), &[&text])
    }

    /// Stores the state of a job.
    pub(crate) fn save_state(&self, id: u64, kind: &str, state: &[u8]) -> Result<(), StoreError> {
        let header = StateHeader {
            form: FORM,
            program: self.program.clone(),
            kind: kind.to_owned(),
            bytes: state.len() as u64,
            check: check(state),
        };
        let mut line = serde_json::to_vec(&header).expect("a head has a form");
        line.push(b'\n');
        self.replace(&self.state(id), &[&line, state])
    }

    /// Returns `true` if a state of the job is stored.
    pub(crate) fn has_state(&self, id: u64) -> bool {
        self.state(id).is_file()
    }

    /// Loads the state of a job of this program and `kind`.
    pub(crate) fn load_state(&self, id: u64, kind: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.state(id);
        let mut bytes = fs::read(&path).map_err(|cause| StoreError::System { path: path.clone(), cause })?;
        let fault = |fault: String| StoreError::Fault { path: path.clone(), fault };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let end = end
            .ok_or_else(|| fault("it has no header; allowed: a state written by a job server".to_owned()))?;
        let header: StateHeader =
            serde_json::from_slice(&bytes[..end]).map_err(|cause| fault(cause.to_string()))?;
        let state = bytes.split_off(end + 1);
        let wanted = (FORM, self.program.as_str(), kind);
        if (header.form, header.program.as_str(), header.kind.as_str()) != wanted {
            let StateHeader { form, program, kind: found, .. } = header;
            return Err(fault(format!(
                "it is a state of {found} of {program} in format {form}; allowed: of {kind} of {} in \
                 format {FORM}",
                self.program
            )));
        }
        if (header.bytes, header.check) != (state.len() as u64, check(&state)) {
            return Err(fault(format!(
                "it has {} bytes that do not match their checksum; allowed: the {} that were written",
                state.len(),
                header.bytes
            )));
        }
        Ok(state)
    }

    /// Adds lines to the output of a job.
    pub(crate) fn append(&self, id: u64, lines: &[String]) -> Result<(), StoreError> {
        let path = self.output(id);
        let mut text = lines.join("\n");
        text.push('\n');
        let file = File::options().create(true).append(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|cause| StoreError::System { path, cause })
    }

    /// Returns the last lines of a job's output, at most `lines`, and the number of bytes before them.
    pub(crate) fn tail(&self, id: u64, lines: usize) -> Result<(Vec<String>, u64), StoreError> {
        /// Maximum bytes that are read.
        const TAIL_BYTES: u64 = 1 << 20;
        let path = self.output(id);
        let system = |cause| StoreError::System { path: path.clone(), cause };
        let mut file = match File::open(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            opened => opened.map_err(system)?,
        };
        let len = file.metadata().map_err(system)?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES))).map_err(system)?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes).map_err(system)?;
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.lines().collect();
        let kept = &all[all.len().saturating_sub(lines)..];
        let kept_bytes: usize = kept.iter().map(|line| line.len() + 1).sum();
        Ok((kept.iter().map(|line| (*line).to_owned()).collect(), len.saturating_sub(kept_bytes as u64)))
    }

    /// Removes the files of a job.
    pub(crate) fn remove(&self, id: u64) -> Result<(), StoreError> {
        for path in [self.state(id), self.output(id)] {
            match fs::remove_file(&path) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::System { path, cause });
                }
                _ => {}
            }
        }
        let _ = fs::remove_dir_all(self.images(id)); // it need not be there
        Ok(())
    }

    /// Removes the state of a job that starts anew.
    pub(crate) fn remove_state(&self, id: u64) {
        // They may not exist.
        let _ = fs::remove_file(self.state(id));
        let _ = fs::remove_dir_all(self.images(id));
    }

    fn replace(&self, path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
        let written = path.with_extension("new");
        let write = || {
            let mut file =
                File::options().create(true).write(true).truncate(true).mode(0o600).open(&written)?;
            parts.iter().try_for_each(|part| file.write_all(part))?;
            file.sync_data()?;
            fs::rename(&written, path)
        };
        write().map_err(|cause| {
            let _ = fs::remove_file(&written); // on a full disk others need the room
            StoreError::System { path: path.to_owned(), cause }
        })
    }
}

fn check(bytes: &[u8]) -> u64 {
    // In words of eight bytes, because states may have hundreds of megabytes.
    let (words, rest) = bytes.as_chunks::<8>();
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let hash = words.iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| step(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)))
}
