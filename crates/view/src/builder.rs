//! Builds snapshots from samples: shares and loads from differences, and states.
//!
//! Live runs and replays use the same builder. Invariant: a share is between 0 and 1, whatever the samples say.

use super::warnings::Watcher;
use super::{
    CounterColumns, Dropped, FinishView, LinkLoad, PAIRS_MAX, PairsRest, PlaceColumns, PlaceCondition,
    PowerView, ProgressView, RunState, Snapshot,
};
use isles_telemetry::RunDescription;
use isles_telemetry::{CounterId, CounterInfo};
use isles_telemetry::{Liveness, OpenFinish, PlaceSample, ProgressSample, RunEnd, Sample};

/// Makes a snapshot of each sample, in their order.
#[derive(Debug)]
pub struct SnapshotBuilder {
    is_modelled: bool,
    has_mesh: bool,
    before: Sample,
    busy: Vec<f64>,
    /// Power of each core and, behind them, of the chip.
    watts: Vec<f64>,
    links: Vec<LinkLoad>,
    watcher: Watcher,
    seq: u64,
}

impl SnapshotBuilder {
    /// A builder before the first sample.
    pub fn new(description: &RunDescription) -> SnapshotBuilder {
        SnapshotBuilder {
            is_modelled: description.is_modelled(),
            has_mesh: description.mesh.is_some(),
            before: Sample::default(),
            busy: vec![0.0; description.places as usize],
            watts: vec![0.0; description.places as usize + 1],
            links: Vec::new(),
            watcher: Watcher::default(),
            seq: 0,
        }
    }

    /// Returns the snapshot of the next sample. `lost` is the reason why the run can no longer be observed, if any.
    pub fn build(&mut self, sample: Sample, lost: Option<&str>) -> Snapshot {
        self.seq += 1;
        self.update_shares(&sample);
        self.update_links(&sample);
        self.update_power(&sample);
        let state = match (sample.end, lost) {
            (RunEnd::Running, Some(_)) => RunState::Unknown,
            (RunEnd::Running, None) => RunState::Running,
            (RunEnd::Ended, _) => RunState::Ended,
            (RunEnd::Failed, _) => RunState::Failed,
        };
        let finishes = self.finishes(&sample);
        let warnings =
            if state == RunState::Running { self.watcher.update(&sample, &finishes) } else { Vec::new() };
        let (pairs, pairs_rest) = pairs(&sample);
        let progress = progress(&sample);
        let snapshot = Snapshot {
            seq: self.seq,
            time_ms: sample.time_ms,
            model_ms: self.is_modelled.then_some(sample.model_ns as f64 / 1e6),
            state,
            reason: lost.filter(|_| state == RunState::Unknown).map(str::to_owned),
            places: self.columns(&sample, state),
            power: self.knows_power(&sample).then(|| PowerView {
                watt: self.watts.last().copied().unwrap_or_default(),
                joule: sample.energy.nanojoules as f64 / 1e9,
                until_ms: sample.energy.until_ns as f64 / 1e6,
            }),
            links: self.has_mesh.then(|| self.links.clone()),
            pairs,
            pairs_rest,
            finishes,
            warnings,
            progress,
            dropped: Dropped { events: 0, samples: sample.missed },
        };
        self.before = sample;
        snapshot
    }

    /// The share of time that each place did not wait since the sample before.
    fn update_shares(&mut self, sample: &Sample) {
        let passed_ns = sample.time_ms.saturating_sub(self.before.time_ms) as f64 * 1e6;
        let silent = PlaceSample::default();
        self.busy.resize(sample.places.len(), 0.0);
        for (index, place) in sample.places.iter().enumerate() {
            let before = self.before.places.get(index).unwrap_or(&silent);
            let busy =
                place.value(CounterId::BusyTime).saturating_sub(before.value(CounterId::BusyTime)) as f64;
            let own_ns = place.at_ns.saturating_sub(before.at_ns) as f64;
            // A computing place has not copied its counters for a while; on a chip, only its own clock shows the time.
            let (busy, passed) = match self.is_modelled {
                true => (busy, own_ns),
                false if place.liveness == Liveness::Busy => {
                    (busy + (passed_ns - own_ns).max(0.0), passed_ns)
                }
                false => (busy, passed_ns.max(own_ns)),
            };
            if passed > 0.0 {
                self.busy[index] = (busy / passed).clamp(0.0, 1.0);
            }
        }
    }

    /// The share of modelled time that each link was busy since the sample before.
    fn update_links(&mut self, sample: &Sample) {
        let passed_ps = sample.model_ns.saturating_sub(self.before.model_ns) as f64 * 1e3;
        if passed_ps == 0.0 && self.links.len() == sample.links.len() {
            return;
        }
        let loads = sample.links.iter().enumerate().map(|(index, link)| {
            let before = self.before.links.get(index).map_or(0, |link| link.busy_ps);
            let busy = link.busy_ps.saturating_sub(before) as f64;
            LinkLoad { from: link.from, to: link.to, load: (busy / passed_ps.max(1.0)).clamp(0.0, 1.0) }
        });
        self.links = loads.collect();
    }

