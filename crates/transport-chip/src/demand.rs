//! What a program's work asks of a core: cycles, and lines that its first cache does not have.
//!
//! A program says operations and bytes ([`Work`]); the chip's file says what an operation takes, how large the caches
//! are and what a line costs from each place. Nothing is known of single accesses, so how many lines are found where is
//! a formula of sizes; see `docs/twin.md`. Nobody else is looked at here: what places do to each other at a controller
//! is the matter of `cores`. Invariant: all is integer arithmetic and depends on nothing but the work and the file, so
//! a run repeats.

use isles_chip::Chip;
use isles_chip::cost::{Costs as Times, Mode, NANOCYCLES, Operation, Operations, Span};
use isles_chip::gear::Gears;
use isles_chip::quantity::{Bytes, Picoseconds};
use isles_chip::topology::TileId;
use isles_transport::{Table, Work};

/// Bits of a number of lines after the point: many short steps lose nothing.
const LINE_BITS: u32 = 16;

/// One line.
const LINE: u64 = 1 << LINE_BITS;

/// Bits of a number of repetitions after the point.
const ROUND_BITS: u32 = 64;

/// For how many repetitions of a step a line stays at most: beyond it everything is found.
const ROUNDS_MAX: u128 = 1 << (ROUND_BITS + 14);

/// The largest numbers that shares of hits are calculated with, so that nothing overflows; above them, with these.
const LINES_MAX: u128 = 1 << 40;
const ACCESSES_MAX: u64 = 1 << 47;
const FADING_BITS: u32 = 60;
const ROUND_COARSE_BITS: u32 = 40;

/// Bits of a share of lines after the point.
const SHARE_BITS: u32 = 32;

/// What a step asks of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Cycles of its clock, and billionths of one.
    cycles: u64,
    nanocycles: u64,
    /// Lines out of the second cache.
    pub(crate) near: Lines,
    /// Lines of memory.
    pub(crate) far: Lines,
}

/// A number of lines, with a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lines(u64);

impl Lines {
    /// What they take one after the other.
    pub(crate) fn times(self, one: Picoseconds) -> Picoseconds {
        let sum = u128::from(one.0) * u128::from(self.0) >> LINE_BITS;
        Picoseconds(u64::try_from(sum).unwrap_or(u64::MAX))
    }

    /// How many are whole.
    pub(crate) fn whole(self) -> u64 {
        self.0 >> LINE_BITS
    }

    pub(crate) fn add(&mut self, more: Lines) {
        self.0 = self.0.saturating_add(more.0);
    }

    fn less(self, others: Lines) -> Lines {
        Lines(self.0.saturating_sub(others.0))
    }
}

impl Demand {
    /// So many cycles and nothing else.
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

    /// Whole cycles, with what was `left` of one before; and what is left of one now.
    #[inline]
    pub(crate) fn cycles(&self, left: &mut u64) -> u64 {
        if self.nanocycles == 0 {
            return self.cycles;
        }
        let sum = self.nanocycles.saturating_add(*left);
        *left = sum % NANOCYCLES;
        self.cycles.saturating_add(sum / NANOCYCLES)
    }

    /// Whether it is within the core and its first cache.
    #[inline]
    pub(crate) fn is_computing(&self) -> bool {
        (self.near.0 | self.far.0) == 0
    }
}

/// What lines cost a core in one gear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineCosts {
    /// Out of the second cache.
    pub(crate) near: Picoseconds,
    /// Out of memory, by the hops to the controller.
    pub(crate) far: Span,
    /// For how long one keeps its controller busy.
    pub(crate) served: Picoseconds,
}

/// What a chip's file says of the work of its cores.
#[derive(Clone, Debug)]
pub(crate) struct WorkPlan {
    operations: Operations,
    line_bytes: u64,
    first: Cache,
    second: Cache,
    /// By gear; none if the file does not say what a line of memory costs: then all is in the first cache.
    lines: Vec<LineCosts>,
    /// Where controllers are.
    pub(crate) controllers: Vec<TileId>,
    /// By tile, the number of its own.
    pub(crate) own: Vec<u32>,
}

