//! The script of most promises: all places send messages to each other and check the messages they receive.
//!
//! It keeps blocks after the call that delivered them, checks them again, and drops them in a random order. It never
//! waits while it keeps one, so any transport that can carry one block at a time succeeds. Invariant: it is done when
//! all messages are sent, all expected ones are received and no block is kept.

use super::traffic::{Route, SendForm, TestMessage, Traffic, test_messages};
use super::{Script, Step};
use crate::random::Random;
use crate::{Arrival, Block, Body, Class, Endpoint, Inbound, Message, Next, PlaceId, SendError};
use std::collections::VecDeque;

/// Maximum number of messages to one place in one step.
const MESSAGES_PER_STEP: usize = 8;

/// Chance that a step drops a kept block, in percent.
const DROP_PERCENT: u64 = 30;

/// Chance that a message that is inspected alone is taken, in percent.
const PICK_PERCENT: u64 = 50;

pub(in crate::conformance) struct Exchange {
    traffic: Traffic,
    prelude: fn(&dyn Endpoint),
    /// Messages still to be sent and to be received; `None` before the first step.
    lanes: Option<Lanes>,
    kept: Vec<(Route, TestMessage, Block)>,
    /// Inspects the next message of each route alone before it takes arrivals.
    picks: bool,
    random: Random,
}

struct Lanes {
    outgoing: Vec<(Route, VecDeque<TestMessage>)>,
    incoming: Vec<(Route, VecDeque<TestMessage>)>,
}

impl Exchange {
    /// Exchanges the messages of `traffic`.
    pub(in crate::conformance) fn of(here: PlaceId, traffic: Traffic) -> Exchange {
        Exchange::after(here, |_| (), traffic)
    }

    /// As `of`, after a first step that calls `prelude`.
    pub(in crate::conformance) fn after(
        here: PlaceId,
        prelude: fn(&dyn Endpoint),
        traffic: Traffic,
    ) -> Exchange {
        let random = Random::new(u64::from(here.0));
        Exchange { traffic, prelude, lanes: None, kept: Vec::new(), picks: false, random }
    }

    /// As `of`, with some messages taken alone.
    pub(in crate::conformance) fn picking(here: PlaceId, traffic: Traffic) -> Exchange {
        Exchange { picks: true, ..Exchange::of(here, traffic) }
    }

    fn drop_one_block(&mut self) {
        let (route, test_message, block) = self.kept.swap_remove(self.random.index(self.kept.len()));
        test_message.check_bytes(route, block.bytes());
    }
}

impl Script for Exchange {
    fn step(&mut self, endpoint: &dyn Endpoint) -> Step {
        let Some(lanes) = &mut self.lanes else {
            (self.prelude)(endpoint);
            self.lanes = Some(Lanes::new(endpoint, self.traffic));
            return Step::Busy;
        };
        let picked = if self.picks { lanes.pick(endpoint, &mut self.random) } else { 0 };
        let arrived = endpoint.progress(Inbound::All, &mut |arrival| match arrival {
            Arrival::Message(message) => self.kept.extend(lanes.check(endpoint.here(), message)),
            Arrival::Died { place, .. } => panic!("{place} was told dead and is not"),
        });
        let sent = lanes.send(endpoint);
        let finished = lanes.outgoing.is_empty()
            && lanes.incoming.iter().all(|(_, test_messages)| test_messages.is_empty());
        let worked = picked + arrived + sent > 0;
        if !self.kept.is_empty() && (!worked || self.random.chance(DROP_PERCENT)) {
            self.drop_one_block();
            return Step::Busy;
        }
        // A message that has arrived everywhere no longer needs this place; the endpoint reports that.
        match (worked, finished && self.kept.is_empty() && !endpoint.is_sending()) {
            (_, true) => Step::Done,
            (true, false) => Step::Busy,
            (false, false) => Step::Idle,
        }
    }
}

