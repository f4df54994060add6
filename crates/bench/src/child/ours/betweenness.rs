//! Betweenness over all places, as the design's listing has it.
//!
//! Its own file because it is the main job. The kernel and the graphs are the application's.
//! The invariant: reading and distributing the graph are not timed, as reading is not for the peer; adding up is.

use super::run;
use crate::child::say;
use crate::child::whole_runs::graph;
use crate::options::Effort;
use isles::prelude::*;
use isles_apps::bc::Scores;
use std::time::Instant;

/// On power. Prints `seconds`.
pub fn power(_effort: Effort) {
    run(|| compute("power"));
}

/// On hep-th. Prints `seconds`.
pub fn hep_th(_effort: Effort) {
    run(|| compute("hep-th"));
}

async fn compute(name: &'static str) -> isles::Result<()> {
    let graph = Replicated::new(graph(name)).await?;
    let scores = PlaceLocal::new(Scores::zero).await?;
    let next = Counter::new();
    let start = Instant::now();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                while let Some(source) = next.take_below(graph.vertices()).await? {
                    scores.lock().add_source(&graph, source);
                }
            });
        }
    })
    .await?;
    let total = scores.reduce(Scores::merge).await?;
    say("seconds", start.elapsed().as_secs_f64());
    say("score_sum", total.values().sum());
    Ok(())
}
