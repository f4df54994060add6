//! The tracer of the levels: transported by what flows through faces, mixed, and conserved.
//!
//! One step forward in time. At a face the tracer is that of the cell upstream with a slope to the middle of the step
//! (Lax and Wendroff), which the limiter of van Leer (Towards the ultimate conservative difference scheme IV, 1977, the
//! monotonised central one) keeps from making new extremes. What rises through the bottom of a layer follows from
//! continuity, with the layers moving as the surface does. Invariants: what leaves a cell enters its neighbour, and a
//! tracer that is the same everywhere stays so, both to rounding.

use crate::external::{Statics, Transports};
use crate::setup::{Grid, Physics};
use crate::tile::Tile;

/// The input of a step of the tracer.
pub struct Advection<'a> {
    pub tile: &'a Tile,
    pub grid: &'a Grid,
    pub physics: &'a Physics,
    pub statics: &'a Statics,
    /// The surface before the step and after it, with halos.
    pub surface: [&'a [f64]; 2],
    /// Mean velocities of the columns after it, with halos.
    pub mean: [&'a [f64]; 2],
    /// Seconds of the step, and the short steps in it.
    pub step: f64,
    pub substeps: u32,
}

/// Memory of a step: planes with halos.
#[derive(Clone, Debug, Default)]
pub struct TracerScratch {
    /// Mean thickness of the water at faces.
    wet: [Vec<f64>; 2],
    /// Factors by which a transport through a face becomes the part of a cell that it empties.
    courant: [Vec<f64>; 2],
    /// Transports of a level, and of the tracer in it.
    flow: [Vec<f64>; 2],
    carried: [Vec<f64>; 2],
    /// One over the thickness of a layer after the step; 0 on land.
    inverse: Vec<f64>,
    /// The amounts of tracer that rise through the bottom and the top of a level.
    below: Vec<f64>,
    above: Vec<f64>,
}

impl TracerScratch {
    pub fn new(tile: &Tile) -> TracerScratch {
        let plane = || vec![0.0; tile.plane()];
        let pair = || [plane(), plane()];
        TracerScratch {
            wet: pair(),
            courant: pair(),
            flow: pair(),
            carried: pair(),
            inverse: plane(),
            below: plane(),
            above: plane(),
        }
    }
}

/// The tracer at a face: `upstream` and the difference `rise` to the cell downstream, `before` the one to the cell
/// before it; `courant` is which part of the cell upstream passes in a step.
#[inline(always)]
pub(crate) fn at_face(upstream: f64, before: f64, rise: f64, courant: f64) -> f64 {
    let (one, two) = (2.0 * before.abs(), 2.0 * rise.abs());
    let (least, middle) = (if one < two { one } else { two }, 0.5 * (before + rise).abs());
    let size = if middle < least { middle } else { least };
    let slope = if before * rise > 0.0 { size.copysign(rise) } else { 0.0 };
    upstream + 0.5 * (1.0 - courant) * slope
}

impl Advection<'_> {
    /// Computes the tracer after the step, and the vertical velocities at the bottoms of all levels and at the surface.
    pub fn advance(
        &self,
        (east, north): (&[f64], &[f64]),
        (tracer, next, rise): (&[f64], &mut [f64], &mut [f64]),
        transports: &Transports,
        scratch: &mut TracerScratch,
    ) {
        let (tile, plane) = (self.tile, self.tile.plane());
        self.measure_faces(scratch);
        self.invert_thickness(scratch);
        rise[..plane].fill(0.0);
        scratch.below.fill(0.0);
        for level in 0..tile.levels {
            let here = level * plane;
            let sums = [&transports.sum_u, &transports.sum_v];
            for (direction, velocity) in [east, north].into_iter().enumerate() {
                self.flow(direction, &velocity[here..here + plane], sums[direction], scratch);
            }
            let (under, over) = rise.split_at_mut(here + plane);
            self.rise(&under[here..], &mut over[..plane], scratch);
            for direction in 0..2 {
                self.advect(direction, &tracer[here..here + plane], scratch);
            }
            self.advect_up(tracer, level, &over[..plane], scratch);
            self.collect(&tracer[here..here + plane], &mut next[here..here + plane], scratch);
            std::mem::swap(&mut scratch.below, &mut scratch.above);
        }
    }

    /// The distance in memory to the next face of a direction, and metres between them.
    fn direction(&self, direction: usize) -> (usize, f64) {
        if direction == 0 { (1, self.grid.dx) } else { (self.tile.stride(), self.grid.dy) }
    }

    fn mask(&self, direction: usize) -> &[f64] {
        if direction == 0 { &self.statics.mask_u } else { &self.statics.mask_v }
    }

    fn measure_faces(&self, scratch: &mut TracerScratch) {
        let (levels, surface) = (self.tile.levels as f64, self.surface[1]);
        for direction in 0..2 {
            let (along, spacing) = self.direction(direction);
            let by = self.step * levels / spacing;
            for line in self.tile.lines_with([1, 2, 1, 2]) {
                let n = line.len();
                let depth = &self.statics.depth;
                let (here, there) = (line.start, line.start - along);
                let (surface_here, surface_there) = (&surface[here..here + n], &surface[there..there + n]);
                let (depth_here, depth_there) = (&depth[here..here + n], &depth[there..there + n]);
                let mask = &self.mask(direction)[line.clone()];
                let wet = &mut scratch.wet[direction][line.clone()];
                let courant = &mut scratch.courant[direction][line];
                for i in 0..n {
                    wet[i] = 0.5 * ((surface_here[i] + depth_here[i]) + (surface_there[i] + depth_there[i]));
                    courant[i] = if mask[i] > 0.0 { by / wet[i] } else { 0.0 };
                }
            }
        }
    }

    fn invert_thickness(&self, scratch: &mut TracerScratch) {
        let levels = self.tile.levels as f64;
        for line in self.tile.lines(0) {
            let (depth, surface) = (&self.statics.depth[line.clone()], &self.surface[1][line.clone()]);
            let inverse = &mut scratch.inverse[line];
            for i in 0..inverse.len() {
                inverse[i] = if depth[i] > 0.0 { levels / (depth[i] + surface[i]) } else { 0.0 };
            }
        }
    }

    /// Transports of a level through the faces of the tile and of a ring around it.
    fn flow(&self, direction: usize, velocity: &[f64], sums: &[f64], scratch: &mut TracerScratch) {
        let part = 1.0 / self.tile.levels as f64;
        let share = 1.0 / f64::from(self.substeps);
        for line in self.tile.lines_with([1, 2, 1, 2]) {
            let (velocity, sum) = (&velocity[line.clone()], &sums[line.clone()]);
            let (mean, wet) = (&self.mean[direction][line.clone()], &scratch.wet[direction][line.clone()]);
            let flow = &mut scratch.flow[direction][line];
            mix_flow(flow, [velocity, sum, mean, wet], [part, share]);
        }
    }

    /// The vertical velocities at the top of a level from those at its bottom, by continuity.
    fn rise(&self, under: &[f64], over: &mut [f64], scratch: &TracerScratch) {
        let part = 1.0 / (self.tile.levels as f64 * self.step);
        let (by_x, by_y) = (1.0 / self.grid.dx, 1.0 / self.grid.dy);
        let stride = self.tile.stride();
        for line in self.tile.lines(1) {
            let n = line.len();
            let [u, v] = &scratch.flow;
            let (west, east) = (&u[line.clone()], &u[line.start + 1..][..n]);
            let (south, north) = (&v[line.clone()], &v[line.start + stride..][..n]);
            let (before, after) = (&self.surface[0][line.clone()], &self.surface[1][line.clone()]);
            let (under, over) = (&under[line.clone()], &mut over[line]);
            lift(over, [under, west, east, south, north, before, after], [by_x, by_y, part]);
        }
    }

    /// The amount of tracer that passes each face of the tile.
    fn advect(&self, direction: usize, tracer: &[f64], scratch: &mut TracerScratch) {
        let (along, spacing) = self.direction(direction);
        let spread = self.physics.diffusivity / (spacing * self.tile.levels as f64);
        let around = if direction == 0 { [0, 0, 0, 1] } else { [0, 1, 0, 0] };
        let mask = self.mask(direction);
        for line in self.tile.lines_with(around) {
            let (n, start) = (line.len(), line.start);
            let faces = Faces {
                second: &tracer[start - 2 * along..][..n],
                first: &tracer[start - along..][..n],
                here: &tracer[start..][..n],
                beyond: &tracer[start + along..][..n],
                mask_before: &mask[start - along..][..n],
                mask_beyond: &mask[start + along..][..n],
                mask: &mask[start..][..n],
                flow: &scratch.flow[direction][line.clone()],
                courant: &scratch.courant[direction][line.clone()],
                wet: &scratch.wet[direction][line.clone()],
            };
            advect_faces(&mut scratch.carried[direction][line], &faces, spread);
        }
    }

    /// The amount of tracer that rises through the top of a level; none through the surface.
    fn advect_up(&self, tracer: &[f64], level: usize, rise: &[f64], scratch: &mut TracerScratch) {
        let (plane, levels) = (self.tile.plane(), self.tile.levels);
        if level + 1 == levels {
            scratch.above.fill(0.0);
            return;
        }
        let plane_of = |level: usize| &tracer[level * plane..][..plane];
        let (second, first) = (plane_of(level.saturating_sub(1)), plane_of(level));
        let (here, beyond) = (plane_of(level + 1), plane_of((level + 2).min(levels - 1)));
        let mixed = self.physics.vertical_diffusivity;
        for line in self.tile.lines(0) {
            let (second, first) = (&second[line.clone()], &first[line.clone()]);
            let (here, beyond) = (&here[line.clone()], &beyond[line.clone()]);
            let inverse = &scratch.inverse[line.clone()];
            let (rise, above) = (&rise[line.clone()], &mut scratch.above[line]);
            advect_tops(above, [second, first, here, beyond, inverse, rise], [self.step, mixed]);
        }
    }

    /// The tracer of a level after the step.
    fn collect(&self, tracer: &[f64], next: &mut [f64], scratch: &TracerScratch) {
        let part = 1.0 / self.tile.levels as f64;
        let (by_x, by_y) = (self.step / self.grid.dx, self.step / self.grid.dy);
        let (stride, depth) = (self.tile.stride(), &self.statics.depth);
        for line in self.tile.lines(0) {
            let n = line.len();
            let [u, v] = &scratch.carried;
            let (west, east) = (&u[line.clone()], &u[line.start + 1..][..n]);
            let (south, north) = (&v[line.clone()], &v[line.start + stride..][..n]);
            let (under, over) = (&scratch.below[line.clone()], &scratch.above[line.clone()]);
            let (before, inverse) = (&self.surface[0][line.clone()], &scratch.inverse[line.clone()]);
            let (depth, tracer) = (&depth[line.clone()], &tracer[line.clone()]);
            let next = &mut next[line];
            let sides = [west, east, south, north, under, over];
            collect_row(next, sides, [depth, before, inverse, tracer], [by_x, by_y, self.step, part]);
        }
    }
}

