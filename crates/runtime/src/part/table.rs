//! The parts that a place knows, and their counts of handles.
//!
//! A pure machine: it returns the messages for other places, and knows neither clock nor endpoint. Invariant: a place
//! other than the home where a handle lives, or that has lent one, owes at least one handle to its parent; so parents
//! lead to the home, and the home counts at least one handle as lent.

use super::deaths::Deaths;
use super::slots::{PartSlots, SlotHint};
use super::{PartId, PartMessage, Value};
use crate::limits::{DUE_MAX, RETURN_WAIT, RETURNS_MAX};
use crate::members::Members;
use isles_protocol::PlaceId;
use isles_protocol::ordered::{OrderedMap, OrderedSet};
use std::time::Duration;

/// The parts of one place.
#[derive(Default)]
pub(crate) struct PartTable {
    serial: u64,
    entries: PartSlots<Entry>,
    /// Handles in the current message, with its receivers, until it is sent or given up.
    lent: Vec<(PartId, PlaceId)>,
    /// The parts for which [`PartTable::settle`] has work, without duplicates.
    due: Vec<PartId>,
    /// Time since which there are any.
    due_since: Option<Duration>,
    /// The deaths that are known here.
    pub(super) deaths: Deaths,
}

#[derive(Default)]
struct Entry {
    /// Value of the part here; `None` for a handle of a part that only its home has.
    value: Option<Value>,
    /// Number of handles alive at this place.
    handles: usize,
    /// Handles that were sent from here and not returned, by receiver.
    lent: OutstandingHandles,
    /// The place whose count keeps the part alive for this one, and the number of handles owed to it. `None` at the
    /// home, and if the part is not in use.
    parent: Option<(PlaceId, u64)>,
    /// Handles that this place owes to others, which may be returned while the part is in use here.
    owed: OrderedMap<PlaceId, u64>,
    /// The places that have a value, to be freed with the part, if there are more than the home.
    members: Option<Members>,
    /// True if it is in [`PartTable::due`].
    is_due: bool,
}

/// Handles that were sent from a place and not returned, by receiver: hardly ever many receivers.
#[derive(Debug, Default)]
struct OutstandingHandles(Vec<(PlaceId, u64)>);

impl OutstandingHandles {
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    fn add(&mut self, to: PlaceId, count: u64) {
        match self.0.iter_mut().find(|(place, _)| *place == to) {
            Some((_, known)) => *known += count,
            None => self.0.push((to, count)),
        }
    }

    /// Subtracts `count`; returns `false` if there are fewer.
    #[inline]
    fn subtract(&mut self, to: PlaceId, count: u64) -> bool {
        let Some(at) = self.0.iter().position(|(place, known)| *place == to && *known >= count) else {
            return false;
        };
        self.0[at].1 -= count;
        if self.0[at].1 == 0 {
            self.0.swap_remove(at);
        }
        true
    }

    /// Returns `true` if handles went to one of these places.
    fn are_at(&self, places: &OrderedSet<PlaceId>) -> bool {
        self.0.iter().any(|(place, _)| places.contains(*place))
    }

    /// Removes all handles that went to these places.
    fn forget(&mut self, places: &OrderedSet<PlaceId>) {
        self.0.retain(|(place, _)| !places.contains(*place));
    }
}

impl Entry {
    /// Returns `true` if a handle lives here or was lent from here.
    fn is_in_use(&self) -> bool {
        self.handles > 0 || !self.lent.is_empty()
    }

    /// Owes one more handle to `lender`.
    #[inline]
    fn owe(&mut self, lender: PlaceId, home: PlaceId, here: PlaceId) {
        match &mut self.parent {
            Some((parent, count)) if *parent == lender => *count += 1,
            None if here != home => self.parent = Some((lender, 1)),
            _ => self.add_debt_to_other(lender, home),
        }
    }

    /// Owes as [`Entry::owe`] does, if the lender is not the parent, and a parent exists or is not needed.
    #[cold]
    fn add_debt_to_other(&mut self, lender: PlaceId, home: PlaceId) {
        match &mut self.parent {
            // The home is the best parent: it depends on no other place.
            Some((parent, count)) if lender == home => {
                *self.owed.get_or_default(*parent) += *count;
                self.parent = Some((home, 1));
            }
            _ => *self.owed.get_or_default(lender) += 1,
        }
    }
}

/// Work that remains once parts are out of use.
#[derive(Default)]
pub(super) struct Settled {
    /// The values of freed parts; to be dropped when nothing is borrowed.
    pub(super) freed: Vec<Value>,
    /// Messages to send, each with its receiver.
    pub(super) messages: Vec<(PlaceId, PartMessage)>,
}

/// More handles were returned than were lent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotLent;

