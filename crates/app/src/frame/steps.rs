//! The progress of a run on the terminal: the count of observers, if the run is observed.
//!
//! Without observers the first process estimates it: on a modelled chip from the steps of all places, else from the
//! dealt steps. A run may name its phases; then steps are those of the phase. Invariant: no remaining time is computed
//! from a growing total, and progress is not part of the run.

use crate::console::{PhaseLine, Progress};
use isles::progress;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Steps that the places of this process have done.
static DONE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// At the thread of the first place: the progress line, the total, and whether it will grow.
    static ACTIVE_REPORTER: RefCell<Option<(ProgressReporter, (u64, bool))>> = const { RefCell::new(None) };

    /// At the thread of the first place: the current phase of the run.
    static PHASE: RefCell<Option<CurrentPhase>> = const { RefCell::new(None) };
}

/// The current phase of a run.
struct CurrentPhase {
    /// Its name, and that of its current step, if there is one.
    names: Vec<String>,
    /// Time of the last output.
    last_output: Instant,
    line: PhaseLine,
}

/// Starts the phase `name`; its steps, called `unit`, count from zero.
pub(super) fn begin_phase(name: &str, unit: &str) {
    let names = vec![name.to_owned()];
    // The line of the phase before goes first.
    end_phase();
    PHASE.set(Some(CurrentPhase { names, last_output: Instant::now(), line: PhaseLine::begin(name) }));
    count_from_zero(name, unit);
}

/// Starts a step of the current phase, such as "iteration 7"; its own steps, called `unit`, count from zero.
pub(super) fn begin_step(step: &str, unit: &str) {
    let title = PHASE.with_borrow_mut(|phase| {
        let phase = phase.as_mut()?;
        phase.names.truncate(1);
        phase.names.push(step.to_owned());
        phase.line.redraw(&phase.names);
        Some(phase.names.join(", "))
    });
    count_from_zero(title.as_deref().unwrap_or(step), unit);
}

/// Ends the current phase, if any, and erases it from the terminal.
pub(super) fn end_phase() {
    PHASE.take();
}

/// Counts steps from zero; observers see `title`.
fn count_from_zero(title: &str, unit: &str) {
    progress::begin_phase(title);
    progress::add_total(0, unit);
    ACTIVE_REPORTER.with_borrow_mut(|active| {
        if let Some((reporter, _)) = active {
            reporter.base = DONE.load(Ordering::Relaxed); // relaxed, as below
            begin_in_phase(&mut reporter.progress);
        }
    });
}

/// Lets `progress` count from zero in the current phase, if there is one.
fn begin_in_phase(progress: &mut Progress) {
    PHASE.with_borrow(|phase| {
        if let Some(phase) = phase {
            progress.begin_phase(phase.names.clone(), phase.last_output);
        }
    });
}

/// Adds `steps` to the done steps of this place, which a [`StepsGuard`] reports.
pub fn add_done(steps: u64) {
    progress::add_done(steps);
    // Relaxed: a count that orders no other memory.
    DONE.fetch_add(steps, Ordering::Relaxed);
    ACTIVE_REPORTER.with_borrow_mut(|active| {
        if let Some((reporter, (total, grows))) = active.as_mut().filter(|(reporter, _)| reporter.is_due()) {
            reporter.report(None, *total, *grows);
        }
    });
}

/// Shows the progress of a run on the terminal.
pub(super) struct ProgressReporter {
    progress: Progress,
    /// Steps that were done in this process before.
    base: u64,
}

impl ProgressReporter {
    /// A reporter for `total` steps, 0 if unknown, of which `before` are done.
    pub(super) fn new(total: u64, unit: impl Into<Cow<'static, str>>, before: u64) -> ProgressReporter {
        let before = progress::observed().map_or(before, |seen| seen.done);
        let base = DONE.load(Ordering::Relaxed) - before.min(DONE.load(Ordering::Relaxed)); // relaxed, as above
        let mut progress = Progress::new(total, unit);
        begin_in_phase(&mut progress);
        ProgressReporter { progress: progress.after(before), base }
    }

    /// Returns `true` if output is due.
    pub(super) fn is_due(&self) -> bool {
        self.progress.is_due()
    }

    /// Reports the number of done steps; without observers it is `dealt`, or else the count of this process.
    pub(super) fn report(&mut self, dealt: Option<u64>, total: u64, grows: bool) {
        let own = || DONE.load(Ordering::Relaxed).saturating_sub(self.base); // relaxed, as above
        let done = match progress::observed() {
            Some(seen) => {
                self.progress.set_total(seen.total, seen.grows);
                seen.done
            }
            None => {
                self.progress.set_total(total, grows);
                dealt.unwrap_or_else(own)
            }
        };
        self.progress.report(done);
        PHASE.with_borrow_mut(|phase| {
            if let Some(phase) = phase {
                phase.last_output = Instant::now();
            }
        });
    }
}

/// Reports the progress of a run until dropped, whenever the thread of the first place does steps.
pub struct StepsGuard(());

impl StepsGuard {
    /// Begins to report; there are `total` steps, 0 if unknown.
    pub(super) fn begin(reporter: ProgressReporter, total: u64, grows: bool) -> StepsGuard {
        ACTIVE_REPORTER.set(Some((reporter, (total, grows))));
        StepsGuard(())
    }
}

impl Drop for StepsGuard {
    fn drop(&mut self) {
        ACTIVE_REPORTER.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::WorkDistributor;
    use isles::Plan;

    /// The names of the current phase.
    fn names() -> Option<Vec<String>> {
        PHASE.with_borrow(|phase| phase.as_ref().map(|phase| phase.names.clone()))
    }

    #[test]
    fn a_phase_lasts_until_the_next_one_or_the_end_of_its_dealer_and_a_step_until_the_next_one() {
        let (result, ..) = isles::simulate(2, Plan::calm(0), || async {
            let distributor = WorkDistributor { unit: "units", reports_shares: true };
            distributor.begin_step("of no phase");
            assert_eq!(names(), None);
            distributor.begin_phase("SCF");
            distributor.begin_step("iteration 1");
            distributor.begin_step("iteration 2");
            assert_eq!(names().unwrap(), ["SCF", "iteration 2"]);
            let steps = distributor.open_steps();
            distributor.begin_phase("check");
            assert_eq!(names().unwrap(), ["check"]);
            drop((steps, distributor));
            assert_eq!(names(), None);
            Ok::<_, isles::Error>(())
        });
        result.unwrap();
    }
}
