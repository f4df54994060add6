//! `rcce`: the library itself. Both sides meet, and do nothing else until all has passed.
//!
//! ```text
//! world   two lines                    flags of the library's barrier
//! sent    one line for each place      written by that place, cleared by the owner
//! ready   one line for each place      written by that place, cleared by the owner
//! chunk   what is left                 written by the owner, read by the receiver
//! ```
//!
//! The test-and-set registers of both cores are taken before a meeting, so who waits in a send never waits for somebody
//! who waits in a send. What a place does not want yet it keeps: one message of each sender and class. Why that is
//! enough is in `docs/twin.md`; what the instructions cost is that of the library on bare cores
//! (`isles_chip::bare::rcce`), fitted there. Both classes share all.
//!
//! It does not know turns or deaths: `state` tells it what to forget, and gives no turns to who stands in a meeting.
//! Invariant: a place is in one meeting at most, and its register is taken until the last chunk is answered.

mod desk;

use crate::cores::Cores;
use crate::energy::meter::NEVER;
use crate::kept::Kept;
use crate::parcel::{Load, Parcel};
use crate::report::Spending;
use crate::wire::{FLAG_CYCLES, MESSAGE_BYTES_MIN, News, Outgoing, POLL_CYCLES, Wire};
use desk::{Chunk, Desk, Sending};
use isles_chip::bare::rcce::Library;
use isles_chip::kernel::{EventClass, Ties};
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

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

    /// Whether both can meet now; if not, who asks hears of it when they can. It looks at the registers.
    fn can_meet(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        let Outgoing { from, to, class, .. } = *out;
        let present = cores.present();
        self.desk(from).due.take_if(|due| *due <= present); // what it allowed is asked for now
        self.clear_the_way(cores, from);
        let held = self.kept.until(from, to, class);
        if held > present {
            if held != NEVER {
                self.desk(from).may_try(held);
            }
            return false; // it will be told
        }
        let taken = [from, to].into_iter().find(|place| self.desks[place.index()].taken);
        let (free, giver) = self.desks[to.index()].free;
        if taken.is_none() && (free <= present || giver == Some(from)) {
            return true;
        }
        if !self.is_engaged(from) {
            let looks = cores.register(from, from) + cores.register(from, to);
            cores.spend(from, looks, Spending::Polling);
        }
        match taken {
            Some(taken) => self.desk(taken).await_register(from),
            None => self.desk(from).may_try(free),
        }
        false
    }

    /// Receives what has come for who wants to send, so that its register is free again; it is wanted later.
    fn clear_the_way(&mut self, cores: &mut Cores, place: PlaceId) {
        if self.is_engaged(place) {
            return;
        }
        let present = cores.present();
        let Some(chunk) = self.desk(place).chunk.take_if(|chunk| chunk.key.time() <= present) else { return };
        if let Some(parcel) = self.receive(cores, place, chunk) {
            self.kept.put(place, parcel);
        }
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
        let registers = cores.register(from, from) + cores.register(from, to);
        cores.spend(from, registers, Spending::Handling);
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
        set_flag(cores, place, chunk.source);
        let answer = cores.now(place);
        self.desk(place).answered.push((chunk.source, answer));
        if let Some(rest) = &mut self.desk(chunk.source).sending {
            rest.answer = Some(answer);
        }
    }

    /// The register of `owner` is given back; those who wait for it hear of that from `teller`.
    fn release(&mut self, owner: PlaceId, time: Picoseconds, teller: PlaceId) {
        (self.desk(owner).taken, self.desk(owner).free) = (false, (time, Some(teller)));
        for other in std::mem::take(&mut self.desk(owner).waiters) {
            self.desk(other).may_try(time);
            self.desk(teller).answered.push((other, time));
        }
    }

    /// Ends what `place` sends, whatever has become of it.
    fn drop_sending(&mut self, place: PlaceId) {
        self.desk(place).sending = None;
        self.release(place, Picoseconds::ZERO, place);
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

    /// The receiver's part of a meeting between the first chunk and the last one, which it takes in its own turn.
    fn receive_on(&mut self, cores: &mut Cores, place: PlaceId) {
        if !self.desks[place.index()].receiving {
            return;
        }
        cores.compute(place, LIBRARY.look, Spending::Polling);
        cores.read_own_lines(place, 1, Spending::Polling);
        let seen = cores.present();
        let Some(chunk) = self.desk(place).chunk.take_if(|chunk| chunk.key.time() <= seen) else { return };
        if chunk.message.is_some() {
            self.desk(place).chunk = Some(chunk);
            self.desk(place).receiving = false;
        } else {
            self.get(cores, place, &chunk);
        }
    }

    /// A message that was kept and is wanted now; its sender hears that it may send another one.
    fn unpack(&mut self, cores: &mut Cores, place: PlaceId, control_only: bool) -> Option<Parcel> {
        let parcel = self.kept.take(place, control_only)?;
        let source = parcel.source;
        set_flag(cores, place, source);
        let time = cores.now(place);
        self.kept.release(place, &parcel, time);
        self.desk(source).may_try(time);
        self.desk(place).answered.push((source, time));
        Some(parcel)
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
        self.can_meet(cores, out)
    }

    fn may_stream(&mut self, cores: &mut Cores, out: &Outgoing) -> bool {
        self.can_meet(cores, out)
    }

    fn send(&mut self, cores: &mut Cores, out: &Outgoing, load: Load) -> Option<Picoseconds> {
        Some(self.begin(cores, out, load))
    }

    fn stream(&mut self, cores: &mut Cores, out: &Outgoing, block: Load, news: &mut News) {
        news.push((out.to, self.begin(cores, out, block)));
    }

    fn engages(&self) -> bool {
        true
    }

    fn is_engaged(&self, place: PlaceId) -> bool {
        let desk = &self.desks[place.index()];
        desk.sending.is_some() || desk.receiving
    }

    fn has_streams(&self, place: PlaceId) -> bool {
        self.desks[place.index()].sending.is_some()
    }

    fn attend(&mut self, cores: &mut Cores, place: PlaceId, news: &mut News) {
        self.send_on(cores, place, news);
        self.receive_on(cores, place);
        news.append(&mut self.desk(place).answered);
    }

    fn poll(&mut self, cores: &mut Cores, place: PlaceId) {
        let present = cores.present();
        self.desk(place).due.take_if(|due| *due <= present);
        cores.read_own_lines(place, self.flag_lines(), Spending::Polling);
        cores.compute(place, self.poll_cycles, Spending::Polling);
    }

    fn poll_period(&self, cores: &Cores, place: PlaceId, with_credits: bool) -> Picoseconds {
        if self.is_engaged(place) {
            return cores.own_read(place, 1) + cores.cycles(place, LIBRARY.look);
        }
        let registers = if with_credits { cores.register(place, place) * 2 } else { Picoseconds::ZERO };
        cores.own_read(place, self.flag_lines()) + cores.cycles(place, self.poll_cycles) + registers
    }

    fn first_arrival(&self, place: PlaceId) -> Option<Picoseconds> {
        let desk = &self.desks[place.index()];
        if desk.sending.is_some() {
            return None;
        }
        let kept = self.kept.first_arrival(place).filter(|_| !desk.receiving);
        desk.chunk.as_ref().map(|chunk| chunk.key.time()).into_iter().chain(kept).min()
    }

    fn first_credit(&self, place: PlaceId) -> Option<Picoseconds> {
        let desk = &self.desks[place.index()];
        match &desk.sending {
            Some(rest) => rest.answer,
            None => desk.due,
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
        if self.desk(place).sending.as_ref().is_some_and(|rest| rest.target == gone) {
            self.drop_sending(place);
        }
        if self.desk(gone).chunk.as_ref().is_some_and(|chunk| chunk.source == place) {
            self.desk(gone).chunk = None;
        }
        self.kept.forget_receiver(place, gone);
    }

    fn cut(&mut self, gone: PlaceId) {
        let sending = self.desk(gone).sending.take();
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
            self.forget_receiver(place, gone);
        }
        let desk = self.desk(gone);
        (desk.chunk, desk.receiving) = (None, false);
        self.kept.clear(gone);
        self.release(gone, Picoseconds::ZERO, gone);
    }
}
