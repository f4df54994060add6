//! A body does not change the caller's variables by methods either, and moves them away for good.
use isles::prelude::*;

async fn bodies(place: Place, list: Vec<u64>) -> isles::Result<()> {
    let mut changed = list.clone();
    changed.push(1);
    at!(place, changed.push(2)).await?;
    spawn_at!(place, changed.clear());
    at!(place, drop(list)).await?;
    list.len();
    Ok(())
}

fn main() {}
