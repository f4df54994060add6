//! All interleavings of small worlds: no early release, no hang, nothing left behind.

use super::world::{Mutant, Setting, Step, World};
use crate::tests::explore;
use Step::*;

const LIMIT: usize = 200_000;

/// Number of questions that are asked immediately in most worlds, so that some others wait.
const PROMPT: u32 = 2;

fn setting(
    places: u32,
    program: &[&[Step]],
    victims: &[u32],
    mutant: Mutant,
    prompt_questions: u32,
) -> Setting {
    Setting {
        places,
        program: program.iter().map(|script| script.to_vec()).collect(),
        victims: victims.into(),
        mutant,
        prompt_questions,
    }
}

#[track_caller]
fn holds(places: u32, program: &[&[Step]], victims: &[u32]) {
    holds_with(places, program, victims, PROMPT);
}

#[track_caller]
fn holds_with(places: u32, program: &[&[Step]], victims: &[u32], prompt: u32) {
    let setting = setting(places, program, victims, Mutant::None, prompt);
    let findings = explore(World::new(&setting), LIMIT);
    println!("{} states", findings.states);
    assert!(findings.failures.is_empty(), "{:#?}", findings.failures);
}

#[track_caller]
fn catches(places: u32, program: &[&[Step]], victims: &[u32], mutant: Mutant, failure: &str) {
    holds(places, program, victims);
    let setting = setting(places, program, victims, mutant, PROMPT);
    let findings = explore(World::new(&setting), 20_000);
    assert!(findings.failures.contains_key(failure), "{:#?}", findings.failures);
}

#[test]
fn a_local_finish_holds() {
    holds(2, &[&[Spawn(1), Spawn(1)], &[Spawn(2)], &[]], &[]);
}

#[test]
fn one_remote_task_holds() {
    holds(2, &[&[Send(1, 1)], &[Spawn(2)], &[]], &[]);
}

#[test]
fn tasks_to_all_places_hold() {
    holds(4, &[&[Send(1, 1), Send(2, 1), Send(3, 1)], &[]], &[]);
}

#[test]
fn several_tasks_to_one_place_hold() {
    holds(2, &[&[Send(1, 1), Send(1, 1), Send(1, 1), Send(1, 1)], &[Spawn(2)], &[]], &[]);
}

/// A task chain that passes the same places twice: reports are stale when they arrive.
const CHAIN: &[&[Step]] =
    &[&[Send(1, 1), Send(2, 5)], &[Send(2, 2)], &[Send(1, 3)], &[Send(2, 4)], &[Send(0, 5)], &[]];

#[test]
fn a_chain_between_third_places_holds() {
    holds(3, CHAIN, &[]);
}

#[test]
fn a_tree_over_four_places_holds() {
    holds(4, &[&[Send(1, 1), Send(2, 2)], &[Send(2, 3), Send(3, 3)], &[Send(3, 3), Send(0, 3)], &[]], &[]);
}

#[test]
fn failing_tasks_and_failed_sends_hold() {
    holds(3, &[&[Send(1, 1), FailToSend(2), Send(2, 2)], &[FailToSend(2), Send(2, 2), Fail], &[Fail]], &[]);
}

#[test]
fn a_request_without_tasks_holds() {
    holds(3, &[&[At(1, 1), Send(2, 2)], &[], &[At(1, 1)]], &[]);
}

/// Requests whose bodies start tasks, here and elsewhere.
const VISITS: &[&[Step]] = &[&[Send(1, 1), At(2, 2)], &[At(2, 3)], &[Spawn(4)], &[Send(1, 4)], &[]];

#[test]
fn requests_that_start_tasks_hold() {
    holds(3, VISITS, &[]);
}

/// A request whose body makes a request whose body starts a task.
const NESTED: &[&[Step]] = &[&[At(1, 1)], &[At(2, 2)], &[Spawn(3), Send(1, 3)], &[]];

#[test]
fn nested_requests_hold() {
    holds(3, NESTED, &[]);
}

#[test]
fn nested_requests_back_to_the_home_hold() {
    holds(3, &[&[Send(2, 1)], &[At(1, 2)], &[At(0, 3)], &[Send(2, 4), At(1, 4)], &[]], &[]);
}

#[test]
fn cancellation_at_the_home_holds() {
    holds(3, &[&[Send(1, 1), Cancel], &[Send(2, 2), Spawn(3)], &[Send(1, 3)], &[]], &[]);
}

#[test]
fn cancellation_elsewhere_holds() {
    holds(3, &[&[Send(1, 1), Send(2, 2)], &[Send(2, 3), Cancel], &[Send(1, 3)], &[]], &[]);
}

/// A cancelled finish drops tasks that wait for replies.
const DROPPED: &[&[Step]] =
    &[&[Send(1, 1), Send(2, 4)], &[At(2, 2)], &[At(1, 3)], &[Spawn(5)], &[Cancel], &[]];

/// A visit that does not wait for the request that it makes.
const ABANDONED: &[&[Step]] = &[&[At(1, 1), Send(3, 3)], &[Abandon(2, 2)], &[Spawn(3)], &[]];

#[test]
fn abandoned_requests_hold() {
    holds(4, ABANDONED, &[]);
    holds(3, &[&[Abandon(1, 1), Send(2, 3)], &[At(2, 2), Abandon(2, 2)], &[Send(0, 3)], &[]], &[]);
}

#[test]
fn cancellation_of_waiting_tasks_holds() {
    holds(3, DROPPED, &[]);
}

