//! How far a run is: a bar on a terminal, a plain line now and then elsewhere.

use crate::console;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Least time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Least time between two drawings of the bar.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a run with a known number of steps, told to standard error.
pub struct Progress {
    bar: ProgressBar,
    unit: &'static str,
    total: u64,
    started: Instant,
    /// When something was last told.
    told: Instant,
    /// Whether the bar is drawn; else plain lines are printed.
    drawn: bool,
}

impl Progress {
    /// Progress over `total` steps, named `unit` in the plural.
    pub fn new(total: u64, unit: &'static str) -> Self {
        let drawn = std::io::stderr().is_terminal();
        let target = if drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let template = format!("{{bar:40}} {{pos}}/{{len}} {unit}, {{rate}} {unit}/s, {{eta}} left");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let rate = |state: &ProgressState, text: &mut dyn Write| {
            let _ = write!(text, "{:.0}", state.per_sec()); // a bar that cannot be drawn is left out
        };
        let style = style.with_key("rate", rate);
        let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style);
        let now = Instant::now();
        Progress { bar, unit, total, started: now, told: now, drawn }
    }

    /// Whether it is time to tell again; cheap, so that a loop can ask at each turn.
    pub fn is_due(&self) -> bool {
        self.told.elapsed() >= if self.drawn { DRAW_INTERVAL } else { LINE_INTERVAL }
    }

    /// Tells that `done` steps are done.
    pub fn tell(&mut self, done: u64) {
        self.told = Instant::now();
        if self.drawn {
            self.bar.set_position(done);
            return;
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = done as f64 / elapsed;
        let left = self.total.saturating_sub(done) as f64 / rate;
        let (total, unit) = (self.total, self.unit);
        console::notice(format_args!("{done} of {total} {unit}, {rate:.0} {unit}/s, {left:.0} s left"));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
