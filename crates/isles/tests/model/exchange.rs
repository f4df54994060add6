//! Some rounds of random programs over channels; `./test --long exchange` runs many.

#[path = "../exchange/round.rs"]
mod round;

use isles::prelude::*;
use round::{Accounts, round};

#[isles::test]
async fn what_counts_as_sent_is_received_once_and_in_its_order() -> isles::Result<()> {
    let accounts = PlaceLocal::new(Accounts::default).await?;
    for seed in 0..60 {
        round(seed, &accounts).await?;
    }
    Ok(())
}
