//! Programs on the bare cores of the SCC, for the experiments; and interrupts from core to core, whose registers are
//! behind one port.

use super::access::{STANDARD, preset};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, RowSource};
use isles_chip::Chip;
use isles_chip::bare::{BareChip, BareCore};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// Returns the SCC at a preset of its clocks, idle.
pub fn bare(chip: &Chip, clocks: &str) -> BareChip {
    BareChip::new(chip, preset(chip, clocks)).expect("the chip file of the SCC has all that bare cores need")
}

/// Runs a program on `cores` and returns the time until the last one ends.
pub fn run<F: Future<Output = ()> + 'static>(
    bare: &BareChip,
    cores: impl IntoIterator<Item = u32>,
    program: impl Fn(BareCore) -> F,
) -> Picoseconds {
    let took = bare.run(cores.into_iter().map(CoreId), program);
    took.unwrap_or_else(|deadlock| panic!("an experiment: {deadlock}"))
}

/// Returns bytes that differ from line to line.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// V10 of the validation deck: the interrupts.
pub(crate) const INTERRUPTS: Experiment = Experiment {
    name: "interrupts",
    about: "core cycles from the raising of an interrupt until cores have it, at 533/800/800",
    source: "Asynchronous broadcast on the SCC, MARC 2012, paper 5, figure 2",
    instructions: "",
    rows: RowSource::Model(interrupts),
};

/// Number of all cores, and of the cores that a first instruction can address.
const CORES: u32 = 48;
const FIRST_MASK: u32 = 32;

/// Reaction of a core to an interrupt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reaction {
    /// Reads and resets the registers of the controller, as in figure 2a.
    Registers,
    /// Continues without accessing them, as in figure 2b.
    Nothing,
}

fn interrupts(chip: &Chip) -> Vec<Row> {
    let (band, source) = (Band::Within(20.0), "004:1108");
    let family = Family { deck: "V10", unit: "", band, basis: Basis::Calibrated, source, reading: "" };
    let last =
        |targets| interrupt_latencies(chip, targets, Reaction::Registers).into_iter().fold(0.0, f64::max);
    let row = |family: Family, targets: u32, published: f64| {
        let name = if targets == 1 { "1 target".to_owned() } else { format!("{targets} targets") };
        family.row(name, published, last(targets))
    };
    // "It is barely noticeable for less than 20 cores."
    let derived = Family { basis: Basis::Derived, ..family };
    let derived = derived.reading("as 1 target: “barely noticeable for less than 20 cores”");
    let mut rows = vec![row(family, 1, 2_000.0), row(derived, 20, 2_000.0), row(family, CORES, 6_000.0)];
    rows.push(family.at("004:1114").row("48 targets / 1", 3.0, last(CORES) / last(1)));
    rows.extend(without_registers(chip, Family { basis: Basis::Predicted, source: "004:1110", ..family }));
    rows
}

/// Returns the rows on figure 2b: no core waits if none accesses the registers, and the remark on the small difference.
fn without_registers(chip: &Chip, family: Family) -> Vec<Row> {
    let had = interrupt_latencies(chip, CORES, Reaction::Nothing);
    let (first, second) = had.split_at(FIRST_MASK as usize);
    let last = |had: &[f64]| had.iter().copied().fold(0.0, f64::max);
    let mean = |had: &[f64]| had.iter().sum::<f64>() / had.len() as f64;
    let shape = Family { band: Band::AtMost, ..family };
    let later = shape.at("004:1112").reading("≤ 1: “slightly more time for cores 32 to 47”");
    let nearer = shape.at("004:1110-1112").reading("≤ 1: “shorter for”, “cores closer to this router”");
    let port = chip.interrupts().expect("the chip file of the SCC has a controller").tile;
    let hops = |core: u32| chip.topology().hops(chip.topology().tile_of(CoreId(core)), port);
    let extreme = |cores: std::ops::Range<u32>, is_far: bool| {
        let by_way = |core: &u32| hops(*core);
        let core = if is_far { cores.max_by_key(by_way) } else { cores.min_by_key(by_way) };
        had[core.expect("there are some") as usize]
    };
    vec![
        family.row("48 targets that avoid the registers", 2_000.0, last(&had)),
        later.row("the same, cores 0 to 31 / 32 to 47, mean", 1.0, mean(first) / mean(second)),
        nearer.row(
            "the same, the core nearest to the controller / the farthest",
            1.0,
            extreme(0..FIRST_MASK, false) / extreme(0..FIRST_MASK, true),
        ),
    ]
}

/// Returns the times at which the first `targets` cores receive the interrupt that core 0 raises for them and itself,
/// in core cycles.
fn interrupt_latencies(chip: &Chip, targets: u32, reaction: Reaction) -> Vec<f64> {
    let bare = bare(chip, STANDARD);
    let had = Rc::new(RefCell::new(vec![0.0; targets as usize]));
    let seen = Rc::clone(&had);
    run(&bare, 0..CORES, move |core| {
        let had = Rc::clone(&seen);
        async move {
            let me = core.id().0;
            if me == 0 {
                core.interrupt(&(0..targets).map(CoreId).collect::<Vec<_>>()).await;
            }
            if me < targets {
                core.wait_any(0..0, 0).await;
                if reaction == Reaction::Registers {
                    core.take_interrupt().await;
                }
                had.borrow_mut()[me as usize] = core.now().nanoseconds();
            }
        }
    });
    let gigahertz = preset(chip, STANDARD).clocks().core.megahertz() / 1e3;
    had.take().into_iter().map(|nanoseconds| nanoseconds * gigahertz).collect()
}
