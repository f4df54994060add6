//! The sheet around a figure: title above, notes and provenance below, and the document that holds all.
//!
//! A figure adds its elements from the cursor on downwards and moves the cursor; so no height must be known before
//! drawing. Invariant: every document has a title and a description for screen readers, and the whole provenance as
//! metadata; the line at the foot may be a shortened form.

use crate::axis::LARGEST;
use crate::canvas::{
    Anchor, BODY, SMALL, STYLE, Spot, TITLE, WIDTH, clean, element, group, rectangle, text, with_text,
};
use crate::text::{fit, width, wrap};
use std::io::{self, Write};
use svg::node::Blob;
use svg::node::element::Element;

/// Provenance of a figure, for reproduction. It has no date: the same figure is the same file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The version of Isles that drew it.
    pub version: String,
    /// The commit of the build, if built in a checkout.
    pub commit: Option<String>,
    /// The command that draws it again.
    pub command: String,
    /// The modelled chip that the figures are of, such as `chip:scc`.
    pub chip: Option<String>,
    /// The seed of the runs, if they had one.
    pub seed: Option<u64>,
    /// Place and instrument of the measurement, if the figures were not measured by this command.
    pub measured: Option<String>,
}

impl Provenance {
    /// Returns all known fields, by name.
    fn entries(&self) -> Vec<(&'static str, String)> {
        let known = [
            ("version", Some(self.version.clone())),
            ("commit", self.commit.clone()),
            ("chip", self.chip.clone()),
            ("seed", self.seed.map(|seed| seed.to_string())),
            ("measured", self.measured.clone()),
            ("command", Some(self.command.clone())),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The line at the foot.
    fn line(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default();
        let parts = [
            Some(format!("Isles {}{commit}", self.version)),
            self.chip.clone(),
            self.seed.map(|seed| format!("seed {seed}")),
            self.measured.clone(),
            Some(self.command.clone()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        parts.join(" · ")
    }
}

/// The margin of the sheet at all sides.
pub(crate) const MARGIN: f64 = 16.0;

/// Largest width of text, from margin to margin.
pub(crate) const ROOM: f64 = WIDTH - 2.0 * MARGIN;

/// Height of a line of small text.
pub(crate) const SMALL_LINE: f64 = 16.0;

/// An entry of a legend.
pub(crate) struct LegendEntry {
    /// Draws the sample of the series, about the point where it is put.
    pub(crate) sample: Box<dyn Fn(Spot) -> Vec<Element>>,
    /// Half of the sample's width.
    pub(crate) reach: f64,
    /// Name of the series.
    pub(crate) label: String,
}

/// A sheet under construction.
pub(crate) struct Page {
    title: String,
    nodes: Vec<Element>,
    /// Position of the next element, from the top.
    pub(crate) cursor: f64,
    description: String,
    notes: Vec<String>,
    /// Number of values drawn.
    pub(crate) drawn: usize,
    /// Number of values not drawn, and the reason; `None` if all are drawn.
    pub(crate) left_out: Option<String>,
}

impl Page {
    /// A sheet with its title and a line below it.
    pub(crate) fn new(title: &str, subtitle: &str) -> Page {
        let mut page = Page {
            title: title.to_owned(),
            nodes: Vec::new(),
            cursor: MARGIN - 6.0,
            description: String::new(),
            notes: Vec::new(),
            drawn: 0,
            left_out: None,
        };
        for line in wrap(title, TITLE, ROOM * 0.97, 2) {
            page.cursor += TITLE + 4.0;
            page.add(text(&line, page.at_margin(), Anchor::Start, "title"));
        }
        for line in wrap(subtitle, BODY, ROOM, 2) {
            page.cursor += BODY + 5.0;
            page.add(text(&line, page.at_margin(), Anchor::Start, ""));
        }
        page.cursor += 10.0;
        page
    }

    fn at_margin(&self) -> Spot {
        Spot { x: MARGIN, y: self.cursor }
    }

    pub(crate) fn add(&mut self, element: Element) {
        self.nodes.push(element);
    }

    /// Sets the description of the figure, for screen readers.
    pub(crate) fn describe(&mut self, description: String) {
        self.description = description;
    }

    /// Adds a note below the figure.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Records the numbers of drawn and omitted values; omitted ones are noted.
    pub(crate) fn note_drawn(&mut self, drawn: usize, all: usize, is_log: bool) {
        self.drawn = drawn;
        let count = all - drawn;
        if count > 0 {
            let several = if count == 1 { "point was" } else { "points were" };
            let log = if is_log { "not above zero on a logarithmic axis, or " } else { "" };
            let why = format!("{count} {several} left out: {log}beyond {LARGEST:e}");
            self.note(format!("{why}."));
            self.left_out = Some(why);
        }
    }

    /// Adds the entries in rows, if there are any.
    pub(crate) fn legend(&mut self, entries: &[LegendEntry]) {
        let mut shown = Vec::new();
        let mut x = MARGIN;
        for entry in entries {
            let label = fit(&entry.label, SMALL, ROOM / 2.0);
            let wide = entry.reach * 2.0 + 6.0 + width(&label, SMALL);
            if x > MARGIN && x + wide > WIDTH - MARGIN {
                x = MARGIN;
                self.cursor += SMALL_LINE + 2.0;
            }
            let middle = self.cursor + SMALL_LINE / 2.0;
            shown.extend((entry.sample)(Spot { x: x + entry.reach, y: middle }));
            let at = Spot { x: x + entry.reach * 2.0 + 6.0, y: middle + SMALL * 0.35 };
            shown.push(text(&label, at, Anchor::Start, "small"));
            x += wide + 18.0;
        }
        if !shown.is_empty() {
            self.cursor += SMALL_LINE + 8.0;
            self.add(group("legend", shown));
        }
    }

    /// Writes the document, with the notes and the provenance at its foot.
    pub(crate) fn write(mut self, provenance: &Provenance, out: &mut dyn Write) -> io::Result<()> {
        self.cursor += 6.0;
        for note in std::mem::take(&mut self.notes) {
            for line in wrap(&note, SMALL, ROOM, 3) {
                self.cursor += SMALL_LINE;
                self.add(text(&line, self.at_margin(), Anchor::Start, "small"));
            }
            self.description.push(' ');
            self.description.push_str(&note);
        }
        self.cursor += 3.0;
        let lines = wrap(&provenance.line(), SMALL, ROOM, 2);
        let lines = lines.iter().enumerate().map(|(number, line)| {
            let at = Spot { x: MARGIN, y: self.cursor + SMALL_LINE * (number + 1) as f64 };
            text(line, at, Anchor::Start, "small")
        });
        let lines: Vec<Element> = lines.collect();
        self.cursor += SMALL_LINE * lines.len() as f64;
        self.add(group("provenance", lines));
        let document = self.document(provenance);
        writeln!(out, "{document}")
    }

    fn document(self, provenance: &Provenance) -> Element {
        let height = (self.cursor + MARGIN * 0.75).ceil();
        let mut document = Element::new("svg");
        for (name, value) in [
            ("xmlns", "http://www.w3.org/2000/svg".to_owned()),
            ("role", "img".to_owned()),
            ("aria-labelledby", "figure-title figure-description".to_owned()),
            ("width", WIDTH.to_string()),
            ("height", height.to_string()),
            ("viewBox", format!("0 0 {WIDTH} {height}")),
        ] {
            document.get_attributes_mut().insert(name.to_owned(), value.into());
        }
        let entries: Vec<String> =
            provenance.entries().iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let named = |name: &str, id: &str, content: &str| {
            let mut element = with_text(Element::new(name), content);
            element.get_attributes_mut().insert("id".to_owned(), id.into());
            element
        };
        let mut style = Element::new("style");
        style.get_children_mut().push(Box::new(Blob::new(STYLE)));
        let head = [
            named("title", "figure-title", &self.title),
            named("desc", "figure-description", self.description.trim()),
            with_text(Element::new("metadata"), &entries.join("; ")),
            style,
            rectangle(Spot { x: 0.0, y: 0.0 }, Spot { x: WIDTH, y: height }, "paper"),
        ];
        for element in head.into_iter().chain(self.nodes) {
            document.get_children_mut().push(Box::new(element));
        }
        document
    }
}

/// A sample of a legend that is one mark.
pub(crate) fn mark_sample(
    style: crate::canvas::SeriesStyle,
    class: &str,
) -> Box<dyn Fn(Spot) -> Vec<Element>> {
    let class = class.to_owned();
    Box::new(move |at| {
        let mark = style.mark(at, "");
        vec![group(&style.class(), [group(&class, [mark])])]
    })
}

/// A group for the elements of a series.
pub(crate) fn series_group(style: crate::canvas::SeriesStyle, name: &str, elements: Vec<Element>) -> Element {
    let mut series = element("g", &style.class());
    series.get_attributes_mut().insert("data-series".to_owned(), clean(name).into());
    for element in elements {
        series.get_children_mut().push(Box::new(element));
    }
    series
}
