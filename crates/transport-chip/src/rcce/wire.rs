//! What the world asks of this protocol: who may send, who looks, what is taken, what ends with a place.
//!
//! What passes in a meeting is in `meeting`, what a place does that waits for one in `standing`; here is which of them
//! has its turn. Invariant: a place that stands in a call takes nothing for itself.

use super::register::look_at_registers;
use super::{LIBRARY, Rcce};
use crate::cores::Cores;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{News, Outgoing, Wire};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl Wire for Rcce {
    fn message_bytes_max(&self, _class: Class) -> usize {
        (self.division.chunk_lines * self.division.line_bytes) as usize
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let sending = self.desks[out.from.index()].sending.as_ref();
        let is_under_way = sending.is_some_and(|rest| (rest.target, rest.class) == (out.to, out.class));
        self.stands.admits(out, cores.present()) && !is_under_way
    }

    fn may_stream(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.has_room(cores, out, 0)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        self.post(cores, out, load)
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, block: Load, news: &mut News) {
        news.extend(self.post(cores, out, block).map(|arrival| (out.to, arrival)));
    }

    fn engages(&self) -> bool {
        true
    }

    fn is_engaged(&self, place: PlaceId) -> bool {
        self.desks[place.index()].is_meeting() || !self.stands.of(place).is_empty()
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        self.desks[place.index()].sending.is_some() || !self.stands.of(place).is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.send_on(cores, place, news);
        self.receive_on(cores, place);
        self.stand(cores, place, news);
        self.stands.tell(place, news);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        self.stands.of_mut(place).expire(present);
        cores.read_own_lines(place, self.flag_lines(), Spending::Polling);
        cores.compute(place, self.poll_cycles, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        if self.desks[place.index()].is_meeting() {
            return cores.own_read(place, 1) + cores.cycles(place, LIBRARY.look);
        }
        if let Some(out) = self.stands.of(place).next() {
            return look_at_registers(cores, &out);
        }
        let registers = if with_credits { cores.register(place, place) * 2 } else { Picoseconds::ZERO };
        cores.own_read(place, self.flag_lines()) + cores.cycles(place, self.poll_cycles) + registers
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let desk = &self.desks[place.index()];
        if desk.sending.is_some() {
            return None;
        }
        let kept = self.stands.kept.first_arrival(place).filter(|_| !self.is_engaged(place));
        desk.chunk.as_ref().map(|chunk| chunk.key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let desk = &self.desks[place.index()];
        match &desk.sending {
            Some(rest) => rest.answer,
            None => self.stands.of(place).due().filter(|_| !desk.receiving),
        }
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        let desk = &self.desks[place.index()];
        let has_chunk = desk.chunk.as_ref().is_some_and(|chunk| chunk.source == source);
        has_chunk || self.stands.kept.has_from(source, place)
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
        let chunk = self.desk(place).chunk.take_if(|chunk| chunk.key.time() <= until)?;
        let message = self.receive(cores, place, chunk);
        Some(message.and_then(|parcel| self.stands.sift(place, parcel, control_only)))
    }

    fn tell(&mut self, place: PlaceId, news: &mut News) {
        self.stands.tell(place, news);
    }

    fn give_credits(&mut self, _cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.stands.tell(place, news);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.drop_meeting(place, gone);
        if self.stands.of(place).next().is_some_and(|out| out.to == gone) {
            self.line.leave(place);
        }
        self.stands.of_mut(place).forget(gone);
        for place in [place, gone] {
            self.stands.of_mut(place).may_try(Picoseconds::ZERO); // what stood before it may be dropped
        }
        self.stands.kept.forget_receiver(place, gone);
    }

    /// Who wants to meet `gone` finds its register free, and is let go as soon as it has written.
    fn cut(&mut self, gone: PlaceId) {
        let sending = self.desk(gone).sending.take().filter(|rest| !rest.is_over());
        // What it has written arrives if it is the last of its message; else the receiver is let go.
        if let Some(target) = sending.map(|rest| rest.target)
            && !self.desk(target).holds_end_from(gone)
        {
            self.desk(target).chunk = None;
            self.desk(target).receiving = false;
            self.release(target, Picoseconds::ZERO, target);
        }
        let senders = (0..self.desks.len() as u32).map(PlaceId);
        for place in senders.filter(|place| *place != gone) {
            self.drop_meeting(place, gone);
            self.stands.kept.forget_receiver(place, gone);
        }
        self.stands.of_mut(gone).clear();
        if self.line.leave(gone) {
            let behind: Vec<_> = self.line.places().collect();
            behind.into_iter().for_each(|place| self.stands.of_mut(place).may_try(Picoseconds::ZERO));
        }
        self.stands.kept.clear(gone);
        self.release(gone, Picoseconds::ZERO, gone);
    }
}
