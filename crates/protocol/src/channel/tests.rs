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

/// Message of another place to the home.
#[derive(Clone, Debug)]
enum Message {
    Offer(OperationId, Value),
    Item(Value),
    Ask(OperationId, Choice, bool),
    Chosen(OperationId, Value),
    Want(OperationId, Choice, bool),
    PutBack(Value),
    Taken(OperationId),
    NotTaken(OperationId),
    /// Of the home itself: its task has not taken this value.
    Restore(OperationId, Value),
    Settled,
    Cancel(OperationId),
    ReturnSlots(u32),
}

/// Message of the home to another place.
#[derive(Clone, Debug)]
enum ToPlace {
    Accepted(OperationId, u32),
    Refused(OperationId),
    Full(OperationId),
    Granted(OperationId),
    Declined(OperationId),
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
    /// It has its value and waits for room.
    Asking(Value),
    /// It has its value and may send it.
    Granted(Value),
    /// It has sent its value, and does not know yet whether anybody takes it.
    Chosen(Value),
    Receiving,
    /// A value is there, and the task has not looked yet.
    Ready,
    /// Nobody waits for the answer, which says what became of its value.
    GivenUp(Value),
}

/// Three places and one channel.
struct World {
    home: ChannelHome<Value>,
    pools: BTreeMap<PlaceId, SlotPool>,
    arrivals: BTreeMap<PlaceId, Arrivals>,
    /// Values that have arrived at a place, each with the receive for which it came.
    held: BTreeMap<PlaceId, VecDeque<(OperationId, Value)>>,
    operations: BTreeMap<OperationId, Operation>,
    /// The other operation of a task that chooses.
    others: BTreeMap<OperationId, OperationId>,
    to_home: BTreeMap<PlaceId, VecDeque<Message>>,
    to_places: BTreeMap<PlaceId, VecDeque<ToPlace>>,
    dead: BTreeSet<PlaceId>,
    next: u64,
    /// Values whose send ended well.
    sent: BTreeSet<Value>,
    /// Receiver of each value.
    received: Vec<(PlaceId, Value)>,
    /// Values that a dead place may have had.
    doubtful: BTreeSet<Value>,
    returned: BTreeSet<Value>,
    /// Values of a task at each place that sends one after the other.
    streams: BTreeMap<PlaceId, Vec<Value>>,
    /// Values put back, each with the place that did so.
    travelled: BTreeSet<(PlaceId, Value)>,
    /// Places that are to say when nothing that has arrived is left.
    settling: BTreeSet<PlaceId>,
    /// Sends that were declined: their tasks take what else they can before they choose them again.
    declined: BTreeSet<OperationId>,
    /// Choices of which an operation has happened.
    decided: BTreeSet<u64>,
    /// Somebody was told that the channel is over.
    is_over: bool,
    /// True if there is a [`HOSTILE`] place.
    has_hostile: bool,
    steps: VecDeque<ChannelStep<Value>>,
    is_carrying: bool,
}

impl World {
    fn new(capacity: u32) -> World {
        let others = || (1..PLACES).map(PlaceId);
        World {
            home: ChannelHome::new(HOME, capacity),
            pools: others().map(|place| (place, SlotPool::default())).collect(),
            arrivals: (0..PLACES).map(|place| (PlaceId(place), Arrivals::default())).collect(),
            held: (0..PLACES).map(|place| (PlaceId(place), VecDeque::new())).collect(),
            operations: BTreeMap::new(),
            others: BTreeMap::new(),
            to_home: others().map(|place| (place, VecDeque::new())).collect(),
            to_places: others().map(|place| (place, VecDeque::new())).collect(),
            dead: BTreeSet::new(),
            next: 0,
            sent: BTreeSet::new(),
            received: Vec::new(),
            doubtful: BTreeSet::new(),
            returned: BTreeSet::new(),
            streams: BTreeMap::new(),
            travelled: BTreeSet::new(),
            settling: BTreeSet::new(),
            declined: BTreeSet::new(),
            decided: BTreeSet::new(),
            is_over: false,
            has_hostile: false,
            steps: VecDeque::new(),
            is_carrying: false,
        }
    }

    fn is_rendezvous(&self) -> bool {
        matches!(self.home, ChannelHome::Rendezvous(_))
    }

    fn new_id(&mut self, place: PlaceId) -> OperationId {
        self.next += 1;
        OperationId { place, number: self.next }
    }

    /// The choice that an operation belongs to.
    fn choice(&self, id: OperationId) -> Choice {
        self.others.get(&id).map(|other| id.number.min(other.number))
    }

    fn tell_home(&mut self, from: PlaceId, message: Message) {
        self.to_home.get_mut(&from).unwrap().push_back(message);
    }

