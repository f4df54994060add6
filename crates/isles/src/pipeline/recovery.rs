//! Recovery after deaths: restores the states of the last checkpoint and replays the items since.
//!
//! A checkpoint is a marker that passes through the pipeline as a change does, so it collects all states between the
//! same two items (K. M. Chandy and L. Lamport, "Distributed Snapshots", 1985, with ordered channels). Invariants:
//! items since the last complete checkpoint are kept as bytes; results that were received before a death are dropped
//! when they arrive again.

use super::Pipeline;
use super::change::StateOrigin;
use super::flow::{PipelineState, partition_of};
use super::group_starter::{Command, command, outcome};
use super::local::SavedStage;
use super::packet::{StageMessage, StagePacket};
use super::source::SendPermit;
use super::stage::ports::PortValues;
use crate::prelude::*;
use crate::{Error, ErrorKind, Result, yield_now};
use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedSet;
use isles_protocol::pipeline::{Partition, PlacedGroup};
use isles_runtime::capture::CanSend;
use isles_runtime::wire::to_bytes;
use std::collections::VecDeque;

/// The state of each stage as bytes; `None` for a stage that has none.
pub(super) type States = Vec<Option<Vec<u8>>>;

/// Checkpoint and items for a replay.
pub(super) struct Replay {
    /// The item that follows the checkpoint.
    number: u64,
    states: States,
    /// The items from `number` on.
    items: VecDeque<Vec<u8>>,
}

impl Replay {
    /// Makes the checkpoint before the first item.
    pub(super) fn new(states: States) -> Replay {
        Replay { number: 0, states, items: VecDeque::new() }
    }

    fn is_stateless(&self) -> bool {
        self.states.iter().all(Option::is_none)
    }

    fn advance_to(&mut self, number: u64) {
        let passed = number.saturating_sub(self.number) as usize;
        self.items.drain(..passed.min(self.items.len()));
        self.number = self.number.max(number);
    }
}

/// Returns `true` if every cause of the error is the death of a place.
pub(super) fn is_death(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::DeadPlace(_) => true,
        ErrorKind::Several => error.causes().iter().all(is_death),
        _ => false,
    }
}

/// Sends the items since the checkpoint again, into the new groups.
pub(super) async fn replay<P: Pipeline>(shared: &PipelineState<P>) {
    let (entry, sent, generation) =
        shared.source.atomic(|source| (source.entry.clone(), source.sent, source.generation()));
    let Some(entry) = entry else { return };
    let mut number = shared.replay.borrow().as_ref().map_or(sent, |replay| replay.number);
    while number < sent {
        let bytes = shared.replay.borrow().as_ref().and_then(|replay| {
            let index = number.checked_sub(replay.number)?;
            replay.items.get(index as usize).cloned()
        });
        // An item that is no longer kept has left the pipeline.
        if let Some(bytes) = bytes {
            let payload = PortValues::Bytes(vec![bytes]);
            let item = StageMessage::Item { number, payload };
            if entry.send(item.into_packet()).await.is_err() {
                shared.source.atomic(|source| source.refused(generation));
                return;
            }
        }
        number += 1;
    }
}

impl<P: Pipeline> PipelineState<P> {
    /// Keeps an item as bytes and returns them; sends the marker of a checkpoint before it if one is due. Returns
    /// `None` without checkpoints.
    pub(super) async fn keep_for_replay<T: CanSend>(
        &self,
        entry: &Sender<StagePacket>,
        permit: &mut SendPermit<'_>,
        number: u64,
        item: &T,
    ) -> Result<Option<Vec<u8>>> {
        let Some(apart) = self.options.checkpoint else { return Ok(None) };
        let bytes = to_bytes(item)?;
        let is_stateless = {
            let mut replay = self.replay.borrow_mut();
            let replay = replay.as_mut().expect("a pipeline with checkpoints has one");
            replay.items.push_back(bytes.clone());
            permit.use_number();
            replay.is_stateless()
        };
        if !is_stateless && number > 0 && number.is_multiple_of(apart) {
            // If the marker is refused, so will be the item.
            let _ = entry.send(StageMessage::Checkpoint { number }.into_packet()).await;
        }
        Ok(Some(bytes))
    }

    /// Drops the items up to a received result, if no stage has a state.
    pub(super) fn forget_replay(&self, number: u64) {
        if let Some(replay) = &mut *self.replay.borrow_mut()
            && replay.is_stateless()
        {
            replay.advance_to(number + 1);
        }
    }

    /// Handles the marker of a checkpoint at the exit: all states have arrived.
    pub(super) fn on_checkpoint(&self, number: u64) {
        let states = self.local.lock().take_checkpoint(number);
        if let Some((replay, states)) = self.replay.borrow_mut().as_mut().zip(states) {
            replay.advance_to(number);
            replay.states = states;
        }
    }

    /// Ends the present groups and returns their outcome.
    async fn end_groups(&self) -> Result<()> {
        self.exits.borrow_mut().clear();
        self.source.atomic(|source| {
            source.is_broken = true;
            source.entry = None;
        });
        let epoch = self.epoch.get() + 1;
        for place in places().filter(|place| !place.is_dead()) {
            let local = &self.local;
            // A place that dies now needs no abort.
            let _ = finish(async { at!(place, local.lock().abort(epoch)).await }).await;
        }
        command(&self.starter, Command::Stop);
        outcome(&self.starter).await
    }

