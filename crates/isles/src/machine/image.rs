//! The identity of the running program, for the handshake between processes of one host.
//!
//! It is derived from the metadata of the program's file, not from its bytes: each place needs it at its start, and a
//! digest of a large program at every place would take longer than many runs. Invariant: the file of a running program
//! cannot be written, so one file with one time of change holds one program. Programs of different hosts cannot be
//! compared this way, because they are different files; comparing them needs a digest of the bytes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fmt, fs, io};

/// Returns an identity of the running program's file.
///
/// It differs from that of every other file of this host, and from that of the same file before a change. It detects
/// other builds, not forgeries: places trust each other as processes of one user.
///
/// [`PROGRAM`] still names the running program after its file has been replaced or deleted.
///
/// # Errors
/// The system does not provide the program's file.
pub(crate) fn identity() -> Result<[u8; 16], UnknownProgram> {
    identity_of(Path::new(PROGRAM)).map_err(UnknownProgram)
}

/// The system's name for the running program's file.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// The system does not provide the file of the running program.
#[derive(Debug)]
pub(crate) struct UnknownProgram(io::Error);

impl fmt::Display for UnknownProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownProgram(cause) = self;
        write!(f, "cannot start other places from {PROGRAM}: {cause}; mount /proc, or choose machine threads")
    }
}

/// Returns a digest of the file's device, inode, length and time of change.
fn identity_of(file: &Path) -> io::Result<[u8; 16]> {
    let file = fs::metadata(file)?;
    let words = [file.dev(), file.ino(), file.len(), file.mtime() as u64, file.mtime_nsec() as u64];
    Ok(digest_words(words))
}

/// Returns a 128-bit digest of the words, from two lanes in the style of FNV-1a. It detects accidents, not forgeries.
pub(crate) fn digest_words(words: impl IntoIterator<Item = u64>) -> [u8; 16] {
    let mut lanes = [0xcbf2_9ce4_8422_2325_u64, 0x6c62_272e_07bb_0142];
    for word in words {
        lanes[0] = (lanes[0] ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        lanes[1] = (lanes[1] ^ word.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&lanes[0].to_le_bytes());
    digest[8..].copy_from_slice(&lanes[1].to_le_bytes());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    /// Returns the identity of a file at `path` of `len` bytes, changed last at `changed`.
    fn identity_at(path: &Path, len: u64, changed: SystemTime) -> [u8; 16] {
        let file = File::options().create(true).append(true).open(path).unwrap();
        file.set_len(len).unwrap();
        file.set_modified(changed).unwrap();
        identity_of(path).unwrap()
    }

    #[test]
    fn a_file_that_is_another_one_or_has_changed_is_another_program() {
        let folder = std::env::temp_dir().join(format!("isles-image-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (now, old) = (SystemTime::now(), SystemTime::now() - Duration::from_millis(1));
        let first = identity_at(&folder.join("first"), 100, now);
        assert_eq!(first, identity_at(&folder.join("first"), 100, now));
        let others = [("second", 100, now), ("first", 101, now), ("first", 100, old)];
        let identities: Vec<_> = others
            .iter()
            .map(|(name, len, changed)| identity_at(&folder.join(name), *len, *changed))
            .collect();
        fs::remove_dir_all(&folder).unwrap();
        assert!(identities.iter().all(|other| *other != first), "{first:?} {identities:?}");
    }

    #[test]
    fn a_program_is_known_without_being_read() {
        // A sparse file of a tebibyte: a digest of it would not end while anybody waits.
        let path = std::env::temp_dir().join(format!("isles-image-large-{}", std::process::id()));
        let identity = identity_at(&path, 1 << 40, SystemTime::now());
        fs::remove_file(&path).unwrap();
        assert_ne!(identity, [0; 16]);
    }
}
