//! Two costs of the same runs, with their Pareto front.
//!
//! Less is better on both axes, so the Pareto front (runs that no other beats in both costs) is at the lower left; a
//! step line joins it, because nothing between two runs is known to be reachable. Invariant: only points of the front
//! have labels, if they fit; a note states how many do not.

use super::count;
use crate::axis::{Axis, Scale};
use crate::canvas::{SMALL, SeriesStyle, Spot, group, line, path, text};
use crate::labels::{Block, Labeller};
use crate::page::{LegendEntry, Page, mark_sample, series_group};
use crate::panel::{Panel, PanelOptions, RIGHT};
use crate::text::{DisplayUnit, fit, width};
use svg::node::element::Element;

/// A plot of two costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// Title of the figure.
    pub title: String,
    /// Conditions of the measurement, or nothing.
    pub subtitle: String,
    /// One cost; less is better.
    pub x: Axis,
    /// The other.
    pub y: Axis,
    /// Compared things; each series has a front of its own.
    pub series: Vec<PlaneSeries>,
}

/// A series of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaneSeries {
    /// Its name; of a single series it is not shown.
    pub name: String,
    /// The runs.
    pub points: Vec<PlanePoint>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanePoint {
    /// One cost.
    pub x: f64,
    /// The other.
    pub y: f64,
    /// Label of the run if it is on the front.
    pub label: String,
}

/// Height of the area within the axes.
const HEIGHT: f64 = 340.0;

/// The widest label.
const LABEL_MAX: f64 = 210.0;

impl Plane {
    pub(crate) fn draw(&self) -> Page {
        let mut page = Page::new(&self.title, &self.subtitle);
        let can_show = |point: &&PlanePoint| self.x.can_show(point.x) && self.y.can_show(point.y);
        let shown: Vec<Vec<&PlanePoint>> =
            self.series.iter().map(|series| series.points.iter().filter(can_show).collect()).collect();
        let xs: Vec<f64> = shown.iter().flatten().map(|point| point.x).collect();
        let mut ys: Vec<f64> = shown.iter().flatten().map(|point| point.y).collect();
        ys.extend(below(&ys, self.y.scale));
        if self.series.len() > 1 {
            let entry = |(number, series): (usize, &PlaneSeries)| LegendEntry {
                sample: mark_sample(SeriesStyle::of(number), "key"),
                reach: 6.0,
                label: series.name.clone(),
            };
            let entries: Vec<LegendEntry> = self.series.iter().enumerate().map(entry).collect();
            page.legend(&entries);
        }
        let options = PanelOptions {
            x: (&self.x, &xs),
            y: (&self.y, &ys),
            height: HEIGHT,
            left_min: 0.0,
            right: RIGHT,
            is_last: true,
        };
        let panel = Panel::on(&mut page, &options);
        let fronts: Vec<Vec<&PlanePoint>> = shown.iter().map(|points| pareto_front(points)).collect();
        for (number, (points, front)) in shown.iter().zip(&fronts).enumerate() {
            page.add(self.series(&panel, number, points, front));
        }
        let marks = shown.iter().flatten().map(|point| Block::around(panel.spot(point.x, point.y), 5.0));
        let steps = fronts.iter().flat_map(|front| {
            let corners = corners(&panel, front);
            corners.windows(2).map(|pair| between(pair[0], pair[1])).collect::<Vec<_>>()
        });
        let mut labeller = Labeller::new(panel.area, marks.chain(steps).collect());
        let mut missing = 0;
        for point in fronts.iter().flatten().filter(|point| !point.label.is_empty()) {
            match label(&panel, &mut labeller, point) {
                Some(label) => page.add(label),
                None => missing += 1,
            }
        }
        let all: usize = self.series.iter().map(|series| series.points.len()).sum();
        page.describe(format!(
            "{} against {}: {}, of which no other beats {} in both.",
            panel.y.title,
            panel.x.title,
            count(xs.len(), "run", "runs"),
            fronts.iter().map(Vec::len).sum::<usize>()
        ));
        if missing > 0 {
            page.note(format!("No room for {}.", count(missing, "more label", "more labels")));
        }
        page.note_drawn(xs.len(), all, self.x.scale == Scale::Log || self.y.scale == Scale::Log);
        page
    }

