//! A heat map of a chip's links: each direction in the colour of how much of the time it was taken.
//!
//! As the drawing of the chip, hand-written SVG without script or reference. It takes shares and knows not where
//! they come from. The scale goes from nothing to the busiest link of the run, and says so in a legend.

use super::svg::{MARGIN, PITCH, SIDE, TILES_MAX, escape, middle, stub};
use super::{TooLarge, cores};
use crate::chip::Chip;
use crate::topology::{Link, Port, Stop, TileId};
use std::fmt::Write;

/// Half the distance between the two directions of a link.
const APART: f64 = 7.0;

/// Colours from the least to the most, as red, green and blue; between them it is linear.
const SCALE: [[f64; 3]; 5] = [
    [255.0, 243.0, 176.0],
    [254.0, 204.0, 92.0],
    [253.0, 141.0, 60.0],
    [227.0, 26.0, 28.0],
    [110.0, 0.0, 30.0],
];

/// The colour of a link that nothing crossed.
const UNUSED: &str = "#d8d8d8";

const STYLE: &str = "<style>text{font:13px sans-serif;text-anchor:middle;fill:#222}.title{font-size:16px}\
.small{font-size:11px;fill:#555}.tile{stroke:#444;fill:#f7f7f7}.link{stroke-width:9}</style>\n";

/// One directed link, and how hot it is.
#[derive(Clone, Debug)]
pub struct Heat {
    /// Which link.
    pub link: Link,
    /// The share of the time that it was taken, from 0 to 1.
    pub share: f64,
    /// What is shown when one points at it.
    pub about: String,
}

/// Whether there can be a picture of `chip` with its links in colours; to know before a long run.
///
/// # Errors
/// [`TooLarge`]: nobody could read it.
pub fn check_heat(chip: &Chip) -> Result<(), TooLarge> {
    TooLarge::check(chip, TILES_MAX)
}

/// The chip with its links in colours; `caption` stands below its title.
///
/// # Errors
/// [`TooLarge`]: nobody could read it.
pub fn heat(chip: &Chip, caption: &str, links: &[Heat]) -> Result<String, TooLarge> {
    check_heat(chip)?;
    let [columns, rows, levels] = chip.topology().extent();
    let (width, height) = (2 * MARGIN + (columns * levels).max(4) * PITCH, 2 * MARGIN + (rows + 1) * PITCH);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n{STYLE}"
    );
    let (title, caption) = (escape(chip.title()), escape(caption));
    let _ = writeln!(out, "<text class=\"title\" x=\"{}\" y=\"26\">{title}</text>", width / 2);
    let _ = writeln!(out, "<text class=\"small\" x=\"{}\" y=\"44\">{caption}</text>", width / 2);
    let hottest = links.iter().map(|heat| heat.share).fold(0.0, f64::max);
    for heat in links {
        draw_link(chip, heat, hottest, &mut out);
    }
    for tile in (0..chip.topology().tiles()).map(TileId) {
        draw_tile(chip, tile, &mut out);
    }
    legend(hottest, height - MARGIN - PITCH / 4, &mut out);
    out.push_str("</svg>\n");
    Ok(out)
}

/// A line beside that of the other direction; the traffic keeps to the right.
fn draw_link(chip: &Chip, heat: &Heat, hottest: f64, out: &mut String) {
    let Some(((x1, y1), (x2, y2))) = ends(chip, heat.link) else { return };
    let length = (x2 - x1).hypot(y2 - y1).max(1.0);
    let (aside_x, aside_y) = (-(y2 - y1) / length * APART, (x2 - x1) / length * APART);
    let colour = if heat.share > 0.0 { colour(heat.share / hottest) } else { UNUSED.to_owned() };
    let _ = writeln!(
        out,
        "<line class=\"link\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\">\
         <title>{}</title></line>",
        x1 + aside_x,
        y1 + aside_y,
        x2 + aside_x,
        y2 + aside_y,
        escape(&heat.about)
    );
}

type Point = (f64, f64);

/// From where to where a link is drawn: between tiles, to the switch, or a short way out over the end of a torus.
fn ends(chip: &Chip, link: Link) -> Option<(Point, Point)> {
    let point = |(x, y): (u32, u32)| (f64::from(x), f64::from(y));
    let own = middle(chip, link.tile);
    let below = |(x, y): (u32, u32)| (x, y + PITCH * 3 / 4);
    let (from, to) = match (link.port, chip.topology().ends(link)?) {
        (Port::Out, _) => (own, below(own)),
        (Port::In, _) => (below(own), own),
        (port, (_, Stop::Tile(next))) => {
            let forward = matches!(port, Port::East | Port::North | Port::Up);
            match (forward, next < link.tile) {
                (true, true) => (own, stub(port, own)),
                (false, false) => (own, outwards(port, own)),
                _ => (own, middle(chip, next)),
            }
        }
        (_, (_, Stop::Switch)) => return None,
    };
    Some((point(from), point(to)))
}

