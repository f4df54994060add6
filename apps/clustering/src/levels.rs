//! The multilevel method over places: all search each batch, over shared objects.
//!
//! The first place has the levels; it sends a batch to all places, collects and applies their moves, and updates the
//! objects. It searches small batches alone if that is faster. Invariant: the moves are those of
//! [`multilevel::sequential`](crate::multilevel::sequential), for any number of places.

use crate::graph::WeightedGraph;
use crate::multilevel::{Multilevel, propose};
use crate::objects::{ObjectChoices, SharedClusters};
use crate::search::{Clustered, SearchEffort, Searcher};
use crate::state::{Change, Clustering, Move};
use isles::prelude::*;
use isles_app::frame::RunMeter;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Largest batch that a place with coherent memory searches faster alone.
const ALONE_MAX: usize = 256;

/// Vertices after which a search yields; see `TURN_ON_CHIP` of the greedy method.
const TURN_ON_CHIP: usize = 1;
const TURN_ON_HOST: usize = 512;

/// Instruction from the first place to all.
#[derive(Serialize, Deserialize)]
enum Instruction {
    /// Search the following vertices in these objects.
    Use(SharedClusters),
    /// Search your share of these vertices.
    Search(Vec<u32>),
    /// The clustering is complete.
    End,
}

/// A place that searches its share of each batch.
pub struct Follower {
    team: Team,
    searcher: Searcher,
    objects: Option<SharedClusters>,
}

impl Follower {
    /// Returns a follower for a graph of `vertices` vertices, whose edges weigh half of `total`.
    pub fn new(vertices: usize, total: f64) -> Follower {
        Follower { team: Team::world(), searcher: Searcher::new(vertices, total), objects: None }
    }

    /// Searches as instructed by the first place, until the end. Called at all places except the first.
    ///
    /// # Errors
    /// A place is dead.
    pub async fn run(&mut self, meter: &RunMeter) -> isles::Result<()> {
        loop {
            match self.team.broadcast(0, None).await? {
                Instruction::Use(objects) => self.objects = Some(objects),
                Instruction::Search(vertices) => drop(self.search(&vertices, None, meter).await?),
                Instruction::End => return Ok(()),
            }
        }
    }

    /// Makes all places use these objects from now on. Called at the first place.
    async fn publish(&mut self, objects: SharedClusters) -> isles::Result<()> {
        self.team.broadcast(0, Some(Instruction::Use(objects.clone()))).await?;
        self.objects = Some(objects);
        Ok(())
    }

    /// Makes all places search these vertices; returns their moves. Called at the first place.
    async fn lead_search(
        &mut self,
        vertices: Vec<u32>,
        levels: &Multilevel<'_>,
        meter: &RunMeter,
    ) -> isles::Result<Vec<Vec<Move>>> {
        match self.team.broadcast(0, Some(Instruction::Search(vertices))).await? {
            Instruction::Search(vertices) => {
                Ok(self.search(&vertices, Some(levels), meter).await?.unwrap_or_default())
            }
            Instruction::Use(_) | Instruction::End => unreachable!("the broadcast returns what was sent"),
        }
    }

    /// Searches this place's share, in its local data or in the objects; at the first place, returns the moves of all
    /// places, in order.
    async fn search(
        &mut self,
        vertices: &[u32],
        own: Option<&Multilevel<'_>>,
        meter: &RunMeter,
    ) -> isles::Result<Option<Vec<Vec<Move>>>> {
        let objects = self.objects.as_ref().expect("objects come before what is searched in them");
        let started = Instant::now();
        let (rank, size) = (self.team.rank(), self.team.size());
        let share = &vertices[rank * vertices.len() / size..(rank + 1) * vertices.len() / size];
        let found = match own.filter(|_| !objects.are_incoherent()) {
            Some(levels) => {
                let data = (levels.graph(), levels.state());
                propose_in_turns(&mut self.searcher, &data, share, TURN_ON_HOST).await
            }
            None => {
                let turn = if objects.are_incoherent() { TURN_ON_CHIP } else { TURN_ON_HOST };
                propose_in_turns(&mut self.searcher, &objects.read().await?, share, turn).await
            }
        };
        meter.add_done(started);
        self.team.gather(0, found).await
    }
}

/// Returns the good moves of these vertices, yielding in between.
async fn propose_in_turns(
    searcher: &mut Searcher,
    data: &impl Clustered,
    vertices: &[u32],
    turn: usize,
) -> Vec<Move> {
    let mut found = Vec::new();
    for part in vertices.chunks(turn) {
        let mut effort = SearchEffort::default();
        propose(searcher, data, part, &mut effort, &mut found);
        effort.charge(part.len());
        yield_now().await;
    }
    found
}

/// The objects of the levels, kept by the first place.
struct LevelObjects {
    choices: ObjectChoices,
    /// Objects by level; `None` for a level searched only by the first place so far.
    levels: Vec<Option<SharedClusters>>,
    /// The stage whose clusters are in the objects of the current level.
    stage: Option<u64>,
    /// Changes since then.
    pending: Vec<Change>,
}

impl LevelObjects {
    /// Updates the objects of the current level; returns them if all places must be informed.
    async fn update(&mut self, levels: &Multilevel<'_>) -> isles::Result<Option<SharedClusters>> {
        self.levels.resize(levels.level() + 1, None);
        let own = &mut self.levels[levels.level()];
        let is_present = self.stage.replace(levels.stage()) == Some(levels.stage());
        let pending = std::mem::take(&mut self.pending);
        match own {
            Some(objects) if is_present => {
                if !pending.is_empty() {
                    objects.apply(&pending).await?;
                }
                return Ok(None);
            }
            Some(objects) => objects.replace(levels.state()).await?,
            None => {
                *own = Some(SharedClusters::new(levels.graph(), levels.state(), self.choices).await?);
            }
        }
        Ok(own.clone())
    }
}

/// Clusters a graph over all places. Called at the first place.
///
/// # Errors
/// A place is dead.
pub async fn lead(
    graph: &WeightedGraph,
    objects: SharedClusters,
    choices: ObjectChoices,
    meter: &RunMeter,
) -> isles::Result<(Clustering, Vec<Move>, u64)> {
    let mut levels = Multilevel::new(graph);
    let mut first = Follower::new(graph.vertices(), graph.total);
    // On a modelled chip the memory accesses of all searches are charged.
    let is_incoherent = objects.are_incoherent();
    let alone_max = if first.team.size() > 1 { ALONE_MAX } else { usize::MAX };
    first.publish(objects.clone()).await?;
    let stage = Some(levels.stage());
    let mut shared = LevelObjects { choices, levels: vec![Some(objects)], stage, pending: Vec::new() };
    while let Some(batch) = levels.next_batch() {
        let found = if batch.len() <= alone_max && !is_incoherent {
            let started = Instant::now();
            let data = (levels.graph(), levels.state());
            let found = propose_in_turns(&mut first.searcher, &data, &batch, TURN_ON_HOST).await;
            meter.add_done(started);
            vec![found]
        } else {
            if let Some(objects) = shared.update(&levels).await? {
                first.publish(objects).await?;
            }
            first.lead_search(batch, &levels, meter).await?
        };
        let mut effort = SearchEffort::default();
        let has_objects = shared.stage == Some(levels.stage());
        for part in found {
            let changes = levels.commit(&part, &mut effort);
            shared.pending.extend(changes.into_iter().filter(|_| has_objects));
        }
        effort.charge(0);
    }
    first.team.broadcast(0, Some(Instruction::End)).await?;
    Ok(levels.into_found())
}
