//! Words of shared memory apart from the segment, for counters that observers read.
//!
//! They are a second anonymous file, so that an observer never sees messages. It is sealed against a change of its
//! size. This module does not know the meaning of the words. Invariant: an observer gets [`SharedWords::for_reading`],
//! which cannot be mapped or opened for writing again.

use crate::layout::PAGE_BYTES;
use crate::segment::{Mapping, MemoryError, SegmentError};
use rustix::fs::{self, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Bytes of a word.
const WORD_BYTES: u64 = size_of::<AtomicU64>() as u64;

/// Words of 64 bits that places share, and that observers can read; clones are the same memory.
#[derive(Clone, Debug)]
pub struct SharedWords(Arc<Mapping>);

impl SharedWords {
    /// Creates words, all zero. Pages are allocated when they are first touched.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create(words: u64) -> Result<SharedWords, MemoryError> {
        let bytes = words * WORD_BYTES;
        Ok(SharedWords(Arc::new(Mapping::create(bytes, bytes.min(PAGE_BYTES))?)))
    }

    /// Maps the words behind an inherited descriptor.
    ///
    /// # Errors
    /// `file` is no sealed memory file, or cannot be mapped.
    pub(crate) fn attach(file: OwnedFd) -> Result<SharedWords, SegmentError> {
        let bad = SegmentError::NotASegment;
        let seals =
            fs::fcntl_get_seals(&file).map_err(|_| bad("the counters are not a sealed memory file"))?;
        if !seals.contains(SealFlags::SHRINK | SealFlags::SEAL) {
            return Err(bad("the memory file of the counters is not sealed"));
        }
        let size = fs::fstat(&file).map_err(|_| bad("the counters have no size"))?.st_size as u64;
        Ok(SharedWords(Arc::new(Mapping::map(file, size)?)))
    }

    /// Returns all words.
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }

    /// Opens the file for reading only, as an observer gets it.
    ///
    /// # Errors
    /// The error of the system, for example if `/proc` is not mounted.
    pub fn for_reading(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file().as_raw_fd()))
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.0.file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_stored_is_read_and_a_reader_cannot_write() {
        let words = SharedWords::create(1000).unwrap();
        words.words()[999].store(7, Ordering::Relaxed);
        let reading = words.for_reading().unwrap();
        let mut bytes = [0; 8];
        reading.read_exact_at(&mut bytes, 999 * WORD_BYTES).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 7);
        assert!(reading.write_at(&bytes, 0).is_err());
        assert!(Mapping::map(reading.into(), 8000).is_err(), "a mapping for writing is refused");
    }

    #[test]
    fn the_same_words_are_attached_and_other_files_are_not() {
        let words = SharedWords::create(8).unwrap();
        let again = SharedWords::attach(words.file().try_clone_to_owned().unwrap()).unwrap();
        words.words()[3].store(9, Ordering::Relaxed);
        assert_eq!(again.words()[3].load(Ordering::Relaxed), 9);
        assert_eq!(again.words().len(), 8);
        let other = File::open("/dev/null").unwrap();
        assert!(SharedWords::attach(other.into()).is_err());
    }
}
