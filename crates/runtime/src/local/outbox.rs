//! Messages that wait on the heap for room in a queue, in the order in which they were to be sent.
//!
//! A send that waits for room stands there, too, with its [`OutboxTicket`]: what is sent to the same place meanwhile,
//! by what is taken in, waits behind it.
//!
//! A message to several places stands in the queue of each of them, and goes when it is the first in all. They got it
//! at one time, so no two of these wait for each other. It knows neither what messages are nor how they are sent.
//!
//! If the receivers of a class are a crowd, not each is tried at each round: a place that has sent to thousands would
//! spend most of its time on sends that are refused. Invariant: no queue is empty.

use super::unsent::Unsent;
use crate::limits::{CROWD_MIN, CROWD_REFUSALS};
use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedMap;
use isles_transport::{Class, HandlerId};
use std::collections::VecDeque;

/// A message as it is to be sent.
pub(super) struct WaitingMessage {
    pub(super) handler: HandlerId,
    pub(super) bytes: Vec<u8>,
}

/// Sends waiting messages. A message to a dead place is dropped: its sender learns of the death.
pub(super) trait Transmit {
    /// Transmits to one place.
    fn one(&mut self, to: PlaceId, class: Class, message: &WaitingMessage) -> Result<(), Unsent>;

    /// Transmits to several places at once.
    fn several(&mut self, to: &[PlaceId], class: Class, message: &WaitingMessage) -> Result<(), Unsent>;
}

/// Entry in the queue of one receiver.
enum Waiting {
    One(WaitingMessage),
    /// Its part in the multicast of this number.
    Part(u64),
    /// A message that its sender still holds, with the number of its turn.
    OutboxTicket(u64),
}

/// The turn of one send, from when it found no room until its message is sent or put aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutboxTicket {
    to: PlaceId,
    class: Class,
    number: u64,
}

impl OutboxTicket {
    /// Returns the receiver of the message.
    pub(super) fn to(self) -> PlaceId {
        self.to
    }
}

/// A message to several places that none of them has got.
struct Multicast {
    number: u64,
    to: Vec<PlaceId>,
    class: Class,
    message: WaitingMessage,
}

/// Queue of one receiver.
type ReceiverQueue = VecDeque<Waiting>;

/// Both, in the order of their numbers.
const CLASSES: [Class; 2] = [Class::Control, Class::Data];

/// Messages that wait for room in a queue, in the order in which they were to be sent.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Queues by class, control first.
    queues: [OrderedMap<PlaceId, ReceiverQueue>; 2],
    /// The number of the receiver from which on a crowd is tried next.
    next: [u32; 2],
    /// In the order in which they came, with how many came before.
    multicasts: VecDeque<Multicast>,
    /// Number of multicasts and turns so far.
    numbers: u64,
}

impl Outbox {
    fn is_crowded(&self, class: Class) -> bool {
        self.queues[class as usize].len() > CROWD_MIN
    }

    /// Returns `true` if a message has to wait, too, without a try: behind others for its receiver, or in a crowd.
    pub(super) fn holds(&self, to: PlaceId, class: Class) -> bool {
        self.is_crowded(class) || self.queues[class as usize].contains_key(to)
    }

    /// Returns a turn for a message to `to`, behind what waits already; it counts as a message until it is given up.
    pub(super) fn enqueue(&mut self, to: PlaceId, class: Class) -> OutboxTicket {
        self.numbers += 1;
        let turn = OutboxTicket { to, class, number: self.numbers };
        self.queues[class as usize].get_or_default(to).push_back(Waiting::OutboxTicket(turn.number));
        turn
    }

    /// Returns `true` if nothing waits before `turn`.
    pub(super) fn is_next(&self, turn: OutboxTicket) -> bool {
        let line = self.queues[turn.class as usize].get(turn.to);
        matches!(line.and_then(VecDeque::front), Some(Waiting::OutboxTicket(number)) if *number == turn.number)
    }

    /// Puts a message where its turn stands.
    pub(super) fn fill(&mut self, turn: OutboxTicket, message: WaitingMessage) {
        if let Some((line, index)) = self.position(turn) {
            line[index] = Waiting::One(message);
        }
    }

    /// Forgets a turn: its message is sent, or never will be.
    pub(super) fn give_up(&mut self, turn: OutboxTicket) {
        if let Some((line, index)) = self.position(turn) {
            line.remove(index);
            if line.is_empty() {
                self.queues[turn.class as usize].remove(turn.to);
            }
        }
    }

    fn position(&mut self, turn: OutboxTicket) -> Option<(&mut ReceiverQueue, usize)> {
        let line = self.queues[turn.class as usize].get_mut(turn.to)?;
        let is_it =
            |waiting: &Waiting| matches!(waiting, Waiting::OutboxTicket(number) if *number == turn.number);
        // From the back: behind a turn stands only what was sent since.
        let index = line.iter().rposition(is_it)?;
        Some((line, index))
    }

