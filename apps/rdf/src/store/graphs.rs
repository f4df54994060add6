//! The triples of one place by graph: the default graph, and the named graphs of all places.
//!
//! [`GraphStore`] holds the graphs loaded by a place; [`ActiveDataset`] is the RDF dataset of one query, selected from
//! it by `FROM` and `FROM NAMED` (SPARQL 1.1, section 13.2). It knows no other place and no query. Invariant: all
//! places list the same named graphs in the same order, including those without triples here.

use super::arrays::{ArrayReader, ArrayWriter};
use super::{Store, Triple};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A quad of term numbers: graph, subject, predicate, object.
pub type Quad = [u32; 4];

/// A named graph.
#[derive(Debug, Default)]
pub struct NamedGraph {
    /// The number of its name.
    pub name: u32,
    /// Its triples at this place.
    pub store: Store,
}

/// The graphs of a place; immutable.
#[derive(Debug, Default)]
pub struct GraphStore {
    /// The default graph.
    pub default: Store,
    /// The named graphs, by the numbers of their names.
    pub named: Vec<NamedGraph>,
    /// The triples of other places whose object this place owns, by the same graphs; `None` if places keep no copies
    /// of each other's triples. Only lookups of objects that this place owns may read them.
    pub copies: Option<Box<GraphStore>>,
}

/// The dataset over which a query is evaluated.
#[derive(Debug)]
pub struct ActiveDataset<'a> {
    /// The default graph.
    pub default: Cow<'a, Store>,
    /// The named graphs, by the numbers of their names.
    pub named: Vec<&'a NamedGraph>,
    /// The same selection from [`GraphStore::copies`].
    pub copies: Option<Box<ActiveDataset<'a>>>,
}

impl GraphStore {
    /// Sorts the quads by graph. `names` is ascending and contains the graph of each quad; `store` makes a [`Store`]
    /// of triples.
    pub fn of(
        default: Store,
        names: &[u32],
        quads: Vec<Quad>,
        store: impl Fn(&[Triple]) -> Store,
    ) -> GraphStore {
        let mut by_graph: FxHashMap<u32, Vec<Triple>> = FxHashMap::default();
        for [graph, subject, predicate, object] in quads {
            by_graph.entry(graph).or_default().push([subject, predicate, object]);
        }
        let graph =
            |name: &u32| NamedGraph { name: *name, store: store(&by_graph.remove(name).unwrap_or_default()) };
        GraphStore { default, named: names.iter().map(graph).collect(), copies: None }
    }

    /// Returns the number of triples of all graphs.
    pub fn len(&self) -> usize {
        self.default.len() + self.named.iter().map(|graph| graph.store.len()).sum::<usize>()
    }

    /// Returns `true` if no graph has a triple.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of memory that it uses.
    pub fn memory(&self) -> u64 {
        let named = self.named.iter().map(|graph| graph.store.memory());
        self.default.memory() + named.sum::<u64>() + self.copies.as_ref().map_or(0, |copies| copies.memory())
    }

    /// Writes the graphs as part of a snapshot.
    pub fn write(&self, out: &mut ArrayWriter) {
        self.default.write(out);
        out.number(self.named.len() as u64);
        for graph in &self.named {
            out.number(u64::from(graph.name));
            graph.store.write(out);
        }
        out.number(u64::from(self.copies.is_some()));
        self.copies.iter().for_each(|copies| copies.write(out));
    }

    /// Reads the output of [`GraphStore::write`]; `None` if the bytes end too early.
    pub fn read(from: &mut ArrayReader) -> Option<GraphStore> {
        let default = Store::read(from)?;
        let mut named = Vec::new();
        for _ in 0..from.size()? {
            let name = u32::try_from(from.number()?).ok()?;
            named.push(NamedGraph { name, store: Store::read(from)? });
        }
        let copies = if from.number()? == 0 { None } else { Some(Box::new(GraphStore::read(from)?)) };
        Some(GraphStore { default, named, copies })
    }

    /// Calls [`Store::count_foreign_objects`] for each graph.
    pub fn count_foreign_objects(&mut self, is_own: impl Fn(u32) -> bool + Copy) {
        self.default.count_foreign_objects(is_own);
        self.named.iter_mut().for_each(|graph| graph.store.count_foreign_objects(is_own));
    }

