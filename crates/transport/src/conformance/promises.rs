//! The promises of every transport, one function each.
//!
//! A function defines the places and the messages; the scripts beside this file execute them. A promise belongs here if
//! every transport with the capability must keep it, and a program could otherwise hang or fail.

use super::script::back_pressure::{Size, back_pressure};
use super::script::calls::{self, PingPong};
use super::script::death::{VictimEnd, death};
use super::script::exchange::Exchange;
use super::script::held_blocks::held_blocks;
use super::script::multicast::MulticastExchange;
use super::script::refused_sends::refused_sends;
use super::script::shared::{self, Regions, Wakes, Words};
use super::script::traffic::{SendForm, small_max};
use super::{Group, Promise, Script};
use crate::random::Random;
use crate::{Class, Limits, PlaceId};

/// Each place knows its number and the number of places; limits are sensible; all places start alive.
pub fn endpoints_know_their_place() -> Promise {
    Promise {
        places: 3,
        script: |here| Box::new(Constants { here, exchange: Exchange::of(here, few_small) }),
    }
}

/// In each class, messages from one place to another arrive once, complete and in order.
pub fn messages_of_one_pair_and_class_stay_in_order() -> Promise {
    Promise { places: 3, script: |here| Box::new(Exchange::of(here, many_small)) }
}

/// Messages of 0 bytes up to the limit of their class arrive, written into more room than they need.
pub fn every_length_up_to_the_limit_arrives_unchanged() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::of(here, lengths)) }
}

/// One byte over a limit is refused before anything is written, without a lasting effect.
pub fn a_longer_message_is_refused() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::after(here, calls::send_too_long, few_small)) }
}

/// A `fill` that returns `None` sends nothing and consumes nothing.
pub fn an_abandoned_message_leaves_no_trace() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::of(here, abandoned)) }
}

/// A control message still gets through if there is no room for data.
pub fn control_passes_a_full_data_queue() -> Promise {
    Promise { places: 2, script: |here| back_pressure(here, 1, Size::Least) }
}

/// A sender that was refused for lack of room is woken when there is room, again and again.
pub fn a_full_queue_has_room_again() -> Promise {
    Promise { places: 2, script: |here| back_pressure(here, 20, Size::Most) }
}

/// Blocks of one byte up to some megabytes arrive.
pub fn blocks_of_every_size_arrive_unchanged() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::of(here, block_sizes)) }
}

/// Blocks live as long as the receiver keeps them, and their memory can be returned in any order without limit.
pub fn kept_blocks_stay_intact_and_are_dropped_in_any_order() -> Promise {
    Promise { places: 3, script: |here| Box::new(Exchange::of(here, many_blocks)) }
}

/// A sender that is refused because the receiver keeps too many blocks is woken when one is dropped.
pub fn a_block_that_is_dropped_wakes_a_refused_sender() -> Promise {
    Promise { places: 2, script: held_blocks }
}

/// A sender that is refused, and then sends something else, is still woken when there is room for the refused message.
pub fn a_refusal_is_not_forgotten_over_a_later_success() -> Promise {
    Promise { places: 3, script: refused_sends }
}

/// A small message does not overtake a block of its class, nor a block a small message.
pub fn blocks_and_small_messages_keep_one_order() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::of(here, alternating)) }
}

/// `deliver` may send.
pub fn messages_can_be_sent_while_messages_are_delivered() -> Promise {
    Promise { places: 4, script: |_| Box::new(PingPong::new(100)) }
}

/// A place has no queue to itself; using it is an error of the program.
pub fn a_send_to_oneself_is_an_assertion() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::after(here, calls::send_to_oneself, few_small)) }
}

/// A `fill` must not call the endpoint: the memory is lent to it alone, and a second message would be written into the
/// same memory.
pub fn a_call_from_within_fill_is_an_assertion() -> Promise {
    Promise {
        places: 2,
        script: |here| Box::new(Exchange::after(here, calls::call_from_within_fill, few_small)),
    }
}

