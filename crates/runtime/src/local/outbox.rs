//! Messages that wait on the heap for room in a queue, in the order of their sends.
//!
//! A send that waits for room holds an [`OutboxTicket`] in it, too: what is sent to the same place meanwhile, by
//! messages that are handled, waits behind it.
//!
//! A multicast is in the queue of each of its receivers, and leaves when it is the first in all of them. It enters all
//! of them at once, so no two multicasts wait for each other. The outbox knows neither what messages are nor how they
//! are sent.
//!
//! If the receivers of a class are a crowd, not each of them is tried in each round: a place that has sent to thousands
//! would spend most of its time on refused sends. Invariant: no queue is empty.

use super::unsent::Unsent;
use crate::limits::{CROWD_MIN, CROWD_REFUSALS};
use isles_protocol::PlaceId;
use isles_protocol::ordered::OrderedMap;
use isles_transport::{Class, HandlerId};
use std::collections::VecDeque;

/// A message that waits to be sent.
pub(super) struct WaitingMessage {
    pub(super) handler: HandlerId,
    pub(super) bytes: Vec<u8>,
}

/// Sends waiting messages. A message to a dead place is dropped: its sender learns of the death.
pub(super) trait Transmit {
    /// Transmits to one place.
    fn unicast(&mut self, to: PlaceId, class: Class, message: &WaitingMessage) -> Result<(), Unsent>;

    /// Transmits to several places at once.
    fn multicast(&mut self, to: &[PlaceId], class: Class, message: &WaitingMessage) -> Result<(), Unsent>;
}

/// Entry in the queue of one receiver.
enum QueueEntry {
    One(WaitingMessage),
    /// The receiver's part of the multicast with this number.
    Part(u64),
    /// A message that its sender still holds, with the number of its ticket.
    OutboxTicket(u64),
}

/// The ticket of one send, from when it found no room until its message is sent or deferred.
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

/// A message to several places that none of them has received.
struct Multicast {
    number: u64,
    to: Vec<PlaceId>,
    class: Class,
    message: WaitingMessage,
}

/// Queue of one receiver.
type ReceiverQueue = VecDeque<QueueEntry>;

/// Both classes, in the order of their numbers.
const CLASSES: [Class; 2] = [Class::Control, Class::Data];

/// Messages that wait for room in a queue, in the order of their sends.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Queues by class, control first.
    queues: [OrderedMap<PlaceId, ReceiverQueue>; 2],
    /// The receiver at which the next round of a crowd starts, by class.
    next: [u32; 2],
    /// In the order of their sends, each with its number.
    multicasts: VecDeque<Multicast>,
    /// Number of multicasts and tickets so far.
    numbers: u64,
}

impl Outbox {
    fn is_crowded(&self, class: Class) -> bool {
        self.queues[class as usize].len() > CROWD_MIN
    }

    /// Returns `true` if a message must wait without a try: behind others for its receiver, or in a crowd.
    pub(super) fn holds(&self, to: PlaceId, class: Class) -> bool {
        self.is_crowded(class) || self.queues[class as usize].contains_key(to)
    }

    /// Returns a ticket for a message to `to`, behind those that wait; it counts as a message until it is given up.
    pub(super) fn enqueue(&mut self, to: PlaceId, class: Class) -> OutboxTicket {
        self.numbers += 1;
        let ticket = OutboxTicket { to, class, number: self.numbers };
        self.queues[class as usize].get_or_default(to).push_back(QueueEntry::OutboxTicket(ticket.number));
        ticket
    }

    /// Returns `true` if nothing waits before `ticket`.
    pub(super) fn is_next(&self, ticket: OutboxTicket) -> bool {
        let queue = self.queues[ticket.class as usize].get(ticket.to);
        matches!(queue.and_then(VecDeque::front), Some(QueueEntry::OutboxTicket(number)) if *number == ticket.number)
    }

    /// Puts a message in the place of its ticket.
    pub(super) fn fill(&mut self, ticket: OutboxTicket, message: WaitingMessage) {
        if let Some((queue, index)) = self.position(ticket) {
            queue[index] = QueueEntry::One(message);
        }
    }

    /// Removes a ticket: its message is sent, or never will be.
    pub(super) fn give_up(&mut self, ticket: OutboxTicket) {
        if let Some((queue, index)) = self.position(ticket) {
            queue.remove(index);
            if queue.is_empty() {
                self.queues[ticket.class as usize].remove(ticket.to);
            }
        }
    }

    fn position(&mut self, ticket: OutboxTicket) -> Option<(&mut ReceiverQueue, usize)> {
        let queue = self.queues[ticket.class as usize].get_mut(ticket.to)?;
        let is_it =
            |waiting: &QueueEntry| matches!(waiting, QueueEntry::OutboxTicket(n) if *n == ticket.number);
        // From the back: only later sends are behind a ticket.
        let index = queue.iter().rposition(is_it)?;
        Some((queue, index))
    }

