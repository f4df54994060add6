//! Declared work: its time alone, and with contention at the memory controller.

use isles_chip::Chip;
use isles_chip::cost::Mode;
use isles_chip::energy::Load;
use isles_chip::quantity::Picoseconds;
use isles_transport::{PlaceId, Work, WorkModel};
use isles_transport_chip::{ChipWorld, Costs, Report, TimeCategory, TurnOutcome};
use proptest::prelude::*;
use std::panic::Location;

const SCC: &str = include_str!("../../../../chips/scc.toml");

/// Lines of eight megabytes, which no cache of the SCC retains.
const LINES: u64 = 256 << 10;

/// A step that reads these lines in order.
const READING: Work = Work::new().streamed(32 * LINES);

fn scc() -> Chip {
    Chip::find("scc").unwrap()
}

/// Runs the steps of each place, one in each turn.
fn run_with(chip: &Chip, steps: &[&[Work]]) -> (ChipWorld, Report) {
    let world = ChipWorld::new(steps.len() as u32, Costs::of(chip).unwrap(), 0).unwrap();
    let endpoints: Vec<_> = (0..steps.len() as u32).map(|place| world.endpoint(PlaceId(place))).collect();
    let mut done = vec![0; steps.len()];
    while let Some(place) = world.next() {
        let next = steps[place.index()].get(done[place.index()]);
        done[place.index()] += 1;
        if let Some(step) = next {
            endpoints[place.index()].work(step, Location::caller());
        }
        world.end_turn(
            place,
            if next.is_some() { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } },
        );
    }
    let report = world.report();
    (world, report)
}

fn run(steps: &[&[Work]]) -> Report {
    run_with(&scc(), steps).1
}

/// Returns the time each place spent in a category, in nanoseconds.
fn nanoseconds(report: &Report, category: TimeCategory) -> Vec<u64> {
    report.ledgers.iter().map(|ledger| ledger.time(category).0 / 1_000).collect()
}

/// Returns the places of 48 whose memory belongs to the first controller.
fn of_first_controller() -> Vec<usize> {
    let chip = scc();
    let own = |core: &u32| chip.controller_of(chip.topology().tile_of(isles_chip::topology::CoreId(*core))).0;
    (0..48).filter(|core| own(core) == 0).map(|core| core as usize).collect()
}

/// Returns the longest time of a place of `readers` to fetch eight megabytes five times, in nanoseconds.
fn slowest(chip: &Chip, readers: &[usize]) -> u64 {
    let steps: Vec<&[Work]> =
        (0..48).map(|place| if readers.contains(&place) { &[READING; 5][..] } else { &[] }).collect();
    *nanoseconds(&run_with(chip, &steps).1, TimeCategory::Fetching).iter().max().unwrap()
}

#[test]
fn operations_take_what_the_file_says_of_their_class_and_parts_of_a_cycle_add_up() {
    let chip = Chip::parse(
        "scc.toml",
        &SCC.replace("branch = {\n    value = \"2 ", "branch = {\n    value = \"0.3 "),
    )
    .unwrap();
    let step = Work::new().cycles(100).integers(10).floats(5).divisions(1).branches(1);
    let (_, report) = run_with(&chip, &[&[step; 10]]);
    // 100 + 10 + 5 * 3 + 39 + 0.3 cycles of 1,875 ps, ten times.
    assert_eq!(report.ledgers[0].time(TimeCategory::Working), Picoseconds(1_643 * 1_875));
    assert_eq!(report.ledgers[0].time(TimeCategory::Fetching), Picoseconds::ZERO);
}

#[test]
fn lines_are_found_in_the_cache_that_they_fit_into() {
    let fetching = |work: Work| nanoseconds(&run(&[&[work]]), TimeCategory::Fetching)[0];
    assert_eq!(fetching(Work::new().streamed(16 << 10)), 0);
    // 18 cycles per line from the second cache.
    let walked = fetching(Work::new().streamed(256 << 10));
    assert!(walked.abs_diff(8_192 * 18 * 1_875 / 1_000) <= 1, "{walked}");
    // Seven of eight accesses miss the first cache.
    let missed = fetching(Work::new().scattered(80_000, 128 << 10));
    assert!(missed.abs_diff(70_000 * 18 * 1_875 / 1_000) < missed / 500, "{missed}");
    let read = scc().default_preset().times().access(Mode::MemoryCached).unwrap().read;
    assert_eq!(fetching(READING), LINES * read.over(0).0 / 1_000);
    // Half of the accesses hit the second cache, one in sixteen of those the first.
    let half = fetching(Work::new().scattered(64_000, 512 << 10));
    let expected = (32_000 * read.over(0).0 + 30_000 * 18 * 1_875) / 1_000;
    assert!(half.abs_diff(expected) < expected / 500, "{half} and {expected}");
}

