//! Amounts by category, as bars: shares of time or energy, ratios to others.
//!
//! Bars are vertical if the names of the categories are numbers or fit below them, else horizontal; a figure of
//! horizontal bars grows with their number. Stacks show parts of a whole, groups show competitors. Invariant: a bar
//! begins at the baseline of the axis, which is zero, or one on a logarithmic axis.

use super::count;
use crate::axis::{Axis, Ruler, RulerOptions, Scale};
use crate::canvas::{Anchor, SMALL, SeriesStyle, Spot, WIDTH, group, line, rectangle, text};
use crate::labels::Block;
use crate::page::{LegendEntry, MARGIN, Page, SMALL_LINE, series_group};
use crate::text::{DisplayUnit, fit, width};
use svg::node::element::Element;

/// Amounts by category.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Title of the figure.
    pub title: String,
    /// Conditions of the measurement, or nothing.
    pub subtitle: String,
    /// Name of the categories, or nothing.
    pub categories_label: String,
    /// The names of the categories.
    pub categories: Vec<String>,
    /// Axis of the values.
    pub value: Axis,
    /// The series; each has a value or none for each category.
    pub series: Vec<BarSeries>,
    /// Arrangement of the series of a category.
    pub arrangement: Arrangement,
}

/// A series of values.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// Its name; of a single series it is not shown.
    pub name: String,
    /// One for each category.
    pub values: Vec<Option<f64>>,
}

/// Arrangement of the series of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Side by side.
    Grouped,
    /// On each other; values below zero are left out.
    Stacked,
}

/// One bar that can be drawn.
struct Span {
    series: usize,
    category: usize,
    from: f64,
    to: f64,
    value: f64,
}

/// Height of the area of vertical bars.
const HEIGHT: f64 = 280.0;

/// Thickness of a horizontal bar, and the gap after a group.
const THICKNESS: f64 = 15.0;
const GAP: f64 = 9.0;

/// The widest name of a category beside horizontal bars.
const NAME_MAX: f64 = 230.0;

/// Most bars that are labelled with their values.
const WRITTEN: usize = 48;

impl Bars {
    pub(crate) fn draw(&self) -> Page {
        let mut page = Page::new(&self.title, &self.subtitle);
        let all: usize = self.series.iter().map(|series| series.values.iter().flatten().count()).sum();
        let spans = self.spans();
        if self.series.len() > 1 {
            let entries: Vec<LegendEntry> = {
                let series = self.series.iter().enumerate();
                series.map(|(number, series)| legend_entry(number, series)).collect()
            };
            page.legend(&entries);
        }
        let baseline = self.baseline();
        let values: Vec<f64> = spans.iter().map(|span| span.to).collect();
        let is_vertical = self.is_vertical();
        let labels_max = if is_vertical { HEIGHT / 42.0 } else { 6.0 } as usize;
        let options = RulerOptions { labels_max, baseline: Some(baseline), whole: false };
        let ruler = Ruler::of(&self.value, &values, options);
        match is_vertical {
            true => self.vertical(&mut page, &ruler, &spans),
            false => self.horizontal(&mut page, &ruler, &spans),
        }
        page.describe(format!(
            "{} by {}: {} of {}.",
            ruler.title,
            if self.categories_label.is_empty() { "category" } else { &self.categories_label },
            count(spans.len(), "bar", "bars"),
            self.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join(", ")
        ));
        page.note_drawn(spans.len(), all, self.value.scale == Scale::Log);
        page
    }

    /// Returns the value at which bars begin.
    fn baseline(&self) -> f64 {
        if self.value.scale == Scale::Log { 1.0 } else { 0.0 }
    }

    fn is_stacked(&self) -> bool {
        self.arrangement == Arrangement::Stacked
    }

    /// Returns the bars that can be drawn.
    fn spans(&self) -> Vec<Span> {
        let mut tops = vec![self.baseline(); self.categories.len()];
        let mut spans = Vec::new();
        for (number, series) in self.series.iter().enumerate() {
            for (category, value) in series.values.iter().enumerate().take(self.categories.len()) {
                let Some(value) = value.filter(|value| self.value.can_show(*value)) else { continue };
                let (from, to) = match self.arrangement {
                    Arrangement::Grouped => (self.baseline(), value),
                    Arrangement::Stacked => (tops[category], tops[category] + value),
                };
                if self.is_stacked() && (value < 0.0 || !self.value.can_show(to)) {
                    continue;
                }
                tops[category] = to;
                spans.push(Span { series: number, category, from, to, value });
            }
        }
        spans
    }

