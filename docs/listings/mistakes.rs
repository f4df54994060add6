//! Mistakes of a program, and the errors that say where they are.
use isles::WindowOptions;
use isles::prelude::*;

/// A collective of one kind of number at place 0, and of another at place 1.
async fn mismatched() -> isles::Result<()> {
    let team = Team::world();
    if here().index() == 0 {
        team.all_reduce(1_u64, |a, b| a + b).await?;
    } else {
        team.all_reduce(1.0, |a: f64, b| a + b).await?;
    }
    Ok(())
}

/// A put at a member of a window that is not locked.
async fn put_without_lock(window: &Window<u64>) -> isles::Result<()> {
    window.lock(0).await?;
    let put = window.put(1, 0, &[7]).await;
    window.unlock(0).await?;
    put
}

/// Puts of two places into the same elements, in one epoch.
async fn conflict(window: &Window<u64>) -> isles::Result<()> {
    window.put(1, 3, &[7; 2]).await?;
    at!(here().next(), window.put(1, 2, &[8; 3]).await?).await
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let team = everywhere!(mismatched().await.err().map(|error| error.to_string())).await?;
    println!("{}", team.into_iter().flatten().next().expect("a member is told"));
    let window = Window::<u64>::new(8).await?;
    let error = put_without_lock(&window).await.expect_err("rank 1 is not locked");
    println!("{error}");
    let checked =
        Window::<u64>::with_lens(&Team::world(), &vec![8; place_count()], WindowOptions::checked()).await?;
    let error = conflict(&checked).await.expect_err("the later one is told");
    println!("{error}");
    Ok(())
}
