//! The suites: what is measured, against whom, and what it must reach.
//!
//! A suite is a table of its own; this one holds no code but their list. The invariant: like is compared with like;
//! where a peer has two forms of a thing, the row says which one.

mod hartree_fock;
mod host;
pub mod twin;

use crate::measure::{Better, Figure, Group, Row, Target};
use crate::program::Program;

/// What one command measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Places on this host.
    Core,
    /// Places on a modelled chip.
    Twin,
    /// Hartree-Fock calculations.
    Hf,
}

impl Suite {
    /// All of them.
    pub const ALL: [Suite; 3] = [Suite::Core, Suite::Twin, Suite::Hf];

    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Core => "core",
            Suite::Twin => "twin",
            Suite::Hf => "hf",
        }
    }

    /// Its groups, in the order in which they are run.
    pub fn groups(self) -> &'static [Group] {
        match self {
            Suite::Core => host::GROUPS,
            Suite::Twin => twin::GROUPS,
            Suite::Hf => hartree_fock::GROUPS,
        }
    }
}

const fn figure(contender: &'static str, name: &'static str) -> Figure {
    Figure { contender, name }
}

const ONE_PLACE: &str = "isles, 1 place";
const TWO_PLACES: &str = "isles, 2 places";

/// A child of ours over processes.
const fn ours(child: &'static str, places: u32) -> Program {
    Program::Isles { child, machine: "processes", places }
}

/// A row that compares two places with one.
const fn on_two_places(name: &'static str, question: &'static str) -> Row {
    Row {
        name,
        question,
        unit: "s",
        better: Better::Less,
        ours: figure(TWO_PLACES, "seconds"),
        peers: &[],
        beside: const { &[figure(ONE_PLACE, "seconds")] },
        targets: const { &[Target::Speedup { limit: 1.85, over: ONE_PLACE }] },
        quoted_with: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Target;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_there_once() {
        for suite in Suite::ALL {
            let names: Vec<_> = suite
                .groups()
                .iter()
                .flat_map(|group| std::iter::once(group.name).chain(group.rows.iter().map(|row| row.name)))
                .collect();
            assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{names:?}");
        }
    }

    #[test]
    fn every_figure_and_target_names_a_contender_of_its_group() {
        for group in Suite::ALL.iter().flat_map(|suite| suite.groups()) {
            let labels: BTreeSet<_> = group.contenders.iter().map(|contender| contender.label).collect();
            assert_eq!(labels.len(), group.contenders.len(), "{}", group.name);
            for row in group.rows {
                assert!(row.figures().all(|figure| labels.contains(figure.contender)), "{}", row.name);
                let others: BTreeSet<_> =
                    row.peers.iter().chain(row.beside).map(|figure| figure.contender).collect();
                for target in row.targets {
                    let named: Vec<_> = match target {
                        Target::Value(_) => vec![],
                        Target::BestPeer(_) => row.peers.iter().map(|peer| peer.contender).collect(),
                        Target::BestOf { of, .. } => of.to_vec(),
                        Target::Speedup { over, .. } => vec![*over],
                    };
                    assert!(named.iter().all(|label| others.contains(label)), "{}: {named:?}", row.name);
                    let is_value = matches!(target, Target::Value(_));
                    assert!(is_value || !named.is_empty(), "{}: nobody to compare with", row.name);
                }
            }
        }
    }
}
