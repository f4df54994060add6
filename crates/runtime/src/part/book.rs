//! The parts that a place knows, and their weights.

use super::{PartId, PartMessage};
use crate::hasher::Numbered;
use isles_protocol::PlaceId;
use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;

/// All the weight of a part. It is split by two or by [`HOME_PORTION`], so it lasts for 2³⁰ sends from the home.
const WEIGHT: u64 = 1 << 62;

/// What the home sends along with one handle, as long as it has plenty.
const HOME_PORTION: u64 = 1 << 32;

/// The parts of one place.
#[derive(Default)]
pub(crate) struct Parts {
    serial: u64,
    entries: HashMap<PartId, Entry, Numbered>,
    /// What the message under way takes along, until it is sent or given up.
    lent: Vec<(PartId, u64)>,
}

struct Entry {
    /// What the handles stand for here; a handle to a part of its home only has none elsewhere.
    value: Option<Rc<dyn Any>>,
    /// Handles alive at this place.
    handles: usize,
    /// Weight that this place holds.
    weight: u64,
    /// Whether all places have a value, to be freed with the part.
    everywhere: bool,
    /// Whether the part is never freed.
    pinned: bool,
}

type Freed = Option<Rc<dyn Any>>;

impl Parts {
    /// Makes a part whose home is here, with one handle.
    pub(super) fn make(&mut self, here: PlaceId, value: Rc<dyn Any>, everywhere: bool) -> PartId {
        let id = PartId { home: here, serial: self.serial };
        self.serial += 1;
        let entry = Entry { value: Some(value), handles: 1, weight: WEIGHT, everywhere, pinned: false };
        self.entries.insert(id, entry);
        id
    }

    /// Puts the value of a part of another home here.
    pub(crate) fn place(&mut self, id: PartId, value: Rc<dyn Any>) {
        self.entry(id).value = Some(value);
    }

    fn entry(&mut self, id: PartId) -> &mut Entry {
        let fresh = || Entry { value: None, handles: 0, weight: 0, everywhere: false, pinned: false };
        self.entries.entry(id).or_insert_with(fresh)
    }

    /// The value here.
    pub(super) fn value(&self, id: PartId) -> Freed {
        self.entries.get(&id)?.value.clone()
    }

    /// One more handle here.
    pub(super) fn retain(&mut self, id: PartId) {
        self.entry(id).handles += 1;
    }

    /// One handle less here; what must be told to whom.
    pub(super) fn release(&mut self, id: PartId, here: PlaceId) -> Vec<(PlaceId, PartMessage)> {
        let Some(entry) = self.entries.get_mut(&id) else { return Vec::new() };
        entry.handles -= 1;
        if entry.handles > 0 {
            return Vec::new();
        }
        if id.home == here {
            // To itself: the home looks whether this was the last handle anywhere.
            return vec![(here, PartMessage::Return { id, weight: 0 })];
        }
        let weight = std::mem::take(&mut entry.weight);
        // The pin is told before the weight that has kept the part so far.
        let pin = std::mem::take(&mut entry.pinned).then_some((id.home, PartMessage::Pin { id }));
        if entry.value.is_none() {
            self.entries.remove(&id);
        }
        pin.into_iter().chain([(id.home, PartMessage::Return { id, weight })]).collect()
    }

    /// Takes weight for a handle that is written into a message; to be settled by [`Parts::let_go`] or
    /// [`Parts::take_back`].
    pub(super) fn lend(&mut self, id: PartId) -> u64 {
        let entry = self.entry(id);
        let portion = if entry.weight > 2 * HOME_PORTION { HOME_PORTION } else { entry.weight / 2 };
        entry.weight -= portion;
        // A handle without weight is not counted, so the part must stay.
        entry.pinned |= portion == 0;
        self.lent.push((id, portion));
        portion
    }

