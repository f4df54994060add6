//! Accesses of one core: lines of buffers by distance, bandwidths, caches, the memory behind the controllers; and
//! published figures that the files of the other chips contain.
//!
//! No program runs on the other chips: they have no message buffers and therefore no bare cores.

use super::bare::{bare, run};
use super::quantity::{Quantity, Title};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, RowSource};
use isles_chip::cost::{HopCost, Mode, TimingTable};
use isles_chip::energy::Load;
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use isles_chip::{Chip, ControllerId, Preset};

/// Preset of the clocks in most papers.
pub const STANDARD: &str = "533/800/800";

/// Preset of the clocks of the cycle table.
pub const FAST: &str = "800/1600/1066";

/// V1 of the validation deck.
pub const LINES: Experiment = Experiment {
    name: "lines",
    about: "one line of a message buffer by distance, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    instructions: "",
    rows: RowSource::Model(lines),
};

/// V2 of the validation deck.
pub(crate) const BANDWIDTH: Experiment = Experiment {
    name: "bandwidth",
    about: "lines of a message buffer back to back, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    instructions: "",
    rows: RowSource::Model(bandwidth),
};

/// V6 of the validation deck.
pub const CYCLES: Experiment = Experiment {
    name: "cycles",
    about: "core cycles of an access from nearest to farthest, at 800/1600/1066",
    source: "Rotta et al., MARC 2012, paper 3",
    instructions: "",
    rows: RowSource::Model(cycles),
};

/// Returns a preset that the chip file must have.
pub fn preset<'a>(chip: &'a Chip, name: &str) -> &'a Preset {
    chip.preset(name).expect("the chip file of the SCC has the presets of the papers")
}

/// Returns a time of the chip file of the SCC in nanoseconds.
pub fn nanoseconds(time: Option<Picoseconds>) -> f64 {
    time.expect("the chip file of the SCC has this cost").nanoseconds()
}

/// Returns a time of the chip file of the SCC in cycles of the core.
pub fn core_cycles(time: Option<Picoseconds>, preset: &Preset) -> f64 {
    nanoseconds(time) * preset.clocks().core.megahertz() / 1e3
}

fn lines(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let band = Band::Within(5.0);
    let family = Family { deck: "V1", unit: "ns", band, basis: Basis::Calibrated, source: "", reading: "" };
    // The source prints the times without a hop, and a formula for the others.
    let at = |hops: u32, printed: &'static str, (line, formula): (&'static str, &'static str)| match hops {
        0 => family.at(printed),
        _ => Family { basis: Basis::Derived, ..family.at(line) }.reading(formula),
    };
    let (of_read, of_write) = ("“105 ns + (# of hops) * 5 ns”", "“145 ns + (# of hops) * 5 ns”");
    let read = (0..=8).map(|hops| {
        let ours = nanoseconds(times.read(Mode::BufferLine, hops));
        at(hops, "002:219", ("002:223", of_read)).row(
            Title::from("read").over(Quantity::hops(hops)),
            105.0 + 5.0 * f64::from(hops),
            ours,
        )
    });
    let write = (0..=8).map(|hops| {
        let ours = nanoseconds(times.write(Mode::BufferLine, hops));
        at(hops, "002:227", ("002:231", of_write)).row(
            Title::from("write").over(Quantity::hops(hops)),
            145.0 + 5.0 * f64::from(hops),
            ours,
        )
    });
    read.chain(write).collect()
}

fn bandwidth(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let band = Band::Within(5.0);
    let family = Family { deck: "V2", unit: "MB/s", band, basis: Basis::Calibrated, source: "", reading: "" };
    let rate = |time| 32.0 / nanoseconds(time) * 1e3;
    let read = [(0, 305.0, "002:235"), (8, 220.0, "002:236")].map(|(hops, published, source)| {
        let title = Title::from("read").over(Quantity::hops(hops));
        family.at(source).row(title, published, rate(times.read(Mode::BufferLine, hops)))
    });
    let write = [(0, 220.0, "002:237"), (8, 173.0, "002:238")].map(|(hops, published, source)| {
        let title = Title::from("write").over(Quantity::hops(hops));
        family.at(source).row(title, published, rate(times.write(Mode::BufferLine, hops)))
    });
    let mut rows: Vec<Row> = read.into_iter().chain(write).collect();
    rows.extend(read_and_write(chip));
    rows
}

