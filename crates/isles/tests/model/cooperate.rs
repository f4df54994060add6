//! Loops of operations that never wait: other tasks still get turns, and the loops end with the program.

use isles::prelude::*;
use isles::{Error, ErrorKind, Plan, PlannedDeath, Result, simulate};
use serde::{Deserialize, Serialize, Serializer};
#[cfg(feature = "chip")]
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of operations on a handle, and of failing calls, in a millisecond of a chip; it was once 64 times
/// higher.
#[cfg(feature = "chip")]
const OPERATIONS_MAX: u32 = 10_000;

/// Maximum number of calls of the own place in a millisecond of a chip; it was once 4 times higher.
#[cfg(feature = "chip")]
const CALLS_MAX: u32 = 80_000;

/// A capture that is never written.
#[derive(Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("unwritable"))
    }
}

/// Checks that a deadline expires beside a loop of `operation`, which always completes at once.
async fn assert_gives_way<F: Future<Output = ()> + 'static>(name: &str, operation: impl Fn() -> F + 'static) {
    let result = finish(async move {
        spawn(async move {
            loop {
                operation().await;
            }
        });
    });
    let error = result.deadline(Duration::from_micros(100)).await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::DeadlinePassed, "{name}: {error}");
}

/// Runs `main` at the first of two simulated places; the other dies at once.
fn beside_a_death<F: Future<Output = Result<()>> + 'static>(main: impl FnOnce(Place) -> F + 'static) {
    let mut plan = Plan::calm(1);
    plan.losses = vec![PlannedDeath { place: isles_transport::PlaceId(1), step: 200 }];
    let (result, ..) = simulate(2, plan, move || async move { main(Place::new(1).unwrap()).await });
    if let Err(error) = result {
        assert_eq!(*error.kind(), ErrorKind::DeadPlace(isles_transport::PlaceId(1)), "{error}");
    }
}

/// Waits until `place` is known to be dead.
async fn until_dead(place: Place) {
    while at!(place, {}).await.is_ok() {}
}

#[test]
fn a_loop_of_operations_on_a_dead_place_lets_the_others_have_their_turn() {
    beside_a_death(async |dead| {
        let counter = Rc::new(at!(dead, Counter::new()).await?);
        until_dead(dead).await;
        assert_gives_way("at", move || async move { drop(at!(dead, {}).await) }).await;
        assert_gives_way("spawn_at", move || async move {
            drop(finish(async move { spawn_at!(dead, {}) }).await);
        })
        .await;
        assert_gives_way("counter", move || {
            let counter = Rc::clone(&counter);
            async move { drop(counter.add(1).await) }
        })
        .await;
        let team = Rc::new(Team::world());
        assert_gives_way("team", move || {
            let team = Rc::clone(&team);
            async move { drop(team.barrier().await) }
        })
        .await;
        assert_gives_way("replicated", || async { drop(Replicated::new(1).await) }).await;
        Ok(())
    });
}

#[test]
fn a_loop_of_operations_that_are_over_at_once_lets_the_others_have_their_turn() {
    let main = async || {
        let there = here().next();
        assert_gives_way("empty finish", || async { drop(finish(async {}).await) }).await;
        assert_gives_way("own place", || async { drop(at!(here(), {}).await) }).await;
        assert_gives_way("unwritable", move || async move {
            let value = Unwritable;
            drop(at!(there, [value = &value] size_of_val(value)).await);
        })
        .await;
        let monitor = Rc::new(Monitor::new(0));
        assert_gives_way("monitor", move || {
            let monitor = Rc::clone(&monitor);
            async move { monitor.when(|_| true, |count| *count += 1).await }
        })
        .await;
        let phaser = Rc::new(Phaser::new());
        assert_gives_way("phaser", move || {
            let phaser = Rc::clone(&phaser);
            async move { drop(phaser.advance().await) }
        })
        .await;
        let counter = Rc::new(Counter::new());
        assert_gives_way("counter", move || {
            let counter = Rc::clone(&counter);
            async move { drop(counter.add(1).await) }
        })
        .await;
        Ok::<_, Error>(())
    };
    simulate(2, Plan::calm(1), main).0.unwrap();
}

