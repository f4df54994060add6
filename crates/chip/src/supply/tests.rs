//! Changes by hand, and random requests: the voltage always supports the rate.

use super::*;
use proptest::prelude::*;

const MILLISECOND: u64 = 1_000_000_000;
const TRANSITION: u64 = 16_500_000_000;

fn scc() -> (Gears, Supplies) {
    let chip = Chip::find("scc").unwrap_or_else(|error| panic!("{error}"));
    let gears = Gears::of(&chip, chip.power_models().first());
    let supplies = Supplies::of(&chip, &gears).unwrap();
    (gears, supplies)
}

fn at(milliseconds: u64) -> Picoseconds {
    Picoseconds(milliseconds * MILLISECOND)
}

const FIRST: VoltageDomainId = VoltageDomainId(0);

/// The tiles (0, 0), (1, 0), (0, 1) and (1, 1) of the SCC.
const TILES: [u32; 4] = [0, 1, 6, 7];

#[test]
fn slowing_down_divides_at_once_and_the_voltage_falls_when_the_controller_is_done() {
    let (gears, mut supplies) = scc();
    let (slow, end) = (gears.divided_by(8).unwrap(), Picoseconds(MILLISECOND + TRANSITION));
    let answer = supplies.shift(at(1), FIRST, slow).unwrap();
    let rate = |clock| SupplyChange::Rate { time: at(1), clock: FrequencyDomainId(clock), gear: slow };
    let voltage = SupplyChange::Voltage { time: end, supply: FIRST, step: VoltageStepId(0) };
    assert_eq!(answer.changes, TILES.map(rate).into_iter().chain([voltage]).collect::<Vec<_>>());
    let (from, to) = (VoltageStepId(4), VoltageStepId(0));
    assert_eq!(answer.transition, Some(Transition { supply: FIRST, start: at(1), end, from, to }));
    assert_eq!((supplies.settled(FIRST), supplies.step(FIRST)), (end, VoltageStepId(0)));
}

#[test]
fn speeding_up_raises_the_voltage_first_and_divides_when_it_is_there() {
    let (gears, mut supplies) = scc();
    let (fast, end) = (gears.divided_by(2).unwrap(), Picoseconds(MILLISECOND + TRANSITION));
    let answer = supplies.shift(at(1), FIRST, fast).unwrap();
    assert_eq!(
        answer.changes[0],
        SupplyChange::Voltage { time: at(1), supply: FIRST, step: VoltageStepId(5) }
    );
    let rate = |clock| SupplyChange::Rate { time: end, clock: FrequencyDomainId(clock), gear: fast };
    assert_eq!(answer.changes[1..], TILES.map(rate));
}

#[test]
fn the_controller_serves_one_domain_after_the_other_and_a_domain_one_request_at_a_time() {
    let (gears, mut supplies) = scc();
    let slow = gears.divided_by(8).unwrap();
    let first = supplies.shift(at(0), FIRST, slow).unwrap().transition.unwrap();
    let second = supplies.shift(at(1), VoltageDomainId(1), slow).unwrap().transition.unwrap();
    assert_eq!((second.start, second.end), (first.end, first.end + (first.end - first.start)));
    let until = first.end;
    assert_eq!(supplies.shift(at(2), FIRST, gears.first()), Err(SupplyError::UnderWay { until }));
    assert!(supplies.shift(until, FIRST, gears.first()).is_ok());
}

#[test]
fn a_divider_within_the_voltage_needs_no_controller_and_one_beyond_it_is_refused() {
    let (gears, mut supplies) = scc();
    let (tile, slow) = (FrequencyDomainId(7), gears.divided_by(16).unwrap());
    let answer = supplies.divide(at(1), tile, slow).unwrap();
    assert_eq!(answer.changes, [SupplyChange::Rate { time: at(1), clock: tile, gear: slow }]);
    assert_eq!((answer.transition, supplies.gear(tile)), (None, slow));
    let fast = gears.divided_by(2).unwrap();
    assert_eq!(supplies.divide(at(1), tile, fast), Err(SupplyError::VoltageTooLow));
    let among_equals = gears.divided_by(9).unwrap();
    supplies.begin(FIRST, slow);
    assert_eq!(supplies.shift(at(1), FIRST, among_equals).unwrap().transition, None);
}

#[test]
fn a_clock_is_divided_from_the_moment_on_at_which_its_voltage_has_changed() {
    let (gears, mut supplies) = scc();
    let (clock, slow) = (FrequencyDomainId(0), gears.divided_by(8).unwrap());
    let until = supplies.shift(at(1), FIRST, slow).unwrap().transition.unwrap().end;
    assert_eq!(supplies.divide(Picoseconds(until.0 - 1), clock, slow), Err(SupplyError::UnderWay { until }));
    let slowest = gears.divided_by(16).unwrap();
    let changes = supplies.divide(until, clock, slowest).unwrap().changes;
    assert_eq!(changes, [SupplyChange::Rate { time: until, clock, gear: slowest }]);
}

