//! State of other places at the home of a finish: the balance of every ordered pair.
//!
//! A balance is the number of tasks reported sent minus that of tasks reported received. The finish is over when the
//! home is quiet and all balances are zero (docs/design/finish.md has the proof). A ledger is made only when a finish
//! leaves its home. It sends nothing itself. Invariant: `unsettled` counts the non-zero cells of `reached`, and
//! `awaited` the places whose answers are outstanding.

use super::id::FinishKind;
use super::limits::SPARE_LEDGERS_MAX;
use crate::PlaceId;
use crate::ordered::OrderedMap;
use crate::place::{Entry, Hint};
use std::hash::{Hash, Hasher};

/// A place that the finish has reached, or that was asked about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReachedPlace {
    pub(super) place: PlaceId,
    /// Balance of tasks from the home to `place`.
    from_home: i64,
    /// Balance of tasks from `place` to the home.
    to_home: i64,
    /// Number of unanswered questions to `place`.
    unanswered: u32,
    /// Number of complete reports from `place`.
    pub(super) reports: u32,
    /// True if tasks are known to have gone there or come from there.
    touched: bool,
    /// True while a report of `place` has begun and not ended.
    partial: bool,
    /// True if `place` is in the list of candidates.
    queued: bool,
    /// True if `place` was told that the finish is cancelled.
    pub(super) cancel_sent: bool,
}

impl ReachedPlace {
    fn new(place: PlaceId) -> ReachedPlace {
        ReachedPlace {
            place,
            from_home: 0,
            to_home: 0,
            unanswered: 0,
            reports: 0,
            touched: false,
            partial: false,
            queued: false,
            cancel_sent: false,
        }
    }

    /// Returns `true` if a question is unanswered, or an answer is incomplete.
    pub(super) fn is_awaited(&self) -> bool {
        self.unanswered > 0 || self.partial
    }

    /// Returns `true` if a report will come without a further question.
    fn will_report(&self) -> bool {
        self.reports == 0 || self.is_awaited()
    }

    fn unsettled(&self) -> usize {
        usize::from(self.from_home != 0) + usize::from(self.to_home != 0)
    }
}

/// The home's view of the other places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    /// Sorted by place.
    reached: Vec<ReachedPlace>,
    recent: Hint,
    /// Balances between two places neither of which is the home, by (receiver, sender); no zeros.
    cross: OrderedMap<(PlaceId, PlaceId), i64>,
    unsettled: usize,
    awaited: usize,
    /// Places that may have to be asked.
    candidates: Vec<PlaceId>,
    /// Number of tasks that the home sent away.
    departed: u64,
    /// True if a task at another place sent a task.
    nested: bool,
}

impl Ledger {
    /// Returns the places reached so far, ascending.
    pub(super) fn reached(&self) -> &[ReachedPlace] {
        &self.reached
    }

    /// Returns the record of `place`, which it makes if there is none.
    pub(super) fn reach(&mut self, place: PlaceId) -> &mut ReachedPlace {
        let position = self.position(place);
        &mut self.reached[position]
    }

    fn position(&mut self, place: PlaceId) -> usize {
        for near in [self.recent.0, self.recent.0 + 1] {
            if self.reached.get(near).is_some_and(|reach| reach.place == place) {
                self.recent.0 = near;
                return near;
            }
        }
        let position = self.reached.partition_point(|reach| reach.place < place);
        if self.reached.get(position).is_none_or(|reach| reach.place != place) {
            self.reached.insert(position, ReachedPlace::new(place));
        }
        self.recent.0 = position;
        position
    }

    /// Changes one record, and the counts that follow from it.
    fn change<T>(&mut self, place: PlaceId, change: impl FnOnce(&mut ReachedPlace) -> T) -> T {
        let reach = self.reach(place);
        let before = (reach.unsettled(), usize::from(reach.is_awaited()));
        let result = change(reach);
        let after = (reach.unsettled(), usize::from(reach.is_awaited()));
        self.unsettled = self.unsettled - before.0 + after.0;
        self.awaited = self.awaited - before.1 + after.1;
        result
    }

    /// Puts `place` on the list of places that may have to be asked.
    fn add_candidate(&mut self, place: PlaceId) {
        let reach = self.reach(place);
        if !std::mem::replace(&mut reach.queued, true) {
            self.candidates.push(place);
        }
    }

    /// Enters the home's own exchange with another place.
    pub(super) fn enter_home(&mut self, entry: Entry) {
        self.departed = self.departed.saturating_add(entry.sent);
        self.nested |= entry.received > 0;
        self.change(entry.place, |reach| {
            reach.touched = true;
            reach.from_home = reach.from_home.saturating_add(amount(entry.sent));
            reach.to_home = reach.to_home.saturating_sub(amount(entry.received));
        });
        self.add_candidate(entry.place);
    }

    /// Enters an exchange with `home` that `place` reported.
    pub(super) fn enter_report_home(&mut self, place: PlaceId, entry: Entry) {
        self.nested |= entry.sent > 0;
        self.change(place, |reach| {
            reach.touched = true;
            reach.to_home = reach.to_home.saturating_add(amount(entry.sent));
            reach.from_home = reach.from_home.saturating_sub(amount(entry.received));
        });
    }

