//! A rectangle with two axes: grid, ticks and titles, and positions of values.
//!
//! The title of the vertical axis is above it and not rotated, for legibility. Invariant: labels of ticks do not touch;
//! one that would touch the one before is left out, and its tick stays.

use crate::axis::{Axis, Ruler, RulerOptions};
use crate::canvas::{Anchor, SMALL, Spot, WIDTH, group, line, rectangle, text};
use crate::figure::Interval;
use crate::labels::Block;
use crate::page::{MARGIN, Page};
use crate::text::{fit, width};
use svg::node::element::Element;

/// Options of a panel.
pub(crate) struct PanelOptions<'a> {
    pub(crate) x: (&'a Axis, &'a [f64]),
    pub(crate) y: (&'a Axis, &'a [f64]),
    /// Height of the area within the axes.
    pub(crate) height: f64,
    /// Least left edge of the area, so that panels below each other can begin together.
    pub(crate) left_min: f64,
    /// Room at the right of it.
    pub(crate) right: f64,
    /// `true` if the horizontal axis has labels and a title.
    pub(crate) is_last: bool,
}

/// The area within the axes.
pub(crate) struct Panel {
    pub(crate) area: Block,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
}

/// Pixels that a tick takes at the horizontal and at the vertical axis.
const LABEL_WIDTH: f64 = 72.0;
const LABEL_HEIGHT: f64 = 42.0;

/// Room below the axis for the labels of its ticks and its title.
const LABELS: f64 = 20.0;
const TITLE: f64 = 20.0;

/// Default room at the right.
pub(crate) const RIGHT: f64 = MARGIN + 14.0;

impl Panel {
    /// Puts a panel onto the page and moves the cursor below it.
    pub(crate) fn on(page: &mut Page, options: &PanelOptions<'_>) -> Panel {
        let ((x_axis, x_values), (y_axis, y_values)) = (options.x, options.y);
        let y = vertical_axis(y_axis, y_values, options.height);
        let left = left(&y).max(options.left_min);
        let right = (WIDTH - options.right).max(left + 60.0);
        let x = Ruler::of(x_axis, x_values, ruler_options(x_values, (right - left) / LABEL_WIDTH));
        let title = fit(&y.title, SMALL, WIDTH - 2.0 * MARGIN);
        if !title.is_empty() {
            let at = Spot { x: MARGIN, y: page.cursor + SMALL };
            page.add(text(&title, at, Anchor::Start, "small"));
            page.cursor += SMALL + 6.0;
        }
        let top = page.cursor + 6.0;
        let panel = Panel { area: Block { left, top, right, bottom: top + options.height }, x, y };
        page.add(panel.frame(options.is_last));
        page.cursor = panel.area.bottom + if options.is_last { LABELS + TITLE } else { 8.0 };
        panel
    }

    /// Returns the left edge of the area of a panel with this vertical axis.
    pub(crate) fn left(y: &Axis, values: &[f64], height: f64) -> f64 {
        left(&vertical_axis(y, values, height))
    }

    /// Returns the position of a point.
    pub(crate) fn spot(&self, x: f64, y: f64) -> Spot {
        let Block { left, top, right, bottom } = self.area;
        Spot { x: left + self.x.at(x) * (right - left), y: bottom - self.y.at(y) * (bottom - top) }
    }

    /// Returns the position of a point, or the nearest one of the area.
    pub(crate) fn nearest_spot(&self, x: f64, y: f64) -> Spot {
        let Spot { x, y } = self.spot(x, y);
        let Block { left, top, right, bottom } = self.area;
        Spot { x: x.clamp(left, right), y: y.clamp(top, bottom) }
    }

    /// The line of a function over the whole width, as far as it lies in the area.
    pub(crate) fn function(&self, of: impl Fn(f64) -> f64) -> Vec<Spot> {
        let Interval { low, high } = self.x.range();
        let steps = 64;
        let value = |number: usize| {
            let share = number as f64 / f64::from(steps);
            if self.x.is_log() {
                low.powf(1.0 - share) * high.powf(share)
            } else {
                low + (high - low) * share
            }
        };
        let spots = (0..=steps as usize).map(value).map(|x| (x, of(x)));
        let spots = spots.filter(|(_, y)| y.is_finite() && (!self.y.is_log() || *y > 0.0));
        let spots: Vec<Spot> = spots.map(|(x, y)| self.spot(x, y)).collect();
        clipped(&spots, self.area.top, self.area.bottom)
    }

