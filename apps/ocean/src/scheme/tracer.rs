//! The tracer of the levels: advected by the transports through faces, mixed, and conserved.
//!
//! A step is forward in time. The value at a face is that of the upstream cell, extrapolated to the middle of the step
//! (Lax and Wendroff). The limiter of van Leer (Towards the ultimate conservative difference scheme IV, 1977,
//! monotonised central) prevents new extremes. The flow through the bottom of a layer follows from continuity, with
//! layers that move with the surface. Invariants: the outflow of a cell enters its neighbour, and a uniform tracer
//! stays uniform, both to rounding. Rows are processed from the south, each with all its levels, so that a row is
//! reused while it is in a cache: the fluxes through its northern faces are kept for the next row.

use crate::scheme::external::Statics;
use crate::scheme::tile::row_kernels;
use crate::scheme::tile::{HALO, Tile};
use crate::setup::{Grid, Physics};
use std::ops::Range;

/// The input of a step of the tracer.
pub struct Advection<'a> {
    pub tile: &'a Tile,
    pub grid: &'a Grid,
    pub physics: &'a Physics,
    pub statics: &'a Statics,
    /// The surface before the step and after it, with halos.
    pub surface: [&'a [f64]; 2],
    /// Mean velocities of the columns after the step, with halos.
    pub mean: [&'a [f64]; 2],
    /// Seconds of the step, and the number of its short steps.
    pub step: f64,
    pub substeps: u32,
}

/// The fields that move the tracer, and the tracer before the step; all with halos.
pub struct TracerFields<'a> {
    /// Velocities of the levels after the step.
    pub velocities: [&'a [f64]; 2],
    /// Sums of the transports of the short steps.
    pub sums: [&'a [f64]; 2],
    pub tracer: &'a [f64],
}

/// Scratch memory of a row with its halo.
#[derive(Clone, Debug, Default)]
struct FaceRow {
    /// Mean thickness of the water at faces.
    wet: Vec<f64>,
    /// Factors that convert a transport through a face into the fraction of a cell that it empties.
    courant: Vec<f64>,
    /// Transports of a level, and of its tracer.
    flow: Vec<f64>,
    carried: Vec<f64>,
}

/// Scratch memory of a step: rows with halos.
#[derive(Clone, Debug, Default)]
pub struct TracerScratch {
    /// The western faces of a row, and its northern ones.
    west: FaceRow,
    north: FaceRow,
    /// Transports through the southern faces of a row, and of their tracer, for each level.
    south_flow: Vec<Vec<f64>>,
    south_carried: Vec<Vec<f64>>,
    /// Reciprocal thickness of a layer after the step; 0 on land.
    inverse: Vec<f64>,
    /// The amounts of tracer that rise through the bottom and the top of a level.
    below: Vec<f64>,
    above: Vec<f64>,
}

impl TracerScratch {
    pub fn new(tile: &Tile) -> TracerScratch {
        let row = || vec![0.0; tile.stride()];
        let faces = || FaceRow { wet: row(), courant: row(), flow: row(), carried: row() };
        TracerScratch {
            west: faces(),
            north: faces(),
            south_flow: vec![row(); tile.levels],
            south_carried: vec![row(); tile.levels],
            inverse: row(),
            below: row(),
            above: row(),
        }
    }

    /// Returns the faces of a direction: western for 0, northern for 1.
    fn faces(&mut self, direction: usize) -> &mut FaceRow {
        if direction == 0 { &mut self.west } else { &mut self.north }
    }
}

/// Returns the tracer at a face. `rise` is the difference from the cell `upstream` to the one downstream, `before`
/// that from the previous cell to `upstream`; `courant` is the fraction of the upstream cell that passes in a step.
#[inline(always)]
pub(crate) fn at_face(upstream: f64, before: f64, rise: f64, courant: f64) -> f64 {
    let (one, two) = (2.0 * before.abs(), 2.0 * rise.abs());
    let (least, middle) = (if one < two { one } else { two }, 0.5 * (before + rise).abs());
    let size = if middle < least { middle } else { least };
    let slope = if before * rise > 0.0 { size.copysign(rise) } else { 0.0 };
    upstream + 0.5 * (1.0 - courant) * slope
}

/// A row of the tile or of its halo: the index of its first own column, and the number of own columns.
#[derive(Clone, Copy, Debug)]
struct GridRow {
    start: usize,
    columns: usize,
}

impl GridRow {
    /// Returns the indices of its columns, extended at the left and the right.
    fn with(&self, left: usize, right: usize) -> Range<usize> {
        self.start - left..self.start + self.columns + right
    }

    /// Returns the same columns as indices into a buffer of one row.
    fn alone(&self, left: usize, right: usize) -> Range<usize> {
        HALO - left..HALO + self.columns + right
    }
}

/// The western (0) or northern (1) faces of a level for the cells of a row.
#[derive(Clone, Copy, Debug)]
struct LevelFaces {
    row: GridRow,
    level: usize,
    direction: usize,
}

impl Advection<'_> {
    /// Computes the tracer after the step, and the vertical velocities at the bottoms of all levels and at the surface.
    pub fn advance(
        &self,
        seen: &TracerFields<'_>,
        next: &mut [f64],
        rise: &mut [f64],
        scratch: &mut TracerScratch,
    ) {
        let (tile, plane) = (self.tile, self.tile.plane());
        // The first row has only northern faces; the second and the last one have no tracer.
        for number in -2..=tile.rows as isize {
            let row = GridRow { start: tile.at(number, 0), columns: tile.columns };
            self.measure_row(row, number >= -1, scratch);
            if number >= -1 {
                rise[row.with(1, 1)].fill(0.0);
                scratch.below.fill(0.0);
            }
            for level in 0..tile.levels {
                let faces = |direction| LevelFaces { row, level, direction };
                self.flow(faces(1), seen, scratch);
                if number >= -1 {
                    self.flow(faces(0), seen, scratch);
                    let (under, over) = rise.split_at_mut((level + 1) * plane);
                    self.lift(row, &under[level * plane..], &mut over[..plane], level, scratch);
                }
                if number >= -1 && number < tile.rows as isize {
                    self.advect(faces(1), seen, scratch);
                }
                if (0..tile.rows as isize).contains(&number) {
                    self.advect(faces(0), seen, scratch);
                    self.advect_up(row, level, seen.tracer, &rise[(level + 1) * plane..], scratch);
                    let here = level * plane..(level + 1) * plane;
                    self.collect(row, level, &seen.tracer[here.clone()], &mut next[here], scratch);
                    std::mem::swap(&mut scratch.below, &mut scratch.above);
                }
                std::mem::swap(&mut scratch.south_flow[level], &mut scratch.north.flow);
                std::mem::swap(&mut scratch.south_carried[level], &mut scratch.north.carried);
            }
        }
    }

    /// Returns the distance in memory to the next face of a direction, and the metres between them.
    fn direction(&self, direction: usize) -> (usize, f64) {
        if direction == 0 { (1, self.grid.dx) } else { (self.tile.stride(), self.grid.dy) }
    }

    fn mask(&self, direction: usize) -> &[f64] {
        if direction == 0 { &self.statics.mask_u } else { &self.statics.mask_v }
    }

    /// Returns the faces of a direction that belong to a row: its western ones, or as northern ones those of the next
    /// row.
    fn faces(&self, row: GridRow, direction: usize) -> GridRow {
        GridRow { start: row.start + direction * self.tile.stride(), ..row }
    }

    /// Computes the values that all levels of a row share; for western faces and layers only if it has them.
    fn measure_row(&self, row: GridRow, has_layers: bool, scratch: &mut TracerScratch) {
        let (levels, surface, depth) = (self.tile.levels as f64, self.surface[1], &self.statics.depth);
        let directions = if has_layers { 0..2 } else { 1..2 };
        for direction in directions {
            let (along, spacing) = self.direction(direction);
            let line = self.faces(row, direction).with(1, 2);
            let there = line.start - along..line.end - along;
            let values =
                [&surface[line.clone()], &depth[line.clone()], &surface[there.clone()], &depth[there]];
            let mask = &self.mask(direction)[line];
            let faces = scratch.faces(direction);
            let own = row.alone(1, 2);
            thicken_faces(&mut faces.wet[own.clone()], values);
            let by = self.step * levels / spacing;
            rate_faces(&mut faces.courant[own.clone()], (&faces.wet[own], mask, by));
        }
        if has_layers {
            let (line, own) = (row.with(0, 0), row.alone(0, 0));
            invert(&mut scratch.inverse[own], ([&depth[line.clone()], &surface[line]], levels));
        }
    }

    /// Computes the transports through faces.
    fn flow(&self, faces: LevelFaces, seen: &TracerFields<'_>, scratch: &mut TracerScratch) {
        let LevelFaces { row, level, direction } = faces;
        let part = 1.0 / self.tile.levels as f64;
        let share = 1.0 / f64::from(self.substeps);
        let (line, own) = (self.faces(row, direction).with(1, 2), row.alone(1, 2));
        let velocity = &seen.velocities[direction][level * self.tile.plane()..][line.clone()];
        let (sum, mean) = (&seen.sums[direction][line.clone()], &self.mean[direction][line]);
        let FaceRow { wet, flow, .. } = scratch.faces(direction);
        mix_flow(&mut flow[own.clone()], ([velocity, sum, mean, &wet[own]], [part, share]));
    }

    /// Computes the vertical velocities at the top of a level from those at its bottom, by continuity.
    fn lift(&self, row: GridRow, under: &[f64], over: &mut [f64], level: usize, scratch: &TracerScratch) {
        let part = 1.0 / (self.tile.levels as f64 * self.step);
        let (by_x, by_y) = (1.0 / self.grid.dx, 1.0 / self.grid.dy);
        let (line, own) = (row.with(1, 1), row.alone(1, 1));
        let (west, east) = (&scratch.west.flow[own.clone()], &scratch.west.flow[own.start + 1..=own.end]);
        let (south, north) = (&scratch.south_flow[level][own.clone()], &scratch.north.flow[own]);
        let (before, after) = (&self.surface[0][line.clone()], &self.surface[1][line.clone()]);
        let values = [&under[line.clone()], west, east, south, north, before, after];
        lift_row(&mut over[line], (values, [by_x, by_y, part]));
    }

    /// Computes the amount of tracer that passes each face.
    fn advect(&self, faces: LevelFaces, seen: &TracerFields<'_>, scratch: &mut TracerScratch) {
        let LevelFaces { row, level, direction } = faces;
        let (along, spacing) = self.direction(direction);
        let spread = self.physics.diffusivity / (spacing * self.tile.levels as f64);
        let right = 1 - direction;
        let (line, own) = (self.faces(row, direction).with(0, right), row.alone(0, right));
        let (start, n) = (line.start, line.len());
        let tracer = &seen.tracer[level * self.tile.plane()..][..self.tile.plane()];
        let mask = self.mask(direction);
        let FaceRow { wet, courant, flow, carried } = scratch.faces(direction);
        let faces = Faces {
            second: &tracer[start - 2 * along..][..n],
            first: &tracer[start - along..][..n],
            here: &tracer[start..][..n],
            beyond: &tracer[start + along..][..n],
            mask_before: &mask[start - along..][..n],
            mask_beyond: &mask[start + along..][..n],
            mask: &mask[start..][..n],
            flow: &flow[own.clone()],
            courant: &courant[own.clone()],
            wet: &wet[own.clone()],
        };
        advect_faces(&mut carried[own], (&faces, spread));
    }

    /// Computes the amount of tracer that rises through the top of a level; none through the surface.
    fn advect_up(
        &self,
        row: GridRow,
        level: usize,
        tracer: &[f64],
        rise: &[f64],
        scratch: &mut TracerScratch,
    ) {
        let (plane, levels) = (self.tile.plane(), self.tile.levels);
        if level + 1 == levels {
            scratch.above.fill(0.0);
            return;
        }
        let (line, own) = (row.with(0, 0), row.alone(0, 0));
        let row_of = |level: usize| &tracer[level * plane..][line.clone()];
        let (second, first) = (row_of(level.saturating_sub(1)), row_of(level));
        let (here, beyond) = (row_of(level + 1), row_of((level + 2).min(levels - 1)));
        let values = [second, first, here, beyond, &scratch.inverse[own.clone()], &rise[line]];
        let factors = [self.step, self.physics.vertical_diffusivity];
        advect_tops(&mut scratch.above[own], (values, factors));
    }

    /// Computes the tracer of a level after the step.
    fn collect(&self, row: GridRow, level: usize, tracer: &[f64], next: &mut [f64], scratch: &TracerScratch) {
        let part = 1.0 / self.tile.levels as f64;
        let (by_x, by_y) = (self.step / self.grid.dx, self.step / self.grid.dy);
        let (line, own) = (row.with(0, 0), row.alone(0, 0));
        let west = &scratch.west.carried;
        let (south, north) = (&scratch.south_carried[level], &scratch.north.carried);
        let sides = [
            &west[own.clone()],
            &west[own.start + 1..=own.end],
            &south[own.clone()],
            &north[own.clone()],
            &scratch.below[own.clone()],
            &scratch.above[own.clone()],
        ];
        let (depth, before) = (&self.statics.depth[line.clone()], &self.surface[0][line.clone()]);
        let values = [depth, before, &scratch.inverse[own], &tracer[line.clone()]];
        collect_row(&mut next[line], (sides, values, [by_x, by_y, self.step, part]));
    }
}

/// Inputs of the tracer flux through a row of faces, each as long as the row: the tracer of two cells before and two
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

row_kernels! {
    /// Computes the mean thickness of the water at faces.
    fn thicken_faces(wet: &mut [f64]; values: [&[f64]; 4]) {
        let n = wet.len();
        let [surface, depth, surface_there, depth_there] = values.map(|values| &values[..n]);
        for i in 0..n {
            wet[i] = 0.5 * ((surface[i] + depth[i]) + (surface_there[i] + depth_there[i]));
        }
    }

    fn rate_faces(courant: &mut [f64]; (wet, mask, by): (&[f64], &[f64], f64)) {
        let n = courant.len();
        let (wet, mask) = (&wet[..n], &mask[..n]);
        for i in 0..n {
            courant[i] = if mask[i] > 0.0 { by / wet[i] } else { 0.0 };
        }
    }

    /// Computes the reciprocal thickness of a layer.
    fn invert(inverse: &mut [f64]; (values, levels): ([&[f64]; 2], f64)) {
        let n = inverse.len();
        let [depth, surface] = values.map(|values| &values[..n]);
        for i in 0..n {
            inverse[i] = if depth[i] > 0.0 { levels / (depth[i] + surface[i]) } else { 0.0 };
        }
    }

    fn mix_flow(flow: &mut [f64]; (values, [part, share]): ([&[f64]; 4], [f64; 2])) {
        let n = flow.len();
        let [velocity, sum, mean, wet] = values.map(|values| &values[..n]);
        for i in 0..n {
            flow[i] = part * (share * sum[i] + wet[i] * (velocity[i] - mean[i]));
        }
    }

    fn lift_row(over: &mut [f64]; (values, [by_x, by_y, part]): ([&[f64]; 7], [f64; 3])) {
        let n = over.len();
        let [under, west, east, south, north, before, after] = values.map(|values| &values[..n]);
        for i in 0..n {
            let flows_out = by_x * (east[i] - west[i]) + by_y * (north[i] - south[i]);
            over[i] = under[i] - (flows_out + part * (after[i] - before[i]));
        }
    }

    fn advect_faces(carried: &mut [f64]; (faces, spread): (&Faces<'_>, f64)) {
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

    fn advect_tops(above: &mut [f64]; (values, [step, mixed]): ([&[f64]; 6], [f64; 2])) {
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

    fn collect_row(
        next: &mut [f64];
        (sides, values, [by_x, by_y, step, part]): ([&[f64]; 6], [&[f64]; 4], [f64; 4])
    ) {
        let n = next.len();
        let [west, east, south, north, under, over] = sides.map(|values| &values[..n]);
        let [depth, before, inverse, tracer] = values.map(|values| &values[..n]);
        for i in 0..n {
            let left = by_x * (east[i] - west[i]) + by_y * (north[i] - south[i]) + step * (over[i] - under[i]);
            next[i] = (tracer[i] * (part * (depth[i] + before[i])) - left) * inverse[i];
        }
    }
}
