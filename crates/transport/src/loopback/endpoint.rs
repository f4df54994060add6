//! One place's attachment to a simulated world.
//!
//! It also checks the calling rules of [`Endpoint`]: a breach that would crash a real transport or go unnoticed is an
//! assertion here. It never blocks.

use super::memory::{AlignedBytes, LoopbackBlock};
use super::state::{Delivery, InFlightMessage, MessageContent, State};
use super::world::WorldShared;
use crate::{
    Arrival, Body, Class, Death, Endpoint, HandlerId, Inbound, Lending, LendingError, LentSlice, Limits,
    MappedMemory, Message, Multicast, Next, OtherHosts, PlaceId, ReentryGuard, Region, SendError, SpanSink,
    Unpark, WorkModel,
};
use std::any::Any;
use std::cell::RefMut;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Minimum bytes of a message to several places at once; here any number would do.
const MULTICAST_BYTES_MIN: usize = 64;

/// The endpoint of one place of a [`World`](super::World).
///
/// Once its place is killed it is cut off: sends fail with [`SendError::DeadPlace`], and nothing arrives.
pub struct LoopbackEndpoint {
    here: PlaceId,
    shared: Rc<WorldShared>,
    reentry: ReentryGuard,
}

impl LoopbackEndpoint {
    pub(super) fn new(here: PlaceId, shared: Rc<WorldShared>) -> LoopbackEndpoint {
        LoopbackEndpoint { here, shared, reentry: ReentryGuard::default() }
    }

    fn state(&self) -> RefMut<'_, State> {
        self.shared.state.borrow_mut()
    }

    fn check_send(&self, to: PlaceId, len: usize, max: usize) -> Result<(), SendError> {
        assert_ne!(to, self.here, "{to} sends to itself through its endpoint");
        assert!(to.0 < self.places(), "{to} does not exist, there are {} places", self.places());
        self.reentry.check_send();
        if len > max { Err(SendError::TooLong { len, max }) } else { Ok(()) }
    }

    /// Returns the maximum bytes of a message of `class` that is no block.
    fn message_bytes_max(&self, class: Class) -> usize {
        let limits = self.limits();
        match class {
            Class::Control => limits.control_bytes_max,
            Class::Data => limits.inline_bytes_max,
        }
    }

    /// Returns `true` if there are places on other hosts.
    fn has_far(&self) -> bool {
        self.shared.places_per_host < self.places()
    }

    fn take(&self, inbound: Inbound) -> Option<Delivery> {
        self.state().take(self.here, inbound)
    }
}

impl Endpoint for LoopbackEndpoint {
    fn here(&self) -> PlaceId {
        self.here
    }

    fn places(&self) -> u32 {
        self.shared.words.len() as u32
    }

    fn limits(&self) -> Limits {
        self.state().plan.limits
    }

    fn shares_processors(&self) -> bool {
        true
    }

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> Result<(), SendError> {
        self.check_send(to, room, self.message_bytes_max(class))?;
        self.state().admit(self.here, to, class)?;
        let mut content = AlignedBytes::new(room);
        let len = {
            let _fill = self.reentry.fill();
            fill(content.bytes_mut()).ok_or(SendError::Abandoned)?
        };
        content.shorten(len);
        self.state().post(self.here, to, class, handler, MessageContent::Inline(content));
        Ok(())
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        self.check_send(to, len, self.limits().block_bytes_max)?;
        self.state().admit_block(self.here, to, class)?;
        let mut content = AlignedBytes::new(len);
        {
            let _fill = self.reentry.fill();
            fill(content.bytes_mut());
        }
        let block = LoopbackBlock::new(content, self.state().live_blocks_to(self.here, to));
        self.state().post(self.here, to, class, handler, MessageContent::Block(block));
        Ok(())
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let _deliver = self.reentry.deliver();
        let batch = self.state().batch();
        for count in 0..batch {
            match self.take(inbound) {
                None => return count,
                Some(Delivery::Died(place)) => {
                    let cause = self.state().cause(place);
                    deliver(Arrival::Died { place, cause });
                }
                Some(Delivery::InFlightMessage(parcel)) => {
                    let inline;
                    let body = match parcel.content {
                        MessageContent::Block(block) => Body::Block(Box::new(block)),
                        MessageContent::Inline(content) => {
                            inline = content;
                            Body::Inline(inline.bytes())
                        }
                    };
                    let (source, class, handler) = (parcel.source, parcel.class, parcel.handler);
                    deliver(Arrival::Message(Message { source, class, handler, body }));
                }
            }
        }
        batch
    }

    fn take_next(
        &self,
        from: PlaceId,
        class: Class,
        wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        let _deliver = self.reentry.deliver();
        // A copy, because `wants` may send.
        let (handler, content) = match self.state().first(self.here, from, class) {
            None => return Next::Nothing,
            Some(InFlightMessage { content: MessageContent::Block(_), .. }) => return Next::Left,
            Some(InFlightMessage { content: MessageContent::Inline(content), handler, .. }) => {
                (*handler, AlignedBytes::copy_of(content.bytes()))
            }
        };
        if !wants(handler, content.bytes()) {
            return Next::Left;
        }
        self.state().take_first(self.here, from, class);
        Next::Taken
    }

