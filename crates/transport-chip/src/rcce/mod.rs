//! `rcce`: the library itself. Both sides meet, and do nothing else until all has passed.
//!
//! ```text
//! world   two lines                    flags of the library's barrier
//! sent    one line for each place      written by that place, cleared by the owner
//! ready   one line for each place      written by that place, cleared by the owner
//! chunk   what is left                 written by the owner, read by the receiver
//! ```
//!
//! The test-and-set registers of both cores are taken before a meeting, so who waits for an answer never waits for
//! somebody who does. Who cannot have them stands in its send until it can, and receives what others send to it. What
//! a place does not want yet it keeps: one message of each sender and class. Why that is enough is in `docs/twin.md`;
//! what the instructions cost is that of the library on bare cores (`isles_chip::bare::rcce`), fitted there. Both
//! classes share all.
//!
//! It does not know turns or deaths: `state` tells it what to forget, and gives no turns to who stands in a call.
//! Invariant: a place is in one meeting at most, and its register is taken until the last chunk is answered.

mod desk;
mod line;
mod standing;

use crate::cores::Cores;
use crate::kept::Kept;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{FLAG_CYCLES, MESSAGE_BYTES_MIN, News, Outgoing, POLL_CYCLES, Wire};
use desk::{Chunk, Desk, Sending};
use isles_chip::bare::rcce::Library;
use isles_chip::cache::Copy;
use isles_chip::kernel::{EventClass, Ties};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};
use line::Line;
use standing::look_at_registers;

/// Lines of flags for each place: sent and ready.
const FLAG_LINES: u32 = 2;

/// Lines of flags of the library's barrier.
const WORLD_LINES: u32 = 2;

/// What the library's instructions cost.
const LIBRARY: Library = Library::RCCE;

/// The division of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    chunk_lines: u32,
    line_bytes: u32,
}

impl Division {
    /// The division of `lines` lines among `places` places.
    ///
    /// # Errors
    /// The least number of lines that would do.
    pub(crate) fn new(places: u32, lines: u32, line_bytes: u32) -> Result<Division, u32> {
        let flags = WORLD_LINES + FLAG_LINES * places;
        let least = flags + MESSAGE_BYTES_MIN.div_ceil(line_bytes);
        if lines < least { Err(least) } else { Ok(Division { chunk_lines: lines - flags, line_bytes }) }
    }
}

/// All buffers of a run.
pub(crate) struct Rcce {
    division: Division,
    ties: Ties,
    desks: Vec<Desk>,
    /// What places have received and did not want yet.
    kept: Kept,
    /// Who waits for registers.
    line: Line,
    /// Instructions of a poll.
    poll_cycles: u64,
}

impl Rcce {
    pub(crate) fn new(division: Division, places: u32, ties: Ties) -> Rcce {
        let places = places as usize;
        Rcce {
            division,
            ties,
            desks: std::iter::repeat_with(Desk::default).take(places).collect(),
            kept: Kept::new(places),
            line: Line::default(),
            poll_cycles: POLL_CYCLES + FLAG_CYCLES * (places as u64 - 1),
        }
    }

    fn desk(&mut self, place: PlaceId) -> &mut Desk {
        &mut self.desks[place.index()]
    }

    /// Lines of flags that a poll reads.
    fn flag_lines(&self) -> u32 {
        self.desks.len() as u32 - 1
    }

    /// Takes a chunk in; the message, if it was the last of it.
    fn receive(&mut self, cores: &mut Cores, place: PlaceId, chunk: Chunk) -> Option<Parcel> {
        self.get(cores, place, &chunk);
        let Some(parcel) = chunk.open() else {
            self.desk(place).receiving = true;
            return None;
        };
        cores.compute(place, self.tail(&parcel.load), Spending::Handling);
        // Both: the sender has nothing more to wait for.
        for owner in [place, parcel.source] {
            cores.spend(place, cores.register(place, owner), Spending::Handling);
            self.release(owner, cores.now(place), place);
        }
        Some(parcel)
    }

    /// What the end of a message costs each side if it is no whole line.
    fn tail(&self, load: &Load) -> u64 {
        if load.len().is_multiple_of(self.division.line_bytes as usize) { 0 } else { LIBRARY.tail }
    }

