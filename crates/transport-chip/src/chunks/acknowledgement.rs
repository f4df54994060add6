//! Answers: what a sender knows of its parts of the buffer, and what it reads to know more.
//!
//! It does not know what lies in a part. Invariant: a part is held from its first chunk until the sender has seen the
//! answer for the last one.

use super::place_state::PartInUse;
use super::{Chunks, Handshake};
use crate::cores::Cores;
use crate::report::TimeCategory;
use isles_transport::PlaceId;

impl<H: Handshake> Chunks<H> {
    /// What the parts of `place` hold.
    pub(super) fn own_parts(&self, place: PlaceId) -> impl Iterator<Item = &PartInUse> {
        let parts = self.held.len() / self.place_states.len();
        self.held[place.index() * parts..][..parts].iter().flatten()
    }

    /// Parts of `place` whose last chunk is not answered, if that is to be looked at apart from polls.
    pub(super) fn awaited(&self, place: PlaceId) -> u32 {
        if H::POLL_SEES_ANSWERS {
            return 0;
        }
        self.own_parts(place).filter(|held| held.awaited).count() as u32
    }

    /// Lines of flags that a poll reads.
    pub(super) fn flag_lines(&self) -> u32 {
        self.place_states.len() as u32 - 1
    }

    fn is_free(&self, lane: usize) -> bool {
        self.held[self.part_of(lane)].is_none()
    }

    /// Whether the part of `lane` is free; looks at the flags of answers if some are on their way.
    pub(super) fn becomes_free(&mut self, cores: &mut Cores, lane: usize) -> bool {
        let place = self.route_of(lane).source;
        if !self.is_free(lane) && !self.place_states[place.index()].answers.is_empty() {
            let lines = if H::POLL_SEES_ANSWERS { 1 } else { self.awaited(place) };
            self.read_answers(cores, place, lines);
        }
        self.is_free(lane)
    }

    /// Reads `lines` lines of flags, and takes the answers that had arrived when the turn began.
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