/// Inputs of the flow of tracer through a row of faces, each as long as the row: the tracer of two cells before and two
/// behind a face, the open faces, and the transports.
struct Faces<'a> {
    second: &'a [f64],
    first: &'a [f64],
    here: &'a [f64],
    beyond: &'a [f64],
    mask_before: &'a [f64],
    mask_beyond: &'a [f64],
    mask: &'a [f64],
    flow: &'a [f64],
    courant: &'a [f64],
    wet: &'a [f64],
}

// Functions of their own, so that the compiler knows that what they write overlaps nothing.

#[inline(never)]
fn mix_flow(flow: &mut [f64], values: [&[f64]; 4], [part, share]: [f64; 2]) {
    let n = flow.len();
    let [velocity, sum, mean, wet] = values.map(|values| &values[..n]);
    for i in 0..n {
        flow[i] = part * (share * sum[i] + wet[i] * (velocity[i] - mean[i]));
    }
}

#[inline(never)]
fn lift(over: &mut [f64], values: [&[f64]; 7], [by_x, by_y, part]: [f64; 3]) {
    let n = over.len();
    let [under, west, east, south, north, before, after] = values.map(|values| &values[..n]);
    for i in 0..n {
        let flows_out = by_x * (east[i] - west[i]) + by_y * (north[i] - south[i]);
        over[i] = under[i] - (flows_out + part * (after[i] - before[i]));
    }
}

