//! A program that goes on without the places that die.
use isles::ErrorKind;
use isles::prelude::*;

/// Does one piece of work at the first place that lives to answer.
async fn somewhere(piece: u64) -> isles::Result<u64> {
    for place in places().rev() {
        // A finish of its own: the death of a place is its error, and not that of the whole program.
        match finish(async { at!(place, piece * piece).await }).await {
            Err(error) if matches!(error.kind(), ErrorKind::DeadPlace(_)) => {
                println!("{error}; trying the next")
            }
            answer => return answer,
        }
    }
    Err(isles::Error::message("no place is left"))
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let mut sum = 0;
    for piece in 1..=4 {
        sum += somewhere(piece).await?;
    }
    println!("the sum is {sum}");
    assert_eq!(sum, 30);
    Ok(())
}
