//! Published figures against ours, on logarithmic axes: values above, ratios below.
//!
//! Over many powers of ten, the upper panel hides a deviation of a fifth; the lower panel shows it, and its bands are
//! wide enough to see. A figure out of its band has a number, and a list names it. Invariant: all figures out of their
//! bands are counted, also those that the list has no room for.

use super::{Interval, count};
use crate::axis::{Axis, Scale};
use crate::canvas::{Anchor, SMALL, SeriesStyle, Spot, WIDTH, group, line, path, text};
use crate::labels::{Block, Labeller};
use crate::page::{LegendEntry, MARGIN, Page, SMALL_LINE, mark_sample, series_group};
use crate::panel::{Panel, PanelOptions, RIGHT};
use crate::text::{DisplayUnit, fit, width};
use svg::node::element::Element;

/// Published figures against ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Parity {
    /// Title of the figure.
    pub title: String,
    /// Conditions of the measurement, or nothing.
    pub subtitle: String,
    /// The axis of the published figures; always logarithmic.
    pub published: Axis,
    /// The axis of our figures.
    pub ours: Axis,
    /// Name of the ratio of the second to the first, such as `Ours / published`.
    pub ratio: String,
    /// The names of the series, such as `calibrated` and `predicted`.
    pub series: Vec<String>,
    /// The figures.
    pub points: Vec<ParityPoint>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct ParityPoint {
    /// Name of the figure.
    pub label: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// Published value.
    pub published: f64,
    /// Our value.
    pub ours: f64,
    /// Interval that must contain ours, if there is one.
    pub allowed: Option<Interval>,
    /// Number of its series.
    pub series: usize,
}

impl ParityPoint {
    fn is_outside_band(&self) -> bool {
        self.allowed.is_some_and(|allowed| !allowed.contains(self.ours))
    }

    fn ratio(&self) -> f64 {
        self.ours / self.published
    }

    /// Returns the allowed deviation of ours, as a share of the published value, if the band is symmetric.
    fn band(&self) -> Option<f64> {
        let allowed = self.allowed?;
        let (below, above) = (1.0 - allowed.low / self.published, allowed.high / self.published - 1.0);
        ((below - above).abs() < 1e-6 && above > 0.0 && above < 1.0).then(|| (above * 1e4).round() / 1e4)
    }
}

/// Heights of both panels.
const UPPER: f64 = 280.0;
const LOWER: f64 = 210.0;

/// The most figures that the list names.
const LISTED: usize = 16;

/// The most bands that are shaded.
const BANDS: usize = 3;

impl Parity {
    pub(crate) fn draw(&self) -> Page {
        let mut page = Page::new(&self.title, &self.subtitle);
        let log = |axis: &Axis| Axis { scale: Scale::Log, ..axis.clone() };
        let (published, ours) = (log(&self.published), log(&self.ours));
        let ratio = Axis::new(&self.ratio, "", Scale::Log);
        let can_show = |point: &&ParityPoint| {
            published.can_show(point.published) && ours.can_show(point.ours) && ratio.can_show(point.ratio())
        };
        let shown: Vec<&ParityPoint> = self.points.iter().filter(can_show).collect();
        let bands = bands(&shown);
        self.legend(&mut page, &shown, &bands);
        // The same range on both axes, so that the diagonal is one.
        let both: Vec<f64> = shown.iter().flat_map(|point| [point.published, point.ours]).collect();
        let ratios: Vec<f64> = shown.iter().map(|point| point.ratio()).chain([0.9, 1.1]).collect();
        let left_min = Panel::left(&ours, &both, UPPER).max(Panel::left(&ratio, &ratios, LOWER));
        let upper = PanelOptions {
            x: (&published, &both),
            y: (&ours, &both),
            height: UPPER,
            left_min,
            right: RIGHT,
            is_last: false,
        };
        let upper = Panel::on(&mut page, &upper);
        page.add(group("shades", bands.iter().map(|band| strip(&upper, *band))));
        page.add(group("diagonal", [path(&upper.function(|x| x), "guide", "none")]));
        let worst = worst(&shown);
        self.marks(&mut page, &upper, &shown, |point| point.ours);
        page.cursor += 6.0;
        let lower = PanelOptions {
            x: (&published, &both),
            y: (&ratio, &ratios),
            height: LOWER,
            left_min,
            right: RIGHT,
            is_last: true,
        };
        let lower = Panel::on(&mut page, &lower);
        let range = |band: &f64| lower.shaded_range(Interval { low: 1.0 - band, high: 1.0 + band });
        page.add(group("shades", bands.iter().map(range)));
        page.add(group("diagonal", [path(&lower.function(|_| 1.0), "guide", "none")]));
        self.marks(&mut page, &lower, &shown, ParityPoint::ratio);
        page.add(numbers(&lower, &shown, &worst));
        list(&mut page, &worst);
        let out = shown.iter().filter(|point| point.is_outside_band()).count();
        if out > worst.len() {
            page.note(format!("and {} more out of their bands, less far off.", out - worst.len()));
        }
        page.describe(format!(
            "{} against {}: {}, {out} of them out of their bands.",
            upper.y.title,
            lower.x.title,
            count(shown.len(), "figure", "figures")
        ));
        page.note_drawn(shown.len(), self.points.len(), true);
        page
    }

