//! Blocked sends with `rcce` and `rcce-x10`: no place waits forever, and other messages still arrive.

use isles_chip::Chip;
use isles_transport::{
    Arrival, Body, Class, Endpoint, HandlerId, Inbound, Message, PlaceId, SendError, Work, WorkModel,
};
use isles_transport_chip::{ChipEndpoint, ChipWorld, Costs, Protocol, TurnOutcome};
use std::panic::Location;
use std::time::Duration;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);
const C: PlaceId = PlaceId(2);
const D: PlaceId = PlaceId(3);

const STANDING: [Protocol; 2] = [Protocol::Rcce, Protocol::RcceX10];
const IDLE: TurnOutcome = TurnOutcome::Idle { due: None };

fn scc(protocol: Protocol, places: u32, seed: u64) -> (ChipWorld, Vec<ChipEndpoint>) {
    let costs = Costs::of(&Chip::find("scc").unwrap()).unwrap();
    let world = ChipWorld::with_protocol(places, costs, protocol, seed).unwrap();
    let endpoints = (0..places).map(|place| world.endpoint(PlaceId(place))).collect();
    (world, endpoints)
}

fn send(from: &ChipEndpoint, to: PlaceId) -> Result<(), SendError> {
    from.send(to, Class::Data, HandlerId(1), 8, &mut |_| Some(8))
}

fn take(endpoint: &ChipEndpoint) -> usize {
    endpoint.progress(Inbound::All, &mut |_| ())
}

fn compute(endpoint: &ChipEndpoint, micros: u64) {
    endpoint.work(&Work::new().cycles(micros * 1_600 / 3), Location::caller());
}

#[test]
fn two_who_send_to_each_other_at_once_both_have_sent_and_got() {
    for protocol in STANDING {
        let (world, endpoints) = scc(protocol, 2, 0);
        let (mut turns, mut got) = ([0; 2], [0; 2]);
        while let Some(place) = world.next() {
            let (here, turn) = (&endpoints[place.index()], &mut turns[place.index()]);
            if *turn == 0 {
                send(here, PlaceId(1 - place.0)).unwrap();
            } else {
                got[place.index()] += take(here);
            }
            *turn += 1;
            world.end_turn(place, IDLE);
        }
        assert_eq!(got, [1, 1], "{protocol}");
    }
}

#[test]
fn who_waits_to_meet_a_place_that_computes_receives_what_others_send_to_it() {
    let (world, endpoints) = scc(Protocol::Rcce, 4, 0);
    let (mut turns, mut answered, mut taken) = ([0; 4], None, None);
    while let Some(place) = world.next() {
        let (here, turn) = (&endpoints[place.index()], turns[place.index()]);
        turns[place.index()] += 1;
        match (place, turn) {
            (B, 0) => compute(here, 2_000),
            // One is in a rendezvous with B, which does not poll; the other waits for B's register.
            (A | C, 0) => {
                compute(here, u64::from(10 - place.0));
            }
            (A | C, 1) => send(here, B).unwrap(),
            (D, 0) => compute(here, 100),
            (D, 1) => send(here, A).unwrap(),
            (D, 2) => answered = Some(world.now(D)),
            (A, 2) => {
                assert!(world.now(A) > Duration::from_micros(2_000), "its send is not over");
                assert_eq!(take(here), 1, "what came meanwhile was kept");
                taken = Some(world.now(A));
            }
            _ => drop(take(here)),
        }
        let is_busy = matches!((place, turn), (B | A | C | D, 0));
        world.end_turn(place, if is_busy { TurnOutcome::Busy } else { IDLE });
    }
    assert!(answered.unwrap() < Duration::from_micros(200), "{answered:?}");
    assert!(taken.is_some() && world.report().messages == 3, "{taken:?}");
}

#[test]
fn who_waits_for_a_register_has_it_before_two_who_talk_all_the_time() {
    let (world, endpoints) = scc(Protocol::Rcce, 3, 0);
    let (mut printed, mut sent, mut rounds) = (None, false, 0);
    while let Some(place) = world.next() {
        let here = &endpoints[place.index()];
        let from_a = std::cell::Cell::new(false);
        let got = here.progress(Inbound::All, &mut |arrival| {
            from_a.set(matches!(arrival, Arrival::Message(Message { source: A, .. })) | from_a.get());
        });
        if from_a.get() {
            printed = Some(world.now(place));
        }
        let talks = printed.is_none() && (got > 0 || (place, rounds) == (C, 0));
        match place {
            A if !sent && rounds > 10 => sent = send(here, B).is_ok(),
            A => compute(here, 5),
            _ if talks => {
                rounds += 1;
                assert!(rounds < 1_000, "it waits for ever");
                send(here, if place == B { C } else { B }).unwrap();
            }
            _ => (),
        }
        world.end_turn(place, if place == A && !sent { TurnOutcome::Busy } else { IDLE });
    }
    assert!(printed.is_some() && rounds < 30, "{rounds} rounds, told {printed:?}");
}

