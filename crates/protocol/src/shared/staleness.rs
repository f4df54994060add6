//! Staleness of the copies of an object, if places cache memory that no hardware keeps coherent.
//!
//! [`Staleness`] is what one place knows of its own caches. [`Invalidations`] are the flags that it sends to others and
//! passes on: a flag goes to all members along a binary tree, and the answers come back. Neither sends, waits or knows
//! memory. Invariants: a place is stale from the moment it hears of a newer value until its caches have been refreshed;
//! a flag is known only when all members that live have heard of it, so whoever waits for a member that dies tells
//! those that it would have told.

use crate::PlaceId;
use crate::team::Members;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// State of one place's own caches of one object, as far as the place knows it.
#[derive(Clone, Copy, Debug)]
pub struct Staleness {
    is_stale: bool,
    /// Generation that the home has, as far as this place knows.
    generation: u64,
    /// The last count of writes that this place has seen in the shared memory.
    count: u64,
}

impl Staleness {
    /// Makes the state of a place that has cached nothing yet; only the home has made the value in its own caches.
    pub fn new(is_home: bool) -> Staleness {
        Staleness { is_stale: !is_home, generation: 0, count: 0 }
    }

    /// Returns `true` if cached copies may be stale.
    pub fn is_stale(self) -> bool {
        self.is_stale
    }

    /// Returns the generation that the home has, as far as this place knows.
    #[inline]
    pub fn generation(self) -> u64 {
        self.generation
    }

    /// Records a granted token, with the generation of the home's copy; `flushes` says whether others have written.
    pub fn granted(&mut self, generation: u64, flushes: bool) {
        self.generation = generation;
        self.is_stale |= flushes;
    }

    /// Records that this place gave back a token and the value of that generation.
    pub fn gave_back(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// Records, at the home, that a place gave back the value of that generation.
    pub fn received(&mut self, generation: u64) {
        self.is_stale |= generation > self.generation;
        self.generation = generation;
    }

    /// Compares the count of writes in the shared memory with the last one seen.
    pub fn saw_count(&mut self, count: u64) {
        self.is_stale |= self.count != count;
        self.count = count;
    }

    /// Counts a write of this place; returns the count for the shared memory.
    pub fn count_write(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Records the flag of another place, which has written.
    pub fn flagged(&mut self) {
        self.is_stale = true;
    }

    /// Records that all caches were refreshed, or could not be because the value was unreadable.
    pub fn refreshed(&mut self, is_whole: bool) {
        self.is_stale = !is_whole;
    }
}

/// A part of the tree along which places learn that their caches are stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvalidationRange {
    /// The rank of the writer, from which the others are counted.
    pub root: u32,
    /// The receiver, counted from the root.
    pub first: u32,
    /// One past the last member that the receiver passes it on to.
    pub end: u32,
    /// Id of the answer that the sender waits for.
    pub token: u32,
}

impl InvalidationRange {
    /// Returns `true` if a valid place can send it to one of `size` members.
    fn is_of(&self, size: usize) -> bool {
        let size = size as u32;
        self.root < size && self.end <= size && self.first < self.end
    }
}

/// The flag of another place, which waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedAnswer {
    /// The place that sent the flag.
    pub place: PlaceId,
    /// The token of its flag.
    pub token: u32,
}

/// Flags to send, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Id of the answers to them.
    pub token: u32,
    /// The receivers, each with its part of the tree.
    pub to: Vec<(PlaceId, InvalidationRange)>,
}

/// A flag that has reached all its receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The token of the flags of this place.
    pub token: u32,
    /// The flag to answer now; `None` if it began here.
    pub answer: Option<AwaitedAnswer>,
}

/// A message about flags that no valid place sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidationFault {
    /// It flags members that do not exist.
    NoSuchMembers,
    /// It answers a flag that its sender did not get.
    NotFlagged,
}

/// Flags that have not yet reached all their receivers.
#[derive(Clone, Debug, Default)]
pub struct Invalidations {
    pending: Vec<OwedAnswers>,
    next: u32,
}

#[derive(Clone, Debug)]
struct OwedAnswers {
    token: u32,
    /// Places that have not answered, each with its part of the tree.
    missing: Vec<(PlaceId, InvalidationRange)>,
    answer: Option<AwaitedAnswer>,
}

impl Invalidations {
    /// Begins to tell all other members that the one with rank `root`, here, has written.
    ///
    /// The caller sends the flags, and calls [`Invalidations::undelivered`] for each that cannot be sent. If there are
    /// none, the flag is known already.
    pub fn begin(&mut self, members: &Members, root: usize) -> Flags {
        self.pass_on(members, root as u32, 1..members.len() as u32, None)
    }

