//! Terminal output: results on standard output, notices on standard error, and progress of a run.
//!
//! It exists because `println!` panics on a closed pipe. [`Progress`] is a bar on a terminal, always one line, because
//! a wrapped line cannot be erased; elsewhere it prints a plain line from time to time. A [`PhaseLine`] shows the name
//! of a phase before it has a bar. Invariants: a closed pipe does not affect the run and its files, and ends the
//! command quietly; dropping a [`Progress`] or a [`PhaseLine`] erases it from the terminal.

use isles::StandardStream;
use rustix::fd::AsFd;
use rustix::termios::tcgetwinsize;
use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Default number of columns of a terminal.
pub const COLUMNS: usize = 80;

/// Writes `text` to standard output, to the last byte.
///
/// # Errors
/// The system reports an error, for example a full device, or a reader of a pipe that has gone away.
pub fn print(text: impl Display) -> io::Result<()> {
    write_to_stdout(|out| write!(out, "{text}"))
}

/// Calls `content` with standard output; fails like [`print()`].
///
/// # Errors
/// `content` returns an error.
pub fn write_to_stdout(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    isles::write_to_standard(content)
}

/// Writes a line to standard error; ignores errors.
pub fn notice(line: impl Display) {
    isles::notice(line);
}

/// Writes a heading to standard output if it `is_free`, or to standard error if standard output carries a file.
///
/// # Errors
/// As those of [`print()`].
pub fn print_report(is_free: bool, text: &str) -> io::Result<()> {
    isles::print_text(if is_free { StandardStream::Output } else { StandardStream::Error }, text)
}

/// Replaces the current line of the terminal at standard error; the text must fit.
pub fn redraw(line: &str) {
    // Carriage return, the new line, then erase the rest of the old one.
    let mut out = io::stderr();
    let _ = write!(out, "\r{line}\x1b[K").and_then(|()| out.flush()); // there is nobody left to tell
}

/// Returns the number of columns of `terminal`: from `COLUMNS`, else from the terminal itself; `None` if it is no
/// terminal.
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let own = || tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col));
    columns.or_else(own).filter(|columns| *columns > 0)
}

/// Returns the value of the line `name` in `/proc/cpuinfo`, for the first processor.
pub fn cpu_info(name: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Least time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Least time between two drawings of the bar.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Least and most cells of a bar; with less room there is none.
const CELLS_MIN: usize = 8;
const CELLS_MAX: usize = 40;

/// Returns `true` if standard error is a terminal that can redraw lines.
fn is_drawn() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    io::stderr().is_terminal() && !is_dumb
}

/// Columns of the terminal at standard error.
fn terminal_width() -> usize {
    columns(io::stderr()).unwrap_or(COLUMNS)
}

/// The name of the current phase of a run on standard error: on a terminal a line that a bar may replace, elsewhere a
/// plain line when the phase begins.
pub struct PhaseLine {
    drawn: bool,
}

impl PhaseLine {
    /// Begins the phase `name`.
    pub fn begin(name: &str) -> PhaseLine {
        let line = PhaseLine { drawn: is_drawn() };
        if !line.drawn {
            notice(format_args!("phase: {name}"));
        }
        line.redraw(&[name.to_owned()]);
        line
    }

    /// Shows the `parts` that fit, such as the name and a step of the phase, on a terminal.
    pub fn redraw(&self, parts: &[String]) {
        if self.drawn {
            redraw(&fitting(parts, terminal_width()));
        }
    }
}

impl Drop for PhaseLine {
    fn drop(&mut self) {
        self.redraw(&[]);
    }
}

/// The progress of a run with a known number of steps, on standard error.
pub struct Progress {
    /// The name of the phase that the steps belong to and that of its step, if there are any.
    phase: Vec<String>,
    unit: Cow<'static, str>,
    total: u64,
    /// `true` if the total will grow, so that no remaining time is shown.
    grows: bool,
    /// Steps that were done before it began.
    before: u64,
    started: Instant,
    /// Time of the last output.
    last_output: Instant,
    /// `true` if the bar is drawn; else plain lines are printed.
    drawn: bool,
}

