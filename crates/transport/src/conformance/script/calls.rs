//! Scripts and preludes about single calls: refusals, waits, sends from within `deliver`.

use super::traffic::small_max;
use super::{Script, Step};
use crate::{Arrival, Class, Endpoint, EndpointExt, HandlerId, Inbound, PlaceId, SendError};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

/// Number of waits of each kind.
const WAITS: u32 = 50;

fn some_other(endpoint: &dyn Endpoint) -> PlaceId {
    PlaceId((endpoint.here().0 + 1) % endpoint.places())
}

/// Panics unless the constants of the endpoint make sense.
pub(in crate::conformance) fn check_constants(endpoint: &dyn Endpoint, here: PlaceId, places: u32) {
    assert_eq!((endpoint.here(), endpoint.places()), (here, places));
    let limits = endpoint.limits();
    assert!(limits.control_bytes_max >= 64, "no room for control: {limits:?}");
    assert!(limits.inline_bytes_max >= 64, "no room for data: {limits:?}");
    assert!(limits.block_bytes_max >= limits.inline_bytes_max, "blocks are the large messages: {limits:?}");
    assert!((0..places).all(|place| !endpoint.is_dead(PlaceId(place))), "somebody is dead from the start");
}

/// Panics unless one byte more than the limit is refused, in each way of sending.
pub(in crate::conformance) fn send_too_long(endpoint: &dyn Endpoint) {
    let (to, limits) = (some_other(endpoint), endpoint.limits());
    for class in [Class::Control, Class::Data] {
        let max = small_max(class, &limits);
        let answer = endpoint.send(to, class, HandlerId(0), max + 1, &mut |_| panic!("`fill` was called"));
        assert_eq!(answer, Err(SendError::TooLong { len: max + 1, max }), "{class:?}");
        let Some(len) = limits.block_bytes_max.checked_add(1) else { continue };
        let answer = endpoint.send_block(to, class, HandlerId(0), len, &mut |_| panic!("`fill` was called"));
        assert_eq!(answer, Err(SendError::TooLong { len, max: len - 1 }), "{class:?}, block");
    }
}

/// Panics unless each way of sending to oneself panics.
pub(in crate::conformance) fn send_to_oneself(endpoint: &dyn Endpoint) {
    let here = endpoint.here();
    for class in [Class::Control, Class::Data] {
        let small = || endpoint.send(here, class, HandlerId(0), 8, &mut |_| Some(8));
        assert!(catch_unwind(AssertUnwindSafe(small)).is_err(), "{class:?} to oneself was accepted");
        let block = || endpoint.send_block(here, class, HandlerId(0), 8, &mut |_| ());
        assert!(catch_unwind(AssertUnwindSafe(block)).is_err(), "a {class:?} block to oneself was accepted");
    }
}

/// Panics unless each call from within each kind of `fill` panics and leaves the message alone.
pub(in crate::conformance) fn call_from_within_fill(endpoint: &dyn Endpoint) {
    let to = some_other(endpoint);
    for class in [Class::Control, Class::Data] {
        let answer = endpoint.send(to, class, HandlerId(0), 8, &mut |_| {
            call_everything(endpoint, to);
            None
        });
        assert_eq!(answer, Err(SendError::Abandoned), "{class:?}");
        // A block cannot be abandoned, so its writer panics in the end.
        let mut reached = false;
        let block = || {
            endpoint.send_block(to, class, HandlerId(0), 8, &mut |_| {
                call_everything(endpoint, to);
                reached = true;
                panic!("this block is not written");
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(block)).is_err() && reached, "{class:?}, block");
    }
}

/// Panics unless each call that sends, takes or waits panics.
fn call_everything(endpoint: &dyn Endpoint, to: PlaceId) {
    let refuses = |name: &str, call: &dyn Fn()| {
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "{name} from within `fill` was accepted");
    };
    for class in [Class::Control, Class::Data] {
        refuses("send", &|| drop(endpoint.send(to, class, HandlerId(0), 8, &mut |_| Some(8))));
        refuses("send_block", &|| drop(endpoint.send_block(to, class, HandlerId(0), 8, &mut |_| ())));
        let offered = endpoint.multicast();
        if let Some(multicast) = offered.filter(|multicast| !multicast.bytes(class).is_empty()) {
            let message = vec![0; multicast.bytes(class).start];
            refuses("multicast", &|| drop(multicast.send_to_all(&[to], class, HandlerId(0), &message)));
        }
    }
    refuses("progress", &|| assert_eq!(endpoint.progress(Inbound::All, &mut |_| ()), 0));
    refuses("wait", &|| endpoint.wait(Some(Duration::ZERO)));
}