    fn is_ready(&self) -> bool {
        self.shared.wakes(self.here)
    }

    /// Always `false`: the world carries the messages.
    fn is_sending(&self) -> bool {
        false
    }

    /// Returns at once: the driver asks [`World::wakes`](super::World::wakes) instead.
    fn wait_with(&self, _timeout: Option<Duration>, _also: &dyn Fn() -> bool) {
        self.reentry.check_wait();
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::clone(&self.shared.unparked[self.here.index()]) as Arc<dyn Unpark>
    }

    fn is_dead(&self, place: PlaceId) -> bool {
        self.state().is_dead(self.here, place)
    }

    fn declare_dead(&self, place: PlaceId) {
        self.state().declare_dead(self.here, place);
    }

    fn death(&self, place: PlaceId) -> Option<Death> {
        self.is_dead(place).then(|| self.state().cause(place))
    }

    fn leave(&self) {
        self.state().leave(self.here);
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        None
    }

    fn span_sink(&self) -> Option<&dyn SpanSink> {
        None
    }

    /// Returns `None` if there are several hosts, as other transports do.
    fn multicast(&self) -> Option<&dyn Multicast> {
        (!self.has_far()).then_some(self as &dyn Multicast)
    }

    fn other_hosts(&self) -> Option<&dyn OtherHosts> {
        self.has_far().then_some(self as &dyn OtherHosts)
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        (self.words() > 0).then_some(self as &dyn MappedMemory)
    }

    fn lending(&self) -> Option<&dyn Lending> {
        Some(self)
    }
}

/// Every third loan may not be read, so that simulated runs take both ways of sending a long message.
impl Lending for LoopbackEndpoint {
    fn lend(&self, bytes: &[u8]) -> Option<LentSlice> {
        let token = self.shared.loans.borrow_mut().lend(bytes);
        Some(LentSlice { process: u64::from(self.here.0), address: 0, guard: 0, token })
    }

    fn end(&self, loan: &LentSlice) {
        self.shared.loans.borrow_mut().end(loan.token);
    }

    fn read(
        &self,
        owner: PlaceId,
        loan: &LentSlice,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), LendingError> {
        let exists = owner.0 < self.places() && self.state().is_alive(owner);
        if !exists || self.is_far(owner) {
            return Err(LendingError::Ended);
        }
        self.shared.loans.borrow().read(loan.token, offset, into)
    }
}

impl OtherHosts for LoopbackEndpoint {
    fn is_far(&self, place: PlaceId) -> bool {
        self.host_of(place) != self.host_of(self.here)
    }

    fn host_of(&self, place: PlaceId) -> PlaceId {
        PlaceId(place.0 - place.0 % self.shared.places_per_host)
    }

    /// Does nothing: no message is held back here.
    fn flush_coalesced(&self) {}
}

/// Of no benefit here, but offered so that simulated runs cover its effects.
impl Multicast for LoopbackEndpoint {
    fn bytes(&self, class: Class) -> Range<usize> {
        MULTICAST_BYTES_MIN..self.message_bytes_max(class) + 1
    }

    fn send_to_all(
        &self,
        to: &[PlaceId],
        class: Class,
        handler: HandlerId,
        message: &[u8],
    ) -> Result<(), SendError> {
        let len = message.len();
        if len < MULTICAST_BYTES_MIN {
            return Err(SendError::TooLong { len, max: 0 });
        }
        for to in to {
            self.check_send(*to, len, self.message_bytes_max(class))?;
            self.state().admit(self.here, *to, class)?;
        }
        for to in to {
            let mut copy = AlignedBytes::new(len);
            copy.bytes_mut().copy_from_slice(message);
            self.state().post(self.here, *to, class, handler, MessageContent::Inline(copy));
        }
        Ok(())
    }
}

impl MappedMemory for LoopbackEndpoint {
    fn word(&self, place: PlaceId, index: u32) -> Option<&AtomicU64> {
        if self.is_far(place) {
            return None;
        }
        self.shared.words[place.index()].get(index as usize)
    }

    fn words(&self) -> u32 {
        self.shared.words[self.here.index()].len() as u32
    }

    fn allocate(&self, words: u64) -> Option<Region> {
        let memory = &self.shared.regions[self.here.index()];
        let (start, _) = memory.table.borrow_mut().take(words)?;
        let region = Region { place: self.here, start, words };
        // Relaxed, as are all words of a world of one thread.
        memory.of(region)?.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        Some(region)
    }

    fn view(&self, region: Region) -> Option<&[AtomicU64]> {
        let memory = self.shared.regions.get(region.place.index())?;
        if self.is_far(region.place) { None } else { memory.of(region) }
    }

    fn hold(&self) -> Rc<dyn Any> {
        Rc::clone(&self.shared) as Rc<dyn Any>
    }

    fn free(&self, region: Region) {
        assert_eq!(region.place, self.here, "a region of {} is given back by {}", region.place, self.here);
        self.shared.regions[self.here.index()].table.borrow_mut().give_back(region.start);
    }

    fn wake(&self, place: PlaceId) -> bool {
        let may_look = !self.is_far(place) && !self.is_dead(place);
        if may_look {
            self.shared.unparked[place.index()].unpark();
        }
        may_look
    }
}
