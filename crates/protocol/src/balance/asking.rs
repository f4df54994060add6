//! Choice of the place that an idle place asks next for tasks.
//!
//! It knows no tasks, only the places to ask, their order, and those that were asked. The order is: some victims at
//! random, then each lifeline that does not remember this place yet, then none. Invariant: a lifeline is asked at most
//! once until it has given tasks.

use super::lifelines::lifelines;
use super::parameters::Parameters;
use serde::{Deserialize, Serialize};

/// The kind of a request for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StealKind {
    /// To a random victim: it gives tasks now, or none.
    Random,
    /// To a lifeline: it gives tasks later if it has none now.
    Lifeline,
}

/// A lifeline, and whether it remembers this place.
#[derive(Clone, Debug)]
struct Lifeline {
    place: usize,
    is_asked: bool,
}

/// Order in which a place asks others for tasks.
#[derive(Clone, Debug)]
pub(super) struct VictimSelection {
    /// Places from which it steals at random.
    victims: Vec<usize>,
    lifelines: Vec<Lifeline>,
    /// Number of random steals before lifelines are asked, after each success and at present.
    steals: u32,
    steals_left: u32,
}

impl VictimSelection {
    /// Makes the order in which the place `own` asks the `members`, which are sorted and include it. All its lifelines
    /// remember it at first.
    ///
    /// `draw` returns a random number below the one it is given.
    pub(super) fn new(
        own: usize,
        members: &[usize],
        parameters: &Parameters,
        mut draw: impl FnMut(usize) -> usize,
    ) -> VictimSelection {
        let mut victims: Vec<usize> = members.iter().copied().filter(|member| *member != own).collect();
        let kept = victims.len().min(parameters.victims_max as usize);
        if kept < victims.len() {
            for index in 0..kept {
                let drawn = index + draw(victims.len() - index);
                victims.swap(index, drawn);
            }
            victims.truncate(kept);
        }
        let places = lifelines_of(own, members, parameters);
        let lifelines = places.map(|place| Lifeline { place, is_asked: true }).collect();
        let steals = if victims.is_empty() { 0 } else { parameters.random_steals };
        VictimSelection { victims, lifelines, steals, steals_left: steals }
    }

    /// Returns the place to ask now, and the kind of steal; `None` if there is none, and all lifelines remember this
    /// place.
    ///
    /// Skips places for which `is_dead` holds; `draw` returns a random number below its argument.
    pub(super) fn next(
        &mut self,
        mut draw: impl FnMut(usize) -> usize,
        is_dead: impl Fn(usize) -> bool,
    ) -> Option<(usize, StealKind)> {
        while self.steals_left > 0 {
            self.steals_left -= 1;
            let victim = self.victims[draw(self.victims.len())];
            if !is_dead(victim) {
                return Some((victim, StealKind::Random));
            }
        }
        let mut lifelines = self.lifelines.iter_mut();
        let next = lifelines.find(|lifeline| !lifeline.is_asked && !is_dead(lifeline.place))?;
        next.is_asked = true;
        Some((next.place, StealKind::Lifeline))
    }

    /// Records that tasks of `giver` have arrived for a request of this kind: random steals start again, and a lifeline
    /// can be asked again.
    pub(super) fn found(&mut self, giver: usize, kind: StealKind) {
        self.steals_left = self.steals;
        if kind == StealKind::Lifeline {
            let known = self.lifelines.iter_mut().find(|lifeline| lifeline.place == giver);
            known.into_iter().for_each(|lifeline| lifeline.is_asked = false);
        }
    }
}

/// Returns the lifelines of the place `own` among `members`, which are sorted and include it.
fn lifelines_of(own: usize, members: &[usize], parameters: &Parameters) -> impl Iterator<Item = usize> {
    let rank = members.partition_point(|member| *member < own);
    let (count, base) = (parameters.lifelines_of(members.len()), parameters.lifeline_base as usize);
    lifelines(rank, members.len(), base, count).into_iter().map(|rank| members[rank])
}