impl WorkPlan {
    pub(crate) fn of(chip: &Chip, gears: &Gears) -> WorkPlan {
        let (caches, preset) = (chip.caches(), chip.default_preset());
        let readers = chip.memory().readers_free;
        let lines = gears.all().map(|(_, gear)| LineCosts::of(&preset.times_at(gear.rate), readers));
        let line = caches.line;
        WorkPlan {
            operations: *chip.operations(),
            line_bytes: line.0,
            first: Cache::of(caches.first, line),
            second: Cache::of(caches.second, line),
            lines: lines.collect::<Option<_>>().unwrap_or_default(),
            controllers: (0..chip.controllers())
                .map(|number| chip.controller_tile(isles_chip::ControllerId(number)))
                .collect(),
            own: (0..chip.topology().tiles()).map(|tile| chip.controller_of(TileId(tile)).0).collect(),
        }
    }

    /// What lines cost in a gear, if anything is known of it.
    pub(crate) fn lines(&self, gear: usize) -> Option<&LineCosts> {
        self.lines.get(gear)
    }

    /// What `work` asks of a core.
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
    /// None if the file does not say what a line of memory costs. If it does not say for how long one keeps the
    /// controller busy, so long that as many readers fit as are said not to slow each other down.
    fn of(times: &Times<Span>, readers: u32) -> Option<LineCosts> {
        let far = times.access(Mode::MemoryCached)?.read;
        let of_reader = Picoseconds(far.over(0).0 / u64::from(readers));
        let served = times.controller_line.map_or(of_reader, |line| line.over(0));
        Some(LineCosts { near: times.second_cache.unwrap_or_default().over(0), far, served })
    }
}