#[test]
fn three_places_at_one_controller_do_not_notice_each_other_and_twelve_do() {
    let (chip, near) = (scc(), of_first_controller());
    assert_eq!(near.len(), 12);
    let line = chip.default_preset().times().controller_line.unwrap().over(0).0;
    let alone = slowest(&chip, &near[11..]);
    let pairs = slowest(&chip, &[near[10], near[11]]);
    assert_eq!(pairs, alone, "what two want is less than the controller has");
    // Twelve places share the bandwidth of the controller: forty megabytes each.
    let (all, expected) = (slowest(&chip, &near), 12 * 5 * LINES * line / 1_000);
    assert!(all.abs_diff(expected) < expected / 20, "{all} and {expected}");
    let spread = slowest(&chip, &[0, 11, 24, 47]);
    assert!(spread <= alone, "four at controllers of their own: {spread} and {alone}");
}

#[test]
fn two_places_at_a_controller_that_one_of_them_fills_slow_each_other_and_at_two_they_do_not() {
    let (before, filled) = (
        "value = \"66.7 cycles of memory\", error = \"factor 5\", source",
        "value = \"150 cycles of memory\", error = \"25 %\", source",
    );
    assert_eq!(SCC.matches(before).count(), 1);
    let chip = Chip::parse("scc.toml", &SCC.replace(before, filled)).unwrap();
    let [one, same, apart] = [&[0][..], &[0, 1], &[0, 11]].map(|readers| slowest(&chip, readers));
    assert!(same > one * 18 / 10, "{same} and {one}");
    assert_eq!(apart, one);
}

#[test]
fn a_chip_that_does_not_say_how_long_a_controller_is_busy_serves_as_many_readers_as_it_says() {
    let line = SCC.find("controller_line = {").unwrap();
    let end = line + SCC[line..].find("\n}\n").unwrap() + 3;
    let text = format!("{}{}", &SCC[..line], &SCC[end..]);
    let chip = Chip::parse("scc.toml", &text).unwrap();
    let near = of_first_controller();
    let [three, six] = [&near[..3], &near[..6]].map(|readers| slowest(&chip, readers));
    let alone = [0, 1, 2].map(|reader| slowest(&chip, &near[reader..=reader])).into_iter().max().unwrap();
    assert!(three.abs_diff(alone) < alone / 1_000, "{three} and {alone}");
    assert!(six > alone * 17 / 10, "{six} and {alone}");
}

#[test]
fn computing_hides_behind_memory_that_others_hold_up() {
    let (steps, near) = ([READING.cycles(24_000_000); 5], of_first_controller());
    let places: Vec<&[Work]> =
        (0..48).map(|place| if near.contains(&place) { &steps[..] } else { &[] }).collect();
    let report = run(&places);
    let served = scc().default_preset().times().controller_line.unwrap().over(0).0;
    let total = report.ledgers.iter().map(|ledger| ledger.total().0).max().unwrap();
    let expected = 12 * 5 * LINES * served;
    // Alone, a step takes 45 ms of cycles and 52 ms of lines; twelve places keep the controller busy for 262 ms.
    assert!(total > expected * 9 / 10 && total < expected * 11 / 10, "{total} and {expected}");
}

#[test]
fn what_is_fetched_is_counted_on_its_way_and_by_energy() {
    let (world, report) = run_with(&scc(), &[&[], &[], &[], &[READING]]);
    // The second tile is one hop from the controller; a line is three flits.
    assert_eq!((report.fetched, report.flit_hops), (LINES, 3 * LINES));
    let loads: Vec<u64> =
        world.link_loads().iter().map(|load| load.flits).filter(|flits| *flits > 0).collect();
    assert_eq!(loads, [3 * LINES]);
    let energy = report.energy.as_ref().unwrap();
    let (chip, own) = (scc(), energy.models.iter().find(|model| model.name == "manyman").unwrap());
    let point = chip.voltage_table("manyman").unwrap().operating_point(chip.default_preset().clocks().core);
    let power = chip.power_model("manyman").unwrap();
    let drawn = own.core(3);
    assert_eq!(
        drawn,
        power.core(Load::Copy, point.unwrap()).over(report.ledgers[3].time(TimeCategory::Fetching))
    );
    assert!(own.flits.0 > 0);
}

#[test]
fn a_slower_core_waits_longer_for_a_line_but_not_as_much_longer_as_it_computes() {
    let slow = |divider| {
        let world = ChipWorld::new(1, Costs::of(&scc()).unwrap(), 0).unwrap();
        let (endpoint, place) = (world.endpoint(PlaceId(0)), world.next().unwrap());
        world.divide_tile(place, divider).unwrap();
        endpoint.work(&READING.cycles(100_000), Location::caller());
        world.end_turn(place, TurnOutcome::Idle { due: None });
        let ledger = world.report().ledgers[0];
        [TimeCategory::Working, TimeCategory::Fetching].map(|category| ledger.time(category).0)
    };
    let ([worked, fetched], [worked_half, fetched_half]) = (slow(3), slow(6));
    assert_eq!(worked_half, 2 * worked);
    assert!(fetched_half > fetched * 3 / 2 && fetched_half < fetched * 9 / 5, "{fetched_half} and {fetched}");
}