    /// Aborts the pipeline.
    pub(super) async fn give_up(&self) {
        let is_over = self.source.atomic(|source| std::mem::replace(&mut source.is_over, true));
        if !is_over {
            let _ = self.end_groups().await;
        }
    }

    /// Recovers after the groups have ended early: starts new groups if the cause was a death and there are
    /// checkpoints.
    ///
    /// # Errors
    /// The error that ended the groups, with the stages at dead places.
    pub(super) async fn recover(&self) -> Result<()> {
        let generation = || self.source.atomic(|source| source.generation());
        let broken = generation();
        let _guard = self.change_guard().await;
        if let Some((kind, text)) = &*self.fate.borrow() {
            return Err(Error::new(kind.clone(), text.clone()));
        }
        // Another task may have recovered in between.
        if generation() != broken {
            return Ok(());
        }
        loop {
            let living = self.live_places().len();
            match self.restart().await {
                // Another place has died; the error may arrive before the notice of the death.
                Err(error) if is_death(&error) && self.fate.borrow().is_none() => {
                    while self.live_places().len() == living
                        && dead_places(&error).any(|place| !place.is_dead())
                    {
                        yield_now().await;
                    }
                }
                ended => return ended,
            }
        }
    }

    /// Ends the groups, unless they have ended, and starts others. It may be called again after it has failed or was
    /// cancelled.
    async fn restart(&self) -> Result<()> {
        for exit in self.exits.borrow().iter() {
            self.ended_groups.borrow_mut().extend(exit.groups.iter().cloned());
        }
        let ended = self.end_groups().await;
        let fatal = match ended {
            Ok(()) => Some(Error::new(ErrorKind::Closed, "the pipeline has ended before its last result")),
            Err(error) if !is_death(&error) => Some(error),
            Err(error) => {
                // The error caused by a death may arrive before the notice of the death.
                while dead_places(&error).any(|place| !place.is_dead()) {
                    yield_now().await;
                }
                let goes_on = self.options.checkpoint.is_some() && !self.live_places().is_empty();
                (!goes_on).then(|| self.lost_stages_error(&error, &self.ended_groups.borrow()))
            }
        };
        if let Some(error) = fatal {
            self.source.atomic(|source| source.is_over = true);
            *self.fate.borrow_mut() = Some((error.kind().clone(), error.to_string()));
            return Err(error);
        }
        let groups = self.groups.borrow().clone();
        let cores = self.cores.get().min(self.live_places().len());
        let partition = match cores == groups.len() {
            true => partition_of(&groups),
            false => Partition::optimal(&self.local.lock().monitor.costs(), cores),
        };
        let prepared = self.prepare(&partition, StateOrigin::Delivered).await?;
        for group in &prepared.groups {
            let (place, local, epoch) = (Place::new(group.place), &self.local, prepared.epoch);
            let place = place.expect("it is a place of the run");
            for stage in group.stages.clone() {
                let state = self.replay.borrow().as_ref().and_then(|replay| replay.states[stage].clone());
                if state.is_none() {
                    continue; // each place has stages without state
                }
                let saved = SavedStage { stage, state };
                finish(async { at!(place, local.lock().deliver(epoch, saved)).await }).await?;
            }
        }
        let ended_groups = self.ended_groups.take();
        let dead: OrderedSet<usize> =
            ended_groups.iter().filter(|group| is_dead(group)).map(|group| group.place).collect();
        self.lost_places.set(self.lost_places.get() + dead.len());
        let entry = prepared.entry.clone();
        self.spawn_group_starter();
        self.start(prepared);
        self.source.atomic(|source| source.restart(entry));
        Ok(())
    }

    /// Returns the error of a pipeline that cannot continue, with the stages of the dead places.
    fn lost_stages_error(&self, error: &Error, under_way: &[PlacedGroup]) -> Error {
        let states = self.local.lock().state_bytes().to_vec();
        let stages: OrderedSet<usize> =
            under_way.iter().filter(|group| is_dead(group)).flat_map(|group| group.stages.clone()).collect();
        let descriptions = stages.iter().map(|stage| match states[stage] {
            Some(_) => format!("stage `{}` with its state", self.names[stage]),
            None => format!("stage `{}`", self.names[stage]),
        });
        let lost = descriptions.collect::<Vec<_>>().join(", ");
        // A dead place without a stage had a state in transit; the error names that state.
        let lost = if lost.is_empty() { lost } else { format!("; it ran {lost}") };
        let text = format!("{error}{lost}; with `checkpoint` the pipeline would have continued");
        Error::new(first_death(error).unwrap_or(error.kind().clone()), text)
    }
}

/// Returns `true` if a group's place is dead.
pub(super) fn is_dead(group: &PlacedGroup) -> bool {
    Place::new(group.place).is_none_or(Place::is_dead)
}

/// Returns the kind of the first death among the causes of an error.
fn first_death(error: &Error) -> Option<ErrorKind> {
    match error.kind() {
        ErrorKind::DeadPlace(place) => Some(ErrorKind::DeadPlace(*place)),
        _ => error.causes().iter().find_map(first_death),
    }
}

/// Returns the places whose deaths caused an error.
fn dead_places(error: &Error) -> impl Iterator<Item = Place> {
    let mut dead = Vec::new();
    collect_dead(error, &mut dead);
    places().filter(move |place| dead.contains(&place.id()))
}

fn collect_dead(error: &Error, dead: &mut Vec<PlaceId>) {
    if let ErrorKind::DeadPlace(place) = error.kind() {
        dead.push(*place);
    }
    error.causes().iter().for_each(|cause| collect_dead(cause, dead));
}
