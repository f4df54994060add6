//! The services of a place, and the receivers of their messages.
//!
//! A service lets tasks of several places work together: it has messages of its own, state at each place, and waits
//! that end when a place dies. Only this file knows which services there are: a new one needs a module and a row in the
//! table below. Only its module knows what its messages mean.
//!
//! The core of a place is no service; it calls the table ([`ServiceTable`]). Invariant: nothing of the place is
//! borrowed while a service is called.

pub(crate) mod service;

use crate::aggregation::batch::ITEMS_DONE;
use crate::aggregation::{self, Aggregations};
use crate::channel::message::CHANNEL;
use crate::channel::{self, ChannelTable};
use crate::hubs::{self, HUB, HubTable};
use crate::phaser::table::PHASER;
use crate::phaser::travel::REGISTERED;
use crate::phaser::{self, PhaserTable};
use crate::placed::{self, PLACED, PlacedTasks};
use crate::shared::message::OBJECT;
use crate::shared::{self, ObjectTable};
use crate::table::service::Service;
use crate::team::header::TEAM;
use crate::team::point_to_point::header::POINT_TO_POINT;
use crate::team::point_to_point::{self, MessageTable};
use crate::team::{self, Teams, compare_waits};
use crate::window::header::WINDOW;
use crate::window::{self, WindowTable};
use isles_protocol::PlaceId;
use isles_protocol::finish::Key;
use isles_runtime::service::{Encode, Handler, Inquiry, Refused, RefusedBody, Sent, ServiceTable, earlier};
use isles_runtime::wire::Reader;
use isles_runtime::{Error, Local, Result};
use isles_telemetry::{CounterId, CounterValues};
use isles_transport::HandlerId;
use std::any::Any;
use std::cell::RefCell;
use std::time::Duration;

