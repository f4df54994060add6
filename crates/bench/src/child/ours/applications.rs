//! Applications over all places: betweenness and Hartree-Fock, their work dealt out as `isles run bc` and
//! `isles run hf` deal it.
//!
//! Its own file because they are whole programs; betweenness is the main job. Kernels and graphs are the applications'.
//! The invariant: reading and distributing what is computed on are not timed, as reading is not for the peers; adding
//! up is.

use super::run;
use crate::child::whole_runs::graph;
use crate::child::{median, say};
use crate::options::Effort;
use isles::prelude::*;
use isles_app::frame::{Application, Balance, Dealer};
use isles_bc::{Betweenness, Scores};
use isles_graph::Graph;
use isles_hf::HartreeFock;
use std::time::Instant;

/// Betweenness of power. Prints `seconds`.
pub fn power(_effort: Effort) {
    run(|| betweenness("power", 1));
}

/// Betweenness of hep-th. Prints `seconds`.
pub fn hep_th(_effort: Effort) {
    run(|| betweenness("hep-th", 1));
}

/// Betweenness of power several times in one run, for who looks at it. Prints `seconds`, the median.
pub fn power_often(effort: Effort) {
    run(move || betweenness("power", effort.repetitions));
}

/// The same of hep-th.
pub fn hep_th_often(effort: Effort) {
    run(move || betweenness("hep-th", effort.repetitions));
}

async fn betweenness(name: &'static str, times: usize) -> isles::Result<()> {
    let graph = Replicated::new(graph(name)).await?;
    let (mut seconds, mut sum) = (Vec::new(), 0.0);
    for _ in 0..times {
        let (time, total) = scores_of(&graph).await?;
        seconds.push(time);
        sum = total;
    }
    say("seconds", median(seconds));
    say("score_sum", sum);
    Ok(())
}

/// The seconds that the scores of all vertices take, and their sum.
async fn scores_of(graph: &Replicated<Graph>) -> isles::Result<(f64, f64)> {
    let scores = PlaceLocal::new(Scores::zero).await?;
    let sources = Dealer::plain::<Betweenness>().units(graph.vertices(), Balance::Dynamic).await?;
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
    Ok((seconds, total.values().sum()))
}

/// Benzene in 3-21G. Prints `seconds`.
pub fn benzene(_effort: Effort) {
    run(|| hartree_fock("benzene", "3-21g"));
}

/// Aspirin in STO-3G. Prints `seconds`.
pub fn aspirin(_effort: Effort) {
    run(|| hartree_fock("aspirin", "sto-3g"));
}

async fn hartree_fock(molecule: &'static str, basis: &'static str) -> isles::Result<()> {
    let calculation = HartreeFock::of(molecule, basis, Balance::Dynamic);
    let input = calculation.open(place_count() as u32).map_err(isles::Error::message)?;
    let (found, done) = HartreeFock::compute(input, Dealer::plain::<HartreeFock>()).await?;
    let checked = calculation.verify(&found, false).map_err(isles::Error::message)?;
    if !checked.is_some_and(|checked| checked.holds) {
        return Err(isles::Error::message("the energy is not that of PySCF"));
    }
    say("seconds", done.seconds);
    say("energy", found.energy());
    Ok(())
}
