//! Places that acquire and drop guards over ordered queues, in the order of steps of each test case.

use super::*;
use crate::PlaceId;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const PLACES: u32 = 4;

/// A message with its changes: here the number of writes that the copy lacks.
#[derive(Clone, Copy, Debug)]
enum Message {
    Request(ObjectRequest),
    Grant { mode: GuardMode, generation: u64, is_poisoned: bool },
    Recall(Token),
    GiveBack(GiveBack),
}

/// Objects of which place 0 is the home; a value is the number of writes.
struct World {
    home: Home,
    holders: Vec<Holder>,
    /// Value of each place's copy, and whether its caches may hold stale lines.
    copies: Vec<(u64, bool)>,
    /// Wanted guards, and held ones.
    wanted: Vec<VecDeque<GuardMode>>,
    guards: Vec<Vec<GuardMode>>,
    queues: BTreeMap<(u32, u32), VecDeque<Message>>,
    writes: u64,
    dead: Vec<bool>,
    granted: u64,
    /// Places that cannot read what they receive, and whether there was ever one.
    cannot_read: Vec<bool>,
    has_refused: bool,
}

impl World {
    fn new(controller: Controller) -> World {
        let holder = |place| Holder::new(if place == 0 { Token::Write } else { Token::None });
        World {
            home: Home::new(controller, PlaceId(0)),
            holders: (0..PLACES).map(holder).collect(),
            copies: vec![(0, true); PLACES as usize],
            wanted: vec![VecDeque::new(); PLACES as usize],
            guards: vec![Vec::new(); PLACES as usize],
            queues: BTreeMap::new(),
            writes: 0,
            dead: vec![false; PLACES as usize],
            granted: 0,
            cannot_read: vec![false; PLACES as usize],
            has_refused: false,
        }
    }

    fn send(&mut self, from: u32, to: u32, message: Message) {
        self.queues.entry((from, to)).or_default().push_back(message);
    }

    fn carry_out(&mut self, steps: Vec<HomeStep>) {
        for step in steps {
            match step {
                HomeStep::Grant { request, generation, flushes, is_poisoned } => {
                    let grant = Message::Grant { mode: request.mode, generation, is_poisoned };
                    // A value that is read in memory is always applied.
                    let is_forgotten = flushes || request.since == generation || self.has_refused;
                    assert!(is_forgotten, "a copy that is old is not forgotten");
                    self.send(0, request.place.0, grant);
                }
                HomeStep::Recall { place, keeps } => self.send(0, place.0, Message::Recall(keeps)),
            }
        }
    }

    fn deliver(&mut self, from: u32, to: u32) {
        let Some(message) = self.queues.get_mut(&(from, to)).and_then(VecDeque::pop_front) else { return };
        if self.dead[to as usize] {
            return;
        }
        let place = to as usize;
        match message {
            Message::Request(request) => {
                let steps = self.home.request(request).expect("a sound place");
                self.carry_out(steps);
            }
            Message::GiveBack(back) => {
                let mut back = back;
                let is_changed = back.generation > self.home.generation();
                if back.had_written && is_changed && self.cannot_read[0] {
                    // The value is the last that the home has, so its writer's copy is stale.
                    back = GiveBack { generation: back.generation + 1, is_poisoned: true, ..back };
                    self.writes = back.generation;
                }
                if back.had_written {
                    self.holders[0].copied(back.generation, back.is_poisoned);
                    self.copies[0].0 = back.generation;
                }
                let steps = self.home.given_back(PlaceId(from), back).expect("a sound place");
                self.carry_out(steps);
            }
            Message::Grant { mode, generation, is_poisoned } => {
                let is_applied =
                    generation == self.holders[place].copy_generation() || !self.cannot_read[place];
                let granted = Granted { mode, generation, is_poisoned, is_applied };
                let next = self.wanted[place].front().copied();
                self.holders[place].granted(granted, next).expect("it asked");
                if is_applied {
                    self.copies[place].0 = generation;
                }
                self.granted += 1;
            }
            Message::Recall(keeps) => {
                let back = self.holders[place].recall(keeps).expect("it has it");
                self.give_back(to, back);
            }
        }
    }

    fn give_back(&mut self, place: u32, back: Option<GiveBack>) {
        if let Some(back) = back {
            self.send(place, 0, Message::GiveBack(back));
        }
    }

