//! Moves triples to the places of a graph partition, as if each place had read the triples of its part.
//!
//! As in the paper (004:578), terms are vertices and triples are undirected edges of weight one. Star-shaped graphs,
//! in which all vertices but one have degree one, are distributed first; the rest is partitioned by `multilevel`. The
//! paper ran METIS and kept cut edges in both parts. Here a triple is stored with its subject, and `copies` of `load`
//! adds it to the part of its object. The first place partitions the graph. Invariant: all triples of a subject go to
//! one place.

use super::multilevel::{WeightedGraph, partition};
use super::triples::LocalTriples;
use super::{arrays_of, numbered_by_hash};
use crate::peers::{Peers, push_term, terms_of};
use isles::prelude::*;

/// Sends the triples of this place to the places of their parts, and returns the triples received.
///
/// # Errors
/// A place has died, or there are more than 2^32 terms.
pub async fn regrouped(team: &Team, own: LocalTriples) -> isles::Result<LocalTriples> {
    let places = team.size();
    let peers = Peers::member(team.clone(), true);
    let numbers = numbered_by_hash(&peers, &own.dictionary).await?;
    let number = |position: u32| numbers[position as usize];
    let of_triples = own.triples.iter().map(|[subject, _, object]| [*subject, *object]);
    let of_quads = own.quads.iter().map(|[_, subject, _, object]| [*subject, *object]);
    let edges: Vec<u32> = of_triples.chain(of_quads).flatten().map(number).collect();
    let gathered = team.gatherv(0, &edges).await?;
    drop(edges);
    let mut len = [0_u64];
    let mut parts = Vec::new();
    if let Some(gathered) = gathered {
        parts = parts_of(&gathered.concat(), places);
        len = [parts.len() as u64];
    }
    team.broadcast_slice(0, &mut len).await?;
    parts.resize(len[0] as usize, 0);
    team.broadcast_slice(0, &mut parts).await?;
    let part = |subject: u32| parts[number(subject) as usize] as usize;
    let (terms, triples) = rows(&own, places, part);
    let (terms, triples) = (peers.all_to_all_bytes(terms).await?, peers.all_to_all(triples).await?);
    let mut arrived = LocalTriples::default();
    for (terms, triples) in terms.iter().zip(&triples) {
        add(terms, triples, &mut arrived);
    }
    for graph in &own.graphs {
        arrived.graphs.push(arrived.dictionary.intern(own.dictionary.bytes(*graph as usize)));
    }
    Ok(arrived)
}

/// Returns the part of each term by its number; `edges` are pairs of numbers, the subject first.
fn parts_of(edges: &[u32], places: usize) -> Vec<u32> {
    let len = edges.iter().max().map_or(0, |most| *most as usize + 1);
    let pairs = || arrays_of::<2>(edges);
    let (mut degrees, mut weights) = (vec![0_u32; len], vec![0_u64; len]);
    let mut groups = Groups((0..len as u32).collect());
    for [subject, object] in pairs() {
        weights[subject as usize] += 1;
        degrees[subject as usize] += 1;
        degrees[object as usize] += 1;
        groups.join(subject, object);
    }
    // For each connected component, by its first vertex: its triples, and its vertices of degree above one.
    let mut triples = vec![0_u64; len];
    let mut inner = vec![0_u32; len];
    for vertex in 0..len {
        let group = groups.first(vertex as u32) as usize;
        triples[group] += weights[vertex];
        inner[group] += u32::from(degrees[vertex] > 1);
    }
    let mut stars: Vec<usize> = (0..len).filter(|group| triples[*group] > 0 && inner[*group] < 2).collect();
    stars.sort_by_key(|group| std::cmp::Reverse(triples[*group]));
    let mut dealt = vec![0_u64; places];
    let mut parts = vec![u32::MAX; len];
    for star in stars {
        let lightest = (0..places).min_by_key(|place| dealt[*place]).unwrap_or_default();
        dealt[lightest] += triples[star];
        parts[star] = lightest as u32;
    }
    (0..len).for_each(|vertex| parts[vertex] = parts[groups.first(vertex as u32) as usize]);
    // The rest becomes a separate graph with dense numbers.
    let mut dense = vec![u32::MAX; len];
    let left: Vec<usize> =
        (0..len).filter(|vertex| parts[*vertex] == u32::MAX && degrees[*vertex] > 0).collect();
    left.iter().enumerate().for_each(|(position, vertex)| dense[*vertex] = position as u32);
    let edges = pairs().map(|pair| pair.map(|number| dense[number as usize]));
    let edges = edges.filter(|[subject, _]| *subject != u32::MAX).map(|[subject, object]| (subject, object));
    let graph = WeightedGraph::of(left.iter().map(|vertex| weights[*vertex]).collect(), edges);
    for (vertex, part) in left.iter().zip(partition(&graph, places)) {
        parts[*vertex] = part;
    }
    parts
}

/// Connected components, as a forest whose roots are the first vertices.
struct Groups(Vec<u32>);

