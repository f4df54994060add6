//! Power of the chip by its clock.

use super::quantity::{Quantity, Title};
use super::row::{Band, Basis, Family, Row};
use super::{Experiment, RowSource};
use crate::fit::{Form, Measurement, fit, table};
use crate::power::MEASURED;
use isles_chip::Chip;
use isles_chip::energy::{Load, OperatingPoint, PowerModel};
use isles_chip::quantity::{Microvolts, Rate};

/// V16 of the validation deck.
pub(crate) const MANYMAN: Experiment = Experiment {
    name: "power",
    about: "the chip's power by clock and load, model `manyman`",
    source: "van der Woning and Bakker (ManyMan), MARC 2012, paper 8; the bound is that of Cichowski's fit",
    instructions: "",
    rows: RowSource::Model(manyman),
};

/// V17 of the validation deck.
pub(crate) const CICHOWSKI: Experiment = Experiment {
    name: "power-preset",
    about: "the chip's power by clock, model `cichowski`, from the published coefficients",
    source: "Cichowski et al., MARC 2012, paper 9",
    instructions: "",
    rows: RowSource::Model(cichowski),
};

/// V18 of the validation deck.
pub const MESH: Experiment = Experiment {
    name: "power-mesh",
    about: "power of all routers of the mesh at full load",
    source: "Intel, JSSC 2011: 550 mW a router at 2 GHz and 1.1 V with 1.28 Tb/s",
    instructions: "",
    rows: RowSource::Model(mesh),
};

fn point(megahertz: f64, volts: f64) -> OperatingPoint {
    let rate = Rate::new((megahertz * 1e6) as u64, 1).expect("a measured clock is one");
    OperatingPoint { rate, voltage: Microvolts((volts * 1e6).round() as u32) }
}

fn model<'a>(chip: &'a Chip, name: &str) -> &'a PowerModel {
    chip.power_model(name).expect("the chip file of the SCC has the models of the papers")
}

fn manyman(chip: &Chip) -> Vec<Row> {
    let measured = table::read("scc-power.csv", MEASURED).expect("the table has no fault");
    let model = model(chip, "manyman");
    let (band, source) = (Band::Within(5.6), "004:1723-1730");
    let family = Family { deck: "V16", unit: "W", band, basis: Basis::Calibrated, source, reading: "" };
    let row = |measured: &Measurement| {
        let megahertz = measured.rates.mean(|rate| rate);
        let at = point(megahertz, measured.volts.unwrap_or_default());
        let ours = model.chip(chip.topology().cores(), measured.load, at).watts();
        let load = if measured.load == Load::Compute { "loaded" } else { "idle" };
        family.row(Title::from(Quantity::clock(megahertz)).and(load), measured.watts, ours)
    };
    let mut rows: Vec<Row> = measured.iter().map(row).collect();
    let mean = rows.iter().filter_map(Row::error).map(f64::abs).sum::<f64>() / rows.len() as f64;
    // The 5.58 % (004:1886) belong to another model and other powers.
    let unpublished = Family { unit: "%", band: Band::Unpublished, source: "", ..family };
    rows.push(unpublished.row("mean error of the 16", 0.0, mean));
    let fit = fit(Form::Voltage, &measured).expect("the table determines the form");
    let left_out = fit.left_out.expect("each clock can be left out").mean * 100.0;
    let predicted = Family { basis: Basis::Predicted, ..unpublished };
    rows.push(predicted.row("mean error of a clock that was left out of the fit", 0.0, left_out));
    rows
}

fn cichowski(chip: &Chip) -> Vec<Row> {
    let published = [
        (800, 72.6),
        (533, 37.7),
        (400, 29.2),
        (320, 26.2),
        (267, 24.9),
        (229, 24.2),
        (200, 23.8),
        (100, 23.1),
    ];
    let model = model(chip, "cichowski");
    // Computed from the published coefficients.
    let (band, source) = (Band::Within(0.3), "004:1886");
    let reading = "48 (b f^3 + s f) + 23 W, f in MHz: b “2.015”, s “10^-6”";
    let family = Family { deck: "V17", unit: "W", band, basis: Basis::Derived, source, reading };
    let row = |(megahertz, watts): (u32, f64)| {
        let at = point(f64::from(megahertz), 1.0);
        let ours = model.chip(chip.topology().cores(), Load::Compute, at).watts();
        family.row(Quantity::clock(f64::from(megahertz)), watts, ours)
    };
    published.into_iter().map(row).collect()
}

fn mesh(chip: &Chip) -> Vec<Row> {
    // The figure of one router, 550 mW.
    let (band, source) = (Band::Within(5.0), "Intel, JSSC 2011");
    let reading = "24 routers x 550 mW";
    let family = Family { deck: "V18", unit: "W", band, basis: Basis::Derived, source, reading };
    let power = chip.mesh_power().expect("the chip file of the SCC has the power of its mesh");
    let fast = Rate::new(2_000_000_000, 1).expect("it is a rate");
    let ours = power.router_at_full_load(fast).watts() * f64::from(chip.topology().tiles());
    vec![family.row("24 routers at 2 GHz", 13.2, ours)]
}
