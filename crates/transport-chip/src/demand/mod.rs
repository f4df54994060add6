//! The demand of a program's work on a core: cycles, and lines that miss the first-level cache.
//!
//! A program declares operations and bytes ([`Work`]); the chip file has the costs of operations, the sizes of caches
//! and the costs of lines. Single accesses are unknown, so the numbers of misses come from a formula of sizes; see
//! `docs/design/chip-memory.md`. Contention at a controller is handled in `cores`. Invariant: everything is integer
//! arithmetic on the work and the chip file, so runs are reproducible.

use isles_chip::cost::{Access, HopCost, Mode, NANOCYCLES, Operation, Operations, TimingTable};
use isles_chip::gear::Gears;
use isles_chip::quantity::{Bytes, Picoseconds};
use isles_chip::topology::TileId;
use isles_chip::{Caches, Chip};
use isles_transport::{Table, Work};

/// Bytes of a word, the unit of uncached accesses and of stores that miss.
pub(crate) const WORD_BYTES: u64 = 4;

/// Fraction bits of a number of lines, so that many short steps lose nothing.
const LINE_BITS: u32 = 16;

/// One line.
const LINE: u64 = 1 << LINE_BITS;

/// Fraction bits of a number of repetitions.
const ROUND_BITS: u32 = 64;

/// Maximum number of repetitions for which a line stays cached; beyond it every access hits.
const ROUNDS_MAX: u128 = 1 << (ROUND_BITS + 14);

/// Limits of the numbers in the computation of hit rates, so that nothing overflows; larger ones are clamped.
const LINES_MAX: u128 = 1 << 40;
const ACCESSES_MAX: u64 = 1 << 47;
const FADING_BITS: u32 = 60;
const ROUND_COARSE_BITS: u32 = 40;

/// Fraction bits of a share of lines.
const SHARE_BITS: u32 = 32;

/// Demand of a step on a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Clock cycles, and billionths of a cycle.
    cycles: u64,
    nanocycles: u64,
    /// Lines from the second-level cache.
    pub(crate) near: LineCount,
    /// Lines from memory.
    pub(crate) far: LineCount,
}

/// A number of lines as a fixed-point number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineCount(u64);

impl LineCount {
    /// Returns the time of the lines one after the other, at `one` per line.
    pub(crate) fn times(self, one: Picoseconds) -> Picoseconds {
        let sum = (u128::from(one.0) * u128::from(self.0)) >> LINE_BITS;
        Picoseconds(u64::try_from(sum).unwrap_or(u64::MAX))
    }

    /// Returns the number of whole lines.
    pub(crate) fn whole(self) -> u64 {
        self.0 >> LINE_BITS
    }

    pub(crate) fn add(&mut self, more: LineCount) {
        self.0 = self.0.saturating_add(more.0);
    }

    /// Returns `share` 65,536ths of `count` lines.
    pub(crate) fn part(count: u32, share: u32) -> LineCount {
        LineCount(u64::from(count) * u64::from(share))
    }

    fn less(self, others: LineCount) -> LineCount {
        LineCount(self.0.saturating_sub(others.0))
    }
}

impl Demand {
    /// Returns a demand of `cycles` only.
    pub(crate) fn of_cycles(cycles: u64) -> Demand {
        Demand { cycles, ..Demand::default() }
    }

    /// Adds another demand.
    pub(crate) fn add(&mut self, more: &Demand) {
        self.cycles = self.cycles.saturating_add(more.cycles);
        self.nanocycles = self.nanocycles.saturating_add(more.nanocycles);
        self.near.add(more.near);
        self.far.add(more.far);
    }

    /// Returns the whole cycles, including the fraction `left` of earlier steps, and updates that fraction.
    #[inline]
    pub(crate) fn cycles(&self, left: &mut u64) -> u64 {
        if self.nanocycles == 0 {
            return self.cycles;
        }
        let sum = self.nanocycles.saturating_add(*left);
        *left = sum % NANOCYCLES;
        self.cycles.saturating_add(sum / NANOCYCLES)
    }

    /// Returns `true` if the demand includes operations by class.
    #[inline]
    pub(crate) fn counts_operations(&self) -> bool {
        self.nanocycles > 0
    }

    /// Returns `true` if the demand needs only the core and its first-level cache.
    #[inline]
    pub(crate) fn is_computing(&self) -> bool {
        (self.near.0 | self.far.0) == 0
    }
}

