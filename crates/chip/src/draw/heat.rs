//! A heat map of a run: link directions and memory controllers coloured by utilisation, and tiles filled by the busy
//! fraction of their cores.
//!
//! As the drawing of the chip, it is SVG without scripts or external references. Invariant: a colour means the same
//! utilisation in every map, so that maps are comparable, and an idle mesh looks idle.

use super::svg::{MARGIN, PITCH, Pixel, SIDE, TILES_MAX, escape, middle, stub, switch};
use super::{TooLarge, cores};
use crate::chip::Chip;
use crate::topology::{Link, LinkEnd, Port, Shape, TileId};
use std::fmt::Write;

/// Half the distance between the two directions of a link.
const APART: f64 = 9.0;

/// Side of a tile: smaller than in the drawing of the chip, so that more of the links is visible.
const TILE: u32 = SIDE * 4 / 5;

/// Classes of utilisation: upper bound in per cent, and colour.
///
/// Low classes are finer, because a link that carries only single lines is saturated long before its utilisation is
/// high.
const CLASSES: [(f64, &str); 7] = [
    (0.1, "#fffbe6"),
    (1.0, "#fff0b3"),
    (5.0, "#fecf6a"),
    (10.0, "#fd9a43"),
    (25.0, "#f05a2b"),
    (50.0, "#bd0026"),
    (100.0, "#5e0019"),
];

/// The colour of a link that nothing crossed.
const UNUSED: &str = "#dcdcdc";

const STYLE: &str = "<style>text{font:15px sans-serif;text-anchor:middle;fill:#222}.title{font-size:17px}\
.small{font-size:14px;fill:#444}.left{text-anchor:start}.tile{stroke:#444;fill:#fff}.busy{fill:#9ec5ec}\
.frame{stroke:#444;fill:none}.link{stroke:#777;stroke-width:0.7}.mark{fill:#444}.marked{fill:#fff;font-size:13px}\
</style>\n";

/// A directed link with its utilisation.
#[derive(Clone, Debug)]
pub struct LinkHeat {
    /// The link.
    pub link: Link,
    /// Utilisation, from 0 to 1.
    pub share: f64,
    /// Text shown under the pointer.
    pub about: String,
}

/// A tile with the busy fraction of its cores.
#[derive(Clone, Debug)]
pub struct TileHeat {
    /// The tile.
    pub tile: TileId,
    /// Mean busy fraction of its cores, from 0 to 1; `None` if nothing ran on them.
    pub share: Option<f64>,
    /// Text shown under the pointer.
    pub about: String,
    /// Utilisation of the memory controller at this tile, if there is one.
    pub controller: Option<f64>,
}

/// Checks that the heat map of `chip` can be drawn; call it before a long run.
///
/// # Errors
/// [`TooLarge`]: the picture would be unreadable.
pub fn check_heat(chip: &Chip) -> Result<(), TooLarge> {
    TooLarge::check(chip, TILES_MAX)
}

/// Draws the heat map of a chip; `caption` is the line below its title.
///
/// # Errors
/// [`TooLarge`]: the picture would be unreadable.
pub fn heat(chip: &Chip, caption: &str, links: &[LinkHeat], tiles: &[TileHeat]) -> Result<String, TooLarge> {
    check_heat(chip)?;
    let [columns, rows, levels] = chip.topology().extent();
    let below = if chip.topology().shape() == Shape::Crossbar { PITCH / 2 } else { PITCH / 5 };
    let (width, bottom) = (2 * MARGIN + (columns * levels).max(4) * PITCH, MARGIN + rows * PITCH + below);
    let height = bottom + LEGEND_HEIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n{STYLE}\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let (title, caption) = (escape(chip.title()), escape(caption));
    let _ = writeln!(out, "<text class=\"title\" x=\"{}\" y=\"24\">{title}</text>", width / 2);
    let _ = writeln!(out, "<text class=\"small\" x=\"{}\" y=\"46\">{caption}</text>", width / 2);
    for heat in links {
        draw_link(chip, heat, &mut out);
    }
    switch(chip, &mut out);
    for heat in tiles {
        draw_tile(chip, heat, &mut out);
    }
    legend(links, tiles, bottom, &mut out);
    out.push_str("</svg>\n");
    Ok(out)
}

/// Draws the arrow of a link, to the right of the arrow of the other direction.
fn draw_link(chip: &Chip, heat: &LinkHeat, out: &mut String) {
    let Some((from, to)) = ends(chip, heat.link) else { return };
    let _ = writeln!(
        out,
        "<polygon class=\"link\" points=\"{}\" fill=\"{}\"><title>{}</title></polygon>",
        arrow(from, to),
        colour(heat.share),
        escape(&heat.about)
    );
}

/// Corner or end of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vertex {
    x: f64,
    y: f64,
}