    /// Takes both registers and sends the first chunk; gives when that arrives.
    fn begin(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Picoseconds {
        let Outgoing { from, to, class, handler } = *out;
        cores.spend(from, look_at_registers(cores, out), Spending::Handling);
        for place in [from, to] {
            self.desk(place).taken = true;
        }
        let lines = load.len().div_ceil(self.division.line_bytes as usize) as u32;
        cores.compute(from, self.tail(&load), Spending::Handling);
        let sending = Sending { target: to, class, handler, load, left: lines };
        self.put(cores, from, sending)
    }

    /// Puts the next chunk of a message and sets the flag; gives when that arrives.
    fn put(&mut self, cores: &mut Cores, place: PlaceId, mut sending: Sending) -> Picoseconds {
        let lines = sending.left.min(self.division.chunk_lines);
        sending.left -= lines;
        copy(cores, place, lines);
        cores.load_private(place, lines, sending.load.len());
        cores.write_lines(place, place, lines);
        set_flag(cores, place, sending.target);
        let (arrival, target) = (cores.now(place), sending.target);
        let key = self.ties.key(arrival, EventClass::Arrival, place.0, 0);
        let (chunk, rest) = sending.split(key, place, lines);
        self.desk(target).chunk = Some(chunk);
        self.desk(place).sending = Some(rest);
        arrival
    }

    /// Takes the chunk of a receiver and answers for it.
    fn get(&mut self, cores: &mut Cores, place: PlaceId, chunk: &Chunk) {
        set_flag(cores, place, place); // clears it
        copy(cores, place, chunk.lines);
        cores.read_lines(place, chunk.source, chunk.lines, Spending::Copying);
        cores.store_private(place, chunk.lines, chunk.of, Copy::Storing);
        set_flag(cores, place, chunk.source);
        let answer = cores.now(place);
        self.desk(place).answered.push((chunk.source, answer));
        if let Some(rest) = &mut self.desk(chunk.source).sending {
            rest.answer = Some(answer);
        }
    }

    /// The register of `owner` is given back; who is next, and the owner if it wants to send, hear of it by `teller`.
    fn release(&mut self, owner: PlaceId, time: Picoseconds, teller: PlaceId) {
        (self.desk(owner).taken, self.desk(owner).free) = (false, (time, Some(teller)));
        let own = Some(owner).filter(|owner| self.line.holds(*owner));
        for other in self.line.first_for(owner).into_iter().chain(own) {
            self.desk(other).stand.may_try(time);
            self.desk(teller).answered.push((other, time));
        }
    }

    /// Ends the meeting in which `place` sends to `gone`, if there is one.
    fn drop_meeting(&mut self, place: PlaceId, gone: PlaceId) {
        let sending = &mut self.desks[place.index()].sending;
        if sending.take_if(|rest| rest.target == gone && !rest.is_over()).is_none() {
            return;
        }
        (self.desk(gone).chunk, self.desk(gone).receiving) = (None, false);
        for owner in [place, gone] {
            self.release(owner, Picoseconds::ZERO, place);
        }
        self.desk(place).stand.may_try(Picoseconds::ZERO); // what it sends next
    }

    /// The sender's part of a meeting, if the answer had come when the turn began.
    fn send_on(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        let Some(rest) = &self.desks[place.index()].sending else { return };
        cores.compute(place, LIBRARY.look, Spending::Polling);
        cores.read_own_lines(place, 1, Spending::Polling);
        let seen = cores.present();
        if rest.answer.is_none_or(|answer| answer > seen) {
            return;
        }
        set_flag(cores, place, place); // clears it
        let Some(rest) = self.desk(place).sending.take() else { return };
        if let Some(sending) = rest.going_on() {
            let target = sending.target;
            news.push((target, self.put(cores, place, sending)));
        }
    }

    /// The receiver's part of a meeting between the first chunk and the last one, which it takes in its own turn if it
    /// does not stand in a send.
    fn receive_on(&mut self, cores: &mut Cores, place: PlaceId) {
        if !self.desks[place.index()].receiving {
            return;
        }
        cores.compute(place, LIBRARY.look, Spending::Polling);
        cores.read_own_lines(place, 1, Spending::Polling);
        let seen = cores.present();
        let Some(chunk) = self.desk(place).chunk.take_if(|chunk| chunk.key.time() <= seen) else { return };
        if chunk.message.is_none() {
            self.get(cores, place, &chunk);
            return;
        }
        self.desk(place).receiving = false;
        if self.desk(place).stand.is_empty() {
            self.desk(place).chunk = Some(chunk);
        } else {
            self.take_in(cores, place, chunk);
        }
    }
}

/// The call that writes a flag, and its line.
fn set_flag(cores: &mut Cores, place: PlaceId, of: PlaceId) {
    cores.compute(place, LIBRARY.call, Spending::Handling);
    cores.write_lines(place, of, 1);
}

/// The call that puts or gets lines, beside their accesses; the published ones hold those to private lines in a cache.
fn copy(cores: &mut Cores, place: PlaceId, lines: u32) {
    cores.compute(place, LIBRARY.call + LIBRARY.line * u64::from(lines), Spending::Handling);
}

impl Wire for Rcce {
    fn message_bytes_max(&self, _class: Class) -> usize {
        (self.division.chunk_lines * self.division.line_bytes) as usize
    }

