//! Decodes the parts of a chip, section by section, and checks them against each other.
//!
//! Each function reads one section, and thereby defines its keys. A part that cannot be read is `None` here and a fault
//! in the findings; the chip is assembled at the end, if all parts are present.

use super::section::{Findings, Precision, Section, show};
use super::unit::{self, Dimension, Reason};
use super::{power, preset};
use crate::chip::{
    Caches, Chip, ControllerId, Controllers, Dividers, Domains, FileServer, Interrupts, LinkTraits,
};
use crate::chip::{Memory, MessageBuffer, Preset};
use crate::cost::{Operation, Operations};
use crate::energy::VoltageTable;
use crate::quantity::{Bytes, Rate};
use crate::topology::{Coordinates, Shape, TileId, Topology};
use std::collections::BTreeMap;
use toml::de::DeValue;

const COUNTED: Precision = Precision::Counted;
pub(super) const TIMED: Precision = Precision::Measured(&[Dimension::Time]);
const SIZE: &str = "a size such as \"8 KiB\"";

/// Returns the chip of a file without its constants, which are in the findings.
pub(super) fn chip(name: &str, mut root: Section<'_>, findings: &mut Findings<'_>) -> Option<Chip> {
    sources(&mut root, findings);
    let title = root.required_text(findings, "title", "a line that describes the chip");
    let topology = root.required_child(findings, "topology").and_then(|part| topology(part, findings));
    let cores = root.required_child(findings, "core").and_then(|part| cores(part, findings));
    let buffer = root.child(findings, "buffer").and_then(|part| buffer(part, findings));
    let memory =
        root.required_child(findings, "memory").and_then(|part| memory(part, topology.as_ref(), findings));
    let links = root.required_child(findings, "links").and_then(|part| links(part, findings));
    let interrupts =
        root.child(findings, "interrupt").and_then(|part| interrupts(part, topology.as_ref(), findings));
    let files = root.child(findings, "files").map(|part| files(part, findings));
    let domains = match root.child(findings, "domains") {
        Some(part) => domains(part, topology.as_ref(), findings),
        None => topology.map(|topology| Domains { frequency: topology.extent(), voltage: topology.extent() }),
    };
    let clocks = root.required_child(findings, "clocks").map(|part| clocks(part, findings));
    let (preset_names, presets) = preset::all(&mut root, findings);
    let (table_names, voltages) = power::voltages(&mut root, findings);
    let power = power::models(&mut root, &table_names, findings);
    let mesh_power = root.child(findings, "mesh_power").and_then(|part| power::mesh(part, findings));
    root.close(findings);

    let ClockSection { dividers, default } = clocks?;
    check_rates(&presets, dividers.as_ref(), &voltages, findings);
    check_default(default.as_ref(), &preset_names, findings);
    check_registers(&presets, buffer.as_ref(), findings);
    let CoreTraits { kind: core_kind, caches, operations } = cores?;
    let (default, _) = default?;
    let default_preset = presets.iter().position(|(preset, _)| *preset.name() == default);
    Some(Chip {
        name: short_name(name).to_owned(),
        title: title?.0,
        core_kind,
        topology: topology?,
        caches,
        operations,
        buffer,
        memory: memory?,
        links: links?,
        interrupts,
        files: files.flatten(),
        dividers: dividers.map(|(dividers, _)| dividers),
        domains: domains?,
        default_preset: default_preset?,
        own_preset: default_preset?,
        presets: presets.into_iter().map(|(preset, _)| preset).collect(),
        voltages,
        chosen_voltages: None,
        power,
        mesh_power,
        sources: BTreeMap::new(),
        constants: Vec::new(),
        fingerprint: 0,
        text: "".into(),
    })
}

/// Returns the name of a chip from that of its file.
fn short_name(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Reads `[sources]`: the full forms of short names.
fn sources(root: &mut Section<'_>, findings: &mut Findings<'_>) {
    for (name, text) in root.words(findings, "sources") {
        findings.sources.insert(name, text);
    }
}

/// Reads a whole number within bounds.
pub(super) fn count(value: &DeValue<'_>, from: u32, to: u32) -> Result<u32, Reason> {
    let number = value
        .as_integer()
        .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok())
        .filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| format!("allowed: a whole number from {from} to {to}"))
}

