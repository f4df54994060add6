//! The application `histogram`: each place increments random entries of a table distributed over all places.
//!
//! It is `histo` of the bale suite. Invariant: the counts match the streams of all places.

use crate::{Stream, check_room};
use clap::{Args, value_parser};
use isles::AggregatorOptions;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunResult, Verification, WorkDistributor, WorkDone, add_done,
};
use serde::Serialize;
use std::io::{self, Write};

/// The arguments of `isles run histogram`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Histogram {
    /// Entries of each place, 1 to 2^32 - 1
    #[arg(long, value_name = "N", default_value = "1000", value_parser = value_parser!(u64).range(1..1 << 32))]
    entries: u64,

    /// Counts of each place, 1 to 2^40
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = value_parser!(u64).range(1..=1 << 40))]
    counts: u64,

    /// Pending counts that a place may hold, 1 to 1048576
    #[arg(long, value_name = "N", default_value = "4096", value_parser = value_parser!(u64).range(1..=1 << 20))]
    lookahead: u64,
}

/// Result of a run.
#[derive(Serialize)]
pub struct HistogramFound {
    /// Total number of increments.
    counts: u64,
    /// Entries whose count does not match the streams.
    wrong: u64,
    /// The largest count of an entry.
    most: u64,
    #[serde(skip)]
    entries: u64,
}

impl Application for Histogram {
    const INFO: ApplicationInfo = ApplicationInfo::new(
        "histogram",
        "Counts into random entries of a table distributed over all places (a kernel of bale)",
        "counts",
    );
    type Input = Histogram;
    type Found = HistogramFound;

    fn open(&self, places: u32) -> Result<Histogram, Failure> {
        // The counts, and a second copy for the check.
        let bytes = u128::from(self.entries) * u128::from(places) * 16;
        check_room(&format!("--entries {} at {places} places", self.entries), bytes)?;
        Ok(self.clone())
    }

    fn heading(&self, _: &Histogram) -> String {
        format!("{} entries and {} counts of each place", self.entries, self.counts)
    }

    async fn compute(
        input: Histogram,
        distributor: WorkDistributor,
    ) -> isles::Result<(HistogramFound, WorkDone)> {
        let _steps = distributor.open_steps();
        let Histogram { entries, counts, lookahead } = input;
        let table = PlaceLocal::with(entries, |entries: u64| vec![0_u64; entries as usize]).await?;
        let options = AggregatorOptions::default().lookahead(lookahead as usize);
        let count = Aggregator::with(options, &table, |table: &mut Vec<u64>, at: u32| {
            table[at as usize] += 1;
        })
        .await?;
        distributor.begin_phase("counts");
        let begun = now();
        finish(async {
            for place in places() {
                spawn_at!(place, [count, entries, counts] {
                    let all: Vec<Place> = places().collect();
                    let mut stream = Stream::of_place(here().index());
                    for done in 1..=counts {
                        let (owner, at) = stream.entry(all.len(), entries);
                        count.push(all[owner], at).await?;
                        if done % 65_536 == 0 {
                            add_done(65_536);
                        }
                    }
                });
            }
        })
        .await?;
        let seconds = (now() - begun).as_secs_f64();
        distributor.begin_phase("check");
        let checked = everywhere!({
            let table = table.lock();
            (wrong_counts(&table, entries, counts), table.iter().copied().max().unwrap_or_default())
        })
        .await?;
        let found = HistogramFound {
            counts: counts * place_count() as u64,
            wrong: checked.iter().map(|(wrong, _)| wrong).sum(),
            most: checked.iter().map(|(_, most)| *most).max().unwrap_or_default(),
            entries: entries * place_count() as u64,
        };
        Ok((found, WorkDone { seconds, ..WorkDone::default() }))
    }
}

impl RunResult for Histogram {
    fn text(&self, found: &HistogramFound) -> String {
        format!("counts  {}\nmost    {} in one of {} entries", found.counts, found.most, found.entries)
    }

    fn speed(&self, found: &HistogramFound, seconds: f64) -> String {
        format!("{:.1} million counts a second", found.counts as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &HistogramFound, _: bool) -> Result<Option<Verification>, Failure> {
        let text =
            format!("{} of {} entries differ from a count by each place itself", found.wrong, found.entries);
        Ok(Some(Verification { holds: found.wrong == 0, text }))
    }

    fn write_csv(&self, found: &HistogramFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "counts,entries,most,wrong\n{},{},{},{}",
            found.counts, found.entries, found.most, found.wrong
        )
    }
}

/// Returns the number of entries of this place whose count does not match the streams of all places.
fn wrong_counts(table: &[u64], entries: u64, counts: u64) -> u64 {
    let mut expected = vec![0_u64; table.len()];
    for place in places() {
        let mut stream = Stream::of_place(place.index());
        for _ in 0..counts {
            let (owner, at) = stream.entry(place_count(), entries);
            if owner == here().index() {
                expected[at as usize] += 1;
            }
        }
    }
    table.iter().zip(&expected).filter(|(count, expected)| count != expected).count() as u64
}
