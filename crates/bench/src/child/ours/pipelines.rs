//! Pipelines of stages; `tasks` has tokio's channels and the plain loop beside them.
//!
//! The trivial stages add a number each, so the measurement is that of an item's way through them. The long ones each
//! compute for about the same number of microseconds. Invariant: both sides compute the same sum.

use super::run;
use crate::child::timing::Effort;
use crate::child::timing::{median, print_figure};
use isles::pipeline::{self, Options, Pipeline, RunningPipeline, Stages};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// Capacity of the queue before a stage, on both sides.
pub const QUEUE: usize = 64;

/// Number of items through the trivial stages.
const SHORT_ITEMS: u64 = 2_000_000;

/// Number of trivial stages.
pub const SHORT_STAGES: u64 = 8;

/// Number of items through the long stages.
pub const LONG_ITEMS: u64 = 4_000;

/// Number of long stages.
pub const LONG_STAGES: u64 = 18;

/// Rounds of a long stage: about 20 µs.
const ROUNDS: u64 = 10_000;

/// Bytes of state of each moved stage.
const STATE_BYTES: usize = 38_000;

/// Number of measured resizes.
const RESIZES: u64 = 1_000;

/// Kinds of stages.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum StageKind {
    Short,
    Long,
    /// Long, with a state.
    Heavy,
    /// A stage as long as all long ones together, between short ones, in up to two replicas.
    Slow,
}

/// Processes an item in a long stage.
pub fn long_step(stage: u64, value: u64) -> u64 {
    (0..ROUNDS).fold(value ^ stage, |value, round| (value ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Pipeline for StageKind {
    type Input = u64;
    type Output = u64;

    fn stages(&self) -> Stages<u64, u64> {
        let mut stages = Stages::new();
        match self {
            StageKind::Short => {
                for stage in 0..SHORT_STAGES {
                    stages = stages.map("short", move |value| value + black_box(stage));
                }
            }
            StageKind::Long => {
                for stage in 0..LONG_STAGES {
                    stages = stages.map("long", move |value| long_step(stage, value));
                }
            }
            StageKind::Heavy => {
                for stage in 0..LONG_STAGES {
                    let step = move |state: &mut Vec<u8>, value| {
                        state[0] = state[0].wrapping_add(1);
                        long_step(stage, value)
                    };
                    stages = stages.stateful("heavy", vec![0; STATE_BYTES], step);
                }
            }
            StageKind::Slow => {
                let slow = |value| (0..LONG_STAGES).fold(value, |value, stage| long_step(stage, value));
                stages = stages.map("short", |value| value).map("slow", slow).replicated(2);
                stages = stages.stateful("count", 0_u64, |count, value| {
                    *count += 1;
                    value
                });
            }
        }
        stages
    }
}

/// Sends items through 8 trivial stages. Prints `rate_million`.
pub fn short(_effort: Effort) {
    run(|| async {
        let options = Options { queue: QUEUE, ..Options::default() };
        let (mut sum, started) = (0_u64, Instant::now());
        pipeline::process(StageKind::Short, options, 0..SHORT_ITEMS, |value| sum += value).await?;
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(sum, short_sum(SHORT_ITEMS));
        print_figure("rate_million", SHORT_ITEMS as f64 / seconds / 1e6);
        Ok(())
    });
}

pub fn short_sum(items: u64) -> u64 {
    let added: u64 = (0..SHORT_STAGES).sum();
    (0..items).map(|item| item + added).sum()
}

/// Sends items through 18 stages of 20 µs, at all places. Prints `seconds`.
pub fn long(_effort: Effort) {
    all_items(StageKind::Long);
}

/// Sends items through a stage of 360 µs between short ones, at all places. Prints `seconds`.
pub fn slow(_effort: Effort) {
    all_items(StageKind::Slow);
}

fn all_items(kind: StageKind) {
    run(move || async move {
        let (mut sum, started) = (0_u64, Instant::now());
        let each = |value| sum = sum.wrapping_add(value);
        let options = Options { queue: QUEUE, ..Options::default() };
        pipeline::process(kind, options, 0..LONG_ITEMS, each).await?;
        print_figure("seconds", started.elapsed().as_secs_f64());
        black_box(sum);
        Ok(())
    });
}

/// Resizes to one place and back, with 38 kB of state in each of 18 stages. Prints `pause_items`, the median pause in
/// units of the time of an item through all stages on one place, and `lost`, the number of items that did not come out
/// in order.
pub fn resizes(_effort: Effort) {
    run(|| async {
        let (out_of_order, report) = pipeline::run(StageKind::Heavy, Options::default(), async |flow| {
            finish(async {
                let sender = flow.clone();
                spawn(async move {
                    let sent = send_and_resize(&sender).await;
                    sender.close();
                    sent
                });
                let mut out_of_order = 0_u64;
                let expected =
                    |item: u64| (0..LONG_STAGES).fold(item, |value, stage| long_step(stage, value));
                let mut item = 0;
                while let Some(value) = flow.recv().await? {
                    // Computing each again would take as long as the pipeline.
                    out_of_order += u64::from(item % 64 == 0 && value != expected(item));
                    item += 1;
                }
                assert_eq!(item, 2 * RESIZES, "an item is lost or doubled");
                Ok::<_, isles::Error>(out_of_order)
            })
            .await
        })
        .await?;
        let item: f64 =
            report.stages.iter().filter_map(|stage| stage.cost).map(|cost| cost.as_secs_f64()).sum();
        let pauses = report.resizes.iter().filter_map(|resize| resize.pause);
        print_figure("pause_items", median(pauses.map(|pause| pause.as_secs_f64() / item).collect()));
        print_figure("out_of_order", out_of_order as f64);
        Ok(())
    });
}

async fn send_and_resize(flow: &RunningPipeline<StageKind>) -> isles::Result<()> {
    for item in 0..2 * RESIZES {
        if item % 2 == 1 {
            flow.resize(1 + item as usize / 2 % place_count()).await?;
        }
        flow.send(item).await?;
    }
    Ok(())
}
