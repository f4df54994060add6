//! From two images to disparities: enhancement, smoothing, rectification, census transform, matching, filling.
//!
//! All arithmetic uses integers, so results have the same bits everywhere. The census transform and the sum of Hamming
//! distances over a window are those of R. Zabih and J. Woodfill, "Non-parametric Local Transforms for Computing
//! Visual Correspondence" (ECCV 1994).

use crate::image::{Image, Pair};
use serde::{Deserialize, Serialize};

/// The disparity of a pixel without a match.
pub const UNKNOWN: u8 = u8::MAX;

/// Half the side of the window over which distances are summed.
const WINDOW: usize = 3;

/// Largest difference between the disparities in both images of a point that both cameras see.
const AGREES: u8 = 1;

/// Census transforms of a pair: comparisons of each pixel with 24 neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CensusPair {
    pub width: usize,
    pub height: usize,
    #[serde(with = "isles::plain")]
    pub left: Vec<u32>,
    #[serde(with = "isles::plain")]
    pub right: Vec<u32>,
}

/// Stretches the contrast, so that the darkest and the brightest hundredth of the pixels are black and white.
pub fn enhanced(image: &Image) -> Image {
    let mut histogram = [0_usize; 256];
    image.pixels.iter().for_each(|pixel| histogram[usize::from(*pixel)] += 1);
    let part = image.pixels.len() / 100;
    let level_of = |mut levels: Box<dyn Iterator<Item = usize>>| {
        let mut seen = 0;
        let is_past = |level: &usize| {
            seen += histogram[*level];
            seen > part
        };
        levels.find(is_past).unwrap_or(0)
    };
    let (low, high) = (level_of(Box::new(0..256)), level_of(Box::new((0..256).rev())));
    let range = high.saturating_sub(low).max(1);
    let table: Vec<u8> =
        (0..256).map(|level: usize| (level.saturating_sub(low) * 255 / range).min(255) as u8).collect();
    Image { pixels: image.pixels.iter().map(|pixel| table[usize::from(*pixel)]).collect(), ..*image }
}

/// Smooths with the binomial weights 1 2 1 in both directions.
pub fn smoothed(image: &Image) -> Image {
    let sum = |row: &[u8], x: usize| {
        let (before, after) = (x.saturating_sub(1), (x + 1).min(row.len() - 1));
        u32::from(row[before]) + 2 * u32::from(row[x]) + u32::from(row[after])
    };
    Image::of(image.width, image.height, |x, y| {
        let (above, below) = (y.saturating_sub(1), (y + 1).min(image.height - 1));
        ((sum(image.row(above), x) + 2 * sum(image.row(y), x) + sum(image.row(below), x) + 8) / 16) as u8
    })
}

/// Moves the right image up or down by up to two rows, so that the rows of both images match best, because the cameras
/// of a pair are never mounted exactly.
pub fn rectified(pair: Pair) -> Pair {
    let difference = |shift: isize| -> u64 {
        let rows = (4..pair.left.height.saturating_sub(4)).step_by(4);
        let row_mean = |image: &Image, y: isize| -> i64 {
            (0..image.width as isize).step_by(2).map(|x| i64::from(image.at(x, y))).sum()
        };
        rows.map(|y| row_mean(&pair.left, y as isize).abs_diff(row_mean(&pair.right, y as isize + shift)))
            .sum()
    };
    let best = (-2..=2).min_by_key(|shift| (difference(*shift), shift.abs())).expect("there are five");
    if best == 0 {
        return pair;
    }
    let right =
        Image::of(pair.right.width, pair.right.height, |x, y| pair.right.at(x as isize, y as isize + best));
    Pair { right, ..pair }
}

/// Compares each pixel with the others of the 5 by 5 window around it.
fn census(image: &Image) -> Vec<u32> {
    let mut bits = Vec::with_capacity(image.pixels.len());
    for y in 0..image.height as isize {
        for x in 0..image.width as isize {
            let centre = image.at(x, y);
            let mut word = 0;
            for dy in -2..=2 {
                for dx in -2..=2 {
                    if (dx, dy) != (0, 0) {
                        word = word << 1 | u32::from(image.at(x + dx, y + dy) < centre);
                    }
                }
            }
            bits.push(word);
        }
    }
    bits
}

/// Returns the census transforms of a pair.
pub fn census_of(pair: &Pair) -> CensusPair {
    let Pair { left, right } = pair;
    CensusPair { width: left.width, height: left.height, left: census(left), right: census(right) }
}