#[test]
fn a_place_that_computes_whenever_it_has_answered_answers_all_who_have_asked_by_then() {
    const ASKERS: u32 = 12;
    for protocol in STANDING {
        let (world, endpoints) = scc(protocol, ASKERS + 1, 0);
        let (mut asked, mut answers, mut computed) = (0, 0, 0);
        while let Some(place) = world.next() {
            let here = &endpoints[place.index()];
            let mut askers = Vec::new();
            let got = here.progress(Inbound::All, &mut |arrival| match arrival {
                Arrival::Message(message) => askers.push(message.source),
                Arrival::Died { .. } => unreachable!(),
            });
            let mut turn = IDLE;
            if place != A {
                answers += got;
                if asked < ASKERS {
                    asked += 1;
                    send(here, A).unwrap();
                }
            } else if answers < ASKERS as usize {
                askers.into_iter().for_each(|asker| send(here, asker).unwrap());
                compute(here, 10_000);
                computed += 1;
                turn = TurnOutcome::Busy;
            }
            world.end_turn(place, turn);
        }
        // It computes before the first request, with the first answer, and with all others.
        assert!(computed <= 4, "{protocol}: {computed}");
        assert_eq!(answers, ASKERS as usize, "{protocol}");
    }
}

/// A sends a block to B and leaves; it is killed when C, which computes for `micros`, has sent to B.
fn taken_away_in_its_last_send(protocol: Protocol, micros: u64) -> usize {
    let (world, endpoints) = scc(protocol, 3, 0);
    let (mut turns, mut got) = ([0; 3], 0);
    while let Some(place) = world.next() {
        let (here, turn) = (&endpoints[place.index()], turns[place.index()]);
        turns[place.index()] += 1;
        match (place, turn) {
            (A, 0) => {
                let mut fill = |bytes: &mut [u8]| bytes.fill(1);
                here.send_block(B, Class::Data, HandlerId(1), 1 << 20, &mut fill).unwrap();
                here.leave();
            }
            (B, _) => got += take(here),
            (C, 0) => compute(here, micros),
            (C, 1) => send(here, B).unwrap(),
            _ => {}
        }
        world.end_turn(place, if (place, turn) == (C, 0) { TurnOutcome::Busy } else { IDLE });
        if (place, turn) == (C, 1) {
            world.kill(A);
        }
    }
    got
}

#[test]
fn who_is_taken_away_in_its_last_send_holds_neither_its_receiver_nor_who_waits_for_that() {
    for protocol in STANDING {
        for micros in 300..500 {
            assert_eq!(taken_away_in_its_last_send(protocol, micros), 1, "{protocol}, {micros} us");
        }
    }
}

#[test]
fn who_sends_to_one_that_is_dead_and_not_known_to_be_sends_to_the_next_one_at_once() {
    for protocol in STANDING {
        let (world, endpoints) = scc(protocol, 4, 0);
        let (mut turns, mut printed) = (0, None);
        while let Some(place) = world.next() {
            let here = &endpoints[place.index()];
            let is_first = place == A && turns == 0;
            if is_first {
                compute(here, 10);
            } else if place == A && turns == 1 {
                [B, C, D].into_iter().for_each(|to| send(here, to).unwrap());
            } else if take(here) > 0 && place == D {
                printed = printed.or(Some(world.now(D)));
            }
            turns += u32::from(place == A);
            world.end_turn(place, if is_first { TurnOutcome::Busy } else { IDLE });
            if place == C {
                world.kill(C);
            }
        }
        assert!(
            printed.is_some_and(|printed| printed < Duration::from_micros(50)),
            "{protocol}: {printed:?}"
        );
    }
}

/// Generator of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Messages that a place has to send, and has received.
struct Member {
    dice: Dice,
    left: u32,
    /// By receiver and class.
    sent: Vec<[u8; 2]>,
    /// By sender and class.
    got: Vec<[u8; 2]>,
    has_left: bool,
}

impl Member {
    fn new(places: u32, seed: u64) -> Member {
        let none = vec![[0; 2]; places as usize];
        Member { dice: Dice(seed), left: 20, sent: none.clone(), got: none, has_left: false }
    }

