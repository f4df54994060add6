//! All phasers at one place: the interface of the runtime to the protocol.
//!
//! Each place has one object. It keeps no time and runs no task: the runtime wakes the tasks that it names. Misuse by
//! the program is a typed error, never a panic. Invariant: each share that is not free has parties, or belongs to a
//! phaser that is not over.

use super::coordinator::Coordinator;
use super::id::{Party, PhaserId, RegistrationTransfer};
use super::local_phaser::{LocalPhaser, PartyRecord, Role, State};
use super::message::{Advanced, Control, Output, PhaserError, PhaserReport, Violation};
use crate::PlaceId;
use crate::ordered::OrderedMap;
use crate::place::MembershipView;

/// The phasers of one place, opened here or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phasers {
    membership: MembershipView,
    pub(super) shares: Vec<LocalPhaser>,
    free_shares: Vec<u32>,
    records: Vec<PartyRecord>,
    free_records: Vec<u32>,
    /// Shares of phasers of other, live homes.
    members: OrderedMap<(PlaceId, u64), u32>,
    /// The serial of the next phaser opened here.
    serial: u64,
}

impl Phasers {
    /// Makes the phasers of place `here` in a run of `places` places; none at first.
    ///
    /// # Panics
    /// If `here` is not below `places`.
    pub fn new(here: PlaceId, places: u32) -> Phasers {
        Phasers {
            membership: MembershipView::new(here, places),
            shares: Vec::new(),
            free_shares: Vec::new(),
            records: Vec::new(),
            free_records: Vec::new(),
            members: OrderedMap::new(),
            serial: 0,
        }
    }

    /// Opens a phaser here, in phase 0, and registers the caller.
    pub fn open(&mut self) -> Party {
        let (home, serial) = (self.membership.here, self.serial);
        self.serial += 1;
        let share = LocalPhaser::new(PhaserId::NONE, 0, Role::Home(Box::new(Coordinator::new(home))));
        let slot = self.occupy(share);
        self.shares[slot].id = PhaserId { home, serial, slot: slot as u32 };
        self.add_party(slot)
    }

    /// Registers another task at this place, in the phase of `party`.
    ///
    /// # Errors
    /// [`PhaserError::NotRegistered`], [`PhaserError::Resumed`], [`PhaserError::Waiting`],
    /// [`PhaserError::DeadPlace`] of the home.
    pub fn register(&mut self, party: Party) -> Result<Party, PhaserError> {
        let share = self.active(party)?;
        Ok(self.add_party(share))
    }

    /// Registers a task that travels to `to`; the registration goes with it. The phase cannot end before it has
    /// arrived.
    ///
    /// # Errors
    /// As [`Phasers::register`], and [`PhaserError::DeadPlace`] or [`PhaserError::UnknownPlace`] of `to`.
    ///
    /// # Panics
    /// If `to` is this place.
    pub fn depart(&mut self, party: Party, to: PlaceId) -> Result<RegistrationTransfer, PhaserError> {
        assert!(to != self.membership.here, "a registration departs to another place");
        let index = self.active(party)?;
        self.admit(to)?;
        let share = &mut self.shares[index];
        share.tally.send(to);
        share.has_sent_registrations = true;
        Ok(RegistrationTransfer { phaser: share.id, phase: share.phase, dead: share.dead })
    }

    /// Undoes a [`Phasers::depart`] whose task was not sent; `party` must not have signalled since.
    ///
    /// # Errors
    /// As [`Phasers::register`].
    pub fn undo_depart(&mut self, party: Party, to: PlaceId) -> Result<(), PhaserError> {
        let share = self.active(party)?;
        self.shares[share].tally.undo_send(to);
        Ok(())
    }

