//! The entry of a pipeline: one sender at a time, and a queue of markers.
//!
//! A task of its own, `send_markers`, sends the markers. A task that resizes therefore does not wait for room, and may
//! be the one that receives. Invariant: only the task that has set `is_sending` sends into the entry; items wait for
//! queued markers, and while too many changes are in progress.

use super::flow::RunningPipeline;
use super::packet::{EpochPlan, StageMessage, StagePacket};
use super::stage::ports::PortValues;
use super::{Pipeline, recovery};
use crate::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// A queued marker.
pub(super) enum Marker {
    /// A change of groups: the marker is sent into the old entry, later items into the new one.
    Change { plan: EpochPlan, entry: Sender<StagePacket> },
    /// New groups after a death: lost items are sent again.
    Restart { entry: Sender<StagePacket> },
}

/// The source side of a pipeline.
#[derive(Default)]
pub(super) struct PipelineSource {
    pub(super) entry: Option<Sender<StagePacket>>,
    /// `true` while a task sends a packet.
    pub(super) is_sending: bool,
    /// Number of items that were sent, or cancelled while being sent.
    pub(super) sent: u64,
    /// Numbers of the items whose sending was cancelled; the groups may or may not have got them.
    pub(super) given_up: BTreeSet<u64>,
    pub(super) markers: VecDeque<Marker>,
    /// Changes in progress, whose markers have not reached the exit.
    changes: usize,
    /// Maximum number of changes in progress with which items may enter.
    changes_max: usize,
    /// `true` if no more items will come.
    pub(super) is_closed: bool,
    is_end_sent: bool,
    /// `true` if the groups take no packets, because a place died or a stage failed.
    pub(super) is_broken: bool,
    /// Number of restarts after a death.
    generation: u64,
    /// `true` once the pipeline is over.
    pub(super) is_over: bool,
}

impl PipelineSource {
    /// Makes a source that takes items while at most `changes_max` changes are in progress.
    pub(super) fn new(changes_max: usize) -> PipelineSource {
        PipelineSource { changes_max, ..PipelineSource::default() }
    }

    /// Queues the marker of a change.
    pub(super) fn begin_change(&mut self, plan: EpochPlan, entry: Sender<StagePacket>) {
        self.changes += 1;
        self.markers.push_back(Marker::Change { plan, entry });
    }

    /// Records that the marker of a change has reached the exit.
    pub(super) fn end_change(&mut self) {
        self.changes -= 1;
    }

    /// Returns `true` if an item can be sent or refused now.
    pub(super) fn takes_items(&self) -> bool {
        let may_enter = !self.is_sending && self.markers.is_empty() && self.changes <= self.changes_max;
        self.is_over || self.is_broken || self.is_closed || may_enter
    }

    /// Returns `true` if no item will need new groups.
    pub(super) fn takes_no_change(&self) -> bool {
        self.is_over || self.is_end_sent || self.is_broken
    }

    fn has_marker(&self) -> bool {
        let has_end = self.is_closed && !self.is_end_sent;
        self.is_over || !self.is_sending && !self.is_broken && (has_end || !self.markers.is_empty())
    }

    /// Switches to new groups after a death; markers for the old ones are dropped.
    pub(super) fn restart(&mut self, entry: Sender<StagePacket>) {
        self.markers.clear();
        self.markers.push_back(Marker::Restart { entry });
        (self.is_broken, self.is_end_sent) = (false, false);
        self.generation += 1;
        self.changes = 0; // their epochs have ended
    }

    /// Returns the number of restarts after a death.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Records that the groups of a generation have refused a packet; ignored if they have been replaced.
    pub(super) fn refused(&mut self, generation: u64) {
        self.is_broken |= self.generation == generation;
    }
}

/// Next step of [`send_markers`].
enum Step {
    Over,
    End(Sender<StagePacket>),
    Change { plan: EpochPlan, entry: Sender<StagePacket> },
    Restart,
}

fn next_step(source: &mut PipelineSource) -> Step {
    if source.is_over {
        return Step::Over;
    }
    source.is_sending = true;
    match source.markers.pop_front() {
        Some(Marker::Change { plan, entry }) => {
            let old = source.entry.replace(entry).expect("a change comes after a start");
            Step::Change { plan, entry: old }
        }
        Some(Marker::Restart { entry }) => {
            source.entry = Some(entry);
            Step::Restart
        }
        None => {
            source.is_end_sent = true;
            Step::End(source.entry.clone().expect("an end comes after a start"))
        }
    }
}

/// Sends markers into the pipeline until it is over.
pub(super) async fn send_markers<P: Pipeline>(flow: RunningPipeline<P>) {
    let source = &flow.shared.source;
    loop {
        // If a marker is refused, the groups have ended; the receiver of results gets the error.
        match source.when(PipelineSource::has_marker, next_step).await {
            Step::Over => return,
            Step::End(entry) => drop(entry.send(StageMessage::End.into_packet()).await),
            Step::Change { plan, entry } => drop(entry.send(StageMessage::Change(plan).into_packet()).await),
            Step::Restart => recovery::replay(&flow.shared).await,
        }
        source.atomic(|source| source.is_sending = false);
    }
}

/// The right to send an item, returned when dropped. Once sending has started the number of the item is used, even if
/// the send is cancelled, because the groups may have got it.
pub(super) struct SendPermit<'a> {
    source: &'a Monitor<PipelineSource>,
    number: u64,
    generation: u64,
    is_used: bool,
    has_sent: bool,
}

impl<'a> SendPermit<'a> {
    /// Makes the permit for the item `number`; the caller has set `is_sending`.
    pub(super) fn new(source: &'a Monitor<PipelineSource>, number: u64, generation: u64) -> Self {
        SendPermit { source, number, generation, is_used: false, has_sent: false }
    }

    /// Marks the number as used by this item.
    pub(super) fn use_number(&mut self) {
        self.is_used = true;
    }

    /// Sends the item and returns `true` if the groups took it. Its number is used in either case.
    pub(super) async fn send(mut self, entry: &Sender<StagePacket>, payload: PortValues) -> bool {
        self.use_number();
        let item = StageMessage::Item { number: self.number, payload };
        let was_taken = entry.send(item.into_packet()).await.is_ok();
        self.has_sent = true;
        if !was_taken {
            self.source.atomic(|source| source.refused(self.generation));
        }
        was_taken
    }
}

impl Drop for SendPermit<'_> {
    fn drop(&mut self) {
        self.source.atomic(|source| {
            source.is_sending = false;
            source.sent += u64::from(self.is_used);
            if self.is_used && !self.has_sent {
                source.given_up.insert(self.number);
            }
        });
    }
}
