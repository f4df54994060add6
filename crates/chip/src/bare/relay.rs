//! The asynchronous broadcast: chunks are announced by interrupts, and all participants may broadcast at once.
//!
//! ```text
//! header   one line for each slot             whose chunk it holds, and how many it has held
//! done     one line for each child and slot   "I have fetched it", set by that child, cleared by the owner
//! slots    two of equal length                a chunk on its way to the children of its tree
//! ```
//!
//! An interrupted participant fetches at once: into a slot if it has children and a slot is free, otherwise into
//! private memory, where the chunk is queued for a slot. So no participant waits for a slot in order to empty
//! another's, and any number of trees cannot deadlock. Invariant: a slot is written only after all children have
//! fetched its previous chunk.

use super::broadcast::{Layout, TreeNeighbours};
use super::rcce::{Participant, flag_value};
use super::{LINE_BYTES, Line};
use crate::topology::CoreId;
use std::collections::VecDeque;

/// Slots of a buffer.
const SLOTS: usize = Layout::SLOTS as usize;

/// Messages to broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of participants that broadcast, from the first on.
    pub sources: u32,
    /// Lines of a message, in private memory from line `source * lines` on.
    pub lines: u32,
    /// Number of messages of each source, sent without waiting for their arrival.
    pub times: u32,
    /// Children of each participant.
    pub fanout: u32,
    /// Core cycles from an interrupt to the program, for the signal of an operating system and the switch to the
    /// program; charged once for consecutive interrupts.
    pub signal: u64,
}

/// A chunk of the messages of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BroadcastChunk {
    source: u32,
    /// Number of the chunk, over all messages of the source.
    number: u32,
}

/// A slot as known to its owner.
#[derive(Clone, Debug, Default)]
struct TreeSlot {
    /// Number of chunks so far.
    count: u32,
    /// Positions of the children that have not fetched the last chunk.
    awaited: Vec<u32>,
}

/// One participant of the broadcasts.
pub struct Relay {
    here: Participant,
    plan: Plan,
    layout: Layout,
    slots: [TreeSlot; SLOTS],
    /// Chunks in private memory that wait for a slot.
    queue: VecDeque<BroadcastChunk>,
    /// Number of chunks fetched from each slot of each participant.
    fetched: Vec<[u32; SLOTS]>,
    /// Number of chunks still to come from others.
    missing: u32,
}

impl Relay {
    /// Makes the part of `here` in these broadcasts.
    pub fn new(here: Participant, plan: Plan) -> Relay {
        let layout = Layout::new(&here, plan.fanout);
        let chunks = plan.lines.div_ceil(layout.slot_lines) * plan.times;
        let is_source = here.rank() < plan.sources;
        let own = if is_source { chunks } else { 0 };
        let queue = (0..own).map(|number| BroadcastChunk { source: here.rank(), number }).collect();
        Relay {
            fetched: vec![[0; SLOTS]; here.participants as usize],
            missing: chunks * plan.sources - own,
            slots: Default::default(),
            here,
            plan,
            layout,
            queue,
        }
    }

    /// Sends and receives until all messages have arrived here and all forwarded chunks have been fetched.
    pub async fn run(mut self) {
        let mut is_serving = false;
        loop {
            self.poll_done_flags().await;
            while let Some(slot) = self.free_slot() {
                let Some(chunk) = self.queue.pop_front() else { break };
                self.put(chunk, slot).await;
            }
            let interrupt = self.here.core.take_interrupt().await;
            if interrupt.is_some() && !is_serving && self.plan.signal > 0 {
                self.here.core.compute(self.plan.signal).await;
            }
            is_serving = interrupt.is_some();
            if let Some(parent) = interrupt {
                self.fetch(parent).await;
            } else if self.missing == 0 && self.queue.is_empty() && self.awaited() == 0 {
                return;
            } else if !self.has_acknowledgement() {
                let flags = self.layout.done(0, 0)..self.layout.slot(0);
                self.here.core.wait_any(flags, self.here.library.look).await;
            }
        }
    }

    fn neighbours(&self, source: u32) -> TreeNeighbours {
        TreeNeighbours::new(self.here.core.id(), CoreId(source), self.here.participants, self.plan.fanout)
    }

    fn awaited(&self) -> usize {
        self.slots.iter().map(|slot| slot.awaited.len()).sum()
    }

