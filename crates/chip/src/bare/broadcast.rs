//! Published broadcast algorithms, over accesses, sends and receives.
//!
//! ```text
//! notice   one line for each slot             "the slot is full", written by whom the tree says
//! done     one line for each child and slot   "I have fetched it", written by that child
//! slots    two of equal length                chunks for others; a third is written when all have the first
//! ```
//!
//! Flags are those of RCCE: set by one core, seen and cleared by the owner. Consecutive broadcasts must have the same
//! root, because a slot has other children with another root; a participant returns when its slots are free. The
//! algorithms over sends and receives use the flags of `rcce` instead, so all broadcasts on a chip use one algorithm.
//! Invariant: a slot is rewritten only after all its readers have confirmed.

use super::rcce::{Participant, chunks};
use crate::topology::CoreId;

/// Maximum lines of a slot, as in OC-Bcast.
const SLOT_LINES_MAX: u32 = 96;

/// Broadcast algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The root sends to one after the other, blocking.
    SerialSend,
    /// The root writes into the buffer of one after the other.
    NaivePut,
    /// The root writes into its own buffer, from which all others fetch.
    ParallelGet,
    /// A binomial tree of sends and receives.
    Binomial,
    /// Each participant gets a part, and the parts go round a ring of sends and receives.
    ScatterAllGather,
    /// OC-Bcast: a pipelined tree with `fanout` children per node, which fetch from the buffer of their parent and are
    /// notified along a binary tree. A participant without children fetches directly into its memory, not through its
    /// own buffer; no source says so, but the measured times imply it.
    Tree {
        /// Children of each participant, at least one.
        fanout: u32,
    },
}

/// A participant's part in the broadcasts of one chip.
pub struct Broadcaster {
    here: Participant,
    algorithm: Algorithm,
    root: CoreId,
}

/// Layout of a buffer with slots from which `fanout` others fetch.
pub(super) struct Layout {
    fanout: u32,
    pub(super) slot_lines: u32,
}

impl Layout {
    /// Slots of a buffer.
    pub(super) const SLOTS: u32 = 2;

    pub(super) fn new(here: &Participant, fanout: u32) -> Layout {
        let fanout = fanout.min(here.participants - 1);
        let free = here.core.buffer_lines() - Self::SLOTS * (fanout + 1);
        Layout { fanout, slot_lines: (free / Self::SLOTS).min(SLOT_LINES_MAX) }
    }

    /// Returns the flag, or the header, of a slot.
    pub(super) fn notice(slot: u32) -> u32 {
        slot
    }

    /// Returns the flag that the child at this position sets when it has fetched the content of a slot.
    pub(super) fn done(&self, slot: u32, position: u32) -> u32 {
        Self::SLOTS + slot * self.fanout + position
    }

    /// Returns the first line of a slot.
    pub(super) fn slot(&self, slot: u32) -> u32 {
        Self::SLOTS * (self.fanout + 1) + slot * self.slot_lines
    }
}

/// A participant's neighbours in the tree of one root.
pub(super) struct TreeNeighbours {
    pub(super) parent: Option<CoreId>,
    pub(super) children: Vec<CoreId>,
    /// Its position among the children of its parent.
    pub(super) position: u32,
    /// Cores to which it forwards the notification of a chunk.
    pub(super) forwards_to: Vec<CoreId>,
}

impl TreeNeighbours {
    pub(super) fn new(me: CoreId, root: CoreId, cores: u32, fanout: u32) -> TreeNeighbours {
        let rank = (me.0 + cores - root.0) % cores;
        let core = |rank: u32| CoreId((rank + root.0) % cores);
        let children_of = |rank: u32| (rank * fanout + 1..cores).take(fanout as usize).map(core);
        let parent = rank.checked_sub(1).map(|before| before / fanout);
        let position = if rank > 0 { (rank - 1) % fanout } else { 0 };
        let forwards_to = parent.map_or(Vec::new(), |parent| {
            children_of(parent).skip(2 * position as usize + 2).take(2).collect()
        });
        TreeNeighbours {
            parent: parent.map(core),
            children: children_of(rank).collect(),
            position,
            forwards_to,
        }
    }
}

impl Broadcaster {
    /// Makes the part of `here` in broadcasts of `root` by `algorithm`.
    pub fn new(here: Participant, algorithm: Algorithm, root: u32) -> Broadcaster {
        Broadcaster { here, algorithm, root: CoreId(root) }
    }