    /// Retries the first waiting task at `place`.
    fn try_acquire(&mut self, place: usize) {
        let Some(mode) = self.wanted[place].front().copied() else { return };
        match self.holders[place].acquire(mode) {
            Admission::Now => {
                self.wanted[place].pop_front();
                self.guards[place].push(mode);
                let is_current = self.holders[place].is_current();
                assert!(is_current || self.has_refused, "a copy is not the value");
                if is_current {
                    self.check_guard(place, mode);
                } else {
                    // An error of the task that asked.
                    self.release(place, false);
                }
            }
            Admission::Wait => {}
            Admission::Ask => {
                let since = self.holders[place].copy_generation();
                let request = ObjectRequest { place: PlaceId(place as u32), mode, since };
                self.send(place as u32, 0, Message::Request(request));
            }
        }
    }

    fn check_guard(&self, place: usize, mode: GuardMode) {
        let others = |other: &usize| *other != place && !self.dead[*other];
        for other in (0..PLACES as usize).filter(others) {
            let writes = self.guards[other].contains(&GuardMode::Write);
            assert!(!writes, "place {other} writes");
            assert!(mode == GuardMode::Read || self.guards[other].is_empty(), "place {other} has a guard");
        }
        let is_lost = self.home.is_poisoned();
        assert!(is_lost || self.copies[place].0 == self.writes, "a guard sees the last write");
    }

    /// Makes the waiting task at `place` with this number give up.
    fn give_up(&mut self, place: usize, number: usize) {
        if self.wanted[place].remove(number).is_some() {
            let next = self.wanted[place].front().copied();
            let back = self.holders[place].give_up(next);
            self.give_back(place as u32, back);
        }
    }

    fn release(&mut self, place: usize, has_changed: bool) {
        let Some(mode) = self.guards[place].pop() else { return };
        let has_changed = has_changed && mode == GuardMode::Write;
        if has_changed {
            self.writes = self.copies[place].0 + 1;
            self.copies[place].0 = self.writes;
        }
        let back = self.holders[place].release(mode, has_changed);
        self.give_back(place as u32, back);
    }

    fn kill(&mut self, place: usize) {
        if place == 0 || std::mem::replace(&mut self.dead[place], true) {
            return;
        }
        // Messages that it had sent before still arrive.
        while self.queues.get(&(place as u32, 0)).is_some_and(|queue| !queue.is_empty()) {
            self.deliver(place as u32, 0);
        }
        self.guards[place].clear();
        self.wanted[place].clear();
        let steps = self.home.place_died(PlaceId(place as u32));
        self.carry_out(steps);
    }

    /// Delivers messages and drops guards until nothing waits.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let ways: Vec<(u32, u32)> = self.queues.keys().copied().collect();
            ways.into_iter().for_each(|(from, to)| self.deliver(from, to));
            for place in 0..PLACES as usize {
                self.release(place, false);
                self.try_acquire(place);
            }
            let is_quiet = self.queues.values().all(VecDeque::is_empty)
                && self.wanted.iter().all(VecDeque::is_empty)
                && self.guards.iter().all(Vec::is_empty);
            if is_quiet {
                return;
            }
        }
        panic!("some task waits for ever");
    }
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Want(usize, GuardMode),
    Try(usize),
    Release(usize, bool),
    GiveUp(usize, usize),
    Deliver(u32, u32),
    /// The place can no longer read what it receives, or can again.
    Refuse(usize),
    Kill(usize),
}

/// Faults beside acquiring and dropping guards.
#[derive(Clone, Copy, Debug, Default)]
struct InjectedFaults {
    deaths: bool,
    unreadable: bool,
}

fn action(mishaps: InjectedFaults) -> impl Strategy<Value = Action> {
    let place = 0..PLACES as usize;
    let mode = prop_oneof![Just(GuardMode::Read), Just(GuardMode::Write)];
    let [death, refusal] = [mishaps.deaths, mishaps.unreadable].map(u32::from);
    prop_oneof![
        4 => (place.clone(), mode).prop_map(|(place, mode)| Action::Want(place, mode)),
        6 => place.clone().prop_map(Action::Try),
        4 => (place.clone(), any::<bool>()).prop_map(|(place, changed)| Action::Release(place, changed)),
        2 => (place.clone(), 0..3_usize).prop_map(|(place, number)| Action::GiveUp(place, number)),
        refusal => place.clone().prop_map(Action::Refuse),
        12 => (0..PLACES, 0..PLACES).prop_map(|(from, to)| Action::Deliver(from, to)),
        death => place.prop_map(Action::Kill),
    ]
}

