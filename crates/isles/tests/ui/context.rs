//! anyhow's `context` on a result of Isles: the compiler shows what to write.

use anyhow::Context;

async fn length(word: String) -> anyhow::Result<usize> {
    let last = isles::places().last().context("a run has a place")?;
    let length = isles::at!(last, word.len()).await.context("the length")?;
    Ok(length)
}

fn main() {}
