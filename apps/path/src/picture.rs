//! The route as SVG: currents as arrows over their speed as colours, land, obstacles, and the waypoints.
//!
//! Currents are shown at half the depth of the profiles and half the time of the route; a moving obstacle is drawn
//! where it is then. Invariant: north is up, and both axes have the same scale.

use crate::case::Mission;
use crate::current::Moment;
use crate::glide::DEEPEST;
use crate::route::Leg;
use crate::sea::{Obstacle, Position};
use std::io::{self, Write};

/// Width of the picture, height of its caption, and its margin, in its own unit.
const WIDTH: f64 = 1000.0;
const CAPTION: f64 = 48.0;
const MARGIN: f64 = 16.0;

/// Number of arrows from west to east, and the speed of the darkest colour, in metres per second.
const ARROWS: u32 = 40;
const SPEED_MAX: f64 = 0.5;

/// Mapping of positions to the picture.
struct Frame {
    scale: f64,
    height: f64,
    /// Width of the visible border around the waypoints, in metres.
    border: f64,
}

impl Frame {
    fn at(&self, position: Position) -> (f64, f64) {
        let x = MARGIN + (position.east + self.border) * self.scale;
        (x, CAPTION + self.height - (position.north + self.border) * self.scale)
    }
}

/// Writes the picture of a route.
///
/// # Errors
/// The type that `out` returns.
pub fn write_svg(plan: &Mission, legs: &[Leg], caption: &str, out: &mut dyn Write) -> io::Result<()> {
    let sea = &plan.sea;
    let border = sea.spacing / 2.0;
    let [wide, high] = [sea.columns, sea.rows].map(|side| f64::from(side - 1) * sea.spacing + 2.0 * border);
    let scale = (WIDTH - 2.0 * MARGIN) / wide;
    let frame = Frame { scale, height: high * scale, border };
    let height = CAPTION + frame.height + MARGIN;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.1}\" font-family=\"sans-serif\">"
    )?;
    let caption = caption.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(out, "<title>{caption}</title>")?;
    writeln!(out, "<rect width=\"{WIDTH}\" height=\"{height:.1}\" fill=\"#ffffff\"/>")?;
    writeln!(out, "<text x=\"{MARGIN}\" y=\"30\" font-size=\"20\">{caption}</text>")?;
    let time = legs.last().map_or(0.0, |leg| f64::from(leg.arrival) / 2.0);
    write_water(plan, &frame, wide, high, time, out)?;
    for island in &sea.islands {
        write_disc(&frame, island, 0.0, "#c8b88a", out)?;
    }
    for obstacle in &sea.obstacles {
        write_disc(&frame, obstacle, time, "#d06060", out)?;
    }
    write_route(&frame, legs, out)?;
    writeln!(out, "</svg>")
}

/// Writes a tile and an arrow for each place of a grid over the sea.
fn write_water(
    plan: &Mission,
    frame: &Frame,
    wide: f64,
    high: f64,
    time: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let side = wide / f64::from(ARROWS);
    let rows = (high / side).ceil().max(1.0) as u32;
    for (row, column) in (0..rows).flat_map(|row| (0..ARROWS).map(move |column| (row, column))) {
        let middle = |index: u32| (f64::from(index) + 0.5) * side - frame.border;
        let position = Position { east: middle(column), north: middle(row) };
        if position.north > high - frame.border {
            continue;
        }
        let (x, y) = frame.at(position);
        let (half, tile) = (side * frame.scale / 2.0, side * frame.scale);
        if plan.sea.is_closed(position) && plan.sea.islands.is_empty() {
            let (left, top) = (x - half, y - half);
            writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{tile:.1}\" height=\"{tile:.1}\" fill=\"#c8b88a\"/>"
            )?;
            continue;
        }
        let Position { east, north } = position;
        let water = plan.sea.current(Moment { east, north, depth: DEEPEST / 4.0, time });
        let part = (water.east.hypot(water.north) / SPEED_MAX).min(1.0);
        let shade = |dark: f64, light: f64| (light + part * (dark - light)) as u8;
        let (red, green, blue) = (shade(60.0, 236.0), shade(130.0, 244.0), shade(190.0, 250.0));
        let (left, top) = (x - half, y - half);
        let fill = format!("#{red:02x}{green:02x}{blue:02x}");
        writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{tile:.1}\" height=\"{tile:.1}\" fill=\"{fill}\"/>"
        )?;
        let reach = 0.9 * tile / SPEED_MAX;
        let (tip_x, tip_y) = (x + reach * water.east / 2.0, y - reach * water.north / 2.0);
        let (tail_x, tail_y) = (x - reach * water.east / 2.0, y + reach * water.north / 2.0);
        writeln!(
            out,
            "<path d=\"M{tail_x:.1} {tail_y:.1}L{tip_x:.1} {tip_y:.1}\" stroke=\"#305070\" stroke-width=\"1\"/>\
             <circle cx=\"{tip_x:.1}\" cy=\"{tip_y:.1}\" r=\"1.6\" fill=\"#305070\"/>"
        )?;
    }
    Ok(())
}

fn write_disc(
    frame: &Frame,
    disc: &Obstacle,
    time: f64,
    colour: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let east = disc.middle.east + disc.velocity.east * time;
    let north = disc.middle.north + disc.velocity.north * time;
    let ((x, y), radius) = (frame.at(Position { east, north }), disc.radius * frame.scale);
    writeln!(
        out,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{colour}\" fill-opacity=\"0.8\"/>"
    )
}

fn write_route(frame: &Frame, legs: &[Leg], out: &mut dyn Write) -> io::Result<()> {
    let point = |leg: &Leg| {
        let (x, y) = frame.at(leg.position);
        format!("{x:.1},{y:.1}")
    };
    let points: Vec<String> = legs.iter().map(point).collect();
    let line = points.join(" ");
    writeln!(out, "<polyline points=\"{line}\" fill=\"none\" stroke=\"#101010\" stroke-width=\"3\"/>")?;
    for leg in legs {
        let (x, y) = frame.at(leg.position);
        // The deeper the dive that leads here, the darker.
        let light = (220.0 * (1.0 - leg.depth / DEEPEST)) as u8;
        let hours = f64::from(leg.arrival) / 3_600.0;
        writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"#{light:02x}{light:02x}ff\" stroke=\"#101010\">\
             <title>{hours:.1} h, dive to {:.0} m</title></circle>",
            leg.depth
        )?;
    }
    Ok(())
}
