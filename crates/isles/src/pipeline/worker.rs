//! A group at its place: receives items, runs its stages on them and sends them on; passes on its stages at a change.
//!
//! The stages of a group are called one after the other, without messages between them. Invariant: a group handles its
//! packets in order, and none after a change or the end.

use super::links::{GroupInput, GroupOutput};
use super::local::{LocalPipeline, SavedStage, arrived, fetch};
use super::packet::{EpochPlan, StageMessage, StagePacket};
use super::stage::AnyStage;
use super::stage::ports::{PortValues, Ports, live_at};
use super::{Pipeline, StageFault};
use crate::Result;
use crate::prelude::*;
use isles_runtime::{catch_panic, show_stages};
use isles_telemetry::StageSample;
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// The stages are measured for the first items up to this number, and then for every item at a multiple of it.
const MEASURED_APART: u64 = 16;

/// A group whose items take longer than this measures each item, and yields after each item and, between stages, after
/// each such time; the overhead is then small.
const LONG_ITEM: Duration = Duration::from_micros(20);

/// Number of items after which a group of short stages yields.
const YIELDS_APART: u64 = 16;

/// Time between two reports of a group to observers of the run.
const SHOWN_APART: Duration = Duration::from_secs(1);

/// Description of a group to start: a group, a replica of one, or a relay, which has no stages.
#[derive(Serialize, Deserialize)]
pub(super) struct GroupTask {
    /// Start of the pipeline in nanoseconds, which identifies it to observers of the run.
    pub(super) pipeline: u64,
    pub(super) epoch: u64,
    pub(super) stages: Range<usize>,
    /// `true` if its stages are used as built, without states from other groups.
    pub(super) is_first: bool,
    /// The stages whose states come from other places, with those places.
    pub(super) sources: Vec<(usize, Place)>,
    /// `true` for one of several replicas of the group.
    pub(super) is_replica: bool,
    /// The place that runs the pipeline.
    pub(super) keeper: Place,
    pub(super) inputs: Vec<Receiver<StagePacket>>,
    pub(super) outputs: Vec<Sender<StagePacket>>,
}

/// A running group.
struct StageGroup<P: Pipeline> {
    local: PlaceLocal<LocalPipeline<P>>,
    names: Rc<[&'static str]>,
    pipeline: u64,
    epoch: u64,
    first: usize,
    /// Number of its stages.
    count: usize,
    /// The stages that have arrived; the others are in transit from other groups.
    stages: Vec<Box<dyn AnyStage>>,
    ports: Ports,
    enters: Vec<usize>,
    leaves: Vec<usize>,
    output: GroupOutput,
    /// The place that runs the pipeline, which keeps its checkpoints.
    keeper: Place,
    items: u64,
    is_long: bool,
    /// Time of the last report, and the number of items then.
    shown: (Duration, u64),
    /// `true` if the group has been reported.
    is_shown: bool,
}

/// Runs a group until a change or the end has passed through it, or it is aborted.
pub(super) async fn work<P: Pipeline>(
    local: PlaceLocal<LocalPipeline<P>>,
    mut task: GroupTask,
) -> Result<()> {
    let (mut input, epoch) = (GroupInput::new(std::mem::take(&mut task.inputs)), task.epoch);
    for (stage, source) in std::mem::take(&mut task.sources) {
        spawn(fetch(local.clone(), epoch, stage, source));
    }
    let arrivals = Rc::clone(&local.lock().arrivals);
    let mut aborted = pin!(arrivals.when(|arrivals| arrivals.has_aborted(epoch), |_| ()));
    let mut group = StageGroup::new(local, task);
    loop {
        let received = {
            let mut received = pin!(input.recv());
            // The previous group may have been lost with its place before it started, so that nothing closes the
            // channel.
            let unless_aborted = poll_fn(|context| match received.as_mut().poll(context) {
                Poll::Pending => aborted.as_mut().poll(context).map(|()| Ok(None)),
                ready => ready,
            });
            unless_aborted.await?
        };
        // If the channel is closed, the failed group reports the error.
        let Some(StagePacket { number, message }) = received else { return group.end() };
        // An item runs through the stages that are here while others are still arriving.
        let is_item = matches!(message, StageMessage::Item { .. });
        if !is_item && !group.has_arrived(group.count).await? {
            return group.end();
        }
        match message {
            StageMessage::Item { number: item, payload } => {
                let Some(payload) = group.process(payload).await? else { return group.end() };
                group.show_if_due(&input);
                if !group.output.send_item(number, item, payload).await {
                    return group.end();
                }
            }
            StageMessage::Change(plan) => return group.transfer_stages(number, plan).await,
            StageMessage::Checkpoint { number: item } => group.checkpoint(number, item).await?,
            StageMessage::End => {
                group.output.send_marker(number, || StageMessage::End).await;
                return group.end();
            }
        }
    }
}

impl<P: Pipeline> StageGroup<P> {
    fn new(local: PlaceLocal<LocalPipeline<P>>, task: GroupTask) -> Self {
        let GroupTask { pipeline, epoch, stages: range, is_first, is_replica, keeper, outputs, .. } = task;
        let (names, plans, stages) = {
            let mut local = local.lock();
            let own = if is_first { range.clone() } else { 0..0 };
            let stages = own.map(|stage| local.share(stage).unwrap_or_else(|| local.take(stage))).collect();
            (Rc::clone(&local.names), Rc::clone(&local.ports), stages)
        };
        StageGroup {
            local,
            names,
            pipeline,
            epoch,
            first: range.start,
            count: range.len(),
            stages,
            ports: Ports::new(&plans),
            enters: live_at(&plans, range.start),
            leaves: live_at(&plans, range.end),
            output: GroupOutput::new(outputs, is_replica),
            keeper,
            items: 0,
            is_long: false,
            shown: (now(), 0),
            is_shown: false,
        }
    }