/// Hangs unless an unpark ends the current wait, or the next one.
pub(in crate::conformance) fn wait_for_unpark(endpoint: &dyn Endpoint) {
    for _ in 0..WAITS {
        endpoint.unparker().unpark();
        endpoint.wait(None);
        let unparker = endpoint.unparker();
        let other = thread::spawn(move || unparker.unpark());
        endpoint.wait(None);
        other.join().expect("unpark does not panic");
    }
}

/// Hangs unless the further condition of a wait ends it. A wait that would end immediately is reported before it.
pub(in crate::conformance) fn wait_with_condition(endpoint: &dyn Endpoint) {
    for _ in 0..WAITS {
        endpoint.wait_with(None, &|| true);
        endpoint.unparker().unpark();
        assert!(endpoint.is_ready(), "an unpark has ended no wait yet, and nothing is ready");
        endpoint.wait(None);
    }
}

/// Hangs unless a wait ends at its timeout.
pub(in crate::conformance) fn wait_for_timeout(endpoint: &dyn Endpoint) {
    for _ in 0..WAITS {
        endpoint.wait(Some(Duration::ZERO));
        endpoint.wait(Some(Duration::from_micros(100)));
    }
}

/// Plays one ball with each other place in each class, from within `deliver`.
///
/// A ball is a number that grows with each throw; the lower place of the pair throws the even numbers.
pub(in crate::conformance) struct PingPong {
    /// Number of throws of each ball; even.
    throws: u64,
    served: bool,
    thrown: u64,
    /// Messages that did not fit immediately; at most one for each route.
    unsent: VecDeque<(PlaceId, Class, u64)>,
    /// Number of balls whose last throw was made or caught here.
    over: u32,
}

impl PingPong {
    pub(in crate::conformance) fn new(throws: u64) -> PingPong {
        assert!(throws > 0 && throws.is_multiple_of(2), "the upper place throws last");
        PingPong { throws, served: false, thrown: 0, unsent: VecDeque::new(), over: 0 }
    }

    fn throw(&mut self, endpoint: &dyn Endpoint, ball: (PlaceId, Class, u64)) {
        let (to, class, number) = ball;
        let answer = endpoint.send(to, class, HandlerId(0), 8, &mut |bytes| {
            bytes.copy_from_slice(&number.to_le_bytes());
            Some(8)
        });
        match answer {
            Ok(()) => {
                self.thrown += 1;
                self.over += u32::from(number + 1 == self.throws);
            }
            Err(SendError::Full) => self.unsent.push_back(ball),
            Err(error) => panic!("{to}: {error:?}"),
        }
    }

    fn catch(&mut self, endpoint: &dyn Endpoint, arrival: Arrival<'_>) {
        let Arrival::Message(message) = arrival else { panic!("nobody dies") };
        let number = u64::from_le_bytes(message.body.bytes().try_into().expect("8 bytes"));
        assert_eq!(number.is_multiple_of(2), message.source < endpoint.here(), "a ball came back unthrown");
        if number + 1 == self.throws {
            self.over += 1;
        } else {
            self.throw(endpoint, (message.source, message.class, number + 1));
        }
    }
}

impl Script for PingPong {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let thrown_before = self.thrown;
        if !self.served {
            let uppers = (endpoint.here().0 + 1..endpoint.places()).map(PlaceId);
            self.unsent = uppers.flat_map(|to| [(to, Class::Data, 0), (to, Class::Control, 0)]).collect();
            self.served = true;
        }
        for ball in std::mem::take(&mut self.unsent) {
            self.throw(endpoint, ball);
        }
        let arrived = endpoint.progress(Inbound::All, &mut |arrival| self.catch(endpoint, arrival));
        if self.over == 2 * (endpoint.places() - 1) {
            return Step::Done;
        }
        if arrived > 0 || self.thrown > thrown_before { Step::Busy } else { Step::Idle }
    }
}
