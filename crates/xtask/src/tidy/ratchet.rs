//! The list of functions and files that were too long when the limits came: they may only shrink.
//!
//! The list is `crates/xtask/ratchet.toml`. An entry that is longer than what it stands for is refused as
//! well, so the list follows each shortening and ends empty.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeMap;

/// Where the list lies.
pub const PATH: &str = "crates/xtask/ratchet.toml";

/// Lengths that are tolerated, by name.
#[derive(Debug, Default)]
pub struct Ratchet {
    section: &'static str,
    tolerated: BTreeMap<String, usize>,
}

impl Ratchet {
    /// The entries of `section`; a missing list has none.
    ///
    /// # Errors
    /// A list that cannot be read.
    pub fn read(tree: &Tree, section: &'static str) -> Result<Ratchet, Finding> {
        let text = tree.file(PATH).map_or("", |file| file.text.as_str());
        let table: toml::Table = text.parse().map_err(|error| Finding::new(PATH, 0, format!("{error}")))?;
        let entries = table.get(section).and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let entries = entries.into_iter().map(|(name, length)| {
            let length = length.as_integer().and_then(|length| usize::try_from(length).ok());
            length.map(|length| (name.clone(), length)).ok_or(name)
        });
        let tolerated = entries
            .collect::<Result<_, String>>()
            .map_err(|name| Finding::new(PATH, 0, format!("`{name}` wants a number of lines")))?;
        Ok(Ratchet { section, tolerated })
    }

    /// What to say about the actual `lengths` (name, path, line, length) under the limit `max`.
    pub fn judge(mut self, max: usize, lengths: BTreeMap<String, (String, usize, usize)>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, (path, line, length)) in lengths {
            let tolerated = self.tolerated.remove(&name);
            if length > tolerated.unwrap_or(0).max(max) {
                let limit = tolerated.unwrap_or(max);
                findings.push(Finding::new(
                    &path,
                    line,
                    format!("`{name}` has {length} lines; at most {limit}: split it"),
                ));
            } else if tolerated.is_some_and(|tolerated| tolerated > length) {
                let advice =
                    if length > max { format!("set it to {length}") } else { "remove it".to_string() };
                findings.push(Finding::new(
                    PATH,
                    0,
                    format!("`{name}` of [{}] has shrunk: {advice}", self.section),
                ));
            }
        }
        let gone = self.tolerated.into_keys();
        findings.extend(
            gone.map(|name| {
                Finding::new(PATH, 0, format!("`{name}` of [{}] is gone: remove it", self.section))
            }),
        );
        findings
    }
}