    fn has_room(&mut self, cores: &mut Cores, out: &Outgoing, _len: usize) -> bool {
        let desk = &mut self.desks[out.from.index()];
        let is_under_way =
            desk.sending.as_ref().is_some_and(|rest| (rest.target, rest.class) == (out.to, out.class));
        desk.stand.admits(&self.kept, out, cores.present()) && !is_under_way
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
        let desk = &self.desks[place.index()];
        desk.is_meeting() || !desk.stand.is_empty()
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        let Desk { sending, stand, .. } = &self.desks[place.index()];
        sending.is_some() || !stand.is_empty()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.send_on(cores, place, news);
        self.receive_on(cores, place);
        self.stand(cores, place, news);
        news.append(&mut self.desk(place).answered);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        self.desk(place).stand.expire(present);
        cores.read_own_lines(place, self.flag_lines(), Spending::Polling);
        cores.compute(place, self.poll_cycles, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        let desk = &self.desks[place.index()];
        if desk.is_meeting() {
            return cores.own_read(place, 1) + cores.cycles(place, LIBRARY.look);
        }
        if let Some(out) = desk.stand.next() {
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
        let kept = self.kept.first_arrival(place).filter(|_| !self.is_engaged(place));
        desk.chunk.as_ref().map(|chunk| chunk.key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let desk = &self.desks[place.index()];
        match &desk.sending {
            Some(rest) => rest.answer,
            None => desk.stand.due().filter(|_| !desk.receiving),
        }
    }

    fn has_mail(&self, source: PlaceId, place: PlaceId) -> bool {
        let desk = &self.desks[place.index()];
        let has_chunk = desk.chunk.as_ref().is_some_and(|chunk| chunk.source == source);
        has_chunk || self.kept.has_from(source, place)
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
        match self.receive(cores, place, chunk) {
            Some(parcel) if control_only && parcel.class == Class::Data => {
                self.kept.put(place, parcel);
                Some(None)
            }
            message => Some(message),
        }
    }

    fn tell(&mut self, place: PlaceId, news: &mut News) {
        news.append(&mut self.desk(place).answered);
    }

    fn give_credits(&mut self, _cores: &mut Cores, place: PlaceId, news: &mut News) {
        news.append(&mut self.desk(place).answered);
    }

    fn forget_receiver(&mut self, place: PlaceId, gone: PlaceId) {
        self.drop_meeting(place, gone);
        if self.desk(place).stand.next().is_some_and(|out| out.to == gone) {
            self.line.leave(place);
        }
        self.desk(place).stand.forget(gone);
        for place in [place, gone] {
            self.desk(place).stand.may_try(Picoseconds::ZERO); // what stood before it may be dropped
        }
        self.kept.forget_receiver(place, gone);
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
            self.kept.forget_receiver(place, gone);
        }
        self.desk(gone).stand.clear();
        if self.line.leave(gone) {
            let behind: Vec<_> = self.line.places().collect();
            behind.into_iter().for_each(|place| self.desk(place).stand.may_try(Picoseconds::ZERO));
        }
        self.kept.clear(gone);
        self.release(gone, Picoseconds::ZERO, gone);
    }
}
