//! Tasks that start tasks, and what comes out of the finish around them.
use isles::prelude::*;

/// Counts the leaves of a binary tree whose right-hand sides are computed at the next place.
async fn leaves(depth: u32) -> isles::Result<u64> {
    if depth == 0 {
        return Ok(1);
    }
    let there = here().next();
    let right = at!(there, Box::pin(leaves(depth - 1)).await?).await?;
    let left = Box::pin(leaves(depth - 1)).await?;
    Ok(left + right)
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let total = leaves(6).await?;
    println!("{total} leaves");
    assert_eq!(total, 64);

    // The errors of all tasks come out of the finish; the other tasks run to their ends.
    let result = finish(async {
        for place in places() {
            spawn_at!(place, {
                let number: u32 = "twelve".parse()?;
                println!("{number}");
            });
        }
    })
    .await;
    let error = result.expect_err("no task can read this number");
    println!("{error}");
    assert!(error.to_string().contains("invalid digit"));
    Ok(())
}