impl PartTable {
    /// Makes a part whose home is here, with one handle.
    pub(super) fn make(
        &mut self,
        here: PlaceId,
        value: Value,
        members: Option<Members>,
    ) -> (PartId, SlotHint) {
        let id = PartId { home: here, serial: self.serial };
        self.serial += 1;
        let entry = Entry { value: Some(value), handles: 1, members, ..Entry::default() };
        (id, self.entries.insert(id, entry))
    }

    /// Stores the value here of a part of another home, which has one at each of `members`.
    pub(crate) fn place(&mut self, id: PartId, value: Value, members: Members) {
        let (_, entry) = self.entries.entry(id);
        (entry.value, entry.members) = (Some(value), Some(members));
    }

    /// Returns the places that have a value, if that is more than the home; known where there is one.
    pub(super) fn members(&self, id: PartId) -> Option<Members> {
        self.entries.get(id)?.members.clone()
    }

    /// Returns the value here.
    pub(crate) fn value(&self, id: PartId) -> Option<Value> {
        self.entries.get(id)?.value.clone()
    }

    /// Counts one more handle here.
    pub(super) fn retain(&mut self, id: PartId) -> SlotHint {
        let (slot, entry) = self.entries.entry(id);
        entry.handles += 1;
        slot
    }

    /// Counts one handle less here; returns the part if this is its home and it was the last one anywhere, for
    /// [`PartTable::free_part`].
    #[inline]
    pub(super) fn release(&mut self, id: PartId, slot: SlotHint, here: PlaceId) -> Option<PartId> {
        let entry = self.entries.get_at(slot, id)?;
        entry.handles -= 1;
        if entry.is_in_use() {
            return None;
        }
        if id.home == here {
            return Some(id);
        }
        note_due(entry, &mut self.due, id);
        None
    }

    /// Counts a handle that is written into a message to `to`; [`PartTable::commit_sent`] or
    /// [`PartTable::roll_back_sent`] settles it.
    #[inline]
    pub(super) fn count_sent(&mut self, id: PartId, slot: SlotHint, to: PlaceId) {
        self.entries.entry_at(slot, id).lent.add(to, 1);
        self.lent.push((id, to));
    }

    /// Returns `true` if a handle is written into the current message.
    pub(crate) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Begins another message while one is being written; returns the handles of the first, for [`PartTable::resume`].
    pub(crate) fn begin_nested(&mut self) -> Vec<(PartId, PlaceId)> {
        std::mem::take(&mut self.lent)
    }

    /// Resumes the message that carries the handles `lent`.
    pub(crate) fn resume(&mut self, lent: Vec<(PartId, PlaceId)>) {
        debug_assert!(self.lent.is_empty(), "a message that was neither let go nor taken back");
        self.lent = lent;
    }

    /// Commits the handles of the message: it is sent.
    #[inline]
    pub(crate) fn commit_sent(&mut self) {
        self.lent.clear();
    }

