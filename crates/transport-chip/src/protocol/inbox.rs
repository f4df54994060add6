//! Messages in flight: their contents, and the queue of each receiver by arrival.
//!
//! Messages of one place arrive in the order of sending; those of several mostly do, so a new entry of an [`Inbox`]
//! mostly goes at the end. A lane is an ordered pair of places and a class. [`LaneIndex`] numbers all lanes, so
//! protocols keep the state of lanes in a vector, with the lanes of one first place adjacent. For thousands of places,
//! [`LaneNumbers`] numbers only the lanes in use. Invariants: the keys of an inbox ascend; `ends` is the inverse of
//! `lane`.

use isles_chip::kernel::Key;
use isles_chip::quantity::Picoseconds;
use isles_transport::ordered::OrderedMap;
use isles_transport::{AlignedBytes, BlockMemory, Class, HandlerId, PlaceId};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The bytes of a message other than a block.
pub(crate) type Content = Box<AlignedBytes>;

/// The content of a message, boxed so that it is cheap to pass on.
pub(crate) enum MessageContent {
    Inline(Content),
    Block(Box<ChipBlock>),
}

impl MessageContent {
    pub(crate) fn len(&self) -> usize {
        match self {
            MessageContent::Inline(bytes) => bytes.bytes().len(),
            MessageContent::Block(block) => block.bytes().len(),
        }
    }
}

/// A complete message at the receiver.
pub(crate) struct ReceivedMessage {
    pub(crate) source: PlaceId,
    pub(crate) class: Class,
    pub(crate) handler: HandlerId,
    pub(crate) content: MessageContent,
    pub(crate) arrival: Picoseconds,
}

/// A large message, counted while it exists.
pub(crate) struct ChipBlock {
    content: AlignedBytes,
    live: Rc<Cell<usize>>,
}

impl ChipBlock {
    pub(crate) fn new(content: AlignedBytes, live: &Rc<Cell<usize>>) -> ChipBlock {
        live.set(live.get() + 1);
        ChipBlock { content, live: Rc::clone(live) }
    }
}

impl BlockMemory for ChipBlock {
    fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }
}

impl Drop for ChipBlock {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}

/// Contents of an entry.
pub(crate) enum Fragment {
    /// Part of a block, or of a message in two halves, of `of` bytes in total; not the last part.
    Part { of: usize },
    /// A whole message, or the last part of a block, which carries all of it.
    Whole { handler: HandlerId, content: MessageContent },
}

/// An entry or a message at the receiver, with the cost of taking it.
pub(crate) struct InboxEntry<C> {
    /// Key of its arrival.
    pub(crate) key: Key,
    /// The ring or the class; odd for data.
    pub(crate) lane: u32,
    pub(crate) source: PlaceId,
    /// Cost of reading and crediting the entry.
    pub(crate) cost: C,
    pub(crate) piece: Fragment,
}

impl Fragment {
    /// Returns the size of the whole message in bytes.
    #[inline]
    pub(crate) fn message_bytes(&self) -> usize {
        match self {
            Fragment::Part { of } => *of,
            Fragment::Whole { content, .. } => content.len(),
        }
    }
}

impl<C> InboxEntry<C> {
    /// Returns the number of its class: 0 for control, 1 for data.
    fn class_index(&self) -> usize {
        self.lane as usize % 2
    }

    /// Returns the message, or `None` for a part of a block.
    pub(crate) fn open(self) -> Option<ReceivedMessage> {
        let class = [Class::Control, Class::Data][self.class_index()];
        match self.piece {
            Fragment::Part { .. } => None,
            Fragment::Whole { handler, content } => Some(ReceivedMessage {
                source: self.source,
                class,
                handler,
                content,
                arrival: self.key.time(),
            }),
        }
    }
}

/// Entries waiting for one place, by arrival.
pub(crate) struct Inbox<C> {
    queue: VecDeque<InboxEntry<C>>,
}

impl<C> Default for Inbox<C> {
    fn default() -> Inbox<C> {
        Inbox { queue: VecDeque::new() }
    }
}

impl<C> Inbox<C> {
    #[inline]
    pub(crate) fn put(&mut self, queued: InboxEntry<C>) {
        if self.queue.back().is_none_or(|last| last.key <= queued.key) {
            self.queue.push_back(queued);
        } else {
            self.queue.insert(self.queue.partition_point(|other| other.key <= queued.key), queued);
        }
    }

    /// Returns the arrival time of an entry of `source` on `lane` due at `arrival`: not before an earlier entry that
    /// still waits.
    #[inline]
    pub(crate) fn behind(&self, source: PlaceId, lane: u32, arrival: Picoseconds) -> Picoseconds {
        let mut later = self.queue.iter().rev().take_while(|queued| queued.key.time() > arrival);
        let last = later.find(|queued| queued.source == source && queued.lane == lane);
        last.map_or(arrival, |queued| queued.key.time())
    }

