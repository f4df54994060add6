//! One setting and the result of its run; running all of them.

use super::constants::{self, Constant};
use super::{Arguments, GOVERNOR, MACHINE, PLACES, SET, SweepContext, refusal};
use crate::run;
use isles::{Claim, Flag, GovernorPolicy};
use isles_app::frame::NO_FILES;
use isles_app::{Failure, console, runs};
use serde_json::Value;
use std::fmt;
use std::path::Path;

/// Value of `--region` for the whole run.
const WHOLE_RUN: &str = "none";

/// A setting to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Constants of the chip that replace those of its file.
    pub constants: Vec<Constant>,
    pub places: u32,
    /// Policy of the clocks: one divider for all cores with places, at the voltage that it needs, or a governor.
    pub policy: GovernorPolicy,
}

impl fmt::Display for Setting {
    /// Formats the flags that repeat it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting { places, policy, constants } = self;
        write!(f, "--places {places} --governor {policy}{}", constants::flags(constants))
    }
}

/// Result of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub setting: Setting,
    /// Clock in MHz and voltage; `None` if no divider was named.
    pub clock: Option<(f64, f64)>,
    pub seconds: f64,
    pub joules: f64,
    pub mean_watts: f64,
    pub peak_watts: f64,
    /// Mean power of the whole run by each model of the chip; all other figures use the first model.
    pub models: Vec<(String, f64)>,
    /// Marked region to which time, energy and mean power belong; `None` for the whole run.
    pub region: Option<String>,
    /// Number of times that the task runs the region; time and energy are for all of them.
    pub times: u32,
}

impl Point {
    /// Energy times delay.
    pub fn energy_delay(&self) -> f64 {
        self.joules * self.seconds
    }
}

/// Program whose runs are tried.
pub enum Subject {
    /// An application of the suite, and its arguments.
    Application { name: &'static str, own: Vec<String> },
    /// A program that a user has built with Isles, and its arguments.
    Program { program: String, own: Vec<String> },
}

impl Subject {
    /// Returns the subject that the arguments name.
    ///
    /// # Errors
    /// There is no such application, or nothing is named.
    pub fn of(arguments: &Arguments) -> Result<Subject, Failure> {
        let words = &arguments.words;
        match (&arguments.app, words.split_first()) {
            (Some(app), _) => Ok(Subject::Application { name: run::app("--app", app)?, own: words.clone() }),
            (None, Some((program, own))) if !program.starts_with('-') => {
                Ok(Subject::Program { program: program.clone(), own: own.to_vec() })
            }
            _ => Err(Failure::Usage(
                "isles sweep needs something to run: --app NAME and its flags, or -- PROGRAM and its \
                 arguments"
                    .to_owned(),
            )),
        }
    }

    /// Returns the application, or the program without its folders.
    pub fn name(&self) -> &str {
        match self {
            Subject::Application { name, .. } => name,
            Subject::Program { program, .. } => {
                Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
            }
        }
    }

