//! Fits of invented chips with known coefficients, and the refusals and warnings.
//!
//! Fits of measured chips are in `tests/published.rs`.

use super::*;
use proptest::prelude::*;

/// Frequencies and voltages that do not rise together.
const POINTS: [(f64, f64); 9] = [
    (100.0, 0.7),
    (100.0, 1.1),
    (200.0, 0.9),
    (400.0, 0.7),
    (400.0, 1.0),
    (600.0, 0.8),
    (800.0, 0.9),
    (800.0, 1.1),
    (800.0, 1.2),
];

/// Returns measurements that follow the coefficients exactly.
fn exact(loads: &[(Load, f64)], constant: f64, leakage: f64) -> Vec<Measurement> {
    let all = loads.iter().flat_map(|(load, dynamic)| POINTS.map(|point| (*load, *dynamic, point)));
    all.map(|(load, dynamic, (megahertz, volts))| {
        let watts = constant + leakage * volts.powi(3) + dynamic * volts * volts * megahertz;
        Measurement { line: 0, rates: Rates::all(megahertz), volts: Some(volts), load, watts }
    })
    .collect()
}

/// Returns powers of a rate form at the frequencies of the SCC.
fn rates(rising: f64, exponent: f64, linear: f64, constant: f64) -> Vec<Measurement> {
    let at = (2..=16).map(|divider| 1600.0 / f64::from(divider));
    at.map(|megahertz: f64| {
        let watts = rising * megahertz.powf(exponent) + linear * megahertz + constant;
        Measurement { line: 0, rates: Rates::all(megahertz), volts: None, load: Load::Compute, watts }
    })
    .collect()
}

fn value<'a>(fit: &'a Fit, name: &str) -> &'a Coefficient {
    let all = || fit.coefficients.iter().chain(&fit.factors);
    all().find(|coefficient| coefficient.name == name).unwrap_or_else(|| panic!("{name}: {fit:?}"))
}

fn near(ours: f64, theirs: f64, fraction: f64) -> bool {
    (ours - theirs).abs() <= fraction * theirs.abs()
}

const FREE: Form = Form::Rate { exponent: None };

