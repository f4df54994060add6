//! The loopback and a transport of threads keep the promises, and faulty ones are detected.

mod fault;
mod mailbox;

use super::{ALL, Fixture, Group, NamedPromise, Seeded, Threads};
use crate::composite::{CompositeEndpoint, FarEndpoint, PlaceNumbers};
use crate::loopback::{LoopbackEndpoint, Plan};
use crate::{Endpoint, PlaceId, Unpark, conformance};
use fault::{Broken, Fault};
use mailbox::{MailboxFault, setups};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The loopback, wrapped with a fault.
macro_rules! broken {
    ($seeds:expr, $fault:ident) => {
        Seeded {
            attach: |mut endpoints, _| Broken::boxed(endpoints.remove(0), Fault::$fault),
            ..Seeded::plain(narrow, $seeds)
        }
    };
}

conformance!(calm, Seeded::plain(Plan::calm, 0..1), keeps multicast shared_memory deaths);
conformance!(adversarial, Seeded::plain(adversarial_sharing, 0..8), keeps multicast shared_memory deaths);
conformance!(of_several_hosts, Seeded::plain(on_several_hosts, 0..8), keeps shared_memory deaths);
conformance!(no_memory, Seeded::plain(sharing_nothing, 0..1), keeps multicast deaths);
conformance!(
    two_hosts,
    Seeded { plan: adversarial_sharing, seeds: 0..8, ends: 2, attach: on_hosts },
    keeps shared_memory deaths
);
conformance!(threads, Threads::new(|places| setups(places, MailboxFault::No)), keeps deaths);
conformance!(attached, broken!(0..1, Nothing), keeps multicast shared_memory deaths);

/// Returns an adversarial plan in which memory is shared with each seed.
fn adversarial_sharing(seed: u64) -> Plan {
    Plan { words: 16, places_per_host: u32::MAX, ..Plan::adversarial(seed) }
}

fn on_several_hosts(seed: u64) -> Plan {
    Plan { places_per_host: 2, ..adversarial_sharing(seed) }
}

fn sharing_nothing(seed: u64) -> Plan {
    Plan { words: 0, ..Plan::calm(seed) }
}

/// Returns the promises of all groups.
fn all() -> impl Iterator<Item = &'static NamedPromise> {
    ALL.iter().copied().flatten()
}

/// Returns the loopback composed with itself: two places are on one host and near each other.
fn on_hosts(mut ends: Vec<LoopbackEndpoint>, places: u32) -> Box<dyn Endpoint> {
    let (far, near) = (ends.remove(1), ends.remove(0));
    let here = near.here();
    let all = || (0..places).map(PlaceId);
    let neighbours = all().filter(|place| place.0 / 2 == here.0 / 2).map(|place| (place, place));
    let near_numbers = PlaceNumbers::of(places, neighbours);
    let hosts = all().map(|place| PlaceId(place.0 / 2 * 2)).collect();
    let far_numbers = PlaceNumbers::of(places, all().map(|place| (place, PlaceId(places + place.0))));
    Box::new(CompositeEndpoint::new(here, near, near_numbers, far, far_numbers, hosts))
}

impl FarEndpoint for LoopbackEndpoint {
    /// Does nothing: the driver of the world asks both halves.
    fn set_near_unparker(&self, _near: Arc<dyn Unpark>) {}

    fn before_sleep(&self) -> Option<Duration> {
        None
    }
}

/// Returns a plan with small queues and a large batch, so that each fault can show.
fn narrow(seed: u64) -> Plan {
    let mut plan = Plan::calm(seed);
    (plan.control.capacity, plan.data.capacity) = (16, 16);
    plan.notice_steps = 0..=50;
    plan.data.delay_steps = 0..=20;
    plan
}

/// Returns the verdict of the fixture on a promise.
fn verdict(fixture: &dyn Fixture, name: &str) -> String {
    let named = all().find(|named| named.name == name).expect("a promise of that name");
    let promise = (named.promise)();
    match catch_unwind(AssertUnwindSafe(|| fixture.keep(&promise))) {
        Ok(()) => "kept".to_owned(),
        Err(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (None, Some(text)) => (*text).to_owned(),
            (None, None) => "a panic without text".to_owned(),
        },
    }
}

