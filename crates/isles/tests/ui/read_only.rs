//! A body does not change the caller's variables.
use isles::prelude::*;

struct Tally {
    count: u64,
    list: Vec<u64>,
}

impl Tally {
    async fn add(&mut self, place: Place) -> isles::Result<()> {
        at!(place, self.count += 1).await?;
        at!(place, self.list.push(1)).await
    }
}

async fn bodies(place: Place) -> isles::Result<()> {
    let mut count = 0;
    count += 1;
    at!(place, count += 1).await?;
    spawn_at!(place, {
        let reference = &mut count;
        *reference = 1;
    });
    Ok(())
}

fn main() {}
