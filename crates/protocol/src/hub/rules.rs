//! The rules of hubs: when a request synchronises, and its effect.
//!
//! The seven kinds of the source (table II, and packet pools): port, event, semaphore, resource, FIFO, memory pool,
//! packet pool. Data event and black board are extensions, from the public code of OpenComRTOS. Programs add their own
//! rules with [`HubRule`].

use super::message::{HubOperation, ServiceRequest, Status, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;

/// Readiness of a request to synchronise with a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Now: the action follows.
    Now,
    /// Not now; perhaps after another request.
    Wait,
    /// Never: it returns with this status.
    Refuse(Status),
}

/// The rule of a kind of hub: a predicate and an action.
///
/// A hub calls the predicate when a request arrives, and after each action for those that wait, the most urgent first.
pub trait HubRule: fmt::Debug {
    /// Returns whether `request` synchronises in this state. `partner` is the most urgent request that waits on the
    /// other side, if the rule [pairs](HubRule::pairs).
    fn predicate(&self, request: &ServiceRequest, partner: Option<&ServiceRequest>) -> Readiness;

    /// Synchronises `request`, for which the predicate has held, and `partner`, if there is one; the remaining payload
    /// of each goes back to its task.
    fn action(&mut self, request: &mut ServiceRequest, partner: Option<&mut ServiceRequest>);

    /// Returns `true` if two requests meet, one of each side, and both return. Called once, when the hub is made.
    fn pairs(&self) -> bool {
        false
    }

    /// Returns `true` if waiting requests are checked only when the kernel schedules next, and not with the action.
    /// Called once, when the hub is made.
    fn defers(&self) -> bool {
        false
    }

    /// Returns the task that has locked the hub, and inherits the priority of waiting tasks.
    fn owner(&self) -> Option<TaskId> {
        None
    }

    /// Returns the most urgent priority that the owner can inherit.
    fn ceiling(&self) -> u8 {
        0
    }

    /// Returns `true` if only tasks of the hub's own place may use it. Called once, when the hub is made.
    fn is_local(&self) -> bool {
        false
    }

    /// Releases what `task`, which has ended or died, holds; returns whether it held anything.
    fn release(&mut self, task: TaskId) -> bool {
        let _ = task;
        false
    }
}

/// The kinds of hubs, with their parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HubKind {
    /// Two tasks meet and a packet's data goes from one to the other.
    Port,
    /// A bit: raised by one task, tested by another.
    Event,
    /// A counter: signalled without waiting, tested when above 0.
    Semaphore {
        /// Its initial value.
        count: u16,
    },
    /// A lock whose owner inherits the priority of waiting tasks.
    Resource {
        /// The most urgent priority of a task that may lock it, and that its owner inherits.
        ceiling: u8,
    },
    /// Packets in the order of their arrival.
    Fifo {
        /// Largest number of packets that it holds; at least 1.
        capacity: u32,
    },
    /// Blocks of memory of one length.
    MemoryPool {
        /// Number of blocks.
        blocks: u32,
        /// Length of each, in bytes.
        block_bytes: u32,
    },
    /// Packets that are made before the run.
    PacketPool {
        /// Number of packets.
        packets: u32,
    },
    /// One value, overwritten by a post and taken by a read; an extension.
    DataEvent,
    /// One text, which stays when it is read, and the number of its writes; an extension.
    BlackBoard,
}

impl HubKind {
    /// Makes the rule of a hub in its initial state.
    pub fn rule(&self) -> Box<dyn HubRule> {
        match *self {
            HubKind::Port => Box::new(PortRule),
            HubKind::Event => Box::new(EventRule::default()),
            HubKind::Semaphore { count } => Box::new(SemaphoreRule { count }),
            HubKind::Resource { ceiling } => Box::new(ResourceRule { owner: None, ceiling }),
            HubKind::Fifo { capacity } => Box::new(FifoRule { packets: VecDeque::new(), capacity }),
            HubKind::MemoryPool { blocks, block_bytes } => Box::new(PoolRule::new(blocks, Some(block_bytes))),
            HubKind::PacketPool { packets } => Box::new(PoolRule::new(packets, None)),
            HubKind::DataEvent => Box::new(DataEventRule::default()),
            HubKind::BlackBoard => Box::new(BlackBoardRule::default()),
        }
    }

    /// Returns the name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            HubKind::Port => "port",
            HubKind::Event => "event",
            HubKind::Semaphore { .. } => "semaphore",
            HubKind::Resource { .. } => "resource",
            HubKind::Fifo { .. } => "FIFO",
            HubKind::MemoryPool { .. } => "memory pool",
            HubKind::PacketPool { .. } => "packet pool",
            HubKind::DataEvent => "data event",
            HubKind::BlackBoard => "black board",
        }
    }
}

fn now_if(condition: bool) -> Readiness {
    if condition { Readiness::Now } else { Readiness::Wait }
}

#[derive(Debug)]
struct PortRule;

impl HubRule for PortRule {
    fn predicate(&self, _: &ServiceRequest, partner: Option<&ServiceRequest>) -> Readiness {
        now_if(partner.is_some())
    }

    fn action(&mut self, request: &mut ServiceRequest, partner: Option<&mut ServiceRequest>) {
        let Some(partner) = partner else { return };
        let (put, get) = match request.operation {
            HubOperation::Put => (request, partner),
            HubOperation::Get => (partner, request),
        };
        get.payload = std::mem::take(&mut put.payload);
    }

