//! The credit in slots that the home of a channel gives to other places, and those who wait to receive; no value.
//!
//! It differs from [`SendCredit`](crate::credit::SendCredit) because slots of all places come from one buffer, are lent
//! and kept, and can be recalled. Apart from the buffer, so that it is compiled once and not for each type of values.
//! Invariant: the reserved slots are those that are out or kept, of all places together.

use super::step::{OperationId, SlotViolation};
use crate::PlaceId;
use std::collections::VecDeque;

/// The slots of one place.
#[derive(Clone, Copy, Debug, Default)]
struct SlotCredit {
    /// Slots that it has, or has used for values that are under way.
    out: u32,
    /// Slots that are kept for it, because values that used them have been received.
    kept: u32,
    /// Values of it in the buffer, whose slots will be kept for it.
    buffered: u32,
    /// True if it was asked to return them.
    is_recalled: bool,
    /// Values that went there and may come back: here those that no task has taken yet, elsewhere all since the place
    /// was asked last. A receiver that takes them says nothing, so they are as many as a long run has values.
    lent: u64,
    /// Values still to be taken or put back, if it was asked to say when all that had gone there before are.
    settling: Option<u64>,
}

impl SlotCredit {
    fn size(self) -> u32 {
        self.out + self.kept + self.buffered
    }

    /// Takes back a value; returns whether any was there. Those from before the question go first, though it may be a
    /// later one: together they are never fewer than what can come back.
    fn take_back(&mut self) -> bool {
        let count = match &mut self.settling {
            Some(before) if *before > 0 => before,
            _ => &mut self.lent,
        };
        let is_there = *count > 0;
        *count -= u64::from(is_there);
        is_there
    }
}

/// A credit for each place that has had one, in the order of the places. Hardly ever are there many, and each value
/// that comes from another place looks for its credit several times.
#[derive(Clone, Debug, Default)]
struct CreditTable(Vec<(PlaceId, SlotCredit)>);

impl CreditTable {
    /// Returns the index of the credit of `place`, or as an error the index at which to insert it.
    #[inline]
    fn find(&self, place: PlaceId) -> Result<usize, usize> {
        match self.0.first() {
            Some((first, _)) if *first == place => Ok(0),
            _ => self.search(place),
        }
    }

    #[cold]
    #[inline(never)]
    fn search(&self, place: PlaceId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&place, |(place, _)| *place)
    }

    #[inline]
    fn get_mut(&mut self, place: PlaceId) -> Option<&mut SlotCredit> {
        let found = self.find(place).ok()?;
        Some(&mut self.0[found].1)
    }

    /// The credit of `place`, a new one if it has none.
    #[inline]
    fn entry(&mut self, place: PlaceId) -> &mut SlotCredit {
        let at = self.find(place).unwrap_or_else(|at| {
            self.0.insert(at, (place, SlotCredit::default()));
            at
        });
        &mut self.0[at].1
    }

    fn remove(&mut self, place: PlaceId) -> Option<SlotCredit> {
        self.find(place).ok().map(|found| self.0.remove(found).1)
    }
}

/// The slots of all places.
#[derive(Clone, Debug)]
pub(super) struct SlotCredits {
    here: PlaceId,
    places: CreditTable,
    /// Slots that are out or kept, of all places.
    reserved: u32,
}

impl SlotCredits {
    pub(super) fn new(here: PlaceId) -> SlotCredits {
        SlotCredits { here, places: CreditTable::default(), reserved: 0 }
    }

    /// Slots that are out or kept, of all places.
    #[inline]
    pub(super) fn reserved(&self) -> usize {
        self.reserved as usize
    }

    /// Reserves `slots` for `place`.
    pub(super) fn reserve(&mut self, place: PlaceId, slots: u32) {
        self.places.entry(place).out += slots;
        self.reserved += slots;
    }

    /// A value for which `place` had a slot has come.
    ///
    /// # Errors
    /// It had none.
    pub(super) fn use_slot(&mut self, place: PlaceId) -> Result<(), SlotViolation> {
        self.with_slots(place, 1).map(|credit| credit.out -= 1)?;
        self.reserved -= 1;
        Ok(())
    }

    /// `place` returns slots that it has not used.
    ///
    /// # Errors
    /// `place` has fewer than `slots`.
    pub(super) fn return_slots(&mut self, place: PlaceId, slots: u32) -> Result<(), SlotViolation> {
        let credit = self.with_slots(place, slots)?;
        credit.out -= slots;
        credit.is_recalled = false;
        self.reserved -= slots;
        Ok(())
    }

    /// The credit of a place that has as many slots out.
    fn with_slots(&mut self, place: PlaceId, slots: u32) -> Result<&mut SlotCredit, SlotViolation> {
        self.places.get_mut(place).filter(|credit| credit.out >= slots).ok_or(SlotViolation)
    }

