//! When a place looks for messages while it runs tasks that never wait, and which task goes on first then.
//!
//! A turn is the time between two looks for messages. It is long if an operation finds that [`TURN_TIME_MAX`] has
//! passed: it ends there, and the task that ended it is held until the messages that arrived meanwhile have been
//! handled. So a place that computes between operations serves others as often as itself.
//!
//! Places that ask one place for work, and compute as long as that place does, each arrive a message late, and would
//! wait for a whole turn. So if messages came after a recent long turn, the task is held until the same number has come
//! and no more follow, for at most a small part of the turn; but not after a turn of many short operations, because
//! places that compute for short times wait for few operations of their own. Only messages count that ask for
//! something, or let the place send or run something: one that only the held task waits for, such as the edge of a
//! neighbour's part, is no reason to hold it. On a host a few long turns without messages are forgiven, and a much
//! shorter one does not count.
//!
//! If the clock costs as much as an operation, it is read only when one of several operations sees that messages wait,
//! or after a recent long turn; and then at the operation at which, at the present pace, the turn will be long, or a
//! few before.

use super::{Clock, Local};
use crate::limits::{
    AWAITED_OPERATION_MIN, LONG_TURN_LOOKS, LOOK_EFFORT, TURN_PART, TURN_TIME_MAX, TURN_WAIT_MAX,
    UNAWAITED_TURNS_MAX,
};
use crate::task::TaskRef;
use crate::task::coop::{LOOK, spend_budget_of};
use isles_protocol::PlaceId;
use isles_telemetry::CounterId;
use isles_transport::Next;
use std::cell::Cell;
use std::time::Duration;

/// The turn of a place.
#[derive(Default)]
pub(crate) struct Turn {
    /// Start of the turn; if that is not measured, the time when an operation first saw that messages wait.
    start: Cell<Duration>,
    /// Number of operations of this turn that saw waiting messages, if its start is not measured.
    sightings: Cell<u32>,
    /// Number of further operations that look at the clock as if messages waited.
    looks: Cell<u32>,
    /// Number of operations of this turn, if it is measured on a host, and the one that looks at the clock next.
    operations: Cell<u32>,
    next_look: Cell<u32>,
    /// True if an operation of this turn has found it long.
    is_long: Cell<bool>,
    /// True if its time starts at the next operation.
    restarts_clock: Cell<bool>,
    /// True if the last look of an operation found nothing anywhere.
    last_look_was_empty: Cell<bool>,
    /// True if an operation has yielded because of the time, and none has proceeded since.
    ended_early: Cell<bool>,
    /// The task that yielded and is held, and whether that was because of the time.
    held: Cell<Option<TaskRef>>,
    after_long: Cell<bool>,
    /// Time at which it goes on if nothing more comes, and the latest such time; `None` if after the next look.
    due: Cell<Option<Duration>>,
    latest: Cell<Duration>,
    /// Number of messages that have come while it is held, and of those that are waited for, learnt from the last long
    /// turns.
    arrivals: Cell<usize>,
    /// Number of values that tasks of other places have asked for, and the place's service count when last compared.
    requests: Cell<u64>,
    served: Cell<u64>,
    expected: Cell<usize>,
    /// Length of the turn at whose end the task is held, and the longest at whose end messages waited.
    held_turn: Cell<Duration>,
    longest: Cell<Duration>,
    /// Number of successive long turns at whose end no messages waited.
    unawaited_turns: Cell<u32>,
}

/// Returns the number of operations until a turn looks at the clock again, of which `operations` have taken `elapsed`:
/// until it will be long at this pace, but at most some, because the next ones may take longer.
fn until_next_look(operations: u32, elapsed: Duration) -> u32 {
    let (elapsed, most) = (elapsed.as_nanos().max(1) as u64, TURN_TIME_MAX.as_nanos() as u64);
    let left = u64::from(operations) * most.saturating_sub(elapsed) / elapsed;
    left.clamp(1, u64::from(LOOK_EFFORT)) as u32
}

impl Turn {
    /// Returns `true` if the turn that ended is much shorter than those at whose end messages waited.
    fn is_brief(&self) -> bool {
        self.held_turn.get() < self.longest.get() / 2
    }