/// Makes `Services`, the state of one place, from the table of services.
///
/// A row has the name of a service, its state, and its messages: the number of each on the wire, and the function that
/// receives it. It does not compile if two messages have one number, a message has a number of the core, or the
/// [`Service::ROW`] of a service is not its row. Deaths and due work go through the services in the order of the rows,
/// explanations in the order of their first numbers.
macro_rules! services {
    (
        $(
            $(#[$doc:meta])*
            $service:ident: $State:ty {
                $( $number:path => $receive:path, )+
            }
        )+
    ) => {
        const _: () = assert!(are_rows(&[$( <$State as Service>::ROW ),+]), "the rows are in another order");
        const _: () = assert!(are_free(&[$($( $number, )+)+]), "a number of a message is used twice");

        /// The services of one place.
        struct Services {
            $( $(#[$doc])* $service: $State, )+
        }

        impl Services {
            fn new(here: PlaceId, places: u32) -> Services {
                Services { $( $service: Service::new(here, places), )+ }
            }

            /// Returns the state of each service, in the order of the rows.
            fn all_states(&self) -> Vec<&dyn Any> {
                vec![$( &self.$service ),+]
            }

            /// Delivers a message of `source` to the receiver with the number `id` on the wire.
            #[inline]
            fn dispatch(
                local: &Local,
                id: HandlerId,
                source: PlaceId,
                reader: &mut Reader<'_>,
            ) -> std::result::Result<(), Refused> {
                match id {
                    $($( $number => $receive(local, source, reader), )+)+
                    _ => Err(Refused::UnknownHandler(id.0)),
                }
            }

            /// Passes the death of `place` to each service.
            fn tell_death(&self, local: &Local, place: PlaceId) {
                $( self.$service.place_died(local, place); )+
            }

            /// Returns the waits of all services, one line each.
            fn explain_all(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
                let mut explained = [$( ([$( $number ),+][0].0, self.$service.explain(inquiry)) ),+];
                explained.sort_by_key(|(number, _): &(u16, _)| *number);
                explained.into_iter().flat_map(|(_, lines)| lines).collect()
            }

            /// Returns the earliest time at which a service has something to do.
            #[inline]
            fn first_due(&self) -> Option<Duration> {
                let mut due = None;
                $( due = earlier(due, self.$service.next_due()); )+
                due
            }

            /// Does the due work of each service; returns whether there was any.
            #[inline]
            fn run_all_due(&self, local: &Local) -> bool {
                let mut was_due = false;
                $( was_due |= self.$service.run_due(local); )+
                was_due
            }
        }
    };
}

/// Returns `true` if each row is at its number.
const fn are_rows(rows: &[usize]) -> bool {
    let mut at = 0;
    while at < rows.len() {
        if rows[at] != at {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns `true` if no number is used twice, or by the core.
const fn are_free(numbers: &[HandlerId]) -> bool {
    let mut at = 0;
    while at < numbers.len() {
        let mut before = 0;
        while before < at {
            if numbers[before].0 == numbers[at].0 {
                return false;
            }
            before += 1;
        }
        if Handler::of(numbers[at]).is_some() {
            return false;
        }
        at += 1;
    }
    true
}

services! {
    /// Collectives.
    teams: Teams {
        TEAM => team::receive,
    }
    /// Messages between two members of a team.
    messages: RefCell<MessageTable> {
        POINT_TO_POINT => point_to_point::receive,
    }
    /// Phasers, and the registrations that travel with tasks.
    phasers: PhaserTable {
        PHASER => phaser::receive,
        REGISTERED => phaser::receive_registered,
    }
    /// Channels.
    channels: RefCell<ChannelTable> {
        CHANNEL => channel::receive,
    }
    /// Tasks whose place was chosen.
    placed: PlacedTasks {
        PLACED => placed::receive,
    }
    /// Buckets of small items that travel together.
    aggregations: Aggregations {
        ITEMS_DONE => aggregation::receive,
    }
    /// Windows.
    windows: WindowTable {
        WINDOW => window::receive,
    }
    /// Shared objects.
    objects: ObjectTable {
        OBJECT => shared::receive,
    }
    /// Hubs, and the tasks that use them.
    hubs: HubTable {
        HUB => hubs::receive,
    }
}

/// Returns the services of place `here` of a run of `places` places, before anything happens.
pub fn services(here: PlaceId, places: u32) -> Box<dyn ServiceTable> {
    Box::new(Services::new(here, places))
}

impl ServiceTable for Services {
    fn states(&self) -> Vec<&dyn Any> {
        self.all_states()
    }

    fn receive(
        &self,
        local: &Local,
        id: HandlerId,
        source: PlaceId,
        reader: &mut Reader<'_>,
    ) -> std::result::Result<(), Refused> {
        Services::dispatch(local, id, source, reader)
    }

    fn place_died(&self, local: &Local, place: PlaceId) {
        self.tell_death(local, place);
    }

    fn next_due(&self) -> Option<Duration> {
        self.first_due()
    }

    fn run_due(&self, local: &Local) -> bool {
        self.run_all_due(local)
    }

    fn run_idle(&self, local: &Local) -> bool {
        self.teams.compare_waits_if_asked(local)
    }

    fn poll_values(&self, local: &Local) -> usize {
        channel::poll_rings(local)
    }

    fn has_arrivals(&self) -> bool {
        self.channels.borrow().have_values()
    }

    fn finish_ended(&self, key: Key) -> Result<()> {
        self.objects.finish_ended(key)
    }

    fn count(&self, counters: &mut CounterValues) {
        counters[CounterId::MemberUnexpected.index()] = self.messages.borrow().unexpected();
    }

    fn explain(&self, inquiry: &Inquiry<'_>) -> Vec<String> {
        self.explain_all(inquiry)
    }

    fn query(&self, place: PlaceId) -> Vec<u8> {
        self.teams.query(place)
    }

    fn compare_waits(&self, local: &Local) -> usize {
        compare_waits(local)
    }

    fn wait_reports(&self) -> usize {
        self.teams.wait_reports()
    }

    fn keep_fault(&self, fault: Error) {
        self.teams.keep_fault(fault);
    }

    fn take_fault(&self) -> Option<Error> {
        self.teams.take_fault()
    }

    fn send_refused(&self, local: &Local, body: &RefusedBody<'_>, error: Error) -> Result<Sent> {
        phaser::send_with_registrations(local, body, error)
    }

    fn decode_refused(
        &self,
        local: &Local,
        encode: &Encode<'_>,
        error: Error,
        decode: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        phaser::decode_here(local, encode, error, decode)
    }

    fn refused_call(&self, local: &Local, error: Error) -> Error {
        phaser::not_in_calls(local, error)
    }
}

#[cfg(test)]
mod tests {
    //! A table of services that record their calls.

    use super::*;
    use isles_runtime::Clock;
    use isles_transport::loopback::{Plan, World};
    use std::rc::Rc;

    thread_local! {
        static NOTES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    fn note(text: String) {
        NOTES.with_borrow_mut(|notes| notes.push(text));
    }

    fn receive<const N: u16>(
        _: &Local,
        source: PlaceId,
        _: &mut Reader<'_>,
    ) -> std::result::Result<(), Refused> {
        note(format!("message {N} of {source}"));
        Ok(())
    }

    /// A service that is due at `DUE` seconds, and has something to do if that is even.
    pub(crate) struct Noted<const DUE: u64>;

    impl<const DUE: u64> Service for Noted<DUE> {
        const ROW: usize = match DUE {
            5 => 0,
            2 => 1,
            _ => 2,
        };

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

    const FIRST: HandlerId = HandlerId(100);
    const THIRD: HandlerId = HandlerId(102);
    const FOURTH: HandlerId = HandlerId(103);
    const LAST: HandlerId = HandlerId(104);

    services! {
        last_number: Noted<5> {
            LAST => receive::<104>,
        }
        first_number: Noted<2> {
            FIRST => receive::<100>,
            FOURTH => receive::<103>,
        }
        never_due: Noted<0> {
            THIRD => receive::<102>,
        }
    }

    /// The services of place 0 of 2, and that place.
    fn services() -> (Rc<Local>, Services) {
        let services = Services::new(PlaceId(0), 2);
        assert_eq!(NOTES.take(), ["5 at place 0 of 2", "2 at place 0 of 2", "0 at place 0 of 2"]);
        let world = World::new(2, Plan::calm(0));
        (Local::new(Box::new(world.endpoint(PlaceId(0))), Clock::host(), |_, _| Box::new(())), services)
    }

    #[test]
    fn each_message_goes_to_its_receiver() {
        let (local, _) = services();
        let deliver = |id| Services::dispatch(&local, id, PlaceId(1), &mut Reader::new(&[]));
        for message in [FIRST, THIRD, FOURTH, LAST] {
            assert!(deliver(message).is_ok());
            assert_eq!(NOTES.take(), [format!("message {} of place 1", message.0)]);
        }
        assert!(matches!(deliver(HandlerId(101)), Err(Refused::UnknownHandler(101))));
    }

    #[test]
    fn a_number_that_is_used_twice_or_by_the_core_is_refused() {
        assert!(are_free(&[FIRST, THIRD]) && are_rows(&[0, 1]));
        assert!(!are_free(&[FIRST, THIRD, FIRST]) && !are_free(&[FIRST, Handler::Part.id()]));
        assert!(!are_rows(&[1, 0]));
    }

    #[test]
    fn each_service_hears_of_a_death_in_the_order_of_the_rows() {
        let (local, services) = services();
        assert_eq!(services.all_states().len(), 3);
        services.tell_death(&local, PlaceId(1));
        assert_eq!(NOTES.take(), ["5 without place 1", "2 without place 1", "0 without place 1"]);
    }

    #[test]
    fn explanations_are_in_the_order_of_the_first_number_of_each_service() {
        let (_, services) = services();
        let lines = services.explain_all(&Inquiry { asker: PlaceId(1), query: &[] });
        let expected = ["2 for place 1", "2 again", "0 for place 1", "0 again", "5 for place 1", "5 again"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_earliest_service_is_due_next_and_all_do_what_is_due() {
        let (local, services) = services();
        assert_eq!(services.first_due(), Some(Duration::from_secs(2)));
        assert!(services.run_all_due(&local));
        assert_eq!(NOTES.take(), ["5 runs", "2 runs", "0 runs"]);
    }

    #[test]
    fn the_page_about_services_shows_a_service_as_it_is() {
        let page = include_str!("../../../../docs/design/adding-a-service.md");
        let service = include_str!("../placed.rs").trim_end();
        assert!(page.contains(service), "copy placed.rs into docs/design/adding-a-service.md");
        assert!(page.contains("PLACED => placed::receive,"));
    }
}
