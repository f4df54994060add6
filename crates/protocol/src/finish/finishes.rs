//! All finishes at one place: the interface of the runtime to the protocol.
//!
//! One object a place, so that a local name is an index and a message is one lookup. It never iterates over
//! hashed tables and keeps no time: the same calls give the same outputs. The invariant: every slot that is
//! not free is a finish opened here, or is found in `proxies`, or is an orphan with live tasks.

use super::control::{Control, Output, Refusal, Report, Violation};
use super::explanation::{Explanation, Waiting};
use super::fault::{Fault, Outcome, Reason};
use super::id::{FinishId, Key};
use super::kind::Kind;
use super::ledger::Ledger;
use super::limits::FORGET_BATCH;
use super::site::Site;
use super::slot::{Proxy, Role, Slot};
use super::tally::Hint;
use crate::PlaceId;
use std::collections::BTreeMap;

/// The finishes of one place, opened here or elsewhere.
///
/// Calls marked *hot* cost a few nanoseconds when the finish and the peer are the ones used last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finishes {
    pub(super) site: Site,
    pub(super) slots: Vec<Slot>,
    free: Vec<u32>,
    /// The slot of the finish of another home that was used last.
    recent: Hint,
    /// Finishes of other homes by home and serial, except orphans.
    pub(super) proxies: BTreeMap<(PlaceId, u64), u32>,
    /// The serial of the next finish opened here.
    serial: u64,
    /// Released finishes that a place has not been told to forget yet.
    pub(super) forgets: BTreeMap<PlaceId, Vec<u64>>,
}

impl Finishes {
    /// The finishes of place `here` in a run of `places` places; none yet.
    ///
    /// # Panics
    /// If `here` is not below `places`.
    pub fn new(here: PlaceId, places: u32) -> Finishes {
        Finishes {
            site: Site::new(here, places),
            slots: Vec::new(),
            free: Vec::new(),
            recent: Hint::default(),
            proxies: BTreeMap::new(),
            serial: 0,
            forgets: BTreeMap::new(),
        }
    }

    /// Opens a finish here. Its body counts as one live task: call [`Finishes::end`] when the body is over.
    ///
    /// The key is valid until [`Output::Released`] names it.
    pub fn open(&mut self) -> Key {
        let serial = self.serial;
        self.serial += 1;
        let index = self.occupy(Role::Home(None));
        let slot = &mut self.slots[index];
        slot.id = FinishId { home: self.site.here, serial, slot: index as u32 };
        slot.live = 1;
        slot.key(index)
    }

    /// Counts a task started here by a live task of the finish. *Hot.*
    #[inline]
    pub fn begin(&mut self, key: Key) {
        self.slot(key).live += 1;
    }

    /// Counts the end of a task here, however it ended. *Hot*, unless it was the last one.
    pub fn end(&mut self, key: Key, fault: Option<Fault>, out: &mut Vec<Output>) {
        let slot = self.slot(key);
        if let Some(fault) = fault {
            slot.faults.push(fault);
        }
        assert!(slot.live > 0, "{} ended more tasks than it began", slot.id);
        slot.live -= 1;
        if slot.live == 0 {
            self.quiesce(key.slot as usize, out);
        }
    }

    /// Counts a task that a live task here sends to `to`; the name goes along with it. *Hot.*
    ///
    /// # Errors
    /// [`Refusal::Cancelled`], [`Refusal::DeadPlace`], [`Refusal::UnknownPlace`]: nothing was counted, do not send.
    ///
    /// # Panics
    /// If `to` is this place: that is what [`Finishes::begin`] is for.
    #[inline]
    pub fn depart(&mut self, key: Key, to: PlaceId) -> Result<FinishId, Refusal> {
        assert!(to != self.site.here, "a task departs to another place");
        self.site.admit(to)?;
        let slot = self.slot(key);
        if slot.cancelled.is_some() {
            return Err(Refusal::Cancelled);
        }
        slot.tally.send(to);
        slot.away = true;
        Ok(slot.id)
    }

    /// Takes back a [`Finishes::depart`] whose task was not sent after all.
    ///
    /// The task that called `depart` must be live ever since.
    pub fn undo_depart(&mut self, key: Key, to: PlaceId) {
        self.slot(key).tally.unsend(to);
    }