#[inline(never)]
fn advect_faces(carried: &mut [f64], faces: &Faces<'_>, spread: f64) {
    let n = carried.len();
    let Faces { second, first, here, beyond, mask_before, mask_beyond, mask, flow, courant, wet } = faces;
    let (second, first, here, beyond) = (&second[..n], &first[..n], &here[..n], &beyond[..n]);
    let (mask_before, mask_beyond, mask) = (&mask_before[..n], &mask_beyond[..n], &mask[..n]);
    let (flow, courant, wet) = (&flow[..n], &courant[..n], &wet[..n]);
    for i in 0..n {
        let rise = here[i] - first[i];
        let is_forward = flow[i] >= 0.0;
        let from_west = (first[i] - second[i]) * mask_before[i];
        let from_east = (here[i] - beyond[i]) * mask_beyond[i];
        let upstream = if is_forward { first[i] } else { here[i] };
        let before = if is_forward { from_west } else { from_east };
        let downstream = if is_forward { rise } else { -rise };
        let at = at_face(upstream, before, downstream, flow[i].abs() * courant[i]);
        carried[i] = flow[i] * at - spread * wet[i] * rise * mask[i];
    }
}

#[inline(never)]
fn advect_tops(above: &mut [f64], values: [&[f64]; 6], [step, mixed]: [f64; 2]) {
    let n = above.len();
    let [second, first, here, beyond, inverse, rise] = values.map(|values| &values[..n]);
    for i in 0..n {
        let up = here[i] - first[i];
        let is_upward = rise[i] >= 0.0;
        let upstream = if is_upward { first[i] } else { here[i] };
        let (from_below, from_above) = (first[i] - second[i], here[i] - beyond[i]);
        let before = if is_upward { from_below } else { from_above };
        let downstream = if is_upward { up } else { -up };
        let at = at_face(upstream, before, downstream, rise[i].abs() * step * inverse[i]);
        above[i] = rise[i] * at - mixed * inverse[i] * up;
    }
}

#[inline(never)]
fn collect_row(
    next: &mut [f64],
    sides: [&[f64]; 6],
    values: [&[f64]; 4],
    [by_x, by_y, step, part]: [f64; 4],
) {
    let n = next.len();
    let [west, east, south, north, under, over] = sides.map(|values| &values[..n]);
    let [depth, before, inverse, tracer] = values.map(|values| &values[..n]);
    for i in 0..n {
        let left = by_x * (east[i] - west[i]) + by_y * (north[i] - south[i]) + step * (over[i] - under[i]);
        next[i] = (tracer[i] * (part * (depth[i] + before[i])) - left) * inverse[i];
    }
}
