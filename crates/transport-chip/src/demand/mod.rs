//! What a program's work asks of a core: cycles, and lines that its first cache does not have.
//!
//! A program says operations and bytes ([`Work`]); the chip's file says what an operation takes, how large the caches
//! are and what a line costs from each place. Nothing is known of single accesses, so how many lines are found where is
//! a formula of sizes; see `docs/design/chip-memory.md`. Nobody else is looked at here: what places do to each other at
//! a controller is the matter of `cores`. Invariant: all is integer arithmetic and depends on nothing but the work and
//! the file, so a run repeats.

use isles_chip::cost::{Access, HopCost, Mode, NANOCYCLES, Operation, Operations, TimingTable};
use isles_chip::gear::Gears;
use isles_chip::quantity::{Bytes, Picoseconds};
use isles_chip::topology::TileId;
use isles_chip::{Caches, Chip};
use isles_transport::{Table, Work};

/// Bytes of a word: what an access moves that meets no cache, and a store that meets one.
pub(crate) const WORD_BYTES: u64 = 4;

/// Bits of a number of lines after the point: many short steps lose nothing.
const LINE_BITS: u32 = 16;

/// One line.
const LINE: u64 = 1 << LINE_BITS;

/// Bits of a number of repetitions after the point.
const ROUND_BITS: u32 = 64;

/// Most repetitions of a step that a line stays: beyond it everything is found.
const ROUNDS_MAX: u128 = 1 << (ROUND_BITS + 14);

/// The largest numbers that shares of hits are calculated with, so that nothing overflows; above them, with these.
const LINES_MAX: u128 = 1 << 40;
const ACCESSES_MAX: u64 = 1 << 47;
const FADING_BITS: u32 = 60;
const ROUND_COARSE_BITS: u32 = 40;

/// Bits of a share of lines after the point.
const SHARE_BITS: u32 = 32;

/// Demand of a step on a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Cycles of its clock, and billionths of one.
    cycles: u64,
    nanocycles: u64,
    /// Lines out of the second cache.
    pub(crate) near: LineCount,
    /// Lines of memory.
    pub(crate) far: LineCount,
}

/// A number of lines, with a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineCount(u64);

impl LineCount {
    /// Returns the time the lines take one after the other, at `one` a line.
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

    /// Returns a part of `count` lines, in 65,536ths.
    pub(crate) fn part(count: u32, share: u32) -> LineCount {
        LineCount(u64::from(count) * u64::from(share))
    }

    fn less(self, others: LineCount) -> LineCount {
        LineCount(self.0.saturating_sub(others.0))
    }
}

impl Demand {
    /// Returns a demand of `cycles` and nothing else.
    pub(crate) fn of_cycles(cycles: u64) -> Demand {
        Demand { cycles, ..Demand::default() }
    }

    /// This step and another.
    pub(crate) fn add(&mut self, more: &Demand) {
        self.cycles = self.cycles.saturating_add(more.cycles);
        self.nanocycles = self.nanocycles.saturating_add(more.nanocycles);
        self.near.add(more.near);
        self.far.add(more.far);
    }

    /// Returns the whole cycles, including the fraction `left` of one before, and updates that fraction.
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

    /// Returns `true` if the demand stays within the core and its first cache.
    #[inline]
    pub(crate) fn is_computing(&self) -> bool {
        (self.near.0 | self.far.0) == 0
    }
}

/// Costs of lines for a core in one gear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineCosts {
    /// Out of the second cache.
    pub(crate) near: Picoseconds,
    /// Out of memory, by the hops to the controller.
    pub(crate) far: HopCost,
    /// Time that one keeps its controller busy.
    pub(crate) served: Picoseconds,
    /// A line that goes back to memory.
    pub(crate) back: HopCost,
    /// The words of a line into the second cache, one by one.
    pub(crate) store_near: Picoseconds,
    /// The same into memory.
    pub(crate) store_far: HopCost,
}

/// Costs of the cores' work, from the chip's file.
#[derive(Clone, Debug)]
pub(crate) struct WorkCosts {
    operations: Operations,
    line_bytes: u64,
    first: Cache,
    second: Cache,
    /// Costs by gear; empty if the file does not state the cost of a memory line: then everything is in the first
    /// cache.
    lines: Vec<LineCosts>,
    /// Tiles of the memory controllers.
    pub(crate) controllers: Vec<TileId>,
    /// By tile, the number of its own.
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
    /// Returns the costs; `None` if the file does not state the cost of a memory line. If it does not state how long
    /// one keeps the controller busy, that time is such that as many readers fit as are stated not to slow each other
    /// down.
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

/// Cache that is filled at random, which is between LRU and an optimal policy.
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

    /// Returns the number of rounds that a line stays, in 2^-64; a round is a repetition of the step or a walk through
    /// its region.
    ///
    /// In balance each table fills of the cache what it brings of all that is brought in that time: with *w* lines and
    /// *a* accesses a share *h* of which finds its line, *w h* = *rounds a* (1 - *h*). What is streamed comes once a
    /// step and then fades. Both together fill the cache.
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
        // If nothing were found, a line would stay for so long; then twice as long, until the cache overflows.
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

/// A walk through memory, and the part of it that a step does.
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

    /// Accesses to a table in a whole walk, each step of which is like this one.
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

/// The share of lines that are still there after one repetition of the step, in 2^-32: e to the power of -1/rounds.
fn stays(rounds: u128) -> u64 {
    const POWER: u32 = 16;
    let passed = (1_u128 << (ROUND_BITS + SHARE_BITS)).checked_div(rounds).unwrap_or(u128::MAX);
    let part = u64::try_from(passed >> POWER).unwrap_or(u64::MAX);
    let once = u128::from((1_u64 << SHARE_BITS).saturating_sub(part));
    (0..POWER).fold(once, |share, _| (share * share) >> SHARE_BITS) as u64
}

/// Returns the lines that `accesses` accesses bring in `rounds` rounds if none is found, as in [`LineCount`].
fn brought(accesses: u64, rounds: u128) -> u128 {
    let accesses = u128::from(accesses.min(ACCESSES_MAX));
    ((accesses * rounds) >> (ROUND_BITS - LINE_BITS)).min(u128::from(u64::MAX))
}

#[cfg(test)]
mod tests;
pub(crate) mod undeclared;