    /// Grid, axes, ticks and titles.
    fn frame(&self, is_last: bool) -> Element {
        let Block { left, top, right, bottom } = self.area;
        let mut shown = Vec::new();
        for mark in &self.y.labels {
            let y = bottom - mark.at * (bottom - top);
            shown.push(line(Spot { x: left, y }, Spot { x: right, y }, "grid"));
            let at = Spot { x: left - 8.0, y: y + SMALL * 0.35 };
            shown.push(text(&mark.label, at, Anchor::End, "small"));
        }
        let mut taken = f64::NEG_INFINITY;
        for mark in &self.x.labels {
            let x = left + mark.at * (right - left);
            shown.push(line(Spot { x, y: top }, Spot { x, y: bottom }, "grid"));
            let half = width(&mark.label, SMALL) / 2.0;
            if is_last && x - half > taken + 6.0 {
                shown.push(line(Spot { x, y: bottom }, Spot { x, y: bottom + 4.0 }, "axis"));
                shown.push(text(&mark.label, Spot { x, y: bottom + LABELS - 2.0 }, Anchor::Middle, "small"));
                taken = x + half;
            }
        }
        shown.push(line(Spot { x: left, y: bottom }, Spot { x: right, y: bottom }, "axis"));
        if is_last {
            let title = fit(&self.x.title, SMALL, WIDTH - 2.0 * MARGIN);
            let half = width(&title, SMALL) / 2.0;
            let middle =
                ((left + right) / 2.0).clamp(MARGIN + half, (WIDTH - MARGIN - half).max(MARGIN + half));
            let at = Spot { x: middle, y: bottom + LABELS + TITLE - 4.0 };
            shown.push(text(&title, at, Anchor::Middle, "small"));
        }
        group("frame", shown)
    }

    /// A shaded area over the whole width between two lines.
    pub(crate) fn shade(&self, low: Vec<Spot>, high: Vec<Spot>) -> Element {
        let corners: Vec<Spot> = low.into_iter().chain(high.into_iter().rev()).collect();
        crate::canvas::polygon(&corners, "shade")
    }

    /// A shaded area over the whole width between two values.
    pub(crate) fn shaded_range(&self, range: Interval) -> Element {
        let Block { left, right, .. } = self.area;
        let Interval { low, high } = self.x.range();
        let (from, to) = (self.nearest_spot(low, range.low), self.nearest_spot(high, range.high));
        rectangle(Spot { x: left, y: from.y }, Spot { x: right, y: to.y }, "shade")
    }
}

/// The vertical axis of a panel of that height.
fn vertical_axis(axis: &Axis, values: &[f64], height: f64) -> Ruler {
    Ruler::of(axis, values, ruler_options(values, height / LABEL_HEIGHT))
}

/// Returns the left edge of a panel at which the labels of this axis are within the margin.
fn left(y: &Ruler) -> f64 {
    let widest = y.labels.iter().map(|mark| width(&mark.label, SMALL)).fold(0.0, f64::max);
    MARGIN + widest.max(14.0) + 8.0
}

fn ruler_options(values: &[f64], labels_max: f64) -> RulerOptions {
    let whole = !values.is_empty() && values.iter().all(|value| value.fract() == 0.0);
    RulerOptions { labels_max: (labels_max as usize).max(2), baseline: None, whole }
}

/// The part of a line between two heights, with the points where it crosses them.
fn clipped(spots: &[Spot], top: f64, bottom: f64) -> Vec<Spot> {
    let mut kept: Vec<Spot> = Vec::new();
    for pair in spots.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let at = |y: f64| Spot { x: from.x + (to.x - from.x) * (y - from.y) / (to.y - from.y), y };
        let inside = |spot: Spot| spot.y >= top && spot.y <= bottom;
        let mut crossings: Vec<Spot> =
            [top, bottom].into_iter().filter(|edge| (from.y - edge) * (to.y - edge) < 0.0).map(at).collect();
        crossings.sort_by(|one, other| one.x.total_cmp(&other.x));
        let ends = [inside(from).then_some(from)].into_iter().flatten();
        for spot in ends.chain(crossings).chain(inside(to).then_some(to)) {
            if kept.last() != Some(&spot) {
                kept.push(spot);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Scale;

    fn panel(scale: Scale) -> Panel {
        let (x, y) = (Axis::new("Places", "", scale), Axis::new("Speed-up", "", scale));
        let values = [1.0, 10.0, 100.0];
        let options = PanelOptions {
            x: (&x, &values),
            y: (&y, &values),
            height: 200.0,
            left_min: 0.0,
            right: 20.0,
            is_last: true,
        };
        Panel::on(&mut Page::new("Title", ""), &options)
    }

    #[test]
    fn values_lie_between_the_ticks_around_them() {
        for scale in [Scale::Linear, Scale::Log] {
            let panel = panel(scale);
            let (low, high) = (panel.spot(1.0, 1.0), panel.spot(100.0, 100.0));
            assert!(low.x < high.x && low.y > high.y, "{scale:?}");
            let ten = panel.spot(10.0, 10.0);
            let share = (ten.x - low.x) / (high.x - low.x);
            let expected = if scale == Scale::Log { 0.5 } else { 9.0 / 99.0 };
            assert!((share - expected).abs() < 1e-9, "{scale:?} {share}");
        }
    }

    #[test]
    fn a_line_ends_where_it_leaves_the_area() {
        let panel = panel(Scale::Log);
        let line = panel.function(|x| x * 10.0);
        let last = line.last().unwrap();
        assert!((last.y - panel.area.top).abs() < 1e-6 && last.x < panel.area.right - 50.0, "{last:?}");
        assert!(panel.function(|x| x * 1e9).is_empty());
        assert!(panel.function(|_| f64::NAN).is_empty());
    }
}
