//! Tests of the policies: their invariants, and the purpose of each.

use super::phase::{Phase, PhaseHistory};
use super::*;
use crate::Chip;
use proptest::prelude::*;

/// Returns the context of the SCC with places on its first cores.
fn context(places: u32) -> GovernorContext {
    let chip = Chip::find("scc").unwrap_or_else(|error| panic!("{error}"));
    let model = chip.power_models().first().unwrap();
    let gears = Gears::of(&chip, Some(model));
    let mut cores = vec![[0, 0]; 6];
    for core in 0..48 {
        let tile = core / 2;
        let domain = (tile % 6 / 2 + tile / 12 * 3) as usize;
        cores[domain][usize::from(core >= places)] += 1;
    }
    GovernorContext {
        table: Some(PowerTable::new(&chip, model, &gears)),
        constant: model.constant(),
        gears,
        cores,
    }
}

fn governor(policy: Policy, places: u32) -> (Governor, Vec<GearId>) {
    Governor::new(policy, context(places)).unwrap_or_else(|error| panic!("{error}"))
}

fn watts(power: f64) -> Policy {
    Policy::Capped(Microwatts((power * 1e6) as u64))
}

/// Returns the observation of a domain that is busy, and computes, for `busy` thousandths of the time.
fn busy(busy: u32) -> Observation {
    Observation { busy, computing: busy, moving: 0, settled: true }
}

#[test]
fn policies_are_read_as_they_are_written() {
    for text in ["fixed", "fixed:4", "on-demand", "phase-aware", "capped:60W", "capped:37.5W"] {
        assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
    }
    assert_eq!("capped:60 W".parse(), Ok(watts(60.0)));
    for text in ["", "ondemand", "fixed:", "fixed:x", "capped"] {
        assert_eq!(text.parse::<Policy>(), Err(POLICIES), "{text}");
    }
    for text in ["capped:60", "capped:-1W", "capped:60V"] {
        assert_eq!(text.parse::<Policy>(), Err(CAPS), "{text}");
    }
}

#[test]
fn fixed_starts_where_it_is_told_and_never_moves() {
    let (mut fixed, start) = governor(Policy::FixedAt(4), 8);
    // Eight places: cores 0 to 7, in the voltage domains 0 and 1.
    assert_eq!(start, [2, 2, 14, 14, 14, 14].map(GearId));
    assert_eq!(fixed.decide(&[busy(1_000); 6]), []);
    assert!(governor(Policy::Fixed, 8).1.is_empty(), "as the chip starts");
    let refused = Governor::new(Policy::FixedAt(1), context(8)).err();
    assert_eq!(refused, Some(GovernorError::Divider { least: 2, most: 16 }));
}

#[test]
fn a_chip_that_cannot_do_it_is_refused() {
    let bluegene = Chip::find("bluegene-p").unwrap_or_else(|error| panic!("{error}"));
    let gears = Gears::of(&bluegene, None);
    let fixed = GovernorContext { gears, table: None, constant: Microwatts(0), cores: vec![[1, 0]] };
    assert_eq!(Governor::new(Policy::OnDemand, fixed).err(), Some(GovernorError::Clocks));
    let unknown = GovernorContext { table: None, ..context(8) };
    assert_eq!(Governor::new(watts(60.0), unknown).err(), Some(GovernorError::Power));
    let refused = Governor::new(watts(5.0), context(48)).err();
    let Some(GovernorError::Cap { least, places: 48 }) = refused else { panic!("{refused:?}") };
    let alone = Governor::new(watts(5.0), context(1)).err().map(|error| error.to_string());
    assert!(alone.is_some_and(|line| line.contains(" W, the most that 1 place can draw with all clocks at")));
    assert!((20.0..24.0).contains(&least.watts()), "{least}");
    // The limit in the text is rounded up, by less than 0.01 W, so that it is itself allowed.
    let text = refused.unwrap().to_string();
    let said: f64 = text.trim_start_matches("at least ").split(' ').next().unwrap().parse().unwrap();
    assert!((0.0..0.01).contains(&(said - least.watts())), "{text}");
    assert!(Governor::new(Policy::Capped(least), context(48)).is_ok());
    assert!(Governor::new(Policy::Capped(Microwatts(least.0 - 1)), context(48)).is_err());
}

