//! Reports of a program to the observers of its run: its progress, and its output.
//!
//! Each place counts its steps, and observers read the sums. Output is printed as without observers, and copied into
//! the page of its place. Without an observer a call looks at one empty cell. Invariant: nothing here sends a message,
//! waits for a reader or takes modelled time, and a program must not decide by it; so an observed run is the same run.

use super::Local;
use isles_telemetry::OutputStream;
use std::fmt::Arguments;

/// Progress of a program, as it reports it.
///
/// A program counts its steps: their total, and those that are done.
pub mod progress {
    use super::Local;

    /// Starts the phase `name` of the program, such as "stability check". It lasts until the next one starts, and its
    /// steps count from zero.
    ///
    /// Call it at one place, while no other counts steps. At most the first 96 bytes of the name are shown.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn begin_phase(name: &str) {
        Local::with(|local| local.note_phase(name));
    }

    /// Adds `steps` to the total of the program, called `unit` in the plural: "sources".
    ///
    /// Any place may call it, as often as there is more to do; the total is the sum. A program, or a phase of it, has
    /// one unit: the last one is shown, and at most its first 48 bytes.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn add_total(steps: u64, unit: &str) {
        Local::with(|local| local.note_total(steps, unit));
    }

    /// Announces more steps than are known by now, so that the present total is not taken for the final one. A total
    /// that grows after the first step was done implies this.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn expect_more() {
        Local::with(Local::note_more_to_come);
    }

    /// The steps of a run, or of its current phase, as observers see them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Steps {
        /// Number of steps done by all places.
        pub done: u64,
        /// Total number of steps known so far.
        pub total: u64,
        /// True if `total` is not final: there will be, or have been, more steps.
        pub grows: bool,
    }

    /// Returns the steps of the run as its observers see them, for a program that also reports them in its own way;
    /// `None` if the run cannot be observed. They depend on this host's time, so a program must not decide by them.
    /// # Panics
    /// On a thread that is no place.
    pub fn observed() -> Option<Steps> {
        Local::with(Local::observed_steps).map(|(done, total, grows)| Steps { done, total, grows })
    }

    /// Counts `steps` as done by this place. Cheap enough for each task. Does nothing on a thread that is no place, so
    /// that code of a run can be used without one.
    #[inline]
    pub fn add_done(steps: u64) {
        Local::try_with(|local| local.note_done(steps));
    }
}

/// Prints to standard output, as `print!` of the standard library; the macros of the façade expand to it.
///
/// # Panics
/// As `print!`: standard output cannot be written to.
pub fn print(text: Arguments<'_>) {
    print_to(OutputStream::Standard, text, |text| std::print!("{text}"));
}

/// Prints to standard error, as `eprint!` of the standard library; the macros of the façade expand to it.
///
/// # Panics
/// As `eprint!`: standard error cannot be written to.
pub fn eprint(text: Arguments<'_>) {
    print_to(OutputStream::Error, text, |text| std::eprint!("{text}"));
}

/// Shows lines to observers in the view of this place, and prints nothing: for results that the program prints after
/// its run, when there are no observers any more.
pub fn show(text: &str) {
    Local::try_with(|local| local.note_printed(OutputStream::Result, &format!("{text}\n")));
}

/// Reports the stages of a pipeline to observers, as one line.
pub fn show_stages(line: &str) {
    Local::try_with(|local| local.note_printed(OutputStream::Stages, &format!("{line}\n")));
}

/// Prints with `print`, and keeps a copy if the run of this thread's place is observed.
fn print_to(stream: OutputStream, text: Arguments<'_>, print: impl Fn(Arguments<'_>)) {
    if Local::try_with(Local::is_observed) != Some(true) {
        return print(text);
    }
    // Once, because formatting may run code of the program; and first, because that code may print, too.
    let text = text.to_string();
    print(format_args!("{text}"));
    Local::try_with(|local| local.note_printed(stream, &text));
}
