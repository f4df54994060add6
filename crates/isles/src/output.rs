//! The destinations of results: the files that a run writes, checked before the computation, written after it.
//!
//! A computation may take hours, so runs, applications and commands refuse an unwritable destination before it begins.
//! A file gets its name only when it is complete: it is written beside it, under a name that ends in `.part`, and then
//! renamed ([`Destination`]). A [`Claim`] keeps a result apart from files that are read, and from other results. This
//! module formats nothing. Invariants: the check leaves everything as it was; files are compared by identity, not by
//! name.

use crate::launch::Launch;
use crate::machine::Machine;
use crate::settings::ConfigError;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// A file that something else in the same run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A file that is read.
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Name of the file in messages: `the graph`.
        what: &'static str,
    },
    /// A destination of another result.
    Written {
        /// Destination of the other result.
        destination: Destination,
        /// The flag or variable that named it.
        source: String,
    },
}

impl Claim {
    /// Makes the claim of a file that is read; `what` is for example `the graph`.
    pub fn read(path: impl Into<PathBuf>, what: &'static str) -> Claim {
        Claim::Read { path: path.into(), what }
    }

    /// Makes the claim of a result that goes to `destination`, named by the flag or variable `source`.
    pub fn written(destination: &Destination, source: &str) -> Claim {
        Claim::Written { destination: destination.clone(), source: source.to_owned() }
    }

    /// Returns the path of the other result's file, or `None` if this is another kind of claim.
    pub fn written_file(&self) -> Option<&Path> {
        match self {
            Claim::Written { destination: Destination::File { path, .. }, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns what is allowed instead if a result at `wanted` would conflict with this claim.
    pub(crate) fn refusal(&self, wanted: &Destination) -> Option<String> {
        match (self, wanted) {
            (Claim::Read { path, what }, Destination::File { path: wanted, .. }) => (path.exists()
                && is_one_file(path, wanted))
            .then(|| format!("a file other than {what}, because that is read")),
            (Claim::Read { .. }, Destination::Standard) => None,
            (Claim::Written { destination, source }, wanted) => {
                destination.is_same_as(wanted).then(|| format!("a file other than that of {source}"))
            }
        }
    }
}

/// A result that could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// Destination of the result: a path, or `standard output`.
    pub path: String,
    /// Error of the system.
    pub cause: io::Error,
}

impl WriteError {
    /// Makes the error of standard output that could not be written.
    pub fn standard(cause: io::Error) -> WriteError {
        WriteError { path: STANDARD_OUTPUT.to_owned(), cause }
    }

    /// Returns `true` if the reader of standard output has closed it: the program then ends quietly, with exit code
    /// [`EXIT_CLOSED_PIPE`].
    pub fn is_closed_output(&self) -> bool {
        self.path == STANDARD_OUTPUT && self.cause.kind() == io::ErrorKind::BrokenPipe
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path, self.cause)
    }
}

impl std::error::Error for WriteError {}

/// Exit code of a program whose standard output was closed by its reader: 128 + 13, as shells report for a process that
/// SIGPIPE ended.
pub const EXIT_CLOSED_PIPE: u8 = 141;

/// Name of standard output in messages.
const STANDARD_OUTPUT: &str = "standard output";

/// The path that means standard output.
const STANDARD: &str = "-";

/// Destination of one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Standard,
    /// A file that exists or can be created, a pipe or a device.
    File {
        /// Path of the file, which may not exist yet.
        path: PathBuf,
        /// `true` if its folder may be created.
        with_folder: bool,
    },
}

