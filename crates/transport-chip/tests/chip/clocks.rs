//! Rates and voltages that change while places run: times to the picosecond, energies to the attojoule, the rules of
//! the voltage controller.

use crate::sink::Sink;
use isles_chip::Chip;
use isles_chip::energy::{Load, OperatingPoint};
use isles_chip::governor::Policy;
use isles_chip::quantity::{Attojoules, Microvolts, Picoseconds, Rate};
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, Work, WorkModel};
use isles_transport_chip::{
    ChipEndpoint, ChipWorld, ClockChange, ClockError, Costs, GearChanges, Report, TimeCategory, TurnOutcome,
};
use std::panic::Location;
use std::time::Duration;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);

/// Picoseconds of a voltage change of the SCC at 533/800/800.
const TRANSITION: u64 = 16_500_000_000;

/// Returns the length of a cycle with a divider of the SCC, in picoseconds.
const fn period(divider: u64) -> u64 {
    625 * divider
}

fn scc() -> Chip {
    Chip::find("scc").unwrap()
}

fn place(places: u32) -> (ChipWorld, Vec<ChipEndpoint>) {
    let world = ChipWorld::new(places, Costs::of(&scc()).unwrap(), 0).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

/// Returns the clock of the first place in picoseconds.
fn now(world: &ChipWorld) -> u64 {
    world.report().time.0
}

fn nanoseconds(picoseconds: u64) -> Duration {
    Duration::from_nanos(picoseconds.div_ceil(1_000))
}

#[test]
fn slowing_down_takes_effect_with_the_next_cycle_and_speeding_up_when_the_voltage_is_there() {
    let (world, endpoints) = place(1);
    assert_eq!(world.divider(A), Some(3));
    endpoints[0].work(&Work::new().cycles(1_000), Location::caller());
    assert_eq!(now(&world), 1_000 * period(3));
    let change = world.shift_supply(A, 8).unwrap().unwrap();
    let asked = 1_000 * period(3);
    assert_eq!(change, ClockChange { start: nanoseconds(asked), end: nanoseconds(asked + TRANSITION) });
    assert_eq!((world.divider(A), now(&world)), (Some(8), asked), "a register, nothing more");
    endpoints[0].work(&Work::new().cycles(1_000), Location::caller());
    assert_eq!(now(&world), asked + 1_000 * period(8));
    world.await_supply(A);
    assert_eq!(now(&world), asked + TRANSITION);

    world.shift_supply(A, 2).unwrap().unwrap();
    // The core keeps its old rate until the voltage is reached; the current cycle keeps its length.
    let (start, cycles) = (now(&world), 10_000_000);
    endpoints[0].work(&Work::new().cycles(cycles), Location::caller());
    let slow = TRANSITION.div_ceil(period(8));
    assert_eq!(now(&world), start + slow * period(8) + (cycles - slow) * period(2));
    assert_eq!(world.divider(A), Some(2));
}

#[test]
fn a_core_draws_by_the_rate_and_voltage_of_each_stretch() {
    let (world, endpoints) = place(1);
    endpoints[0].work(&Work::new().cycles(2_000), Location::caller());
    world.shift_supply(A, 8).unwrap();
    endpoints[0].work(&Work::new().cycles(20_000_000), Location::caller());
    let (chip, report) = (scc(), world.report());
    let energy = report.energy.unwrap();
    let own = &energy.models[0];
    let power = chip.power_model("manyman").unwrap();
    let rate = |divider| chip.dividers().unwrap().rate(divider).unwrap();
    let volts = |divider| chip.voltage_table("manyman").unwrap().voltage(rate(divider)).unwrap();
    let point = |divider: u32, supply: u32| OperatingPoint { rate: rate(divider), voltage: volts(supply) };
    let first = 2_000 * period(3);
    let cut = TRANSITION.div_ceil(period(8)) * period(8); // the current cycle ends at the higher voltage
    let rest = 20_000_000 * period(8) - cut;
    let energy_over = |point, time| power.core(Load::Compute, point).over(Picoseconds(time));
    let expected =
        energy_over(point(3, 3), first) + energy_over(point(8, 3), cut) + energy_over(point(8, 8), rest);
    assert_eq!(own.core(0), expected);
    // The other core of the tile has no place; it is halted and changes at exactly the same times.
    let halted = |point, time| power.core(Load::Sleep, point).over(Picoseconds(time));
    let rest = energy.span.0 - first - TRANSITION;
    let expected = halted(point(3, 3), first) + halted(point(8, 3), TRANSITION) + halted(point(8, 8), rest);
    assert_eq!(own.core(1), expected);
    // A core of another domain does not change.
    assert_eq!(own.core(47), halted(point(3, 3), energy.span.0));
    let windows: Attojoules = energy.profile.windows().flat_map(|(_, _, sums)| sums.to_vec()).sum();
    assert_eq!(windows, own.total());
}

#[test]
fn only_the_first_place_of_a_supply_may_ask_and_all_its_cores_change() {
    let (world, endpoints) = place(16);
    assert_eq!(world.shift_supply(B, 8), Ok(None));
    assert_eq!(world.divider(B), Some(3));
    world.shift_supply(A, 8).unwrap().unwrap();
    // The first voltage domain of the SCC: cores 0 to 3 and 12 to 15.
    for place in (0..16).map(PlaceId) {
        endpoints[place.index()].work(&Work::new().cycles(1_000), Location::caller());
        let slow = place.0 < 4 || place.0 >= 12;
        assert_eq!(world.divider(place), Some(if slow { 8 } else { 3 }), "{place}");
        let time = world.report().ledgers[place.index()].total().0;
        assert_eq!(time, 1_000 * period(if slow { 8 } else { 3 }), "{place}");
    }
}

#[test]
fn the_controller_serves_one_supply_at_a_time_and_whoever_asks_waits_for_it() {
    let (world, _endpoints) = place(8);
    world.shift_supply(A, 8).unwrap().unwrap();
    let until = nanoseconds(TRANSITION);
    assert_eq!(world.shift_supply(A, 3), Err(ClockError::UnderWay { until }));
    let other = PlaceId(4);
    let change = world.shift_supply(other, 8).unwrap().unwrap();
    assert_eq!((change.start, change.end), (until, nanoseconds(2 * TRANSITION)));
    assert_eq!(world.now(other), until, "the second write waits until the first is done");
    assert_eq!(world.divider(other), Some(8), "the divider did not");
}

#[test]
fn a_tile_may_be_slower_than_its_supply_carries_and_not_faster() {
    let (world, endpoints) = place(3);
    world.divide_tile(B, 16).unwrap().unwrap();
    endpoints[0].work(&Work::new().cycles(100), Location::caller());
    assert_eq!(now(&world), 100 * period(16), "the other core of the tile");
    assert_eq!(world.divider(PlaceId(2)), Some(3), "a core of the next tile");
    assert_eq!(world.divide_tile(B, 2), Err(ClockError::VoltageTooLow { divider: 2 }));
    for asked in [0, 1, 17] {
        let refused = world.shift_supply(A, asked);
        assert_eq!(refused, Err(ClockError::Divider { asked, least: 2, most: 16 }));
    }
    let text = world.shift_supply(A, 17).unwrap_err().to_string();
    assert_eq!(text, "the divider is 17; allowed: a whole number from 2 to 16");
}

#[test]
fn a_core_that_has_run_ahead_changes_when_it_is_done() {
    let (world, endpoints) = place(2);
    endpoints[1].work(&Work::new().cycles(1_000_000), Location::caller());
    world.shift_supply(A, 16).unwrap();
    let ahead = world.report().ledgers[1].total().0;
    assert_eq!(ahead, 1_000_000 * period(3));
    endpoints[1].work(&Work::new().cycles(10), Location::caller());
    assert_eq!(world.report().ledgers[1].total().0, ahead + 10 * period(16));
}

/// Sends a message from the first to the second place after a pause, when both have the divider. Returns the difference
/// of their final times, in picoseconds, and the digest of the run.
fn receipt(divider: u32) -> (u64, String) {
    let (world, endpoints) = place(2);
    let mut sent = false;
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        if place == A && !sent {
            world.divide_tile(A, divider).unwrap();
            endpoint.work(&Work::new().cycles(1_000_000), Location::caller());
            endpoint.send(B, Class::Data, HandlerId(1), 16, &mut |_| Some(16)).unwrap();
            sent = true;
        }
        endpoint.progress(Inbound::All, &mut |_| ());
        world.end_turn(place, TurnOutcome::Idle { due: None });
    }
    let report = world.report();
    let [sender, receiver] = [0, 1].map(|place| report.ledgers[place].total().0);
    assert!(receiver > sender, "{report}");
    (receiver - sender, report.digest.to_string())
}