#[test]
fn on_demand_follows_the_busiest_core() {
    let (mut governor, start) = governor(Policy::OnDemand, 48);
    assert_eq!(start, [GearId(1); 6]);
    let seen =
        [busy(1_000), busy(700), busy(300), busy(0), busy(800), Observation { settled: false, ..busy(0) }];
    let orders = governor.decide(&seen);
    let shift = |domain, gear| Order::Shift { domain, gear: GearId(gear) };
    // A load of 0.3 at 533 MHz needs 0.3 / 0.6 of it, 266.7 MHz; an idle domain gets 100 MHz.
    assert_eq!(orders, [shift(2, 4), shift(3, 14)]);
    assert_eq!(governor.decide(&[busy(900); 6]), [shift(2, 1), shift(3, 1)]);
}

#[test]
fn on_demand_gives_the_full_rate_from_four_fifths_of_load_on_and_below_it_what_is_needed() {
    for (first, second, load, gear) in [(300, 4, 800, 1), (300, 4, 799, 2), (301, 3, 350, 6)] {
        let (mut governor, _) = governor(Policy::OnDemand, 8);
        let shift = |gear| [0, 1].map(|domain| Order::Shift { domain, gear: GearId(gear) });
        assert_eq!(governor.decide(&[busy(first); 6]), shift(second), "to three fifths of load");
        // A load of 0.799 at 266.7 MHz needs 0.799 / 0.6 of it, 355 MHz; the next available rate is 400 MHz.
        assert_eq!(governor.decide(&[busy(load); 6]), shift(gear), "{load}");
    }
}

#[test]
fn a_cap_takes_a_grant_back_after_twenty_rests_in_a_row_and_gives_more_from_half_of_load_on() {
    let (mut governor, _) = governor(watts(40.0), 48);
    let mut ask =
        |load, times| (0..times).flat_map(|_| governor.decide(&[busy(load); 6])).collect::<Vec<_>>();
    let shift = |gear| (0..6).map(|domain| Order::Shift { domain, gear: GearId(gear) }).collect::<Vec<_>>();
    assert_eq!(ask(100, 30), [], "a tenth of load is no rest");
    assert_eq!((ask(99, 19), ask(100, 1), ask(99, 19)), (vec![], vec![], vec![]));
    assert_eq!(ask(99, 1), shift(14));
    assert_eq!(ask(499, 30), []);
    assert_eq!(ask(500, 1), shift(13));
}

#[test]
fn a_domain_that_works_gets_a_gear_more_if_that_fits_to_the_microwatt() {
    let context = context(48);
    let worst = |(domain, gear)| context.worst(domain, GearId(gear), context.gears.gear(GearId(gear)).step);
    let first_faster: Microwatts =
        (0..).zip([1, 2, 2, 2, 2, 2]).map(worst).sum::<Microwatts>() + context.constant;
    let shift = Order::Shift { domain: 0, gear: GearId(1) };
    for (less, expected) in [(0, vec![shift]), (1, vec![])] {
        let (mut governor, start) = governor(Policy::Capped(Microwatts(first_faster.0 - less)), 48);
        assert_eq!(start, [GearId(2); 6]);
        let mut seen = [busy(300); 6];
        seen[0] = busy(1_000);
        assert_eq!(governor.decide(&seen), expected, "{less} µW less");
    }
}

