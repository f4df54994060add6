//! A returned value is owned and serialisable.
use isles::prelude::*;

struct Rooted;

async fn bodies(place: Place) -> isles::Result<()> {
    let _ = at!(place, Rooted).await?;
    let _ = at!(place, std::sync::mpsc::channel::<u8>().1).await?;
    Ok(())
}

fn main() {}
