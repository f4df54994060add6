//! The internal mode: velocities of the levels, in long steps.
//!
//! The slow tendencies of a level are advection in centred differences, horizontal and vertical viscosity, wind, drag
//! at the bottom, and the Coriolis force on the deviation from the column mean. Tendencies are extrapolated by the
//! second-order Adams-Bashforth rule with [`AHEAD`], which adds damping. The column mean is then replaced by that of
//! the external mode. Invariant: without wind and with water at rest all tendencies are zero.

use crate::scheme::external::Statics;
use crate::scheme::tile::Tile;
use crate::scheme::tile::row_kernels;
use crate::setup::{Grid, Physics};
use std::ops::Range;

/// The weight of the newest tendency in the Adams-Bashforth rule; 1.5 is second order without damping.
const AHEAD: f64 = 1.6;

/// The velocity in one direction on all levels, as seen from its own faces: eastward at western faces, or northward at
/// southern ones. `along` is the distance in memory to the next face in the same direction, `across` to that in the
/// other.
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
    /// Surface stress divided by the density of water; `None` if there is none.
    pub wind: Option<&'a [f64]>,
}

impl<'a> Component<'a> {
    /// Returns the two components of a tile.
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

    /// Computes the velocities of `own` after a long step in the row of faces `line`; `shift` sets their
    /// column means.
    pub fn compute_tendency(
        &self,
        line: &Range<usize>,
        seen: &LevelFields<'_>,
        ahead: &mut Ahead<'_>,
        rows: &mut RowBuffers,
    ) {
        let (plane, levels, n) = (self.tile.plane(), self.tile.levels, line.len());
        let RowBuffers { now, inverse } = rows;
        self.invert_thickness(seen.surface, line.start, inverse);
        ahead.slow[line.clone()].fill(0.0);
        ahead.next_mean[line.clone()].fill(0.0);
        for level in 0..levels {
            let start = level * plane + line.start;
            let below = if level > 0 { start - plane } else { start };
            let above = if level + 1 < levels { start + plane } else { start };
            self.compute_row(seen, [start, below, above, line.start], inverse, now);
            let own = &seen.own[start..start + n];
            if level + 1 == levels
                && let Some(wind) = self.wind
            {
                let wind = &wind[line.clone()];
                for i in 0..n {
                    now[i] += wind[i] * inverse[i];
                }
            }
            if level == 0 {
                for i in 0..n {
                    now[i] -= self.physics.drag * own[i] * inverse[i];
                }
            }
            let (slow, next_mean) = (&mut ahead.slow[line.clone()], &mut ahead.next_mean[line.clone()]);
            let (tendency, next) = (&mut ahead.tendency[start..start + n], &mut ahead.next[start..start + n]);
            extrapolate(tendency, next, slow, next_mean, ([&now[..], own], &ahead.factors));
        }
    }

    /// Computes the reciprocal thickness of a layer at the faces of a row; 0 at closed faces.
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

    /// Computes the tendency of a row of a level. Its faces begin at `start`, those of the levels below and above at
    /// `below` and `above`, and its column means at `flat`.
    fn compute_row(
        &self,
        seen: &LevelFields<'_>,
        [start, below, above, flat]: [usize; 4],
        inverse: &[f64],
        now: &mut [f64],
    ) {
        let (n, along, across, plane) = (now.len(), self.along, self.across, self.tile.plane());
        let take = |values: &'a [f64], start: usize| &values[start..start + n];
        let own = |start: usize| &seen.own[start..start + n];
        let other = |start: usize| &seen.other[start..start + n];
        let even = |start: usize| &seen.other_mean[start..start + n];
        let rise = |start: usize| &seen.rise[start..start + n];
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
            inverse: &inverse[..n],
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
        compute_faces(now, (&around, &rates));
    }

    /// Shifts each column of the velocities `next` from its mean `mean` to the mean `wanted`.
    pub fn shift(&self, next: &mut [f64], mean: &[f64], wanted: &[f64]) {
        let plane = self.tile.plane();
        for line in self.tile.lines(0) {
            let (wanted, mean, mask) = (&wanted[line.clone()], &mean[line.clone()], &self.mask[line.clone()]);
            for level in 0..self.tile.levels {
                let start = level * plane + line.start;
                shift_row(&mut next[start..start + line.len()], [wanted, mean, mask]);
            }
        }
    }
}

/// Inputs for the tendencies of a component.
pub struct LevelFields<'a> {
    pub own: &'a [f64],
    pub other: &'a [f64],
    /// Vertical velocities at the bottoms of levels and at the surface.
    pub rise: &'a [f64],
    pub surface: &'a [f64],
    /// Mean of the other component over the column.
    pub other_mean: &'a [f64],
}

