//! Worlds of three places and one channel: whatever happens, no value is lost or doubled, and nobody waits for nothing.
//!
//! In some worlds one place is hostile: it says what no sound place says. Invariant of these: the others lose only what
//! the home has delivered to it.

use super::*;
use crate::PlaceId;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const HOME: PlaceId = PlaceId(0);
const PLACES: u32 = 3;

/// The place that says anything at all, in worlds that have one.
const HOSTILE: PlaceId = PlaceId(2);

type Value = u64;

/// What the home and another place say to each other.
#[derive(Clone, Debug)]
enum Message {
    Offer(OperationId, Value),
    Item(Value),
    Ask(OperationId, bool),
    Want(OperationId, bool),
    PutBack(Value),
    Settled,
    Cancel(OperationId),
    ReturnSlots(u32),
}

#[derive(Clone, Debug)]
enum ToPlace {
    Accepted(OperationId, u32),
    Refused(OperationId),
    Full(OperationId),
    Granted(OperationId),
    Value(OperationId, Value),
    Ended(OperationId),
    Empty(OperationId),
    Cancelled(OperationId),
    Slots(u32),
    Recall,
    Close,
    Settle,
}

/// An operation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// Its value is with the home.
    Sending(Value),
    /// It has its value and waits for a slot.
    Asking(Value),
    Receiving,
    /// Its value is there, and no task has looked yet.
    Arrived(Value),
    /// Nobody waits for the answer, which will be told what became of its value.
    GivenUp(Option<Value>),
}

struct World {
    home: ChannelHome<Value>,
    pools: BTreeMap<PlaceId, SlotPool>,
    operations: BTreeMap<OperationId, Operation>,
    to_home: BTreeMap<PlaceId, VecDeque<Message>>,
    to_places: BTreeMap<PlaceId, VecDeque<ToPlace>>,
    dead: BTreeSet<PlaceId>,
    next: u64,
    /// Values whose send ended well.
    sent: BTreeSet<Value>,
    received: Vec<Value>,
    /// Values that a dead place may have had.
    doubtful: BTreeSet<Value>,
    returned: BTreeSet<Value>,
    /// Places that are to say when nothing that has arrived is left.
    settling: BTreeSet<PlaceId>,
    /// Somebody was told that the channel is over.
    is_over: bool,
    /// Whether [`HOSTILE`] is.
    has_hostile: bool,
}

impl World {
    fn new(capacity: u32) -> World {
        let others = || (1..PLACES).map(PlaceId);
        World {
            home: ChannelHome::new(HOME, capacity),
            pools: others().map(|place| (place, SlotPool::default())).collect(),
            operations: BTreeMap::new(),
            to_home: others().map(|place| (place, VecDeque::new())).collect(),
            to_places: others().map(|place| (place, VecDeque::new())).collect(),
            dead: BTreeSet::new(),
            next: 0,
            sent: BTreeSet::new(),
            received: Vec::new(),
            doubtful: BTreeSet::new(),
            returned: BTreeSet::new(),
            settling: BTreeSet::new(),
            is_over: false,
            has_hostile: false,
        }
    }

    fn new_id(&mut self, place: PlaceId) -> OperationId {
        self.next += 1;
        OperationId { place, number: self.next }
    }

    fn tell_home(&mut self, from: PlaceId, message: Message) {
        self.to_home.get_mut(&from).unwrap().push_back(message);
    }

    /// Whether nobody accounts any more for what goes to this place: it is dead or hostile.
    fn is_deaf(&self, place: PlaceId) -> bool {
        self.dead.contains(&place) || (self.has_hostile && place == HOSTILE)
    }

    fn tell(&mut self, to: PlaceId, message: ToPlace) {
        if to == HOME {
            self.hear(HOME, message);
        } else if !self.is_deaf(to) {
            self.to_places.get_mut(&to).unwrap().push_back(message);
        } else if let ToPlace::Value(_, value) = message {
            self.doubtful.insert(value);
        }
    }

