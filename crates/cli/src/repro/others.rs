//! What the files of the other chips hold of published figures.
//!
//! No program runs: neither chip has message buffers, so there are no bare cores of them.

use super::access::nanoseconds;
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, Rows};
use isles_chip::Chip;
use isles_chip::cost::Mode;
use isles_chip::energy::Load;

/// V12, what of it the file can hold.
pub const C6678: Experiment = Experiment {
    name: "c6678",
    about: "an interrupt and the memory of the C6678",
    source: "OpenComRTOS on the C6678, 6th MARC symposium (2012), paper 10",
    instructions: "",
    rows: Rows::Model(texas),
};

/// V19.
pub const GREEN: Experiment = Experiment {
    name: "green500",
    about: "power of a node of Blue Gene/P at Linpack",
    source: "Green500, November 2007: 31.10 kW for a rack of 1,024 nodes",
    instructions: "",
    rows: Rows::Model(blue_gene),
};

fn find(name: &str) -> Chip {
    Chip::find(name).unwrap_or_else(|error| panic!("the chip comes with Isles: {error}"))
}

fn texas(_: &Chip) -> Vec<Row> {
    let chip = find("c6678");
    let times = chip.default_preset().times();
    let family = Family { deck: "V12", unit: "ns", band: Band::Within(15.0), basis: Basis::Calibrated };
    let rate = Family { unit: "MB/s", ..family };
    let line = nanoseconds(times.read(Mode::MemoryCached, 0));
    vec![
        family.row(
            "from an interrupt to its handler",
            136.0,
            nanoseconds(times.interrupt.map(|span| span.over(0))),
        ),
        rate.row("memory, 32 KiB", 1_752.0, 64.0 / line * 1e3),
    ]
}

fn blue_gene(_: &Chip) -> Vec<Row> {
    let chip = find("bluegene-p");
    let model = &chip.power_models()[0];
    let table = chip.voltage_table(model.voltages()).expect("the model names a table of the file");
    let point = table.operating_point(chip.default_preset().clocks().core).expect("the table has its rate");
    let nodes = f64::from(chip.topology().tiles());
    let ours = model.chip(chip.topology().cores(), Load::Compute, point).watts() / nodes;
    let family = Family { deck: "V19", unit: "W", band: Band::Within(5.0), basis: Basis::Calibrated };
    vec![family.row("a node, all cores at work", 30.4, ours)]
}