/// Reads a quantity, which is a text with a unit.
pub(super) fn quantity<T>(
    value: &DeValue<'_>,
    read: impl FnOnce(&str) -> Result<T, Reason>,
) -> Result<T, Reason> {
    match value {
        DeValue::String(text) => read(text),
        // A bare number is passed on as text, so that the error names the missing unit.
        DeValue::Integer(_) | DeValue::Float(_) => read(&show(value)),
        _ => Err("allowed: a quantity with its unit, in quotes".to_owned()),
    }
}

/// Reads a size above zero.
fn size(value: &DeValue<'_>) -> Result<Bytes, Reason> {
    match quantity(value, unit::size)? {
        Bytes(0) => Err("it is zero; allowed: a size above zero".to_owned()),
        size => Ok(size),
    }
}

/// Reads two or three whole numbers, along x, y and z.
fn triple(value: &DeValue<'_>, rest: u32, from: u32) -> Result<Coordinates, Reason> {
    let allowed = || format!("allowed: [x, y] or [x, y, z], whole numbers from {from} up");
    let items = value.as_array().ok_or_else(allowed)?;
    let numbers: Vec<u32> =
        items.iter().map_while(|item| count(item.get_ref(), from, u32::MAX).ok()).collect();
    match (numbers.as_slice(), items.len()) {
        (&[x, y], 2) => Ok([x, y, rest]),
        (&[x, y, z], 3) => Ok([x, y, z]),
        _ => Err(allowed()),
    }
}

