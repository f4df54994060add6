//! Flags of members in any order of messages and deaths, and one place's own staleness.

use super::{AwaitedAnswer, Flags, InvalidationFault, InvalidationRange, Invalidations, Known, Staleness};
use crate::PlaceId;
use crate::team::Members;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A message between two members, by rank.
#[derive(Clone, Copy, Debug)]
enum FlagMessage {
    Flag(InvalidationRange),
    Answer(u32),
}

/// Members that flag each other, with messages delivered in any order.
struct World {
    members: Members,
    places: Vec<Invalidations>,
    stale: Vec<Staleness>,
    dead: BTreeSet<usize>,
    under_way: Vec<(usize, usize, FlagMessage)>,
    known: Vec<(usize, u32)>,
}

impl World {
    fn new(size: usize) -> World {
        let mut fresh = Staleness::new(false);
        fresh.refreshed(true);
        World {
            members: Members::All(size as u32),
            places: vec![Invalidations::default(); size],
            stale: vec![fresh; size],
            dead: BTreeSet::new(),
            under_way: Vec::new(),
            known: Vec::new(),
        }
    }

    fn send(&mut self, from: usize, flags: &Flags) {
        for (to, range) in &flags.to {
            if self.dead.contains(&to.index()) {
                let undelivered = self.places[from].undelivered(&self.members, *to, flags.token);
                let (more, known) = undelivered.unwrap();
                self.note(from, known);
                self.send(from, &more);
            } else {
                self.under_way.push((from, to.index(), FlagMessage::Flag(*range)));
            }
        }
    }

    fn note(&mut self, at: usize, known: Option<Known>) {
        match known {
            Some(Known { answer: Some(AwaitedAnswer { place, token }), .. }) => {
                self.under_way.push((at, place.index(), FlagMessage::Answer(token)));
            }
            Some(Known { token, answer: None }) => self.known.push((at, token)),
            None => {}
        }
    }

    fn begin(&mut self, root: usize) -> u32 {
        let flags = self.places[root].begin(&self.members, root);
        if flags.to.is_empty() {
            self.known.push((root, flags.token));
        }
        self.send(root, &flags);
        flags.token
    }

    fn deliver(&mut self, from: usize, to: usize, message: FlagMessage) {
        if self.dead.contains(&to) || self.dead.contains(&from) {
            return;
        }
        let source = PlaceId(from as u32);
        match message {
            FlagMessage::Flag(range) => {
                self.stale[to].flagged();
                let received = self.places[to].receive(&self.members, source, range);
                let (flags, known) = received.unwrap();
                self.note(to, known);
                self.send(to, &flags);
            }
            FlagMessage::Answer(token) => {
                let known = self.places[to].answered(source, token).unwrap();
                self.note(to, known);
            }
        }
    }

    fn kill(&mut self, rank: usize) {
        if self.dead.insert(rank) {
            for other in 0..self.places.len() {
                if !self.dead.contains(&other) {
                    for (flags, known) in self.places[other].place_died(&self.members, PlaceId(rank as u32)) {
                        self.note(other, known);
                        self.send(other, &flags);
                    }
                }
            }
        }
    }

    fn settle(&mut self, mut choices: impl Iterator<Item = usize>) {
        while !self.under_way.is_empty() {
            let index = choices.next().unwrap_or(0) % self.under_way.len();
            let (from, to, message) = self.under_way.swap_remove(index);
            self.deliver(from, to, message);
        }
    }
}