impl From<Pixel> for Vertex {
    fn from(pixel: Pixel) -> Vertex {
        Vertex { x: f64::from(pixel.x), y: f64::from(pixel.y) }
    }
}

/// Returns the corners of an arrow to the right of the line from one point to another.
fn arrow(from: Vertex, to: Vertex) -> String {
    const HALF_SHAFT: f64 = 3.6;
    const HALF_HEAD: f64 = 7.6;
    const HEAD: f64 = 13.0;
    let length = (to.x - from.x).hypot(to.y - from.y).max(1.0);
    let (along_x, along_y) = ((to.x - from.x) / length, (to.y - from.y) / length);
    let corners = [
        (0.0, -HALF_SHAFT),
        (length - HEAD, -HALF_SHAFT),
        (length - HEAD, -HALF_HEAD),
        (length, 0.0),
        (length - HEAD, HALF_HEAD),
        (length - HEAD, HALF_SHAFT),
        (0.0, HALF_SHAFT),
    ];
    let point = |(far, offset): (f64, f64)| {
        let offset = offset + APART;
        let x = from.x + along_x * far - along_y * offset;
        let y = from.y + along_y * far + along_x * offset;
        format!("{x:.1},{y:.1}")
    };
    corners.map(point).join(" ")
}

/// Returns the ends of a drawn link: between the edges of tiles, to the switch, or a stub for a wraparound link.
fn ends(chip: &Chip, link: Link) -> Option<(Vertex, Vertex)> {
    let own = middle(chip, link.tile);
    let below = |pixel: Pixel| Pixel { y: pixel.y + PITCH * 5 / 8, ..pixel };
    let (from, to, is_tile) = match (link.port, chip.topology().ends(link)?) {
        (Port::Out, _) => (own, below(own), [true, false]),
        (Port::In, _) => (below(own), own, [false, true]),
        (port, (_, LinkEnd::Tile(next))) => {
            let forward = matches!(port, Port::East | Port::North | Port::Up);
            match (forward, next < link.tile) {
                (true, true) => (own, stub(port, own), [true, false]),
                (false, false) => (own, outwards(port, own), [true, false]),
                _ => (own, middle(chip, next), [true, true]),
            }
        }
        (_, (_, LinkEnd::Switch)) => return None,
    };
    let edge = |from: Vertex, to: Vertex, is_tile| if is_tile { towards(from, to) } else { from };
    let (from, to) = (Vertex::from(from), Vertex::from(to));
    Some((edge(from, to, is_tile[0]), edge(to, from, is_tile[1])))
}

/// Returns the point on the edge of the tile around `middle` in the direction of `other`.
fn towards(middle: Vertex, other: Vertex) -> Vertex {
    let (x, y) = (other.x - middle.x, other.y - middle.y);
    let scale = f64::from(TILE / 2) / x.abs().max(y.abs()).max(1.0);
    Vertex { x: middle.x + x * scale, y: middle.y + y * scale }
}

/// Returns the mirror image of [`stub`], for the links towards smaller coordinates.
fn outwards(port: Port, middle: Pixel) -> Pixel {
    let Pixel { x, y } = middle;
    match port {
        Port::South => Pixel { x, y: y + PITCH / 2 },
        Port::West => Pixel { x: x.saturating_sub(PITCH / 2), y },
        _ => Pixel { x: x.saturating_sub(PITCH / 2), y: y + PITCH / 2 },
    }
}

/// Draws a tile with its cores, filled from below up to its busy fraction.
fn draw_tile(chip: &Chip, heat: &TileHeat, out: &mut String) {
    let Pixel { x, y } = middle(chip, heat.tile);
    let (left, top) = (x - TILE / 2, y - TILE / 2);
    let share = heat.share.unwrap_or(0.0).clamp(0.0, 1.0);
    let filled = f64::from(TILE) * share;
    let said = heat.share.map_or_else(|| "\u{2013}".to_owned(), percent);
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect class=\"tile\" x=\"{left}\" y=\"{top}\" width=\"{TILE}\" height=\"{TILE}\"/>\
         <rect class=\"busy\" x=\"{left}\" y=\"{:.1}\" width=\"{TILE}\" height=\"{filled:.1}\"/>\
         <rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{TILE}\" height=\"{TILE}\"/>\
         <text x=\"{x}\" y=\"{}\">{}</text><text class=\"small\" x=\"{x}\" y=\"{}\">{said}</text></g>",
        escape(&heat.about),
        f64::from(top + TILE) - filled,
        y - 4,
        cores(chip, heat.tile),
        y + 17
    );
    if let Some(share) = heat.controller {
        let _ = writeln!(
            out,
            "<rect class=\"link\" x=\"{}\" y=\"{}\" width=\"{CONTROLLER}\" height=\"{CONTROLLER}\" fill=\"{}\">\
             <title>memory controller: {} of the time</title></rect>",
            left - CONTROLLER / 2,
            top - CONTROLLER / 2,
            colour(share),
            percent(share)
        );
    }
}

