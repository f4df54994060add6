//! The units of work of a run, their distribution, and the work of each place.
//!
//! A kernel states the number of units and takes them one by one, or has them balanced by `isles::glb`. This module
//! deals them, reports progress, processes messages between units, and records the time of each place. It knows neither
//! units nor results. Invariants: each unit is dealt to one place, once; the work of each place is not part of the
//! answer.

use super::facts::{bar, duration};
use super::run_meter::RunMeter;
use super::steps::{self, ProgressReporter, StepsGuard};
use super::unit_bag::{self, UnitKernel};
use clap::ValueEnum;
use isles::glb::RunBalance;
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// Assignment of units of work to the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// Of n places, place p takes the units p, p + n, p + 2 n and so on.
    Static,
    /// Every place takes the next unit from a shared counter.
    Dynamic,
    /// As dynamic, but a place asks for one unit and waits for it before it computes.
    Single,
    /// Places that run out steal units from others, by `isles::glb`.
    Glb,
}

/// A place requests the remaining units, divided by the number of places and by this.
const ASKED_PART: u64 = 8;
/// Most units per request.
const ASKED_MAX: u64 = 64;

/// Units of work for all places. Bodies capture it, and each takes units from its own [`UnitQueue`].
#[derive(Clone, Serialize, Deserialize)]
pub struct WorkUnits {
    count: u64,
    /// Name of the units, in the plural.
    unit: Cow<'static, str>,
    balance: Balance,
    next: Counter,
    meter: RunMeter,
}

impl WorkUnits {
    /// Creates the units `0..count`, named `unit`.
    pub(super) fn new(count: u64, unit: &'static str, balance: Balance, meter: RunMeter) -> WorkUnits {
        isles::progress::add_total(count, unit);
        WorkUnits { count, unit: Cow::Borrowed(unit), balance, next: Counter::new(), meter }
    }

    /// Restarts the same units from the first; the work of each place adds up. In a new phase or step
    /// ([`super::WorkDistributor::begin_step`]) they are counted from zero.
    pub fn restarted(&self) -> WorkUnits {
        isles::progress::add_total(self.count, &self.unit);
        WorkUnits { next: Counter::new(), ..self.clone() }
    }

    /// Returns `true` if places steal units from each other: then [`WorkUnits::balance`] computes them, and no place
    /// takes any.
    pub fn are_stolen(&self) -> bool {
        self.balance == Balance::Glb
    }

    /// Has `kernel` compute all units, at the places that steal them. Returns how they were balanced.
    ///
    /// # Errors
    /// A place has died.
    pub async fn balance<K: UnitKernel>(&self, kernel: K) -> isles::Result<RunBalance> {
        let reporter = ProgressReporter::new(self.count, self.unit.clone(), 0);
        let _guard = StepsGuard::begin(reporter, self.count, false);
        unit_bag::balance(self.count, self.meter.shares().clone(), kernel).await
    }

    /// Returns the queue of units of this place, unless they are stolen.
    pub fn here(&self) -> UnitQueue<'_> {
        let reporter = || ProgressReporter::new(self.count, self.unit.clone(), 0);
        let progress = (here().index() == 0).then(reporter);
        UnitQueue {
            units: self,
            next: here().index() as u64,
            taken: 0..0,
            requested: None,
            started: None,
            progress,
        }
    }

    /// Returns the work of the places since `started`, a time of [`now`].
    ///
    /// # Errors
    /// A place has died.
    pub async fn done(&self, started: Duration) -> isles::Result<WorkDone> {
        self.meter.done(started).await
    }
}

/// The units of one place, one after the other.
pub struct UnitQueue<'a> {
    units: &'a WorkUnits,
    /// The next one, with static balance.
    next: u64,
    /// Units fetched together and not yet taken, if the counter is at another place.
    taken: Range<u64>,
    /// The next units, if requested.
    requested: Option<UnitRequest>,
    /// Time at which the current unit was taken.
    started: Option<Instant>,
    /// Progress of all units; the first place prints it.
    progress: Option<ProgressReporter>,
}