/// Returns the places that have the place `own` as a lifeline, in order.
pub(super) fn thieves_of(own: usize, members: &[usize], parameters: &Parameters) -> Vec<usize> {
    let has_own = |place: &usize| lifelines_of(*place, members, parameters).any(|lifeline| lifeline == own);
    members.iter().copied().filter(has_own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn none_is_dead(_: usize) -> bool {
        false
    }

    /// Draws from a linear congruential generator.
    fn drawn(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % below
    }

    /// Returns the places asked until none is left to ask.
    fn asked(asking: &mut VictimSelection, is_dead: impl Fn(usize) -> bool) -> Vec<(usize, StealKind)> {
        let mut state = 7;
        std::iter::from_fn(|| asking.next(|below| drawn(&mut state, below), &is_dead)).collect()
    }

    fn asking(own: usize, members: &[usize], parameters: &Parameters, mut seed: u64) -> VictimSelection {
        VictimSelection::new(own, members, parameters, |below| drawn(&mut seed, below))
    }

    #[test]
    fn random_steals_come_first_and_each_lifeline_once_after_it_has_given() {
        let members: Vec<usize> = (0..48).collect();
        let mut asking = self::asking(47, &members, &Parameters::default(), 1);
        let first = asked(&mut asking, none_is_dead);
        assert_eq!(first.len(), 4, "all lifelines remember it");
        assert!(first.iter().all(|(victim, kind)| *victim < 47 && *kind == StealKind::Random));
        assert_eq!(asked(&mut asking, none_is_dead), []);
        asking.found(43, StealKind::Lifeline);
        asking.found(46, StealKind::Lifeline);
        asking.found(31, StealKind::Random);
        let second = asked(&mut asking, none_is_dead);
        assert_eq!(second[4..], [(46, StealKind::Lifeline), (43, StealKind::Lifeline)]);
    }

    #[test]
    fn the_dead_are_passed_over_and_one_place_asks_nobody() {
        let mut asking = self::asking(0, &[0, 1], &Parameters::default(), 1);
        asking.found(1, StealKind::Lifeline);
        assert_eq!(asked(&mut asking.clone(), |place| place == 1), []);
        assert_eq!(asked(&mut asking, none_is_dead).len(), 5);
        assert_eq!(asked(&mut self::asking(0, &[0], &Parameters::default(), 1), none_is_dead), []);
    }

    #[test]
    fn members_that_are_left_have_a_cube_of_their_own() {
        let members = [0, 3, 4, 9, 10];
        let parameters = Parameters { lifeline_base: 2, ..Parameters::default() };
        assert_eq!(lifelines_of(9, &members, &parameters).collect::<Vec<_>>(), [4, 3]);
        assert_eq!(thieves_of(0, &members, &parameters), [3, 4, 10]);
    }

    proptest! {
        #[test]
        fn victims_are_others_and_at_most_as_many_as_allowed(
            members in 2_usize..60, own in any::<prop::sample::Index>(), victims_max in 1_u32..70, seed in any::<u64>(),
        ) {
            let all: Vec<usize> = (0..members).collect();
            let own = own.index(members);
            let parameters = Parameters { victims_max, random_steals: 200, ..Parameters::default() };
            let mut drawn: Vec<usize> = Vec::new();
            let mut asking = self::asking(own, &all, &parameters, seed);
            drawn.extend(asked(&mut asking, none_is_dead).into_iter().map(|(victim, _)| victim));
            prop_assert_eq!(drawn.len(), 200);
            drawn.sort_unstable();
            drawn.dedup();
            prop_assert!(drawn.len() <= victims_max as usize && !drawn.contains(&own));
        }

        #[test]
        fn thieves_are_those_whose_lifeline_a_place_is(members in 1_usize..60, base in 2_u32..7) {
            let all: Vec<usize> = (0..members).map(|rank| 3 * rank).collect();
            let parameters = Parameters { lifeline_base: base, ..Parameters::default() };
            let (mut ends, mut starts) = (Vec::new(), Vec::new());
            for own in &all {
                ends.extend(thieves_of(*own, &all, &parameters).into_iter().map(|thief| (thief, *own)));
                starts.extend(lifelines_of(*own, &all, &parameters).map(|lifeline| (*own, lifeline)));
            }
            ends.sort_unstable();
            starts.sort_unstable();
            prop_assert_eq!(ends, starts);
        }
    }
}
