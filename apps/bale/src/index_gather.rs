//! The application `index-gather`: each place reads random entries of a table distributed over all places.
//!
//! It is `ig` of the bale suite. Invariant: each value read is that of its entry.

use crate::{Stream, check_room};
use clap::{Args, value_parser};
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, add_done,
};
use serde::Serialize;
use std::io::{self, Write};

/// Number of reads between two progress reports.
const ROUND: u64 = 1 << 16;

/// The arguments of `isles run index-gather`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct IndexGather {
    /// Entries of each place, 1 to 2^32 - 1
    #[arg(long, value_name = "N", default_value = "1000", value_parser = value_parser!(u64).range(1..1 << 32))]
    entries: u64,

    /// Reads of each place, 1 to 2^40
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = value_parser!(u64).range(1..=1 << 40))]
    reads: u64,
}

/// Result of a run.
#[derive(Serialize)]
pub struct GatherFound {
    /// Total number of reads.
    reads: u64,
    /// Wrong reads.
    wrong: u64,
}

/// Returns the value of an entry.
fn value(place: usize, at: u32) -> u64 {
    Stream(u64::from(at) << 32 ^ place as u64).next()
}

impl Application for IndexGather {
    const INFO: ApplicationInfo = ApplicationInfo::new(
        "index-gather",
        "Reads random entries of a table distributed over all places (a kernel \
         of bale)",
        "reads",
    );
    type Input = IndexGather;
    type Found = GatherFound;

    fn open(&self, places: u32) -> Result<IndexGather, Failure> {
        let bytes = u128::from(places) * (u128::from(self.entries) * 8 + u128::from(self.reads) * 24);
        check_room(&format!("--entries {} --reads {} at {places} places", self.entries, self.reads), bytes)?;
        Ok(self.clone())
    }

    fn heading(&self, _: &IndexGather) -> String {
        format!("{} entries and {} reads of each place", self.entries, self.reads)
    }

    async fn compute(
        input: IndexGather,
        distributor: WorkDistributor,
    ) -> isles::Result<(GatherFound, WorkDone)> {
        let _steps = distributor.open_steps();
        let IndexGather { entries, reads } = input;
        let table = PlaceLocal::with(entries, |entries: u64| {
            (0..entries as u32).map(|at| value(here().index(), at)).collect::<Vec<u64>>()
        })
        .await?;
        let lookup = Gatherer::new(&table, |table: &Vec<u64>, at: u32| table[at as usize]).await?;
        let read = PlaceLocal::with(reads, |reads: u64| vec![0_u64; reads as usize]).await?;
        distributor.begin_phase("reads");
        let begun = now();
        finish(async {
            for place in places() {
                spawn_at!(place, [lookup, read, entries, reads] {
                    let mut values = std::mem::take(&mut *read.lock());
                    lookup.gather_into(questions(entries, reads), &mut values).await?;
                    *read.lock() = values;
                });
            }
        })
        .await?;
        let seconds = (now() - begun).as_secs_f64();
        distributor.begin_phase("check");
        let wrong = everywhere!(wrong_reads(&read.lock(), entries)).await?.iter().sum();
        Ok((
            GatherFound { reads: reads * place_count() as u64, wrong },
            WorkDone { seconds, ..WorkDone::default() },
        ))
    }
}

impl RunResult for IndexGather {
    fn text(&self, found: &GatherFound) -> String {
        format!("reads   {}", found.reads)
    }

    fn speed(&self, found: &GatherFound, seconds: f64) -> String {
        format!("{:.1} million reads a second", found.reads as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &GatherFound, _: bool) -> Result<Option<Verification>, Failure> {
        let text = format!("{} of {} reads are not the value of their entry", found.wrong, found.reads);
        Ok(Some(Verification { holds: found.wrong == 0, text }))
    }

    fn write_csv(&self, found: &GatherFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "reads,wrong\n{},{}", found.reads, found.wrong)
    }
}

/// Returns the entries that this place reads, determined by its stream.
fn questions(entries: u64, reads: u64) -> impl Iterator<Item = (Place, u32)> {
    let all: Vec<Place> = places().collect();
    let mut stream = Stream::of_place(here().index());
    (0..reads).map(move |done| {
        if done % ROUND == ROUND - 1 {
            add_done(ROUND);
        }
        let (place, at) = stream.entry(all.len(), entries);
        (all[place], at)
    })
}

/// Returns the number of values read by this place that do not match their entries.
fn wrong_reads(values: &[u64], entries: u64) -> u64 {
    let mut stream = Stream::of_place(here().index());
    let wrong = values.iter().filter(|read| {
        let (place, at) = stream.entry(place_count(), entries);
        **read != value(place, at)
    });
    wrong.count() as u64
}
