//! The external mode: free surface and mean velocity of the water column, in short steps.
//!
//! Forward-backward: the surface first, then the velocities from the new surface, one of them with the new other one
//! and in alternating order. A step computes a ring around the tile as well, so that it needs one exchange. The
//! transports of all short steps are summed: the internal mode advects with their mean, so that its thickness of layers
//! changes as the surface does, to rounding. Invariant: the transport through a face is one number, used on both of its
//! sides.

use crate::setup::{Grid, Physics};
use crate::tile::Tile;

/// The constant fields of a tile, halo included.
#[derive(Clone, Debug, Default)]
pub struct Statics {
    /// Depth of the water at rest, metres; 0 on land.
    pub depth: Vec<f64>,
    /// 1 where water flows through the western and the southern face of a cell, else 0.
    pub mask_u: Vec<f64>,
    pub mask_v: Vec<f64>,
    /// Coriolis parameter at cells, per second.
    pub coriolis: Vec<f64>,
    /// Stress of the wind eastward, over the density of water, at western faces.
    pub wind: Vec<f64>,
}

/// Transports through the western and southern faces, metres squared a second, and their sums over short steps.
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

    /// Begins a long step.
    pub fn clear(&mut self) {
        self.sum_u.fill(0.0);
        self.sum_v.fill(0.0);
    }
}

/// The tile and what is on it, for one short step.
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
    /// Does a short step; `surface`, `u` and `v` have their halos.
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

    /// Transports through the faces of the tile and of a ring around it.
    fn sum_transports(&self, [surface, u, v]: [&[f64]; 3], transports: &mut Transports) {
        let Statics { depth, .. } = self.statics;
        let stride = self.tile.stride();
        for line in self.tile.lines_with([1, 2, 1, 2]) {
            let (n, left, below) = (line.len(), line.start - 1, line.start - stride);
            let (here, here_depth) = (&surface[line.clone()], &depth[line.clone()]);
            let (west, west_depth) = (&surface[left..left + n], &depth[left..left + n]);
            let (south, south_depth) = (&surface[below..below + n], &depth[below..below + n]);
            let (u, v) = (&u[line.clone()], &v[line.clone()]);
            let flow = &mut transports.u[line.clone()];
            for i in 0..n {
                flow[i] = 0.5 * ((here[i] + here_depth[i]) + (west[i] + west_depth[i])) * u[i];
            }
            let sum = &mut transports.sum_u[line.clone()];
            for i in 0..n {
                sum[i] += flow[i];
            }
            let flow = &mut transports.v[line.clone()];
            for i in 0..n {
                flow[i] = 0.5 * ((here[i] + here_depth[i]) + (south[i] + south_depth[i])) * v[i];
            }
            let sum = &mut transports.sum_v[line];
            for i in 0..n {
                sum[i] += flow[i];
            }
        }
    }

    /// The surface of the tile and of a ring around it: what flows in raises it.
    fn move_surface(&self, surface: &mut [f64], transports: &Transports) {
        let (by_x, by_y) = (self.step / self.grid.dx, self.step / self.grid.dy);
        let stride = self.tile.stride();
        for line in self.tile.lines(1) {
            let n = line.len();
            let (west, east) = (&transports.u[line.clone()], &transports.u[line.start + 1..][..n]);
            let (south, north) = (&transports.v[line.clone()], &transports.v[line.start + stride..][..n]);
            let surface = &mut surface[line];
            for i in 0..n {
                surface[i] -= by_x * (east[i] - west[i]) + by_y * (north[i] - south[i]);
            }
        }
    }

    /// Mean velocities eastward, of the tile and what is said around it.
    fn push_u(&self, [surface, v]: [&[f64]; 2], u: &mut [f64], around: [usize; 4]) {
        let Statics { coriolis, mask_u, .. } = self.statics;
        let (step, by_x) = (self.step, self.step * self.physics.gravity / self.grid.dx);
        let stride = self.tile.stride();
        for line in self.tile.lines_with(around) {
            let (n, left, above) = (line.len(), line.start - 1, line.start + stride);
            let (here, west) = (&surface[line.clone()], &surface[left..left + n]);
            let (turn, turn_west) = (&coriolis[line.clone()], &coriolis[left..left + n]);
            let (v, v_west) = (&v[left..left + n + 1], &v[above - 1..above + n]);
            let (slow, mask) = (&self.slow[0][line.clone()], &mask_u[line.clone()]);
            let u = &mut u[line];
            for i in 0..n {
                let across = 0.25 * ((v[i] + v[i + 1]) + (v_west[i] + v_west[i + 1]));
                let turned = 0.5 * (turn[i] + turn_west[i]) * across;
                u[i] = (u[i] + step * (turned + slow[i]) - by_x * (here[i] - west[i])) * mask[i];
            }
        }
    }

    /// Mean velocities northward.
    fn push_v(&self, [surface, u]: [&[f64]; 2], v: &mut [f64], around: [usize; 4]) {
        let Statics { coriolis, mask_v, .. } = self.statics;
        let (step, by_y) = (self.step, self.step * self.physics.gravity / self.grid.dy);
        let stride = self.tile.stride();
        for line in self.tile.lines_with(around) {
            let (n, below) = (line.len(), line.start - stride);
            let (here, south) = (&surface[line.clone()], &surface[below..below + n]);
            let (turn, turn_south) = (&coriolis[line.clone()], &coriolis[below..below + n]);
            let (u, u_south) = (&u[line.start..line.start + n + 1], &u[below..below + n + 1]);
            let (slow, mask) = (&self.slow[1][line.clone()], &mask_v[line.clone()]);
            let v = &mut v[line];
            for i in 0..n {
                let across = 0.25 * ((u[i] + u[i + 1]) + (u_south[i] + u_south[i + 1]));
                let turned = 0.5 * (turn[i] + turn_south[i]) * across;
                v[i] = (v[i] + step * (slow[i] - turned) - by_y * (here[i] - south[i])) * mask[i];
            }
        }
    }
}
