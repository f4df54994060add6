//! Loading over places: each place reads or generates a part, then terms and triples go to their owners.
//!
//! A term is owned by a place that has read it, or by the one determined by its hash; a triple is stored at the owner
//! of its subject, or at the place that read it. Files are split by lines if their format allows it; otherwise each
//! file is read at one place, round robin. Invariant: a source with an error leaves nothing behind.

mod debian;
mod homes;
mod lines;
pub mod lubm;
mod multilevel;
mod regions;
pub mod snapshot;
pub mod source;
pub mod triples;

use crate::peers::{Peers, push_term};
use crate::store::dictionary::Dictionary;
use crate::store::graphs::{GraphStore, Quad};
use crate::store::{Store, Triple, term};
use clap::ValueEnum;
use isles::prelude::*;
use isles_app::console::Progress;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use source::{DataSource, FilePart, OpenSource};
use triples::LocalTriples;

/// Number of departments generated between two yields to other tasks.
const TURN_EVERY: usize = 4;

/// Cycles of a modelled core per triple read: three terms are split, hashed and compared, and the triple is sorted
/// twice. Assumed.
const TRIPLE_CYCLES: u64 = 3_000;

/// Partition of the triples over places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// As `locality` if no place has read more than 1.25 times the mean, else as `subject`.
    #[default]
    Auto,
    /// Stored with all triples of its subject, at a place that has read some of them.
    Locality,
    /// Stored with all triples of its subject, by a multilevel partition of the graph that deals out star-shaped graphs
    /// first and cuts few edges; the other part has copies of cut triples.
    Graph,
    /// Stored with all triples of its subject, at the place given by the hash of the subject.
    Subject,
    /// Stored at the place that read it: departments of LUBM and files in turn, lines of N-Triples in equal parts.
    File,
}

/// The triples of a place and its part of the terms.
pub struct Loaded {
    /// The triples, by graph.
    pub graphs: GraphStore,
    /// The terms, and the connection to the other places.
    pub peers: Peers,
    /// Partition of the triples, never [`Partition::Auto`].
    pub partition: Partition,
}

/// Counts of a load, over all places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadCounts {
    /// Distinct triples, counted per graph.
    pub triples: u64,
    /// Named graphs.
    pub graphs: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Triples whose object and subject have different owners.
    pub cut: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of memory without the terms.
    pub index: u64,
    /// Partition of the triples.
    pub partition: Partition,
}

/// Reason why loading failed, in one line.
#[derive(Debug)]
pub enum LoadFault {
    /// A source has an error.
    Source(String),
    /// The run failed.
    Run(isles::Error),
}

impl From<isles::Error> for LoadFault {
    fn from(error: isles::Error) -> LoadFault {
        LoadFault::Run(error)
    }
}

/// Loads all sources at this place alone; `contents` are the bytes of the files, in order.
///
/// # Errors
/// A source has an error.
pub fn load_alone(sources: &[DataSource], contents: &[Vec<u8>]) -> Result<Loaded, LoadFault> {
    let mut all = LocalTriples::default();
    let mut contents = contents.iter();
    for (number, source) in sources.iter().enumerate() {
        match source {
            DataSource::Lubm { universities, is_closed } => {
                for department in lubm::all_departments(*universities) {
                    lubm::add_department(&mut all, department, *is_closed);
                }
            }
            DataSource::File { .. } => {
                let bytes = contents.next().map(Vec::as_slice).unwrap_or_default();
                file_part(source, number, bytes, 0).read(&mut all, |_| ()).map_err(LoadFault::Source)?;
            }
            DataSource::Snapshot { name, path, head } => {
                let read = snapshot::read_all(path, head, &mut all);
                read.map_err(|wrong| LoadFault::Source(format!("{name}: {wrong}")))?;
            }
        }
    }
    Ok(alone(all))
}

/// Returns the triples of a place that holds all of them.
fn alone(LocalTriples { dictionary, mut triples, mut quads, mut graphs, .. }: LocalTriples) -> Loaded {
    let numbers = triples.iter_mut().flatten().chain(quads.iter_mut().flatten()).chain(&mut graphs);
    numbers.for_each(|number| *number += 1);
    let names = graph_names(graphs, &quads);
    let graphs = GraphStore::of(Store::of(&triples), &names, quads, Store::of);
    Loaded { graphs, peers: Peers::alone(dictionary), partition: Partition::Subject }
}

/// Returns the names of all graphs in ascending order: those in `names` and those of `quads`.
fn graph_names(mut names: Vec<u32>, quads: &[Quad]) -> Vec<u32> {
    names.extend(quads.iter().map(|quad| quad[0]));
    names.sort_unstable();
    names.dedup();
    names
}

