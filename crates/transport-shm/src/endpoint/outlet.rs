//! The sending half of an endpoint.
//!
//! Each peer has an [`Outlet`] with a ring for each class; blocks are lent from the arena. This half publishes records,
//! rings the receiver's bell and wakes it; it receives nothing.

use crate::arena::block::{ArenaMemory, BlockDescriptor};
use crate::arena::{AllocationError, Arena};
use crate::layout::PlaceBlock;
use crate::parking;
use crate::parking::Fencing;
use crate::ring::mapped::MappedRing;
use crate::ring::{Producer, PutError, RecordKind, RingFault};
use crate::segment::{Segment, View};
use crate::sync::AtomicU32;
use isles_transport::{Class, HandlerId, PlaceId, SendError};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Reason why nothing was sent.
pub(super) enum SendFailure {
    /// The error for the caller of the endpoint.
    Send(SendError),
    /// The receiver broke the format.
    Fault(RingFault),
}

impl From<SendError> for SendFailure {
    fn from(error: SendError) -> Self {
        SendFailure::Send(error)
    }
}

/// Minimum length, in bytes, of a message that is announced before it is written: writing it takes longer than its
/// receiver spins, and a wake-up at its end would cost a twentieth of its time.
pub(super) const ANNOUNCED_BYTES_MIN: usize = 256 << 10;

/// Announcement of a long message that is being written; dropped when the message is published or given up.
pub struct Announced<'o>(&'o AtomicU32);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The block that was lent last; dropping it, also while `fill` unwinds, takes it back.
struct Loan<'o>(&'o Outlets);

impl Loan<'_> {
    /// Keeps the loan: the message has been sent.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.0.arena.borrow_mut().take_back_last(&self.0.ground);
    }
}

/// The rings to one peer.
struct Outlet {
    control: Producer<MappedRing>,
    bulk: Producer<MappedRing>,
    peer: View<PlaceBlock>,
    /// True if the peer receives no more messages.
    closed: Cell<bool>,
}

impl Outlet {
    fn producer(&self, class: Class) -> &Producer<MappedRing> {
        match class {
            Class::Control => &self.control,
            Class::Data => &self.bulk,
        }
    }
}

/// The rings to all peers, and the arena of this place.
pub(super) struct Outlets {
    here: PlaceId,
    /// Outlets by place; `None` for the place itself.
    peers: Box<[Option<Outlet>]>,
    fencing: Fencing,
    /// True if receivers have a bell that must be rung.
    rings: bool,
    /// True if places spin before they sleep, because each has a processor of its own.
    pub(super) announces: bool,
    inline_max: [usize; 2],
    block_max: usize,
    arena: RefCell<Arena>,
    ground: ArenaMemory,
    /// Block of this place, with the flag that it waits for memory.
    own: View<PlaceBlock>,
    /// Rings that were full and have not moved since.
    starving: RefCell<Vec<(PlaceId, Class)>>,
    /// True if a block was refused because too much is lent, and nothing has changed since.
    arena_starving: Cell<bool>,
    /// True if the system had no memory for a message since the last wait.
    short_of_memory: Cell<bool>,
}

impl Outlets {
    pub fn new(segment: &Segment, here: PlaceId) -> Outlets {
        let geometry = segment.geometry();
        let outlet = |to: PlaceId| Outlet {
            control: Producer::new(MappedRing::new(segment, here, to, Class::Control)),
            bulk: Producer::new(MappedRing::new(segment, here, to, Class::Data)),
            peer: View::new(segment, segment.layout().place_block(to)),
            closed: Cell::new(false),
        };
        Outlets {
            here,
            peers: segment.all_places().map(|to| (to != here).then(|| outlet(to))).collect(),
            fencing: segment.fencing(),
            rings: segment.has_bells(),
            announces: !segment.shares_processors(),
            inline_max: [geometry.inline_max(Class::Control), geometry.inline_max(Class::Data)],
            block_max: geometry.block_max(),
            arena: RefCell::new(Arena::new(geometry.arena_bytes, geometry.credit_bytes(), Instant::now())),
            ground: ArenaMemory::new(segment, here),
            own: View::new(segment, segment.layout().place_block(here)),
            starving: RefCell::new(Vec::new()),
            arena_starving: Cell::new(false),
            short_of_memory: Cell::new(false),
        }
    }

    #[inline]
    pub fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendFailure> {
        let outlet = self.outlet(to)?;
        let max = self.inline_max[class as usize];
        if room > max {
            return Err(SendError::TooLong { len: room, max }.into());
        }
        self.put(outlet, to, class, RecordKind::Inline, handler, room, fill)
    }

    pub fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendFailure> {
        let outlet = self.outlet(to)?;
        if len > self.block_max {
            return Err(SendError::TooLong { len, max: self.block_max }.into());
        }
        let offset = self.lend(len, to, class)?;
        let loan = Loan(self);
        let _announced = self.announce(to, len);
        let ticket = BlockDescriptor { offset, len: len as u64 };
        let mut write = |room: &mut [u8]| {
            self.ground.write(offset, len, fill);
            ticket.encode(room);
            Some(BlockDescriptor::BYTES)
        };
        // The ring is checked first: `write` runs only if there is room for the descriptor.
        self.put(outlet, to, class, RecordKind::Block, handler, BlockDescriptor::BYTES, &mut write)?;
        loan.keep();
        Ok(())
    }

