//! Costs of a core's operations, before and after the clocks are known.
//!
//! The literature gives costs as sums: 45 core cycles and 8 mesh cycles per hop, or 105 ns and 5 ns per hop. A [`Cost`]
//! keeps the terms of such a sum by clock, so that a core at half its rate takes twice as long for its own part but not
//! for the mesh's. [`Cost::at`] fixes the clocks and returns a [`HopCost`] of two numbers: a base, and an addend per
//! hop.
//!
//! These are the times on an idle chip, without contention. Invariant: a time is computed once for a setting of the
//! clocks, in integers, and rounded once, to the picosecond, for each use.

use crate::quantity::{Picoseconds, Rate};

/// Femtoseconds in a picosecond. Times are kept in femtoseconds, so that small costs per hop are not rounded.
const FEMTO: u64 = 1_000;

/// Billionths of a cycle in a cycle.
pub const NANOCYCLES: u64 = 1_000_000_000;

/// The rates of the three clocks that a cost may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The clock of the acting core.
    pub core: Rate,
    /// The clock of the routers.
    pub mesh: Rate,
    /// The clock of the memory behind the controllers.
    pub memory: Rate,
}

impl Clocks {
    /// Returns the rates with another rate of the core.
    pub(crate) const fn with_core(self, core: Rate) -> Self {
        Self { core, ..self }
    }
}

/// A part of a cost: a fixed time, and cycles of each clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Time that does not depend on a clock.
    pub fixed: Picoseconds,
    /// Billionths of a cycle of the core's clock.
    pub core_nanocycles: u64,
    /// Billionths of a cycle of the mesh's clock.
    pub mesh_nanocycles: u64,
    /// Billionths of a cycle of the memory's clock.
    pub memory_nanocycles: u64,
}

/// Cost of an operation: a base, and an addend for each hop between the two ends.
///
/// A read crosses each hop twice, as does a write whose acknowledgement the core awaits; the cost of a hop includes
/// both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The cost without any hop.
    pub near: Amount,
    /// Additional cost of each hop.
    pub hop: Amount,
}

/// A cost at known clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCost {
    near_femtoseconds: u64,
    hop_femtoseconds: u64,
}

impl Cost {
    /// Returns the cost at these clocks.
    pub fn at(&self, clocks: &Clocks) -> HopCost {
        HopCost { near_femtoseconds: self.near.at(clocks), hop_femtoseconds: self.hop.at(clocks) }
    }
}

impl Amount {
    /// Returns the length at these clocks in femtoseconds; saturates.
    fn at(&self, clocks: &Clocks) -> u64 {
        let parts = [
            length(self.core_nanocycles, clocks.core),
            length(self.mesh_nanocycles, clocks.mesh),
            length(self.memory_nanocycles, clocks.memory),
        ];
        let fixed = self.fixed.0.saturating_mul(FEMTO);
        parts.into_iter().fold(fixed, u64::saturating_add)
    }
}

/// Returns the length of `nanocycles` billionths of a cycle, in femtoseconds, to the nearest.
fn length(nanocycles: u64, rate: Rate) -> u64 {
    // 10^15 femtoseconds in a second, 10^9 billionths: at most 2^64 * 10^6 * 2^16, far below 128 bits.
    let scaled = u128::from(nanocycles) * 1_000_000 * u128::from(rate.divider());
    let hertz = u128::from(rate.hertz());
    u64::try_from((scaled + hertz / 2) / hertz).unwrap_or(u64::MAX)
}

impl HopCost {
    /// Makes a cost that does not depend on hops.
    pub const fn fixed(length: Picoseconds) -> Self {
        Self { near_femtoseconds: length.0.saturating_mul(FEMTO), hop_femtoseconds: 0 }
    }

    /// Returns the time of the operation over `hops` hops, to the nearest picosecond.
    #[inline]
    pub const fn over(&self, hops: u32) -> Picoseconds {
        let way = self.hop_femtoseconds.saturating_mul(hops as u64);
        let sum = self.near_femtoseconds.saturating_add(way);
        Picoseconds(sum.saturating_add(FEMTO / 2) / FEMTO)
    }

    /// Returns `true` if the operation takes longer over more hops.
    #[inline]
    pub const fn grows(&self) -> bool {
        self.hop_femtoseconds > 0
    }

    /// Returns the cost plus `more`, over any number of hops.
    pub const fn plus(&self, more: Picoseconds) -> HopCost {
        let more = more.0.saturating_mul(FEMTO);
        HopCost {
            near_femtoseconds: self.near_femtoseconds.saturating_add(more),
            hop_femtoseconds: self.hop_femtoseconds,
        }
    }

    /// Returns `part` thousandths of it, rounded up.
    pub fn thousandths(&self, part: u64) -> HopCost {
        let scaled = |length: u64| length.saturating_mul(part).div_ceil(1_000);
        HopCost {
            near_femtoseconds: scaled(self.near_femtoseconds),
            hop_femtoseconds: scaled(self.hop_femtoseconds),
        }
    }

