//! A transport of threads in its simplest form: one lock, one bell for each place.
//!
//! It tests the fixture for threads and the promises about waiting; it can lose events. It is slow and has no words.

use crate::conformance::EndpointSetup;
use crate::loopback::memory::AlignedBytes;
use crate::{
    Arrival, BlockMemory, Body, Class, Death, Endpoint, HandlerId, Inbound, Lending, Limits, MappedMemory,
    Message, Multicast, Next, OtherHosts, PlaceId, ReentryGuard, SendError, SpanSink, Unpark, WorkModel,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of messages between two places in one class.
const CAPACITY: usize = 16;

const INLINE_BYTES_MAX: usize = 1_024;

/// Fault of the mailbox: the event that does not ring the bell, or another fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MailboxFault {
    No,
    Arrival,
    Room,
    /// Room, for a sender that has sent something since it was refused.
    Refusal,
    Unpark,
    Timeout,
    Death,
    /// Not deaf: loses some messages.
    Loses,
}

struct QueuedMessage {
    source: PlaceId,
    class: Class,
    handler: HandlerId,
    block: bool,
    bytes: AlignedBytes,
}

/// The arrivals of one place.
#[derive(Default)]
struct Slot {
    control: VecDeque<QueuedMessage>,
    data: VecDeque<QueuedMessage>,
    rung: bool,
    /// True if its last send was refused.
    refused: bool,
    dead: bool,
    reported_deaths: BTreeSet<PlaceId>,
}

struct MailboxSet {
    slots: Mutex<Vec<Slot>>,
    bells: Vec<Condvar>,
    fault: MailboxFault,
}

impl MailboxSet {
    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, slots: &mut [Slot], place: PlaceId, cause: MailboxFault) {
        if self.fault != cause {
            slots[place.index()].rung = true;
            self.bells[place.index()].notify_all();
        }
    }

    fn kill(&self, place: PlaceId) {
        let mut slots = self.lock();
        slots[place.index()].dead = true;
        (0..slots.len() as u32).for_each(|other| self.ring(&mut slots, PlaceId(other), MailboxFault::Death));
    }
}

struct Bell(Arc<MailboxSet>, PlaceId);

impl Unpark for Bell {
    fn unpark(&self) {
        self.0.ring(&mut self.0.lock(), self.1, MailboxFault::Unpark);
    }
}

struct Mailbox {
    here: PlaceId,
    mailboxes: Arc<MailboxSet>,
    reentry: ReentryGuard,
}

/// Returns the setups of a new run.
pub(super) fn setups(places: u32, fault: MailboxFault) -> Vec<EndpointSetup> {
    let slots = Mutex::new((0..places).map(|_| Slot::default()).collect());
    let mailboxes =
        Arc::new(MailboxSet { slots, bells: (0..places).map(|_| Condvar::new()).collect(), fault });
    let setup = |here| {
        let (opened, killed) = (Arc::clone(&mailboxes), Arc::clone(&mailboxes));
        EndpointSetup {
            open: Box::new(move || {
                Box::new(Mailbox { here, mailboxes: opened, reentry: ReentryGuard::default() })
            }),
            kill: Box::new(move |endpoint| {
                drop(endpoint);
                killed.kill(here);
            }),
        }
    };
    (0..places).map(PlaceId).map(setup).collect()
}

fn queue(slot: &mut Slot, class: Class) -> &mut VecDeque<QueuedMessage> {
    match class {
        Class::Control => &mut slot.control,
        Class::Data => &mut slot.data,
    }
}

impl Mailbox {
    fn post(
        &self,
        to: PlaceId,
        class: Class,
        write: &mut dyn FnMut() -> Result<QueuedMessage, SendError>,
    ) -> Result<(), SendError> {
        assert_ne!(to, self.here);
        self.reentry.check_send();
        let mut slots = self.mailboxes.lock();
        let slot = &mut slots[to.index()];
        if slot.dead {
            return Err(SendError::DeadPlace(to));
        }
        let queue = queue(slot, class);
        if queue.iter().filter(|message| message.source == self.here).count() >= CAPACITY {
            slots[self.here.index()].refused = true;
            return Err(SendError::Full);
        }
        let message = {
            let _fill = self.reentry.fill();
            write()?
        };
        if self.mailboxes.fault != MailboxFault::Loses || message.handler != HandlerId(1) {
            queue.push_back(message);
        }
        slots[self.here.index()].refused = false;
        self.mailboxes.ring(&mut slots, to, MailboxFault::Arrival);
        Ok(())
    }