    fn carry_out(&mut self, steps: Vec<ChannelStep<Value>>) {
        for step in steps {
            match step {
                ChannelStep::Deliver(id, value) => self.tell(id.place, ToPlace::Value(id, value)),
                ChannelStep::Accept(id, slots) => self.tell(id.place, ToPlace::Accepted(id, slots)),
                ChannelStep::Refuse(id, _) => self.tell(id.place, ToPlace::Refused(id)),
                ChannelStep::End(id) => self.tell(id.place, ToPlace::Ended(id)),
                ChannelStep::Grant(id) => self.tell(id.place, ToPlace::Granted(id)),
                ChannelStep::Announce(place, slots) => self.tell(place, ToPlace::Slots(slots)),
                ChannelStep::Recall(place) => self.tell(place, ToPlace::Recall),
                ChannelStep::Close(place) => self.tell(place, ToPlace::Close),
                ChannelStep::Settle(place) => self.tell(place, ToPlace::Settle),
            }
        }
    }

    /// An offer; where the short way is open, it does the same.
    fn offer(
        &mut self,
        id: OperationId,
        value: Value,
        steps: &mut Vec<ChannelStep<Value>>,
    ) -> Offered<Value> {
        let mut other = self.home.clone();
        let is_short = id.place == HOME && other.offer_at_once(value).is_ok();
        let offered = self.home.offer(id, value, true, steps);
        if is_short {
            assert_eq!((&offered, steps.len()), (&Offered::Accepted(0), 0));
            assert_eq!(format!("{other:?}"), format!("{:?}", self.home));
        }
        offered
    }

    /// The same of a receive.
    fn want(&mut self, id: OperationId, waits: bool, steps: &mut Vec<ChannelStep<Value>>) -> Wanted<Value> {
        let mut other = self.home.clone();
        let short = other.want_at_once().filter(|_| id.place == HOME);
        let wanted = self.home.want(id, waits, steps);
        if let Some(value) = short {
            assert_eq!((&wanted, steps.len()), (&Wanted::Value(value), 0));
            assert_eq!(format!("{other:?}"), format!("{:?}", self.home));
        }
        wanted
    }

    /// The home takes in a message of `from`, which may be itself.
    fn home_hears(&mut self, from: PlaceId, message: Message) {
        let mut steps = Vec::new();
        let answer = match message {
            Message::Offer(id, value) => match self.offer(id, value, &mut steps) {
                Offered::Accepted(slots) => Some((id, ToPlace::Accepted(id, slots))),
                Offered::Waits => None,
                Offered::Refused(_) => Some((id, ToPlace::Refused(id))),
                Offered::Full(_) => panic!("it was to wait"),
            },
            Message::Ask(id, waits) => match self.home.ask(id, waits, &mut steps) {
                Offered::Accepted(_) => Some((id, ToPlace::Granted(id))),
                Offered::Waits => None,
                Offered::Refused(()) => Some((id, ToPlace::Refused(id))),
                Offered::Full(()) => Some((id, ToPlace::Full(id))),
            },
            Message::Want(id, waits) => match self.want(id, waits, &mut steps) {
                Wanted::Value(value) if from == HOME => {
                    self.operations.remove(&id);
                    self.received.push(value);
                    None
                }
                Wanted::Value(value) => Some((id, ToPlace::Value(id, value))),
                Wanted::Waits => None,
                Wanted::Ended => Some((id, ToPlace::Ended(id))),
                Wanted::Empty => Some((id, ToPlace::Empty(id))),
            },
            Message::Item(value) => {
                assert_eq!(self.home.item(from, value, &mut steps), Ok(None));
                None
            }
            Message::PutBack(value) => {
                assert_eq!(self.home.put_back(from, value, &mut steps), Ok(None));
                None
            }
            Message::Settled => {
                self.home.settled(from, &mut steps);
                None
            }
            Message::Cancel(id) => {
                let cancelled = self.home.cancel(id, &mut steps);
                cancelled.map(|_| (id, ToPlace::Cancelled(id)))
            }
            Message::ReturnSlots(slots) => {
                self.home.return_slots(from, slots, &mut steps).unwrap();
                None
            }
        };
        if let Some((id, answer)) = answer {
            self.tell(id.place, answer);
        }
        self.carry_out(steps);
    }

