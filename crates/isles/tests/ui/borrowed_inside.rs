//! References inside of what travels: the message says what to send instead.
use isles::prelude::*;

async fn words(place: Place, words: &[&str], pairs: Vec<(u8, &'static str)>) -> isles::Result<()> {
    at!(place, words.len()).await?;
    at!(place, pairs.len()).await?;
    spawn_at!(place, drop(words.to_vec()));
    Ok(())
}

async fn back(place: Place) -> isles::Result<()> {
    let (_, word) = at!(place, {
        let number = 3;
        (number, "word")
    })
    .await?;
    drop(word);
    Ok(())
}

fn main() {}
