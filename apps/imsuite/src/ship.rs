//! Data carried by a call between nodes: only the data that its body uses, or everything that X10 would have shipped.
//!
//! A body of X10's `at` that names a field of the kernel captures the kernel, and with it everything reachable from
//! there: the adjacency matrix, the lists of the input, the distribution. AT-Opt (Thangamani and Nandivada, PACT 2018)
//! removes this data, and [`Ship::Reachable`] restores it, so that both can be measured with one body. The fields of a
//! kernel during its timed part are those of the suite's X10 sources. Invariant: the shipped data does not affect an
//! answer.

use super::input::Input;
use super::kernel::KernelName;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Data that travels with a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ship {
    /// Data that the body uses.
    #[default]
    Minimal,
    /// Data that the body uses, and everything reachable from the kernel.
    Reachable,
}

/// The fields of a kernel as X10 serialises them: 64-bit numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachableClosure {
    /// Single numbers: nodes, root, K, thresholds.
    scalars: Vec<i64>,
    /// The adjacency matrix by rows; empty if the kernel has none during its timed part.
    matrix: Vec<i64>,
    /// The lists of the input: identifiers, votes, parents, initial values.
    lists: Vec<i64>,
    /// The distribution: the first node of each place, and the number of nodes.
    distribution: Vec<i64>,
}

impl ReachableClosure {
    /// Returns the data reachable from the kernel of `input` on `places` places, or `None` if only the data used is
    /// shipped.
    pub fn of(ship: Ship, input: &Input, places: usize) -> Option<ReachableClosure> {
        if ship == Ship::Minimal {
            return None;
        }
        let size = input.size();
        // KC drops its matrix before its timed part, and the elections in a ring have none.
        let has_matrix = !matches!(input.kernel, KernelName::HS | KernelName::KC | KernelName::LCR);
        let mut matrix = vec![0; if has_matrix { size * size } else { 0 }];
        for (node, row) in input.neighbours.iter().enumerate().filter(|_| has_matrix) {
            row.iter().for_each(|other| matrix[node * size + *other as usize] = 1);
        }
        let wide = |values: &[u64]| values.iter().map(|value| *value as i64).collect::<Vec<_>>();
        let narrow = |values: &[u32]| values.iter().map(|value| i64::from(*value)).collect::<Vec<_>>();
        let votes = input.votes.iter().map(|vote| i64::from(*vote)).collect();
        let lists = [
            wide(&input.identifiers),
            wide(&input.ranks),
            narrow(&input.parents),
            votes,
            narrow(&input.traitors),
        ];
        let first_of = |place: usize| (place * size / places) as i64;
        Some(ReachableClosure {
            scalars: vec![size as i64, i64::from(input.root), i64::from(input.committee_max)],
            matrix,
            lists: lists.concat(),
            distribution: (0..=places).map(first_of).collect(),
        })
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        let ReachableClosure { scalars, matrix, lists, distribution } = self;
        8 * (scalars.len() + matrix.len() + lists.len() + distribution.len())
    }
}