impl Lanes {
    fn new(endpoint: &dyn Endpoint, traffic: Traffic) -> Lanes {
        let (here, limits) = (endpoint.here(), endpoint.limits());
        let others = || (0..endpoint.places()).map(PlaceId).filter(|place| *place != here);
        let mut lanes = Lanes { outgoing: Vec::new(), incoming: Vec::new() };
        for (other, class) in others().flat_map(|other| [(other, Class::Data), (other, Class::Control)]) {
            let route = Route { source: here, target: other, class };
            lanes.outgoing.push((route, test_messages(route, &limits, traffic).into()));
            let route = Route { source: other, target: here, class };
            let expected = test_messages(route, &limits, traffic);
            lanes
                .incoming
                .push((route, expected.into_iter().filter(|l| l.kind != SendForm::Abandoned).collect()));
        }
        lanes
    }

    /// Sends some messages on each route. Returns their number.
    fn send(&mut self, endpoint: &dyn Endpoint) -> usize {
        let mut sent = 0;
        for (route, test_messages) in &mut self.outgoing {
            for _ in 0..MESSAGES_PER_STEP {
                if !test_messages
                    .front()
                    .is_some_and(|test_message| send_test_message(endpoint, *route, test_message))
                {
                    break;
                }
                test_messages.pop_front();
                sent += 1;
            }
        }
        self.outgoing.retain(|(_, test_messages)| !test_messages.is_empty());
        sent
    }

    /// Takes the next message of some routes alone. Returns their number.
    fn pick(&mut self, endpoint: &dyn Endpoint, random: &mut Random) -> usize {
        let mut picked = 0;
        for (route, test_messages) in &mut self.incoming {
            let (wanted, mut shown) = (random.chance(PICK_PERCENT), false);
            let next = endpoint.take_next(route.source, route.class, &mut |handler, bytes| {
                let test_message =
                    test_messages.front().unwrap_or_else(|| panic!("{route}: one message too many"));
                test_message.check_shown(*route, handler, bytes);
                shown = true;
                wanted
            });
            assert_eq!(
                next == Next::Taken,
                shown && wanted,
                "{route}: {next:?}, shown {shown}, wanted {wanted}"
            );
            if next == Next::Taken {
                test_messages.pop_front();
                picked += 1;
            }
        }
        picked
    }

    /// Checks one message against the expected one. Returns its block, to be kept.
    fn check(&mut self, here: PlaceId, message: Message<'_>) -> Option<(Route, TestMessage, Block)> {
        let route = Route { source: message.source, target: here, class: message.class };
        let lane = self.incoming.iter_mut().find(|(incoming, _)| *incoming == route);
        let (_, test_messages) = lane.unwrap_or_else(|| panic!("{route}: no such place"));
        let test_message =
            test_messages.pop_front().unwrap_or_else(|| panic!("{route}: one message too many"));
        test_message.check(route, message.handler, &message.body);
        match message.body {
            Body::Block(block) => Some((route, test_message, block)),
            Body::Inline(_) => None,
        }
    }
}

/// Sends one message. Returns `false` if there was no room.
fn send_test_message(endpoint: &dyn Endpoint, route: Route, test_message: &TestMessage) -> bool {
    let (target, class, handler) = (route.target, route.class, test_message.handler);
    let answer = if test_message.kind == SendForm::Block {
        endpoint.send_block(target, class, handler, test_message.len, &mut |bytes| {
            assert_eq!(bytes.len(), test_message.len, "{route}: another length than asked for");
            test_message.write(bytes);
        })
    } else {
        endpoint.send(target, class, handler, test_message.room, &mut |bytes| {
            assert_eq!(bytes.len(), test_message.room, "{route}: another room than asked for");
            test_message.write(&mut bytes[..test_message.len]);
            (test_message.kind != SendForm::Abandoned).then_some(test_message.len)
        })
    };
    match (answer, test_message.kind) {
        (Ok(()), SendForm::Small | SendForm::Block) | (Err(SendError::Abandoned), SendForm::Abandoned) => {
            true
        }
        // An abandoned message is not expected: its target may have received everything and left.
        (Err(SendError::DeadPlace(place)), SendForm::Abandoned) if place == target => true,
        (Err(SendError::Full), _) => false,
        (answer, kind) => {
            panic!("{route}: the answer to {kind:?} of {} bytes was {answer:?}", test_message.len)
        }
    }
}