    /// Learns from the number of messages at the end of a long turn. On a modelled core, where other places are never
    /// late by accident, `forgives` is false.
    fn record_arrivals(&self, arrivals: usize, forgives: bool) {
        if arrivals > 0 {
            self.expected.set(arrivals);
            if forgives {
                self.longest.set(self.longest.get().max(self.held_turn.get()));
            }
            self.unawaited_turns.set(0);
            self.looks.set(LONG_TURN_LOOKS);
        } else if self.expected.get() > 0 && !self.is_brief() {
            self.unawaited_turns.set(self.unawaited_turns.get() + 1);
            if !forgives || self.unawaited_turns.get() == UNAWAITED_TURNS_MAX {
                self.unawaited_turns.set(0);
                self.expected.set(self.expected.get() / 2);
                self.longest.set(Duration::ZERO);
            }
        }
    }

    /// Resets the counts of operations.
    fn reset_counts(&self) {
        self.operations.set(0);
        self.next_look.set(0);
    }
}

impl Local {
    /// Returns `true` if the turn has been long, and an operation that is about to begin must yield.
    #[inline]
    pub(crate) fn is_turn_long(&self) -> bool {
        let turn = &self.turn;
        let is_long = match self.clock {
            // Time does not advance within a turn.
            Clock::Steps(_) => false,
            Clock::Host(_) if !self.has_remote_hosts && turn.looks.get() == 0 => {
                self.spent.get().is_multiple_of(LOOK_EFFORT)
                    && self.endpoint.is_ready()
                    && self.have_messages_waited()
            }
            _ => self.is_measured_turn_long(),
        };
        if is_long {
            turn.is_long.set(true);
            turn.ended_early.set(true);
        }
        is_long
    }

    /// Returns `true` if messages have waited for longer than a turn may take; called when an operation sees that some
    /// wait.
    ///
    /// Looks at the clock at the first, second, fourth, .. such operation of a turn, because a look costs as much as
    /// one.
    fn have_messages_waited(&self) -> bool {
        let turn = &self.turn;
        let sightings = turn.sightings.get() + 1;
        turn.sightings.set(sightings);
        if !sightings.is_power_of_two() {
            return false;
        }
        let now = self.clock.now();
        if sightings == 1 {
            turn.start.set(now);
        }
        now.saturating_sub(turn.start.get()) >= TURN_TIME_MAX
    }

    fn is_measured_turn_long(&self) -> bool {
        let turn = &self.turn;
        turn.looks.set(turn.looks.get().saturating_sub(1));
        // If a program's code is measured, the code before the first operation of a turn may take longer than a turn
        // should; so after a turn that ended early one operation proceeds whatever the time.
        let proceeds = turn.ended_early.take();
        if turn.restarts_clock.take() {
            turn.start.set(self.clock.now());
            turn.reset_counts();
            return false;
        }
        !proceeds && self.has_turn_expired()
    }

    /// Returns `true` if this turn has lasted too long by the clock, which only some operations read on a host.
    fn has_turn_expired(&self) -> bool {
        let turn = &self.turn;
        let elapsed = || self.clock.now().saturating_sub(turn.start.get());
        let Clock::Host(_) = self.clock else { return elapsed() >= TURN_TIME_MAX };
        let operations = turn.operations.get() + 1;
        turn.operations.set(operations);
        if operations < turn.next_look.get() {
            return false;
        }
        let elapsed = elapsed();
        turn.next_look.set(operations + until_next_look(operations, elapsed));
        elapsed >= TURN_TIME_MAX
    }

    /// Makes the next operation look at the clock: it takes what tasks of other places may have asked for meanwhile.
    #[cold]
    #[inline(never)]
    pub fn measure_shared_turn(&self) {
        let turn = &self.turn;
        if let Clock::Host(_) = self.clock {
            if turn.looks.replace(LONG_TURN_LOOKS) == 0 && !self.has_remote_hosts {
                // This turn was not measured, and may have been long.
                turn.start.set(self.clock.now().saturating_sub(TURN_TIME_MAX));
                turn.operations.set(0);
            }
            turn.next_look.set(0);
        }
    }

    /// Begins a turn, after `arrived` messages were handled; releases a held task if it is time.
    #[inline]
    pub(super) fn begin_turn(&self, arrived: usize) {
        let turn = &self.turn;
        turn.sightings.set(0);
        turn.is_long.set(false);
        turn.restarts_clock.set(false);
        turn.reset_counts();
        let is_held = turn.held.get().is_some();
        if self.has_remote_hosts
            || turn.looks.get() > 0
            || is_held
            || matches!(self.clock, Clock::Modelled(_))
        {
            turn.start.set(self.clock.now());
        }
        if is_held {
            self.resume_held(arrived);
        }
    }

    /// Records the result of an operation that looked only for a message of `source`, in a run of several hosts.
    ///
    /// A look that found nothing, for a message of another host, has also asked whether anything else came.
    pub(super) fn note_look(&self, source: PlaceId, found: Next) {
        let is_far = self.endpoint.other_hosts().is_some_and(|hosts| hosts.is_far(source));
        let was_empty = self.turn.last_look_was_empty.replace(is_far && found == Next::Nothing);
        if was_empty && found == Next::Taken {
            self.restart_turn_clock();
        }
    }

