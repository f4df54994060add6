//! Axes: positions of values, and ticks at round values.
//!
//! A [`Ruler`] is an axis fitted to the values of a figure and the available room. Logarithmic axes tick at powers of
//! ten, between them if there are few, and at powers of two if all values are such powers. Invariants: a ruler's range
//! is finite and not empty whatever the values are, and each tick lies in it.

use crate::figure::Interval;
use crate::text::{DisplayUnit, number, prefix_for};

/// Conversion of values to lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equal lengths.
    Linear,
    /// Equal ratios are equal lengths; zero and less cannot be drawn.
    Log,
}

/// An axis of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the measured quantity, such as `Time of a run`.
    pub label: String,
    /// Its unit, such as `µs` or `MB/s`, or nothing; a known one changes its prefix to suit the values.
    pub unit: String,
    /// Conversion of values to lengths.
    pub scale: Scale,
}

/// The largest magnitude that is drawn, so that ranges stay finite even in the smallest unit.
pub(crate) const LARGEST: f64 = 1e280;

/// The least value of a logarithmic axis, and the least difference that a linear one shows: the half of a range has all
/// of its digits.
const SMALLEST: f64 = 1.0 / LARGEST;

impl Axis {
    /// An axis.
    pub fn new(label: impl Into<String>, unit: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), unit: unit.into(), scale }
    }

    /// Returns `true` if the axis can show a value.
    pub fn can_show(&self, value: f64) -> bool {
        match self.scale {
            Scale::Linear => value.abs() <= LARGEST,
            Scale::Log => (SMALLEST..=LARGEST).contains(&value),
        }
    }

    /// The label with its unit in brackets.
    fn title(&self, unit: &str) -> String {
        match (self.label.as_str(), unit) {
            (label, "") => label.to_owned(),
            ("", unit) => unit.to_owned(),
            (label, unit) => format!("{label} ({unit})"),
        }
    }
}

/// A labelled value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisLabel {
    /// Position, as a share of the axis.
    pub(crate) at: f64,
    /// Text of the label.
    pub(crate) label: String,
}

/// An axis with a range and ticks.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    scale: Scale,
    /// The least value and the largest, or their logarithms.
    low: f64,
    high: f64,
    /// The labelled values.
    pub(crate) labels: Vec<AxisLabel>,
    /// Label and unit.
    pub(crate) title: String,
    notation: Notation,
}

/// Options of a ruler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RulerOptions {
    /// Number of ticks that fit.
    pub(crate) labels_max: usize,
    /// A value that must be in the range: the baseline of bars.
    pub(crate) baseline: Option<f64>,
    /// `true` if only whole numbers are labelled.
    pub(crate) whole: bool,
}

/// Room at both ends, as a share of the range.
const MARGIN: f64 = 0.04;

impl Ruler {
    /// Returns the ruler for these values, all of which the axis can show.
    pub(crate) fn of(axis: &Axis, values: &[f64], options: RulerOptions) -> Ruler {
        let (least, most) = extent(values.iter().copied().chain(options.baseline));
        let (low, high) = match axis.scale {
            Scale::Linear => linear_range(least, most, options.baseline),
            Scale::Log => log_range(least, most, options.baseline),
        };
        let (labels, title, notation) = (Vec::new(), String::new(), Notation::default());
        let ruler = Ruler { scale: axis.scale, low, high, labels, title, notation };
        let unit = DisplayUnit::of(&axis.unit);
        let at = match axis.scale {
            Scale::Linear => linear_values(ruler.low, ruler.high, &unit, options),
            Scale::Log if are_powers_of_two(values) => powers_of_two(low, high, options.labels_max),
            Scale::Log => log_values(low, high, options),
        };
        let notation = Notation::of(&at, unit, axis.scale);
        let significant = significant(&at);
        let label =
            |value: &f64| AxisLabel { at: ruler.at(*value), label: notation.write(*value, significant) };
        let labels = at.iter().map(label).filter(|mark| (-1e-9..=1.0 + 1e-9).contains(&mark.at)).collect();
        Ruler { labels, title: axis.title(&notation.unit), notation, ..ruler }
    }

