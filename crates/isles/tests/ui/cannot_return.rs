//! What comes back is owned and serialisable.
use isles::prelude::*;

struct Rooted;

async fn bodies(place: Place, words: &[Rooted]) -> isles::Result<()> {
    let _ = at!(place, Rooted).await?;
    at!(place, words.first()).await?;
    Ok(())
}

fn main() {}
