//! Exact results when places die: numbered parts, backups at partners, and the assignment of restores.
//!
//! Each place has a [`BackupState`] beside its balancer. Bags, and parts of them, are bytes here: a partner never
//! decodes what it keeps, and one machine serves all types of bags. All steps are those of `docs/design/glb.md`,
//! section 4. Invariant: the backups, and the given parts that are not in the backup of their receiver, hold each task
//! once.

use crate::ordered::{OrderedMap, OrderedSet};
use crate::ordered_keys;
use serde::{Deserialize, Serialize};

/// Largest number of parts that a place accepts without a save: it bounds what their givers keep for it.
const UNSAVED_MAX: usize = 16;

/// A bag or a part of one, encoded.
pub type EncodedBag = Vec<u8>;

/// Numbers that have arrived from one giver, nearly in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedNumbers {
    /// All below this one have arrived.
    below: u64,
    /// Numbers beyond `below` that have arrived.
    beyond: OrderedSet<u64>,
}

impl ReceivedNumbers {
    fn note(&mut self, number: u64) {
        if number >= self.below {
            self.beyond.insert(number);
        }
        while self.beyond.remove(self.below) {
            self.below += 1;
        }
    }

    fn has(&self, number: u64) -> bool {
        number < self.below || self.beyond.contains(number)
    }
}

/// The numbers that have arrived, by giver.
type Received = OrderedMap<usize, ReceivedNumbers>;

/// Parts by id.
type Parts<V> = OrderedMap<PartName, V>;

/// A save that has begun.
#[derive(Clone, Debug)]
pub struct StartedSave {
    /// Its number, for [`BackupState::saved`].
    pub version: u64,
    /// The partner and the content to send; the save of the first place has no partner.
    pub outgoing: Option<(usize, Save)>,
}

/// The id of a part that one place has given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartName {
    giver: usize,
    thief: usize,
    /// Number of the part among those of this giver for this thief.
    number: u64,
}

ordered_keys! {
    // The number of a place has 32 bits.
    PartName: 128,
        |name| ((name.giver as u32, name.thief as u32), name.number).to_number(),
        |number| {
            let ((giver, thief), number) = <((u32, u32), u64)>::from_number(number);
            PartName { giver: giver as usize, thief: thief as usize, number }
        };
}

/// A part that was given and may not be in its receiver's backup.
#[derive(Clone, Debug)]
struct GivenPart {
    part: EncodedBag,
    /// The first save that includes it, and whether the partner has stored that.
    version: Option<u64>,
    is_saved: bool,
}

/// A copy of the state of a place, for its partner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Save {
    version: u64,
    bag: Option<EncodedBag>,
    received: Received,
    /// All given parts that may not be in a backup, and those of them that the partner may not have.
    given: Vec<PartName>,
    parts: Vec<(PartName, EncodedBag)>,
}

/// Backup that a partner keeps for a place.
#[derive(Clone, Debug)]
struct Backup {
    version: u64,
    bag: Option<EncodedBag>,
    received: Received,
    parts: Parts<EncodedBag>,
}

/// Facts of a place that matter when others have died.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoveryFacts {
    received: Received,
    /// Parts that it has given to the dead, and that may not have been in a backup there.
    given: Vec<PartName>,
    /// Parts received and parts given by each dead place whose backup it has.
    backups: Vec<(usize, Received, Vec<PartName>)>,
}

/// Bags and parts that a place restores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestoreOrders {
    /// Dead places whose bags it takes from their backups.
    bags: Vec<usize>,
    /// Parts that the dead had given, from their backups, and own parts that the dead had not saved.
    parts: Vec<PartName>,
}

/// The state of a place that keeps a run exact.
#[derive(Clone, Debug)]
pub struct BackupState {
    own: usize,
    /// Place that keeps the backup; the first member has none, because the run ends with it.
    partner: Option<usize>,
    version: u64,
    /// Number of parts given to each place.
    numbers: OrderedMap<usize, u64>,
    given: Parts<GivenPart>,
    received: Received,
    /// Number of parts accepted since the last save; then the givers to notify once the partner has the save.
    unsaved: usize,
    unsettled: OrderedSet<usize>,
    telling: OrderedMap<u64, Vec<(usize, ReceivedNumbers)>>,
    backups: OrderedMap<usize, Backup>,
    /// Dead places whose facts were reported: their backups no longer change.
    reported_dead: OrderedSet<usize>,
}

