//! Power models fitted to measured powers: coefficients with their errors, and the accuracy of their predictions.
//!
//! The fit is by relative least squares: each measurement counts by its relative difference, because meters and people
//! read power in this way and the smallest powers would otherwise have no weight. Coefficients are not negative. The
//! accuracy of predictions is found by leaving out each operating point in turn. This module does not read files, nor
//! does it judge if a form is right. Invariant: a system with coefficients that the measurements do not determine is
//! refused, never solved.
//!
//! `solver` is the mathematics, `design` its columns for each form, `table` reads measurements from CSV.

mod design;
mod solver;
pub mod table;
#[cfg(test)]
mod tests;

use design::{Design, EXPONENT, RISING};
use isles_chip::energy::Load;
use std::fmt;

/// Maximum number of measurements of a fit: each is left out once, so the work grows with the square.
pub(crate) const MEASUREMENTS_MAX: usize = 500;

/// Range of the exponents that are tried if none is given.
pub const EXPONENTS: [f64; 2] = [1.5, 5.0];

/// Correlation of frequency and voltage above which a warning is given: at this value the variance of a term of both is
/// inflated tenfold, the usual limit.
const CORRELATION_MAX: f64 = 0.95;

/// Maximum number of clock domains of a chip.
pub const DOMAINS_MAX: usize = 8;

/// The frequencies of the domains of a chip in MHz, above zero; all domains have the same number of cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Frequencies by domain; zero from index `domains` on.
    megahertz: [f64; DOMAINS_MAX],
    domains: usize,
}

impl Rates {
    /// Returns rates with one frequency for all cores.
    pub fn all(megahertz: f64) -> Rates {
        Rates::of(&[megahertz])
    }

    /// Returns rates with the frequencies `domains`, one to [`DOMAINS_MAX`]; further ones are ignored.
    pub fn of(domains: &[f64]) -> Rates {
        let mut megahertz = [0.0; DOMAINS_MAX];
        megahertz.iter_mut().zip(domains).for_each(|(own, domain)| *own = *domain);
        Rates { megahertz, domains: domains.len().clamp(1, DOMAINS_MAX) }
    }

    /// Returns the frequency of each domain.
    pub fn megahertz(&self) -> &[f64] {
        &self.megahertz[..self.domains]
    }

    /// Returns the mean over the domains of `part`, applied to their frequencies.
    pub fn mean(&self, part: impl Fn(f64) -> f64) -> f64 {
        self.megahertz().iter().map(|megahertz| part(*megahertz)).sum::<f64>() / self.domains as f64
    }
}

/// One measurement of the power of a whole chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Line number in the file, from 1.
    pub line: usize,
    /// The frequencies of the cores.
    pub rates: Rates,
    /// Their voltage, if it was recorded; above zero.
    pub volts: Option<f64>,
    /// Load of all cores.
    pub load: Load,
    /// Power of the chip in watts, above zero.
    pub watts: f64,
}

impl Measurement {
    /// Returns the operating point. All its measurements are left out together, so that a repeated measurement does not
    /// predict itself.
    fn operating_point(&self) -> ([u64; DOMAINS_MAX], Option<u64>) {
        (self.rates.megahertz.map(f64::to_bits), self.volts.map(f64::to_bits))
    }
}

/// Model of a chip's power by frequency and voltage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `b·f^a + s·f + c`, with means over the domains where they differ. It uses neither load nor voltage: fit each
    /// load by itself.
    Rate {
        /// The exponent, if it is given instead of fitted.
        exponent: Option<f64>,
    },
    /// `constant + leakage·V³ + dynamic·V²·f` with a dynamic part for each load.
    Voltage,
}

/// One coefficient of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficient {
    /// Its name, in words of the chip files where they have one.
    pub name: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// Its value; exactly zero if it would have been negative.
    pub value: f64,
    /// The standard error; `None` if the value was given, held at zero or at an end of the range that is tried.
    pub error: Option<f64>,
}

/// Relative errors, as fractions of the measured values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// The mean of their absolute values.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// A measurement beside the powers that models give for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The measurement.
    pub measured: Measurement,
    /// Power in watts by the model fitted to all measurements.
    pub fitted: f64,
    /// Power in watts by the model fitted without this operating point; `None` if the others determine no model.
    pub predicted: Option<f64>,
}

/// A fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The form that was fitted.
    pub form: Form,
    /// The coefficients, in the order of the form.
    pub coefficients: Vec<Coefficient>,
    /// Ratio of the dynamic part of each other load to that of the first, if there are several loads.
    pub factors: Vec<Coefficient>,
    /// The measurements that were used: all that were given.
    pub points: Vec<Point>,
    /// The errors of the fitted model on the points.
    pub errors: Errors,
    /// Errors of the predictions of operating points that were left out; `None` if the others determine no model.
    pub left_out: Option<Errors>,
    /// Correlation of frequency and voltage over the operating points; `None` if one of them never changes.
    pub correlation: Option<f64>,
}

/// Caveat on the figures of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// Frequency and voltage rise together, with this correlation.
    Correlated(f64),
    /// The best exponent is at this end of the range that is tried.
    ExponentAtEnd(f64),
    /// The term with the exponent is zero, so the exponent is not a result.
    ExponentIdle,
    /// The coefficients are not determined if some operating point is left out.
    NotLeftOut,
}