#[test]
fn who_asks_with_a_clock_behind_is_served_after_what_was_asked_for_before() {
    let (gears, mut supplies) = scc();
    let (clock, slow) = (FrequencyDomainId(0), gears.divided_by(8).unwrap());
    assert!(supplies.divide(at(5), clock, slow).is_ok());
    let changes = supplies.divide(at(2), clock, gears.first()).unwrap().changes;
    assert_eq!(changes, [SupplyChange::Rate { time: at(5), clock, gear: gears.first() }]);
    let end = supplies.shift(at(3), FIRST, slow).unwrap().transition.map(|transition| transition.end);
    assert_eq!(end, Some(Picoseconds(at(5).0 + TRANSITION)));
    supplies.shift(at(40), FIRST, gears.divided_by(9).unwrap()).unwrap();
    let changes = supplies.divide(at(30), clock, slow).unwrap().changes;
    assert_eq!(changes, [SupplyChange::Rate { time: at(40), clock, gear: slow }]);
}

#[test]
fn a_voltage_is_raised_and_lowered_by_itself_as_far_as_it_carries_the_clocks() {
    let (gears, mut supplies) = scc();
    let (own, highest) = (gears.gear(gears.first()).step, gears.gear(GearId(0)).step);
    let answer = supplies.set_voltage(at(1), FIRST, highest).unwrap();
    assert_eq!(answer.changes, [SupplyChange::Voltage { time: at(1), supply: FIRST, step: highest }]);
    let until = answer.transition.unwrap().end;
    assert_eq!(until, Picoseconds(at(1).0 + TRANSITION));
    assert_eq!(supplies.set_voltage(at(1), FIRST, own), Err(SupplyError::UnderWay { until }));
    // Now a divider within that voltage needs no controller.
    assert_eq!(supplies.divide(until, FrequencyDomainId(0), GearId(0)).unwrap().transition, None);
    assert_eq!(supplies.set_voltage(until, FIRST, own), Err(SupplyError::VoltageTooLow));
    supplies.divide(until, FrequencyDomainId(0), gears.first()).unwrap();
    let lowered = supplies.set_voltage(until, FIRST, own).unwrap();
    let end = Picoseconds(until.0 + TRANSITION);
    assert_eq!(lowered.changes, [SupplyChange::Voltage { time: end, supply: FIRST, step: own }]);
    assert_eq!(supplies.set_voltage(end, FIRST, own), Ok(SupplyResponse::default()));
}

#[test]
fn what_is_so_already_changes_nothing() {
    let (gears, mut supplies) = scc();
    assert_eq!(supplies.shift(at(1), FIRST, gears.first()), Ok(SupplyResponse::default()));
    assert_eq!(supplies.divide(at(1), FrequencyDomainId(0), gears.first()), Ok(SupplyResponse::default()));
}

#[test]
fn a_chip_whose_clock_cannot_be_divided_has_nothing_to_change() {
    let chip = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
    assert!(Supplies::of(&chip, &Gears::of(&chip, None)).is_none());
}

proptest! {
    #[test]
    fn no_rate_is_ever_set_that_the_voltage_does_not_carry(
        requests in prop::collection::vec((0..30u64, 0..24u32, 0..15u16, 0..3u8), 1..60)
    ) {
        let (gears, mut supplies) = scc();
        let mut changes = Vec::new();
        let (mut now, mut transitions) = (0, Vec::new());
        for (wait, tile, gear, verb) in requests {
            now += wait;
            let (clock, gear) = (FrequencyDomainId(tile), GearId(gear));
            let supply = VoltageDomainId(tile % 6 / 2 + tile / 12 * 3);
            let answer = match verb {
                0 => supplies.shift(at(now), supply, gear),
                1 => supplies.divide(at(now), clock, gear),
                _ => supplies.set_voltage(at(now), supply, gears.gear(gear).step),
            };
            let Ok(answer) = answer else { continue };
            transitions.extend(answer.transition);
            changes.extend(answer.changes);
        }
        prop_assert!(transitions.windows(2).all(|pair| pair[0].end <= pair[1].start));
        let time = |change: &SupplyChange| match change {
            SupplyChange::Rate { time, .. } | SupplyChange::Voltage { time, .. } => *time,
        };
        changes.sort_by_key(time); // stable: earlier requests come first
        let (mut rates, mut steps) = ([gears.first(); 24], [gears.gear(gears.first()).step; 6]);
        for (index, change) in changes.iter().enumerate() {
            match change {
                SupplyChange::Rate { clock, gear, .. } => rates[clock.0 as usize] = *gear,
                SupplyChange::Voltage { supply, step, .. } => steps[supply.0 as usize] = *step,
            }
            if changes.get(index + 1).is_some_and(|next| time(next) == time(change)) {
                continue;
            }
            for (tile, gear) in rates.iter().enumerate() {
                prop_assert!(gears.gear(*gear).step <= steps[tile % 6 / 2 + tile / 12 * 3]);
            }
        }
    }
}