/// Returns the rows on buffers and the first cache, from words of the slides and from the slope of a line.
fn read_and_write(chip: &Chip) -> [Row; 3] {
    let times = preset(chip, STANDARD).times();
    let of = |mode, hops| nanoseconds(times.read(mode, hops));
    let (read, write) = (of(Mode::BufferLine, 0), nanoseconds(times.write(Mode::BufferLine, 0)));
    let first = nanoseconds(times.first_cache.map(|span| span.over(0)));
    let hop = (of(Mode::BufferLine, 8) - read) / 8.0;
    let (band, basis) = (Band::Within(15.0), Basis::Calibrated);
    let family = Family { deck: "", unit: "", band, basis, source: "002:181", reading: "" };
    [
        family.row("a line of the core's own buffer / one of its first cache, read", 4.0, read / first),
        family.at("002:187").row("a line of the core's own buffer, write / read", 1.4, write / read),
        Family { unit: "ns", ..family.at("002:197") }.row("64 B, what a hop adds to a line", 5.0, hop),
    ]
}

fn cycles(chip: &Chip) -> Vec<Row> {
    // Mode, name, write overhead, gap near and far, read near and far.
    let table = [
        (Mode::BufferWord, "word of a buffer", 5.0, [51.0, 84.0], [58.0, 91.0]),
        (Mode::BufferLine, "line of a buffer", 29.0, [78.0, 108.0], [67.0, 97.0]),
        (Mode::MemoryWord, "word of memory", 11.0, [106.0, 137.0], [117.0, 145.0]),
        (Mode::MemoryThrough, "line of memory, written through", 35.0, [130.0, 161.0], [123.0, 153.0]),
        (Mode::MemoryCached, "line of memory, cached", 98.0, [107.0, 123.0], [150.0, 174.0]),
    ];
    let band = Band::Within(10.0);
    let family =
        Family { deck: "V6", unit: "", band, basis: Basis::Calibrated, source: "004:784", reading: "" };
    let preset = preset(chip, FAST);
    let times = preset.times();
    let mut rows = Vec::new();
    for (mode, name, issue, gap, read) in table {
        let mut row = |what: &str, source, published, time| {
            let ours = core_cycles(time, preset);
            rows.push(family.at(source).row(format!("{name}, {what}"), published, ours));
        };
        row("issue of a write", "004:784", issue, times.issue(mode));
        for (end, hops, far) in [(0, 0, "near"), (1, 8, "far")] {
            row(&format!("write, {far}"), "004:785", gap[end], times.write(mode, hops));
            row(&format!("read, {far}"), "004:786", read[end], times.read(mode, hops));
        }
    }
    rows.extend(off_chip(times));
    rows
}

/// "Access to the off-chip memory takes around two times longer than to the on-chip memory."
fn off_chip(times: TimingTable<HopCost>) -> Vec<Row> {
    let (band, basis) = (Band::Within(25.0), Basis::Derived);
    let reading = "2: “around two times longer than to the on-chip memory”";
    let family = Family { deck: "", unit: "", band, basis, source: "004:797", reading };
    let pairs =
        [("word", Mode::MemoryWord, Mode::BufferWord), ("line", Mode::MemoryCached, Mode::BufferLine)];
    let mut rows = Vec::new();
    for (name, memory, buffer) in pairs {
        for (hops, far) in [(0, "near"), (8, "far")] {
            let ratio = nanoseconds(times.read(memory, hops)) / nanoseconds(times.read(buffer, hops));
            rows.push(family.row(format!("read of a {name}, memory / buffer, {far}"), 2.0, ratio));
        }
    }
    rows
}

/// V4 of the validation deck.
pub(crate) const CACHES: Experiment = Experiment {
    name: "memory",
    about: "lines read by each core from memory and from its first cache, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    instructions: "",
    rows: RowSource::Model(caches),
};

/// V7 of the validation deck.
pub const CONTROLLER: Experiment = Experiment {
    name: "controller",
    about: "cores that read from one memory controller at once: time of a line against alone, at 800/1600/1066",
    source: "Rotta et al., MARC 2012, paper 3: three do not interfere, beyond it grows linearly",
    instructions: "",
    rows: RowSource::Model(controller),
};

/// Accesses to lines of shared memory.
pub const SHARED: Experiment = Experiment {
    name: "shared-memory",
    about: "core cycles of a line written through to shared memory by core 0, by controller, at 533/800/800",
    source: "Barrelfish technical note 005; its clocks are not stated",
    instructions: "",
    rows: RowSource::Model(shared),
};

/// V8 of the validation deck.
pub(crate) const FLUSH: Experiment = Experiment {
    name: "flush",
    about: "core cycles of a software flush of the second cache, at 800/1600/1066",
    source: "Rotta et al., MARC 2012, paper 3",
    instructions: "",
    rows: RowSource::Model(flush),
};

