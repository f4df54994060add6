//! Settings whose time the clock does not explain.
//!
//! For one program on the same number of places of one chip, a slower clock lengthens a run at most in proportion,
//! because mesh and memory keep theirs, and should never shorten it. A setting that breaks this rule jumps: the order
//! in which places wait for each other depends on the clock. The cause may be the program, if it hands out work to
//! whoever comes first, or the model. This file knows points only, and changes no choice.

use super::point::Point;

/// Largest saving of a point against one at a faster clock, as a fraction of the latter's time; less is noise.
const FASTER_MAX: f64 = 0.01;

/// Largest excess over the time that the ratio of the clocks allows, as a fraction of that time.
const SLOWER_MAX: f64 = 0.1;

/// Returns the ratio of the clocks of `faster` and `point`, or `None` unless `faster` differs by a faster clock only.
fn clock_ratio(point: &Point, faster: &Point) -> Option<f64> {
    let (own, other) = (point.clock?.0, faster.clock?.0);
    let is_same = point.setting.places == faster.setting.places
        && point.setting.constants == faster.setting.constants
        && point.region == faster.region;
    (is_same && other > own && own > 0.0).then(|| other / own)
}

/// Returns for each point whether it jumps: it is faster than one at a faster clock, or more than a tenth slower than
/// the ratio of the clocks allows.
pub fn jumps(points: &[Point]) -> Vec<bool> {
    let jumps_against = |point: &Point, faster: &Point| {
        clock_ratio(point, faster).is_some_and(|ratio| {
            point.seconds < faster.seconds * (1.0 - FASTER_MAX)
                || point.seconds > faster.seconds * ratio * (1.0 + SLOWER_MAX)
        })
    };
    points.iter().map(|point| points.iter().any(|faster| jumps_against(point, faster))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::point::Setting;
    use super::*;
    use isles::GovernorPolicy;

    fn points(places: u32, times: &[(u32, f64)]) -> Vec<Point> {
        let point = |(divider, milliseconds): &(u32, f64)| Point {
            setting: Setting { constants: Vec::new(), places, policy: GovernorPolicy::FixedAt(*divider) },
            clock: Some((1600.0 / f64::from(*divider), 1.0)),
            seconds: milliseconds / 1e3,
            joules: 1.0,
            mean_watts: 1.0,
            peak_watts: 1.0,
            models: Vec::new(),
            region: None,
            times: 1,
        };
        times.iter().map(point).collect()
    }

    #[test]
    fn a_time_that_follows_the_clock_or_less_does_not_jump() {
        let smooth = points(4, &[(2, 8.4), (3, 12.6), (4, 16.8), (5, 20.9), (6, 25.2), (8, 33.6)]);
        assert_eq!(jumps(&smooth), [false; 6]);
        assert_eq!(jumps(&points(4, &[(2, 8.4), (4, 8.4), (16, 9.0)])), [false; 3], "nearly all is memory");
        assert_eq!(jumps(&points(4, &[(2, 8.4), (4, 8.38)])), [false; 2], "chance");
    }

    #[test]
    fn a_time_that_the_clock_does_not_explain_jumps() {
        let jumping = points(4, &[(2, 8.4), (3, 12.6), (4, 32.4), (5, 40.5), (6, 48.6), (8, 33.6)]);
        assert_eq!(jumps(&jumping), [false, false, true, true, true, true], "8 is faster than 5 and 6");
        assert_eq!(jumps(&points(4, &[(4, 9.0), (3, 11.7)])), [true, false], "in any order");
    }

    #[test]
    fn points_of_other_places_say_nothing_of_each_other() {
        let all = [points(4, &[(2, 8.0)]), points(8, &[(4, 4.0)])].concat();
        assert_eq!(jumps(&all), [false; 2]);
    }
}
