//! Errors of anyhow, in the body of a task and in `main`.
use anyhow::Context;
use isles::prelude::*;

/// A function that knows nothing of Isles.
fn parse(text: &str) -> anyhow::Result<u32> {
    text.parse().with_context(|| format!("`{text}` is no number"))
}

#[isles::main]
async fn main() -> anyhow::Result<()> {
    let word = "nine".to_owned();
    let last = places().last().context("a run has a place")?;
    let length = at!(last, parse(&word)? + 1).await;
    let error = length.expect_err("the word is no number");
    println!("{error}");
    finish(async { spawn_at!(last, println!("{} is one", parse("9").context("in a task")?)) })
        .await
        .map_err(isles::Error::into_std)
        .context("the tasks failed")
}
