//! The transfer of a message, chunk by chunk: writing, taking and answering.
//!
//! After the transfer come the answers, as seen by the sender, and the operations of a place blocked in a send
//! ([`Handshake::WAITS`]). Invariants: a chunk is written only after the previous one is answered, so a part holds at
//! most one and a lane delivers chunks in order; a place blocked in a send keeps at most one message of each sender and
//! class, because senders check this before they send.

use super::{ArrivingChunk, Chunks, Handshake, PartInUse, Remainder, Route};
use crate::cores::Cores;
use crate::protocol::inbox::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, ProtocolModel, RECEIVE_CYCLES, SEND_CYCLES, Wakeups};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl<H: Handshake> Chunks<H> {
    /// Starts a message whose part is free; returns the arrival time of its first chunk.
    pub(super) fn begin(
        &mut self,
        cores: &mut Cores,
        out: &Outgoing,
        content: MessageContent,
    ) -> Picoseconds {
        let lane = self.lane_out(out);
        cores.compute(out.from, SEND_CYCLES, TimeCategory::Handling);
        let lines = content.len().div_ceil(self.line_bytes) as u32;
        self.lanes[lane].rest = Some(Remainder { handler: out.handler, content, lines });
        self.place_states[out.from.index()].streams.push(lane);
        self.push(cores, lane).expect("a free part takes a chunk")
    }

    /// Writes the next chunk of a lane if its last one is answered; returns the arrival time.
    pub(super) fn push(&mut self, cores: &mut Cores, lane: usize) -> Option<Picoseconds> {
        let (route, part) = (self.route_of(lane), self.part_of(lane));
        if self.held[part].is_some_and(|held| held.awaited) {
            return None;
        }
        let mut rest = self.lanes[lane].rest.take()?;
        let of = rest.content.len();
        let lines = rest.lines.min(self.handshake.chunk_lines(route.class, of));
        rest.lines -= lines;
        cores.load_private(route.source, lines, of);
        self.handshake.put(cores, route, lines, of);
        let arrival = cores.now(route.source);
        self.held[part] = Some(PartInUse { lane, awaited: true });
        let message = if rest.lines == 0 {
            self.place_states[route.source.index()].streams.retain(|other| *other != lane);
            Some((rest.handler, rest.content))
        } else {
            self.lanes[lane].rest = Some(rest);
            None
        };
        self.lanes[lane].arriving = Some(ArrivingChunk { arrival, lines, of, message });
        let key = self.tie_break.key(arrival, EventClass::Arrival, lane as u32, 0);
        self.place_states[route.target.index()].heads.insert((key, lane));
        Some(arrival)
    }

    /// Takes the first chunk, of either class or of control only, that had arrived at `until`; `Some(None)` if it was
    /// not the last of its message.
    pub(super) fn fetch(
        &mut self,
        cores: &mut Cores,
        place: PlaceId,
        until: Picoseconds,
        control_only: bool,
    ) -> Option<Option<ReceivedMessage>> {
        let wanted = |lane: usize| !control_only || lane % 2 == Class::Control as usize;
        let place_state = &mut self.place_states[place.index()];
        let visible = place_state.heads.iter().take_while(|(key, _)| key.time() <= until);
        let head = *visible.into_iter().find(|(_, lane)| wanted(*lane))?;
        place_state.heads.remove(&head);
        let (lane, route) = (head.1, self.route_of(head.1));
        let chunk = self.lanes[lane].arriving.take()?;
        cores.compute(place, RECEIVE_CYCLES, TimeCategory::Handling);
        self.handshake.get(cores, route, chunk.lines, chunk.of);
        cores.store_private(place, chunk.lines, chunk.of, StorePolicy::Prefetching);
        let answered = cores.now(place);
        self.place_states[route.source.index()].answers.push((answered, lane));
        self.blocking_sends.answer(place, route.source, answered);
        let Route { source, class, .. } = route;
        let arrival = chunk.arrival;
        Some(chunk.message.map(|(handler, content)| ReceivedMessage {
            source,
            class,
            handler,
            content,
            arrival,
        }))
    }
}

impl<H: Handshake> Chunks<H> {
    /// Returns the parts of `place` in use.
    pub(super) fn own_parts(&self, place: PlaceId) -> impl Iterator<Item = &PartInUse> {
        let parts = self.held.len() / self.place_states.len();
        self.held[place.index() * parts..][..parts].iter().flatten()
    }

    /// Returns the number of parts of `place` with an unanswered chunk, if polls do not see answers.
    pub(super) fn awaited(&self, place: PlaceId) -> u32 {
        if H::POLL_SEES_ANSWERS {
            return 0;
        }
        self.own_parts(place).filter(|held| held.awaited).count() as u32
    }

    /// Returns the number of flag lines that a poll reads.
    pub(super) fn flag_lines(&self) -> u32 {
        self.place_states.len() as u32 - 1
    }

    fn is_free(&self, lane: usize) -> bool {
        self.held[self.part_of(lane)].is_none()
    }

    /// Returns `true` if the part of `lane` is free; reads the answer flags first if answers are in flight.
    pub(super) fn becomes_free(&mut self, cores: &mut Cores, lane: usize) -> bool {
        let place = self.route_of(lane).source;
        if !self.is_free(lane) && !self.place_states[place.index()].answers.is_empty() {
            let lines = if H::POLL_SEES_ANSWERS { 1 } else { self.awaited(place) };
            self.read_answers(cores, place, lines);
        }
        self.is_free(lane)
    }

    /// Reads `lines` lines of flags, and takes the answers that had arrived at the start of the turn.
    pub(super) fn read_answers(&mut self, cores: &mut Cores, place: PlaceId, lines: u32) {
        cores.read_own_lines(place, lines, TimeCategory::Polling);
        let seen = cores.present();
        let answers = std::mem::take(&mut self.place_states[place.index()].answers);
        let (arrived, under_way): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(time, _)| *time <= seen);
        self.place_states[place.index()].answers = under_way;
        for (_, lane) in arrived {
            if !H::POLL_SEES_ANSWERS {
                cores.write_lines(place, place, 1);
            }
            let part = self.part_of(lane);
            let more = self.lanes[lane].rest.is_some();
            self.held[part] = more.then_some(PartInUse { lane, awaited: false });
        }
    }
}

impl<H: Handshake> Chunks<H> {
    /// Serves arrivals for a place blocked in a send: takes, answers and keeps them.
    pub(super) fn serve(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        self.poll(cores, place);
        let present = cores.present();
        while let Some(fetched) = self.fetch(cores, place, present, false) {
            fetched.into_iter().for_each(|message| self.blocking_sends.kept.put(place, message));
        }
        self.blocking_sends.drain_wakeups(place, wakeups);
    }

    /// Starts the next message of a place whose last one is answered.
    pub(super) fn send_next(&mut self, cores: &mut Cores, place: PlaceId, wakeups: &mut Wakeups) {
        if self.own_parts(place).next().is_none()
            && let Some((out, content)) = self.blocking_sends.of_mut(place).pop()
        {
            wakeups.push((out.to, self.begin(cores, &out, content)));
        }
    }

    /// Returns the time at which a place blocked in a send can start the next message: at once, or `None` if it waits
    /// for an answer.
    pub(super) fn resumes(&self, place: PlaceId) -> Option<Picoseconds> {
        let is_awaited = self.own_parts(place).next().is_some();
        (!is_awaited && !self.blocking_sends.of(place).is_empty()).then_some(Picoseconds::ZERO)
    }

    /// Returns a message that was deferred and is wanted now; its sender is notified by a flag.
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
