//! What the world asks of these protocols: who may send, who looks, what is taken, what ends with a place.
//!
//! How a chunk passes is in `passage`, what a place does that stands in a send in `standing`; here is which of them has
//! its turn. Invariant: a place that stands in a send takes nothing for itself.

use super::{Chunks, Handshake};
use crate::cores::Cores;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, Wire};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl<H: Handshake> Wire for Chunks<H> {
    fn message_bytes_max(&self, class: Class) -> usize {
        self.handshake.message_bytes_max(class)
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let lane = self.lane_out(out);
        if !H::WAITS {
            return self.becomes_free(cores, lane);
        }
        let is_under_way = self.own_parts(out.from).any(|held| held.lane == lane);
        self.stands.admits(out, cores.present()) && !is_under_way
    }

    fn may_stream(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        if self.is_engaged(out.from) {
            self.stands.of_mut(out.from).push(out, load);
            return None;
        }
        Some(self.begin(cores, out, load))
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, block: Load, news: &mut News) {
        news.extend(self.send(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn engages(&self) -> bool {
        H::WAITS
    }

    fn is_engaged(&self, place: PlaceId) -> bool {
        H::WAITS && (self.own_parts(place).next().is_some() || !self.stands.of(place).is_empty())
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        !self.desks[place.index()].streams.is_empty() || !self.stands.of(place).is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        if self.is_engaged(place) {
            self.serve(cores, place, news);
        }
        self.read_answers(cores, place, self.awaited(place));
        for lane in self.desks[place.index()].streams.clone() {
            let target = self.route_of(lane).target;
            news.extend(self.push(cores, lane).map(|arrival| (target, arrival)));
        }
        self.send_next(cores, place, news);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        if H::POLL_SEES_ANSWERS {
            self.read_answers(cores, place, self.flag_lines());
        } else {
            cores.read_own_lines(place, self.flag_lines(), Spending::Polling);
        }
        cores.compute(place, self.poll_cycles, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        let answers = if with_credits { self.awaited(place) } else { 0 };
        cores.own_read(place, self.flag_lines() + answers) + cores.cycles(place, self.poll_cycles)
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let kept = self.stands.kept.first_arrival(place).filter(|_| !self.is_engaged(place));
        let heads = &self.desks[place.index()].heads;
        heads.first().map(|(key, _)| key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let answers = &self.desks[place.index()].answers;
        let due = if self.is_engaged(place) { self.resumes(place) } else { self.stands.of(place).due() };
        answers.iter().map(|(arrival, _)| *arrival).chain(due).min()
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        self.stands.kept.has_from(source, place)
            || self.pairs.both(source, place).into_iter().any(|lane| self.lanes[lane].arriving.is_some())
    }

    fn take(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<Parcel>> {
        if self.is_engaged(place) {
            return None;
        }
        if let Some(parcel) = self.unpack(cores, place, control_only) {
            return Some(Some(parcel));
        }
        let fetched = self.fetch(cores, place, until, control_only && !H::WAITS)?;
        Some(fetched.and_then(|parcel| self.stands.sift(place, parcel, control_only)))
    }

    /// All is answered already, chunk by chunk.
    fn give_credits(&mut self, _cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.stands.tell(place, news);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.stands.of_mut(place).forget(gone);
        self.stands.kept.forget_receiver(place, gone);
        for lane in self.pairs.both(place, gone) {
            self.lanes[lane].rest = None;
            let part = self.part_of(lane);
            if self.held[part].is_some_and(|held| held.lane == lane) {
                self.held[part] = None;
            }
            let desk = &mut self.desks[place.index()];
            desk.streams.retain(|other| *other != lane);
            desk.answers.retain(|(_, other)| *other != lane);
            // A place that stands in its last send would answer for it.
            self.lanes[lane].arriving = None;
            self.desks[gone.index()].heads.retain(|(_, other)| *other != lane);
        }
    }

    fn cut(&mut self, gone: PlaceId) {
        for lane in std::mem::take(&mut self.desks[gone.index()].streams) {
            self.lanes[lane].rest = None;
        }
        self.stands.kept.clear(gone);
        self.stands.of_mut(gone).clear();
        for (_, lane) in std::mem::take(&mut self.desks[gone.index()].heads) {
            self.lanes[lane].arriving = None;
        }
        if H::WAITS {
            // Who stands in a send to it is let go.
            let senders = (0..self.desks.len() as u32).map(PlaceId);
            senders.filter(|place| *place != gone).for_each(|place| self.forget_receiver(place, gone));
        }
    }
}
