//! Which place owns each term if the triples of a subject stay where they were read, and the number of each term.
//!
//! The hash of a term decides its *registrar*, a place that hears from all places which have read the term, and chooses
//! its home among them: one at which it is a subject, if there is one. The rest of the program knows only the numbers,
//! which say the home. Invariant: a home has read the terms that it owns, so their bytes are there; its indices are
//! dense.

use crate::peers::{Peers, push_term, terms_of};
use crate::store::dictionary::{Dictionary, Numbering};
use crate::store::{Triple, term};
use isles::prelude::*;

/// How far the place that has read most triples may be above the mean, for homes to share the work well.
pub const READ_MOST: f64 = 1.25;

/// The terms for which a place is the registrar.
#[derive(Debug, Default)]
struct Registry {
    /// The position of each term that was told, by the place that told it.
    told: Vec<Vec<u32>>,
    /// The home of each term.
    homes: Vec<u32>,
}

/// Which of the places that have read a term becomes its home: that with the greatest number. Subjects come first;
/// among equals it is as good as drawn, so that no place owns all that several have.
fn preference(term: u32, place: usize, is_subject: bool) -> u64 {
    // The mixing of SplitMix64 (Steele, Lea and Flood, 2014).
    let mixed = (u64::from(term) << 32 | place as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) >> 1 | u64::from(is_subject) << 63
}

impl Registry {
    /// Of what each place has told: its terms, of which so many at the beginning are subjects there.
    fn of(told: &[Vec<u8>], subjects: &[u64]) -> Registry {
        let mut dictionary = Dictionary::default();
        let mut best: Vec<(u64, u32)> = Vec::new();
        let mut registry = Registry::default();
        for (place, row) in told.iter().enumerate() {
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
            registry.told.push(positions);
        }
        registry.homes = best.into_iter().map(|(_, home)| home).collect();
        registry
    }

    /// How many terms each place becomes the home of.
    fn counts(&self, places: usize) -> Vec<u32> {
        let mut counts = vec![0; places];
        self.homes.iter().for_each(|home| counts[*home as usize] += 1);
        counts
    }

    /// The numbers of the terms that each place has told; `next` is the next free index at each home.
    fn numbers(&self, mut next: Vec<u32>, numbering: Numbering) -> Option<Vec<Vec<u32>>> {
        let number = |home: &u32| {
            let index = &mut next[*home as usize];
            *index += 1;
            numbering.number(*index as usize - 1, *home as usize)
        };
        let numbers: Vec<u32> = self.homes.iter().map(number).collect::<Option<_>>()?;
        let row = |told: &Vec<u32>| told.iter().map(|position| numbers[*position as usize]).collect();
        Some(self.told.iter().map(row).collect())
    }
}