#[test]
fn where_nothing_is_known_of_memory_all_is_in_the_first_cache() {
    let start = SCC.find("[preset.\"533/800/800\".memory_cached]").unwrap();
    let end = start + SCC[start..].find("# The ranges of the table").unwrap();
    let chip = Chip::parse("scc.toml", &format!("{}{}", &SCC[..start], &SCC[end..])).unwrap();
    let (_, report) = run_with(&chip, &[&[READING.integers(1_000)]]);
    assert_eq!(nanoseconds(&report, TimeCategory::Fetching), [0]);
    assert_eq!(report.ledgers[0].time(TimeCategory::Working), Picoseconds(1_000 * 1_875));
}

#[test]
fn work_that_says_its_region_takes_as_long_in_any_number_of_pieces() {
    // 350,000 cells at each of 48 places, from a grid of 4,096 by 4,096; in one turn, and in one turn for each piece.
    let pieces = |pieces: u64| {
        let (cells, bytes) = (4_096 * 4_096 / 48, 4_096 * 4_096 / 3);
        let piece = Work::new().floats(5 * cells / pieces).streamed(bytes / pieces).of(bytes);
        last_end(48, &vec![piece; 4 * pieces as usize], 3).0
    };
    let whole = pieces(1);
    for cut in [4, 16, 64] {
        let cut = pieces(cut);
        assert!(cut.abs_diff(whole) < whole / 20, "{cut} and {whole}");
    }
}

#[test]
fn steps_that_could_be_pieces_of_something_longer_are_named_with_their_line() {
    let undeclared = |step: Work, steps: usize| run(&[&vec![step; steps]]).undeclared_region;
    let (piece, named) =
        (Work::new().streamed(100 << 10), undeclared(Work::new().streamed(100 << 10), 3).unwrap());
    assert!(named.line.file().ends_with("work.rs") && named.bytes == 100 << 10, "{named:?}");
    // Two steps fit in the second cache; a declared region is known; a step larger than the caches never hits.
    assert_eq!(undeclared(piece, 2), None);
    assert_eq!(undeclared(piece.of(100 << 10), 9), None);
    assert_eq!(undeclared(READING, 9), None);
}

/// Returns the time at which the last of `places` places finishes these steps, at a divider of their clock.
fn last_end(places: u32, steps: &[Work], divider: u32) -> Picoseconds {
    let world = ChipWorld::new(places, Costs::of(&scc()).unwrap(), 0).unwrap();
    let endpoints: Vec<_> = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    let mut done = vec![0; places as usize];
    while let Some(place) = world.next() {
        if done[place.index()] == 0 {
            world.divide_tile(place, divider).unwrap();
        }
        let next = steps.get(done[place.index()]);
        done[place.index()] += 1;
        next.inspect(|step| endpoints[place.index()].work(step, Location::caller()));
        let is_over = next.is_none();
        world.end_turn(place, if is_over { TurnOutcome::Idle { due: None } } else { TurnOutcome::Busy });
    }
    let busy = |ledger: &isles_transport_chip::Ledger| {
        [TimeCategory::Working, TimeCategory::Fetching]
            .map(|category| ledger.time(category).0)
            .iter()
            .sum::<u64>()
    };
    Picoseconds(world.report().ledgers.iter().map(busy).max().unwrap())
}

/// Tolerance for rounding in picoseconds: one for each start and end of a step.
const SLACK: u64 = 1_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_program_is_never_faster_with_a_slower_clock_or_more_to_compute(
        places in 1..=48_u32,
        steps in prop::collection::vec((1..40_u64, 0..4_000_000_u64), 1..4),
    ) {
        let program = |more: u64| -> Vec<Work> {
            let step = |&(lines, cycles): &(u64, u64)| {
                Work::new().streamed(32 * 10_000 * lines).cycles(cycles + more)
            };
            steps.iter().map(step).collect()
        };
        let by_divider: Vec<u64> = (3..=16).map(|divider| last_end(places, &program(0), divider).0).collect();
        prop_assert!(by_divider.windows(2).all(|pair| pair[0] <= pair[1] + SLACK), "{by_divider:?}");
        let more = (0..12).map(|more| last_end(places, &program(400_000 * more), 3).0);
        let by_effort: Vec<u64> = more.collect();
        prop_assert!(by_effort.windows(2).all(|pair| pair[0] <= pair[1] + SLACK), "{by_effort:?}");
    }
}