    /// Copies bytes of the root's private memory, from line `memory` on, to the same lines of all participants.
    pub async fn broadcast(&self, memory: u64, bytes: usize) {
        let root = self.root;
        match self.algorithm {
            Algorithm::SerialSend => self.serial_send(root, memory, bytes).await,
            Algorithm::NaivePut => self.through_slots(root, memory, bytes, false).await,
            Algorithm::ParallelGet => self.through_slots(root, memory, bytes, true).await,
            Algorithm::Binomial => self.binomial(root, memory, bytes).await,
            Algorithm::ScatterAllGather => self.scatter_all_gather(root, memory, bytes).await,
            Algorithm::Tree { fanout } => self.tree(root, fanout, memory, bytes).await,
        }
    }

    fn me(&self) -> CoreId {
        self.here.core.id()
    }

    fn others(&self, root: CoreId) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.here.participants).map(CoreId).filter(move |core| *core != root)
    }

    /// Returns the rank of this participant relative to the root.
    fn rank(&self, root: CoreId) -> u32 {
        (self.me().0 + self.here.participants - root.0) % self.here.participants
    }

    fn core(&self, root: CoreId, rank: u32) -> u32 {
        (root.0 + rank) % self.here.participants
    }

    /// Waits until `children` children have fetched the content of a slot, and clears their flags.
    async fn all_done(&self, layout: &Layout, slot: u32, children: usize) {
        for position in 0..children as u32 {
            let line = layout.done(slot, position);
            self.here.wait_flag(line, 1).await;
            self.here.set_flag(self.me(), line, 0).await;
        }
    }

    /// Waits for the notification that a slot is full, and clears the flag.
    async fn wait_notice(&self, slot: u32) {
        self.here.wait_flag(Layout::notice(slot), 1).await;
        self.here.set_flag(self.me(), Layout::notice(slot), 0).await;
    }

    /// Returns the slots of the last chunks of a message, which may not have been fetched yet.
    fn last_slots(count: u32) -> impl Iterator<Item = u32> {
        (count.saturating_sub(Layout::SLOTS)..count).map(|number| number % Layout::SLOTS)
    }

    async fn serial_send(&self, root: CoreId, memory: u64, bytes: usize) {
        if self.me() != root {
            return self.here.receive(root.0, memory, bytes).await;
        }
        for other in self.others(root) {
            self.here.send(other.0, memory, bytes).await;
        }
    }

    /// Broadcasts through slots: if `shared`, the root puts each chunk into a slot of its own buffer, from which all
    /// fetch it; otherwise into a slot of each other buffer. It waits for all before it reuses the slot.
    async fn through_slots(&self, root: CoreId, memory: u64, bytes: usize, shared: bool) {
        let others: Vec<CoreId> = self.others(root).collect();
        let layout = Layout::new(&self.here, others.len() as u32);
        let mut count = 0;
        for (at, lines) in chunks(bytes, layout.slot_lines) {
            let (slot, place) = (count % Layout::SLOTS, memory + u64::from(at));
            count += 1;
            if self.me() == root {
                if count > Layout::SLOTS {
                    self.all_done(&layout, slot, others.len()).await;
                }
                if shared {
                    self.here.put(root, layout.slot(slot), place, lines).await;
                }
                for other in &others {
                    if !shared {
                        self.here.put(*other, layout.slot(slot), place, lines).await;
                    }
                    self.here.set_flag(*other, Layout::notice(slot), 1).await;
                }
            } else {
                self.wait_notice(slot).await;
                let holder = if shared { root } else { self.me() };
                self.here.get(holder, layout.slot(slot), place, lines).await;
                self.signal_done(&layout, root, slot).await;
            }
        }
        if self.me() == root {
            for slot in Self::last_slots(count) {
                self.all_done(&layout, slot, others.len()).await;
            }
        }
    }

    /// Notifies the root that this participant has fetched the content of a slot; all others are the root's children.
    async fn signal_done(&self, layout: &Layout, root: CoreId, slot: u32) {
        let position = self.me().0 - u32::from(self.me() > root);
        self.here.set_flag(root, layout.done(slot, position), 1).await;
    }

    async fn binomial(&self, root: CoreId, memory: u64, bytes: usize) {
        let (rank, count) = (self.rank(root), self.here.participants);
        // The lowest set bit of the rank determines the sender, the lower bits the receivers.
        let mut bit = 1;
        while bit < count && rank & bit == 0 {
            bit <<= 1;
        }
        if rank != 0 {
            self.here.receive(self.core(root, rank - bit), memory, bytes).await;
        }
        while bit > 1 {
            bit >>= 1;
            if rank + bit < count {
                self.here.send(self.core(root, rank + bit), memory, bytes).await;
            }
        }
    }

    async fn scatter_all_gather(&self, root: CoreId, memory: u64, bytes: usize) {
        let (rank, count) = (self.rank(root), self.here.participants);
        let parts = Parts { bytes, count };
        self.scatter(root, memory, &parts).await;
        let (left, right) = (self.core(root, rank + count - 1), self.core(root, rank + 1));
        for step in 0..count - 1 {
            let (sent, received) =
                (parts.of(rank + count - step, 1), parts.of(rank + 2 * count - step - 1, 1));
            // Sends block, so every other participant receives first.
            for is_send in [rank.is_multiple_of(2), !rank.is_multiple_of(2)] {
                match is_send {
                    true if sent.1 > 0 => self.here.send(right, memory + sent.0, sent.1).await,
                    false if received.1 > 0 => self.here.receive(left, memory + received.0, received.1).await,
                    _ => {}
                }
            }
        }
    }

    /// Scatters the parts by halving the range of ranks until each has its own part.
    async fn scatter(&self, root: CoreId, memory: u64, parts: &Parts) {
        let rank = self.rank(root);
        let (mut low, mut high) = (0, parts.count);
        while high - low > 1 {
            let middle = low + (high - low).div_ceil(2);
            let (at, bytes) = parts.of(middle, high - middle);
            if bytes > 0 && rank == low {
                self.here.send(self.core(root, middle), memory + at, bytes).await;
            } else if bytes > 0 && rank == middle {
                self.here.receive(self.core(root, low), memory + at, bytes).await;
            }
            if rank < middle { high = middle } else { low = middle }
        }
    }

    async fn tree(&self, root: CoreId, fanout: u32, memory: u64, bytes: usize) {
        let layout = Layout::new(&self.here, fanout);
        let neighbours = TreeNeighbours::new(self.me(), root, self.here.participants, fanout);
        let mut count = 0;
        for (at, lines) in chunks(bytes, layout.slot_lines) {
            let (slot, place) = (count % Layout::SLOTS, memory + u64::from(at));
            count += 1;
            if neighbours.parent.is_some() {
                self.wait_notice(slot).await;
                self.notify(&neighbours.forwards_to, slot).await;
            }
            if count > Layout::SLOTS {
                self.all_done(&layout, slot, neighbours.children.len()).await;
            }
            let own = layout.slot(slot);
            let Some(parent) = neighbours.parent else {
                self.here.put(root, own, place, lines).await;
                self.notify(&neighbours.children, slot).await;
                continue;
            };
            let done = layout.done(slot, neighbours.position);
            if neighbours.children.is_empty() {
                self.here.get(parent, own, place, lines).await;
                self.here.set_flag(parent, done, 1).await;
                continue;
            }
            self.here.relay(parent, own, own, lines).await;
            self.here.set_flag(parent, done, 1).await;
            self.notify(&neighbours.children, slot).await;
            self.here.get(self.me(), own, place, lines).await;
        }
        for slot in Self::last_slots(count) {
            self.all_done(&layout, slot, neighbours.children.len()).await;
        }
    }

    /// Notifies the first two of these cores that a slot is full; they notify the others.
    async fn notify(&self, cores: &[CoreId], slot: u32) {
        for core in cores.iter().take(2) {
            self.here.set_flag(*core, Layout::notice(slot), 1).await;
        }
    }
}

/// A message divided into parts of whole lines, one for each participant; the last ones may be empty.
struct Parts {
    bytes: usize,
    count: u32,
}

impl Parts {
    /// Returns the first line of `many` parts from `part` on, and their bytes.
    fn of(&self, part: u32, many: u32) -> (u64, usize) {
        let bytes = self.bytes.div_ceil(super::LINE_BYTES).div_ceil(self.count as usize) * super::LINE_BYTES;
        let edge = |part: u32| (part as usize * bytes).min(self.bytes);
        let part = part % self.count;
        ((edge(part) / super::LINE_BYTES) as u64, edge(part + many) - edge(part))
    }
}