/// Costs of lines for a core in one gear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineCosts {
    /// A line from the second-level cache.
    pub(crate) near: Picoseconds,
    /// A line from memory, by the hops to the controller.
    pub(crate) far: HopCost,
    /// Time for which a line occupies its controller.
    pub(crate) served: Picoseconds,
    /// A line written back to memory.
    pub(crate) back: HopCost,
    /// The words of a line stored to the second-level cache, one by one.
    pub(crate) store_near: Picoseconds,
    /// The words of a line stored to memory, one by one.
    pub(crate) store_far: HopCost,
}

/// Costs of the cores' work, from the chip file.
#[derive(Clone, Debug)]
pub(crate) struct WorkCosts {
    operations: Operations,
    line_bytes: u64,
    first: Cache,
    second: Cache,
    /// Costs by gear; empty if the file lacks the cost of a memory line, in which case everything hits the first-level
    /// cache.
    lines: Vec<LineCosts>,
    /// Tiles of the memory controllers.
    pub(crate) controllers: Vec<TileId>,
    /// Number of each tile's own controller.
    pub(crate) own: Vec<u32>,
    /// Caches through which messages are copied.
    pub(crate) caches: Caches,
}

impl WorkCosts {
    pub(crate) fn of(chip: &Chip, gears: &Gears) -> WorkCosts {
        let (caches, preset) = (chip.caches(), chip.default_preset());
        let (line, readers) = (caches.line, chip.memory().readers_free);
        let lines = gears.all().map(|(_, gear)| LineCosts::of(&preset.times_at(gear.rate), line, readers));
        WorkCosts {
            operations: *chip.operations(),
            line_bytes: line.0,
            first: Cache::of(caches.first, line),
            second: Cache::of(caches.second, line),
            lines: lines.collect::<Option<_>>().unwrap_or_default(),
            controllers: (0..chip.controllers())
                .map(|number| chip.controller_tile(isles_chip::ControllerId(number)))
                .collect(),
            own: (0..chip.topology().tiles()).map(|tile| chip.controller_of(TileId(tile)).0).collect(),
            caches: *caches,
        }
    }

    /// Returns the costs of lines in a gear, if known.
    pub(crate) fn lines(&self, gear: usize) -> Option<&LineCosts> {
        self.lines.get(gear)
    }

    /// Returns the demand of `work` on a core.
    #[inline]
    pub(crate) fn demand(&self, work: &Work) -> Demand {
        let Work { cycles, integers, floats, divisions, branches, .. } = *work;
        let mut demand = Demand::of_cycles(cycles);
        if integers | floats | divisions | branches != 0 {
            let counts = [integers, floats, divisions, branches];
            let of_class = |(operation, count)| self.operations.nanocycles(operation, count);
            demand.nanocycles =
                Operation::ALL.into_iter().zip(counts).map(of_class).fold(0, u64::saturating_add);
        }
        if work.touches_memory() && !self.lines.is_empty() {
            let first = self.first.misses(work, self.line_bytes);
            demand.far = self.second.misses(work, self.line_bytes).min(first);
            demand.near = first.less(demand.far);
        }
        demand
    }
}

impl LineCosts {
    /// Returns the costs; `None` if the file lacks the cost of a memory line. If it lacks the time of a line at the
    /// controller, that time is chosen so that `readers` cores, the number stated not to slow each other down, saturate
    /// the controller.
    fn of(times: &TimingTable<HopCost>, line: Bytes, readers: u32) -> Option<LineCosts> {
        let Access { read: far, gap: back, .. } = *times.access(Mode::MemoryCached)?;
        let words = line.0 / WORD_BYTES;
        let store_far = times.access(Mode::MemoryWord).map_or(back, |word| word.gap).times(words);
        let of_reader = Picoseconds(far.over(0).0 / u64::from(readers));
        let served = times.controller_line.map_or(of_reader, |line| line.over(0));
        let near = times.second_cache.unwrap_or_default();
        let store_near = times.second_cache_store.unwrap_or(near).over(0) * words;
        Some(LineCosts { near: near.over(0), far, served, back, store_near, store_far })
    }
}

/// A cache with random replacement, which is between LRU and an optimal policy.
#[derive(Clone, Copy, Debug)]
struct Cache {
    bytes: u64,
    lines: u64,
}

impl Cache {
    fn of(size: Option<Bytes>, line: Bytes) -> Cache {
        let bytes = size.map_or(0, |size| size.0);
        Cache { bytes, lines: bytes / line.0 }
    }

