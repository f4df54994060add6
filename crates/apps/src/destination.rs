//! Where a result goes: checked before the computation, written after it.
//!
//! A computation may take hours, so what cannot be written is refused before it begins, by applications and commands
//! alike. Formats nothing. Invariant: the check leaves everything as it was, whatever becomes of the run; a file is
//! emptied only when its new contents are there.

use crate::console;
use crate::registry::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where one result goes.
#[derive(Debug)]
pub enum Destination {
    /// Standard output.
    Standard,
    /// A plain file, which can be written or made.
    File {
        /// Where it is or will be.
        path: PathBuf,
        /// Whether its folder may be made.
        with_folder: bool,
    },
    /// A pipe or a device. Held open, because a pipe that is closed has ended for its reader.
    Held {
        /// What it is called.
        path: PathBuf,
        /// Open for writing.
        file: File,
    },
}

impl Destination {
    /// Checks that `wanted`, the value of `flag`, can be written; `-` is standard output, nothing is `default`, whose
    /// folder may be missing.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the flag, the value and what is allowed.
    pub fn check(flag: &str, wanted: Option<&str>, default: &Path) -> Result<Destination, Failure> {
        if wanted == Some("-") {
            return Ok(Destination::Standard);
        }
        let (path, with_folder) = (wanted.map_or(default, Path::new).to_owned(), wanted.is_none());
        let opened = OpenOptions::new().write(true).open(&path);
        let checked = match opened.and_then(|file| Ok((file.metadata()?.is_file(), file))) {
            Ok((true, _)) => Ok(Destination::File { path, with_folder }),
            Ok((false, file)) => Ok(Destination::Held { path, file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.file_name().is_some() => {
                try_to_make(&path, with_folder).map(|()| Destination::File { path, with_folder })
            }
            Err(error) => Err(error),
        };
        checked.map_err(|cause| {
            let value = match wanted {
                Some(value) => format!("{value:?}"),
                None => format!("not given, and the default is {:?}", default.display().to_string()),
            };
            Failure::Usage(format!("{flag} is {value}; allowed: - or a file that can be written ({cause})"))
        })
    }

    /// Whether it is standard output.
    pub fn is_standard(&self) -> bool {
        matches!(self, Destination::Standard)
    }

    /// Whether what is written to one would be lost or torn in the other.
    pub fn is_same_as(&self, other: &Destination) -> bool {
        match (self, other) {
            (Destination::Standard, Destination::Standard) => true,
            (Destination::File { path: one, .. }, Destination::File { path: other, .. }) => {
                whole(one) == whole(other)
            }
            _ => false,
        }
    }

    /// Writes the result; the path, unless it went to standard output.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn write(
        self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Option<PathBuf>, Failure> {
        let (path, written) = match self {
            Destination::Standard => {
                return console::write_to_stdout(content).map(|()| None).map_err(Failure::stdout);
            }
            Destination::File { path, with_folder } => {
                let made = make(&path, with_folder);
                (path, made.and_then(|file| fill(file, content)))
            }
            Destination::Held { path, file } => (path, fill(file, content)),
        };
        match written {
            Ok(()) => Ok(Some(path)),
            Err(cause) => Err(Failure::Output { path: path.display().to_string(), cause }),
        }
    }
}

/// Writes the content, to its last byte: what a buffer still holds when it is dropped fails unseen.
fn fill(file: File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.flush()
}

/// Makes a file with a name that nobody else uses where `path` will be, and takes it away again; where the folder
/// may be made and is not there, beside the folder.
fn try_to_make(path: &Path, with_folder: bool) -> io::Result<()> {
    let missing = path.parent().filter(|folder| with_folder && !folder.exists());
    let mut name = missing.unwrap_or(path).as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    File::create(&name)?;
    fs::remove_file(&name)
}

/// Makes the file; with its folder, where that may be made.
fn make(path: &Path, with_folder: bool) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|_| with_folder) {
        fs::create_dir_all(folder)?;
    }
    File::create(path)
}

/// The path without links and dots; of a file that is not there yet, as far as its folder is.
fn whole(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let beside = || Ok::<_, io::Error>(folder.canonicalize()?.join(path.file_name().unwrap_or_default()));
    path.canonicalize().or_else(|_| beside()).unwrap_or_else(|_| path.to_owned())
}
