//! One place's attachment to the segment.
//!
//! [`ShmEndpoint`] joins the parts into the [`Endpoint`] interface: rings out ([`outlet`]), rings in
//! ([`inlet`]), blocks, waiting ([`waiter`]). It knows bytes, peers and handlers; neither tasks nor processes.
//!
//! Invariants: the sending half (outlets, arena) and the receiving half (inlets) are separate cells, because `deliver`
//! may send in the middle of a `progress`; `fill` must not call the endpoint, because it holds the memory of its
//! message, and the ring has none for a second one.

mod core_balance;
mod inlet;
mod lending;
mod outlet;
#[cfg(test)]
mod tests;
mod waiter;

use crate::layout::{SegmentHeader, WORDS};
use crate::lifecycle::Lifecycle;
use crate::regions::{self, Regions};
use crate::ring::RingFault;
use crate::segment::{Segment, View};
pub(crate) use inlet::BATCH;
use inlet::Inlets;
use isles_transport::{
    Arrival, Class, Death, Endpoint, HandlerId, Inbound, Lending, LendingError, LentSlice, Limits,
    MappedMemory, Multicast, Next, OtherHosts, PlaceId, ReentryGuard, Region, SendError, SpanSink, Unpark,
    WorkModel,
};
use lending::Loans;
pub(crate) use lending::let_children_read;
pub use lending::{let_siblings_read, reads_others};
use outlet::Outlets;
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use waiter::Waiter;
pub use waiter::polling_time;

/// The endpoint of a place that shares a segment with all others of its run.
///
/// Dropping it without [`Endpoint::leave`] counts as the death of the place.
pub struct ShmEndpoint {
    segment: Segment,
    here: PlaceId,
    outlets: Outlets,
    inlets: Inlets,
    waiter: Waiter,
    regions: Regions,
    loans: Loans,
    reentry: ReentryGuard,
    shares_processors: bool,
    /// The header of the segment, which has the count of changes.
    head: View<SegmentHeader>,
    /// The count of changes at the last check of all lives.
    changes_seen: Cell<u32>,
}

impl ShmEndpoint {
    /// Creates the endpoint of `here`, which the caller has marked as joined.
    pub(crate) fn new(segment: Segment, here: PlaceId) -> ShmEndpoint {
        let outlets = Outlets::new(&segment, here);
        let inlets = Inlets::new(&segment, here);
        let waiter = Waiter::new(&segment, here);
        // Differs from the present count, so that the first `progress` checks all lives.
        let changes_seen = Cell::new(segment.changes().wrapping_sub(1));
        let head = View::new(&segment, 0);
        let (regions, reentry) = (Regions::new(&segment, here), ReentryGuard::default());
        let shares_processors = segment.shares_processors();
        ShmEndpoint {
            segment,
            here,
            outlets,
            inlets,
            waiter,
            regions,
            loans: Loans::new(),
            reentry,
            shares_processors,
            head,
            changes_seen,
        }
    }

    /// Makes each wait poll for at least [`polling_time`] before it sleeps, for a place to which other hosts write:
    /// they wake it only after a pause in their messages. Some of those hosts may be containers of this machine, so
    /// `places` places of the run share its `processors` processors.
    #[must_use]
    pub fn with_polling_for_hosts(mut self, places: u32, processors: u32) -> ShmEndpoint {
        self.waiter.look_for_hosts(places, processors);
        self.shares_processors |= places > processors;
        self
    }

    /// Returns the segment of the run.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns `true` if the life of a place has changed since the last [`ShmEndpoint::observe_changes`].
    #[inline]
    fn has_changes(&self) -> bool {
        self.head.changes() != self.changes_seen.get()
    }

    /// Checks the lives of all places after one of them changed.
    #[cold]
    fn observe_changes(&self) {
        self.changes_seen.set(self.segment.changes());
        for place in self.segment.all_places().filter(|place| *place != self.here) {
            let life = self.segment.life(place);
            if life.is_over() {
                self.outlets.close(place);
            }
            if self.outlets.is_reaped(place) {
                self.outlets.reclaim_from_dead(place);
            }
            if life.death(place).is_some() {
                self.inlets.expect_end(place);
            }
        }
    }

    /// Declares a place dead, because it broke the format.
    #[cold]
    fn declare_corrupt(&self, place: PlaceId, class: Class, fault: RingFault) {
        self.inlets.declare_dead(place, class, fault, 0);
        self.outlets.close(place);
    }
}

impl Endpoint for ShmEndpoint {
    fn here(&self) -> PlaceId {
        self.here
    }

