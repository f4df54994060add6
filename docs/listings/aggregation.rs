//! A table on all places: every place counts into entries that lie anywhere, and then asks for some of them.
use isles::prelude::*;

const ENTRIES: usize = 1_000;
const COUNTS: u64 = 20_000;

/// The `number`th entry that a place counts into: its place, and where it is there.
fn entry(place: usize, number: u64) -> (usize, usize) {
    let word = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(place as u32);
    ((word >> 40) as usize % place_count(), word as usize % ENTRIES)
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let table = PlaceLocal::new(|| vec![0_u64; ENTRIES]).await?;
    let counts = Aggregator::new(&table, |table: &mut Vec<u64>, at: u32| table[at as usize] += 1).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for number in 0..COUNTS {
                    let (owner, at) = entry(here().index(), number);
                    counts.push(places().nth(owner).unwrap(), at as u32).await?;
                }
            });
        }
    })
    .await?; // every count is there
    let total: u64 = everywhere!(table.lock().iter().sum::<u64>()).await?.iter().sum();
    assert_eq!(total, COUNTS * place_count() as u64);

    let lookup = Gatherer::new(&table, |table: &Vec<u64>, at: u32| table[at as usize]).await?;
    let first = lookup.gather(places().flat_map(|place| (0..3).map(move |at| (place, at)))).await?;
    println!("{total} counts; the first entries of each place have {first:?}");
    Ok(())
}
