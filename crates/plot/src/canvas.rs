//! The elements of figures, and their styles.
//!
//! All styles are in one style sheet by class, so that the reader's light or dark mode selects them; an element has
//! only its position and class. The colours are those of Okabe and Ito (*Color Universal Design*, 2008), darkened if
//! they would be faint on white, and lightened on a dark background; shapes and dashes carry the same information as
//! colours. Invariants: coordinates are rounded to hundredths, so that they do not depend on how numbers are printed,
//! and are finite.

use svg::node::Text;
use svg::node::element::Element;

/// Size of most text; at 600 pixels of width it has 12.2 pixels.
pub(crate) const BODY: f64 = 13.0;
/// Size of small text; at 600 pixels of width it has 11.2 pixels.
pub(crate) const SMALL: f64 = 12.0;
/// Size of the title.
pub(crate) const TITLE: f64 = 17.0;
/// Width of every figure.
pub(crate) const WIDTH: f64 = 640.0;

/// Style sheet of every figure. Without media queries it is the light one.
pub(crate) const STYLE: &str = "\
text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif}
text{font-size:13px;fill:#1c1e21}
.small{font-size:12px;fill:#565b63}
.title{font-size:17px;font-weight:600}
.paper{fill:#ffffff}
.halo{stroke:#ffffff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}
.grid{stroke:#e3e5e8;stroke-width:1;fill:none}
.axis{stroke:#73787f;stroke-width:1;fill:none}
.guide{stroke:#73787f;stroke-width:1.2;stroke-dasharray:5 4;fill:none}
.shade{fill:#73787f;fill-opacity:.16}
.s0{color:#0068a8}.s1{color:#c84e00}.s2{color:#00855f}.s3{color:#8a2f6b}.s4{color:#a87400}.s5{color:#5b6068}
.line{stroke:currentColor;stroke-width:2;fill:none;stroke-linejoin:round}
.thin{stroke:currentColor;stroke-width:1.2;fill:none}
.mark{fill:currentColor;stroke:currentColor;stroke-width:1.6}
.hollow{fill:#ffffff}
.ring{fill:none;stroke-width:.8}
.lead{stroke:#8b919a;stroke-width:.8;fill:none}
.bar,.swatch{fill:currentColor}
.edge{stroke:currentColor;stroke-width:1}
.f0{fill-opacity:.95}.f1{fill-opacity:.35}.f2{fill-opacity:.75}
.f3{fill-opacity:.15}.f4{fill-opacity:.55}.f5{fill-opacity:.05}
@media (prefers-color-scheme:dark){
text{fill:#e8eaed}
.small{fill:#aeb4bd}
.paper,.hollow{fill:#14171c}
.halo{stroke:#14171c}
.grid{stroke:#2c3138}
.axis,.guide{stroke:#8b919a}
.shade{fill:#8b919a;fill-opacity:.24}
.s0{color:#56b4e9}.s1{color:#ff8c42}.s2{color:#2fc39a}.s3{color:#e08ac2}.s4{color:#e6b84a}.s5{color:#b4bac3}
}
";

/// Number of colours.
const COLOURS: usize = 6;

/// The shapes of marks, about the origin, all of about one area.
const SHAPES: [&str; COLOURS] = [
    "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0 -7.6 0z",
    "M-3.4 -3.4h6.8v6.8h-6.8z",
    "M0 -4.6L4.4 3.2h-8.8z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.6L4.4 -3.2h-8.8z",
    "M-4 -4L4 4M4 -4L-4 4",
];

/// The dashes of lines, of equal lightness, so that no line seems weaker.
const DASHES: [&str; COLOURS] = ["none", "7 3", "2 2.5", "9 3 2 3", "4 3", "12 4"];

/// Fill of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Full,
    /// With the colour of the paper.
    Hollow,
    /// Unfilled and larger, so that a full mark inside it is visible.
    Ring,
}

/// The style of a series: its colour, shape and dash; they repeat after six with hollow marks, then filled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesStyle {
    number: usize,
    fill: Fill,
}

impl SeriesStyle {
    pub(crate) fn of(number: usize) -> SeriesStyle {
        let fill = if number / COLOURS % 2 == 1 { Fill::Hollow } else { Fill::Full };
        SeriesStyle { number: number % COLOURS, fill }
    }

    /// The same with hollow marks.
    pub(crate) fn hollow(self) -> SeriesStyle {
        SeriesStyle { fill: Fill::Hollow, ..self }
    }

    /// The same with marks that show others inside them.
    pub(crate) fn ring(self) -> SeriesStyle {
        SeriesStyle { fill: Fill::Ring, ..self }
    }

    /// The class of its colour.
    pub(crate) fn class(self) -> String {
        format!("s{}", self.number)
    }

    pub(crate) fn dash(self) -> &'static str {
        DASHES[self.number]
    }

    /// A mark of this style at a point; `note` is its tooltip.
    pub(crate) fn mark(self, at: Spot, note: &str) -> Element {
        let (class, scale) = match self.fill {
            Fill::Full => ("mark", ""),
            Fill::Hollow => ("mark hollow", ""),
            Fill::Ring => ("mark ring", " scale(1.6)"),
        };
        let mut mark = element("path", class);
        let attributes = mark.get_attributes_mut();
        attributes.insert("d".into(), SHAPES[self.number].into());
        let place = format!("translate({} {}){scale}", round(at.x), round(at.y));
        attributes.insert("transform".into(), place.into());
        if !note.is_empty() {
            let title = with_text(Element::new("title"), note);
            mark.get_children_mut().push(Box::new(title));
        }
        mark
    }
}

/// A point of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Alignment of a text at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A coordinate in hundredths.
pub(crate) fn round(value: f64) -> f64 {
    let rounded = (value * 100.0).round() / 100.0;
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// An element of a class.
pub(crate) fn element(name: &str, class: &str) -> Element {
    let mut element = Element::new(name);
    if !class.is_empty() {
        element.get_attributes_mut().insert("class".into(), class.into());
    }
    element
}

/// A group of these elements.
pub(crate) fn group(class: &str, elements: impl IntoIterator<Item = Element>) -> Element {
    let mut group = element("g", class);
    for element in elements {
        group.get_children_mut().push(Box::new(element));
    }
    group
}

pub(crate) fn line(from: Spot, to: Spot, class: &str) -> Element {
    let mut line = element("line", class);
    for (name, value) in [("x1", from.x), ("y1", from.y), ("x2", to.x), ("y2", to.y)] {
        line.get_attributes_mut().insert(name.into(), round(value).into());
    }
    line
}

/// A line through the points, in dashes unless they are `none`.
pub(crate) fn path(points: &[Spot], class: &str, dash: &str) -> Element {
    let mut path = polygon(points, class);
    if dash != "none" {
        path.get_attributes_mut().insert("stroke-dasharray".into(), dash.into());
    }
    path.get_attributes_mut().insert("d".into(), outline(points).into());
    path
}

/// An area with these corners.
pub(crate) fn polygon(points: &[Spot], class: &str) -> Element {
    let mut area = element("path", class);
    area.get_attributes_mut().insert("d".into(), (outline(points) + "Z").into());
    area
}

fn outline(points: &[Spot]) -> String {
    let steps = points.iter().enumerate().map(|(number, point)| {
        let character = if number == 0 { 'M' } else { 'L' };
        format!("{character}{} {}", round(point.x), round(point.y))
    });
    steps.collect()
}

/// A rectangle; reversed corners are swapped.
pub(crate) fn rectangle(one: Spot, other: Spot, class: &str) -> Element {
    let (left, right) = (one.x.min(other.x), one.x.max(other.x));
    let (top, bottom) = (one.y.min(other.y), one.y.max(other.y));
    let mut area = element("rect", class);
    for (name, value) in [("x", left), ("y", top), ("width", right - left), ("height", bottom - top)] {
        area.get_attributes_mut().insert(name.into(), round(value).into());
    }
    area
}

/// A line of text; `at` is on its base line.
pub(crate) fn text(content: &str, at: Spot, anchor: Anchor, class: &str) -> Element {
    let mut text = with_text(element("text", class), content);
    let attributes = text.get_attributes_mut();
    attributes.insert("x".into(), round(at.x).into());
    attributes.insert("y".into(), round(at.y).into());
    match anchor {
        Anchor::Start => {}
        Anchor::Middle => _ = attributes.insert("text-anchor".into(), "middle".into()),
        Anchor::End => _ = attributes.insert("text-anchor".into(), "end".into()),
    }
    text
}

/// The element with a text in it.
pub(crate) fn with_text(mut element: Element, content: &str) -> Element {
    element.get_children_mut().push(Box::new(Text::new(clean(content))));
    element
}

/// Returns the text on one line, without characters that XML cannot represent.
pub(crate) fn clean(content: &str) -> String {
    let is_allowed =
        |character: &char| !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}');
    let plain = |character: char| if character.is_whitespace() { ' ' } else { character };
    content.chars().map(plain).filter(is_allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_what_xml_cannot_hold_is_left_out() {
        let at = Spot { x: 1.005, y: -0.001 };
        let shown = text("a<b & \"c\"\u{1}\n", at, Anchor::End, "small").to_string();
        assert_eq!(
            shown,
            "<text class=\"small\" text-anchor=\"end\" x=\"1\" y=\"0\">a&lt;b &amp; \"c\" </text>"
        );
    }

    #[test]
    fn twelve_looks_differ() {
        let marks: Vec<String> = (0..12).map(|number| format!("{:?}", SeriesStyle::of(number))).collect();
        assert!(marks.iter().enumerate().all(|(number, mark)| !marks[..number].contains(mark)));
        assert_eq!(SeriesStyle::of(12), SeriesStyle::of(0));
    }

    #[test]
    fn small_text_has_eleven_pixels_at_six_hundred_and_the_sheet_says_the_same_sizes() {
        const { assert!(SMALL * 600.0 / WIDTH >= 11.0) };
        let sizes = [("text{font-size", BODY), (".small{", SMALL), (".title{", TITLE)];
        for (class, size) in sizes {
            let rule = STYLE.lines().find(|line| line.starts_with(class)).unwrap();
            assert!(rule.contains(&format!("font-size:{size}px")), "{rule}");
        }
    }

    /// Returns the contrast of two colours by the Web Content Accessibility Guidelines 2.2.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour: &str| {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4) + 0.05
        };
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    }

    /// Returns the colour of a rule of the style sheet, without `#`.
    fn colour<'a>(sheet: &'a str, rule: &str, property: &str) -> &'a str {
        let (_, rest) = sheet.split_once(rule).unwrap_or_else(|| panic!("{rule}"));
        let (_, rest) = rest.split_once(&format!("{property}:#")).unwrap();
        &rest[..6]
    }

    #[test]
    fn all_can_be_seen_on_light_and_on_dark_paper() {
        let (light, dark) = STYLE.split_once("@media (prefers-color-scheme:dark)").unwrap();
        for (sheet, text) in [(light, "text{font-size"), (dark, "text{")] {
            let paper = colour(sheet, ".paper", "fill");
            for rule in [text, ".small"] {
                let ink = colour(sheet, rule, "fill");
                assert!(contrast(ink, paper) >= 4.5, "{rule} {ink} on {paper}");
            }
            for number in 0..COLOURS {
                let ink = colour(sheet, &format!(".s{number}{{"), "color");
                assert!(contrast(ink, paper) >= 3.0, "s{number} {ink} on {paper}");
            }
        }
    }
}
