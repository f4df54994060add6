//! Changes of the groups of a running pipeline.
//!
//! New groups and their channels are prepared while the old groups run; then a marker follows the last item of the old
//! groups through the pipeline. Invariant: one change is prepared at a time, and its marker is queued behind earlier
//! ones.

use super::Pipeline;
use super::flow::{Exit, PipelineState, partition_of};
use super::group_starter::{Command, command};
use super::links::ReplicatedGroup;
use super::local::LocalPipeline;
use super::options::check_cores;
use super::packet::{EpochPlan, StagePacket};
use super::recovery::{is_dead, is_death};
use super::report::StageReport;
use super::worker::GroupTask;
use crate::prelude::*;
use crate::{Result, yield_now};
use isles_protocol::pipeline::{Partition, PlacedGroup, StageCosts, assign};
use isles_runtime::try_join_all;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// Smallest gain of the slowest group that justifies a recombination, as the reciprocal of its cost.
const GAIN_MIN: u64 = 20;

/// A place's measurements of a stage.
#[derive(Serialize, Deserialize)]
struct StageFacts {
    mean: Option<f64>,
    state_bytes: Option<usize>,
}

/// Returns this place's measurements of the stages `first..end`.
fn stage_facts<P: Pipeline>(local: &LocalPipeline<P>, first: usize, end: usize) -> Vec<StageFacts> {
    let fact = |stage: usize| StageFacts {
        mean: local.monitor.means()[stage],
        state_bytes: local.state_bytes()[stage],
    };
    (first..end).map(fact).collect()
}

/// Origin of the states of new groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StateOrigin {
    /// States as each place has built them.
    Built,
    /// States of the present groups.
    Groups,
    /// States that are delivered, such as those of a checkpoint.
    Delivered,
}

/// Prepared groups with their channels and tasks.
pub(super) struct Prepared {
    pub(super) groups: Vec<PlacedGroup>,
    pub(super) epoch: u64,
    pub(super) entry: Sender<StagePacket>,
    exit: Receiver<StagePacket>,
    tasks: Vec<(Place, GroupTask)>,
}

/// Both ends of the channels between two groups.
type ChannelEnds = (Vec<Sender<StagePacket>>, Vec<Receiver<StagePacket>>);

/// Returns the one end of a replica, or all ends of a group that is not replicated.
fn ends_of<T: Clone>(ends: &[T], replica: Option<usize>) -> Vec<T> {
    match replica {
        Some(replica) => vec![ends[replica].clone()],
        None => ends.to_vec(),
    }
}

/// Allows the next change when dropped.
pub(super) struct ChangeGuard<'a>(&'a Monitor<bool>);

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        self.0.atomic(|is_changing| *is_changing = false);
    }
}

impl<P: Pipeline> PipelineState<P> {
    /// Returns the living places that the pipeline may use.
    pub(super) fn live_places(&self) -> Vec<Place> {
        self.usable.borrow().iter().copied().filter(|place| !place.is_dead()).collect()
    }

    /// Starts the first groups.
    pub(super) async fn begin(&self, partition: &Partition) -> Result<()> {
        let prepared = self.prepare(partition, StateOrigin::Built).await?;
        self.source.atomic(|source| source.entry = Some(prepared.entry.clone()));
        self.spawn_group_starter();
        self.start(prepared);
        Ok(())
    }

