//! The channels on both sides of a group: one, or one for each replica of a neighbouring group.
//!
//! A group that sends to replicas sends each item to one of them and each marker to all. A group that receives from
//! replicas restores the order with `isles_protocol::pipeline::OrderedMerge`. Between two replicated neighbours there
//! is a relay, a group without stages. Invariant: a replica forwards packets in order, with the numbers they arrived
//! with.

use super::misused;
use super::packet::{StageMessage, StagePacket};
use super::stage::ports::PortValues;
use crate::prelude::*;
use crate::{RecvError, Result};
use isles_protocol::pipeline::{OrderedMerge, Partition, PlacedGroup, ReplicaTurns};
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::task::Poll;

/// A group with all its replicas, or a relay.
pub(super) struct ReplicatedGroup {
    pub(super) stages: Range<usize>,
    /// The place of each replica.
    pub(super) places: Vec<Place>,
}

impl ReplicatedGroup {
    /// Returns the groups of `partition` at the places of `placed`, with relays between replicated neighbours and at
    /// replicated ends. Relays at the ends run at the place that runs the pipeline.
    ///
    /// Invariant: the first group, the last group, and one of any two neighbours have one replica.
    pub(super) fn with_relays(partition: &Partition, placed: &[PlacedGroup]) -> Vec<ReplicatedGroup> {
        let mut places =
            placed.iter().map(|group| Place::new(group.place).expect("it is a place of the run"));
        let mut groups: Vec<ReplicatedGroup> = Vec::new();
        for (group, stages) in partition.ranges().enumerate() {
            let places: Vec<Place> = places.by_ref().take(partition.replicas(group)).collect();
            let follows_replicas = groups.last().is_none_or(|before| before.places.len() > 1);
            if places.len() > 1 && follows_replicas {
                let place = if groups.is_empty() { here() } else { places[0] };
                groups.push(ReplicatedGroup { stages: stages.start..stages.start, places: vec![place] });
            }
            groups.push(ReplicatedGroup { stages, places });
        }
        if groups.last().is_some_and(|last| last.places.len() > 1) {
            let end = partition.stages();
            groups.push(ReplicatedGroup { stages: end..end, places: vec![here()] });
        }
        groups
    }
}

/// The receiving side of a group.
pub(super) struct GroupInput {
    receivers: Vec<Receiver<StagePacket>>,
    merge: OrderedMerge<StagePacket>,
}

impl GroupInput {
    pub(super) fn new(receivers: Vec<Receiver<StagePacket>>) -> GroupInput {
        let merge = OrderedMerge::new(receivers.len());
        GroupInput { receivers, merge }
    }

    /// Receives the next packet in order; `None` if a channel has closed.
    pub(super) async fn recv(&mut self) -> Result<Option<StagePacket>> {
        if let [receiver] = &*self.receivers {
            return unless_closed(receiver.recv().await);
        }
        loop {
            if let Some(packet) = self.merge.pop() {
                return Ok(Some(packet));
            }
            let (replica, received) = self.recv_any().await;
            let Some(packet) = unless_closed(received)? else { return Ok(None) };
            let put = self.merge.put(replica, packet.number, packet);
            put.map_err(|fault| misused(fault.to_string()))?;
        }
    }

    /// Receives from a replica of which no packet is waiting in the merge.
    async fn recv_any(&self) -> (usize, std::result::Result<StagePacket, RecvError>) {
        let taken_from = (0..self.receivers.len()).filter(|replica| self.merge.takes_from(*replica));
        let mut received: Vec<_> =
            taken_from.map(|replica| (replica, Box::pin(self.receivers[replica].recv()))).collect();
        let any = poll_fn(|context| {
            for (replica, received) in &mut received {
                if let Poll::Ready(packet) = received.as_mut().poll(context) {
                    return Poll::Ready((*replica, packet));
                }
            }
            Poll::Pending
        });
        pin!(any).await
    }

    /// Returns the number of packets in the channels, and their capacity.
    pub(super) fn queue(&self) -> (usize, usize) {
        let waiting = self.receivers.iter().filter_map(Receiver::buffered).sum();
        (waiting, self.receivers.iter().map(Receiver::capacity).sum())
    }
}

fn unless_closed(received: std::result::Result<StagePacket, RecvError>) -> Result<Option<StagePacket>> {
    match received {
        Ok(packet) => Ok(Some(packet)),
        Err(RecvError::Closed) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The sending side of a group.
pub(super) struct GroupOutput {
    senders: Vec<Sender<StagePacket>>,
    /// `true` for each replica of the next group that is at this place.
    are_here: Vec<bool>,
    turns: ReplicaTurns,
    /// `true` for a replica, which keeps the numbers of packets.
    keeps_numbers: bool,
}

impl GroupOutput {
    pub(super) fn new(senders: Vec<Sender<StagePacket>>, keeps_numbers: bool) -> GroupOutput {
        let are_here = senders.iter().map(|sender| sender.home() == here()).collect();
        GroupOutput { are_here, turns: ReplicaTurns::new(senders.len()), senders, keeps_numbers }
    }

    /// Returns `true` if the next item stays at this place.
    pub(super) fn stays_here(&self) -> bool {
        self.are_here[self.turns.peek()]
    }

    /// Sends an item to a replica of the next group; `number` is the number of the packet it arrived in. Returns
    /// `false` if the next group is gone.
    pub(super) async fn send_item(&mut self, number: u64, item: u64, payload: PortValues) -> bool {
        let replica = self.turns.peek();
        let own = self.turns.number_item();
        let number = if self.keeps_numbers { number } else { own };
        let packet = StagePacket { number, message: StageMessage::Item { number: item, payload } };
        self.senders[replica].send(packet).await.is_ok()
    }

    /// Sends the marker from `make` to all replicas of the next group; ignores those that are gone.
    pub(super) async fn send_marker(&mut self, number: u64, make: impl Fn() -> StageMessage) {
        let own = self.turns.number_marker();
        let number = if self.keeps_numbers { number } else { own };
        for sender in &self.senders {
            let _ = sender.send(StagePacket { number, message: make() }).await;
        }
    }
}