fn file_part<'a>(source: &'a DataSource, file: usize, bytes: &'a [u8], lines_before: u64) -> FilePart<'a> {
    match source {
        DataSource::File { name, extension, base, graph, .. } => {
            FilePart { file, name, extension, base, graph: graph.as_deref(), bytes, lines_before }
        }
        _ => FilePart { file, name: "", extension: "", base: "", graph: None, bytes, lines_before },
    }
}

/// Loads all sources over the places of `team`. All members call it with the same sources; only the first place has
/// the contents of files.
///
/// # Errors
/// A source has an error, which is reported at each place; or a place has died.
pub async fn load(
    team: Team,
    sources: &[DataSource],
    contents: &[OpenSource],
    partition: Partition,
) -> Result<Loaded, LoadFault> {
    let (places, rank) = (team.size(), team.rank());
    if let [DataSource::Snapshot { name, path, head }] = sources {
        return snapshot::open(Some(&team), name, path, head).await;
    }
    let mut own = LocalTriples::default();
    let mut fault = None;
    let mut progress = LoadProgress::new(&team);
    for (number, source) in sources.iter().enumerate() {
        match source {
            DataSource::Lubm { universities, is_closed } => {
                let departments = lubm::all_departments(*universities).enumerate();
                for (at, department) in departments.filter(|(at, _)| at % places == rank) {
                    let before = own.triples.len();
                    lubm::add_department(&mut own, department, *is_closed);
                    progress.add((own.triples.len() - before) as u64);
                    if at / places % TURN_EVERY == 0 {
                        yield_now().await;
                    }
                }
            }
            DataSource::File { .. } => {
                let bytes = contents.get(number).map(|open| open.bytes.as_slice());
                if let Some(bytes) = bytes.filter(|_| places == 1) {
                    fault = fault.or(file_part(source, number, bytes, 0)
                        .read(&mut own, |more| progress.add(more))
                        .err());
                    continue;
                }
                let (part, lines_before) = own_part(&team, source, number, bytes).await?;
                let read = file_part(source, number, &part, lines_before);
                let read = read.read(&mut own, |more| progress.add(more));
                fault = fault.or(read.err());
            }
            DataSource::Snapshot { .. } => {} // the only source, if it is one
        }
    }
    drop(progress);
    let read = own.triples.len() + own.quads.len();
    work(Cycles(TRIPLE_CYCLES * read as u64));
    // The fault of the lowest place; for files split by lines it is the first error.
    let (faults, read): (Vec<_>, Vec<_>) = team.all_gather((fault, read)).await?.into_iter().unzip();
    if let Some(fault) = faults.into_iter().flatten().next() {
        return Err(LoadFault::Source(fault));
    }
    if places == 1 {
        return Ok(alone(own));
    }
    Ok(exchanged(team, own, partition.resolved(&read)).await?)
}

impl Partition {
    /// Returns `true` if each term is owned by the place determined by its hash.
    pub fn is_by_hash(self) -> bool {
        matches!(self, Partition::Subject | Partition::File)
    }

    /// Resolves `Auto` from the numbers of triples that the places have read.
    fn resolved(self, read: &[usize]) -> Partition {
        let mean = read.iter().sum::<usize>() as f64 / read.len().max(1) as f64;
        let most = read.iter().copied().max().unwrap_or(0) as f64;
        match self {
            Partition::Auto if most <= mean * homes::READ_MOST => Partition::Locality,
            Partition::Auto => Partition::Subject,
            other => other,
        }
    }
}

/// Reports the number of triples read by the first place, which is about its share.
struct LoadProgress {
    shown: Option<Progress>,
    triples: u64,
}

impl LoadProgress {
    fn new(team: &Team) -> LoadProgress {
        let unit = if team.size() == 1 { "triples read" } else { "triples read at the first place" };
        LoadProgress { shown: (team.rank() == 0).then(|| Progress::new(0, unit)), triples: 0 }
    }

    fn add(&mut self, more: u64) {
        self.triples += more;
        if let Some(progress) = self.shown.as_mut().filter(|progress| progress.is_due()) {
            progress.report(self.triples);
        }
    }
}

/// Returns the part of a file that this place reads, and the number of lines before it.
async fn own_part(
    team: &Team,
    source: &DataSource,
    number: usize,
    bytes: Option<&[u8]>,
) -> isles::Result<(Vec<u8>, u64)> {
    let places = team.size();
    let mut rows = Vec::new();
    let mut lines_before = vec![0_u64; places];
    if let Some(bytes) = bytes.filter(|_| team.rank() == 0) {
        if source.is_by_lines() {
            let parts = (0..places).map(|part| source::whole_lines(bytes, part, places));
            rows = parts.map(|range| bytes[range].to_vec()).collect::<Vec<_>>();
            let mut before = 0;
            for (row, lines) in rows.iter().zip(&mut lines_before) {
                *lines = before;
                before += row.iter().filter(|byte| **byte == b'\n').count() as u64;
            }
        } else {
            rows = vec![Vec::new(); places];
            rows[number % places] = bytes.to_vec();
        }
    }
    team.broadcast_slice(0, &mut lines_before).await?;
    let rows = (team.rank() == 0).then_some(rows.as_slice());
    Ok((team.scatterv(0, rows).await?, lines_before[team.rank()]))
}