#[test]
fn a_place_that_waits_polls_and_receives_at_its_own_rate() {
    let (fast, slow) = (receipt(3), receipt(12));
    assert!(slow.0 > 2 * fast.0, "{slow:?}, {fast:?}");
    assert_ne!(fast.1, slow.1, "the digest sees it");
    assert_eq!(slow, receipt(12));
}

#[test]
fn a_place_that_waits_begins_its_polls_anew_when_its_rate_changes() {
    let (world, endpoints) = place(2);
    let mut turns = 0;
    let (mut changed, mut parked) = (0, 0);
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        endpoint.progress(Inbound::All, &mut |_| ());
        let mut turn = TurnOutcome::Idle { due: None };
        if place == A {
            turns += 1;
            endpoint.work(&Work::new().cycles(1_000), Location::caller());
            if turns == 2 {
                world.divide_tile(A, 12).unwrap();
                changed = now(&world);
                endpoint.work(&Work::new().cycles(12_345), Location::caller());
                endpoint.send(B, Class::Data, HandlerId(1), 16, &mut |_| Some(16)).unwrap();
            } else if turns == 1 {
                turn = TurnOutcome::Busy;
            }
        } else if parked == 0 {
            parked = world.report().ledgers[1].total().0;
        }
        world.end_turn(place, turn);
    }
    assert!(0 < parked && parked < changed, "it waits when its rate changes");
    let waited = world.report().ledgers[1].time(TimeCategory::Waiting).0;
    // A poll, of one line and 60 cycles, at a quarter of the rate.
    let poll = 4 * (105_000 + 60 * period(3));
    assert_eq!((parked + waited - changed) % poll, 0, "{parked} {waited} {changed}");
}