#[test]
fn a_cap_gives_what_resting_domains_leave_to_those_that_work() {
    let (mut governor, start) = governor(watts(40.0), 48);
    assert_eq!(start, [GearId(2); 6], "400 MHz for all: 34.7 W");
    let seen = [busy(1_000), busy(1_000), busy(0), busy(0), busy(0), busy(0)];
    let mut gears = start;
    for _ in 0..100 {
        for order in governor.decide(&seen) {
            let Order::Shift { domain, gear } = order else { panic!("{order:?}") };
            gears[domain] = gear;
        }
    }
    assert_eq!(gears[2..], [GearId(14); 4]);
    assert!(gears[..2].iter().all(|gear| *gear < GearId(2)), "{gears:?}");
}

#[test]
fn a_course_that_repeats_is_predicted() {
    use Phase::{Compute, Move, Rest};
    let round = [Compute, Compute, Move, Rest, Rest];
    let mut history = PhaseHistory::default();
    let phases: Vec<Phase> = round.into_iter().cycle().take(60).collect();
    let predicted: Vec<Phase> = phases.iter().map(|phase| history.next(*phase)).collect();
    // After the first rounds, each prediction is right.
    assert_eq!(predicted[15..59], phases[16..60]);
    assert_eq!(PhaseHistory::default().next(Rest), Rest, "new: more of the same");
}

#[test]
fn a_course_is_predicted_by_its_last_four_phases_and_by_no_more() {
    use Phase::{Compute, Move};
    for (computing, last) in [(4, Move), (5, Compute)] {
        let mut history = PhaseHistory::default();
        let round = || vec![Compute; computing].into_iter().chain([Move]);
        (0..10).flat_map(|_| round()).for_each(|phase| _ = history.next(phase));
        let predicted: Vec<Phase> = round().take(computing).map(|phase| history.next(phase)).collect();
        assert_eq!(predicted.last(), Some(&last), "after {computing}");
    }
}

#[test]
fn the_most_that_a_domain_can_draw_counts_cores_without_a_place_as_halted() {
    let (context, gear) = (context(1), GearId(1));
    let step = context.gears.gear(gear).step;
    let core = |load| context.table.as_ref().unwrap().power(load, gear, step).0;
    assert!(core(Load::Sleep) < core(Load::Compute));
    assert_eq!(context.worst(0, gear, step).0, core(Load::Compute) + 7 * core(Load::Sleep));
    assert_eq!(context.worst(1, gear, step).0, 8 * core(Load::Sleep));
}

#[test]
fn phases_divide_clocks_and_only_long_rest_lowers_the_voltage() {
    let (mut governor, _) = governor(Policy::PhaseAware, 8);
    let moving = Observation { busy: 900, computing: 100, moving: 700, settled: true };
    let mut ask = |seen| {
        governor.decide(&[seen; 6]).into_iter().filter(|order| *order.domain() == 0).collect::<Vec<_>>()
    };
    let divide = |gear| vec![Order::Divide { domain: 0, gear: GearId(gear) }];
    let shift = |gear| vec![Order::Shift { domain: 0, gear: GearId(gear) }];
    assert_eq!(ask(busy(1_000)), []);
    assert_eq!(ask(moving), divide(4), "at least half of 533 MHz: 266.7 MHz");
    assert_eq!(ask(busy(1_000)), divide(1));
    assert_eq!(ask(busy(0)), divide(14));
    let later: Vec<Order> = (0..100).flat_map(|_| ask(busy(0))).collect();
    assert_eq!(later, shift(14));
    assert_eq!(ask(busy(1_000)), shift(1));
}

#[test]
fn a_domain_that_moves_as_much_as_it_computes_keeps_the_full_rate() {
    let (mut governor, _) = governor(Policy::PhaseAware, 1);
    let seen = |moving| Observation { busy: 900, computing: 400, moving, settled: true };
    assert_eq!(governor.decide(&[seen(400); 6]), []);
    assert_eq!(governor.decide(&[seen(401); 6]), [Order::Divide { domain: 0, gear: GearId(4) }]);
}

