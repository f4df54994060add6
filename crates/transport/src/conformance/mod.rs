//! One test suite of the promises that every transport keeps.
//!
//! The promises are in groups. Those about messages, blocks, credit and waits are required of every transport; a
//! transport names the others that it keeps. It joins with one call, `isles_transport::conformance!(name, fixture,
//! keeps deaths)`, which creates a module `name` with one test for each promise. A test fails if the transport offers a
//! capability that it does not name. A promise has a [`Script`] for each place; a [`Fixture`] creates the endpoints and
//! runs the scripts: [`Threads`] gives each place its own thread, [`Seeded`] runs all of them on the loopback. The
//! suite is not part of a running program; it is public so that other crates can call it. Invariant: the scripts of two
//! places share only their messages, and end according to what they receive.

pub mod promises;
mod script;
mod seeded;
#[cfg(test)]
mod tests;
mod threads;

pub use script::{Script, Step};
pub use seeded::Seeded;
pub use threads::{EndpointSetup, Threads};

use crate::PlaceId;

/// One promise, as a script for each place.
#[derive(Clone, Copy)]
pub struct Promise {
    /// Number of participating places.
    pub places: u32,
    /// Creates the script of a place, at that place.
    pub script: fn(PlaceId) -> Box<dyn Script>,
}

/// Creates the endpoints of one transport and runs scripts on them.
pub trait Fixture {
    /// Runs `promise` on fresh endpoints until all of its scripts have ended.
    ///
    /// # Panics
    /// A script panics, no script makes progress any more, or a message arrives at a script that is done.
    fn keep(&self, promise: &Promise);
}

/// Subject of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Small messages: order, lengths, refusals; the orderly end of a place. Kept by every transport.
    Messages,
    /// Large messages. Kept by every transport.
    Blocks,
    /// Full queues, and the two classes. Kept by every transport.
    Credit,
    /// Events that end a wait. Kept by every transport.
    Waits,
    /// One message to several places: [`Endpoint::multicast`](crate::Endpoint::multicast).
    Multicast,
    /// Words and regions: [`Endpoint::shared_memory`](crate::Endpoint::shared_memory).
    SharedMemory,
    /// The other places survive the death of a place, and receive a report.
    Deaths,
}

impl Group {
    /// Returns `true` if the promises of this group bind every transport.
    pub const fn is_required(self) -> bool {
        matches!(self, Group::Messages | Group::Blocks | Group::Credit | Group::Waits)
    }

    /// Returns the group as a bit of [`promises::nothing_else_is_offered`].
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A promise with its name and its subject.
#[derive(Clone, Copy, Debug)]
pub struct NamedPromise {
    /// Subject of the promise.
    pub group: Group,
    /// Its name.
    pub name: &'static str,
    /// Creates the promise.
    pub promise: fn() -> Promise,
}

/// Creates a module `$name` with one test for each promise of the required groups, and of the groups after `keeps`:
/// `multicast`, `shared_memory`, `deaths`. `$fixture` is a [`conformance::Fixture`](crate::conformance::Fixture).
#[macro_export]
macro_rules! conformance {
    (@group messages $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form Messages $($fixture)?;
            endpoints_know_their_place
            messages_of_one_pair_and_class_stay_in_order
            every_length_up_to_the_limit_arrives_unchanged
            a_longer_message_is_refused
            an_abandoned_message_leaves_no_trace
            messages_can_be_sent_while_messages_are_delivered
            a_send_to_oneself_is_an_assertion
            a_call_from_within_fill_is_an_assertion
            an_orderly_end_is_not_a_death
            a_message_taken_alone_is_the_oldest
            many_places_all_reach_each_other
            a_long_random_mix_arrives_as_sent
        }
    };
    (@group blocks $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form Blocks $($fixture)?;
            blocks_of_every_size_arrive_unchanged
            kept_blocks_stay_intact_and_are_dropped_in_any_order
            a_block_that_is_dropped_wakes_a_refused_sender
            blocks_and_small_messages_keep_one_order
        }
    };
    (@group credit $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form Credit $($fixture)?;
            control_passes_a_full_data_queue
            a_full_queue_has_room_again
            a_refusal_is_not_forgotten_over_a_later_success
        }
    };
    (@group waits $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form Waits $($fixture)?;
            an_arrival_ends_a_wait
            an_unpark_ends_a_wait
            a_wait_ends_for_what_else_is_looked_at
            a_wait_ends_at_its_timeout
        }
    };
    (@group multicast $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form Multicast $($fixture)?;
            a_message_to_several_arrives_at_each_in_order
        }
    };
    (@group shared_memory $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form SharedMemory $($fixture)?;
            words_are_the_same_memory_at_all_places
            regions_are_the_same_memory_at_all_places
            regions_are_zero_and_apart_and_come_back
            a_place_is_woken_for_what_it_looks_at_in_memory
        }
    };
    (@group deaths $form:ident $($fixture:expr)?) => {
        $crate::conformance! { @$form Deaths $($fixture)?;
            a_death_is_told_once_after_the_last_message
            a_sender_to_a_place_that_dies_is_released
            several_deaths_are_told_one_by_one
        }
    };
    (@tests $group:ident $fixture:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                $crate::conformance::Fixture::keep(&$fixture, &$crate::conformance::promises::$promise());
            }
        )*
    };
    (@named $group:ident; $($promise:ident)*) => {
        &[$(NamedPromise {
            group: Group::$group,
            name: stringify!($promise),
            promise: promises::$promise as fn() -> Promise,
        }),*]
    };
    (@bit multicast) => { $crate::conformance::Group::Multicast.bit() };
    (@bit shared_memory) => { $crate::conformance::Group::SharedMemory.bit() };
    (@bit deaths) => { $crate::conformance::Group::Deaths.bit() };
    ($name:ident, $fixture:expr $(, keeps $($group:ident)+)?) => {
        mod $name {
            use super::*;
            $crate::conformance!(@group messages tests $fixture);
            $crate::conformance!(@group blocks tests $fixture);
            $crate::conformance!(@group credit tests $fixture);
            $crate::conformance!(@group waits tests $fixture);
            $($($crate::conformance!(@group $group tests $fixture);)+)?

            #[test]
            fn nothing_else_is_offered() {
                const OFFERED: u8 = 0 $($(| $crate::conformance!(@bit $group))+)?;
                let promise = $crate::conformance::promises::nothing_else_is_offered::<OFFERED>();
                $crate::conformance::Fixture::keep(&$fixture, &promise);
            }
        }
    };
}

/// All promises of all groups, for fixtures that do not run as tests.
pub const ALL: &[&[NamedPromise]] = &[
    conformance!(@group messages named),
    conformance!(@group blocks named),
    conformance!(@group credit named),
    conformance!(@group waits named),
    conformance!(@group multicast named),
    conformance!(@group shared_memory named),
    conformance!(@group deaths named),
];