#[test]
fn a_trace_counts_rates_and_voltages_and_shows_what_the_controller_does() {
    let (world, endpoints) = place(5);
    let sink = Sink::default();
    world.trace("a run", Box::new(sink.clone())).unwrap();
    world.shift_supply(A, 8).unwrap();
    endpoints[0].work(&Work::new().cycles(1_000_000_000), Location::caller());
    world.shift_supply(A, 2).unwrap();
    world.await_supply(A);
    world.end_trace().unwrap();
    let packets = crate::protobuf::packets(&sink.0.lock().unwrap());
    let track = |name: &str| {
        let tracks = packets.iter().filter_map(|packet| packet.track.as_ref());
        tracks.filter(|track| track.name.starts_with(name)).map(|track| track.uuid).next().expect("a track")
    };
    let events = |name: &str| -> Vec<(u64, &crate::protobuf::Event)> {
        let track = track(name);
        let events = packets.iter().filter_map(|packet| Some((packet.time?, packet.event.as_ref()?)));
        events.filter(|(_, event)| event.track == track).collect()
    };
    let values = |name: &str| -> Vec<(u64, f64)> {
        events(name).into_iter().map(|(time, event)| (time, event.value.unwrap())).collect()
    };
    let second = 1_000_000_000 * period(8);
    let megahertz = |divider| Rate::new(1_600_000_000, divider).unwrap().megahertz();
    let expected = [(0, megahertz(3)), (0, megahertz(8)), (second + TRANSITION, megahertz(2))];
    assert_eq!(values("rate of frequency domain 1"), expected);
    assert_eq!(values("rate of frequency domain 2"), [(0, megahertz(3))]);
    let expected = [(0, 0.85625), (TRANSITION, 0.65625), (second, 1.1625)];
    assert_eq!(values("voltage of voltage domain 0"), expected);
    assert_eq!(values("voltage of voltage domain 1"), [(0, 0.85625)]);
    let spans = events("voltage controller");
    let times: Vec<(u64, u64)> = spans.iter().map(|(time, event)| (*time, event.kind)).collect();
    assert_eq!(times, [(0, 1), (TRANSITION, 2), (second, 1), (second + TRANSITION, 2)]);
    let notes = &spans[2].1.notes;
    assert_eq!((notes["domain"], notes["from_mv"], notes["to_mv"]), (0, 656, 1162));
    assert_eq!(spans[0].1.name.as_deref(), Some("voltage change"));
}