    /// Returns the cost of `count` in sequence.
    pub const fn times(&self, count: u64) -> HopCost {
        let HopCost { near_femtoseconds: near, hop_femtoseconds: hop } = *self;
        HopCost { near_femtoseconds: near.saturating_mul(count), hop_femtoseconds: hop.saturating_mul(count) }
    }
}

/// A kind of memory access: its unit, and the caches that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A word of a message buffer on a tile, uncached.
    BufferWord,
    /// A line of a message buffer on a tile, through the first-level cache and the core's write buffer, not coherent.
    BufferLine,
    /// A word of the memory behind a controller, uncached.
    MemoryWord,
    /// A line of that memory, written through the core's write buffer, not coherent.
    MemoryThrough,
    /// A line of that memory in the caches of one core.
    MemoryCached,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] =
        [Self::BufferWord, Self::BufferLine, Self::MemoryWord, Self::MemoryThrough, Self::MemoryCached];

    /// Returns the name in a chip file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BufferWord => "buffer_word",
            Self::BufferLine => "buffer_line",
            Self::MemoryWord => "memory_word",
            Self::MemoryThrough => "memory_through",
            Self::MemoryCached => "memory_cached",
        }
    }
}

/// A class of operations of a core, with operands in the first-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// An operation on integers or addresses; a load or a store.
    Integer,
    /// An addition, a multiplication or a comparison of floating-point numbers.
    Float,
    /// A division or a square root.
    Division,
    /// A conditional branch.
    Branch,
}

impl Operation {
    /// All classes.
    pub const ALL: [Self; 4] = [Self::Integer, Self::Float, Self::Division, Self::Branch];

    /// Returns the name in a chip file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Division => "division",
            Self::Branch => "branch",
        }
    }
}

/// Times of operations, in billionths of a cycle of the core's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Times by class, in the order of [`Operation::ALL`].
    nanocycles: [u64; Operation::ALL.len()],
}

/// One cycle for each operation, the default of a chip file.
impl Default for Operations {
    fn default() -> Self {
        Operations { nanocycles: [NANOCYCLES; Operation::ALL.len()] }
    }
}

impl Operations {
    /// Returns the times by class, in the order of [`Operation::ALL`]; `None` stands for a cycle.
    pub fn new(nanocycles: [Option<u64>; Operation::ALL.len()]) -> Operations {
        Operations { nanocycles: nanocycles.map(|given| given.unwrap_or(NANOCYCLES)) }
    }

    /// Returns the time of `number` operations, in billionths of a cycle; saturates.
    pub fn nanocycles(&self, operation: Operation, number: u64) -> u64 {
        self.nanocycles[operation as usize].saturating_mul(number)
    }
}

/// Costs of an access for the accessing core, in the form of the literature (write overhead, gap, read).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access<T> {
    /// Time from the start of a write until the core may continue.
    pub issue: T,
    /// Time until the write has arrived, and the next write may be issued.
    pub gap: T,
    /// Time until a read is complete.
    pub read: T,
}

/// All times of a chip file at one setting of the clocks; `None` for what a chip does not have.
///
/// `T` is [`Cost`] as read, [`HopCost`] at known clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingTable<T> {
    /// The accesses, by mode, in the order of [`Mode::ALL`].
    pub access: [Option<Access<T>>; Mode::ALL.len()],
    /// A read of a line in the first-level cache.
    pub first_cache: Option<T>,
    /// A read of a line in the second-level cache.
    pub second_cache: Option<T>,
    /// A write of a word of a line in the second-level cache.
    pub second_cache_store: Option<T>,
    /// Time for which one line occupies a memory controller.
    pub controller_line: Option<T>,
    /// A read of a test-and-set register.
    pub test_and_set: Option<T>,
    /// Time from raising one interrupt to its arrival at the core.
    pub interrupt: Option<T>,
    /// Additional time for each further target if the port of the interrupt controller is busy.
    pub interrupt_more: Option<T>,
    /// Time from the expiry of a core's own reload counter to the first instruction of its interrupt handler.
    pub counter_interrupt: Option<T>,
    /// Time from the arrival of an interrupt until the task that waited for it runs; the core is busy meanwhile.
    pub task_wake: Option<T>,
    /// An empty system call.
    pub system_call: Option<T>,
    /// Time of the operating system's network stack for a packet that it sends, besides its content.
    pub stack_send: Option<T>,
    /// Time of the network stack for a packet that it receives.
    pub stack_receive: Option<T>,
    /// Time of the network stack for each line of content: copying from or to the program, and its checksum.
    pub stack_line: Option<T>,
    /// Time of a core for sending one hardware packet; may grow with the hops.
    pub send: Option<T>,
    /// Time of a core for receiving one hardware packet; may grow with the hops.
    pub receive: Option<T>,
    /// Time of a core for each further packet, up to the fourth, in the same receive call of its library.
    pub receive_more: Option<T>,
    /// Time from a packet's entry into the mesh to its head's arrival, without contention.
    pub transit: Option<T>,
    /// A change of voltage, from the request to its end.
    pub voltage_change: Option<T>,
    /// Base time of a software flush of the second-level cache.
    pub flush_start: Option<T>,
    /// Additional time of each line of such a flush.
    pub flush_line: Option<T>,
    /// A software flush of the whole second-level cache.
    pub flush_all: Option<T>,
}