/// Returns the member that keeps the backup of `place`: the next one below it in `members`, which are sorted and
/// include it.
pub fn partner(place: usize, members: &[usize]) -> Option<usize> {
    let rank = members.partition_point(|member| *member < place);
    rank.checked_sub(1).map(|below| members[below])
}

impl BackupState {
    /// Returns the state of the place `own`, of `members`, which are sorted and include it.
    pub fn new(own: usize, members: &[usize]) -> BackupState {
        BackupState {
            own,
            partner: partner(own, members),
            version: 0,
            numbers: OrderedMap::new(),
            given: Parts::new(),
            received: OrderedMap::new(),
            unsaved: 0,
            unsettled: OrderedSet::new(),
            telling: OrderedMap::new(),
            backups: OrderedMap::new(),
            reported_dead: OrderedSet::new(),
        }
    }

    /// Numbers a part that leaves the bag for `thief`; returns its number. It must not leave the place before a save
    /// that begins after this call has ended.
    pub fn give(&mut self, thief: usize, part: EncodedBag) -> u64 {
        let next = self.numbers.get_or_default(thief);
        let number = *next;
        *next += 1;
        let name = PartName { giver: self.own, thief, number };
        self.given.insert(name, GivenPart { part, version: None, is_saved: false });
        number
    }

    /// Records that a part of `giver` was merged into the bag.
    pub fn receive(&mut self, giver: usize, number: u64) {
        self.received.get_or_default(giver).note(number);
        self.unsettled.insert(giver);
        self.unsaved += 1;
    }

    /// Returns `true` if enough parts have arrived for a save.
    pub fn is_due(&self) -> bool {
        self.unsaved >= UNSAVED_MAX
    }

    /// Begins a save of the bag as it is now.
    pub fn begin_save(&mut self, bag: Option<EncodedBag>) -> StartedSave {
        self.version += 1;
        let version = self.version;
        self.unsaved = 0;
        let unsettled = std::mem::take(&mut self.unsettled);
        let safe = |giver| (giver, self.received.get(giver).cloned().unwrap_or_default());
        let tells = unsettled.iter().map(safe).collect();
        self.telling.insert(version, tells);
        let Some(partner) = self.partner else {
            return StartedSave { version, outgoing: None };
        };
        let mut parts = Vec::new();
        self.given.for_each_mut(|name, given| {
            if !given.is_saved {
                given.version.get_or_insert(version);
                parts.push((name, given.part.clone()));
            }
        });
        let (received, given) = (self.received.clone(), self.given.keys().collect());
        let save = Save { version, bag, received, given, parts };
        StartedSave { version, outgoing: Some((partner, save)) }
    }

    /// Records that the partner has stored a save, if there is a partner. Returns the places to notify, with their
    /// parts that are now in a backup.
    pub fn saved(&mut self, version: u64) -> Vec<(usize, ReceivedNumbers)> {
        self.given.for_each_mut(|_, given| {
            given.is_saved |= given.version.is_some_and(|first| first <= version);
        });
        self.telling.remove(version).unwrap_or_default()
    }

    /// Records that the place `thief` has saved these parts of this place.
    pub fn settled(&mut self, thief: usize, safe: &ReceivedNumbers) {
        self.given.retain(|name, _| name.thief != thief || !safe.has(name.number));
    }

    /// Stores the state of `owner`, whose partner this place is. A state older than the stored one is ignored, because
    /// the newer one includes it. So is one of a dead place whose facts were reported: it would hold parts that their
    /// givers restore by these facts, and nothing that the dead place held back for it has left.
    pub fn keep(&mut self, owner: usize, save: Save) {
        if self.reported_dead.contains(owner) {
            return;
        }
        let Save { version, bag, received, given, parts: added } = save;
        let mut parts = match self.backups.remove(owner) {
            Some(known) if known.version >= version => {
                self.backups.insert(owner, known);
                return;
            }
            Some(known) => known.parts,
            None => Parts::new(),
        };
        parts.extend(added);
        let given: OrderedSet<PartName> = given.into_iter().collect();
        parts.retain(|name, _| given.contains(name));
        self.backups.insert(owner, Backup { version, bag, received, parts });
    }