/// Chooses the homes of the terms of all places, and gives `peers` those of this one. The number of each term of
/// `dictionary`, some of which are subjects of `triples`.
///
/// # Errors
/// A place has died, or there are more than 2^32 terms.
pub async fn numbered(
    (team, peers): (&Team, &Peers),
    dictionary: &Dictionary,
    triples: &[Triple],
) -> isles::Result<Vec<u32>> {
    let places = team.size();
    let mut is_subject = vec![false; dictionary.len()];
    triples.iter().for_each(|triple| is_subject[triple[0] as usize] = true);
    let owners: Vec<u32> = (0..dictionary.len())
        .map(|local| term::owner(term::hash(dictionary.bytes(local)), places) as u32)
        .collect();
    let (mut rows, mut locals) = (vec![Vec::new(); places], vec![Vec::new(); places]);
    let mut subjects: Vec<u64> = vec![0; places];
    for wanted in [true, false] {
        for (local, owner) in owners.iter().enumerate().filter(|(local, _)| is_subject[*local] == wanted) {
            let owner = *owner as usize;
            push_term(&mut rows[owner], dictionary.bytes(local));
            locals[owner].push(local as u32);
            subjects[owner] += u64::from(wanted);
        }
    }
    let subjects = team.all_to_all(subjects).await?;
    let registry = Registry::of(&peers.trade_bytes(rows).await?, &subjects);
    // All places see all counts, so all agree whether there are numbers enough.
    let counts = team.all_gatherv(&registry.counts(places)).await?;
    let owned = |home: usize| counts.iter().map(|row| u64::from(row[home])).sum::<u64>();
    let most = (0..places).map(owned).max().unwrap_or(0);
    let before = |home: usize| counts[..team.rank()].iter().map(|row| row[home]).sum();
    let next = (most <= u64::from(u32::MAX)).then(|| (0..places).map(before).collect());
    let is_enough = peers.numbering().number(most as usize, places - 1).is_some();
    let numbers = next.filter(|_| is_enough).and_then(|next| registry.numbers(next, peers.numbering()));
    let numbers = numbers.ok_or_else(|| isles::Error::message("more than 2^32 terms"))?;
    let mut all = vec![0; dictionary.len()];
    for (row, locals) in peers.trade(numbers).await?.iter().zip(&locals) {
        row.iter().zip(locals).for_each(|(number, local)| all[*local as usize] = *number);
    }
    peers.own(owned_terms(peers, dictionary, &all));
    Ok(all)
}

/// The terms of `dictionary` whose numbers say that this place owns them, by index.
fn owned_terms(peers: &Peers, dictionary: &Dictionary, numbers: &[u32]) -> Dictionary {
    let owns = peers.owns();
    let own = (0..numbers.len() as u32).filter(|local| owns(numbers[*local as usize]));
    let mut locals: Vec<(usize, u32)> =
        own.map(|local| (peers.numbering().index(numbers[local as usize]), local)).collect();
    locals.sort_unstable();
    let mut owned = Dictionary::default();
    for (index, local) in locals {
        let given = owned.intern(dictionary.bytes(local as usize)) as usize;
        debug_assert_eq!(given, index, "indices of a home are dense");
    }
    owned
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn row(terms: &[&str]) -> Vec<u8> {
        let mut row = Vec::new();
        terms.iter().for_each(|term| push_term(&mut row, term.as_bytes()));
        row
    }

    #[test]
    fn a_home_has_the_term_as_a_subject_if_any_place_does_and_its_indices_are_dense() {
        let told = [&["a", "b", "x"][..], &["c", "a", "x", "b"], &["d", "x", "c"]];
        let subjects = [2, 1, 1]; // a and b; c; d
        let registry = Registry::of(&told.map(row), &subjects);
        let numbering = Numbering::new(3);
        let numbers = registry.numbers(vec![10, 20, 30], numbering).unwrap();
        let mut homes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (terms, numbers) in told.iter().zip(&numbers) {
            for (term, number) in terms.iter().zip(numbers) {
                let home = (numbering.place(*number), numbering.index(*number));
                assert_eq!(*homes.entry(term).or_insert(home), home, "one number each");
            }
        }
        assert_eq!([homes["a"].0, homes["b"].0, homes["c"].0, homes["d"].0], [0, 0, 1, 2]);
        let mut indices = vec![Vec::new(); 3];
        homes.values().for_each(|(place, index)| indices[*place].push(*index));
        for (place, (mut indices, count)) in indices.into_iter().zip(registry.counts(3)).enumerate() {
            indices.sort_unstable();
            let first = 10 * (place + 1);
            assert_eq!(indices, (first..first + count as usize).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_all_places_have_is_shared_out() {
        let names: Vec<String> = (0..3_000).map(|number| format!("t{number}")).collect();
        let told = vec![row(&names.iter().map(String::as_str).collect::<Vec<_>>()); 4];
        let counts = Registry::of(&told, &[0; 4]).counts(4);
        assert_eq!(counts.iter().sum::<u32>(), 3_000);
        assert!(counts.iter().all(|count| (600..900).contains(count)), "{counts:?}");
    }
}
