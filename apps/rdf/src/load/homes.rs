//! Owners and numbers of terms if the triples of a subject stay at the place that read them.
//!
//! The hash of a term determines its *registrar*. Every place that has read the term reports it there, and the
//! registrar chooses one of these places as the home: one at which the term is a subject, if there is one. The home
//! numbers its terms in the order in which it has read them, so that terms read together have close numbers, and the
//! registrar sends the numbers to the others. The rest of the program uses only the numbers, which contain the home.
//! Invariant: a home has read the terms that it owns, so it has their bytes; its indices are dense.

use crate::peers::{Peers, push_term, terms_of};
use crate::store::dictionary::{Dictionary, UNBOUND};
use crate::store::term;
use isles::prelude::*;

/// Largest ratio of the triples read by one place to the mean for which homes still balance the work.
pub const READ_MOST: f64 = 1.25;

/// The terms for which a place is the registrar.
#[derive(Debug, Default)]
struct Registry {
    /// The position of each reported term, by reporting place.
    reported: Vec<Vec<u32>>,
    /// The home of each term.
    homes: Vec<u32>,
}

/// Returns the rank of a place among those that have read a term; the highest rank becomes the home. Subjects come
/// first; otherwise the rank is pseudo-random, so that shared terms do not all go to one place.
fn preference(term: u32, place: usize, is_subject: bool) -> u64 {
    // The mixing of SplitMix64 (Steele, Lea and Flood, 2014).
    let mixed = (u64::from(term) << 32 | place as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) >> 1 | u64::from(is_subject) << 63
}

impl Registry {
    /// Builds the registry from the terms that each place has reported, the first `subjects` of which are subjects
    /// there.
    fn of(reported: &[Vec<u8>], subjects: &[u64]) -> Registry {
        let mut dictionary = Dictionary::default();
        let mut best: Vec<(u64, u32)> = Vec::new();
        let mut registry = Registry::default();
        for (place, row) in reported.iter().enumerate() {
            let mut positions = Vec::new();
            for (at, term) in terms_of(row).enumerate() {
                let position = dictionary.intern(term);
                let rank = preference(position, place, (at as u64) < subjects[place]);
                match best.get_mut(position as usize) {
                    Some(best) => *best = (*best).max((rank, place as u32)),
                    None => best.push((rank, place as u32)),
                }
                positions.push(position);
            }
            registry.reported.push(positions);
        }
        registry.homes = best.into_iter().map(|(_, home)| home).collect();
        registry
    }

    /// Returns, for each place, the homes of the terms it reported, in its order.
    fn reported_homes(&self) -> Vec<Vec<u32>> {
        let homes =
            |reported: &Vec<u32>| reported.iter().map(|position| self.homes[*position as usize]).collect();
        self.reported.iter().map(homes).collect()
    }

    /// Returns, for each place, the numbers of those of its terms that have another home, in its order. `given` has
    /// the numbers that each home gave to its terms, in its order.
    fn reported_numbers(&self, given: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let mut numbers = vec![UNBOUND; self.homes.len()];
        for (place, (reported, given)) in self.reported.iter().zip(given).enumerate() {
            let own = reported.iter().filter(|position| self.homes[**position as usize] as usize == place);
            own.zip(given).for_each(|(position, number)| numbers[*position as usize] = *number);
        }
        let others = |(place, reported): (usize, &Vec<u32>)| {
            let others = reported.iter().filter(|position| self.homes[**position as usize] as usize != place);
            others.map(|position| numbers[*position as usize]).collect()
        };
        self.reported.iter().enumerate().map(others).collect()
    }
}

/// The terms that this place has read, by registrar.
struct Registered {
    /// The bytes of the terms for each registrar, the subjects first.
    rows: Vec<Vec<u8>>,
    /// Their positions in the dictionary, in the same order.
    locals: Vec<Vec<u32>>,
    /// Number of subjects among the terms for each registrar.
    subjects: Vec<u64>,
}

impl Registered {
    fn of(dictionary: &Dictionary, subjects: impl Iterator<Item = u32>, places: usize) -> Registered {
        let mut is_subject = vec![false; dictionary.len()];
        subjects.for_each(|subject| is_subject[subject as usize] = true);
        let registrar = |local| term::owner(term::hash(dictionary.bytes(local)), places);
        let registrars: Vec<usize> = (0..dictionary.len()).map(registrar).collect();
        let (rows, locals) = (vec![Vec::new(); places], vec![Vec::new(); places]);
        let mut all = Registered { rows, locals, subjects: vec![0; places] };
        for wanted in [true, false] {
            let some = registrars.iter().enumerate().filter(|(local, _)| is_subject[*local] == wanted);
            for (local, registrar) in some {
                push_term(&mut all.rows[*registrar], dictionary.bytes(local));
                all.locals[*registrar].push(local as u32);
                all.subjects[*registrar] += u64::from(wanted);
            }
        }
        all
    }

