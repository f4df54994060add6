//! Reports of a program to those who observe its run: its progress, and its output.
//!
//! Steps are counted by place, and observers read the sums. What is printed goes where it would go in any case, and a
//! copy of it into the page of its place. Without an observer a call looks at one empty cell. Invariant: nothing here
//! sends a message, waits for a reader, takes modelled time, or is to be decided by, so a run with it is the same
//! run.

use super::Local;
use isles_telemetry::OutputStream;
use std::fmt::Arguments;

/// Progress of a program, as it reports it.
///
/// A program counts its steps: how many there are, and how many of them are done.
pub mod progress {
    use super::Local;

    /// Starts the phase `name` of the program, such as "stability check". It lasts until the next one starts, and its
    /// steps count from zero.
    ///
    /// Called at one place, while no other counts steps. Of a long name the first 96 bytes are shown.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn begin_phase(name: &str) {
        Local::with(|local| local.note_phase(name));
    }

    /// Says that the program has `steps` more to do, called `unit` in the plural: "sources".
    ///
    /// Any place may say so, as often as there is more to do; the sum of all is the whole. A program, or a phase of it,
    /// has one unit: of several names the last one is shown, and of a long one the first 48 bytes.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn add_total(steps: u64, unit: &str) {
        Local::with(|local| local.note_total(steps, unit));
    }

    /// Says that there will be more steps than are known by now, so that nobody takes what is known for the whole. A
    /// total that grows after the first step was done says so by itself.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn expect_more() {
        Local::with(Local::note_more_to_come);
    }

    /// The steps of a run, or of its current phase, as those who observe it see them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Steps {
        /// Number of steps done by all places.
        pub done: u64,
        /// Number of steps in all, as far as is known.
        pub total: u64,
        /// True if `total` is not final: there will be more steps, or there have become more.
        pub grows: bool,
    }

    /// Returns the steps of the run as its observers see them, for a program that reports them in its own way, too;
    /// `None` if nobody can observe the run. They are of this host's time, so a program must not decide by them.
    ///
    /// # Panics
    /// On a thread that is no place.
    pub fn observed() -> Option<Steps> {
        Local::with(Local::observed_steps).map(|(done, total, grows)| Steps { done, total, grows })
    }

    /// Says that `steps` of them are done, by this place. It is cheap enough to be said of each task. On a thread that
    /// is no place it says nothing, so that code of a run can be used without one.
    #[inline]
    pub fn add_done(steps: u64) {
        Local::try_with(|local| local.note_done(steps));
    }
}

/// Prints to standard output, as `print!` of the standard library; what the macros of the façade expand to.
///
/// # Panics
/// As `print!`: standard output cannot be written to.
pub fn print(text: Arguments<'_>) {
    print_to(OutputStream::Standard, text, |text| std::print!("{text}"));
}

/// Prints to standard error, as `eprint!` of the standard library; what the macros of the façade expand to.
///
/// # Panics
/// As `eprint!`: standard error cannot be written to.
pub fn eprint(text: Arguments<'_>) {
    print_to(OutputStream::Error, text, |text| std::eprint!("{text}"));
}

/// Shows lines in the view of this place to those who watch the run, and prints nothing: for results that the program
/// prints when its run is over, and nobody watches any more.
pub fn show(text: &str) {
    Local::try_with(|local| local.note_printed(OutputStream::Result, &format!("{text}\n")));
}

/// Reports stages of a pipeline to those who watch the run: one line.
pub fn show_stages(line: &str) {
    Local::try_with(|local| local.note_printed(OutputStream::Stages, &format!("{line}\n")));
}

/// Prints by `print`, and keeps a copy if somebody observes the run of the place of this thread.
fn print_to(stream: OutputStream, text: Arguments<'_>, print: impl Fn(Arguments<'_>)) {
    if Local::try_with(Local::is_observed) != Some(true) {
        return print(text);
    }
    // Once, because what is formatted may be code of the program; and first, because that may print itself.
    let text = text.to_string();
    print(format_args!("{text}"));
    Local::try_with(|local| local.note_printed(stream, &text));
}
