//! A group at its place: takes items in, runs its stages on them, sends them on; hands its stages over at a change.
//!
//! Neighbouring stages of a group are called one after the other, with no message between them. Invariant: a group
//! handles its packets in order, and after a change or the end handles none.

use super::kit::{Kit, SavedStage, arrived};
use super::packet::{EpochPlan, StageMessage};
use super::stage::AnyStage;
use super::stage::ports::{PortValues, Ports, live_at};
use super::{Pipeline, StageFault};
use crate::prelude::*;
use crate::{RecvError, Result};
use isles_runtime::catch_panic;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Every stage of the first items is measured, and of one in this many items later.
const MEASURED_APART: u64 = 16;

/// A group whose items take longer gives way after each of them, and has each measured: that costs little then.
const LONG_ITEM: Duration = Duration::from_micros(20);

/// Items of a group of short stages between which it gives way.
const YIELDS_APART: u64 = 16;

/// A group that is to run at a place.
#[derive(Serialize, Deserialize)]
pub(super) struct GroupTask {
    pub(super) epoch: u64,
    pub(super) stages: Range<usize>,
    /// `true` if its stages are at its place as they were built, and do not come from other groups.
    pub(super) is_first: bool,
    /// The place that runs the pipeline.
    pub(super) keeper: Place,
    pub(super) input: Receiver<StageMessage>,
    pub(super) output: Sender<StageMessage>,
}

/// A group that runs.
struct StageGroup<P: Pipeline> {
    kit: PlaceLocal<Kit<P>>,
    names: Rc<[&'static str]>,
    first: usize,
    stages: Vec<Box<dyn AnyStage>>,
    ports: Ports,
    enters: Vec<usize>,
    leaves: Vec<usize>,
    output: Sender<StageMessage>,
    /// The place that runs the pipeline, which keeps its checkpoints.
    keeper: Place,
    /// `true` if the next group is here as well.
    next_is_here: bool,
    items: u64,
    is_long: bool,
}

/// Runs a group until a change or the end has come through it, or the pipeline is given up.
pub(super) async fn work<P: Pipeline>(kit: PlaceLocal<Kit<P>>, task: GroupTask) -> Result<()> {
    let GroupTask { epoch, stages, is_first, keeper, input, output } = task;
    let idle = if is_first {
        let mut kit = kit.lock();
        Some(stages.clone().map(|stage| kit.take(stage)).collect())
    } else {
        arrived(&kit, epoch, stages.len()).await?
    };
    let Some(idle) = idle else { return Ok(()) };
    let mut group = StageGroup::new(kit, stages, idle, keeper, output);
    loop {
        let packet = match input.recv().await {
            Ok(packet) => packet,
            // Whoever is to blame says so.
            Err(RecvError::Closed) => return group.end(),
            Err(error) => return Err(error.into()),
        };
        match packet {
            StageMessage::Item { number, payload } => {
                let payload = group.process(payload).await?;
                if group.output.send(StageMessage::Item { number, payload }).await.is_err() {
                    return group.end();
                }
            }
            StageMessage::Change(plan) => return group.hand_over(plan).await,
            StageMessage::Checkpoint { number } => group.checkpoint(number).await?,
            StageMessage::End => {
                let _ = group.output.send(StageMessage::End).await;
                return group.end();
            }
        }
    }
}

impl<P: Pipeline> StageGroup<P> {
    fn new(
        kit: PlaceLocal<Kit<P>>,
        stages: Range<usize>,
        idle: Vec<Box<dyn AnyStage>>,
        keeper: Place,
        output: Sender<StageMessage>,
    ) -> Self {
        let (names, plans) = {
            let kit = kit.lock();
            (Rc::clone(&kit.names), Rc::clone(&kit.ports))
        };
        StageGroup {
            kit,
            names,
            first: stages.start,
            stages: idle,
            ports: Ports::new(&plans),
            enters: live_at(&plans, stages.start),
            leaves: live_at(&plans, stages.end),
            next_is_here: output.home() == here(),
            output,
            keeper,
            items: 0,
            is_long: false,
        }
    }