    /// Returns `true` if nobody accounts any more for what goes to this place: it is dead or hostile.
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
        self.steps.extend(steps);
        if std::mem::replace(&mut self.is_carrying, true) {
            return; // They follow those that are being carried out.
        }
        while let Some(step) = self.steps.pop_front() {
            match step {
                ChannelStep::Deliver(id, value) => self.tell(id.place, ToPlace::Value(id, value)),
                ChannelStep::Lend(id, value) => {
                    self.tell(id.place, ToPlace::Value(id, value));
                    if id.place != HOME {
                        let mut steps = Vec::new();
                        let unneeded = self.home.retain(id, value, &mut steps);
                        assert!(unneeded.is_none() && steps.is_empty(), "nothing has happened meanwhile");
                    }
                }
                ChannelStep::Accept(id, slots) => self.tell(id.place, ToPlace::Accepted(id, slots)),
                ChannelStep::Refuse(id, _) => self.tell(id.place, ToPlace::Refused(id)),
                ChannelStep::Full(id, _) => self.tell(id.place, ToPlace::Full(id)),
                ChannelStep::GiveBack(id, _) => self.tell(id.place, ToPlace::Cancelled(id)),
                ChannelStep::End(id) => self.tell(id.place, ToPlace::Ended(id)),
                ChannelStep::Empty(id) => self.tell(id.place, ToPlace::Empty(id)),
                ChannelStep::Grant(id) => self.tell(id.place, ToPlace::Granted(id)),
                ChannelStep::Decline(id, _) => self.tell(id.place, ToPlace::Declined(id)),
                ChannelStep::Announce(place, slots) => self.tell(place, ToPlace::Slots(slots)),
                ChannelStep::Recall(place) => self.tell(place, ToPlace::Recall),
                ChannelStep::Close(place) => self.tell(place, ToPlace::Close),
                ChannelStep::Settle(place) => self.tell(place, ToPlace::Settle),
            }
        }
        self.is_carrying = false;
    }

    /// An offer; where the short way is open, it does the same.
    fn offer(
        &mut self,
        id: OperationId,
        value: Value,
        steps: &mut Vec<ChannelStep<Value>>,
    ) -> OfferOutcome<Value> {
        let mut other = self.home.clone();
        let is_short = id.place == HOME && other.offer_at_once(value).is_ok();
        let offered = self.home.offer(id, value, true, steps);
        if is_short {
            assert_eq!((&offered, steps.len()), (&OfferOutcome::Accepted(0), 0));
            assert_eq!(format!("{other:?}"), format!("{:?}", self.home));
        }
        offered
    }

    /// The same of a receive.
    fn want(
        &mut self,
        id: OperationId,
        choice: Choice,
        waits: bool,
        steps: &mut Vec<ChannelStep<Value>>,
    ) -> WantOutcome<Value> {
        let mut other = self.home.clone();
        let mut short_steps = Vec::new();
        let short = other.want_at_once(&mut short_steps).filter(|_| id.place == HOME);
        if id.place == HOME
            && self.held[&HOME].is_empty()
            && let Some(value) = self.home.take_offer(steps)
        {
            return WantOutcome::Value(value);
        }
        let wanted = self.home.want(id, choice, waits, steps);
        if let Some(value) = short {
            assert_eq!((&wanted, &*steps), (&WantOutcome::Value(value), &short_steps));
            assert_eq!(format!("{other:?}"), format!("{:?}", self.home));
        }
        wanted
    }

    /// Takes in a message of `from`, which may be the home itself.
    fn home_hears(&mut self, from: PlaceId, message: Message) {
        let mut steps = Vec::new();
        let answer = match message {
            Message::Offer(id, value) => match self.offer(id, value, &mut steps) {
                OfferOutcome::Accepted(slots) => Some((id, ToPlace::Accepted(id, slots))),
                OfferOutcome::Waits => None,
                OfferOutcome::Refused(_) => Some((id, ToPlace::Refused(id))),
                OfferOutcome::Full(_) => panic!("it was to wait"),
            },
            Message::Ask(id, choice, waits) => match self.home.ask(id, choice, waits, &mut steps) {
                OfferOutcome::Accepted(_) => Some((id, ToPlace::Granted(id))),
                OfferOutcome::Waits => None,
                OfferOutcome::Refused(()) => Some((id, ToPlace::Refused(id))),
                OfferOutcome::Full(()) => Some((id, ToPlace::Full(id))),
            },
            Message::Chosen(id, value) => match self.home.choose(id, value, &mut steps).unwrap() {
                OfferOutcome::Accepted(_) | OfferOutcome::Waits => None,
                OfferOutcome::Refused(_) if self.is_rendezvous() => Some((id, ToPlace::Refused(id))),
                other => panic!("{other:?} of a channel that has receivers"),
            },
            Message::Want(id, choice, waits) => match self.want(id, choice, waits, &mut steps) {
                WantOutcome::Value(value) if from == HOME => {
                    self.receive_at_once(id, value);
                    None
                }
                WantOutcome::Value(value) => Some((id, ToPlace::Value(id, value))),
                WantOutcome::Waits => None,
                WantOutcome::Ended => Some((id, ToPlace::Ended(id))),
                WantOutcome::Empty => Some((id, ToPlace::Empty(id))),
            },
            Message::Item(value) => {
                assert_eq!(self.home.item(from, value, &mut steps), Ok(None));
                None
            }
            Message::PutBack(value) => {
                assert_eq!(self.home.put_back(from, value, &mut steps), Ok(None));
                None
            }
            Message::Taken(id) => {
                self.home.taken(id, &mut steps).unwrap();
                None
            }
            Message::NotTaken(id) => {
                self.home.not_taken(id, &mut steps).unwrap();
                None
            }
            Message::Restore(id, value) => {
                assert_eq!(self.home.restore(id, value, &mut steps), Ok(None));
                None
            }
            Message::Settled => {
                self.home.settled(from, &mut steps);
                None
            }
            Message::Cancel(id) => match self.home.cancel(id, &mut steps) {
                Cancelled::Now(_) => Some((id, ToPlace::Cancelled(id))),
                Cancelled::Granted | Cancelled::Later => None,
            },
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

    /// Receives a value at once for a task of the home; if others lie there, it takes the first of them.
    fn receive_at_once(&mut self, id: OperationId, value: Value) {
        self.arrivals.get_mut(&HOME).unwrap().ended(id.number);
        self.operations.remove(&id);
        let held = self.held.get_mut(&HOME).unwrap();
        held.push_back((id, value));
        let (_, value) = held.pop_front().unwrap();
        self.happens(id);
        self.received.push((HOME, value));
    }

    /// Takes in a message of the hostile place at the home; one that is refused must change nothing.
    fn home_hears_hostile(&mut self, message: Message) -> Result<(), TestCaseError> {
        let (before, mut steps) = (format!("{:?}", self.home), Vec::new());
        // It does not matter whether a value of it is received; that it comes at most once does.
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
            Message::Ask(id, choice, waits) => {
                self.home.ask(id, choice, waits, &mut steps);
                false
            }
            Message::Chosen(id, _) => {
                let value = fresh(self);
                self.home.choose(id, value, &mut steps).is_err()
            }
            Message::Want(id, choice, waits) => {
                if let WantOutcome::Value(value) = self.home.want(id, choice, waits, &mut steps) {
                    self.doubtful.insert(value);
                }
                false
            }
            Message::PutBack(_) => {
                let value = fresh(self);
                self.home.put_back(HOSTILE, value, &mut steps).is_err()
            }
            Message::Taken(id) => self.home.taken(id, &mut steps).is_err(),
            Message::NotTaken(id) => self.home.not_taken(id, &mut steps).is_err(),
            Message::Restore(..) => unreachable!("only the home restores"),
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

    /// Begins a send of a task; by asking first if it `asks`, and waiting if it `waits`.
    fn send(&mut self, place: PlaceId, asks: bool, waits: bool) -> Value {
        let id = self.new_id(place);
        let value = id.number;
        if let Some(pool) = self.pools.get_mut(&place) {
            if pool.is_closed() {
                self.returned.insert(value);
                return value;
            }
            if pool.take() {
                self.sent.insert(value);
                self.say(place, Message::Item(value));
                return value;
            }
        }
        if asks || !waits {
            self.operations.insert(id, Operation::Asking(value));
            self.say(place, Message::Ask(id, self.choice(id), waits));
        } else {
            self.operations.insert(id, Operation::Sending(value));
            self.say(place, Message::Offer(id, value));
        }
        value
    }

    /// Sends the next value of a task, if it is done with the one before.
    fn send_next(&mut self, place: PlaceId) {
        let last = self.streams.get(&place).and_then(|values| values.last()).copied();
        let is_open = |value| self.operations.contains_key(&OperationId { place, number: value });
        if !last.is_some_and(is_open) {
            let value = self.send(place, false, true);
            self.streams.entry(place).or_default().push(value);
        }
    }

    fn receive(&mut self, place: PlaceId, waits: bool) {
        let id = self.new_id(place);
        self.begin_receive(id, waits);
    }

    fn begin_receive(&mut self, id: OperationId, waits: bool) {
        self.operations.insert(id, Operation::Receiving);
        self.arrivals.get_mut(&id.place).unwrap().begin(id.number);
        self.say(id.place, Message::Want(id, self.choice(id), waits));
    }

    /// A task that sends or receives, whichever happens first.
    fn select(&mut self, place: PlaceId) {
        let (sends, receives) = (self.new_id(place), self.new_id(place));
        self.others.extend([(sends, receives), (receives, sends)]);
        let value = sends.number;
        if self.pools.get(&place).is_some_and(SlotPool::is_closed) {
            self.returned.insert(value);
            return;
        }
        if self.pools.get_mut(&place).is_some_and(SlotPool::take) {
            self.sent.insert(value);
            return self.say(place, Message::Item(value));
        }
        self.operations.insert(sends, Operation::Asking(value));
        self.say(place, Message::Ask(sends, self.choice(sends), true));
        self.begin_receive(receives, true);
    }

    /// An operation happens: the other one of its task does not.
    fn happens(&mut self, id: OperationId) {
        if let Some(other) = self.others.get(&id).copied() {
            let choice = self.choice(id).unwrap();
            assert!(self.decided.insert(choice), "both operations of a task have happened");
            self.give_up_one(other);
        }
    }

    /// Gives up the operation of a task.
    fn give_up(&mut self, choice: usize) {
        let waiting =
            |(_, operation): &(&OperationId, &Operation)| !matches!(operation, Operation::GivenUp(_));
        let ids: Vec<OperationId> = self.operations.iter().filter(waiting).map(|(id, _)| *id).collect();
        if !ids.is_empty() {
            let id = ids[choice % ids.len()];
            self.give_up_one(id);
            if let Some(other) = self.others.get(&id).copied() {
                self.give_up_one(other);
            }
        }
    }

    fn give_up_one(&mut self, id: OperationId) {
        match self.operations.get(&id).copied() {
            None | Some(Operation::GivenUp(_)) => {}
            Some(Operation::Granted(value)) => {
                self.operations.remove(&id);
                self.returned.insert(value);
                self.say(id.place, Message::Cancel(id));
            }
            Some(Operation::Sending(value) | Operation::Asking(value) | Operation::Chosen(value)) => {
                self.operations.insert(id, Operation::GivenUp(value));
                self.say(id.place, Message::Cancel(id));
            }
            Some(operation @ (Operation::Receiving | Operation::Ready)) => {
                self.operations.remove(&id);
                let arrivals = self.arrivals.get_mut(&id.place).unwrap();
                let step = arrivals.give_up(id.number, operation == Operation::Ready);
                self.carry_out_at(id.place, step);
            }
        }
    }

    /// Does what is next at a place where something has come or a receive was given up.
    fn carry_out_at(&mut self, place: PlaceId, step: ArrivalStep) {
        match step {
            ArrivalStep::Nothing => {}
            ArrivalStep::Ready(number) => {
                self.operations.insert(OperationId { place, number }, Operation::Ready);
            }
            ArrivalStep::Replace(number) => {
                let id = OperationId { place, number };
                self.operations.insert(id, Operation::Ready);
                self.say(place, Message::Cancel(id));
            }
            ArrivalStep::Withdraw(number) => self.say(place, Message::Cancel(OperationId { place, number })),
            ArrivalStep::PutBack(count) => {
                let held = self.held.get_mut(&place).unwrap();
                let back = held.split_off(held.len() - count);
                for (id, value) in back.into_iter().rev() {
                    self.travelled.insert((place, value));
                    self.say(
                        place,
                        match place {
                            HOME => Message::Restore(id, value),
                            _ if self.is_rendezvous() => Message::NotTaken(id),
                            _ => Message::PutBack(value),
                        },
                    );
                }
                self.report_if_settled(place);
            }
        }
    }

    /// Lets the task of an operation look, and go on if it can.
    fn look(&mut self, id: OperationId) {
        let other = self.others.get(&id).copied().filter(|_| self.declined.contains(&id));
        let id = other.filter(|other| self.operations.get(other) == Some(&Operation::Ready)).unwrap_or(id);
        match self.operations[&id] {
            Operation::Ready => {
                self.operations.remove(&id);
                let place = id.place;
                let (of, value) = self.held.get_mut(&place).unwrap().pop_front().unwrap();
                self.arrivals.get_mut(&place).unwrap().take();
                let own = self.others.get(&id).map(|other| other.number);
                assert_ne!(own, Some(value), "a task has met itself");
                self.received.push((place, value));
                self.happens(id);
                if self.is_rendezvous() || place == HOME {
                    self.say(place, Message::Taken(of));
                }
                self.report_if_settled(place);
            }
            Operation::Granted(value) if self.is_rendezvous() => {
                self.operations.insert(id, Operation::Chosen(value));
                // It cannot receive while it does not know what becomes of its value.
                if let Some(other) = self.others.get(&id).copied() {
                    self.give_up_one(other);
                }
                self.say(id.place, Message::Chosen(id, value));
            }
            Operation::Granted(value) => {
                self.operations.remove(&id);
                assert!(self.sent.insert(value));
                self.say(id.place, Message::Chosen(id, value));
                self.happens(id);
            }
            _ => {}
        }
    }

    /// The operations whose task can go on.
    fn awake(&self) -> Vec<OperationId> {
        let is_awake = |(_, operation): &(&OperationId, &Operation)| {
            matches!(operation, Operation::Ready | Operation::Granted(_))
        };
        self.operations.iter().filter(is_awake).map(|(id, _)| *id).collect()
    }

    fn report_if_settled(&mut self, place: PlaceId) {
        if self.arrivals[&place].is_empty() && self.settling.remove(&place) {
            self.say(place, Message::Settled);
        }
    }

    /// Takes in a message of the home at a place.
    fn hear(&mut self, place: PlaceId, message: ToPlace) {
        self.is_over |= matches!(message, ToPlace::Ended(_));
        match message {
            ToPlace::Accepted(id, slots) => self.hear_accepted(id, slots),
            ToPlace::Granted(id) => match self.operations[&id] {
                Operation::Asking(value) => drop(self.operations.insert(id, Operation::Granted(value))),
                Operation::GivenUp(value) => {
                    // The home frees that room as it hears that nobody waits.
                    self.operations.remove(&id);
                    self.returned.insert(value);
                }
                other => panic!("room for {other:?}"),
            },
            ToPlace::Declined(id) => match self.operations[&id] {
                Operation::Chosen(value) => {
                    self.operations.insert(id, Operation::Asking(value));
                    self.declined.insert(id);
                    if let Some(other) = self.others.get(&id).copied() {
                        self.restart(other);
                    }
                }
                Operation::GivenUp(_) => {}
                other => panic!("{other:?} has not chosen"),
            },
            ToPlace::Refused(id)
            | ToPlace::Full(id)
            | ToPlace::Cancelled(id)
            | ToPlace::Ended(id)
            | ToPlace::Empty(id) => self.hear_nothing(id),
            ToPlace::Value(id, value) => {
                self.held.get_mut(&place).unwrap().push_back((id, value));
                let step = self.arrivals.get_mut(&place).unwrap().arrived(id.number);
                self.carry_out_at(place, step);
            }
            ToPlace::Slots(slots) => {
                assert_eq!(self.pools.get_mut(&place).unwrap().grant(slots), 0, "in order");
            }
            ToPlace::Settle => {
                self.settling.insert(place);
                self.report_if_settled(place);
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

    /// Notes that the value of a send is received, or in the buffer.
    fn hear_accepted(&mut self, id: OperationId, slots: u32) {
        let operation = self.operations.remove(&id);
        let Some(Operation::Sending(value) | Operation::Chosen(value) | Operation::GivenUp(value)) =
            operation
        else {
            panic!("an answer for {operation:?}")
        };
        assert!(self.sent.insert(value));
        if let Some(Operation::Chosen(_)) = operation {
            self.happens(id);
        }
        if slots > 0 {
            assert_eq!(self.pools.get_mut(&id.place).unwrap().grant(slots), 0, "in order");
        }
    }

    /// Ends an operation with nothing sent or received.
    fn hear_nothing(&mut self, id: OperationId) {
        if self.arrivals[&id.place].expects(id.number) {
            match self.arrivals.get_mut(&id.place).unwrap().ended(id.number) {
                Some(step) => self.carry_out_at(id.place, step),
                None => drop(self.operations.remove(&id)),
            }
            return;
        }
        let Some(
            Operation::Sending(value)
            | Operation::Asking(value)
            | Operation::Chosen(value)
            | Operation::GivenUp(value),
        ) = self.operations.remove(&id)
        else {
            panic!("an answer for nobody")
        };
        assert!(self.returned.insert(value));
    }

    /// A task that was declined wants to receive again, by an operation of its own.
    fn restart(&mut self, before: OperationId) {
        let sends = self.others[&before];
        let id = self.new_id(before.place);
        let choice = self.choice(sends);
        self.others.remove(&before);
        self.others.extend([(sends, id), (id, sends)]);
        assert_eq!(self.choice(sends), choice, "the number of a choice is that of its first operation");
        self.begin_receive(id, true);
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

    /// Kills `place`; what it sent arrives, then the news.
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
        self.doubtful.extend(self.held.get_mut(&place).unwrap().drain(..).map(|(_, value)| value));
        let mut steps = Vec::new();
        self.doubtful.extend(self.home.place_died(place, &mut steps));
        self.operations.retain(|id, operation| {
            if let (
                true,
                Operation::Sending(value)
                | Operation::Asking(value)
                | Operation::Granted(value)
                | Operation::Chosen(value)
                | Operation::GivenUp(value),
            ) = (id.place == place, &operation)
            {
                self.doubtful.insert(*value);
            }
            id.place != place
        });
        self.carry_out(steps);
    }

    /// Lets messages arrive and tasks look until nothing happens.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            self.deliver_all();
            let Some(id) = self.awake().first().copied() else { return };
            self.look(id);
        }
        panic!("it goes on for ever");
    }

    fn deliver_all(&mut self) {
        let ways = || (1..PLACES).flat_map(|place| [(PlaceId(place), true), (PlaceId(place), false)]);
        while ways().any(|(place, is_to_home)| self.deliver(place, is_to_home)) {}
    }

    /// Checks what must hold when no message is under way.
    fn check_quiet(&self) -> Result<(), TestCaseError> {
        let of = |what: fn(&Operation) -> bool| {
            let found = self.operations.iter().filter(move |(_, operation)| what(operation));
            found.map(|(id, _)| *id).collect::<Vec<_>>()
        };
        let receiving = of(|operation| matches!(operation, Operation::Receiving));
        let sending = of(|operation| matches!(operation, Operation::Sending(_) | Operation::Asking(_)));
        prop_assert!(receiving.is_empty() || self.home.is_empty(), "a receiver waits beside a value");
        prop_assert!(!self.is_over || self.home.is_empty(), "a value came after the end");
        for sender in &sending {
            let others = receiving.iter().filter(|id| self.others.get(sender) != Some(id));
            prop_assert_eq!(others.count(), 0, "a sender and a receiver wait for each other");
        }
        prop_assert!(
            sending.is_empty() || self.home.len() >= self.home.capacity() as usize,
            "a sender waits beside room"
        );
        prop_assert!(
            !self.home.is_closed() || (sending.is_empty() && receiving.is_empty()),
            "someone waits at a closed channel"
        );
        let open = of(|operation| matches!(operation, Operation::GivenUp(_) | Operation::Chosen(_)));
        prop_assert_eq!(open, vec![], "an operation without an answer");
        for (place, arrivals) in &self.arrivals {
            let waits = receiving.iter().any(|id| id.place == *place);
            prop_assert!(self.is_deaf(*place) || waits || arrivals.is_idle(), "{:?} at {}", arrivals, place);
        }
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
        self.check_end()?;
        let received: BTreeSet<Value> = self.received.iter().map(|(_, value)| *value).collect();
        prop_assert_eq!(received.len(), self.received.len(), "a value came twice");
        for value in &self.sent {
            prop_assert!(received.contains(value) || self.doubtful.contains(value), "{} is lost", value);
            prop_assert!(!self.returned.contains(value), "{} was sent and returned", value);
        }
        for value in &received {
            let is_known = self.sent.contains(value) || self.doubtful.contains(value);
            prop_assert!(is_known, "{} was received though it was not sent", value);
        }
        self.check_order()
    }

    /// Tasks that ask for a value without waiting hear of the end at their second question, at every place.
    fn check_end(&mut self) -> Result<(), TestCaseError> {
        for place in (0..PLACES).map(PlaceId).filter(|place| !self.is_deaf(*place)).collect::<Vec<_>>() {
            self.is_over = false;
            for _ in 0..2 {
                self.receive(place, false);
                self.settle();
            }
            prop_assert!(self.is_over, "{} is not told that the channel is closed and empty", place);
        }
        Ok(())
    }

    /// Checks that the values of a task reach each place in their order, except those that were put back by another
    /// place.
    fn check_order(&self) -> Result<(), TestCaseError> {
        for (place, values) in
            (0..PLACES).map(PlaceId).flat_map(|to| self.streams.values().map(move |of| (to, of)))
        {
            let of_stream = |(to, value): &&(PlaceId, Value)| {
                let was_elsewhere = (0..PLACES).map(PlaceId).filter(|other| *other != place);
                let was_elsewhere =
                    was_elsewhere.map(|other| (other, *value)).any(|of| self.travelled.contains(&of));
                *to == place && values.contains(value) && !was_elsewhere
            };
            let came: Vec<Value> = self.received.iter().filter(of_stream).map(|(_, value)| *value).collect();
            prop_assert!(came.is_sorted(), "{:?} came to {}", came, place);
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Action {
    Send { place: u32, asks: bool, waits: bool },
    SendNext(u32),
    Receive { place: u32, waits: bool },
    Select(u32),
    GiveUp(usize),
    Look(usize),
    Deliver(u32, bool),
    Settle,
    Close,
    Die(u32),
    SayHostile(Message),
}

/// Returns a strategy for the actions among the first `places` places.
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
    let choice = || proptest::option::of(0..3_u64);
    prop_oneof![
        id().prop_map(|id| Message::Offer(id, 0)),
        Just(Message::Item(0)),
        (id(), choice(), any::<bool>()).prop_map(|(id, choice, waits)| Message::Ask(id, choice, waits)),
        id().prop_map(|id| Message::Chosen(id, 0)),
        (id(), choice(), any::<bool>()).prop_map(|(id, choice, waits)| Message::Want(id, choice, waits)),
        Just(Message::PutBack(0)),
        id().prop_map(Message::Taken),
        id().prop_map(Message::NotTaken),
        Just(Message::Settled),
        id().prop_map(Message::Cancel),
        slots.prop_map(Message::ReturnSlots),
    ]
}

fn action(places: u32, deaths: u32) -> impl Strategy<Value = Action> {
    let place = move || 0..places;
    let often = || proptest::bool::weighted(0.8);
    let action = prop_oneof![
        5 => (place(), any::<bool>(), often()).prop_map(|(place, asks, waits)| Action::Send { place, asks, waits }),
        4 => place().prop_map(Action::SendNext),
        7 => (place(), often()).prop_map(|(place, waits)| Action::Receive { place, waits }),
        2 => place().prop_map(Action::Select),
        3 => (0..8_usize).prop_map(Action::GiveUp),
        6 => (0..8_usize).prop_map(Action::Look),
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
    let most = 2 * world.home.capacity() as usize + actions.len();
    for action in actions {
        let lives = |world: &World, place: u32| !world.dead.contains(&PlaceId(place));
        match action {
            Action::Send { place, asks, waits } if lives(&world, place) => {
                world.send(PlaceId(place), asks, waits);
            }
            Action::SendNext(place) if lives(&world, place) => world.send_next(PlaceId(place)),
            Action::Receive { place, waits } if lives(&world, place) => world.receive(PlaceId(place), waits),
            Action::Select(place) if lives(&world, place) => world.select(PlaceId(place)),
            Action::Send { .. } | Action::SendNext(_) | Action::Receive { .. } | Action::Select(_) => {}
            Action::GiveUp(choice) => world.give_up(choice),
            Action::Look(choice) => {
                let awake = world.awake();
                if !awake.is_empty() {
                    world.look(awake[choice % awake.len()]);
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
        // Values that used slots, and those that were put back, stand beside the capacity.
        prop_assert!(world.home.len() <= most + world.operations.len());
    }
    Ok(world)
}

/// Returns the configuration: this many worlds of each kind, or `ISLES_TEST_SEEDS` if more are wanted.
fn config() -> ProptestConfig {
    let rounds = std::env::var("ISLES_TEST_SEEDS").ok().and_then(|rounds| rounds.parse().ok());
    ProptestConfig::with_cases(rounds.unwrap_or(512))
}

proptest! {
    #![proptest_config(config())]

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
        let values: Vec<Value> = world.received.iter().map(|(_, value)| *value).collect();
        assert!(values.len() == 200 && values.is_sorted(), "{values:?}");
    }
}

#[test]
fn receives_that_are_given_up_do_not_turn_the_order_round() {
    let (mut world, place) = (World::new(16), PlaceId(1));
    (0..8).for_each(|_| world.send_next(HOME));
    for _ in 0..4 {
        // It is given up while its value is on the way, and the next one begins at once.
        world.receive(place, true);
        world.deliver(place, true);
        world.give_up(0);
    }
    (0..8).for_each(|_| world.receive(place, true));
    world.settle();
    let came: Vec<Value> = world.received.iter().map(|(_, value)| *value).collect();
    assert_eq!(came, world.streams[&HOME]);
}

#[test]
fn a_value_goes_back_only_when_no_later_one_is_on_its_way() {
    let (mut world, place) = (World::new(16), PlaceId(1));
    (0..4).for_each(|_| world.send_next(HOME));
    for _ in 0..2 {
        world.receive(place, true);
        world.deliver(place, true);
    }
    // Both values are on their way, and nobody waits for them.
    (0..2).for_each(|_| world.give_up(0));
    assert!(world.deliver(place, false), "the first one comes");
    world.receive(place, true);
    (0..3).for_each(|_| world.receive(place, true));
    world.settle();
    let came: Vec<Value> = world.received.iter().map(|(_, value)| *value).collect();
    assert_eq!(came, world.streams[&HOME]);
}

#[test]
fn a_channel_of_one_value_holds_one() {
    let (mut world, keeper, other) = (World::new(1), PlaceId(1), PlaceId(2));
    for _ in 0..20 {
        world.receive(HOME, true);
        world.send(keeper, false, true);
        world.settle();
    }
    world.send(other, false, true);
    while world.deliver(other, true) || world.deliver(other, false) {}
    world.send(keeper, false, true); // before it is asked for slots, if it has any
    world.deliver_all();
    assert_eq!((world.home.len(), world.operations.len()), (1, 1), "one is in it, and one waits");
}

#[test]
fn a_place_that_keeps_its_slots_keeps_nobody_waiting() {
    for capacity in [1, 2, 8, 64] {
        let mut world = World::new(capacity);
        let (keeper, other) = (PlaceId(1), PlaceId(2));
        for _ in 0..200 {
            world.send(keeper, false, true);
            world.receive(HOME, true);
            world.settle();
        }
        // The keeper computes from now on: nothing is delivered to it.
        for number in 0..capacity {
            world.send(other, true, false);
            while world.deliver(other, true) || world.deliver(other, false) {}
            let id = OperationId { place: other, number: world.next };
            assert!(
                matches!(world.operations.get(&id), Some(Operation::Granted(_))),
                "{number} of {capacity}"
            );
            world.look(id);
            while world.deliver(other, true) {}
        }
        world.send(other, true, false);
        while world.deliver(other, true) || world.deliver(other, false) {}
        assert!(world.returned.contains(&world.next), "now it is full");
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
    assert!(words <= 4 * 1000 / 32 + 2, "{words} messages with slots");
}

#[test]
fn a_send_of_a_rendezvous_ends_when_its_receiver_has_taken_the_value() {
    let (place, mut world) = (PlaceId(1), World::new(0));
    world.receive(place, true);
    world.deliver_all();
    let value = world.send(HOME, false, true);
    world.deliver_all();
    assert!(!world.sent.contains(&value), "it lies there, and no task has looked");
    world.give_up(1); // the receive
    world.deliver_all();
    assert!(
        !world.sent.contains(&value) && !world.returned.contains(&value),
        "the next receiver may have it"
    );
    world.receive(HOME, true);
    world.settle();
    assert!(world.sent.contains(&value) && world.received == [(HOME, value)]);
}

#[test]
fn a_value_that_is_not_taken_before_it_is_retained_waits_again() {
    let mut home = ChannelHome::new(HOME, 0);
    let id = |place, number| OperationId { place: PlaceId(place), number };
    let mut steps = Vec::new();
    assert_eq!(home.want(id(1, 1), None, true, &mut steps), WantOutcome::Waits);
    assert_eq!(home.offer(id(0, 1), 7, true, &mut steps), OfferOutcome::Waits);
    assert_eq!(steps, [ChannelStep::Lend(id(1, 1), 7)]);
    assert_eq!(home.not_taken(id(1, 1), &mut steps), Ok(()));
    assert_eq!(home.not_taken(id(1, 1), &mut steps), Err(PutBackViolation));
    assert_eq!(home.retain(id(1, 1), 7, &mut steps), None);
    assert_eq!(home.cancel(id(0, 1), &mut steps), Cancelled::Now(Some(7)));
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
        home.want(OperationId { place, number }, None, true, steps)
    };
    home.offer_at_once(1).unwrap();
    home.offer_at_once(2).unwrap();
    assert_eq!(home.put_back(place, 9, &mut steps), Err(PutBackViolation), "nothing has gone there");
    assert_eq!(want(&mut home, 1, &mut steps), WantOutcome::Value(1));
    assert_eq!(home.put_back(place, 1, &mut steps), Ok(None));
    assert_eq!(home.put_back(place, 1, &mut steps), Err(PutBackViolation), "it has come back already");
    assert_eq!((want(&mut home, 2, &mut steps), home.len()), (WantOutcome::Value(1), 1));
    assert_eq!(want(&mut home, 3, &mut steps), WantOutcome::Value(2));
    home.close(&mut steps);
    assert_eq!(want(&mut home, 4, &mut steps), WantOutcome::Waits);
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
    assert_eq!(home.offer(id(1), 1, true, &mut steps), OfferOutcome::Accepted(0));
    assert_eq!(home.offer(id(2), 2, true, &mut steps), OfferOutcome::Waits);
    assert_eq!(home.abandon(&mut steps), [1]);
    assert_eq!(steps, [ChannelStep::Refuse(id(2), Some(2))]);
    assert_eq!(home.offer(id(3), 3, true, &mut steps), OfferOutcome::Refused(3));
    assert_eq!(home.put_back(HOME, 4, &mut steps), Ok(Some(4)));
}
