//! The kernel random (RandomAccess): updates of random entries of a table, in batches that all places exchange.
//!
//! It differs from that of the HPC Challenge: the stream starts elsewhere, and all updates are applied twice, which
//! must restore the table.

use super::{GUPS, KernelOutcome, Sizes, begin, together};
use isles::array::{DistArray, Distribution};
use isles::prelude::*;

/// Numbers that a place generates before it sends them; also its number of streams.
const LOOKAHEAD: u64 = 1024;

/// The polynomial of the stream, its period, and the position at which the kernel begins.
const POLYNOMIAL: u64 = 7;
const PERIOD: u64 = 1_317_624_576_693_539_401;
const FIRST: u64 = 834_568_137_686_317_453;

/// Checks the requirements of the kernel: powers of two, and enough updates.
pub(super) fn check(sizes: &Sizes, places: u32) -> Result<(), String> {
    let Sizes { bits, ratio, .. } = sizes;
    if !places.is_power_of_two() {
        return Err(format!("--places is {places}; allowed with --kernel random: a power of two"));
    }
    if !ratio.is_power_of_two() {
        return Err(format!("--ratio is {ratio}; allowed: a power of two"));
    }
    let updates = (u128::from(*ratio) << bits) / u128::from(places);
    let least = u128::from(2 * LOOKAHEAD);
    match updates >= least && 1_u64 << bits >= u64::from(places) {
        true => Ok(()),
        false => Err(format!(
            "--bits {bits} and --ratio {ratio} make {updates} updates per place; allowed with {places} \
             places: at least {least}"
        )),
    }
}

/// Runs the kernel over all places.
pub(super) async fn run(Sizes { bits, ratio, .. }: Sizes) -> isles::Result<KernelOutcome> {
    let team = Team::world();
    let table = DistArray::<u64, 1>::new(&team, [1 << bits], [Distribution::Block]).await?;
    let found = everywhere!(update(&team, &table, ratio).await?).await?;
    let (seconds, wrong) = together(found, |one, other| one + other);
    Ok(KernelOutcome::new(seconds, (ratio << bits) as f64, GUPS, wrong))
}

/// Runs the part of this place; returns its seconds, and the number of its wrong entries.
async fn update(team: &Team, table: &DistArray<u64, 1>, ratio: u64) -> isles::Result<(f64, f64)> {
    let (rank, [entries]) = (team.rank(), table.extents());
    let own = entries / team.size();
    let (mask, own_bits) = (entries as u64 - 1, own.trailing_zeros());
    table.lock().for_each(|[index], entry| *entry = index as u64);
    let updates = ratio * own as u64;
    let mut buckets: Vec<Vec<u64>> = vec![Vec::with_capacity(LOOKAHEAD as usize); team.size()];
    let started = begin(team).await?;
    for _ in 0..2 {
        let first = |stream: u64| FIRST + updates / LOOKAHEAD * stream + (own * rank) as u64;
        let mut streams: Vec<u64> = (0..LOOKAHEAD).map(|stream| number_at(first(stream))).collect();
        for _ in 0..updates / (2 * LOOKAHEAD) {
            buckets.iter_mut().for_each(Vec::clear);
            for number in &mut streams {
                *number = next(*number);
                buckets[((*number & mask) >> own_bits) as usize].push(*number);
            }
            work(Work::new().integers(12 * LOOKAHEAD).scattered(LOOKAHEAD, 8 * own as u64));
            let updated = team.all_to_allv_with(&buckets, |_, numbers| {
                let mut part = table.lock();
                let entries = part.values_mut();
                for number in numbers {
                    entries[*number as usize & (own - 1)] ^= number;
                }
            });
            updated.await?;
        }
    }
    let seconds = (now() - started).as_secs_f64();
    let mut wrong = 0.0;
    table.lock().for_each(|[index], entry| wrong += f64::from(u8::from(*entry != index as u64)));
    Ok((seconds, wrong))
}

#[inline]
fn next(number: u64) -> u64 {
    number << 1 ^ if number >> 63 == 1 { POLYNOMIAL } else { 0 }
}

/// Returns the number at `position` of the stream: a power of two modulo the polynomial, by squaring.
fn number_at(position: u64) -> u64 {
    let position = position % PERIOD;
    let times = |one: u64, other: u64| {
        let (mut product, mut shifted) = (0, one);
        for bit in 0..64 {
            product ^= if other >> bit & 1 == 1 { shifted } else { 0 };
            shifted = next(shifted);
        }
        product
    };
    (0..64).rev().fold(1, |number, bit| {
        let square = times(number, number);
        if position >> bit & 1 == 1 { next(square) } else { square }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_kernel() {
        let mut number = 1;
        for position in 0..1_000 {
            assert_eq!(number_at(position), number, "{position}");
            number = next(number);
        }
        assert_eq!(number_at(PERIOD), 1, "it begins anew");
    }
}