    /// Runs all stages on one item.
    async fn process(&mut self, payload: PortValues) -> Result<PortValues> {
        self.ports.load(&self.enters, payload)?;
        let is_measured =
            self.is_long || self.items < MEASURED_APART || self.items.is_multiple_of(MEASURED_APART);
        if is_measured {
            self.step_measured().await?;
        } else {
            for (stage, name) in self.stages.iter_mut().zip(&self.names[self.first..]) {
                step(&mut **stage, name, &mut self.ports).await?;
            }
        }
        self.items += 1;
        if self.is_long || self.items.is_multiple_of(YIELDS_APART) {
            yield_now().await;
        }
        self.ports.unload(&self.leaves, self.next_is_here)
    }

    async fn step_measured(&mut self) -> Result<()> {
        let mut costs = Vec::with_capacity(self.stages.len());
        let begun = now();
        let mut last = begun;
        for (stage, name) in self.stages.iter_mut().zip(&self.names[self.first..]) {
            step(&mut **stage, name, &mut self.ports).await?;
            let now = now();
            costs.push((now - last).as_nanos() as u64);
            last = now;
        }
        self.is_long = last - begun > LONG_ITEM;
        let monitor = &mut self.kit.lock().monitor;
        costs.into_iter().enumerate().for_each(|(index, cost)| monitor.measured(self.first + index, cost));
        Ok(())
    }

    /// Hands each stage to the group of the plan that runs it next. Those at other places get the state only.
    async fn hand_over(self, plan: EpochPlan) -> Result<()> {
        let StageGroup { kit, first, stages, output, .. } = self;
        let mut leaving: Vec<(usize, Vec<SavedStage>)> = Vec::new();
        for (stage, idle) in (first..).zip(stages) {
            let place = plan.place_of(stage);
            let mut kit = kit.lock();
            if place == here().index() {
                kit.keep(plan.epoch, stage, idle);
                continue;
            }
            let state = kit.save(stage, &*idle)?;
            kit.moved_bytes += state.as_ref().map_or(0, Vec::len) as u64;
            kit.put(stage, idle);
            match leaving.last_mut().filter(|(last, _)| *last == place) {
                Some((_, states)) => states.push(SavedStage { stage, state }),
                None => leaving.push((place, vec![SavedStage { stage, state }])),
            }
        }
        let epoch = plan.epoch;
        for (place, states) in leaving {
            let place = Place::new(place).expect("a plan has places of the run");
            spawn_at!(place, kit.lock().deliver(epoch, states));
        }
        let _ = output.send(StageMessage::Change(plan)).await;
        Ok(())
    }

    /// Sends the states of all stages to the place that runs the pipeline, then the marker to the next group.
    async fn checkpoint(&mut self, number: u64) -> Result<()> {
        let mut states = Vec::new();
        for (stage, idle) in (self.first..).zip(&self.stages) {
            let state = self.kit.lock().save(stage, &**idle)?;
            states.push(SavedStage { stage, state });
        }
        let (kit, keeper) = (&self.kit, self.keeper);
        at!(keeper, kit.lock().add_to_checkpoint(number, states)).await?;
        let _ = self.output.send(StageMessage::Checkpoint { number }).await;
        Ok(())
    }

    /// Gives the stages back to the place.
    fn end(self) -> Result<()> {
        let mut kit = self.kit.lock();
        (self.first..).zip(self.stages).for_each(|(stage, idle)| kit.put(stage, idle));
        Ok(())
    }
}

/// Runs one stage on one item; an error names the stage.
async fn step(stage: &mut dyn AnyStage, name: &'static str, ports: &mut Ports) -> Result<()> {
    let rest = match catch_panic(|| stage.step(ports)).and_then(|stepped| stepped) {
        Ok(None) => return Ok(()),
        Ok(Some(rest)) => rest,
        Err(error) => return Err(StageFault { name }.in_error(&error)),
    };
    let mut rest = rest;
    let ended = poll_fn(|context| match catch_panic(|| rest.as_mut().poll(context)) {
        Ok(polled) => polled,
        Err(error) => std::task::Poll::Ready(Err(error)),
    });
    ended.await.map_err(|error| StageFault { name }.in_error(&error))
}