    /// Returns, for each registrar, the positions of the terms whose home is this place, or is not, as `wanted` says.
    fn split(&self, is_own: &[bool], wanted: bool) -> Vec<Vec<u32>> {
        let some = |locals: &Vec<u32>| {
            locals.iter().copied().filter(|local| is_own[*local as usize] == wanted).collect()
        };
        self.locals.iter().map(some).collect()
    }
}

/// Chooses the homes of the terms of all places, and moves the terms owned by this place into `peers`. Returns the
/// number of each term of `dictionary`; `subjects` are the terms that occur as subjects.
///
/// # Errors
/// A place has died, or there are more than 2^32 terms.
pub async fn numbered(
    team: &Team,
    peers: &Peers,
    dictionary: &Dictionary,
    subjects: impl Iterator<Item = u32>,
) -> isles::Result<Vec<u32>> {
    let (places, here) = (team.size(), team.rank());
    let mut registered = Registered::of(dictionary, subjects, places);
    let rows = std::mem::take(&mut registered.rows);
    let subjects = team.all_to_all(registered.subjects.clone()).await?;
    let registry = Registry::of(&peers.all_to_all_bytes(rows).await?, &subjects);
    let mut is_own = vec![false; dictionary.len()];
    for (homes, locals) in peers.all_to_all(registry.reported_homes()).await?.iter().zip(&registered.locals) {
        homes.iter().zip(locals).for_each(|(home, local)| is_own[*local as usize] = *home as usize == here);
    }
    let mut owned = Dictionary::default();
    (0..dictionary.len())
        .filter(|local| is_own[*local])
        .for_each(|local| _ = owned.intern(dictionary.bytes(local)));
    // All places have all counts, so all agree on whether there are enough numbers.
    let most = team.all_gather(owned.len() as u64).await?.into_iter().max().unwrap_or(0);
    if peers.numbering().number(most as usize, places - 1).is_none() {
        return Err(isles::Error::message("more than 2^32 terms"));
    }
    let mut numbers = vec![UNBOUND; dictionary.len()];
    for (index, local) in (0..dictionary.len()).filter(|local| is_own[*local]).enumerate() {
        numbers[local] = peers.numbering().number(index, here).unwrap_or(UNBOUND);
    }
    peers.own(owned);
    let of = |locals: Vec<u32>| locals.into_iter().map(|local| numbers[local as usize]).collect();
    let given = registered.split(&is_own, true).into_iter().map(of).collect();
    let given = peers.all_to_all(given).await?;
    let others = peers.all_to_all(registry.reported_numbers(&given)).await?;
    for (reported, locals) in others.iter().zip(registered.split(&is_own, false)) {
        reported.iter().zip(locals).for_each(|(number, local)| numbers[local as usize] = *number);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(terms: &[&str]) -> Vec<u8> {
        let mut row = Vec::new();
        terms.iter().for_each(|term| push_term(&mut row, term.as_bytes()));
        row
    }

    #[test]
    fn a_home_has_the_term_as_a_subject_if_any_place_does_and_all_hear_its_number() {
        let reported = [&["a", "b", "x"][..], &["c", "a", "x", "b"], &["d", "x", "c"]];
        let subjects = [2, 1, 1]; // a and b; c; d
        let registry = Registry::of(&reported.map(row), &subjects);
        let homes = registry.reported_homes();
        let home = |term: &str| {
            let found = reported.iter().zip(&homes).flat_map(|(terms, homes)| terms.iter().zip(homes));
            let mut all: Vec<u32> = found.filter(|(own, _)| **own == term).map(|(_, home)| *home).collect();
            all.dedup();
            assert_eq!(all.len(), 1, "{term} has one home");
            all[0]
        };
        assert_eq!([home("a"), home("b"), home("c"), home("d")], [0, 0, 1, 2]);
        let number = |term: &str| 1 + u32::from(term.as_bytes()[0]);
        let of = |place: usize, is_own: bool| -> Vec<u32> {
            let terms = reported[place].iter().filter(|term| (home(term) as usize == place) == is_own);
            terms.map(|term| number(term)).collect()
        };
        let given: Vec<Vec<u32>> = (0..3).map(|place| of(place, true)).collect();
        let expected: Vec<Vec<u32>> = (0..3).map(|place| of(place, false)).collect();
        assert_eq!(registry.reported_numbers(&given), expected);
    }

    #[test]
    fn what_all_places_have_is_shared_out() {
        let names: Vec<String> = (0..3_000).map(|number| format!("t{number}")).collect();
        let reported = vec![row(&names.iter().map(String::as_str).collect::<Vec<_>>()); 4];
        let mut counts = [0; 4];
        Registry::of(&reported, &[0; 4]).homes.iter().for_each(|home| counts[*home as usize] += 1);
        assert_eq!(counts.iter().sum::<u32>(), 3_000);
        assert!(counts.iter().all(|count| (600..900).contains(count)), "{counts:?}");
    }
}
