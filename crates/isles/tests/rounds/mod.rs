//! Rounds of random programs: the common part of the programs `exchange`, `guards` and `windows`.

use isles::Result;

/// Runs `round` with the number of each round, as many as the first argument says, or a hundred; returns how many.
pub async fn run(round: impl AsyncFn(u64) -> Result<()>) -> Result<u64> {
    let rounds = std::env::args().nth(1).map_or(Ok(100), |rounds| rounds.parse());
    let rounds = rounds.map_err(|error| isles::Error::message(format!("ROUNDS is no number: {error}")))?;
    for number in 0..rounds {
        round(number).await?;
    }
    Ok(rounds)
}
