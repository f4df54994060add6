//! A form as a linear system: its columns, its coefficients with their errors, and its exponent.
//!
//! The exponent is the only coefficient that is not linear: it is searched for, and the others are solved at each step.
//! This file reads no files and only judges if the columns are distinct. Invariant: columns, names and coefficients
//! have one order.

use super::solver::{COLUMNS_MAX, Solution, TriangularSystem};
use super::{Coefficient, EXPONENTS, FitError, Form, Measurement};
use isles_chip::energy::Load;

pub(super) const RISING: &str = "rising";
pub(super) const EXPONENT: &str = "exponent";

/// Smallest part of a column that must be independent of the others. Measurements have three or four digits, so they do
/// not resolve a smaller difference.
const DISTINCT_MIN: f64 = 1e-3;

/// Columns of a form: the linear system, once the exponent is known.
pub(super) struct Design {
    form: Form,
    /// The loads that were measured, in the order of [`Load::ALL`].
    loads: Vec<Load>,
}

impl Design {
    pub fn new(form: Form, measurements: &[Measurement]) -> Result<Self, FitError> {
        if form == Form::Voltage && measurements.iter().any(|point| point.volts.is_none()) {
            return Err(FitError::NoVoltage);
        }
        let measured = |load: &Load| measurements.iter().any(|point| point.load == *load);
        Ok(Self { form, loads: Load::ALL.into_iter().filter(measured).collect() })
    }

    /// Returns the number of fitted values.
    pub(crate) fn unknowns(&self) -> usize {
        self.names().len() + usize::from(matches!(self.form, Form::Rate { exponent: None }))
    }

    /// Returns the names of the columns.
    fn names(&self) -> Vec<String> {
        match self.form {
            Form::Rate { .. } => [RISING, "linear", "constant"].map(str::to_owned).to_vec(),
            Form::Voltage => {
                let dynamic = self.loads.iter().map(|load| format!("dynamic {}", load.name()));
                ["constant", "leakage"].map(str::to_owned).into_iter().chain(dynamic).collect()
            }
        }
    }

    /// Returns the terms that the coefficients multiply; `exponent` is that of the rate form.
    fn terms(&self, point: &Measurement, exponent: f64) -> Vec<f64> {
        match (self.form, point.volts) {
            (Form::Voltage, Some(volts)) => {
                let dynamic = self.loads.iter().map(|load| f64::from(u8::from(*load == point.load)));
                let moved = volts * volts * point.rates.mean(|rate| rate);
                [1.0, volts * volts * volts].into_iter().chain(dynamic.map(|part| part * moved)).collect()
            }
            _ => vec![point.rates.mean(|rate| rate.powf(exponent)), point.rates.mean(|rate| rate), 1.0],
        }
    }

    pub fn power(&self, point: &Measurement, exponent: f64, solution: &Solution) -> f64 {
        self.terms(point, exponent).iter().zip(&solution.values).map(|(term, value)| term * value).sum()
    }

    /// Returns the system of relative differences.
    fn triangle(&self, measurements: &[Measurement], exponent: f64) -> TriangularSystem {
        let rows = measurements.iter().map(|point| {
            let terms = self.terms(point, exponent);
            terms.into_iter().map(|term| term / point.watts).chain([1.0]).collect()
        });
        TriangularSystem::new(self.names().len(), rows)
    }

    /// Returns the best exponent, and the coefficients for it.
    pub(crate) fn solve(&self, measurements: &[Measurement]) -> Result<(f64, Solution), FitError> {
        let exponent = match self.form {
            Form::Rate { exponent: None } => {
                best_exponent(|exponent| self.triangle(measurements, exponent).solve().squares)
            }
            Form::Rate { exponent: Some(exponent) } => exponent,
            Form::Voltage => 0.0, // stands in no term
        };
        let triangle = self.triangle(measurements, exponent);
        let names = self.names().into_iter().zip(triangle.distinctness());
        let mixed: Vec<String> =
            names.filter(|(_, part)| *part < DISTINCT_MIN).map(|(name, _)| name).collect();
        if mixed.is_empty() { Ok((exponent, triangle.solve())) } else { Err(FitError::Undetermined(mixed)) }
    }

    /// Predicts the power of a measurement from those at all other operating points; `None` if they determine no model.
    pub fn without(&self, point: &Measurement, measurements: &[Measurement]) -> Option<f64> {
        let others = measurements.iter().filter(|other| other.operating_point() != point.operating_point());
        let others: Vec<Measurement> = others.copied().collect();
        let (exponent, solution) = self.solve(&others).ok()?;
        Some(self.power(point, exponent, &solution))
    }

    /// Returns the coefficients and the factors, with their errors.
    pub fn coefficients(
        &self,
        measurements: &[Measurement],
        exponent: f64,
        solution: &Solution,
    ) -> (Vec<Coefficient>, Vec<Coefficient>) {
        let spread = Uncertainty::new(self, measurements, exponent, solution);
        let values = solution.values.iter().enumerate();
        let named = values.zip(self.names()).map(|((column, value), name)| {
            let unit = self.unit(&name, exponent);
            Coefficient { name, unit, value: *value, error: spread.error(column) }
        });
        let mut coefficients: Vec<Coefficient> = named.collect();
        if let Form::Rate { exponent: given } = self.form {
            let fitted = given.is_none() && !EXPONENTS.contains(&exponent);
            let error = spread.error(solution.values.len()).filter(|_| fitted);
            let (name, unit) = (EXPONENT.to_owned(), String::new());
            coefficients.insert(1, Coefficient { name, unit, value: exponent, error });
        }
        (coefficients, self.factors(solution, &spread))
    }