/// Side of a memory controller, drawn at the corner of its tile.
const CONTROLLER: u32 = 16;

/// Height of the legend.
const LEGEND_HEIGHT: u32 = 146;

/// Draws the legend of colours, arrows and fillings, from `top` on.
fn legend(links: &[LinkHeat], tiles: &[TileHeat], top: u32, out: &mut String) {
    const STEP: u32 = 60;
    const PATCH: u32 = 14;
    let y = top + 46;
    let line = |x: u32, y: u32, text: &str, out: &mut String| {
        let _ = writeln!(out, "<text class=\"small left\" x=\"{x}\" y=\"{y}\">{}</text>", escape(text));
    };
    let busiest = links.iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let busiest = busiest.map(|heat| format!(" (the busiest {})", percent(heat.share))).unwrap_or_default();
    let controllers = tiles.iter().filter_map(|heat| heat.controller).max_by(f64::total_cmp);
    line(MARGIN, y - 30, &format!("Arrows: share of the run in which flits passed{busiest}"), out);
    if let Some(busiest) = controllers {
        let busiest = percent(busiest);
        let squares = "Squares: share in which a memory controller worked";
        line(MARGIN, y - 10, &format!("{squares} (the busiest {busiest})"), out);
    }
    let fills = std::iter::once(UNUSED).chain(CLASSES.map(|(_, fill)| fill));
    let names = std::iter::once("none".to_owned()).chain(CLASSES.map(|(end, _)| format!("\u{2264} {end} %")));
    for (number, (fill, name)) in (0..).zip(fills.zip(names)) {
        let x = MARGIN + number * STEP;
        let _ = writeln!(
            out,
            "<rect class=\"link\" x=\"{x}\" y=\"{y}\" width=\"{STEP}\" height=\"{PATCH}\" fill=\"{fill}\"/>\
             <text class=\"small\" x=\"{}\" y=\"{}\">{name}</text>",
            x + STEP / 2,
            y + PATCH + 16
        );
    }
    let y = y + PATCH + 34;
    let _ = writeln!(
        out,
        "<rect class=\"busy\" x=\"{MARGIN}\" y=\"{}\" width=\"24\" height=\"10\"/>\
         <rect class=\"frame\" x=\"{MARGIN}\" y=\"{y}\" width=\"24\" height=\"24\"/>",
        y + 14
    );
    line(MARGIN + 34, y + 10, "Tiles, with the numbers of their cores: filled up to the share of", out);
    line(MARGIN + 34, y + 26, "the run in which these did more than wait (\u{2013}: no place there)", out);
}

/// Formats a fraction in per cent, with enough digits for small ones.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.001 => "< 0.001 %".to_owned(),
        percent if percent < 0.1 => format!("{percent:.3} %"),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// Returns the colour of a utilisation from 0 to 1.