    /// Returns a value formatted for this axis.
    pub(crate) fn write(&self, value: f64, significant: usize) -> String {
        self.notation.write(value, significant)
    }

    /// Returns the position of a value, as a share of the axis; outside of 0 to 1 if it is outside of the range.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(SMALLEST).log10(),
        };
        // Halves first: the difference of two large numbers may overflow.
        (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    /// The least and the largest value of the range.
    pub(crate) fn range(&self) -> Interval {
        match self.scale {
            Scale::Linear => Interval { low: self.low, high: self.high },
            // The margins of the largest range overflow.
            Scale::Log => {
                let [low, high] = [self.low, self.high].map(|power| 10_f64.powf(power.clamp(-307.0, 307.0)));
                Interval { low, high }
            }
        }
    }

    /// Returns `true` if equal ratios are equal lengths.
    pub(crate) fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }
}

/// Returns the least and the largest value; 0 and 1 without values.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let whole = values.fold(None, |so_far: Option<(f64, f64)>, value| match so_far {
        None => Some((value, value)),
        Some((least, most)) => Some((least.min(value), most.max(value))),
    });
    whole.unwrap_or((0.0, 1.0))
}

fn linear_range(least: f64, most: f64, baseline: Option<f64>) -> (f64, f64) {
    // A range that nearly reaches zero begins at zero.
    let from_zero = least >= 0.0 && least <= most * 0.4;
    let (mut low, mut high) = if from_zero { (0.0, most) } else { (least, most) };
    if high - low <= SMALLEST.max(f64::EPSILON * high.abs().max(low.abs()) * 8.0) {
        let around = if high.abs() <= SMALLEST { 1.0 } else { high.abs() * 0.1 };
        (low, high) = (low - around, high + around);
    }
    let margin = (high / 2.0 - low / 2.0) * 2.0 * MARGIN;
    let is_baseline = |value: f64| baseline == Some(value) || (from_zero && value == 0.0);
    (if is_baseline(low) { low } else { low - margin }, if is_baseline(high) { high } else { high + margin })
}

/// Logarithms of the range.
fn log_range(least: f64, most: f64, baseline: Option<f64>) -> (f64, f64) {
    // Without values, the range of a linear axis is used.
    let (low, high) = (least.max(SMALLEST).log10(), most.max(SMALLEST).log10());
    let (low, high) = if least <= 0.0 { (high - 1.0, high) } else { (low, high) };
    let (low, high) = if high - low < 0.02 { (low - 0.15, high + 0.15) } else { (low, high) };
    let margin = (high - low) * MARGIN;
    let baseline = baseline.map(f64::log10);
    (
        if baseline == Some(low) { low } else { low - margin },
        if baseline == Some(high) { high } else { high + margin },
    )
}

/// Returns a distance of 1, 2 or 5 times a power of ten (of one, if only whole numbers are wanted) that covers the
/// range in at most `steps_max` steps.
fn round_step(range: f64, steps_max: usize, whole: bool) -> f64 {
    let least = range / steps_max.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least * 0.999);
    let step = step.unwrap_or(power * 10.0);
    if whole { step.max(1.0) } else { step }
}

/// Returns round values in the range, round in the unit of the labels.
fn linear_values(low: f64, high: f64, unit: &DisplayUnit, options: RulerOptions) -> Vec<f64> {
    let scale = match unit {
        DisplayUnit::Prefixed { factor, .. } => {
            let (_, prefix) = prefix_for(low.abs().max(high.abs()) * factor);
            prefix / factor
        }
        DisplayUnit::Bytes { factor } => 1.0 / factor,
        DisplayUnit::Plain(_) => 1.0,
    };
    let (low, high) = (low / scale, high / scale);
    let step = round_step(high - low, options.labels_max, options.whole);
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first) as usize;
    (0..=count.min(options.labels_max * 2)).map(|number| (first + number as f64) * step * scale).collect()
}