    /// Returns `true` if the power of the machine is known; at the start of a chip, it is assumed to be.
    fn knows_power(&self, sample: &Sample) -> bool {
        self.is_modelled && (sample.energy.until_ns > 0 || sample.model_ns == 0)
    }

    /// Updates the power of each core and the chip: energy since the sample before, by the modelled time that has
    /// passed; if none has, the power stays.
    fn update_power(&mut self, sample: &Sample) {
        let passed_ns = sample.energy.until_ns.saturating_sub(self.before.energy.until_ns);
        if passed_ns == 0 {
            return;
        }
        let silent = PlaceSample::default();
        let cores = sample.places.iter().enumerate().map(|(index, place)| {
            let before = self.before.places.get(index).unwrap_or(&silent);
            place.value(CounterId::Energy).saturating_sub(before.value(CounterId::Energy))
        });
        let chip = sample.energy.nanojoules.saturating_sub(self.before.energy.nanojoules);
        self.watts = cores.chain([chip]).map(|nanojoules| nanojoules as f64 / passed_ns as f64).collect();
    }

    fn columns(&self, sample: &Sample, state: RunState) -> PlaceColumns {
        let places = &sample.places;
        let is_known = |counter: &CounterInfo| match counter.id {
            CounterId::Energy | CounterId::EnergyTime => self.knows_power(sample),
            _ => self.is_modelled || !counter.is_modelled(),
        };
        let is_over = state != RunState::Running;
        let share = |(place, busy): (&PlaceSample, &f64)| match place.death {
            Some(_) => 0.0,
            None if is_over => 0.0,
            None => *busy,
        };
        PlaceColumns {
            state: places.iter().map(|place| condition(place, state)).collect(),
            cause: places.iter().map(|place| place.death.map(|death| death.to_string())).collect(),
            busy: places.iter().zip(&self.busy).map(share).collect(),
            counters: CounterColumns::of(sample, is_known),
            watt: self.knows_power(sample).then(|| self.watts[..places.len()].to_vec()),
        }
    }

    fn finishes(&self, sample: &Sample) -> Vec<FinishView> {
        let now = if self.is_modelled { sample.model_ns / 1_000_000 } else { sample.time_ms };
        let view = |finish: &OpenFinish| FinishView {
            id: name(finish.id),
            home: finish.home,
            parent: finish.parent.map(name),
            open_ms: now.saturating_sub(finish.since_ms),
            waits_for: finish.waits_for.clone(),
            label: finish.label.clone(),
        };
        sample.finishes.iter().map(view).collect()
    }
}

/// Returns the name of a finish: home and number.
fn name(id: u64) -> String {
    format!("{}.{}", id >> 48, id & ((1 << 48) - 1))
}

/// Returns the condition of a place.
fn condition(place: &PlaceSample, state: RunState) -> PlaceCondition {
    let has_waiting = place.value(CounterId::Blocked) + place.value(CounterId::FinishesOpen) > 0;
    match (place.death, place.liveness, state) {
        (Some(_), _, _) => PlaceCondition::Dead,
        (None, Liveness::Ended, _) | (None, _, RunState::Ended | RunState::Failed) => PlaceCondition::Ended,
        (None, _, RunState::Unknown) | (None, Liveness::Silent, _) => PlaceCondition::Silent,
        (None, Liveness::Busy, _) => PlaceCondition::Busy,
        (None, Liveness::Idle, _) if has_waiting => PlaceCondition::Waiting,
        (None, Liveness::Idle, _) => PlaceCondition::Idle,
    }
}

/// Returns the progress that the program reports, if any.
fn progress(sample: &Sample) -> Option<ProgressView> {
    let ProgressSample { done, total, grows, unit, phase } = &sample.progress;
    let is_whole = *total > 0 && !grows;
    (done + total > 0 || !phase.is_empty()).then(|| ProgressView {
        phase: phase.clone(),
        label: unit.clone(),
        // Work that a dead place had done may be done again.
        done: if is_whole { *done.min(total) } else { *done },
        total: *total,
        grows: !is_whole,
    })
}

/// The pairs with the most messages, and the sum of all others.
fn pairs(sample: &Sample) -> (Vec<(u32, u32, u64, u64)>, PairsRest) {
    let mut pairs = sample.pairs.clone();
    let mut rest = PairsRest::default();
    if pairs.len() > PAIRS_MAX {
        pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.messages), pair.from, pair.to));
        for pair in pairs.drain(PAIRS_MAX..) {
            rest.messages += pair.messages;
            rest.bytes += pair.bytes;
        }
        pairs.sort_by_key(|pair| (pair.from, pair.to));
    }
    (pairs.into_iter().map(|pair| (pair.from, pair.to, pair.messages, pair.bytes)).collect(), rest)
}
