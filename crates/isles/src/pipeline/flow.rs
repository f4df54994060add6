//! A running pipeline, as its program sees it: items go in, results come out.
//!
//! All of this state is at the place that runs the pipeline. Invariant: results leave in the order of the items, each
//! once; the sink checks the number of each.

use super::group_starter::{Command, GroupStarter, cancel_groups, command, outcome, start_groups};
use super::local::LocalPipeline;
use super::options::{Options, check_places};
use super::packet::{StageMessage, StagePacket};
use super::recovery::{Replay, is_death};
use super::report::{PipelineReport, Resize};
use super::source::{PipelineSource, SendPermit, send_markers};
use super::stage::ports::PortValues;
use super::{Pipeline, misused};
use crate::prelude::*;
use crate::{Error, ErrorKind, RecvError, Result};
use isles_protocol::pipeline::{Partition, PlacedGroup, StageCosts};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

/// First items at which [`process`](super::process) rebalances the stages. There are several, because the last stages
/// are measured only after items have filled the queues of all groups.
const REBALANCED_FIRST: [u64; 3] = [16, 64, 256];

/// Items between later rebalances by [`process`](super::process).
const REBALANCED_APART: u64 = 512;

/// Returns `true` if [`process`](super::process) rebalances before this item.
pub(super) fn is_time_to_rebalance(item: u64) -> bool {
    REBALANCED_FIRST.contains(&item) || item > 0 && item.is_multiple_of(REBALANCED_APART)
}

/// A handle of a running pipeline. Clones refer to the same pipeline and stay at the place that runs it.
pub struct RunningPipeline<P: Pipeline> {
    pub(super) shared: Rc<PipelineState<P>>,
}

impl<P: Pipeline> Clone for RunningPipeline<P> {
    fn clone(&self) -> Self {
        RunningPipeline { shared: Rc::clone(&self.shared) }
    }
}

/// State shared by all clones.
pub(super) struct PipelineState<P: Pipeline> {
    pub(super) local: PlaceLocal<LocalPipeline<P>>,
    pub(super) options: Options,
    /// The requested number of places; the groups may use fewer.
    pub(super) cores: Cell<usize>,
    /// The places that the pipeline may use.
    pub(super) usable: RefCell<Vec<Place>>,
    pub(super) names: Rc<[&'static str]>,
    pub(super) source: Monitor<PipelineSource>,
    pub(super) starter: Rc<Monitor<GroupStarter>>,
    /// `true` while groups are being changed.
    pub(super) is_changing: Monitor<bool>,
    /// The groups that take the next items.
    pub(super) groups: RefCell<Vec<PlacedGroup>>,
    pub(super) epoch: Cell<u64>,
    /// Exits of all epochs whose results have not all been received, in order.
    pub(super) exits: RefCell<VecDeque<Exit>>,
    pub(super) sink: RefCell<Sink>,
    pub(super) replay: RefCell<Option<Replay>>,
    pub(super) lost_places: Cell<usize>,
    /// Groups that were ended after a death, until others are started.
    pub(super) ended_groups: RefCell<Vec<PlacedGroup>>,
    /// Reason why the pipeline has ended early.
    pub(super) fate: RefCell<Option<(ErrorKind, String)>>,
    /// Start time, which identifies the pipeline to observers; modelled time on a chip and in a simulation, so that
    /// runs are reproducible.
    pub(super) started: Duration,
}

/// The exit for the results of an epoch.
#[derive(Clone)]
pub(super) struct Exit {
    pub(super) epoch: u64,
    pub(super) results: Receiver<StagePacket>,
    pub(super) groups: Rc<[PlacedGroup]>,
}

/// State of the received results.
#[derive(Default)]
pub(super) struct Sink {
    /// Items whose results were received or will never arrive.
    pub(super) received: u64,
    /// Items among these whose results will never arrive, because their sending was cancelled.
    skipped: u64,
    last: Option<Duration>,
    /// Mean time between two results, in nanoseconds.
    period: f64,
    resizes: Vec<Resize>,
    /// Requested changes: the epoch, and the numbers of groups before and after.
    pub(super) asked: VecDeque<(u64, usize, usize)>,
    has_ended: bool,
}

impl Sink {
    /// Returns the number of received results.
    fn results(&self) -> u64 {
        self.received - self.skipped
    }

