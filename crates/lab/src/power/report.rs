//! Fits as text and as JSON.
//!
//! It computes nothing. Invariant: the keys of the JSON are stable; additions get new keys, and a change of meaning
//! gets a new `schema`.

use crate::fit::{Coefficient, Errors, Fit, FitError, Form, Point};
use isles_chip::energy::Load;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A requested fit and its result.
pub struct Attempt {
    /// The form.
    pub form: Form,
    /// The load whose measurements were used; `None` for all.
    pub load: Option<Load>,
    /// The fit.
    pub result: Result<Fit, FitError>,
}

impl Attempt {
    /// Returns the name of the form, as on the command line.
    fn form_name(&self) -> &'static str {
        match self.form {
            Form::Rate { .. } => "rate",
            Form::Voltage => "voltage",
        }
    }

    /// Returns the formula of the form, with the load if the fit is of one load.
    fn title(&self) -> String {
        let form = match self.form {
            Form::Rate { .. } => "rising·f^exponent + linear·f + constant",
            Form::Voltage => "constant + leakage·V^3 + dynamic·V^2·f",
        };
        match self.load {
            Some(load) => format!("{form}, cores {}", doing(load)),
            None => form.to_owned(),
        }
    }

    /// Returns the reason for the failure in one line, with the form and the load.
    pub fn line(&self) -> String {
        let reason = self.result.as_ref().err().map(FitError::to_string).unwrap_or_default();
        let of = self.load.map(|load| format!(" of cores {}", doing(load))).unwrap_or_default();
        format!("form {}{of}: {reason}", self.form_name())
    }
}

/// Returns the phrase for a load in a sentence.
fn doing(load: Load) -> &'static str {
    match load {
        Load::Compute => "loaded (compute)",
        Load::Copy => "that copy",
        Load::Poll => "that poll",
        Load::Sleep => "idle (sleep)",
    }
}

/// Returns all attempts as text.
pub fn text(file: &str, measurements: usize, attempts: &[Attempt]) -> String {
    let plural = if measurements == 1 { "measurement" } else { "measurements" };
    let mut out = format!("{file}: {measurements} {plural}; f in MHz, V in volts, power in watts\n");
    for attempt in attempts {
        let _ = writeln!(out, "\n{}", attempt.title());
        match &attempt.result {
            Ok(fit) => out.push_str(&of_fit(fit)),
            Err(refusal) => {
                let _ = writeln!(out, "  not fitted: {refusal}");
            }
        }
    }
    out
}

fn of_fit(fit: &Fit) -> String {
    let mut out = format!("  {:<16} {:>12} {:>12}  unit\n", "", "value", "error");
    for coefficient in fit.coefficients.iter().chain(&fit.factors) {
        out.push_str(&line(coefficient));
    }
    let errors = |errors: Errors| format!("mean {}, largest {}", percent(errors.mean), percent(errors.max));
    let _ = writeln!(out, "  on the {} measurements: {}", fit.points.len(), errors(fit.errors));
    if let Some(left_out) = fit.left_out {
        let _ = writeln!(out, "  each operating point left out in turn: {}", errors(left_out));
    }
    for warning in fit.warnings() {
        let _ = writeln!(out, "  warning: {warning}");
    }
    out + &points(&fit.points)
}

fn line(coefficient: &Coefficient) -> String {
    let Coefficient { name, unit, value, error } = coefficient;
    let held = if *value == 0.0 { "at zero" } else { "-" };
    let error = error.map_or(held.to_owned(), figure);
    let line = format!("  {name:<16} {:>12} {error:>12}  {unit}", figure(*value));
    format!("{}\n", line.trim_end())
}

/// Returns every point that was used, with the powers that the model gives for it.
fn points(points: &[Point]) -> String {
    let rates = |point: &Point| {
        let rates = point.measured.rates.megahertz().iter().map(|rate| figure(*rate));
        rates.collect::<Vec<_>>().join("/")
    };
    let widest = points.iter().map(|point| rates(point).len()).max().unwrap_or_default().max(9);
    let mut out = format!(
        "  {:>5} {:>widest$} {:>8} {:<7} {:>9} {:>9} {:>8} {:>9} {:>8}\n",
        "line", "MHz", "V", "load", "measured", "fitted", "error", "left out", "error"
    );
    for point in points {
        let Point { measured, fitted, predicted } = point;
        let off = |watts: f64| signed(watts / measured.watts - 1.0);
        let volts = measured.volts.map_or("-".to_owned(), |volts| volts.to_string());
        let predicted =
            predicted.map_or(["-".to_owned(), "-".to_owned()], |watts| [watts_of(watts), off(watts)]);
        let _ = writeln!(
            out,
            "  {:>5} {:>widest$} {volts:>8} {:<7} {:>9} {:>9} {:>8} {:>9} {:>8}",
            measured.line,
            rates(point),
            measured.load.name(),
            watts_of(measured.watts),
            watts_of(*fitted),
            off(*fitted),
            predicted[0],
            predicted[1],
        );
    }
    out
}

