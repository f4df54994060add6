//! The counts of three places and the messages between them: no part is freed too early, and none stays.

use super::table::*;
use super::*;
use crate::limits::RETURN_WAIT;
use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedSet;
use proptest::prelude::*;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

const PLACES: usize = 4;
const HOME: PlaceId = PlaceId(0);

/// A message in flight to a place.
enum Message {
    Handle(PartId, PlaceId),
    Part(PartMessage),
    /// The last message from a place: it is dead.
    Died,
}

fn others(here: PlaceId) -> Vec<PlaceId> {
    places().filter(|place| *place != here).collect()
}

/// The tables of places, with the handles that live there, and the messages in flight between each pair, in order.
struct World {
    books: Vec<PartTable>,
    /// Parts of which each place has handles, one entry for each handle.
    handles: Vec<Vec<PartId>>,
    is_dead: [bool; PLACES],
    ways: [[VecDeque<Message>; PLACES]; PLACES],
    /// Values, which live as long as their part.
    values: HashMap<PartId, Weak<u32>>,
    returns: usize,
}

fn places() -> impl Iterator<Item = PlaceId> {
    (0..PLACES as u32).map(PlaceId)
}

impl World {
    fn new() -> World {
        World {
            books: (0..PLACES).map(|_| PartTable::default()).collect(),
            handles: vec![Vec::new(); PLACES],
            is_dead: [false; PLACES],
            ways: Default::default(),
            values: HashMap::new(),
            returns: 0,
        }
    }

    fn make(&mut self, here: PlaceId) -> PartId {
        let value = Rc::new(7_u32);
        let weak = Rc::downgrade(&value);
        let (id, _) = self.books[here.index()].make(here, value, None);
        self.values.insert(id, weak);
        self.handles[here.index()].push(id);
        id
    }

    /// Sends a copy of a handle, or gives up the message.
    fn send(&mut self, from: PlaceId, to: PlaceId, id: PartId, is_sent: bool) {
        let is_lost = !is_sent || self.knows_dead(from, to);
        let book = &mut self.books[from.index()];
        book.count_sent(id, SlotHint::any(to.index()), to);
        if is_lost {
            return book.roll_back_sent();
        }
        book.commit_sent();
        if !self.is_dead[to.index()] {
            self.ways[from.index()][to.index()].push_back(Message::Handle(id, from));
        }
    }

    /// Returns `true` if `here` has learned that `place` is dead; what it sends before is lost.
    fn knows_dead(&self, here: PlaceId, place: PlaceId) -> bool {
        let on_the_way = &self.ways[place.index()][here.index()];
        self.is_dead[place.index()] && !on_the_way.iter().any(|message| matches!(message, Message::Died))
    }

    fn release(&mut self, here: PlaceId, choice: usize) {
        let handles = &mut self.handles[here.index()];
        if handles.is_empty() {
            return;
        }
        let id = handles.swap_remove(choice % handles.len());
        // The slot that a handle remembers is a hint: any will do.
        let freed = self.books[here.index()].release(id, SlotHint::any(choice), here);
        self.free(here, freed);
    }

    fn free(&mut self, here: PlaceId, freed: Option<PartId>) {
        let mut settled = Settled::default();
        if let Some(id) = freed {
            self.books[here.index()].free_part(id, &mut settled);
        }
        self.execute_settled(here, settled);
    }

    fn settle(&mut self, here: PlaceId) {
        let settled = self.books[here.index()].settle(here);
        self.execute_settled(here, settled);
    }

    fn execute_settled(&mut self, here: PlaceId, settled: Settled) {
        for (to, message) in settled.messages {
            self.returns += 1;
            if !self.is_dead[to.index()] {
                self.ways[here.index()][to.index()].push_back(Message::Part(message));
            }
        }
    }

    /// Delivers the oldest message on a path; returns whether there was one.
    fn deliver(&mut self, from: PlaceId, to: PlaceId) -> bool {
        let Some(message) = self.ways[from.index()][to.index()].pop_front() else { return false };
        let book = &mut self.books[to.index()];
        match message {
            Message::Handle(id, lender) => {
                book.count_received(id, Some(lender), to);
                self.handles[to.index()].push(id);
            }
            Message::Part(PartMessage::Return(counts)) => {
                for (id, count) in counts {
                    let freed = self.books[to.index()].given_back(id, from, count, to);
                    self.free(to, freed.expect("what is given back was lent"));
                }
            }
            Message::Part(PartMessage::Free(id)) => drop(book.free(id)),
            Message::Part(PartMessage::Adopt(ids)) => ids.into_iter().for_each(|id| book.adopt(id, from)),
            Message::Part(PartMessage::Forget(dead)) => {
                self.forget_lent(to, from, &dead.into_iter().collect())
            }
            Message::Part(PartMessage::Inquire(dead)) => {
                let steps = book.deaths.receive_inquiry(from, dead, &others(to));
                self.settle_deaths(to, steps);
            }
            Message::Part(PartMessage::Ask(round, dead)) => {
                let steps = book.deaths.asked(from, round, dead);
                self.settle_deaths(to, steps);
            }
            Message::Part(PartMessage::Answer(round)) => {
                let steps = book.deaths.answered(from, round);
                self.settle_deaths(to, steps);
            }
            Message::Died => self.record_death(to, from),
        }
        true
    }