impl Progress {
    /// Progress over `total` steps, named `unit` in the plural.
    pub fn new(total: u64, unit: impl Into<Cow<'static, str>>) -> Self {
        let (grows, before, now) = (total == 0, 0, Instant::now());
        let (phase, unit) = (Vec::new(), unit.into());
        Progress { phase, unit, total, grows, before, started: now, last_output: now, drawn: is_drawn() }
    }

    /// Counts from zero within a phase, by its name and perhaps that of its step; `last_output` is the time of the last
    /// output.
    pub fn begin_phase(&mut self, phase: Vec<String>, last_output: Instant) {
        (self.phase, self.last_output) = (phase, last_output);
        (self.before, self.started) = (0, Instant::now());
    }

    /// As `new`, with `before` steps already done.
    #[must_use]
    pub fn after(mut self, before: u64) -> Self {
        self.before = before;
        self
    }

    /// Sets the total; if it `grows`, no remaining time is shown.
    pub fn set_total(&mut self, total: u64, grows: bool) {
        (self.total, self.grows) = (total, grows || total == 0);
    }

    /// Returns `true` if output is due; cheap enough for every iteration of a loop.
    pub fn is_due(&self) -> bool {
        self.last_output.elapsed() >= if self.drawn { DRAW_INTERVAL } else { LINE_INTERVAL }
    }

    /// Reports `done` as the number of done steps.
    pub fn report(&mut self, done: u64) {
        self.last_output = Instant::now();
        let new = done.saturating_sub(self.before);
        let total = (!self.grows).then_some(self.total);
        let parts = progress_parts(done, new, total, &self.unit, self.started.elapsed());
        if self.drawn {
            redraw(&drawn(&self.phase, &parts, total.map(|total| (done, total)), terminal_width()));
        } else if done > 0 {
            let of = match total {
                Some(total) => format!("{done} of {total} {}", self.unit),
                None => parts[0].clone(),
            };
            notice(labelled(&self.phase, &[&[of], &parts[1..]].concat()).join(", "));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            redraw(&fitting(&self.phase, terminal_width()));
        }
    }
}

/// Returns the parts of the progress line, the most important first: steps done, time left, steps a second. `new` of
/// the `done` steps were done in the time that has `elapsed`.
fn progress_parts(done: u64, new: u64, total: Option<u64>, unit: &str, elapsed: Duration) -> Vec<String> {
    let mut parts = vec![match total {
        Some(total) => format!("{done}/{total} {unit}"),
        None => format!("{done} {unit} so far"),
    }];
    let rate = new as f64 / elapsed.as_secs_f64();
    if new > 0 && rate.is_finite() {
        let left = total.map(|total| total.saturating_sub(done) as f64 / rate);
        parts.extend(left.map(|left| match left {
            ..120.0 => format!("{left:.0} s left"),
            ..7200.0 => format!("{:.0} min left", left / 60.0),
            _ => format!("{:.0} h left", left / 3600.0),
        }));
        let digits = if rate < 10.0 { 1 } else { 0 };
        parts.push(match total {
            Some(_) => format!("{rate:.digits$} {unit}/s"),
            None => format!("{rate:.digits$}/s"),
        });
    }
    parts
}

/// The parts with the names of a phase and of its step before the first.
fn labelled(names: &[String], parts: &[String]) -> Vec<String> {
    match parts {
        [first, rest @ ..] if !names.is_empty() => {
            [&[format!("{}: {first}", names.join(", "))], rest].concat()
        }
        _ => parts.to_vec(),
    }
}

/// Returns a line for a terminal of `width` columns: the names of a phase and the parts that fit, with a bar before
/// them if the total is known.
fn drawn(names: &[String], parts: &[String], steps: Option<(u64, u64)>, width: usize) -> String {
    let lines = (0..=names.len()).rev().map(|number| {
        let parts = labelled(&names[..number], parts);
        match steps {
            Some((done, total)) => bar(&parts, done, total, width),
            None => fitting(&parts, width),
        }
    });
    lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default()
}