/// Outputs of the tendencies of a component.
pub struct Ahead<'a> {
    /// The tendencies of the previous step, replaced by those of this one.
    pub tendency: &'a mut [f64],
    /// The velocities after the step, before their column means are shifted, and those means.
    pub next: &'a mut [f64],
    pub next_mean: &'a mut [f64],
    /// The mean over the column of the extrapolated tendencies.
    pub slow: &'a mut [f64],
    pub factors: Factors,
}

/// Factors of the extrapolation.
pub struct Factors {
    /// Weights of the newest tendency, and of the one before.
    ahead: f64,
    back: f64,
    /// The fraction of the column in one level.
    part: f64,
    /// Seconds of a step.
    step: f64,
}

impl Factors {
    /// Returns the factors of this step; the first one has no earlier tendency.
    pub fn new(tile: &Tile, step: f64, is_first: bool) -> Factors {
        let (ahead, back) = if is_first { (1.0, 0.0) } else { (AHEAD, AHEAD - 1.0) };
        Factors { ahead, back, part: 1.0 / tile.levels as f64, step }
    }
}

/// Scratch memory of a row.
#[derive(Clone, Debug, Default)]
pub struct RowBuffers {
    now: Vec<f64>,
    /// Reciprocal thickness of a layer at faces.
    inverse: Vec<f64>,
}

impl RowBuffers {
    pub fn new(tile: &Tile) -> RowBuffers {
        RowBuffers { now: vec![0.0; tile.columns], inverse: vec![0.0; tile.columns] }
    }
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
    /// The four faces of the other component around a face of this one, and their column means.
    beside: [&'a [f64]; 4],
    even: [&'a [f64]; 4],
    /// Vertical velocities at the bottoms and the tops of both adjacent cells.
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

row_kernels! {
    /// Computes the tendencies of a row of faces.
    fn compute_faces(now: &mut [f64]; (around, rates): (&Around<'_>, &Rates)) {
        let n = now.len();
        let Around { here, ahead, behind, left, right, under, over, beside, even, rise, turn, mask, inverse } = around;
        let (here, ahead, behind, left, right) = (&here[..n], &ahead[..n], &behind[..n], &left[..n], &right[..n]);
        let (under, over, mask, inverse) = (&under[..n], &over[..n], &mask[..n], &inverse[..n]);
        let [one, two, three, four] = beside.map(|values| &values[..n]);
        let [mean_one, mean_two, mean_three, mean_four] = even.map(|values| &values[..n]);
        let [bottom, bottom_behind, top, top_behind] = rise.map(|values| &values[..n]);
        let [turn, turn_behind] = turn.map(|values| &values[..n]);
        let Rates { by_along, by_across, spread_along, spread_across, mix, turn: turn_by } = *rates;
        for i in 0..n {
            let side = 0.25 * ((one[i] + two[i]) + (three[i] + four[i]));
            let mean_side = 0.25 * ((mean_one[i] + mean_two[i]) + (mean_three[i] + mean_four[i]));
            let advected = here[i] * by_along * (ahead[i] - behind[i]) + side * by_across * (right[i] - left[i]);
            let spread = spread_along * ((ahead[i] - here[i]) - (here[i] - behind[i]))
                + spread_across * ((right[i] - here[i]) - (here[i] - left[i]));
            let (up, down) = (over[i] - here[i], here[i] - under[i]);
            let lifted = 0.25 * inverse[i] * ((top[i] + top_behind[i]) * up + (bottom[i] + bottom_behind[i]) * down);
            let mixed = mix * inverse[i] * inverse[i] * (up - down);
            let turned = turn_by * (turn[i] + turn_behind[i]) * (side - mean_side);
            now[i] = (spread + mixed + turned - advected - lifted) * mask[i];
        }
    }

    /// Extrapolates tendencies, adds them to the velocities `own`, and accumulates the column means of both.
    fn extrapolate(
        before: &mut [f64],
        next: &mut [f64],
        slow: &mut [f64],
        next_mean: &mut [f64];
        (seen, factors): ([&[f64]; 2], &Factors)
    ) {
        let n = before.len();
        let [now, own] = seen.map(|values| &values[..n]);
        let (next, slow, next_mean) = (&mut next[..n], &mut slow[..n], &mut next_mean[..n]);
        let Factors { ahead, back, part, step } = *factors;
        for i in 0..n {
            let carried = ahead * now[i] - back * before[i];
            before[i] = now[i];
            slow[i] += part * carried;
            let after = own[i] + step * carried;
            next[i] = after;
            next_mean[i] += part * after;
        }
    }

    /// Shifts velocities so that the column mean becomes the wanted one.
    fn shift_row(next: &mut [f64]; values: [&[f64]; 3]) {
        let n = next.len();
        let [wanted, mean, mask] = values.map(|values| &values[..n]);
        for i in 0..n {
            next[i] = (next[i] + (wanted[i] - mean[i])) * mask[i];
        }
    }
}