    /// Announces to a place, until the guard is dropped, that a message of `len` bytes is being copied to or from it.
    /// Returns `None` if that is not worthwhile, as for a short message.
    pub fn announce(&self, to: PlaceId, len: usize) -> Option<Announced<'_>> {
        let outlet = self.outlet(to).ok().filter(|_| self.announces && len >= ANNOUNCED_BYTES_MIN)?;
        let coming = &outlet.peer.coming.0;
        // Relaxed, here and below: a hint, which orders nothing.
        coming.fetch_add(1, Ordering::Relaxed);
        parking::signal(&outlet.peer.sleeping.0, self.fencing);
        Some(Announced(coming))
    }

    /// As [`isles_transport::MappedMemory::wake`].
    #[inline]
    pub fn wake(&self, place: PlaceId) {
        if let Some(Some(outlet)) = self.peers.get(place.index()) {
            parking::signal(&outlet.peer.sleeping.0, self.fencing);
        }
    }

    /// Returns the outlet to `to`, if it still receives messages.
    #[inline]
    fn outlet(&self, to: PlaceId) -> Result<&Outlet, SendFailure> {
        let outlet = self.peers.get(to.index()).and_then(Option::as_ref);
        let outlet = outlet.unwrap_or_else(|| panic!("{} sends to {to} of {}", self.here, self.peers.len()));
        if outlet.closed.get() { Err(SendError::DeadPlace(to).into()) } else { Ok(outlet) }
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one message, taken apart so that nothing is copied")]
    fn put(
        &self,
        outlet: &Outlet,
        to: PlaceId,
        class: Class,
        kind: RecordKind,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendFailure> {
        match outlet.producer(class).put(kind, handler.0, room, fill) {
            Ok(()) => {
                if self.rings {
                    parking::ring(&outlet.peer.bell, class as usize, self.here.0);
                }
                parking::signal(&outlet.peer.sleeping.0, self.fencing);
                Ok(())
            }
            Err(refusal) => Err(self.refused(refusal, to, class)),
        }
    }

    #[cold]
    fn refused(&self, refusal: PutError, to: PlaceId, class: Class) -> SendFailure {
        match refusal {
            PutError::Abandoned => SendError::Abandoned.into(),
            PutError::Fault(fault) => SendFailure::Fault(fault),
            PutError::NoMemory => {
                self.short_of_memory.set(true);
                SendError::Full.into()
            }
            PutError::Full => {
                let mut starving = self.starving.borrow_mut();
                if !starving.contains(&(to, class)) {
                    starving.push((to, class));
                }
                SendError::Full.into()
            }
        }
    }

    fn lend(&self, len: usize, to: PlaceId, class: Class) -> Result<u64, SendFailure> {
        let answer = self.arena.borrow_mut().lend(len, to, class, Instant::now(), &self.ground);
        match answer {
            // A block that was refused earlier still waits: only the check before a sleep ends that.
            Ok(_) => {}
            Err(AllocationError::Lent) => {
                self.arena_starving.set(true);
                // Relaxed: the check before a sleep (`arena_is_ready`) comes after the parking protocol's fence: either
                // it sees a block that was taken or returned, or that block's receiver sees the flag.
                self.own.arena_starved.0.store(1, Ordering::Relaxed);
            }
            Err(AllocationError::NoMemory) => self.short_of_memory.set(true),
        }
        answer.map_err(|_| SendError::Full.into())
    }

    /// Refuses messages to `place` from now on.
    pub fn close(&self, place: PlaceId) {
        if let Some(outlet) = &self.peers[place.index()] {
            outlet.closed.set(true);
        }
        self.arena.borrow_mut().write_off(place);
        self.starving.borrow_mut().retain(|(to, _)| *to != place);
    }

    /// Returns `true` if the process of `place` is known to have ended.
    pub(crate) fn is_reaped(&self, place: PlaceId) -> bool {
        // PAIR place.reaped: observe
        self.peers[place.index()]
            .as_ref()
            .is_some_and(|outlet| outlet.peer.reaped.load(Ordering::Acquire) != 0)
    }

    /// Takes back the blocks lent to a place whose process is gone.
    pub(crate) fn reclaim_from_dead(&self, place: PlaceId) {
        self.arena.borrow_mut().reclaim_from_dead(place, &self.ground);
    }

    /// Returns `true` if something that was refused as full may be accepted now.
    #[inline]
    pub fn is_ready(&self) -> bool {
        (!self.starving.borrow().is_empty() && self.ring_is_ready())
            || (self.arena_starving.get() && self.arena_is_ready())
    }

    #[cold]
    fn ring_is_ready(&self) -> bool {
        let mut starving = self.starving.borrow_mut();
        let before = starving.len();
        starving.retain(|(to, class)| {
            !self.peers[to.index()].as_ref().is_some_and(|outlet| outlet.producer(*class).may_have_room())
        });
        starving.len() < before
    }

    #[cold]
    fn arena_is_ready(&self) -> bool {
        // Relaxed: ordered by the fence of the parking protocol.
        let taken = self.own.arena_starved.0.load(Ordering::Relaxed) == 0;
        let ready = taken || self.arena.borrow().has_returned(&self.ground);
        self.arena_starving.set(!ready);
        ready
    }

    /// Releases pages to the system that were not needed recently. Returns the time until the next call is due; `None`
    /// if none is due before the next large message.
    pub(crate) fn give_pages_back(&self) -> Option<Duration> {
        self.arena.borrow_mut().idle(Instant::now(), &self.ground)
    }

    /// Returns `true` if the system had no memory for a message since the last call: no other place would wake this one
    /// then.
    pub(crate) fn take_shortage(&self) -> bool {
        self.short_of_memory.take()
    }
}
