//! Accesses of one core on an idle chip: lines by distance, the bandwidths that follow, the table of cycles.

use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_chip::cost::Mode;
use isles_chip::quantity::Picoseconds;
use isles_chip::{Chip, Preset};

/// The clocks of most papers.
pub const STANDARD: &str = "533/800/800";

/// The clocks of the cycle table.
pub const FAST: &str = "800/1600/1066";

/// V1.
pub const LINES: Experiment = Experiment {
    name: "lines",
    about: "one line of a message buffer by distance, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    instructions: "",
    rows: Rows::Model(lines),
};

/// V2.
pub const BANDWIDTH: Experiment = Experiment {
    name: "bandwidth",
    about: "lines of a message buffer back to back, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    instructions: "",
    rows: Rows::Model(bandwidth),
};

/// V6.
pub const CYCLES: Experiment = Experiment {
    name: "cycles",
    about: "core cycles of an access from nearest to farthest, at 800/1600/1066",
    source: "Rotta et al., 6th MARC symposium (2012), paper 3",
    instructions: "",
    rows: Rows::Model(cycles),
};

/// A setting of the clocks that the chip file has.
pub fn preset<'a>(chip: &'a Chip, name: &str) -> &'a Preset {
    chip.preset(name).expect("the chip file of the SCC has the presets of the papers")
}

/// A time of the chip file of the SCC.
pub fn nanoseconds(time: Option<Picoseconds>) -> f64 {
    time.expect("the chip file of the SCC has this cost").nanoseconds()
}

/// The same in cycles of the core.
pub fn core_cycles(time: Option<Picoseconds>, preset: &Preset) -> f64 {
    nanoseconds(time) * preset.clocks().core.megahertz() / 1e3
}

fn lines(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let family = Family { deck: "V1", unit: "ns", band: Band::Within(5.0), basis: Basis::Calibrated };
    let read = (0..=8).map(|hops| {
        let ours = nanoseconds(times.read(Mode::BufferLine, hops));
        family.row(format!("read, {}", hops_text(hops)), 105.0 + 5.0 * f64::from(hops), ours)
    });
    let write = (0..=8).map(|hops| {
        let ours = nanoseconds(times.write(Mode::BufferLine, hops));
        family.row(format!("write, {}", hops_text(hops)), 145.0 + 5.0 * f64::from(hops), ours)
    });
    read.chain(write).collect()
}

fn bandwidth(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let family = Family { deck: "V2", unit: "MB/s", band: Band::Within(5.0), basis: Basis::Calibrated };
    let rate = |time| 32.0 / nanoseconds(time) * 1e3;
    let (read, write) =
        (|hops| times.read(Mode::BufferLine, hops), |hops| times.write(Mode::BufferLine, hops));
    vec![
        family.row("read, 0 hops", 305.0, rate(read(0))),
        family.row("read, 8 hops", 220.0, rate(read(8))),
        family.row("write, 0 hops", 220.0, rate(write(0))),
        family.row("write, 8 hops", 173.0, rate(write(8))),
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
    let family = Family { deck: "V6", unit: "", band: Band::Within(10.0), basis: Basis::Calibrated };
    let preset = preset(chip, FAST);
    let times = preset.times();
    let mut rows = Vec::new();
    for (mode, name, issue, gap, read) in table {
        let mut row = |what: &str, published, time| {
            rows.push(family.row(format!("{name}, {what}"), published, core_cycles(time, preset)));
        };
        row("issue of a write", issue, times.issue(mode));
        for (end, hops, far) in [(0, 0, "near"), (1, 8, "far")] {
            row(&format!("write, {far}"), gap[end], times.write(mode, hops));
            row(&format!("read, {far}"), read[end], times.read(mode, hops));
        }
    }
    rows
}

/// A distance in words.
pub fn hops_text(hops: u32) -> String {
    if hops == 1 { "1 hop".to_owned() } else { format!("{hops} hops") }
}
