//! Worst-case bounds beside the worst cases found on the model: the keynote's call for patterns with a known worst
//! case.
//!
//! The keynote publishes no figure (004:129): the first column is the bound, which the model must not exceed. The
//! tightness of a bound is the part of it that is reached.

use super::access::{STANDARD, preset};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, RowSource};
use crate::bound::search::{BareRuns, Subject, Xorshift};
use isles_app::{Failure, runs};
use isles_chip::Chip;
use isles_chip::bare::rcce::LibraryCosts;
use isles_chip::bound::mutex::MutexBounds;
use isles_chip::bound::pattern::{CONTROL_LOOP, ParallelPattern, PatternSize};
use isles_chip::bound::{
    AccessBounds, Constants, DataIn, Interference, LinkOrder, Others, Platform, ProgramBounds, StaticProgram,
};
use isles_chip::kernel::exact::{Packet, arrivals};
use isles_chip::kernel::{LinkTiming, Network, Train};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::{CoreId, TileId};

/// Worst cases.
pub(crate) const BOUNDS: Experiment = Experiment {
    name: "bounds",
    about: "worst-case bounds beside the longest that a search finds on the model, at 533/800/800",
    source: "Ungerer, keynote of MARC 2012, which names no pattern and gives no figure",
    instructions: "RCCE's",
    rows: RowSource::Runs(all_rows),
};

/// Flits of a packet with a line.
const FLITS: u64 = 3;

/// Number of steps of a search over packets, and of runs of a search over programs.
const STEPS: u32 = 4_000;
const RUNS: u32 = 40;

const SEED: u64 = 48;

fn all_rows() -> Result<Vec<Row>, Failure> {
    let chip = Chip::find("scc").map_err(|error| Failure::Usage(error.to_string()))?;
    let mut rows = bounds(&chip);
    rows.extend(control_loops(&chip)?);
    Ok(rows)
}

fn bounds(chip: &Chip) -> Vec<Row> {
    let family = Family {
        deck: "",
        unit: "us",
        band: Band::AtMost,
        basis: Basis::Derived,
        source: "our bound",
        reading: "the sum of its terms",
    };
    let packets = Family { unit: "ns", ..family };
    let mut rows = vec![
        packet_row(
            chip,
            packets,
            "one link, packets in the order of arrival",
            Reach::Link,
            LinkOrder::Arrival,
        ),
        packet_row(chip, packets, "one link, packets that reserve", Reach::Link, LinkOrder::Reserved),
        packet_row(
            chip,
            packets,
            "8 hops of the mesh, packets in the order of arrival",
            Reach::Mesh,
            LinkOrder::Arrival,
        ),
        packet_row(
            chip,
            packets,
            "8 hops of the mesh, packets that reserve",
            Reach::Mesh,
            LinkOrder::Reserved,
        ),
        read_row(chip, family),
    ];
    let size = PatternSize { participants: 48, bytes: 1_024, work: 100_000, items: 10 };
    for pattern in ParallelPattern::ALL {
        let participants = if pattern == ParallelPattern::ControlLoop { CONTROL_LOOP } else { 48 };
        rows.push(pattern_row(chip, family, pattern, PatternSize { participants, ..size }, Others::Idle));
    }
    let few = PatternSize { participants: 8, ..size };
    for pattern in [ParallelPattern::Message, ParallelPattern::Barrier, ParallelPattern::Pipeline] {
        rows.push(pattern_row(chip, family, pattern, few, Others::Anything));
    }
    rows.push(lock_row(chip, family, 48));
    rows.extend(speed_ups(chip));
    rows
}

/// Part of the mesh that a packet crosses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Link,
    Mesh,
}

/// Returns the row on one packet and 47 others, whose entry times and routes are searched.
fn packet_row(chip: &Chip, family: Family, title: &str, reach: Reach, order: LinkOrder) -> Row {
    let topology = chip.topology();
    let pace = chip.links().pace(preset(chip, STANDARD).clocks());
    let path = |from: u32, to: u32| -> Vec<usize> {
        topology.route(TileId(from), TileId(to)).map(|link| topology.link_id(link).0 as usize).collect()
    };
    // From corner to corner, or over the link that most routes cross.
    let own = if reach == Reach::Link { path(2, 3) } else { path(0, 23) };
    let tiles = u64::from(topology.tiles());
    let mut random = Xorshift::new(SEED);
    let draw = |random: &mut Xorshift| loop {
        let way = path(random.below(tiles) as u32, random.below(tiles) as u32);
        if way.iter().any(|link| own.contains(link)) {
            return Packet { from: Picoseconds(random.below(MOMENTS)), path: way, flits: FLITS };
        }
    };
    let subject = Packet { from: Picoseconds(MOMENTS / 2), path: own.clone(), flits: FLITS };
    // All packets enter together at first; the subject comes last.
    let mut packets = vec![subject; topology.cores() as usize];
    let links = topology.link_slots() as usize;
    let last_packet = |packets: &[Packet]| last_packet_time(order, links, pace, packets);
    let mut worst = last_packet(&packets);
    for _ in 0..STEPS {
        let at = random.below(u64::from(topology.cores()) - 1) as usize;
        let before = packets[at].clone();
        match random.below(3) {
            0 => packets[at] = draw(&mut random),
            1 => packets[at].from = Picoseconds(random.below(MOMENTS)),
            _ => {
                packets[at].from = Picoseconds((before.from.0 + random.below(30_000)).saturating_sub(15_000))
            }
        }
        match last_packet(&packets) {
            later if later >= worst => worst = later,
            _ => packets[at] = before,
        }
    }
    let hold = pace.flit.0 * FLITS + pace.recovery.0;
    let each = if order == LinkOrder::Arrival { hold } else { 2 * hold };
    let bound = pace.alone(own.len(), FLITS) + Picoseconds(each * u64::from(topology.cores() - 1));
    family.row(title, bound.nanoseconds(), worst.nanoseconds())
}

