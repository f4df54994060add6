//! Error bands of the predicted time and energy of a run, from the errors stated in the chip file.
//!
//! The rule, explained in `docs/chip/validation.md`, is not statistics: each category of time is off by the widest
//! error of the constants that it depends on, all in the same direction, and waiting ends when others are done. A
//! constant with an unknown error counts as off by a factor of two and is listed, as are influences that no error
//! covers. The bands are computed from the report after the run. Invariant: a predicted figure is within its band.

use crate::energy::{Energy, ModelEnergy};
use crate::report::{Report, TIME_CATEGORIES, TimeCategory};
use isles_chip::Chip;
use isles_chip::file::Band;
use isles_chip::quantity::{PICOSECONDS_PER_SECOND, Picoseconds, scaled};
use std::fmt;

/// Page that explains the rule.
pub(crate) const PAGE: &str = "docs/chip/validation.md#how-far-off-a-prediction-is";

/// Error of the instructions of a protocol and of a poll, which are our estimates.
const INSTRUCTIONS: ErrorFactor = ErrorFactor { least: 0.5, most: 2.0 };

/// Error of a constant without a stated error, so that missing knowledge does not look better than a stated error.
const UNKNOWN: ErrorFactor = ErrorFactor { least: 0.5, most: 2.0 };

/// Keys of the costs of lines of message buffers; below, of private memory and of shared memory.
const BUFFERS: [&str; 2] = ["buffer_line", "buffer_word"];
const FETCHED: [&str; 2] = ["memory_cached", "second_cache"];
const SHARED: [&str; 6] =
    ["memory_word", "memory_through", "memory_cached", "flush_start", "flush_line", "flush_all"];

/// Ranges in which the true time and energy of a run may fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// Range of the predicted time.
    pub time: [Picoseconds; 2],
    /// Range of the energy and the mean power; `None` if no power is published.
    pub energy: Option<EnergyBands>,
    /// Constants without a stated error, which count as off by a factor of two.
    pub unknown: Vec<String>,
    /// Influences that no stated error covers, as text.
    pub besides: Vec<String>,
}

/// Ranges in which the true energy and power of a run may fall, by any of its power models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyBands {
    /// Energy in joules, with the error of the time included.
    pub joules: [f64; 2],
    /// Mean power in watts.
    pub watts: [f64; 2],
}

/// Range of the factor between the true and the stated value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ErrorFactor {
    least: f64,
    most: f64,
}

impl ErrorFactor {
    const EXACT: ErrorFactor = ErrorFactor { least: 1.0, most: 1.0 };

    /// Returns the range of factors; `None` if the error is unknown or not relative.
    fn of(band: Band) -> Option<ErrorFactor> {
        match band {
            Band::Exact => Some(ErrorFactor::EXACT),
            Band::Percent(percent) => {
                let part = percent / 100.0;
                Some(ErrorFactor { least: (1.0 - part).max(0.0), most: 1.0 + part })
            }
            Band::Factor(factor) => Some(ErrorFactor { least: 1.0 / factor, most: factor }),
            Band::Absolute(_) | Band::Unknown => None,
        }
    }

