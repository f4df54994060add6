//! Programs on the bare cores of the SCC, for the experiments; and interrupts from core to core through the one port of
//! the controller.

use super::access::{STANDARD, preset};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, RowSource};
use isles_chip::Chip;
use isles_chip::bare::{BareChip, BareCore};
use isles_chip::quantity::Picoseconds;
use isles_chip::topology::CoreId;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

/// The SCC at a setting of its clocks, with nothing under way.
pub fn bare(chip: &Chip, clocks: &str) -> BareChip {
    BareChip::new(chip, preset(chip, clocks)).expect("the chip file of the SCC has all that bare cores need")
}

/// Runs a program on the first `cores` cores; how long until the last one has ended.
pub fn run<F: Future<Output = ()> + 'static>(
    bare: &BareChip,
    cores: impl IntoIterator<Item = u32>,
    program: impl Fn(BareCore) -> F,
) -> Picoseconds {
    let took = bare.run(cores.into_iter().map(CoreId), program);
    took.unwrap_or_else(|standstill| panic!("an experiment: {standstill}"))
}

/// Bytes that differ from line to line.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// V10, the interrupts.
pub const INTERRUPTS: Experiment = Experiment {
    name: "interrupts",
    about: "core cycles from the raising of an interrupt to its arrival at the last target, at 533/800/800",
    source: "Asynchronous broadcast on the SCC, 6th MARC symposium (2012), paper 5",
    instructions: "",
    rows: RowSource::Model(interrupts),
};

fn interrupts(chip: &Chip) -> Vec<Row> {
    let (band, source) = (Band::Within(20.0), "004:1108");
    let family = Family { deck: "V10", unit: "", band, basis: Basis::Calibrated, source };
    let row = |(targets, published): (u32, f64)| {
        let name = if targets == 1 { "1 target".to_owned() } else { format!("{targets} targets") };
        family.row(name, published, interrupt_cycles(chip, targets))
    };
    [(1, 2_000.0), (20, 2_000.0), (48, 6_000.0)].into_iter().map(row).collect()
}

/// From the first request of core 0 until the last of so many targets, itself last, goes on.
fn interrupt_cycles(chip: &Chip, targets: u32) -> f64 {
    let bare = bare(chip, STANDARD);
    let last = Rc::new(Cell::new(0.0));
    let seen = Rc::clone(&last);
    run(&bare, 0..48, move |core| {
        let last = Rc::clone(&seen);
        async move {
            let me = core.id().0;
            if me == 0 {
                let named: Vec<CoreId> = (1..=targets).map(|target| CoreId(target % 48)).collect();
                core.interrupt(&named).await;
            }
            if (1..=targets).any(|target| target % 48 == me) {
                core.wait_any(0..0, 0).await;
                last.set(core.now().nanoseconds().max(last.get()));
            }
        }
    });
    last.get() * preset(chip, STANDARD).clocks().core.megahertz() / 1e3
}