    /// Counts a task that arrived here. *Hot.*
    ///
    /// # Errors
    /// A [`Refusal`] other than `Cancelled`: nothing was counted, drop the task. (A task of a cancelled finish
    /// is counted; ask [`Finishes::is_cancelled`], drop it and call [`Finishes::end`].)
    #[inline]
    pub fn arrive(&mut self, id: FinishId, from: PlaceId) -> Result<Key, Refusal> {
        let index = self.welcome(id, from)?;
        let slot = &mut self.slots[index];
        slot.tally.receive(from);
        slot.live += 1;
        Ok(slot.key(index))
    }

    /// Begins a request (an `at`) from a live task here to `to`; the name goes along with it. *Hot.*
    ///
    /// It holds the finish open until [`Finishes::settle`], also if the task that waits is dropped. The request
    /// costs no control message unless its body starts tasks under the finish.
    ///
    /// # Errors
    /// As [`Finishes::depart`].
    #[inline]
    pub fn request(&mut self, key: Key, to: PlaceId) -> Result<FinishId, Refusal> {
        assert!(to != self.site.here, "a request goes to another place");
        self.site.admit(to)?;
        let slot = self.slot(key);
        if slot.cancelled.is_some() {
            return Err(Refusal::Cancelled);
        }
        slot.live += 1;
        slot.away = true;
        Ok(slot.id)
    }

    /// Ends a request: its reply came, saying whether the visit was counted; or none will ever come.
    ///
    /// If the target died before it replied, `counted` is true: nobody can know better. If the request was
    /// never sent, it is false.
    pub fn settle(&mut self, key: Key, to: PlaceId, counted: bool, out: &mut Vec<Output>) {
        if counted {
            self.slot(key).tally.send(to);
        }
        self.end(key, None, out);
    }

    /// Lets the body of a request that came from `from` use the finish: call it before the body first starts
    /// a task or makes a request under the finish; then call [`Finishes::end`] when the body is over. *Hot.*
    ///
    /// # Errors
    /// As [`Finishes::arrive`].
    #[inline]
    pub fn visit(&mut self, id: FinishId, from: PlaceId) -> Result<Key, Refusal> {
        let index = self.welcome(id, from)?;
        let slot = &mut self.slots[index];
        slot.live += 1;
        Ok(slot.key(index))
    }

    /// Makes a visit counted, once; the reply must then say `counted`. *Hot.*
    ///
    /// Due before its body first starts a task, here or elsewhere; before it settles a request that was
    /// counted; before it cancels the finish; and when a request of it is abandoned: the body ends, or is
    /// dropped, or goes on, without waiting for the reply.
    #[inline]
    pub fn count_visit(&mut self, key: Key, from: PlaceId) {
        self.slot(key).tally.receive(from);
    }

    /// Takes in a control message.
    ///
    /// # Errors
    /// A [`Violation`]: the message was ignored; log it with the peer.
    pub fn receive(
        &mut self,
        from: PlaceId,
        control: Control,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        self.site.admit_peer(from)?;
        if !self.site.is_alive(from) {
            return Ok(());
        }
        match control {
            Control::Report(report) => self.hear(from, report, out),
            Control::Ask { finish, missing, dead } => self.answer(from, finish, missing, dead, out),
            Control::Cancel { finish, reason } => self.hear_cancel(from, finish, reason, out),
            Control::Forget { serials } => self.forget(from, &serials),
        }
    }

    /// Learns that `place` is gone for good; harmless if known already.
    ///
    /// Finishes that it opened are cancelled here; finishes opened here that had reached it end with
    /// [`Fault::DeadPlace`], after all tasks at live places have ended.
    pub fn place_died(&mut self, place: PlaceId, out: &mut Vec<Output>) {
        if !self.site.bury(place) {
            return;
        }
        self.forgets.remove(&place);
        self.orphan(place, out);
        for index in 0..self.slots.len() {
            self.bury_at_home(index, place, out);
        }
    }

    /// Cancels the finish everywhere; it ends when all its tasks have been dropped. May be called anywhere.
    pub fn cancel(&mut self, key: Key, reason: Reason, out: &mut Vec<Output>) {
        let slot = self.slot(key);
        if slot.cancelled.is_some() {
            return;
        }
        match &mut slot.role {
            Role::Home(_) => self.cancel_at_home(key.slot as usize, reason, out),
            Role::Proxy(proxy) => {
                proxy.known = true;
                let (to, finish) = (slot.id.home, slot.id);
                slot.cancel(key.slot as usize, reason.clone(), out);
                out.push(Output::Send { to, control: Control::Cancel { finish, reason } });
            }
            Role::Free | Role::Orphan => {}
        }
    }

