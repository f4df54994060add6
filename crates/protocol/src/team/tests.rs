//! Members at their own pace, with messages that keep the order of their pair; tags and membership.

use super::*;
use crate::PlaceId;
use proptest::prelude::*;
use std::collections::VecDeque;

fn any_kind() -> impl Strategy<Value = CollectiveKind> {
    prop::sample::select(&CollectiveKind::ALL[..])
}

/// A collective as one member calls it.
type Call = (CollectiveKind, usize, ElementType);

fn any_call() -> impl Strategy<Value = Call> {
    (any_kind(), 0..4_usize, (0..3_u64).prop_map(ElementType::of_bits))
}

/// The members of a team, their calls, and the messages in flight by sender and receiver.
struct World {
    members: Vec<CollectiveOrder>,
    calls: Vec<Vec<Call>>,
    begun: Vec<usize>,
    ways: Vec<Vec<VecDeque<CollectiveTag>>>,
}

impl World {
    fn new(calls: Vec<Vec<Call>>) -> World {
        let size = calls.len();
        World {
            members: (0..size).map(|rank| CollectiveOrder::new(PlaceId(rank as u32))).collect(),
            begun: vec![0; size],
            ways: vec![vec![VecDeque::new(); size]; size],
            calls,
        }
    }

    /// Makes a member begin its next call and tell all others, unless one of them is too far behind, or a message from
    /// so long ago is in flight: the members wait for each other before.
    fn begin(&mut self, rank: usize) -> Result<(), Mismatch> {
        let number = self.begun[rank];
        let oldest = self.ways.iter().flatten().filter_map(|way| Some(way.front()?.sequence() - 1));
        let least = self.begun.iter().copied().chain(oldest).min().unwrap_or_default();
        let Some((kind, root, element)) = self.calls[rank].get(number).copied() else { return Ok(()) };
        if number > least + AHEAD_MAX as usize {
            return Ok(());
        }
        self.begun[rank] += 1;
        for (other, way) in self.ways[rank].iter_mut().enumerate() {
            if other != rank {
                let tag = CollectiveTag::new(number as u32 + 1, kind, root, element);
                way.push_back(tag.step(other));
            }
        }
        self.members[rank].begin(kind, root, element)
    }

    /// Delivers the oldest message from one member to another.
    fn deliver(&mut self, from: usize, to: usize) -> Result<(), Mismatch> {
        match self.ways[from][to].pop_front() {
            Some(tag) => self.members[to].compare(PlaceId(from as u32), tag),
            None => Ok(()),
        }
    }

    /// Follows `choices`, then runs all the rest, until two members are found to be apart.
    fn run(&mut self, choices: &[(usize, usize, bool)]) -> Result<(), Mismatch> {
        let size = self.members.len();
        for (from, to, begins) in choices {
            if *begins { self.begin(from % size)? } else { self.deliver(from % size, to % size)? }
        }
        for _ in 0..self.calls.iter().map(Vec::len).max().unwrap_or(0) {
            (0..size).try_for_each(|rank| self.begin(rank))?;
            for (from, to) in (0..size).flat_map(|from| (0..size).map(move |to| (from, to))) {
                while !self.ways[from][to].is_empty() {
                    self.deliver(from, to)?;
                }
            }
        }
        Ok(())
    }
}

fn any_choices() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((0..12_usize, 0..12_usize, any::<bool>()), 0..400)
}

/// Different places in any order.
fn any_list() -> impl Strategy<Value = Vec<u32>> {
    let places = prop::collection::btree_set(0..50_u32, 1..20);
    places.prop_map(|places| places.into_iter().collect::<Vec<u32>>()).prop_shuffle()
}