    /// Returns what this place knows about the `dead`; nothing is in flight, and it knows of these deaths.
    pub fn facts(&mut self, dead: &[usize]) -> RecoveryFacts {
        self.reported_dead.extend(dead.iter().copied());
        let given = self.given.keys().filter(|name| dead.contains(&name.thief)).collect();
        let backups = self.backups.iter().filter(|(owner, _)| dead.contains(owner));
        let backups = backups
            .map(|(owner, Backup { received, parts, .. })| (owner, received.clone(), parts.keys().collect()));
        RecoveryFacts { received: self.received.clone(), given, backups: backups.collect() }
    }

    /// Carries out the orders, and starts again among `members`. Returns what to merge into the bag.
    pub fn restore(&mut self, orders: RestoreOrders, members: &[usize]) -> Vec<EncodedBag> {
        let RestoreOrders { bags, parts } = orders;
        let mut restored = Vec::new();
        for owner in bags {
            restored.extend(self.backups.get_mut(owner).and_then(|backup| backup.bag.take()));
        }
        for name in parts {
            let own = self.given.remove(name).map(|given| given.part);
            let of_backup = || self.backups.get_mut(name.giver)?.parts.remove(name);
            restored.extend(own.or_else(of_backup));
        }
        let (version, numbers) = (self.version, std::mem::take(&mut self.numbers));
        let reported_dead = std::mem::take(&mut self.reported_dead);
        // A body that serves a dead thief may still be about to end a save, so numbers are not reused.
        *self = BackupState { version, numbers, reported_dead, ..BackupState::new(self.own, members) };
        restored
    }
}

