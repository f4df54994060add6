//! Loading over places: each reads or makes a part, then terms and triples go to their owners.
//!
//! A term is owned by a place that has read it, or by the one that its hash decides; a triple lies with the owner of
//! its subject, or where it was read. Files are cut by lines if their format allows that; else each is read at one
//! place, files in turn. Invariant: nothing is kept of a source in which something is wrong.

mod debian;
mod homes;
mod lines;
pub mod lubm;
pub mod source;
pub mod triples;

use crate::peers::{Peers, push_term};
use crate::store::dictionary::Dictionary;
use crate::store::{Store, Triple, term};
use clap::ValueEnum;
use isles::prelude::*;
use isles_app::console::Progress;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use source::{DataSource, FilePart, OpenSource};
use triples::LocalTriples;

/// Departments between two turns of other tasks.
const TURN_EVERY: usize = 4;

/// Cycles of a modelled core for each triple that it reads: three terms are split, hashed and compared, and the triple
/// is sorted twice. Assumed.
const TRIPLE_CYCLES: u64 = 3_000;

/// Partition of the triples over places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// As `locality` if no place has read more than 1.25 times the mean, else as `subject`.
    #[default]
    Auto,
    /// With all triples of its subject, at a place that has read some of them.
    Locality,
    /// With all triples of its subject, at the place that the hash of the subject decides.
    Subject,
    /// At the place that read its part of a file: departments of LUBM and files in turn, lines of N-Triples in equal
    /// parts.
    File,
}

/// The triples of a place and its part of the terms.
pub struct Loaded {
    /// The triples.
    pub store: Store,
    /// The terms, and the way to the other places.
    pub peers: Peers,
    /// Partition of the triples, never [`Partition::Auto`].
    pub partition: Partition,
}

/// Counts of a load, over all places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadCounts {
    /// Different triples.
    pub triples: u64,
    /// Different terms.
    pub terms: u64,
    /// Bytes of memory.
    pub memory: u64,
    /// Partition of the triples.
    pub partition: Partition,
}

/// Reason why nothing is loaded, in one line.
#[derive(Debug)]
pub enum LoadFault {
    /// Something is wrong with a source.
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
/// Something is wrong with a source.
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
        }
    }
    Ok(alone(all))
}

/// The triples of a place that has all of them.
fn alone(LocalTriples { dictionary, mut triples, .. }: LocalTriples) -> Loaded {
    triples.iter_mut().flatten().for_each(|number| *number += 1);
    Loaded { store: Store::of(&triples), peers: Peers::alone(dictionary), partition: Partition::Subject }
}

fn file_part<'a>(source: &'a DataSource, file: usize, bytes: &'a [u8], lines_before: u64) -> FilePart<'a> {
    match source {
        DataSource::File { name, extension, base, .. } => {
            FilePart { file, name, extension, base, bytes, lines_before }
        }
        DataSource::Lubm { .. } => FilePart { file, name: "", extension: "", base: "", bytes, lines_before },
    }
}

/// Loads all sources over the places of `team`; all call it with the same sources, and the first place has the
/// contents of files.
///
/// # Errors
/// Something is wrong with a source, which is told at each place; or a place has died.
pub async fn load(
    team: Team,
    sources: &[DataSource],
    contents: &[OpenSource],
    partition: Partition,
) -> Result<Loaded, LoadFault> {
    let (places, rank) = (team.size(), team.rank());
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
        }
    }
    drop(progress);
    work(Cycles(TRIPLE_CYCLES * own.triples.len() as u64));
    // Of several places the first that has found something, which in files by lines is the first mistake.
    let (faults, read): (Vec<_>, Vec<_>) =
        team.all_gather((fault, own.triples.len())).await?.into_iter().unzip();
    if let Some(fault) = faults.into_iter().flatten().next() {
        return Err(LoadFault::Source(fault));
    }
    if places == 1 {
        return Ok(alone(own));
    }
    Ok(exchanged(team, own, partition.resolved(&read)).await?)
}

impl Partition {
    /// Resolves `Auto` for the numbers of triples that the places have read.
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

/// Tells people how many triples the first place has read, which is about its share of all.
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

/// The part of a file that this place reads, and how many lines there are before it.
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

/// Gives terms to their owners, and triples to the places where they belong.
async fn exchanged(team: Team, own: LocalTriples, partition: Partition) -> isles::Result<Loaded> {
    let places = team.size();
    let peers = Peers::member(team.clone(), partition != Partition::Locality);
    let numbers = match partition {
        Partition::Locality => homes::numbered((&team, &peers), &own.dictionary, &own.triples).await?,
        _ => numbered_by_hash(&peers, &own.dictionary).await?,
    };
    let numbered = own.triples.into_iter().map(|triple| triple.map(|position| numbers[position as usize]));
    let mut triples: Vec<Triple> = numbered.collect();
    triples.sort_unstable();
    triples.dedup();
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); places];
    triples.iter().for_each(|triple| rows[peers.numbering().place(triple[0])].extend(triple));
    let received = peers.all_to_all(rows).await?;
    let mut store = match partition {
        Partition::File => {
            // The owner of the subject leaves a triple to the first of the places that have it.
            let mut known = FxHashSet::default();
            let is_first =
                |row: &Vec<u32>| triples_of(row).map(|triple| u32::from(known.insert(triple))).collect();
            let answers = peers.all_to_all(received.iter().map(is_first).collect()).await?;
            let mut answers: Vec<_> = answers.iter().map(|row| row.iter()).collect();
            triples.retain(|triple| answers[peers.numbering().place(triple[0])].next() == Some(&1));
            Store::of_any(&triples)
        }
        _ => Store::of(&received.iter().flat_map(|row| triples_of(row)).collect::<Vec<_>>()),
    };
    store.count_foreign_objects(peers.owns());
    Ok(Loaded { store, peers, partition })
}

/// The number of each term of `dictionary`, which the place that its hash decides gives.
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

/// The triples that a row of numbers has.
fn triples_of(row: &[u32]) -> impl Iterator<Item = Triple> + '_ {
    row.chunks_exact(3).map(|one| [one[0], one[1], one[2]])
}

impl Loaded {
    /// Returns the counts over all places.
    ///
    /// # Errors
    /// A place has died.
    pub async fn counts(&self) -> isles::Result<LoadCounts> {
        let terms = self.peers.dictionary().len() as u64;
        let mut all = [self.store.len() as u64, terms, self.memory()];
        self.peers.sum(&mut all).await?;
        Ok(LoadCounts { triples: all[0], terms: all[1], memory: all[2], partition: self.partition })
    }

    /// Bytes of memory that this place holds.
    pub fn memory(&self) -> u64 {
        self.store.memory() + self.peers.dictionary().memory()
    }
}
