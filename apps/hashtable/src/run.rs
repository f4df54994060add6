//! The application `hashtable`: arguments, the operations of each place, the check against a sequential map.
//!
//! Operation number *i* is performed by place *i* modulo the number of places, and depends only on the seed and *i*.
//! Additions and look-ups take the lock of the key's stripe. At each look-up a place checks that no value has
//! decreased since its last one, and at the end each place looks up its share of all keys.

use super::table::{Probe, Slot, TableLayout, entry_digest, mix, probe};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};
use isles::Machine;
use isles::array::check_memory;
use isles::prelude::*;
use isles::svm::{self, Consistency, RegionCounts, SvmArray, SvmLock};
use isles_app::Failure;
use isles_app::frame::{Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Returns the parser of `--model`.
fn model_parser() -> impl TypedValueParser<Value = Consistency> {
    let about = [
        "One place at a time has a page",
        "Many places read a page, or one writes it",
        "Changes reach others with locks",
    ];
    let values = Consistency::NAMES.into_iter().zip(about);
    PossibleValuesParser::new(values.map(|((name, _), about)| PossibleValue::new(name).help(about))).map(
        |value| {
            Consistency::NAMES
                .into_iter()
                .find(|(name, _)| *name == value)
                .map_or(Consistency::Release, |(_, model)| model)
        },
    )
}

/// The arguments of `isles run hashtable`.
#[derive(Args, Clone, Debug)]
pub struct Hashtable {
    /// Additions and look-ups of all places together
    #[arg(long, value_name = "N", default_value = "20000", value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    operations: u64,

    /// Possible keys
    #[arg(long, value_name = "N", default_value = "4096", value_parser = value_parser!(u64).range(1..=1 << 28))]
    keys: u64,

    /// Locks of the table, as a power of two: 2^N
    #[arg(long, value_name = "N", default_value = "5", value_parser = value_parser!(u32).range(0..=16))]
    locks: u32,

    /// Look-ups of a hundred operations; the others are additions
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = value_parser!(u64).range(0..=100))]
    lookups: u64,

    /// Seed of keys, values and kinds of operations
    #[arg(long, value_name = "N", default_value = "1")]
    random_seed: u64,

    /// Consistency model of pages
    #[arg(long, default_value = "release", value_parser = model_parser())]
    model: Consistency,
}

/// The operations of a run, and the layout of the table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TableInput {
    operations: u64,
    keys: u64,
    lookups: u64,
    random_seed: u64,
    model: Consistency,
    layout: TableLayout,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableOperation {
    Add { key: u64, value: u64 },
    Find { key: u64 },
}

impl TableInput {
    /// Returns operation number `index`.
    fn operation(&self, index: u64) -> TableOperation {
        let number = mix(mix(self.random_seed) ^ index);
        let key = mix(number) % self.keys;
        let kind = number % 100;
        if kind < self.lookups {
            TableOperation::Find { key }
        } else {
            TableOperation::Add { key, value: 1 + (number >> 40) }
        }
    }

    /// Returns the content of the table after all operations, by a sequential map.
    fn expected(&self) -> BTreeMap<u64, u64> {
        let mut map = BTreeMap::new();
        for index in 0..self.operations {
            if let TableOperation::Add { key, value } = self.operation(index) {
                *map.entry(key).or_default() += value;
            }
        }
        map
    }
}

/// The result of one place.
#[derive(Default, Serialize, Deserialize)]
struct TableShare {
    seconds: f64,
    /// Look-ups during the additions with a value less than an earlier one.
    stale: u64,
    /// Look-ups at the end whose value differs from that of the sequential map.
    wrong: u64,
    entries: u64,
    digest: u64,
    counts: RegionCounts,
}

/// The result of a run.
#[derive(Serialize)]
pub struct TableFound {
    /// Digest of all entries, in hexadecimal digits.
    digest: String,
    /// Keys in the table.
    entries: u64,
    /// Look-ups that differ from those of a sequential map.
    wrong_lookups: u64,
    /// Time of the operations at the slowest place.
    operation_seconds: f64,
    /// The page counts of all places, summed.
    pages: RegionCounts,
    #[serde(skip)]
    input: TableInput,
}