    /// Enters an exchange with a third place that `place` reported.
    pub(super) fn enter_report(&mut self, place: PlaceId, entry: Entry) {
        self.nested = true;
        self.reach(place).touched = true;
        self.reach(entry.place).touched = true;
        self.add_cross(entry.place, place, amount(entry.sent));
        self.add_cross(place, entry.place, amount(entry.received).saturating_neg());
        self.add_candidate(entry.place);
    }

    fn add_cross(&mut self, to: PlaceId, from: PlaceId, amount: i64) {
        if amount == 0 {
            return;
        }
        let balance = self.cross.get_or_default((to, from));
        *balance = balance.saturating_add(amount);
        if *balance == 0 {
            self.cross.remove((to, from));
        }
    }

    /// Records that a part of a report of `place` was entered, which answers that many questions.
    pub(super) fn receive_report(&mut self, place: PlaceId, answers: u32, more: bool) {
        self.change(place, |reach| {
            reach.partial = more;
            reach.unanswered = reach.unanswered.saturating_sub(answers);
            reach.reports = reach.reports.saturating_add(u32::from(!more));
        });
        self.add_candidate(place);
    }

    /// Returns the number of unanswered questions to `place`.
    pub(super) fn unanswered(&self, place: PlaceId) -> u32 {
        let position = self.reached.binary_search_by_key(&place, |reach| reach.place);
        position.map_or(0, |position| self.reached[position].unanswered)
    }

    /// Records that a question was sent to `place`.
    pub(super) fn ask(&mut self, place: PlaceId) {
        self.change(place, |reach| reach.unanswered = reach.unanswered.saturating_add(1));
    }

    /// Returns the number of tasks known to be sent to the place of `reach` and not known to be received there.
    pub(super) fn missing(&self, reach: &ReachedPlace) -> u64 {
        let from_others = self.cross.range((reach.place, PlaceId(0))..=(reach.place, PlaceId(u32::MAX)));
        let positive = |balance: i64| u64::try_from(balance).unwrap_or(0);
        from_others
            .fold(positive(reach.from_home), |sum, (_, &balance)| sum.saturating_add(positive(balance)))
    }

    /// Returns `true` if some place may have to be asked.
    pub(super) fn has_candidates(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// Returns the next place to be asked, with the number of tasks that it misses.
    pub(super) fn next_question(&mut self) -> Option<(PlaceId, u64)> {
        while let Some(place) = self.candidates.pop() {
            let position = self.position(place);
            self.reached[position].queued = false;
            let reach = &self.reached[position];
            let missing = if reach.will_report() { 0 } else { self.missing(reach) };
            if missing > 0 {
                return Some((place, missing));
            }
        }
        None
    }

    /// Returns `true` if all known counts add up and no answer is outstanding.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled == 0 && self.awaited == 0 && self.cross.is_empty()
    }

    /// Removes everything about `place`; returns whether it is known to have had tasks of the finish.
    pub(super) fn mark_dead(&mut self, place: PlaceId) -> bool {
        self.cross.retain(|(to, from), _| to != place && from != place);
        let Ok(position) = self.reached.binary_search_by_key(&place, |reach| reach.place) else {
            return false;
        };
        let reach = self.reached.remove(position);
        self.unsettled -= reach.unsettled();
        self.awaited -= usize::from(reach.is_awaited());
        self.candidates.retain(|&candidate| candidate != place);
        reach.touched
    }

    /// Returns the kind that the finish has needed so far.
    pub(super) fn kind(&self) -> FinishKind {
        match (self.nested, self.departed) {
            (true, _) => FinishKind::General,
            (false, 0) => FinishKind::Local,
            (false, 1) => FinishKind::Single,
            (false, _) => FinishKind::Spmd,
        }
    }
}

/// Empty ledgers with room, so that a finish that leaves its home need not allocate; not part of a state's identity.
#[derive(Clone, Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes go into slots as they are")]
pub(super) struct LedgerPool(Vec<Box<Ledger>>);

impl LedgerPool {
    /// Returns the ledger in `place`, which it puts there if there is none.
    pub(super) fn ledger<'a>(&mut self, place: &'a mut Option<Box<Ledger>>) -> &'a mut Ledger {
        place.get_or_insert_with(|| self.0.pop().unwrap_or_default())
    }

    /// Keeps the ledger of a finish that is over for reuse, if few are kept.
    pub(super) fn keep(&mut self, mut ledger: Box<Ledger>) {
        if self.0.len() < SPARE_LEDGERS_MAX {
            let Ledger { mut reached, mut candidates, .. } = std::mem::take(&mut *ledger);
            reached.clear();
            candidates.clear();
            *ledger = Ledger { reached, candidates, ..Ledger::default() };
            self.0.push(ledger);
        }
    }
}

impl PartialEq for LedgerPool {
    fn eq(&self, _: &LedgerPool) -> bool {
        true
    }
}
impl Eq for LedgerPool {}
impl Hash for LedgerPool {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Converts a count to a balance; a peer's absurd count becomes the largest balance.
fn amount(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