impl UnitQueue<'_> {
    /// Returns the next unit; `None` if there is none, or if a place is dead: its results are lost, which is the error
    /// of the whole run, so the others need not continue.
    ///
    /// If the counter is at another place, several units are requested at once, before the last ones are computed, to
    /// hide the round trip. Requests shrink with the remaining units, so that all places end together (guided
    /// self-scheduling, Polychronopoulos and Kuck, 1987).
    ///
    /// # Errors
    /// The place of the shared counter has died.
    pub async fn take(&mut self) -> isles::Result<Option<u64>> {
        if let Some(started) = self.started.take() {
            self.units.meter.add_done(started);
            isles::yield_now().await; // a unit is long: messages, and the news of a death, have waited
        }
        if places().any(Place::is_dead) {
            return Ok(None);
        }
        let Some(unit) = self.next_unit().await? else { return Ok(None) };
        if let Some(progress) = self.progress.as_mut().filter(|progress| progress.is_due()) {
            // Units are dealt in order, so about that many are done. On a chip, cores run ahead of each other, but the
            // one process has done all units.
            let dealt = self.units.meter.reports_shares().then_some(unit);
            progress.report(dealt, self.units.count, false);
        }
        self.started = Some(Instant::now());
        Ok(Some(unit))
    }

    async fn next_unit(&mut self) -> isles::Result<Option<u64>> {
        match self.units.balance {
            Balance::Dynamic if self.units.next.is_near() => {
                self.units.next.take_below(self.units.count).await
            }
            Balance::Dynamic => self.next_requested().await,
            Balance::Single => self.units.next.take_below(self.units.count).await,
            Balance::Static => {
                let unit = self.next;
                self.next += place_count() as u64;
                Ok(Some(unit).filter(|unit| *unit < self.units.count))
            }
            Balance::Glb => unreachable!("no place takes units that are stolen"),
        }
    }

    /// Returns the next unit from a counter at another place.
    async fn next_requested(&mut self) -> isles::Result<Option<u64>> {
        let mut asks = false;
        if self.taken.is_empty() {
            let requested = self.requested.take().unwrap_or_else(|| self.ask());
            self.taken = requested.await?;
            asks = (1..self.units.count).contains(&self.taken.end);
        }
        let unit = self.taken.next();
        if asks {
            self.requested = Some(self.ask());
            isles::yield_now().await; // so that the question leaves before the unit is computed
        }
        Ok(unit)
    }

    fn ask(&self) -> UnitRequest {
        let left = self.units.count - self.taken.end;
        let fair = left / (ASKED_PART * place_count() as u64);
        Box::pin(self.units.next.ask_below(self.units.count, fair.clamp(1, ASKED_MAX) as u32))
    }
}

/// Requested units.
type UnitRequest = Pin<Box<dyn Future<Output = isles::Result<Range<u64>>>>>;

/// Work of the places.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkDone {
    /// Seconds that it took: of this host, or on a modelled chip of the chip.
    pub seconds: f64,
    /// Work of each place, in order of the places; empty on a modelled chip, where gathering it would be part of the
    /// prediction.
    pub shares: Vec<PlaceWork>,
    /// Balance of the tasks, if `isles::glb` has balanced them.
    pub balance: Option<RunBalance>,
}

/// Work of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceWork {
    /// Units that it took.
    pub units: u64,
    /// Seconds of this host that they took, waiting for a processor included.
    pub seconds: f64,
}

impl PlaceWork {
    /// Adds a part of a unit that took from `started` until now; if the unit `is_over`, it is reported to observers.
    pub(super) fn add_part(&mut self, started: Instant, is_over: bool) {
        self.units += u64::from(is_over);
        steps::add_done(u64::from(is_over));
        self.seconds += started.elapsed().as_secs_f64();
    }
}

impl WorkDone {
    /// The longest time of a place over the mean of all; 1 if nothing was done.
    pub fn imbalance(&self) -> f64 {
        let mean = self.shares.iter().map(|share| share.seconds).sum::<f64>() / self.shares.len() as f64;
        if mean > 0.0 { self.most() / mean } else { 1.0 }
    }

    fn most(&self) -> f64 {
        self.shares.iter().map(|share| share.seconds).fold(0.0, f64::max)
    }

    /// Returns a line for each place: its units, named `unit`, their share, their time, and a bar of it; and the share
    /// of the run, if timed by the same clock.
    pub(super) fn table(&self, unit: &str, is_by_one_clock: bool) -> String {
        let all: u64 = self.shares.iter().map(|share| share.units).sum();
        let column = |busy: String| if is_by_one_clock { format!("  {busy:>7}") } else { String::new() };
        let busy = column("busy".to_owned());
        let mut text = format!("{:>5}  {unit:>10}  {:>6}{busy}  {:>10}\n", "place", "share", "computing");
        for (place, PlaceWork { units, seconds }) in self.shares.iter().enumerate() {
            let share = 100.0 * *units as f64 / all.max(1) as f64;
            let busy = 100.0 * seconds / self.seconds.max(Duration::from_nanos(1).as_secs_f64());
            let busy = column(format!("{busy:.1} %"));
            let line = format!(
                "{place:>5}  {units:>10}  {share:>4.1} %{busy}  {:>10}  {}",
                duration(*seconds),
                bar(*seconds, self.most())
            );
            let _ = writeln!(text, "{}", line.trim_end()); // a string takes all
        }
        text
    }
}
