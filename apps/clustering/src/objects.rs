//! The graph and the clusters as objects that all places share: five mappings over vertices, arcs and clusters.
//!
//! A search takes a guard of each object at the same time. A move takes write guards of the objects that it changes.

use crate::graph::WeightedGraph;
use crate::search::Clustered;
use crate::state::{Change, Clustering};
use clap::ValueEnum;
use isles::{Controller, Mapping, MemoryKind, ReadGuard, Shared, SharedOptions, acquire_all};
use serde::{Deserialize, Serialize};

/// The kind of memory of the objects on a modelled chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryChoice {
    /// Both caches (DCM of the SCC).
    Cached,
    /// Past all caches (NCM).
    Uncached,
    /// The first cache, written through (MPBT and WT).
    Through,
    /// The graph cached, and the data changed by moves written through.
    #[default]
    Mixed,
    /// The option above with the least time for a few steps; `mixed` if memory is coherent.
    Measured,
}

impl MemoryChoice {
    /// Returns the kind for the graph, which never changes.
    fn of_graph(self) -> MemoryKind {
        match self {
            MemoryChoice::Cached | MemoryChoice::Mixed | MemoryChoice::Measured => MemoryKind::Cached,
            MemoryChoice::Uncached => MemoryKind::Uncached,
            MemoryChoice::Through => MemoryKind::Through,
        }
    }

    /// Returns the kind for the clusters, which moves change.
    fn of_clusters(self) -> MemoryKind {
        match self {
            MemoryChoice::Cached => MemoryKind::Cached,
            MemoryChoice::Uncached => MemoryKind::Uncached,
            MemoryChoice::Through | MemoryChoice::Mixed | MemoryChoice::Measured => MemoryKind::Through,
        }
    }
}

/// Notification method for stale copies of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerChoice {
    /// All places are notified when a write ends.
    #[default]
    Broadcast,
    /// All places are notified when a write begins.
    Overlapped,
    /// Each place compares a version count with the last one it saw.
    Timestamp,
}

impl ControllerChoice {
    fn controller(self) -> Controller {
        match self {
            ControllerChoice::Broadcast => Controller::Broadcast,
            ControllerChoice::Overlapped => Controller::Overlapped,
            ControllerChoice::Timestamp => Controller::Timestamp,
        }
    }
}

/// Choices for keeping the objects of a run coherent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ObjectChoices {
    /// Memory of a modelled chip that holds the objects.
    pub memory: MemoryChoice,
    /// Notification method for stale copies.
    pub controller: ControllerChoice,
}

/// The objects; a handle that can be sent to any place.
#[derive(Clone, Serialize, Deserialize)]
pub struct SharedClusters {
    offsets: Shared<Mapping<u32>>,
    targets: Shared<Mapping<u32>>,
    weights: Shared<Mapping<f64>>,
    degrees: Shared<Mapping<f64>>,
    clusters: Shared<Mapping<u32>>,
    cluster_weights: Shared<Mapping<f64>>,
}

/// A guard to read each object.
pub struct Reading<'a> {
    offsets: ReadGuard<'a, Mapping<u32>>,
    targets: ReadGuard<'a, Mapping<u32>>,
    weights: ReadGuard<'a, Mapping<f64>>,
    degrees: ReadGuard<'a, Mapping<f64>>,
    clusters: ReadGuard<'a, Mapping<u32>>,
    cluster_weights: ReadGuard<'a, Mapping<f64>>,
}

impl SharedClusters {
    /// Shares a graph with its clusters.
    ///
    /// # Errors
    /// A place is dead.
    pub async fn new(
        graph: &WeightedGraph,
        state: &Clustering,
        choices: ObjectChoices,
    ) -> isles::Result<SharedClusters> {
        let ObjectChoices { memory, controller } = choices;
        // Moves and searches alternate, so guards never conflict.
        let options = SharedOptions::default().controller(controller.controller()).exclusive_by_program();
        let fixed = options.memory(memory.of_graph());
        let moving = options.memory(memory.of_clusters());
        Ok(SharedClusters {
            offsets: Shared::with(Mapping::of(&graph.offsets), fixed).await?,
            targets: Shared::with(Mapping::of(&graph.targets), fixed).await?,
            weights: Shared::with(Mapping::of(&graph.weights), fixed).await?,
            degrees: Shared::with(Mapping::of(&graph.degrees), fixed).await?,
            clusters: Shared::with(Mapping::of(&state.clusters), moving).await?,
            cluster_weights: Shared::with(Mapping::of(&state.weights), moving).await?,
        })
    }

    /// Returns `true` if the objects are in memory of a modelled chip.
    pub fn are_incoherent(&self) -> bool {
        self.clusters.is_incoherent()
    }

    /// Waits for read guards of all objects.
    ///
    /// # Errors
    /// A place is dead.
    pub async fn read(&self) -> isles::Result<Reading<'_>> {
        let (offsets, targets, weights, degrees, clusters, cluster_weights) = acquire_all((
            self.offsets.read(),
            self.targets.read(),
            self.weights.read(),
            self.degrees.read(),
            self.clusters.read(),
            self.cluster_weights.read(),
        ))
        .await?;
        Ok(Reading { offsets, targets, weights, degrees, clusters, cluster_weights })
    }

    /// Applies moves; returns once all places are notified.
    ///
    /// # Errors
    /// A place is dead.
    pub async fn apply(&self, changes: &[Change]) -> isles::Result<()> {
        let (mut clusters, mut weights) =
            acquire_all((self.clusters.write(), self.cluster_weights.write())).await?;
        for change in changes {
            clusters.set(change.vertex as usize, change.to.0);
            weights.set(change.from.0 as usize, change.from.1);
            weights.set(change.to.0 as usize, change.to.1);
        }
        clusters.release().await;
        weights.release().await;
        Ok(())
    }

    /// Replaces all clusters; returns once all places are notified.
    ///
    /// # Errors
    /// A place is dead.
    pub async fn replace(&self, state: &Clustering) -> isles::Result<()> {
        let (mut clusters, mut weights) =
            acquire_all((self.clusters.write(), self.cluster_weights.write())).await?;
        clusters.write(0, &state.clusters);
        weights.write(0, &state.weights);
        clusters.release().await;
        weights.release().await;
        Ok(())
    }
}

impl Clustered for Reading<'_> {
    fn row(&self, vertex: u32, targets: &mut Vec<u32>, weights: &mut Vec<f64>) {
        let mut ends = [0; 2];
        self.offsets.read(vertex as usize, &mut ends);
        let [first, end] = ends.map(|end| end as usize);
        targets.resize(end - first, 0);
        weights.resize(end - first, 0.0);
        self.targets.read(first, targets);
        self.weights.read(first, weights);
    }

    fn degree(&self, vertex: u32) -> f64 {
        self.degrees.get(vertex as usize)
    }

    fn cluster(&self, vertex: u32) -> u32 {
        self.clusters.get(vertex as usize)
    }

    fn weight(&self, cluster: u32) -> f64 {
        self.cluster_weights.get(cluster as usize)
    }
}
