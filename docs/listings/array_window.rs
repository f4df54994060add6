//! A histogram of numbers that nobody can foretell, counted by all places in an array that lies on all of them.
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::{Combine, Random};

const BINS: usize = 1000;
const NUMBERS: u64 = 20_000;

/// The bins into which the numbers of a stream fall.
fn bins(stream: u64) -> impl Iterator<Item = usize> {
    let mut random = Random::stream(1, stream);
    (0..NUMBERS).map(move |_| random.below(BINS as u64).min(random.below(BINS as u64)) as usize)
}

/// Counts the numbers of this place in the bins of all, and returns how many lie in those of this place.
async fn count(counts: &DistArray<u64, 1>) -> isles::Result<u64> {
    let open = counts.open().await?; // by each place: from here on all access every part
    for bin in bins(counts.team().rank() as u64) {
        open.accumulate([bin], &[1], Combine::Sum).await?;
    }
    open.close().await?; // by each place: all is counted, and each has its part as a slice again
    Ok(counts.read().owned().sum())
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let team = Team::world();
    let counts =
        DistArray::<u64, 1>::in_window(&team, [BINS], [Distribution::Block], Halo::default()).await?;
    let sums = everywhere!(count(&counts).await?).await?;
    assert_eq!(sums.iter().sum::<u64>(), NUMBERS * team.size() as u64);

    let mut alone = vec![0; BINS];
    (0..team.size() as u64).flat_map(bins).for_each(|bin| alone[bin] += 1);
    let whole = everywhere!(counts.gather(0).await?).await?.swap_remove(0);
    assert_eq!(whole, Some(alone));
    println!(
        "{} numbers in {BINS} bins: {} of them in those of the first place",
        NUMBERS * sums.len() as u64,
        sums[0]
    );
    Ok(())
}
