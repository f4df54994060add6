//! The state of a pipeline at one place: idle stages, measurements, and arriving states.
//!
//! Invariant: the current state of a stage is in a group, at a place, or in transit between two places. The copy here
//! of a stage that runs elsewhere is stale, and is restored before the stage runs.

use super::recovery::States;
use super::stage::AnyStage;
use super::stage::ports::PortPlan;
use super::{Pipeline, StageFault, misused};
use crate::prelude::*;
use crate::{Error, Result};
use isles_protocol::pipeline::CostMonitor;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A stage in transit to another place.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedStage {
    pub(super) stage: usize,
    /// `None` if the stage has no state.
    #[serde(with = "crate::plain::optional")]
    pub(super) state: Option<Vec<u8>>,
}

/// The part of a pipeline at one place.
pub(super) struct LocalPipeline<P: Pipeline> {
    pub(super) names: Rc<[&'static str]>,
    pub(super) ports: Rc<[PortPlan]>,
    /// Idle stages with a state, and all stages without one, which groups share.
    stages: Vec<Option<Box<dyn AnyStage>>>,
    is_stateless: Vec<bool>,
    pub(super) monitor: CostMonitor,
    /// Size of each stage's state when it was last saved, in bytes; `None` if unknown.
    state_bytes: Vec<Option<usize>>,
    state_bytes_max: usize,
    /// Bytes of states that have left this place.
    pub(super) moved_bytes: u64,
    pub(super) arrivals: Rc<Monitor<Arrivals>>,
    /// States of incomplete checkpoints, by the item that follows the checkpoint; used at the place that runs the
    /// pipeline.
    checkpoints: BTreeMap<u64, Vec<Option<Option<Vec<u8>>>>>,
    pipeline: std::marker::PhantomData<P>,
}

/// States that have arrived for groups of this place.
#[derive(Default)]
pub(super) struct Arrivals {
    arrived_stages: Vec<StageArrival>,
    /// Groups of epochs before this one are aborted.
    aborted_before: u64,
    /// Epochs of groups here that will never get all states.
    incomplete: BTreeSet<u64>,
}

/// A stage for a group of an epoch.
struct StageArrival {
    epoch: u64,
    stage: usize,
    form: ArrivalForm,
}

enum ArrivalForm {
    /// The stage was at this place before.
    Stayed(Box<dyn AnyStage>),
    /// The state comes from another place; `None` if the stage has none.
    State(Option<Vec<u8>>),
}

impl Arrivals {
    /// Returns `true` if the groups of `epoch` are aborted.
    pub(super) fn has_aborted(&self, epoch: u64) -> bool {
        epoch < self.aborted_before
    }

    fn has(&self, epoch: u64, stage: usize) -> bool {
        self.arrived_stages.iter().any(|arrival| (arrival.epoch, arrival.stage) == (epoch, stage))
    }

    /// Returns `true` if the group of `epoch` will get no more states.
    fn is_over(&self, epoch: u64) -> bool {
        self.has_aborted(epoch) || self.incomplete.contains(&epoch)
    }

    /// Takes a stage for the group of `epoch`, here or at another place; `None` if it is aborted.
    fn take(&mut self, epoch: u64, stage: usize) -> Option<ArrivalForm> {
        let is_it = |arrival: &StageArrival| (arrival.epoch, arrival.stage) == (epoch, stage);
        let at = self.arrived_stages.iter().position(is_it).filter(|_| !self.has_aborted(epoch))?;
        Some(self.arrived_stages.swap_remove(at).form)
    }
}

impl<P: Pipeline> LocalPipeline<P> {
    pub(super) fn new(pipeline: &P, state_bytes_max: usize) -> LocalPipeline<P> {
        let chain = pipeline.stages().finished();
        let names: Rc<[&str]> = chain.stages.iter().map(|stage| stage.name).collect();
        let replicas = chain.stages.iter().map(|stage| stage.replicas).collect();
        LocalPipeline {
            monitor: CostMonitor::new(names.len()).with_replicas(replicas),
            is_stateless: chain.stages.iter().map(|stage| stage.stage.share().is_some()).collect(),
            state_bytes: vec![None; names.len()],
            names,
            ports: chain.ports.into(),
            stages: chain.stages.into_iter().map(|stage| Some(stage.stage)).collect(),
            state_bytes_max,
            moved_bytes: 0,
            arrivals: Rc::default(),
            checkpoints: BTreeMap::new(),
            pipeline: std::marker::PhantomData,
        }
    }

