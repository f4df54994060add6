//! One place's part of one finish: the finish itself at its home, a proxy elsewhere.
//!
//! Both count tasks in the same way, so the hot path need not know which it is. `finishes` decides what follows when a
//! count reaches zero. Invariant: `tally` holds what no report has included yet (at the home: what is not yet in the
//! ledger), and is reported only when `live` is zero.

use super::control::{Control, FinishReport, Output};
use super::fault::{Faults, Reason};
use super::id::{FinishId, Key};
use super::ledger::Ledger;
use super::limits::{IDLE_ENTRIES_MAX, REPORT_ENTRIES_MAX};
use crate::place::ExchangeCounts;

/// One place's part of one finish.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    /// [`FinishId::NONE`] if the slot is free.
    pub(super) id: FinishId,
    /// Number of times the slot was freed.
    pub(super) generation: u32,
    /// Number of tasks of the finish at this place, running or waiting, and of requests in progress.
    pub(super) live: u64,
    /// True if something was sent to another place under the finish from here.
    pub(super) has_sent_tasks: bool,
    pub(super) tally: ExchangeCounts,
    pub(super) faults: Faults,
    pub(super) cancelled: Option<Box<Reason>>,
    /// Number of questions asked since the last rest, of a finish opened here.
    pub(super) asked: u32,
    pub(super) role: Role,
}

/// Use of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Nothing.
    Free,
    /// A finish opened here; the ledger is made when it leaves this place.
    Home(Option<Box<Ledger>>),
    /// A finish opened elsewhere.
    Proxy(Proxy),
    /// A finish whose home is dead; nothing is reported any more.
    Orphan,
}

/// State of a proxy's exchange with the home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Proxy {
    /// True if a report was sent; the next one is sent only in answer to a question.
    pub(super) reported: bool,
    /// True if the home knows that this place has a proxy, so it will say when to forget it.
    pub(super) known: bool,
    /// The last unanswered question: the number of further tasks that must arrive.
    pub(super) question: Option<u64>,
    /// Number of unanswered questions.
    pub(super) unanswered: u32,
}

impl Slot {
    /// Returns a slot that was never used.
    pub(super) fn free() -> Slot {
        Slot {
            id: FinishId::NONE,
            generation: 0,
            live: 0,
            has_sent_tasks: false,
            tally: ExchangeCounts::default(),
            faults: Faults::default(),
            cancelled: None,
            asked: 0,
            role: Role::Free,
        }
    }

    /// Frees the slot; keys to it become invalid.
    pub(super) fn vacate(&mut self) {
        self.id = FinishId::NONE;
        self.generation = self.generation.wrapping_add(1);
        self.live = 0;
        self.has_sent_tasks = false;
        self.tally.clear(IDLE_ENTRIES_MAX);
        self.faults = Faults::default();
        self.cancelled = None;
        self.asked = 0;
        self.role = Role::Free;
    }

    /// Returns the key of the finish in the slot.
    #[inline]
    pub(super) fn key(&self, index: usize) -> Key {
        Key::new(index, self.generation)
    }

    /// Marks the slot as cancelled, once.
    pub(super) fn cancel(&mut self, index: usize, reason: Reason, out: &mut Vec<Output>) {
        if self.cancelled.is_none() {
            out.push(Output::Cancelled { key: self.key(index), reason: reason.clone() });
            self.cancelled = Some(Box::new(reason));
        }
    }

    /// Returns `true` if a proxy without live tasks must report now.
    pub(super) fn is_report_due(&self, proxy: &Proxy) -> bool {
        match proxy.question {
            Some(missing) => self.tally.received() >= missing,
            None => !proxy.reported && self.has_unreported(),
        }
    }

    /// Returns `true` if there is anything that the home does not know yet.
    pub(super) fn has_unreported(&self) -> bool {
        !self.tally.is_zero() || !self.faults.kept.is_empty() || self.faults.lost > 0
    }

    /// Reports everything new to the home, in as many parts as needed.
    pub(super) fn report(&mut self, answers: u32, out: &mut Vec<Output>) {
        let mut entries = self.tally.entries().peekable();
        let mut faults = std::mem::take(&mut self.faults);
        let mut kept = faults.kept.into_iter().peekable();
        loop {
            let part = entries.by_ref().take(REPORT_ENTRIES_MAX).collect();
            let fault = kept.next();
            let more = entries.peek().is_some() || kept.peek().is_some();
            let report = FinishReport {
                finish: self.id,
                answers: if more { 0 } else { answers },
                entries: part,
                fault,
                faults_lost: std::mem::take(&mut faults.lost),
                more,
            };
            out.push(Output::Send { to: self.id.home, control: Control::Report(report) });
            if !more {
                break;
            }
        }
        drop(entries);
        self.tally.clear(IDLE_ENTRIES_MAX);
    }
}
