//! The kernel stencil: a star over a square grid in blocks, with halos from the neighbouring places.

use super::{KernelOutcome, MFLOPS, Sizes, begin};
use isles::array::{ArrayPart, DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::svm::RegionCounts;
use serde::{Deserialize, Serialize};

/// Checks that the star fits into the grid, and that each place has a row.
pub(super) fn check(sizes: &Sizes, places: u32) -> Result<(), String> {
    let Sizes { order, radius, .. } = sizes;
    if *order <= 2 * radius {
        return Err(format!(
            "--order is {order}; allowed with a radius of {radius}: at least {}",
            2 * radius + 1
        ));
    }
    match order * order >= places as usize {
        true => Ok(()),
        false => Err(format!("--order is {order}; allowed with {places} places: a point for each")),
    }
}

/// Runs the kernel over all places.
pub(super) async fn run(Sizes { order, radius, iterations, .. }: Sizes) -> isles::Result<KernelOutcome> {
    let team = Team::world();
    let blocks = [Distribution::Block; 2];
    let halo = Halo::new(radius);
    let input = DistArray::<f64, 2>::with_halo(&team, [order; 2], blocks, halo).await?;
    let output = DistArray::<f64, 2>::with_halo(&team, [order; 2], blocks, halo).await?;
    let found = everywhere!({
        match radius {
            1 => sweeps::<1>(&team, &input, &output, iterations).await?,
            2 => sweeps::<2>(&team, &input, &output, iterations).await?,
            3 => sweeps::<3>(&team, &input, &output, iterations).await?,
            _ => sweeps::<4>(&team, &input, &output, iterations).await?,
        }
    })
    .await?;
    Ok(outcome(&found, order, radius, iterations))
}

/// Result of one place.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct StencilShare {
    pub(super) seconds: f64,
    /// Sum of the absolute values of its output, and its digest.
    pub(super) sum: f64,
    pub(super) digest: u64,
    pub(super) pages: Option<RegionCounts>,
}

impl StencilShare {
    /// Adds an element of the output. The digest does not depend on the order of the elements.
    pub(super) fn add(&mut self, index: usize, element: f64) {
        self.sum += element.abs();
        let mixed = (element.to_bits() ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .wrapping_mul(0xBF58_476D_1CE4_E5B9);
        self.digest = self.digest.wrapping_add(mixed ^ mixed >> 32);
    }
}

/// Combines the results of all places into the outcome.
pub(super) fn outcome(found: &[StencilShare], order: usize, radius: usize, iterations: u64) -> KernelOutcome {
    let seconds = found.iter().map(|share| share.seconds).fold(0.0, f64::max);
    let sum: f64 = found.iter().map(|share| share.sum).sum();
    let points = ((order - 2 * radius) * (order - 2 * radius)) as f64;
    // The weights yield the slope of the grid in both directions, which is 1 in each.
    let error = (sum / points - 2.0 * (iterations + 1) as f64).abs();
    let operations = iterations as f64 * (2 * (4 * radius + 1) + 1) as f64 * points;
    KernelOutcome {
        digest: Some(found.iter().fold(0_u64, |sum, share| sum.wrapping_add(share.digest))),
        pages: found.iter().filter_map(|share| share.pages).reduce(RegionCounts::plus),
        ..KernelOutcome::new(seconds, operations, MFLOPS, error)
    }
}

/// Runs the part of this place.
async fn sweeps<const R: usize>(
    team: &Team,
    input: &DistArray<f64, 2>,
    output: &DistArray<f64, 2>,
    iterations: u64,
) -> isles::Result<StencilShare> {
    let [order, _] = input.extents();
    input.lock().for_each(|[row, column], element| *element = (row + column) as f64);
    let inner = Inner::of(&input.read(), order, R);
    let mut started = now();
    for iteration in 0..=iterations {
        if iteration == 1 {
            started = begin(team).await?;
        }
        input.exchange().await?;
        work(inner.work(R));
        add_star::<R>(&input.read(), &mut output.lock(), &inner);
        let mut part = input.lock();
        let [rows, columns] = part.extents();
        for row in 0..rows {
            part.line_mut([row as isize, 0])[..columns].iter_mut().for_each(|element| *element += 1.0);
        }
    }
    let mut share = StencilShare { seconds: (now() - started).as_secs_f64(), ..StencilShare::default() };
    output.lock().for_each(|[row, column], element| share.add(row * order + column, *element));
    Ok(share)
}

/// Rows and columns of a part whose star lies within the grid.
struct Inner {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
}

impl Inner {
    fn of(part: &ArrayPart<f64, 2>, order: usize, radius: usize) -> Inner {
        let extents = part.extents();
        let first = if extents.contains(&0) { [0; 2] } else { part.global([0, 0]) };
        let [rows, columns] = [0, 1].map(|axis| {
            let start = radius.saturating_sub(first[axis]).min(extents[axis]);
            let end = (order - radius).saturating_sub(first[axis]).min(extents[axis]);
            start..end.max(start)
        });
        Inner { rows, columns }
    }

    fn work(&self, radius: usize) -> Work {
        let points = (self.rows.len() * self.columns.len()) as u64;
        let bytes = 32 * points;
        Work::new().floats(points * (2 * (4 * radius as u64 + 1) + 2)).streamed(bytes).of(bytes)
    }
}

/// Adds the star around each inner point of `input` to `output`, row by row.
fn add_star<const R: usize>(input: &ArrayPart<f64, 2>, output: &mut ArrayPart<f64, 2>, inner: &Inner) {
    let width = inner.columns.len();
    if width == 0 {
        return;
    }
    let (left, from) = (inner.columns.start as isize, inner.columns.start as isize - R as isize);
    for row in inner.rows.clone() {
        let row = row as isize;
        let line = &input.line([row, from])[..width + 2 * R];
        let above: [&[f64]; R] =
            std::array::from_fn(|index| &input.line([row - 1 - index as isize, left])[..width]);
        let below: [&[f64]; R] =
            std::array::from_fn(|index| &input.line([row + 1 + index as isize, left])[..width]);
        add_line::<R>(line, above, below, &mut output.line_mut([row, left])[..width]);
    }
}

/// Adds the star around each point of a line to `sums`. `line` extends `R` points beyond each end; `above` and `below`
/// are the lines at distances 1 to `R`, as long as `sums`. Inlined, because the loop is vectorized only if the
/// compiler knows these lengths.
#[inline(always)]
pub(super) fn add_line<const R: usize>(
    line: &[f64],
    above: [&[f64]; R],
    below: [&[f64]; R],
    sums: &mut [f64],
) {
    let weights: [f64; R] = std::array::from_fn(|index| 1.0 / (2.0 * (index + 1) as f64 * R as f64));
    for (column, sum) in sums.iter_mut().enumerate() {
        let mut star = 0.0;
        for index in 0..R {
            let far = index + 1;
            let beside = line[column + R + far] - line[column + R - far];
            star += weights[index] * (beside + (below[index][column] - above[index][column]));
        }
        *sum += star;
    }
}
