//! One place's share of a phaser, and the records of its parties.
//!
//! It only counts; `phasers` decides what follows. Invariant: `active` counts the parties of the share that have not
//! signalled in `phase`, and a phase ends only while it is zero.

use super::Party;
use super::coordinator::Coordinator;
use super::id::PhaserId;
use super::message::{Advanced, Control, Output, PhaserReport, REPORT_ENTRIES_MAX};
use crate::PlaceId;
use crate::place::ExchangeCounts;

/// One place's share of a phaser.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LocalPhaser {
    pub(super) id: PhaserId,
    pub(super) phase: u64,
    /// Number of parties registered here.
    pub(super) parties: u64,
    /// Number of parties here that have not signalled in `phase`.
    pub(super) active: u64,
    /// Parties here that wait for the next phase.
    pub(super) waiting: Vec<Party>,
    /// True if the home knows that all have signalled in `phase`.
    pub(super) is_reported: bool,
    /// Number of unanswered questions.
    pub(super) unanswered: u32,
    /// Registrations exchanged since the last report.
    pub(super) tally: ExchangeCounts,
    /// True if a registration has ever left this place.
    pub(super) has_sent_registrations: bool,
    /// The dead place that was named when `phase` began.
    pub(super) dead: Option<PlaceId>,
    pub(super) role: Role,
}

/// Role of a share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Nothing.
    Free,
    /// The share of the home, which also ends the phases.
    Home(Box<Coordinator>),
    /// The share of another place.
    Member,
    /// A share whose home is dead.
    Orphan(PlaceId),
}

/// A party, as its place records it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartyRecord {
    /// Number of times the record was freed.
    pub(super) generation: u32,
    pub(super) share: u32,
    /// The phase of the party; behind the share's if the party has resumed and not advanced since.
    pub(super) phase: u64,
    pub(super) state: State,
}

/// Progress of a party in its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// There is no party.
    Free,
    /// It has not signalled.
    Active,
    /// It has signalled.
    Resumed,
    /// It has signalled and waits.
    Waiting,
}

impl LocalPhaser {
    /// Makes a share of `id` without parties.
    pub(super) fn new(id: PhaserId, phase: u64, role: Role) -> LocalPhaser {
        LocalPhaser {
            id,
            phase,
            parties: 0,
            active: 0,
            waiting: Vec::new(),
            is_reported: false,
            unanswered: 0,
            tally: ExchangeCounts::default(),
            has_sent_registrations: false,
            dead: None,
            role,
        }
    }

    /// Returns `true` if this share must report to the home.
    pub(super) fn is_report_due(&self) -> bool {
        self.active == 0 && (!self.is_reported || self.unanswered > 0 || !self.tally.is_zero())
    }

    /// Returns everything that the home does not know, in as many parts as needed.
    pub(super) fn reports(&mut self) -> Vec<PhaserReport> {
        let entries: Vec<_> = self.tally.entries().collect();
        let parts = entries.len().div_ceil(REPORT_ENTRIES_MAX).max(1);
        let part = |index: usize| PhaserReport {
            phaser: self.id,
            phase: self.phase,
            parties: self.parties,
            answers: if index + 1 < parts { 0 } else { self.unanswered },
            entries: entries.chunks(REPORT_ENTRIES_MAX).nth(index).unwrap_or_default().to_vec(),
            more: index + 1 < parts,
        };
        let reports = (0..parts).map(part).collect();
        self.is_reported = true;
        self.unanswered = 0;
        self.tally.clear(0);
        reports
    }

    /// Returns the message that begins the current phase at another place.
    pub(super) fn advance(&self) -> Control {
        Control::Advance { phaser: self.id, phase: self.phase, dead: self.dead }
    }

    /// Returns what a party learns when it reaches the current phase.
    pub(super) fn advanced(&self) -> Advanced {
        Advanced { phase: self.phase, dead: self.dead }
    }

    /// Wakes all waiting parties with `advanced`.
    pub(super) fn wake(&mut self, records: &mut [PartyRecord], advanced: Advanced, out: &mut Vec<Output>) {
        for party in self.waiting.drain(..) {
            let record = &mut records[party.record as usize];
            record.phase = advanced.phase;
            record.state = State::Active;
            out.push(Output::Wake { party, advanced });
        }
    }
}