fn controller() -> impl Strategy<Value = Controller> {
    prop_oneof![Just(Controller::Broadcast), Just(Controller::Overlapped), Just(Controller::Timestamp)]
}

fn run(controller: Controller, actions: &[Action]) -> World {
    let mut world = World::new(controller);
    for action in actions {
        match *action {
            Action::Want(place, mode) if !world.dead[place] => world.wanted[place].push_back(mode),
            Action::Try(place) if !world.dead[place] => world.try_acquire(place),
            Action::Release(place, has_changed) => world.release(place, has_changed),
            Action::GiveUp(place, number) => world.give_up(place, number),
            Action::Deliver(from, to) => world.deliver(from, to),
            Action::Refuse(place) => {
                world.cannot_read[place] ^= true;
                world.has_refused = true;
            }
            Action::Kill(place) => world.kill(place),
            Action::Want(..) | Action::Try(_) => {}
        }
    }
    world.settle();
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn guards_exclude_each_other_see_the_last_write_and_all_come(
        controller in controller(),
        actions in prop::collection::vec(action(InjectedFaults::default()), 0..200),
    ) {
        let world = run(controller, &actions);
        prop_assert!(!world.home.is_poisoned());
    }

    #[test]
    fn with_deaths_nobody_waits_for_ever(
        controller in controller(),
        actions in prop::collection::vec(action(InjectedFaults { deaths: true, unreadable: false }), 0..200),
    ) {
        run(controller, &actions);
    }

    /// A value that a place cannot read is an error there, and blocks no other place.
    #[test]
    fn with_values_that_cannot_be_read_nobody_waits_for_ever(
        controller in controller(),
        actions in prop::collection::vec(action(InjectedFaults { deaths: true, unreadable: true }), 0..200),
    ) {
        run(controller, &actions);
    }
}

#[test]
fn a_change_of_hands_between_the_home_and_another_place_is_two_messages() {
    let mut world = World::new(Controller::Timestamp);
    for round in 0..6 {
        let place = (round + 1) % 2;
        world.wanted[place].push_back(GuardMode::Write);
        let mut messages = 0;
        for _ in 0..8 {
            world.try_acquire(place);
            for way in [(0, 0), (0, 1), (1, 0)] {
                let before = world.queues.get(&way).map_or(0, VecDeque::len);
                world.deliver(way.0, way.1);
                messages += if way == (0, 0) { 0 } else { before.min(1) };
            }
        }
        assert_eq!(world.guards[place], [GuardMode::Write]);
        assert_eq!(messages, 2, "round {round}");
        world.release(place, true);
    }
    assert_eq!(world.writes, 6);
}

#[test]
fn a_token_is_not_kept_for_a_task_whose_guard_it_does_not_cover() {
    let mut world = World::new(Controller::Broadcast);
    world.wanted[1].extend([GuardMode::Read, GuardMode::Write]);
    world.try_acquire(1);
    world.deliver(1, 0);
    // The task that asked to read is gone when its token arrives.
    world.give_up(1, 0);
    world.wanted[2].push_back(GuardMode::Write);
    world.settle();
}

#[test]
fn a_place_that_dies_with_the_write_token_poisons_and_one_that_reads_does_not() {
    let mut world = World::new(Controller::Broadcast);
    world.wanted[1].push_back(GuardMode::Read);
    world.settle();
    world.kill(1);
    assert!(!world.home.is_poisoned());
    world.wanted[2].push_back(GuardMode::Write);
    world.settle();
    world.kill(2);
    assert!(world.home.is_poisoned());
}

#[test]
fn what_no_sound_place_says_is_refused() {
    let mut home = Home::new(Controller::Broadcast, PlaceId(0));
    let request = ObjectRequest { place: PlaceId(1), mode: GuardMode::Read, since: 0 };
    let recall = HomeStep::Recall { place: PlaceId(0), keeps: Token::Read };
    assert_eq!(home.request(request), Ok(vec![recall]));
    assert_eq!(home.request(request), Err(NotHeld), "it waits already");
    let back = GiveBack { keeps: Token::None, generation: 0, had_written: true, is_poisoned: false };
    assert_eq!(home.given_back(PlaceId(1), back), Err(NotHeld), "it has nothing");
    assert_eq!(Holder::new(Token::None).recall(Token::None), Err(NotAsked));
    let granted = Granted { mode: GuardMode::Read, generation: 0, is_poisoned: false, is_applied: true };
    assert_eq!(Holder::new(Token::None).granted(granted, Some(GuardMode::Read)), Err(NotAsked));
}
