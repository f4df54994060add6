//! Reports of a place to the observers of its run, if there are any.
//!
//! The probe copies the place's counters into its page: when the place goes to sleep, when it wakes, and now and then
//! between. Without observers there is no probe, and the worker looks at one empty cell a step. Invariant: nothing here
//! waits, sends, or changes the run.

use super::{Clock, Local};
use crate::finish::ScopeKind;
use isles_protocol::PlaceId;
use isles_protocol::finish::FinishId;
use isles_protocol::ordered::OrderedMap;
use isles_telemetry::{
    CounterId, CounterValues, DeathCause, Liveness, OpenFinish, OutputStream, PlaceWriter,
};
use isles_transport::Death;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Number of steps between two copies of a place that does not sleep.
const STEPS: u32 = 64;

/// Time between two lists of open finishes.
const FINISHES_EVERY: Duration = Duration::from_millis(50);

/// Number of open finishes that are listed.
const FINISHES_MAX: usize = 8;

/// Reading of the core of a place by the driver of a chip.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreReading {
    /// Its clock, in kHz.
    pub clock_khz: u64,
    /// Its supply, in microvolts.
    pub microvolts: u64,
    /// Energy drawn until `energy_ns`, in nanojoules.
    pub energy_nj: u64,
    /// Modelled time of that energy, in nanoseconds.
    pub energy_ns: u64,
}

/// The page of a place, and what is needed to fill it.
pub(crate) struct Probe {
    writer: RefCell<PlaceWriter>,
    /// Number of steps since the last copy.
    steps: Cell<u32>,
    /// The heartbeat of the run at the last busy step.
    heartbeat: Cell<u64>,
    /// Activity of the place at the last copy.
    liveness: Cell<Liveness>,
    /// Time since which the place is awake, by its clock; `None` while it waits.
    awake_since: Cell<Option<Duration>>,
    /// Total time awake before that.
    busy: Cell<Duration>,
    /// Time of the last report of open finishes, their number, and the time at which each was first seen.
    reported_at: Cell<Duration>,
    reported_count: Cell<usize>,
    first_seen: RefCell<OrderedMap<u64, u64>>,
}

impl Local {
    /// Makes the place report to observers of the run through its page of counters. Call once, before it runs.
    ///
    /// # Panics
    /// If it has a page already.
    pub fn observe(&self, writer: PlaceWriter) {
        let probe = Probe {
            writer: RefCell::new(writer),
            steps: Cell::new(0),
            heartbeat: Cell::new(0),
            liveness: Cell::new(Liveness::Idle),
            awake_since: Cell::new(Some(self.clock.now())),
            busy: Cell::new(Duration::ZERO),
            reported_at: Cell::new(Duration::ZERO),
            reported_count: Cell::new(0),
            first_seen: RefCell::default(),
        };
        assert!(self.probe.set(Box::new(probe)).is_ok(), "the place is observed already");
        self.copy_counters(Liveness::Idle);
    }

    /// Copies the counters of this place's core, which only the driver of the chip knows. The driver calls this between
    /// two turns; all other counters are copied too, because the steps of a place that does not sleep may take seconds
    /// of the host's time.
    pub fn observe_core(&self, core: CoreReading) {
        self.core_reading.set(core);
        if let Some(probe) = self.probe.get() {
            self.copy_counters(probe.liveness.get());
        }
    }

    /// Records the end of a busy step, which began at `begun` if that had to be known.
    #[inline]
    pub(super) fn note_busy_step(&self, begun: Option<Duration>) {
        if let Some(probe) = self.probe.get() {
            if begun.is_some() {
                probe.awake_since.set(begun);
            }
            probe.steps.set(probe.steps.get() + 1);
            let heartbeat = probe.writer.borrow().alive_ms();
            // Steps may be long, so a heartbeat of the run triggers a copy as well.
            if heartbeat != probe.heartbeat.replace(heartbeat) || probe.steps.get() >= STEPS {
                self.copy_counters(Liveness::Busy);
            }
        }
    }

    /// Returns the time at which a step begins, if it is needed: where time is modelled and the place is observed, for
    /// the first step after an idle one. The place does not wait until the next idle step, so no step between reads the
    /// clock.
    #[inline]
    pub(super) fn step_begin(&self) -> Option<Duration> {
        let probe = self.probe.get()?;
        let is_modelled = !matches!(self.clock, Clock::Host(_));
        (is_modelled && probe.awake_since.get().is_none()).then(|| self.clock.now())
    }

    /// Records the end of an idle step; where time is modelled, the place waits from now on.
    #[inline]
    pub(super) fn note_idle_step(&self) {
        if self.probe.get().is_some() && !matches!(self.clock, Clock::Host(_)) {
            self.copy_counters(Liveness::Idle);
        }
    }

    /// Records that the place is about to wait.
    #[inline]
    pub(super) fn note_rest(&self) {
        if self.probe.get().is_some() {
            self.copy_counters(Liveness::Idle);
        }
    }

    /// Records that the place no longer waits.
    #[inline]
    pub(super) fn note_wake(&self) {
        if self.probe.get().is_some() {
            self.copy_counters(Liveness::Busy);
        }
    }

    /// Records that the place leaves the run.
    pub(crate) fn note_end(&self) {
        if self.probe.get().is_some() {
            self.copy_counters(Liveness::Ended);
        }
    }

    /// Records that a message has left for `to`.
    #[inline]
    pub(super) fn note_sent(&self, to: PlaceId, bytes: usize) {
        if let Some(probe) = self.probe.get() {
            probe.writer.borrow().sent(to.0, bytes as u64);
        }
    }

