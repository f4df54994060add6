//! State of all places at the home of a phaser: their parties, their reports, and registrations in transit.
//!
//! A phase is over when each place with parties has reported in it, all balances of travelling registrations are zero,
//! and no question is unanswered; docs/design/finish.md proves the same for a finish. It sends nothing itself.
//! Invariant: `lagging` counts the members for which `lags` holds.

use super::message::PhaserReport;
use crate::PlaceId;
use crate::ordered::OrderedMap;

/// The home's view of a phaser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Coordinator {
    members: OrderedMap<PlaceId, Member>,
    /// Registrations reported sent minus those reported received, by (receiver, sender); no zeros.
    balances: OrderedMap<(PlaceId, PlaceId), i64>,
    lagging: usize,
    /// A dead place that had parties in this phase.
    pub(super) dead: Option<PlaceId>,
}

/// State of one place at the home, itself included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Member {
    parties: u64,
    /// The phase of the last complete report.
    reported: Option<u64>,
    unanswered: u32,
    /// True while a report has begun and not ended.
    partial: bool,
}

impl Member {
    fn lags(&self, phase: u64) -> bool {
        self.partial || self.unanswered > 0 || (self.parties > 0 && self.reported != Some(phase))
    }
}

impl Coordinator {
    /// Makes the coordinator of a new phaser with one party at `home`.
    pub(super) fn new(home: PlaceId) -> Coordinator {
        let member = Member { parties: 1, ..Member::default() };
        Coordinator { members: OrderedMap::from_iter([(home, member)]), lagging: 1, ..Coordinator::default() }
    }

    fn change(&mut self, place: PlaceId, phase: u64, change: impl FnOnce(&mut Member)) {
        let member = self.members.get_or_default(place);
        let before = usize::from(member.lags(phase));
        change(member);
        self.lagging = self.lagging - before + usize::from(member.lags(phase));
    }

    /// Returns the number of unanswered questions to `place`.
    pub(super) fn unanswered(&self, place: PlaceId) -> u32 {
        self.members.get(place).map_or(0, |member| member.unanswered)
    }

    /// Enters a report of `place`, or a part of one, in `phase`; `is_alive` tells dead places apart.
    pub(super) fn enter(
        &mut self,
        place: PlaceId,
        phase: u64,
        report: &PhaserReport,
        is_alive: impl Fn(PlaceId) -> bool,
    ) {
        self.change(place, phase, |member| {
            member.partial = report.more;
            if !report.more {
                member.parties = report.parties;
                member.reported = Some(report.phase);
                member.unanswered = member.unanswered.saturating_sub(report.answers);
            }
        });
        for entry in &report.entries {
            if is_alive(entry.place) {
                self.members.get_or_default(entry.place);
                self.add(entry.place, place, amount(entry.sent));
                self.add(place, entry.place, amount(entry.received).saturating_neg());
            } else {
                self.dead = Some(entry.place);
            }
        }
    }

    fn add(&mut self, to: PlaceId, from: PlaceId, amount: i64) {
        if amount == 0 {
            return;
        }
        let balance = self.balances.get_or_default((to, from));
        *balance = balance.saturating_add(amount);
        if *balance == 0 {
            self.balances.remove((to, from));
        }
    }

    /// Records that a question was sent to `place`.
    pub(super) fn ask(&mut self, place: PlaceId, phase: u64) {
        self.change(place, phase, |member| member.unanswered = member.unanswered.saturating_add(1));
    }

    /// Removes everything about `place`, which is dead.
    pub(super) fn mark_dead(&mut self, place: PlaceId, phase: u64) {
        let before = self.balances.len();
        self.balances.retain(|(to, from), _| to != place && from != place);
        let mut involved = self.balances.len() < before;
        if let Some(member) = self.members.remove(place) {
            self.lagging -= usize::from(member.lags(phase));
            involved |= member.parties > 0;
        }
        if involved {
            self.dead = Some(place);
        }
    }

    /// Returns `true` if all parties of all places have signalled in the current phase.
    pub(super) fn is_complete(&self) -> bool {
        self.lagging == 0 && self.balances.is_empty()
    }

    /// Begins a phase, in which every member with parties must report again. Returns those members.
    pub(super) fn begin(&mut self) -> impl Iterator<Item = PlaceId> {
        self.members.retain(|_, member| member.parties > 0);
        self.lagging = self.members.len();
        self.members.keys()
    }

    /// Returns `true` if no party is known.
    pub(super) fn is_empty(&self) -> bool {
        self.members.values().all(|member| member.parties == 0)
    }

    /// Returns the places that the current phase waits for: they have not reported, or registrations travel to them.
    pub(super) fn laggards(&self, phase: u64) -> Vec<PlaceId> {
        let lagging = self.members.iter().filter(|(_, member)| member.lags(phase)).map(|(place, _)| place);
        let mut places: Vec<_> = lagging.chain(self.balances.keys().map(|(to, _)| to)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// Converts a count to a balance; a peer's absurd count becomes the largest balance.
fn amount(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
