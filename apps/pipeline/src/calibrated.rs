//! A pipeline whose stages only consume time: given numbers of cycles on a modelled chip.
//!
//! It models published pipelines whose stages matter only by their costs. An item is its number; the stage
//! `background` and the last one have a state of [`STATE_BYTES`].

use crate::vision::STAGES;
use isles::pipeline::{Pipeline, StageCosts, Stages};
use isles::prelude::*;
use serde::{Deserialize, Serialize};

/// Bytes of a state: the worst case of the case study (004:1358).
pub const STATE_BYTES: usize = 38_000;

/// The stages with a state.
const WITH_STATE: [usize; 2] = [15, 17];

/// The names of the stages, as those of `vision`.
const NAMES: [&str; STAGES] = [
    "capture 1",
    "capture 2",
    "enhance 1",
    "smooth 1",
    "rectify 1",
    "census 1",
    "match 1",
    "fill 1",
    "enhance 2",
    "smooth 2",
    "rectify 2",
    "census 2",
    "match 2",
    "fill 2",
    "fuse",
    "background",
    "detect",
    "track",
];

/// Stages with these costs in cycles.
#[derive(Clone, Serialize, Deserialize)]
pub struct Calibrated {
    pub cycles: Vec<u64>,
    /// The most replicas of each stage that matches images.
    pub replicas: usize,
}

impl Calibrated {
    /// Returns the costs, from which the first groups are formed.
    pub fn costs(&self) -> StageCosts {
        StageCosts::new(self.cycles.clone())
    }
}

impl Pipeline for Calibrated {
    type Input = u64;
    type Output = u64;

    fn stages(&self) -> Stages<u64, u64> {
        let mut stages = Stages::new();
        for (stage, (name, cycles)) in NAMES.into_iter().zip(self.cycles.iter().copied()).enumerate() {
            stages = match WITH_STATE.contains(&stage) {
                false => {
                    let replicas = if name.starts_with("match") { self.replicas } else { 1 };
                    let stage = stages.map(name, move |item| {
                        work(Cycles(cycles));
                        item
                    });
                    stage.replicated(replicas)
                }
                true => stages.stateful(name, vec![0_u8; STATE_BYTES], move |state, item| {
                    work(Cycles(cycles));
                    state[item as usize % STATE_BYTES] = item as u8;
                    item
                }),
            };
        }
        stages
    }
}
