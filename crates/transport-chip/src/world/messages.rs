//! Messages of a place in its turn: admission, sending and receiving.
//!
//! A place whose send is refused waits for credit from then on. The protocol carries the messages, and the endpoint
//! delivers them. Invariants: a sent message was admitted in the same call of the endpoint, so there is room for it; a
//! place takes only messages that had arrived when it polled, and a death only after the last message of the dead
//! place.

use super::state::{Event, WorldState};
use crate::protocol::inbox::{ChipBlock, Content, MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, OutgoingMulticast};
use crate::record::Transfer;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::{AlignedBytes, Inbound, PlaceId, SendError};

/// Minimum length of a step, in polls, for messages to wait for its end. Waiting costs the place another poll, which is
/// then at most a hundredth of the step.
const HELD_LOOKS_MIN: u64 = 100;

impl WorldState {
    /// Checks that an empty message could be sent now, and records a refusal. Returns `true` if any length up to `room`
    /// bytes has room.
    pub(crate) fn admit(&mut self, out: &Outgoing, room: usize) -> Result<bool, SendError> {
        self.check_open(out)?;
        self.check_step(out.from)?;
        if self.protocol.has_room_up_to(out, room) {
            return Ok(true);
        }
        self.admit_length(out, 0).map(|()| false)
    }

    /// Checks that an admitted message may have `len` bytes, and records a refusal.
    pub(crate) fn admit_length(&mut self, out: &Outgoing, len: usize) -> Result<(), SendError> {
        if self.protocol.has_room(&mut self.cores, out, len) { Ok(()) } else { Err(self.refuse(out.from)) }
    }

    /// As `admit`, for a block.
    pub(crate) fn admit_block(&mut self, out: &Outgoing) -> Result<(), SendError> {
        self.check_open(out)?;
        self.check_step(out.from)?;
        if self.protocol.can_begin_block(&mut self.cores, out) { Ok(()) } else { Err(self.refuse(out.from)) }
    }

    /// As `admit`, for a message to several places.
    fn admit_multicast(&mut self, out: &OutgoingMulticast<'_>) -> Result<(), SendError> {
        out.each().try_for_each(|out| self.check_open(&out))?;
        self.check_step(out.from)?;
        let multicast = self.protocol.multicast();
        let has_room = multicast.is_some_and(|multicast| multicast.has_room_for_all(&mut self.cores, out));
        if has_room { Ok(()) } else { Err(self.refuse(out.from)) }
    }

    fn check_open(&self, out: &Outgoing) -> Result<(), SendError> {
        assert!(!self.statuses[out.from.index()].left, "{} sends although it has left", out.from);
        if self.is_closed(out.from, out.to) { Err(SendError::DeadPlace(out.to)) } else { Ok(()) }
    }

    /// Refuses a message of `place` during a long step whose end may still move. It is sent in the place's next turn,
    /// which starts at that end; sent now, it could arrive before its content was computed.
    #[inline]
    fn check_step(&mut self, place: PlaceId) -> Result<(), SendError> {
        let Some(left) = self.cores.open_step(place) else { return Ok(()) };
        let look = self.protocol.poll_period(&self.cores, place, true);
        if left.0 < look.0.saturating_mul(HELD_LOOKS_MIN) {
            return Ok(());
        }
        self.statuses[place.index()].held = true;
        Err(self.refuse(place))
    }

    fn refuse(&mut self, place: PlaceId) -> SendError {
        self.statuses[place.index()].refused = true;
        self.drain_wakeups(place);
        SendError::Full
    }

    /// Sends an admitted message.
    pub(crate) fn send(&mut self, out: &Outgoing, content: Content) {
        let bytes = content.bytes().len();
        self.begin_action(out.from);
        let arrival = self.protocol.send(&mut self.cores, out, MessageContent::Inline(content));
        self.end_sending(out, bytes, false);
        if let Some(arrival) = arrival {
            self.wake_target(out.to, arrival);
        }
        self.drain_wakeups(out.from);
    }