    /// Returns the states of all stages before any group runs.
    ///
    /// # Errors
    /// A state is too large or cannot be encoded.
    pub(super) fn first_states(&mut self) -> Result<States> {
        let mut states = Vec::with_capacity(self.stages.len());
        for stage in 0..self.stages.len() {
            if self.is_stateless[stage] {
                states.push(None);
                continue;
            }
            let idle = self.take(stage);
            states.push(self.save(stage, &*idle)?);
            self.put(stage, idle);
        }
        Ok(states)
    }

    /// Stores the size of a state as known at another place.
    pub(super) fn set_state_bytes(&mut self, stage: usize, bytes: Option<usize>) {
        self.state_bytes[stage] = bytes.or(self.state_bytes[stage]);
    }

    /// Adds states to the checkpoint before the item `number`.
    pub(super) fn add_to_checkpoint(&mut self, number: u64, states: Vec<SavedStage>) {
        let empty = || self.is_stateless.iter().map(|is_stateless| is_stateless.then_some(None)).collect();
        let checkpoint = self.checkpoints.entry(number).or_insert_with(empty);
        states.into_iter().for_each(|saved| checkpoint[saved.stage] = Some(saved.state));
    }

    /// Takes the states of a checkpoint, if complete, and drops earlier ones.
    pub(super) fn take_checkpoint(&mut self, number: u64) -> Option<States> {
        self.checkpoints = self.checkpoints.split_off(&number);
        self.checkpoints.remove(&number)?.into_iter().collect()
    }

    /// Returns the size of each stage's state when it was last saved, in bytes.
    pub(super) fn state_bytes(&self) -> &[Option<usize>] {
        &self.state_bytes
    }

    /// Returns the encoded state of a stage, which must not exceed the limit.
    pub(super) fn save(&mut self, stage: usize, idle: &dyn AnyStage) -> Result<Option<Vec<u8>>> {
        let name = self.names[stage];
        let state = idle.save().map_err(|error| StageFault { name }.in_error(&error))?;
        if let Some(state) = &state {
            if state.len() > self.state_bytes_max {
                let text = format!(
                    "the state of stage `{name}` has {} bytes; allowed: at most {}",
                    state.len(),
                    self.state_bytes_max
                );
                return Err(misused(text));
            }
            self.state_bytes[stage] = Some(state.len());
        }
        Ok(state)
    }

    /// Returns `true` if a stage has no state, so that each place has its own.
    pub(super) fn is_stateless(&self, stage: usize) -> bool {
        self.is_stateless[stage]
    }

    /// Returns a stage without state for a group; `None` if the stage has one.
    pub(super) fn share(&self, stage: usize) -> Option<Box<dyn AnyStage>> {
        self.stages[stage].as_ref().filter(|_| self.is_stateless[stage])?.share()
    }

    /// Takes an idle stage.
    pub(super) fn take(&mut self, stage: usize) -> Box<dyn AnyStage> {
        self.stages[stage].take().expect("a stage runs in one group")
    }

    /// Takes a stage back from a group.
    pub(super) fn put(&mut self, stage: usize, idle: Box<dyn AnyStage>) {
        if !self.is_stateless[stage] {
            self.stages[stage] = Some(idle);
        }
    }

    /// Passes a stage of a group that ends to the group of `epoch` at this place.
    pub(super) fn keep(&mut self, epoch: u64, stage: usize, idle: Box<dyn AnyStage>) {
        let arrival = StageArrival { epoch, stage, form: ArrivalForm::Stayed(idle) };
        let refused = self.arrivals.atomic(|arrivals| {
            if arrivals.has_aborted(epoch) {
                return Some(arrival);
            }
            arrivals.arrived_stages.push(arrival);
            None
        });
        self.put_back(refused);
    }

    fn put_back(&mut self, arrived_stages: impl IntoIterator<Item = StageArrival>) {
        for arrival in arrived_stages {
            if let ArrivalForm::Stayed(idle) = arrival.form {
                self.put(arrival.stage, idle);
            }
        }
    }