    /// Undoes the counts of the message's handles: it is given up, or will be written again.
    #[inline]
    pub(crate) fn roll_back_sent(&mut self) {
        while let Some((id, to)) = self.lent.pop() {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.lent.subtract(to, 1);
                // The written handle may be dropped: an encoding can make the handle that it writes.
                if !entry.is_in_use() {
                    note_due(entry, &mut self.due, id);
                }
            }
        }
    }

    /// Counts a handle that has arrived, which `lender` counts, or nothing does; returns the slot of its part, and the
    /// value here.
    #[inline]
    pub(super) fn count_received(
        &mut self,
        id: PartId,
        lender: Option<PlaceId>,
        here: PlaceId,
    ) -> (SlotHint, Option<Value>) {
        let (slot, entry) = self.entries.entry(id);
        entry.handles += 1;
        match lender {
            None => {}
            Some(lender) if lender == here => _ = entry.lent.subtract(here, 1),
            Some(lender) => {
                entry.owe(lender, id.home, here);
                if !entry.owed.is_empty() {
                    note_due(entry, &mut self.due, id);
                }
            }
        }
        (slot, entry.value.clone())
    }

    /// Handles that `from` has dropped handles lent from here; returns as [`PartTable::release`].
    pub(super) fn given_back(
        &mut self,
        id: PartId,
        from: PlaceId,
        count: u64,
        here: PlaceId,
    ) -> Result<Option<PartId>, NotLent> {
        // The place may have cleared its parts at its end.
        let Some(entry) = self.entries.get_mut(id) else { return Ok(None) };
        if !entry.lent.subtract(from, count) {
            return Err(NotLent);
        }
        if entry.is_in_use() {
            return Ok(None);
        }
        if id.home == here {
            return Ok(Some(id));
        }
        note_due(entry, &mut self.due, id);
        Ok(None)
    }

    /// Returns `true` if [`PartTable::settle`] has work.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns `true` if it is time to settle; called if something is due.
    pub(super) fn is_return_due(&mut self, now: Duration) -> bool {
        let since = *self.due_since.get_or_insert(now);
        self.due.len() >= DUE_MAX || now.saturating_sub(since) >= RETURN_WAIT
    }

    /// Returns the time to settle, if nothing happens.
    pub(crate) fn next_settling(&self) -> Option<Duration> {
        self.due_since.map(|since| since + RETURN_WAIT)
    }

    /// Returns owed handles that nothing here needs, and frees the parts of this home that have no handles anywhere.
    pub(super) fn settle(&mut self, here: PlaceId) -> Settled {
        let mut settled = Settled::default();
        let mut returns: OrderedMap<PlaceId, Vec<(PartId, u64)>> = OrderedMap::new();
        self.due_since = None;
        for id in std::mem::take(&mut self.due) {
            let Some(entry) = self.entries.get_mut(id) else { continue };
            entry.is_due = false;
            let mut owed = std::mem::take(&mut entry.owed);
            if !entry.is_in_use() {
                if id.home == here {
                    self.free_part(id, &mut settled);
                    continue;
                }
                owed.extend(entry.parent.take());
                if entry.value.is_none() {
                    self.entries.remove(id);
                }
            }
            owed.into_iter().for_each(|(to, count)| returns.get_or_default(to).push((id, count)));
        }
        for (to, counts) in returns {
            let chunks = counts.chunks(RETURNS_MAX).map(|counts| (to, PartMessage::Return(counts.to_vec())));
            settled.messages.extend(chunks);
        }
        settled
    }

    /// Frees a part of this home that has no handles anywhere.
    pub(super) fn free_part(&mut self, id: PartId, settled: &mut Settled) {
        let Some(entry) = self.entries.remove(id) else { return };
        let members = entry.members.iter().flat_map(Members::iter);
        let others = members.filter(|place| *place != id.home);
        settled.messages.extend(others.map(|place| (place, PartMessage::Free(id))));
        settled.freed.extend(entry.value);
    }

    /// Frees the value of a part of another home.
    pub(super) fn free(&mut self, id: PartId) -> Option<Value> {
        self.entries.remove(id).and_then(|entry| entry.value)
    }

    /// Returns the homes of the parts of which handles were lent to one of these places.
    pub(super) fn homes_with_handles_at(&self, places: &OrderedSet<PlaceId>) -> OrderedSet<PlaceId> {
        let lent = self.entries.iter().filter(|(_, entry)| entry.lent.are_at(places));
        lent.map(|(id, _)| id.home).collect()
    }

    /// Makes `home` the parent of all its parts that this place has from one of the `dead`; returns those in use here,
    /// for [`PartTable::adopt`] there. Nothing is owed to the dead any more.
    pub(super) fn leave_dead_parents(&mut self, home: PlaceId, dead: &OrderedSet<PlaceId>) -> Vec<PartId> {
        let mut orphans = Vec::new();
        for (id, entry) in self.entries.iter_mut().filter(|(id, _)| id.home == home) {
            entry.owed.retain(|to, _| !dead.contains(to));
            if entry.parent.is_none_or(|(parent, _)| !dead.contains(parent)) {
                continue;
            }
            entry.parent = entry.is_in_use().then_some((home, 1));
            orphans.extend(entry.parent.map(|_| id));
        }
        orphans.sort_unstable();
        orphans
    }

    /// Adopts a handle of `place`, which has a part of this home from a dead place: it now counts as lent from here.
    pub(super) fn adopt(&mut self, id: PartId, place: PlaceId) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.lent.add(place, 1);
        }
    }

    /// Subtracts what was lent to the `dead`, because all places that had parts of `home` from them have new parents.
    /// Returns the parts of this home that are out of use, for [`PartTable::free_part`].
    pub(super) fn forget_lent(
        &mut self,
        home: PlaceId,
        dead: &OrderedSet<PlaceId>,
        here: PlaceId,
    ) -> Vec<PartId> {
        let mut unused = Vec::new();
        let concerned = |id: &PartId, entry: &Entry| id.home == home && entry.lent.are_at(dead);
        for (id, entry) in self.entries.iter_mut().filter(|(id, entry)| concerned(id, entry)) {
            entry.lent.forget(dead);
            if entry.is_in_use() {
                continue;
            }
            if home == here {
                unused.push(id);
            } else {
                note_due(entry, &mut self.due, id);
            }
        }
        unused.sort_unstable();
        unused
    }

    /// Takes every value, at the end of the place.
    pub(crate) fn clear(&mut self) -> Vec<Value> {
        self.entries.drain().filter_map(|entry| entry.value).collect()
    }

    /// Returns the number of parts this place knows; for tests and reports.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Makes [`PartTable::settle`] check the entry of `id`.
#[inline]
fn note_due(entry: &mut Entry, due: &mut Vec<PartId>, id: PartId) {
    if !std::mem::replace(&mut entry.is_due, true) {
        due.push(id);
    }
}
