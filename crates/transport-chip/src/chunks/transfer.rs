//! The passage of a message: chunk by chunk into a part of the buffer, and out of it at the receiver.
//!
//! It does not know who stands in a send, nor who wants what was taken. Invariant: a chunk is written only when the one
//! before it is answered, so a part holds one at most and a lane gives them in the order in which they were written.

use super::place_state::{ArrivingChunk, PartInUse, Remainder};
use super::{Chunks, Handshake, Route};
use crate::cores::Cores;
use crate::message::{MessageContent, ReceivedMessage};
use crate::protocol::{Outgoing, RECEIVE_CYCLES, SEND_CYCLES};
use crate::report::TimeCategory;
use isles_chip::cache::StorePolicy;
use isles_chip::kernel::EventClass;
use isles_chip::quantity::Picoseconds;
use isles_transport::{Class, PlaceId};

impl<H: Handshake> Chunks<H> {
    /// Begins a message whose part is free; gives when its first chunk arrives.
    pub(super) fn begin(&mut self, cores: &mut Cores, out: &Outgoing, load: MessageContent) -> Picoseconds {
        let lane = self.lane_out(out);
        cores.compute(out.from, SEND_CYCLES, TimeCategory::Handling);
        let lines = load.len().div_ceil(self.line_bytes) as u32;
        self.lanes[lane].rest = Some(Remainder { handler: out.handler, load, lines });
        self.place_states[out.from.index()].streams.push(lane);
        self.push(cores, lane).expect("a free part takes a chunk")
    }

    /// Writes the next chunk of a lane if its last one is answered; gives when it arrives.
    pub(super) fn push(&mut self, cores: &mut Cores, lane: usize) -> Option<Picoseconds> {
        let (route, part) = (self.route_of(lane), self.part_of(lane));
        if self.held[part].is_some_and(|held| held.awaited) {
            return None;
        }
        let mut rest = self.lanes[lane].rest.take()?;
        let lines = rest.lines.min(self.handshake.chunk_lines(route.class));
        rest.lines -= lines;
        cores.load_private(route.source, lines, rest.load.len());
        H::put(cores, route, lines);
        let (arrival, of) = (cores.now(route.source), rest.load.len());
        self.held[part] = Some(PartInUse { lane, awaited: true });
        let message = if rest.lines == 0 {
            self.place_states[route.source.index()].streams.retain(|other| *other != lane);
            Some((rest.handler, rest.load))
        } else {
            self.lanes[lane].rest = Some(rest);
            None
        };
        self.lanes[lane].arriving = Some(ArrivingChunk { arrival, lines, of, message });
        let key = self.tie_break.key(arrival, EventClass::Arrival, lane as u32, 0);
        self.place_states[route.target.index()].heads.insert((key, lane));
        Some(arrival)
    }

    /// Takes the first chunk, of both classes or of control only, that had arrived at `until`; `Some(None)` if it was
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
        H::get(cores, route, chunk.lines);
        cores.store_private(place, chunk.lines, chunk.of, StorePolicy::Prefetching);
        let answered = cores.now(place);
        self.place_states[route.source.index()].answers.push((answered, lane));
        self.blocking_sends.answer(place, route.source, answered);
        let Route { source, class, .. } = route;
        let arrival = chunk.arrival;
        Some(chunk.message.map(|(handler, load)| ReceivedMessage { source, class, handler, load, arrival }))
    }
}