    /// A value for which `place` had a slot goes into the buffer.
    pub(super) fn note_buffered(&mut self, place: PlaceId) {
        self.places.entry(place).buffered += 1;
    }

    /// Notes that a value of `place` has left the buffer.
    pub(super) fn note_received(&mut self, place: PlaceId) {
        if let Some(credit) = self.places.get_mut(place) {
            credit.buffered = credit.buffered.saturating_sub(1);
        }
    }

    /// Keeps a slot for `place`; as many as are announced to it, when what is kept is a quarter of all.
    pub(super) fn keep(&mut self, place: PlaceId) -> Option<u32> {
        let credit = self.places.get_mut(place).filter(|credit| !credit.is_recalled)?;
        credit.kept += 1;
        self.reserved += 1;
        if 4 * credit.kept < credit.size() {
            return None;
        }
        let slots = std::mem::take(&mut credit.kept);
        credit.out += slots;
        Some(slots)
    }

    /// Takes all kept slots from their places, because they are needed, or because there are to be none; how many.
    pub(super) fn take_idle(&mut self) -> u32 {
        let kept: u32 = self.places.0.iter_mut().map(|(_, credit)| std::mem::take(&mut credit.kept)).sum();
        self.reserved -= kept;
        kept
    }

    /// The places that have slots and were not asked for them; now they are.
    pub(super) fn recall(&mut self) -> Vec<PlaceId> {
        let others = self.places.0.iter_mut().filter(|(_, credit)| credit.out > 0);
        let ask = |(place, credit): &mut (PlaceId, SlotCredit)| {
            (!std::mem::replace(&mut credit.is_recalled, true)).then_some(*place)
        };
        others.filter_map(ask).collect()
    }

    /// The places that have slots; they are asked for them, again if they were.
    pub(super) fn recall_all(&mut self) -> Vec<PlaceId> {
        let others = self.places.0.iter_mut().filter(|(_, credit)| credit.out > 0);
        let recall = |(place, credit): &mut (PlaceId, SlotCredit)| {
            credit.is_recalled = true;
            *place
        };
        others.map(recall).collect()
    }

    /// Notes that a value goes where it may come back from.
    pub(super) fn lend(&mut self, place: PlaceId) {
        self.places.entry(place).lent += 1;
    }

    /// Takes back a value from `place`; returns whether any was there.
    pub(super) fn take_back(&mut self, place: PlaceId) -> bool {
        self.places.get_mut(place).is_some_and(SlotCredit::take_back)
    }

    /// A value that went to an operation of this place cannot come back any more.
    pub(super) fn forget_lent(&mut self) {
        if let Some(credit) = self.places.get_mut(self.here) {
            credit.lent = credit.lent.saturating_sub(1);
        }
    }

    /// The other places from which values may come back and which were not asked; now they are.
    pub(super) fn settle(&mut self) -> Vec<PlaceId> {
        let here = self.here;
        let open = |(place, credit): &&mut (PlaceId, SlotCredit)| {
            *place != here && credit.lent > 0 && credit.settling.is_none()
        };
        let settle = |(place, credit): &mut (PlaceId, SlotCredit)| {
            (credit.lent, credit.settling) = (0, Some(credit.lent));
            *place
        };
        self.places.0.iter_mut().filter(open).map(settle).collect()
    }

    /// Each value that had gone to `place` when it was asked has been taken or put back.
    pub(super) fn settled(&mut self, place: PlaceId) {
        if let Some(credit) = self.places.get_mut(place) {
            credit.settling = None;
        }
    }

    /// Returns `true` if no value is under way, in either direction.
    pub(super) fn are_quiet(&self) -> bool {
        let is_quiet = |(_, credit): &(PlaceId, SlotCredit)| {
            credit.out == 0 && credit.lent == 0 && credit.settling.is_none()
        };
        self.places.0.iter().all(is_quiet)
    }

    /// Forgets a place that is dead.
    pub(super) fn remove(&mut self, place: PlaceId) {
        if let Some(credit) = self.places.remove(place) {
            self.reserved -= credit.out + credit.kept;
        }
    }
}

/// Tasks that wait to receive, the longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Receivers(VecDeque<OperationId>);

impl Receivers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, id: OperationId) {
        self.0.push_back(id);
    }

    pub(super) fn pop(&mut self) -> Option<OperationId> {
        self.0.pop_front()
    }

    /// Forgets one: whether it was there.
    pub(super) fn remove(&mut self, id: OperationId) -> bool {
        let found = self.0.iter().position(|other| *other == id);
        found.and_then(|found| self.0.remove(found)).is_some()
    }

    pub(super) fn remove_place(&mut self, place: PlaceId) {
        self.0.retain(|id| id.place != place);
    }
}
