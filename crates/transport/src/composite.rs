//! One endpoint made of two: one transport for near places, another for far ones.
//!
//! Each place is reached by exactly one of the two transports, which provides its order, classes and credit. They may
//! number the places differently. The place sleeps in the near endpoint, which polls the far one as often as itself; a
//! thread that receives a message from a far place ends the sleep through the near [`Unpark`]. Invariant: the far
//! transport never reaches a place that the near one reaches, and only the transport that reaches a place reports its
//! death.

use crate::{
    Arrival, Class, Death, Endpoint, HandlerId, Inbound, Lending, LendingError, LentSlice, Limits,
    MappedMemory, Message, Multicast, Next, OtherHosts, PlaceId, Region, SendError, SpanSink, Unpark,
    WorkModel,
};
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The far half of a [`CompositeEndpoint`].
pub trait FarEndpoint: Endpoint {
    /// Makes this endpoint end waits through `near`; from then on, the place does not sleep in this endpoint.
    fn set_near_unparker(&self, near: Arc<dyn Unpark>);

    /// Prepares for the sleep of the place: sends the messages held back so far. Returns the longest time that the
    /// place may sleep without a call of [`Endpoint::is_ready`], or `None` if that is not bounded.
    fn before_sleep(&self) -> Option<Duration>;
}

/// Number of successful polls of near places after which far places are polled once. A poll that finds nothing covers
/// both.
const NEAR_LOOKS: u32 = 4;

/// Number of polls of near places for one of far places during a wait: a poll of a library takes as long as a near
/// message. If places share processors, each poll covers both, because the place has waited for its turn.
const WAITING_LOOKS: u32 = 8;

/// Numbering of the places that a transport reaches.
#[derive(Clone, Debug)]
pub struct PlaceNumbers {
    /// Number in the transport of each place of the run, if the transport reaches it.
    inner: Vec<Option<PlaceId>>,
    /// Place of the run for each number in the transport.
    outer: Vec<Option<PlaceId>>,
}

impl PlaceNumbers {
    /// Creates the numbering from pairs of a place and its number in the transport.
    ///
    /// # Panics
    /// A place or a number occurs twice.
    pub fn of(places: u32, pairs: impl IntoIterator<Item = (PlaceId, PlaceId)>) -> PlaceNumbers {
        let mut numbers = PlaceNumbers { inner: vec![None; places as usize], outer: Vec::new() };
        for (place, number) in pairs {
            if numbers.outer.len() <= number.index() {
                numbers.outer.resize(number.index() + 1, None);
            }
            let before =
                (numbers.inner[place.index()].replace(number), numbers.outer[number.index()].replace(place));
            assert_eq!(before, (None, None), "{place} or the number {number} is there twice");
        }
        numbers
    }

    /// Returns the number of `place` in the transport, if the transport reaches it.
    #[inline]
    fn of_place(&self, place: PlaceId) -> Option<PlaceId> {
        self.inner.get(place.index()).copied().flatten()
    }

    /// Returns the place with this number in the transport, if it belongs to the run.
    #[inline]
    fn place(&self, number: PlaceId) -> Option<PlaceId> {
        self.outer.get(number.index()).copied().flatten()
    }
}

/// Endpoint of a place that reaches near places by `N` and the others by `F`.
pub struct CompositeEndpoint<N, F> {
    here: PlaceId,
    near: N,
    far: F,
    near_numbers: PlaceNumbers,
    far_numbers: PlaceNumbers,
    /// First place on the host of each place.
    hosts: Vec<PlaceId>,
    /// Limits that both transports support.
    limits: Limits,
    /// True if there are far places; otherwise they are never polled.
    has_far: bool,
    /// Number of successful polls of near places since far places were polled.
    near_looks: Cell<u32>,
}

impl<N: Endpoint, F: FarEndpoint> CompositeEndpoint<N, F> {
    /// Returns the endpoint of `here`, which both transports must contain. A place that both reach is near; `hosts`
    /// gives, for each place, the first place that is near to it.
    ///
    /// # Panics
    /// A place is reached by neither transport, is near with another host than `here`, or is far with the same host.
    pub fn new(
        here: PlaceId,
        near: N,
        near_numbers: PlaceNumbers,
        far: F,
        far_numbers: PlaceNumbers,
        hosts: Vec<PlaceId>,
    ) -> CompositeEndpoint<N, F> {
        let mut has_far = false;
        for place in (0..near_numbers.inner.len() as u32).map(PlaceId) {
            let is_near = near_numbers.of_place(place).is_some();
            assert!(
                is_near || far_numbers.of_place(place).is_some(),
                "{place} is reached by neither transport"
            );
            assert_eq!(
                hosts[place.index()] == hosts[here.index()],
                is_near,
                "the hosts of {place} and {here}"
            );
            has_far |= !is_near;
        }
        far.set_near_unparker(near.unparker());
        let (ours, theirs) = (near.limits(), far.limits());
        let limits = Limits {
            inline_bytes_max: ours.inline_bytes_max.min(theirs.inline_bytes_max),
            control_bytes_max: ours.control_bytes_max.min(theirs.control_bytes_max),
            block_bytes_max: ours.block_bytes_max.min(theirs.block_bytes_max),
        };
        let near_looks = Cell::new(0);
        CompositeEndpoint { here, near, far, near_numbers, far_numbers, hosts, limits, has_far, near_looks }
    }