/// A death is reported once, after all messages of the dead place; later sends to it return the error.
pub fn a_death_is_told_once_after_the_last_message() -> Promise {
    Promise { places: 3, script: |here| death(here, 2, VictimEnd::Sudden) }
}

/// A place that sends to a dying place gets the error, also while it waits for room.
pub fn a_sender_to_a_place_that_dies_is_released() -> Promise {
    Promise { places: 3, script: |here| death(here, 2, VictimEnd::UnderPressure) }
}

/// Half of the places die; the others receive a report of each death.
pub fn several_deaths_are_told_one_by_one() -> Promise {
    Promise { places: 8, script: |here| death(here, 4, VictimEnd::UnderPressure) }
}

/// Messages that a place sent before it left arrive in full, and no death is reported.
pub fn an_orderly_end_is_not_a_death() -> Promise {
    Promise { places: 3, script: |here| death(here, 2, VictimEnd::Orderly) }
}

/// A wait without a timeout ends when a message arrives, before it or during it.
pub fn an_arrival_ends_a_wait() -> Promise {
    Promise { places: 2, script: |_| Box::new(PingPong::new(2_000)) }
}

/// A wait without a timeout ends when another thread unparks the place, before it or during it.
pub fn an_unpark_ends_a_wait() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::after(here, calls::wait_for_unpark, few_small)) }
}

/// A wait can have a further condition, and a place can ask if the wait would end immediately.
pub fn a_wait_ends_for_what_else_is_looked_at() -> Promise {
    Promise {
        places: 2,
        script: |here| Box::new(Exchange::after(here, calls::wait_with_condition, few_small)),
    }
}

/// A wait ends at its timeout.
pub fn a_wait_ends_at_its_timeout() -> Promise {
    Promise { places: 2, script: |here| Box::new(Exchange::after(here, calls::wait_for_timeout, few_small)) }
}

/// A message taken alone is the oldest of its route; it is removed if it was wanted, and stays otherwise.
pub fn a_message_taken_alone_is_the_oldest() -> Promise {
    Promise { places: 3, script: |here| Box::new(Exchange::picking(here, random_mix)) }
}

/// A message to several places arrives once at each, in order with the others of its class.
pub fn a_message_to_several_arrives_at_each_in_order() -> Promise {
    Promise { places: 4, script: |_| Box::new(MulticastExchange::default()) }
}

/// The words of a place can be written and are seen by all places that share memory with it.
pub fn words_are_the_same_memory_at_all_places() -> Promise {
    Promise { places: 3, script: |_| Box::new(Words::default()) }
}

/// A region can be written by its place and by all places that share memory with it, the same places as for words.
pub fn regions_are_the_same_memory_at_all_places() -> Promise {
    Promise { places: 3, script: |_| Box::new(Regions::default()) }
}

/// Regions are zero at first and disjoint; their room can be reused; a region that does not fit is refused.
pub fn regions_are_zero_and_apart_and_come_back() -> Promise {
    Promise {
        places: 2,
        script: |here| Box::new(Exchange::after(here, shared::allocate_and_free, few_small)),
    }
}

/// A place that writes to a word and wakes the word's place need not send a message: that place checks the word before
/// it sleeps.
pub fn a_place_is_woken_for_what_it_looks_at_in_memory() -> Promise {
    Promise { places: 3, script: |_| Box::new(Wakes::default()) }
}

/// The offered capabilities are exactly those whose [`Group::bit`] is set in `OFFERED`.
pub fn nothing_else_is_offered<const OFFERED: u8>() -> Promise {
    fn check<const OFFERED: u8>(endpoint: &dyn crate::Endpoint) {
        let lengths =
            |class| endpoint.multicast().is_some_and(|multicast| !multicast.bytes(class).is_empty());
        let is_named = |group: Group| OFFERED & group.bit() != 0;
        let has_multicast = lengths(Class::Control) || lengths(Class::Data);
        assert_eq!(has_multicast, is_named(Group::Multicast), "one message to several places");
        assert_eq!(endpoint.shared_memory().is_some(), is_named(Group::SharedMemory), "shared memory");
    }
    Promise { places: 3, script: |here| Box::new(Exchange::after(here, check::<OFFERED>, few_small)) }
}