    fn on_result(&mut self, now: Duration) {
        if let Some(last) = self.last.replace(now) {
            let between = now - last;
            let is_first_after = self.resizes.last().is_some_and(|resize| resize.item == self.received);
            if is_first_after {
                let last = self.resizes.iter_mut().rev().take_while(|resize| resize.item == self.received);
                last.for_each(|resize| resize.pause = Some(between));
            } else {
                let weight = if self.period == 0.0 { 1.0 } else { 0.125 };
                self.period += weight * (between.as_nanos() as f64 - self.period);
            }
        }
        self.received += 1;
    }

    /// Skips cancelled items up to `number`; returns `true` if all items before it have been received or skipped.
    fn skip_to(&mut self, number: u64, given_up: &mut BTreeSet<u64>) -> bool {
        while self.received < number && given_up.remove(&self.received) {
            self.received += 1;
            self.skipped += 1;
        }
        if !given_up.is_empty() {
            // Results of cancelled items up to here have arrived after all.
            *given_up = given_up.split_off(&(number + 1));
        }
        self.received == number
    }

    fn on_change(&mut self, epoch: u64) {
        while self.asked.front().is_some_and(|(asked, ..)| *asked <= epoch) {
            let Some((asked, from, to)) = self.asked.pop_front() else { return };
            if asked == epoch {
                let period = Duration::from_nanos(self.period as u64);
                self.resizes.push(Resize { item: self.received, from, to, pause: None, period });
            }
        }
    }
}

impl<P: Pipeline> RunningPipeline<P> {
    /// Sends an item. It waits while the first group's queue is full, or while too many changes of groups are in
    /// progress. If the future is dropped, the item may or may not have been sent; later items are not affected.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`]: the pipeline is closed. Otherwise the error of the stage or the place that ended the
    /// pipeline.
    pub async fn send(&self, item: P::Input) -> Result<()> {
        let shared = &*self.shared;
        loop {
            let enter = |source: &mut PipelineSource| {
                if source.is_over || source.is_closed || source.is_broken {
                    return Err(source.is_broken && !source.is_over);
                }
                source.is_sending = true;
                Ok((source.entry.clone().expect("it has been started"), source.sent, source.generation()))
            };
            let (entry, number, generation) =
                match shared.source.when(PipelineSource::takes_items, enter).await {
                    Ok(entered) => entered,
                    Err(true) => {
                        shared.recover().await?;
                        continue;
                    }
                    Err(false) => {
                        return Err(Error::new(ErrorKind::Closed, "the pipeline takes no more items"));
                    }
                };
            let mut permit = SendPermit::new(&shared.source, number, generation);
            let payload = match shared.keep_for_replay(&entry, &mut permit, number, &item).await? {
                Some(bytes) => PortValues::Bytes(vec![bytes]),
                None => PortValues::of(item, entry.home() == here())?,
            };
            let is_kept = matches!(&payload, PortValues::Bytes(_)) && shared.options.checkpoint.is_some();
            if !permit.send(&entry, payload).await && !is_kept {
                shared.recover().await?;
                return Err(misused("the pipeline lost an item that it must keep".to_owned()));
            }
            return Ok(());
        }
    }