impl Application for Hashtable {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "The digest is the same with each model and at any number of places.",
        ..ApplicationInfo::new("hashtable", env!("CARGO_PKG_DESCRIPTION"), "operations")
    };
    type Input = TableInput;
    type Found = TableFound;

    fn check_machine(&self, machine: Machine) -> Result<(), Failure> {
        match svm::runs_on(machine) {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "hashtable with machine {}; allowed: processes, threads, mpi",
                machine.name()
            ))),
        }
    }

    fn open(&self, _: u32) -> Result<TableInput, Failure> {
        let Hashtable { operations, keys, lookups, random_seed, model, locks } = *self;
        let layout = TableLayout::new(keys, 1 << locks);
        check_memory::<Slot>(&[layout.slots()])
            .map_err(|error| Failure::Usage(format!("--keys: {error}")))?;
        Ok(TableInput { operations, keys, lookups, random_seed, model, layout })
    }

    fn heading(&self, input: &TableInput) -> String {
        let TableInput { operations, keys, layout, model, .. } = input;
        let (slots, locks) = (layout.slots(), layout.stripes);
        format!(
            "{operations} operations on {keys} keys in {slots} slots with {locks} locks, model {}",
            model.name()
        )
    }

    async fn compute(input: TableInput, _: WorkDistributor) -> isles::Result<(TableFound, WorkDone)> {
        let team = Team::world();
        let shares = everywhere!(operate(&team, input).await?).await?;
        let seconds = shares.iter().map(|share| share.seconds).fold(0.0, f64::max);
        let digest = shares.iter().fold(0_u64, |sum, share| sum.wrapping_add(share.digest));
        let found = TableFound {
            digest: format!("{digest:016x}"),
            entries: shares.iter().map(|share| share.entries).sum(),
            wrong_lookups: shares.iter().map(|share| share.stale + share.wrong).sum(),
            operation_seconds: seconds,
            pages: shares.iter().map(|share| share.counts).fold(RegionCounts::default(), RegionCounts::plus),
            input,
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for Hashtable {
    fn text(&self, found: &TableFound) -> String {
        let TableFound { digest, entries, wrong_lookups, operation_seconds, pages, .. } = found;
        let RegionCounts { faults, pages, messages, bytes, locks, .. } = pages;
        format!(
            "digest   {digest}\nentries  {entries}\nwrong    {wrong_lookups} look-ups\n\
             time     {operation_seconds:.4} s\nfaults   {faults}\npages    {pages} came\n\
             messages {messages} of pages and locks\nbytes    {bytes} copied\n\
             locks    {locks} acquired"
        )
    }

    fn speed(&self, found: &TableFound, _: f64) -> String {
        format!("{:.0} operations a second", found.input.operations as f64 / found.operation_seconds)
    }

    fn verify(&self, found: &TableFound, _: bool) -> Result<Option<Verification>, Failure> {
        let map = found.input.expected();
        let digest = map.iter().fold(0_u64, |sum, (key, value)| sum.wrapping_add(entry_digest(*key, *value)));
        let digest = format!("{digest:016x}");
        let holds = digest == found.digest && map.len() as u64 == found.entries && found.wrong_lookups == 0;
        let text = format!(
            "compared with a sequential map: {} entries, digest {digest}, {} wrong look-ups",
            map.len(),
            found.wrong_lookups
        );
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &TableFound, out: &mut dyn Write) -> io::Result<()> {
        let TableFound { digest, entries, wrong_lookups, operation_seconds, .. } = found;
        writeln!(
            out,
            "digest,entries,wrong_lookups,operation_seconds\n{digest},{entries},{wrong_lookups},{operation_seconds}"
        )
    }
}

/// Runs the part of this place.
async fn operate(team: &Team, input: TableInput) -> isles::Result<TableShare> {
    let TableInput { layout, .. } = input;
    let mut table = SvmArray::<Slot>::new(team, layout.slots(), input.model).await?;
    let (here, places) = (team.rank() as u64, team.size());
    let (mut share, mut seen) = (TableShare::default(), BTreeMap::<u64, u64>::new());
    team.barrier().await?;
    let started = now();
    for index in (here..input.operations).step_by(places) {
        let (key, least) = match input.operation(index) {
            TableOperation::Add { key, value } => (key, Some(value)),
            TableOperation::Find { key } => (key, None),
        };
        let locked = table.lock(layout.stripe(key) as u32).await?;
        let value = match least {
            Some(value) => Some(add(&locked, &layout, key, value)?),
            None => find(&locked, &layout, key)?,
        };
        locked.unlock()?;
        let before = seen.get(&key).copied();
        share.stale += u64::from(value < before);
        seen.extend(value.map(|value| (key, value)));
    }
    table.barrier().await?;
    share.seconds = (now() - started).as_secs_f64();
    check_share(&table, input, here, places, &mut share)?;
    table.barrier().await?;
    share.counts = table.counts();
    table.close().await?;
    Ok(share)
}

/// Looks up this place's share of the keys, those equal to its rank modulo the places, in the table and in the map.
fn check_share(
    table: &SvmArray<Slot>,
    input: TableInput,
    here: u64,
    places: usize,
    share: &mut TableShare,
) -> isles::Result<()> {
    let expected = input.expected();
    for key in (here..input.keys).step_by(places) {
        let stripe = table.read(input.layout.range(input.layout.stripe(key)))?;
        let first = input.layout.range(input.layout.stripe(key)).start;
        let mut probes = input.layout.probes(key).map(|at| probe(stripe[at - first], key));
        let found = match probes.find(|probe| *probe != Probe::Other) {
            Some(Probe::Found(value)) => Some(value),
            _ => None,
        };
        share.wrong += u64::from(found.as_ref() != expected.get(&key));
        if let Some(value) = found {
            share.entries += 1;
            share.digest = share.digest.wrapping_add(entry_digest(key, value));
        }
    }
    Ok(())
}

/// Adds to the value of a key, whose stripe must be locked; returns the new value.
fn add(locked: &SvmLock<'_, Slot>, layout: &TableLayout, key: u64, value: u64) -> isles::Result<u64> {
    for at in layout.probes(key) {
        let now = match probe(locked.read(at..at + 1)?[0], key) {
            Probe::Other => continue,
            Probe::Found(before) => before + value,
            Probe::Free => value,
        };
        locked.write(at..at + 1)?[0] = [key + 1, now];
        return Ok(now);
    }
    unreachable!("a stripe has free slots, whatever keys are in it")
}

/// Returns the value of a key, whose stripe must be locked.
fn find(locked: &SvmLock<'_, Slot>, layout: &TableLayout, key: u64) -> isles::Result<Option<u64>> {
    for at in layout.probes(key) {
        match probe(locked.read(at..at + 1)?[0], key) {
            Probe::Other => {}
            Probe::Found(value) => return Ok(Some(value)),
            Probe::Free => break,
        }
    }
    Ok(None)
}
