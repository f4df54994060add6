//! Two pipelines that share the places: a second one runs for part of the time of the first.
//!
//! At its start, both report their speed-ups by number of places, predicted from the stage costs of the first; the
//! objective divides the places. The first releases its lost places before the second starts, and gets them back at its
//! end. Invariant: each has the result that it would have alone.

use crate::run::{FoundFrame, Goal, PipelineInput};
use crate::scene::Scene;
use crate::vision::{FrameResult, Vision, places_max};
use isles::pipeline::{self, Demand, Objective, Options, PipelineReport, RunningPipeline, divide, speed_ups};
use isles::prelude::*;
use isles_app::frame::RunMeter;
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// The result of the second pipeline, and the places of both while it ran.
#[derive(Serialize)]
pub struct SharedFound {
    pub frames: Vec<FoundFrame>,
    pub cores: usize,
    pub cores_of_first: usize,
}

/// Returns the scene of the second pipeline: the same cameras, other objects.
pub fn second_scene(scene: &Scene) -> Scene {
    Scene { seed: scene.seed.wrapping_add(1), ..scene.clone() }
}

/// Returns the number of frames of the second pipeline.
pub fn second_frames(frames: u64) -> u64 {
    frames / 3
}

/// Runs both; returns the results and statistics of the first, and the outcome of the second.
pub async fn run(
    input: PipelineInput,
    meter: &RunMeter,
) -> isles::Result<(Vec<FrameResult>, PipelineReport, SharedFound)> {
    let vision = Vision { scene: input.scene.clone(), last: input.frames - 1, replicas: input.replicas };
    let second = Rc::new(RefCell::new(None));
    let kept = Rc::clone(&second);
    let (results, report) = pipeline::run(vision, Options::default(), async |flow| {
        finish(async {
            let sender = flow.clone();
            spawn(async move {
                let sent = send(&sender, &input, &kept).await;
                sender.close();
                sent
            });
            let (mut results, mut last) = (Vec::new(), Instant::now());
            while let Some(result) = flow.recv().await? {
                results.push(result);
                meter.add_done(last);
                last = Instant::now();
            }
            Ok::<_, isles::Error>(results)
        })
        .await
    })
    .await?;
    let second = second.take().expect("the second one comes before the last frame");
    Ok((results, report, second))
}

/// Sends the frames of the first pipeline, running the second one meanwhile.
async fn send(
    flow: &RunningPipeline<Vision>,
    input: &PipelineInput,
    second: &Rc<RefCell<Option<SharedFound>>>,
) -> isles::Result<()> {
    finish(async {
        for frame in 0..input.frames {
            if frame == input.frames / 3 {
                let (own, others) = divided(flow, input).await?;
                flow.move_to(own.clone()).await?;
                let (flow, second) = (flow.clone(), Rc::clone(second));
                let (scene, frames) = (second_scene(&input.scene), second_frames(input.frames));
                let replicas = input.replicas;
                spawn(async move {
                    let mut found =
                        SharedFound { frames: Vec::new(), cores: others.len(), cores_of_first: own.len() };
                    let vision = Vision { scene, last: frames - 1, replicas };
                    let options = Options { places: Some(others), ..Options::default() };
                    let each = |result: FrameResult| found.frames.push(FoundFrame::of(&result));
                    pipeline::process(vision, options, 0..frames, each).await?;
                    *second.borrow_mut() = Some(found);
                    flow.move_to(places().collect()).await
                });
            }
            flow.send(frame).await?;
        }
        Ok::<_, isles::Error>(())
    })
    .await
}

/// Returns the places of the first pipeline and those of the second.
async fn divided(
    flow: &RunningPipeline<Vision>,
    input: &PipelineInput,
) -> isles::Result<(Vec<Place>, Vec<Place>)> {
    let all: Vec<Place> = places().collect();
    let most = all.len().min(places_max(input.replicas));
    let demand = Demand::new(speed_ups(&flow.measured_costs().await?, most));
    let objective = match input.objective {
        Goal::Throughput => Objective::Throughput,
        Goal::Fairness => Objective::Fairness,
    };
    let cores = divide(&[demand.clone(), demand], all.len(), objective)?;
    let others = all[cores[0]..cores[0] + cores[1]].to_vec();
    Ok((all[..cores[0]].to_vec(), others))
}