    fn series(&self, panel: &Panel, number: usize, points: &[&PlanePoint], front: &[&PlanePoint]) -> Element {
        let style = SeriesStyle::of(number);
        let (x, y) = (DisplayUnit::of(&self.x.unit), DisplayUnit::of(&self.y.unit));
        let corners = corners(panel, front);
        let mut drawn = Vec::new();
        if corners.len() > 1 {
            drawn.push(path(&corners, "thin front", "4 3"));
        }
        for point in points {
            let note = format!("{}: {}, {}", point.label, x.show(point.x, 4), y.show(point.y, 4));
            // Points of the front are filled, to be distinguishable without colours.
            let style =
                if front.iter().any(|other| std::ptr::eq(*other, *point)) { style } else { style.hollow() };
            drawn.push(style.mark(panel.spot(point.x, point.y), &note));
        }
        series_group(style, &self.series[number].name, drawn)
    }
}

/// Returns a value a tenth of the range below the least, to make room for labels below the front.
fn below(values: &[f64], scale: Scale) -> Option<f64> {
    let (least, most) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    let value = match scale {
        Scale::Log => least.powf(1.1) * most.powf(-0.1),
        Scale::Linear => (least * 1.1 - most * 0.1).max(least.min(0.0)),
    };
    (value.is_finite() && (scale == Scale::Linear || value > 0.0)).then_some(value)
}

/// Returns the Pareto front from left to right; of equal points the first.
fn pareto_front<'a>(points: &[&'a PlanePoint]) -> Vec<&'a PlanePoint> {
    let mut sorted: Vec<&PlanePoint> = points.to_vec();
    sorted.sort_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
    let mut least = f64::INFINITY;
    sorted.retain(|point| {
        let is_better = point.y < least;
        least = least.min(point.y);
        is_better
    });
    sorted
}

/// The step line that joins the points of a front.
fn corners(panel: &Panel, front: &[&PlanePoint]) -> Vec<Spot> {
    let mut corners: Vec<Spot> = Vec::new();
    for point in front {
        let spot = panel.spot(point.x, point.y);
        if let Some(before) = corners.last().copied() {
            corners.push(Spot { x: spot.x, y: before.y });
        }
        corners.push(spot);
    }
    corners
}

fn between(one: Spot, other: Spot) -> Block {
    Block {
        left: one.x.min(other.x) - 1.0,
        top: one.y.min(other.y) - 1.0,
        right: one.x.max(other.x) + 1.0,
        bottom: one.y.max(other.y) + 1.0,
    }
}

fn label(panel: &Panel, labeller: &mut Labeller, point: &PlanePoint) -> Option<Element> {
    let label = fit(&point.label, SMALL, LABEL_MAX);
    let spot = panel.spot(point.x, point.y);
    let slot = labeller.place(spot, width(&label, SMALL), SMALL)?;
    let lead = slot.is_far.then(|| line(spot, Spot { y: slot.at.y - SMALL * 0.35, ..slot.at }, "lead"));
    let name = text(&label, slot.at, slot.anchor, "small halo");
    Some(group("labels", lead.into_iter().chain([name])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_holds_what_no_other_beats() {
        let point = |x, y| PlanePoint { x, y, label: String::new() };
        let points = [
            point(1.0, 9.0),
            point(2.0, 9.0),
            point(3.0, 4.0),
            point(3.0, 5.0),
            point(4.0, 4.0),
            point(9.0, 1.0),
        ];
        let all: Vec<&PlanePoint> = points.iter().collect();
        let found: Vec<f64> = pareto_front(&all).iter().map(|point| point.x).collect();
        assert_eq!(found, [1.0, 3.0, 9.0]);
    }
}