/// Runs twelve places under a governor. Place A works, and the others wait for a message that arrives at the end.
fn uneven(policy: Policy) -> (ChipWorld, Report) {
    uneven_after(policy, 0)
}

/// As [`uneven`], but the last place first works `early` times, too.
fn uneven_after(policy: Policy, mut early: u32) -> (ChipWorld, Report) {
    let (world, endpoints) = place(12);
    world.govern(policy).unwrap();
    let mut left = 120;
    let mut printed = false;
    while let Some(place) = world.next() {
        let endpoint = &endpoints[place.index()];
        endpoint.progress(Inbound::All, &mut |_| ());
        let turn = if place == A && left > 0 {
            endpoint.work(&Work::new().cycles(1_000_000), Location::caller());
            left -= 1;
            TurnOutcome::Busy
        } else if place == PlaceId(11) && early > 0 {
            endpoint.work(&Work::new().cycles(1_000_000), Location::caller());
            early -= 1;
            // After the last time it does not even poll, so its clock stays at the end of its work.
            if early > 0 { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } }
        } else {
            if place == A && !printed {
                endpoint.send(PlaceId(11), Class::Data, HandlerId(1), 16, &mut |_| Some(16)).unwrap();
                printed = true;
            }
            TurnOutcome::Idle { due: None }
        };
        world.end_turn(place, turn);
    }
    let report = world.report();
    assert_eq!(report.messages, 1);
    (world, report)
}

fn joules(report: &Report) -> f64 {
    report.energy.as_ref().unwrap().models[0].total().joules()
}

#[test]
fn fixed_with_a_divider_starts_so_and_halts_what_has_no_place() {
    let (world, report) = uneven(Policy::FixedAt(8));
    assert_eq!((world.divider(A), report.shifts), (Some(8), GearChanges::default()));
    assert!(report.time.0 >= 120_000_000 * period(8));
    let (chip, energy) = (scc(), report.energy.unwrap());
    let slowest = chip.dividers().unwrap().rate(16).unwrap();
    let point = chip.voltage_table("manyman").unwrap().operating_point(slowest).unwrap();
    let halted = chip.power_model("manyman").unwrap().core(Load::Sleep, point).over(energy.span);
    assert_eq!(energy.models[0].core(47), halted);
}

#[test]
fn on_demand_slows_down_who_waits_and_not_who_works() {
    let (fixed, governed) = (uneven(Policy::FixedAt(3)).1, uneven(Policy::OnDemand));
    let (world, report) = governed;
    assert_eq!((world.divider(A), world.divider(PlaceId(11))), (Some(3), Some(16)));
    assert_eq!(report.ledgers[0].time(TimeCategory::Working), fixed.ledgers[0].time(TimeCategory::Working));
    assert!(joules(&report) < 0.9 * joules(&fixed), "{} {}", joules(&report), joules(&fixed));
    assert!(report.shifts.voltages >= 2, "{report}");
}

#[test]
fn on_demand_slows_down_who_has_worked_and_waits_now() {
    let (world, report) = uneven_after(Policy::OnDemand, 20);
    assert_eq!(world.divider(PlaceId(11)), Some(16), "{report}");
}

#[test]
fn a_place_may_change_its_clocks_under_a_governor_that_keeps_no_cap() {
    let (world, _endpoints) = place(12);
    world.govern(Policy::OnDemand).unwrap();
    assert!(world.divide_tile(A, 16).unwrap().is_some());
    assert_eq!(world.divider(A), Some(16));
}