fn caches(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let cores = chip.topology().cores();
    let of_core = |core| nanoseconds(times.read(Mode::MemoryCached, chip.hops_to_memory(CoreId(core))));
    let mean = (0..cores).map(of_core).sum::<f64>() / f64::from(cores);
    let first = nanoseconds(times.first_cache.map(|span| span.over(0)));
    let band = Band::Within(10.0);
    let family = Family { deck: "V4", unit: "MB/s", band, basis: Basis::Calibrated, source: "", reading: "" };
    let alone = Family { band: Band::Unpublished, basis: Basis::Predicted, ..family };
    // The decision that a controller follows the memory's clock was made with the figure for twelve cores in view.
    vec![
        family.at("002:240").row("memory, one core at the mean distance", 160.0, 32.0 / mean * 1e3),
        family.at("002:241").row(
            "memory, each of 12 cores, 3 at each controller",
            130.0,
            slowest_bandwidth(chip, &THREE_EACH),
        ),
        alone.row(
            "memory, each of 48 cores",
            f64::NAN,
            slowest_bandwidth(chip, &(0..48).collect::<Vec<u32>>()),
        ),
        family.at("002:239").row("first cache", 1220.0, 32.0 / first * 1e3),
    ]
}

/// Cores of the tiles on the diagonals nearest to the controllers, three for each.
const THREE_EACH: [u32; 12] = [0, 1, 2, 10, 11, 8, 24, 25, 26, 34, 35, 32];

/// Number of distinct lines that each core reads.
const READER_LINES: u32 = 500;

/// Returns the nanoseconds of a read of a line if all these cores read their own memory at the same time.
fn readers(chip: &Chip, clocks: &str, cores: &[u32]) -> f64 {
    let bare = bare(chip, clocks);
    let took = run(&bare, cores.iter().copied(), |core| async move {
        for line in 0..READER_LINES {
            core.load(u64::from(line)).await;
        }
    });
    took.nanoseconds() / f64::from(READER_LINES)
}

/// Returns the bandwidth of the slowest of these cores, in MB/s.
fn slowest_bandwidth(chip: &Chip, cores: &[u32]) -> f64 {
    32.0 / readers(chip, STANDARD, cores) * 1e3
}

fn controller(chip: &Chip) -> Vec<Row> {
    // The cores of one controller, the nearest first.
    let mut cores: Vec<u32> = [0, 12, 2, 14, 4, 16].into_iter().flat_map(|core| [core, core + 1]).collect();
    cores.sort_by_key(|&core| chip.hops_to_memory(CoreId(core)));
    let of = |count: usize| {
        let alone: f64 = cores[..count].iter().map(|&core| readers(chip, FAST, &[core])).fold(0.0, f64::max);
        readers(chip, FAST, &cores[..count]) / alone
    };
    // The source says in words that up to three cores do not interfere and that the time grows linearly beyond.
    let band = Band::Within(10.0);
    let reading = "readers / 3, at least 1: “up to three cores do not interfere”, “increases linearly”";
    let family = Family { deck: "V7", unit: "", band, basis: Basis::Derived, source: "004:799", reading };
    let row = |count: usize| {
        let published = (count as f64 / 3.0).max(1.0);
        family.row(format!("{count} readers"), published, of(count))
    };
    let mut rows: Vec<Row> = [1, 2, 3, 4, 6, 9, 12].into_iter().map(row).collect();
    rows.extend(all_controllers(chip, Family { deck: "", ..family }));
    rows
}

/// Returns the rows on all four controllers, and on a message buffer that many cores read.
fn all_controllers(chip: &Chip, family: Family) -> [Row; 3] {
    let alone = readers(chip, FAST, &[THREE_EACH[0]]);
    let more: Vec<u32> = THREE_EACH.into_iter().chain([3, 9, 27, 33]).collect();
    let full = family.reading("1: “at least 12 cores are necessary to utilize the memory bandwidth”");
    let beyond = family.reading("16 / 12: “at least 12 cores are necessary to utilize the memory bandwidth”");
    let buffer = family.reading("1: “can handle more than 15 cores before congestion is visible”");
    [
        full.row("12 readers, 3 at each controller", 1.0, readers(chip, FAST, &THREE_EACH) / alone),
        beyond.row("16 readers, 4 at each controller", 16.0 / 12.0, readers(chip, FAST, &more) / alone),
        buffer.row(
            "15 readers of one message buffer",
            1.0,
            buffer_readers(chip, 15) / buffer_readers(chip, 1),
        ),
    ]
}

