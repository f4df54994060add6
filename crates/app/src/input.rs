//! Input files, each read once, to the end or to a stated bound.
//!
//! A file may be a pipe, which can be read once, or a device, which is endless. So a file is opened once, read from its
//! start, and refused if it exceeds the bound. It knows no format. Invariant: memory stays within the bound for any
//! file.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The reason why a file cannot be read.
#[derive(Debug)]
pub enum ReadFault {
    /// A system call failed.
    Unreadable(io::Error),
    /// It exceeds the bound.
    TooLong {
        /// The bound in bytes.
        limit: u64,
    },
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadFault::Unreadable(cause) => cause.fmt(f),
            ReadFault::TooLong { limit } => {
                write!(f, "it has more than {0} MiB; allowed: at most {0} MiB", limit >> 20)
            }
        }
    }
}

impl std::error::Error for ReadFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadFault::Unreadable(cause) => Some(cause),
            ReadFault::TooLong { .. } => None,
        }
    }
}

/// Reads the file `path` from its start to its end, at most `limit` bytes.
///
/// # Errors
/// [`ReadFault`]: it cannot be read, or has more.
pub fn bytes(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, ReadFault> {
    bytes_of(File::open(path).map_err(ReadFault::Unreadable)?, limit)
}

/// Reads `source` to its end, at most `limit` bytes.
///
/// # Errors
/// As [`bytes`].
pub fn bytes_of(source: impl Read, limit: u64) -> Result<Vec<u8>, ReadFault> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadFault::Unreadable)?;
    if bytes.len() as u64 > limit { Err(ReadFault::TooLong { limit }) } else { Ok(bytes) }
}

/// Decodes `bytes` as UTF-8, or as UTF-16 with a byte order mark; every line ends in one line feed.
///
/// The mark is removed. Carriage returns, alone or before a line feed, end a line. Invalid sequences become U+FFFD,
/// which a reader refuses where it matters.
pub fn text(bytes: &[u8]) -> String {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes.chunks(2).map(|pair| unit([pair[0], *pair.last().unwrap_or(&0)])).collect();
        String::from_utf16_lossy(&units)
    };
    let text = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_without_an_end_is_given_up_at_the_bound_that_is_said() {
        assert_eq!(bytes_of(&b"abc"[..], 3).unwrap(), b"abc");
        let fault = bytes_of(io::repeat(0), 2 << 20).unwrap_err();
        assert_eq!(fault.to_string(), "it has more than 2 MiB; allowed: at most 2 MiB");
    }

    #[test]
    fn marks_and_ends_of_lines_of_other_systems_are_no_part_of_a_text() {
        let utf16 = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "\u{feff}H \u{e5}\r\n0".encode_utf16().flat_map(unit).collect()
        };
        assert_eq!(text(b"\xef\xbb\xbfH\r\nO\rC\n"), "H\nO\nC\n");
        assert_eq!(text(&utf16(u16::to_le_bytes)), "H \u{e5}\n0");
        assert_eq!(text(&utf16(u16::to_be_bytes)), "H \u{e5}\n0");
        assert_eq!(text(b"\xc5 5"), "\u{fffd} 5");
    }
}