    /// Waits until the first `count` stages have arrived; returns `false` if the group is aborted.
    async fn has_arrived(&mut self, count: usize) -> Result<bool> {
        while self.stages.len() < count {
            let stage = self.first + self.stages.len();
            let shared = self.local.lock().share(stage);
            if let Some(shared) = shared {
                self.stages.push(shared);
                continue;
            }
            let Some(idle) = arrived(&self.local, self.epoch, stage).await? else { return Ok(false) };
            self.stages.push(idle);
        }
        Ok(true)
    }

    /// Runs all stages on one item; `None` if the group is aborted.
    async fn process(&mut self, payload: PortValues) -> Result<Option<PortValues>> {
        self.ports.load(&self.enters, payload)?;
        let is_measured =
            self.is_long || self.items < MEASURED_APART || self.items.is_multiple_of(MEASURED_APART);
        if is_measured || self.stages.len() < self.count {
            if !self.step_measured().await? {
                return Ok(None);
            }
        } else {
            for (stage, name) in self.stages.iter_mut().zip(&self.names[self.first..]) {
                step(&mut **stage, name, &mut self.ports).await?;
            }
        }
        self.items += 1;
        if self.is_long || self.items.is_multiple_of(YIELDS_APART) {
            yield_now().await;
        }
        self.ports.unload(&self.leaves, self.output.stays_here()).map(Some)
    }

    /// Reports the stages, with their rate and queue, to observers of the run if a report is due.
    fn show_if_due(&mut self, input: &GroupInput) {
        if self.count == 0 || !self.items.is_multiple_of(MEASURED_APART) && !self.is_long {
            return;
        }
        let (last, before) = self.shown;
        let since = now() - last;
        if since < SHOWN_APART {
            return;
        }
        self.shown = (last + since, self.items);
        self.is_shown = true;
        let rate = (self.items - before) as f64 / since.as_secs_f64();
        let names =
            self.names[self.first..self.first + self.stages.len()].iter().map(|name| (*name).to_owned());
        let (waiting, queue) = input.queue();
        self.report(rate, waiting, queue, names.collect());
    }

    fn report(&self, items_per_s: f64, waiting: usize, queue: usize, names: Vec<String>) {
        let sample = StageSample {
            pipeline: self.pipeline,
            epoch: self.epoch,
            first: self.first as u32,
            items_per_s,
            waiting: waiting as u64,
            queue: queue as u64,
            names,
        };
        show_stages(&sample.to_line());
    }

    /// Runs all stages on one item, each once it has arrived, and measures them; returns `false` if the group is
    /// aborted.
    async fn step_measured(&mut self) -> Result<bool> {
        let mut costs = Vec::with_capacity(self.count);
        let mut turn = now();
        for index in 0..self.count {
            if !self.has_arrived(index + 1).await? {
                return Ok(false);
            }
            let mut begun = now();
            if begun - turn > LONG_ITEM {
                yield_now().await;
                begun = now();
                turn = begun;
            }
            step(&mut *self.stages[index], self.names[self.first + index], &mut self.ports).await?;
            costs.push((now() - begun).as_nanos() as u64);
        }
        self.is_long = costs.iter().sum::<u64>() > LONG_ITEM.as_nanos() as u64;
        let monitor = &mut self.local.lock().monitor;
        costs.into_iter().enumerate().for_each(|(index, cost)| monitor.measured(self.first + index, cost));
        Ok(true)
    }

    /// Passes each stage with a state to the group of the plan that runs it next; groups at other places fetch the
    /// state. `number` is the number of the packet with the plan.
    async fn transfer_stages(self, number: u64, plan: EpochPlan) -> Result<()> {
        self.report_end();
        let StageGroup { local, first, stages, mut output, .. } = self;
        for (stage, idle) in (first..).zip(stages) {
            let (epoch, place) = (plan.epoch, plan.place_of(stage));
            let mut own = local.lock();
            if own.is_stateless(stage) {
                continue;
            }
            if place == here().index() {
                own.keep(epoch, stage, idle);
                continue;
            }
            let state = own.save(stage, &*idle)?;
            own.moved_bytes += state.as_ref().map_or(0, Vec::len) as u64;
            own.put(stage, idle);
            own.deliver(epoch, SavedStage { stage, state });
        }
        output.send_marker(number, || StageMessage::Change(plan.clone())).await;
        Ok(())
    }

    /// Sends the states before `item` to the place that runs the pipeline, then the marker to the next group. `number`
    /// is the number of the packet with the marker.
    async fn checkpoint(&mut self, number: u64, item: u64) -> Result<()> {
        let mut states = Vec::new();
        for (stage, idle) in (self.first..).zip(&self.stages) {
            let state = self.local.lock().save(stage, &**idle)?;
            if state.is_some() {
                states.push(SavedStage { stage, state });
            }
        }
        if !states.is_empty() {
            let (local, keeper) = (&self.local, self.keeper);
            at!(keeper, local.lock().add_to_checkpoint(item, states)).await?;
        }
        self.output.send_marker(number, || StageMessage::Checkpoint { number: item }).await;
        Ok(())
    }

    /// Reports to observers of the run that the group has ended, if it was ever reported.
    fn report_end(&self) {
        if self.is_shown {
            self.report(0.0, 0, 0, Vec::new());
        }
    }

    /// Returns the stages to the place.
    fn end(self) -> Result<()> {
        self.report_end();
        let mut local = self.local.lock();
        (self.first..).zip(self.stages).for_each(|(stage, idle)| local.put(stage, idle));
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
        Err(error) => Poll::Ready(Err(error)),
    });
    ended.await.map_err(|error| StageFault { name }.in_error(&error))
}