fn topology(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<Topology> {
    let allowed = "\"mesh\", \"torus\" or \"crossbar\"";
    let shape = part.required(findings, "shape", COUNTED, allowed, |value| match value.as_str() {
        Some("mesh") => Ok(Shape::Mesh),
        Some("torus") => Ok(Shape::Torus),
        Some("crossbar") => Ok(Shape::Crossbar),
        _ => Err(format!("allowed: {allowed}")),
    });
    let max = Topology::CORES_MAX;
    let extent = part
        .required(findings, "tiles", COUNTED, "columns and rows such as [6, 4]", |value| triple(value, 1, 1));
    let cores = part
        .required(findings, "cores_per_tile", COUNTED, "a whole number from 1", |value| count(value, 1, max));
    let at = part.at();
    part.close(findings);
    let (extent, cores) = (extent?, cores?);
    let topology = Topology::new(shape?, extent, cores);
    if topology.is_none() {
        let tiles = format!("topology.tiles is {extent:?} with {cores} cores_per_tile");
        findings.fault(at, format!("{tiles}; allowed: at most {max} cores"));
    }
    topology
}

/// `[core]`.
struct CoreTraits {
    kind: String,
    caches: Caches,
    operations: Operations,
}

fn cores(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<CoreTraits> {
    let kind = part.required_text(findings, "kind", "the name of the core, such as \"P54C\"");
    let line = part.required(findings, "line", COUNTED, SIZE, size);
    let first = part.constant(findings, "first_cache", COUNTED, size);
    let instructions = part.constant(findings, "instruction_cache", COUNTED, size);
    let second = part.constant(findings, "second_cache", COUNTED, size);
    let operations = part.child(findings, "operation").map(|part| operations(part, findings));
    part.close(findings);
    Some(CoreTraits {
        kind: kind?.0,
        caches: Caches { line: line?, first, instructions, second },
        operations: operations.unwrap_or_default(),
    })
}

/// Reads `[core.operation]`: the times of operations by class.
fn operations(mut part: Section<'_>, findings: &mut Findings<'_>) -> Operations {
    let nanocycles = Operation::ALL.map(|operation| {
        part.constant(findings, operation.name(), TIMED, |value| quantity(value, unit::core_cycles))
    });
    part.close(findings);
    Operations::new(nanocycles)
}

fn buffer(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<MessageBuffer> {
    let size = part.required(findings, "per_core", COUNTED, SIZE, size);
    let none = (!part.has("test_and_set_per_core")).then_some(0);
    let registers = part.constant(findings, "test_and_set_per_core", COUNTED, |value| count(value, 0, 1024));
    let readers = part.constant(findings, "readers_free", Precision::Measured(&[]), readers);
    part.close(findings);
    Some(MessageBuffer { size: size?, registers: registers.or(none)?, readers_free: readers })
}

/// Reads the number of cores that can read at once.
fn readers(value: &DeValue<'_>) -> Result<u32, Reason> {
    count(value, 1, Topology::CORES_MAX)
}

/// Reads a tile by its coordinates.
fn tile(value: &DeValue<'_>, topology: Option<&Topology>) -> Result<Option<TileId>, Reason> {
    let at = triple(value, 0, 0)?;
    let Some(topology) = topology else { return Ok(None) }; // already recorded as a fault
    let outside = || {
        let [x, y, z] = topology.extent().map(|end| end - 1);
        format!("it is outside the tiles; allowed: x to {x}, y to {y}, z to {z}")
    };
    topology.tile_at(at).map(Some).ok_or_else(outside)
}

fn memory(mut part: Section<'_>, topology: Option<&Topology>, findings: &mut Findings<'_>) -> Option<Memory> {
    let readers =
        part.required(findings, "readers_free", Precision::Measured(&[]), "a whole number from 1", readers);
    let per_core = part.constant(findings, "per_core", COUNTED, size);
    let own = part.constant(findings, "each_tile", COUNTED, |value| {
        value.as_bool().ok_or_else(|| "allowed: true or false".to_owned())
    });
    let at = part.at();
    let placed = part.list(findings, "controller");
    let controllers = match (own, placed.is_empty()) {
        (Some(true), true) => Some(Controllers::EachTile),
        (Some(true), false) => {
            findings.fault(at, "memory.each_tile is true and there are controllers; allowed: one of the two");
            None
        }
        (_, true) => {
            findings.fault(
                at,
                "memory has no controller; allowed: each_tile = true, or one or more [[memory.controller]]",
            );
            None
        }
        (_, false) => controllers(placed, at, topology, findings),
    };
    part.close(findings);
    Some(Memory { controllers: controllers?, readers_free: readers?, per_core })
}

/// Reads `[[memory.controller]]`: the tile of each, and the corners of the block of tiles that it serves.
fn controllers(
    placed: Vec<Section<'_>>,
    section: usize,
    topology: Option<&Topology>,
    findings: &mut Findings<'_>,
) -> Option<Controllers> {
    let topology_known = topology?;
    let mut of_tile: Vec<Option<ControllerId>> = vec![None; topology_known.tiles() as usize];
    let (mut tiles, mut clear) = (Vec::new(), true);
    for mut part in placed {
        let id = ControllerId(tiles.len() as u32);
        let allowed = "the coordinates of a tile such as [0, 0]";
        let at = part.required(findings, "at", COUNTED, allowed, |value| tile(value, topology));
        let corner = |part: &mut Section<'_>, findings: &mut Findings<'_>, key| {
            part.required(findings, key, COUNTED, allowed, |value| tile(value, topology)).flatten()
        };
        let (from, to) =
            (corner(&mut part, findings, "serves_from"), corner(&mut part, findings, "serves_to"));
        let doubled = from.zip(to).map(|(from, to)| serve(topology_known, from, to, id, &mut of_tile));
        if let Some(Some(tile)) = doubled {
            let text = format!("the tile at {tile:?} already has a controller; allowed: one for each tile");
            findings.fault(part.at(), text);
        }
        clear &= doubled == Some(None);
        part.close(findings);
        tiles.push(at.flatten().unwrap_or(TileId(0)));
    }
    let idle = of_tile.iter().filter(|controller| controller.is_none()).count();
    // After a faulty block, the controllers of the remaining tiles are unknown.
    if idle > 0 && clear {
        findings.fault(
            section,
            format!(
                "{idle} tiles have no memory controller; allowed: one for each \
             tile"
            ),
        );
    }
    let of_tile: Option<Vec<ControllerId>> = of_tile.into_iter().collect();
    Some(Controllers::At(tiles, of_tile?))
}

/// Assigns the tiles between two corners to a controller; stops at the first tile that already has one and returns it.
///
/// Stopping there bounds the work of a file with many controllers by the number of tiles.
fn serve(
    topology: &Topology,
    from: TileId,
    to: TileId,
    controller: ControllerId,
    of_tile: &mut [Option<ControllerId>],
) -> Option<Coordinates> {
    let ([x1, y1, z1], [x2, y2, z2]) = (topology.coordinates(from), topology.coordinates(to));
    let block = (z1..=z2).flat_map(|z| (y1..=y2).flat_map(move |y| (x1..=x2).map(move |x| [x, y, z])));
    for at in block {
        let slot = topology.tile_at(at).and_then(|tile| of_tile.get_mut(tile.0 as usize))?;
        if slot.is_some() {
            return Some(at);
        }
        *slot = Some(controller);
    }
    None
}

fn links(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<LinkTraits> {
    let cost = |value: &DeValue<'_>| quantity(value, |text| unit::cost(text, None));
    let flit = part.required(findings, "flit", COUNTED, SIZE, size);
    let flit_time = part.required(findings, "flit_time", TIMED, unit::COST_ALLOWED, cost);
    let head = part.required(findings, "head", TIMED, unit::COST_ALLOWED, cost);
    let payload_max = part.required(findings, "payload_max", COUNTED, SIZE, size);
    let overhead = part.required(findings, "overhead", COUNTED, SIZE, |value| quantity(value, unit::size));
    let recovery = part.constant(findings, "recovery", TIMED, cost);
    part.close(findings);
    Some(LinkTraits {
        flit: flit?,
        flit_time: flit_time?,
        head: head?,
        payload_max: payload_max?,
        overhead: overhead?,
        recovery: recovery.unwrap_or_default(),
    })
}

fn files(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<FileServer> {
    let mut cost = |key: &str| {
        let read = |value: &DeValue<'_>| quantity(value, |text| unit::cost(text, None));
        part.required(findings, key, TIMED, "a time such as \"5 ms\"", read)
    };
    let [cold_latency, cold_kib, warm_latency, warm_kib] =
        ["cold_latency", "cold_kib", "warm_latency", "warm_kib"].map(&mut cost);
    let core_kib =
        part.constant(findings, "core_kib", TIMED, |value| quantity(value, |text| unit::cost(text, None)));
    part.close(findings);
    Some(FileServer {
        cold_latency: cold_latency?,
        cold_kib: cold_kib?,
        warm_latency: warm_latency?,
        warm_kib: warm_kib?,
        core_kib: core_kib.unwrap_or_default(),
    })
}

fn interrupts(
    mut part: Section<'_>,
    topology: Option<&Topology>,
    findings: &mut Findings<'_>,
) -> Option<Interrupts> {
    let allowed = "the coordinates of a tile such as [3, 0]";
    let at = part.required(findings, "at", COUNTED, allowed, |value| tile(value, topology));
    let number = "a whole number from 1";
    let read = |value: &DeValue<'_>| count(value, 1, Topology::CORES_MAX);
    let free = part.required(findings, "targets_free", Precision::Measured(&[]), number, read);
    let max = part.required(findings, "targets_max", COUNTED, number, read);
    part.close(findings);
    Some(Interrupts { tile: at.flatten()?, targets_free: free?, targets_max: max? })
}

fn domains(
    mut part: Section<'_>,
    topology: Option<&Topology>,
    findings: &mut Findings<'_>,
) -> Option<Domains> {
    let fits = |value: &DeValue<'_>| {
        let block = triple(value, 1, 1)?;
        let Some(topology) = topology else { return Ok(block) };
        let extent = topology.extent();
        let whole = (0..3).all(|axis| extent[axis].is_multiple_of(block[axis]));
        let reason =
            || format!("such blocks do not fill {extent:?} tiles; allowed: divisors of these numbers");
        if whole { Ok(block) } else { Err(reason()) }
    };
    let allowed = "the tiles of a block such as [2, 2]";
    let frequency = part.required(findings, "frequency", COUNTED, allowed, fits);
    let voltage = part.required(findings, "voltage", COUNTED, allowed, fits);
    part.close(findings);
    Some(Domains { frequency: frequency?, voltage: voltage? })
}

/// Content of `[clocks]`.
struct ClockSection {
    dividers: Option<(Dividers, usize)>,
    default: Option<(String, usize)>,
}

fn clocks(mut part: Section<'_>, findings: &mut Findings<'_>) -> ClockSection {
    let default = part.required_text(findings, "default", "the name of a preset");
    let source = part.constant(findings, "divided", COUNTED, |value| quantity(value, unit::rate));
    let allowed = part.constant_at(findings, "dividers", COUNTED, |value| match triple(value, 0, 1)? {
        [from, to, 0] if from <= to && to <= Rate::DIVIDER_MAX => Ok(from..=to),
        _ => Err("allowed: the smallest and the largest such as [2, 16]".to_owned()),
    });
    if part.has("divided") != part.has("dividers") {
        let at = part.at();
        findings.fault(at, "clocks has only one of divided and dividers; allowed: both or neither");
    }
    part.close(findings);
    let dividers = source.zip(allowed).map(|(source, (allowed, at))| (Dividers { source, allowed }, at));
    ClockSection { dividers, default }
}

/// Checks that the default preset exists.
fn check_default(default: Option<&(String, usize)>, names: &[String], findings: &mut Findings<'_>) {
    if let Some((name, at)) = default.filter(|(name, _)| !names.contains(name)) {
        findings.fault(*at, format!("clocks.default is {name:?}; allowed: a preset: {}", names.join(", ")));
    }
}

/// Checks that only a chip with test-and-set registers has their cost, because protocols take the cost as a sign of
/// them.
fn check_registers(presets: &[(Preset, usize)], buffer: Option<&MessageBuffer>, findings: &mut Findings<'_>) {
    let said = presets.iter().filter(|(preset, _)| preset.costs().test_and_set.is_some());
    for (preset, at) in said.filter(|_| buffer.is_some_and(|buffer| buffer.registers == 0)) {
        let path = format!("preset.{:?}.test_and_set", preset.name());
        let allowed = "none while buffer.test_and_set_per_core is 0 or left out";
        findings.fault(*at, format!("{path} is the cost of a register; allowed: {allowed}"));
    }
}

/// Checks that every preset runs its cores at a rate of the dividers, and that each voltage table allows all such
/// rates.
fn check_rates(
    presets: &[(Preset, usize)],
    dividers: Option<&(Dividers, usize)>,
    voltages: &[VoltageTable],
    findings: &mut Findings<'_>,
) {
    if let Some((fastest, at)) = dividers.and_then(|(dividers, at)| Some((dividers.rates().next()?, *at))) {
        check_voltages(fastest, "the smallest divider", at, voltages, findings);
    }
    for (preset, at) in presets {
        let (name, core) = (preset.name(), preset.clocks().core);
        match dividers {
            None => check_voltages(core, &format!("the core of preset {name:?}"), *at, voltages, findings),
            Some((dividers, _)) if dividers.divider(core).is_none() => {
                let (from, to) = (dividers.allowed.start(), dividers.allowed.end());
                let allowed = format!("{} divided by {from} to {to}", dividers.source);
                findings.fault(*at, format!("the core of preset {name:?} is at {core}; allowed: {allowed}"));
            }
            Some(_) => {}
        }
    }
}

/// Checks that each voltage table has a voltage for the rate.
fn check_voltages(rate: Rate, of: &str, at: usize, voltages: &[VoltageTable], findings: &mut Findings<'_>) {
    for table in voltages.iter().filter(|table| table.voltage(rate).is_none()) {
        let max = table.rate_max().map_or("nothing".to_owned(), |rate| format!("at most {rate}"));
        let table = table.name();
        findings.fault(at, format!("no voltage of table {table:?} allows {rate}, {of}; allowed: {max}"));
    }
}