    /// The home takes in what the hostile place says; what it refuses changes nothing.
    fn home_hears_hostile(&mut self, message: Message) -> Result<(), TestCaseError> {
        let (before, mut steps) = (format!("{:?}", self.home), Vec::new());
        // Whether a value of it is received matters to nobody; that it comes at most once does.
        let fresh = |world: &mut World| {
            world.next += 1;
            world.doubtful.insert(world.next);
            world.next
        };
        let is_refused = match message {
            Message::Offer(id, _) => {
                let value = fresh(self);
                self.home.offer(id, value, true, &mut steps);
                false
            }
            Message::Item(_) => {
                let value = fresh(self);
                self.home.item(HOSTILE, value, &mut steps).is_err()
            }
            Message::Ask(id, waits) => {
                self.home.ask(id, waits, &mut steps);
                false
            }
            Message::Want(id, waits) => {
                if let Wanted::Value(value) = self.home.want(id, waits, &mut steps) {
                    self.doubtful.insert(value);
                }
                false
            }
            Message::PutBack(_) => {
                let value = fresh(self);
                self.home.put_back(HOSTILE, value, &mut steps).is_err()
            }
            Message::Settled => {
                self.home.settled(HOSTILE, &mut steps);
                false
            }
            Message::Cancel(id) => {
                self.home.cancel(id, &mut steps);
                false
            }
            Message::ReturnSlots(slots) => self.home.return_slots(HOSTILE, slots, &mut steps).is_err(),
        };
        if is_refused {
            prop_assert_eq!(before, format!("{:?}", self.home));
            prop_assert_eq!(&steps, &[]);
        }
        self.carry_out(steps);
        Ok(())
    }

    /// Sends `message` to the home, which takes it in at once if it is its own.
    fn say(&mut self, from: PlaceId, message: Message) {
        if from == HOME { self.home_hears(HOME, message) } else { self.tell_home(from, message) }
    }

    /// A task begins to send; by asking first if it `asks`, and waiting if it `waits`.
    fn send(&mut self, place: PlaceId, asks: bool, waits: bool) {
        let id = self.new_id(place);
        let value = id.number;
        if let Some(pool) = self.pools.get_mut(&place) {
            if pool.is_closed() {
                self.returned.insert(value);
                return;
            }
            if pool.take() {
                self.sent.insert(value);
                return self.say(place, Message::Item(value));
            }
        }
        if asks || !waits {
            self.operations.insert(id, Operation::Asking(value));
            self.say(place, Message::Ask(id, waits));
        } else {
            self.operations.insert(id, Operation::Sending(value));
            self.say(place, Message::Offer(id, value));
        }
    }

    fn receive(&mut self, place: PlaceId, waits: bool) {
        let id = self.new_id(place);
        self.operations.insert(id, Operation::Receiving);
        self.say(place, Message::Want(id, waits));
    }

    /// The task of an operation gives up.
    fn give_up(&mut self, choice: usize) {
        let waiting =
            |(_, operation): &(&OperationId, &Operation)| !matches!(operation, Operation::GivenUp(_));
        let ids: Vec<OperationId> = self.operations.iter().filter(waiting).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[choice % ids.len()];
        if let Operation::Arrived(value) = self.operations[&id] {
            self.operations.remove(&id);
            self.say(id.place, Message::PutBack(value));
            return self.say_if_settled(id.place);
        }
        let value = match self.operations[&id] {
            Operation::Sending(value) | Operation::Asking(value) => Some(value),
            _ => None,
        };
        self.operations.insert(id, Operation::GivenUp(value));
        self.say(id.place, Message::Cancel(id));
    }

    /// A task takes the value that has arrived for it.
    fn take(&mut self, id: OperationId) {
        let Some(Operation::Arrived(value)) = self.operations.remove(&id) else { panic!("nothing arrived") };
        self.received.push(value);
        if id.place == HOME {
            let mut steps = Vec::new();
            self.home.taken(&mut steps);
            self.carry_out(steps);
        }
        self.say_if_settled(id.place);
    }