proptest! {
    /// When a flag is known, each other member is stale, and has got it once.
    #[test]
    fn a_flag_that_is_known_has_reached_all(
        size in 1..40_usize,
        roots in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        choices in prop::collection::vec(0..1000_usize, 0..200),
    ) {
        let mut world = World::new(size);
        let roots: Vec<usize> = roots.into_iter().map(|root| root.index(size)).collect();
        let begun: Vec<(usize, u32)> = roots.iter().map(|root| (*root, world.begin(*root))).collect();
        world.settle(choices.into_iter());
        let mut known = world.known.clone();
        known.sort_unstable();
        let mut expected = begun.clone();
        expected.sort_unstable();
        prop_assert_eq!(known, expected);
        prop_assert!(begun.iter().all(|(root, token)| world.places[*root].is_known(*token)));
        let first = roots[0];
        let is_only_writer = roots.iter().all(|root| *root == first);
        for (rank, stale) in world.stale.iter().enumerate() {
            prop_assert_eq!(stale.is_stale(), rank != first || !is_only_writer, "rank {}", rank);
        }
    }

    /// In any order of deaths, each flag of a living member is known in the end, and each other living member is then
    /// stale.
    #[test]
    fn deaths_end_no_wait_of_others_and_hide_no_stale_copy(
        size in 2..20_usize,
        dead in prop::collection::vec((0..40_usize, any::<prop::sample::Index>()), 0..6),
        choices in prop::collection::vec(0..1000_usize, 0..100),
    ) {
        let mut world = World::new(size);
        let token = world.begin(0);
        let mut dead = dead.into_iter().map(|(at, rank)| (at, rank.index(size))).collect::<Vec<_>>();
        for (turn, choice) in choices.iter().enumerate() {
            for (_, rank) in dead.extract_if(.., |(at, _)| *at <= turn) {
                if rank != 0 {
                    world.kill(rank);
                }
            }
            if !world.under_way.is_empty() {
                let (from, to, message) = world.under_way.swap_remove(choice % world.under_way.len());
                world.deliver(from, to, message);
            }
        }
        dead.into_iter().filter(|(_, rank)| *rank != 0).for_each(|(_, rank)| world.kill(rank));
        world.settle(std::iter::empty());
        prop_assert_eq!(&world.known, &[(0, token)]);
        prop_assert!(world.places[0].is_known(token));
        for (rank, stale) in world.stale.iter().enumerate().skip(1) {
            prop_assert!(stale.is_stale() || world.dead.contains(&rank), "rank {}", rank);
        }
    }

    /// Messages that no valid place sends are refused, and change nothing.
    #[test]
    fn what_no_sound_place_says_is_refused(size in 1..10_u32, root: u32, first: u32, end: u32, token: u32) {
        let members = Members::All(size);
        let mut place = Invalidations::default();
        let range = InvalidationRange { root, first, end, token };
        let received = place.receive(&members, PlaceId(0), range);
        prop_assert_eq!(received.is_ok(), root < size && first < end && end <= size);
        if let Ok((flags, known)) = received {
            prop_assert_eq!(flags.to.is_empty(), known.is_some());
        }
        let stranger = PlaceId(size);
        prop_assert_eq!(place.answered(stranger, 0), Err(InvalidationFault::NotFlagged));
        prop_assert!(place.place_died(&members, stranger).is_empty());
    }

    /// A place is stale exactly if it has learnt of a newer value since the last refresh of its caches.
    #[test]
    fn a_place_is_stale_from_news_to_refresh(events in prop::collection::vec((0..6_u8, 0..4_u64), 0..60)) {
        let mut staleness = Staleness::new(true);
        let (mut has_news, mut generation, mut count) = (false, 0, 0);
        for (event, number) in events {
            match event {
                0 => {
                    staleness.granted(number, number == 3);
                    (has_news, generation) = (has_news || number == 3, number);
                }
                1 => {
                    staleness.received(number);
                    (has_news, generation) = (has_news || number > generation, number);
                }
                2 => {
                    staleness.saw_count(number);
                    (has_news, count) = (has_news || number != count, number);
                }
                3 => {
                    count += 1;
                    prop_assert_eq!(staleness.count_write(), count);
                }
                4 => {
                    staleness.flagged();
                    has_news = true;
                }
                _ => {
                    staleness.refreshed(number > 0);
                    has_news = number == 0;
                }
            }
            prop_assert_eq!((staleness.is_stale(), staleness.generation()), (has_news, generation));
        }
    }
}