/// Joins the parts that fit into a line of a terminal of `width` columns, whose last column stays free.
fn fitting(parts: &[String], width: usize) -> String {
    let mut texts = (1..=parts.len()).rev().map(|number| parts[..number].join(", "));
    texts.find(|text| text.len() < width).unwrap_or_default()
}

/// Returns a bar and the parts that fit into a line of a terminal of `width` columns, whose last column stays free.
fn bar(parts: &[String], done: u64, total: u64, width: usize) -> String {
    let room = width.saturating_sub(1);
    let mut texts = (1..=parts.len()).rev().map(|number| parts[..number].join(", "));
    let text = texts.find(|text| text.len() + 1 + CELLS_MIN <= room);
    let Some(text) = text else {
        return parts.first().cloned().filter(|text| text.len() <= room).unwrap_or_default();
    };
    let cells = (room - text.len() - 1).min(CELLS_MAX);
    let full = (cells as u64 * done.min(total)).checked_div(total).unwrap_or(0) as usize;
    format!("{}{} {text}", "█".repeat(full), "░".repeat(cells - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_one_line_at_each_width_and_says_what_matters_most_first() {
        let parts = progress_parts(1234, 1234, Some(4941), "sources", Duration::from_secs(2));
        assert_eq!(parts, ["1234/4941 sources", "6 s left", "617 sources/s"]);
        for width in 0..200 {
            let line = bar(&parts, 1234, 4941, width);
            assert!(line.chars().count() < width.max(1), "{width}: {line}");
        }
        assert_eq!(bar(&parts, 1234, 4941, 0), "");
        assert_eq!(bar(&parts, 1234, 4941, 20), "1234/4941 sources");
        assert_eq!(bar(&parts, 1234, 4941, 40), "██░░░░░░░░░ 1234/4941 sources, 6 s left");
        let wide = bar(&parts, 1234, 4941, 120);
        assert_eq!(wide.matches(['█', '░']).count(), CELLS_MAX, "{wide}");
        assert!(bar(&parts, 1234, 4941, 80).ends_with(" 1234/4941 sources, 6 s left, 617 sources/s"));
    }

    #[test]
    fn a_phase_is_named_before_its_steps_where_there_is_room() {
        let names = ["stability check", "product 12 of at most 30"].map(str::to_owned);
        let parts = ["345/2209 units".to_owned(), "2 s left".to_owned()];
        let line = |width| drawn(&names, &parts, Some((345, 2209)), width);
        let text = "stability check, product 12 of at most 30: 345/2209 units";
        assert!(line(120).ends_with(&format!("░ {text}, 2 s left")), "{}", line(120));
        assert_eq!(line(60), text);
        assert_eq!(line(40), "stability check: 345/2209 units");
        assert_eq!(line(30), "██░░░░░░░░░░░░ 345/2209 units");
        assert_eq!(labelled(&[], &parts), parts);
        assert_eq!(drawn(&names[..1], &parts, None, 80), "stability check: 345/2209 units, 2 s left");
        assert_eq!(fitting(&names, 30), "stability check", "before there are steps");
    }

    #[test]
    fn nothing_is_foretold_before_the_first_step() {
        let parts = |done, total, seconds| {
            progress_parts(done, done, total, "settings", Duration::from_secs(seconds))
        };
        assert_eq!(parts(0, Some(42), 1), ["0/42 settings"]);
        assert_eq!(parts(1, Some(42), 9)[1..], ["6 min left", "0.1 settings/s"]);
        let open = parts(90, None, 9);
        assert_eq!(open, ["90 settings so far", "10/s"], "of a total that nobody knows nothing is left");
        assert_eq!(fitting(&open, 80), "90 settings so far, 10/s");
        assert_eq!(
            (fitting(&open, 20), fitting(&open, 10)),
            ("90 settings so far".to_owned(), String::new())
        );
        assert_eq!(bar(&["0/0 seeds".to_owned()], 0, 0, 30).matches('░').count(), 19);
    }
}
