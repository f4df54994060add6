//! One setting and what a run at it came to; running all of them.

use super::SweepContext;
use isles::GovernorPolicy;
use isles_app::{Failure, runs};
use serde_json::Value;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub places: u32,
    /// What sets the clocks: one divider for all cores with places, at the voltage that it needs, or a governor.
    pub policy: GovernorPolicy,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub setting: Setting,
    /// The clock in MHz and the voltage; none if no divider was named.
    pub clock: Option<(f64, f64)>,
    pub seconds: f64,
    pub joules: f64,
    pub mean_watts: f64,
    pub peak_watts: f64,
    /// Mean power by each model of the chip, the first of which all other figures are by.
    pub models: Vec<(String, f64)>,
}

impl Point {
    /// Energy times delay.
    pub fn energy_delay(&self) -> f64 {
        self.joules * self.seconds
    }
}

/// What all runs have in common.
pub struct Runner<'a> {
    pub app: &'static str,
    pub own: Vec<String>,
    pub context: &'a SweepContext<'a>,
}

impl Runner<'_> {
    /// Runs all settings, some at once; in their order.
    ///
    /// # Errors
    /// The first run that failed; the others are not begun any more.
    pub fn run(&self, settings: &[Setting]) -> Result<Vec<Point>, Failure> {
        runs::all(settings.len(), "settings", |number| self.one(settings[number]))
    }

    fn one(&self, setting: Setting) -> Result<Point, Failure> {
        let (places, policy) = (setting.places.to_string(), setting.policy.to_string());
        let said = self.context.said.iter().flat_map(|flag| [flag.name, flag.value]);
        let told = ["--machine", self.context.machine, "--places", &places, "--governor", &policy];
        let summary = runs::summary(self.app, &self.own, told.into_iter().chain(said))?;
        let lacking = || Failure::Ended("the summary of a run lacks figures".to_owned());
        self.point(setting, &summary).ok_or_else(lacking)
    }

    fn point(&self, setting: Setting, summary: &Value) -> Option<Point> {
        let energy = &summary["energy"];
        let models = energy["models"].as_array()?;
        let own = models.first()?;
        let clock = match setting.policy {
            GovernorPolicy::FixedAt(divider) => {
                let gear = self.context.gears.gear(self.context.gears.divided_by(divider)?);
                let volts = self.context.gears.voltage(gear.step).map_or(0.0, |voltage| voltage.volts());
                Some((gear.rate.megahertz(), volts))
            }
            _ => None,
        };
        let name = |model: &Value| Some((model["name"].as_str()?.to_owned(), model["mean_w"].as_f64()?));
        Some(Point {
            setting,
            clock,
            seconds: summary["predicted_ps"].as_u64()? as f64 / 1e12,
            joules: own["total_j"].as_f64()?,
            mean_watts: own["mean_w"].as_f64()?,
            peak_watts: energy["peak_w"].as_f64()?,
            models: models.iter().map(name).collect::<Option<_>>()?,
        })
    }
}