/// The mirror image of [`stub`], for the links towards smaller coordinates.
fn outwards(port: Port, (x, y): (u32, u32)) -> (u32, u32) {
    match port {
        Port::South => (x, y + PITCH / 2),
        Port::West => (x.saturating_sub(PITCH / 2), y),
        _ => (x.saturating_sub(PITCH / 2), y + PITCH / 2),
    }
}

fn draw_tile(chip: &Chip, tile: TileId, out: &mut String) {
    let (x, y) = middle(chip, tile);
    // Smaller than in the drawing of the chip, so that more of the links is seen.
    let side = SIDE * 5 / 8;
    let (left, top) = (x - side / 2, y - side / 2);
    let _ = writeln!(
        out,
        "<g><rect class=\"tile\" x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\" rx=\"6\"/>\
         <text x=\"{x}\" y=\"{}\">{}</text></g>",
        y + 5,
        cores(chip, tile)
    );
}

/// Patches of the scale with the shares that they stand for.
fn legend(hottest: f64, y: u32, out: &mut String) {
    const PATCHES: u32 = 10;
    let step = 30;
    for patch in 0..PATCHES {
        let fill = colour(f64::from(patch) / f64::from(PATCHES - 1));
        let x = MARGIN + patch * step;
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{step}\" height=\"14\" fill=\"{fill}\"/>");
    }
    let percent = hottest * 100.0;
    for (share, text) in [(0, "0 %".to_owned()), (PATCHES, format!("{percent:.3} %"))] {
        let _ = writeln!(
            out,
            "<text class=\"small\" x=\"{}\" y=\"{}\">{text}</text>",
            MARGIN + share * step,
            y + 30
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"small\" x=\"{}\" y=\"{}\">share of the run in which flits passed the link; grey: none</text>",
        MARGIN + PATCHES * step / 2,
        y - 8
    );
}

/// The colour of a share of the scale, from 0 to 1.
fn colour(share: f64) -> String {
    let position = share.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let index = (position as usize).min(SCALE.len() - 2);
    let rest = position - index as f64;
    let mix = |part: usize| SCALE[index][part] + (SCALE[index + 1][part] - SCALE[index][part]) * rest;
    format!("#{:02x}{:02x}{:02x}", mix(0) as u8, mix(1) as u8, mix(2) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(name: &str, share: impl Fn(Link) -> f64) -> (Chip, String) {
        let chip = Chip::find(name).unwrap_or_else(|error| panic!("{error}"));
        let heat = |link| Heat { link, share: share(link), about: "a < b".to_owned() };
        let links: Vec<Heat> = chip.topology().links().map(heat).collect();
        let svg = super::heat(&chip, "5 & 6", &links).unwrap();
        (chip, svg)
    }

    #[test]
    fn each_direction_of_each_link_is_a_line_in_its_colour() {
        for name in ["scc", "c6678", "mesh"] {
            let (chip, svg) = map(name, |link| f64::from(link.tile.0) / 1_000.0);
            let links = chip.topology().links();
            assert_eq!(svg.matches("<line ").count(), links.count(), "{name}");
            let cold = chip.topology().links().filter(|link| link.tile.0 == 0).count();
            assert_eq!(svg.matches(UNUSED).count(), cold, "{name}");
            let hottest = chip.topology().links().filter(|link| link.tile.0 + 1 == chip.topology().tiles());
            assert_eq!(svg.matches("stroke=\"#6e001e\"").count(), hottest.count(), "{name}");
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            assert!(svg.contains("a &lt; b") && svg.contains("5 &amp; 6") && svg.ends_with("</svg>\n"));
        }
    }

    #[test]
    fn the_two_directions_do_not_lie_on_each_other() {
        let (chip, svg) = map("scc", |_| 0.5);
        let line = |text: &str| text.split(" stroke=").next().unwrap_or_default().to_owned();
        let lines: std::collections::BTreeSet<String> =
            svg.lines().filter(|text| text.starts_with("<line ")).map(line).collect();
        assert_eq!(lines.len(), chip.topology().links().count());
    }

    #[test]
    fn a_run_without_traffic_has_a_map_and_a_torus_too_large_has_none() {
        let (_, svg) = map("scc", |_| 0.0);
        assert!(svg.contains("0.000 %") && !svg.contains("NaN"));
        let chip = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
        assert!(super::heat(&chip, "", &[]).is_err());
    }
}