fn check_found(fixture: &dyn Fixture, promise: &str, complaint: &str) {
    let verdict = verdict(fixture, promise);
    assert!(verdict.contains(complaint), "{promise}: expected `{complaint}`, got `{verdict}`");
}

/// One test on each line: a transport with this fault breaks this promise, with this message.
macro_rules! found {
    ($($test:ident: $fault:ident => $promise:ident, $complaint:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let fixture = broken!(0..8, $fault);
                check_found(&fixture, stringify!($promise), $complaint);
            }
        )*
        const FOUND_SEEDED: &[&str] = &[$(stringify!($promise)),*];
    };
}

/// Maximum number of runs until a thread sleeps when it is not woken; mostly the first run suffices.
const ATTEMPTS_MAX: u32 = 100;

/// As `found`, for faults that only threads can show: a place sleeps forever.
macro_rules! found_asleep {
    ($($test:ident: $fault:ident => $promise:ident;)*) => {
        $(
            #[test]
            fn $test() {
                let deadline = Duration::from_millis(500);
                let fixture = Threads { setups: |places| setups(places, MailboxFault::$fault), deadline };
                let verdicts = || (0..ATTEMPTS_MAX).map(|_| verdict(&fixture, stringify!($promise)));
                let verdict = verdicts().find(|verdict| verdict != "kept").expect("deafness goes unnoticed");
                assert!(verdict.contains("stalled"), "{verdict}");
            }
        )*
        const FOUND_ASLEEP: &[&str] = &[$(stringify!($promise)),*];
    };
}

