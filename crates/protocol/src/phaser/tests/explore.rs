//! All interleavings of small worlds, and random runs of larger ones: no phase ends early, none hangs, nothing is left.

use super::world::{Action, Mutant, Setting, Step, World};
use crate::tests::{explore, run};
use Step::*;
use proptest::prelude::*;

fn setting(places: u32, program: &[&[Step]], victims: &[u32], mutant: Mutant) -> Setting {
    let program = program.iter().map(|script| script.to_vec()).collect();
    Setting { places, program, victims: victims.into(), mutant }
}

#[track_caller]
fn holds(places: u32, program: &[&[Step]], victims: &[u32]) {
    let findings = explore(World::new(&setting(places, program, victims, Mutant::None)), 200_000);
    println!("{} states", findings.states);
    assert!(findings.failures.is_empty(), "{:#?}", findings.failures);
}

#[track_caller]
fn catches(places: u32, program: &[&[Step]], victims: &[u32], mutant: Mutant, failure: &str) {
    holds(places, program, victims);
    let findings = explore(World::new(&setting(places, program, victims, mutant)), 20_000);
    assert!(findings.failures.contains_key(failure), "{:#?}", findings.failures);
}

#[test]
fn a_phaser_of_one_place_holds() {
    holds(1, &[&[Spawn(1), Spawn(1), Advance, Advance], &[Advance, Resume, Advance]], &[]);
}

/// Two places in step.
const PAIR: &[&[Step]] = &[&[Send(1, 1), Advance, Advance], &[Advance, Advance, Advance]];

#[test]
fn a_pair_in_step_holds() {
    holds(2, PAIR, &[]);
}

#[test]
fn several_parties_a_place_hold() {
    holds(2, &[&[Send(1, 1), Spawn(2), Advance], &[Spawn(2), Advance, Resume], &[Advance]], &[]);
}

/// Registrations between third places, while others have signalled.
const CHAIN: &[&[Step]] =
    &[&[Send(1, 1), Advance, Advance], &[Send(2, 2), Advance], &[Send(1, 3), Resume], &[Advance]];

#[test]
fn registrations_between_third_places_hold() {
    holds(3, CHAIN, &[]);
}

#[test]
fn resuming_and_leaving_early_hold() {
    holds(
        3,
        &[&[Send(1, 1), Send(2, 2), Resume], &[Resume, Advance, Resume], &[Advance, Send(1, 3), Resume], &[]],
        &[],
    );
}

#[test]
fn tasks_dropped_while_they_wait_hold() {
    holds(3, &[&[Send(1, 1), Send(2, 2), Advance, GiveUp], &[GiveUp], &[Spawn(1), Advance, GiveUp]], &[]);
    holds(2, &[&[Send(1, 1), Advance, Advance], &[Spawn(2), GiveUp], &[Advance]], &[1]);
}

#[test]
fn misuse_and_failed_sends_hold() {
    holds(
        2,
        &[
            &[Send(1, 1), Resume, Spawn(2), Send(1, 2), Advance],
            &[FailToSend(0), Advance, Resume, Resume],
            &[],
        ],
        &[],
    );
}

#[test]
fn a_ticket_may_bring_the_phase() {
    holds(
        3,
        &[
            &[Send(1, 1), Send(2, 2), Advance],
            &[Advance, Send(2, 3), Advance],
            &[Advance, Advance],
            &[Advance],
        ],
        &[],
    );
}

#[test]
fn a_dead_place_lets_the_others_go_on() {
    holds(2, PAIR, &[1]);
    holds(3, CHAIN, &[1]);
    holds(3, CHAIN, &[2]);
}

#[test]
fn a_dead_home_wakes_everybody() {
    holds(2, PAIR, &[0]);
    holds(3, CHAIN, &[0]);
}

/// The victim sends a registration on before it dies; the home knows of neither.
const ORPHANS: &[&[Step]] =
    &[&[Send(1, 1), Advance], &[Send(2, 2), Advance], &[Spawn(3), Advance], &[Advance]];

#[test]
fn parties_sent_by_a_dead_place_are_waited_for() {
    holds(3, ORPHANS, &[1]);
    holds(3, ORPHANS, &[1, 2]);
}

#[test]
fn parties_that_a_dead_place_sent_home_are_waited_for() {
    holds(2, &[&[Send(1, 1)], &[Send(0, 2), Resume], &[Advance, Advance]], &[1]);
    holds(2, &[&[Send(1, 1), Spawn(2)], &[Spawn(2), Send(0, 2), Advance, Send(0, 2)], &[Advance]], &[1]);
}

#[test]
fn reports_without_sent_are_caught() {
    catches(3, CHAIN, &[], Mutant::IgnoreSent, "advanced while");
}

#[test]
fn hidden_parties_are_caught() {
    catches(2, PAIR, &[], Mutant::HideParty, "advanced while");
}

#[test]
fn lost_phases_are_caught() {
    catches(2, PAIR, &[], Mutant::LoseAdvance, "hangs: Task");
}

#[test]
fn orphans_that_are_not_asked_are_caught() {
    catches(3, ORPHANS, &[1], Mutant::SkipOrphans, "advanced while");
}

fn step(places: u32, script: usize, scripts: usize) -> impl Strategy<Value = Step> {
    let later = script + 1..scripts.max(script + 2);
    (0..14_u32, 0..places, later).prop_map(move |(choice, place, next)| match choice {
        0..2 if next < scripts => Step::Spawn(next),
        2..6 if next < scripts => Step::Send(place, next),
        6..8 => Step::Resume,
        8 => Step::FailToSend(place),
        9 => Step::GiveUp,
        _ => Step::Advance,
    })
}

fn settings() -> impl Strategy<Value = Setting> {
    (2..6_u32, 2..6_usize).prop_flat_map(|(places, scripts)| {
        let script = move |script| proptest::collection::vec(step(places, script, scripts), 1..6);
        let program: Vec<_> = (0..scripts).map(script).collect();
        let victims = prop_oneof![
            Just(vec![]),
            (0..places).prop_map(|victim| vec![victim]),
            (1..places, 1..places).prop_map(|(one, two)| if one == two { vec![one] } else { vec![one, two] }),
        ];
        (program, victims).prop_map(move |(program, victims)| Setting {
            places,
            program,
            victims,
            mutant: Mutant::None,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_random_program_in_random_order_holds(setting in settings(), seed: u64) {
        let verdict = run(World::new(&setting), seed, |action| matches!(action, Action::Kill(_)));
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}
