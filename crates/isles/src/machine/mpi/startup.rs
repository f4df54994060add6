//! Startup of the ranks of a run: they compare programs and settings, find their hosts, and open one endpoint over both
//! transports.
//!
//! The ranks exchange the same kind of message in each of three rounds, and each rank draws the same conclusion from
//! all messages; so if one cannot go on, none does. Invariant: ranks of different hosts never share memory.

use super::{OTHERS_LIMIT, RankEndpoint};
use crate::machine::image::{PROGRAM, digest_words};
use crate::settings::table::{FlagGroup, SETTINGS, SettingRow, setting};
use crate::settings::{ConfigError, readers};
use isles_transport::PlaceId;
use isles_transport::composite::{CompositeEndpoint, PlaceNumbers};
use isles_transport_mpi::failure_detector::FailureDetector;
use isles_transport_mpi::{Bell, Library, MpiEndpoint};
use isles_transport_shm::{Segment, let_siblings_read, polling_time, processors};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

/// Bytes of the set of processors of a host that a rank may use, one bit each.
const CPU_SET_BYTES: usize = 128;

/// Message of a rank in the first round, encoded in the order of its fields.
struct Hello {
    program: [u8; 16],
    settings: [u8; 16],
    host: [u8; 16],
    /// Several hosts may be containers of one machine that share its processors.
    machine: [u8; 16],
    process: u32,
    bell: [u8; 6],
    processors: [u8; CPU_SET_BYTES],
}

impl Hello {
    fn to_bytes(&self) -> Vec<u8> {
        let process = self.process.to_le_bytes();
        let names = [self.program, self.settings, self.host, self.machine].concat();
        [&names[..], &process, &self.bell, &self.processors].concat()
    }

    /// Decodes the bytes of [`Hello::to_bytes`].
    fn of(bytes: &[u8]) -> Hello {
        let (program, rest) = split::<16>(bytes);
        let (settings, rest) = split::<16>(rest);
        let (host, rest) = split::<16>(rest);
        let (machine, rest) = split::<16>(rest);
        let (process, rest) = split::<4>(rest);
        let (bell, rest) = split::<6>(rest);
        let (processors, _) = split::<CPU_SET_BYTES>(rest);
        let process = u32::from_le_bytes(process);
        Hello { program, settings, host, machine, process, bell, processors }
    }
}

fn split<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let (first, rest) = bytes.split_first_chunk::<N>().expect("ranks of one library say as many bytes");
    (*first, rest)
}

/// A rank after the startup.
pub(in crate::machine) struct ConnectedRank {
    /// The endpoint of its place.
    pub(in crate::machine) endpoint: RankEndpoint,
    /// For each rank, the first rank that shares memory with it.
    pub(in crate::machine) hosts: Vec<u32>,
    /// `true` if collectives are hierarchical: one rank of each host communicates with other hosts.
    pub(in crate::machine) hierarchical_collectives: bool,
}

/// Reason why the startup of a rank has failed, as text.
pub(in crate::machine) enum StartupError {
    /// The ranks have different programs or settings; all ranks return the same text.
    Mismatch(String),
    /// This rank cannot continue.
    Unable(String),
}

impl From<String> for StartupError {
    fn from(text: String) -> Self {
        StartupError::Unable(text)
    }
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (StartupError::Mismatch(text) | StartupError::Unable(text)) = self;
        f.write_str(text)
    }
}

