//! The chip as text: a drawing for the terminal, and its constants.
//!
//! The drawing is ASCII for terminals of 80 columns; larger chips are only described.

use super::{TooLarge, controllers_at, cores};
use crate::chip::{Chip, Preset};
use crate::energy::{Load, PowerModel, VoltageTable};
use crate::file::Constant;
use crate::quantity::Rate;
use crate::topology::{Coordinates, Shape, TileId};
use std::fmt::Write;

/// Maximum numbers of columns, rows and levels.
const TILES_MAX: Coordinates = [8, 16, 4];

/// Returns a summary of the chip, in a few lines.
pub fn summary(chip: &Chip) -> String {
    let topology = chip.topology();
    let shape = match topology.shape() {
        Shape::Mesh => "mesh",
        Shape::Torus => "torus",
        Shape::Crossbar => "crossbar",
    };
    let [x, y, z] = topology.extent();
    let extent = if z == 1 { format!("{x} x {y}") } else { format!("{x} x {y} x {z}") };
    let mut out = format!("{}: {}\n", printable(chip.name()), printable(chip.title()));
    let (kind, count, tiles) = (printable(chip.core_kind()), topology.cores(), topology.tiles());
    let _ = writeln!(out, "{count} {kind} cores, {tiles} tiles in a {shape} of {extent}");
    if let Some(buffer) = chip.buffer() {
        let (size, registers) = (buffer.size, buffer.registers);
        let _ = writeln!(out, "for each core: {size} of message buffer, test-and-set registers: {registers}");
    }
    if let Some(memory) = chip.memory().per_core {
        let _ = writeln!(out, "for each core: {memory} of private memory");
    }
    let (controllers, clocks) = (chip.controllers(), chip.frequency_domains());
    let supplies = chip.voltage_domains();
    let _ = writeln!(
        out,
        "memory controllers: {controllers}; frequency domains: {clocks}; voltage domains: {supplies}"
    );
    let default = chip.default_preset().name();
    let presets = chip.presets().iter().map(Preset::name);
    let _ = writeln!(out, "clock presets: {}; default: {}", names(presets), printable(default));
    let _ = writeln!(out, "voltage tables: {}", names(chip.voltages().iter().map(VoltageTable::name)));
    let _ = writeln!(out, "power models: {}", names(chip.power_models().iter().map(PowerModel::name)));
    out
}

/// Returns the power of the chip by each model, with all cores at the rate of a preset. All models are listed, because
/// they disagree.
pub fn powers(chip: &Chip) -> String {
    let mut rates: Vec<Rate> = chip.presets().iter().map(|preset| preset.clocks().core).collect();
    rates.sort();
    rates.dedup();
    let mut out = String::new();
    for model in chip.power_models() {
        let table = chip.voltage_table(model.voltages());
        let points = rates.iter().filter_map(|rate| table.and_then(|table| table.operating_point(*rate)));
        for point in points {
            let watts = |load| model.chip(chip.topology().cores(), load, point).watts();
            let (busy, idle) = (watts(Load::Compute), watts(Load::Sleep));
            let (name, rate, voltage) = (printable(model.name()), point.rate, point.voltage);
            let _ = writeln!(
                out,
                "power by {name}, all cores at {rate} and {voltage}: {busy:.1} W computing, {idle:.1} W asleep"
            );
        }
    }
    if out.is_empty() {
        out.push_str("power: none, because no model is published\n");
    }
    out
}

/// Joins names with commas.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { printable(&names.join(", ")) }
}

/// Draws the tiles as boxes with their links, the first at the lower left.
///
/// # Errors
/// [`TooLarge`]: the boxes would not fit.
pub fn drawing(chip: &Chip) -> Result<String, TooLarge> {
    TooLarge::check(chip, TILES_MAX)?;
    let topology = chip.topology();
    let [_, rows, levels] = topology.extent();
    let tiles = (0..topology.tiles()).map(TileId);
    let width = tiles.map(|tile| cores(chip, tile).len().max(domains(chip, tile).len())).max().unwrap_or(0);
    let mut out = String::new();
    for level in 0..levels {
        if levels > 1 {
            let _ = writeln!(out, "level {level}");
        }
        for row in (0..rows).rev() {
            out.push_str(&boxes(chip, row, level, width));
            out.push_str(&below(chip, row, width));
        }
    }
    out.push_str(&legend(chip));
    Ok(out.lines().map(|line| format!("{}\n", line.trim_end())).collect())
}

