//! Betweenness several times in one run, for observers; distributed like `isles run bc`.
//!
//! The application's own program computes once, and reports the chip's time on a modelled chip. The kernel is the
//! application's. Invariant: reading and distributing the graph are not timed; adding up is.

use super::run;
use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure};
use crate::child::whole_runs::graph;
use isles::prelude::*;
use isles_app::frame::{Balance, WorkDistributor};
use isles_bc::{Betweenness, Scores};
use isles_graph::Graph;
use std::time::Instant;

/// Betweenness of power. Prints `seconds`, the median.
pub fn power_often(effort: Effort) {
    run(move || betweenness("power", effort.repetitions));
}

/// The same of hep-th.
pub fn hep_th_often(effort: Effort) {
    run(move || betweenness("hep-th", effort.repetitions));
}

async fn betweenness(name: &'static str, times: usize) -> isles::Result<()> {
    let graph = Replicated::new(graph(name)).await?;
    let mut seconds = Vec::new();
    for _ in 0..times {
        seconds.push(scores_of(&graph).await?);
    }
    print_figure("seconds", median(seconds));
    Ok(())
}

/// Returns the seconds for the scores of all vertices.
async fn scores_of(graph: &Replicated<Graph>) -> isles::Result<f64> {
    let scores = PlaceLocal::new(Scores::zero).await?;
    let sources = WorkDistributor::plain::<Betweenness>().units(graph.vertices(), Balance::Dynamic).await?;
    let start = Instant::now();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let mut sources = sources.here();
                while let Some(source) = sources.take().await? {
                    scores.lock().add_source(graph, source);
                }
            });
        }
    })
    .await?;
    let total = scores.reduce(Scores::merge).await?;
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(total.sources(), graph.vertices(), "each source is added once");
    Ok(seconds)
}
