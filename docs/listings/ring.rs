//! A test that runs on threads, on processes and on the seeded loopback.
use isles::prelude::*;

/// Carries `token` once round all places, adding one at each.
async fn round(token: u64) -> isles::Result<u64> {
    let mut token = token;
    for place in places() {
        token = at!(place, token + 1).await?;
    }
    Ok(token)
}

#[isles::test]
async fn a_token_grows_by_one_at_each_place() -> isles::Result<()> {
    assert_eq!(round(0).await?, places().len() as u64);
    Ok(())
}
