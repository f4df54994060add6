//! Interrupts from core to core through the one port of the controller.

use super::Experiment;
use super::access::{STANDARD, core_cycles, preset};
use super::row::{Band, Basis, Family, Row};
use isles_chip::Chip;

/// V10, the interrupts.
pub const INTERRUPTS: Experiment = Experiment {
    name: "interrupts",
    about: "core cycles from the raising of an interrupt to its arrival at the last target, at 533/800/800",
    source: "Asynchronous broadcast on the SCC, 6th MARC symposium (2012), paper 5",
    rows: interrupts,
};

fn interrupts(chip: &Chip) -> Vec<Row> {
    let port = chip.interrupts().expect("the chip file of the SCC has an interrupt controller");
    let preset = preset(chip, STANDARD);
    let times = preset.times();
    let family = Family { deck: "V10", unit: "", band: Band::Within(20.0), basis: Basis::Calibrated };
    let row = |figure: &str, published, targets| {
        family.row(figure, published, core_cycles(times.interrupt(targets, port), preset))
    };
    vec![row("1 target", 2_000.0, 1), row("20 targets", 2_000.0, 20), row("48 targets", 6_000.0, 48)]
}
