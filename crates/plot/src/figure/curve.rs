//! Values over others, as lines with marks: speed-up, ping-pong, time over cores.
//!
//! Our values are lines with filled marks, and a shaded range if runs differ; published values are rings with error
//! bars, in the colour of the series of the same name. Series are named at the ends of their lines if all end at the
//! right, and in a legend if not. Invariant: a series is drawn in the order of its horizontal values.

use super::{Interval, count};
use crate::axis::{Axis, Scale};
use crate::canvas::{Anchor, SMALL, SeriesStyle, Spot, element, group, line, path, polygon, text};
use crate::labels::spread;
use crate::page::{LegendEntry, MARGIN, Page, mark_sample, series_group};
use crate::panel::{Panel, PanelOptions, RIGHT};
use crate::text::{DisplayUnit, fit, width};
use svg::node::element::Element;

/// Values over others.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Title of the figure.
    pub title: String,
    /// Conditions of the measurement, or nothing.
    pub subtitle: String,
    /// Axis of the variable that the values depend on.
    pub x: Axis,
    /// Axis of the values.
    pub y: Axis,
    /// The series.
    pub series: Vec<Series>,
    /// `true` to draw the line on which both values are equal: the ideal of a speed-up.
    pub ideal: bool,
}

/// A series of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name; a measured series and its published counterpart share it.
    pub name: String,
    /// Origin of the values.
    pub origin: Origin,
    /// The values, in any order.
    pub points: Vec<CurvePoint>,
}

/// Origin of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Measured by Isles, or by the author of the figure.
    Ours,
    /// Published by others.
    Published,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Value of the variable that it depends on.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Range or error band of the value.
    pub band: Option<Interval>,
}

impl CurvePoint {
    /// A value without a band.
    pub fn new(x: f64, y: f64) -> CurvePoint {
        CurvePoint { x, y, band: None }
    }
}

/// A series as it will be drawn.
struct Shown<'a> {
    series: &'a Series,
    label: String,
    style: SeriesStyle,
    points: Vec<CurvePoint>,
}

/// Height of the area within the axes.
const HEIGHT: f64 = 300.0;

/// The widest label at the end of a line.
const LABEL_MAX: f64 = 170.0;

/// Distance of the labels at the ends of lines.
const LABEL_LINE: f64 = 17.0;

impl Curve {
    pub(crate) fn draw(&self) -> Page {
        let mut page = Page::new(&self.title, &self.subtitle);
        let shown = self.shown();
        let points = || shown.iter().flat_map(|one| &one.points);
        let xs: Vec<f64> = points().map(|point| point.x).collect();
        let bands = points().filter_map(|point| point.band).flat_map(|band| [band.low, band.high]);
        // Heights matter in a speed-up plot.
        let zero = (self.ideal && self.y.scale == Scale::Linear).then_some(0.0);
        let bands = bands.filter(|value| self.y.can_show(*value)).chain(zero);
        let ys: Vec<f64> = points().map(|point| point.y).chain(bands).collect();
        let widest = shown.iter().map(|one| width(&one.label, SMALL)).fold(0.0, f64::max);
        let labelled = shown.len() > 1 && widest <= LABEL_MAX && ends_at_the_right(&shown, &self.x);
        if shown.len() > 1 && !labelled {
            let entries: Vec<LegendEntry> = shown.iter().map(legend_entry).collect();
            page.legend(&entries);
        }
        let right = if labelled { MARGIN + widest + 37.0 } else { RIGHT };
        let options = PanelOptions {
            x: (&self.x, &xs),
            y: (&self.y, &ys),
            height: HEIGHT,
            left_min: 0.0,
            right,
            is_last: true,
        };
        let panel = Panel::on(&mut page, &options);
        if self.ideal {
            page.add(ideal(&panel));
        }
        for one in &shown {
            page.add(self.series(&panel, one));
        }
        if labelled {
            page.add(labels(&panel, &shown));
        }
        let drawn = points().count();
        let all: usize = self.series.iter().map(|series| series.points.len()).sum();
        page.describe(format!(
            "{} over {}: {} with {}.",
            panel.y.title,
            panel.x.title,
            shown.iter().map(|one| one.label.as_str()).collect::<Vec<_>>().join(", "),
            count(drawn, "point", "points")
        ));
        page.note_drawn(drawn, all, self.x.scale == Scale::Log || self.y.scale == Scale::Log);
        page
    }

