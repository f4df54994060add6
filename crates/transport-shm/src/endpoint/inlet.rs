//! The receiving half of an endpoint.
//!
//! Each peer has an [`Inlet`] with a ring for each class. This half finds the rings that have records, passes them to
//! `deliver`, returns credit, and reports deaths. Data of a peer is checked before it is used; a peer that broke the
//! format is declared dead, and its rings are never read again. It sends nothing.

use crate::arena::block::{BlockDescriptor, ShmBlock};
use crate::layout::PlaceBlock;
use crate::lifecycle::{CorruptionReport, Lifecycle};
use crate::parking;
use crate::ring::mapped::MappedRing;
use crate::ring::{Consumer, Record, RecordKind, RingFault, TakeOutcome};
use crate::segment::{Segment, View};
use isles_transport::{Arrival, Body, Class, Death, HandlerId, Inbound, Message, Next, PlaceId};
use std::cell::{Cell, RefCell};

/// Number of messages of one ring that are delivered before the next ring has its turn.
pub(crate) const BATCH: usize = 64;

/// Minimum number of messages of one ring in one turn that count as a stream, whose next lines are prefetched.
const STREAM: usize = 4;

/// Number of words of one class of a bell.
const BELL_WORDS: usize = parking::PLACES_MAX as usize / 64;

/// The rings from one peer.
struct Inlet {
    place: PlaceId,
    control: Consumer<MappedRing>,
    bulk: Consumer<MappedRing>,
    peer: View<PlaceBlock>,
    /// True if the peer broke the format, or its end has been delivered: its rings are no longer read.
    broken: Cell<bool>,
    /// Once the peer is known to be dead: the positions, by class, at which its rings end at the latest.
    ///
    /// A ring holds one lap. Records beyond that are stale ones, which a broken peer did not clear.
    ends: Cell<Option<[u64; 2]>>,
}

impl Inlet {
    fn consumer(&self, class: Class) -> &Consumer<MappedRing> {
        match class {
            Class::Control => &self.control,
            Class::Data => &self.bulk,
        }
    }

    /// Notes that the peer sends nothing more.
    fn expect_end(&self) {
        self.ends.set(Some([&self.control, &self.bulk].map(|ring| ring.taken() + ring.capacity())));
    }

    /// Returns `true` if no more records can come, provided that the peer sends nothing more.
    fn is_drained(&self) -> bool {
        let ends = self.ends.get().unwrap_or([u64::MAX; 2]);
        let is_over = |(ring, end): (&Consumer<MappedRing>, u64)| ring.is_empty() || ring.taken() >= end;
        self.broken.get() || [&self.control, &self.bulk].into_iter().zip(ends).all(is_over)
    }

    /// Returns `true` if a `progress` with `inbound` would find a record.
    #[inline]
    fn holds(&self, inbound: Inbound) -> bool {
        let holds = !self.control.is_empty() || (inbound == Inbound::All && !self.bulk.is_empty());
        holds && !self.broken.get()
    }
}

/// Places whose rings may have records, one bit each.
#[derive(Default)]
struct Pending([Cell<u64>; BELL_WORDS]);

impl Pending {
    fn add(&self, index: usize, bits: u64) {
        self.0[index].set(self.0[index].get() | bits);
    }

    fn add_place(&self, place: PlaceId) {
        self.add(place.index() / 64, 1 << (place.index() % 64));
    }

    fn remove_place(&self, place: PlaceId) {
        let word = &self.0[place.index() / 64];
        word.set(word.get() & !(1 << (place.index() % 64)));
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.get() == 0)
    }
}

/// The rings from all peers.
pub(super) struct Inlets {
    segment: Segment,
    here: PlaceId,
    /// All other places, in order.
    peers: Box<[Inlet]>,
    /// Block of this place, if there is a bell.
    own: Option<View<PlaceBlock>>,
    /// Places that have rung the bell for control, and for data, and whose rings have not been found empty.
    pending: [Pending; 2],
    /// Classes that the last `progress` was allowed to take.
    inbound: Cell<Inbound>,
    /// Dead places whose end has not been delivered, with the cause of death.
    ending: RefCell<Vec<(PlaceId, Death)>>,
    /// Places whose end is among `ending` or has been delivered.
    ended: Box<[Cell<bool>]>,
    /// Bytes of large messages of one ring after which it is the turn of the next ring.
    large_max: u64,
}

