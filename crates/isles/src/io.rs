//! Files that a place reads and writes, which on a modelled chip come from a server that all cores share.
//!
//! The file is that of the host, and its bytes are the same on any machine; what the access takes says the model. It
//! knows no chip. Invariant: an access that fails is not told to anybody.

use isles_transport::FileAccess;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

pub use isles_transport_shm::MappedFile;

/// Reads a whole file.
///
/// On a modelled chip the clock of the place moves on to when the server of files has sent it: later where that is
/// busy, and sooner once the file was read or written before. Outside of a place it takes what it takes.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path.as_ref())?;
    report_access(path.as_ref(), bytes.len(), false);
    Ok(bytes)
}

/// [`read`], of a text.
///
/// # Errors
/// The file cannot be read, or is no UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let text = std::fs::read_to_string(path.as_ref())?;
    report_access(path.as_ref(), text.len(), false);
    Ok(text)
}

/// Writes a whole file, in the place of one that is there; for its time see [`read`].
///
/// # Errors
/// The file cannot be written.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    std::fs::write(path.as_ref(), bytes.as_ref())?;
    report_access(path.as_ref(), bytes.as_ref().len(), true);
    Ok(())
}

/// Reads a part of a file: `length` bytes from `offset` on, or fewer if the file ends before.
///
/// On a modelled chip it takes as long as [`read`] of `bytes` bytes; the whole file is warm from then on.
///
/// # Errors
/// The file cannot be read.
pub fn read_part(path: impl AsRef<Path>, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path.as_ref())?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(length as u64).read_to_end(&mut bytes)?;
    report_access(path.as_ref(), bytes.len(), false);
    Ok(bytes)
}

/// Records that `bytes` bytes of a file were read in another way, for example through a mapping.
///
/// On a modelled chip it takes what [`read_part`] takes; the file need not be there. On other machines it does nothing.
pub fn note_read(path: impl AsRef<Path>, bytes: usize) {
    report_access(path.as_ref(), bytes, false);
}

/// Maps a whole file for reading, which takes no time until its bytes are used.
///
/// On a modelled chip, [`note_read`] charges for the bytes that are used.
///
/// # Errors
/// The file cannot be mapped; see [`MappedFile::open`].
pub fn map(path: impl AsRef<Path>) -> io::Result<MappedFile> {
    MappedFile::open(path)
}

fn report_access(path: &Path, bytes: usize, is_write: bool) {
    // With fixed keys, so the same name is the same number in each run.
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let access = FileAccess { file: hasher.finish(), bytes: bytes as u64, is_write };
    isles_runtime::access_file(&access);
}