    fn pairs(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct EventRule {
    is_set: bool,
}

impl HubRule for EventRule {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        now_if(self.is_set == (request.operation == HubOperation::Get))
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        self.is_set = request.operation == HubOperation::Put;
        request.payload.clear();
    }
}

#[derive(Debug)]
struct SemaphoreRule {
    count: u16,
}

impl HubRule for SemaphoreRule {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        match request.operation {
            HubOperation::Put if self.count == u16::MAX => Readiness::Refuse(Status::Overflow),
            HubOperation::Put => Readiness::Now,
            HubOperation::Get => now_if(self.count > 0),
        }
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        match request.operation {
            HubOperation::Put => self.count += 1,
            HubOperation::Get => self.count -= 1,
        }
        request.payload.clear();
    }
}

#[derive(Debug)]
struct ResourceRule {
    owner: Option<TaskId>,
    ceiling: u8,
}

impl HubRule for ResourceRule {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        let is_own = self.owner == Some(request.task);
        match request.operation {
            HubOperation::Put if is_own => Readiness::Now,
            HubOperation::Put => Readiness::Refuse(Status::NotOwner),
            HubOperation::Get if is_own => Readiness::Refuse(Status::AlreadyOwned),
            HubOperation::Get if request.base < self.ceiling => Readiness::Refuse(Status::CeilingViolated),
            HubOperation::Get => now_if(self.owner.is_none()),
        }
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        self.owner = (request.operation == HubOperation::Get).then_some(request.task);
        request.payload.clear();
    }

    fn defers(&self) -> bool {
        true
    }

    fn owner(&self) -> Option<TaskId> {
        self.owner
    }

    fn ceiling(&self) -> u8 {
        self.ceiling
    }

    fn release(&mut self, task: TaskId) -> bool {
        let was_own = self.owner == Some(task);
        if was_own {
            self.owner = None;
        }
        was_own
    }
}

#[derive(Debug)]
struct FifoRule {
    packets: VecDeque<Vec<u8>>,
    capacity: u32,
}

impl HubRule for FifoRule {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        now_if(match request.operation {
            HubOperation::Put => self.packets.len() < self.capacity as usize,
            HubOperation::Get => !self.packets.is_empty(),
        })
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        match request.operation {
            HubOperation::Put => self.packets.push_back(std::mem::take(&mut request.payload)),
            HubOperation::Get => request.payload = self.packets.pop_front().unwrap_or_default(),
        }
    }
}

/// Rule of a memory pool or a packet pool: numbers of free blocks, and the owners of the others.
#[derive(Debug)]
struct PoolRule {
    /// Free blocks; the last is allocated next.
    free: Vec<u32>,
    owners: Vec<Option<TaskId>>,
    /// Length of a block, if only its owner may give it back.
    block_bytes: Option<u32>,
}

impl PoolRule {
    fn new(blocks: u32, block_bytes: Option<u32>) -> PoolRule {
        PoolRule { free: (0..blocks).rev().collect(), owners: vec![None; blocks as usize], block_bytes }
    }

    fn check_returned(&self, request: &ServiceRequest) -> Readiness {
        match number_of(&request.payload).and_then(|number| self.owners.get(number as usize)) {
            None => Readiness::Refuse(Status::Invalid),
            Some(Some(owner)) if self.block_bytes.is_none() || *owner == request.task => Readiness::Now,
            Some(_) => Readiness::Refuse(Status::NotOwner),
        }
    }
}

/// Returns the number in the first four bytes of a payload, little-endian.
fn number_of(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

impl HubRule for PoolRule {
    /// The payload of an allocation is the requested length, that of a deallocation the number of the block, both 4
    /// bytes, little-endian.
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        match request.operation {
            HubOperation::Put => self.check_returned(request),
            HubOperation::Get => match (number_of(&request.payload), self.block_bytes) {
                (Some(wanted), Some(bytes)) if wanted > bytes => Readiness::Refuse(Status::TooLong),
                _ => now_if(!self.free.is_empty()),
            },
        }
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        match request.operation {
            HubOperation::Put => {
                if let Some(number) = number_of(&request.payload) {
                    self.owners[number as usize] = None;
                    self.free.push(number);
                }
                request.payload.clear();
            }
            HubOperation::Get => {
                if let Some(number) = self.free.pop() {
                    self.owners[number as usize] = Some(request.task);
                    request.payload = number.to_le_bytes().to_vec();
                }
            }
        }
    }

    fn defers(&self) -> bool {
        self.block_bytes.is_some()
    }

    fn is_local(&self) -> bool {
        true
    }

    fn release(&mut self, task: TaskId) -> bool {
        let before = self.free.len();
        for (number, owner) in (0..).zip(&mut self.owners) {
            if *owner == Some(task) {
                *owner = None;
                self.free.push(number);
            }
        }
        self.free.len() > before
    }
}

#[derive(Debug, Default)]
struct DataEventRule {
    value: Option<Vec<u8>>,
}

impl HubRule for DataEventRule {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        now_if(request.operation == HubOperation::Put || self.value.is_some())
    }

    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        match request.operation {
            HubOperation::Put => self.value = Some(std::mem::take(&mut request.payload)),
            HubOperation::Get => request.payload = self.value.take().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Default)]
struct BlackBoardRule {
    text: Vec<u8>,
    number: u64,
}

impl HubRule for BlackBoardRule {
    fn predicate(&self, request: &ServiceRequest, _: Option<&ServiceRequest>) -> Readiness {
        now_if(request.operation == HubOperation::Put || !self.text.is_empty())
    }

    /// A reader gets the number of the last write, 8 bytes, little-endian, and then the text.
    fn action(&mut self, request: &mut ServiceRequest, _: Option<&mut ServiceRequest>) {
        match request.operation {
            HubOperation::Put => {
                self.text = std::mem::take(&mut request.payload);
                self.number += 1;
            }
            HubOperation::Get => {
                request.payload = self.number.to_le_bytes().to_vec();
                request.payload.extend_from_slice(&self.text);
            }
        }
    }
}