    /// Returns the name with the arguments.
    pub fn words(&self) -> String {
        let (Subject::Application { own, .. } | Subject::Program { own, .. }) = self;
        std::iter::once(self.name()).chain(own.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the files that will be read, as far as they are known.
    ///
    /// # Errors
    /// An application's own arguments are invalid.
    pub fn reads(&self) -> Result<Vec<Claim>, Failure> {
        match self {
            Subject::Application { name, own } => runs::reads(name, own),
            Subject::Program { program, .. } => Ok(vec![Claim::read(program, "the program")]),
        }
    }

    /// Returns the summary of run `number` of a sweep; `flags` choose its places and chip.
    fn summary(&self, number: usize, flags: &[Flag<'_>]) -> Result<Value, Failure> {
        match self {
            Subject::Application { name, own } => {
                let own: Vec<String> = own.iter().cloned().chain(NO_FILES.map(str::to_owned)).collect();
                runs::summary(name, &own, flags.iter().flat_map(|flag| [flag.name, flag.value]))
            }
            Subject::Program { program, own } => {
                let file = format!("isles-sweep-{}-{number}.json", std::process::id());
                runs::program_summary(program, own, flags, &std::env::temp_dir().join(file))
            }
        }
    }
}

/// Runs settings, with everything that their runs have in common.
pub struct Runner<'a> {
    pub subject: &'a Subject,
    pub context: &'a SweepContext<'a>,
    /// The marked region to judge by, as the user named it.
    pub region: Option<&'a str>,
    /// Number of times the task runs the region.
    pub times: u32,
}

impl Runner<'_> {
    /// Runs all settings, several at once. Returns the points in order, without failed runs, whose number a warning
    /// gives: a program may work at some settings only, for instance because a tile's divider needs a voltage.
    ///
    /// # Errors
    /// A run refused its settings, and the others are not started; or all of them failed.
    pub fn run(&self, settings: &[Setting]) -> Result<Vec<Point>, Failure> {
        let one = |number| match self.one(number, &settings[number]) {
            Err(Failure::Ended(why)) => Ok(Err((number, why))),
            ended => ended.map(Ok),
        };
        let (mut points, mut failed) = (Vec::new(), Vec::new());
        for ended in runs::all(settings.len(), "settings", one)? {
            match ended {
                Ok(point) => points.push(point),
                Err(failure) => failed.push(failure),
            }
        }
        let (number, all) = (failed.len(), settings.len());
        match failed.into_iter().next() {
            Some((_, why)) if points.is_empty() => return Err(Failure::Ended(why)),
            Some((first, why)) => console::notice(format_args!(
                "warning: {number} of {all} settings failed and are left out, the first at {}: {why}",
                settings[first]
            )),
            None => {}
        }
        Ok(points)
    }

    fn one(&self, number: usize, setting: &Setting) -> Result<Point, Failure> {
        let (places, policy) = (setting.places.to_string(), setting.policy.to_string());
        let own = [
            Flag { variable: MACHINE.variable, name: "--machine", value: self.context.machine },
            Flag { variable: PLACES.variable, name: "--places", value: &places },
            Flag { variable: GOVERNOR.variable, name: "--governor", value: &policy },
        ];
        let constants = constants::to_argument(&setting.constants);
        let set = Flag { variable: SET.variable, name: "--set", value: &constants };
        let set = (!constants.is_empty()).then_some(set);
        let flags = own.into_iter().chain(set).chain(self.context.said.iter().copied());
        let flags: Vec<Flag<'_>> = flags.collect();
        let summary = self.subject.summary(number, &flags)?;
        let lacking = || Failure::Ended("the summary of a run lacks figures".to_owned());
        let region = self.region_of(&summary)?;
        if region.is_none() && self.times > 1 {
            return Err(refusal("--times", &self.times.to_string(), "1, for runs judged as a whole"));
        }
        self.point(setting, &summary, region).ok_or_else(lacking)
    }

    /// Returns the marked region to judge a run by: the named one, or the only one; `None` for the whole run.
    ///
    /// # Errors
    /// The program has marked no region of that name.
    fn region_of<'s>(&self, summary: &'s Value) -> Result<Option<&'s Value>, Failure> {
        let regions = summary["regions"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(said) = self.region else {
            return Ok(regions.first().filter(|_| regions.len() == 1));
        };
        if said == WHOLE_RUN {
            return Ok(None);
        }
        let found = regions.iter().find(|region| region["name"] == said);
        let names = || regions.iter().filter_map(|region| region["name"].as_str());
        let allowed = || [WHOLE_RUN].into_iter().chain(names()).collect::<Vec<_>>().join(", ");
        found.map(Some).ok_or_else(|| refusal("--region", said, &allowed()))
    }

    fn point(&self, setting: &Setting, summary: &Value, region: Option<&Value>) -> Option<Point> {
        let energy = &summary["energy"];
        let models = energy["models"].as_array()?;
        let own = models.first()?;
        let clock = match setting.policy {
            GovernorPolicy::FixedAt(divider) => {
                let gears = self.context.gears.as_ref()?;
                let gear = gears.gear(gears.divided_by(divider)?);
                let volts = gears.voltage(gear.step).map_or(0.0, |voltage| voltage.volts());
                Some((gear.rate.megahertz(), volts))
            }
            _ => None,
        };
        let name = |model: &Value| Some((model["name"].as_str()?.to_owned(), model["mean_w"].as_f64()?));
        let (seconds, joules, mean_watts) = match region {
            None => (summary["predicted_ps"].as_u64()?, own["total_j"].as_f64()?, own["mean_w"].as_f64()?),
            Some(region) => {
                let (time, joules) = (region["time_ps"].as_u64()?, region["energy_j"].as_f64()?);
                (time, joules, joules / (time.max(1) as f64 / 1e12))
            }
        };
        Some(Point {
            setting: setting.clone(),
            clock,
            seconds: seconds as f64 / 1e12 * f64::from(self.times),
            joules: joules * f64::from(self.times),
            mean_watts,
            peak_watts: energy["peak_w"].as_f64()?,
            models: models.iter().map(name).collect::<Option<_>>()?,
            region: region.and_then(|region| Some(region["name"].as_str()?.to_owned())),
            times: self.times,
        })
    }
}
