//! The result of a cancelled finish, however its tasks handle the cancellation.

use isles::prelude::*;
use isles::{Error, ErrorKind, Result};

/// Cancels the finish of the calling task, and returns the result of a later call in it.
async fn cancel_and_call() -> Result<()> {
    isles::cancel("enough");
    at!(here().next(), {}).await
}

#[isles::test]
async fn a_finish_whose_tasks_hand_on_that_they_were_cancelled_ends_as_cancelled() -> Result<()> {
    for place in places() {
        let error = finish(async { spawn_at!(place, cancel_and_call().await) }).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(error.to_string().contains("enough"), "{error}");
        // The same through a finish of its own.
        let error = finish(async {
            spawn_at!(place, {
                isles::cancel("enough of all");
                finish(async { spawn(cancel_and_call()) }).await?;
            });
        });
        let error = error.await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Cancelled, "{error}");
    }
    Ok(())
}

#[isles::test]
async fn an_error_of_another_kind_is_kept_beside_the_cancellation() -> Result<()> {
    let error = finish(async {
        spawn(async { Err::<(), _>(Error::message("broken")) });
        isles::yield_now().await;
        isles::cancel("enough");
    })
    .await
    .unwrap_err();
    let kinds: Vec<ErrorKind> = error.causes().iter().map(|cause| cause.kind().clone()).collect();
    assert_eq!(kinds, [ErrorKind::Cancelled, ErrorKind::Failed], "{error}");
    Ok(())
}
