//! `[voltages.NAME]` and `[power.NAME]`: tables and models under the names of their authors; `[mesh_power]`.

use super::decode::{count, quantity};
use super::section::{Findings, Precision, Section};
use super::unit::{self, Dimension, Reason};
use crate::energy::{Load, MeshPower, OperatingPoint, PowerForm, PowerModel, VoltageTable};
use toml::de::DeValue;

const VOLTS: Precision = Precision::Measured(&[Dimension::Voltage]);
const WATTS: Precision = Precision::Measured(&[Dimension::Power]);
const FITTED: Precision = Precision::Measured(&[]);

/// Reads all voltage tables; returns all names, and the readable tables.
pub fn voltages(root: &mut Section<'_>, findings: &mut Findings<'_>) -> (Vec<String>, Vec<VoltageTable>) {
    let Some(mut part) = root.child(findings, "voltages") else { return Default::default() };
    let sections = part.others(findings);
    let names = sections.iter().map(|(name, _)| name.clone()).collect();
    let tables = sections.into_iter().filter_map(|(name, mut part)| {
        let allowed = "pairs of a fastest rate and its voltage such as [[\"800 MHz\", \"1.1 V\"]]";
        let read = part.required(findings, "steps", VOLTS, allowed, steps);
        part.close(findings);
        Some(VoltageTable { name, steps: read? })
    });
    (names, tables.collect())
}

fn steps(value: &DeValue<'_>) -> Result<Vec<OperatingPoint>, Reason> {
    let allowed = || "allowed: a list of pairs such as [\"800 MHz\", \"1.1 V\"]".to_owned();
    let items = value.as_array().ok_or_else(allowed)?;
    let mut steps: Vec<OperatingPoint> = Vec::new();
    for item in items.iter() {
        let pair = item.get_ref().as_array().filter(|pair| pair.len() == 2).ok_or_else(allowed)?;
        let part = |index: usize| pair.get(index).and_then(|part| part.get_ref().as_str());
        let (rate, voltage) = part(0).zip(part(1)).ok_or_else(allowed)?;
        let name = |reason| format!("{rate:?}, {voltage:?}: {reason}");
        let step = OperatingPoint {
            rate: unit::rate(rate).map_err(name)?,
            voltage: unit::voltage(voltage).map_err(name)?,
        };
        if steps.last().is_some_and(|last| last.rate >= step.rate || last.voltage >= step.voltage) {
            return Err(name("it is not ascending; allowed: ascending rates and voltages".to_owned()));
        }
        steps.push(step);
    }
    if steps.is_empty() { Err(allowed()) } else { Ok(steps) }
}

/// Reads all power models.
pub fn models(root: &mut Section<'_>, tables: &[String], findings: &mut Findings<'_>) -> Vec<PowerModel> {
    let Some(mut part) = root.child(findings, "power") else { return Vec::new() };
    let sections = part.others(findings);
    sections.into_iter().filter_map(|(name, part)| model(name, part, tables, findings)).collect()
}

fn model(
    name: String,
    mut part: Section<'_>,
    tables: &[String],
    findings: &mut Findings<'_>,
) -> Option<PowerModel> {
    let voltages = part.required_text(findings, "voltages", "the name of a voltage table");
    if let Some((table, at)) = &voltages
        && !tables.contains(table)
    {
        let path = part.path("voltages");
        let allowed = match tables {
            [] => "a [voltages.NAME] section; the file has none".to_owned(),
            tables => format!("one of [voltages]: {}", tables.join(", ")),
        };
        findings.fault(*at, format!("{path} is {table:?}; allowed: {allowed}"));
    }
    let constant = part.required(findings, "constant", WATTS, Dimension::Power.allowed(), |value| {
        quantity(value, unit::power)
    });
    let form = form(&mut part, findings);
    let load = part.required_child(findings, "load").and_then(|part| load(part, findings));
    part.close(findings);
    let (voltages, _) = voltages?;
    Some(PowerModel { name, voltages, constant: constant?, form: form?, load: load? })
}

fn form(part: &mut Section<'_>, findings: &mut Findings<'_>) -> Option<PowerForm> {
    let mut coefficient = |key: &str, unit: &'static str| {
        part.constant(findings, key, FITTED, |value| quantity(value, |text| unit::coefficient(text, unit)))
    };
    let (cubic, linear) = (coefficient("cubic", "W/MHz^3"), coefficient("linear", "W/MHz"));
    let (leakage, dynamic) = (coefficient("leakage", "W/V^3"), coefficient("dynamic", "W/(V^2*MHz)"));
    match (part.has("cubic"), part.has("linear"), part.has("leakage"), part.has("dynamic")) {
        (true, true, false, false) => {
            cubic.zip(linear).map(|(cubic, linear)| PowerForm::Rate { cubic, linear })
        }
        (false, false, true, true) => {
            leakage.zip(dynamic).map(|(leakage, dynamic)| PowerForm::Voltage { leakage, dynamic })
        }
        _ => {
            let (at, path) = (part.at(), part.path("form"));
            let path = path.trim_end_matches(".form");
            findings
                .fault(at, format!("{path} has no form; allowed: cubic and linear, or leakage and dynamic"));
            None
        }
    }
}

fn load(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<[f64; Load::ALL.len()]> {
    let mut factors = [Some(0.0); Load::ALL.len()];
    for (load, factor) in Load::ALL.into_iter().zip(&mut factors) {
        let allowed = "a number from 0 to 10";
        *factor =
            part.required(findings, load.name(), FITTED, allowed, |value| fraction(value, 10.0, allowed));
    }
    part.close(findings);
    let [compute, copy, poll, sleep] = factors;
    Some([compute?, copy?, poll?, sleep?])
}

/// Reads a number from 0 to `most`.
fn fraction(value: &DeValue<'_>, most: f64, allowed: &str) -> Result<f64, Reason> {
    let number = match value {
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
        _ => None,
    };
    number.filter(|number| (0.0..=most).contains(number)).ok_or_else(|| format!("allowed: {allowed}"))
}

/// Reads `[mesh_power]`: the power of the routers.
pub fn mesh(mut part: Section<'_>, findings: &mut Findings<'_>) -> Option<MeshPower> {
    let router = part.required(findings, "router", WATTS, Dimension::Power.allowed(), |value| {
        quantity(value, unit::power)
    });
    let rate = part.required(findings, "rate", Precision::Counted, Dimension::Frequency.allowed(), |value| {
        quantity(value, unit::rate)
    });
    let mut volts = |findings: &mut Findings<'_>, key| {
        part.required(findings, key, VOLTS, Dimension::Voltage.allowed(), |value| {
            quantity(value, unit::voltage)
        })
    };
    let (voltage, supply) = (volts(findings, "voltage"), volts(findings, "supply"));
    let flits =
        part.required(findings, "flits", Precision::Counted, "a whole number from 1 to 64", |value| {
            count(value, 1, 64)
        });
    let allowed = "a number from 0 to 1";
    let moving = part.required(findings, "moving", FITTED, allowed, |value| fraction(value, 1.0, allowed));
    part.close(findings);
    let measured = OperatingPoint { rate: rate?, voltage: voltage? };
    Some(MeshPower { router: router?, measured, flits: flits?, moving: moving?, supply: supply? })
}