    /// Returns `true` if the place has observers.
    pub(crate) fn is_observed(&self) -> bool {
        self.probe.get().is_some()
    }

    /// Records output of the place.
    pub(crate) fn note_printed(&self, stream: OutputStream, text: &str) {
        if let Some(probe) = self.probe.get() {
            probe.writer.borrow_mut().print(stream, text);
        }
    }

    /// Records the start of a phase of the program.
    pub(crate) fn note_phase(&self, name: &str) {
        if let Some(probe) = self.probe.get() {
            probe.writer.borrow().begin_phase(name);
        }
    }

    /// Records more steps of the program.
    pub(crate) fn note_total(&self, steps: u64, unit: &str) {
        if let Some(probe) = self.probe.get() {
            probe.writer.borrow().add_total(steps, unit);
        }
    }

    /// Records that the program will have more steps than are known.
    pub(crate) fn note_more_to_come(&self) {
        if let Some(probe) = self.probe.get() {
            probe.writer.borrow().expect_more();
        }
    }

    /// Returns the steps of the run as its observers see them.
    pub(crate) fn observed_steps(&self) -> Option<(u64, u64, bool)> {
        let seen = self.probe.get()?.writer.borrow().progress();
        Some((seen.done, seen.total, seen.grows))
    }

    /// Records steps done by the place.
    #[inline]
    pub(crate) fn note_done(&self, steps: u64) {
        if let Some(probe) = self.probe.get() {
            probe.writer.borrow().add_done(steps);
        }
    }

    /// Records that `place` is dead. Only the first place does; if that is dead, so is the run.
    pub(crate) fn note_death(&self, place: PlaceId, cause: &Death) {
        if let Some(probe) = self.probe.get().filter(|_| self.here == PlaceId(0)) {
            let cause = match cause {
                Death::Ended => DeathCause::Unseen,
                Death::Exited(code) => DeathCause::Exited(*code),
                Death::Killed(signal) => DeathCause::Killed(*signal),
                Death::Corrupt(_) => DeathCause::Corrupt,
            };
            probe.writer.borrow().died(place.0, cause);
        }
    }

    /// Returns the finish that encloses one opened now, if the place has observers.
    pub(crate) fn observed_parent(&self) -> Option<FinishId> {
        self.probe.get()?;
        match self.scope().kind() {
            ScopeKind::Counted(key) => Some(self.finishes.id(key)),
            ScopeKind::Remote(_) | ScopeKind::Detached => None,
        }
    }

    #[cold]
    fn copy_counters(&self, liveness: Liveness) {
        let Some(probe) = self.probe.get() else { return };
        let now = self.clock.now();
        let since = probe.awake_since.replace((liveness == Liveness::Busy).then_some(now));
        let more = since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        probe.busy.set(probe.busy.get() + more);
        probe.steps.set(0);
        probe.liveness.set(liveness);
        let values = self.counter_values(probe.busy.get());
        let mut writer = probe.writer.borrow_mut();
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        writer.copy(liveness, nanoseconds, &values);
        let open = values[CounterId::FinishesOpen.index()] as usize;
        let is_due = now.saturating_sub(probe.reported_at.get()) >= FINISHES_EVERY;
        if (is_due && open > 0) || (open != probe.reported_count.get() && liveness != Liveness::Busy) {
            probe.reported_at.set(now);
            probe.reported_count.set(open);
            writer.finishes(&self.open_finishes(now, &mut probe.first_seen.borrow_mut()));
        }
    }

    fn counter_values(&self, busy: Duration) -> CounterValues {
        let mut values = self.counts();
        let mut set = |counter: CounterId, value: u64| values[counter.index()] = value;
        set(CounterId::Queue, self.ready.borrow().len() as u64);
        set(CounterId::Blocked, self.suspended.borrow().len() as u64);
        let (open, released) = self.finishes.counts();
        set(CounterId::FinishesOpen, open);
        set(CounterId::FinishesReleased, released);
        set(CounterId::BusyTime, u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX));
        let core = self.core_reading.get();
        set(CounterId::Clock, core.clock_khz);
        set(CounterId::Supply, core.microvolts);
        set(CounterId::Energy, core.energy_nj);
        set(CounterId::EnergyTime, core.energy_ns);
        values
    }

    /// Returns the first few open finishes, each with the time at which it was first listed.
    fn open_finishes(&self, now: Duration, first_seen: &mut OrderedMap<u64, u64>) -> Vec<OpenFinish> {
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let open = self.finishes.explain_first(FINISHES_MAX);
        let mut seen = OrderedMap::new();
        let finishes = open.into_iter().map(|(site, parent, explanation)| {
            let id = number(explanation.finish);
            let since_ms = first_seen.get(id).copied().unwrap_or(now_ms);
            seen.insert(id, since_ms);
            let waits = explanation.waiting.iter();
            OpenFinish {
                id,
                home: self.here.0,
                parent: parent.map(number),
                since_ms,
                live: explanation.live,
                waits_for: waits.map(|waiting| (waiting.place.0, waiting.tasks as u32)).collect(),
                label: site.map_or_else(|| "the whole run".to_owned(), ToString::to_string),
            }
        });
        let finishes = finishes.collect();
        *first_seen = seen;
        finishes
    }
}

/// Returns a number for a finish that no other of the run has, up to 2^48 finishes of one place.
fn number(id: FinishId) -> u64 {
    u64::from(id.home().0) << 48 | (id.serial() & ((1 << 48) - 1))
}
