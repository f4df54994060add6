//! Zermelo's problem in closed form: the fastest route of a vehicle in a uniform current and in a linear shear.
//!
//! A. E. Bryson and Y.-C. Ho, Applied Optimal Control (1975), section 2.7. No route is faster, so this is a lower
//! bound for a planner's arrival; the excess depends on its grid.

use crate::current::Velocity;
use crate::sea::Position;

/// Returns the seconds from `from` to `to` at `speed` through a uniform current; `None` if the current is too strong.
///
/// The heading is constant, so the displacement `d` satisfies `|d - c t| = v t`.
pub fn uniform(from: Position, to: Position, current: Velocity, speed: f64) -> Option<f64> {
    let (east, north) = (to.east - from.east, to.north - from.north);
    let slack = speed * speed - current.east.powi(2) - current.north.powi(2);
    let along = east * current.east + north * current.north;
    let root = along * along + slack * (east * east + north * north);
    // The positive root of slack t² + 2 along t - d² = 0, in a form that holds for any sign of slack.
    let bottom = along + root.max(0.0).sqrt();
    (root >= 0.0 && bottom > 0.0).then(|| (east * east + north * north) / bottom)
}

/// A linear shear: the current `east = rate · (north - middle)`.
#[derive(Clone, Copy, Debug)]
pub struct Shear {
    /// Coordinate at which there is no current.
    pub middle: f64,
    /// Increase of the current with the coordinate, per second.
    pub rate: f64,
}

/// Initial heading of a vehicle.
#[derive(Clone, Copy)]
struct Heading {
    tangent: f64,
    /// 1 for an eastward heading, else -1.
    sign: f64,
}

/// Returns the position after `time` of a vehicle that begins at `from` with `heading` and steers optimally.
///
/// The tangent of the optimal heading `θ` is `tan θ0 - rate · t`. The position follows by quadrature, here with
/// Simpson's rule in [`STEPS`] steps, which is exact to ten digits.
fn position_after(from: Position, current: Shear, speed: f64, heading: Heading, time: f64) -> Position {
    let (Shear { middle, rate }, Heading { tangent, sign }) = (current, heading);
    let velocity = |at: f64, north: f64| {
        let tangent = tangent - rate * at;
        let cosine = sign / (1.0 + tangent * tangent).sqrt();
        (speed * cosine + rate * (north - middle), speed * tangent * cosine)
    };
    let step = time / f64::from(STEPS);
    let (mut east, mut north) = (from.east, from.north);
    for number in 0..STEPS {
        let start = f64::from(number) * step;
        let half = start + step / 2.0;
        // The northward motion depends on time alone, so the middle of the step is known before its end.
        let (_, up_first) = velocity(start, north);
        let (_, up_quarter) = velocity(start + step / 4.0, north);
        let (_, up_half) = velocity(half, north);
        let (_, up_last) = velocity(start + step, north);
        let north_half = north + step / 12.0 * (up_first + 4.0 * up_quarter + up_half);
        let north_last = north + step / 6.0 * (up_first + 4.0 * up_half + up_last);
        let (right_first, _) = velocity(start, north);
        let (right_half, _) = velocity(half, north_half);
        let (right_last, _) = velocity(start + step, north_last);
        east += step / 6.0 * (right_first + 4.0 * right_half + right_last);
        north = north_last;
    }
    Position { east, north }
}

/// Number of steps of the quadrature.
const STEPS: u32 = 200;

/// Returns the seconds from `from` to `to` at `speed` in a linear shear; `None` if no heading leads there.
///
/// Uses Newton's method for the tangent of the initial heading and the time, starting from the straight line.
pub fn shear(from: Position, to: Position, current: Shear, speed: f64) -> Option<f64> {
    let sign = if to.east >= from.east { 1.0 } else { -1.0 };
    let (mut tangent, mut time) =
        ((to.north - from.north) / (to.east - from.east), from.distance(to) / speed);
    let miss = |tangent: f64, time: f64| {
        let at = position_after(from, current, speed, Heading { tangent, sign }, time);
        (at.east - to.east, at.north - to.north)
    };
    for _ in 0..100 {
        let (east, north) = miss(tangent, time);
        if east.hypot(north) < 1e-6 * from.distance(to) {
            return (time > 0.0).then_some(time);
        }
        let (small_tangent, small_time) = (1e-6 * (1.0 + tangent.abs()), 1e-6 * time);
        let (east_tangent, north_tangent) = miss(tangent + small_tangent, time);
        let (east_time, north_time) = miss(tangent, time + small_time);
        let slope = |after: f64, before: f64, small: f64| (after - before) / small;
        let (a, b) = (slope(east_tangent, east, small_tangent), slope(east_time, east, small_time));
        let (c, d) = (slope(north_tangent, north, small_tangent), slope(north_time, north, small_time));
        let determinant = a * d - b * c;
        let (by_tangent, by_time) =
            ((east * d - b * north) / determinant, (a * north - c * east) / determinant);
        if !by_tangent.is_finite() || !by_time.is_finite() {
            return None;
        }
        // A step changes the time by at most half, so it stays positive.
        let damping = (0.5 * time / by_time.abs()).min(1.0);
        tangent -= damping * by_tangent;
        time -= damping * by_time;
    }
    None
}