impl Inlets {
    pub fn new(segment: &Segment, here: PlaceId) -> Inlets {
        let inlet = |from: PlaceId| Inlet {
            place: from,
            control: Consumer::new(MappedRing::new(segment, from, here, Class::Control)),
            bulk: Consumer::new(MappedRing::new(segment, from, here, Class::Data)),
            peer: View::new(segment, segment.layout().place_block(from)),
            broken: Cell::new(false),
            ends: Cell::new(None),
        };
        let own = || View::new(segment, segment.layout().place_block(here));
        Inlets {
            segment: segment.clone(),
            here,
            peers: segment.all_places().filter(|from| *from != here).map(inlet).collect(),
            own: segment.has_bells().then(own),
            pending: Default::default(),
            inbound: Cell::new(Inbound::All),
            ending: RefCell::new(Vec::new()),
            ended: segment.all_places().map(|_| Cell::new(false)).collect(),
            large_max: segment.geometry().credit_bytes(),
        }
    }

    /// Returns the rings from `place`, if it is another place.
    fn inlet(&self, place: PlaceId) -> Option<&Inlet> {
        let index = place.index() - usize::from(place > self.here);
        self.peers.get(index).filter(|_| place != self.here)
    }

    /// Delivers a bounded batch of messages, control before data.
    #[inline]
    pub(crate) fn deliver_messages(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        self.inbound.set(inbound);
        match &self.own {
            None => self.progress_all(inbound, deliver),
            Some(own) => self.progress_rung(own, inbound, deliver),
        }
    }

    /// Returns the number of words of a bell that the places of this run use.
    fn bell_words(&self) -> usize {
        self.ended.len().div_ceil(64)
    }

    /// Polls every ring.
    #[inline]
    fn progress_all(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let mut count = 0;
        for class in classes(inbound) {
            for inlet in &self.peers {
                count += self.drain(inlet, *class, deliver).0;
            }
        }
        count
    }

    /// Drains the rings whose peers have rung.
    fn progress_rung(
        &self,
        own: &PlaceBlock,
        inbound: Inbound,
        deliver: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        let mut count = 0;
        for class in classes(inbound) {
            let pending = &self.pending[*class as usize];
            for index in 0..self.bell_words() {
                pending.add(index, parking::take(&own.bell, *class as usize, index));
                count += self.drain_pending(pending, index, *class, deliver);
            }
        }
        count
    }

    fn drain_pending(
        &self,
        pending: &Pending,
        index: usize,
        class: Class,
        deliver: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        let mut count = 0;
        let mut bits = pending.0[index].get();
        while bits != 0 {
            let place = PlaceId(index as u32 * 64 + bits.trailing_zeros());
            bits &= bits - 1;
            // A bell is written by peers: a bit without a peer is ignored.
            let Some(inlet) = self.inlet(place) else {
                pending.remove_place(place);
                continue;
            };
            let (taken, emptied) = self.drain(inlet, class, deliver);
            if emptied {
                pending.remove_place(place);
            }
            count += taken;
        }
        count
    }

    /// Delivers at most one batch of one ring. Returns the number of messages, and `true` if the ring was found empty.
    #[inline]
    fn drain(&self, inlet: &Inlet, class: Class, deliver: &mut dyn FnMut(Arrival<'_>)) -> (usize, bool) {
        if inlet.broken.get() {
            return (0, true);
        }
        let consumer = inlet.consumer(class);
        let mut large = 0;
        for count in 0..BATCH {
            // Taken messages return credit, so a fast sender could fill the place's memory in one turn.
            if large >= self.large_max {
                return (count, false);
            }
            let offset = consumer.offset();
            if count >= STREAM {
                consumer.look_ahead();
            }
            let mut fault = None;
            let taken = consumer.take(|record| match self.show(inlet.place, class, record, deliver) {
                Ok(bytes) => large += bytes,
                Err(broken) => fault = Some(broken),
            });
            match (taken, fault) {
                (Ok(TakeOutcome::Nothing), _) => return (count, true),
                // The handler has declared the peer dead.
                (Ok(_), None) if inlet.broken.get() => return (count + 1, true),
                (Ok(TakeOutcome::Record), None) => {}
                (Ok(TakeOutcome::RecordAndStarved), None) => {
                    parking::signal(&inlet.peer.sleeping.0, self.segment.fencing());
                }
                (Err(fault), _) | (Ok(_), Some(fault)) => {
                    self.declare_dead(inlet.place, class, fault, offset);
                    return (count, true);
                }
            }
        }
        (BATCH, false)
    }

    /// Takes the oldest message of one ring if it is small and `wants` accepts it.
    #[inline]
    pub fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        let Some(inlet) = self.inlet(from).filter(|inlet| !inlet.broken.get()) else { return Next::Left };
        let wants = |record: Record<'_>| wants(HandlerId(record.handler), record.payload);
        match inlet.consumer(class).take_if(wants) {
            None => return Next::Left,
            Some(TakeOutcome::Nothing) => return Next::Nothing,
            Some(TakeOutcome::Record) => {}
            Some(TakeOutcome::RecordAndStarved) => {
                parking::signal(&inlet.peer.sleeping.0, self.segment.fencing())
            }
        }
        Next::Taken
    }

