//! The external mode: free surface and mean velocity of the water column, in short steps.
//!
//! Forward-backward: the surface first, then the velocities from the new surface. The second velocity uses the new
//! value of the first one; the order alternates. A step also computes a ring around the tile, so it needs only one
//! exchange. The transports of all short steps are summed: the internal mode advects with their mean, so its layer
//! thickness follows the surface, to rounding. Invariant: the transport through a face is one number, used on both of
//! its sides.

use crate::scheme::tile::Tile;
use crate::scheme::tile::row_kernels;
use crate::setup::{Grid, Physics};
use std::ops::Range;

/// The constant fields of a tile, halo included.
#[derive(Clone, Debug, Default)]
pub struct Statics {
    /// Depth of the water at rest, metres; 0 on land.
    pub depth: Vec<f64>,
    /// 1 if water flows through the western and the southern face of a cell, else 0.
    pub mask_u: Vec<f64>,
    pub mask_v: Vec<f64>,
    /// Coriolis parameter at cells, per second.
    pub coriolis: Vec<f64>,
    /// Eastward wind stress, divided by the density of water, at western faces.
    pub wind: Vec<f64>,
}

/// Transports through the western and southern faces, in square metres per second, and their sums over short steps.
#[derive(Clone, Debug, Default)]
pub struct Transports {
    pub u: Vec<f64>,
    pub v: Vec<f64>,
    pub sum_u: Vec<f64>,
    pub sum_v: Vec<f64>,
}

impl Transports {
    pub fn new(tile: &Tile) -> Transports {
        let zeros = vec![0.0; tile.plane()];
        Transports { u: zeros.clone(), v: zeros.clone(), sum_u: zeros.clone(), sum_v: zeros }
    }

    /// Resets the sums at the start of a long step.
    pub fn clear(&mut self) {
        self.sum_u.fill(0.0);
        self.sum_v.fill(0.0);
    }
}

/// The tile and its fields for one short step.
pub struct External<'a> {
    pub tile: &'a Tile,
    pub grid: &'a Grid,
    pub physics: &'a Physics,
    pub statics: &'a Statics,
    /// Forcing by the internal mode at western and southern faces, with a halo.
    pub slow: [&'a [f64]; 2],
    /// Seconds of a short step.
    pub step: f64,
}

impl External<'_> {
    /// Computes a short step; `surface`, `u` and `v` have their halos.
    pub fn advance(&self, [surface, u, v]: [&mut [f64]; 3], transports: &mut Transports, is_u_first: bool) {
        self.sum_transports([surface, u, v], transports);
        self.move_surface(surface, transports);
        if is_u_first {
            self.push_u([surface, v], u, [1, 0, 0, 1]);
            self.push_v([surface, u], v, [0; 4]);
        } else {
            self.push_v([surface, u], v, [0, 1, 1, 0]);
            self.push_u([surface, v], u, [0; 4]);
        }
    }

    /// Computes the transports through the faces of the tile and of a ring around it, and adds them to the sums.
    fn sum_transports(&self, [surface, u, v]: [&[f64]; 3], transports: &mut Transports) {
        let Statics { depth, .. } = self.statics;
        let Transports { u: flow_u, v: flow_v, sum_u, sum_v } = transports;
        for line in self.tile.lines_with([1, 2, 1, 2]) {
            let sum = |along: usize, velocity: &[f64], flow: &mut [f64], sum: &mut [f64]| {
                let there = line.start - along..line.end - along;
                let water =
                    [&surface[line.clone()], &depth[line.clone()], &surface[there.clone()], &depth[there]];
                add_transport(
                    &mut flow[line.clone()],
                    &mut sum[line.clone()],
                    (water, &velocity[line.clone()]),
                );
            };
            sum(1, u, flow_u, sum_u);
            sum(self.tile.stride(), v, flow_v, sum_v);
        }
    }

    /// Updates the surface of the tile and of a ring around it from the inflow.
    fn move_surface(&self, surface: &mut [f64], transports: &Transports) {
        let factors = [self.step / self.grid.dx, self.step / self.grid.dy];
        let stride = self.tile.stride();
        for line in self.tile.lines(1) {
            let n = line.len();
            let (west, east) = (&transports.u[line.clone()], &transports.u[line.start + 1..][..n]);
            let (south, north) = (&transports.v[line.clone()], &transports.v[line.start + stride..][..n]);
            raise(&mut surface[line], ([west, east, south, north], factors));
        }
    }

    /// Updates the eastward mean velocities of the tile and of `around` rows and columns around it.
    fn push_u(&self, [surface, v]: [&[f64]; 2], u: &mut [f64], around: [usize; 4]) {
        let stride = self.tile.stride();
        for line in self.tile.lines_with(around) {
            let beside = [line.start - 1, line.start, line.start + stride - 1, line.start + stride];
            let factors = [self.step, self.step * self.physics.gravity / self.grid.dx, 1.0];
            let (mask, slow) = (&self.statics.mask_u, self.slow[0]);
            self.push_row(line, 1, [surface, v, slow, mask], beside, factors, u);
        }
    }

    /// Updates the northward mean velocities in the same way.
    fn push_v(&self, [surface, u]: [&[f64]; 2], v: &mut [f64], around: [usize; 4]) {
        let stride = self.tile.stride();
        for line in self.tile.lines_with(around) {
            let beside = [line.start, line.start + 1, line.start - stride, line.start - stride + 1];
            let factors = [self.step, self.step * self.physics.gravity / self.grid.dy, -1.0];
            let (mask, slow) = (&self.statics.mask_v, self.slow[1]);
            self.push_row(line, stride, [surface, u, slow, mask], beside, factors, v);
        }
    }

    /// Updates the mean velocities of a row. The cell behind a face is `along` elements away; the four faces of the
    /// other velocity around the first one are at `beside`.
    fn push_row(
        &self,
        line: Range<usize>,
        along: usize,
        [surface, other, slow, mask]: [&[f64]; 4],
        beside: [usize; 4],
        factors: [f64; 3],
        own: &mut [f64],
    ) {
        let there = line.start - along..line.end - along;
        let beside = beside.map(|start| &other[start..start + line.len()]);
        let turn = &self.statics.coriolis;
        let here = [&surface[line.clone()], &turn[line.clone()], &slow[line.clone()], &mask[line.clone()]];
        let there = [&surface[there.clone()], &turn[there]];
        push_faces(&mut own[line], &FacesAround { here, there, beside, factors });
    }
}