found! {
    a_wrong_place_count_is_found: Miscounts => endpoints_know_their_place, "left == right";
    reordering_is_found: Reorders => messages_of_one_pair_and_class_stay_in_order, "order broken";
    loss_is_found: Loses => messages_of_one_pair_and_class_stay_in_order, "order broken";
    loss_of_the_last_message_is_found: LosesLast => messages_of_one_pair_and_class_stay_in_order, "stalled";
    duplication_is_found: Duplicates => messages_of_one_pair_and_class_stay_in_order, "order broken";
    duplication_of_the_last_message_is_found: DuplicatesLast => endpoints_know_their_place, "one message too many";
    a_length_cut_to_a_byte_is_found: CutsLengths => every_length_up_to_the_limit_arrives_unchanged, "length changed";
    a_flipped_bit_is_found: Flips => every_length_up_to_the_limit_arrives_unchanged, "bytes changed";
    misalignment_is_found: Misaligns => every_length_up_to_the_limit_arrives_unchanged, "not aligned";
    accepting_what_is_too_long_is_found: AcceptsLong => a_longer_message_is_refused, "TooLong";
    a_trace_of_an_abandoned_message_is_found: SendsAbandoned => an_abandoned_message_leaves_no_trace, "order broken";
    a_leak_by_abandoned_messages_is_found: LeaksAbandoned => an_abandoned_message_leaves_no_trace, "stalled";
    control_behind_data_is_found: SharesRoom => control_passes_a_full_data_queue, "stalled";
    data_let_through_as_control_is_found: IgnoresInbound => control_passes_a_full_data_queue, "control only";
    room_that_never_returns_is_found: StaysFull => a_full_queue_has_room_again, "stalled";
    a_queue_without_bound_is_found: NeverFull => control_passes_a_full_data_queue, "never fills";
    a_damaged_block_is_found: FlipsBlocks => blocks_of_every_size_arrive_unchanged, "bytes changed";
    a_block_reused_too_early_is_found: ReusesBlocks =>
        kept_blocks_stay_intact_and_are_dropped_in_any_order, "bytes changed";
    exhaustion_of_blocks_is_found: ExhaustsBlocks => kept_blocks_stay_intact_and_are_dropped_in_any_order, "stalled";
    a_block_that_is_not_given_back_is_found: HoardsBlocks => blocks_of_every_size_arrive_unchanged, "not given back";
    memory_that_does_not_come_back_is_found: HoardsBlocks =>
        a_block_that_is_dropped_wakes_a_refused_sender, "stalled";
    blocks_that_overtake_are_found: BlocksFirst => blocks_and_small_messages_keep_one_order, "order broken";
    replies_lost_in_deliver_are_found: LosesReplies => messages_can_be_sent_while_messages_are_delivered, "stalled";
    sending_to_oneself_is_found: SendsToItself => a_send_to_oneself_is_an_assertion, "to oneself was accepted";
    a_send_accepted_within_fill_is_found: FillsBeforehand =>
        a_call_from_within_fill_is_an_assertion, "send from within `fill` was accepted";
    a_second_death_is_found: DiesTwice => a_death_is_told_once_after_the_last_message, "dead twice";
    a_message_after_a_death_is_found: DiesEarly => a_death_is_told_once_after_the_last_message, "after its death";
    an_untold_death_is_found: HidesDeath => several_deaths_are_told_one_by_one, "stalled";
    a_send_into_the_void_is_found: SendsToTheDead =>
        a_sender_to_a_place_that_dies_is_released, "is dead and the answer";
    a_death_told_of_a_place_that_left_is_found: ForgetsLeave =>
        an_orderly_end_is_not_a_death, "was told dead and is not";
    a_message_taken_and_kept_is_found: KeepsTaken => a_message_taken_alone_is_the_oldest, "order broken";
    readiness_that_is_not_said_is_found: NeverReady => a_wait_ends_for_what_else_is_looked_at, "nothing is ready";
    words_that_are_not_shared_are_found: PrivateWords => words_are_the_same_memory_at_all_places, "the word of";
    regions_that_are_not_shared_are_found: PrivateRegions =>
        regions_are_the_same_memory_at_all_places, "the region of";
    regions_with_old_content_are_found: DirtyRegions =>
        regions_are_zero_and_apart_and_come_back, "a new region is not zero";
    a_place_that_is_not_woken_is_found: NeverWakes => a_place_is_woken_for_what_it_looks_at_in_memory, "stalled";
    a_receiver_that_is_forgotten_is_found: ForgetsOne =>
        a_message_to_several_arrives_at_each_in_order, "order broken";
    places_mixed_up_are_found: MasksPlaces => many_places_all_reach_each_other, "one message too many";
    a_rare_flipped_bit_is_found: FlipsRarely => a_long_random_mix_arrives_as_sent, "bytes changed";
}

found_asleep! {
    deafness_to_arrivals_is_found: Arrival => an_arrival_ends_a_wait;
    deafness_to_room_is_found: Room => a_full_queue_has_room_again;
    a_forgotten_refusal_is_found: Refusal => a_refusal_is_not_forgotten_over_a_later_success;
    deafness_to_unparks_is_found: Unpark => an_unpark_ends_a_wait;
    deafness_to_timeouts_is_found: Timeout => a_wait_ends_at_its_timeout;
    deafness_to_deaths_is_found: Death => a_sender_to_a_place_that_dies_is_released;
}

#[test]
fn what_is_offered_and_not_named_is_found() {
    let fixture = Seeded::plain(Plan::calm, 0..1);
    let keep = || fixture.keep(&super::promises::nothing_else_is_offered::<{ Group::Multicast.bit() }>());
    let panic = catch_unwind(AssertUnwindSafe(keep)).expect_err("shared memory is offered");
    assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("shared memory")));
}

#[test]
fn each_promise_has_a_fault_that_breaks_it() {
    let broken = |name: &str| FOUND_SEEDED.contains(&name) || FOUND_ASLEEP.contains(&name);
    let unbroken: Vec<_> = all().map(|named| named.name).filter(|name| !broken(name)).collect();
    assert_eq!(unbroken, [""; 0]);
}

#[test]
fn a_failing_place_ends_the_run_of_threads_with_its_own_words() {
    let fixture =
        Threads { setups: |places| setups(places, MailboxFault::Loses), deadline: Duration::from_secs(60) };
    check_found(&fixture, "many_places_all_reach_each_other", "order broken");
}
