//! The services of a place, and the messages that it takes in.
//!
//! A service lets tasks of several places work together: it has messages of its own, state at each place, and waits
//! that end when a place dies. Only this file knows which services there are: a new one costs a module and a row in the
//! table below. What its messages mean is known to its module only.
//!
//! The core of a place is no service: its tasks, calls, finishes and timers have messages in the table, but places die
//! for them before or after the services (`message`), and they are due in an order of their own (`worker`).
//! Invariant: a service is asked while nothing of the place is borrowed.

use crate::aggregation::{self, Aggregations};
use crate::anywhere::{self, PlacedTasks};
use crate::channel::{self, ChannelTable};
use crate::message::Refused;
use crate::part::{self, PartTable};
use crate::phaser::{self, PhaserTable};
use crate::run::report;
use crate::shared::{self, ObjectTable};
use crate::team::point_to_point::{self, MessageTable};
use crate::team::{self, ProgressQuery, Teams};
use crate::time::earlier;
use crate::window::{self, WindowTable};
use crate::wire::Reader;
use crate::{call, finish, local::Local};
use isles_protocol::PlaceId;
use isles_transport::HandlerId;
use std::cell::RefCell;
use std::time::Duration;

/// The state of one service at one place.
///
/// No function has a default, so a service that never waits, or that has nothing to do by the clock, says so.
pub(crate) trait Service {
    /// Returns the state at place `here` of a run of `places` places, before anything happens.
    fn new(here: PlaceId, places: u32) -> Self;

    /// Ends all waits for `place`, which has died; all that it ever sent has arrived.
    fn place_died(&self, local: &Local, place: PlaceId);

    /// Returns the waits of this place in answer to `inquiry`, a line each.
    fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String>;

    /// Returns the time by the place's clock at which [`Service::run_due`] has something to do, if nothing happens.
    fn next_due(&self) -> Option<Duration>;

    /// Does what is due by now; returns whether anything was. Called after each step of the worker.
    fn run_due(&self, local: &Local) -> bool;
}

/// The question of a place, where nothing happens any more, what this one waits for.
pub(crate) struct Inquiry<'a> {
    /// The place that asks; it may be this one.
    pub(crate) asker: PlaceId,
    /// The collectives in which `asker` waits for this place.
    pub(crate) queries: &'a [ProgressQuery],
}