/// Sends terms to their owners, and triples to their places.
async fn exchanged(team: Team, own: LocalTriples, partition: Partition) -> isles::Result<Loaded> {
    let own = if partition == Partition::Graph { regions::regrouped(&team, own).await? } else { own };
    let peers = Peers::member(team.clone(), partition.is_by_hash());
    let subjects = own.triples.iter().map(|triple| triple[0]).chain(own.quads.iter().map(|quad| quad[1]));
    let numbers = match partition {
        Partition::Locality | Partition::Graph => {
            homes::numbered(&team, &peers, &own.dictionary, subjects).await?
        }
        _ => numbered_by_hash(&peers, &own.dictionary).await?,
    };
    let number = |position: u32| numbers[position as usize];
    let quads: Vec<Quad> = own.quads.into_iter().map(|quad| quad.map(number)).collect();
    let named = graph_names(own.graphs.into_iter().map(number).collect(), &quads);
    let named = graph_names(team.all_gatherv(&named).await?.into_iter().flatten().collect(), &[]);
    let triples = own.triples.into_iter().map(|triple| triple.map(number)).collect();
    let triples = placed(&peers, triples, partition).await?;
    // All places have the same names, so all skip the exchange if there are no quads.
    let quads = if named.is_empty() { quads } else { placed(&peers, quads, partition).await? };
    let store = if partition == Partition::File { Store::of_any } else { Store::of };
    let copies = match partition {
        Partition::Graph => Some(Box::new(copies(&peers, &triples, &quads, &named).await?)),
        _ => None,
    };
    let mut graphs = GraphStore { copies, ..GraphStore::of(store(&triples), &named, quads, store) };
    graphs.count_foreign_objects(peers.owns());
    Ok(Loaded { graphs, peers, partition })
}

/// Sends each triple whose object another place owns to that place, and returns the triples received.
async fn copies(
    peers: &Peers,
    triples: &[Triple],
    quads: &[Quad],
    names: &[u32],
) -> isles::Result<GraphStore> {
    let triples = copied(peers, triples).await?;
    // All places have the same names, so all skip the exchange if there are no quads.
    let quads = if names.is_empty() { Vec::new() } else { copied(peers, quads).await? };
    Ok(GraphStore::of(Store::of_any(&triples), names, quads, Store::of_any))
}

/// Returns the rows of term numbers, triples or quads, from other places whose object this place owns.
async fn copied<const N: usize>(peers: &Peers, own: &[[u32; N]]) -> isles::Result<Vec<[u32; N]>> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); peers.size()];
    let owner = |row: &[u32; N]| peers.numbering().place(row[N - 1]);
    let cut = own.iter().filter(|row| owner(row) != peers.rank());
    cut.for_each(|row| rows[owner(row)].extend(row));
    Ok(peers.all_to_all(rows).await?.iter().flat_map(|row| arrays_of(row)).collect())
}

/// Sends rows of term numbers, triples or quads, to their places; duplicates are removed.
async fn placed<const N: usize>(
    peers: &Peers,
    mut own: Vec<[u32; N]>,
    partition: Partition,
) -> isles::Result<Vec<[u32; N]>> {
    own.sort_unstable();
    own.dedup();
    let owner = |row: &[u32; N]| peers.numbering().place(row[N - 3]);
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); peers.size()];
    own.iter().for_each(|row| rows[owner(row)].extend(row));
    let received = peers.all_to_all(rows).await?;
    if partition != Partition::File {
        return Ok(received.iter().flat_map(|row| arrays_of(row)).collect());
    }
    // The owner of the subject assigns each row to the first place that has it.
    let mut known = FxHashSet::default();
    let is_first = |row: &Vec<u32>| arrays_of::<N>(row).map(|row| u32::from(known.insert(row))).collect();
    let answers = peers.all_to_all(received.iter().map(is_first).collect()).await?;
    let mut answers: Vec<_> = answers.iter().map(|row| row.iter()).collect();
    own.retain(|row| answers[owner(row)].next() == Some(&1));
    Ok(own)
}

