//! Element-wise sums of lists of words over all participants, at the root.
//!
//! Serial: the root receives one list after the other. Logarithmic: lists are added in pairs through message buffers,
//! in a logarithmic number of steps. The flags are those of `broadcast`.

use super::broadcast::Layout;
use super::rcce::{Participant, chunks};
use super::{BareCore, LINE_BYTES, Line};
use crate::topology::CoreId;

/// Core cycles of the addition of a word, with loads and store in the first-level cache; assumed.
const ADD_CYCLES: u64 = 6;

/// Core cycles of the addition of the words of a line.
pub(crate) const ADD_LINE_CYCLES: u64 = ADD_CYCLES * (LINE_BYTES as u64 / 4);

/// A participant's part in the reductions of one chip.
pub struct Reducer {
    here: Participant,
}

impl Reducer {
    /// Makes the part of `here`.
    pub fn new(here: Participant) -> Reducer {
        Reducer { here }
    }

    /// Adds the lists of words in private memory from `memory` on to the root's own; `scratch` is memory of equal
    /// length. The root receives one list after the other, blocking.
    pub async fn serial(&self, root: u32, memory: u64, scratch: u64, bytes: usize) {
        if self.here.rank() != root {
            return self.here.send(root, memory, bytes).await;
        }
        for other in (0..self.here.participants).filter(|other| *other != root) {
            self.here.receive(other, scratch, bytes).await;
            self.add(memory, scratch, bytes.div_ceil(LINE_BYTES) as u32).await;
        }
    }

    /// As [`Reducer::serial`], in pairs through the buffers; the lists of all others end as partial sums.
    pub async fn logarithmic(&self, root: u32, memory: u64, scratch: u64, bytes: usize) {
        let steps = self.here.participants.next_power_of_two().trailing_zeros();
        let layout = Layout::new(&self.here, steps);
        for (at, lines) in chunks(bytes, layout.slot_lines) {
            self.step(&layout, CoreId(root), memory + u64::from(at), scratch, lines).await;
        }
    }

    /// Reduces one chunk in all steps: the lowest set bit of the rank determines the receiver, the lower bits the
    /// senders.
    async fn step(&self, layout: &Layout, root: CoreId, memory: u64, scratch: u64, lines: u32) {
        let (me, count) = (self.here.core.id(), self.here.participants);
        let rank = (me.0 + count - root.0) % count;
        let core = |rank: u32| CoreId((rank + root.0) % count);
        for bit in 0..count.next_power_of_two().trailing_zeros() {
            let full = layout.done(0, bit);
            if rank & 1 << bit != 0 {
                self.here.put(me, layout.slot(0), memory, lines).await;
                self.here.set_flag(core(rank - (1 << bit)), full, 1).await;
                self.here.wait_flag(Layout::notice(0), 1).await;
                return self.here.set_flag(me, Layout::notice(0), 0).await;
            }
            if rank + (1 << bit) < count {
                let from = core(rank + (1 << bit));
                self.here.wait_flag(full, 1).await;
                self.here.set_flag(me, full, 0).await;
                self.here.get(from, layout.slot(0), scratch, lines).await;
                self.here.set_flag(from, Layout::notice(0), 1).await;
                self.add(memory, scratch, lines).await;
            }
        }
    }

    async fn add(&self, memory: u64, scratch: u64, lines: u32) {
        add_lines(&self.here.core, memory, scratch, lines as usize * LINE_BYTES).await;
    }
}

/// Adds a list of words in private memory to another one, line by line.
pub(super) async fn add_lines(core: &BareCore, line: u64, other: u64, bytes: usize) {
    for at in 0..bytes.div_ceil(LINE_BYTES) as u64 {
        let one = core.load(line + at).await;
        let two = core.load(other + at).await;
        core.compute(ADD_LINE_CYCLES).await;
        core.store(line + at, sum(&one, &two)).await;
    }
}

/// Returns the sum word by word.
fn sum(one: &Line, other: &Line) -> Line {
    let mut sum = [0; LINE_BYTES];
    let words = one.chunks_exact(4).zip(other.chunks_exact(4)).zip(sum.chunks_exact_mut(4));
    for ((one, other), sum) in words {
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        sum.copy_from_slice(&word(one).wrapping_add(word(other)).to_le_bytes());
    }
    sum
}