/// The table of services becomes `Handler`, the kinds of messages, and `Services`, the state of one place.
///
/// A row has the name of a service, its state, and its messages: the number of each on the wire, and the function that
/// receives it. Two messages with one number do not compile. Deaths and due work go through the services in the order
/// of the rows, explanations in the order of their first numbers. The core has messages only.
macro_rules! services {
    (
        core { $( $(#[$core_doc:meta])* $Core:ident = $core_number:literal => $receive_core:path, )* }
        $(
            $(#[$doc:meta])*
            $service:ident: $State:ty {
                $( $(#[$message_doc:meta])* $Message:ident = $number:literal => $receive:path, )+
            }
        )+
    ) => {
        /// The receivers of messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Handler {
            $( $(#[$core_doc])* $Core = $core_number, )*
            $($( $(#[$message_doc])* $Message = $number, )+)+
        }

        impl Handler {
            /// Returns the handler with number `id` on the wire.
            #[inline]
            fn of(id: HandlerId) -> Option<Handler> {
                match id.0 {
                    $( $core_number => Some(Handler::$Core), )*
                    $($( $number => Some(Handler::$Message), )+)+
                    _ => None,
                }
            }

            /// Receives a message of `source`.
            #[inline]
            fn receive(self, local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
                match self {
                    $( Handler::$Core => $receive_core(local, source, reader), )*
                    $($( Handler::$Message => $receive(local, source, reader), )+)+
                }
            }
        }

        /// The services of one place.
        pub(crate) struct Services {
            $( $(#[$doc])* pub(crate) $service: $State, )+
        }

        impl Services {
            pub(super) fn new(here: PlaceId, places: u32) -> Services {
                Services { $( $service: Service::new(here, places), )+ }
            }

            /// Tells each service that `place` has died.
            pub(crate) fn place_died(&self, local: &Local, place: PlaceId) {
                $( self.$service.place_died(local, place); )+
            }

            /// Returns the waits of all services, a line each.
            pub(crate) fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
                let mut explained = [$( ([$( $number ),+][0], self.$service.explain(inquiry)) ),+];
                explained.sort_by_key(|(number, _): &(u16, _)| *number);
                explained.into_iter().flat_map(|(_, lines)| lines).collect()
            }

            /// Returns the earliest time at which some service has something to do.
            #[inline]
            pub(crate) fn next_due(&self) -> Option<Duration> {
                let mut due = None;
                $( due = earlier(due, self.$service.next_due()); )+
                due
            }

            /// Does what is due of each service; returns whether anything was.
            #[inline]
            pub(crate) fn run_due(&self, local: &Local) -> bool {
                let mut was_due = false;
                $( was_due |= self.$service.run_due(local); )+
                was_due
            }
        }
    };
}

services! {
    core {
        /// `spawn_at!`: an entry and its captures.
        Spawn = 0 => call::receive_spawn,
        /// `at!`: the same, and whom to answer.
        Call = 1 => call::receive_call,
        /// The answer to a `Call`.
        Reply = 2 => call::receive_reply,
        /// Control of finishes.
        Finish = 3 => finish::receive,
        /// Between the first place and the others: the end of the run, and reports.
        Run = 8 => report::receive,
        /// Nobody waits for the answer to a `Call` any more.
        Abandon = 9 => call::receive_abandon,
    }
    /// Collectives.
    teams: Teams {
        /// One step of a collective.
        Team = 5 => team::receive,
    }
    /// Messages between two members of a team.
    messages: RefCell<MessageTable> {
        /// A message, or its control.
        PointToPoint = 11 => point_to_point::receive,
    }
    /// Phasers, and the registrations that travel with tasks.
    phasers: PhaserTable {
        /// Control of phasers.
        Phaser = 6 => phaser::receive,
        /// `spawn_at!` with registrations of phasers.
        Registered = 7 => phaser::receive_registered,
    }
    /// Channels.
    channels: RefCell<ChannelTable> {
        /// Values and control of channels.
        Channel = 10 => channel::receive,
    }
    /// Tasks whose place was chosen.
    placed: PlacedTasks {
        /// Such a task has ended.
        Placed = 12 => anywhere::receive,
    }
    /// Small items that travel together.
    aggregations: Aggregations {
        /// Items that came from the receiver are handed on.
        ItemsDone = 13 => aggregation::receive,
    }
    /// Windows.
    windows: WindowTable {
        /// An access to a part of a window, its answer, or its control.
        Window = 14 => window::receive,
    }
    /// Shared objects.
    objects: ObjectTable {
        /// A token of an object, or its control.
        Object = 20 => shared::receive,
    }
    /// Parts, and counts of the handles to them.
    parts: RefCell<PartTable> {
        /// Counts of handles.
        Part = 4 => part::receive,
    }
}

impl Handler {
    /// Returns its number on the wire.
    #[inline]
    pub(crate) fn id(self) -> HandlerId {
        HandlerId(self as u16)
    }
}

/// Lets the handler with number `id` on the wire receive a message of `source`.
///
/// # Errors
/// The message is refused: by its receiver, or because there is none.
pub(crate) fn dispatch(
    local: &Local,
    id: HandlerId,
    source: PlaceId,
    reader: &mut Reader<'_>,
) -> Result<(), Refused> {
    Handler::of(id).ok_or(Refused::UnknownHandler(id.0))?.receive(local, source, reader)
}

#[cfg(test)]
mod tests {
    use super::{Handler, dispatch};
    use crate::local::{Clock, Local};
    use crate::message::Refused;
    use crate::wire::Reader;
    use isles_protocol::PlaceId;
    use isles_transport::loopback::{Plan, World};
    use isles_transport::{Class, Endpoint, HandlerId};

    #[test]
    fn each_message_has_a_number_of_its_own() {
        let all = (0..=u16::MAX).filter_map(|id| Some((id, Handler::of(HandlerId(id))?)));
        let handlers: Vec<Handler> = all.clone().map(|(_, handler)| handler).collect();
        for (number, handler) in all {
            assert_eq!(handler.id().0, number, "{handler:?}");
        }
        let names = format!("{handlers:?}");
        let wire = "[Spawn, Call, Reply, Finish, Part, Team, Phaser, Registered, Run, Abandon, Channel, PointToPoint, \
                    Placed, ItemsDone, Window";
        assert!(names.starts_with(wire), "{names}");
    }

    #[test]
    fn a_message_without_a_receiver_is_refused_and_its_sender_counts_as_dead() {
        let world = World::new(2, Plan::calm(0));
        let local = Local::new(Box::new(world.endpoint(PlaceId(0))), Clock::host());
        let unknown = HandlerId(999);
        local.enter(|| {
            let refused = dispatch(&local, unknown, PlaceId(1), &mut Reader::new(&[])).unwrap_err();
            assert!(matches!(refused, Refused::UnknownHandler(999)));
            assert_eq!(refused.to_string(), "there is no handler 999");
        });
        let sent = world.endpoint(PlaceId(1)).send(PlaceId(0), Class::Data, unknown, 0, &mut |_| Some(0));
        assert_eq!(sent, Ok(()));
        while !local.is_dead(PlaceId(1)) {
            assert!(world.advance(), "the message has arrived, and its sender lives");
            local.enter(|| local.attend());
        }
    }

    /// A table of services that note what is asked of them.
    mod noted {
        use super::super::*;
        use crate::local::Clock;
        use isles_transport::loopback::{Plan, World};
        use std::rc::Rc;

        thread_local! {
            static NOTES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
        }

        fn note(text: String) {
            NOTES.with_borrow_mut(|notes| notes.push(text));
        }

        fn receive<const N: u16>(_: &Local, source: PlaceId, _: &mut Reader<'_>) -> Result<(), Refused> {
            note(format!("message {N} of {source}"));
            Ok(())
        }

        /// A service that is due at `DUE` seconds, and has something to do if that is even.
        pub(crate) struct Noted<const DUE: u64>;

        impl<const DUE: u64> Service for Noted<DUE> {
            fn new(here: PlaceId, places: u32) -> Self {
                note(format!("{DUE} at {here} of {places}"));
                Noted
            }

            fn place_died(&self, _local: &Local, place: PlaceId) {
                note(format!("{DUE} without {place}"));
            }

            fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
                vec![format!("{DUE} for {}", inquiry.asker), format!("{DUE} again")]
            }

            fn next_due(&self) -> Option<Duration> {
                (DUE > 0).then(|| Duration::from_secs(DUE))
            }

            fn run_due(&self, _local: &Local) -> bool {
                note(format!("{DUE} runs"));
                DUE.is_multiple_of(2)
            }
        }

        services! {
            core {
                Core = 1 => receive::<1>,
            }
            last_number: Noted<5> {
                Last = 4 => receive::<4>,
            }
            first_number: Noted<2> {
                First = 0 => receive::<0>,
                Fourth = 3 => receive::<3>,
            }
            never_due: Noted<0> {
                Third = 2 => receive::<2>,
            }
        }

        /// The services of place 0 of 2, and that place.
        fn services() -> (Rc<Local>, Services) {
            let services = Services::new(PlaceId(0), 2);
            assert_eq!(NOTES.take(), ["5 at place 0 of 2", "2 at place 0 of 2", "0 at place 0 of 2"]);
            let world = World::new(2, Plan::calm(0));
            (Local::new(Box::new(world.endpoint(PlaceId(0))), Clock::host()), services)
        }

        #[test]
        fn each_message_goes_to_its_receiver() {
            let (local, _) = services();
            for number in 0..5 {
                let handler = Handler::of(HandlerId(number)).expect("a row has it");
                assert!(handler.receive(&local, PlaceId(1), &mut Reader::new(&[])).is_ok());
                assert_eq!(NOTES.take(), [format!("message {number} of place 1")]);
            }
        }

        #[test]
        fn each_service_hears_of_a_death_in_the_order_of_the_rows() {
            let (local, services) = services();
            services.place_died(&local, PlaceId(1));
            assert_eq!(NOTES.take(), ["5 without place 1", "2 without place 1", "0 without place 1"]);
        }

        #[test]
        fn explanations_are_in_the_order_of_the_first_number_of_each_service() {
            let (_, services) = services();
            let lines = services.explain(&Inquiry { asker: PlaceId(1), queries: &[] });
            let expected =
                ["2 for place 1", "2 again", "0 for place 1", "0 again", "5 for place 1", "5 again"];
            assert_eq!(lines, expected);
        }

        #[test]
        fn the_earliest_service_is_due_next_and_all_do_what_is_due() {
            let (local, services) = services();
            assert_eq!(services.next_due(), Some(Duration::from_secs(2)));
            assert!(services.run_due(&local));
            assert_eq!(NOTES.take(), ["5 runs", "2 runs", "0 runs"]);
        }
    }
}
