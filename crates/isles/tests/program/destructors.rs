//! Programs whose destructors panic: each panic becomes an error or a printed line, and every place continues.

use super::after_all;
use isles::prelude::*;
use isles::{ErrorKind, Global, PlaceLocal, Replicated, Team, spawn_detached};
use std::future::pending;
use std::panic::panic_any;
use std::time::Duration;

/// A value whose destructor panics, unless another one of the thread does: two at once end a process.
#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "it falls");
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
        assert!(said.contains("the payload is not text") && said.contains(file!()), "{said}");
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

/// A value that cannot be read where it arrives.
#[derive(serde::Serialize)]
struct Unreadable;

impl<'de> serde::Deserialize<'de> for Unreadable {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("it is unreadable"))
    }
}

/// One way to lose a value whose destructor panics, in the middle of some operation; the errors are the program's.
async fn lose(way: usize, there: Place) -> isles::Result<()> {
    let team = Team::world();
    let limit = Duration::from_millis(1);
    match way {
        // The first capture has arrived when the second one cannot be read.
        0 => finish(async { spawn_at!(there, [one = Fragile, two = Unreadable] drop((one, two))) }).await,
        1 => at!(there, [one = Fragile, two = Unreadable] drop((one, two))).await,
        // An answer that comes when nobody waits for it any more, or together with another error.
        2 => isles::timeout(Duration::ZERO, at!(there, Fragile)).await.map(drop),
        3 => at!(there, (Fragile, Unreadable)).await.map(drop),
        4 => at!(there, (Unreadable, Fragile)).await.map(drop),
        // A body, its captures and its result, when it is cancelled or fails.
        5 => {
            let waits =
                finish(async { spawn_at!(there, [one = Fragile] { pending::<()>().await; drop(one) }) });
            waits.deadline(limit).await
        }
        6 => at!(there, [one = Fragile] Err::<(), _>({ drop(one); isles::Error::message("late") })?).await,
        7 => {
            let body = async {
                spawn(async { Err::<(), _>(isles::Error::message("beside")) });
                Ok::<_, isles::Error>(Fragile)
            };
            finish(body).await.map(drop)
        }
        // Messages that nobody receives, that are received and lost, and that are too many.
        8 => team.send((here().index() + 1) % team.size(), &*std::mem::ManuallyDrop::new(Fragile)).await,
        9 => isles::timeout(limit, team.recv::<Fragile>(there.index())).await.map(drop),
        // Handles whose values fall.
        10 => Replicated::new(Fragile).await.map(drop),
        11 => {
            let global = Global::new(Fragile);
            finish(async { spawn_at!(there, [global] drop(global.clone())) }).await
        }
        12 => {
            let local = PlaceLocal::new(Fragile::default).await?;
            local
                .reduce(|one, other| {
                    drop(one);
                    other
                })
                .await
                .map(drop)
        }
        13 => everywhere!(Fragile).await.map(drop),
        _ => {
            spawn_detached(async { drop(Fragile) });
            Ok(())
        }
    }
}

/// One way of all members to lose such values in a collective.
async fn lose_together(way: usize, team: &Team) -> isles::Result<()> {
    let is_first = team.rank() == 0;
    match way {
        0 => team.broadcast(0, is_first.then_some(Fragile)).await.map(drop),
        1 => {
            let other = |one, other| {
                drop(one);
                other
            };
            team.all_reduce(Fragile, other).await.map(drop)
        }
        2 => team.gather(0, Fragile).await.map(drop),
        _ => team.all_gather(Fragile).await.map(drop),
    }
}

/// Number of ways in [`lose`].
const WAYS: usize = 15;

/// Loses values in all ways, at each place, and then in collectives.
pub(crate) async fn losses() -> isles::Result<()> {
    for way in 0..WAYS {
        for place in places() {
            for there in places() {
                // Whatever the error is, it is no death.
                let lost = finish(async { spawn_at!(place, lose(way, there).await) }).await;
                let said = lost.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(!said.contains("DeadPlace"), "way {way} from {place} to {there}: {said}");
            }
        }
        all_answer().await.map_err(|error| isles::Error::message(format!("after way {way}: {error}")))?;
    }
    for way in 0..4 {
        let lost = finish(async {
            let team = Team::from_places(&places().collect::<Vec<_>>())?;
            for place in places() {
                spawn_at!(place, lose_together(way, &team).await);
            }
            Ok::<_, isles::Error>(())
        })
        .await;
        let said = lost.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!said.contains("DeadPlace"), "collective {way}: {said}");
        all_answer()
            .await
            .map_err(|error| isles::Error::message(format!("after collective {way}: {error}")))?;
    }
    Ok(())
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
    let (code, said) = after_all("losses", machine);
    assert_eq!(code, Some(0), "on {machine}: {said}");
    let (code, said) = after_all("answers", machine);
    assert!(code == Some(0) && !said.contains("a detached task failed"), "on {machine}: {said}");
}