    /// The same for several receivers at once; counts as one message to each.
    pub(super) fn put_multicast(&mut self, to: &[PlaceId], class: Class, message: WaitingMessage) {
        self.numbers += 1;
        let number = self.numbers;
        for to in to {
            self.queues[class as usize].get_or_default(*to).push_back(Waiting::Part(number));
        }
        self.multicasts.push_back(Multicast { number, to: to.to_vec(), class, message });
    }

    /// Offers what waits to `send`, each queue until it refuses: by receiver, then by class; then what goes to several.
    /// Gives how many messages are gone.
    pub(super) fn flush(&mut self, post: &mut dyn Transmit) -> usize {
        let is_one_class = self.queues.iter().any(OrderedMap::is_empty);
        let gone = if is_one_class || CLASSES.into_iter().any(|class| self.is_crowded(class)) {
            CLASSES.into_iter().map(|class| self.flush_class(class, post)).sum()
        } else {
            self.flush_in_turn(post)
        };
        gone + self.flush_multicasts(post)
    }

    /// Control and data of a receiver before those of the next.
    fn flush_in_turn(&mut self, post: &mut dyn Transmit) -> usize {
        let (mut from, mut gone) = (Some(PlaceId(0)), 0);
        while let Some(to) = from.and_then(|from| self.first_receiver(from)) {
            for class in CLASSES {
                let line = self.queues[class as usize].get_mut(to);
                gone += line.map_or(0, |line| offer(to, class, line, post));
            }
            from = to.0.checked_add(1).map(PlaceId);
        }
        self.queues.iter_mut().for_each(|queues| queues.retain(|_, line| !line.is_empty()));
        gone
    }

    /// The first place from this one on for which something waits.
    fn first_receiver(&self, from: PlaceId) -> Option<PlaceId> {
        self.queues.iter().filter_map(|queues| queues.first_from(from)).map(|(to, _)| to).min()
    }

    fn flush_class(&mut self, class: Class, post: &mut dyn Transmit) -> usize {
        if self.is_crowded(class) {
            return self.flush_crowd(class, post);
        }
        let (queues, mut is_any_over, mut gone) = (&mut self.queues[class as usize], false, 0);
        queues.for_each_mut(|to, line| {
            gone += offer(to, class, line, post);
            is_any_over |= line.is_empty();
        });
        if is_any_over {
            queues.retain(|_, line| !line.is_empty());
        }
        gone
    }

    /// As `flush`, until some have refused; the next time goes on with the others.
    #[cold]
    fn flush_crowd(&mut self, class: Class, post: &mut dyn Transmit) -> usize {
        let (queues, next) = (&mut self.queues[class as usize], &mut self.next[class as usize]);
        let (mut refusals, mut gone) = (0, 0);
        for _ in 0..queues.len() {
            let from = PlaceId(*next);
            let Some((to, _)) = queues.first_from(from).or_else(|| queues.first()) else { break };
            *next = to.0 + 1;
            let Some(line) = queues.get_mut(to) else { break };
            gone += offer(to, class, line, post);
            if line.is_empty() {
                queues.remove(to);
                continue;
            }
            refusals += 1;
            if refusals == CROWD_REFUSALS {
                break;
            }
        }
        gone
    }

    /// Offers each multicast that is the first at all of its receivers.
    fn flush_multicasts(&mut self, post: &mut dyn Transmit) -> usize {
        let mut gone = 0;
        for mut multicast in std::mem::take(&mut self.multicasts) {
            if self.is_first(&multicast) {
                gone += self.offer_multicast(&mut multicast, post);
            }
            if !multicast.to.is_empty() {
                self.multicasts.push_back(multicast);
            }
        }
        gone
    }

    fn is_first(&self, multicast: &Multicast) -> bool {
        let queues = &self.queues[multicast.class as usize];
        let first = |to: &PlaceId| queues.get(*to).and_then(VecDeque::front);
        multicast
            .to
            .iter()
            .all(|to| matches!(first(to), Some(Waiting::Part(number)) if *number == multicast.number))
    }

    /// Offers a multicast, without those who have died since; returns how many do not wait for it any more.
    fn offer_multicast(&mut self, multicast: &mut Multicast, post: &mut dyn Transmit) -> usize {
        let mut gone = 0;
        loop {
            let Multicast { to, class, message, .. } = &mut *multicast;
            let result = match to[..] {
                [] => return gone,
                [one] => post.one(one, *class, message),
                _ => post.several(to, *class, message),
            };
            match result {
                Err(Unsent::Full) => return gone,
                Err(Unsent::DeadPlace(dead)) => {
                    to.retain(|place| *place != dead);
                    gone += self.pop_first([dead], *class);
                }
                _ => return gone + self.pop_first(to.drain(..), *class),
            }
        }
    }

    /// Takes out what stands first for these receivers; returns how many they are.
    fn pop_first(&mut self, places: impl IntoIterator<Item = PlaceId>, class: Class) -> usize {
        let queues = &mut self.queues[class as usize];
        let mut count = 0;
        for place in places {
            count += 1;
            if let Some(line) = queues.get_mut(place) {
                line.pop_front();
                if line.is_empty() {
                    queues.remove(place);
                }
            }
        }
        count
    }
}

