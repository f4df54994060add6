//! The list of exceptions from before a limit existed: an entry may only shrink.
//!
//! The list is `crates/xtask/ratchet.toml`. An entry that exceeds the actual number is refused as well, so the list
//! follows each improvement and ends empty.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeMap;

/// Path of the list.
pub const PATH: &str = "crates/xtask/ratchet.toml";

/// Unit that a section of the list counts.
#[derive(Debug)]
pub struct Unit {
    /// Name of the counted thing, for a sentence: `lines`.
    pub name: &'static str,
    /// Advice when there are too many.
    pub advice: &'static str,
    /// Steps of one unit: a number is counted in whole steps and written as a decimal.
    pub steps: usize,
}

impl Unit {
    /// Whole lines.
    pub const LINES: Unit = Unit { name: "lines", advice: "split it", steps: 1 };

    /// The steps of a number in the list; `None` if it has a part of a step.
    fn read(&self, number: &toml::Value) -> Option<usize> {
        let steps = match number {
            toml::Value::Integer(whole) => usize::try_from(*whole).ok()? * self.steps,
            toml::Value::Float(number) if self.steps > 1 => {
                let steps = number * self.steps as f64;
                let is_step = steps >= 0.0 && (steps - steps.round()).abs() < 1e-6;
                is_step.then_some(steps.round() as usize)?
            }
            _ => return None,
        };
        Some(steps)
    }

    /// The number of `steps`, as the list has it.
    fn show(&self, steps: usize) -> String {
        match self.steps {
            1 => steps.to_string(),
            parts => format!("{:.1}", steps as f64 / parts as f64),
        }
    }
}

/// Numbers that are tolerated, by name.
#[derive(Debug)]
pub struct Ratchet {
    section: &'static str,
    unit: &'static Unit,
    tolerated: BTreeMap<String, usize>,
}

impl Ratchet {
    /// The entries of `section`, which counts lines; a missing list has none.
    ///
    /// # Errors
    /// A list that cannot be read.
    pub fn read(tree: &Tree, section: &'static str) -> Result<Ratchet, Finding> {
        Ratchet::read_as(tree, section, &Unit::LINES)
    }

    /// The entries of `section`, which counts in `unit`; a missing list has none.
    ///
    /// # Errors
    /// A list that cannot be read.
    pub fn read_as(tree: &Tree, section: &'static str, unit: &'static Unit) -> Result<Ratchet, Finding> {
        let text = tree.file(PATH).map_or("", |file| file.text.as_str());
        let table: toml::Table = text.parse().map_err(|error| Finding::new(PATH, 0, format!("{error}")))?;
        let entries = table.get(section).and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let entries = entries
            .into_iter()
            .map(|(name, number)| unit.read(&number).map(|steps| (name.clone(), steps)).ok_or(name));
        let tolerated = entries
            .collect::<Result<_, String>>()
            .map_err(|name| Finding::new(PATH, 0, format!("`{name}` needs a number of {}", unit.name)))?;
        Ok(Ratchet { section, unit, tolerated })
    }

    /// Returns the findings for the actual numbers (name, path, line, number in steps) under the limit `max`.
    pub fn judge(mut self, max: usize, numbers: BTreeMap<String, (String, usize, usize)>) -> Vec<Finding> {
        let Unit { name: unit, advice, .. } = self.unit;
        let mut findings = Vec::new();
        for (name, (path, line, number)) in numbers {
            let tolerated = self.tolerated.remove(&name);
            let shown = self.unit.show(number);
            if number > tolerated.unwrap_or(0).max(max) {
                let limit = self.unit.show(tolerated.unwrap_or(max));
                findings.push(Finding::new(
                    &path,
                    line,
                    format!("`{name}` has {shown} {unit}; at most {limit}: {advice}"),
                ));
            } else if tolerated.is_some_and(|tolerated| tolerated > number) {
                let advice =
                    if number > max { format!("set it to {shown}") } else { "remove it".to_string() };
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