    /// Passes one record to `deliver`. Returns its bytes if it is a large message.
    #[inline]
    fn show(
        &self,
        source: PlaceId,
        class: Class,
        record: Record<'_>,
        deliver: &mut dyn FnMut(Arrival<'_>),
    ) -> Result<u64, RingFault> {
        let handler = HandlerId(record.handler);
        let (body, large) = if record.kind == RecordKind::Block {
            let ticket = BlockDescriptor::decode(record.payload, self.segment.geometry())?;
            (Body::Block(Box::new(ShmBlock::new(&self.segment, source, ticket))), ticket.len)
        } else {
            (Body::Inline(record.payload), 0)
        };
        deliver(Arrival::Message(Message { source, class, handler, body }));
        Ok(large)
    }

    /// Notes that `place` is dead; its end is delivered once its rings are drained.
    pub(crate) fn expect_end(&self, place: PlaceId) {
        let Some(cause) = self.segment.life(place).death(place) else { return };
        if !self.ended[place.index()].replace(true) {
            self.ending.borrow_mut().push((place, cause));
            self.inlet(place).inspect(|inlet| inlet.expect_end());
            // It may have died after a record and before its bell.
            self.pending.iter().for_each(|pending| pending.add_place(place));
        }
    }

    /// Declares `place` dead for all places, because of a fault in its ring, and stops reading its rings.
    #[cold]
    pub fn declare_dead(&self, place: PlaceId, class: Class, fault: RingFault, offset: u64) {
        if let Some(inlet) = self.inlet(place) {
            inlet.broken.set(true);
        }
        let evidence = CorruptionReport { fault, class, witness: self.here, offset: offset as u32 };
        self.segment.change_life(place, Lifecycle::Corrupt(evidence), |life| life.death(place).is_none());
        self.expect_end(place);
    }

    /// Reports the places that are known to be dead and whose rings are drained.
    #[inline]
    pub(crate) fn deliver_ends(&self, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        if self.ending.borrow().is_empty() {
            return 0;
        }
        let ends: Vec<_> =
            self.ending.borrow_mut().extract_if(.., |(place, _)| self.is_drained(*place)).collect();
        let count = ends.len();
        for (place, cause) in ends {
            self.inlet(place).inspect(|inlet| inlet.broken.set(true));
            deliver(Arrival::Died { place, cause });
        }
        count
    }

    /// Returns `true` if nothing more comes from `place`, which is dead.
    fn is_drained(&self, place: PlaceId) -> bool {
        self.inlet(place).is_none_or(Inlet::is_drained)
    }

    /// Returns `true` if an end can be delivered: the last message before it may have been taken by `take_next`.
    #[inline]
    fn has_end(&self) -> bool {
        let ending = self.ending.borrow();
        !ending.is_empty() && ending.iter().any(|(place, _)| self.is_drained(*place))
    }

    /// Returns `true` if a `progress` like the last one would deliver something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        if self.has_end() {
            return true;
        }
        let inbound = self.inbound.get();
        match &self.own {
            None => self.peers.iter().any(|inlet| inlet.holds(inbound)),
            Some(own) => {
                let words = self.bell_words();
                classes(inbound).iter().any(|class| {
                    parking::rings(&own.bell, *class as usize, words)
                        || !self.pending[*class as usize].is_empty()
                })
            }
        }
    }
}

/// The classes that may be taken, the more urgent first.
fn classes(inbound: Inbound) -> &'static [Class] {
    match inbound {
        Inbound::All => &[Class::Control, Class::Data],
        Inbound::Control => &[Class::Control],
    }
}