    fn or(self, other: ErrorFactor) -> ErrorFactor {
        ErrorFactor { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl Bands {
    /// Returns the bands of a run on `chip`.
    pub fn of(chip: &Chip, report: &Report) -> Bands {
        let mut causes = ErrorCauses { unknown: Vec::new(), besides: beyond_errors(report) };
        let share = of_time(chip, report, &mut causes);
        let time = [share.least, share.most].map(|share| Picoseconds((report.time.0 as f64 * share) as u64));
        let energy = report.energy.as_ref();
        let energy = energy.and_then(|energy| of_energy(chip, energy, share, &mut causes));
        let ErrorCauses { unknown, besides } = causes;
        Bands { time, energy, unknown, besides }
    }
}

/// Causes of error that are named beside the bands.
struct ErrorCauses {
    unknown: Vec<String>,
    besides: Vec<String>,
}

/// Returns the influences on the run that no error of the chip file covers.
fn beyond_errors(report: &Report) -> Vec<String> {
    let assumes_power = report.energy.as_ref().is_some_and(|energy| !energy.assumed.is_empty());
    let all = [
        ("the work that the program declares", spent(report, TimeCategory::Working) > 0),
        ("the ratio of measured code", spent(report, TimeCategory::Measured) > 0),
        ("code that is charged nothing", spent(report, TimeCategory::Measured) == 0),
        ("contention", report.flit_hops > 0),
        ("voltage changes", report.shifts.voltages > 0),
        ("assumed powers", assumes_power),
    ];
    all.into_iter().filter(|(_, is_so)| *is_so).map(|(what, _)| what.to_owned()).collect()
}

/// Returns the error of the time: the errors of the categories, weighted by their times.
fn of_time(chip: &Chip, report: &Report, causes: &mut ErrorCauses) -> ErrorFactor {
    let (mut all, mut sum) = (0.0, ErrorFactor { least: 0.0, most: 0.0 });
    for (category, _) in TIME_CATEGORIES {
        let time = spent(report, category) as f64;
        if time > 0.0
            && let Some(share) = of_category(chip, report, category, causes)
        {
            all += time;
            sum.least += time * share.least;
            sum.most += time * share.most;
        }
    }
    if all > 0.0 { ErrorFactor { least: sum.least / all, most: sum.most / all } } else { ErrorFactor::EXACT }
}

/// Returns the picoseconds of all places in a category.
fn spent(report: &Report, category: TimeCategory) -> u128 {
    report.ledgers.iter().map(|ledger| u128::from(ledger.time(category).0)).sum()
}

/// Returns the widest error of the constants that a category of time depends on; `None` for waiting.
fn of_category(
    chip: &Chip,
    report: &Report,
    category: TimeCategory,
    causes: &mut ErrorCauses,
) -> Option<ErrorFactor> {
    let preset = chip.default_preset().name();
    let mut of_preset = |keys: &[&str]| {
        widest(chip, causes, |path| {
            within(path, "preset", preset)
                .filter(|name| keys.iter().any(|key| name.split('.').next() == Some(key)))
        })
    };
    Some(match category {
        TimeCategory::Waiting | TimeCategory::Sleeping => return None,
        TimeCategory::Handling | TimeCategory::Polling => INSTRUCTIONS,
        TimeCategory::Measured => ErrorFactor::EXACT,
        TimeCategory::Working if !report.by_class => ErrorFactor::EXACT,
        TimeCategory::Working => widest(chip, causes, |path| path.strip_prefix("core.operation.")),
        TimeCategory::Fetching if report.is_memory_crowded => {
            of_preset(&[&FETCHED[..], &["controller_line"]].concat())
        }
        TimeCategory::Fetching => of_preset(&FETCHED),
        TimeCategory::Copying if report.stale.is_some() => of_preset(&[&BUFFERS[..], &SHARED].concat()),
        TimeCategory::Copying => of_preset(&BUFFERS),
    })
}

/// Returns the rest of `path` within the entry `name` of a table; the name may be quoted.
fn within<'a>(path: &'a str, table: &str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(table)?.strip_prefix('.')?;
    let quoted = || rest.strip_prefix('"')?.strip_prefix(name)?.strip_prefix('"');
    rest.strip_prefix(name).or_else(quoted)?.strip_prefix('.')
}

/// Returns the widest error of some constants, and adds those with an unknown error to `causes`.
///
/// `name` returns the name of a constant from its path, if it is one of them.
fn widest(chip: &Chip, causes: &mut ErrorCauses, name: impl Fn(&str) -> Option<&str>) -> ErrorFactor {
    let mut all = ErrorFactor::EXACT;
    for constant in chip.constants() {
        let Some(name) = name(&constant.path) else { continue };
        let is_unknown = constant.band == Band::Unknown;
        let share = if is_unknown { Some(UNKNOWN) } else { ErrorFactor::of(constant.band) };
        all = share.map_or(all, |share| all.or(share));
        let names = if is_unknown { &mut causes.unknown } else { &mut causes.besides };
        if (is_unknown || share.is_none()) && !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    all
}

/// Returns the range from the lowest to the highest model, each with the widest error of its coefficients.
fn of_energy(
    chip: &Chip,
    energy: &Energy,
    time: ErrorFactor,
    causes: &mut ErrorCauses,
) -> Option<EnergyBands> {
    let mut watts: Option<[f64; 2]> = None;
    for model in &energy.models {
        let [least, most] = of_model(chip, energy, model, causes);
        watts = Some(watts.map_or([least, most], |all| [all[0].min(least), all[1].max(most)]));
    }
    let seconds = energy.span.0 as f64 / PICOSECONDS_PER_SECOND as f64;
    let joules = |watts: [f64; 2]| [watts[0] * seconds * time.least, watts[1] * seconds * time.most];
    watts.map(|watts| EnergyBands { joules: joules(watts), watts })
}

fn of_model(chip: &Chip, energy: &Energy, model: &ModelEnergy, causes: &mut ErrorCauses) -> [f64; 2] {
    let share = widest(chip, causes, |path| {
        within(path, "power", &model.name).filter(|coefficient| !coefficient.contains('.')).map(|_| path)
    });
    [share.least, share.most].map(|share| energy.mean(model).watts() * share)
}

impl fmt::Display for Bands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.map(|time| time.0 as f64 / PICOSECONDS_PER_SECOND as f64);
        let band =
            |[least, most]: [f64; 2], unit| format!("{} to {}", scaled(least, unit), scaled(most, unit));
        write!(f, "how far off     {} by the errors stated in the chip's file", band(seconds, "s"))?;
        if let Some(EnergyBands { joules, watts }) = self.energy {
            write!(f, "; {}, {}, by any of the models", band(joules, "J"), band(watts, "W"))?;
        }
        if !self.unknown.is_empty() {
            write!(f, "\n  error unknown {}; counted as a factor of 2", self.unknown.join(", "))?;
        }
        write!(f, "\n  besides       {}; see {PAGE}", self.besides.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_less_than_no_time_however_wide_its_error_is() {
        let share = |band| ErrorFactor::of(band).map(|share| [share.least, share.most]);
        assert_eq!(share(Band::Percent(25.0)), Some([0.75, 1.25]));
        assert_eq!(share(Band::Percent(150.0)), Some([0.0, 2.5]));
        assert_eq!(share(Band::Factor(4.0)), Some([0.25, 4.0]));
    }
}
