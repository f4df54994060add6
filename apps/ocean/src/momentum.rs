//! The internal mode: velocities of the levels, in long steps.
//!
//! What moves the water of a level slowly: advection, in centred differences, horizontal and vertical viscosity, wind,
//! drag at the bottom, and the Coriolis force on what differs from the mean of the column. Tendencies are carried
//! forward by the Adams-Bashforth rule of second order with [`AHEAD`], which damps. The mean of the column is then
//! replaced by that of the external mode. Invariant: without wind and with water at rest all tendencies are zero.

use crate::external::Statics;
use crate::setup::{Grid, Physics};
use crate::tile::Tile;

/// How far ahead tendencies are carried: 1.5 would be second order without damping.
const AHEAD: f64 = 1.6;

/// Velocity of one direction on all levels, seen from its own faces: eastward at western faces or northward at southern
/// ones. With `along` the distance in memory to the next face of the same direction and `across` to that of the other.
pub struct Component<'a> {
    pub tile: &'a Tile,
    pub physics: &'a Physics,
    pub statics: &'a Statics,
    /// Distances in memory, along the component and across it.
    pub along: usize,
    pub across: usize,
    /// Metres between faces along and across.
    pub spacing: [f64; 2],
    /// 1 for eastward, -1 for northward: the sign of the Coriolis force.
    pub sign: f64,
    pub mask: &'a [f64],
    /// Stress at the surface over the density of water; nothing if there is none.
    pub wind: Option<&'a [f64]>,
}

impl<'a> Component<'a> {
    /// The two components of a tile.
    pub fn both(
        tile: &'a Tile,
        grid: &Grid,
        physics: &'a Physics,
        statics: &'a Statics,
    ) -> [Component<'a>; 2] {
        let east = Component {
            tile,
            physics,
            statics,
            along: 1,
            across: tile.stride(),
            spacing: [grid.dx, grid.dy],
            sign: 1.0,
            mask: &statics.mask_u,
            wind: Some(&statics.wind),
        };
        let north = Component {
            tile,
            physics,
            statics,
            along: tile.stride(),
            across: 1,
            spacing: [grid.dy, grid.dx],
            sign: -1.0,
            mask: &statics.mask_v,
            wind: None,
        };
        [east, north]
    }

    /// Computes the tendency of `own`, given the velocities of the other component, the vertical velocities at the
    /// bottoms of all levels, the surface, and the mean of the other component over the column.
    ///
    /// `tendency` has the one of the step before, and gets this one; `mean` gets the mean of what is carried ahead.
    pub fn tend(
        &self,
        (own, other): (&[f64], &[f64]),
        (rise, surface, other_mean): (&[f64], &[f64], &[f64]),
        [tendency, ahead, mean]: [&mut [f64]; 3],
        is_first: bool,
    ) {
        let (plane, levels) = (self.tile.plane(), self.tile.levels);
        let part = 1.0 / levels as f64;
        let (ahead_by, back_by) = if is_first { (1.0, 0.0) } else { (AHEAD, AHEAD - 1.0) };
        let mut inverse = vec![0.0; self.tile.columns];
        for line in self.tile.lines(0) {
            let n = line.len();
            self.invert_thickness(surface, line.start, &mut inverse);
            mean[line.clone()].fill(0.0);
            for level in 0..levels {
                let start = level * plane + line.start;
                let below = if level > 0 { start - plane } else { start };
                let above = if level + 1 < levels { start + plane } else { start };
                let row = LevelRow { own, other, rise, other_mean, inverse: &inverse };
                let now = &mut ahead[start..start + n];
                self.tend_row(&row, [start, below, above, line.start], now);
                if level + 1 == levels
                    && let Some(wind) = self.wind
                {
                    let wind = &wind[line.clone()];
                    for i in 0..n {
                        now[i] += wind[i] * inverse[i];
                    }
                }
                if level == 0 {
                    let own = &own[start..start + n];
                    for i in 0..n {
                        now[i] -= self.physics.drag * own[i] * inverse[i];
                    }
                }
                let before = &mut tendency[start..start + n];
                let mean = &mut mean[line.clone()];
                for i in 0..n {
                    let carried = ahead_by * now[i] - back_by * before[i];
                    before[i] = now[i];
                    now[i] = carried;
                    mean[i] += part * carried;
                }
            }
        }
    }