    /// Receives the next result; `None` after the last one, if the pipeline was closed.
    ///
    /// # Errors
    /// The error of the stage or the place that ended the pipeline.
    pub async fn recv(&self) -> Result<Option<P::Output>> {
        let shared = &*self.shared;
        loop {
            if shared.sink.borrow().has_ended {
                return Ok(None);
            }
            let Some(Exit { epoch, results, .. }) = shared.exits.borrow().front().cloned() else {
                shared.recover().await?;
                continue;
            };
            match results.recv().await.map(|packet| packet.message) {
                Ok(StageMessage::Item { number, payload }) => {
                    if number < shared.sink.borrow().received {
                        continue; // it was received before a place died
                    }
                    let skip = |source: &mut PipelineSource| {
                        shared.sink.borrow_mut().skip_to(number, &mut source.given_up)
                    };
                    if !shared.source.atomic(skip) {
                        let received = shared.sink.borrow().received;
                        return Err(misused(format!("got result {number}; expected {received}")));
                    }
                    shared.sink.borrow_mut().on_result(now());
                    shared.forget_replay(number);
                    return payload.into_value().map(Some);
                }
                Ok(StageMessage::Change(plan)) => {
                    shared.end_epoch(epoch);
                    shared.sink.borrow_mut().on_change(plan.epoch);
                }
                Ok(StageMessage::Checkpoint { number }) => shared.on_checkpoint(number),
                Ok(StageMessage::End) => shared.sink.borrow_mut().has_ended = true,
                Err(RecvError::Closed) => {
                    let is_current = shared.exits.borrow().front().is_some_and(|front| front.epoch == epoch);
                    if is_current && !shared.sink.borrow().has_ended {
                        shared.recover().await?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Closes the entry; [`RunningPipeline::recv`] returns `None` after the last result.
    pub fn close(&self) {
        self.shared.source.atomic(|source| source.is_closed = true);
    }

    /// Runs the pipeline on `cores` places from the next item on. If the number changes by one, neighbouring groups are
    /// fused or split; otherwise all stages are regrouped by their costs. Returns when the new groups are started,
    /// without waiting for earlier items. The next item waits while more than [`Options::queue`] changes are in
    /// progress.
    ///
    /// # Errors
    /// [`ErrorKind::Misused`]: `cores` is 0, or exceeds the number of places or of replicas of all stages.
    /// [`ErrorKind::DeadPlace`]: a place has died, and the pipeline cannot recover.
    pub async fn resize(&self, cores: usize) -> Result<()> {
        self.shared.change(|partition, costs| partition.resized(costs, cores), Some(cores)).await
    }

    /// Runs the pipeline in the groups of `partition` from the next item on; otherwise as [`RunningPipeline::resize`].
    ///
    /// # Errors
    /// [`ErrorKind::Misused`]: the groups do not cover the stages, or a group has more replicas than its stages allow.
    /// Otherwise as [`RunningPipeline::resize`].
    pub async fn resize_to(&self, partition: Partition) -> Result<()> {
        if partition.stages() != self.shared.names.len() {
            let (stages, own) = (partition.stages(), self.shared.names.len());
            return Err(misused(format!("the groups cover {stages} stages, but the pipeline has {own}")));
        }
        if !partition.is_allowed_by(&self.shared.local.lock().monitor.costs()) {
            return Err(misused("a group has more replicas than its stages allow".to_owned()));
        }
        let cores = partition.places();
        self.shared.change(move |_, _| partition.clone(), Some(cores)).await
    }

    /// Runs the pipeline on `places` only from the next item on: all stages are regrouped over as many of these places
    /// as they can use.
    ///
    /// # Errors
    /// [`ErrorKind::Misused`]: `places` is empty or has duplicates. Otherwise as [`RunningPipeline::resize`].
    pub async fn move_to(&self, places: Vec<Place>) -> Result<()> {
        check_places(&places)?;
        let shared = &self.shared;
        let before = shared.usable.replace(places.clone());
        let mut guard = UsableGuard { usable: &shared.usable, before, wanted: Some(places) };
        let choose = |_: &Partition, costs: &StageCosts| {
            Partition::optimal(costs, shared.live_places().len().clamp(1, costs.places_max()))
        };
        shared.change(choose, None).await?;
        shared.cores.set(shared.live_places().len());
        guard.wanted = None;
        Ok(())
    }

    /// Returns the measured costs of the stages in nanoseconds, for [`speed_ups`](super::speed_ups).
    ///
    /// # Errors
    /// A place has died.
    pub async fn measured_costs(&self) -> Result<StageCosts> {
        self.shared.gather().await?;
        Ok(self.shared.local.lock().monitor.costs())
    }

    /// Regroups the stages by their costs over the same number of places, if that makes the slowest group at least 5 %
    /// faster.
    ///
    /// # Errors
    /// As [`RunningPipeline::resize`].
    pub async fn rebalance(&self) -> Result<()> {
        self.shared.rebalance().await
    }

    /// Returns the groups that take the next item, with the replicas of each.
    pub fn partition(&self) -> Partition {
        partition_of(&self.shared.groups.borrow())
    }

    /// Returns the number of received results.
    pub fn received(&self) -> u64 {
        self.shared.sink.borrow().results()
    }
}

/// Restores the places of a pipeline if its move to others fails or is cancelled.
struct UsableGuard<'a> {
    usable: &'a RefCell<Vec<Place>>,
    before: Vec<Place>,
    /// The places of the move; `None` once it has succeeded.
    wanted: Option<Vec<Place>>,
}

impl Drop for UsableGuard<'_> {
    fn drop(&mut self) {
        // Another move may have started in between.
        if self.wanted.as_ref() == Some(&*self.usable.borrow()) {
            self.usable.replace(std::mem::take(&mut self.before));
        }
    }
}

/// Returns the partition of these groups; replicas of a group are adjacent.
pub(super) fn partition_of(groups: &[PlacedGroup]) -> Partition {
    let chunks = || groups.chunk_by(|one, next| one.stages == next.stages);
    let ends = chunks().map(|replicas| replicas[0].stages.end).collect();
    Partition::of_ends(ends).with_replicas(chunks().map(<[PlacedGroup]>::len).collect())
}

/// As [`super::run`]; errors name lines of this library.
pub(super) async fn run<P: Pipeline, R>(
    pipeline: P,
    options: Options,
    body: impl AsyncFnOnce(RunningPipeline<P>) -> Result<R>,
) -> Result<(R, PipelineReport)> {
    let seed = (pipeline, options.state_bytes_max);
    let local =
        PlaceLocal::with(seed, |(pipeline, max): (P, usize)| LocalPipeline::new(&pipeline, max)).await?;
    let names = Rc::clone(&local.lock().names);
    if names.is_empty() {
        return Err(misused("the pipeline has no stages".to_owned()));
    }
    let none_measured = local.lock().monitor.costs();
    let cores = options.cores(&none_measured);
    let partition = options.check(none_measured)?;
    let states = local.lock().first_states()?;
    let replay = options.checkpoint.map(|_| Replay::new(states));
    let shared = PipelineState {
        local,
        cores: Cell::new(cores),
        usable: RefCell::new(options.usable_places()),
        names,
        source: Monitor::new(PipelineSource::new(options.queue)),
        options,
        starter: Rc::default(),
        is_changing: Monitor::default(),
        groups: RefCell::default(),
        epoch: Cell::new(0),
        exits: RefCell::default(),
        sink: RefCell::default(),
        replay: RefCell::new(replay),
        lost_places: Cell::new(0),
        ended_groups: RefCell::default(),
        fate: RefCell::default(),
        started: now(),
    };
    let flow = RunningPipeline { shared: Rc::new(shared) };
    finish(async {
        let _over = ShutdownGuard(&flow.shared);
        spawn(send_markers(flow.clone()));
        flow.shared.begin(&partition).await?;
        let value = match body(flow.clone()).await {
            Ok(value) => value,
            Err(error) => {
                flow.shared.give_up().await;
                return Err(error);
            }
        };
        flow.close();
        while flow.recv().await?.is_some() {}
        command(&flow.shared.starter, Command::Stop);
        match outcome(&flow.shared.starter).await {
            Err(error) if !is_death(&error) => return Err(error),
            _ => {} // a death after the last result loses nothing
        }
        Ok((value, flow.shared.report().await?))
    })
    .await
}

/// Ends the pipeline when the body of the program ends or panics: stops the task of the markers, and cancels the
/// groups, because one may wait for a state from a place that has ended its group.
struct ShutdownGuard<'a, P: Pipeline>(&'a Rc<PipelineState<P>>);

impl<P: Pipeline> Drop for ShutdownGuard<'_, P> {
    fn drop(&mut self) {
        self.0.source.atomic(|source| {
            source.is_over = true;
            source.entry = None;
            source.markers.clear();
        });
        self.0.exits.borrow_mut().clear();
        cancel_groups(&self.0.starter);
        self.0.local.lock().abort(u64::MAX);
    }
}

impl<P: Pipeline> PipelineState<P> {
    /// Starts the task that starts groups, replacing one that has ended.
    pub(super) fn spawn_group_starter(&self) {
        self.starter.atomic(|starter| *starter = GroupStarter::default());
        spawn(start_groups(self.local.clone(), Rc::clone(&self.starter)));
    }

    /// Handles the marker after the last result of `epoch`. Does nothing if the epoch was abandoned before.
    fn end_epoch(&self, epoch: u64) {
        let mut exits = self.exits.borrow_mut();
        let before = exits.len();
        exits.retain(|exit| exit.epoch != epoch);
        if exits.len() < before {
            self.source.atomic(PipelineSource::end_change);
        }
    }

    async fn report(&self) -> Result<PipelineReport> {
        let (stages, moved_bytes) = self.stage_reports().await?;
        let sink = self.sink.borrow();
        Ok(PipelineReport {
            items: sink.results(),
            elapsed: sink.last.unwrap_or(self.started) - self.started,
            period: Duration::from_nanos(sink.period as u64),
            resizes: sink.resizes.clone(),
            stages,
            moved_bytes,
            lost_places: self.lost_places.get(),
        })
    }
}