/// Returns the number of each term of `dictionary`, assigned by the place given by its hash.
async fn numbered_by_hash(peers: &Peers, dictionary: &Dictionary) -> isles::Result<Vec<u32>> {
    let places = peers.size();
    let mut rows: Vec<Vec<u8>> = vec![Vec::new(); places];
    let mut owners = Vec::with_capacity(dictionary.len());
    for index in 0..dictionary.len() {
        let bytes = dictionary.bytes(index);
        let owner = term::owner(term::hash(bytes), places);
        push_term(&mut rows[owner], bytes);
        owners.push(owner);
    }
    let numbers = peers.intern_rows(rows).await?;
    let mut next: Vec<_> = numbers.iter().map(|row| row.iter()).collect();
    let number = |owner: &usize| next[*owner].next().copied().unwrap_or_default();
    Ok(owners.iter().map(number).collect())
}

/// Returns the arrays stored consecutively in `row`.
fn arrays_of<const N: usize>(row: &[u32]) -> impl Iterator<Item = [u32; N]> + Clone + '_ {
    row.as_chunks().0.iter().copied()
}

impl Loaded {
    /// Returns the counts over all places.
    ///
    /// # Errors
    /// A place has died.
    pub async fn counts(&self) -> isles::Result<LoadCounts> {
        let terms = self.peers.dictionary().len() as u64;
        let mut all = [
            self.graphs.len() as u64,
            terms,
            self.memory(),
            self.graphs.foreign_objects() as u64,
            self.graphs.memory(),
        ];
        self.peers.sum(&mut all).await?;
        let graphs = self.graphs.named.len() as u64;
        Ok(LoadCounts {
            triples: all[0],
            graphs,
            terms: all[1],
            memory: all[2],
            cut: all[3],
            index: all[4],
            partition: self.partition,
        })
    }

    /// Returns the bytes of memory that this place uses.
    pub fn memory(&self) -> u64 {
        self.graphs.memory() + self.peers.dictionary().memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::Plan;

    /// Returns a few quads of 60 terms.
    fn lines(graph: &str) -> Vec<u8> {
        let line = |n: u32| format!("<x:s{}> <x:p{}> <x:s{}> {graph} .\n", n * 7 % 31, n % 3, n * 5 % 29);
        (0..200).map(line).collect::<String>().into_bytes()
    }

    /// Returns the triples of all graphs.
    fn triples(all: &GraphStore) -> Vec<Triple> {
        let stores = std::iter::once(&all.default).chain(all.named.iter().map(|graph| &graph.store));
        let mut found = Vec::new();
        stores.for_each(|store| store.visit([None; 3], |triple| found.push(triple)));
        found.sort_unstable();
        found
    }

    /// Returns the triples and the copies that this place has with `--partition graph`.
    async fn loaded(graph: &str) -> isles::Result<(Vec<Triple>, Vec<Triple>)> {
        let bytes = lines(graph);
        let source = DataSource::File {
            name: "some".to_owned(),
            extension: "nq".to_owned(),
            base: "x:".to_owned(),
            len: bytes.len() as u64,
            graph: None,
        };
        let team = Team::world();
        let mut contents = vec![OpenSource { source: source.clone(), bytes }];
        contents.retain(|_| team.rank() == 0);
        let loaded = load(team, &[source], &contents, Partition::Graph).await;
        let loaded = loaded.map_err(|fault| isles::Error::message(format!("{fault:?}")))?;
        let copies = loaded.graphs.copies.as_ref().map(|copies| triples(copies));
        Ok((triples(&loaded.graphs), copies.unwrap_or_default()))
    }

    fn check(found: &[(Vec<Triple>, Vec<Triple>)]) {
        let places = found.len();
        let owner = |number: u32| crate::store::dictionary::Numbering::new(places).place(number);
        let mut all: Vec<Triple> = found.iter().flat_map(|(own, _)| own.clone()).collect();
        all.sort_unstable();
        let distinct: FxHashSet<[u32; 3]> = (0..200).map(|n| [n * 7 % 31, n % 3, n * 5 % 29]).collect();
        assert_eq!(all.len(), distinct.len(), "each triple is at one place");
        for (place, (own, copies)) in found.iter().enumerate() {
            assert!(own.iter().all(|triple| owner(triple[0]) == place));
            assert!(!copies.is_empty() && copies.iter().all(|triple| owner(triple[0]) != place));
            let of_own_objects = |triples: &[Triple]| -> Vec<Triple> {
                triples.iter().copied().filter(|triple| owner(triple[2]) == place).collect()
            };
            let mut here = [of_own_objects(own), copies.clone()].concat();
            here.sort_unstable();
            assert_eq!(here, of_own_objects(&all), "place {place} of {places}");
        }
    }

    #[test]
    fn the_owner_of_an_object_has_all_of_its_triples_and_nobody_has_one_twice() {
        for (places, graph) in [(2, ""), (3, "<x:g>"), (5, "")] {
            let graph = graph.to_owned();
            let (ended, ..) = isles::simulate(places, Plan::calm(1), move || async move {
                check(&everywhere!([graph] loaded(&graph).await?).await?);
                Ok::<_, isles::Error>(())
            });
            ended.unwrap();
        }
    }
}
