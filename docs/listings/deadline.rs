//! A search that has to be over in time, and one that ends with the first answer.
use isles::prelude::*;
use isles::{ErrorKind, cancel};
use std::time::Duration;

#[isles::main]
async fn main() -> isles::Result<()> {
    let search = finish(async {
        for place in places() {
            spawn_at!(place, std::future::pending::<()>().await); // never finds anything
        }
    });
    let error = search.deadline(Duration::from_millis(50)).await.expect_err("nothing was to be found");
    println!("{error}");
    assert_eq!(error.kind(), &ErrorKind::DeadlinePassed);

    let error = finish(async {
        for place in places() {
            spawn_at!(place, std::future::pending::<()>().await);
        }
        cancel("the answer is known");
    })
    .await
    .expect_err("it was cancelled");
    println!("{error}");
    assert_eq!(error.kind(), &ErrorKind::Cancelled);
    Ok(())
}