    /// Returns `true` if anything from `source` waits.
    pub(crate) fn has_any_of(&self, source: PlaceId) -> bool {
        self.queue.iter().any(|queued| queued.source == source)
    }

    /// Returns the waiting entries, by arrival.
    #[cfg(test)]
    pub(crate) fn queue(&self) -> impl Iterator<Item = &InboxEntry<C>> {
        self.queue.iter()
    }

    /// Returns the waiting entries, mutably.
    pub(crate) fn queue_mut(&mut self) -> impl Iterator<Item = &mut InboxEntry<C>> {
        self.queue.iter_mut()
    }

    /// Returns the arrival time of the first entry.
    pub(crate) fn first_arrival(&self) -> Option<Picoseconds> {
        self.queue.front().map(|queued| queued.key.time())
    }

    /// Takes the first entry, of either class or of control only, that had arrived at `until`.
    #[inline]
    pub(crate) fn take(&mut self, until: Picoseconds, control_only: bool) -> Option<InboxEntry<C>> {
        let first = self.queue.front().filter(|queued| queued.key.time() <= until)?;
        if control_only && first.class_index() != Class::Control as usize {
            return self.take_control(until);
        }
        let first = self.queue.pop_front();
        if self.queue.is_empty() {
            self.queue.clear(); // It begins anew at its start, which the host's caches have.
        }
        first
    }

    /// Takes the first control entry behind a data entry, likewise.
    fn take_control(&mut self, until: Picoseconds) -> Option<InboxEntry<C>> {
        let mut arrived = self.queue.iter().take_while(|queued| queued.key.time() <= until);
        let index = arrived.position(|queued| queued.class_index() == Class::Control as usize)?;
        self.queue.remove(index)
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = InboxEntry<C>> + '_ {
        self.queue.drain(..)
    }
}

/// Numbering of the lanes between all places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneIndex {
    places: usize,
}

impl LaneIndex {
    pub(crate) fn of(places: usize) -> LaneIndex {
        LaneIndex { places }
    }

    /// Returns the number of lanes.
    pub(crate) fn lanes(self) -> usize {
        2 * self.places * self.places
    }

    /// Returns the lane of a pair and a class.
    #[inline]
    pub(crate) fn lane(self, first: PlaceId, second: PlaceId, class: Class) -> usize {
        (first.index() * self.places + second.index()) * 2 + class as usize
    }

    /// Returns the lanes of a pair in both classes.
    #[inline]
    pub(crate) fn both(self, first: PlaceId, second: PlaceId) -> [usize; 2] {
        [Class::Control, Class::Data].map(|class| self.lane(first, second, class))
    }

    /// Returns the pair and the class of a lane.
    #[inline]
    pub(crate) fn ends(self, lane: usize) -> (PlaceId, PlaceId, Class) {
        let place = |index: usize| PlaceId((index % self.places) as u32);
        let class = if lane % 2 == Class::Control as usize { Class::Control } else { Class::Data };
        (place(lane / 2 / self.places), place(lane / 2), class)
    }
}

/// Maximum number of places for which all lanes are numbered; for more, only the lanes in use.
const NUMBERED_MAX: usize = 512;

/// Numbering of the lanes of all places, or of those in use if there are many places.
#[derive(Debug)]
pub(crate) enum LaneNumbers {
    All(LaneIndex),
    Used {
        /// Numbers of the pairs.
        numbers: OrderedMap<(PlaceId, PlaceId), usize>,
        ends: Vec<(PlaceId, PlaceId)>,
    },
}

impl LaneNumbers {
    pub(crate) fn of(places: usize) -> LaneNumbers {
        if places <= NUMBERED_MAX {
            LaneNumbers::All(LaneIndex::of(places))
        } else {
            LaneNumbers::Used { numbers: OrderedMap::new(), ends: Vec::new() }
        }
    }

    /// Returns the number of numbered lanes.
    pub(crate) fn lanes(&self) -> usize {
        match self {
            LaneNumbers::All(pairs) => pairs.lanes(),
            LaneNumbers::Used { ends, .. } => 2 * ends.len(),
        }
    }

    /// Returns the lane of a pair and a class, if it has a number.
    #[inline]
    pub(crate) fn known(&self, first: PlaceId, second: PlaceId, class: Class) -> Option<usize> {
        match self {
            LaneNumbers::All(pairs) => Some(pairs.lane(first, second, class)),
            LaneNumbers::Used { numbers, .. } => {
                numbers.get((first, second)).map(|pair| 2 * pair + class as usize)
            }
        }
    }

