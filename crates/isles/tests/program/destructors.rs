//! Programs whose destructors panic: each panic is an error or a line, and every place goes on.

use super::after_all;
use isles::ErrorKind;
use isles::prelude::*;
use std::future::pending;
use std::panic::panic_any;
use std::time::Duration;

/// A value whose destructor panics.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("it falls");
    }
}

/// Each place answers.
pub(crate) async fn all_answer() -> isles::Result<()> {
    for place in places() {
        assert_eq!(at!(place, here()).await?, place);
    }
    Ok(())
}

/// Two parts at each place whose destructors panic, and one more that goes when the places end.
pub(crate) async fn parts() -> isles::Result<()> {
    let parts = (PlaceLocal::new(Fragile::default).await?, PlaceLocal::new(Fragile::default).await?);
    let one = parts.0.clone();
    finish(async { spawn_at!(here().next(), drop(one)) }).await?;
    drop(parts);
    std::mem::forget(PlaceLocal::new(Fragile::default).await?);
    all_answer().await
}

/// A payload whose destructor panics with another one, for a while.
struct Payload(u32);

impl Drop for Payload {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Payload(self.0 - 1));
        }
    }
}

fn fails() {
    panic_any(Payload(3))
}

/// A value whose destructor panics with such a payload.
struct FailsAtLast;

impl Drop for FailsAtLast {
    fn drop(&mut self) {
        fails();
    }
}

/// Bodies that panic with a payload whose destructor panics, with a payload of the same kind.
pub(crate) async fn payloads() -> isles::Result<()> {
    for place in places() {
        let error = at!(place, fails()).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("the payload is no text") && said.contains(file!()), "{said}");
        let waits = async {
            spawn_at!(place, {
                let _dropped = FailsAtLast;
                pending::<()>().await
            });
            let _dropped = FailsAtLast;
            pending::<()>().await
        };
        let error = finish(waits).deadline(Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::DeadlinePassed, "{error}");
        let waits = finish(async {
            let _dropped = FailsAtLast;
            at!(place, pending::<()>().await).await
        });
        // The finish inside is dropped, and its body fails.
        let error = finish(waits).deadline(Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::DeadlinePassed, "{error}");
    }
    all_answer().await
}

/// A value of a call whose destructor panics at the place of the body, where it was written.
pub(crate) async fn answers() -> isles::Result<()> {
    for place in places() {
        match at!(place, Fragile).await {
            Ok(answer) => std::mem::forget(answer),
            Err(error) => {
                assert_eq!(error.kind(), &ErrorKind::Panicked, "{error}");
                assert!(error.to_string().contains("it falls"), "{error}");
            }
        }
    }
    all_answer().await
}

/// Runs these programs on `machine`.
pub(crate) fn check(machine: &str) {
    let (code, said) = after_all("parts", machine);
    assert_eq!(code, Some(0), "on {machine}: {said}");
    // At place 0 the third is leaked with its handle.
    for (place, count) in [(0, 2), (1, 3), (2, 3)] {
        let line = format!("isles: the drop of a value failed at place {place}: panicked at {}:", file!());
        assert_eq!(said.matches(&line).count(), count, "{line} on {machine}: {said}");
    }
    let (code, said) = after_all("payloads", machine);
    assert_eq!(code, Some(0), "on {machine}: {said}");
    let (code, said) = after_all("answers", machine);
    assert!(code == Some(0) && !said.contains("a detached task failed"), "on {machine}: {said}");
}