/// Inputs of a row of faces of the mean velocity.
struct FacesAround<'a> {
    /// Surface, Coriolis parameter, forcing and mask in front of the faces.
    here: [&'a [f64]; 4],
    /// Surface and Coriolis parameter behind them.
    there: [&'a [f64]; 2],
    /// The faces of the other velocity.
    beside: [&'a [f64]; 4],
    /// The step, the factor of the slope, and the sign of the Coriolis force.
    factors: [f64; 3],
}

row_kernels! {
    /// Computes the transports through a row of faces, and adds them to their sums.
    fn add_transport(flow: &mut [f64], sum: &mut [f64]; (water, velocity): ([&[f64]; 4], &[f64])) {
        let n = flow.len();
        let [surface, depth, surface_there, depth_there] = water.map(|values| &values[..n]);
        let (sum, velocity) = (&mut sum[..n], &velocity[..n]);
        for i in 0..n {
            let thick = 0.5 * ((surface[i] + depth[i]) + (surface_there[i] + depth_there[i]));
            flow[i] = thick * velocity[i];
            sum[i] += flow[i];
        }
    }

    fn raise(surface: &mut [f64]; (flows, [by_x, by_y]): ([&[f64]; 4], [f64; 2])) {
        let n = surface.len();
        let [west, east, south, north] = flows.map(|values| &values[..n]);
        for i in 0..n {
            surface[i] -= by_x * (east[i] - west[i]) + by_y * (north[i] - south[i]);
        }
    }

    /// Updates the mean velocities through a row of faces.
    fn push_faces(own: &mut [f64]; around: &FacesAround<'_>) {
        let n = own.len();
        let FacesAround { here, there, beside, factors } = *around;
        let [surface, turn, slow, mask] = here.map(|values| &values[..n]);
        let [surface_there, turn_there] = there.map(|values| &values[..n]);
        let [one, two, three, four] = beside.map(|values| &values[..n]);
        let [step, by, sign] = factors;
        for i in 0..n {
            let across = 0.25 * ((one[i] + two[i]) + (three[i] + four[i]));
            let turned = 0.5 * (turn[i] + turn_there[i]) * across;
            own[i] = (own[i] + step * (slow[i] + sign * turned) - by * (surface[i] - surface_there[i])) * mask[i];
        }
    }
}