impl<T> TimingTable<T> {
    /// Returns the access costs of a mode, if this chip has such memory and they are known.
    pub const fn access(&self, mode: Mode) -> Option<&Access<T>> {
        self.access[mode as usize].as_ref()
    }
}

impl TimingTable<Cost> {
    /// Returns the costs at these clocks.
    pub fn at(&self, clocks: &Clocks) -> TimingTable<HopCost> {
        let fix = |cost: &Option<Cost>| cost.as_ref().map(|cost| cost.at(clocks));
        let fix_access = |access: Access<Cost>| Access {
            issue: access.issue.at(clocks),
            gap: access.gap.at(clocks),
            read: access.read.at(clocks),
        };
        TimingTable {
            access: self.access.map(|access| access.map(fix_access)),
            first_cache: fix(&self.first_cache),
            second_cache: fix(&self.second_cache),
            second_cache_store: fix(&self.second_cache_store),
            controller_line: fix(&self.controller_line),
            test_and_set: fix(&self.test_and_set),
            interrupt: fix(&self.interrupt),
            interrupt_more: fix(&self.interrupt_more),
            counter_interrupt: fix(&self.counter_interrupt),
            task_wake: fix(&self.task_wake),
            system_call: fix(&self.system_call),
            stack_send: fix(&self.stack_send),
            stack_receive: fix(&self.stack_receive),
            stack_line: fix(&self.stack_line),
            send: fix(&self.send),
            receive: fix(&self.receive),
            receive_more: fix(&self.receive_more),
            transit: fix(&self.transit),
            voltage_change: fix(&self.voltage_change),
            flush_start: fix(&self.flush_start),
            flush_line: fix(&self.flush_line),
            flush_all: fix(&self.flush_all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hertz: u64, divider: u32) -> Rate {
        Rate::new(hertz, divider).unwrap()
    }

    fn standard() -> Clocks {
        Clocks { core: rate(1_600_000_000, 3), mesh: rate(800_000_000, 1), memory: rate(800_000_000, 1) }
    }

    /// Intel's formula for a line of memory: 40 core cycles, 8 mesh cycles a hop, 46 memory cycles.
    fn formula() -> Cost {
        let near = Amount {
            core_nanocycles: 40_000_000_000,
            memory_nanocycles: 46_000_000_000,
            ..Amount::default()
        };
        Cost { near, hop: Amount { mesh_nanocycles: 8_000_000_000, ..Amount::default() } }
    }

    #[test]
    fn a_sum_of_cycles_becomes_a_time_and_a_slope() {
        let span = formula().at(&standard());
        assert_eq!(span.over(0), Picoseconds(40 * 1875 + 46 * 1250));
        assert_eq!(span.over(8), Picoseconds(40 * 1875 + 46 * 1250 + 8 * 8 * 1250));
    }

    #[test]
    fn a_slower_core_slows_its_own_part_only() {
        let slow = standard().with_core(rate(1_600_000_000, 6));
        let more = formula().at(&slow).over(3) - formula().at(&standard()).over(3);
        assert_eq!(more, Picoseconds(40 * 1875));
    }

    #[test]
    fn fractions_of_a_cycle_add_up_over_hops() {
        let cost = Cost { hop: Amount { mesh_nanocycles: 300_000, ..Amount::default() }, ..Cost::default() };
        // 0.0003 cycles of 1,250 ps are 0.375 ps.
        let span = cost.at(&standard());
        assert_eq!([1, 2, 8].map(|hops| span.over(hops)), [0, 1, 3].map(Picoseconds));
    }

    #[test]
    fn a_cycle_is_rounded_to_the_nearest_femtosecond_once_however_many_hops_there_are() {
        let hop = Amount { core_nanocycles: NANOCYCLES, ..Amount::default() };
        let over = |hertz| {
            let clocks = standard().with_core(rate(hertz, 1));
            Cost { hop, ..Cost::default() }.at(&clocks).over(1_000_000)
        };
        // 333,333.3 fs and 666,666.7 fs.
        assert_eq!([3_000_000_000, 1_500_000_000].map(over), [333_333_000, 666_667_000].map(Picoseconds));
    }

    #[test]
    fn giants_end_at_the_longest_time() {
        let near = Amount { fixed: Picoseconds(u64::MAX), core_nanocycles: u64::MAX, ..Amount::default() };
        let clocks = standard().with_core(rate(1, Rate::DIVIDER_MAX));
        let span = Cost { near, hop: near }.at(&clocks);
        assert_eq!(span.over(u32::MAX), Picoseconds(u64::MAX / FEMTO));
    }
}