    /// Queues a message for several receivers at once; counts as one message to each.
    pub(super) fn put_multicast(&mut self, to: &[PlaceId], class: Class, message: WaitingMessage) {
        self.numbers += 1;
        let number = self.numbers;
        for to in to {
            self.queues[class as usize].get_or_default(*to).push_back(QueueEntry::Part(number));
        }
        self.multicasts.push_back(Multicast { number, to: to.to_vec(), class, message });
    }

    /// Offers waiting messages to `transmit`, each queue until it refuses: by receiver, then by class; then multicasts.
    /// Returns the number of messages removed.
    pub(super) fn flush(&mut self, transmit: &mut dyn Transmit) -> usize {
        let is_one_class = self.queues.iter().any(OrderedMap::is_empty);
        let removed = if is_one_class || CLASSES.into_iter().any(|class| self.is_crowded(class)) {
            CLASSES.into_iter().map(|class| self.flush_class(class, transmit)).sum()
        } else {
            self.flush_in_turn(transmit)
        };
        removed + self.flush_multicasts(transmit)
    }

    /// Flushes control and data of a receiver before those of the next.
    fn flush_in_turn(&mut self, transmit: &mut dyn Transmit) -> usize {
        let (mut from, mut removed) = (Some(PlaceId(0)), 0);
        while let Some(to) = from.and_then(|from| self.first_receiver(from)) {
            for class in CLASSES {
                let queue = self.queues[class as usize].get_mut(to);
                removed += queue.map_or(0, |queue| offer(to, class, queue, transmit));
            }
            from = to.0.checked_add(1).map(PlaceId);
        }
        self.queues.iter_mut().for_each(|queues| queues.retain(|_, queue| !queue.is_empty()));
        removed
    }

    /// Returns the first place from `from` on with waiting messages.
    fn first_receiver(&self, from: PlaceId) -> Option<PlaceId> {
        self.queues.iter().filter_map(|queues| queues.first_from(from)).map(|(to, _)| to).min()
    }

    fn flush_class(&mut self, class: Class, transmit: &mut dyn Transmit) -> usize {
        if self.is_crowded(class) {
            return self.flush_crowd(class, transmit);
        }
        let (queues, mut is_any_over, mut removed) = (&mut self.queues[class as usize], false, 0);
        queues.for_each_mut(|to, queue| {
            removed += offer(to, class, queue, transmit);
            is_any_over |= queue.is_empty();
        });
        if is_any_over {
            queues.retain(|_, queue| !queue.is_empty());
        }
        removed
    }

    /// As `flush`, until some have refused; the next round continues with the others.
    #[cold]
    fn flush_crowd(&mut self, class: Class, transmit: &mut dyn Transmit) -> usize {
        let (queues, next) = (&mut self.queues[class as usize], &mut self.next[class as usize]);
        let (mut refusals, mut removed) = (0, 0);
        for _ in 0..queues.len() {
            let from = PlaceId(*next);
            let Some((to, _)) = queues.first_from(from).or_else(|| queues.first()) else { break };
            *next = to.0 + 1;
            let Some(queue) = queues.get_mut(to) else { break };
            removed += offer(to, class, queue, transmit);
            if queue.is_empty() {
                queues.remove(to);
                continue;
            }
            refusals += 1;
            if refusals == CROWD_REFUSALS {
                break;
            }
        }
        removed
    }

    /// Offers each multicast that is the first for all of its receivers.
    fn flush_multicasts(&mut self, transmit: &mut dyn Transmit) -> usize {
        let mut removed = 0;
        for mut multicast in std::mem::take(&mut self.multicasts) {
            if self.is_first(&multicast) {
                removed += self.offer_multicast(&mut multicast, transmit);
            }
            if !multicast.to.is_empty() {
                self.multicasts.push_back(multicast);
            }
        }
        removed
    }

    fn is_first(&self, multicast: &Multicast) -> bool {
        let queues = &self.queues[multicast.class as usize];
        let first = |to: &PlaceId| queues.get(*to).and_then(VecDeque::front);
        multicast
            .to
            .iter()
            .all(|to| matches!(first(to), Some(QueueEntry::Part(number)) if *number == multicast.number))
    }

    /// Offers a multicast to those of its receivers that are alive; returns the number of queue entries that it
    /// removed.
    fn offer_multicast(&mut self, multicast: &mut Multicast, transmit: &mut dyn Transmit) -> usize {
        let mut removed = 0;
        loop {
            let Multicast { to, class, message, .. } = &mut *multicast;
            let result = match to[..] {
                [] => return removed,
                [one] => transmit.unicast(one, *class, message),
                _ => transmit.multicast(to, *class, message),
            };
            match result {
                Err(Unsent::Full) => return removed,
                Err(Unsent::DeadPlace(dead)) => {
                    to.retain(|place| *place != dead);
                    removed += self.pop_first([dead], *class);
                }
                _ => return removed + self.pop_first(to.drain(..), *class),
            }
        }
    }

