//! Files that a place reads and writes. On a modelled chip a file server shared by all cores serves them.
//!
//! The file is the host's, so its bytes are the same on any machine; a modelled chip adds only the time of the access.
//! This module knows no chip. Invariant: a failed access is not reported to the model.

use isles_transport::FileAccess;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

pub use isles_transport_shm::MappedFile;

/// Reads a whole file.
///
/// On a modelled chip the place's clock advances to the time at which the file server has sent the bytes: later if the
/// server is busy, earlier if the file was read or written before. Outside of a place, no time is modelled.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path.as_ref())?;
    report_access(path.as_ref(), bytes.len(), false);
    Ok(bytes)
}

/// Reads a whole file as UTF-8; for its time see [`read`].
///
/// # Errors
/// The file cannot be read or is not valid UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let text = std::fs::read_to_string(path.as_ref())?;
    report_access(path.as_ref(), text.len(), false);
    Ok(text)
}

/// Writes a whole file, replacing an existing one; for its time see [`read`].
///
/// # Errors
/// The file cannot be written.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    std::fs::write(path.as_ref(), bytes.as_ref())?;
    report_access(path.as_ref(), bytes.as_ref().len(), true);
    Ok(())
}

/// Reads `length` bytes of a file from `offset` on, or fewer if the file ends earlier.
///
/// On a modelled chip it takes as long as a [`read`] of that many bytes; the whole file then counts as read before.
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
/// On a modelled chip it takes as long as [`read_part`]; the file need not exist. On other machines it does nothing.
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
    // Its keys are fixed, so a name has the same number in each run.
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let access = FileAccess { file: hasher.finish(), bytes: bytes as u64, is_write };
    isles_runtime::access_file(&access);
}