    /// Whether the finish is known here to be cancelled: its tasks are to be dropped. *Hot.*
    #[inline]
    pub fn is_cancelled(&self, key: Key) -> bool {
        self.peek(key).cancelled.is_some()
    }

    /// The name of the finish that travels.
    pub fn id(&self, key: Key) -> FinishId {
        self.peek(key).id
    }

    /// What the finish has needed so far, as far as this place knows.
    pub fn kind(&self, key: Key) -> Kind {
        let slot = self.peek(key);
        let Role::Home(ledger) = &slot.role else { return Kind::General };
        let mut view = ledger.as_deref().cloned().unwrap_or_default();
        slot.tally.entries().for_each(|entry| view.enter_home(entry));
        view.kind()
    }

    /// Whom the finish waits for, as far as this place knows.
    pub fn waiting_for(&self, key: Key) -> Explanation {
        let slot = self.peek(key);
        let mut view = Ledger::default();
        if let Role::Home(ledger) = &slot.role {
            view = ledger.as_deref().cloned().unwrap_or_default();
            slot.tally.entries().for_each(|entry| view.enter_home(entry));
        }
        let waiting = view.reached().iter().map(|reach| Waiting {
            place: reach.place,
            tasks: view.missing(reach),
            reports: reach.reports,
            asked: reach.is_awaited(),
        });
        Explanation {
            finish: slot.id,
            here: self.site.here,
            live: slot.live,
            cancelled: slot.cancelled.is_some(),
            waiting: waiting.filter(|waiting| waiting.tasks > 0 || waiting.asked).collect(),
        }
    }

    /// How many finishes this place holds, opened here or elsewhere, idle proxies included.
    pub fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The keys of the finishes opened here that are not over.
    pub fn opened(&self) -> impl Iterator<Item = Key> {
        let homes = self.slots.iter().enumerate().filter(|(_, slot)| matches!(slot.role, Role::Home(_)));
        homes.map(|(index, slot)| slot.key(index))
    }

    #[inline]
    fn slot(&mut self, key: Key) -> &mut Slot {
        let slot = &mut self.slots[key.slot as usize];
        assert!(slot.generation == key.generation, "{key:?} is stale");
        slot
    }

    fn peek(&self, key: Key) -> &Slot {
        let slot = &self.slots[key.slot as usize];
        assert!(slot.generation == key.generation, "{key:?} is stale");
        slot
    }

    /// Takes a free slot, or makes one.
    fn occupy(&mut self, role: Role) -> usize {
        let index = self.free.pop().map_or(self.slots.len(), |index| index as usize);
        if index == self.slots.len() {
            assert!(index < u32::MAX as usize, "too many finishes");
            self.slots.push(Slot::free());
        }
        self.slots[index].role = role;
        index
    }

    fn vacate(&mut self, index: usize) {
        self.slots[index].vacate();
        self.free.push(index as u32);
    }

    /// The slot for a task or visit that came from `from`.
    #[inline]
    fn welcome(&mut self, id: FinishId, from: PlaceId) -> Result<usize, Refusal> {
        self.site.admit(from)?;
        let near = if id.home == self.site.here { id.slot as usize } else { self.recent.0 };
        let known = self.slots.get(near).is_some_and(|slot| slot.id == id);
        if known && id.serial != FinishId::NONE.serial && from != self.site.here {
            return Ok(near);
        }
        self.welcome_slowly(id, from)
    }

    #[inline(never)]
    fn welcome_slowly(&mut self, id: FinishId, from: PlaceId) -> Result<usize, Refusal> {
        if from == self.site.here {
            return Err(Refusal::UnknownPlace(from));
        }
        if id.home == self.site.here {
            return Err(Refusal::UnknownFinish);
        }
        self.site.admit(id.home)?;
        Ok(self.proxy(id))
    }

    /// The slot of a finish opened here.
    fn find_home(&self, id: FinishId) -> Option<usize> {
        let index = id.slot as usize;
        self.slots.get(index).is_some_and(|slot| slot.id == id && id != FinishId::NONE).then_some(index)
    }

    /// The slot of a finish of another, live home; made if there is none.
    fn proxy(&mut self, id: FinishId) -> usize {
        let known = self.proxies.get(&(id.home, id.serial));
        let index = match known {
            Some(&index) => index as usize,
            None => {
                let index = self.occupy(Role::Proxy(Proxy::default()));
                self.slots[index].id = id;
                self.proxies.insert((id.home, id.serial), index as u32);
                index
            }
        };
        self.recent.0 = index;
        index
    }