/// Returns the disparity of each pixel of the left image, below `disparities`: that with the least sum of Hamming
/// distances over the window; [`UNKNOWN`] if the right image has another one, because one camera does not see the
/// point.
pub fn matched(pair: &CensusPair, disparities: usize) -> Image {
    let (width, height) = (pair.width, pair.height);
    let mut left_best = vec![(u32::MAX, UNKNOWN); width * height];
    let mut right_best = left_best.clone();
    let mut distances = vec![0_u32; width * height];
    for disparity in 0..disparities {
        for y in 0..height {
            let row = y * width..(y + 1) * width;
            let (left, right) = (&pair.left[row.clone()], &pair.right[row.clone()]);
            let (outside, inside) = distances[row].split_at_mut(disparity.min(width));
            outside.fill(24); // where the right camera sees nothing, nothing fits
            for (distance, (left, right)) in inside.iter_mut().zip(left[disparity..].iter().zip(right)) {
                *distance = (left ^ right).count_ones();
            }
        }
        let sums = window_sums(&distances, width, height);
        let choose = |best: &mut (u32, u8), sum: u32| *best = (*best).min((sum, disparity as u8));
        for (y, sums) in sums.chunks(width).enumerate() {
            let row = y * width..(y + 1) * width;
            left_best[row.clone()].iter_mut().zip(sums).for_each(|(best, sum)| choose(best, *sum));
            right_best[row].iter_mut().zip(&sums[disparity..]).for_each(|(best, sum)| choose(best, *sum));
        }
    }
    Image::of(width, height, |x, y| {
        let disparity = left_best[y * width + x].1;
        let seen_at = x.checked_sub(usize::from(disparity));
        let other = seen_at.map(|x| right_best[y * width + x].1);
        if other.is_some_and(|other| other.abs_diff(disparity) <= AGREES) { disparity } else { UNKNOWN }
    })
}

/// Returns the sum over the window around each pixel; at the edges the window is smaller.
fn window_sums(values: &[u32], width: usize, height: usize) -> Vec<u32> {
    let mut across = vec![0; values.len()];
    for (sums, row) in across.chunks_mut(width).zip(values.chunks(width)) {
        let mut sum: u32 = row[..WINDOW.min(width)].iter().sum();
        for x in 0..width {
            sum += row.get(x + WINDOW).copied().unwrap_or(0);
            sums[x] = sum;
            if x >= WINDOW {
                sum -= row[x - WINDOW];
            }
        }
    }
    let mut all = vec![0; values.len()];
    let mut sums: Vec<u32> =
        (0..width).map(|x| (0..WINDOW.min(height)).map(|y| across[y * width + x]).sum()).collect();
    for y in 0..height {
        if y + WINDOW < height {
            let enters = &across[(y + WINDOW) * width..][..width];
            sums.iter_mut().zip(enters).for_each(|(sum, value)| *sum += value);
        }
        all[y * width..][..width].copy_from_slice(&sums);
        if y >= WINDOW {
            let leaves = &across[(y - WINDOW) * width..][..width];
            sums.iter_mut().zip(leaves).for_each(|(sum, value)| *sum -= value);
        }
    }
    all
}

/// Fills unknown disparities with the nearest known one of the row, the farther surface of two; then takes the median
/// of three by three.
pub fn filled(disparities: &Image) -> Image {
    let mut full = disparities.clone();
    for row in full.pixels.chunks_mut(disparities.width) {
        let mut x = 0;
        while x < row.len() {
            let end =
                row[x..].iter().position(|value| *value != UNKNOWN).map_or(row.len(), |known| x + known);
            if end > x {
                let before = if x > 0 { row[x - 1] } else { UNKNOWN };
                let after = row.get(end).copied().unwrap_or(UNKNOWN);
                let value = before.min(after);
                row[x..end].fill(if value == UNKNOWN { 0 } else { value });
            }
            x = end.max(x) + 1;
        }
    }
    Image::of(full.width, full.height, |x, y| {
        let mut window = [0; 9];
        for (index, value) in window.iter_mut().enumerate() {
            *value = full.at(x as isize + index as isize % 3 - 1, y as isize + index as isize / 3 - 1);
        }
        window.sort_unstable();
        window[4]
    })
}

/// Merges both maps; where they differ by more than one, the farther surface wins. The second image is shifted to the
/// left by `shift` pixels.
pub fn fused(first: &Image, second: &Image, shift: usize) -> Image {
    Image::of(first.width, first.height, |x, y| {
        let one = first.at(x as isize, y as isize);
        if x < shift {
            return one;
        }
        let other = second.at((x - shift) as isize, y as isize);
        if one.abs_diff(other) <= 1 { one } else { one.min(other) }
    })
}

/// Returns the share of the pixels with a known disparity whose computed one is off by more than 2 pixels.
pub fn bad_pixels(disparities: &Image, truth: &[u16]) -> f64 {
    let known = || disparities.pixels.iter().zip(truth).filter(|(_, truth)| **truth > 0);
    let bad = known().filter(|(found, truth)| (u16::from(**found) * 16).abs_diff(**truth) > 32).count();
    bad as f64 / known().count().max(1) as f64
}

/// Returns a hash of bytes: 64-bit FNV-1a.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
