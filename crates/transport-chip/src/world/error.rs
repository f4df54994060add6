//! Why a chip cannot carry so many places.
//!
//! A value for whoever asks for a world; what can be done about it is not known here. Invariant: each variant names
//! what the chip has or lacks, and its message says so in one line.

use std::fmt;

/// Why so many places cannot run on a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// There are not so many cores.
    Cores {
        /// How many there are.
        cores: u32,
    },
    /// The message buffers cannot be divided among so many places.
    Buffer {
        /// Lines of the buffer of one core.
        lines: u32,
        /// Lines that would be needed.
        needed: u32,
    },
    /// The protocol is one of message buffers, and the cores have none.
    NoBuffers,
    /// The protocol is one of packets, and the hardware carries none.
    NoPackets,
    /// An asynchronous broadcast is asked for, and the protocol has none.
    NoRelays,
    /// The same on a chip without an interrupt controller.
    NoInterrupts,
    /// The chip's file does not say what the protocol needs to know.
    Unknown {
        /// The key of its presets.
        key: &'static str,
    },
}

impl WorldError {
    /// The first of these keys whose value is not known, as an error.
    pub(crate) fn of_missing(keys: &[(&'static str, bool)]) -> Result<(), WorldError> {
        let missing = keys.iter().find(|(_, is_known)| !is_known);
        missing.map_or(Ok(()), |(key, _)| Err(WorldError::Unknown { key }))
    }
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorldError::Cores { cores } => write!(f, "the chip has {cores} cores"),
            WorldError::Buffer { lines, needed } => {
                let plural = if *lines == 1 { "line" } else { "lines" };
                write!(f, "the message buffer of a core has {lines} {plural}, and {needed} are needed")
            }
            WorldError::NoBuffers => f.write_str("the cores have no message buffers"),
            WorldError::NoPackets => f.write_str("the hardware carries no packets"),
            WorldError::NoRelays => f.write_str("asynchronous broadcasts are of the protocol doorbell"),
            WorldError::NoInterrupts => f.write_str("asynchronous broadcasts need an interrupt controller"),
            WorldError::Unknown { key } => write!(f, "the chip's file does not give {key}"),
        }
    }
}

impl std::error::Error for WorldError {}
