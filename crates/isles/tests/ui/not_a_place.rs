//! The number of a place is not a place.
use isles::prelude::*;

async fn numbers(index: usize) -> isles::Result<()> {
    at!(3, println!("there")).await?;
    spawn_at!(index, println!("there"));
    Ok(())
}

fn main() {}