    /// Removes the first entry of each of these receivers; returns the number of receivers.
    fn pop_first(&mut self, places: impl IntoIterator<Item = PlaceId>, class: Class) -> usize {
        let queues = &mut self.queues[class as usize];
        let mut count = 0;
        for place in places {
            count += 1;
            if let Some(queue) = queues.get_mut(place) {
                queue.pop_front();
                if queue.is_empty() {
                    queues.remove(place);
                }
            }
        }
        count
    }
}

/// Offers messages for `to` alone to `transmit` until it refuses; returns the number removed.
fn offer(to: PlaceId, class: Class, queue: &mut ReceiverQueue, transmit: &mut dyn Transmit) -> usize {
    let mut removed = 0;
    while let Some(QueueEntry::One(message)) = queue.front()
        && !matches!(transmit.unicast(to, class, message), Err(Unsent::Full))
    {
        queue.pop_front();
        removed += 1;
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records which receiver got which message, by the one byte of each, and refuses without room.
    #[derive(Default)]
    struct RecordingTransmit {
        full: Vec<PlaceId>,
        dead: Vec<PlaceId>,
        got: Vec<(Vec<u32>, u8)>,
    }

    impl RecordingTransmit {
        fn transmit(&mut self, to: &[PlaceId], message: &WaitingMessage) -> Result<(), Unsent> {
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

    impl Transmit for RecordingTransmit {
        fn unicast(&mut self, to: PlaceId, _: Class, message: &WaitingMessage) -> Result<(), Unsent> {
            self.transmit(&[to], message)
        }

        fn multicast(&mut self, to: &[PlaceId], _: Class, message: &WaitingMessage) -> Result<(), Unsent> {
            self.transmit(to, message)
        }
    }

    fn message(number: u8) -> WaitingMessage {
        WaitingMessage { handler: HandlerId(0), bytes: vec![number] }
    }

    /// Queues message `number` for `to`.
    fn put(outbox: &mut Outbox, to: u32, class: Class, number: u8) {
        let ticket = outbox.enqueue(PlaceId(to), class);
        outbox.fill(ticket, message(number));
    }

    fn places(numbers: &[u32]) -> Vec<PlaceId> {
        numbers.iter().copied().map(PlaceId).collect()
    }

    #[test]
    fn a_multicast_keeps_its_place_between_other_messages_of_each_receiver() {
        let (mut outbox, mut recorder) = (Outbox::default(), RecordingTransmit::default());
        put(&mut outbox, 1, Class::Control, 1);
        outbox.put_multicast(&places(&[1, 2]), Class::Control, message(2));
        put(&mut outbox, 2, Class::Control, 3);
        recorder.full = places(&[1]);
        assert_eq!(outbox.flush(&mut recorder), 0, "what is behind the multicast waits, too");
        recorder.full.clear();
        assert_eq!(outbox.flush(&mut recorder), 3);
        assert_eq!(recorder.got, [(vec![1], 1), (vec![1, 2], 2)]);
        assert_eq!(outbox.flush(&mut recorder), 1);
        assert_eq!(recorder.got.last(), Some(&(vec![2], 3)));
        assert!(!outbox.holds(PlaceId(1), Class::Control) && !outbox.holds(PlaceId(2), Class::Control));
    }

    #[test]
    fn what_is_put_aside_later_waits_for_the_turn_of_a_send_that_waits() {
        let (mut outbox, mut recorder) = (Outbox::default(), RecordingTransmit::default());
        put(&mut outbox, 1, Class::Data, 1);
        let (first, second) =
            (outbox.enqueue(PlaceId(1), Class::Data), outbox.enqueue(PlaceId(1), Class::Data));
        put(&mut outbox, 1, Class::Data, 4);
        assert!(!outbox.is_next(first), "a message waits before it");
        assert_eq!(outbox.flush(&mut recorder), 1);
        assert!(outbox.is_next(first) && !outbox.is_next(second));
        outbox.fill(second, message(3));
        assert_eq!(outbox.flush(&mut recorder), 0);
        outbox.give_up(first);
        assert_eq!(outbox.flush(&mut recorder), 2);
        assert_eq!(recorder.got, [(vec![1], 1), (vec![1], 3), (vec![1], 4)]);
        let last = outbox.enqueue(PlaceId(1), Class::Data);
        outbox.give_up(last);
        assert!(!outbox.holds(PlaceId(1), Class::Data), "no queue is empty");
    }

    #[test]
    fn who_dies_does_not_keep_a_multicast_from_the_others() {
        let (mut outbox, mut recorder) = (Outbox::default(), RecordingTransmit::default());
        outbox.put_multicast(&places(&[1, 2, 3]), Class::Control, message(1));
        outbox.put_multicast(&places(&[2, 3]), Class::Control, message(2));
        recorder.dead = places(&[2]);
        recorder.full = places(&[3]);
        assert_eq!(outbox.flush(&mut recorder), 1, "the part of the dead place is gone");
        recorder.full.clear();
        assert_eq!(outbox.flush(&mut recorder) + outbox.flush(&mut recorder), 4);
        assert_eq!(recorder.got, [(vec![1, 3], 1), (vec![3], 2)]);
    }
}
