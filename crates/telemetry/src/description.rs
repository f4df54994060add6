//! The description of a run, known before the run does anything, and unchanged after.
//!
//! It is sent over the observers' socket and is the first frame of the log. Invariant: its encoding is shorter than
//! [`FACTS_BYTES_MAX`], because long arguments are cut.

use serde::{Deserialize, Serialize};

/// Maximum size of an encoded description, in bytes: one message over the socket.
pub(crate) const FACTS_BYTES_MAX: usize = 32 << 10;

/// Maximum bytes of the program and its arguments together that are kept.
const ARGUMENTS_BYTES_MAX: usize = 8 << 10;

/// Mesh of the cores of a modelled chip: tiles in rows, from the lower left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshDescription {
    /// Tiles in a row.
    pub columns: u32,
    /// Rows of tiles.
    pub rows: u32,
    /// Cores of a tile.
    pub cores_per_tile: u32,
    /// The chip's name.
    pub name: String,
}

/// Description of a run, known from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDescription {
    /// The version of Isles.
    pub version: String,
    /// The program as it was started.
    pub program: String,
    /// Its arguments, cut where they are very long.
    pub arguments: Vec<String>,
    /// The name of the machine.
    pub machine: String,
    /// Time at which the run began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Number of places.
    pub places: u32,
    /// The process of the first place.
    pub process: u32,
    /// The host of each place, if they may differ.
    pub host_of: Option<Vec<String>>,
    /// The mesh of a modelled chip.
    pub mesh: Option<MeshDescription>,
    /// The core of each place on a modelled chip; empty if each place runs on the core of its own number.
    pub core_of: Option<Vec<u32>>,
}

impl RunDescription {
    /// Returns `true` if its places are cores of a modelled chip, whose clocks, voltages and power are known.
    pub fn is_modelled(&self) -> bool {
        self.machine.starts_with("chip:")
    }

    /// Records the program and its arguments as given, cut if they are very long.
    pub fn with_command(mut self, words: impl IntoIterator<Item = String>) -> RunDescription {
        let mut left = ARGUMENTS_BYTES_MAX;
        let mut kept = words.into_iter().map_while(|mut word| {
            if left == 0 {
                return None;
            }
            let end = (0..=left.min(word.len())).rev().find(|end| word.is_char_boundary(*end)).unwrap_or(0);
            word.truncate(end);
            left = left.saturating_sub(word.len().max(1));
            Some(word)
        });
        self.program = kept.next().unwrap_or_default();
        self.arguments = kept.collect();
        self
    }

    /// Encodes it. Lists that would make it too long for a message are left out.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let encoded = |facts: &RunDescription| postcard::to_allocvec(facts).unwrap_or_default();
        let bytes = encoded(self);
        if bytes.len() <= FACTS_BYTES_MAX {
            return bytes;
        }
        encoded(&RunDescription { host_of: None, core_of: None, ..self.clone() })
    }

    /// Decodes the output of [`RunDescription::encode`]; `None` for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<RunDescription> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_long_arguments_are_cut_at_a_character() {
        let words = ["prog".to_owned(), "ä".repeat(10_000), "lost".to_owned()];
        let facts = RunDescription::default().with_command(words);
        assert_eq!(facts.program, "prog");
        assert_eq!(facts.arguments[0].chars().count(), (ARGUMENTS_BYTES_MAX - 4) / 2);
        assert!(facts.encode().len() < FACTS_BYTES_MAX);
        assert_eq!(RunDescription::decode(&facts.encode()), Some(facts));
    }

    #[test]
    fn lists_that_are_too_long_for_a_message_are_left_out() {
        let hosts = (0..4000).map(|host| format!("host-{host}")).collect();
        let facts = RunDescription { host_of: Some(hosts), places: 4000, ..RunDescription::default() };
        let decoded = RunDescription::decode(&facts.encode()).unwrap();
        assert_eq!((decoded.host_of, decoded.places), (None, 4000));
        assert_eq!(RunDescription::decode(&[255; 40]), None);
    }
}
