//! Caches and the memory behind the controllers.

use super::access::{FAST, STANDARD, core_cycles, nanoseconds, preset};
use super::bare::{bare, run};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_chip::cost::Mode;
use isles_chip::topology::CoreId;
use isles_chip::{Chip, ControllerId};

/// V4.
pub const CACHES: Experiment = Experiment {
    name: "memory",
    about: "lines read by each core from memory and from its first cache, at 533/800/800",
    source: "SCC interconnect evaluation (2011)",
    instructions: "",
    rows: Rows::Model(caches),
};

/// V7.
pub const CONTROLLER: Experiment = Experiment {
    name: "controller",
    about: "cores that read from one memory controller at once: time of a line against alone, at 800/1600/1066",
    source: "Rotta et al., 6th MARC symposium (2012), paper 3: three do not interfere, beyond it grows linearly",
    instructions: "",
    rows: Rows::Model(controller),
};

/// Lines of shared memory.
pub const SHARED: Experiment = Experiment {
    name: "shared-memory",
    about: "core cycles of a line written through to shared memory by core 0, by controller, at 533/800/800",
    source: "Barrelfish technical note 005; its clocks are not stated",
    instructions: "",
    rows: Rows::Model(shared),
};

/// V8.
pub const FLUSH: Experiment = Experiment {
    name: "flush",
    about: "core cycles of a software flush of the second cache, at 800/1600/1066",
    source: "Rotta et al., 6th MARC symposium (2012), paper 3",
    instructions: "",
    rows: Rows::Model(flush),
};

fn caches(chip: &Chip) -> Vec<Row> {
    let times = preset(chip, STANDARD).times();
    let cores = chip.topology().cores();
    let of_core = |core| nanoseconds(times.read(Mode::MemoryCached, chip.hops_to_memory(CoreId(core))));
    let mean = (0..cores).map(of_core).sum::<f64>() / f64::from(cores);
    let first = nanoseconds(times.first_cache.map(|span| span.over(0)));
    let family = Family { deck: "V4", unit: "MB/s", band: Band::Within(10.0), basis: Basis::Calibrated };
    let alone = Family { band: Band::Unpublished, basis: Basis::Predicted, ..family };
    // That a controller follows the memory's clock was decided with the figure for twelve cores in view.
    // The cores of the tiles on the nearest diagonals, three for each controller.
    let twelve = [0, 1, 2, 10, 11, 8, 24, 25, 26, 34, 35, 32];
    vec![
        family.row("memory, one core at the mean distance", 160.0, 32.0 / mean * 1e3),
        family.row("memory, each of 12 cores, 3 at each controller", 130.0, bandwidth(chip, &twelve)),
        alone.row("memory, each of 48 cores", f64::NAN, bandwidth(chip, &(0..48).collect::<Vec<u32>>())),
        family.row("first cache", 1220.0, 32.0 / first * 1e3),
    ]
}

/// Lines that each core reads, no two of them the same.
const LINES: u32 = 500;

/// Nanoseconds that a line takes each of these cores, when all read at once; each of its own memory.
fn readers(chip: &Chip, clocks: &str, cores: &[u32]) -> f64 {
    let bare = bare(chip, clocks);
    let took = run(&bare, cores.iter().copied(), |core| async move {
        for line in 0..LINES {
            core.load(u64::from(line)).await;
        }
    });
    took.nanoseconds() / f64::from(LINES)
}

/// MB/s of the slowest of these cores.
fn bandwidth(chip: &Chip, cores: &[u32]) -> f64 {
    32.0 / readers(chip, STANDARD, cores) * 1e3
}

fn controller(chip: &Chip) -> Vec<Row> {
    // The cores of one controller, nearest first.
    let mut cores: Vec<u32> = [0, 12, 2, 14, 4, 16].into_iter().flat_map(|core| [core, core + 1]).collect();
    cores.sort_by_key(|&core| chip.hops_to_memory(CoreId(core)));
    let of = |count: usize| {
        let alone: f64 = cores[..count].iter().map(|&core| readers(chip, FAST, &[core])).fold(0.0, f64::max);
        readers(chip, FAST, &cores[..count]) / alone
    };
    let family = Family { deck: "V7", unit: "", band: Band::Within(10.0), basis: Basis::Calibrated };
    let row = |count: usize| {
        let published = (count as f64 / 3.0).max(1.0);
        family.row(format!("{count} readers"), published, of(count))
    };
    [1, 2, 3, 4, 6, 9, 12].into_iter().map(row).collect()
}

fn shared(chip: &Chip) -> Vec<Row> {
    const LINES: u32 = 100;
    let family = Family { deck: "", unit: "", band: Band::Within(10.0), basis: Basis::Calibrated };
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
