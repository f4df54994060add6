//! The private memory of one core: what its lines hold, and which of them are in the core's caches.

use super::{LINE_BYTES, Line};
use crate::cache::Hierarchy;
use crate::chip::Caches;
use std::collections::BTreeMap;

/// The memory of one core.
pub struct Private {
    lines: BTreeMap<u64, Line>,
    /// Its caches, which have tags only.
    pub caches: Hierarchy,
}

impl Private {
    pub fn new(caches: &Caches, seed: u64) -> Private {
        Private { lines: BTreeMap::new(), caches: Hierarchy::new(caches, seed) }
    }

    /// The content of a line.
    pub fn line(&self, line: u64) -> Line {
        self.lines.get(&line).copied().unwrap_or([0; LINE_BYTES])
    }

    /// Sets the content of a line.
    pub fn set_line(&mut self, line: u64, content: Line) {
        self.lines.insert(line, content);
    }
}
