//! The same frames in a plain loop, without places and pipeline: the reference results.

use crate::image::Image;
use crate::objects::{BackgroundModel, Tracker, detected, foreground, tracked};
use crate::scene::{PAIR_SHIFT, Scene};
use crate::stereo::{bad_pixels, census_of, digest, enhanced, filled, fused, matched, rectified, smoothed};

/// Returns the disparities of a pair of cameras.
fn disparities(scene: &Scene, frame: u64, pair: usize) -> Image {
    let images = rectified(scene.capture(frame, pair).map(enhanced).map(smoothed));
    filled(&matched(&census_of(&images), scene.disparities))
}

/// Calls `each` for each frame with the hash of the disparities and the number, position and disparity of each object;
/// returns the mean share of bad pixels.
pub fn frames(scene: &Scene, frames: u64, mut each: impl FnMut(u64, &[(u32, i32, i32, i32)])) -> f64 {
    let (mut background, mut tracker) = (BackgroundModel::default(), Tracker::default());
    let mut bad = 0.0;
    for frame in 0..frames {
        let depth = fused(&disparities(scene, frame, 0), &disparities(scene, frame, 1), PAIR_SHIFT);
        let objects = tracked(&mut tracker, detected(&foreground(&mut background, &depth)));
        bad += bad_pixels(&depth, &scene.truth(frame));
        let objects: Vec<_> =
            objects.iter().map(|object| (object.number, object.x, object.y, object.disparity)).collect();
        each(digest(&depth.pixels), &objects);
    }
    bad / frames.max(1) as f64
}