/// Error of a fit.
#[derive(Clone, Debug, PartialEq)]
pub enum FitError {
    /// Too few measurements for the errors of the coefficients: they must outnumber the coefficients.
    TooFew {
        /// Number of measurements.
        measurements: usize,
        /// Number of measurements needed.
        needed: usize,
    },
    /// The form needs voltages.
    NoVoltage,
    /// The measurements do not determine these coefficients.
    Undetermined(Vec<String>),
}

impl Errors {
    /// Returns the errors of pairs of a modelled and a measured value; at least one pair.
    fn of(pairs: impl ExactSizeIterator<Item = (f64, f64)>) -> Self {
        let count = pairs.len() as f64;
        let errors = pairs.map(|(model, measured)| (model / measured - 1.0).abs());
        let (sum, max) = errors.fold((0.0, 0.0_f64), |(sum, max), error| (sum + error, max.max(error)));
        Self { mean: sum / count, max }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Correlated(by) => write!(
                out,
                "frequency and voltage rise together (correlation {by:.3}): single coefficients mean \
                 little because they trade off against each other"
            ),
            Self::ExponentAtEnd(at) => write!(
                out,
                "the best exponent is {at}, at the end of the tried \
                 range"
            ),
            Self::ExponentIdle => {
                out.write_str("no part depends on a power of the frequency, so the exponent is undetermined")
            }
            Self::NotLeftOut => out.write_str(
                "no leave-one-out error: without one operating point the rest determines no model",
            ),
        }
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { measurements: 1, needed } => {
                write!(out, "1 measurement; allowed: {needed} or more")
            }
            Self::TooFew { measurements, needed } => {
                write!(out, "{measurements} measurements; allowed: {needed} or more")
            }
            Self::NoVoltage => out.write_str("no voltages; allowed: a column voltage_v"),
            Self::Undetermined(names) => write!(
                out,
                "the measurements do not determine {} separately; allowed: measurements at more \
                 frequencies and voltages",
                names.join(", ")
            ),
        }
    }
}

impl std::error::Error for FitError {}

impl Fit {
    /// Returns the warnings about the figures.
    pub fn warnings(&self) -> Vec<Warning> {
        let of = |name: &str| self.coefficients.iter().find(|coefficient| coefficient.name == name);
        let correlated =
            self.correlation.filter(|by| by.abs() >= CORRELATION_MAX && self.form == Form::Voltage);
        let fitted = matches!(self.form, Form::Rate { exponent: None });
        let idle = fitted && of(RISING).is_some_and(|rising| rising.value == 0.0);
        let exponent = of(EXPONENT).filter(|_| fitted && !idle).map(|exponent| exponent.value);
        let warnings = [
            correlated.map(Warning::Correlated),
            exponent.filter(|at| EXPONENTS.contains(at)).map(Warning::ExponentAtEnd),
            idle.then_some(Warning::ExponentIdle),
            self.left_out.is_none().then_some(Warning::NotLeftOut),
        ];
        warnings.into_iter().flatten().collect()
    }
}

/// Fits the form to all measurements.
///
/// # Errors
/// [`FitError`]: the measurements do not determine the coefficients of the form and their errors.
pub fn fit(form: Form, measurements: &[Measurement]) -> Result<Fit, FitError> {
    assert!(measurements.len() <= MEASUREMENTS_MAX, "{} measurements", measurements.len());
    let design = Design::new(form, measurements)?;
    let count = measurements.len();
    let needed = design.unknowns() + 1;
    if count < needed {
        return Err(FitError::TooFew { measurements: count, needed });
    }
    let (exponent, solution) = design.solve(measurements)?;
    let (coefficients, factors) = design.coefficients(measurements, exponent, &solution);
    let compared = measurements.iter().map(|point| Point {
        measured: *point,
        fitted: design.power(point, exponent, &solution),
        predicted: design.without(point, measurements),
    });
    let points: Vec<Point> = compared.collect();
    let errors = Errors::of(points.iter().map(|point| (point.fitted, point.measured.watts)));
    let predictions = points.iter().map(|point| Some((point.predicted?, point.measured.watts)));
    let left_out = predictions.collect::<Option<Vec<_>>>().map(|pairs| Errors::of(pairs.into_iter()));
    let correlation = correlation(measurements);
    Ok(Fit { form, coefficients, factors, points, errors, left_out, correlation })
}

/// Returns the correlation of frequency and voltage, each operating point counted once.
fn correlation(measurements: &[Measurement]) -> Option<f64> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for measurement in measurements {
        let point = (measurement.rates.mean(|rate| rate), measurement.volts?);
        if !points.contains(&point) {
            points.push(point);
        }
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (f, v) = (mean(|point| point.0), mean(|point| point.1));
    let mixed: f64 = points.iter().map(|point| (point.0 - f) * (point.1 - v)).sum();
    let spread = |of: fn(&(f64, f64)) -> f64, mean: f64| {
        points.iter().map(|point| (of(point) - mean).powi(2)).sum::<f64>().sqrt()
    };
    let by = mixed / (spread(|point| point.0, f) * spread(|point| point.1, v));
    by.is_finite().then_some(by)
}