    /// Sends a message to several places, and records a refusal; a protocol without multicast refuses.
    pub(crate) fn multicast(&mut self, out: &OutgoingMulticast<'_>, content: &[u8]) -> Result<(), SendError> {
        self.admit_multicast(out)?;
        let mut slot = None;
        for one in out.each() {
            let mut copy = self.take_buffer(content.len());
            copy.bytes_mut()[..content.len()].copy_from_slice(content);
            copy.shorten(content.len());
            self.begin_action(out.from);
            let multicast = self.protocol.multicast().ok_or(SendError::Full)?;
            let slot = *slot.get_or_insert_with(|| multicast.stage(&mut self.cores, out, content.len()));
            let arrival = multicast.announce(&mut self.cores, &one, slot, MessageContent::Inline(copy));
            self.end_sending(&one, content.len(), false);
            self.wake_target(one.to, arrival);
        }
        Ok(())
    }

    /// Sends an admitted block.
    pub(crate) fn send_block(&mut self, out: &Outgoing, content: AlignedBytes) {
        let bytes = content.bytes().len();
        let block = MessageContent::Block(Box::new(ChipBlock::new(content, &self.live_blocks)));
        self.begin_action(out.from);
        self.protocol.begin_block(&mut self.cores, out, block, &mut self.wakeups);
        self.end_sending(out, bytes, true);
        self.drain_wakeups(out.from);
        self.wake_targets();
    }

    fn end_sending(&mut self, out: &Outgoing, bytes: usize, is_block: bool) {
        if let Some(recorder) = &mut self.cores.recorder {
            let (source, target, class) = (out.from, out.to, out.class);
            recorder.sent(Transfer { source, target, class, bytes: bytes as u64 }, is_block);
        }
    }
}

/// A message or event that a place receives.
pub(crate) enum Delivery {
    ReceivedMessage(ReceivedMessage),
    Died(PlaceId),
    /// A part of a larger message: poll again.
    Fragment,
}

impl WorldState {
    /// Polls for messages; returns the time up to which it has seen arrivals.
    pub(crate) fn poll(&mut self, place: PlaceId) -> Picoseconds {
        let seen = self.cores.now(place);
        if self.is_blocked_in_send(place) {
            return seen;
        }
        self.protocol.poll(&mut self.cores, place);
        if self.protocol.has_pending_blocks(place) {
            self.make_progress(place);
        }
        seen
    }

    /// Takes one message or death that had arrived at `seen`.
    pub(crate) fn take(&mut self, place: PlaceId, seen: Picoseconds, inbound: Inbound) -> Option<Delivery> {
        let status = &self.statuses[place.index()];
        if !status.alive {
            return None;
        }
        if !status.notices.is_empty()
            && let Some(dead) = self.take_death(place)
        {
            return Some(Delivery::Died(dead));
        }
        let before = self.cores.now(place);
        self.begin_action(place);
        let taken = self.protocol.take(&mut self.cores, place, seen, inbound == Inbound::Control);
        self.end_taking(place, taken.as_ref());
        let Some(message) = taken? else {
            let key = self.key(before, EventClass::Arrival, place);
            self.digest.record(key, Event::Fragment as u32, 0);
            return Some(Delivery::Fragment);
        };
        let key = self.key(message.arrival, EventClass::Arrival, place);
        let size = message.content.len() as u64;
        self.digest.record(
            key,
            Event::Message as u32,
            size << 33 | u64::from(message.source.0) << 1 | message.class as u64,
        );
        self.messages += 1;
        self.bytes += size;
        Some(Delivery::ReceivedMessage(message))
    }

    fn end_taking(&mut self, place: PlaceId, taken: Option<&Option<ReceivedMessage>>) {
        let Some(recorder) = &mut self.cores.recorder else { return };
        match taken {
            None => recorder.abandon(place),
            Some(None) => recorder.received_piece(place),
            Some(Some(message)) => {
                let (source, class, bytes) = (message.source, message.class, message.content.len() as u64);
                recorder.received(Transfer { source, target: place, class, bytes });
            }
        }
    }
}
