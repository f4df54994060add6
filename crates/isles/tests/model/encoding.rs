//! Values whose encoding has side effects: it starts tasks, drops handles, cancels.
//!
//! A value is written directly to the memory that its receiver reads, so messages sent meanwhile must not go there.
//! Each test runs on threads, processes and the seeded loopback.

use isles::prelude::*;
use isles::{Global, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;
use std::rc::Rc;

thread_local! {
    /// Tasks that encodings at the places of this thread have started.
    static STARTED: Cell<u64> = const { Cell::new(0) };
    /// Number of such tasks that have run at the places of this thread.
    static RUN: Cell<u64> = const { Cell::new(0) };
}

/// A pattern whose encoding starts a task at every place, including this one.
#[derive(Clone, Debug, PartialEq)]
struct Starter(Vec<u32>);

/// Lengths in elements: of a message that fits any ring, of one that is tried twice, of a block.
const LENGTHS: [u32; 3] = [1, 500, 100_000];

impl Starter {
    fn new(length: u32) -> Starter {
        Starter((0..length).map(|number| number ^ 0x5EED).collect())
    }
}

impl Serialize for Starter {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        for place in places() {
            let weight = self.0[0];
            spawn_at!(place, {
                assert_eq!(weight, 0x5EED);
                RUN.set(RUN.get() + 1);
            });
            STARTED.set(STARTED.get() + 1);
        }
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Starter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Starter, D::Error> {
        Vec::deserialize(deserializer).map(Starter)
    }
}

/// Returns the number of tasks started at all places, and of those that have run.
async fn count() -> Result<(u64, u64)> {
    let (mut started, mut run) = (0, 0);
    for place in places() {
        // On the loopback all places share a thread.
        let (begun, over) = at!(place, (STARTED.take(), RUN.take())).await?;
        (started, run) = (started + begun, run + over);
    }
    Ok((started, run))
}

/// Panics unless every task has run, and at least one if a value went to `place`.
async fn check_all_have_run(place: Place) -> Result<()> {
    let (started, run) = count().await?;
    assert_eq!(started, run, "tasks started, and run");
    assert!(started > 0 || place == here(), "nothing was written for {place}");
    Ok(())
}

#[isles::test(places = 3)]
async fn an_argument_may_start_tasks_while_it_is_written() -> Result<()> {
    for length in LENGTHS {
        for place in places() {
            let value = Starter::new(length);
            finish(async {
                spawn_at!(place, assert_eq!(value, Starter::new(value.0.len() as u32)));
            })
            .await?;
            check_all_have_run(place).await?;
            let value = Starter::new(length);
            let same =
                finish(async { at!(place, value == Starter::new(value.0.len() as u32)).await }).await?;
            assert!(same, "changed on its way to {place}");
            check_all_have_run(place).await?;
        }
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn an_answer_may_start_tasks_while_it_is_written() -> Result<()> {
    for length in LENGTHS {
        for place in places() {
            let answer = finish(async { at!(place, Starter::new(length)).await }).await?;
            assert_eq!(answer, Starter::new(length));
            // The body has ended by then, so no finish waits for tasks that its result starts.
            let (mut started, mut run) = count().await?;
            assert!(started > 0 || place == here(), "nothing was written for {place}");
            for _ in 0..10_000 {
                if started == run {
                    break;
                }
                let more = count().await?;
                (started, run) = (started + more.0, run + more.1);
            }
            assert_eq!(started, run, "tasks started, and run");
        }
    }
    Ok(())
}

/// A handle that is cloned for its encoding, as with `#[serde(into)]`.
struct Cloned(Global<Rc<()>>);

impl Serialize for Cloned {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let copy = self.0.clone();
        drop(Global::new(Rc::new(())));
        copy.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cloned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Cloned, D::Error> {
        let handle = Global::deserialize(deserializer)?;
        Ok(Cloned(handle))
    }
}

#[isles::test(places = 3)]
async fn a_handle_may_be_cloned_and_dropped_while_it_is_written() -> Result<()> {
    let value = Rc::new(());
    let watch = Rc::downgrade(&value);
    let handle = Cloned(Global::new(value));
    for place in places() {
        let back = at!(place, Cloned(handle.0.clone())).await?;
        assert!(back.0.open().is_ok());
    }
    drop(handle);
    // Weight returns home in messages; each request is answered after those of its place.
    for _ in 0..10_000 {
        if watch.strong_count() == 0 {
            return Ok(());
        }
        for place in places() {
            at!(place, ()).await?;
        }
    }
    panic!("a part outlives its handles")
}