fn colour(share: f64) -> &'static str {
    if share <= 0.0 {
        return UNUSED;
    }
    let class = CLASSES.iter().find(|(end, _)| share * 100.0 <= *end);
    class.unwrap_or(&CLASSES[CLASSES.len() - 1]).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn map(name: &str, share: impl Fn(Link) -> f64, busy: impl Fn(TileId) -> Option<f64>) -> (Chip, String) {
        let chip = Chip::find(name).unwrap_or_else(|error| panic!("{error}"));
        let about = || "a < b".to_owned();
        let link = |link| LinkHeat { link, share: share(link), about: about() };
        let corner = |tile: TileId| (tile.0 == 0).then(|| busy(tile)).flatten();
        let tile = |tile| TileHeat { tile, share: busy(tile), about: about(), controller: corner(tile) };
        let links: Vec<LinkHeat> = chip.topology().links().map(link).collect();
        let tiles: Vec<TileHeat> = (0..chip.topology().tiles()).map(TileId).map(tile).collect();
        let svg = heat(&chip, "5 & 6", &links, &tiles).unwrap();
        (chip, svg)
    }

    #[test]
    fn the_legend_is_within_the_page_of_a_narrow_chip() {
        // A character of its text is at most 7 wide, and the page of four columns 560.
        let (_, svg) = map("mesh", |_| 0.0003, |_| Some(0.5));
        let legend: Vec<&str> = svg.lines().filter(|line| line.contains("class=\"small left\"")).collect();
        assert_eq!(legend.len(), 4, "{svg}");
        for line in legend {
            let text = line.split(['>', '<']).nth(2).unwrap();
            assert!(60 + 7 * text.chars().count() <= 560, "{text}");
        }
        assert!(
            svg.contains(">Arrows: share of the run in which flits passed (the busiest 0.030 %)<"),
            "{svg}"
        );
        assert!(
            svg.contains(">Squares: share in which a memory controller worked (the busiest 50 %)<"),
            "{svg}"
        );
    }

    /// Returns the lines of the arrows.
    fn arrows(svg: &str) -> impl Iterator<Item = &str> {
        svg.lines().filter(|line| line.starts_with("<polygon "))
    }

    #[test]
    fn a_colour_means_the_same_share_in_every_map() {
        assert_eq!([0.0, 0.0003, 0.004, 0.9].map(colour), [UNUSED, CLASSES[0].1, CLASSES[1].1, CLASSES[6].1]);
        // The busiest link of an idle mesh is as pale as the others.
        let (_, idle) = map("scc", |link| if link.tile.0 == 0 { 0.0003 } else { 0.0001 }, |_| None);
        assert!(arrows(&idle).all(|line| line.contains(CLASSES[0].1)), "{idle}");
        assert!(idle.contains("(the busiest 0.030 %)<"), "{idle}");
        let (_, full) = map("scc", |_| 0.9, |_| None);
        assert!(arrows(&full).all(|line| line.contains(CLASSES[6].1)), "{full}");
    }

    #[test]
    fn each_direction_of_each_link_is_an_arrow_of_its_own() {
        for name in ["scc", "c6678", "mesh"] {
            let (chip, svg) = map(name, |link| f64::from(link.tile.0) / 1_000.0, |_| Some(0.5));
            let links = chip.topology().links().count();
            let points: BTreeSet<&str> =
                arrows(&svg).filter_map(|line| line.split(" fill=").next()).collect();
            assert_eq!((arrows(&svg).count(), points.len()), (links, links), "{name}");
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            assert_eq!(svg.matches("<g>").count(), chip.topology().tiles() as usize);
            assert!(svg.contains("a &lt; b") && svg.contains("5 &amp; 6") && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn an_arrow_points_where_its_link_leads_and_keeps_to_the_right() {
        let tip = |from, to| arrow(from, to).split(' ').nth(3).map(str::to_owned);
        assert_eq!(tip(Vertex { x: 0.0, y: 0.0 }, Vertex { x: 50.0, y: 0.0 }).as_deref(), Some("50.0,9.0"));
        assert_eq!(tip(Vertex { x: 50.0, y: 0.0 }, Vertex { x: 0.0, y: 0.0 }).as_deref(), Some("0.0,-9.0"));
        let (chip, _) = map("scc", |_| 0.0, |_| None);
        let east = ends(&chip, Link { tile: TileId(0), port: Port::East }).unwrap();
        let west = ends(&chip, Link { tile: TileId(1), port: Port::West }).unwrap();
        assert_eq!((east.0, east.1), (west.1, west.0));
        assert!(east.0.x < east.1.x && east.0.y == east.1.y, "{east:?}");
        let north = ends(&chip, Link { tile: TileId(0), port: Port::North }).unwrap();
        assert!(north.1.y < north.0.y, "{north:?}");
    }

    #[test]
    fn a_tile_is_filled_up_to_its_share_and_one_without_a_place_is_not() {
        let (_, svg) = map("scc", |_| 0.0, |tile| (tile.0 > 0).then_some(0.25));
        let filled =
            |height: &str| svg.matches(&format!("height=\"{height}\"/><rect class=\"frame\"")).count();
        assert_eq!((filled("0.0"), filled("16.0")), (1, 23), "{svg}");
        assert_eq!((svg.matches(">25 %<").count(), svg.matches(">\u{2013}<").count()), (23, 1));
    }

    #[test]
    fn a_memory_controller_is_a_square_in_the_colour_of_its_share() {
        let (_, svg) = map("scc", |_| 0.0, |_| Some(0.9));
        let squares: Vec<&str> =
            svg.lines().filter(|line| line.contains("memory controller: 90 % of")).collect();
        assert!(squares.len() == 1 && squares[0].contains(CLASSES[6].1), "{squares:?}");
        assert!(svg.contains("Squares: share in which a memory controller worked (the busiest 90 %)<"));
        let (_, svg) = map("scc", |_| 0.0, |_| None);
        assert!(!svg.contains("emory controller"));
    }

    #[test]
    fn shares_are_said_with_the_digits_that_they_need() {
        let said = [0.0, 0.000_001, 0.000_3, 0.004_24, 0.5, 1.0].map(percent);
        assert_eq!(said, ["0 %", "< 0.001 %", "0.030 %", "0.4 %", "50 %", "100 %"]);
    }

    #[test]
    fn a_run_without_traffic_has_a_map_and_a_torus_too_large_has_none() {
        let (_, svg) = map("scc", |_| 0.0, |_| Some(0.0));
        assert!(svg.contains("(the busiest 0 %)<") && !svg.contains("NaN"));
        let chip = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
        assert!(heat(&chip, "", &[], &[]).is_err());
    }
}