/// Voltage domain and controller of a tile.
fn domains(chip: &Chip, tile: TileId) -> String {
    format!("V{} M{}", chip.voltage_domain(tile).0, chip.controller_of(tile).0)
}

/// Draws one row of boxes: a border with the controllers at the tile, the cores, the domains, a border.
fn boxes(chip: &Chip, row: u32, level: u32, width: usize) -> String {
    let topology = chip.topology();
    let [columns, ..] = topology.extent();
    let joint = if topology.shape() == Shape::Crossbar { "  " } else { "--" };
    let mut lines = [const { String::new() }; 4];
    for tile in (0..columns).filter_map(|column| topology.tile_at([column, row, level])) {
        let gap = if lines[0].is_empty() { ["", ""] } else { ["  ", joint] };
        let placed: Vec<String> =
            controllers_at(chip, tile).iter().map(|controller| format!("M{}", controller.0)).collect();
        let port = chip.interrupts().is_some_and(|port| port.tile == tile).then(|| "I".to_owned());
        let marks: Vec<String> = placed.into_iter().chain(port).collect();
        let (rim, cores, domains) = (marks.join("-"), cores(chip, tile), domains(chip, tile));
        let _ = write!(lines[0], "{}+-{rim:-<width$}-+", gap[0]);
        let _ = write!(lines[1], "{}| {cores:<width$} |", gap[1]);
        let _ = write!(lines[2], "{}| {domains:<width$} |", gap[0]);
        let _ = write!(lines[3], "{}+-{:-<width$}-+", gap[0], "");
    }
    lines.map(|line| line + "\n").concat()
}

/// Returns the lines below a row: the links to the next one, or the switch.
fn below(chip: &Chip, row: u32, width: usize) -> String {
    let topology = chip.topology();
    let [columns, ..] = topology.extent();
    let middle = (width + 4) / 2;
    let posts = || {
        (0..columns).map(|_| format!("{:<1$}", format!("{:>middle$}", '|'), width + 6)).collect::<String>()
    };
    match topology.shape() {
        Shape::Crossbar => {
            let length = (width + 6) * columns as usize - 2;
            posts() + "\n" + &format!("{:=^length$}\n", " switch ")
        }
        Shape::Mesh | Shape::Torus if row > 0 => posts() + "\n",
        Shape::Mesh | Shape::Torus => String::new(),
    }
}

/// Returns the meaning of the letters.
fn legend(chip: &Chip) -> String {
    let mut out = "\nV: voltage domain   M: memory controller (on a rim: it stands there)".to_owned();
    if chip.has_memory_at_each_tile() {
        out = "\nV: voltage domain   M: memory controller, one at each tile".to_owned();
    }
    if chip.interrupts().is_some() {
        out.push_str("\nI: interrupt port");
    }
    if chip.topology().shape() == Shape::Torus {
        out.push_str("\nThe ends of rows, columns and levels are joined.");
    }
    out + "\n"
}

/// Lists all constants in the order of the file, section by section, and the sources.
pub fn constants(chip: &Chip) -> String {
    let mut out = String::new();
    let mut section = None;
    for constant in chip.constants() {
        let (own, key) = constant.path.rsplit_once('.').unwrap_or(("", &constant.path));
        if section != Some(own) {
            let _ = writeln!(out, "{}{}", if section.is_some() { "\n" } else { "" }, printable(own));
            section = Some(own);
        }
        out.push_str(&line(key, constant));
    }
    out.push_str("\nsources\n");
    for (name, text) in chip.sources() {
        let _ = writeln!(out, "  [{}] {}", printable(name), printable(text));
    }
    out
}

fn line(key: &str, constant: &Constant) -> String {
    let Constant { value, error, source, note, .. } = constant;
    let note = note.as_ref().map_or(String::new(), |note| format!("  {note}"));
    printable(&format!("  {key:<21} {value:<40} {error:<9} [{source}]{note}")).trim_end().to_owned() + "\n"
}

/// Replaces the control characters of a text by spaces.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