    /// Stores a state for the group of `epoch` at this place, or at another place that will fetch it; ignored if that
    /// group was aborted.
    pub(super) fn deliver(&self, epoch: u64, SavedStage { stage, state }: SavedStage) {
        let arrival = StageArrival { epoch, stage, form: ArrivalForm::State(state) };
        self.arrivals.atomic(|arrivals| {
            if !arrivals.has_aborted(epoch) {
                arrivals.arrived_stages.push(arrival);
            }
        });
    }

    /// Returns the number of stages that wait for their groups.
    #[cfg(test)]
    pub(super) fn waiting_states(&self) -> usize {
        self.arrivals.atomic(|arrivals| arrivals.arrived_stages.len())
    }

    /// Aborts the groups of epochs before `epoch`.
    pub(super) fn abort(&mut self, epoch: u64) {
        let useless: Vec<StageArrival> = self.arrivals.atomic(|arrivals| {
            arrivals.aborted_before = epoch;
            arrivals.incomplete.retain(|other| *other >= epoch);
            arrivals.arrived_stages.extract_if(.., |arrival| arrival.epoch < epoch).collect()
        });
        self.put_back(useless);
    }
}

/// Waits for the state that a group here passes to the group of `epoch` at another place; `None` if that is aborted.
async fn handed_over<P: Pipeline>(
    local: &PlaceLocal<LocalPipeline<P>>,
    epoch: u64,
    stage: usize,
) -> Option<SavedStage> {
    let arrivals = Rc::clone(&local.lock().arrivals);
    let is_ready = |arrivals: &Arrivals| arrivals.has_aborted(epoch) || arrivals.has(epoch, stage);
    let taken = arrivals.when(is_ready, |arrivals| arrivals.take(epoch, stage)).await?;
    match taken {
        ArrivalForm::State(state) => Some(SavedStage { stage, state }),
        ArrivalForm::Stayed(_) => None,
    }
}

/// Fetches the state of a stage for the group of `epoch` from the place that ran it before.
///
/// # Errors
/// That place has died; the group ends.
pub(super) async fn fetch<P: Pipeline>(
    local: PlaceLocal<LocalPipeline<P>>,
    epoch: u64,
    stage: usize,
    source: Place,
) -> Result<()> {
    let name = local.lock().names[stage];
    match at!(source, handed_over(&local, epoch, stage).await).await {
        Ok(Some(saved)) => local.lock().deliver(epoch, saved),
        // Aborted there, so the group here will not get it.
        Ok(None) => give_up_group(&local, epoch),
        Err(error) => {
            give_up_group(&local, epoch);
            let text = format!("the state of stage `{name}` was not yet at its next place: {error}");
            return Err(Error::new(error.kind().clone(), text));
        }
    }
    Ok(())
}

/// Ends all waits of the group of `epoch` at this place.
fn give_up_group<P: Pipeline>(local: &PlaceLocal<LocalPipeline<P>>, epoch: u64) {
    let arrivals = Rc::clone(&local.lock().arrivals);
    arrivals.atomic(|arrivals| arrivals.incomplete.insert(epoch));
}

/// Waits for a stage of the group of `epoch` and returns it with its state; `None` if the group is aborted.
pub(super) async fn arrived<P: Pipeline>(
    local: &PlaceLocal<LocalPipeline<P>>,
    epoch: u64,
    stage: usize,
) -> Result<Option<Box<dyn AnyStage>>> {
    let arrivals = Rc::clone(&local.lock().arrivals);
    let is_ready = |arrivals: &Arrivals| arrivals.is_over(epoch) || arrivals.has(epoch, stage);
    let take = |arrivals: &mut Arrivals| match arrivals.is_over(epoch) {
        true => None,
        false => arrivals.take(epoch, stage),
    };
    match arrivals.when(is_ready, take).await {
        None => Ok(None),
        Some(ArrivalForm::Stayed(idle)) => Ok(Some(idle)),
        Some(ArrivalForm::State(state)) => {
            let mut local = local.lock();
            let mut idle = local.take(stage);
            if let Some(state) = state {
                let name = local.names[stage];
                idle.restore(&state).map_err(|error| StageFault { name }.in_error(&error))?;
            }
            Ok(Some(idle))
        }
    }
}