    /// Returns `true` if the bars are vertical: the names below them are numbers, of which some may be left out, or
    /// short.
    fn is_vertical(&self) -> bool {
        let slot = (WIDTH - 100.0) / self.categories.len().max(1) as f64;
        let are_numbers = self.categories.iter().all(|name| name.parse::<f64>().is_ok());
        are_numbers || self.categories.iter().all(|name| width(name, SMALL) < slot - 6.0)
    }

    /// Returns the number of bars beside each other in a category.
    fn beside(&self) -> usize {
        if self.is_stacked() { 1 } else { self.series.len().max(1) }
    }

    fn vertical(&self, page: &mut Page, ruler: &Ruler, spans: &[Span]) {
        let widest = ruler.labels.iter().map(|mark| width(&mark.label, SMALL)).fold(0.0, f64::max);
        if !ruler.title.is_empty() {
            let at = Spot { x: MARGIN, y: page.cursor + SMALL };
            page.add(text(&fit(&ruler.title, SMALL, WIDTH - 2.0 * MARGIN), at, Anchor::Start, "small"));
            page.cursor += SMALL + 6.0;
        }
        let (left, top) = (MARGIN + widest + 8.0, page.cursor + 6.0);
        let area = Block { left, top, right: WIDTH - MARGIN, bottom: top + HEIGHT };
        let y = |value: f64| area.bottom - ruler.at(value) * HEIGHT;
        let mut frame = Vec::new();
        for mark in &ruler.labels {
            let y = area.bottom - mark.at * HEIGHT;
            frame.push(line(Spot { x: left, y }, Spot { x: area.right, y }, "grid"));
            frame.push(text(&mark.label, Spot { x: left - 8.0, y: y + SMALL * 0.35 }, Anchor::End, "small"));
        }
        let slot = (area.right - left) / self.categories.len().max(1) as f64;
        // Of many numbers, every second is labelled, or fifth, or tenth, ..
        let widest = self.categories.iter().map(|name| width(name, SMALL)).fold(0.0, f64::max);
        let steps = (0..10).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_usize.pow(power)));
        let every =
            steps.into_iter().find(|every| slot * *every as f64 >= widest + 6.0).unwrap_or(usize::MAX);
        for (number, name) in self.categories.iter().enumerate().step_by(every) {
            let at = Spot { x: left + slot * (number as f64 + 0.5), y: area.bottom + 18.0 };
            frame.push(text(name, at, Anchor::Middle, "small"));
        }
        let title = fit(&self.categories_label, SMALL, area.right - left);
        if !title.is_empty() {
            let at = Spot { x: (left + area.right) / 2.0, y: area.bottom + 36.0 };
            frame.push(text(&title, at, Anchor::Middle, "small"));
        }
        page.add(group("frame", frame));
        let thickness = slot * if slot > 6.0 { 0.76 } else { 1.0 } / self.beside() as f64;
        let place = |span: &Span| {
            let beside = if self.is_stacked() { 0 } else { span.series };
            let start = left + slot * (span.category as f64 + 0.5) - thickness * self.beside() as f64 / 2.0;
            let x = start + thickness * beside as f64;
            (Spot { x, y: y(span.from) }, Spot { x: x + thickness, y: y(span.to) })
        };
        // Of very thin bars, only the edges would be visible.
        self.add_bars(page, spans, thickness >= 3.0, place);
        let baseline = y(self.baseline());
        page.add(line(Spot { x: left, y: baseline }, Spot { x: area.right, y: baseline }, "axis"));
        page.cursor = area.bottom + if title.is_empty() { 20.0 } else { 38.0 };
    }

    fn horizontal(&self, page: &mut Page, ruler: &Ruler, spans: &[Span]) {
        let widest = self.categories.iter().map(|name| width(name, SMALL)).fold(0.0, f64::max);
        let left = MARGIN + widest.min(NAME_MAX) + 10.0;
        let written = !self.is_stacked() && spans.len() <= WRITTEN;
        let room = if written { 62.0 } else { 14.0 };
        let right = WIDTH - MARGIN - room;
        let slot = THICKNESS * self.beside() as f64 + GAP;
        let top = page.cursor + 4.0;
        let bottom = top + slot * self.categories.len() as f64;
        let x = |value: f64| left + ruler.at(value) * (right - left);
        let mut frame = Vec::new();
        for mark in &ruler.labels {
            let x = left + mark.at * (right - left);
            frame.push(line(Spot { x, y: top }, Spot { x, y: bottom }, "grid"));
            frame.push(text(&mark.label, Spot { x, y: bottom + 16.0 }, Anchor::Middle, "small"));
        }
        for (number, name) in self.categories.iter().enumerate() {
            let y = top + slot * (number as f64 + 0.5) + SMALL * 0.35;
            let name = fit(name, SMALL, NAME_MAX);
            frame.push(text(&name, Spot { x: left - 10.0, y }, Anchor::End, "small"));
        }
        let title = fit(&ruler.title, SMALL, WIDTH - 2.0 * MARGIN);
        let half = width(&title, SMALL) / 2.0;
        let middle = ((left + right) / 2.0).clamp(MARGIN + half, (WIDTH - MARGIN - half).max(MARGIN + half));
        frame.push(text(&title, Spot { x: middle, y: bottom + 34.0 }, Anchor::Middle, "small"));
        page.add(group("frame", frame));
        let place = |span: &Span| {
            let beside = if self.is_stacked() { 0 } else { span.series };
            let y = top + slot * span.category as f64 + GAP / 2.0 + THICKNESS * beside as f64;
            (Spot { x: x(span.from), y: y + 1.0 }, Spot { x: x(span.to), y: y + THICKNESS - 1.0 })
        };
        self.add_bars(page, spans, true, place);
        if written {
            let value = |span: &Span| {
                let (from, to) = place(span);
                let at = Spot { x: from.x.max(to.x) + 5.0, y: to.y - 2.0 };
                text(&ruler.write(span.value, 3), at, Anchor::Start, "small halo")
            };
            page.add(group("labels", spans.iter().map(value)));
        }
        let baseline = x(self.baseline());
        page.add(line(Spot { x: baseline, y: top }, Spot { x: baseline, y: bottom }, "axis"));
        page.cursor = bottom + 34.0 + SMALL_LINE * 0.25;
    }

    /// Returns the bars by series; `place` returns the corners of one.
    fn add_bars(
        &self,
        page: &mut Page,
        spans: &[Span],
        has_edges: bool,
        place: impl Fn(&Span) -> (Spot, Spot),
    ) {
        let unit = DisplayUnit::of(&self.value.unit);
        for (number, series) in self.series.iter().enumerate() {
            let bar = |span: &Span| {
                let (one, other) = place(span);
                let edge = if has_edges { " edge" } else { "" };
                let mut bar = rectangle(one, other, &format!("bar{edge} {}", shade(number)));
                let category = &self.categories[span.category];
                let note = format!("{}, {category}: {}", series.name, unit.show(span.value, 4));
                let title = crate::canvas::with_text(Element::new("title"), &note);
                bar.get_children_mut().push(Box::new(title));
                bar
            };
            let mine = spans.iter().filter(|span| span.series == number).map(bar).collect();
            page.add(series_group(SeriesStyle::of(number), &series.name, mine));
        }
    }
}

/// Returns the opacity class of the bars of a series. Colours repeat after six series with another opacity.
fn shade(number: usize) -> String {
    format!("f{}", (number + number / 6) % 6)
}

fn legend_entry(number: usize, series: &BarSeries) -> LegendEntry {
    let sample = move |at: Spot| {
        let (one, other) = (Spot { x: at.x - 6.0, y: at.y - 6.0 }, Spot { x: at.x + 6.0, y: at.y + 6.0 });
        let swatch = rectangle(one, other, &format!("swatch edge {}", shade(number)));
        vec![group(&SeriesStyle::of(number).class(), [swatch])]
    };
    LegendEntry { sample: Box::new(sample), reach: 6.0, label: series.name.clone() }
}
