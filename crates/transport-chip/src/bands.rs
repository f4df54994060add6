//! How far off the predicted time and energy of a run may be, by the errors that the chip's file states.
//!
//! A rule and no statistics, said in `docs/chip/validation.md`: everything that places did is off by the widest error
//! of the constants that it rests on, all to one side, and waiting ends when others are done. A constant whose error
//! nobody knows counts as off by a factor of two, and is named; so is what no error is about. It is known when the run
//! is over, from what the report says. Invariant: a figure that was predicted lies in
//! its band.

use crate::energy::{Energy, ModelEnergy};
use crate::report::{Report, TIME_CATEGORIES, TimeCategory};
use isles_chip::Chip;
use isles_chip::file::Band;
use isles_chip::quantity::{PICOSECONDS_PER_SECOND, Picoseconds, scaled};
use std::fmt;

/// Page that explains the rule.
pub(crate) const PAGE: &str = "docs/chip/validation.md#how-far-off-a-prediction-is";

/// The instructions of a protocol, and those of a poll, are estimates of ours, and what stands in the file for them
/// has this error, too.
const INSTRUCTIONS: ErrorFactor = ErrorFactor { least: 0.5, most: 2.0 };

/// Error of a constant for which no error is stated: missing knowledge must not look better than a stated error.
const UNKNOWN: ErrorFactor = ErrorFactor { least: 0.5, most: 2.0 };

/// Entries with the cost of a message buffer's line; below, those of private memory's lines and of accesses to shared
/// memory.
const BUFFERS: [&str; 2] = ["buffer_line", "buffer_word"];
const FETCHED: [&str; 2] = ["memory_cached", "second_cache"];
const SHARED: [&str; 6] =
    ["memory_word", "memory_through", "memory_cached", "flush_start", "flush_line", "flush_all"];

/// Ranges in which the true time and energy of a run may fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// Of the predicted time.
    pub time: [Picoseconds; 2],
    /// Range of the energy and the mean power; `None` if no power is published.
    pub energy: Option<EnergyBands>,
    /// Constants without a stated error, which count as off by a factor of two.
    pub unknown: Vec<String>,
    /// Influences that no stated error covers, in words.
    pub besides: Vec<String>,
}

/// Ranges in which the true energy and power of a run may fall, by any of its power models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyBands {
    /// In joules, if the time is off as well.
    pub joules: [f64; 2],
    /// The mean power in watts.
    pub watts: [f64; 2],
}

/// Range of factors by which a value may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ErrorFactor {
    least: f64,
    most: f64,
}

impl ErrorFactor {
    const EXACT: ErrorFactor = ErrorFactor { least: 1.0, most: 1.0 };

    /// None if nobody knows it, or it is no share of the value.
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
    /// Of a run on `chip`.
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

/// Returns the things the run depends on that no error of the chip's file covers.
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

/// Of all that places did, by how much of it each category is.
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

/// Picoseconds of all places.
fn spent(report: &Report, category: TimeCategory) -> u128 {
    report.ledgers.iter().map(|ledger| u128::from(ledger.time(category).0)).sum()
}

/// The widest error of what a category of time rests on; none for what ends when others are done.
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

/// Returns the rest of `path` within the entry `name` of a table, in quotation marks unless it is just letters.
fn within<'a>(path: &'a str, table: &str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(table)?.strip_prefix('.')?;
    let quoted = || rest.strip_prefix('"')?.strip_prefix(name)?.strip_prefix('"');
    rest.strip_prefix(name).or_else(quoted)?.strip_prefix('.')
}

/// The widest of the errors of some constants; those of which none is known are named.
///
/// `name` gives what a constant is called, from its path, if it is one of them.
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

/// From the model that says least to the one that says most, each with the widest error of its coefficients.
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
