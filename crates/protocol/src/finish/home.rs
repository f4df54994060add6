//! The home's side of the protocol: handle reports, ask, end the finish.
//!
//! The half of [`Finishes`] that decides. docs/design/finish.md has the proof. It never looks into proxies. Invariant:
//! only `conclude` releases a finish.

use super::control::{Control, FinishReport, Output, Violation};
use super::fault::{Fault, Outcome, Reason};
use super::finishes::Finishes;
use super::id::{FinishId, FinishKind};
use super::ledger::Ledger;
use super::limits::FORGET_BATCH;
use super::slot::{Role, Slot};
use crate::PlaceId;

impl Finishes {
    /// Returns the slot of a finish opened here.
    fn find_home(&self, id: FinishId) -> Option<usize> {
        let index = id.slot as usize;
        self.slots.get(index).is_some_and(|slot| slot.id == id && id != FinishId::NONE).then_some(index)
    }

    /// Handles a report about a finish opened here.
    pub(super) fn receive_report(
        &mut self,
        from: PlaceId,
        report: FinishReport,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if report.finish.home != self.membership.here {
            return Err(Violation::NotItsHome(report.finish));
        }
        let Some(index) = self.find_home(report.finish) else {
            out.push(dismiss(from, report.finish));
            return Ok(());
        };
        self.check(from, index, &report)?;
        self.enter(from, index, &report, out);
        let slot = &mut self.slots[index];
        slot.faults.lost = slot.faults.lost.saturating_add(report.faults_lost);
        report.fault.into_iter().for_each(|fault| slot.faults.push(fault));
        self.conclude(index, out);
        Ok(())
    }

    /// Refuses a report that no correct place sends.
    fn check(&self, from: PlaceId, index: usize, report: &FinishReport) -> Result<(), Violation> {
        if let Some(entry) = report.entries.iter().find(|entry| !self.membership.knows(entry.place)) {
            return Err(Violation::UnknownPlace(entry.place));
        }
        if let Some(Fault::DeadPlace { place }) = report.fault
            && !self.membership.knows(place)
        {
            return Err(Violation::UnknownPlace(place));
        }
        let asked = match &self.slots[index].role {
            Role::Home(Some(ledger)) => ledger.unanswered(from),
            _ => 0,
        };
        if report.answers > asked || report.entries.iter().any(|entry| entry.place == from) {
            return Err(Violation::FalseReport(report.finish));
        }
        Ok(())
    }

    /// Enters the counts of a report into the ledger.
    fn enter(&mut self, from: PlaceId, index: usize, report: &FinishReport, out: &mut Vec<Output>) {
        let Slot { id, faults, cancelled, role: Role::Home(ledger), .. } = &mut self.slots[index] else {
            return;
        };
        let ledger = self.spare.ledger(ledger);
        ledger.receive_report(from, report.answers, report.more);
        for &entry in &report.entries {
            if entry.place == self.membership.here {
                ledger.enter_report_home(from, entry);
            } else if self.membership.is_alive(entry.place) {
                ledger.enter_report(from, entry);
                if let Some(reason) = cancelled {
                    send_cancel(ledger, *id, entry.place, reason, out);
                }
            } else {
                faults.push(Fault::DeadPlace { place: entry.place });
            }
        }
        if let Some(reason) = cancelled {
            send_cancel(ledger, *id, from, reason, out);
        }
    }

    /// Asks the questions held back until now, and allows that many again. Call it while [`Finishes::holds_back`]
    /// returns `true`: when nothing else has happened here for a while, or the last call was long ago.
    pub fn ask_deferred(&mut self, out: &mut Vec<Output>) {
        for index in std::mem::take(&mut self.held_back).iter() {
            self.slots[index].asked = 0;
            self.conclude(index, out);
        }
    }