    /// Receives the arrivals; checks that the messages of each sender and class have consecutive numbers.
    fn take(&mut self, here: &ChipEndpoint, inbound: Inbound) -> usize {
        here.progress(inbound, &mut |arrival| {
            let Arrival::Message(Message { source, class, body, .. }) = arrival else { return };
            let number = match &body {
                Body::Inline(bytes) => bytes[0],
                Body::Block(block) => block.bytes()[0],
            };
            let got = &mut self.got[source.index()][class as usize];
            assert_eq!(number, *got, "{source} to {}, {class:?}", here.here());
            *got += 1;
        })
    }

    /// Tries to send a random message to a random place; returns `true` on success.
    fn send(&mut self, here: &ChipEndpoint) -> bool {
        let (places, own) = (self.sent.len() as u64, u64::from(here.here().0));
        let to = PlaceId(((own + 1 + self.dice.below(places - 1)) % places) as u32);
        let (kind, len) = (self.dice.below(3), 1 + self.dice.below(400) as usize);
        let class = if kind == 0 { Class::Control } else { Class::Data };
        let number = self.sent[to.index()][class as usize];
        let sent = match kind {
            2 => here.send_block(to, class, HandlerId(1), 50 * len, &mut |bytes| bytes[0] = number),
            _ => here.send(to, class, HandlerId(1), len.min(64), &mut |bytes| {
                bytes[0] = number;
                Some(len.min(64))
            }),
        };
        match sent {
            Ok(()) => self.sent[to.index()][class as usize] += 1,
            Err(SendError::Full) => return false,
            Err(SendError::DeadPlace(_)) => (),
            Err(error) => panic!("{error:?}"),
        }
        self.left -= 1;
        true
    }

    fn step(&mut self, here: &ChipEndpoint) -> TurnOutcome {
        let inbound = if self.left > 0 && self.dice.below(2) == 0 { Inbound::Control } else { Inbound::All };
        let got = self.take(here, inbound);
        if self.dice.below(3) == 0 {
            compute(here, self.dice.below(200));
        }
        let mut is_refused = false;
        for _ in 0..self.dice.below(4) {
            is_refused = self.left > 0 && !self.send(here);
        }
        let waits = self.left == 0 || (is_refused && inbound == Inbound::All);
        if waits && got == 0 { IDLE } else { TurnOutcome::Busy }
    }
}

/// Runs places that send to each other at random, until no event is left. The place `dies` is killed or leaves when it
/// has sent half of its messages.
fn crowd(protocol: Protocol, places: u32, seed: u64, dies: Option<PlaceId>, leaves: bool) -> Vec<Member> {
    let (world, endpoints) = scc(protocol, places, seed);
    let mut members: Vec<_> =
        (0..places).map(|place| Member::new(places, seed << 8 | u64::from(place))).collect();
    while let Some(place) = world.next() {
        let (here, member) = (&endpoints[place.index()], &mut members[place.index()]);
        let turn = member.step(here);
        let ends = dies == Some(place) && member.left <= 10 && !member.has_left;
        if ends && leaves {
            here.leave();
            (member.has_left, member.left) = (true, 0);
        }
        world.end_turn(place, if member.has_left { IDLE } else { turn });
        if ends && !leaves {
            world.kill(place);
            member.left = 0;
        }
    }
    members
}

#[test]
fn a_crowd_that_sends_at_random_has_all_in_order_and_stands_still_nowhere() {
    for protocol in STANDING {
        for seed in 0..60 {
            let places = 2 + (seed % 7) as u32;
            let members = crowd(protocol, places, seed, None, false);
            for (from, member) in members.iter().enumerate() {
                assert_eq!(member.left, 0, "{protocol}, seed {seed}: {from} of {places} waits for ever");
                for (to, other) in members.iter().enumerate() {
                    assert_eq!(member.sent[to], other.got[from], "{protocol}, seed {seed}: {from} to {to}");
                }
            }
        }
    }
}

#[test]
fn whoever_dies_or_leaves_holds_nobody_in_a_send() {
    for (protocol, leaves) in STANDING.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)])
    {
        for seed in 0..60 {
            let (places, gone) = (3 + (seed % 6) as u32, PlaceId((seed % 3) as u32));
            let members = crowd(protocol, places, seed, Some(gone), leaves);
            let alive = |index: &usize| *index != gone.index();
            for from in (0..members.len()).filter(alive) {
                assert_eq!(
                    members[from].left, 0,
                    "{protocol}, seed {seed}: {from} of {places} waits for ever"
                );
                for to in (0..members.len()).filter(alive) {
                    assert_eq!(
                        members[from].sent[to], members[to].got[from],
                        "{protocol}, {seed}: {from} to {to}"
                    );
                }
            }
        }
    }
}
