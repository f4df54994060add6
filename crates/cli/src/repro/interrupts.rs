//! Interrupts from core to core through the one port of the controller.

use super::access::{STANDARD, preset};
use super::bare::{bare, run};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_chip::Chip;
use isles_chip::topology::CoreId;
use std::cell::Cell;
use std::rc::Rc;

/// V10, the interrupts.
pub const INTERRUPTS: Experiment = Experiment {
    name: "interrupts",
    about: "core cycles from the raising of an interrupt to its arrival at the last target, at 533/800/800",
    source: "Asynchronous broadcast on the SCC, 6th MARC symposium (2012), paper 5",
    instructions: "",
    rows: Rows::Model(interrupts),
};

fn interrupts(chip: &Chip) -> Vec<Row> {
    let family = Family { deck: "V10", unit: "", band: Band::Within(20.0), basis: Basis::Calibrated };
    let row = |(targets, published): (u32, f64)| {
        let name = if targets == 1 { "1 target".to_owned() } else { format!("{targets} targets") };
        family.row(name, published, cycles(chip, targets))
    };
    [(1, 2_000.0), (20, 2_000.0), (48, 6_000.0)].into_iter().map(row).collect()
}

/// From the first request of core 0 until the last of so many targets, itself last, goes on.
fn cycles(chip: &Chip, targets: u32) -> f64 {
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