    /// Kills a place with all that it has; messages in flight to it are lost, those from it arrive.
    fn die(&mut self, place: PlaceId) {
        self.is_dead[place.index()] = true;
        self.books[place.index()] = PartTable::default();
        self.handles[place.index()].clear();
        places().for_each(|from| self.ways[from.index()][place.index()].clear());
        for other in others(place).into_iter().filter(|other| !self.is_dead[other.index()]) {
            self.ways[place.index()][other.index()].push_back(Message::Died);
        }
    }

    /// Makes `here` learn that `dead` is dead.
    fn record_death(&mut self, here: PlaceId, dead: PlaceId) {
        let book = &mut self.books[here.index()];
        let homes = book.homes_with_handles_at(&OrderedSet::from_iter([dead]));
        let steps = book.deaths.record_death(dead, homes, here, &others(here));
        self.settle_deaths(here, steps);
    }

    fn settle_deaths(&mut self, here: PlaceId, steps: Vec<DeathStep>) {
        for step in steps {
            let printed = match step {
                DeathStep::Ask(to, round, dead) => vec![(to, PartMessage::Ask(round, dead))],
                DeathStep::Inquire(home, dead) => vec![(home, PartMessage::Inquire(dead))],
                DeathStep::Tell(to, dead) => vec![(to, PartMessage::Forget(dead))],
                DeathStep::Forget(dead) => {
                    self.forget_lent(here, here, &dead);
                    continue;
                }
                DeathStep::Answer(home, round, dead) => {
                    let orphans = self.books[here.index()].leave_dead_parents(home, &dead);
                    vec![(home, PartMessage::Adopt(orphans)), (home, PartMessage::Answer(round))]
                }
            };
            let messages = Settled { messages: printed, ..Settled::default() };
            self.execute_settled(here, messages);
        }
    }

    fn forget_lent(&mut self, here: PlaceId, home: PlaceId, dead: &OrderedSet<PlaceId>) {
        let unused = self.books[here.index()].forget_lent(home, dead, here);
        unused.into_iter().for_each(|id| self.free(here, Some(id)));
    }

    /// Returns `true` if a handle of `id` lives at a living place or is in flight to one.
    fn is_alive(&self, id: PartId) -> bool {
        let is_it = |message: &Message| matches!(message, Message::Handle(sent, _) if *sent == id);
        self.handles.iter().flatten().any(|held| *held == id)
            || self.ways.iter().flatten().flatten().any(is_it)
    }

    /// Returns the parts that were freed although a handle of them and their home live.
    fn gone_too_early(&self) -> Vec<PartId> {
        let is_gone = |id: &PartId, value: &Weak<u32>| {
            !self.is_dead[id.home.index()] && value.strong_count() == 0 && self.is_alive(*id)
        };
        self.values.iter().filter(|(id, value)| is_gone(id, value)).map(|(id, _)| *id).collect()
    }

