//! The chip as SVG: tiles in the colour of their voltage domain, links, controllers, interrupt port.
//!
//! It has no scripts and no external references, so that the file opens everywhere and can be embedded. Wraparound
//! links of a torus are stubs at its edge.

use super::{TooLarge, controllers_at, cores};
use crate::chip::Chip;
use crate::topology::{Coordinates, LinkEnd, Port, Shape, TileId};
use std::fmt::Write;

/// Maximum numbers of columns, rows and levels.
pub(super) const TILES_MAX: Coordinates = [64, 64, 8];

/// Distance of tiles, and side of a tile, in units of the picture.
pub(super) const PITCH: u32 = 110;
pub(super) const SIDE: u32 = 80;
pub(super) const MARGIN: u32 = 60;

/// Fills of the voltage domains, used in turn; dark text is readable on all of them.
const FILLS: [&str; 8] =
    ["#cfe3f7", "#fde2c4", "#d5f0d0", "#f6d5de", "#e4dbf5", "#fbf3c0", "#cdeff0", "#e6e0d6"];

const STYLE: &str = "<style>text{font:13px sans-serif;text-anchor:middle;fill:#222}.title{font-size:16px}\
.small{font-size:11px;fill:#555}.tile{stroke:#444}.link{stroke:#888;stroke-width:3}.mark{fill:#444}\
.marked{fill:#fff;font-size:11px}</style>\n";

/// Draws the chip as SVG.
///
/// # Errors
/// [`TooLarge`]: the picture would be unreadable.
pub fn svg(chip: &Chip) -> Result<String, TooLarge> {
    TooLarge::check(chip, TILES_MAX)?;
    let [columns, rows, levels] = chip.topology().extent();
    let (width, height) = (2 * MARGIN + columns * levels * PITCH, 2 * MARGIN + (rows + 1) * PITCH);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n{STYLE}"
    );
    let title = escape(chip.title());
    let _ = writeln!(out, "<text class=\"title\" x=\"{}\" y=\"30\">{title}</text>", width / 2);
    links(chip, &mut out);
    for tile in (0..chip.topology().tiles()).map(TileId) {
        draw_tile(chip, tile, &mut out);
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// Point of a drawing, from its upper left corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixel {
    pub(super) x: u32,
    pub(super) y: u32,
}

/// Returns the middle of a tile; larger y is further up, levels are side by side.
pub(super) fn middle(chip: &Chip, tile: TileId) -> Pixel {
    let [columns, rows, _] = chip.topology().extent();
    let [x, y, z] = chip.topology().coordinates(tile);
    Pixel {
        x: MARGIN + (z * columns + x) * PITCH + PITCH / 2,
        y: MARGIN + (rows - 1 - y) * PITCH + PITCH / 2,
    }
}

/// Draws one line for both directions of each link.
fn links(chip: &Chip, out: &mut String) {
    let topology = chip.topology();
    for link in topology.links() {
        let (from, to) = match (link.port, topology.ends(link)) {
            (Port::Out, _) => {
                let from = middle(chip, link.tile);
                (from, Pixel { y: from.y + PITCH * 3 / 4, ..from })
            }
            (Port::East | Port::North | Port::Up, Some((_, LinkEnd::Tile(next)))) => {
                let (from, to) = (middle(chip, link.tile), middle(chip, next));
                // A wraparound link of a torus is a stub.
                if next < link.tile { (from, stub(link.port, from)) } else { (from, to) }
            }
            _ => continue,
        };
        let _ = writeln!(
            out,
            "<line class=\"link\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            from.x, from.y, to.x, to.y
        );
    }
    switch(chip, out);
}

/// Draws the switch of a crossbar below its tiles; nothing for other chips.
pub(super) fn switch(chip: &Chip, out: &mut String) {
    let topology = chip.topology();
    if topology.shape() != Shape::Crossbar {
        return;
    }
    let [columns, rows, levels] = topology.extent();
    let (y, width) = (MARGIN + rows * PITCH + PITCH / 8, columns * levels * PITCH);
    let _ = writeln!(out, "<rect class=\"mark\" x=\"{MARGIN}\" y=\"{y}\" width=\"{width}\" height=\"20\"/>");
    let _ =
        writeln!(out, "<text class=\"marked\" x=\"{}\" y=\"{}\">switch</text>", MARGIN + width / 2, y + 14);
}

/// Returns the end of the stub of a wraparound link.
pub(super) fn stub(port: Port, middle: Pixel) -> Pixel {
    let Pixel { x, y } = middle;
    match port {
        Port::North => Pixel { x, y: y.saturating_sub(PITCH / 2) },
        Port::East => Pixel { x: x + PITCH / 2, y },
        _ => Pixel { x: x + PITCH / 2, y: y.saturating_sub(PITCH / 2) },
    }
}

fn draw_tile(chip: &Chip, tile: TileId, out: &mut String) {
    let Pixel { x, y } = middle(chip, tile);
    let (left, top) = (x - SIDE / 2, y - SIDE / 2);
    let (voltage, controller) = (chip.voltage_domain(tile).0, chip.controller_of(tile).0);
    let fill = FILLS[voltage as usize % FILLS.len()];
    let _ = writeln!(
        out,
        "<g><rect class=\"tile\" x=\"{left}\" y=\"{top}\" width=\"{SIDE}\" height=\"{SIDE}\" rx=\"6\" fill=\"{fill}\"/>\
         <text x=\"{x}\" y=\"{}\">{}</text><text class=\"small\" x=\"{x}\" y=\"{}\">V{voltage} M{controller}</text>",
        y - 2,
        cores(chip, tile),
        y + 18
    );
    let controllers = controllers_at(chip, tile).into_iter().map(|controller| format!("M{}", controller.0));
    let port = chip.interrupts().is_some_and(|port| port.tile == tile).then(|| "I".to_owned());
    for (place, mark) in (0..).zip(controllers.chain(port)) {
        let (x, y) = (left + place * 26, top.saturating_sub(8));
        let _ = writeln!(
            out,
            "<rect class=\"mark\" x=\"{x}\" y=\"{y}\" width=\"24\" height=\"16\" rx=\"3\"/>\
             <text class=\"marked\" x=\"{}\" y=\"{}\">{mark}</text>",
            x + 12,
            y + 12
        );
    }
    out.push_str("</g>\n");
}

/// Escapes a text for SVG; control characters, and characters not allowed in XML, become spaces.
pub(super) fn escape(text: &str) -> String {
    let character = |c: char| match c {
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '&' => "&amp;".to_owned(),
        '"' => "&quot;".to_owned(),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => " ".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(character).collect()
}