    /// Handles a flag of `source`: returns the flags to pass on, and what is known at once if there are none.
    ///
    /// # Errors
    /// No valid place sends it.
    pub fn receive(
        &mut self,
        members: &Members,
        source: PlaceId,
        range: InvalidationRange,
    ) -> Result<(Flags, Option<Known>), InvalidationFault> {
        if !range.is_of(members.len()) {
            return Err(InvalidationFault::NoSuchMembers);
        }
        let InvalidationRange { root, first, end, token } = range;
        let answer = Some(AwaitedAnswer { place: source, token });
        let flags = self.pass_on(members, root, first + 1..end, answer);
        let known = flags.to.is_empty().then_some(Known { token: flags.token, answer });
        Ok((flags, known))
    }

    /// Returns flags for the halves of the members in `range`, which counts from `root`.
    fn pass_on(
        &mut self,
        members: &Members,
        root: u32,
        range: Range<u32>,
        answer: Option<AwaitedAnswer>,
    ) -> Flags {
        let Range { start: first, end } = range;
        let token = self.next;
        self.next = self.next.wrapping_add(1);
        let to = halves(members, InvalidationRange { root, first, end, token });
        if !to.is_empty() {
            self.pending.push(OwedAnswers { token, missing: to.clone(), answer });
        }
        Flags { token, to }
    }

    /// Records that `source`, and all members that it told, know of the flag with `token`; returns the flag if no other
    /// answer is missing.
    ///
    /// # Errors
    /// `source` does not owe that answer.
    pub fn answered(&mut self, source: PlaceId, token: u32) -> Result<Option<Known>, InvalidationFault> {
        let (index, _) = self.take_missing(source, token)?;
        Ok(self.known_if_answered(index))
    }

    /// Notes that the flag with `token` cannot be sent to `place`, which is dead, or that its answer will not come;
    /// returns the flags for those that it would have told, and the flag if no other has to answer.
    ///
    /// # Errors
    /// `place` does not owe that answer any more.
    pub fn undelivered(
        &mut self,
        members: &Members,
        place: PlaceId,
        token: u32,
    ) -> Result<(Flags, Option<Known>), InvalidationFault> {
        let (index, range) = self.take_missing(place, token)?;
        let to = halves(members, InvalidationRange { first: range.first + 1, ..range });
        self.pending[index].missing.extend(&to);
        Ok((Flags { token, to }, self.known_if_answered(index)))
    }

    /// Notes the death of `place`; as [`Invalidations::undelivered`] for each answer that it owes.
    pub fn place_died(&mut self, members: &Members, place: PlaceId) -> Vec<(Flags, Option<Known>)> {
        let tokens: Vec<u32> = self.pending.iter().map(|pending| pending.token).collect();
        tokens.into_iter().filter_map(|token| self.undelivered(members, place, token).ok()).collect()
    }

    /// Takes `place` out of those that owe an answer to the flag with `token`; returns the index of the flag, and the
    /// place's part of the tree.
    fn take_missing(
        &mut self,
        place: PlaceId,
        token: u32,
    ) -> Result<(usize, InvalidationRange), InvalidationFault> {
        let index = self.pending.iter().position(|pending| pending.token == token);
        let index = index.ok_or(InvalidationFault::NotFlagged)?;
        let missing = &mut self.pending[index].missing;
        let found = missing.iter().position(|(other, _)| *other == place);
        let (_, range) = missing.swap_remove(found.ok_or(InvalidationFault::NotFlagged)?);
        Ok((index, range))
    }

    /// Removes the flag at `index` and returns it, if all have answered.
    fn known_if_answered(&mut self, index: usize) -> Option<Known> {
        self.pending[index].missing.is_empty().then(|| {
            let OwedAnswers { token, answer, .. } = self.pending.swap_remove(index);
            Known { token, answer }
        })
    }

    /// Returns `true` if the flag with `token` has reached all its receivers.
    pub fn is_known(&self, token: u32) -> bool {
        self.pending.iter().all(|pending| pending.token != token)
    }
}

/// Returns the receivers of the flag for the members from `range.first` to before `range.end`: the first of each half,
/// with its part of the tree.
fn halves(members: &Members, range: InvalidationRange) -> Vec<(PlaceId, InvalidationRange)> {
    let InvalidationRange { root, first, end, token } = range;
    let middle = first + end.saturating_sub(first) / 2;
    let halves = [(first, middle), (middle, end)].into_iter().filter(|(first, end)| first < end);
    let with_place = |(first, end)| {
        let place = members.member((root + first) as usize % members.len());
        (place, InvalidationRange { root, first, end, token })
    };
    halves.map(with_place).collect()
}