/// Connects all ranks; a collective call.
pub(in crate::machine) fn connect(library: &Rc<Library>) -> Result<ConnectedRank, StartupError> {
    let here = library.rank() as usize;
    let (mut bell, address) = Bell::bind().map_err(|error| format!("a socket to be woken by: {error}"))?;
    let own = Hello {
        program: program()?,
        settings: settings(),
        host: host(),
        machine: machine(),
        process: std::process::id(),
        bell: address,
        processors: cpu_set(),
    };
    let hellos = library.gather_all(&own.to_bytes());
    let hellos: Vec<Hello> = hellos.iter().map(|bytes| Hello::of(bytes)).collect();
    let (silence, hierarchical_collectives) = common_settings(&hellos).map_err(StartupError::Mismatch)?;
    let loads = machine_loads(&hellos);
    bell.set_addresses(hellos.iter().map(|hello| {
        let load = &loads[&hello.machine];
        (hello.bell, polling_time(load.ranks, load.processors))
    }));
    let first = |hello: &Hello| hellos.iter().position(|other| other.host == hello.host);
    let hosts: Vec<u32> = hellos.iter().map(|hello| first(hello).unwrap_or(0) as u32).collect();
    if let Some(limit) = silence {
        let run = hellos.iter().flat_map(Hello::to_bytes).collect::<Vec<u8>>();
        let (run, _) = split::<8>(&digest_bytes(&run));
        bell.start_detector(FailureDetector::new(library.rank(), u64::from_le_bytes(run), &hosts, limit))
            .map_err(|error| format!("cannot watch other hosts: {error}"))?;
    }
    let (segment, hosts) = share(library, &hellos, &hosts)?;
    let neighbours: Vec<usize> = (0..hosts.len()).filter(|rank| hosts[*rank] == hosts[here]).collect();
    let number = |rank: usize| neighbours.iter().position(|neighbour| *neighbour == rank);
    let own_number = PlaceId(number(here).unwrap_or(0) as u32);
    let mut near = segment.endpoint(own_number).map_err(|error| error.to_string())?;
    if neighbours.len() < hellos.len() {
        let load = &loads[&own.machine];
        near = near.with_polling_for_hosts(load.ranks, load.processors);
    }
    let_siblings_read();
    let siblings = neighbours.iter().enumerate().filter(|(_, rank)| **rank != here);
    let siblings = siblings.map(|(number, rank)| (PlaceId(number as u32), hellos[*rank].process));
    segment
        .watch_siblings(siblings.collect())
        .map_err(|error| format!("cannot watch other ranks: {error}"))?;
    // A barrier, so that no rank sends to a place that has not joined yet.
    library.gather_all(&[1]);
    let places = library.size();
    let pairs =
        neighbours.iter().enumerate().map(|(number, rank)| (PlaceId(*rank as u32), PlaceId(number as u32)));
    let near_numbers = PlaceNumbers::of(places, pairs);
    let far_numbers = PlaceNumbers::of(places, (0..places).map(|place| (PlaceId(place), PlaceId(place))));
    let far = MpiEndpoint::new(Rc::clone(library), Some(bell)).ends_within(OTHERS_LIMIT);
    let sharing = hosts.iter().copied().map(PlaceId).collect();
    let here = PlaceId(library.rank());
    let endpoint = CompositeEndpoint::new(here, near, near_numbers, far, far_numbers, sharing);
    Ok(ConnectedRank { endpoint, hosts, hierarchical_collectives })
}

/// Number of ranks on one machine, and of the processors that they may use.
struct MachineLoad {
    ranks: u32,
    processors: u32,
}

/// Returns the load of each machine, by the digest that identifies it.
fn machine_loads(hellos: &[Hello]) -> BTreeMap<[u8; 16], MachineLoad> {
    let mut sets: BTreeMap<[u8; 16], Vec<[u8; CPU_SET_BYTES]>> = BTreeMap::new();
    for hello in hellos {
        sets.entry(hello.machine).or_default().push(hello.processors);
    }
    let load = |sets: Vec<_>| MachineLoad {
        ranks: sets.len() as u32,
        processors: processors_of(&sets).len() as u32,
    };
    sets.into_iter().map(|(machine, sets)| (machine, load(sets))).collect()
}

/// Checks that all ranks have the same program and settings. Returns the limit of another host's silence, and `true` if
/// collectives are hierarchical.
fn common_settings(hellos: &[Hello]) -> Result<(Option<Duration>, bool), String> {
    check_equal(hellos)?;
    Ok((silence_limit()?, hierarchical_collectives()?))
}

