//! One setting and what a run at it came to; running all of them.

use super::Ground;
use isles::{GovernorPolicy, SWEEP_VARIABLE};
use isles_apps::console;
use isles_apps::registry::{App, ExportArguments, Failure, Said};
use serde_json::Value;
use std::env;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

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
    pub app: &'static dyn App,
    pub own: Vec<String>,
    pub ground: &'a Ground<'a>,
}

impl Runner<'_> {
    /// Runs all settings, some at once; in their order.
    ///
    /// # Errors
    /// The first run that failed; the others are not begun any more.
    pub fn run(&self, settings: &[Setting]) -> Result<Vec<Point>, Failure> {
        // The first alone: what is wrong with the application's arguments is said once.
        let mut results: Vec<Mutex<Option<Result<Point, Failure>>>> = Vec::new();
        results.resize_with(settings.len(), Mutex::default);
        let (next, done) = (AtomicUsize::new(1), AtomicUsize::new(0));
        let one = |number: usize| -> bool {
            let result = self.one(settings[number]);
            let good = result.is_ok();
            *results[number].lock().unwrap_or_else(|poison| poison.into_inner()) = Some(result);
            // Relaxed: only for people.
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done % 10 == 0 || done == settings.len() {
                console::notice(format_args!("{done} of {} settings", settings.len()));
            }
            good
        };
        if !settings.is_empty() && one(0) {
            let workers = thread::available_parallelism().map_or(1, usize::from).min(settings.len());
            thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|| {
                        loop {
                            // Relaxed: each number is given once, and nothing else is shared by it.
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= settings.len() || !one(number) {
                                // Whoever comes next finds nothing to do.
                                next.fetch_max(settings.len(), Ordering::Relaxed);
                                return;
                            }
                        }
                    });
                }
            });
        }
        let results = results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_default());
        results.collect()
    }

    fn one(&self, setting: Setting) -> Result<Point, Failure> {
        let failed = |what: String| Failure::Ended(what);
        let own = env::current_exe().map_err(|cause| failed(format!("cannot find this program: {cause}")))?;
        let mut command = Command::new(own);
        // All runs would write into the same files.
        for Said(variable, ..) in ExportArguments::default().said() {
            command.env_remove(variable);
        }
        command
            .env(SWEEP_VARIABLE, std::process::id().to_string())
            .env_remove("ISLES_REPORT")
            .args(["run", self.app.name()])
            .args(&self.own)
            .args(["--machine", self.ground.machine, "--places", &setting.places.to_string()])
            .args(["--governor", &setting.policy.to_string(), "--summary", "-"])
            .args(self.ground.said.iter().flat_map(|flag| [flag.name, flag.value]))
            .stdin(Stdio::null());
        let ended = command.output().map_err(|cause| failed(format!("cannot start a run: {cause}")))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            let line = said.lines().rev().find_map(|line| line.strip_prefix("error: "));
            let line = line.unwrap_or("it ended without a word").to_owned();
            let usage = ended.status.code() == Some(2);
            return Err(if usage { Failure::Usage(line) } else { Failure::Ended(line) });
        }
        let summary: Value = serde_json::from_slice(&ended.stdout)
            .map_err(|fault| failed(format!("the summary of a run cannot be read: {fault}")))?;
        self.point(setting, &summary).ok_or_else(|| failed("the summary of a run lacks figures".to_owned()))
    }

    fn point(&self, setting: Setting, summary: &Value) -> Option<Point> {
        let energy = &summary["energy"];
        let models = energy["models"].as_array()?;
        let own = models.first()?;
        let clock = match setting.policy {
            GovernorPolicy::FixedAt(divider) => {
                let gear = self.ground.gears.gear(self.ground.gears.divided_by(divider)?);
                let volts = self.ground.gears.voltage(gear.step).map_or(0.0, |voltage| voltage.volts());
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