proptest! {
    #[test]
    fn an_exact_chip_gives_its_coefficients_back(
        constant in 1.0..50.0,
        leakage in 1.0..50.0,
        dynamic in 0.01..0.1,
        parts in proptest::array::uniform3(0.05..1.5),
    ) {
        let others = [Load::Copy, Load::Poll, Load::Sleep].into_iter().zip(parts.map(|part| part * dynamic));
        let loads: Vec<(Load, f64)> = [(Load::Compute, dynamic)].into_iter().chain(others).collect();
        let fit = fit(Form::Voltage, &exact(&loads, constant, leakage)).unwrap();
        let expected = [("constant", constant), ("leakage", leakage), ("dynamic compute", dynamic)];
        let factors = [("factor copy", parts[0]), ("factor poll", parts[1]), ("factor sleep", parts[2])];
        for (name, expected) in expected.into_iter().chain(factors) {
            let found = value(&fit, name);
            prop_assert!(near(found.value, expected, 1e-6), "{name}: {found:?} instead of {expected}");
            prop_assert!(found.error.unwrap() < 1e-6, "{name}: {found:?}");
        }
        prop_assert!(fit.errors.max < 1e-9 && fit.left_out.unwrap().max < 1e-6, "{fit:?}");
    }

    #[test]
    fn an_exact_power_of_the_frequency_gives_its_exponent_back(
        exponent in 2.0..4.0,
        part in 0.2..3.0,
        linear in 0.001..0.05,
        constant in 5.0..50.0,
    ) {
        let rising = part * constant / 800.0_f64.powf(exponent);
        let fit = fit(FREE, &rates(rising, exponent, linear, constant)).unwrap();
        for (name, expected, fraction) in
            [("exponent", exponent, 1e-3), ("rising", rising, 0.02), ("constant", constant, 1e-3)]
        {
            prop_assert!(near(value(&fit, name).value, expected, fraction), "{name} is not {expected}: {fit:?}");
        }
        prop_assert!(fit.left_out.unwrap().max < 1e-4 && fit.warnings().is_empty(), "{fit:?}");
    }

    /// Small powers count as much as large ones: a change of the unit changes nothing.
    #[test]
    fn the_unit_of_power_changes_no_relative_error(
        noise in proptest::collection::vec(-0.05..0.05, 18),
        scale in 1e-4..1e4,
    ) {
        let mut measured = exact(&[(Load::Compute, 0.05), (Load::Sleep, 0.01)], 10.0, 15.0);
        measured.iter_mut().zip(noise).for_each(|(point, noise)| point.watts *= 1.0 + noise);
        let one = fit(Form::Voltage, &measured).unwrap();
        measured.iter_mut().for_each(|point| point.watts *= scale);
        let other = fit(Form::Voltage, &measured).unwrap();
        prop_assert!(near(one.errors.mean, other.errors.mean, 1e-6));
        prop_assert!(near(one.left_out.unwrap().max, other.left_out.unwrap().max, 1e-6));
        for (one, other) in one.coefficients.iter().zip(&other.coefficients) {
            prop_assert!(near(one.value * scale, other.value, 1e-6), "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_coefficient_that_would_be_negative_is_zero_and_has_no_error() {
    let mut measured = exact(&[(Load::Compute, 0.05)], 20.0, 0.0);
    // Power that falls as the voltage rises, for which only a negative leakage could account.
    measured.iter_mut().for_each(|point| point.watts -= 5.0 * point.volts.unwrap().powi(3));
    let fit = fit(Form::Voltage, &measured).unwrap();
    assert_eq!((value(&fit, "leakage").value, value(&fit, "leakage").error), (0.0, None));
    assert!(value(&fit, "constant").error.is_some_and(|error| error > 0.0));
}

#[test]
fn a_repeated_measurement_does_not_predict_itself() {
    let mut measured = exact(&[(Load::Compute, 0.05)], 10.0, 15.0);
    let odd = measured.len() - 1;
    measured[odd].watts *= 1.5;
    measured.push(measured[odd]);
    let fit = fit(Form::Voltage, &measured).unwrap();
    for point in [&fit.points[odd], &fit.points[odd + 1]] {
        assert!(near(point.predicted.unwrap(), measured[odd].watts / 1.5, 1e-6), "{point:?}");
    }
}

#[test]
fn too_few_measurements_are_refused_with_how_many_are_needed() {
    let three = exact(&[(Load::Compute, 0.05)], 10.0, 15.0);
    let refused = fit(Form::Voltage, &three[..3]).unwrap_err();
    assert_eq!(refused, FitError::TooFew { measurements: 3, needed: 4 });
    assert!(fit(Form::Voltage, &three[..4]).is_ok());
    let rates = rates(1e-7, 3.0, 0.01, 20.0);
    for (form, needed) in [(FREE, 5), (Form::Rate { exponent: Some(3.0) }, 4)] {
        let refused = fit(form, &rates[..needed - 1]).unwrap_err();
        assert_eq!(refused, FitError::TooFew { measurements: needed - 1, needed });
        assert!(fit(form, &rates[..needed]).is_ok(), "{form:?}");
    }
    assert_eq!(fit(FREE, &[]).unwrap_err(), FitError::TooFew { measurements: 0, needed: 5 });
}

#[test]
fn one_voltage_does_not_tell_leakage_from_the_constant() {
    let mut measured = exact(&[(Load::Compute, 0.05)], 10.0, 15.0);
    measured.iter_mut().for_each(|point| point.volts = Some(0.9));
    let Err(FitError::Undetermined(names)) = fit(Form::Voltage, &measured) else { panic!("it is refused") };
    assert_eq!(names, ["constant", "leakage"]);
}

#[test]
fn a_voltage_in_proportion_to_the_frequency_is_refused_even_when_rounded() {
    let mut measured = exact(&[(Load::Compute, 0.05)], 10.0, 15.0);
    for point in &mut measured {
        point.volts = Some((point.rates.mean(|rate| rate) / 730.0 * 1e4).round() / 1e4);
    }
    let Err(FitError::Undetermined(names)) = fit(Form::Voltage, &measured) else { panic!("it is refused") };
    assert_eq!(names, ["leakage", "dynamic compute"]);
}

#[test]
fn one_frequency_determines_no_rate_form() {
    let mut measured = rates(1e-7, 3.0, 0.01, 20.0);
    measured.iter_mut().for_each(|point| point.rates = Rates::all(500.0));
    assert!(matches!(fit(FREE, &measured), Err(FitError::Undetermined(names)) if names.len() == 3));
}

#[test]
fn the_form_of_voltages_needs_them() {
    assert_eq!(fit(Form::Voltage, &rates(1e-7, 3.0, 0.01, 20.0)).unwrap_err(), FitError::NoVoltage);
}

#[test]
fn frequency_and_voltage_that_rise_together_are_warned_of() {
    let mut measured = exact(&[(Load::Compute, 0.05)], 10.0, 15.0);
    assert!(fit(Form::Voltage, &measured).unwrap().warnings().is_empty());
    for (index, point) in measured.iter_mut().enumerate() {
        point.volts =
            Some(0.6 + point.rates.mean(|rate| rate) / 2000.0 + 0.01 * f64::from(u8::from(index % 2 == 0)));
    }
    let fitted = fit(Form::Voltage, &measured).unwrap();
    let warnings = fitted.warnings();
    assert!(matches!(warnings[..], [Warning::Correlated(by)] if by > 0.99), "{warnings:?}");
    // An operating point that was measured often counts once.
    let often: Vec<Measurement> = measured.iter().copied().chain([measured[0]; 9]).collect();
    assert_eq!(fit(Form::Voltage, &often).unwrap().correlation, fitted.correlation);
    // The rate form does not use the voltage, so this does not matter.
    let rate = fit(FREE, &measured).unwrap();
    assert!(!rate.warnings().iter().any(|warning| matches!(warning, Warning::Correlated(_))));
}

#[test]
fn an_exponent_at_the_end_of_what_is_tried_is_warned_of_and_has_no_error() {
    let fit = fit(FREE, &rates(20.0 / 800.0_f64.powi(7), 7.0, 0.01, 20.0)).unwrap();
    assert_eq!(fit.warnings(), [Warning::ExponentAtEnd(5.0)]);
    assert_eq!(value(&fit, "exponent").error, None);
    assert!(value(&fit, "rising").error.is_some());
}

#[test]
fn a_power_that_does_not_rise_faster_than_the_frequency_has_no_exponent() {
    let mut measured = rates(0.0, 3.0, 0.01, 20.0);
    measured.iter_mut().for_each(|point| point.watts += point.rates.mean(f64::sqrt));
    let fit = fit(FREE, &measured).unwrap();
    assert_eq!(fit.warnings(), [Warning::ExponentIdle]);
    assert_eq!(value(&fit, "exponent").error, None);
}

#[test]
fn as_few_points_as_a_form_allows_leave_none_to_leave_out() {
    let measured = exact(&[(Load::Compute, 0.05)], 10.0, 15.0);
    // Three operating points, one of them twice: if one is left out, two remain for three coefficients.
    let few = [measured[0], measured[1], measured[3], measured[3]];
    let fit = fit(Form::Voltage, &few).unwrap();
    assert_eq!((fit.left_out, fit.warnings().as_slice()), (None, &[Warning::NotLeftOut][..]));
}

#[test]
fn an_idle_chip_alone_has_no_factor_to_compare_with() {
    let fit = fit(Form::Voltage, &exact(&[(Load::Sleep, 0.01)], 10.0, 15.0)).unwrap();
    assert!(fit.factors.is_empty() && near(value(&fit, "dynamic sleep").value, 0.01, 1e-6));
    let resting = super::fit(Form::Voltage, &exact(&[(Load::Compute, 0.0), (Load::Sleep, 0.0)], 10.0, 15.0));
    assert!(resting.unwrap().factors.iter().all(|factor| factor.value.is_finite()));
}

#[test]
fn rates_of_domains_give_the_coefficients_of_the_sum_over_domains() {
    // The set-up of Cichowski, Keller and Kessler (004:1855): six domains, each high or low.
    let (rising, linear, constant) = (2.0e-9 * 48.0, 1.0e-6 * 48.0, 23.0);
    let mut measured = Vec::new();
    for (high, low) in [(800.0, 200.0), (800.0, 100.0), (533.0, 200.0), (533.0, 100.0), (400.0, 200.0)] {
        for number in 0..=6 {
            let domains: Vec<f64> = (0..6).map(|domain| if domain < number { high } else { low }).collect();
            let rates = Rates::of(&domains);
            let watts =
                rising * rates.mean(|rate| rate.powi(3)) + linear * rates.mean(|rate| rate) + constant;
            measured.push(Measurement { line: 0, rates, volts: None, load: Load::Compute, watts });
        }
    }
    let fit = fit(Form::Rate { exponent: Some(3.0) }, &measured).unwrap();
    let value = |name: &str| fit.coefficients.iter().find(|found| found.name == name).unwrap().value;
    for (name, wanted) in [("rising", rising), ("linear", linear), ("constant", constant)] {
        assert!((value(name) / wanted - 1.0).abs() < 1e-3, "{name}: {} {wanted}", value(name));
    }
    assert!(fit.errors.max < 1e-9);
    let of_all = Rates::all(800.0);
    assert_eq!(of_all.mean(|rate| rate * rate), Rates::of(&[800.0; 6]).mean(|rate| rate * rate));
}