    /// The series with the points that can be drawn.
    fn shown(&self) -> Vec<Shown<'_>> {
        let mut names: Vec<&str> = Vec::new();
        let both = |name: &str| {
            [Origin::Ours, Origin::Published]
                .iter()
                .all(|origin| self.series.iter().any(|other| other.name == name && other.origin == *origin))
        };
        let mut shown = Vec::new();
        for series in &self.series {
            let before = names.iter().position(|name| *name == series.name && both(name));
            let number = before.unwrap_or_else(|| {
                names.push(&series.name);
                names.len() - 1
            });
            let style = SeriesStyle::of(number);
            let style = if series.origin == Origin::Published { style.ring() } else { style };
            let label = match series.origin {
                Origin::Ours if both(&series.name) => format!("{}, Isles", series.name),
                Origin::Ours => series.name.clone(),
                Origin::Published => format!("{}, published", series.name),
            };
            let can_show = |point: &&CurvePoint| self.x.can_show(point.x) && self.y.can_show(point.y);
            let known = |band: &Interval| !band.low.is_nan() && !band.high.is_nan();
            let points = series.points.iter().filter(can_show);
            let points = points.map(|point| CurvePoint { band: point.band.filter(known), ..*point });
            let mut points: Vec<CurvePoint> = points.collect();
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
            shown.push(Shown { series, label, style, points });
        }
        shown
    }

    fn series(&self, panel: &Panel, shown: &Shown<'_>) -> Element {
        let spots: Vec<Spot> = shown.points.iter().map(|point| panel.spot(point.x, point.y)).collect();
        let mut drawn = Vec::new();
        match shown.series.origin {
            Origin::Published => drawn.extend(error_bars(panel, &shown.points)),
            Origin::Ours => {
                drawn.extend(range(panel, &shown.points));
                if spots.len() > 1 {
                    drawn.push(path(&spots, "line", shown.style.dash()));
                }
            }
        }
        let (x, y) = (DisplayUnit::of(&self.x.unit), DisplayUnit::of(&self.y.unit));
        for (point, spot) in shown.points.iter().zip(spots) {
            let note = format!("{}: {} at {}", shown.label, y.show(point.y, 4), x.show(point.x, 6));
            drawn.push(shown.style.mark(spot, &note));
        }
        series_group(shown.style, &shown.label, drawn)
    }
}

/// Returns `true` if each series has its last point in the last tenth of the axis.
fn ends_at_the_right(shown: &[Shown<'_>], axis: &Axis) -> bool {
    let place = |x: f64| if axis.scale == Scale::Log { x.log10() } else { x };
    let all = || shown.iter().flat_map(|one| &one.points).map(|point| place(point.x));
    let (least, most) =
        all().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)));
    shown.len() <= 8
        && shown
            .iter()
            .all(|one| one.points.last().is_some_and(|last| place(last.x) >= most - (most - least) * 0.1))
}

fn legend_entry(shown: &Shown<'_>) -> LegendEntry {
    let (style, is_line) = (shown.style, shown.series.origin == Origin::Ours);
    let mark = mark_sample(style, "key");
    let sample = move |at: Spot| {
        let (from, to) = (Spot { x: at.x - 15.0, ..at }, Spot { x: at.x + 15.0, ..at });
        let stroke = is_line.then(|| group(&style.class(), [path(&[from, to], "line", style.dash())]));
        stroke.into_iter().chain(mark(at)).collect()
    };
    LegendEntry { sample: Box::new(sample), reach: 15.0, label: shown.label.clone() }
}

/// The line on which both values are equal.
fn ideal(panel: &Panel) -> Element {
    let spots = panel.function(|x| x);
    let mut drawn = Vec::new();
    if let [.., before, last] = spots[..] {
        drawn.push(path(&spots, "guide", "none"));
        // Left of the line, one line of text below its end; right of it if there is no room.
        let across = (last.x - before.x) / (before.y - last.y).max(0.1) * SMALL;
        let left = last.x - across.min(60.0) - 8.0;
        let (x, anchor) = match left - width("ideal", SMALL) < panel.area.left {
            true => (last.x + 6.0, Anchor::Start),
            false => (left, Anchor::End),
        };
        drawn.push(text("ideal", Spot { x, y: last.y + SMALL }, anchor, "small halo"));
    }
    group("ideal", drawn)
}

/// The bands of published points, as bars.
fn error_bars(panel: &Panel, points: &[CurvePoint]) -> Vec<Element> {
    let bar = |(point, band): (&CurvePoint, Interval)| {
        let (low, high) = (panel.nearest_spot(point.x, band.low), panel.nearest_spot(point.x, band.high));
        let cap = |at: Spot| line(Spot { x: at.x - 3.0, ..at }, Spot { x: at.x + 3.0, ..at }, "thin");
        group("band", [line(low, high, "thin"), cap(low), cap(high)])
    };
    points.iter().filter_map(|point| Some((point, point.band?))).map(bar).collect()
}

/// The range of our points, shaded, if they have one.
fn range(panel: &Panel, points: &[CurvePoint]) -> Option<Element> {
    let banded: Vec<(f64, Interval)> =
        points.iter().filter_map(|point| Some((point.x, point.band?))).collect();
    if banded.len() < 2 {
        return None;
    }
    let high = banded.iter().rev().map(|(x, band)| panel.nearest_spot(*x, band.high));
    let corners: Vec<Spot> =
        banded.iter().map(|(x, band)| panel.nearest_spot(*x, band.low)).chain(high).collect();
    Some(polygon(&corners, "shade band"))
}

/// The names at the ends of the lines.
fn labels(panel: &Panel, shown: &[Shown<'_>]) -> Element {
    let ends: Vec<Spot> =
        shown.iter().filter_map(|one| one.points.last()).map(|point| panel.spot(point.x, point.y)).collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.y).collect();
    let placed = spread(&wanted, LABEL_LINE, panel.area.top, panel.area.bottom);
    let mut drawn = element("g", "labels");
    for ((one, end), y) in shown.iter().zip(ends).zip(placed) {
        let start = Spot { x: panel.area.right + 16.0, y };
        let lead = line(Spot { x: end.x + 7.0, ..end }, Spot { x: start.x - 9.0, y }, "lead");
        let mark = group(&one.style.class(), [group("key", [one.style.mark(start, "")])]);
        let label = fit(&one.label, SMALL, LABEL_MAX);
        let name = text(&label, Spot { x: start.x + 12.0, y: y + SMALL * 0.35 }, Anchor::Start, "small");
        for part in [lead, mark, name] {
            drawn.get_children_mut().push(Box::new(part));
        }
    }
    drawn
}
