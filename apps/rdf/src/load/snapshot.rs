//! Snapshots: the triples and terms of all places in one file, which places map into memory instead of loading them.
//!
//! A file consists of a head and a page-aligned part for each place. The head has the length of the file, a checksum
//! of each part, and one of itself. Invariant: a file is used only if its length, head and own part are intact.

use super::triples::LocalTriples;
use super::{LoadFault, Loaded, Partition};
use crate::peers::Peers;
use crate::store::arrays::{ArrayReader, ArrayWriter};
use crate::store::dictionary::{Dictionary, Numbering};
use crate::store::graphs::GraphStore;
use crate::store::term;
use isles::io::{self, MappedFile};
use isles::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// The usual extension of a snapshot.
pub const EXTENSION: &str = "snap";

/// Magic number and version, in the byte order of the host that wrote the file.
const MAGIC: [u64; 2] = [u64::from_be_bytes(*b"isles-rd"), 2];

/// Number of words in the head before those of the parts: magic, version, places, partition, length of the file.
const FIXED: usize = 5;

/// Words in the head for each part: start, length, checksum.
const PER_PART: usize = 3;

/// Most places of a snapshot.
const PLACES_MAX: usize = 1 << 16;

const PAGE_BYTES: usize = 4096;

/// Partitions, indexed by their number in the head.
const PARTITIONS: [Partition; 4] =
    [Partition::Subject, Partition::Locality, Partition::File, Partition::Graph];

/// The head of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotHead {
    /// Partition of the triples.
    pub partition: Partition,
    /// The range of each place's part in the file, and its checksum.
    parts: Vec<(Range<usize>, u64)>,
}

impl SnapshotHead {
    /// Returns the number of places that have written the snapshot.
    pub fn places(&self) -> usize {
        self.parts.len()
    }

    /// Reads the head of a file.
    ///
    /// # Errors
    /// A one-line description of the error.
    pub fn of(path: &Path) -> Result<SnapshotHead, String> {
        let file = io::map(path).map_err(|error| error.to_string())?;
        SnapshotHead::of_bytes(&file)
    }

    fn of_bytes(bytes: &[u8]) -> Result<SnapshotHead, String> {
        let number = |at: usize| {
            let bytes = bytes.get(at * 8..at * 8 + 8)?.try_into().ok()?;
            Some(u64::from_ne_bytes(bytes))
        };
        let fixed: Vec<u64> = (0..FIXED).map_while(number).collect();
        let [magic, version, places, partition, len] = fixed[..] else {
            return Err("no snapshot of isles run rdf".to_owned());
        };
        if magic != MAGIC[0] {
            let is_swapped = magic == MAGIC[0].swap_bytes();
            let text = if is_swapped {
                "written on a host of another byte order"
            } else {
                "no snapshot of isles run rdf"
            };
            return Err(text.to_owned());
        }
        if version != MAGIC[1] {
            return Err(format!("a snapshot of version {version}; allowed: {}", MAGIC[1]));
        }
        if len != bytes.len() as u64 {
            return Err(format!("cut or grown: {} bytes of {len}", bytes.len()));
        }
        let damaged = || "its head is damaged".to_owned();
        let places = usize::try_from(places).ok().filter(|places| (1..=PLACES_MAX).contains(places));
        let numbers = FIXED + PER_PART * places.ok_or_else(damaged)?;
        let head = bytes.get(..numbers * 8).ok_or_else(damaged)?;
        if number(numbers) != Some(term::hash(head)) {
            return Err(damaged());
        }
        let all: Vec<u64> = (FIXED..numbers).map_while(number).collect();
        let part = |part: &[u64]| {
            let (start, len) = (usize::try_from(part[0]).ok()?, usize::try_from(part[1]).ok()?);
            let range = start..start.checked_add(len)?;
            bytes.get(range.clone()).map(|_| (range, part[2]))
        };
        let parts = all.chunks_exact(PER_PART).map(part).collect::<Option<_>>().ok_or_else(damaged)?;
        let partition =
            usize::try_from(partition).ok().and_then(|at| PARTITIONS.get(at)).ok_or_else(damaged)?;
        Ok(SnapshotHead { partition: *partition, parts })
    }

    /// Returns the part of a place in the file, after checking its checksum.
    fn part(&self, file: &'static MappedFile, place: usize) -> Result<SnapshotPart, String> {
        let (range, checksum) = &self.parts[place];
        let bytes = file.get(range.clone()).ok_or("cut since its head was read")?;
        let mut reader = ArrayReader::new(bytes);
        let mut read = || {
            let part = SnapshotPart {
                dictionary: Dictionary::read(&mut reader)?,
                graphs: GraphStore::read(&mut reader)?,
            };
            reader.is_at_end().then_some(part)
        };
        if term::hash(bytes) != *checksum {
            return Err(format!("damaged: part {} has another checksum", place + 1));
        }
        read().ok_or_else(|| format!("damaged: part {} does not end where its arrays do", place + 1))
    }
}

/// The terms and triples of a place.
struct SnapshotPart {
    dictionary: Dictionary,
    graphs: GraphStore,
}