/// Returns round values for logarithms from `low` to `high`.
fn log_values(low: f64, high: f64, options: RulerOptions) -> Vec<f64> {
    let decades = || (low.floor() as i32)..=(high.ceil() as i32);
    let inside = |value: &f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
    let of = |digits: &[f64]| -> Vec<f64> {
        let all = decades().flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        all.filter(inside).filter(|value| !options.whole || value.fract() == 0.0).collect()
    };
    let sets: [&[f64]; 4] =
        [&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    // All nine digits only if they are not crowded at the end of each decade; from three decades on, powers of ten
    // only.
    let crowded = |set: &&[f64]| match set.len() {
        9 => high - low > 0.7,
        1 => false,
        _ => high - low > 2.4,
    };
    let fits = |values: &Vec<f64>| (2..=options.labels_max.max(2)).contains(&values.len());
    if let Some(found) = sets.into_iter().filter(|set| !crowded(set)).map(of).find(fits) {
        return found;
    }
    let powers = of(&[1.0]);
    if powers.len() > options.labels_max {
        // Every third power, or sixth, ..: at the prefixes of units.
        let every = (1..).map(|count| if count == 1 { 2 } else { 3 * (count - 1) });
        let every =
            every.take(400).find(|every| powers.len() / every < options.labels_max).unwrap_or(1200) as i32;
        return powers.into_iter().filter(|value| value.log10().round() as i32 % every == 0).collect();
    }
    // Less than a decade with fewer than two of those digits: ticks of a linear axis.
    let (least, most) = (10_f64.powf(low), 10_f64.powf(high));
    linear_values(least, most, &DisplayUnit::Plain(String::new()), RulerOptions { labels_max: 5, ..options })
}

fn are_powers_of_two(values: &[f64]) -> bool {
    let is_power = |value: &f64| {
        *value >= 1.0 && *value <= 1e18 && (*value as u64).is_power_of_two() && value.fract() == 0.0
    };
    let (least, most) = extent(values.iter().copied());
    values.len() > 2 && most > least * 3.0 && values.iter().all(is_power)
}

fn powers_of_two(low: f64, high: f64, labels_max: usize) -> Vec<f64> {
    let log2 = |power: f64| power / 2_f64.log10();
    let (first, last) = ((log2(low) - 1e-9).ceil().max(0.0) as i32, (log2(high) + 1e-9).floor() as i32);
    // Each tenth is a prefix of bytes.
    let steps = [1, 2, 5, 10, 20, 30];
    let every = steps.into_iter().find(|every| (last - first) / every < labels_max as i32).unwrap_or(60);
    (first..=last).filter(|power| power % every == 0).map(|power| 2_f64.powi(power)).collect()
}

/// Notation of the values of an axis.
#[derive(Clone, Debug, Default)]
struct Notation {
    /// The unit of each value, if each has its own.
    each: Option<DisplayUnit>,
    /// Divisor of values, for the unit that all share.
    divisor: f64,
    /// Unit that all share, shown in the title.
    unit: String,
}

impl Notation {
    /// Chooses the notation for these values.
    fn of(values: &[f64], unit: DisplayUnit, scale: Scale) -> Notation {
        let sizes = || values.iter().map(|value| value.abs());
        let largest = sizes().fold(0.0, f64::max);
        let least = sizes().filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
        match unit {
            DisplayUnit::Plain(unit) => Notation { each: None, divisor: 1.0, unit },
            // Over many powers of ten each value has its own prefix.
            DisplayUnit::Prefixed { factor, base } if scale == Scale::Linear || largest / least <= 900.0 => {
                let typical = if scale == Scale::Log { least } else { largest };
                let (prefix, step) = prefix_for(typical * factor);
                Notation { each: None, divisor: step / factor, unit: format!("{prefix}{base}") }
            }
            unit => Notation { each: Some(unit), divisor: 1.0, unit: String::new() },
        }
    }

    fn write(&self, value: f64, significant: usize) -> String {
        match &self.each {
            Some(unit) => unit.show(value, significant),
            None => number(value / self.divisor, significant),
        }
    }
}

/// Returns the least number of significant digits that distinguishes the values.
fn significant(values: &[f64]) -> usize {
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let apart = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::INFINITY, f64::min);
    let digits = (largest / apart).log10();
    if digits.is_finite() { (digits.ceil() as usize + 1).clamp(4, 15) } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMY: RulerOptions = RulerOptions { labels_max: 7, baseline: None, whole: false };

    fn shown(axis: &Axis, values: &[f64]) -> Vec<String> {
        Ruler::of(axis, values, ROOMY).labels.into_iter().map(|mark| mark.label).collect()
    }

    fn axis(unit: &str, scale: Scale) -> Axis {
        Axis::new("Time", unit, scale)
    }

    #[test]
    fn linear_ticks_are_round_in_the_unit_that_is_written() {
        let ruler = Ruler::of(&axis("s", Scale::Linear), &[0.0, 0.043], ROOMY);
        let labels: Vec<&str> = ruler.labels.iter().map(|mark| mark.label.as_str()).collect();
        assert_eq!((labels, ruler.title.as_str()), (vec!["0", "10", "20", "30", "40"], "Time (ms)"));
        assert_eq!(shown(&axis("", Scale::Linear), &[100.0, 101.0]).first().unwrap(), "100");
    }

    #[test]
    fn log_ticks_are_powers_of_ten_or_between_them_or_powers_of_two() {
        assert_eq!(shown(&axis("", Scale::Log), &[1.0, 1000.0]), ["1", "10", "100", "1000"]);
        assert_eq!(shown(&axis("", Scale::Log), &[1.0, 48.0]), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(shown(&axis("", Scale::Log), &[3.0, 5.5]), ["3", "4", "5"]);
        assert_eq!(shown(&axis("", Scale::Log), &[1.0, 2.0, 4.0, 8.0]), ["1", "2", "4", "8"]);
        assert_eq!(shown(&axis("B", Scale::Log), &[1.0, 1024.0, 1_048_576.0]).last().unwrap(), "1 MiB");
        assert_eq!(shown(&axis("µs", Scale::Log), &[2.0, 184_164.0])[1], "100 µs");
        assert_eq!(shown(&axis("", Scale::Log), &[1e-30, 1e30]).len(), 5);
    }

    #[test]
    fn a_value_lies_where_its_logarithm_says() {
        let ruler = Ruler::of(&axis("", Scale::Log), &[1.0, 100.0], ROOMY);
        let (one, ten, hundred) = (ruler.at(1.0), ruler.at(10.0), ruler.at(100.0));
        assert!((ten - (one + hundred) / 2.0).abs() < 1e-12);
        let ruler = Ruler::of(&axis("", Scale::Linear), &[0.0, 50.0], ROOMY);
        assert_eq!(ruler.at(0.0), 0.0, "an axis that is near zero begins there");
        assert!(ruler.at(50.0) < 1.0);
    }

    #[test]
    fn ranges_are_never_empty() {
        for scale in [Scale::Linear, Scale::Log] {
            for values in [
                &[][..],
                &[5.0],
                &[5.0, 5.0],
                &[1e280],
                &[1e-280, 1e280],
                &[7e-280],
                &[5e-324],
                &[-5e-324, 1e-310],
            ] {
                let ruler = Ruler::of(&axis("s", scale), values, ROOMY);
                assert!(ruler.low < ruler.high && !ruler.labels.is_empty(), "{values:?} {scale:?} {ruler:?}");
                assert!(values.iter().all(|value| (0.0..=1.0).contains(&ruler.at(*value))), "{values:?}");
            }
        }
        let ruler = Ruler::of(&axis("", Scale::Linear), &[-1e280, 1e280], ROOMY);
        assert!(ruler.at(0.0) == 0.5 && !ruler.labels.is_empty());
    }
}