/// Formats a number with five digits, without an exponent if that is short.
fn figure(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (0.01..1e5).contains(&size) {
        let decimals = 4 - size.log10().floor() as i32;
        format!("{value:.*}", decimals.clamp(0, 6) as usize)
    } else {
        format!("{value:.4e}")
    }
}

fn watts_of(value: f64) -> String {
    if value.abs() < 1.0 { figure(value) } else { format!("{value:.2}") }
}

fn percent(fraction: f64) -> String {
    format!("{:.2} %", fraction * 100.0)
}

fn signed(fraction: f64) -> String {
    format!("{:+.2} %", fraction * 100.0)
}

/// The JSON document. Fractions are plain numbers: 0.02 for 2 %.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    fits: Vec<FitRow<'a>>,
}

/// A requested form. If the fit succeeded, `refused` is null; otherwise it has the reason, and the other fields are
/// empty or null.
#[derive(Serialize)]
struct FitRow<'a> {
    form: &'static str,
    load: Option<&'static str>,
    refused: Option<String>,
    coefficients: Vec<CoefficientRow<'a>>,
    factors: Vec<CoefficientRow<'a>>,
    errors: Option<ErrorsRow>,
    left_out: Option<ErrorsRow>,
    correlation: Option<f64>,
    warnings: Vec<String>,
    points: Vec<PointRow>,
}

#[derive(Serialize)]
struct CoefficientRow<'a> {
    name: &'a str,
    unit: &'a str,
    value: f64,
    error: Option<f64>,
}

#[derive(Serialize)]
struct ErrorsRow {
    mean: f64,
    max: f64,
}

#[derive(Serialize)]
struct PointRow {
    line: usize,
    /// Mean frequency of the domains.
    frequency_mhz: f64,
    domains_mhz: Vec<f64>,
    voltage_v: Option<f64>,
    load: &'static str,
    power_w: f64,
    fitted_w: f64,
    left_out_w: Option<f64>,
}

impl<'a> FitRow<'a> {
    fn of(attempt: &'a Attempt) -> Self {
        let fit = attempt.result.as_ref().ok();
        let errors = |errors: Errors| ErrorsRow { mean: errors.mean, max: errors.max };
        let rows =
            |of: fn(&Fit) -> &[Coefficient]| fit.map(of).unwrap_or_default().iter().map(coefficient_row);
        FitRow {
            form: attempt.form_name(),
            load: attempt.load.map(Load::name),
            refused: attempt.result.as_ref().err().map(FitError::to_string),
            coefficients: rows(|fit| &fit.coefficients).collect(),
            factors: rows(|fit| &fit.factors).collect(),
            errors: fit.map(|fit| errors(fit.errors)),
            left_out: fit.and_then(|fit| fit.left_out).map(errors),
            correlation: fit.and_then(|fit| fit.correlation),
            warnings: fit.iter().flat_map(|fit| fit.warnings()).map(|warning| warning.to_string()).collect(),
            points: fit.iter().flat_map(|fit| &fit.points).map(point_row).collect(),
        }
    }
}

fn coefficient_row(coefficient: &Coefficient) -> CoefficientRow<'_> {
    let Coefficient { name, unit, value, error } = coefficient;
    CoefficientRow { name, unit, value: *value, error: *error }
}

fn point_row(point: &Point) -> PointRow {
    let Point { measured, fitted, predicted } = point;
    PointRow {
        line: measured.line,
        frequency_mhz: measured.rates.mean(|rate| rate),
        domains_mhz: measured.rates.megahertz().to_vec(),
        voltage_v: measured.volts,
        load: measured.load.name(),
        power_w: measured.watts,
        fitted_w: *fitted,
        left_out_w: *predicted,
    }
}

/// Writes all attempts as one object.
///
/// # Errors
/// Any error of `out`.
pub fn write_json(mut out: impl Write, file: &str, attempts: &[Attempt]) -> io::Result<()> {
    let fits = attempts.iter().map(FitRow::of).collect();
    serde_json::to_writer_pretty(&mut out, &Document { schema: "isles.power-fit.1", file, fits })?;
    writeln!(out)?;
    out.flush()
}