    /// Returns the endpoint that reaches `place`, and its number there.
    #[inline]
    fn route_to(&self, place: PlaceId) -> (&dyn Endpoint, PlaceId) {
        match self.near_numbers.of_place(place) {
            Some(number) => (&self.near, number),
            None => {
                let number = self.far_numbers.of_place(place);
                (&self.far, number.unwrap_or_else(|| panic!("{place} does not exist")))
            }
        }
    }

    /// Returns `true` if `place` is reached by the near transport.
    pub fn is_near(&self, place: PlaceId) -> bool {
        self.near_numbers.of_place(place).is_some()
    }

    #[inline]
    fn progress_of(
        &self,
        endpoint: &dyn Endpoint,
        numbers: &PlaceNumbers,
        is_near: bool,
        inbound: Inbound,
        deliver: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        // Reports of a transport about places that the other one reaches, or that are not in the run, are ignored.
        let known = |number| numbers.place(number).filter(|place| self.is_near(*place) == is_near);
        endpoint.progress(inbound, &mut |arrival| match arrival {
            Arrival::Message(message) => {
                if let Some(source) = known(message.source) {
                    deliver(Arrival::Message(Message { source, ..message }));
                }
            }
            Arrival::Died { place, cause } => {
                if let Some(place) = known(place) {
                    deliver(Arrival::Died { place, cause });
                }
            }
        })
    }

    /// As [`Endpoint::progress`] of far places, after one of near places that made `near` arrivals. A separate
    /// function, to keep the path on one host short.
    #[inline(never)]
    fn progress_far(&self, near: usize, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let looks = self.near_looks.get() + 1;
        if near > 0 && looks < NEAR_LOOKS {
            self.near_looks.set(looks);
            return 0;
        }
        self.near_looks.set(0);
        self.progress_of(&self.far, &self.far_numbers, false, inbound, deliver)
    }

    /// As [`Endpoint::take_next`] for a far place. Messages of near places do not wait for many polls of a library.
    #[inline(never)]
    fn take_next_far(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        let (endpoint, number) = self.route_to(from);
        if self.near.is_ready() { Next::Left } else { endpoint.take_next(number, class, wants) }
    }
}

/// Converts the place of an error to its number in the run.
fn with_outer_number(result: Result<(), SendError>, place: PlaceId) -> Result<(), SendError> {
    result.map_err(|error| match error {
        SendError::DeadPlace(_) => SendError::DeadPlace(place),
        other => other,
    })
}

impl<N: Endpoint, F: FarEndpoint> Endpoint for CompositeEndpoint<N, F> {
    fn here(&self) -> PlaceId {
        self.here
    }

    fn places(&self) -> u32 {
        self.near_numbers.inner.len() as u32
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn shares_processors(&self) -> bool {
        self.near.shares_processors()
    }

    #[inline]
    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        let max = match class {
            Class::Control => self.limits.control_bytes_max,
            Class::Data => self.limits.inline_bytes_max,
        };
        if room > max {
            return Err(SendError::TooLong { len: room, max });
        }
        let (endpoint, number) = self.route_to(to);
        with_outer_number(endpoint.send(number, class, handler, room, fill), to)
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        let max = self.limits.block_bytes_max;
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        let (endpoint, number) = self.route_to(to);
        with_outer_number(endpoint.send_block(number, class, handler, len, fill), to)
    }