    /// Whether a handle is written into the message under way.
    pub(crate) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }

    /// Another message begins while one is being written; returns what that one takes along, for [`Parts::resume`].
    pub(crate) fn begin_another(&mut self) -> Vec<(PartId, u64)> {
        std::mem::take(&mut self.lent)
    }

    /// The message that takes `lent` along goes on.
    pub(crate) fn resume(&mut self, lent: Vec<(PartId, u64)>) {
        debug_assert!(self.lent.is_empty(), "a message that was neither let go nor taken back");
        self.lent = lent;
    }

    /// The message is sent.
    #[inline]
    pub(crate) fn let_go(&mut self) {
        self.lent.clear();
    }

    /// The message is given up, or will be written again.
    #[inline]
    pub(crate) fn take_back(&mut self) {
        while let Some((id, weight)) = self.lent.pop() {
            self.entry(id).weight += weight;
        }
    }

    /// A handle has arrived; the value here.
    pub(super) fn adopt(&mut self, id: PartId, weight: u64) -> Option<Rc<dyn Any>> {
        let entry = self.entry(id);
        entry.handles += 1;
        entry.weight = entry.weight.saturating_add(weight);
        entry.value.clone()
    }

    /// Weight comes home; frees the part if all of it is here and no handle is.
    pub(super) fn take_home(
        &mut self,
        id: PartId,
        weight: u64,
        here: PlaceId,
        places: u32,
    ) -> (Freed, Vec<(PlaceId, PartMessage)>) {
        let Some(entry) = self.entries.get_mut(&id) else { return (None, Vec::new()) };
        entry.weight = entry.weight.saturating_add(weight);
        if entry.handles > 0 || entry.weight != WEIGHT || entry.pinned {
            return (None, Vec::new());
        }
        let everywhere = entry.everywhere;
        let freed = self.entries.remove(&id).and_then(|entry| entry.value);
        let others = (0..places).map(PlaceId).filter(|place| everywhere && *place != here);
        (freed, others.map(|place| (place, PartMessage::Free { id })).collect())
    }

    /// Never frees the part.
    pub(super) fn pin(&mut self, id: PartId) -> Freed {
        self.entry(id).pinned = true;
        None
    }

    /// Frees the value of a part of another home.
    pub(super) fn free(&mut self, id: PartId) -> Freed {
        self.entries.remove(&id).and_then(|entry| entry.value)
    }

    /// Takes every value, for the end of the place.
    pub(crate) fn clear(&mut self) -> Vec<Rc<dyn Any>> {
        self.entries.drain().filter_map(|(_, entry)| entry.value).collect()
    }

    /// How many parts this place knows; for tests and reports.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: PlaceId = PlaceId(0);
    const AWAY: PlaceId = PlaceId(1);

    fn travel(from: &mut Parts, to: &mut Parts, id: PartId) {
        let weight = from.lend(id);
        from.let_go();
        to.adopt(id, weight);
    }

    #[test]
    fn the_last_handle_anywhere_frees_the_part() {
        let (mut home, mut away) = (Parts::default(), Parts::default());
        let id = home.make(HOME, Rc::new(7), true);
        travel(&mut home, &mut away, id);
        let told = home.release(id, HOME);
        assert_eq!(told, vec![(HOME, PartMessage::Return { id, weight: 0 })]);
        assert!(home.take_home(id, 0, HOME, 2).0.is_none());
        let told = away.release(id, AWAY);
        let [(HOME, PartMessage::Return { weight, .. })] = told[..] else { panic!("{told:?}") };
        let (freed, told) = home.take_home(id, weight, HOME, 2);
        assert!(freed.is_some());
        assert_eq!(told, vec![(AWAY, PartMessage::Free { id })]);
        assert_eq!((home.len(), away.len()), (0, 0));
    }

    #[test]
    fn a_message_given_up_takes_no_weight_along() {
        let mut home = Parts::default();
        let id = home.make(HOME, Rc::new(7), false);
        home.lend(id);
        home.take_back();
        home.release(id, HOME);
        assert!(home.take_home(id, 0, HOME, 2).0.is_some());
    }

    #[test]
    fn weight_split_to_nothing_keeps_the_part() {
        let (mut home, mut away) = (Parts::default(), Parts::default());
        let id = home.make(HOME, Rc::new(7), false);
        travel(&mut home, &mut away, id);
        let portions = std::iter::repeat_with(|| {
            let weight = away.lend(id);
            away.let_go();
            weight
        });
        assert_eq!(portions.take_while(|weight| *weight > 0).count(), 32);
        let told = away.release(id, AWAY);
        assert_eq!(told[0], (HOME, PartMessage::Pin { id }));
        assert_eq!(told[1], (HOME, PartMessage::Return { id, weight: 1 }));
    }
}