proptest! {
    /// At any pace of the members and their messages, equal calls are never found to differ.
    #[test]
    fn members_with_equal_calls_are_never_apart(
        calls in prop::collection::vec(any_call(), 1..80),
        size in 2..5_usize,
        choices in any_choices(),
    ) {
        let mut world = World::new(vec![calls; size]);
        prop_assert_eq!(world.run(&choices), Ok(()));
    }

    /// A member that calls something else once is detected, by its call or by that of another in the same position.
    #[test]
    fn a_member_with_another_call_is_found_out(
        calls in prop::collection::vec(any_call(), 1..80),
        (at, other) in (any::<prop::sample::Index>(), any_call()),
        (size, odd) in (2..5_usize, any::<prop::sample::Index>()),
        choices in any_choices(),
    ) {
        let (at, odd) = (at.index(calls.len()), odd.index(size));
        prop_assume!(calls[at] != other);
        let mut all = vec![calls; size];
        all[odd][at] = other;
        let found = World::new(all).run(&choices);
        prop_assert!(found.is_err());
        if let Err(Mismatch { known, other }) = found {
            prop_assert_eq!((known.tag.sequence(), other.tag.sequence()), (at + 1, at + 1));
            prop_assert_ne!(known.tag, other.tag);
            prop_assert_eq!((known.place.index() == odd) as u8 + (other.place.index() == odd) as u8, 1);
        }
    }

    /// All members wait for each other before one of them is more than [`AHEAD_MAX`] collectives ahead.
    #[test]
    fn a_wait_for_all_is_due_often_enough(kinds in prop::collection::vec(any_kind(), 1..200)) {
        let order = CollectiveOrder::new(PlaceId(0));
        let mut ahead = 0;
        for kind in kinds {
            let is_due = order.needs_synchronization(kind);
            prop_assert!(!(is_due && kind.waits_for_all()));
            ahead = if kind.waits_for_all() { 0 } else if is_due { 1 } else { ahead + 1 };
            prop_assert!(ahead <= AHEAD_MAX);
            prop_assert_eq!(order.may_be_apart(), ahead > 0);
        }
    }

    /// A tag has the parts that it was made of; its step changes none of them.
    #[test]
    fn a_tag_has_its_parts(
        sequence in any::<u32>(),
        kind in any_kind(),
        root in 0..ROOTS as usize,
        hash in any::<u64>(),
        step in 0..STEPS,
    ) {
        let element = ElementType::of_hash(hash);
        prop_assert!(element != ElementType::NONE && element.bits() < 1 << ElementType::BITS);
        prop_assert_eq!(ElementType::of_bits(element.bits()), element);
        let tag = CollectiveTag::new(sequence, kind, root, element);
        prop_assert_eq!(tag.sequence(), sequence as usize % (1 << 24));
        prop_assert_eq!((tag.kind(), tag.element()), (kind as u64, element));
        prop_assert_eq!(tag.step(step).first_step(), tag);
        prop_assert_eq!(tag.step(step) == tag, step == 0);
        prop_assert_eq!(CollectiveTag::of_word(tag.word(), tag.element()), tag);
        let text = tag.to_string();
        let name = format!("`{}`", kind.name());
        prop_assert!(text.contains(&name));
        prop_assert_eq!(text.contains("root"), kind.is_rooted());
    }

    /// Wrapped counts are still in order.
    #[test]
    fn later_collectives_are_after_earlier_ones(sequence in any::<u32>(), ahead in 1..1_u32 << 22) {
        let tag = |sequence| CollectiveTag::new(sequence, CollectiveKind::Barrier, 0, ElementType::NONE);
        prop_assert!(tag(sequence.wrapping_add(ahead)).is_after(sequence));
        prop_assert!(!tag(sequence).is_after(sequence.wrapping_add(ahead)));
        prop_assert!(!tag(sequence).is_after(sequence));
    }

    /// Ranks and members map to each other, also after encoding.
    #[test]
    fn ranks_and_members_name_each_other(
        listed in any_list(),
        places in 1..50_u32,
    ) {
        let listed: Vec<PlaceId> = listed.into_iter().map(PlaceId).collect();
        for members in [Members::All(places), Members::Listed(listed.clone().into())] {
            let bytes = postcard::to_allocvec(&members).unwrap();
            let members: Members = postcard::from_bytes(&bytes).unwrap();
            for (rank, place) in members.iter().enumerate() {
                prop_assert_eq!((members.member(rank), members.rank_of(place)), (place, Some(rank)));
            }
            prop_assert_eq!((0..60).filter_map(|place| members.rank_of(PlaceId(place))).count(), members.len());
            let most = members.iter().map(|place| place.0).max().unwrap_or_default();
            prop_assert!(members.are_of(most + 1) && !members.are_of(most));
        }
    }

    /// Makers are asked once for each doubling of the teams without a handle, and never if there are few.
    #[test]
    fn makers_are_asked_once_for_each_doubling(steps in prop::collection::vec(1..40_usize, 1..60)) {
        let mut unclaimed = UnclaimedTeams::default();
        let (mut teams, mut asked) = (0, Vec::new());
        for more in steps {
            teams += more;
            if unclaimed.ask(teams) {
                prop_assert!(unclaimed.may_be_due(2 * teams) && !unclaimed.may_be_due(2 * teams - 1));
                asked.push(teams);
            }
        }
        prop_assert!(asked.first().is_none_or(|first| *first >= UNCLAIMED_MIN));
        prop_assert!(asked.windows(2).all(|pair| pair[1] >= 2 * pair[0]));
        prop_assert_eq!(asked.is_empty(), teams < UNCLAIMED_MIN);
        unclaimed.given_up(0);
        prop_assert!(!unclaimed.may_be_due(UNCLAIMED_MIN - 1) && unclaimed.may_be_due(UNCLAIMED_MIN));
    }
}
