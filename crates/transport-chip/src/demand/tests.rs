//! Hits and misses by the formula, against a simulated cache; and the sums of costs.

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

#[test]
fn pieces_of_a_walk_miss_together_what_the_whole_walk_misses() {
    let whole = Work::new().streamed(1 << 20).of(1 << 20).scattered(64_000, 200 << 10);
    for lines in [1 << 9, 1 << 13, 1 << 14] {
        let expected = missed(lines, whole);
        for pieces in [4, 16, 64] {
            let piece =
                Work::new().streamed((1 << 20) / pieces).of(1 << 20).scattered(64_000 / pieces, 200 << 10);
            let sum = missed(lines, piece) * pieces as f64;
            assert!((sum - expected).abs() <= expected / 1_000.0, "{lines} {pieces}: {sum} and {expected}");
        }
    }
    let undeclared = Work::new().streamed(1 << 20).scattered(64_000, 200 << 10);
    assert_eq!(missed(1 << 13, undeclared), missed(1 << 13, whole));
}

fn plan() -> WorkCosts {
    let chip = Chip::find("scc").unwrap();
    WorkCosts::of(&chip, &Gears::of(&chip, chip.power_models().first()))
}

/// Returns the maximum number of lines that a step can touch.
fn touched(work: &Work) -> u64 {
    work.tables.iter().map(|table| table.accesses).sum::<u64>() + work.streamed_bytes / LINE_BYTES
}

/// Simulates repetitions of a step on a cache with random replacement; returns the mean misses per repetition.
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
    // With s accesses per cache line, of which x miss: x = s (1 - e^-x).
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
fn a_line_that_is_begun_is_a_line() {
    // Two lines, of which the cache has one.
    let missed = missed(1, Work::new().scattered(10_000, LINE_BYTES + 1));
    assert!((missed - 5_000.0).abs() < 10.0, "{missed}");
}

#[test]
fn without_a_second_cache_all_that_the_first_does_not_have_is_of_memory() {
    let (work, plan) = (Work::new().scattered(1_000, 1 << 20), plan());
    let first = plan.first.misses(&work, plan.line_bytes);
    assert!(first.whole() > 900 && first.whole() < 1_000, "{first:?}");
    let demand = WorkCosts { second: Cache::of(None, Bytes(LINE_BYTES)), ..plan }.demand(&work);
    assert_eq!((demand.far, demand.near), (first, LineCount(0)));
}

#[test]
fn a_table_that_is_used_more_is_found_more() {
    let small = Work::new().scattered(100_000, LINE_BYTES * 100);
    let both = missed(128, small.scattered(1_000, LINE_BYTES * 10_000));
    // The stream evicts more than itself, but the small table has almost no misses.
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
        let most = touched(&work);
        prop_assert!((ours - played).abs() <= 0.03 * most as f64 + 8.0, "{ours} and {played} of {most}");
    }

    #[test]
    fn no_more_is_missed_than_is_touched_and_a_larger_cache_misses_no_more(work in steps()) {
        let most = touched(&work);
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
