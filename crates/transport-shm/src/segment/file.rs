//! A file that is mapped for reading.
//!
//! One of the few files with unsafe code. It knows bytes, not their meaning. Invariant: the mapping has the length that
//! the file had when it was opened.

use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::ptr::NonNull;

/// The bytes of a file, mapped for reading until the value is dropped.
///
/// A page is read when it is first used, and pages are shared with all processes that map the file. The file must not
/// change while it is mapped: if a program truncates it, the use of a page behind its end ends the process by `SIGBUS`.
#[derive(Debug)]
pub struct MappedFile {
    /// Start of the mapping; dangling if the file is empty.
    start: NonNull<u8>,
    len: usize,
}

// NEED: the pointer keeps the type from being sent between threads by itself.
// SOUND: the mapping belongs to no thread and is never written.
unsafe impl Send for MappedFile {}
// NEED: as above.
// SOUND: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps a whole file.
    ///
    /// # Errors
    /// The file cannot be opened or is not a regular file, or there is no address space for it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let len = usize::try_from(about.len()).map_err(|_| Errno::NOMEM)?;
        if len == 0 {
            return Ok(MappedFile { start: NonNull::dangling(), len });
        }
        // NEED: mapping a file has no safe form.
        // SOUND: the kernel chooses an address where nothing lies, and the mapping is removed only by `drop`.
        let start =
            unsafe { mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, &file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(MappedFile { start, len })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // NEED: a view of mapped memory.
        // SOUND: `len` bytes are mapped as long as `self`; the contract of the type says that nobody changes them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.len > 0 {
            // NEED: unmapping has no safe form.
            // SOUND: the mapping is whole, and all views of it have ended with their borrows.
            let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_has_the_bytes_of_the_file() {
        let path = std::env::temp_dir().join(format!("isles-mapped-{}", std::process::id()));
        for bytes in [Vec::new(), vec![7], (0..20_000_u32).flat_map(u32::to_le_bytes).collect()] {
            std::fs::write(&path, &bytes).unwrap();
            let mapped = MappedFile::open(&path).unwrap();
            let gone = std::fs::remove_file(&path); // the mapping stays
            assert_eq!(*mapped, *bytes);
            gone.unwrap();
        }
        assert_eq!(MappedFile::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(MappedFile::open(std::env::temp_dir()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
