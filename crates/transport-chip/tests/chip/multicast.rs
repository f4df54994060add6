//! Messages to several places: written once, fetched by each, and in order with all other messages, despite deaths.

use isles_chip::Chip;
use isles_transport::random::Random;
use isles_transport::{
    Arrival, Class, Endpoint, HandlerId, Inbound, Multicast, PlaceId, SendError, Work, WorkModel,
};
use isles_transport_chip::{ChipEndpoint, ChipWorld, Costs, Protocol, ProtocolConfig, Report, TurnOutcome};
use std::collections::BTreeMap;
use std::panic::Location;

const CLASSES: [Class; 2] = [Class::Control, Class::Data];

fn scc(places: u32, buffer_lines: u32, seed: u64) -> (ChipWorld, Vec<ChipEndpoint>) {
    joined(places, buffer_lines, Protocol::Doorbell.into(), seed)
}

fn joined(
    places: u32,
    buffer_lines: u32,
    wiring: ProtocolConfig,
    seed: u64,
) -> (ChipWorld, Vec<ChipEndpoint>) {
    let costs = Costs::of(&Chip::find("scc").unwrap()).unwrap().with_buffer_lines(buffer_lines);
    let world = ChipWorld::with_protocol(places, costs, wiring, seed).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

fn run(world: &ChipWorld, mut step: impl FnMut(PlaceId) -> TurnOutcome) -> Report {
    while let Some(place) = world.next() {
        let turn = step(place);
        world.end_turn(place, turn);
    }
    world.report()
}

/// Sends 512 bytes from the first place to three others, at once or one by one.
fn to_three(places: u32, at_once: bool) -> Report {
    let (world, endpoints) = scc(places, 256, 0);
    let (mut begun, others) = (false, [1, 2, 3].map(PlaceId));
    run(&world, |place| {
        let endpoint = &endpoints[place.index()];
        if place.0 == 0 && !std::mem::replace(&mut begun, true) {
            if at_once {
                endpoint.send_to_all(&others, Class::Data, HandlerId(1), &[7; 512]).unwrap();
            } else {
                for other in others {
                    let mut fill = |bytes: &mut [u8]| {
                        bytes.fill(7);
                        Some(512)
                    };
                    endpoint.send(other, Class::Data, HandlerId(1), 512, &mut fill).unwrap();
                }
            }
        }
        endpoint.progress(Inbound::All, &mut |arrival| {
            if let Arrival::Message(message) = arrival {
                assert_eq!((message.source, message.body.bytes()), (PlaceId(0), &[7; 512][..]));
            }
        });
        TurnOutcome::Idle { due: None }
    })
}

#[test]
fn the_lines_of_a_multicast_are_written_once_and_its_sender_is_free_sooner() {
    // With four places, each ring has room for the message, so the pointer to its slot is an additional line.
    for (places, pointers) in [(10, 0), (4, 3)] {
        let [at_once, one_by_one] = [true, false].map(|at_once| to_three(places, at_once));
        assert_eq!((at_once.messages, at_once.bytes), (3, 3 * 512));
        assert_eq!(one_by_one.lines.written - at_once.lines.written, 2 * 16 - pointers);
        assert_eq!(one_by_one.lines.read, at_once.lines.read - pointers, "each fetches all of it");
        assert!(at_once.time < one_by_one.time, "{} {}", at_once.time, one_by_one.time);
    }
}

#[test]
fn a_slot_is_free_again_when_the_last_receiver_has_fetched_it() {
    const SLOTS: u32 = 4; // of data, in docs/chip/protocols/doorbell.md
    let (world, endpoints) = scc(4, 256, 0);
    let (mut sent, mut sent_before, mut ignored) = (0, 0, 0);
    let report = run(&world, |place| {
        let endpoint = &endpoints[place.index()];
        if place.0 == 3 && ignored < 100 {
            endpoint.work(&Work::new().cycles(1_000), Location::caller());
            ignored += 1;
            sent_before = sent;
            return TurnOutcome::Busy;
        }
        endpoint.progress(Inbound::All, &mut |_| ());
        let others = [1, 2, 3].map(PlaceId);
        let send = || endpoint.send_to_all(&others, Class::Data, HandlerId(1), &[1; 512]);
        while place.0 == 0 && sent < SLOTS + 1 && send().is_ok() {
            sent += 1;
        }
        TurnOutcome::Idle { due: None }
    });
    assert_eq!((sent_before, sent), (SLOTS, SLOTS + 1));
    assert_eq!(report.messages, u64::from(3 * (SLOTS + 1)));
}

#[test]
fn lengths_that_are_not_offered_are_refused_and_nothing_is_sent() {
    let (world, endpoints) = scc(4, 256, 0);
    for class in CLASSES {
        let offered = endpoints[0].bytes(class);
        for len in [0, offered.start - 1, offered.end] {
            let refused =
                endpoints[0].send_to_all(&[PlaceId(1), PlaceId(2)], class, HandlerId(1), &vec![1; len]);
            assert!(matches!(refused, Err(SendError::TooLong { .. })), "{len}: {refused:?}");
        }
    }
    let report = run(&world, |place| {
        endpoints[place.index()].progress(Inbound::All, &mut |_| ());
        TurnOutcome::Idle { due: None }
    });
    assert_eq!(report.messages, 0);
}

#[test]
fn only_the_protocol_isles_offers_them() {
    for protocol in Protocol::OF_BUFFERS {
        let costs = Costs::of(&Chip::find("scc").unwrap()).unwrap();
        let world = ChipWorld::with_protocol(4, costs, protocol, 0).unwrap();
        let offered = world.endpoint(PlaceId(0)).bytes(Class::Control);
        assert_eq!(offered.is_empty(), protocol != Protocol::Doorbell, "{protocol}");
    }
}

/// Source, target, class.
type Lane = (PlaceId, PlaceId, usize);

/// Messages sent and received on each lane.
#[derive(Default)]
struct MessageLog {
    sent: BTreeMap<Lane, u32>,
    received: BTreeMap<Lane, u32>,
}

/// A place that sends to one or several places at random; each message begins with its number on its lane.
struct RandomSender {
    endpoint: ChipEndpoint,
    random: Random,
    left: u32,
    /// Next message, if it was refused: receivers, class, length.
    next: Option<(Vec<PlaceId>, Class, usize)>,
}

impl RandomSender {
    fn choose(&mut self) -> (Vec<PlaceId>, Class, usize) {
        let class = CLASSES[self.random.below(2) as usize];
        let here = self.endpoint.here();
        let mut to: Vec<PlaceId> = (0..self.endpoint.places()).map(PlaceId).collect();
        to.retain(|place| *place != here && self.random.below(2) == 0);
        let offered = self.endpoint.bytes(class);
        if offered.is_empty() {
            to.truncate(1); // A message longer than a ring is longer than a slot, too.
        }
        let long = offered.start + self.random.below(offered.len().max(1) as u64) as usize;
        let is_short = to.len() < 2 && (offered.is_empty() || self.random.below(2) == 0);
        let is_block = to.len() < 2 && self.random.below(4) == 0;
        let len = if is_short { 4 + long % 20 } else { long.max(4) };
        (to, class, if is_block { 1_000 + 3 * long } else { len })
    }

    /// Tries to send to all of `to`, and logs the messages sent.
    fn send(&self, to: &[PlaceId], class: Class, len: usize, log: &mut MessageLog) -> Result<(), SendError> {
        let lane = |to: PlaceId| (self.endpoint.here(), to, class as usize);
        let number = |log: &MessageLog, to: PlaceId| *log.sent.get(&lane(to)).unwrap_or(&0);
        match to {
            [] => return Ok(()),
            [one] => {
                let number = number(log, *one);
                let mut mark = |bytes: &mut [u8]| bytes[..4].copy_from_slice(&number.to_le_bytes());
                let limits = self.endpoint.limits();
                let message_bytes_max = [limits.control_bytes_max, limits.inline_bytes_max][class as usize];
                if len <= message_bytes_max {
                    let mut fill = |bytes: &mut [u8]| {
                        mark(bytes);
                        Some(len)
                    };
                    self.endpoint.send(*one, class, HandlerId(1), len, &mut fill)?;
                } else {
                    self.endpoint.send_block(*one, class, HandlerId(1), len, &mut mark)?;
                }
            }
            // One content for all, so without a number: `HandlerId(2)` says so.
            _ => self.endpoint.send_to_all(to, class, HandlerId(2), &vec![9; len])?,
        }
        to.iter().for_each(|to| *log.sent.entry(lane(*to)).or_default() += 1);
        Ok(())
    }

    fn step(&mut self, log: &mut MessageLog) -> TurnOutcome {
        let here = self.endpoint.here();
        let arrived = self.endpoint.progress(Inbound::All, &mut |arrival| {
            let Arrival::Message(message) = arrival else { return };
            let count = log.received.entry((message.source, here, message.class as usize)).or_default();
            let bytes = message.body.bytes();
            match message.handler {
                HandlerId(1) => assert_eq!(bytes[..4], count.to_le_bytes(), "in order"),
                _ => assert!(bytes.iter().all(|byte| *byte == 9)),
            }
            *count += 1;
        });
        let sent = self.left > 0 && self.send_next(log);
        self.left -= u32::from(sent);
        if arrived > 0 || sent { TurnOutcome::Busy } else { TurnOutcome::Idle { due: None } }
    }

    fn send_next(&mut self, log: &mut MessageLog) -> bool {
        let (mut to, class, len) = match self.next.take() {
            Some(next) => next,
            None => self.choose(),
        };
        loop {
            match self.send(&to, class, len, log) {
                Ok(()) => return true,
                Err(SendError::DeadPlace(dead)) => to.retain(|place| *place != dead),
                Err(SendError::Full) => {
                    self.next = Some((to, class, len));
                    return false;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Runs `places` places, of which one is killed and another one leaves during the run.
fn play(places: u32, buffer_lines: u32, relays: Option<u32>, seed: u64) {
    const MESSAGES: u32 = 60;
    let wiring = ProtocolConfig { protocol: Protocol::Doorbell, relays };
    let (world, endpoints) = joined(places, buffer_lines, wiring, seed);
    let sender = |endpoint: ChipEndpoint| {
        let random = Random::new(seed << 8 | u64::from(endpoint.here().0));
        RandomSender { endpoint, random, left: MESSAGES, next: None }
    };
    let mut senders: Vec<RandomSender> = endpoints.into_iter().map(sender).collect();
    let (mut log, mut turns) = (MessageLog::default(), 0);
    let mut random = Random::new(seed);
    let (killed, leaver) =
        (PlaceId(random.below(u64::from(places)) as u32), PlaceId(random.below(u64::from(places)) as u32));
    let (kill_at, leave_after) =
        (random.below(60 * u64::from(places)), random.below(u64::from(MESSAGES)) as u32);
    let (mut is_killed, mut has_left) = (false, false);
    run(&world, |place| {
        turns += 1;
        if has_left && place == leaver {
            return TurnOutcome::Idle { due: None };
        }
        let turn = senders[place.index()].step(&mut log);
        if turns == kill_at && killed != leaver && places > 3 {
            world.kill(killed);
            is_killed = true;
        }
        let sender = &mut senders[leaver.index()];
        if place == leaver && sender.left <= leave_after && !has_left && places > 3 {
            (sender.left, sender.next, has_left) = (0, None, true);
            sender.endpoint.leave();
        }
        turn
    });
    let takes = |place: PlaceId| !(is_killed && place == killed || has_left && place == leaver);
    for sender in senders.iter().filter(|sender| takes(sender.endpoint.here())) {
        assert_eq!(sender.left, 0, "{} of seed {seed} has sent all", sender.endpoint.here());
    }
    for (lane, sent) in log.sent.iter().filter(|((_, to, _), _)| takes(*to)) {
        let received = *log.received.get(lane).unwrap_or(&0);
        // A block of a place that dies or leaves may be cut off in flight.
        let is_cut = !takes(lane.0) && received + 1 == *sent;
        assert!(received == *sent || is_cut, "{lane:?} of seed {seed}: {received} of {sent}");
    }
}

#[test]
fn all_arrives_in_order_whatever_the_buffers_and_whoever_dies() {
    for seed in 0..60 {
        let places = 2 + (seed % 11) as u32;
        let lines = [256, 128, 320][seed as usize % 3];
        play(places, lines, None, seed);
    }
    play(48, 256, None, 1);
    play(48, 256, None, 2);
}

#[test]
fn the_same_holds_of_asynchronous_broadcasts_from_all_places_at_once() {
    for seed in 0..60 {
        let places = 2 + (seed % 11) as u32;
        let (lines, children) = ([256, 190, 320][seed as usize % 3], 1 + seed as u32 % 5);
        play(places, lines, Some(children), seed);
    }
    play(48, 256, Some(7), 1);
    play(48, 256, Some(2), 2);
}

#[test]
fn a_protocol_that_has_no_such_messages_takes_none_of_any_length() {
    for protocol in Protocol::OF_BUFFERS.into_iter().filter(|protocol| *protocol != Protocol::Doorbell) {
        let (world, endpoints) = joined(3, 256, protocol.into(), 0);
        let sender = &endpoints[world.next().unwrap().index()];
        let others: Vec<PlaceId> = (0..3).map(PlaceId).filter(|place| *place != sender.here()).collect();
        for class in CLASSES {
            let send = |len| sender.send_to_all(&others, class, HandlerId(1), &[7; 64][..len]);
            assert_eq!(send(0), Err(SendError::Full), "{protocol}");
            assert!(matches!(send(64), Err(SendError::TooLong { .. })), "{protocol}");
        }
        assert_eq!(world.report().messages, 0, "{protocol}");
    }
}