/// Checks that a deadline of a chip expires beside a loop of `operation`, and that at most `most` operations complete
/// in a millisecond of the chip.
#[cfg(feature = "chip")]
async fn assert_moves_the_clock<F>(name: &str, most: u32, operation: impl Fn() -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let count = Rc::new(Cell::new(0_u32));
    let counted = Rc::clone(&count);
    let result = finish(async move {
        while counted.get() < u32::MAX {
            operation().await;
            counted.set(counted.get() + 1);
        }
    });
    let result = result.deadline(Duration::from_millis(1)).await;
    assert_eq!(*result.unwrap_err().kind(), ErrorKind::DeadlinePassed, "{name}");
    assert!((100..=most).contains(&count.get()), "{name}: {} in a millisecond", count.get());
}

/// A deadline of a chip expires after thousands, not millions, of operations that complete at once.
#[cfg(feature = "chip")]
#[test]
fn operations_that_are_over_at_once_move_the_clock_of_a_chip() {
    let main = || async {
        let there = here().next();
        assert_moves_the_clock("unwritable", OPERATIONS_MAX, move || async move {
            let value = Unwritable;
            drop(at!(there, [value = &value] size_of_val(value)).await);
        })
        .await;
        assert_moves_the_clock("own place", CALLS_MAX, || async { drop(at!(here(), {}).await) }).await;
        assert_moves_the_clock("empty finish", OPERATIONS_MAX, || async { drop(finish(async {}).await) })
            .await;
        assert_moves_the_clock("own task", OPERATIONS_MAX, || async {
            drop(finish(async { spawn_at!(here(), {}) }).await);
        })
        .await;
        let monitor = Rc::new(Monitor::new(0));
        assert_moves_the_clock("monitor", OPERATIONS_MAX, move || {
            let monitor = Rc::clone(&monitor);
            async move { monitor.when(|_| true, |count| *count += 1).await }
        })
        .await;
        let phaser = Rc::new(Phaser::new());
        assert_moves_the_clock("phaser", OPERATIONS_MAX, move || {
            let phaser = Rc::clone(&phaser);
            async move { drop(phaser.advance().await) }
        })
        .await;
        let counter = Rc::new(Counter::new());
        assert_moves_the_clock("counter", OPERATIONS_MAX, move || {
            let counter = Rc::clone(&counter);
            async move { drop(counter.add(1).await) }
        })
        .await;
        Ok::<_, Error>(())
    };
    let launch = isles::Launch::from_environment().unwrap().places(3);
    launch.run_on_chip(isles::ModelledChip::new("scc").unwrap(), main).unwrap().0.unwrap();
}

/// Calls another place for ever.
async fn call_for_ever(there: Place) {
    loop {
        let _ = at!(there, {}).await;
    }
}

#[isles::test(places = 3, machines = [threads, processes])]
async fn detached_tasks_that_call_each_other_end_with_the_program() -> Result<()> {
    finish(async {
        for place in places() {
            for there in places().filter(|there| *there != place) {
                spawn_at!(place, spawn_detached(call_for_ever(there)));
            }
        }
    })
    .await
}

/// Number of times the second place has asked for a job.
static ASKED: AtomicU64 = AtomicU64::new(0);

#[isles::test(places = 2, machines = [threads])]
async fn a_place_that_computes_between_operations_serves_others_as_often_as_itself() -> Result<()> {
    let (jobs, queue) = channel::<u64>(0);
    let mut taken_here = 0;
    finish(async {
        spawn_at!(here().next(), {
            loop {
                let mut next = pin!(queue.recv());
                let mut has_asked = false;
                let next = poll_fn(|context| {
                    let polled = next.as_mut().poll(context);
                    if !std::mem::replace(&mut has_asked, true) {
                        ASKED.fetch_add(1, Ordering::AcqRel);
                    }
                    polled
                });
                if next.await.is_err() {
                    break;
                }
            }
        });
        spawn(async move {
            for job in 0..60 {
                jobs.send(job).await?;
            }
            Ok::<_, Error>(())
        });
        // A job here lasts until the other place has asked for its next one, and longer than a turn.
        while let Ok(job) = queue.recv().await {
            let start = Instant::now();
            let taken_there = job - taken_here;
            while ASKED.load(Ordering::Acquire) <= taken_there || start.elapsed() < Duration::from_micros(20)
            {
                std::thread::yield_now();
            }
            taken_here += 1;
        }
        Ok::<_, Error>(())
    })
    .await?;
    // Fewer than half stay here if other programs preempt this place in the middle of a job: it then serves the other
    // one for that long. All but one stayed here before a place polled messages by its own time.
    assert!((1..=36).contains(&taken_here), "{taken_here} of 60 jobs stayed here");
    Ok(())
}
