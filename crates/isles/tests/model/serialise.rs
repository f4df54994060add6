//! Panics in the `Serialize` and `Deserialize` of values that travel: each is an error of the waiting caller, and
//! nothing stays counted, lent or reserved.

use isles::prelude::*;
use isles::{Error, ErrorKind, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;
use std::rc::Rc;

/// Moment at which a [`Fuse`] panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// In `Serialize`, each time.
    Written,
    /// In `Serialize`, from the second time on: a long message is measured first.
    WrittenAgain,
    /// In `Deserialize`.
    Read,
    Never,
}

/// A value whose `Serialize` or `Deserialize` panics.
#[derive(Clone, Debug)]
struct Fuse {
    when: When,
    written: Rc<Cell<u32>>,
}

fn fuse(when: When) -> Fuse {
    Fuse { when, written: Rc::default() }
}

impl Serialize for Fuse {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.written.set(self.written.get() + 1);
        assert!(self.when != When::Written, "it cannot be written");
        assert!(self.when != When::WrittenAgain || self.written.get() == 1, "it cannot be written again");
        (self.when == When::Read).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fuse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        assert!(!bool::deserialize(deserializer)?, "it cannot be read");
        Ok(fuse(When::Never))
    }
}

/// Checks that `result` is the panic, or several panics, of a [`Fuse`] that panics `when`.
#[track_caller]
fn assert_blown<T: std::fmt::Debug>(result: Result<T>, when: When) {
    let error = result.unwrap_err();
    let causes = error.causes();
    if !causes.is_empty() {
        return causes.into_iter().for_each(|cause| assert_blown(Err::<T, _>(cause), when));
    }
    let what = match when {
        When::Written => "it cannot be written",
        When::WrittenAgain => "it cannot be written again",
        _ => "it cannot be read",
    };
    assert_eq!(error.kind(), &ErrorKind::Panicked, "{error}");
    assert!(error.to_string().contains(what) && error.to_string().contains("serialise.rs:"), "{error}");
}

fn others() -> impl Iterator<Item = Place> {
    places().filter(|place| *place != here())
}

#[isles::test]
async fn a_panic_while_the_captures_of_a_call_are_written_or_read_is_the_error_of_the_call() -> Result<()> {
    for place in others() {
        for when in [When::Written, When::Read] {
            let fuse = fuse(when);
            assert_blown(at!(place, [fuse = &fuse] assert!(fuse.when == When::Never)).await, when);
        }
    }
    Ok(())
}

#[isles::test]
async fn a_panic_while_the_captures_of_a_task_are_written_or_read_is_an_error_of_its_finish() -> Result<()> {
    for place in places() {
        for when in [When::Written, When::Read] {
            let fuse = fuse(when);
            let result = finish(async {
                spawn_at!(place, [fuse = fuse] drop(fuse));
            });
            assert_blown(result.await, when);
        }
    }
    Ok(())
}

#[isles::test]
async fn a_panic_while_an_answer_is_written_or_read_is_the_error_of_the_call() -> Result<()> {
    for place in others() {
        assert_blown(at!(place, fuse(When::Written)).await, When::Written);
        assert_blown(at!(place, fuse(When::Read)).await, When::Read);
        // The tasks that the body has started are still counted.
        let result = finish(async {
            at!(place, {
                spawn(isles::yield_now());
                fuse(When::Written)
            })
            .await
            .map(drop)
        });
        assert_blown(result.await, When::Written);
    }
    Ok(())
}

#[isles::test]
async fn a_panic_while_a_value_is_copied_to_all_places_is_the_error_of_that() -> Result<()> {
    for when in [When::Written, When::Read] {
        assert_blown(Replicated::new(fuse(when)).await.map(drop), when);
        let made = PlaceLocal::with(fuse(when), |fuse: Fuse| fuse.written.get());
        assert_blown(made.await.map(drop), when);
    }
    Ok(())
}

#[isles::test]
async fn a_panic_while_the_value_of_a_collective_is_written_is_an_error_of_its_root() -> Result<()> {
    let team = Team::world();
    let error = finish(async {
        for place in places() {
            spawn_at!(place, {
                let value = (team.rank() == 0).then(|| fuse(When::Written));
                let _fuse: Fuse = team.broadcast(0, value).await?;
            });
        }
    })
    .await
    .unwrap_err();
    let causes = error.causes();
    assert!(causes.iter().any(|cause| *cause.kind() == ErrorKind::Panicked), "{error}");
    Ok(())
}

thread_local! {
    static ALIVE: Cell<i64> = const { Cell::new(0) };
}

/// A value that is counted while it lives.
struct Alive;

impl Alive {
    fn new() -> Alive {
        ALIVE.set(ALIVE.get() + 1);
        Alive
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

#[isles::test]
async fn a_handle_beside_a_value_that_panics_does_not_keep_what_it_stands_for() -> Result<()> {
    let before = ALIVE.get();
    for place in places() {
        for when in [When::Written, When::WrittenAgain, When::Read] {
            let (global, fuse, text) = (Global::new(Alive::new()), fuse(when), vec![0_u8; 100_000]);
            let result = finish(async {
                spawn_at!(place, [global = global, text = text, fuse = fuse] drop((global, text, fuse)));
            });
            assert_blown(result.await, when);
        }
    }
    for _ in 0..10_000 {
        if ALIVE.get() == before {
            return Ok(());
        }
        for place in places() {
            at!(place, {}).await?;
        }
    }
    Err(Error::message("a value of a handle that nobody has is still there"))
}

/// More blocks are given up in total than a receiver may hold.
#[isles::test(places = 2)]
async fn a_long_message_that_is_given_up_while_it_is_written_leaves_its_memory_to_others() -> Result<()> {
    let there = here().next();
    let bytes = vec![7_u8; 4 << 20];
    for _ in 0..40 {
        let fuse = fuse(When::WrittenAgain);
        assert_blown(
            at!(there, [bytes = &bytes, fuse = &fuse] assert_eq!((bytes.len(), fuse.when), (0, When::Never)))
                .await,
            When::WrittenAgain,
        );
    }
    assert_eq!(at!(there, bytes.len()).await?, bytes.len());
    Ok(())
}