/// A cache that is filled at random, which is between one that forgets the oldest and one that knows what comes.
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

    /// How many lines of a step it does not have: none if all fits.
    fn misses(&self, work: &Work, line_bytes: u64) -> Lines {
        let all = work.tables.iter().fold(work.streamed_bytes, |sum, table| sum.saturating_add(table.bytes));
        if all <= self.bytes {
            return Lines(0);
        }
        let rounds = self.rounds(work, line_bytes);
        let of_table = |table: &Table| {
            let [lines, brought] = [lines(table.bytes, line_bytes), brought(table.accesses, rounds)];
            let found = (brought << LINE_BITS).checked_div(lines + brought).unwrap_or(0) as u64;
            table.accesses.saturating_mul(LINE - found)
        };
        let walked = u128::from(work.streamed_bytes) << LINE_BITS;
        let walked = u64::try_from(walked / u128::from(line_bytes)).unwrap_or(u64::MAX);
        let walked = walked.saturating_add(work.streamed_pieces.saturating_mul(LINE));
        let gone = u128::from(walked) * u128::from((1 << SHARE_BITS) - stays(rounds)) >> SHARE_BITS;
        Lines(work.tables.iter().map(of_table).fold(gone as u64, u64::saturating_add))
    }

    /// For how many repetitions of the step a line stays, in 2^-64.
    ///
    /// In balance each table fills of the cache what it brings of all that is brought in that time: with *w* lines and
    /// *a* accesses a share *h* of which finds its line, *w h* = *rounds a* (1 - *h*). What is streamed comes once a
    /// step and then fades. Both together fill the cache.
    fn rounds(&self, work: &Work, line_bytes: u64) -> u128 {
        let full = u128::from(self.lines) << LINE_BITS;
        let streamed = lines(work.streamed_bytes, line_bytes);
        let filled = |rounds: u128| {
            let of_table = |table: &Table| {
                let [lines, brought] = [lines(table.bytes, line_bytes), brought(table.accesses, rounds)];
                (lines * brought).checked_div(lines + brought).unwrap_or(0)
            };
            let gone = u128::from((1 << SHARE_BITS) - stays(rounds));
            let fading = streamed * gone >> SHARE_BITS;
            let of_stream = fading.min(1 << FADING_BITS) * (rounds >> (ROUND_BITS - ROUND_COARSE_BITS))
                >> ROUND_COARSE_BITS;
            work.tables.iter().map(of_table).sum::<u128>() + of_stream
        };
        // If nothing were found, a line would stay for so long; then twice as long, until the cache overflows.
        let accesses: u128 = work.tables.iter().map(|table| u128::from(table.accesses)).sum();
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

/// Whole lines of so many bytes, as in [`Lines`].
fn lines(bytes: u64, line_bytes: u64) -> u128 {
    u128::from(bytes.div_ceil(line_bytes)).min(LINES_MAX) << LINE_BITS
}

/// The share of lines that are still there after one repetition of the step, in 2^-32: e to the power of -1/rounds.
fn stays(rounds: u128) -> u64 {
    const POWER: u32 = 16;
    let passed = (1_u128 << (ROUND_BITS + SHARE_BITS)).checked_div(rounds).unwrap_or(u128::MAX);
    let part = u64::try_from(passed >> POWER).unwrap_or(u64::MAX);
    let once = u128::from((1_u64 << SHARE_BITS).saturating_sub(part));
    (0..POWER).fold(once, |share, _| share * share >> SHARE_BITS) as u64
}

/// Lines that so many accesses bring in so many rounds if none is found, as in [`Lines`].
fn brought(accesses: u64, rounds: u128) -> u128 {
    let accesses = u128::from(accesses.min(ACCESSES_MAX));
    (accesses * rounds >> (ROUND_BITS - LINE_BITS)).min(u128::from(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::gear::Gears;
    use isles_transport::random::Random;
    use proptest::prelude::*;

    const LINE_BYTES: u64 = 32;

    fn cache(lines: u64) -> Cache {
        Cache { bytes: LINE_BYTES * lines, lines }
    }

    fn missed(lines: u64, work: Work) -> f64 {
        cache(lines).misses(&work, LINE_BYTES).0 as f64 / LINE as f64
    }

    fn plan() -> WorkPlan {
        let chip = Chip::find("scc").unwrap();
        WorkPlan::of(&chip, &Gears::of(&chip, chip.power_models().first()))
    }

    /// How many lines a cache does not have that throws out any one at random, for repetitions of a step.
    fn played(lines: usize, work: &Work, random: &mut Random) -> f64 {
        const ROUNDS: u64 = 24;
        let (mut slots, mut missed) = (vec![u64::MAX; lines], 0);
        let mut found = std::collections::BTreeMap::new();
        let mut fetch = |line: u64, random: &mut Random| {
            if found.contains_key(&line) {
                return 0;
            }
            let slot = random.below(lines as u64) as usize;
            found.remove(&slots[slot]);
            (slots[slot], _) = (line, found.insert(line, slot));
            1
        };
        let streamed = work.streamed_bytes / LINE_BYTES;
        let accesses: u64 = work.tables.iter().map(|table| table.accesses).sum();
        for round in 0..ROUNDS {
            let mut streams = 0;
            for number in 0..accesses {
                // Tables take turns in proportion.
                let (mut pick, mut table) = (random.below(accesses), 0);
                while pick >= work.tables[table].accesses {
                    (pick, table) = (pick - work.tables[table].accesses, table + 1);
                }
                let line = (table as u64) << 32 | random.below(work.tables[table].bytes / LINE_BYTES);
                let counts = u64::from(round >= ROUNDS / 2);
                missed += counts * fetch(line, random);
                while streams * accesses < streamed * (number + 1) {
                    missed += counts * fetch(9 << 32 | streams, random);
                    streams += 1;
                }
            }
        }
        missed as f64 / (ROUNDS / 2) as f64
    }

    fn steps() -> impl Strategy<Value = Work> {
        let table = || (100..4_000_u64, 8..600_u64);
        (0..2_000_u64, prop::collection::vec(table(), 1..4)).prop_map(|(streamed, tables)| {
            let work = Work::new().streamed(LINE_BYTES * streamed);
            tables.iter().fold(work, |work, (accesses, lines)| work.scattered(*accesses, LINE_BYTES * lines))
        })
    }

    #[test]
    fn of_one_table_a_cache_has_the_part_that_fits() {
        for (lines, found) in [(100, 1.0), (128, 1.0), (256, 0.5), (512, 0.25), (12_800, 0.01)] {
            let missed = missed(128, Work::new().scattered(10_000, LINE_BYTES * lines));
            assert!((missed - 10_000.0 * (1.0 - found)).abs() < 10.0, "{lines} lines: {missed}");
        }
    }

    #[test]
    fn what_is_streamed_is_found_as_far_as_it_fits_and_soon_not_at_all() {
        let missed = |lines: u64| missed(128, Work::new().streamed(LINE_BYTES * lines)) / lines as f64;
        assert_eq!(missed(128), 0.0);
        // With s for each line of the cache, of which x are missed: x = s (1 - e^-x).
        for (lines, expected) in [(192, 0.583), (256, 0.797), (512, 0.980), (1_280, 1.0)] {
            assert!((missed(lines) - expected).abs() < 0.002, "{lines} lines: {}", missed(lines));
        }
    }

    #[test]
    fn each_piece_of_a_walk_is_a_line_more() {
        let walk = Work::new().streamed(LINE_BYTES << 20);
        assert_eq!(missed(128, walk.pieces(1_000)) - missed(128, walk), 1_000.0);
        assert_eq!(missed(128, Work::new().streamed(100).pieces(1_000)), 0.0);
    }

    #[test]
    fn a_table_that_is_used_more_is_found_more() {
        let small = Work::new().scattered(100_000, LINE_BYTES * 100);
        let both = missed(128, small.scattered(1_000, LINE_BYTES * 10_000));
        // What comes in throws out more than itself, but of the small table next to nothing is missed.
        assert!(both > 990.0 && both < 5_000.0, "{both} of 101,000");
    }

    #[test]
    fn giants_end_at_giants() {
        let most = u64::MAX;
        let work = (0..5).fold(Work::new().streamed(most), |work, _| work.scattered(most, most));
        let demand = plan().demand(&work.integers(most).floats(most).cycles(most));
        assert_eq!(demand.cycles(&mut 0), most);
        assert!(demand.far.times(Picoseconds(1)).0 > 1 << 40);
        assert_eq!(demand.far.times(Picoseconds(most)), Picoseconds(most));
        let nobody = plan().demand(&Work::new().scattered(0, most));
        assert!(nobody.is_computing(), "{nobody:?}");
    }

    #[test]
    fn a_demand_is_what_its_parts_are() {
        let (plan, mut left) = (plan(), 0);
        let mut sum = Demand::of_cycles(7);
        sum.add(&plan.demand(&Work::new().streamed(8 << 20).divisions(1)));
        sum.add(&plan.demand(&Work::new().scattered(10, 1 << 30)));
        assert_eq!((sum.cycles(&mut left), left), (7 + 39, 0));
        assert_eq!((sum.near.whole(), sum.far.whole()), (0, 262_144 + 9));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn as_much_is_missed_as_in_a_cache_that_is_played(work in steps(), seed in 0..1_000_u64) {
            let all = work.tables.iter().fold(work.streamed_bytes, |sum, table| sum + table.bytes);
            prop_assume!(all > LINE_BYTES * 128);
            let played = played(128, &work, &mut Random::new(seed));
            let ours = missed(128, work);
            let most: u64 = work.tables.iter().map(|table| table.accesses).sum::<u64>() + work.streamed_bytes / LINE_BYTES;
            prop_assert!((ours - played).abs() <= 0.03 * most as f64 + 8.0, "{ours} and {played} of {most}");
        }

        #[test]
        fn no_more_is_missed_than_is_touched_and_a_larger_cache_misses_no_more(work in steps()) {
            let most: u64 = work.tables.iter().map(|table| table.accesses).sum::<u64>() + work.streamed_bytes / LINE_BYTES;
            let mut before = most as f64;
            for lines in [0, 16, 64, 256, 1_024, 4_096] {
                let missed = missed(lines, work);
                prop_assert!(missed <= before + 1.0, "{lines} lines: {missed} after {before}");
                before = missed;
            }
        }

        #[test]
        fn parts_of_operations_add_up_to_the_whole(
            counts in (0..1_000_u64, 0..1_000_u64, 0..1_000_u64, 0..1_000_u64), pieces in 1..50_u64,
        ) {
            let (plan, (integers, floats, divisions, branches)) = (plan(), counts);
            let step = |times: u64| {
                let work = Work::new().integers(times * integers).floats(times * floats);
                plan.demand(&work.divisions(times * divisions).branches(times * branches))
            };
            let (mut left, whole) = (0, step(pieces).cycles(&mut 0));
            let sum: u64 = (0..pieces).map(|_| step(1).cycles(&mut left)).sum();
            prop_assert_eq!(sum, whole);
        }
    }
}
