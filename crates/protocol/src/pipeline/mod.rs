//! Partition of a pipeline: which stages run together, and where, as pure decisions.
//!
//! A pipeline of n stages runs as groups of consecutive stages, one group on each core (J. Jahn et al., "Malleable
//! Software Pipelines for Efficient Many-core System Utilization", MARC Symposium 2012). [`Partition::optimal`]
//! recombines all stages, [`Partition::fused`] and [`Partition::split`] change two neighbours, [`CostMonitor`] smooths
//! the costs of stages, [`speed_ups`] predicts, [`divide`] divides cores among pipelines. A group of stages without
//! state may run in several replicas; [`ReplicaTurns`] chooses the replica for an item, [`OrderedMerge`] restores the
//! order behind them. `docs/design/pipelines.md` has the protocol of changes and replicas. Invariant: a partition
//! covers all stages, in order, each once.

mod costs;
mod partition;
#[cfg(test)]
mod replica_tests;
mod replicas;
mod share;
#[cfg(test)]
mod tests;

pub use costs::{CostMonitor, StageCosts};
pub use partition::{Partition, PlacedGroup, assign, speed_ups};
pub use replicas::{MergeFault, OrderedMerge, ReplicaTurns};
pub use share::{Demand, DivisionFault, Objective, divide, exchange};