impl Groups {
    /// Returns the first vertex of the component of `vertex`, and shortens the path to it.
    fn first(&mut self, mut vertex: u32) -> u32 {
        while self.0[vertex as usize] != vertex {
            let above = self.0[self.0[vertex as usize] as usize];
            self.0[vertex as usize] = above;
            vertex = above;
        }
        vertex
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first(one), self.first(other));
        self.0[one.max(other) as usize] = one.min(other);
    }
}

/// Returns, for each place, its terms, and its triples as positions of these: the number of triples, triples, quads.
fn rows(own: &LocalTriples, places: usize, part: impl Fn(u32) -> usize) -> (Vec<Vec<u8>>, Vec<Vec<u32>>) {
    // Triples are grouped by place first, so that each is visited only once.
    let mut own_triples = vec![Vec::new(); places];
    own.triples.iter().for_each(|triple| own_triples[part(triple[0])].push(*triple));
    let mut own_quads = vec![Vec::new(); places];
    own.quads.iter().for_each(|quad| own_quads[part(quad[1])].push(*quad));
    let (mut terms, mut triples) = (vec![Vec::new(); places], vec![Vec::new(); places]);
    // The place that last used a term, and the term's position there.
    let mut positions = vec![(u32::MAX, 0_u32); own.dictionary.len()];
    for (place, (terms, row)) in terms.iter_mut().zip(&mut triples).enumerate() {
        let mut count = 0;
        let mut position = |term: u32| {
            let known = &mut positions[term as usize];
            if known.0 != place as u32 {
                *known = (place as u32, count);
                count += 1;
                push_term(terms, own.dictionary.bytes(term as usize));
            }
            known.1
        };
        row.push(own_triples[place].len() as u32);
        own_triples[place].iter().for_each(|triple| row.extend(triple.map(&mut position)));
        own_quads[place].iter().for_each(|quad| row.extend(quad.map(&mut position)));
    }
    (terms, triples)
}

/// Adds the triples that [`rows`] wrote for this place.
fn add(terms: &[u8], triples: &[u32], out: &mut LocalTriples) {
    let positions: Vec<u32> = terms_of(terms).map(|term| out.dictionary.intern(term)).collect();
    let Some((count, rest)) = triples.split_first() else { return };
    let (triples, quads) = rest.split_at(3 * *count as usize);
    let position = |position: u32| positions[position as usize];
    out.triples.extend(arrays_of::<3>(triples).map(|triple| triple.map(position)));
    out.quads.extend(arrays_of::<4>(quads).map(|quad| quad.map(position)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_whole_and_are_dealt_out_evenly() {
        // Ten stars of 3 to 12 triples, and a ring of 40 vertices, which is not a star.
        let mut edges: Vec<u32> = (0..10_u32)
            .flat_map(|star| (0..star + 3).flat_map(move |leaf| [1 + star * 20, 2 + star * 20 + leaf]))
            .collect();
        edges.extend((0..40).flat_map(|vertex| [300 + vertex, 300 + (vertex + 1) % 40]));
        for places in [2, 3, 4] {
            let parts = parts_of(&edges, places);
            let mut weights = vec![0_u64; places];
            for star in 0..10_u32 {
                let own = parts[1 + star as usize * 20];
                weights[own as usize] += u64::from(star) + 3;
                assert!((0..star + 3).all(|leaf| parts[(2 + star * 20 + leaf) as usize] == own), "{star}");
            }
            let (most, least) = (weights.iter().max().unwrap(), weights.iter().min().unwrap());
            assert!(most - least <= 12, "{weights:?}");
            let ring: Vec<u32> = (300..340).map(|vertex| parts[vertex]).collect();
            let cut = (0..40).filter(|at| ring[*at] != ring[(*at + 1) % 40]).count();
            assert!(cut >= places.min(40) && cut <= 3 * places, "{places}: {ring:?}");
        }
        assert!(parts_of(&[], 3).is_empty());
    }

    #[test]
    fn moved_triples_have_the_terms_that_they_had() {
        let mut own = LocalTriples::default();
        for number in 0..50 {
            let triple = [number % 7, 100 + number % 3, number % 11];
            let triple = triple.map(|term| own.iri(&format!("t{term}")));
            own.triples.push(triple);
            own.quads.push([triple[1], triple[2], triple[1], triple[0]]);
        }
        let words = |all: &LocalTriples| {
            let word = |position: &u32| {
                String::from_utf8(all.dictionary.bytes(*position as usize).to_vec()).unwrap()
            };
            let triples = all.triples.iter().map(|triple| triple.iter().map(word).collect::<Vec<_>>());
            let quads = all.quads.iter().map(|quad| quad.iter().map(word).collect());
            let mut words: Vec<Vec<String>> = triples.chain(quads).collect();
            words.sort();
            words
        };
        let mut arrived = LocalTriples::default();
        let (terms, triples) = rows(&own, 3, |subject| subject as usize % 3);
        terms.iter().zip(&triples).for_each(|(terms, triples)| add(terms, triples, &mut arrived));
        assert_eq!(words(&arrived), words(&own));
    }
}