    fn arrived(&self) -> Vec<OperationId> {
        let has = |(_, operation): &(&OperationId, &Operation)| matches!(operation, Operation::Arrived(_));
        self.operations.iter().filter(has).map(|(id, _)| *id).collect()
    }

    fn say_if_settled(&mut self, place: PlaceId) {
        let is_quiet = self.arrived().iter().all(|id| id.place != place);
        if is_quiet && self.settling.remove(&place) {
            self.say(place, Message::Settled);
        }
    }

    /// A place takes in what the home says.
    fn hear(&mut self, place: PlaceId, message: ToPlace) {
        self.is_over |= matches!(message, ToPlace::Ended(_));
        match message {
            ToPlace::Accepted(id, slots) => {
                let Some(Operation::Sending(value) | Operation::GivenUp(Some(value))) =
                    self.operations.remove(&id)
                else {
                    panic!("an answer for nobody")
                };
                assert!(self.sent.insert(value));
                if slots > 0 {
                    assert_eq!(self.pools.get_mut(&place).unwrap().grant(slots), 0, "in order");
                }
            }
            ToPlace::Granted(id) => match self.operations.remove(&id) {
                Some(Operation::Asking(value)) => {
                    assert!(self.sent.insert(value));
                    self.say(place, Message::Item(value));
                }
                Some(Operation::GivenUp(Some(value))) => {
                    self.returned.insert(value);
                    self.say(place, Message::ReturnSlots(1));
                }
                other => panic!("a slot for {other:?}"),
            },
            ToPlace::Refused(id)
            | ToPlace::Full(id)
            | ToPlace::Cancelled(id)
            | ToPlace::Ended(id)
            | ToPlace::Empty(id) => match self.operations.remove(&id) {
                Some(
                    Operation::Sending(value) | Operation::Asking(value) | Operation::GivenUp(Some(value)),
                ) => {
                    assert!(self.returned.insert(value));
                }
                Some(Operation::Receiving | Operation::Arrived(_) | Operation::GivenUp(None)) => {}
                None => panic!("an answer for nobody"),
            },
            ToPlace::Value(id, value) => match self.operations.remove(&id) {
                Some(Operation::Receiving) => {
                    self.operations.insert(id, Operation::Arrived(value));
                }
                Some(Operation::GivenUp(None)) => self.say(place, Message::PutBack(value)),
                other => panic!("a value for {other:?}"),
            },
            ToPlace::Slots(slots) => {
                assert_eq!(self.pools.get_mut(&place).unwrap().grant(slots), 0, "in order");
            }
            ToPlace::Settle => {
                self.settling.insert(place);
                self.say_if_settled(place);
            }
            ToPlace::Recall => {
                let slots = self.pools.get_mut(&place).unwrap().recall();
                self.say(place, Message::ReturnSlots(slots));
            }
            ToPlace::Close => {
                let slots = self.pools.get_mut(&place).unwrap().close();
                self.say(place, Message::ReturnSlots(slots));
            }
        }
    }

    /// Takes in the oldest message from or to `place`; says whether there was one.
    fn deliver(&mut self, place: PlaceId, is_to_home: bool) -> bool {
        if is_to_home {
            let message = self.to_home.get_mut(&place).and_then(VecDeque::pop_front);
            message.map(|message| self.home_hears(place, message)).is_some()
        } else {
            let message = self.to_places.get_mut(&place).and_then(VecDeque::pop_front);
            message.map(|message| self.hear(place, message)).is_some()
        }
    }

    fn close(&mut self) {
        let mut steps = Vec::new();
        self.home.close(&mut steps);
        self.carry_out(steps);
    }

