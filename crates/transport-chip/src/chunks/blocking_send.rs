//! What a place does that stands in a send, with protocols whose sender waits ([`Handshake::WAITS`]).
//!
//! Invariant: it keeps one message of each sender and class at most, because senders ask before they send.

use super::{Chunks, Handshake};
use crate::cores::Cores;
use crate::message::ReceivedMessage;
use crate::protocol::{ProtocolModel, Wakeups};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl<H: Handshake> Chunks<H> {
    /// Serves what arrives for a place that stands in a send: takes it, answers, and keeps it for later.
    pub(super) fn serve(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.poll(cores, place);
        let present = cores.present();
        while let Some(fetched) = self.fetch(cores, place, present, false) {
            fetched.into_iter().for_each(|message| self.blocking_sends.kept.put(place, message));
        }
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    /// Begins the next message of a place whose last one is answered.
    pub(super) fn send_next(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        if self.own_parts(place).next().is_none()
            && let Some((out, load)) = self.blocking_sends.of_mut(place).pop()
        {
            wakeups.push((out.to, self.begin(cores, &out, load)));
        }
    }

    /// When a place that stands in a send begins the next message, if it waits for no answer: at once.
    pub(super) fn resumes(&self, place: PlaceId) -> Option<Picoseconds> {
        let is_awaited = self.own_parts(place).next().is_some();
        (!is_awaited && !self.blocking_sends.of(place).is_empty()).then_some(Picoseconds::ZERO)
    }

    /// A message that was kept and is wanted now; its sender is told by a flag.
    pub(super) fn take_deferred(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        control_only: bool,
    ) -> Option<ReceivedMessage> {
        self.blocking_sends.take_deferred(place, control_only, |source| {
            cores.write_lines(place, source, 1);
            cores.now(place)
        })
    }
}