#[test]
fn what_is_drawn_before_a_change_lies_in_the_windows_before_it() {
    let energy = uneven(Policy::Capped("27W".parse().unwrap())).1.energy.unwrap();
    // The third domain waits at its first rate, then at the slowest, so its power only falls.
    let powers: Vec<u64> =
        energy.profile.windows().map(|(_, length, sums)| sums[2].mean_over(length).0).collect();
    assert!(5 * powers[0] > 6 * powers[powers.len() - 2], "{powers:?}");
    assert!(powers.windows(2).all(|pair| pair[1] <= pair[0] + pair[0] / 100), "{powers:?}");
}

#[test]
fn phase_aware_divides_the_clocks_of_who_waits_before_it_lowers_voltages() {
    let (world, report) = uneven(Policy::PhaseAware);
    assert_eq!((world.divider(A), world.divider(PlaceId(11))), (Some(3), Some(16)));
    assert!(report.shifts.rates > 0 && report.shifts.voltages >= 1, "{report}");
    assert!(joules(&report) < joules(&uneven(Policy::FixedAt(3)).1));
}

#[test]
fn a_capped_chip_never_draws_more_and_gives_what_others_leave_to_who_works() {
    let cap = "27W".parse().unwrap();
    let (world, report) = uneven(Policy::Capped(cap));
    let energy = report.energy.as_ref().unwrap();
    assert!(energy.profile.peak().power <= cap, "{report}");
    let mut start = place(12).0;
    start.govern(Policy::Capped(cap)).unwrap();
    assert!(world.divider(A) < start.divider(A), "{:?} {:?}", world.divider(A), start.divider(A));
    start = place(12).0;
    let refused = start.govern(Policy::Capped("10W".parse().unwrap())).unwrap_err();
    assert!(refused.to_string().starts_with("at least "), "{refused}");
}

#[test]
fn a_program_that_asks_for_the_fastest_clocks_does_not_break_a_cap() {
    let peak = |policy: Option<Policy>| {
        let (world, endpoints) = place(12);
        policy.into_iter().for_each(|policy| world.govern(policy).unwrap());
        for _ in 0..240 {
            let place = world.next().unwrap();
            let asked = [world.shift_supply(place, 2), world.divide_tile(place, 2)];
            assert!(policy.is_none() || asked == [Ok(None), Ok(None)], "{asked:?}");
            assert!(world.shift_supply(place, 1).is_err() && world.divide_tile(place, 1).is_err());
            endpoints[place.index()].work(&Work::new().cycles(1_000_000), Location::caller());
            world.end_turn(place, TurnOutcome::Busy);
        }
        world.report().energy.unwrap().profile.peak().power
    };
    let cap = "27W".parse().unwrap();
    assert!(peak(Some(Policy::Capped(cap))) <= cap);
    assert!(peak(None) > cap);
}

#[test]
fn a_governed_run_repeats_and_its_digest_sees_the_governor() {
    let digest = |policy| uneven(policy).1.digest.to_string();
    let policies = [Policy::FixedAt(3), Policy::OnDemand, Policy::PhaseAware];
    let digests = policies.map(digest);
    assert_eq!(digests, policies.map(digest));
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
}

#[test]
fn a_voltage_is_set_by_hand_as_far_as_it_carries_the_clocks() {
    let (world, endpoints) = place(2);
    let volts = |microvolts| world.set_supply_voltage(A, Microvolts(microvolts));
    let voltage = || world.operating_point(A).1;
    assert_eq!(voltage(), Some(Microvolts(856_250)), "what 533 MHz need");
    assert_eq!(volts(700_000), Err(ClockError::ClocksTooFast { asked: Microvolts(700_000) }));
    let text = volts(2_000_000).unwrap_err().to_string();
    assert_eq!(text, "the voltage is 2 V; allowed: from 0.65625 V to 1.1625 V");
    assert_eq!(world.set_supply_voltage(B, Microvolts(1_162_500)), Ok(None), "another asks for this supply");
    let change = volts(1_000_000).unwrap().unwrap();
    assert_eq!(change, ClockChange { start: Duration::ZERO, end: nanoseconds(TRANSITION) });
    assert_eq!(voltage(), Some(Microvolts(1_162_500)), "the lowest step that is not below");
    world.await_supply(A);
    let before = joules(&world.report());
    assert!(world.divide_tile(A, 2).unwrap().is_some(), "which carries the fastest clock");
    endpoints[0].work(&Work::new().cycles(1_000_000), Location::caller());
    assert!(joules(&world.report()) > before);
    assert_eq!(volts(856_250), Err(ClockError::ClocksTooFast { asked: Microvolts(856_250) }));
}

