//! The pipeline: 18 stages from the number of a frame to the objects in it.
//!
//! The cameras are read one after the other, because they share a bus; then each pair has its own branch. Every stage
//! charges a modelled core for operations per pixel, counted in `stereo`.

use crate::image::{Image, Pair};
use crate::objects::{BackgroundModel, Object, Tracker, detected, foreground, tracked};
use crate::scene::{PAIR_SHIFT, Scene};
use crate::stereo::{
    CensusPair, bad_pixels, census_of, digest, enhanced, filled, fused, matched, rectified, smoothed,
};
use isles::CanSend;
use isles::pipeline::{Pipeline, Stages};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// The number of stages.
pub const STAGES: usize = 18;

/// Number of stages that may run in replicas.
const REPLICATED: usize = 2;

/// Returns the most places that the stages can use if the matching stages run in up to `replicas` replicas each.
pub fn places_max(replicas: usize) -> usize {
    STAGES + REPLICATED * (replicas - 1)
}

/// The pipeline of a scene.
#[derive(Clone, Serialize, Deserialize)]
pub struct Vision {
    pub scene: Scene,
    /// The last frame, whose disparities are part of the result.
    pub last: u64,
    /// Maximum number of replicas of each stage that matches images.
    pub replicas: usize,
}

/// The objects found in a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameResult {
    pub frame: u64,
    pub objects: Vec<Object>,
    /// Share of the pixels with a known disparity whose disparity is off by more than 2 pixels.
    pub bad_pixels: f64,
    /// A hash of all disparities.
    pub digest: u64,
    /// The disparities of the last frame.
    pub disparities: Option<Image>,
}

impl FrameResult {
    /// Returns an empty result for a frame.
    pub fn empty(frame: u64) -> FrameResult {
        FrameResult { frame, objects: Vec::new(), bad_pixels: 0.0, digest: frame, disparities: None }
    }
}

/// A frame with its disparities.
#[derive(Clone, Serialize, Deserialize)]
pub struct Depth {
    frame: u64,
    disparities: Image,
}

/// A value of one pair, with the number of its frame.
#[derive(Clone, Serialize, Deserialize)]
pub struct FrameValue<T> {
    frame: u64,
    value: T,
}

impl<T> FrameValue<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> FrameValue<U> {
        FrameValue { frame: self.frame, value: change(self.value) }
    }
}

/// Charges `operations` for each of `pixels` pixels.
fn charge(pixels: usize, operations: u64) {
    work(Work::new().integers(pixels as u64 * operations));
}

/// The names of the stages of a pair.
struct PairStages {
    enhance: &'static str,
    smooth: &'static str,
    rectify: &'static str,
    census: &'static str,
    matching: &'static str,
    fill: &'static str,
}

const FIRST: PairStages = PairStages {
    enhance: "enhance 1",
    smooth: "smooth 1",
    rectify: "rectify 1",
    census: "census 1",
    matching: "match 1",
    fill: "fill 1",
};

const SECOND: PairStages = PairStages {
    enhance: "enhance 2",
    smooth: "smooth 2",
    rectify: "rectify 2",
    census: "census 2",
    matching: "match 2",
    fill: "fill 2",
};

/// Sizes of the images of a pair, and the maximum number of replicas of its matching stage.
#[derive(Clone, Copy)]
struct BranchSize {
    pixels: usize,
    disparities: usize,
    replicas: usize,
}

/// Adds the stages of a pair, from its images to its disparities.
fn branch<In: CanSend>(
    stages: Stages<In, FrameValue<Pair>>,
    names: PairStages,
    size: BranchSize,
) -> Stages<In, FrameValue<Image>> {
    let BranchSize { pixels, disparities, replicas } = size;
    let of_pair = move |operations: u64, change: fn(Pair) -> Pair| {
        move |pair: FrameValue<Pair>| {
            charge(2 * pixels, operations);
            pair.map(change)
        }
    };
    stages
        .map(names.enhance, of_pair(4, |pair| pair.map(enhanced)))
        .map(names.smooth, of_pair(16, |pair| pair.map(smoothed)))
        .map(names.rectify, of_pair(4, rectified))
        .map(names.census, move |pair: FrameValue<Pair>| {
            charge(2 * pixels, 72);
            pair.map(|pair| census_of(&pair))
        })
        .map(names.matching, move |pair: FrameValue<CensusPair>| {
            charge(pixels, 18 * disparities as u64);
            pair.map(|pair| matched(&pair, disparities))
        })
        .replicated(replicas)
        .map(names.fill, move |map: FrameValue<Image>| {
            charge(pixels, 60);
            map.map(|map| filled(&map))
        })
}

impl Pipeline for Vision {
    type Input = u64;
    type Output = FrameResult;

    fn stages(&self) -> Stages<u64, FrameResult> {
        let scene = Rc::new(self.scene.clone());
        let (first, second, truth, last) =
            (Rc::clone(&scene), Rc::clone(&scene), Rc::clone(&scene), self.last);
        let pixels = scene.width * scene.height;
        let size = BranchSize { pixels, disparities: scene.disparities, replicas: self.replicas };
        Stages::new()
            .map("capture 1", move |frame: u64| {
                charge(2 * pixels, 8);
                FrameValue { frame, value: first.capture(frame, 0) }
            })
            .branch(
                "capture 2",
                move |pair: FrameValue<Pair>| {
                    charge(2 * pixels, 8);
                    let frame = pair.frame;
                    (pair, FrameValue { frame, value: second.capture(frame, 1) })
                },
                |stages| branch(stages, FIRST, size),
                |stages| branch(stages, SECOND, size),
            )
            .join("fuse", move |one: FrameValue<Image>, other: FrameValue<Image>| {
                charge(pixels, 8);
                Depth { frame: one.frame, disparities: fused(&one.value, &other.value, PAIR_SHIFT) }
            })
            .stateful("background", BackgroundModel::default(), move |model, depth: Depth| {
                charge(pixels, 2);
                let near = foreground(model, &depth.disparities);
                (depth, near)
            })
            .map("detect", move |(Depth { frame, disparities }, near)| {
                charge(pixels, 6);
                let blobs = detected(&near);
                let bad_pixels = bad_pixels(&disparities, &truth.truth(frame));
                let digest = digest(&disparities.pixels);
                let disparities = (frame == last).then_some(disparities);
                (FrameResult { frame, objects: Vec::new(), bad_pixels, digest, disparities }, blobs)
            })
            .stateful("track", Tracker::default(), |tracker, (found, blobs)| {
                charge(1, 1000);
                FrameResult { objects: tracked(tracker, blobs), ..found }
            })
    }
}