    /// Registers a task that arrived here.
    ///
    /// # Errors
    /// [`PhaserError::DeadPlace`], [`PhaserError::UnknownPlace`], [`PhaserError::UnknownPhaser`],
    /// [`PhaserError::WrongPhase`]: the task is not registered; drop it.
    pub fn arrive(
        &mut self,
        ticket: RegistrationTransfer,
        from: PlaceId,
        out: &mut Vec<Output>,
    ) -> Result<Party, PhaserError> {
        self.admit(from)?;
        if from == self.membership.here {
            return Err(PhaserError::UnknownPlace(from));
        }
        self.admit(ticket.phaser.home)?;
        self.catch_up(ticket, out)?;
        let index = match self.find(ticket.phaser) {
            Some(index) => index,
            None if ticket.phaser.home == self.membership.here => {
                return Err(PhaserError::UnknownPhaser(ticket.phaser));
            }
            None => self.join(ticket),
        };
        self.shares[index].tally.receive(from);
        Ok(self.add_party(index))
    }

    /// Signals that `party` has done its part of the phase, without waiting. No effect a second time in the same phase.
    ///
    /// # Errors
    /// [`PhaserError::NotRegistered`], [`PhaserError::Waiting`], [`PhaserError::DeadPlace`] of the home.
    pub fn resume(&mut self, party: Party, out: &mut Vec<Output>) -> Result<(), PhaserError> {
        match self.active(party) {
            Ok(index) => {
                self.records[party.record as usize].state = State::Resumed;
                self.signal(index, out);
                Ok(())
            }
            Err(PhaserError::Resumed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Signals, if `party` has not, and goes to the next phase.
    ///
    /// Returns the new phase if it has begun already. Otherwise the task must wait for an [`Output::Wake`] that names
    /// it, which may be in `out` already.
    ///
    /// # Errors
    /// As [`Phasers::resume`].
    pub fn advance(&mut self, party: Party, out: &mut Vec<Output>) -> Result<Option<Advanced>, PhaserError> {
        let signalled = match self.active(party) {
            Ok(_) => false,
            Err(PhaserError::Resumed) => true,
            Err(error) => return Err(error),
        };
        let record = &mut self.records[party.record as usize];
        let index = record.share as usize;
        let share = &mut self.shares[index];
        if signalled && record.phase < share.phase {
            record.phase = share.phase;
            record.state = State::Active;
            return Ok(Some(share.advanced()));
        }
        record.state = State::Waiting;
        share.waiting.push(party);
        if !signalled {
            self.signal(index, out);
        }
        Ok(None)
    }

    /// Ends the registration, in whatever state it is; also call it when the task ends or is dropped.
    ///
    /// # Errors
    /// [`PhaserError::NotRegistered`].
    pub fn leave(&mut self, party: Party, out: &mut Vec<Output>) -> Result<(), PhaserError> {
        let record = self.record(party)?;
        let (index, state, phase) = (record.share as usize, record.state, record.phase);
        let share = &mut self.shares[index];
        share.parties -= 1;
        let signalled = state != State::Active && phase == share.phase;
        if !signalled && !matches!(share.role, Role::Orphan(_)) {
            share.active -= 1;
        }
        if state == State::Waiting {
            share.waiting.retain(|&waiting| waiting != party);
        }
        let record = &mut self.records[party.record as usize];
        record.generation = record.generation.wrapping_add(1);
        record.state = State::Free;
        self.free_records.push(party.record);
        self.settle(index, out);
        Ok(())
    }

    /// Returns the phase of `party`.
    ///
    /// # Errors
    /// [`PhaserError::NotRegistered`].
    pub fn phase(&self, party: Party) -> Result<u64, PhaserError> {
        Ok(self.record(party)?.phase)
    }

    /// Returns the places that the current phase waits for, as far as is known here: away from the home, only whether
    /// it is this one.
    ///
    /// # Errors
    /// [`PhaserError::NotRegistered`].
    pub fn waiting_for(&self, party: Party) -> Result<Vec<PlaceId>, PhaserError> {
        let share = &self.shares[self.record(party)?.share as usize];
        Ok(match &share.role {
            Role::Home(coordinator) => coordinator.laggards(share.phase),
            _ if share.active > 0 => vec![self.membership.here],
            _ => vec![share.id.home],
        })
    }

    /// Returns the number of phasers of which this place has a share.
    pub fn held(&self) -> usize {
        self.shares.len() - self.free_shares.len()
    }

    /// Handles a control message.
    ///
    /// # Errors
    /// A [`Violation`]: the message was ignored; log it with the peer.
    pub fn receive(
        &mut self,
        from: PlaceId,
        control: Control,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if !self.membership.knows(from) || from == self.membership.here {
            return Err(Violation::UnknownPlace(from));
        }
        if !self.membership.is_alive(from) {
            return Ok(());
        }
        match control {
            Control::Report(report) => self.receive_report(from, &report, out),
            Control::Advance { phaser, phase, dead } => self.receive_advance(from, phaser, phase, dead, out),
            Control::Ask { phaser, dead } => self.answer(from, phaser, dead, out),
        }
    }

    /// Handles the death of `place`; harmless if known already.
    ///
    /// Its parties are no longer waited for; waiting parties learn of it with the next phase. Parties of phasers that
    /// were opened there are woken at once.
    pub fn place_died(&mut self, place: PlaceId, out: &mut Vec<Output>) {
        if !self.membership.mark_dead(place) {
            return;
        }
        for index in 0..self.shares.len() {
            match self.shares[index].role {
                Role::Home(_) => self.mark_dead(index, place, out),
                Role::Member if self.shares[index].id.home == place => self.orphan(index, place, out),
                _ => {}
            }
        }
    }

    /// Returns `Ok` if `place` exists in this run and is not dead.
    fn admit(&self, place: PlaceId) -> Result<(), PhaserError> {
        match (self.membership.is_alive(place), self.membership.knows(place)) {
            (true, _) => Ok(()),
            (false, true) => Err(PhaserError::DeadPlace(place)),
            (false, false) => Err(PhaserError::UnknownPlace(place)),
        }
    }

    fn record(&self, party: Party) -> Result<&PartyRecord, PhaserError> {
        let record = self.records.get(party.record as usize);
        let taken =
            |record: &&PartyRecord| record.generation == party.generation && record.state != State::Free;
        record.filter(taken).ok_or(PhaserError::NotRegistered)
    }

    /// Returns the share of `party`, if it has not signalled in its phase.
    fn active(&self, party: Party) -> Result<usize, PhaserError> {
        let record = self.record(party)?;
        if let Role::Orphan(home) = self.shares[record.share as usize].role {
            return Err(PhaserError::DeadPlace(home));
        }
        match record.state {
            State::Active => Ok(record.share as usize),
            State::Resumed => Err(PhaserError::Resumed),
            State::Waiting => Err(PhaserError::Waiting),
            State::Free => Err(PhaserError::NotRegistered),
        }
    }

    /// Adds a party that has not signalled.
    fn add_party(&mut self, index: usize) -> Party {
        let share = &mut self.shares[index];
        share.parties += 1;
        share.active += 1;
        let (phase, state) = (share.phase, State::Active);
        let index = index as u32;
        match self.free_records.pop() {
            Some(record) => {
                let generation = self.records[record as usize].generation;
                self.records[record as usize] = PartyRecord { generation, share: index, phase, state };
                Party { record, generation }
            }
            None => {
                self.records.push(PartyRecord { generation: 0, share: index, phase, state });
                Party { record: self.records.len() as u32 - 1, generation: 0 }
            }
        }
    }

    fn occupy(&mut self, share: LocalPhaser) -> usize {
        if let Some(index) = self.free_shares.pop() {
            self.shares[index as usize] = share;
            return index as usize;
        }
        self.shares.push(share);
        self.shares.len() - 1
    }

    fn vacate(&mut self, index: usize) {
        let id = self.shares[index].id;
        self.members.remove((id.home, id.serial));
        self.shares[index] = LocalPhaser::new(PhaserId::NONE, 0, Role::Free);
        self.free_shares.push(index as u32);
    }

    /// Returns the share of a phaser, if this place has one.
    fn find(&self, id: PhaserId) -> Option<usize> {
        if id.home != self.membership.here {
            return self.members.get((id.home, id.serial)).map(|&index| index as usize);
        }
        let index = id.slot as usize;
        self.shares.get(index).is_some_and(|share| share.id == id).then_some(index)
    }

    /// Makes a share for a phaser of another home.
    fn join(&mut self, ticket: RegistrationTransfer) -> usize {
        let mut share = LocalPhaser::new(ticket.phaser, ticket.phase, Role::Member);
        share.dead = ticket.dead;
        let index = self.occupy(share);
        self.members.insert((ticket.phaser.home, ticket.phaser.serial), index as u32);
        index
    }

    /// Catches up with the phase of a registration, which may bring the news of it before the home does.
    fn catch_up(&mut self, ticket: RegistrationTransfer, out: &mut Vec<Output>) -> Result<(), PhaserError> {
        let Some(index) = self.find(ticket.phaser) else { return Ok(()) };
        let share = &self.shares[index];
        let here = share.phase;
        if ticket.phase == here {
            return Ok(());
        }
        let next = Some(ticket.phase) == here.checked_add(1);
        if !next || share.active > 0 || !matches!(share.role, Role::Member) {
            return Err(PhaserError::WrongPhase { ticket: ticket.phase, here });
        }
        self.begin(index, ticket.phase, ticket.dead, out);
        Ok(())
    }

    /// Records that one party of a share has signalled.
    fn signal(&mut self, index: usize, out: &mut Vec<Output>) {
        self.shares[index].active -= 1;
        self.settle(index, out);
    }

    /// Reports to the home that all have signalled, if it must know; removes a share that is not needed.
    fn settle(&mut self, index: usize, out: &mut Vec<Output>) {
        let share = &mut self.shares[index];
        match share.role {
            Role::Orphan(_) if share.parties == 0 => self.vacate(index),
            Role::Member if share.is_report_due() => {
                let to = share.id.home;
                let send = |report| Output::Send { to, control: Control::Report(report) };
                out.extend(share.reports().into_iter().map(send));
                if share.parties == 0 {
                    self.vacate(index);
                }
            }
            Role::Home(_) if share.is_report_due() => {
                let here = self.membership.here;
                for report in share.reports() {
                    self.enter(here, index, &report);
                }
                self.conclude(index, out);
            }
            _ => {}
        }
    }

    /// Begins a phase at this place.
    fn begin(&mut self, index: usize, phase: u64, dead: Option<PlaceId>, out: &mut Vec<Output>) {
        let share = &mut self.shares[index];
        share.phase = phase;
        share.dead = dead;
        share.active = share.parties;
        share.is_reported = false;
        let advanced = share.advanced();
        share.wake(&mut self.records, advanced, out);
        self.settle(index, out);
    }

    fn enter(&mut self, from: PlaceId, index: usize, report: &PhaserReport) {
        let LocalPhaser { phase, role: Role::Home(coordinator), .. } = &mut self.shares[index] else {
            return;
        };
        coordinator.enter(from, *phase, report, |place| self.membership.is_alive(place));
    }

    /// Ends the phase, or the phaser, if all have signalled.
    fn conclude(&mut self, index: usize, out: &mut Vec<Output>) {
        let share = &mut self.shares[index];
        let Role::Home(coordinator) = &mut share.role else { return };
        // After a death the home may hold parties that no balance shows.
        if share.active > 0 || !coordinator.is_complete() {
            return;
        }
        if coordinator.is_empty() {
            self.vacate(index);
            return;
        }
        let (phase, dead) = (share.phase + 1, coordinator.dead.take());
        let members: Vec<_> = coordinator.begin().filter(|&place| place != self.membership.here).collect();
        share.phase = phase;
        share.dead = dead;
        let control = share.advance();
        out.extend(members.into_iter().map(|to| Output::Send { to, control: control.clone() }));
        self.begin(index, phase, dead, out);
    }

    /// Handles a report about a phaser opened here.
    fn receive_report(
        &mut self,
        from: PlaceId,
        report: &PhaserReport,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        let id = report.phaser;
        if id.home != self.membership.here {
            return Err(Violation::NotItsHome(id));
        }
        if let Some(entry) = report.entries.iter().find(|entry| !self.membership.knows(entry.place)) {
            return Err(Violation::UnknownPlace(entry.place));
        }
        let Some(index) = self.find(id) else { return Ok(()) };
        let share = &self.shares[index];
        let Role::Home(coordinator) = &share.role else { return Ok(()) };
        let loops = report.entries.iter().any(|entry| entry.place == from);
        if loops || report.phase > share.phase || report.answers > coordinator.unanswered(from) {
            return Err(Violation::FalseReport(id));
        }
        self.enter(from, index, report);
        self.conclude(index, out);
        Ok(())
    }

    /// Handles the start of a phase.
    fn receive_advance(
        &mut self,
        from: PlaceId,
        id: PhaserId,
        phase: u64,
        dead: Option<PlaceId>,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if id.home != from {
            return Err(Violation::NotItsHome(id));
        }
        let Some(index) = self.find(id) else { return Ok(()) };
        let share = &self.shares[index];
        if phase <= share.phase {
            return Ok(());
        }
        if phase - share.phase > 1 || share.active > 0 {
            return Err(Violation::FalseAdvance(id));
        }
        self.begin(index, phase, dead, out);
        Ok(())
    }

    /// Handles a question of a home that has lost a place.
    fn answer(
        &mut self,
        from: PlaceId,
        id: PhaserId,
        dead: PlaceId,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if id.home != from {
            return Err(Violation::NotItsHome(id));
        }
        if !self.membership.knows(dead) || dead == self.membership.here || dead == from {
            return Err(Violation::UnknownPlace(dead));
        }
        self.place_died(dead, out);
        if let Some(index) = self.find(id) {
            let share = &mut self.shares[index];
            share.unanswered = share.unanswered.saturating_add(1);
            self.settle(index, out);
            return Ok(());
        }
        let mut nothing = LocalPhaser::new(id, 0, Role::Member);
        nothing.unanswered = 1;
        let send = |report| Output::Send { to: from, control: Control::Report(report) };
        out.extend(nothing.reports().into_iter().map(send));
        Ok(())
    }

    /// Removes a dead place from a phaser opened here, and asks the live places: they may hold parties that it sent.
    fn mark_dead(&mut self, index: usize, place: PlaceId, out: &mut Vec<Output>) {
        let LocalPhaser { id, phase, has_sent_registrations, role: Role::Home(coordinator), .. } =
            &mut self.shares[index]
        else {
            return;
        };
        if !*has_sent_registrations {
            return;
        }
        coordinator.mark_dead(place, *phase);
        for to in self.membership.others() {
            coordinator.ask(to, *phase);
            out.push(Output::Send { to, control: Control::Ask { phaser: *id, dead: place } });
        }
        self.conclude(index, out);
    }

    /// Wakes the parties of a phaser whose home is dead.
    fn orphan(&mut self, index: usize, home: PlaceId, out: &mut Vec<Output>) {
        let share = &mut self.shares[index];
        self.members.remove((share.id.home, share.id.serial));
        share.id = PhaserId::NONE;
        share.role = Role::Orphan(home);
        let advanced = Advanced { phase: share.phase, dead: Some(home) };
        share.wake(&mut self.records, advanced, out);
        self.settle(index, out);
    }
}