#[test]
fn the_voltage_is_lowered_in_the_fiftieth_interval_of_rest() {
    let (mut governor, _) = governor(Policy::PhaseAware, 1);
    let mut ask = |load| governor.decide(&[busy(load); 6]);
    let gear = GearId(14);
    assert_eq!(ask(50), [], "a twentieth of load is no rest");
    assert_eq!(ask(49), [Order::Divide { domain: 0, gear }]);
    assert!((2..50).all(|_| ask(49).is_empty()));
    assert_eq!(ask(49), [Order::Shift { domain: 0, gear }]);
}

impl Order {
    fn domain(&self) -> &usize {
        match self {
            Order::Shift { domain, .. } | Order::Divide { domain, .. } => domain,
        }
    }
}

fn observations() -> impl Strategy<Value = Vec<Vec<Observation>>> {
    let shares = (0..=1000u32, 0..=1000u32, 0..=1000u32, any::<bool>());
    let one = shares.prop_map(|(busy, computing, moving, settled)| Observation {
        busy,
        computing,
        moving,
        settled,
    });
    prop::collection::vec(prop::collection::vec(one, 6), 1..120)
}

/// Rounds in which some domains are mostly idle and the others mostly busy, so that the budget moves between them.
fn tempers() -> impl Strategy<Value = Vec<Vec<Observation>>> {
    let exceptions = prop::collection::vec((0..100u32, 0..100u32), 6 * 60);
    (prop::collection::vec(any::<bool>(), 6), exceptions).prop_map(|(rests, exceptions)| {
        let one = |(index, (change, settled)): (usize, &(u32, u32))| {
            let rests = rests[index % 6] != (*change < 2);
            Observation { settled: *settled < 90, ..busy(if rests { 0 } else { 1_000 }) }
        };
        let all: Vec<Observation> = exceptions.iter().enumerate().map(one).collect();
        all.chunks(6).map(<[Observation]>::to_vec).collect()
    })
}

proptest! {
    #[test]
    fn no_policy_names_what_is_not_there_or_moves_what_is_under_way(
        rounds in observations(), places in 1..=48u32, which in 0..3usize
    ) {
        let policy = [Policy::OnDemand, Policy::PhaseAware, watts(45.0)][which];
        let (mut governor, start) = governor(policy, places);
        prop_assert_eq!(start.len(), 6);
        let context = context(places);
        let (full, slowest) = (context.gears.first(), context.gears.slowest());
        for seen in rounds {
            let orders = governor.decide(&seen);
            let mut domains: Vec<usize> = orders.iter().map(|order| *order.domain()).collect();
            domains.dedup();
            prop_assert_eq!(domains.len(), orders.len(), "one order a domain");
            for order in orders {
                let (domain, gear) = match order {
                    Order::Shift { domain, gear } | Order::Divide { domain, gear } => (domain, gear),
                };
                prop_assert!(seen[domain].settled && context.has_places(domain));
                prop_assert!(gear <= slowest && (which == 2 || gear >= full));
            }
        }
    }

    #[test]
    fn what_a_cap_grants_is_never_above_it_and_covers_every_gear_that_may_be_set(
        rounds in prop_oneof![observations(), tempers()], places in 1..=48u32, cap in 23.0..110.0f64
    ) {
        let policy = watts(cap);
        let Policy::Capped(power) = policy else { unreachable!() };
        let (mut governor, mut gears) = governor(policy, places);
        let context = context(places);
        // Previous gear of each domain, which counts until the domain's last change is complete.
        let mut before = gears.clone();
        for seen in rounds {
            for (domain, seen) in seen.iter().enumerate().filter(|(_, seen)| seen.settled) {
                let _ = seen;
                before[domain] = gears[domain];
            }
            for order in governor.decide(&seen) {
                let Order::Shift { domain, gear } = order else { panic!("{order:?}") };
                gears[domain] = gear;
            }
            let worst = |domain: usize, gear: GearId| {
                context.worst(domain, gear, context.gears.gear(gear).step)
            };
            let cores: Microwatts =
                (0..6).map(|domain| worst(domain, gears[domain]).max(worst(domain, before[domain]))).sum();
            prop_assert!(cores + context.constant <= power, "{} above {power}", cores + context.constant);
        }
    }
}
