//! A body does not change the caller's variables, and does not move what the caller still uses.
use isles::prelude::*;

async fn bodies(place: Place) -> isles::Result<()> {
    let mut count = 0;
    let mut list = vec![1];
    at!(place, count += 1).await?;
    at!(place, list.push(2)).await?;
    count += 1;
    list.push(count);
    at!(place, drop(list)).await?;
    list.len();
    for _ in 0..3 {
        at!(place, {
            break;
        })
        .await?;
    }
    Ok(())
}

struct Tally {
    count: u64,
}

impl Tally {
    async fn add(&mut self, place: Place) -> isles::Result<()> {
        at!(place, self.count += 1).await
    }
}

fn main() {}
