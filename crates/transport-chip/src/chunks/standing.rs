//! What a place does that stands in a send, with protocols whose sender waits ([`Handshake::WAITS`]).
//!
//! Invariant: it keeps one message of each sender and class at most, because senders ask before they send.

use super::{Chunks, Handshake};
use crate::cores::Cores;
use crate::parcel::Parcel;
use crate::wire::{News, Wire};
use isles_chip::quantity::Picoseconds;
use isles_transport::PlaceId;

impl<H: Handshake> Chunks<H> {
    /// Serves what arrives for a place that stands in a send: takes it, answers, and keeps it for later.
    pub(super) fn serve(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.poll(cores, place);
        let present = cores.present();
        while let Some(fetched) = self.fetch(cores, place, present, false) {
            fetched.into_iter().for_each(|parcel| self.stands.kept.put(place, parcel));
        }
        self.stands.tell(place, news);
    }

    /// Begins the next message of a place whose last one is answered.
    pub(super) fn send_next(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        if self.own_parts(place).next().is_none()
            && let Some((out, load)) = self.stands.of_mut(place).pop()
        {
            news.push((out.to, self.begin(cores, &out, load)));
        }
    }

    /// When a place that stands in a send begins the next message, if it waits for no answer: at once.
    pub(super) fn resumes(&self, place: PlaceId) -> Option<Picoseconds> {
        let is_awaited = self.own_parts(place).next().is_some();
        (!is_awaited && !self.stands.of(place).is_empty()).then_some(Picoseconds::ZERO)
    }

    /// A message that was kept and is wanted now; its sender is told by a flag.
    pub(super) fn unpack(&mut self, cores: &mut Cores, place: PlaceId, control_only: bool) -> Option<Parcel> {
        self.stands.unpack(place, control_only, |source| {
            cores.write_lines(place, source, 1);
            cores.now(place)
        })
    }
}
