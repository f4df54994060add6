//! The internal mode: velocities of the levels, in long steps.
//!
//! The slow tendencies of the velocities of a level: advection, in centred differences, horizontal and vertical
//! viscosity, wind, drag at the bottom, and the Coriolis force on what differs from the mean of the column. Tendencies
//! are carried forward by the Adams-Bashforth rule of second order with [`AHEAD`], which damps. The mean of the column
//! is then replaced by that of the external mode. Invariant: without wind and with water at rest all tendencies are
//! zero.

use crate::external::Statics;
use crate::setup::{Grid, Physics};
use crate::tile::Tile;

/// The weight of the newest tendency in the Adams-Bashforth rule: 1.5 is second order without damping.
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
    pub fn compute_tendency(
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
                self.compute_row(&row, [start, below, above, line.start], now);
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
                extrapolate(now, before, &mut mean[line.clone()], [ahead_by, back_by, part]);
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
    fn compute_row(&self, row: &LevelRow<'_>, [start, below, above, flat]: [usize; 4], now: &mut [f64]) {
        let (n, along, across, plane) = (now.len(), self.along, self.across, self.tile.plane());
        let take = |values: &'a [f64], start: usize| &values[start..start + n];
        let own = |start: usize| &row.own[start..start + n];
        let other = |start: usize| &row.other[start..start + n];
        let even = |start: usize| &row.other_mean[start..start + n];
        let rise = |start: usize| &row.rise[start..start + n];
        let around = Around {
            here: own(start),
            ahead: own(start + along),
            behind: own(start - along),
            left: own(start - across),
            right: own(start + across),
            under: own(below),
            over: own(above),
            beside: [start, start - along, start + across, start + across - along].map(other),
            even: [flat, flat - along, flat + across, flat + across - along].map(even),
            rise: [start, start - along, start + plane, start + plane - along].map(rise),
            turn: [flat, flat - along].map(|start| take(&self.statics.coriolis, start)),
            mask: take(self.mask, flat),
            inverse: &row.inverse[..n],
        };
        let [by_along, by_across] = self.spacing.map(|spacing| 0.5 / spacing);
        let [spread_along, spread_across] =
            self.spacing.map(|spacing| self.physics.viscosity / (spacing * spacing));
        let rates = Rates {
            by_along,
            by_across,
            spread_along,
            spread_across,
            mix: self.physics.vertical_viscosity,
            turn: 0.5 * self.sign,
        };
        compute_faces(now, &around, &rates);
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
                add_ahead(&mut own[start..start + n], &ahead[start..start + n], &mut mean, [step, part]);
            }
            let (wanted, mask) = (&wanted[line.clone()], &self.mask[line.clone()]);
            for level in 0..levels {
                let start = level * plane + line.start;
                shift(&mut own[start..start + n], wanted, &mean, mask);
            }
        }
    }
}

/// The inputs of a row of tendencies.
struct LevelRow<'a> {
    own: &'a [f64],
    other: &'a [f64],
    /// Vertical velocities at the bottoms of levels; one level more than there are.
    rise: &'a [f64],
    other_mean: &'a [f64],
    inverse: &'a [f64],
}

/// A row of faces and its neighbours, each as long as the row.
struct Around<'a> {
    here: &'a [f64],
    ahead: &'a [f64],
    behind: &'a [f64],
    left: &'a [f64],
    right: &'a [f64],
    under: &'a [f64],
    over: &'a [f64],
    /// The four faces of the other component around a face of this one, and their means over the column.
    beside: [&'a [f64]; 4],
    even: [&'a [f64]; 4],
    /// Vertical velocities at the bottoms and the tops of both cells.
    rise: [&'a [f64]; 4],
    turn: [&'a [f64]; 2],
    mask: &'a [f64],
    inverse: &'a [f64],
}

/// Factors of the terms of a tendency.
struct Rates {
    by_along: f64,
    by_across: f64,
    spread_along: f64,
    spread_across: f64,
    mix: f64,
    turn: f64,
}

/// The tendencies of a row of faces. A function of its own, so that the compiler knows that `now` overlaps nothing.
#[inline(never)]
fn compute_faces(now: &mut [f64], around: &Around<'_>, rates: &Rates) {
    let n = now.len();
    let Around { here, ahead, behind, left, right, under, over, beside, even, rise, turn, mask, inverse } =
        around;
    let (here, ahead, behind, left, right) = (&here[..n], &ahead[..n], &behind[..n], &left[..n], &right[..n]);
    let (under, over, mask, inverse) = (&under[..n], &over[..n], &mask[..n], &inverse[..n]);
    let [one, two, three, four] = beside.map(|values| &values[..n]);
    let [mean_one, mean_two, mean_three, mean_four] = even.map(|values| &values[..n]);
    let [bottom, bottom_behind, top, top_behind] = rise.map(|values| &values[..n]);
    let [turn, turn_behind] = turn.map(|values| &values[..n]);
    for i in 0..n {
        let side = 0.25 * ((one[i] + two[i]) + (three[i] + four[i]));
        let mean_side = 0.25 * ((mean_one[i] + mean_two[i]) + (mean_three[i] + mean_four[i]));
        let advected =
            here[i] * rates.by_along * (ahead[i] - behind[i]) + side * rates.by_across * (right[i] - left[i]);
        let spread = rates.spread_along * ((ahead[i] - here[i]) - (here[i] - behind[i]))
            + rates.spread_across * ((right[i] - here[i]) - (here[i] - left[i]));
        let (up, down) = (over[i] - here[i], here[i] - under[i]);
        let lifted =
            0.25 * inverse[i] * ((top[i] + top_behind[i]) * up + (bottom[i] + bottom_behind[i]) * down);
        let mixed = rates.mix * inverse[i] * inverse[i] * (up - down);
        let turned = rates.turn * (turn[i] + turn_behind[i]) * (side - mean_side);
        now[i] = (spread + mixed + turned - advected - lifted) * mask[i];
    }
}

/// Replaces tendencies by what is carried ahead, keeps them in `before`, and adds to the mean of the column.
#[inline(never)]
fn extrapolate(now: &mut [f64], before: &mut [f64], mean: &mut [f64], [ahead, back, part]: [f64; 3]) {
    let n = now.len();
    let (before, mean) = (&mut before[..n], &mut mean[..n]);
    for i in 0..n {
        let carried = ahead * now[i] - back * before[i];
        before[i] = now[i];
        now[i] = carried;
        mean[i] += part * carried;
    }
}

/// Adds `step` times `ahead` to velocities, and these to the mean of the column.
#[inline(never)]
fn add_ahead(own: &mut [f64], ahead: &[f64], mean: &mut [f64], [step, part]: [f64; 2]) {
    let n = own.len();
    let (ahead, mean) = (&ahead[..n], &mut mean[..n]);
    for i in 0..n {
        own[i] += step * ahead[i];
        mean[i] += part * own[i];
    }
}

/// Shifts velocities so that the mean of the column becomes `wanted`.
#[inline(never)]
fn shift(own: &mut [f64], wanted: &[f64], mean: &[f64], mask: &[f64]) {
    let n = own.len();
    let (wanted, mean, mask) = (&wanted[..n], &mean[..n], &mask[..n]);
    for i in 0..n {
        own[i] = (own[i] + (wanted[i] - mean[i])) * mask[i];
    }
}