/// Encodes the part of this place for a file.
pub fn part_of(loaded: &Loaded) -> Vec<u8> {
    let mut out = ArrayWriter::default();
    loaded.peers.dictionary().write(&mut out);
    loaded.graphs.write(&mut out);
    out.into_bytes()
}

/// Returns a whole snapshot from the parts of all places.
pub fn of_parts(parts: &[Vec<u8>], partition: Partition) -> Vec<u8> {
    let mut start = (8 * (FIXED + PER_PART * parts.len() + 1)).next_multiple_of(PAGE_BYTES);
    let mut ranges = Vec::with_capacity(PER_PART * parts.len());
    let mut len = start;
    for part in parts {
        ranges.extend([start as u64, part.len() as u64, term::hash(part)]);
        len = start + part.len();
        start = len.next_multiple_of(PAGE_BYTES);
    }
    let partition = PARTITIONS.iter().position(|own| *own == partition).unwrap_or_default();
    let fixed = [MAGIC[0], MAGIC[1], parts.len() as u64, partition as u64, len as u64];
    let mut out = Vec::with_capacity(len);
    fixed.iter().chain(&ranges).for_each(|number| out.extend_from_slice(&number.to_ne_bytes()));
    out.extend_from_slice(&term::hash(&out).to_ne_bytes());
    for part in parts {
        out.resize(out.len().next_multiple_of(PAGE_BYTES), 0);
        out.extend_from_slice(part);
    }
    out
}

/// Maps a file for the life of the process, because terms and triples refer to it.
fn mapped(path: &str) -> Result<&'static MappedFile, String> {
    let file = io::map(path).map_err(|error| error.to_string())?;
    Ok(Box::leak(Box::new(file)))
}

/// Maps the part of this place; all places of `team` call it. Without a team, this place maps the only part.
///
/// # Errors
/// The file is invalid, which each place reports; or a place has died.
pub async fn open(
    team: Option<&Team>,
    name: &str,
    path: &str,
    head: &SnapshotHead,
) -> Result<Loaded, LoadFault> {
    let rank = team.map_or(0, Team::rank);
    let part = mapped(path).and_then(|file| head.part(file, rank));
    io::note_read(path, head.parts[rank].0.len());
    let fault = part.as_ref().err().map(|wrong| format!("{name}: {wrong}"));
    let faults = match team {
        Some(team) => team.all_gather(fault).await?,
        None => vec![fault],
    };
    if let Some(fault) = faults.into_iter().flatten().next() {
        return Err(LoadFault::Source(fault));
    }
    let SnapshotPart { dictionary, graphs } = part.map_err(LoadFault::Source)?;
    let peers = match team {
        Some(team) => {
            let peers = Peers::member(team.clone(), head.partition.is_by_hash());
            peers.own(dictionary);
            peers
        }
        None => Peers::alone(dictionary),
    };
    Ok(Loaded { graphs, peers, partition: head.partition })
}

/// Adds the triples of all parts of a file, for a place that needs all of them.
///
/// # Errors
/// A one-line description of the error.
pub fn read_all(path: &str, head: &SnapshotHead, out: &mut LocalTriples) -> Result<(), String> {
    let file = mapped(path)?;
    let numbering = Numbering::new(head.places());
    let parts = (0..head.places()).map(|place| head.part(file, place)).collect::<Result<Vec<_>, _>>()?;
    let mut position = |number: u32| {
        let dictionary = &parts[numbering.place(number)].dictionary;
        out.dictionary.intern(dictionary.bytes(numbering.index(number)))
    };
    for part in &parts {
        part.graphs.default.visit([None; 3], |triple| out.triples.push(triple.map(&mut position)));
        for graph in &part.graphs.named {
            let name = position(graph.name);
            out.graphs.push(name);
            graph.store.visit([None; 3], |triple| {
                let [subject, predicate, object] = triple.map(&mut position);
                out.quads.push([name, subject, predicate, object]);
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_no_damaged_one_is_taken() {
        let parts = vec![vec![1; 16], Vec::new(), vec![3; 8]];
        let file = of_parts(&parts, Partition::Locality);
        let head = SnapshotHead::of_bytes(&file).unwrap();
        assert_eq!((head.places(), head.partition), (3, Partition::Locality));
        for (part, (range, checksum)) in parts.iter().zip(&head.parts) {
            assert_eq!((&file[range.clone()], range.start % PAGE_BYTES), (part.as_slice(), 0));
            assert_eq!(*checksum, term::hash(part));
        }
        for len in 0..file.len() {
            assert!(SnapshotHead::of_bytes(&file[..len]).is_err(), "{len}");
        }
        for at in 0..8 * (FIXED + 3 * PER_PART + 1) {
            let mut other = file.clone();
            other[at] ^= 1 << (at % 8);
            assert!(SnapshotHead::of_bytes(&other).is_err(), "{at}");
        }
        let mut swapped = file;
        swapped[..8].reverse();
        assert_eq!(SnapshotHead::of_bytes(&swapped).unwrap_err(), "written on a host of another byte order");
        assert_eq!(SnapshotHead::of_bytes(b"<a> <b> <c> .").unwrap_err(), "no snapshot of isles run rdf");
    }
}