    /// One over the thickness of a layer at the faces of a row; 0 at faces that are closed.
    fn invert_thickness(&self, surface: &[f64], start: usize, inverse: &mut [f64]) {
        let n = inverse.len();
        let depth = &self.statics.depth;
        let (here, there) = (start, start - self.along);
        let (surface_here, surface_there) = (&surface[here..here + n], &surface[there..there + n]);
        let (depth_here, depth_there) = (&depth[here..here + n], &depth[there..there + n]);
        let mask = &self.mask[start..start + n];
        let levels = self.tile.levels as f64;
        for i in 0..n {
            let sum = (surface_here[i] + depth_here[i]) + (surface_there[i] + depth_there[i]);
            inverse[i] = if mask[i] > 0.0 { 2.0 * levels / sum } else { 0.0 };
        }
    }

    /// The tendency of a row of a level: its faces begin at `start`, those below and above in the column at `below` and
    /// `above`, and the columns at `flat`.
    fn tend_row(&self, row: &LevelRow<'_>, [start, below, above, flat]: [usize; 4], now: &mut [f64]) {
        let (n, along, across) = (now.len(), self.along, self.across);
        let [by_along, by_across] = self.spacing.map(|spacing| 0.5 / spacing);
        let [spread_along, spread_across] =
            self.spacing.map(|spacing| self.physics.viscosity / (spacing * spacing));
        let plane = self.tile.plane();
        let take = |start: usize| &row.own[start..start + n];
        let (here, ahead, behind) = (take(start), take(start + along), take(start - along));
        let (left, right) = (take(start - across), take(start + across));
        let (under, over) = (take(below), take(above));
        // The four faces of the other component around a face of this one.
        let beside = |start: usize| &row.other[start..start + n];
        let (one, two) = (beside(start), beside(start - along));
        let (three, four) = (beside(start + across), beside(start + across - along));
        let even = |start: usize| &row.other_mean[start..start + n];
        let (mean_one, mean_two) = (even(flat), even(flat - along));
        let (mean_three, mean_four) = (even(flat + across), even(flat + across - along));
        let lift = |start: usize| &row.rise[start..start + n];
        let (rise, rise_behind) = (lift(start), lift(start - along));
        let (rise_over, rise_over_behind) = (lift(start + plane), lift(start + plane - along));
        let turn = &self.statics.coriolis;
        let (turn, turn_behind) = (&turn[flat..flat + n], &turn[flat - along..flat - along + n]);
        let (mask, inverse) = (&self.mask[flat..flat + n], &row.inverse[..n]);
        let mix = self.physics.vertical_viscosity;
        for i in 0..n {
            let side = 0.25 * ((one[i] + two[i]) + (three[i] + four[i]));
            let mean_side = 0.25 * ((mean_one[i] + mean_two[i]) + (mean_three[i] + mean_four[i]));
            let advected =
                here[i] * by_along * (ahead[i] - behind[i]) + side * by_across * (right[i] - left[i]);
            let spread = spread_along * ((ahead[i] - here[i]) - (here[i] - behind[i]))
                + spread_across * ((right[i] - here[i]) - (here[i] - left[i]));
            let (up, down) = (over[i] - here[i], here[i] - under[i]);
            let lifted = 0.25
                * inverse[i]
                * ((rise_over[i] + rise_over_behind[i]) * up + (rise[i] + rise_behind[i]) * down);
            let mixed = mix * inverse[i] * inverse[i] * (up - down);
            let turned = self.sign * 0.5 * (turn[i] + turn_behind[i]) * (side - mean_side);
            now[i] = (spread + mixed + turned - advected - lifted) * mask[i];
        }
    }

    /// Adds `ahead` times `step` to the velocities of the tile, and gives each column the mean `wanted`.
    pub fn push(&self, own: &mut [f64], ahead: &[f64], wanted: &[f64], step: f64) {
        let (plane, levels) = (self.tile.plane(), self.tile.levels);
        let part = 1.0 / levels as f64;
        let mut mean = vec![0.0; self.tile.columns];
        for line in self.tile.lines(0) {
            let n = line.len();
            mean.fill(0.0);
            for level in 0..levels {
                let start = level * plane + line.start;
                let (own, ahead) = (&mut own[start..start + n], &ahead[start..start + n]);
                for i in 0..n {
                    own[i] += step * ahead[i];
                    mean[i] += part * own[i];
                }
            }
            let (wanted, mask) = (&wanted[line.clone()], &self.mask[line.clone()]);
            for level in 0..levels {
                let start = level * plane + line.start;
                let own = &mut own[start..start + n];
                for i in 0..n {
                    own[i] = (own[i] + (wanted[i] - mean[i])) * mask[i];
                }
            }
        }
    }
}

/// What a row of tendencies is computed of.
struct LevelRow<'a> {
    own: &'a [f64],
    other: &'a [f64],
    /// Vertical velocities at the bottoms of levels; one level more than there are.
    rise: &'a [f64],
    other_mean: &'a [f64],
    inverse: &'a [f64],
}
