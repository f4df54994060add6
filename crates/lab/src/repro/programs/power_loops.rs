//! The power model of Cichowski, Keller and Kessler, fitted to powers of the modelled chip as they fitted it to theirs.
//!
//! Their 35 settings of mixed domains (004:1859) and their four programs are 140 runs of `isles run power-loops`. The
//! power of each is that of the chip's own model `manyman`, which was fitted to another paper's powers. The form
//! `b f³ + s f + c` is fitted to them by relative differences, where the paper uses absolute ones. Invariant: no figure
//! that is compared here is an input of that model.

use super::super::quantity::Title;
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{CORES, SCC};
use crate::fit::{Form, Measurement, Point, Rates, fit};
use isles_app::frame::NO_FILES;
use isles_app::{Failure, runs};
use isles_chip::energy::Load;

/// The fit of paper 9.
pub(crate) const POWER_LOOPS: Experiment = Experiment {
    name: "power-loops",
    about: "a power model fitted to 35 settings of mixed domains and four programs, with the chip's model `manyman`",
    source: "Cichowski, Keller, Kessler, MARC 2012, paper 9, section III",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Dividers of the high and of the low clock: 800, 533 and 400 MHz; 200 and 100 MHz.
const HIGH: [u32; 3] = [2, 3, 4];
const LOW: [u32; 2] = [8, 16];

/// Number of clock domains, and the clock that is divided, in MHz.
const DOMAINS: u32 = 6;
const CLOCK: f64 = 1_600.0;

/// The programs.
const PROGRAMS: [&str; 4] = ["increment", "zeros", "most", "seventh"];

/// Duration of the loop of a run, in milliseconds; half of theirs.
const MILLISECONDS: u32 = 5_000;

/// The model whose powers are fitted.
const MODEL: &str = "manyman";

/// Dividers of the clock domains: `high` for the first `number` of them, `low` for the others.
#[derive(Clone, Copy)]
struct MixedDomains {
    number: u32,
    high: u32,
    low: u32,
}

impl MixedDomains {
    /// Returns the 35 settings: each mixture of a high and a low clock, and each clock for all domains.
    fn all() -> Vec<MixedDomains> {
        let mixed = HIGH.into_iter().flat_map(|high| LOW.map(|low| (high, low)));
        let mixed =
            mixed.flat_map(|(high, low)| (1..DOMAINS).map(move |number| MixedDomains { number, high, low }));
        let uniform = HIGH.into_iter().chain(LOW);
        let uniform = uniform.map(|divider| MixedDomains { number: DOMAINS, high: divider, low: divider });
        mixed.chain(uniform).collect()
    }

    fn rates(self) -> Rates {
        let divider = |domain| if domain < self.number { self.high } else { self.low };
        Rates::of(&(0..DOMAINS).map(|domain| CLOCK / f64::from(divider(domain))).collect::<Vec<f64>>())
    }
}

fn rows() -> Result<Vec<Row>, Failure> {
    let settings = MixedDomains::all();
    let all: Vec<(MixedDomains, &str)> =
        settings.iter().flat_map(|mixed| PROGRAMS.map(|program| (*mixed, program))).collect();
    let watts = runs::all(all.len(), "runs", |number| {
        let (mixed, program) = all[number];
        watts(mixed, program)
    })?;
    let measured = all.iter().zip(watts).map(|((mixed, _), watts)| {
        let rates = mixed.rates();
        Measurement { line: 0, rates, volts: None, load: Load::Compute, watts }
    });
    let measured: Vec<Measurement> = measured.collect();
    let fitted = fit(Form::Rate { exponent: Some(3.0) }, &measured);
    let fitted = fitted.map_err(|error| Failure::Ended(format!("the powers cannot be fitted: {error}")))?;
    let value = |name: &str| {
        let found = fitted.coefficients.iter().find(|coefficient| coefficient.name == name);
        found.map_or(f64::NAN, |coefficient| coefficient.value)
    };
    let (band, source) = (Band::Within(25.0), "004:1886");
    let percent = Family { deck: "", unit: "%", band, basis: Basis::Predicted, source, reading: "" };
    let off = |point: &Point| point.fitted / point.measured.watts - 1.0;
    let (least, most) = fitted
        .points
        .iter()
        .map(off)
        .fold((0.0, 0.0), |(least, most): (f64, f64), off| (least.min(off), most.max(off)));
    let number = fitted.points.len() as f64;
    let mean_power = measured.iter().map(|point| point.watts).sum::<f64>() / number;
    let mean_error =
        fitted.points.iter().map(|point| (point.fitted - point.measured.watts).abs()).sum::<f64>() / number;
    let comparable =
        Family { unit: "", band: Band::Within(15.0), basis: Basis::Derived, ..percent }.at("004:1884");
    let comparable =
        comparable.reading("1: “the different microbenchmark settings are very similar to each other”");
    let lower = Family { band: Band::AtMost, basis: Basis::Predicted, ..comparable }.at("004:1884");
    let lower =
        lower.reading("≤ 1: “with decreasing the high frequency the power consumption also decreases”");
    let settings_row = Family { unit: "", band: Band::Within(0.0), source: "004:1859", ..percent };
    let core = |unit| Family { unit, ..percent };
    Ok(vec![
        settings_row.row("settings of the domains", 35.0, settings.len() as f64),
        percent.row("mean error, of the mean power", 5.58, mean_error / mean_power * 100.0),
        percent.row("least relative error", -14.66, least * 100.0),
        percent.row("largest relative error", 24.73, most * 100.0),
        core("nW/MHz^3").row("rising part of a core", 2.015, value("rising") / f64::from(CORES) * 1e9),
        core("W").row(Title::from("constant part of the chip"), 23.0, value("constant")),
        core("W/MHz").row("linear part of a core", 1e-6, value("linear") / f64::from(CORES)),
        core("W").row("mean error", 1.95, mean_error),
        comparable.row("most / least power of the four programs at a setting", 1.0, unlike(&measured)),
        lower.row(
            "power at 533 MHz / 800, at most at any number of domains",
            1.0,
            lowered(&all, &measured, [3, 2]),
        ),
        lower.row(
            "power at 400 MHz / 533, at most at any number of domains",
            1.0,
            lowered(&all, &measured, [4, 3]),
        ),
    ])
}

/// Returns the largest ratio of the powers of two programs at the same setting.
fn unlike(measured: &[Measurement]) -> f64 {
    let ratio = |programs: &[Measurement]| {
        let watts = programs.iter().map(|point| point.watts);
        watts.clone().fold(0.0, f64::max) / watts.fold(f64::INFINITY, f64::min)
    };
    measured.chunks(PROGRAMS.len()).map(ratio).fold(0.0, f64::max)
}

/// Returns the largest ratio of the power with a lower high clock to that with a higher one, everything else being
/// equal.
fn lowered(all: &[(MixedDomains, &str)], measured: &[Measurement], [lower, higher]: [u32; 2]) -> f64 {
    let is_mixed = |mixed: &MixedDomains, high| mixed.high == high && mixed.low != high;
    let of = |high| all.iter().zip(measured).filter(move |((mixed, _), _)| is_mixed(mixed, high));
    let ratios = of(lower).zip(of(higher)).map(|((_, lower), (_, higher))| lower.watts / higher.watts);
    ratios.fold(0.0, f64::max)
}

/// Returns the mean power of a run.
fn watts(mixed: MixedDomains, program: &str) -> Result<f64, Failure> {
    let MixedDomains { number, high, low } = mixed;
    let words = format!(
        "--high-domains {number} --high-divider {high} --low-divider {low} --program {program} \
         --milliseconds {MILLISECONDS} --machine {SCC} --places {CORES}"
    );
    let own: Vec<String> = words.split_whitespace().chain(NO_FILES).map(str::to_owned).collect();
    let summary = runs::summary("power-loops", &own, [])?;
    let models = summary["energy"]["models"].as_array();
    let model = models.and_then(|models| models.iter().find(|model| model["name"] == MODEL));
    let watts = model.and_then(|model| model["mean_w"].as_f64());
    watts.ok_or_else(|| Failure::Ended(format!("a run of power-loops has no power by {MODEL}")))
}