/// Range of the times at which packets may enter: the time for which all of them hold a link.
const MOMENTS: u64 = 48 * 15_000;

/// Returns the time that the last packet takes.
fn last_packet_time(order: LinkOrder, links: usize, pace: LinkTiming, packets: &[Packet]) -> Picoseconds {
    let last = packets.len() - 1;
    if order == LinkOrder::Arrival {
        return arrivals(links, pace, packets)[last] - packets[last].from;
    }
    let mut by_time: Vec<&Packet> = packets.iter().collect();
    by_time.sort_by_key(|packet| packet.from);
    let mut network = Network::new(links, pace);
    let mut wait = Picoseconds::ZERO;
    for packet in by_time {
        let train = Train { packets: 1, flits: packet.flits };
        let waited = network.send(packet.from, packet.from, packet.path.iter().copied(), train);
        if std::ptr::eq(packet, &packets[last]) {
            wait = waited;
        }
    }
    pace.alone(packets[last].path.len(), FLITS) + wait
}

/// Returns the row on a read of core 0's buffer by core 46 while the other 47 cores make arbitrary accesses.
fn read_row(chip: &Chip, family: Family) -> Row {
    let (reader, owner) = (CoreId(46), CoreId(0));
    let mut interference = Interference::none(chip).expect("the SCC has few cores");
    interference.add_read(reader, owner);
    let others = (0..chip.topology().cores()).map(CoreId).filter(|core| *core != reader);
    others.for_each(|core| interference.add_unrestricted(core));
    let bounds = AccessBounds::new(platform(chip), interference, LinkOrder::Reserved, DataIn::FirstCache);
    let bound = bounds.expect("the file of the SCC has all costs").read(reader, owner).total();
    let subject = Subject::Read { core: reader.0, of: owner.0 };
    let seen = model(chip, Others::Anything, 0).worst(subject, RUNS, SEED);
    let seen = seen.expect("the SCC has bare cores");
    family.row("a read over 8 hops, others do anything", micro(bound), micro(seen))
}

/// The standard preset of `chip`, with its constants as they are written.
fn platform(chip: &Chip) -> Platform<'_> {
    Platform { chip, preset: preset(chip, STANDARD), constants: Constants::AsWritten }
}

fn model(chip: &Chip, others: Others, warm_lines: u64) -> BareRuns<'_> {
    BareRuns { chip, preset: preset(chip, STANDARD), library: LibraryCosts::RCCE, others, warm_lines }
}

fn micro(time: Picoseconds) -> f64 {
    time.nanoseconds() / 1e3
}

fn pattern_row(
    chip: &Chip,
    family: Family,
    pattern: ParallelPattern,
    size: PatternSize,
    others: Others,
) -> Row {
    let bytes = pattern.data_bytes(size);
    let program = pattern.program(size, 32);
    let bound = bound_of(chip, &program, DataIn::of_bytes(chip, bytes), others);
    let subject = Subject::Program(&program);
    let seen = model(chip, others, bytes.div_ceil(32) as u64).worst(subject, RUNS, SEED);
    let beside = if others == Others::Idle { "" } else { ", others do anything" };
    let title = format!("{} of {} cores{beside}", pattern.name(), size.participants);
    family.row(title, micro(bound), micro(seen.expect("the SCC has bare cores")))
}