    /// `place` dies; what it sent arrives, then the news.
    fn die(&mut self, place: PlaceId) {
        if !self.dead.insert(place) {
            return;
        }
        for message in self.to_places.get_mut(&place).unwrap().drain(..) {
            if let ToPlace::Value(_, value) = message {
                self.doubtful.insert(value);
            }
        }
        while self.deliver(place, true) {}
        let mut steps = Vec::new();
        self.doubtful.extend(self.home.place_died(place, &mut steps));
        self.carry_out(steps);
        self.operations.retain(|id, operation| {
            if let (
                true,
                Operation::Sending(value)
                | Operation::Asking(value)
                | Operation::Arrived(value)
                | Operation::GivenUp(Some(value)),
            ) = (id.place == place, &operation)
            {
                self.doubtful.insert(*value);
            }
            id.place != place
        });
    }

    /// Lets messages arrive and tasks look until nothing happens.
    fn settle(&mut self) {
        loop {
            self.deliver_all();
            let arrived = self.arrived();
            if arrived.is_empty() {
                return;
            }
            arrived.into_iter().for_each(|id| self.take(id));
        }
    }

    fn deliver_all(&mut self) {
        let ways = || (1..PLACES).flat_map(|place| [(PlaceId(place), true), (PlaceId(place), false)]);
        while ways().any(|(place, is_to_home)| self.deliver(place, is_to_home)) {}
    }

    /// What must hold when no message is under way.
    fn check_quiet(&self) -> Result<(), TestCaseError> {
        let of = |what: fn(&Operation) -> bool| {
            self.operations.values().filter(|operation| what(operation)).count()
        };
        let receiving = of(|operation| matches!(operation, Operation::Receiving));
        let sending = of(|operation| matches!(operation, Operation::Sending(_) | Operation::Asking(_)));
        prop_assert!(receiving == 0 || self.home.is_empty(), "a receiver waits beside a value");
        prop_assert!(!self.is_over || self.home.is_empty(), "a value came after the end");
        prop_assert!(receiving == 0 || sending == 0, "a sender and a receiver wait for each other");
        prop_assert!(
            sending == 0 || self.home.len() >= self.home.capacity() as usize,
            "a sender waits beside room"
        );
        prop_assert!(
            !self.home.is_closed() || (sending == 0 && receiving == 0),
            "someone waits at a closed channel"
        );
        prop_assert_eq!(
            of(|operation| matches!(operation, Operation::GivenUp(_))),
            0,
            "an operation without an answer"
        );
        Ok(())
    }

