//! Caches and the memory behind the controllers.

use super::Experiment;
use super::access::{FAST, STANDARD, core_cycles, nanoseconds, preset};
use super::row::{Band, Basis, Family, Row};
use isles_chip::Chip;
use isles_chip::cost::Mode;
use isles_chip::topology::CoreId;

/// V4, of a core alone.
pub const CACHES: Experiment = Experiment {
    name: "caches",
    about: "lines read by one core alone from memory and from its first cache, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    rows: caches,
};

/// V8.
pub const FLUSH: Experiment = Experiment {
    name: "flush",
    about: "core cycles of a software flush of the second cache, at 800/1600/1066",
    source: "Rotta et al., 6th MARC symposium (2012), paper 3",
    rows: flush,
};

fn caches(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let cores = chip.topology().cores();
    let of_core = |core| nanoseconds(times.read(Mode::MemoryCached, chip.hops_to_memory(CoreId(core))));
    let mean = (0..cores).map(of_core).sum::<f64>() / f64::from(cores);
    let first = nanoseconds(times.first_cache.map(|span| span.over(0)));
    let family = Family { deck: "V4", unit: "MB/s", band: Band::Within(10.0), basis: Basis::Calibrated };
    vec![
        family.row("memory, one core at the mean distance", 160.0, 32.0 / mean * 1e3),
        family.row("first cache", 1220.0, 32.0 / first * 1e3),
    ]
}

fn flush(chip: &Chip) -> Vec<Row> {
    let preset = preset(chip, FAST);
    let times = preset.times();
    let family = Family { deck: "V8", unit: "", band: Band::Within(10.0), basis: Basis::Calibrated };
    let row = |figure: &str, published, lines| {
        family.row(figure, published, core_cycles(times.flush(lines), preset))
    };
    vec![
        row("1 line", 8_000.0, 1),
        row("64 lines", 300.0 * 64.0 + 7_500.0, 64),
        row("128 lines (4 KiB)", 47_100.0, 128),
        row("all 8,192 lines", 582_000.0, 8_192),
    ]
}