/// Returns the rows on the application control-loop beside the bound of its order. With the protocol `sections`, which
/// uses no lock, the time must not exceed the bound; with `ring`, which uses a test-and-set register, there is no
/// bound.
fn control_loops(chip: &Chip) -> Result<Vec<Row>, Failure> {
    let size = PatternSize { participants: CONTROL_LOOP, bytes: 32, work: 0, items: 10 };
    let program = ParallelPattern::ControlLoop.program(size, 32);
    let bound = bound_of(chip, &program, DataIn::of_bytes(chip, size.bytes), Others::Idle);
    let family = Family {
        deck: "",
        unit: "us",
        band: Band::AtMost,
        basis: Basis::Derived,
        source: "our bound",
        reading: "the bound of its order on bare cores",
    };
    let row = |family: Family, protocol: &str, bound: f64| -> Result<Row, Failure> {
        let arguments = format!(
            "--machine chip:scc --places 4 --steps 10 --csv /dev/null --json - --protocol {protocol}"
        );
        let result = runs::result("control-loop", arguments.split(' '))?;
        let step = result["step_us"].as_f64().unwrap_or(f64::NAN);
        Ok(family.row(format!("the application control-loop by {protocol}, 10 steps"), bound, step * 10.0))
    };
    let unbounded = Family { band: Band::Unpublished, source: "", reading: "", ..family };
    Ok(vec![row(family, "sections", micro(bound))?, row(unbounded, "ring", f64::NAN)?])
}

fn bound_of(chip: &Chip, program: &StaticProgram, data: DataIn, others: Others) -> Picoseconds {
    let (platform, order) = (platform(chip), LinkOrder::Reserved);
    let bounds = ProgramBounds::new(platform, program, LibraryCosts::RCCE, others, order, data);
    bounds.and_then(|bounds| bounds.longest(program)).expect("patterns have bounds").total()
}

fn lock_row(chip: &Chip, family: Family, participants: u32) -> Row {
    let hold = 1_000;
    let (platform, order) = (platform(chip), LinkOrder::Reserved);
    let bounds = MutexBounds::new(platform, participants, LibraryCosts::RCCE, Others::Idle, order);
    let bounds = bounds.expect("the SCC has bounds");
    let subject = Subject::Lock { participants, hold };
    let seen = model(chip, Others::Idle, 0).worst(subject, RUNS, SEED).expect("the SCC has bare cores");
    let title = format!("waiting for a lock by tickets, {participants} cores");
    family.row(title, micro(bounds.wait(hold).total()), micro(seen))
}

/// Returns an invented mesh of 64 tiles, which has the number of cores that the keynote's projects aimed at.
fn mesh_of_64() -> Chip {
    let text = include_str!("../../../../chips/mesh.toml");
    let larger = [
        ("tiles = [4, 4]", "tiles = [8, 8]"),
        ("at = [3, 3]", "at = [7, 7]"),
        ("serves_to = [3, 1]", "serves_to = [7, 3]"),
        ("serves_from = [0, 2]", "serves_from = [0, 4]"),
        ("serves_to = [3, 3]", "serves_to = [7, 7]"),
    ];
    let text = larger.iter().fold(text.to_owned(), |text, (small, large)| text.replace(small, large));
    Chip::parse("mesh", &text).expect("the file of the mesh has these lines")
}

/// Returns the rows on the worst-case speed-ups of patterns over one core, on the SCC and on an invented mesh.
fn speed_ups(chip: &Chip) -> Vec<Row> {
    let family = Family {
        deck: "",
        unit: "",
        band: Band::Unpublished,
        basis: Basis::Derived,
        source: "",
        reading: "",
    };
    let mesh = mesh_of_64();
    let speed_up = |chip: &Chip, pattern: ParallelPattern, participants: u32| {
        let size = PatternSize { participants, bytes: 256, work: 20_000_000, items: 1 };
        let program = pattern.program(size, chip.caches().line.0 as usize);
        let data = DataIn::of_bytes(chip, pattern.data_bytes(size));
        let platform = Platform { chip, preset: chip.default_preset(), constants: Constants::AsWritten };
        let (others, order) = (Others::Idle, LinkOrder::Reserved);
        let bounds = ProgramBounds::new(platform, &program, LibraryCosts::RCCE, others, order, data);
        let bounds = bounds.expect("patterns have bounds");
        let time = bounds.longest(&program).expect("patterns end").total().nanoseconds();
        let megahertz = chip.default_preset().clocks().core.megahertz();
        pattern.all_work(size) as f64 * 1e3 / megahertz / time
    };
    let row = |chip: &Chip, name: &str, pattern: ParallelPattern, participants: u32| {
        let cores = if participants == 1 { "core" } else { "cores" };
        let title = format!("worst-case speed-up, {}, {participants} {cores} of {name}", pattern.name());
        family.row(title, 0.0, speed_up(chip, pattern, participants))
    };
    let mut rows = Vec::new();
    for pattern in [ParallelPattern::Farm, ParallelPattern::Stencil] {
        rows.extend([1, 12, 24, 48].map(|cores| row(chip, "the SCC", pattern, cores)));
        rows.extend([1, 16, 64].map(|cores| row(&mesh, "chip:mesh of 8 x 8", pattern, cores)));
    }
    rows
}