    fn take(&self, inbound: Inbound) -> Option<QueuedMessage> {
        let mut slots = self.mailboxes.lock();
        let slot = &mut slots[self.here.index()];
        let control = slot.control.pop_front();
        let message =
            control.or_else(|| (inbound == Inbound::All).then(|| slot.data.pop_front()).flatten())?;
        let cause =
            if slots[message.source.index()].refused { MailboxFault::Room } else { MailboxFault::Refusal };
        self.mailboxes.ring(&mut slots, message.source, cause);
        Some(message)
    }

    fn take_death(&self) -> Option<PlaceId> {
        let mut slots = self.mailboxes.lock();
        let mut places = (0..slots.len() as u32).map(PlaceId);
        let slot = &slots[self.here.index()];
        let silent = |place| !slot.control.iter().chain(&slot.data).any(|message| message.source == place);
        let dead = places.find(|&place| {
            slots[place.index()].dead && !slot.reported_deaths.contains(&place) && silent(place)
        })?;
        slots[self.here.index()].reported_deaths.insert(dead);
        Some(dead)
    }
}

struct Memory(AlignedBytes);

impl BlockMemory for Memory {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Endpoint for Mailbox {
    fn here(&self) -> PlaceId {
        self.here
    }

    fn places(&self) -> u32 {
        self.mailboxes.bells.len() as u32
    }

    fn limits(&self) -> Limits {
        Limits {
            inline_bytes_max: INLINE_BYTES_MAX,
            control_bytes_max: INLINE_BYTES_MAX,
            block_bytes_max: 8 << 20,
        }
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
        if room > INLINE_BYTES_MAX {
            return Err(SendError::TooLong { len: room, max: INLINE_BYTES_MAX });
        }
        self.post(to, class, &mut || {
            let mut bytes = AlignedBytes::new(room);
            let len = fill(bytes.bytes_mut()).ok_or(SendError::Abandoned)?;
            bytes.shorten(len);
            Ok(QueuedMessage { source: self.here, class, handler, block: false, bytes })
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
        let max = self.limits().block_bytes_max;
        if len > max {
            return Err(SendError::TooLong { len, max });
        }
        self.post(to, class, &mut || {
            let mut bytes = AlignedBytes::new(len);
            fill(bytes.bytes_mut());
            Ok(QueuedMessage { source: self.here, class, handler, block: true, bytes })
        })
    }

    fn progress(&self, inbound: Inbound, deliver: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let _deliver = self.reentry.deliver();
        let mut count = 0;
        while count < CAPACITY {
            let Some(message) = self.take(inbound) else { break };
            let QueuedMessage { source, class, handler, block, bytes } = message;
            let mut give = |body| deliver(Arrival::Message(Message { source, class, handler, body }));
            if block {
                give(Body::Block(Box::new(Memory(bytes))))
            } else {
                give(Body::Inline(bytes.bytes()))
            }
            count += 1;
        }
        while let Some(place) = self.take_death() {
            deliver(Arrival::Died { place, cause: Death::Ended });
            count += 1;
        }
        count
    }

    /// Not supported: only `progress` takes messages.
    fn take_next(
        &self,
        _from: PlaceId,
        _class: Class,
        _wants: &mut dyn FnMut(HandlerId, &[u8]) -> bool,
    ) -> Next {
        Next::Left
    }

    fn is_ready(&self) -> bool {
        let slots = self.mailboxes.lock();
        let slot = &slots[self.here.index()];
        slot.rung || !slot.control.is_empty() || !slot.data.is_empty()
    }

    /// Returns `false`: sent messages are already at their receivers.
    fn is_sending(&self) -> bool {
        false
    }

    fn wait_with(&self, timeout: Option<Duration>, also: &dyn Fn() -> bool) {
        self.reentry.check_wait();
        if also() {
            return;
        }
        let timeout = if self.mailboxes.fault == MailboxFault::Timeout { None } else { timeout };
        let mut slots = self.mailboxes.lock();
        let (bell, asleep) = (&self.mailboxes.bells[self.here.index()], |slots: &mut Vec<Slot>| {
            !std::mem::take(&mut slots[self.here.index()].rung)
        });
        match timeout {
            None => drop(bell.wait_while(slots, asleep)),
            Some(timeout) if asleep(&mut slots) => drop(bell.wait_timeout_while(slots, timeout, asleep)),
            Some(_) => {}
        }
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        Arc::new(Bell(Arc::clone(&self.mailboxes), self.here))
    }

    fn declare_dead(&self, place: PlaceId) {
        self.mailboxes.kill(place);
    }

    fn is_dead(&self, place: PlaceId) -> bool {
        self.mailboxes.lock()[place.index()].dead
    }

    /// Returns the death without its reason.
    fn death(&self, place: PlaceId) -> Option<Death> {
        self.is_dead(place).then_some(Death::Ended)
    }

    /// Does nothing: a place that leaves is killed.
    fn leave(&self) {}

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
        None
    }

    fn lending(&self) -> Option<&dyn Lending> {
        None
    }
}