#[test]
fn a_place_without_tasks_may_die() {
    holds(3, &[&[Send(1, 1)], &[Spawn(2)], &[]], &[2]);
}

#[test]
fn the_only_other_place_may_die() {
    holds(2, &[&[Send(1, 1), Spawn(2)], &[Send(0, 2)], &[Fail]], &[1]);
}

/// The victim sends a task on before it dies; the home may know of neither.
const ORPHANS: &[&[Step]] = &[&[Send(1, 1)], &[Send(2, 2)], &[Spawn(3)], &[]];

#[test]
fn orphans_of_a_dead_place_are_waited_for() {
    holds(3, ORPHANS, &[1]);
}

#[test]
fn orphans_of_a_place_unknown_to_the_home_are_waited_for() {
    holds(4, &[&[Send(1, 1)], &[Send(2, 2)], &[Send(3, 3)], &[Spawn(4)], &[]], &[2]);
}

#[test]
fn a_dead_place_between_stale_reports_holds() {
    holds(3, CHAIN, &[2]);
}

#[test]
fn requests_to_and_from_a_dead_place_hold() {
    holds(3, VISITS, &[1]);
    holds(3, VISITS, &[2]);
    holds(3, NESTED, &[1]);
    holds(3, NESTED, &[2]);
}

#[test]
fn cancellation_and_death_together_hold() {
    holds(3, &[&[Send(1, 1), Send(2, 2)], &[Send(2, 3)], &[Cancel], &[]], &[1]);
}

#[test]
fn the_tasks_of_a_dead_home_end_and_are_forgotten() {
    holds(3, &[&[Send(1, 1), Send(2, 3)], &[Send(2, 2), At(2, 2)], &[Spawn(3)], &[]], &[0]);
    holds(3, DROPPED, &[0]);
}

#[test]
fn nested_finishes_hold() {
    holds(2, &[&[Finish(1), Send(1, 3)], &[Send(1, 2)], &[Finish(3)], &[]], &[]);
    holds(3, &[&[Send(1, 1)], &[Finish(2)], &[Send(2, 3), Send(0, 3)], &[]], &[]);
}

#[test]
fn nested_finishes_survive_a_death() {
    holds(3, &[&[Send(1, 1)], &[Finish(2)], &[Send(2, 3)], &[Spawn(4)], &[]], &[0]);
    holds(3, &[&[Send(1, 1)], &[Finish(2)], &[Send(2, 3)], &[Spawn(4)], &[]], &[1]);
    holds(3, &[&[Send(1, 1)], &[Finish(2)], &[Send(2, 3)], &[Spawn(4)], &[]], &[2]);
}

#[test]
fn nested_finishes_are_cancelled_with_the_outer_one() {
    holds(2, &[&[Send(1, 1), Cancel], &[Finish(2)], &[Send(0, 3)], &[Spawn(4)], &[]], &[]);
}

#[test]
fn questions_that_wait_for_a_rest_are_asked() {
    holds_with(2, &[&[Send(1, 1), Send(1, 1), Send(1, 1)], &[Spawn(2)], &[]], &[], 1);
    holds_with(3, CHAIN, &[], 1);
    holds_with(3, VISITS, &[], 1);
    holds_with(3, ORPHANS, &[1], 1);
}

#[test]
fn two_deaths_hold() {
    holds(3, ORPHANS, &[0, 1]);
    holds(3, ORPHANS, &[1, 2]);
    holds(3, NESTED, &[1, 2]);
}

#[test]
fn requests_that_trust_the_dead_are_caught() {
    let visit_that_sends: &[&[Step]] = &[&[Send(1, 1)], &[At(2, 2)], &[Send(3, 3)], &[]];
    catches(4, visit_that_sends, &[2], Mutant::TrustTheDead, "released while");
}

#[test]
fn reports_without_sent_are_caught() {
    catches(3, CHAIN, &[], Mutant::IgnoreSent, "released while");
}

#[test]
fn reports_without_received_are_caught() {
    catches(2, &[&[Send(1, 1)], &[]], &[], Mutant::IgnoreReceived, "hangs: finish");
}

#[test]
fn lost_questions_are_caught() {
    catches(2, &[&[Send(1, 1), Send(1, 1)], &[]], &[], Mutant::LoseAsks, "hangs: finish");
}

#[test]
fn a_place_that_never_rests_is_caught() {
    let findings = explore(World::new(&setting(3, CHAIN, &[], Mutant::NeverRests, 1)), LIMIT);
    assert!(findings.failures.contains_key("hangs: finish"), "{:#?}", findings.failures);
}

#[test]
fn premature_questions_are_caught() {
    catches(2, &[&[Send(1, 1), Send(1, 1)], &[]], &[], Mutant::AskTooEarly, "endless");
}

#[test]
fn replies_that_deny_a_counted_visit_are_caught() {
    catches(3, VISITS, &[], Mutant::DenyVisits, "released while");
}

#[test]
fn uncounted_visits_with_abandoned_requests_are_caught() {
    catches(4, ABANDONED, &[], Mutant::AbandonUncounted, "released while");
}

#[test]
fn questions_that_hide_the_death_are_caught() {
    catches(3, ORPHANS, &[1], Mutant::HideDeath, "released while");
}

#[test]
fn orphans_that_are_not_asked_are_caught() {
    catches(3, ORPHANS, &[1], Mutant::SkipOrphans, "released while");
}