#[test]
fn a_cap_is_put_on_a_run_under_way_and_taken_off() {
    let (world, endpoints) = place(12);
    let work = |turns: u32| {
        for _ in 0..turns {
            let place = world.next().unwrap();
            endpoints[place.index()].work(&Work::new().cycles(1_000_000), Location::caller());
            world.end_turn(place, TurnOutcome::Busy);
        }
    };
    let joule_and_time = || (joules(&world.report()), world.report().time.0 as f64 / 1e12);
    work(120);
    assert!(world.shift_supply(A, 2).unwrap().is_some());
    let under_way = world.change_governor(A, Policy::OnDemand);
    assert!(matches!(under_way, Err(ClockError::UnderWay { .. })), "{under_way:?}");
    work(480);
    let cap = |watts: &str| Policy::Capped(watts.parse().unwrap());
    let refused = world.change_governor(A, cap("10W")).unwrap_err().to_string();
    assert!(refused.starts_with("the governor does not suit this run; allowed: at least "), "{refused}");
    assert_eq!(world.policy(), Policy::Fixed);
    world.change_governor(A, cap("27W")).unwrap();
    assert_eq!(world.policy(), cap("27W"));
    assert_eq!(world.shift_supply(A, 2), Ok(None), "clocks are the governor's");
    // Until all six domains have reached their voltages, one after the other.
    work(600);
    let (before, start) = joule_and_time();
    work(600);
    let (after, end) = joule_and_time();
    assert!((after - before) / (end - start) <= 27.0, "{} W", (after - before) / (end - start));
    world.await_supply(A);
    world.change_governor(A, Policy::Fixed).unwrap();
    assert!(world.shift_supply(A, 2).unwrap().is_some());
}

#[test]
fn a_governor_of_one_supply_leaves_the_others_as_they_are() {
    let (world, endpoints) = place(12);
    let work = |turns: u32| {
        for _ in 0..turns {
            let place = world.next().unwrap();
            endpoints[place.index()].work(&Work::new().cycles(1_000_000), Location::caller());
            world.end_turn(place, TurnOutcome::Busy);
        }
    };
    let cap = |watts: &str| Policy::Capped(watts.parse().unwrap());
    let other = (0..12).map(PlaceId).find(|other| world.supply(*other) != world.supply(A)).unwrap();
    let rates = || [A, other].map(|place| world.divider(place).unwrap());
    work(120);
    // Eight cores with all clocks at their slowest may draw more; the rest of the chip adds 20 W.
    let refused = world.change_supply_governor(A, cap("500mW")).unwrap_err().to_string();
    assert!(refused.starts_with("the governor does not suit this run; allowed: at least "), "{refused}");
    let before = rates();
    world.change_supply_governor(A, cap("3W")).unwrap();
    assert_eq!([A, other].map(|place| world.supply_policy(place)), [cap("3W"), Policy::Fixed]);
    assert_eq!(world.policy(), Policy::Fixed, "that of the chip");
    work(600);
    let now = rates();
    assert!(now[0] > before[0] && now[1] == before[1], "{before:?} {now:?}");
    assert_eq!(world.shift_supply(A, 2), Ok(None), "clocks are the governor's");
    assert!(world.shift_supply(other, 2).unwrap().is_some(), "these are not");
    world.change_supply_governor(A, Policy::OnDemand).unwrap();
    work(600);
    assert!(rates()[0] < now[0], "a busy supply is fast without the cap");
    // A governor of the whole chip replaces it, and excludes governors of single supplies.
    world.await_supply(A);
    world.await_supply(other);
    world.change_governor(A, cap("60W")).unwrap();
    assert_eq!([A, other].map(|place| world.supply_policy(place)), [cap("60W"); 2]);
    let refused = world.change_supply_governor(A, Policy::OnDemand);
    assert_eq!(refused, Err(ClockError::ChipGoverned { policy: cap("60W") }));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the governor capped:60W is set for the whole chip; set fixed for the chip first"
    );
}