/// Offers what waits for `to` alone to `send` until it refuses; returns how much is gone.
fn offer(to: PlaceId, class: Class, line: &mut ReceiverQueue, post: &mut dyn Transmit) -> usize {
    let mut gone = 0;
    while let Some(Waiting::One(message)) = line.front()
        && !matches!(post.one(to, class, message), Err(Unsent::Full))
    {
        line.pop_front();
        gone += 1;
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes who got what, by the one byte of each message, and refuses where there is no room.
    #[derive(Default)]
    struct Notes {
        full: Vec<PlaceId>,
        dead: Vec<PlaceId>,
        got: Vec<(Vec<u32>, u8)>,
    }

    impl Notes {
        fn post(&mut self, to: &[PlaceId], message: &WaitingMessage) -> Result<(), Unsent> {
            if let Some(dead) = to.iter().find(|place| self.dead.contains(place)) {
                return Err(Unsent::DeadPlace(*dead));
            }
            if to.iter().any(|place| self.full.contains(place)) {
                return Err(Unsent::Full);
            }
            self.got.push((to.iter().map(|place| place.0).collect(), message.bytes[0]));
            Ok(())
        }
    }

    impl Transmit for Notes {
        fn one(&mut self, to: PlaceId, _: Class, message: &WaitingMessage) -> Result<(), Unsent> {
            self.post(&[to], message)
        }

        fn several(&mut self, to: &[PlaceId], _: Class, message: &WaitingMessage) -> Result<(), Unsent> {
            self.post(to, message)
        }
    }

    fn message(number: u8) -> WaitingMessage {
        WaitingMessage { handler: HandlerId(0), bytes: vec![number] }
    }

    /// Puts message `number` behind what waits for `to`.
    fn put(outbox: &mut Outbox, to: u32, class: Class, number: u8) {
        let turn = outbox.enqueue(PlaceId(to), class);
        outbox.fill(turn, message(number));
    }

    fn places(numbers: &[u32]) -> Vec<PlaceId> {
        numbers.iter().copied().map(PlaceId).collect()
    }

    #[test]
    fn a_multicast_keeps_its_place_between_other_messages_of_each_receiver() {
        let (mut outbox, mut notes) = (Outbox::default(), Notes::default());
        put(&mut outbox, 1, Class::Control, 1);
        outbox.put_multicast(&places(&[1, 2]), Class::Control, message(2));
        put(&mut outbox, 2, Class::Control, 3);
        notes.full = places(&[1]);
        assert_eq!(outbox.flush(&mut notes), 0, "what is behind the multicast waits, too");
        notes.full.clear();
        assert_eq!(outbox.flush(&mut notes), 3);
        assert_eq!(notes.got, [(vec![1], 1), (vec![1, 2], 2)]);
        assert_eq!(outbox.flush(&mut notes), 1);
        assert_eq!(notes.got.last(), Some(&(vec![2], 3)));
        assert!(!outbox.holds(PlaceId(1), Class::Control) && !outbox.holds(PlaceId(2), Class::Control));
    }

    #[test]
    fn what_is_put_aside_later_waits_for_the_turn_of_a_send_that_waits() {
        let (mut outbox, mut notes) = (Outbox::default(), Notes::default());
        put(&mut outbox, 1, Class::Data, 1);
        let (first, second) =
            (outbox.enqueue(PlaceId(1), Class::Data), outbox.enqueue(PlaceId(1), Class::Data));
        put(&mut outbox, 1, Class::Data, 4);
        assert!(!outbox.is_next(first), "a message waits before it");
        assert_eq!(outbox.flush(&mut notes), 1);
        assert!(outbox.is_next(first) && !outbox.is_next(second));
        outbox.fill(second, message(3));
        assert_eq!(outbox.flush(&mut notes), 0);
        outbox.give_up(first);
        assert_eq!(outbox.flush(&mut notes), 2);
        assert_eq!(notes.got, [(vec![1], 1), (vec![1], 3), (vec![1], 4)]);
        let last = outbox.enqueue(PlaceId(1), Class::Data);
        outbox.give_up(last);
        assert!(!outbox.holds(PlaceId(1), Class::Data), "no queue is empty");
    }

    #[test]
    fn who_dies_does_not_keep_a_multicast_from_the_others() {
        let (mut outbox, mut notes) = (Outbox::default(), Notes::default());
        outbox.put_multicast(&places(&[1, 2, 3]), Class::Control, message(1));
        outbox.put_multicast(&places(&[2, 3]), Class::Control, message(2));
        notes.dead = places(&[2]);
        notes.full = places(&[3]);
        assert_eq!(outbox.flush(&mut notes), 1, "the part of the dead place is gone");
        notes.full.clear();
        assert_eq!(outbox.flush(&mut notes) + outbox.flush(&mut notes), 4);
        assert_eq!(notes.got, [(vec![1, 3], 1), (vec![3], 2)]);
    }
}
