//! What comes back is owned and serialisable.
use isles::prelude::*;

struct Rooted;

async fn bodies(place: Place, words: &[String]) -> isles::Result<()> {
    let _ = at!(place, Rooted).await?;
    let _ = at!(place, words[0].as_str()).await?;
    let _: u64 = at!(place, words[0].parse().unwrap()).await?;
    Ok(())
}

fn main() {}
