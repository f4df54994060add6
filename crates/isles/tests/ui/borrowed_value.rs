//! The value of a body does not borrow from decoded captures.
use isles::prelude::*;

async fn bodies(place: Place, words: Vec<String>) -> isles::Result<()> {
    at!(place, words[0].as_str()).await?;
    Ok(())
}

fn main() {}
