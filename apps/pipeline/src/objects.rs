//! From disparities to tracked objects: connected cells nearer than the background, tracked over frames.

use crate::image::Image;
use serde::{Deserialize, Serialize};

/// Side of a cell in pixels.
const CELL: usize = 8;

/// Excess of disparity over the background above which a cell belongs to an object, in sixteenths.
const NEARER: i32 = 32;

/// Smallest number of cells of an object.
const CELLS_MIN: usize = 4;

/// Largest movement of an object between two frames, in pixels.
const STEP_MAX: i32 = 24;

/// Frames after which an unseen object is dropped.
const UNSEEN_MAX: u32 = 8;

/// The background: the disparity of each cell in sixteenths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundModel {
    #[serde(with = "isles::plain")]
    cells: Vec<i32>,
}

/// Mean disparities of cells, in sixteenths, and their excess over the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreground {
    columns: usize,
    #[serde(with = "isles::plain")]
    means: Vec<i32>,
    #[serde(with = "isles::plain")]
    nearer: Vec<i32>,
}

/// A near region in one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Its centre in pixels.
    x: i32,
    y: i32,
    /// Its disparity in sixteenths.
    disparity: i32,
}

/// A near region, tracked over frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its number, from 0 in order of first sight.
    pub number: u32,
    pub x: i32,
    pub y: i32,
    /// Its disparity in sixteenths of a pixel.
    pub disparity: i32,
    /// Its movement since the previous frame.
    pub step: (i32, i32),
    unseen: u32,
}

/// The objects being tracked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracker {
    objects: Vec<Object>,
    next: u32,
}

/// Compares a disparity map with the background, which starts as the first map. The background adapts at once to cells
/// that are farther, and slowly to cells that are nearer.
pub fn foreground(model: &mut BackgroundModel, disparities: &Image) -> Foreground {
    let columns = disparities.width / CELL;
    let rows = disparities.height / CELL;
    let mean = |cell: usize| {
        let (left, top) = (cell % columns * CELL, cell / columns * CELL);
        let values = (top..top + CELL).flat_map(|y| &disparities.row(y)[left..left + CELL]);
        values.map(|value| i32::from(*value)).sum::<i32>() * 16 / (CELL * CELL) as i32
    };
    let means: Vec<i32> = (0..columns * rows).map(mean).collect();
    if model.cells.is_empty() {
        model.cells.clone_from(&means);
    }
    let nearer = means.iter().zip(&mut model.cells).map(|(mean, background)| {
        let nearer = *mean - *background;
        *background += if nearer < 0 { nearer } else { (nearer + 31) / 64 };
        nearer
    });
    Foreground { columns, nearer: nearer.collect(), means }
}

/// Returns the connected cells that are nearer than the background.
pub fn detected(foreground: &Foreground) -> Vec<Blob> {
    let Foreground { columns, means, nearer } = foreground;
    let mut is_open: Vec<bool> = nearer.iter().map(|nearer| *nearer > NEARER).collect();
    let mut blobs = Vec::new();
    for start in 0..is_open.len() {
        let (mut cells, mut stack) = (Vec::new(), vec![start]);
        while let Some(cell) = stack.pop() {
            if !std::mem::replace(&mut is_open[cell], false) {
                continue;
            }
            cells.push(cell);
            let (column, last) = (cell % columns, columns - 1);
            let mut visit = |holds: bool, other: usize| {
                // Cells of one object have similar disparities.
                if holds && is_open[other] && means[other].abs_diff(means[cell]) < 6 * NEARER as u32 {
                    stack.push(other);
                }
            };
            visit(column > 0, cell.wrapping_sub(1));
            visit(column < last, cell + 1);
            visit(cell >= *columns, cell.wrapping_sub(*columns));
            visit(cell + columns < nearer.len(), (cell + columns).min(nearer.len() - 1));
        }
        if cells.len() >= CELLS_MIN {
            blobs.push(blob(&cells, *columns, means));
        }
    }
    blobs
}

fn blob(cells: &[usize], columns: usize, means: &[i32]) -> Blob {
    let count = cells.len() as i32;
    let mean = |value: &dyn Fn(usize) -> i32| cells.iter().map(|cell| value(*cell)).sum::<i32>() / count;
    let centre = |index: usize| (index * CELL + CELL / 2) as i32;
    Blob {
        x: mean(&|cell| centre(cell % columns)),
        y: mean(&|cell| centre(cell / columns)),
        // Cells at the edges partly show the background.
        disparity: cells.iter().map(|cell| means[*cell]).max().unwrap_or(0),
    }
}

/// Tracks objects: each takes the blob nearest to its predicted position; the remaining blobs are new objects.
pub fn tracked(tracker: &mut Tracker, mut blobs: Vec<Blob>) -> Vec<Object> {
    for object in &mut tracker.objects {
        let expected = (object.x + object.step.0, object.y + object.step.1);
        let distance = |blob: &Blob| {
            (blob.x - expected.0).abs().max((blob.y - expected.1).abs())
                + (blob.disparity - object.disparity).abs() / 16
        };
        let nearest = (0..blobs.len()).min_by_key(|index| (distance(&blobs[*index]), *index));
        match nearest.filter(|index| distance(&blobs[*index]) <= STEP_MAX) {
            Some(index) => {
                let Blob { x, y, disparity } = blobs.remove(index);
                object.step = (x - object.x, y - object.y);
                (object.x, object.y, object.disparity, object.unseen) = (x, y, disparity, 0);
            }
            None => object.unseen += 1,
        }
    }
    tracker.objects.retain(|object| object.unseen <= UNSEEN_MAX);
    for Blob { x, y, disparity } in blobs {
        tracker.objects.push(Object { number: tracker.next, x, y, disparity, step: (0, 0), unseen: 0 });
        tracker.next += 1;
    }
    tracker.objects.iter().filter(|object| object.unseen == 0).cloned().collect()
}
