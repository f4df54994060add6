//! The event log of a run: samples as differences, in frames that are checked.
//!
//! [`LogWriter`] appends, [`LogReader`] finds the frames, [`RecordedRun`] gives a sample at any time. This module
//! defines the format of a frame; `docs/design/telemetry.md` describes it. Invariant: a frame is taken whole or not at
//! all, whatever bytes the file holds.

mod codec;
mod reader;
mod writer;

#[cfg(all(test, not(loom)))]
mod tests;

pub use reader::{LogError, LogReader, RecordedRun};
pub use writer::LogWriter;

/// The first bytes of a log, with the version of its format.
const MAGIC: &[u8; 8] = b"ISLELOG\x04";

/// First bytes of a frame.
const MARK: [u8; 4] = *b"\xf7ISL";

/// Bytes of a frame before its content: mark, kind, length, checksum.
const FRAME_HEADER: usize = 13;

/// Maximum content of a frame in bytes; a sample of 32,768 places takes 8 MB at most.
const CONTENT_MAX: usize = 16 << 20;

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    /// The description of the run.
    Description,
    /// A whole sample.
    Key,
    /// A sample as differences to the one before.
    Difference,
    /// End of the run: success or failure.
    End,
    /// Lines that a place has printed.
    Output,
}

impl FrameKind {
    const ALL: [FrameKind; 5] =
        [FrameKind::Description, FrameKind::Key, FrameKind::Difference, FrameKind::End, FrameKind::Output];

    fn byte(self) -> u8 {
        match self {
            FrameKind::Description => 1,
            FrameKind::Key => 2,
            FrameKind::Difference => 3,
            FrameKind::End => 4,
            FrameKind::Output => 5,
        }
    }

    fn of_byte(byte: u8) -> Option<FrameKind> {
        FrameKind::ALL.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// Returns the checksum of a frame: CRC-32 over its kind, its length and its content.
fn checksum(kind: u8, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&(content.len() as u32).to_le_bytes());
    hasher.update(content);
    hasher.finalize()
}

/// Returns a frame as stored in the file.
fn frame(kind: FrameKind, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME_HEADER + content.len());
    bytes.extend(MARK);
    bytes.push(kind.byte());
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(checksum(kind.byte(), content).to_le_bytes());
    bytes.extend(content);
    bytes
}

/// Returns the kind and the content of the frame at the start of `bytes`, if it is valid.
fn decode_frame(bytes: &[u8]) -> Option<(FrameKind, &[u8])> {
    let rest = bytes.strip_prefix(&MARK)?;
    let (kind, rest) = rest.split_first()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    let content = rest.get(..len).filter(|_| len <= CONTENT_MAX)?;
    let is_sound = checksum(*kind, content) == u32::from_le_bytes(*sum);
    FrameKind::of_byte(*kind).filter(|_| is_sound).map(|kind| (kind, content))
}