    fn free_slot(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.awaited.is_empty())
    }

    /// Returns the first line of a chunk in private memory, and its number of lines.
    fn place(&self, chunk: BroadcastChunk) -> (u64, u32) {
        let at = chunk.number % self.plan.lines.div_ceil(self.layout.slot_lines) * self.layout.slot_lines;
        (u64::from(chunk.source * self.plan.lines + at), self.layout.slot_lines.min(self.plan.lines - at))
    }

    /// Returns `true` if a child has answered since its flag was last polled.
    fn has_acknowledgement(&self) -> bool {
        let set = |slot: usize, position: &u32| {
            flag_value(&self.here.core.own_line(self.layout.done(slot as u32, *position))) != 0
        };
        self.slots
            .iter()
            .enumerate()
            .any(|(number, slot)| slot.awaited.iter().any(|child| set(number, child)))
    }

    /// Polls the flags of all children with awaited answers, and clears those that are set.
    async fn poll_done_flags(&mut self) {
        let me = self.here.core.id();
        for number in 0..SLOTS {
            let mut left = Vec::new();
            for position in std::mem::take(&mut self.slots[number].awaited) {
                let flag = self.layout.done(number as u32, position);
                let line = self.here.core.read_line(me, flag).await;
                self.here.core.compute(self.here.library.look).await;
                if flag_value(&line) == 0 {
                    left.push(position);
                } else {
                    self.here.set_flag(me, flag, 0).await;
                }
            }
            self.slots[number].awaited = left;
        }
    }

    /// Writes a chunk of private memory into a free slot and announces it.
    async fn put(&mut self, chunk: BroadcastChunk, slot: usize) {
        let (memory, lines) = self.place(chunk);
        let me = self.here.core.id();
        self.here.put(me, self.layout.slot(slot as u32), memory, lines).await;
        self.announce(chunk, slot).await;
    }

    /// Writes the header of a slot with its chunk, and interrupts the children.
    async fn announce(&mut self, chunk: BroadcastChunk, slot: usize) {
        let children = self.neighbours(chunk.source).children;
        self.slots[slot].count += 1;
        let header = words([self.slots[slot].count, chunk.source, chunk.number]);
        let me = self.here.core.id();
        self.here.core.compute(self.here.library.call).await;
        self.here.core.write_line(me, Layout::notice(slot as u32), header).await;
        self.slots[slot].awaited = (0..children.len() as u32).collect();
        self.here.core.interrupt(&children).await;
    }

    /// Fetches the new chunks in the slots of an interrupting parent.
    async fn fetch(&mut self, parent: CoreId) {
        self.here.core.compute(self.here.library.call).await;
        self.here.core.invalidate_buffers();
        for slot in 0..SLOTS {
            let header = self.here.core.read_line(parent, Layout::notice(slot as u32)).await;
            let [count, source, number] = [0, 1, 2].map(|at| word(&header, at));
            let chunk = BroadcastChunk { source, number };
            let is_new = count > self.fetched[parent.0 as usize][slot];
            if is_new && self.neighbours(source).parent == Some(parent) {
                self.take(parent, slot, count, chunk).await;
            }
        }
    }

    /// Fetches one chunk, notifies its parent, and forwards it now or later.
    async fn take(&mut self, parent: CoreId, slot: usize, count: u32, chunk: BroadcastChunk) {
        let (memory, lines) = self.place(chunk);
        let (from, me) = (self.layout.slot(slot as u32), self.here.core.id());
        let TreeNeighbours { children, position, .. } = self.neighbours(chunk.source);
        let passes_on = !children.is_empty();
        let own = if passes_on && self.queue.is_empty() { self.free_slot() } else { None };
        self.fetched[parent.0 as usize][slot] = count;
        match own {
            Some(own) => self.here.relay(parent, from, self.layout.slot(own as u32), lines).await,
            None => self.here.get(parent, from, memory, lines).await,
        }
        self.here.set_flag(parent, self.layout.done(slot as u32, position), 1).await;
        if let Some(own) = own {
            self.announce(chunk, own).await;
            self.here.get(me, self.layout.slot(own as u32), memory, lines).await;
        } else if passes_on {
            self.queue.push_back(chunk);
        }
        self.missing -= 1;
    }
}

fn word(line: &Line, at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| line[4 * at + byte]))
}

fn words<const N: usize>(values: [u32; N]) -> Line {
    let mut line = [0; LINE_BYTES];
    for (at, value) in values.into_iter().enumerate() {
        line[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
    }
    line
}
