//! The suites: measurements, their peers and their targets.
//!
//! Each suite is a separate table; this file has their list, and their common parts. Invariant: comparable things are
//! compared; if a peer has two forms of a thing, the row names the one used.

mod auv;
mod balance;
mod channels;
mod guests;
mod hartree_fock;
mod host;
mod imsuite;
mod memory;
mod people;
mod ranks;
mod rdf;
mod tasks;
pub mod twin;

use crate::measure::{Better, Contender, Figure, Group, Row, Target};
use crate::mpi::{MpiLibrary, Ranks};
use crate::program::{AppTask, Program};
use memory::{aggregation, shared, windows};

/// Suite of measurements run by one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Places on this host.
    Core,
    /// Places on a modelled chip.
    Twin,
    /// Hartree-Fock calculations.
    Hf,
    /// Channels between tasks.
    Channels,
    /// Tasks that create tasks.
    Glb,
    /// Distributed algorithms, with the data that their calls capture.
    ImSuite,
    /// Ranks of MPI as places.
    Mpi,
    /// Pipelines of stages.
    Pipeline,
    /// The Parallel Research Kernels over distributed arrays.
    Prk,
    /// Programs of RCCE in C.
    Rcce,
    /// Programs on bare cores.
    Bare,
    /// SPARQL over triples distributed over places.
    Rdf,
    /// Memory that other places read and write.
    Windows,
    /// An ocean model and a path planner.
    Auv,
    /// Many tiny messages.
    Aggregation,
    /// Objects that places share.
    Shared,
    /// Pages that places share.
    Svm,
    /// Places as guests of the hypervisor.
    Guests,
    /// Hubs of a real-time kernel.
    Hubs,
    /// Interactive jobs.
    Jobs,
    /// Observed runs.
    Ui,
}

impl Suite {
    /// All suites.
    pub const ALL: [Suite; 21] = [
        Suite::Core,
        Suite::Twin,
        Suite::Hf,
        Suite::Channels,
        Suite::Glb,
        Suite::ImSuite,
        Suite::Mpi,
        Suite::Pipeline,
        Suite::Prk,
        Suite::Rcce,
        Suite::Bare,
        Suite::Rdf,
        Suite::Windows,
        Suite::Auv,
        Suite::Aggregation,
        Suite::Shared,
        Suite::Svm,
        Suite::Guests,
        Suite::Hubs,
        Suite::Jobs,
        Suite::Ui,
    ];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Core => "core",
            Suite::Twin => "twin",
            Suite::Hf => "hf",
            Suite::Channels => "channels",
            Suite::Glb => "glb",
            Suite::ImSuite => "imsuite",
            Suite::Mpi => "mpi",
            Suite::Pipeline => "pipeline",
            Suite::Prk => "prk",
            Suite::Rcce => "rcce",
            Suite::Bare => "bare",
            Suite::Rdf => "rdf",
            Suite::Windows => "windows",
            Suite::Auv => "auv",
            Suite::Aggregation => "aggregation",
            Suite::Shared => "shared",
            Suite::Svm => "svm",
            Suite::Guests => "guests",
            Suite::Hubs => "hubs",
            Suite::Jobs => "jobs",
            Suite::Ui => "ui",
        }
    }

    /// Returns its groups, in the order in which they are run.
    pub fn groups(self) -> &'static [Group] {
        match self {
            Suite::Core => host::GROUPS,
            Suite::Twin => twin::GROUPS,
            Suite::Hf => hartree_fock::GROUPS,
            Suite::Channels => channels::GROUPS,
            Suite::Glb => balance::GROUPS,
            Suite::ImSuite => imsuite::GROUPS,
            Suite::Mpi => ranks::mpi::GROUPS,
            Suite::Pipeline => tasks::GROUPS,
            Suite::Prk => ranks::prk::GROUPS,
            Suite::Rcce => ranks::rcce::GROUPS,
            Suite::Bare => ranks::bare::GROUPS,
            Suite::Rdf => rdf::GROUPS,
            Suite::Windows => windows::GROUPS,
            Suite::Auv => auv::GROUPS,
            Suite::Aggregation => aggregation::GROUPS,
            Suite::Shared => shared::GROUPS,
            Suite::Svm => shared::PAGE_GROUPS,
            Suite::Guests => guests::GROUPS,
            Suite::Hubs => tasks::HUB_GROUPS,
            Suite::Jobs => people::jobs::GROUPS,
            Suite::Ui => people::ui::GROUPS,
        }
    }
}

const fn figure(contender: &'static str, name: &'static str) -> Figure {
    Figure { contender, name }
}

const PAIR: &str = "2 places on 2 cores, machine processes";
const ONE_PLACE: &str = "isles, 1 place";
const TWO_PLACES: &str = "isles, 2 places";
const RAW: &str = "isles, raw message";
const CROSSBEAM: &str = "crossbeam";
const OPEN_MPI: &str = "Open MPI";
const MPICH: &str = "MPICH";

const fn open_mpi(section: &'static str, ranks: u32) -> Contender {
    let ranks = Ranks { count: ranks, hosts: 1 };
    Contender { label: OPEN_MPI, program: Program::Mpi { library: MpiLibrary::OpenMpi, section, ranks } }
}

const fn mpich(section: &'static str, ranks: u32) -> Contender {
    let ranks = Ranks { count: ranks, hosts: 1 };
    Contender { label: MPICH, program: Program::Mpi { library: MpiLibrary::Mpich, section, ranks } }
}

const fn of_better_mpi(limit: f64) -> Target {
    Target::BestOf { limit, of: &[OPEN_MPI, MPICH], words: "better MPI" }
}

/// A child of ours over processes.
const fn ours(child: &'static str, places: u32) -> Program {
    Program::Isles { child, machine: "processes", places }
}

/// An application over processes.
const fn app(task: AppTask, places: u32) -> Program {
    Program::App { task, machine: "processes", places }
}

/// Betweenness of a graph of the collection, every edge of length one.
pub const BC_POWER: AppTask =
    AppTask { name: "bc", words: "--graph power --weights ignore --balance dynamic", counted: None };
const BC_HEP_TH: AppTask = AppTask { words: "--graph hep-th --weights ignore --balance dynamic", ..BC_POWER };

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
    fn every_child_is_part_of_this_binary() {
        for contender in Suite::ALL.iter().flat_map(|suite| suite.groups()).flat_map(|group| group.contenders)
        {
            if let Program::Peer(child)
            | Program::BareCores(child)
            | Program::Kvm(child)
            | Program::WithGuests { child, .. }
            | Program::Isles { child, .. }
            | Program::Watched { child, .. }
            | Program::IslesMpi { child, .. } = contender.program
            {
                assert!(crate::child::exists(child), "{}: {child}", contender.label);
            }
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
                        Target::Speedup { over, .. } | Target::Beyond { over, .. } => vec![*over],
                    };
                    assert!(named.iter().all(|label| others.contains(label)), "{}: {named:?}", row.name);
                    let is_value = matches!(target, Target::Value(_));
                    assert!(is_value || !named.is_empty(), "{}: nobody to compare with", row.name);
                }
            }
        }
    }
}