    #[inline]
    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let near = self.progress_of(&self.near, &self.near_numbers, true, inbound, deliver);
        if self.has_far { near + self.progress_far(near, inbound, deliver) } else { near }
    }

    fn is_ready(&self) -> bool {
        self.near.is_ready() || self.has_far && self.far.is_ready()
    }

    fn is_sending(&self) -> bool {
        self.near.is_sending() || self.has_far && self.far.is_sending()
    }

    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool) {
        if !self.has_far {
            return self.near.wait_with(timeout, also);
        }
        let longest = self.far.before_sleep();
        let timeout = timeout.into_iter().chain(longest).min();
        let looks = Cell::new(0_u32);
        let period = if self.shares_processors() { 1 } else { WAITING_LOOKS };
        let is_far_due = || looks.replace(looks.get() + 1).is_multiple_of(period);
        let is_far_ready = || is_far_due() && self.far.is_ready();
        self.near.wait_with(timeout, &|| is_far_ready() || also());
        // The event that ended this wait must not end another one.
        self.far.wait_with(Some(Duration::ZERO), &|| true);
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.near.unparker()
    }

    fn is_dead(&self, place: PlaceId) -> bool {
        let (endpoint, number) = self.route_to(place);
        endpoint.is_dead(number)
    }

    fn declare_dead(&self, place: PlaceId) {
        let (endpoint, number) = self.route_to(place);
        endpoint.declare_dead(number);
    }

    fn death(&self, place: PlaceId) -> Option<Death> {
        let (endpoint, number) = self.route_to(place);
        endpoint.death(number)
    }

    fn leave(&self) {
        self.near.leave();
        self.far.leave();
    }

    #[inline]
    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        match self.near_numbers.of_place(from) {
            Some(number) => self.near.take_next(number, class, wants),
            None => self.take_next_far(from, class, wants),
        }
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        self.near.work_model()
    }

    fn span_sink(&self) -> Option<&dyn SpanSink> {
        self.near.span_sink()
    }

    /// Returns `None`, because the receivers may be on both transports.
    fn multicast(&self) -> Option<&dyn Multicast> {
        None
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        self.near.shared_memory().map(|_| self as &dyn MappedMemory)
    }

    fn lending(&self) -> Option<&dyn Lending> {
        self.near.lending().map(|_| self as &dyn Lending)
    }

    fn other_hosts(&self) -> Option<&dyn OtherHosts> {
        self.has_far.then_some(self as &dyn OtherHosts)
    }
}

impl<N: Endpoint, F: FarEndpoint> OtherHosts for CompositeEndpoint<N, F> {
    fn is_far(&self, place: PlaceId) -> bool {
        !self.is_near(place)
    }

    fn host_of(&self, place: PlaceId) -> PlaceId {
        self.hosts[place.index()]
    }

    fn flush_coalesced(&self) {
        self.far.other_hosts().inspect(|hosts| hosts.flush_coalesced());
    }
}

impl<N: Endpoint, F: FarEndpoint> Lending for CompositeEndpoint<N, F> {
    fn lend(&self, bytes: &[u8]) -> Option<LentSlice> {
        self.near.lending()?.lend(bytes)
    }

    fn end(&self, loan: &LentSlice) {
        self.near.lending().inspect(|lending| lending.end(loan));
    }

    fn read(
        &self,
        owner: PlaceId,
        loan: &LentSlice,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), LendingError> {
        let (lending, owner) =
            self.near.lending().zip(self.near_numbers.of_place(owner)).ok_or(LendingError::NotAllowed)?;
        lending.read(owner, loan, offset, into)
    }
}

impl<N: Endpoint, F: FarEndpoint> MappedMemory for CompositeEndpoint<N, F> {
    fn word(&self, place: PlaceId, index: u32) -> Option<&AtomicU64> {
        self.near.shared_memory()?.word(self.near_numbers.of_place(place)?, index)
    }

    fn words(&self) -> u32 {
        self.near.shared_memory().map_or(0, MappedMemory::words)
    }

    fn allocate(&self, words: u64) -> Option<Region> {
        let region = self.near.shared_memory()?.allocate(words)?;
        Some(Region { place: self.here, ..region })
    }

    fn view(&self, region: Region) -> Option<&[AtomicU64]> {
        let place = self.near_numbers.of_place(region.place)?;
        self.near.shared_memory()?.view(Region { place, ..region })
    }

    fn hold(&self) -> Rc<dyn Any> {
        self.near.shared_memory().map_or_else(|| Rc::new(()) as Rc<dyn Any>, MappedMemory::hold)
    }

    fn free(&self, region: Region) {
        let (Some(memory), Some(place)) =
            (self.near.shared_memory(), self.near_numbers.of_place(region.place))
        else {
            panic!("{region:?} was not allocated here")
        };
        memory.free(Region { place, ..region });
    }

    #[inline]
    fn wake(&self, place: PlaceId) -> bool {
        match (self.near.shared_memory(), self.near_numbers.of_place(place)) {
            (Some(memory), Some(place)) => memory.wake(place),
            _ => false,
        }
    }
}