fn check_equal(hellos: &[Hello]) -> Result<(), String> {
    let first = &hellos[0];
    let other = |differs: &dyn Fn(&Hello) -> bool| hellos.iter().position(differs);
    if let Some(rank) = other(&|hello| hello.program != first.program) {
        return Err(format!(
            "rank {rank} runs a different program from rank 0; allowed: the same file on all hosts"
        ));
    }
    if let Some(rank) = other(&|hello| hello.settings != first.settings) {
        return Err(format!(
            "rank {rank} has different ISLES_* variables from rank 0; allowed: the same at all ranks"
        ));
    }
    Ok(())
}

/// Makes or joins the segment of the ranks of this host. Returns it with, for each rank, the first rank that shares
/// memory with it. `hosts[rank]` is the first rank of that rank's host; if ranks of a host cannot share memory, each is
/// alone.
fn share(library: &Library, hellos: &[Hello], hosts: &[u32]) -> Result<(Segment, Vec<u32>), String> {
    let here = library.rank() as usize;
    let neighbours: Vec<usize> = (0..hosts.len()).filter(|rank| hosts[*rank] == hosts[here]).collect();
    let (image, leader) = (hellos[here].program, neighbours[0]);
    let together: Vec<[u8; CPU_SET_BYTES]> = neighbours.iter().map(|rank| hellos[*rank].processors).collect();
    let made = (here == leader)
        .then(|| Segment::for_places_on(neighbours.len() as u32, image, &processors_of(&together)).ok());
    let descriptor = made.as_ref().map_or(-1, |made| made.as_ref().map_or(-1, Segment::descriptor));
    let descriptors = library.gather_all(&descriptor.to_le_bytes());
    let (descriptor, _) = split::<4>(&descriptors[leader]);
    let segment = match made {
        Some(made) => made,
        None => Segment::join_sibling(hellos[leader].process, i32::from_le_bytes(descriptor), image).ok(),
    };
    let joined = library.gather_all(&[segment.is_some().into()]);
    let shares = |host: u32| (0..hosts.len()).all(|rank| hosts[rank] != host || joined[rank] == [1]);
    let first = |(rank, host): (usize, &u32)| if shares(*host) { *host } else { rank as u32 };
    let hosts_of_memory = hosts.iter().enumerate().map(first).collect();
    match segment {
        Some(segment) if shares(hosts[here]) => Ok((segment, hosts_of_memory)),
        _ => {
            let alone = Segment::for_places(1, image).map_err(|error| error.to_string())?;
            Ok((alone, hosts_of_memory))
        }
    }
}

/// Returns a digest of the bytes of the program's file, because hosts have different files; computed once.
fn program() -> Result<[u8; 16], String> {
    static DIGEST: OnceLock<[u8; 16]> = OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(*digest);
    }
    let bytes = std::fs::read(PROGRAM).map_err(|error| format!("{PROGRAM}, the program: {error}"))?;
    Ok(*DIGEST.get_or_init(|| digest_bytes(&bytes)))
}

fn digest_bytes(bytes: &[u8]) -> [u8; 16] {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    digest_words(bytes.chunks(8).map(word).chain([bytes.len() as u64]))
}

/// Returns a digest of the `ISLES_*` variables, except those that may differ by host.
fn settings() -> [u8; 16] {
    let is_of_commands = |name: &str| {
        let row = SETTINGS.iter().find(|row| row.variable == name);
        row.and_then(|row| row.flag).is_some_and(|flag| flag.group == FlagGroup::Command)
    };
    let ours = |name: &str| name.starts_with("ISLES_") && name != HOST_VARIABLE && !is_of_commands(name);
    let set = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    let set: BTreeSet<String> =
        set.filter(|(name, _)| ours(name)).map(|(name, value)| format!("{name}={value}")).collect();
    digest_bytes(set.into_iter().collect::<Vec<_>>().join("\n").as_bytes())
}

/// Setting of the seconds of silence after which a place of another host counts as lost.
const HOST_SILENCE: &SettingRow = setting("host silence");

