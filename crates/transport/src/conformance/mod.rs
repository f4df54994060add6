//! One suite of promises that every transport keeps.
//!
//! A transport joins with one call, `isles_transport::conformance!(name, fixture)`, which makes a module `name`
//! with one test for each promise. A promise is a [`Script`] for each place; a [`Fixture`] brings the
//! endpoints and runs the scripts: [`Threads`] gives each place its own thread, [`Seeded`] runs all of them on the
//! loopback. The suite is no part of a running program; it is public so that other crates can call it.
//! Invariant: the scripts of two places share nothing but what they send, and end by what they see.

mod back_pressure;
mod calls;
mod death;
mod exchange;
mod held_blocks;
pub mod promises;
mod refused_sends;
mod seeded;
#[cfg(test)]
mod tests;
mod threads;
mod traffic;

pub use seeded::Seeded;
pub use threads::{EndpointSetup, Threads};

use crate::{Endpoint, PlaceId};

/// What a script wants after one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another step soon: this one did something.
    Busy,
    /// Nothing arrived and nothing could be sent: a wait without a timeout must end when that changes.
    Idle,
    /// All is sent, all has arrived: a further message would be one too many.
    Done,
    /// This place dies now.
    Die,
    /// This place ends in good order now, before the others.
    Leave,
}

/// What one place does; it panics where a promise is broken.
pub trait Script {
    /// Does a bounded piece of work with the endpoint of its place.
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step;
}

/// One promise, as what each place does.
#[derive(Clone, Copy)]
pub struct Promise {
    /// How many places take part.
    pub places: u32,
    /// Makes the script of a place, at that place.
    pub script: fn(PlaceId) -> Box<dyn Script>,
}

/// Brings the endpoints of one transport and runs scripts on them.
pub trait Fixture {
    /// Runs `promise` on fresh endpoints until all of its scripts have ended.
    ///
    /// # Panics
    /// If a script panics, if nothing moves any more, or if a message arrives at a script that is done.
    fn keep(&self, promise: &Promise);
}

/// Makes a module `$name` with one test for each promise; `$fixture` is a
/// [`conformance::Fixture`](crate::conformance::Fixture).
#[macro_export]
macro_rules! conformance {
    (@list $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form $($fixture)?;
            endpoints_know_their_place
            messages_of_one_pair_and_class_stay_in_order
            every_length_up_to_the_limit_arrives_unchanged
            a_longer_message_is_refused
            an_abandoned_message_leaves_no_trace
            control_passes_a_full_data_queue
            a_full_queue_has_room_again
            blocks_of_every_size_arrive_unchanged
            kept_blocks_stay_intact_and_are_dropped_in_any_order
            a_block_that_is_dropped_wakes_a_refused_sender
            a_refusal_is_not_forgotten_over_a_later_success
            blocks_and_small_messages_keep_one_order
            messages_can_be_sent_while_messages_are_delivered
            a_send_to_oneself_is_an_assertion
            a_call_from_within_fill_is_an_assertion
            a_death_is_told_once_after_the_last_message
            a_sender_to_a_place_that_dies_is_released
            several_deaths_are_told_one_by_one
            an_orderly_end_is_not_a_death
            an_arrival_ends_a_wait
            an_unpark_ends_a_wait
            a_wait_ends_for_what_else_is_looked_at
            a_wait_ends_at_its_timeout
            a_message_taken_alone_is_the_oldest
            words_are_the_same_memory_at_all_places
            many_places_all_reach_each_other
            a_long_random_mix_arrives_as_sent
        }
    };
    (@tests $fixture:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                $crate::conformance::Fixture::keep(&$fixture, &$crate::conformance::promises::$promise());
            }
        )*
    };
    (@named; $($promise:ident)*) => {
        &[$((stringify!($promise), promises::$promise as fn() -> Promise)),*]
    };
    ($name:ident, $fixture:expr) => {
        mod $name {
            use super::*;
            $crate::conformance!(@list tests $fixture);
        }
    };
}

/// The promises of a transport whose other places survive the death of one; all others are kept by every transport.
pub const DEATHS: [&str; 3] = [
    "a_death_is_told_once_after_the_last_message",
    "a_sender_to_a_place_that_dies_is_released",
    "several_deaths_are_told_one_by_one",
];

/// A promise and its name.
pub type Named = (&'static str, fn() -> Promise);

/// All promises by name, for fixtures that do not run as tests.
pub const ALL: &[Named] = conformance!(@list named);