    /// Returns the number of lines of a step that miss the cache; zero if all fit.
    fn misses(&self, work: &Work, line_bytes: u64) -> LineCount {
        let walk = Walk::of(work);
        let all = work.tables.iter().fold(walk.region, |sum, table| sum.saturating_add(table.bytes));
        if all <= self.bytes {
            return LineCount(0);
        }
        let rounds = self.rounds(work, walk, line_bytes);
        let of_table = |table: &Table| {
            let brought = brought(walk.accesses(table), rounds);
            let lines = lines(table.bytes, line_bytes);
            let found = (brought << LINE_BITS).checked_div(lines + brought).unwrap_or(0) as u64;
            table.accesses.saturating_mul(LINE - found)
        };
        let walked = u128::from(work.streamed_bytes) << LINE_BITS;
        let walked = u64::try_from(walked / u128::from(line_bytes)).unwrap_or(u64::MAX);
        let walked = walked.saturating_add(work.streamed_pieces.saturating_mul(LINE));
        let gone = (u128::from(walked) * u128::from((1 << SHARE_BITS) - stays(rounds))) >> SHARE_BITS;
        LineCount(work.tables.iter().map(of_table).fold(gone as u64, u64::saturating_add))
    }

    /// Returns the number of rounds for which a line stays cached, in units of 2^-64; a round is a repetition of the
    /// step or a walk through its region.
    ///
    /// In equilibrium, each table occupies the part of the cache that it has brought in that time: with *w* lines, *a*
    /// accesses and hit rate *h*, *w h* = *rounds a* (1 - *h*). Streamed lines are brought once per step and then fade.
    /// Together they fill the cache.
    fn rounds(&self, work: &Work, walk: Walk, line_bytes: u64) -> u128 {
        let full = u128::from(self.lines) << LINE_BITS;
        let streamed = lines(walk.region, line_bytes);
        let filled = |rounds: u128| {
            let of_table = |table: &Table| {
                let lines = lines(table.bytes, line_bytes);
                let brought = brought(walk.accesses(table), rounds);
                (lines * brought).checked_div(lines + brought).unwrap_or(0)
            };
            let gone = u128::from((1 << SHARE_BITS) - stays(rounds));
            let fading = (streamed * gone) >> SHARE_BITS;
            let coarse = rounds >> (ROUND_BITS - ROUND_COARSE_BITS);
            let of_stream = (fading.min(1 << FADING_BITS) * coarse) >> ROUND_COARSE_BITS;
            work.tables.iter().map(of_table).sum::<u128>() + of_stream
        };
        // Lower bound: the rounds without any hits. Doubled until the cache overflows.
        let accesses: u128 = work.tables.iter().map(|table| u128::from(walk.accesses(table))).sum();
        let all = (accesses << LINE_BITS) + streamed;
        let mut low = (full << ROUND_BITS).checked_div(all).unwrap_or(ROUNDS_MAX).min(ROUNDS_MAX);
        while low < ROUNDS_MAX && filled(2 * low) < full {
            low *= 2;
        }
        let mut step = low / 2;
        for _ in 0..LINE_BITS {
            if filled(low + step) < full {
                low += step;
            }
            step /= 2;
        }
        low
    }
}

/// A walk through memory, and the part of it in one step.
#[derive(Clone, Copy, Debug)]
struct Walk {
    region: u64,
    part: u64,
}

impl Walk {
    fn of(work: &Work) -> Walk {
        let part = work.streamed_bytes;
        let region = if work.streamed_region > 0 && part > 0 { work.streamed_region } else { part };
        Walk { region, part }
    }

    /// Returns the accesses to a table in a whole walk of equal steps.
    fn accesses(self, table: &Table) -> u64 {
        if self.region == self.part {
            return table.accesses;
        }
        let all = u128::from(table.accesses) * u128::from(self.region) / u128::from(self.part);
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

/// Returns the whole lines of `bytes` bytes, as in [`LineCount`].
fn lines(bytes: u64, line_bytes: u64) -> u128 {
    u128::from(bytes.div_ceil(line_bytes)).min(LINES_MAX) << LINE_BITS
}

/// Returns the fraction of lines still cached after one repetition of the step, exp(-1/rounds), in units of 2^-32.
fn stays(rounds: u128) -> u64 {
    const POWER: u32 = 16;
    let passed = (1_u128 << (ROUND_BITS + SHARE_BITS)).checked_div(rounds).unwrap_or(u128::MAX);
    let part = u64::try_from(passed >> POWER).unwrap_or(u64::MAX);
    let once = u128::from((1_u64 << SHARE_BITS).saturating_sub(part));
    (0..POWER).fold(once, |share, _| (share * share) >> SHARE_BITS) as u64
}

/// Returns the lines that `accesses` accesses bring in `rounds` rounds without hits, as in [`LineCount`].
fn brought(accesses: u64, rounds: u128) -> u128 {
    let accesses = u128::from(accesses.min(ACCESSES_MAX));
    ((accesses * rounds) >> (ROUND_BITS - LINE_BITS)).min(u128::from(u64::MAX))
}

#[cfg(test)]
mod tests;
pub(crate) mod undeclared;