    /// Does what is due when no task of the finish is live here.
    fn quiesce(&mut self, index: usize, out: &mut Vec<Output>) {
        match self.slots[index].role {
            Role::Home(_) => self.conclude(index, out),
            Role::Proxy(_) => self.speak(index, out),
            Role::Orphan => self.vacate(index),
            Role::Free => {}
        }
    }

    /// Lets a quiet proxy report if it must, and vanish if nobody knows of it.
    fn speak(&mut self, index: usize, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        let Role::Proxy(proxy) = &slot.role else { return };
        if slot.live > 0 {
            return;
        }
        if slot.is_report_due(proxy) {
            let answers = proxy.unanswered;
            slot.role = Role::Proxy(Proxy { reported: true, known: true, question: None, unanswered: 0 });
            slot.report(answers, out);
        } else if !proxy.known {
            self.proxies.remove(&(slot.id.home, slot.id.serial));
            self.vacate(index);
        }
    }

    /// Takes in an ask of the home.
    fn answer(
        &mut self,
        from: PlaceId,
        finish: FinishId,
        missing: u64,
        dead: Option<PlaceId>,
        out: &mut Vec<Output>,
    ) -> Result<(), Violation> {
        if finish.home != from {
            return Err(Violation::NotItsHome(finish));
        }
        if let Some(dead) = dead {
            self.site.admit_peer(dead)?;
            self.place_died(dead, out);
        }
        if !self.site.is_alive(from) {
            return Ok(());
        }
        let index = self.proxy(finish);
        if let Role::Proxy(proxy) = &mut self.slots[index].role {
            proxy.known = true;
            proxy.question = Some(missing);
            proxy.unanswered = proxy.unanswered.saturating_add(1);
        }
        self.speak(index, out);
        Ok(())
    }