    fn legend(&self, page: &mut Page, shown: &[&ParityPoint], bands: &[f64]) {
        let mut entries = Vec::new();
        for (number, name) in self.series.iter().enumerate() {
            let mine = || shown.iter().filter(|point| point.series == number);
            let out = mine().filter(|point| point.is_outside_band()).count();
            let label = match (mine().count(), out) {
                (all, 0) => format!("{name} ({all})"),
                (all, out) => format!("{name} ({all}, {out} out of band)"),
            };
            entries.push(LegendEntry { sample: mark_sample(style(number), "key"), reach: 6.0, label });
        }
        if !bands.is_empty() {
            let percent: Vec<String> =
                bands.iter().rev().map(|band| crate::text::number(band * 100.0, 3)).collect();
            let sample = |at: Spot| {
                let (one, other) =
                    (Spot { x: at.x - 10.0, y: at.y - 5.0 }, Spot { x: at.x + 10.0, y: at.y + 5.0 });
                vec![crate::canvas::rectangle(one, other, "shade")]
            };
            let label = format!("bands: ±{} %", percent.join(", ±"));
            entries.push(LegendEntry { sample: Box::new(sample), reach: 10.0, label });
        }
        page.legend(&entries);
    }

    /// The points, series by series.
    fn marks(
        &self,
        page: &mut Page,
        panel: &Panel,
        shown: &[&ParityPoint],
        value: impl Fn(&ParityPoint) -> f64,
    ) {
        for (number, name) in self.series.iter().enumerate() {
            let mark = |point: &&ParityPoint| {
                let unit = DisplayUnit::of(&point.unit);
                let figures = [point.published, point.ours].map(|value| unit.show(value, 4));
                let note = format!("{}: {} published, {} ours", point.label, figures[0], figures[1]);
                style(number).mark(panel.spot(point.published, value(point)), &note)
            };
            let marks = shown.iter().filter(|point| point.series == number).map(mark).collect();
            page.add(series_group(style(number), name, marks));
        }
    }
}

/// The first series is hollow, so that marks over it are visible.
fn style(number: usize) -> SeriesStyle {
    if number == 0 { SeriesStyle::of(0).hollow() } else { SeriesStyle::of(number) }
}

/// Returns the most common bands, widest first.
fn bands(shown: &[&ParityPoint]) -> Vec<f64> {
    let mut counted: Vec<(f64, usize)> = Vec::new();
    for band in shown.iter().filter_map(|point| point.band()) {
        match counted.iter_mut().find(|(known, _)| *known == band) {
            Some((_, count)) => *count += 1,
            None => counted.push((band, 1)),
        }
    }
    counted.sort_by(|(one, few), (other, many)| many.cmp(few).then(one.total_cmp(other)));
    let mut bands: Vec<f64> = counted.into_iter().take(BANDS).map(|(band, _)| band).collect();
    bands.sort_by(|one, other| other.total_cmp(one));
    bands
}

/// Draws the band along the diagonal.
fn strip(panel: &Panel, band: f64) -> Element {
    panel.shade(panel.function(|x| x * (1.0 - band)), panel.function(|x| x * (1.0 + band)))
}

/// Returns the figures out of their bands, sorted by deviation, up to the length of the list.
fn worst<'a>(shown: &[&'a ParityPoint]) -> Vec<&'a ParityPoint> {
    let mut out: Vec<&ParityPoint> = shown.iter().copied().filter(|point| point.is_outside_band()).collect();
    let off = |point: &ParityPoint| point.ratio().ln().abs();
    out.sort_by(|one, other| off(other).total_cmp(&off(one)));
    out.truncate(LISTED);
    out
}

/// The numbers of the list at their points.
fn numbers(panel: &Panel, shown: &[&ParityPoint], worst: &[&ParityPoint]) -> Element {
    let spot = |point: &ParityPoint| panel.spot(point.published, point.ratio());
    let marks: Vec<Block> = shown.iter().map(|point| Block::around(spot(point), 4.5)).collect();
    let mut labeller = Labeller::new(panel.area, marks);
    let mut drawn = Vec::new();
    for (number, point) in worst.iter().enumerate() {
        let label = (number + 1).to_string();
        let Some(slot) = labeller.place(spot(point), width(&label, SMALL), SMALL) else { continue };
        if slot.is_far {
            drawn.push(line(spot(point), Spot { y: slot.at.y - SMALL * 0.35, ..slot.at }, "lead"));
        }
        drawn.push(text(&label, slot.at, slot.anchor, "small halo"));
    }
    group("labels", drawn)
}

/// The names of the numbers, in two columns.
fn list(page: &mut Page, worst: &[&ParityPoint]) {
    let rows = worst.len().div_ceil(2);
    let column = (WIDTH - 2.0 * MARGIN) / 2.0;
    let mut drawn = Vec::new();
    for (number, point) in worst.iter().enumerate() {
        let (row, at_right) = (number % rows, number >= rows);
        let x = MARGIN + if at_right { column } else { 0.0 };
        let at = Spot { x: x + 18.0, y: page.cursor + SMALL_LINE * (row + 1) as f64 };
        drawn.push(text(&(number + 1).to_string(), at, Anchor::End, "small"));
        let off = (point.ratio() - 1.0) * 100.0;
        let off = if off.abs() < 1000.0 {
            format!("{off:+.0} %")
        } else {
            format!("× {}", crate::text::number(point.ratio(), 3))
        };
        let room = column - 40.0 - width(&off, SMALL);
        let entry = format!("{}  {off}", fit(&point.label, SMALL, room));
        drawn.push(text(&entry, Spot { x: at.x + 8.0, ..at }, Anchor::Start, "small"));
    }
    page.cursor += SMALL_LINE * rows as f64;
    page.add(group("list", drawn));
}