/// Returns the nanoseconds of a read of a line of core 0's buffer by the farthest of `count` cores that read at the
/// same time.
fn buffer_readers(chip: &Chip, count: u32) -> f64 {
    let took = run(&bare(chip, FAST), (48 - count)..48, |core| async move {
        for line in 0..READER_LINES {
            core.read_line(CoreId(0), line % 256).await;
        }
    });
    took.nanoseconds() / f64::from(READER_LINES)
}

fn shared(chip: &Chip) -> Vec<Row> {
    const LINES: u32 = 100;
    let source = "Barrelfish technical note 005";
    let family = Family {
        deck: "",
        unit: "",
        band: Band::Within(10.0),
        basis: Basis::Calibrated,
        source,
        reading: "",
    };
    let clock = preset(chip, STANDARD).clocks().core.megahertz() / 1e3;
    let row = |(controller, published): (u32, f64)| {
        let bare = bare(chip, STANDARD);
        let took = run(&bare, [0], |core| async move {
            for line in 0..LINES {
                core.write_shared(ControllerId(controller), u64::from(line), [1; 32]).await;
            }
        });
        let ours = took.nanoseconds() * clock / f64::from(LINES);
        family.row(format!("through controller {controller}"), published, ours)
    };
    [(0, 122.0), (1, 146.0), (2, 134.0), (3, 158.0)].into_iter().map(row).collect()
}

fn flush(chip: &Chip) -> Vec<Row> {
    let preset = preset(chip, FAST);
    let times = preset.times();
    let (band, source) = (Band::Within(10.0), "004:801");
    let family = Family { deck: "V8", unit: "", band, basis: Basis::Calibrated, source, reading: "" };
    // Computed by the formula of the source.
    let derived = Family { basis: Basis::Derived, ..family }.reading("“300N+7,500”, N lines");
    let row = |family: Family, lines, title: Option<&str>, published| {
        let length = Quantity::lines(lines);
        let length = title.map_or(length.clone(), |title| length.with_title(title));
        family.row(length, published, core_cycles(times.flush(lines), preset))
    };
    vec![
        row(family, 1, None, 8_000.0),
        row(derived, 64, None, 300.0 * 64.0 + 7_500.0),
        row(family, 128, Some("128 lines (4 KiB)"), 47_100.0),
        row(family, 8_192, Some("all 8,192 lines"), 582_000.0),
    ]
}

/// V12 of the validation deck, as far as the chip file can contain it.
pub const C6678: Experiment = Experiment {
    name: "c6678",
    about: "an interrupt and the shared memory of the C6678",
    source: "OpenComRTOS on the C6678, MARC 2012, paper 10",
    instructions: "",
    rows: RowSource::Model(texas),
};

/// V19 of the validation deck.
pub(crate) const GREEN: Experiment = Experiment {
    name: "green500",
    about: "power of a node of Blue Gene/P at Linpack",
    source: "Green500, November 2007: 31.10 kW for a rack of 1,024 nodes",
    instructions: "",
    rows: RowSource::Model(blue_gene),
};

fn find(name: &str) -> Chip {
    Chip::find(name).unwrap_or_else(|error| panic!("the chip comes with Isles: {error}"))
}

fn texas(_: &Chip) -> Vec<Row> {
    let chip = find("c6678");
    let times = chip.default_preset().times();
    let (band, source) = (Band::Within(15.0), "004:2089");
    let family = Family { deck: "V12", unit: "ns", band, basis: Basis::Calibrated, source, reading: "" };
    let rate = Family { unit: "MB/s", source: "004:2167", ..family };
    let line = nanoseconds(times.read(Mode::MemoryCached, 0));
    vec![
        family.row(
            "from an interrupt to its handler",
            136.0,
            nanoseconds(times.interrupt.map(|span| span.over(0))),
        ),
        rate.row(
            Title::from("buffer in shared memory, copied to L2").over(Quantity::length(32 << 10)),
            772.0,
            64.0 / line * 1e3,
        ),
    ]
}

fn blue_gene(_: &Chip) -> Vec<Row> {
    let chip = find("bluegene-p");
    let model = &chip.power_models()[0];
    let table = chip.voltage_table(model.voltages()).expect("the model names a table of the file");
    let point = table.operating_point(chip.default_preset().clocks().core).expect("the table has its rate");
    let nodes = f64::from(chip.topology().tiles());
    let ours = model.chip(chip.topology().cores(), Load::Compute, point).watts() / nodes;
    // The figure of a rack: 31.10 kW for 1,024 nodes.
    let (band, source) = (Band::Within(5.0), "Green500, November 2007");
    let reading = "31.10 kW / 1,024 nodes";
    let family = Family { deck: "V19", unit: "W", band, basis: Basis::Derived, source, reading };
    vec![family.row("a node, all cores at work", 30.4, ours)]
}