    /// Starts the time of the turn at the next operation, in a run of several hosts: this one has looked for all
    /// messages, and found nothing before it found what it waits for.
    pub(crate) fn restart_turn_clock(&self) {
        if self.has_remote_hosts {
            self.turn.restarts_clock.set(true);
            spend_budget_of(self, LOOK);
        }
    }

    fn resume_held(&self, arrived: usize) {
        let turn = &self.turn;
        if turn.after_long.get() {
            let now = turn.start.get();
            let served = self.served();
            let arrived = if turn.served.replace(served) == served { 0 } else { arrived };
            let arrivals = turn.arrivals.get() + arrived;
            turn.arrivals.set(arrivals);
            if arrived > 0 && arrivals >= turn.expected.get() {
                // A message may be the first of several.
                turn.due.set(turn.due.get().map(|_| turn.latest.get().min(now + TURN_TIME_MAX)));
            }
            if turn.due.get().is_some_and(|due| now < due) {
                return;
            }
            turn.record_arrivals(arrivals, matches!(self.clock, Clock::Host(_)));
        }
        self.release_held();
    }

    /// Records that a task of another place has asked for something that may not be here yet.
    pub fn note_request(&self) {
        self.turn.requests.set(self.turn.requests.get() + 1);
    }

    /// Returns the number of requests received, messages sent and tasks queued.
    fn served(&self) -> u64 {
        let sent = self.tally.count(CounterId::MessagesSent);
        self.turn.requests.get() + sent + self.ready.borrow().progress().0
    }

    /// Puts the held task, if any, behind those that are ready.
    pub(super) fn release_held(&self) {
        self.turn.due.set(None);
        if let Some(task) = self.turn.held.take() {
            self.ready(task, task.header().priority());
        }
    }

    /// Queues a task that must run again, or holds it if it has yielded to messages.
    pub(super) fn requeue(&self, task: TaskRef) {
        let turn = &self.turn;
        let has_yielded = self.has_yielded.get();
        let after_long = has_yielded && turn.is_long.get();
        if after_long {
            turn.held_turn.set(self.clock.now().saturating_sub(turn.start.get()));
        }
        // If there are other hosts, only this place serves them: so whatever yields goes on after them.
        if turn.held.get().is_some() || !(after_long || has_yielded && self.has_remote_hosts) {
            return self.ready(task, task.header().priority());
        }
        turn.held.set(Some(task));
        turn.after_long.set(after_long);
        turn.arrivals.set(0);
        turn.served.set(self.served());
        if after_long && turn.expected.get() > 0 {
            let elapsed = turn.held_turn.get();
            let now = turn.start.get() + elapsed;
            if turn.is_brief() || elapsed < turn.operations.get() * AWAITED_OPERATION_MIN {
                return;
            }
            let wait = (elapsed / TURN_PART).min(TURN_WAIT_MAX);
            turn.latest.set(now + wait);
            turn.due.set(Some(now + wait));
        }
    }

    /// Returns the time at which the held task goes on, if nothing comes.
    pub(crate) fn turn_due(&self) -> Option<Duration> {
        self.turn.due.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the operation at which a turn of operations of `each` is found long, and the number that looked at the
    /// clock.
    fn found_long(each: Duration) -> (u32, u32) {
        let (mut operation, mut looks) = (1, 1);
        while each * operation < TURN_TIME_MAX {
            operation += until_next_look(operation, each * operation);
            looks += 1;
        }
        (operation, looks)
    }

    #[test]
    fn a_steady_turn_is_found_long_at_the_first_operation_and_by_few_looks() {
        for nanoseconds in 1..30_000 {
            let each = Duration::from_nanos(nanoseconds);
            let (operation, looks) = found_long(each);
            assert_eq!(u128::from(operation), TURN_TIME_MAX.as_nanos().div_ceil(each.as_nanos()), "{each:?}");
            assert!(looks <= 4 + operation / LOOK_EFFORT, "{looks} looks in {operation} operations");
        }
    }

    #[test]
    fn a_turn_that_becomes_slower_is_found_long_soon() {
        assert_eq!(until_next_look(1_000, Duration::from_nanos(1)), LOOK_EFFORT);
        assert_eq!(until_next_look(1, Duration::ZERO), LOOK_EFFORT);
        assert_eq!(until_next_look(1, TURN_TIME_MAX * 2), 1);
    }
}