    /// Returns the lane of a pair and a class, which gets a number if it has none.
    #[inline]
    pub(crate) fn lane(&mut self, first: PlaceId, second: PlaceId, class: Class) -> usize {
        match self {
            LaneNumbers::All(pairs) => pairs.lane(first, second, class),
            LaneNumbers::Used { numbers, ends } => {
                let pair = *numbers.get_or_insert_with((first, second), || ends.len());
                if pair == ends.len() {
                    ends.push((first, second));
                }
                2 * pair + class as usize
            }
        }
    }

    /// Returns the pair of a lane.
    #[inline]
    pub(crate) fn ends(&self, lane: usize) -> (PlaceId, PlaceId) {
        match self {
            LaneNumbers::All(pairs) => {
                let (first, second, _) = pairs.ends(lane);
                (first, second)
            }
            LaneNumbers::Used { ends, .. } => ends[lane / 2],
        }
    }

    /// Returns the order of a lane among simultaneous events at the same first place: its number relative to the first
    /// lane of that place, as if all lanes were numbered.
    #[inline]
    pub(crate) fn owner(&self, lane: usize) -> u32 {
        match self {
            LaneNumbers::All(_) => lane as u32,
            LaneNumbers::Used { ends, .. } => 2 * ends[lane / 2].1.0 + lane as u32 % 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles_chip::kernel::{EventClass, TieBreak};

    fn queued(time: u64, class: Class) -> InboxEntry<()> {
        let key = TieBreak::new(0).key(Picoseconds(time), EventClass::Arrival, class as u32, 0);
        InboxEntry { key, lane: class as u32, source: PlaceId(0), cost: (), piece: Fragment::Part { of: 0 } }
    }

    #[test]
    fn letters_are_taken_by_arrival_and_control_alone_passes_data() {
        let mut inbox = Inbox::default();
        for (time, class) in
            [(5, Class::Data), (9, Class::Control), (3, Class::Data), (7, Class::Control), (7, Class::Data)]
        {
            inbox.put(queued(time, class));
        }
        let mut take = |until, control_only| {
            let queued = inbox.take(Picoseconds(until), control_only)?;
            Some((queued.key.time().0, queued.class_index()))
        };
        assert_eq!((take(2, false), take(6, true)), (None, None));
        assert_eq!((take(8, true), take(8, true)), (Some((7, 0)), None));
        let rest: Vec<_> = std::iter::from_fn(|| take(9, false)).collect();
        assert_eq!(rest, [(3, 1), (5, 1), (7, 1), (9, 0)]);
    }

    #[test]
    fn a_letter_comes_behind_the_last_one_of_its_sender_and_lane_and_of_nobody_else() {
        let mut inbox = Inbox::default();
        let other = |time, source, class| InboxEntry { source: PlaceId(source), ..queued(time, class) };
        for one in [other(5, 1, Class::Data), other(9, 1, Class::Data), other(12, 2, Class::Data)] {
            inbox.put(one);
        }
        let behind = |source, lane, arrival| inbox.behind(PlaceId(source), lane, Picoseconds(arrival)).0;
        assert_eq!([behind(1, 1, 3), behind(1, 1, 7), behind(1, 1, 9), behind(1, 1, 10)], [9, 9, 9, 10]);
        assert_eq!([behind(1, 0, 3), behind(2, 1, 3), behind(3, 1, 3)], [3, 12, 3]);
    }

    #[test]
    fn each_lane_has_its_own_ends() {
        let pairs = LaneIndex::of(3);
        for lane in 0..pairs.lanes() {
            let (first, second, class) = pairs.ends(lane);
            assert_eq!(pairs.lane(first, second, class), lane);
            assert_eq!(pairs.both(first, second)[class as usize], lane);
        }
    }

    #[test]
    fn of_thousands_of_places_those_lanes_have_numbers_that_are_used_and_the_order_of_all() {
        let (mut few, mut many) = (LaneNumbers::of(NUMBERED_MAX), LaneNumbers::of(16_384));
        assert_eq!((few.lanes(), many.lanes()), (2 * NUMBERED_MAX * NUMBERED_MAX, 0));
        let pairs =
            [(7, 9), (7, 300), (7, 8), (9, 7)].map(|(first, second)| (PlaceId(first), PlaceId(second)));
        for (first, second) in pairs {
            assert_eq!(many.known(first, second, Class::Data), None);
            let lane = many.lane(first, second, Class::Data);
            assert_eq!(
                (many.known(first, second, Class::Data), many.ends(lane)),
                (Some(lane), (first, second))
            );
            assert_eq!(many.lane(first, second, Class::Control), lane ^ 1);
        }
        assert_eq!(many.lanes(), 2 * pairs.len());
        let order = |numbers: &mut LaneNumbers| {
            let mut seconds = [9, 300, 8].map(|second| {
                let lane = numbers.lane(PlaceId(7), PlaceId(second), Class::Data);
                (numbers.owner(lane), second)
            });
            seconds.sort_unstable();
            seconds.map(|(_, second)| second)
        };
        assert_eq!(order(&mut few), order(&mut many));
    }
}