    /// Drops all handles, and delivers messages and settles places until nothing happens.
    fn wind_up(&mut self) {
        let pairs = || places().flat_map(|from| places().map(move |to| (from, to)));
        loop {
            let arrived = pairs().filter(|(from, to)| self.deliver(*from, *to)).count();
            for place in places() {
                while !self.handles[place.index()].is_empty() {
                    self.release(place, 0);
                }
                self.settle(place);
            }
            let is_quiet = self.ways.iter().flatten().all(VecDeque::is_empty);
            if arrived == 0 && is_quiet {
                return;
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Copy(usize, usize),
    Send { from: usize, to: usize, choice: usize, is_sent: bool },
    Release(usize, usize),
    Deliver(usize, usize),
    Settle(usize),
    Die(usize),
}

fn steps(deaths: u32) -> impl Strategy<Value = Vec<Step>> {
    let (place, choice) = (|| 0..PLACES, || 0..8_usize);
    let send = (place(), place(), choice(), proptest::bool::weighted(0.9));
    let step = prop_oneof![
        1 => place().prop_map(Step::Make),
        1 => (place(), choice()).prop_map(|(here, choice)| Step::Copy(here, choice)),
        6 => send.prop_map(|(from, to, choice, is_sent)| Step::Send { from, to, choice, is_sent }),
        6 => (place(), choice()).prop_map(|(here, choice)| Step::Release(here, choice)),
        8 => (place(), place()).prop_map(|(from, to)| Step::Deliver(from, to)),
        2 => place().prop_map(Step::Settle),
        deaths => place().prop_map(Step::Die),
    ];
    proptest::collection::vec(step, 0..120)
}

fn run(world: &mut World, steps: Vec<Step>) -> Result<(), TestCaseError> {
    for step in steps {
        let place = |index: usize| PlaceId(index as u32);
        let held = |world: &World, here: usize, choice: usize| {
            let handles = &world.handles[here];
            (!handles.is_empty()).then(|| handles[choice % handles.len()])
        };
        match step {
            Step::Make(here) if !world.is_dead[here] => drop(world.make(place(here))),
            Step::Copy(here, choice) => {
                if let Some(id) = held(world, here, choice) {
                    world.books[here].retain(id);
                    world.handles[here].push(id);
                }
            }
            Step::Send { from, to, choice, is_sent } => {
                if let Some(id) = held(world, from, choice) {
                    world.send(place(from), place(to), id, is_sent);
                }
            }
            Step::Release(here, choice) => world.release(place(here), choice),
            Step::Deliver(from, to) => drop(world.deliver(place(from), place(to))),
            Step::Settle(here) => world.settle(place(here)),
            Step::Die(here) if !world.is_dead[here] => world.die(place(here)),
            Step::Die(_) => {}
            Step::Make(_) => {}
        }
        prop_assert_eq!(world.gone_too_early(), vec![]);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_part_lives_as_long_as_its_handles_and_no_longer(steps in steps(0)) {
        let mut world = World::new();
        run(&mut world, steps)?;
        world.wind_up();
        prop_assert!(world.values.values().all(|value| value.strong_count() == 0), "a part is left");
        let left: Vec<usize> = world.books.iter().map(PartTable::len).collect();
        prop_assert_eq!(left, vec![0; PLACES]);
    }

    #[test]
    fn a_death_frees_no_part_too_early_and_keeps_none(steps in steps(1)) {
        let mut world = World::new();
        run(&mut world, steps)?;
        world.wind_up();
        prop_assert_eq!(world.gone_too_early(), vec![]);
        for (id, value) in &world.values {
            let is_left = !world.is_dead[id.home.index()] && value.strong_count() > 0;
            prop_assert!(!is_left, "{:?} is left", id);
        }
    }
}

#[test]
fn a_part_that_all_places_have_is_freed_at_all() {
    let (mut home, mut settled) = (PartTable::default(), Settled::default());
    let (id, slot) = home.make(HOME, Rc::new(7), Some(Members::All(3)));
    assert_eq!(home.release(id, slot, HOME), Some(id));
    home.free_part(id, &mut settled);
    let printed = [1, 2].map(|place| (PlaceId(place), PartMessage::Free(id)));
    assert_eq!((settled.freed.len(), settled.messages, home.len()), (1, printed.to_vec(), 0));
}

#[test]
fn a_stream_of_handles_is_given_back_in_one_message() {
    let mut world = World::new();
    let (id, there) = (world.make(HOME), PlaceId(1));
    for _ in 0..1000 {
        world.send(HOME, there, id, true);
        world.deliver(HOME, there);
        world.release(there, 0);
    }
    assert_eq!((world.books[1].len(), world.returns), (1, 0));
    world.wind_up();
    assert_eq!((world.books[1].len(), world.returns, world.books[0].len()), (0, 1, 0));
}

#[test]
fn a_handle_that_goes_round_and_round_leaves_nothing() {
    let mut world = World::new();
    let id = world.make(HOME);
    let mut here = HOME;
    for _ in 0..1000 {
        let to = PlaceId((here.0 + 1) % PLACES as u32);
        world.send(here, to, id, true);
        world.release(here, 0);
        world.deliver(here, to);
        here = to;
    }
    assert_eq!(world.gone_too_early(), vec![]);
    world.wind_up();
    assert_eq!(world.books.iter().map(PartTable::len).collect::<Vec<_>>(), [0; PLACES]);
}

#[test]
fn a_message_given_up_lends_nothing_even_if_its_handle_is_gone_by_then() {
    let mut world = World::new();
    let id = world.make(HOME);
    world.books[0].count_sent(id, SlotHint::any(0), PlaceId(1));
    world.release(HOME, 0);
    world.books[0].roll_back_sent();
    assert!(world.books[0].is_due());
    world.settle(HOME);
    assert_eq!((world.values[&id].strong_count(), world.books[0].len()), (0, 0));
}

#[test]
fn more_than_was_lent_is_refused() {
    let mut book = PartTable::default();
    let (id, _) = book.make(HOME, Rc::new(7), None);
    assert_eq!(book.given_back(id, PlaceId(1), 1, HOME), Err(NotLent));
    assert!(book.value(id).is_some());
}

#[test]
fn what_is_owed_is_kept_for_a_while() {
    let mut book = PartTable::default();
    let (here, id) = (PlaceId(1), PartId { home: HOME, serial: 0 });
    book.count_received(id, Some(HOME), here);
    book.release(id, SlotHint::any(0), here);
    let start = Duration::from_secs(1);
    assert!(!book.is_return_due(start) && !book.is_return_due(start + RETURN_WAIT / 2));
    assert_eq!(book.next_settling(), Some(start + RETURN_WAIT));
    assert!(book.is_return_due(start + RETURN_WAIT));
    let expected = vec![(HOME, PartMessage::Return(vec![(id, 1)]))];
    assert_eq!((book.settle(here).messages, book.next_settling()), (expected, None));
}