    /// Changes to the partition that `choose` returns for the present one and the costs. Does nothing once the end has
    /// been sent.
    pub(super) async fn change(
        &self,
        choose: impl Fn(&Partition, &StageCosts) -> Partition,
        cores: Option<usize>,
    ) -> Result<()> {
        loop {
            let living = self.live_places().len();
            if self.has_dead_group() {
                self.recover().await?;
            }
            match self.change_once(&choose, cores).await {
                Err(error) if is_death(&error) => {
                    // The error caused by a death may arrive before the notice of the death.
                    while !self.has_dead_group() && self.live_places().len() == living {
                        yield_now().await;
                    }
                }
                Ok(false) => {}
                Ok(true) => {
                    self.cores.set(cores.unwrap_or(self.cores.get()));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// As [`PipelineState::change`]; returns `false` if a place of the groups has died in between.
    async fn change_once(
        &self,
        choose: impl Fn(&Partition, &StageCosts) -> Partition,
        cores: Option<usize>,
    ) -> Result<bool> {
        let _guard = self.change_guard().await;
        if let Some(cores) = cores {
            let costs = self.local.lock().monitor.costs();
            check_cores(cores, self.live_places().len(), &costs)?;
        }
        self.gather().await?;
        let costs = self.local.lock().monitor.costs();
        let before = self.groups.borrow().clone();
        let partition = choose(&partition_of(&before), &costs);
        if self.has_dead_group() {
            return Ok(false);
        }
        let living = self.live_places();
        let stays = |group: &PlacedGroup| living.iter().any(|place| place.index() == group.place);
        if partition == partition_of(&before) && before.iter().all(stays) {
            return Ok(true);
        }
        check_cores(partition.places(), self.live_places().len(), &costs)?;
        let prepared = self.prepare(&partition, StateOrigin::Groups).await?;
        if self.source.atomic(|source| source.takes_no_change()) {
            return Ok(true);
        }
        let plan = EpochPlan::new(prepared.epoch, &prepared.groups);
        let entry = prepared.entry.clone();
        self.sink.borrow_mut().asked.push_back((prepared.epoch, before.len(), prepared.groups.len()));
        self.start(prepared);
        self.source.atomic(|source| source.begin_change(plan, entry));
        Ok(true)
    }

    /// Waits until no change is being prepared, and blocks others.
    pub(super) async fn change_guard(&self) -> ChangeGuard<'_> {
        self.is_changing.when(|is_changing| !is_changing, |is_changing| *is_changing = true).await;
        ChangeGuard(&self.is_changing)
    }

    /// Returns `true` if a present group is at a dead place.
    pub(super) fn has_dead_group(&self) -> bool {
        self.groups.borrow().iter().any(is_dead)
    }

    /// See [`RunningPipeline::rebalance`](super::RunningPipeline::rebalance).
    pub(super) async fn rebalance(&self) -> Result<()> {
        let recombine = |partition: &Partition, costs: &StageCosts| {
            let optimal = Partition::optimal(costs, self.cores.get().min(self.live_places().len()).max(1));
            let (before, after) = (partition.bottleneck(costs), optimal.bottleneck(costs));
            if after + after / GAIN_MIN <= before { optimal } else { partition.clone() }
        };
        self.change(recombine, None).await
    }

    /// Assigns new groups to places, close to the states they need, and makes their channels.
    pub(super) async fn prepare(&self, partition: &Partition, origin: StateOrigin) -> Result<Prepared> {
        let living = self.live_places();
        let numbers: Vec<usize> = living.iter().map(|place| place.index()).collect();
        let bytes = self.known_state_bytes();
        let before = self.groups.borrow().clone();
        let assigned = assign(&before, partition, &numbers, &bytes);
        let epoch = self.epoch.get() + 1;
        self.epoch.set(epoch);
        let placed = |(stages, place)| PlacedGroup { stages, place };
        let groups: Vec<PlacedGroup> = partition.replica_ranges().zip(assigned).map(placed).collect();
        let all = ReplicatedGroup::with_relays(partition, &groups);
        let (output, exit) = channel::<StagePacket>(self.options.queue);
        let (mut outputs, mut tasks) = (vec![output], Vec::new());
        let senders = [1].into_iter().chain(all.iter().map(|group| group.places.len()));
        let made = all.iter().zip(senders).map(|(group, senders)| self.channels(&group.places, senders));
        let channels = try_join_all(made.collect()).await?;
        for (ReplicatedGroup { stages, places }, (entries, inputs)) in all.iter().zip(channels).rev() {
            for (replica, place) in places.iter().enumerate() {
                let replica = (places.len() > 1).then_some(replica);
                let task = GroupTask {
                    pipeline: self.started.as_nanos() as u64,
                    epoch,
                    stages: stages.clone(),
                    is_first: origin == StateOrigin::Built,
                    sources: match origin {
                        StateOrigin::Groups => self.sources(&before, stages, *place),
                        StateOrigin::Built | StateOrigin::Delivered => Vec::new(),
                    },
                    is_replica: replica.is_some(),
                    keeper: here(),
                    inputs: ends_of(&inputs, replica),
                    outputs: ends_of(&outputs, replica),
                };
                tasks.push((*place, task));
            }
            outputs = entries;
        }
        let entry = outputs.pop().expect("the first group has one channel");
        Ok(Prepared { groups, epoch, entry, exit, tasks })
    }

    /// Returns the stages whose states a group at `place` gets from other places, with those places.
    fn sources(&self, before: &[PlacedGroup], stages: &Range<usize>, place: Place) -> Vec<(usize, Place)> {
        let local = self.local.lock();
        let with_state = stages.clone().filter(|stage| !local.is_stateless(*stage));
        let sourced = with_state.filter_map(|stage| {
            let group = before.iter().find(|group| group.stages.contains(&stage))?;
            Some((stage, Place::new(group.place)?))
        });
        sourced.filter(|(_, source)| *source != place).collect()
    }

    /// Makes all channels between `senders` replicas and the replicas of the next group at `places`; one of the two
    /// numbers is 1.
    async fn channels(&self, places: &[Place], senders: usize) -> Result<ChannelEnds> {
        let queue = self.options.queue;
        let made = (0..places.len().max(senders)).map(|replica| {
            let place = places[replica.min(places.len() - 1)];
            async move {
                if place == here() {
                    return Ok(channel::<StagePacket>(queue));
                }
                finish(async { channel_at::<StagePacket>(place, queue).await }).await
            }
        });
        Ok(try_join_all(made.collect()).await?.into_iter().unzip())
    }

    /// Starts prepared groups, which take the next items.
    pub(super) fn start(&self, prepared: Prepared) {
        let Prepared { groups, epoch, exit, tasks, .. } = prepared;
        self.exits.borrow_mut().push_back(Exit { epoch, results: exit, groups: groups.clone().into() });
        *self.groups.borrow_mut() = groups;
        command(&self.starter, Command::Start(tasks));
    }

    /// Collects the measurements of the places of the groups.
    pub(super) async fn gather(&self) -> Result<()> {
        for (stage, fact) in self.facts().await? {
            let mut local = self.local.lock();
            if let Some(mean) = fact.mean {
                local.monitor.adopt(stage, mean);
            }
            local.set_state_bytes(stage, fact.state_bytes);
        }
        Ok(())
    }

    fn known_state_bytes(&self) -> Vec<u64> {
        self.local.lock().state_bytes().iter().map(|bytes| bytes.unwrap_or(0) as u64).collect()
    }

    /// Gathers the measurements of each stage from its place, all places at once.
    async fn facts(&self) -> Result<Vec<(usize, StageFacts)>> {
        let groups = self.groups.borrow().clone();
        let asked = groups.iter().map(|PlacedGroup { stages, place }| {
            let place = Place::new(*place).expect("it is a place of the run");
            let (local, first, end) = (&self.local, stages.start, stages.end);
            async move {
                if place == here() {
                    return Ok(stage_facts(&local.lock(), first, end));
                }
                match finish(async { at!(place, stage_facts(&local.lock(), first, end)).await }).await {
                    // Use the older measurements of this place instead.
                    Err(error) if is_death(&error) => Ok(stage_facts(&local.lock(), first, end)),
                    own => own,
                }
            }
        });
        let own = try_join_all(asked.collect()).await?;
        let facts = groups.into_iter().zip(own).flat_map(|(group, own)| group.stages.zip(own)).collect();
        Ok(facts)
    }

    /// Returns the reports of all stages, and the bytes of states that have moved between places.
    pub(super) async fn stage_reports(&self) -> Result<(Vec<StageReport>, u64)> {
        let groups = self.groups.borrow().clone();
        let mut stages: Vec<StageReport> = Vec::new();
        for (stage, fact) in self.facts().await? {
            if stage < stages.len() {
                continue; // another replica of it
            }
            let runs = |group: &&PlacedGroup| group.stages.contains(&stage);
            stages.push(StageReport {
                name: self.names[stage],
                places: groups.iter().filter(runs).map(|group| group.place).collect(),
                cost: fact.mean.map(|mean| Duration::from_nanos(mean as u64)),
                state_bytes: fact.state_bytes,
            });
        }
        let mut moved = 0;
        for place in self.live_places() {
            let local = &self.local;
            moved += match finish(async { at!(place, local.lock().moved_bytes).await }).await {
                Err(error) if is_death(&error) => 0,
                bytes => bytes?,
            };
        }
        Ok((stages, moved))
    }
}