/// Assigns the restores, from the facts of all living members; the state of a place whose partner died with it is lost.
///
/// `members` are those before the deaths, in order.
///
/// # Errors
/// The first place whose state is lost.
pub fn restore_orders(
    members: &[usize],
    dead: &[usize],
    facts: &OrderedMap<usize, RecoveryFacts>,
) -> Result<Vec<(usize, RestoreOrders)>, usize> {
    if let Some(lost) =
        dead.iter().find(|place| partner(**place, members).is_none_or(|partner| dead.contains(&partner)))
    {
        return Err(*lost);
    }
    let backups = facts.values().flat_map(|facts| &facts.backups);
    let backups: OrderedMap<usize, &Received> =
        backups.map(|(owner, received, _)| (*owner, received)).collect();
    let has_come = |name: &PartName| {
        let received = match facts.get(name.thief) {
            Some(facts) => Some(&facts.received),
            None => backups.get(name.thief).copied(),
        };
        let numbers = received.and_then(|received| received.get(name.giver));
        numbers.is_some_and(|numbers| numbers.has(name.number))
    };
    let orders = facts.iter().map(|(place, facts)| {
        let given = facts.backups.iter().flat_map(|(.., given)| given).chain(&facts.given);
        let parts = given.copied().filter(|name| !has_come(name)).collect();
        (place, RestoreOrders { bags: facts.backups.iter().map(|(owner, ..)| *owner).collect(), parts })
    });
    Ok(orders.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_that_come_out_of_order_take_no_more_room_than_those_that_are_missing() {
        let mut numbers = ReceivedNumbers::default();
        for number in [1, 0, 2, 5, 4, 4] {
            numbers.note(number);
        }
        assert_eq!((numbers.below, numbers.beyond.len()), (3, 2));
        assert_eq!(
            [0, 2, 3, 4, 5, 6].map(|number| numbers.has(number)),
            [true, true, false, true, true, false]
        );
    }

    #[test]
    fn the_partner_is_the_member_below() {
        assert_eq!([0, 2, 5].map(|place| partner(place, &[0, 2, 5])), [None, Some(0), Some(2)]);
        let orders = restore_orders(&[0, 1, 2, 3], &[1, 2], &OrderedMap::new());
        assert_eq!(orders, Err(2), "its partner is dead as well");
        assert_eq!(restore_orders(&[0, 1], &[0], &OrderedMap::new()), Err(0));
    }

    /// Places with bags that are lists of one-byte task numbers, one of which dies after any step.
    struct Model {
        safeties: Vec<BackupState>,
        bags: Vec<Option<EncodedBag>>,
        /// Parts in flight.
        parts: Vec<OutgoingPart>,
        /// Saves in progress: owner, version, content.
        saves: Vec<(usize, u64, SaveTo)>,
        /// Parts that wait for a save: the version, then the part.
        waiting: Vec<(u64, OutgoingPart)>,
    }

    /// Giver, thief, number, tasks.
    type OutgoingPart = (usize, usize, u64, EncodedBag);

    /// The partner, and its save.
    type SaveTo = Option<(usize, Save)>;

    impl Model {
        fn new(places: usize, tasks: u8) -> Model {
            let members: Vec<usize> = (0..places).collect();
            let mut bags = vec![None; places];
            bags[0] = Some((0..tasks).collect());
            Model {
                safeties: members.iter().map(|own| BackupState::new(*own, &members)).collect(),
                bags,
                parts: Vec::new(),
                saves: Vec::new(),
                waiting: Vec::new(),
            }
        }

        fn save(&mut self, place: usize) -> u64 {
            let StartedSave { version, outgoing } = self.safeties[place].begin_save(self.bags[place].clone());
            self.saves.push((place, version, outgoing));
            version
        }

        fn step(&mut self, kind: u8, one: usize, other: usize) {
            let places = self.bags.len();
            let (giver, thief) = (one % places, other % places);
            match kind {
                0 if giver != thief => {
                    let Some(bag) = &mut self.bags[giver] else { return };
                    let part = bag.split_off(bag.len() / 2);
                    let number = self.safeties[giver].give(thief, part.clone());
                    let version = self.save(giver);
                    self.waiting.push((version, (giver, thief, number, part)));
                }
                1 if !self.saves.is_empty() => {
                    let (owner, version, save) = self.saves.remove(one % self.saves.len());
                    if let Some((partner, save)) = save {
                        self.safeties[partner].keep(owner, save);
                    }
                    for (giver, safe) in self.safeties[owner].saved(version) {
                        self.safeties[giver].settled(owner, &safe);
                    }
                    let is_ready = |part: &(u64, OutgoingPart)| part.0 == version && part.1.0 == owner;
                    self.parts
                        .extend(self.waiting.extract_if(.., |part| is_ready(part)).map(|(_, part)| part));
                }
                2 if !self.parts.is_empty() => {
                    let (giver, thief, number, part) = self.parts.remove(one % self.parts.len());
                    self.bags[thief].get_or_insert_default().extend(part);
                    self.safeties[thief].receive(giver, number);
                }
                3 => _ = self.save(giver),
                _ => {}
            }
        }

        /// Kills the place: all living places end what they have begun, and restore.
        fn die(&mut self, victim: usize) {
            let saves = self.saves.iter().filter(|(owner, ..)| *owner == victim);
            let late: Vec<(usize, Save)> = saves.filter_map(|(.., save)| save.clone()).collect();
            self.saves.retain(|(owner, _, save)| {
                *owner != victim && save.as_ref().is_none_or(|(partner, _)| *partner != victim)
            });
            self.parts.retain(|(giver, thief, ..)| *giver != victim && *thief != victim);
            self.waiting.retain(|(_, (giver, ..))| *giver != victim);
            self.bags[victim] = None;
            while !self.saves.is_empty() {
                self.step(1, 0, 0);
            }
            // Parts that wait for a save to a dead partner wait no longer.
            self.parts.extend(self.waiting.drain(..).map(|(_, part)| part));
            self.parts.retain(|(_, thief, ..)| *thief != victim);
            while !self.parts.is_empty() {
                self.step(2, 0, 0);
            }
            let all: Vec<usize> = (0..self.bags.len()).collect();
            let living: Vec<usize> = all.iter().copied().filter(|place| *place != victim).collect();
            let facts = living.iter().map(|place| (*place, self.safeties[*place].facts(&[victim]))).collect();
            // A save of the victim may be stored only now.
            late.into_iter().for_each(|(partner, save)| self.safeties[partner].keep(victim, save));
            let orders = restore_orders(&all, &[victim], &facts).expect("its partner lives");
            for (place, orders) in orders {
                let restored = self.safeties[place].restore(orders, &living);
                for bag in restored {
                    self.bags[place].get_or_insert_default().extend(bag);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn each_task_is_in_one_bag_after_a_death_at_any_moment(
            places in 2_usize..6,
            steps in proptest::collection::vec((0_u8..4, any::<usize>(), any::<usize>()), 0..120),
            victim in any::<prop::sample::Index>(),
        ) {
            let mut model = Model::new(places, 200);
            for (kind, one, other) in steps {
                model.step(kind, one, other);
            }
            model.die(1 + victim.index(places - 1));
            let mut tasks: Vec<u8> = model.bags.into_iter().flatten().flatten().collect();
            tasks.sort_unstable();
            prop_assert_eq!(tasks, (0..200).collect::<Vec<u8>>());
        }
    }
}