    /// Returns the number of triples whose object another place owns.
    pub fn foreign_objects(&self) -> usize {
        let named = self.named.iter().map(|graph| graph.store.foreign_objects());
        self.default.foreign_objects() + named.sum::<usize>()
    }

    /// Returns the dataset of a query that does not specify one.
    pub fn whole(&self) -> ActiveDataset<'_> {
        ActiveDataset {
            default: Cow::Borrowed(&self.default),
            named: self.named.iter().collect(),
            copies: self.copies.as_ref().map(|copies| Box::new(copies.whole())),
        }
    }

    /// Returns the dataset whose default graph is the merge of the graphs named in `default`, and whose named graphs
    /// are those in `named`. A name without a graph denotes an empty graph.
    pub fn chosen(&self, default: &[u32], named: &[u32]) -> ActiveDataset<'_> {
        let copies = self.copies.as_ref().map(|copies| Box::new(copies.chosen(default, named)));
        let mut sorted = default.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let default: Vec<&NamedGraph> = sorted.iter().filter_map(|name| find(&self.named, *name)).collect();
        let default = match default.as_slice() {
            [only] => Cow::Borrowed(&only.store),
            graphs => Cow::Owned(self.merged(graphs)),
        };
        ActiveDataset {
            default,
            named: self.named.iter().filter(|graph| named.contains(&graph.name)).collect(),
            copies,
        }
    }

    /// Returns the merge of these graphs, without duplicates.
    fn merged(&self, graphs: &[&NamedGraph]) -> Store {
        let mut triples = Vec::with_capacity(graphs.iter().map(|graph| graph.store.len()).sum());
        graphs.iter().for_each(|graph| graph.store.visit([None; 3], |triple| triples.push(triple)));
        if self.default.is_by_subject() { Store::of(&triples) } else { Store::of_any(&triples) }
    }
}

fn find(named: &[NamedGraph], name: u32) -> Option<&NamedGraph> {
    named.binary_search_by_key(&name, |graph| graph.name).ok().map(|position| &named[position])
}

impl<'a> ActiveDataset<'a> {
    /// Returns `true` if all triples of a subject are at the place that owns it.
    pub fn is_by_subject(&self) -> bool {
        self.default.is_by_subject()
    }

    /// Returns the named graph with this name.
    pub fn graph(&self, name: u32) -> Option<&'a NamedGraph> {
        self.named.binary_search_by_key(&name, |graph| graph.name).ok().map(|position| self.named[position])
    }

    /// Returns the named graphs with this name; all of them if it is `None`.
    pub fn graphs(&self, name: Option<u32>) -> &[&'a NamedGraph] {
        match name {
            None => &self.named,
            Some(name) => {
                let found = self.named.binary_search_by_key(&name, |graph| graph.name);
                found.map_or(&[], |position| std::slice::from_ref(&self.named[position]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_has_the_chosen_graphs_and_their_merge_has_each_triple_once() {
        let quads = vec![[5, 1, 2, 3], [5, 1, 2, 4], [9, 1, 2, 4], [9, 6, 2, 4], [9, 6, 2, 4]];
        let all = GraphStore::of(Store::of(&[[7, 7, 7]]), &[5, 8, 9], quads, Store::of);
        assert_eq!(all.len(), 5);
        let whole = all.whole();
        assert_eq!(whole.named.iter().map(|graph| graph.store.len()).collect::<Vec<_>>(), [2, 0, 2]);
        let names =
            |dataset: &ActiveDataset<'_>| dataset.named.iter().map(|graph| graph.name).collect::<Vec<_>>();
        for (default, named, len, expected) in [
            (&[][..], &[9, 5][..], 0, &[5, 9][..]),
            (&[9], &[], 2, &[]),
            (&[9, 5, 9], &[8], 3, &[8]),
            (&[5, 77], &[77], 2, &[]),
        ] {
            let chosen = all.chosen(default, named);
            assert_eq!((chosen.default.len(), names(&chosen).as_slice()), (len, expected), "{default:?}");
        }
        assert_eq!(
            (whole.graphs(Some(8)).len(), whole.graphs(Some(7)).len(), whole.graphs(None).len()),
            (1, 0, 3)
        );
    }
}