    /// Receives all that is left, and accounts for each value.
    fn check_values(mut self) -> Result<(), TestCaseError> {
        self.settle();
        self.check_quiet()?;
        self.close();
        self.settle();
        self.check_quiet()?;
        loop {
            let before = self.received.len();
            self.receive(HOME, false);
            if self.received.len() == before {
                break;
            }
        }
        let received: BTreeSet<Value> = self.received.iter().copied().collect();
        prop_assert_eq!(received.len(), self.received.len(), "a value came twice");
        for value in &self.sent {
            prop_assert!(received.contains(value) || self.doubtful.contains(value), "{} is lost", value);
            prop_assert!(!self.returned.contains(value), "{} was sent and returned", value);
        }
        for value in &received {
            let is_known = self.sent.contains(value) || self.doubtful.contains(value);
            prop_assert!(is_known, "{} was received though it was not sent", value);
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Action {
    Send { place: u32, asks: bool, waits: bool },
    Receive { place: u32, waits: bool },
    GiveUp(usize),
    Take(usize),
    Deliver(u32, bool),
    Settle,
    Close,
    Die(u32),
    SayHostile(Message),
}

/// What happens among the first `places` places.
fn actions(places: u32, deaths: u32) -> impl Strategy<Value = Vec<Action>> {
    proptest::collection::vec(action(places, deaths), 0..120)
}

/// The same, between things that the hostile place says.
fn hostile_actions() -> impl Strategy<Value = Vec<Action>> {
    let said = hostile_messages().prop_map(Action::SayHostile);
    proptest::collection::vec(prop_oneof![3 => action(PLACES - 1, 0), 2 => said], 0..160)
}

/// Each message that a place can send to the home; of operations that are there, and of such that never were.
fn hostile_messages() -> impl Strategy<Value = Message> {
    let id = || (0..6_u64).prop_map(|number| OperationId { place: HOSTILE, number });
    let slots = prop_oneof![4 => 0..4_u32, 1 => any::<u32>()];
    prop_oneof![
        id().prop_map(|id| Message::Offer(id, 0)),
        Just(Message::Item(0)),
        (id(), any::<bool>()).prop_map(|(id, waits)| Message::Ask(id, waits)),
        (id(), any::<bool>()).prop_map(|(id, waits)| Message::Want(id, waits)),
        Just(Message::PutBack(0)),
        Just(Message::Settled),
        id().prop_map(Message::Cancel),
        slots.prop_map(Message::ReturnSlots),
    ]
}

fn action(places: u32, deaths: u32) -> impl Strategy<Value = Action> {
    let place = move || 0..places;
    let often = || proptest::bool::weighted(0.8);
    let action = prop_oneof![
        8 => (place(), any::<bool>(), often()).prop_map(|(place, asks, waits)| Action::Send { place, asks, waits }),
        7 => (place(), often()).prop_map(|(place, waits)| Action::Receive { place, waits }),
        2 => (0..8_usize).prop_map(Action::GiveUp),
        5 => (0..8_usize).prop_map(Action::Take),
        16 => (1..PLACES, any::<bool>()).prop_map(|(place, is_to_home)| Action::Deliver(place, is_to_home)),
        1 => Just(Action::Settle),
        deaths => (1..PLACES).prop_map(Action::Die),
    ];
    prop_oneof![40 => action, 1 => Just(Action::Close)]
}

fn run(capacity: u32, actions: Vec<Action>) -> Result<World, TestCaseError> {
    run_in(World::new(capacity), actions)
}

fn run_in(mut world: World, actions: Vec<Action>) -> Result<World, TestCaseError> {
    let most = world.home.capacity() as usize + actions.len();
    for action in actions {
        let lives = |world: &World, place: u32| !world.dead.contains(&PlaceId(place));
        match action {
            Action::Send { place, asks, waits } if lives(&world, place) => {
                world.send(PlaceId(place), asks, waits)
            }
            Action::Receive { place, waits } if lives(&world, place) => world.receive(PlaceId(place), waits),
            Action::Send { .. } | Action::Receive { .. } => {}
            Action::GiveUp(choice) => world.give_up(choice),
            Action::Take(choice) => {
                let arrived = world.arrived();
                if !arrived.is_empty() {
                    world.take(arrived[choice % arrived.len()]);
                }
            }
            Action::Deliver(place, is_to_home) => drop(world.deliver(PlaceId(place), is_to_home)),
            Action::Settle => {
                world.settle();
                // The hostile place keeps what it was asked for, and others wait for that.
                if !world.has_hostile {
                    world.check_quiet()?;
                }
            }
            Action::Close => world.close(),
            Action::Die(place) => world.die(PlaceId(place)),
            Action::SayHostile(message) => world.home_hears_hostile(message)?,
        }
        // A value that was put back, or whose receiver left a rendezvous, stands beside the capacity.
        prop_assert!(world.home.len() <= most + world.operations.len());
    }
    Ok(world)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_value_is_lost_or_doubled_and_nobody_waits_for_nothing(capacity in 0..5_u32, actions in actions(PLACES, 0)) {
        run(capacity, actions)?.check_values()?;
    }

    #[test]
    fn a_dead_place_takes_only_what_it_had(capacity in 0..5_u32, actions in actions(PLACES, 1)) {
        run(capacity, actions)?.check_values()?;
    }

    #[test]
    fn a_hostile_place_takes_only_what_was_delivered_to_it(
        capacity in 0..5_u32,
        actions in hostile_actions(),
    ) {
        let world = World { has_hostile: true, ..World::new(capacity) };
        let mut world = run_in(world, actions)?;
        // Once it counts as dead, nobody waits for what it keeps.
        world.die(HOSTILE);
        world.check_values()?;
    }
}

#[test]
fn values_of_one_place_arrive_in_their_order() {
    for capacity in [0, 1, 3, 64] {
        let (mut world, place) = (World::new(capacity), PlaceId(1));
        for _ in 0..200 {
            world.send(place, false, true);
            world.receive(HOME, true);
            world.settle();
        }
        let mut sorted = world.received.clone();
        sorted.sort_unstable();
        assert_eq!((world.received.len(), &world.received), (200, &sorted));
    }
}

#[test]
fn a_stream_of_sends_asks_only_once() {
    let (mut world, place) = (World::new(64), PlaceId(1));
    let (mut offers, mut words) = (0, 0);
    for _ in 0..1000 {
        world.send(place, false, true);
        offers +=
            world.to_home[&place].iter().filter(|message| matches!(message, Message::Offer(..))).count();
        while world.deliver(place, true) {}
        world.receive(HOME, true);
        words += world.to_places[&place].len();
        while world.deliver(place, false) {}
    }
    assert_eq!((offers, world.received.len()), (1, 1000));
    assert!(words <= 2 * 1000 / 32 + 2, "{words} messages with slots");
}

#[test]
fn slots_that_were_not_given_are_refused() {
    let mut home: ChannelHome<Value> = ChannelHome::new(HOME, 4);
    let mut steps = Vec::new();
    assert_eq!(home.item(PlaceId(1), 7, &mut steps), Err(SlotViolation));
    assert_eq!(home.return_slots(PlaceId(1), 1, &mut steps), Err(SlotViolation));
    assert!(home.is_empty() && steps.is_empty());
}

#[test]
fn a_place_puts_back_no_more_than_has_gone_there() {
    let mut home: ChannelHome<Value> = ChannelHome::new(HOME, 4);
    let (mut steps, place) = (Vec::new(), PlaceId(1));
    let want = |home: &mut ChannelHome<Value>, number, steps: &mut Vec<_>| {
        home.want(OperationId { place, number }, true, steps)
    };
    home.offer_at_once(1).unwrap();
    home.offer_at_once(2).unwrap();
    assert_eq!(home.put_back(place, 9, &mut steps), Err(PutBackViolation), "nothing has gone there");
    assert_eq!(want(&mut home, 1, &mut steps), Wanted::Value(1));
    assert_eq!(home.put_back(place, 1, &mut steps), Ok(None));
    assert_eq!(home.put_back(place, 1, &mut steps), Err(PutBackViolation), "it has come back already");
    assert_eq!((want(&mut home, 2, &mut steps), home.len()), (Wanted::Value(1), 1));
    assert_eq!(want(&mut home, 3, &mut steps), Wanted::Value(2));
    home.close(&mut steps);
    assert_eq!(want(&mut home, 4, &mut steps), Wanted::Waits);
    assert_eq!(steps, [ChannelStep::Settle(place)], "either may come back");
    steps.clear();
    // The one that waits has it, and it may come back in turn.
    assert_eq!(home.put_back(place, 2, &mut steps), Ok(None));
    assert_eq!(steps, [ChannelStep::Deliver(OperationId { place, number: 4 }, 2)]);
    home.settled(place, &mut steps);
    assert_eq!(home.put_back(place, 2, &mut steps), Ok(None));
    assert_eq!(home.put_back(place, 1, &mut steps), Err(PutBackViolation), "it was taken before the answer");
}

#[test]
fn a_channel_without_receivers_gives_everything_back() {
    let mut home = ChannelHome::new(HOME, 1);
    let mut steps = Vec::new();
    let id = |number| OperationId { place: HOME, number };
    assert_eq!(home.offer(id(1), 1, true, &mut steps), Offered::Accepted(0));
    assert_eq!(home.offer(id(2), 2, true, &mut steps), Offered::Waits);
    assert_eq!(home.abandon(&mut steps), [1]);
    assert_eq!(steps, [ChannelStep::Refuse(id(2), Some(2))]);
    assert_eq!(home.offer(id(3), 3, true, &mut steps), Offered::Refused(3));
    assert_eq!(home.put_back(HOME, 4, &mut steps), Ok(Some(4)));
}