/// 48 places exchange messages, each pair in both directions and both classes.
pub fn many_places_all_reach_each_other() -> Promise {
    Promise { places: 48, script: |here| Box::new(Exchange::of(here, few_small)) }
}

/// All kinds of messages are sent in random order.
pub fn a_long_random_mix_arrives_as_sent() -> Promise {
    Promise { places: 4, script: |here| Box::new(Exchange::of(here, random_mix)) }
}

/// Checks the constants of the endpoint, then exchanges.
struct Constants {
    here: PlaceId,
    exchange: Exchange,
}

impl Script for Constants {
    fn step(&mut self, endpoint: &dyn crate::Endpoint) -> super::Step {
        let places = endpoints_know_their_place().places;
        calls::check_constants(endpoint, self.here, places);
        self.exchange.step(endpoint)
    }
}

type Shapes = Vec<(SendForm, usize)>;

fn few_small(random: &mut Random, _: Class, _: &Limits) -> Shapes {
    (0..3).map(|_| (SendForm::Small, random.index(33))).collect()
}

fn many_small(random: &mut Random, _: Class, _: &Limits) -> Shapes {
    (0..500).map(|_| (SendForm::Small, random.index(33))).collect()
}

/// All lengths up to 300, the neighbourhood of powers of two, the last ones before the limit.
fn lengths(_: &mut Random, class: Class, limits: &Limits) -> Shapes {
    let max = small_max(class, limits);
    let powers =
        (0..usize::BITS - 1).map(|bit| 1_usize << bit).flat_map(|power| [power - 1, power, power + 1]);
    let mut lengths: Vec<usize> = (0..=300).chain(powers).chain(max.saturating_sub(9)..=max).collect();
    lengths.retain(|len| *len <= max);
    lengths.into_iter().map(|len| (SendForm::Small, len)).collect()
}

fn abandoned(random: &mut Random, class: Class, limits: &Limits) -> Shapes {
    let max = small_max(class, limits) as u64;
    let kind = |random: &mut Random| if random.chance(70) { SendForm::Abandoned } else { SendForm::Small };
    (0..1_000).map(|_| (kind(random), random.within(&(0..=max)) as usize)).collect()
}

fn block_sizes(_: &mut Random, class: Class, limits: &Limits) -> Shapes {
    let sizes: &[usize] = match class {
        Class::Control => &[1, 63, 64, 65],
        Class::Data => &[1, 2, 7, 8, 9, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 1_000_003, 3 << 20],
    };
    sizes
        .iter()
        .filter(|size| **size <= limits.block_bytes_max)
        .map(|size| (SendForm::Block, *size))
        .collect()
}

fn block_len(random: &mut Random, limits: &Limits) -> usize {
    let max = limits.block_bytes_max.min(1 << random.below(15));
    1 + random.index(max)
}

fn many_blocks(random: &mut Random, _: Class, limits: &Limits) -> Shapes {
    (0..150).map(|_| (SendForm::Block, block_len(random, limits))).collect()
}

fn alternating(random: &mut Random, _: Class, limits: &Limits) -> Shapes {
    (0..100)
        .flat_map(|_| [(SendForm::Block, block_len(random, limits)), (SendForm::Small, random.index(33))])
        .collect()
}

fn random_mix(random: &mut Random, class: Class, limits: &Limits) -> Shapes {
    let max = small_max(class, limits);
    let shape = |random: &mut Random| match random.below(100) {
        0..10 => (SendForm::Block, block_len(random, limits)),
        10..25 => (SendForm::Abandoned, random.index(max + 1)),
        25..35 => (SendForm::Small, random.index(max + 1)),
        _ => (SendForm::Small, random.index(65.min(max + 1))),
    };
    (0..400).map(|_| shape(random)).collect()
}