    /// Takes in a report to a finish opened here.
    fn hear(&mut self, from: PlaceId, report: Report, out: &mut Vec<Output>) -> Result<(), Violation> {
        if report.finish.home != self.site.here {
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
    fn check(&self, from: PlaceId, index: usize, report: &Report) -> Result<(), Violation> {
        if let Some(entry) = report.entries.iter().find(|entry| !self.site.knows(entry.place)) {
            return Err(Violation::UnknownPlace(entry.place));
        }
        if let Some(Fault::DeadPlace { place }) = report.fault
            && !self.site.knows(place)
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
    fn enter(&mut self, from: PlaceId, index: usize, report: &Report, out: &mut Vec<Output>) {
        let Slot { id, faults, cancelled, role: Role::Home(ledger), .. } = &mut self.slots[index] else {
            return;
        };
        let ledger = ledger.get_or_insert_default();
        ledger.hear(from, report.answers, report.more);
        for &entry in &report.entries {
            if entry.place == self.site.here {
                ledger.enter_report_home(from, entry);
            } else if self.site.is_alive(entry.place) {
                ledger.enter_report(from, entry);
                if let Some(reason) = cancelled {
                    tell_cancel(ledger, *id, entry.place, reason, out);
                }
            } else {
                faults.push(Fault::DeadPlace { place: entry.place });
            }
        }
        if let Some(reason) = cancelled {
            tell_cancel(ledger, *id, from, reason, out);
        }
    }

    /// Ends a finish opened here if it is over, else asks those places that can say more.
    fn conclude(&mut self, index: usize, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        if slot.live > 0 {
            return;
        }
        let Role::Home(ledger) = &mut slot.role else { return };
        if !slot.tally.is_zero() {
            let ledger = ledger.get_or_insert_default();
            for entry in slot.tally.entries() {
                if !self.site.is_alive(entry.place) {
                    slot.faults.push(Fault::DeadPlace { place: entry.place });
                    continue;
                }
                ledger.enter_home(entry);
                if let Some(reason) = &slot.cancelled {
                    tell_cancel(ledger, slot.id, entry.place, reason, out);
                }
            }
            slot.tally.clear(usize::MAX);
        }
        if let Some(ledger) = ledger {
            while let Some((to, missing)) = ledger.next_question() {
                ledger.ask(to);
                let control = Control::Ask { finish: slot.id, missing, dead: None };
                out.push(Output::Send { to, control });
            }
            if !ledger.is_settled() {
                return;
            }
        }
        self.release(index, out);
    }

    fn release(&mut self, index: usize, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        let Role::Home(ledger) = std::mem::replace(&mut slot.role, Role::Free) else { return };
        let faults = std::mem::take(&mut slot.faults);
        let outcome = Outcome {
            faults: faults.kept,
            faults_lost: faults.lost,
            cancelled: slot.cancelled.take().map(|reason| *reason),
            kind: ledger.as_ref().map_or(Kind::Local, |ledger| ledger.kind()),
        };
        let serial = slot.id.serial;
        out.push(Output::Released { key: slot.key(index), outcome });
        self.vacate(index);
        for reach in ledger.iter().flat_map(|ledger| ledger.reached()) {
            let serials = self.forgets.entry(reach.place).or_default();
            serials.push(serial);
            if serials.len() == FORGET_BATCH {
                let control = Control::Forget { serials: std::mem::take(serials) };
                out.push(Output::Send { to: reach.place, control });
            }
        }
    }

    /// Drops proxies of finishes that are over.
    fn forget(&mut self, from: PlaceId, serials: &[u64]) -> Result<(), Violation> {
        let mut early = false;
        for &serial in serials {
            let Some(&index) = self.proxies.get(&(from, serial)) else { continue };
            if self.slots[index as usize].live > 0 {
                early = true;
                continue;
            }
            self.proxies.remove(&(from, serial));
            self.vacate(index as usize);
        }
        if early { Err(Violation::EarlyForget(from)) } else { Ok(()) }
    }

    /// Turns the proxies of a dead home into orphans, and drops those that are quiet.
    fn orphan(&mut self, home: PlaceId, out: &mut Vec<Output>) {
        let proxies: Vec<_> =
            self.proxies.range((home, 0)..=(home, u64::MAX)).map(|(_, &i)| i as usize).collect();
        for index in proxies {
            let slot = &mut self.slots[index];
            self.proxies.remove(&(home, slot.id.serial));
            slot.id = FinishId::NONE;
            slot.role = Role::Orphan;
            if slot.live == 0 {
                self.vacate(index);
            } else {
                slot.cancel(index, Reason::DeadHome(home), out);
            }
        }
    }

    /// Takes a dead place out of a finish opened here, and asks the live places: they may hold tasks that it sent.
    fn bury_at_home(&mut self, index: usize, place: PlaceId, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        let Role::Home(ledger) = &mut slot.role else { return };
        if ledger.is_none() && !slot.away {
            return;
        }
        let ledger = ledger.get_or_insert_default();
        if ledger.bury(place) {
            slot.faults.push(Fault::DeadPlace { place });
        }
        for to in self.site.others() {
            ledger.ask(to);
            let control = Control::Ask { finish: slot.id, missing: 0, dead: Some(place) };
            out.push(Output::Send { to, control });
        }
        self.conclude(index, out);
    }

    /// Takes in a request to cancel, or the news that a finish is cancelled.
    fn hear_cancel(
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
        if finish.home != self.site.here {
            return Err(Violation::NotItsHome(finish));
        }
        let Some(index) = self.find_home(finish) else {
            out.push(dismiss(from, finish));
            return Ok(());
        };
        if let Role::Home(ledger) = &mut self.slots[index].role {
            ledger.get_or_insert_default().reach(from).cancel_told = true;
            self.cancel_at_home(index, reason, out);
        }
        Ok(())
    }

    /// Cancels a finish opened here, and tells all places that it has reached.
    fn cancel_at_home(&mut self, index: usize, reason: Reason, out: &mut Vec<Output>) {
        let slot = &mut self.slots[index];
        if slot.cancelled.is_some() {
            return;
        }
        slot.cancel(index, reason.clone(), out);
        let Slot { id, tally, role: Role::Home(ledger), .. } = slot else { return };
        if ledger.is_none() && tally.is_zero() {
            return;
        }
        let ledger = ledger.get_or_insert_default();
        let sent = tally.entries().map(|entry| entry.place);
        let places: Vec<_> = ledger.reached().iter().map(|reach| reach.place).chain(sent).collect();
        for place in places {
            tell_cancel(ledger, *id, place, &reason, out);
        }
    }
}

/// Lets a place forget a finish that is over, or never was.
fn dismiss(to: PlaceId, finish: FinishId) -> Output {
    Output::Send { to, control: Control::Forget { serials: vec![finish.serial] } }
}

/// Tells `to` that the finish is cancelled, once.
fn tell_cancel(ledger: &mut Ledger, finish: FinishId, to: PlaceId, reason: &Reason, out: &mut Vec<Output>) {
    if !std::mem::replace(&mut ledger.reach(to).cancel_told, true) {
        let control = Control::Cancel { finish, reason: reason.clone() };
        out.push(Output::Send { to, control });
    }
}
