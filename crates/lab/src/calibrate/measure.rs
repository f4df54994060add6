//! Times of messages between two places: a single one, many in a stream, and long ones.
//!
//! The same program measures the machine at hand and the chip that imitates it, so the two tables can be compared.
//! Invariant: it charges no work, so on a modelled chip only messages take time.

use isles::prelude::*;
use std::time::Duration;

/// Minimum time of a batch, so that the clock's resolution and a single interruption do not matter.
const BATCH: Duration = Duration::from_millis(4);

/// Maximum number of messages of a batch.
const BATCH_MAX: u64 = 1 << 16;

/// Lengths of the slices in bytes; all are whole words.
pub const SIZES: [usize; 7] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20];

/// Value that ends the partner's loop.
const LAST: u64 = u64::MAX;

/// Times measured between two places, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Half of the round trip of an empty `at!`.
    pub latency: f64,
    /// Time for each of many tiny tasks, all sent before the first is awaited.
    pub gap: f64,
    /// Half of the round trip of a slice, by [`SIZES`].
    pub sizes: [f64; SIZES.len()],
}

impl Figures {
    /// Returns each figure with its name, in the order of the table.
    pub fn rows(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        let sizes = SIZES.iter().zip(self.sizes).map(|(bytes, time)| (format!("{bytes} bytes"), time));
        [("empty at!".to_owned(), self.latency), ("each of many tasks".to_owned(), self.gap)]
            .into_iter()
            .chain(sizes)
    }
}

/// Figures measured, by the distance of two places; `None` for a distance that no pair of places has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FiguresByDistance {
    /// Figures through memory, within a host.
    pub near: Option<Figures>,
    /// Figures from host to host.
    pub far: Option<Figures>,
}

/// Summary of several measuring rounds: the median, minimum and maximum of each figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    pub median: FiguresByDistance,
    pub least: FiguresByDistance,
    pub most: FiguresByDistance,
}

impl Rounds {
    /// Summarizes `rounds`, one or more, all at the same distances.
    pub fn of(rounds: &[FiguresByDistance]) -> Rounds {
        let ways = |pick: fn(&[f64]) -> f64| FiguresByDistance {
            near: picked(rounds.iter().filter_map(|ways| ways.near), pick),
            far: picked(rounds.iter().filter_map(|ways| ways.far), pick),
        };
        Rounds {
            median: ways(|sorted| sorted[sorted.len() / 2]),
            least: ways(|sorted| sorted[0]),
            most: ways(|sorted| sorted[sorted.len() - 1]),
        }
    }

    /// Returns the largest ratio of the maximum of a figure to its minimum, over all figures.
    pub fn spread(&self) -> f64 {
        let ways = [(self.least.near, self.most.near), (self.least.far, self.most.far)];
        let rows = ways.into_iter().filter_map(|(least, most)| Some((least?, most?)));
        let spreads = rows.flat_map(|(least, most)| {
            let rows: Vec<f64> =
                least.rows().zip(most.rows()).map(|(least, most)| most.1 / least.1).collect();
            rows
        });
        spreads.fold(1.0, f64::max)
    }
}

/// Combines the values of each figure in all rounds by `pick`, which gets them sorted; `None` without a round.
fn picked(rounds: impl Iterator<Item = Figures>, pick: fn(&[f64]) -> f64) -> Option<Figures> {
    let rounds: Vec<Figures> = rounds.collect();
    let one = |of: &dyn Fn(&Figures) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        pick(&values)
    };
    (!rounds.is_empty()).then(|| Figures {
        latency: one(&|figures| figures.latency),
        gap: one(&|figures| figures.gap),
        sizes: std::array::from_fn(|size| one(&|figures| figures.sizes[size])),
    })
}

/// Returns the first place at each distance from the calling one: near, then far.
pub fn partners() -> [Option<Place>; 2] {
    let others = || isles::places().filter(|place| *place != here());
    [others().find(|place| place.shares_memory()), others().find(|place| !place.shares_memory())]
}

/// Measures from the calling place, which is the first, to a partner at each distance; medians of `batches`.
pub async fn measure([near, far]: [Option<Place>; 2], batches: usize) -> isles::Result<FiguresByDistance> {
    let mut ways = FiguresByDistance::default();
    for (partner, way) in [(near, &mut ways.near), (far, &mut ways.far)] {
        if let Some(there) = partner {
            *way = Some(between(there, batches).await?);
        }
    }
    Ok(ways)
}

async fn between(there: Place, batches: usize) -> isles::Result<Figures> {
    let calls = async |count| {
        for _ in 0..count {
            at!(there, {}).await?;
        }
        Ok(())
    };
    let tasks = async |count| {
        finish(async {
            for _ in 0..count {
                spawn_at!(there, {});
            }
        })
        .await
    };
    let latency = each(batches, calls).await? / 2.0;
    let gap = each(batches, tasks).await?;
    let mut sizes = [0.0; SIZES.len()];
    for (bytes, time) in SIZES.into_iter().zip(&mut sizes) {
        *time = slices(there, bytes / size_of::<u64>(), batches).await? / 2.0;
    }
    Ok(Figures { latency, gap, sizes })
}

/// Returns the nanoseconds to send a slice of `len` words to `there` and another one back.
async fn slices(there: Place, len: usize, batches: usize) -> isles::Result<f64> {
    let team = Team::world();
    let partner = there.index();
    finish(async {
        spawn_at!(there, {
            let (sent, mut received) = (vec![2_u64; len], vec![0_u64; len]);
            while received[0] != LAST {
                team.recv_slice(0, &mut received).await?;
                team.send_slice(0, &sent).await?;
            }
        });
        let (mut sent, mut received) = (vec![1_u64; len], vec![0_u64; len]);
        let time = each(batches, async |count| {
            for _ in 0..count {
                team.send_slice(partner, &sent).await?;
                team.recv_slice(partner, &mut received).await?;
            }
            Ok(())
        })
        .await?;
        sent[0] = LAST;
        team.send_slice(partner, &sent).await?;
        team.recv_slice(partner, &mut received).await?;
        Ok::<f64, isles::Error>(time)
    })
    .await
}

/// Returns the nanoseconds of one step, the median of `batches` batches after one that is not counted.
async fn each(batches: usize, mut steps: impl AsyncFnMut(u64) -> isles::Result<()>) -> isles::Result<f64> {
    let mut count = 8;
    while count < BATCH_MAX {
        let begin = isles::now();
        steps(count).await?;
        if isles::now() - begin >= BATCH {
            break;
        }
        count *= 2;
    }
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        let begin = isles::now();
        steps(count).await?;
        times.push((isles::now() - begin).as_nanos() as f64 / count as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(latency: f64) -> FiguresByDistance {
        FiguresByDistance {
            near: Some(Figures { latency, gap: 40.0, sizes: [100.0; SIZES.len()] }),
            far: None,
        }
    }

    #[test]
    fn rounds_have_a_median_and_the_spread_of_the_figure_that_differs_most() {
        // Microseconds measured on a busy host; the first five of seven calls.
        let rounds = Rounds::of(&[60.0, 88.8, 80.7, 122.7, 0.5].map(round));
        let latencies = [rounds.least, rounds.median, rounds.most].map(|ways| ways.near.unwrap().latency);
        assert_eq!(latencies, [0.5, 80.7, 122.7]);
        assert!((rounds.spread() - 122.7 / 0.5).abs() < 1e-9);
        assert_eq!((rounds.median.near.unwrap().gap, rounds.median.far), (40.0, None));
        assert_eq!(Rounds::of(&[round(7.0)]).spread(), 1.0);
    }
}