/// Returns the value of [`HOST_SILENCE`]; five seconds if it is not set.
fn silence_limit() -> Result<Option<Duration>, String> {
    read_variable(HOST_SILENCE, readers::host_silence)
        .map(|value| value.unwrap_or(Some(Duration::from_secs(5))))
}

/// Setting that chooses the collectives of teams over several hosts.
const COLLECTIVES: &SettingRow = setting("collectives");

/// Returns `true` if [`COLLECTIVES`] is not set or chooses hierarchical ones.
fn hierarchical_collectives() -> Result<bool, String> {
    read_variable(COLLECTIVES, readers::hierarchical_collectives).map(|value| value.unwrap_or(true))
}

/// Returns the value of the variable of `row`, parsed by `read`; `None` if it is empty or not set.
fn read_variable<T>(
    row: &SettingRow,
    read: fn(&str, &str) -> Result<T, ConfigError>,
) -> Result<Option<T>, String> {
    let value = std::env::var(row.variable).ok().filter(|value| !value.is_empty());
    value.map(|value| read(row.variable, &value).map_err(|error| error.to_string())).transpose()
}

/// Variable with a host name for this rank, for tests: ranks with different names share no memory.
pub(crate) const HOST_VARIABLE: &str = "ISLES_TEST_HOST";

/// Returns a digest of the boot id, which identifies the machine.
///
/// Several hosts may be containers of one machine.
fn machine() -> [u8; 16] {
    digest_bytes(std::fs::read_to_string(BOOT).unwrap_or_default().as_bytes())
}

/// The file with the boot id.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Returns a digest that identifies this host: its boot id, its name and its pid namespace.
fn host() -> [u8; 16] {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let value = std::env::var(HOST_VARIABLE).unwrap_or_default();
    let parts = [read(BOOT), read("/proc/sys/kernel/hostname"), processes.display().to_string(), value];
    digest_bytes(parts.join("\n").as_bytes())
}

fn cpu_set() -> [u8; CPU_SET_BYTES] {
    let mut bits = [0; CPU_SET_BYTES];
    for processor in processors().into_iter().filter(|processor| *processor < 8 * CPU_SET_BYTES) {
        bits[processor / 8] |= 1 << (processor % 8);
    }
    bits
}

/// Returns the processors that are in any of these sets.
fn processors_of(together: &[[u8; CPU_SET_BYTES]]) -> Vec<usize> {
    let may_use =
        |processor: &usize| together.iter().any(|bits| bits[processor / 8] >> (processor % 8) & 1 == 1);
    (0..8 * CPU_SET_BYTES).filter(may_use).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rank_says_is_read_as_it_was_said() {
        let hello = Hello {
            program: [1; 16],
            settings: [2; 16],
            host: [3; 16],
            machine: [4; 16],
            process: 0x0405_0607,
            bell: [8; 6],
            processors: cpu_set(),
        };
        let read = Hello::of(&hello.to_bytes());
        assert_eq!((read.program, read.settings, read.host), ([1; 16], [2; 16], [3; 16]));
        assert_eq!(read.machine, [4; 16]);
        assert_eq!((read.process, read.bell), (0x0405_0607, [8; 6]));
        assert_eq!(processors_of(&[read.processors]), processors());
    }

    #[test]
    fn a_rank_that_differs_is_named() {
        let hello = |program: u8, settings: u8| Hello {
            program: [program; 16],
            settings: [settings; 16],
            host: [0; 16],
            machine: [0; 16],
            process: 1,
            bell: [0; 6],
            processors: [0; CPU_SET_BYTES],
        };
        assert_eq!(check_equal(&[hello(1, 1), hello(1, 1)]), Ok(()));
        let text = check_equal(&[hello(1, 1), hello(2, 1)]).unwrap_err();
        assert!(text.contains("rank 1 runs another program"), "{text}");
        let text = check_equal(&[hello(1, 1), hello(1, 1), hello(1, 2)]).unwrap_err();
        assert!(text.contains("rank 2 has other variables"), "{text}");
    }
}
