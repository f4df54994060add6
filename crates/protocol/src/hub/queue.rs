//! Inboxes and outboxes: packets by priority, then by arrival.
//!
//! A packet that modifies another one in the same queue must not overtake it, and is merged into it instead: a change
//! of priority changes its request, a time-out marks it, and the priority that the owner of a lock inherits is added to
//! the reply with that lock. So packets about one request, or one lock, stay in order at each hop.

use super::message::{HubId, HubPacket, PacketBody, RequestId};

/// Packets, the most urgent first, in order of arrival within one priority.
#[derive(Clone, Debug, Default)]
pub struct PacketQueue {
    /// In reverse: the next packet is the last one.
    packets: Vec<HubPacket>,
}

impl PacketQueue {
    /// Makes an empty queue.
    pub fn new() -> PacketQueue {
        PacketQueue::default()
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns `true` if there are no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet behind those of its priority, or merges it into the packet that it modifies.
    pub fn push(&mut self, packet: HubPacket) {
        let rest = if self.packets.is_empty() { Some(packet) } else { self.merge(packet) };
        if let Some(packet) = rest {
            let at = self.packets.partition_point(|other| other.priority > packet.priority);
            self.packets.insert(at, packet);
        }
    }

    /// Takes the next packet.
    #[inline]
    pub fn pop(&mut self) -> Option<HubPacket> {
        self.packets.pop()
    }

    /// Removes all packets for which `wanted` holds.
    pub fn remove_all(&mut self, wanted: impl Fn(&HubPacket) -> bool) {
        self.packets.retain(|packet| !wanted(packet));
    }

    /// Merges a packet into the one that it modifies; returns it if that is not here.
    fn merge(&mut self, packet: HubPacket) -> Option<HubPacket> {
        match packet.body {
            PacketBody::Withdraw { id, .. } => {
                let Some(at) = self.request(id) else { return Some(packet) };
                if let PacketBody::Request(request) = &mut self.packets[at].body {
                    request.expired = true;
                }
                None
            }
            PacketBody::ChangeRequest { id, priority, .. } => match self.request(id) {
                Some(at) => {
                    let mut changed = self.packets.remove(at);
                    changed.priority = priority;
                    if let PacketBody::Request(request) = &mut changed.body {
                        request.priority = priority;
                    }
                    self.push(changed);
                    None
                }
                None => self.replace_older(packet),
            },
            PacketBody::ChangeTask { hub, grant, priority, .. } => match self.lock(hub, grant) {
                Some(at) => {
                    let mut lock = self.packets.remove(at);
                    if let PacketBody::Return(reply) = &mut lock.body {
                        reply.boost = priority;
                        lock.priority = reply.priority.min(priority.unwrap_or(u8::MAX));
                    }
                    self.push(lock);
                    None
                }
                None => self.replace_older(packet),
            },
            PacketBody::Request(_) | PacketBody::Return(_) => Some(packet),
        }
    }

    /// Removes an older packet that sets a priority of the same task or request; returns the new packet.
    fn replace_older(&mut self, packet: HubPacket) -> Option<HubPacket> {
        self.packets.retain(|other| match (&other.body, &packet.body) {
            (PacketBody::ChangeRequest { id: one, .. }, PacketBody::ChangeRequest { id: other, .. }) => {
                one != other
            }
            (
                PacketBody::ChangeTask { hub: one, grant: of_one, .. },
                PacketBody::ChangeTask { hub: other, grant: of_other, .. },
            ) => (one, of_one) != (other, of_other),
            _ => true,
        });
        Some(packet)
    }

    /// Returns the position of the reply with this lock.
    fn lock(&self, hub: HubId, grant: u64) -> Option<usize> {
        let is_it = |packet: &HubPacket| match &packet.body {
            PacketBody::Return(reply) => reply.hub == hub && reply.grant == Some(grant),
            _ => false,
        };
        self.packets.iter().position(is_it)
    }

    /// Returns the position of the request.
    fn request(&self, id: RequestId) -> Option<usize> {
        self.packets
            .iter()
            .position(|packet| matches!(&packet.body, PacketBody::Request(request) if request.id == id))
    }
}
