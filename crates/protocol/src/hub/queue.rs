//! Inboxes and outboxes: packets by priority, then by arrival.
//!
//! A packet that says something about another one in the same queue must not overtake it. It is merged into it
//! instead: a change of priority changes the request that it is for, a time-out marks it, and what the owner of a lock
//! inherits is added to the reply with that lock. So packets about one request, or one lock, stay in order at each hop.

use super::message::{Body, Packet, RequestId};

/// Packets, the most urgent first, in order of arrival within one priority.
#[derive(Clone, Debug, Default)]
pub struct PacketQueue {
    /// The next packet is the last one.
    packets: Vec<Packet>,
}

impl PacketQueue {
    /// An empty queue.
    pub fn new() -> PacketQueue {
        PacketQueue::default()
    }

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet behind those of its priority, or merges it into the packet that it is about.
    pub fn push(&mut self, packet: Packet) {
        let rest = if self.packets.is_empty() { Some(packet) } else { self.merge(packet) };
        if let Some(packet) = rest {
            let at = self.packets.partition_point(|other| other.priority > packet.priority);
            self.packets.insert(at, packet);
        }
    }

    /// Takes the next packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop()
    }

    /// Takes all packets out that are for `place` or have to pass it.
    pub fn remove_all(&mut self, wanted: impl Fn(&Packet) -> bool) {
        self.packets.retain(|packet| !wanted(packet));
    }

    /// Returns the packet if the one that it is about is not here.
    fn merge(&mut self, packet: Packet) -> Option<Packet> {
        match packet.body {
            Body::Withdraw { id, .. } => {
                let Some(at) = self.request(id) else { return Some(packet) };
                if let Body::Request(request) = &mut self.packets[at].body {
                    request.expired = true;
                }
                None
            }
            Body::ChangeRequest { id, priority, .. } => {
                if let Some(at) = self.request(id) {
                    let mut changed = self.packets.remove(at);
                    changed.priority = priority;
                    if let Body::Request(request) = &mut changed.body {
                        request.priority = priority;
                    }
                    self.push(changed);
                    return None;
                }
                let is_older =
                    |body: &Body| matches!(body, Body::ChangeRequest { id: other, .. } if *other == id);
                self.packets.retain(|other| !is_older(&other.body));
                Some(packet)
            }
            Body::ChangeTask { hub, grant, priority, .. } => {
                let is_lock = |body: &Body| matches!(body, Body::Return(reply) if reply.hub == hub && reply.grant == Some(grant));
                if let Some(at) = self.packets.iter().position(|other| is_lock(&other.body)) {
                    let mut lock = self.packets.remove(at);
                    if let Body::Return(reply) = &mut lock.body {
                        reply.boost = priority;
                        lock.priority = reply.priority.min(priority.unwrap_or(u8::MAX));
                    }
                    self.push(lock);
                    return None;
                }
                let is_older = |body: &Body| matches!(body, Body::ChangeTask { hub: of, grant: number, .. } if (*of, *number) == (hub, grant));
                self.packets.retain(|other| !is_older(&other.body));
                Some(packet)
            }
            Body::Request(_) | Body::Return(_) => Some(packet),
        }
    }

    /// The position of the request.
    fn request(&self, id: RequestId) -> Option<usize> {
        self.packets
            .iter()
            .position(|packet| matches!(&packet.body, Body::Request(request) if request.id == id))
    }
}