impl Destination {
    /// Checks that `wanted`, the value of `source`, can be written; `-` is standard output, `None` is `default`, whose
    /// folder is created if missing. The destination must not conflict with `claims`, which include the files that are
    /// read.
    ///
    /// # Errors
    /// The destination cannot be written, or conflicts with a claim. The error has the source, the value and what is
    /// allowed.
    pub fn check(
        source: &str,
        wanted: Option<&str>,
        default: &Path,
        claims: &[Claim],
    ) -> Result<Destination, ConfigError> {
        let destination = match wanted {
            Some(wanted) => Destination::at(wanted),
            None => Destination::File { path: default.to_owned(), with_folder: true },
        };
        let refused = |allowed: String| match wanted {
            Some(value) => ConfigError::new(source, value, allowed),
            None => {
                let source = format!("{source} is not given, and the default");
                ConfigError::new(&source, &default.display().to_string(), allowed)
            }
        };
        if let Some(allowed) = claims.iter().find_map(|claim| claim.refusal(&destination)) {
            return Err(refused(allowed));
        }
        let unwritable = |cause| refused(format!("- or a file that can be written ({cause})"));
        destination.try_out().map(|()| destination).map_err(unwritable)
    }

    /// Returns the destination named `wanted` without checking it.
    pub(crate) fn at(wanted: &str) -> Destination {
        match wanted {
            STANDARD => Destination::Standard,
            path => Destination::File { path: PathBuf::from(path), with_folder: false },
        }
    }

    /// Checks that the destination can be written or created.
    pub(crate) fn try_out(&self) -> io::Result<()> {
        let Destination::File { path, with_folder } = self else { return Ok(()) };
        match fs::metadata(path) {
            // Opening and closing a pipe would end it for its reader, so only files and devices are tried.
            Ok(found) if is_pipe(&found) => Ok(()),
            Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.file_name().is_some() => {
                try_to_make(path, *with_folder)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns `true` for standard output.
    pub fn is_standard(&self) -> bool {
        matches!(self, Destination::Standard)
    }

    /// Returns `true` if outputs written to both would overwrite or interleave.
    fn is_same_as(&self, other: &Destination) -> bool {
        match (self, other) {
            (Destination::Standard, Destination::Standard) => true,
            (Destination::File { path: one, .. }, Destination::File { path: other, .. }) => {
                is_one_file(one, other)
            }
            _ => false,
        }
    }

    /// Writes the result and returns its path, or `None` for standard output.
    ///
    /// # Errors
    /// [`WriteError`]; a file then keeps its former content.
    pub fn write(
        &self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Option<PathBuf>, WriteError> {
        let Destination::File { path, .. } = self else {
            let written = write_to_standard(content).map(|()| None);
            return written.map_err(|cause| self.unwritten(cause));
        };
        let written = self.draft().and_then(|(file, draft)| {
            fill(file, content)?;
            draft.finish()
        });
        written.map(|()| Some(path.clone())).map_err(|cause| self.unwritten(cause))
    }

    /// Makes the error for a failed write to this destination.
    pub(crate) fn unwritten(&self, cause: io::Error) -> WriteError {
        let path = match self {
            Destination::Standard => STANDARD_OUTPUT.to_owned(),
            Destination::File { path, .. } => path.display().to_string(),
        };
        WriteError { path, cause }
    }

    /// Opens a file to write into, with the [`AtomicFile`] that gives it its name when it is complete.
    ///
    /// # Errors
    /// The file cannot be created, or the destination is standard output.
    pub(crate) fn draft(&self) -> io::Result<(File, AtomicFile)> {
        let Destination::File { path, with_folder } = self else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if let Some(folder) = path.parent().filter(|_| *with_folder) {
            fs::create_dir_all(folder)?;
        }
        let found = fs::metadata(path).ok();
        if found.as_ref().is_none_or(fs::Metadata::is_file) {
            let path = whole(path);
            let beside = beside(&path, "part");
            // A user who may write a file may not be allowed to make another beside it.
            if let Ok(file) = File::create(&beside) {
                if let Some(found) = found {
                    file.set_permissions(found.permissions())?;
                }
                return Ok((file, AtomicFile { rename: Some((beside, path)) }));
            }
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        Ok((file, AtomicFile { rename: None }))
    }
}

/// A file being written under a temporary name; dropped before [`AtomicFile::finish`], it is removed.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    /// Temporary and final path.
    rename: Option<(PathBuf, PathBuf)>,
}

impl AtomicFile {
    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let Some((beside, path)) = self.rename.take() else { return Ok(()) };
        fs::rename(&beside, path).inspect_err(|_| _ = fs::remove_file(&beside))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some((beside, _)) = &self.rename {
            let _ = fs::remove_file(beside); // nothing more can be done
        }
    }
}

/// Writes `content` to standard output and flushes it.
///
/// # Errors
/// The error of `content` or of the stream. [`WriteError::is_closed_output`] distinguishes a reader that has closed the
/// pipe.
pub fn write_to_standard(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    content(&mut out).and_then(|()| out.flush())
}

/// Writes the content and flushes it, because a buffer ignores errors when it is dropped.
fn fill(file: File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.flush()
}

/// Returns `true` if both paths name one file, present or future; `false` for pipes and devices, which keep nothing.
pub(crate) fn is_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            one.is_file() && other.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
        }
        (Err(_), Err(_)) => whole(one) == whole(other),
        _ => false,
    }
}

