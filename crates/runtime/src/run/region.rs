//! Marked regions of a program: the times during which places were in them.
//!
//! A place keeps, by name, the spans of time in which one of its tasks was in the region, joined where they meet; the
//! report of the run joins those of all places. Invariant: the spans of a region are in order and disjoint.

use super::report::{PlaceReport, RunReport};
use crate::local::Local;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Largest number of spans of a region at one place; beyond it, the two closest become one.
const SPANS_MAX: usize = 4_096;

/// A marked region of a program, at one place or at all; see [`measured`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredRegion {
    /// Its name.
    pub name: String,
    /// Number of times a task has entered it.
    pub entries: u64,
    /// Number of places that have entered it.
    pub places: u32,
    /// Times during which at least one task was in it: begin and end by the clocks of the places, in order and
    /// disjoint.
    pub spans: Vec<(Duration, Duration)>,
}

impl MeasuredRegion {
    /// Returns the total time during which at least one task was in it.
    pub fn time(&self) -> Duration {
        self.spans.iter().map(|(begin, end)| end.saturating_sub(*begin)).sum()
    }

    /// Adds a span, which may overlap others.
    fn add(&mut self, mut begin: Duration, mut end: Duration) {
        let first = self.spans.partition_point(|(_, other)| *other < begin);
        let last = self.spans.partition_point(|(other, _)| *other <= end);
        if let Some(met) = self.spans.get(first..last).filter(|met| !met.is_empty()) {
            (begin, end) = (begin.min(met[0].0), end.max(met[met.len() - 1].1));
        }
        self.spans.splice(first..last, [(begin, end)]);
        if self.spans.len() > SPANS_MAX {
            self.join_closest();
        }
    }

    /// Joins the two spans with the least time between them.
    fn join_closest(&mut self) {
        let gaps = self.spans.windows(2).map(|pair| pair[1].0 - pair[0].1);
        let Some((at, _)) = gaps.enumerate().min_by_key(|(_, gap)| *gap) else { return };
        let end = self.spans.remove(at + 1).1;
        self.spans[at].1 = end;
    }
}

impl fmt::Display for MeasuredRegion {
    /// Formats the region without its time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MeasuredRegion { name, entries, places, .. } = self;
        let times = if *entries == 1 { "time" } else { "times" };
        let several = if *places == 1 { "place" } else { "places" };
        write!(f, "region {name}, entered {entries} {times} at {places} {several}")
    }
}

impl RunReport {
    /// Returns the regions that the program has marked with [`measured`], in the order of their first entries.
    pub fn regions(&self) -> Vec<MeasuredRegion> {
        let mut all: Vec<MeasuredRegion> = Vec::new();
        for of_place in self.places.iter().flatten().flat_map(|place: &PlaceReport| &place.regions) {
            let region = find(&mut all, &of_place.name);
            region.entries += of_place.entries;
            region.places += of_place.places;
            of_place.spans.iter().for_each(|(begin, end)| region.add(*begin, *end));
        }
        all.sort_by_key(|region| region.spans.first().copied());
        all
    }
}

/// Returns the region of that name, which it adds if there is none.
fn find<'a>(regions: &'a mut Vec<MeasuredRegion>, name: &str) -> &'a mut MeasuredRegion {
    let at = regions.iter().position(|region| region.name == name).unwrap_or_else(|| {
        regions.push(MeasuredRegion { name: name.to_owned(), ..MeasuredRegion::default() });
        regions.len() - 1
    });
    &mut regions[at]
}

/// Marks a task in a region until it is dropped.
struct RegionGuard {
    name: &'static str,
    begin: Duration,
}

impl Drop for RegionGuard {
    fn drop(&mut self) {
        Local::try_with(|local| {
            let mut regions = local.regions.borrow_mut();
            let region = find(&mut regions, self.name);
            (region.entries, region.places) = (region.entries + 1, 1);
            region.add(self.begin, local.clock().now().max(self.begin));
        });
    }
}

/// Runs `region`, and reports the time it takes under `name`, apart from the rest of the run.
///
/// Use it if a program reads its input, computes in steps and gathers a result, and only the steps count; a pair of
/// `MPI_Wtime` calls does the same. Any place may enter the region, any number of times; the time of the region is that
/// during which at least one task, anywhere, was in it. A line on standard error reports it at the end of the run;
/// [`RunReport::regions`] has it for programs. On a modelled chip the time is predicted, line and summary also have the
/// energy that the chip drew meanwhile, and `isles sweep` judges by the region. In a trace it is a span.
///
/// A region that is given up counts until then. It costs two clock reads, and no message.
///
/// ```ignore
/// measured("steps", async {
///     for _ in 0..10 {
///         work(Cycles(10_000));
///         team.all_reduce(1, |one, other| one + other).await?;
///     }
///     Ok::<_, isles::Error>(())
/// })
/// .await?;
/// ```
///
/// # Panics
/// If it is polled outside of a place.
pub async fn measured<F: Future>(name: &'static str, region: F) -> F::Output {
    let _span = Local::with(|local| local.span(name, None, || None));
    let _guard = RegionGuard { name, begin: crate::now() };
    region.await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(spans: &[(u64, u64)]) -> MeasuredRegion {
        let mut region = MeasuredRegion::default();
        for (begin, end) in spans {
            region.add(Duration::from_nanos(*begin), Duration::from_nanos(*end));
        }
        region
    }

    #[test]
    fn spans_that_meet_are_one_and_count_once() {
        let spans = |added: &[(u64, u64)]| -> Vec<(u128, u128)> {
            region(added).spans.iter().map(|(begin, end)| (begin.as_nanos(), end.as_nanos())).collect()
        };
        assert_eq!(spans(&[(10, 20), (30, 40)]), [(10, 20), (30, 40)]);
        assert_eq!(spans(&[(30, 40), (10, 20)]), [(10, 20), (30, 40)]);
        assert_eq!(spans(&[(10, 20), (30, 40), (20, 30)]), [(10, 40)]);
        assert_eq!(spans(&[(10, 20), (12, 15), (5, 11), (50, 60)]), [(5, 20), (50, 60)]);
        assert_eq!(region(&[(10, 20), (15, 30), (40, 45)]).time(), Duration::from_nanos(25));
    }

    #[test]
    fn of_too_many_spans_the_closest_are_joined() {
        let many: Vec<(u64, u64)> = (0..SPANS_MAX as u64).map(|at| (100 * at, 100 * at + 10)).collect();
        let mut region = region(&many);
        region.add(Duration::from_nanos(15), Duration::from_nanos(20));
        assert_eq!(region.spans.len(), SPANS_MAX);
        assert_eq!(region.spans[0], (Duration::ZERO, Duration::from_nanos(20)));
    }

    #[test]
    fn the_regions_of_a_run_are_those_of_its_places_joined() {
        let place = |spans: &[(u64, u64)]| {
            let of_place = MeasuredRegion { name: "steps".into(), entries: 1, places: 1, ..region(spans) };
            Some(PlaceReport { regions: vec![of_place], ..PlaceReport::default() })
        };
        let report = RunReport { places: vec![place(&[(10, 20)]), None, place(&[(15, 25)])] };
        let [steps] = &report.regions()[..] else { panic!("{:?}", report.regions()) };
        assert_eq!((steps.entries, steps.places, steps.time()), (2, 2, Duration::from_nanos(15)));
        assert_eq!(steps.to_string(), "region steps, entered 2 times at 2 places");
    }
}