    /// Returns `true` if questions wait for [`Finishes::ask_deferred`]; without them a finish may never end.
    pub fn holds_back(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// Ends a finish opened here if it is over, otherwise asks the places that can say more.
    pub(super) fn conclude(&mut self, index: usize, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        if slot.live > 0 {
            return;
        }
        let Role::Home(ledger) = &mut slot.role else { return };
        if !slot.tally.is_zero() {
            let ledger = self.spare.ledger(ledger);
            for entry in slot.tally.entries() {
                if !self.membership.is_alive(entry.place) {
                    slot.faults.push(Fault::DeadPlace { place: entry.place });
                    continue;
                }
                ledger.enter_home(entry);
                if let Some(reason) = &slot.cancelled {
                    send_cancel(ledger, slot.id, entry.place, reason, out);
                }
            }
            slot.tally.clear(usize::MAX);
        }
        if let Some(ledger) = ledger {
            while slot.asked < self.prompt_questions
                && let Some((to, missing)) = ledger.next_question()
            {
                slot.asked += 1;
                ledger.ask(to);
                let control = Control::Ask { finish: slot.id, missing, dead: None };
                out.push(Output::Send { to, control });
            }
            if !ledger.is_settled() {
                if ledger.has_candidates() {
                    self.held_back.insert(index);
                }
                return;
            }
        }
        self.release(index, out);
    }

    /// Ends a finish that is over, and records the places to be told later.
    fn release(&mut self, index: usize, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        let Role::Home(ledger) = std::mem::replace(&mut slot.role, Role::Free) else { return };
        let faults = std::mem::take(&mut slot.faults);
        let outcome = Outcome {
            faults: faults.kept,
            faults_lost: faults.lost,
            cancelled: slot.cancelled.take().map(|reason| *reason),
            kind: ledger.as_ref().map_or(FinishKind::Local, |ledger| ledger.kind()),
        };
        let serial = slot.id.serial;
        out.push(Output::Released { key: slot.key(index), outcome });
        self.vacate(index);
        let Some(ledger) = ledger else { return };
        for reach in ledger.reached() {
            let serials = self.forgets.get_or_insert_with(reach.place, || Vec::with_capacity(FORGET_BATCH));
            serials.push(serial);
            if serials.len() == FORGET_BATCH {
                let control = Control::Forget { serials: serials.clone() };
                serials.clear();
                out.push(Output::Send { to: reach.place, control });
            }
        }
        self.spare.keep(ledger);
    }

    /// Removes a dead place from a finish opened here, and asks the live places: they may hold tasks that it sent.
    pub(super) fn mark_dead_at_home(&mut self, index: usize, place: PlaceId, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        let Role::Home(ledger) = &mut slot.role else { return };
        if ledger.is_none() && !slot.has_sent_tasks {
            return;
        }
        let ledger = self.spare.ledger(ledger);
        if ledger.mark_dead(place) {
            slot.faults.push(Fault::DeadPlace { place });
        }
        for to in self.membership.others() {
            ledger.ask(to);
            let control = Control::Ask { finish: slot.id, missing: 0, dead: Some(place) };
            out.push(Output::Send { to, control });
        }
        self.conclude(index, out);
    }

    /// Handles a request to cancel, or the news that a finish is cancelled.
    pub(super) fn receive_cancel(
        &mut self,
        from: PlaceId,
        finish: FinishId,
        reason: Reason,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if finish.home == from {
            let index = self.proxy(finish);
            let slot = &mut self.slots[index];
            if let Role::Proxy(proxy) = &mut slot.role {
                proxy.known = true;
                slot.cancel(index, reason, out);
            }
            return Ok(());
        }
        if finish.home != self.membership.here {
            return Err(Violation::NotItsHome(finish));
        }
        let Some(index) = self.find_home(finish) else {
            out.push(dismiss(from, finish));
            return Ok(());
        };
        if let Role::Home(ledger) = &mut self.slots[index].role {
            self.spare.ledger(ledger).reach(from).cancel_sent = true;
            self.cancel_at_home(index, reason, out);
        }
        Ok(())
    }

    /// Cancels a finish opened here, and tells all places that it has reached.
    pub(super) fn cancel_at_home(&mut self, index: usize, reason: Reason, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        if slot.cancelled.is_some() {
            return;
        }
        slot.cancel(index, reason.clone(), out);
        let Slot { id, tally, role: Role::Home(ledger), .. } = slot else { return };
        if ledger.is_none() && tally.is_zero() {
            return;
        }
        let ledger = self.spare.ledger(ledger);
        let sent = tally.entries().map(|entry| entry.place);
        let places: Vec<_> = ledger.reached().iter().map(|reach| reach.place).chain(sent).collect();
        for place in places {
            send_cancel(ledger, *id, place, &reason, out);
        }
    }
}

/// Tells a place to forget a finish that is over, or never was.
fn dismiss(to: PlaceId, finish: FinishId) -> Output {
    Output::Send { to, control: Control::Forget { serials: vec![finish.serial] } }
}

/// Tells `to` that the finish is cancelled, once.
fn send_cancel(ledger: &mut Ledger, finish: FinishId, to: PlaceId, reason: &Reason, out: &mut Vec<Output>) {
    if !std::mem::replace(&mut ledger.reach(to).cancel_sent, true) {
        let control = Control::Cancel { finish, reason: reason.clone() };
        out.push(Output::Send { to, control });
    }
}
