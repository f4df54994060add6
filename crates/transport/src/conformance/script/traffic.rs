//! Messages between two places, as a function of the pair alone.
//!
//! The sender and the receiver compute the same list and never exchange it: the list is the oracle of the suite. This
//! file sends nothing.

use crate::random::{Random, scramble};
use crate::{Body, Class, HandlerId, Limits, PlaceId};
use std::fmt;

/// One ordered pair of places and a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conformance) struct Route {
    pub(in crate::conformance) source: PlaceId,
    pub(in crate::conformance) target: PlaceId,
    pub(in crate::conformance) class: Class,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} from {} to {}", self.class, self.source, self.target)
    }
}

/// Form in which a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conformance) enum SendForm {
    Small,
    Block,
    Abandoned,
}

/// One expected message.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct TestMessage {
    pub(in crate::conformance) kind: SendForm,
    pub(in crate::conformance) len: usize,
    /// Requested room; at least `len`.
    pub(in crate::conformance) room: usize,
    /// Position in its route, truncated to 16 bits: it shows the order if the bytes are too few.
    pub(in crate::conformance) handler: HandlerId,
    key: u64,
}

/// Draws the kinds and lengths of one route.
pub(in crate::conformance) type Traffic = fn(&mut Random, Class, &Limits) -> Vec<(SendForm, usize)>;

/// Returns the length of the largest small message of `class`.
pub(in crate::conformance) fn small_max(class: Class, limits: &Limits) -> usize {
    match class {
        Class::Control => limits.control_bytes_max,
        Class::Data => limits.inline_bytes_max,
    }
}

/// Returns the messages of `route`, in order.
pub(in crate::conformance) fn test_messages(
    route: Route,
    limits: &Limits,
    traffic: Traffic,
) -> Vec<TestMessage> {
    let pair = u64::from(route.source.0) << 32 | u64::from(route.target.0);
    let mut random = Random::new(scramble(pair ^ (route.class as u64) << 63));
    let shapes = traffic(&mut random, route.class, limits);
    let test_message = |(number, (kind, len)): (usize, (SendForm, usize))| {
        let slack = small_max(route.class, limits).saturating_sub(len);
        let room = len + random.index(slack.min(64) + 1);
        TestMessage { kind, len, room, handler: HandlerId(number as u16), key: random.bits() }
    };
    shapes.into_iter().enumerate().map(test_message).collect()
}

impl TestMessage {
    /// Writes the content of this message; `bytes` has its length.
    pub(in crate::conformance) fn write(&self, bytes: &mut [u8]) {
        Random::new(self.key).fill(bytes);
    }

    /// Panics unless `handler` and `body` are this message, as it arrives on `route`.
    pub(in crate::conformance) fn check(&self, route: Route, handler: HandlerId, body: &Body<'_>) {
        assert_eq!(handler, self.handler, "{route}: order broken");
        match (self.kind, body) {
            (SendForm::Small, Body::Inline(bytes)) => {
                let aligned = bytes.is_empty() || bytes.as_ptr().align_offset(8) == 0;
                assert!(aligned, "{route}: inline bytes are not aligned to 8");
            }
            (SendForm::Block, Body::Block(_)) => {}
            (kind, _) => panic!("{route}: letter {} was sent as {kind:?}", handler.0),
        }
        self.check_bytes(route, body.bytes());
    }

    /// As `check`, of a message that is shown before it is taken: a large one may be shown like a small one.
    pub(in crate::conformance) fn check_shown(&self, route: Route, handler: HandlerId, bytes: &[u8]) {
        assert_eq!(handler, self.handler, "{route}: order broken");
        self.check_bytes(route, bytes);
    }

    /// Panics unless `bytes` are the content of this message.
    pub(in crate::conformance) fn check_bytes(&self, route: Route, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len, "{route}: length changed, letter {}", self.handler.0);
        let mut expected = vec![0; self.len];
        self.write(&mut expected);
        assert!(bytes == expected, "{route}: bytes changed, letter {} of {} bytes", self.handler.0, self.len);
    }
}