    fn unit(&self, name: &str, exponent: f64) -> String {
        match name {
            RISING => format!("W/MHz^{}", (exponent * 1e3).round() / 1e3),
            "linear" => "W/MHz".to_owned(),
            "constant" => "W".to_owned(),
            "leakage" => "W/V^3".to_owned(),
            _ => "W/(V^2*MHz)".to_owned(),
        }
    }

    /// Returns the dynamic part of each other load relative to that of the first load; the error of the quotient is to
    /// first order.
    fn factors(&self, solution: &Solution, spread: &Uncertainty) -> Vec<Coefficient> {
        const FIRST: usize = 2; // behind constant and leakage
        let first = match self.form {
            Form::Voltage => solution.values[FIRST],
            Form::Rate { .. } => 0.0,
        };
        if first == 0.0 {
            return Vec::new();
        }
        let others = self.loads.iter().enumerate().skip(1);
        others
            .map(|(index, load)| {
                let value = solution.values[FIRST + index] / first;
                let both = |i, j| spread.together(i, j);
                let variance = both(FIRST + index, FIRST + index)
                    .zip(both(FIRST, FIRST))
                    .zip(both(FIRST, FIRST + index));
                let error = variance.map(|((own, firsts), mixed)| {
                    (own + value * value * firsts - 2.0 * value * mixed).max(0.0).sqrt() / first
                });
                let (name, unit) = (format!("factor {}", load.name()), String::new());
                Coefficient { name, unit, value, error }
            })
            .collect()
    }
}

/// Returns the exponent with the smallest sum of squares: the best of a grid, then a golden-section search around it.
/// The grid is needed because coefficients held at zero may leave more than one minimum.
fn best_exponent(squares: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 28;
    const GOLDEN: f64 = 0.618_033_988_749_894_8;
    let [low, high] = EXPONENTS;
    let at = |step: u32| low + (high - low) * f64::from(step) / f64::from(STEPS);
    let grid = (0..=STEPS).map(|step| (squares(at(step)), step));
    let best = grid.min_by(|one, other| one.0.total_cmp(&other.0)).map_or(0, |(_, step)| step);
    let (mut from, mut to) = (at(best.saturating_sub(1)), at((best + 1).min(STEPS)));
    while to - from > 1e-6 {
        let [left, right] = [to - GOLDEN * (to - from), from + GOLDEN * (to - from)];
        if squares(left) <= squares(right) { to = right } else { from = left }
    }
    // An end is returned exactly, so that it can be distinguished from a value near it.
    let middle = (from + to) / 2.0;
    EXPONENTS.into_iter().find(|end| (middle - end).abs() < 1e-5).unwrap_or(middle)
}

/// Errors of the free coefficients, and their covariance.
struct Uncertainty {
    /// The free columns; the exponent comes last.
    free: Vec<usize>,
    /// Covariance of the free columns; `None` if they are not determined.
    covariance: Option<Vec<Vec<f64>>>,
}

impl Uncertainty {
    /// Computes the errors from the curvature of the sum of squares at its minimum, the exponent included; coefficients
    /// held at zero are taken as known.
    fn new(design: &Design, measurements: &[Measurement], exponent: f64, solution: &Solution) -> Self {
        let columns = solution.values.len();
        assert!(columns < COLUMNS_MAX || design.form == Form::Voltage, "room for the exponent");
        let rising = solution.values[0];
        let bends = matches!(design.form, Form::Rate { exponent: None })
            && rising > 0.0
            && !EXPONENTS.contains(&exponent);
        let free: Vec<usize> = solution.free.iter().copied().chain(bends.then_some(columns)).collect();
        let rows = measurements.iter().map(|point| {
            let mut terms = design.terms(point, exponent);
            terms.push(rising * point.rates.mean(|rate| rate.powf(exponent) * rate.ln()));
            free.iter().map(|column| terms[*column] / point.watts).chain([1.0]).collect()
        });
        let triangle = TriangularSystem::new(free.len(), rows);
        // A fit to exact figures has errors of zero.
        let variance = solution.squares / (measurements.len() - free.len()) as f64;
        let covariance = triangle.covariance().map(|covariance| {
            covariance
                .into_iter()
                .map(|row| row.into_iter().map(|value| value * variance).collect())
                .collect()
        });
        Self { free, covariance }
    }

    /// Returns the covariance of two columns.
    fn together(&self, one: usize, other: usize) -> Option<f64> {
        let place = |column| self.free.iter().position(|free| *free == column);
        Some(self.covariance.as_ref()?[place(one)?][place(other)?])
    }

    /// Returns the standard error of a column.
    fn error(&self, column: usize) -> Option<f64> {
        self.together(column, column).map(f64::sqrt)
    }
}