    fn places(&self) -> u32 {
        self.segment.places()
    }

    fn limits(&self) -> Limits {
        let geometry = self.segment.geometry();
        Limits {
            inline_bytes_max: geometry.inline_max(Class::Data),
            control_bytes_max: geometry.inline_max(Class::Control),
            block_bytes_max: geometry.block_max(),
        }
    }

    fn shares_processors(&self) -> bool {
        self.shares_processors
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
        let _fill = self.reentry.fill();
        self.outlets.send(to, class, handler, room, fill).map_err(|refusal| match refusal {
            outlet::SendFailure::Send(error) => error,
            outlet::SendFailure::Fault(fault) => {
                self.declare_corrupt(to, class, fault);
                SendError::DeadPlace(to)
            }
        })
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        let _fill = self.reentry.fill();
        self.outlets.send_block(to, class, handler, len, fill).map_err(|refusal| match refusal {
            outlet::SendFailure::Send(error) => error,
            outlet::SendFailure::Fault(fault) => {
                self.declare_corrupt(to, class, fault);
                SendError::DeadPlace(to)
            }
        })
    }

    #[inline]
    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let _deliver = self.reentry.deliver();
        let count = self.inlets.deliver_messages(inbound, deliver);
        // After the messages: this turn may have declared a peer dead, which receives no messages from now on.
        if self.has_changes() {
            self.observe_changes();
        }
        count + self.inlets.deliver_ends(deliver)
    }

    #[inline]
    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        let _deliver = self.reentry.deliver();
        self.inlets.take_next(from, class, wants)
    }

    fn is_ready(&self) -> bool {
        self.inlets.is_ready() || self.has_changes() || self.outlets.is_ready() || self.waiter.is_unparked()
    }

    /// Always `false`: a receiver finds a written message without this place.
    fn is_sending(&self) -> bool {
        false
    }

    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool) {
        self.reentry.check_wait();
        let ready = || self.inlets.is_ready() || self.has_changes() || self.outlets.is_ready() || also();
        self.waiter.wait(timeout, self.outlets.take_shortage(), &ready, &|| self.outlets.give_pages_back());
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.waiter.unparker()
    }

    fn is_dead(&self, place: PlaceId) -> bool {
        self.segment.is_dead(place)
    }

    fn declare_dead(&self, place: PlaceId) {
        // The text of this fault does not mention the ring.
        self.declare_corrupt(place, Class::Data, RingFault::Message);
    }

    fn death(&self, place: PlaceId) -> Option<Death> {
        self.segment.life(place).death(place)
    }

    /// Leaves the run: messages to this place are refused from now on; those it has sent are still delivered.
    fn leave(&self) {
        self.segment.change_life(self.here, Lifecycle::Left, |life| !life.is_over());
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        None
    }

    fn span_sink(&self) -> Option<&dyn SpanSink> {
        None
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        None
    }

    fn other_hosts(&self) -> Option<&dyn OtherHosts> {
        None
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        Some(self)
    }

    fn lending(&self) -> Option<&dyn Lending> {
        Some(self)
    }
}

impl Lending for ShmEndpoint {
    fn lend(&self, bytes: &[u8]) -> Option<LentSlice> {
        self.loans.lend(bytes)
    }

    fn end(&self, loan: &LentSlice) {
        self.loans.end(loan);
    }

    fn read(
        &self,
        owner: PlaceId,
        loan: &LentSlice,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), LendingError> {
        let _announced = self.outlets.announce(owner, into.len());
        self.loans.read(loan, offset, into)
    }
}

impl MappedMemory for ShmEndpoint {
    #[inline]
    fn word(&self, place: PlaceId, index: u32) -> Option<&AtomicU64> {
        Some(self.segment.mapping().view(self.segment.layout().word(place, index)))
    }

    fn words(&self) -> u32 {
        WORDS
    }

    fn allocate(&self, words: u64) -> Option<Region> {
        self.regions.allocate(&self.segment, words)
    }

    fn view(&self, region: Region) -> Option<&[AtomicU64]> {
        regions::view(&self.segment, region)
    }

    fn hold(&self) -> Rc<dyn Any> {
        Rc::new(self.segment.clone())
    }

    fn free(&self, region: Region) {
        self.regions.free(&self.segment, region);
    }

    #[inline]
    fn wake(&self, place: PlaceId) -> bool {
        let lives = !self.segment.is_dead(place);
        if lives {
            self.outlets.wake(place);
        }
        lives
    }
}

impl Drop for ShmEndpoint {
    fn drop(&mut self) {
        self.segment.mark_dead(self.here);
    }
}