fn is_pipe(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_fifo() || found.file_type().is_socket()
}

/// Returns a name beside `path` that no other process uses.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.{ending}", std::process::id()));
    PathBuf::from(name)
}

/// Creates a file with an unused name beside `path` and removes it again; if the folder is missing and may be created,
/// beside the folder.
fn try_to_make(path: &Path, with_folder: bool) -> io::Result<()> {
    let missing = path.parent().filter(|folder| with_folder && !folder.exists());
    let name = beside(missing.unwrap_or(path), "try");
    File::create(&name)?;
    fs::remove_file(&name)
}

/// Returns the canonical path; for a file that does not exist yet, the canonical folder with its name.
fn whole(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let beside = || Ok::<_, io::Error>(folder.canonicalize()?.join(path.file_name().unwrap_or_default()));
    path.canonicalize().or_else(|_| beside()).unwrap_or_else(|_| path.to_owned())
}

/// A kind of output of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Export {
    Summary,
    Links,
    Traffic,
    Heat,
    Trace,
    Folded,
    Joules,
    Tape,
}

/// A requested output of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExportRequest {
    pub(crate) export: Export,
    /// The variable or flag that requested it.
    pub(crate) source: String,
    /// The file, or `-`.
    pub(crate) path: String,
}

impl ExportRequest {
    pub(crate) fn refusal(&self, allowed: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.source, &self.path, allowed)
    }

    pub(crate) fn destination(&self) -> Destination {
        Destination::at(&self.path)
    }

    fn check(&self, claims: &[Claim]) -> Result<(), ConfigError> {
        let binary = matches!(self.export, Export::Trace | Export::Tape);
        let destination = self.destination();
        // The program's own text would end up in the middle of it.
        if binary && destination.is_standard() {
            return Err(self.refusal("a file, not -, because it is binary"));
        }
        if let Some(allowed) = claims.iter().find_map(|claim| claim.refusal(&destination)) {
            return Err(self.refusal(allowed));
        }
        let standard = if binary { "" } else { "- or " };
        let allowed = |cause| format!("{standard}a file that can be written ({cause})");
        destination.try_out().map_err(|cause| self.refusal(allowed(cause)))
    }
}

/// Checks that every output that `launch` requests can be written by a run on `machine`, and that none conflicts with
/// another output or with a file that is read.
pub(crate) fn check(launch: &Launch, machine: Machine) -> Result<(), ConfigError> {
    let mut claims = launch.read_on(machine);
    for one in &launch.exports {
        machine.driver().check_export(launch, one)?;
        one.check(&claims)?;
        claims.push(Claim::written(&one.destination(), &one.source));
    }
    Ok(())
}
